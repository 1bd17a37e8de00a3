"""Random models with a `pkd.Queue` in y, for hypothesis.

A `QueueShape` says which corners a model has; `build` turns it into a `QueueCase`. Every answer of
a model is drawn from a generator that is seeded by what the model has looked at. So it needs no
table, and the engines see only the questions that they ask.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

import attrs
from hypothesis import strategies as st

from pkd.model import CHANCE, END, Known, PartiallyKnownMDP, UnknownReward, sure
from pkd.queue import Queue
from tests import reference
from tests.strategies import Choices, draw_law, draw_shape, draw_shapes

XS = (0, "one", (2,))
ACTIONS = (0, 1, "c", "d")
USUAL_ACTIONS = 3  # as many has a random model at most; four are a case of their own in a kernel
OTHERS = ("v", 1.5)  # entries that are no actions
LOOKS = ("nothing", "oldest", "second", "newest", "everything", "swallowed")
WRAPPINGS = ("bare", "tuple", "nested", "named", "attrs", "private", "two")


@attrs.frozen
class QueueShape:
    """The corners of a random model with a queue.

    chance, end, known, none: shares of states or branches.
    """

    seed: int
    horizon: int = 3
    n_x: int = 2
    n_phases: int = 2
    n_actions: int = 2
    longest: int = 2
    n_features: int = 2
    wrapping: str = "tuple"
    looks: tuple[str, ...] = ("nothing", "oldest")
    strange_entries: bool = False
    differing_actions: bool = False
    chance: float = 0.3
    pipeline: bool = (
        False  # phase 0 decides and pushes, the others are CHANCE states one after another
    )
    drains: bool = False  # CHANCE states pop one entry after the other
    end: float = 0.0
    known: float = 0.3
    none: float = 0.0
    alike: float = 0.0  # of phases in which all x move alike and stay what they are
    paid: float = 1.0  # of phases that pay anything but 0
    settlement: bool = False
    spread_start: bool = False
    unknown_rewards: bool = False
    declared: bool = False
    shares: bool = False
    data: str = "few"
    one_letter: bool = False  # whatever the action is, the same entry is pushed
    twins: float = 0.0  # of moves with two branches of one phase and feature, written differently
    # All actions do the same but push themselves, and entries are actions: stripes are fans.
    appends: bool = False


@attrs.frozen(eq=False)
class QueueCase:
    """A random model with a law that fits it and counts; `scale` bounds its returns."""

    shape: QueueShape
    model: QueueModel = attrs.field(repr=False)
    law: dict[Any, dict[Any, float]] = attrs.field(repr=False)
    counts: dict[Any, dict[Any, int]] = attrs.field(repr=False)
    scale: float = attrs.field(repr=False)
    met: reference.Reachable = attrs.field(repr=False)


class Named(NamedTuple):
    """y as a named tuple."""

    phase: int
    queue: Queue | None


@attrs.frozen
class Framed:
    """y as an attrs class."""

    queue: Queue | None
    phase: int


@attrs.frozen
class Guarded:
    """y as an attrs class that checks its fields, names one privately and keeps its hash."""

    phase: int
    _queue: Queue | None = attrs.field(
        validator=attrs.validators.optional(attrs.validators.instance_of(Queue))
    )
    length: int = attrs.field(init=False)

    @length.default
    def _count(self) -> int:
        return -1 if self._queue is None else len(self._queue)


class QueueModel(PartiallyKnownMDP):
    """Phases with a queue.

    Each answer depends on the phase, x, the action, the length, and on entries that it looks at.
    """

    def __init__(self, shape: QueueShape) -> None:
        self.horizon = shape.horizon
        self.xs = XS[: shape.n_x]
        if shape.appends:
            shape = attrs.evolve(
                shape, strange_entries=False, differing_actions=False, one_letter=False
            )
        self.shape = shape
        letters = (*ACTIONS[: shape.n_actions], *(OTHERS if shape.strange_entries else ()))
        self.letters = letters[:1] if shape.one_letter else letters
        self.n_phases = 1 if shape.wrapping == "bare" else shape.n_phases + shape.pipeline
        self.weights: dict[Any, float] | None = None

    # -- y ---------------------------------------------------------------------------------------

    def wrap(self, phase: int, queue: Queue | None, other: Any = None) -> Any:
        """The y of a phase and a queue."""
        match self.shape.wrapping:
            case "bare":
                return queue
            case "tuple":
                return (phase, queue)
            case "nested":
                return ((phase, ("deep", queue)), "flag")
            case "named":
                return Named(phase, queue)
            case "attrs":
                return Framed(queue, phase)
            case "private":
                return Guarded(phase, queue)
        return (phase, queue, other or Queue())

    def unwrap(self, y: Any) -> tuple[int, Queue | None, Any]:
        """(phase, queue, another queue) of a y."""
        match self.shape.wrapping:
            case "bare":
                return 0, y, None
            case "tuple":
                return (*y, None)
            case "nested":
                return y[0][0], y[0][1][1], None
            case "named" | "attrs":
                return y.phase, y.queue, None
            case "private":
                return y.phase, y._queue, None
        phase, queue, other = y
        return phase, queue, other

    # -- the contract ----------------------------------------------------------------------------

    def start(self) -> Any:
        rng = self._dice("start")
        if not self.shape.spread_start:
            return self.xs[0], self.wrap(0, self._some_queue(rng))
        states = {}
        for weight in (0.5, 0.25, 0.125, 0.125):
            phase = rng.randrange(self.n_phases)
            place = (rng.choice(self.xs), self.wrap(phase, self._some_queue(rng)))
            states[place] = states.get(place, 0.0) + weight
        return states

    def actions(self, x: Any, y: Any) -> Any:
        phase, queue, _ = self.unwrap(y)
        length = _count(queue)
        rng = self._dice("kind", self._kind_of(x, phase), phase, length)
        if rng.random() < self.shape.end:
            return END
        last = phase == self.n_phases - 1
        if self.shape.pipeline:
            return CHANCE if phase > 0 else ACTIONS[: self.shape.n_actions]
        if rng.random() < self.shape.chance and (not last or (self.shape.drains and length > 0)):
            return CHANCE
        here = list(ACTIONS[: self.shape.n_actions])
        if self.shape.differing_actions:
            rng.shuffle(here)
            here = here[: rng.randint(1, len(here))]
        return here

    def reward(self, x: Any, y: Any, a: Any) -> float | UnknownReward:
        if self._share_of("paid", self.unwrap(y)[0]) >= self.shape.paid:
            return 0.0
        rng = self._ask("reward", x, y, a)
        if self.shape.unknown_rewards and rng.random() < 0.3:
            i = rng.randrange(2)
            return UnknownReward(("pay", i), -1.0 - i, 2.0)
        return rng.choice([0.0, rng.uniform(-1, 1)])

    def final(self, x: Any, y: Any) -> float:
        return self._ask("final", x, y, None).choice([0.0, 1.0, -0.5])

    def step(self, x: Any, y: Any, a: Any) -> list[tuple[float, Any, Any]]:
        return self._move("step", x, y, a)

    def last_step(self, x: Any, y: Any, a: Any) -> list[tuple[float, Any, Any]]:
        return self._move("last" if self.shape.settlement else "step", x, y, a)

    def outcomes(self, z: Any) -> tuple[Any, ...]:
        rng = self._dice("outcomes", z)
        return tuple(rng.sample(self.xs, rng.randint(1, len(self.xs))))

    def share(self, z: Any, y: Any) -> float | None:
        if self.weights is None:
            return None
        phase, queue, other = self.unwrap(y)
        return self.weights.get((phase, _count(queue), other), 1e-3)

    # -- moves -----------------------------------------------------------------------------------

    def _move(self, part: str, x: Any, y: Any, a: Any) -> list[tuple[float, Any, Any]]:
        phase, queue, other = self.unwrap(y)
        rng = self._ask(part, x, y, a)
        chance = a is None
        drains = chance and self.shape.drains and _count(queue) > 0
        if self.shape.pipeline:
            onward = (phase + 1) % self.n_phases
            phases = [onward, 0] if rng.random() < 0.3 and onward > 0 else [onward]
            if rng.random() < 0.2 and 0 < phase < self.n_phases - 2:
                phases = [phase + 1, phase + 2]
        elif drains and (phase == self.n_phases - 1 or rng.random() < 0.7):
            phases = [phase]
        elif chance:
            phases = list(range(phase + 1, self.n_phases))
        else:
            phases = list(range(self.n_phases))
        if not self.shape.pipeline:
            phases = rng.sample(phases, rng.randint(1, min(2, len(phases))))
        weights = [rng.uniform(0.1, 1) for _ in phases]
        same = self._feature(rng, x, phase)
        branches = []
        for i, to in enumerate(phases):
            # Two branches to one y' must have one feature.
            z = self._feature(rng, x, phase) if len(set(phases)) == len(phases) else same
            fewer = drains and to == phase
            after, beside = self._change(rng, queue, other, a, fewer)
            if queue is not None and self.shape.pipeline:
                after = self._pass_on(rng, queue, a)
            elif queue is not None and self.shape.appends and not chance:
                pushed = queue.push(a)
                after, beside = pushed.pop(max(0, len(pushed) - self.shape.longest)), other
            branches.append((weights[i] / sum(weights), self.wrap(to, after, beside), z))
        if rng.random() < 0.2:
            p, y_next, z = branches.pop()
            branches += [(0.25 * p, y_next, z), (0.0, "nowhere", "never"), (0.75 * p, y_next, z)]
        if rng.random() < self.shape.twins and not (self.shape.pipeline or self.shape.appends):
            # With one letter, both often lead to one y'.
            p, y_next, z = branches.pop()
            again = self._change(rng, queue, other, a, drains and phases[-1] == phase)
            twin = self.wrap(phases[-1], *again)
            branches += [(0.25 * p, y_next, z), (0.75 * p, twin, z)]
        return branches

    def _change(
        self, rng: random.Random, queue: Queue | None, other: Any, a: Any, fewer: bool
    ) -> tuple[Queue | None, Any]:
        """What a move does with its queue. fewer: the new one must be shorter."""
        shape = self.shape
        if queue is None:
            entry = self._enter(a)
            return (Queue([entry]) if a is not None and rng.random() < 0.7 else None), other
        if fewer:
            return queue.pop(rng.choice([1, 1, 2])), other
        if shape.none and rng.random() < shape.none:
            return None, other
        what = rng.choice(["shift", "shift", "push", "pop", "clear", "swap", "several", "refill"])
        entry = rng.choice(self.letters) if a is None or rng.random() < 0.3 else self._enter(a)
        if what == "shift":
            queue = queue.push(entry).pop() if rng.random() < 0.5 else queue.pop().push(entry)
        elif what == "push":
            queue = queue.push(entry)
        elif what == "pop":
            queue = queue.pop()
        elif what == "clear":
            queue = queue.clear()
        elif what == "swap" and other is not None and len(queue) <= 1:
            queue, other = other, queue
        elif what == "several":
            queue = queue.push(entry, self.letters[0]).pop(rng.choice([1, 2, 3]))
        elif what == "refill":
            queue = queue.clear().push(entry, entry)
        return queue.pop(max(0, len(queue) - shape.longest)), other

    def _pass_on(self, rng: random.Random, queue: Queue, a: Any) -> Queue:
        """A decision pushes its action; later phases pop, most often when the queue is too long."""
        if a is not None:
            return queue.push(self._enter(a))
        if len(queue) > self.shape.longest:
            return queue.pop()
        return queue.pop() if rng.random() < 0.3 else queue

    def _enter(self, a: Any) -> Any:
        """The entry that an action pushes."""
        return self.letters[0] if self.shape.one_letter else a

    def _feature(self, rng: random.Random, x: Any, phase: int) -> Any:
        if self._is_alike(phase):
            return sure(x)
        if rng.random() < self.shape.known:
            if rng.random() < 0.5:
                return Known({rng.choice(self.xs): 1.0})
            weights = [rng.uniform(0.1, 1) for _ in self.xs]
            return Known({x: w / sum(weights) for x, w in zip(self.xs, weights, strict=True)})
        return ("z", rng.randrange(self.shape.n_features))

    def _ask(self, question: str, x: Any, y: Any, a: Any) -> random.Random:
        """A generator for one answer, seeded by what the answer depends on."""
        phase, queue, other = self.unwrap(y)
        x, length = self._kind_of(x, phase), _count(queue)
        a = "any" if self.shape.appends and a is not None else a
        how = self._dice("look", question, x, phase, length).choice(self.shape.looks)
        return self._dice(question, x, phase, a, length, repr(other), _look(queue, how))

    def _is_alike(self, phase: int) -> bool:
        if self.shape.pipeline and phase == 0:
            return True
        return self._share_of("alike", phase) < self.shape.alike

    def _share_of(self, question: str, phase: int) -> float:
        return self._dice(question, phase).random()

    def _kind_of(self, x: Any, phase: int) -> Any:
        """x, or the same for all x where they are alike."""
        return "any" if self._is_alike(phase) else x

    def _dice(self, *key: Any) -> random.Random:
        return random.Random(f"{self.shape.seed} {key!r}")

    def _some_queue(self, rng: random.Random) -> Queue | None:
        if self.shape.none and rng.random() < self.shape.none:
            return None
        length = self.shape.longest if self.shape.pipeline else rng.randint(0, self.shape.longest)
        return Queue(rng.choice(self.letters) for _ in range(length))


def _count(queue: Queue | None) -> int:
    return -1 if queue is None else len(queue)


def _look(queue: Queue | None, how: str) -> Any:
    """What a move reads of its queue."""
    if not queue or how == "nothing":
        return None
    if how == "oldest":
        return queue.oldest
    if how == "second":
        return queue[min(1, len(queue) - 1)]
    if how == "newest":
        return queue[-1]
    if how == "everything":
        return tuple(queue)
    try:
        return queue.oldest
    except:  # noqa: E722 - such models exist, and nothing may come out wrong
        return "swallowed"


CHOICES: Choices = {
    "horizon": range(1, 5),
    "n_x": range(1, len(XS) + 1),
    "n_phases": range(1, 4),
    "n_actions": range(1, USUAL_ACTIONS + 1),
    "longest": range(1, 4),
    "n_features": range(1, 4),
    "wrapping": WRAPPINGS,
    "looks": [("nothing",), ("oldest",), ("nothing", "oldest"), LOOKS],
    "strange_entries": 0.5,
    "differing_actions": 0.5,
    "chance": [0.0, 0.3, 0.6],
    "pipeline": 0.5,
    "drains": 0.5,
    "end": [0.0, 0.15],
    "known": [0.0, 0.4, 0.8],
    "none": [0.0, 0.2],
    "alike": [0.0, 0.5, 0.8],
    "paid": [1.0, 0.5],
    "settlement": 0.5,
    "spread_start": 0.5,
    "unknown_rewards": 0.5,
    "declared": 0.5,
    "shares": 0.5,
    "data": ["none", "few", "many"],
    "one_letter": 0.3,
    "twins": [0.0, 0.7],
    "appends": 0.5,
}


def shapes(**fixed: Any) -> st.SearchStrategy[QueueShape]:
    return draw_shapes(QueueShape, CHOICES, fixed)


def random_shape(seed: int) -> QueueShape:
    return draw_shape(QueueShape, CHOICES, seed)


def queue_cases(**fixed: Any) -> st.SearchStrategy[QueueCase]:
    """Cases whose shape has the given fields fixed."""
    return shapes(**fixed).map(build)


def build(shape: QueueShape) -> QueueCase:
    """The case of a shape: the same one every time."""
    rng = random.Random(shape.seed)
    model = QueueModel(shape)
    met, bounds = reference.reachable(model), reference.ranges(model)
    ends = [bounds(*place) for place in met.states]
    least, most = min(lo for lo, _ in ends), max(hi for _, hi in ends)
    if shape.declared:
        model.return_range = (least - 0.5, most + 0.25)
    if shape.shares:
        # The largest shares that are allowed: all y that there are together have 1.
        sizes = Counter(_class_of(model, y) for y in met.ys)
        model.weights = {key: 1 / (len(sizes) * size) for key, size in sizes.items()}
    law: dict[Any, dict[Any, float]] = {
        z: draw_law(rng, model.outcomes(z), holes=0.2) for z in sorted(met.features)
    }
    values = {z: model.outcomes(z) for z in law}
    for feature in sorted(met.reward_features):
        values[feature] = (-1.0, 0.5, 2.0)
        law[feature] = draw_law(rng, values[feature], holes=0.2)
    counts = (
        {} if shape.data == "none" else {z: _seen(rng, v, shape.data) for z, v in values.items()}
    )
    return QueueCase(shape, model, law, counts, max(1.0, abs(least), abs(most)), met)


def _class_of(model: QueueModel, y: Any) -> tuple[int, int, Any]:
    phase, queue, other = model.unwrap(y)
    return phase, _count(queue), other


def _seen(rng: random.Random, values: Sequence[Any], data: str) -> dict[Any, int]:
    if data == "many":
        return {value: rng.randint(0, 4000) for value in values} | {
            values[0]: rng.randint(50, 9000)
        }
    return {value: rng.choice([1, 2, 30]) for value in values if rng.random() < 0.7}
