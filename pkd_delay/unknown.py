"""`UnknownDelay`: the decomposition of the paper's Theorem 2, for a delay law that is learned too.

X is the base's X x counter; Y is the base's Y x queue. Beside the base's features there are the
arrivals, each with two outcomes. If the numbers that make the delays (raw inter-arrival times, raw
lags) are shown when an episode is over, they give samples of every arrival, also of those that
clipping or the end of the episode hid. Otherwise the arrivals that were visited are the samples.
`Lessons` is the one table of what teaches what; `samples`, the truth and the kernel read it.

A delay of a delay has features of both. `depth` tells them apart: 0 for the innermost unknown
delay, 1 for an unknown delay of a base that has features of depth 0, and so on.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import attrs

from pkd import Episode, Family, Known, ModelError, Queue
from pkd.adapters import find_note
from pkd.episode import list_samples, list_visited
from pkd.expect import flag, function, if_given, require
from pkd.problem import as_model
from pkd_delay.augmented import SHOWN, TRAN, Augmented
from pkd_delay.base import Base, BaseFacts, Instead, State, survey
from pkd_delay.laws.kernel import ArrivalQuestion, DelayKernel, InterArrival, find_no_form

if TYPE_CHECKING:
    from pkd.model import Branch


class Move(NamedTuple):
    """The feature of a tran: the paper's z = (s, a, tran), with the base's feature for (s, a)."""

    feature: Any
    depth: int = 0


class Arrival(NamedTuple):
    """The feature of an arrival: the paper's z = (s, a, counter) with its flag. B(z) = 2."""

    x: Any  # of the last shown state of the base
    given: Any  # what else the delay depends on: the action, (y, action), or a delay_feature
    waited: int  # -1 where a state was just shown
    empty: bool  # the queue was empty: the arrival means Delta <= 0 and not Delta = waited
    depth: int = 0
    before: int | None = None  # the delay of the last shown state, where the form of law needs it

    def outcome(self, arrived: bool) -> tuple[Any, int]:
        """The x' of an arrival that happened, or did not."""
        return self.x, TRAN if arrived else self.waited + 1

    @property
    def delays(self) -> tuple[int, int]:
        """(delay of the last shown state, the next delay that is asked about).

        Where the form of law does not need the first, any delay that is not 0 stands for it.
        """
        before = (0 if self.empty else 1) if self.before is None else self.before
        return before, before + self.waited


def next_depth(features: Iterable[Any]) -> int:
    """The depth of the features that an unknown delay of a base with these features adds.

    >>> next_depth(["demand"]), next_depth([Move("demand"), Arrival(0, 1, 0, True)])
    (0, 1)
    """
    depths = (z.depth for z in features if isinstance(z, Move | Arrival))
    return 1 + max(depths, default=-1)


class Queued(NamedTuple):
    """The y of an `UnknownDelay`."""

    y: Any  # of the last shown state of the base
    queue: Queue | None  # unresolved actions, oldest first; None: the episode is over


@attrs.frozen
class Hindsight:
    """What an episode reveals at its end when the base has something to reveal, too."""

    deltas: tuple[int, ...]  # raw inter-arrival times, or raw lags
    base: Any


Sample = tuple[Arrival, tuple[Any, int]]  # (z, x')


@attrs.frozen
class Lessons:
    """What an episode teaches of the arrivals.

    A raw number n is a sample of each arrival z whose question it answers: yes where n lies in
    `questions[z].limits(True)`, no in `limits(False)`. The other way round, an answer on the path
    of an episode says in which of these ranges the number lies. Without raw numbers, an answer is a
    sample of all arrivals that ask the same of the same law.
    """

    questions: dict[Arrival, ArrivalQuestion] = attrs.Factory(dict)
    of_number: dict[Any, dict[int, list[Sample]]] = attrs.Factory(dict)  # delay_key -> number -> ..
    alike: dict[Arrival, list[Arrival]] = attrs.Factory(dict)


# (x, y, a) of the base -> all that the law of the delay depends on
DelayFeature = Callable[[Any, Any, Any], Any] | None


class UnknownDelay(Augmented):
    """A base model whose states are shown late by an unknown law; it holds bounds and no law.

        z = Move(phi_Z of the base) on tran;
        z = Arrival(x, a, c, empty) on an arrival that is not forced

    `longest` is W, a bound on the number that makes a delay: one inter-arrival time, or one lag if
    `form` is `Lags`. `delay_feature(x, y, a)` may say that the law of the delay depends on less
    than the whole state and action; by default every (x, y, a) has its own, as in the paper.
    Arrivals whose laws are the same by this share their samples: one Delta is a sample of them all.

    revealed: whether the raw numbers are shown at the end of an episode, as in the paper. Then
    `episode.revealed` must hold those of the base's actions, in order. Otherwise the learner counts
    the arrivals that it visited. A visited arrival is a draw from its law whatever came before, so
    nothing is biased; there are fewer samples.

    `facts` are those of the same base with the same `instead`, where they are known already.

    |Z| in the logarithms is the number of features that can occur, moves and arrivals: the union
    bound of the general guarantee runs over them. If the base declares its own |Z|, that number
    takes the place of the moves. `n_features` replaces both: `DelayedMDP` gives the W'SA of
    MVP-Delayed, W' = max(W, 1), which is less than the (W + 3) S A features that a table can have.

    >>> import pkd, pkd_delay
    >>> from pkd_delay.models.tables import two_state_chain
    >>> model = pkd_delay.UnknownDelay(two_state_chain().model(), longest=1, max_delay=1)
    >>> truth = pkd_delay.DelayedMDP.constant(two_state_chain(), 1).law()
    >>> round(pkd.plan(model, truth).value, 12)
    9.1
    """

    y_type = Queued

    def __init__(
        self,
        base: Base,
        longest: int,
        max_delay: int,
        *,
        delay_feature: DelayFeature = None,
        form: type[DelayKernel] = InterArrival,
        revealed: bool = True,
        instead: Instead = None,
        n_features: int | None = None,
        facts: BaseFacts | None = None,
    ) -> None:
        base = as_model(base)
        require(
            find_no_form(form),
            if_given(function, "delay_feature", delay_feature, "(x, y, a) -> anything hashable"),
            flag("revealed", revealed),
        )
        facts = facts or survey(base, instead)
        super().__init__(base, facts, form, longest, max_delay, instead, n_features)
        if revealed and not form.drawn:
            raise ModelError(
                "a chain of delays draws no raw numbers that could be shown at the end; "
                "expected revealed=False with form=DelayChain"
            )
        self.revealed = revealed
        self._each_its_own = delay_feature is None
        self.delay_feature = delay_feature or (_action if facts.n_y == 1 else _y_and_action)
        self.depth = next_depth(facts.features)
        self._common_given: dict[State, Any] = {}  # _DEPENDS: it depends on the action
        # Every move of the base is taught, and every arrival that is asked about.
        self.samples_cover_visits |= base.samples is None
        if n_features is None and base.n_features is not None:
            self.n_features = base.n_features + self.n_arrivals

    @property
    def n_arrivals(self) -> int:
        """How many arrivals can occur: the features that the delay adds."""
        return sum(map(len, self._arrivals.values()))

    def delay_key(self, x: Any, y: Any, a: Any) -> Any:
        """What the law of the delay depends on: states and actions with equal keys share it."""
        given = self.delay_feature(x, y, a)
        return (x, given) if self._each_its_own else given

    @cached_property
    def _steps(self) -> dict[Any, dict[tuple[Any, Any], tuple[float, float]]]:
        """key -> (x, given) -> the first step of such a state and action, the first from 2 on."""
        steps: dict[Any, dict[tuple[Any, Any], tuple[float, float]]] = {}
        for (x, y), (first, again) in self.facts.decisions.items():
            for a in self.kind(x, y):
                group = steps.setdefault(self.delay_key(x, y, a), {})
                own = (x, self.delay_feature(x, y, a))
                other = group.get(own, (math.inf, math.inf))
                group[own] = (min(first, other[0]), min(again, other[1]))
        return steps

    def read(self, x: Any, y: Any) -> tuple[Any, Any, Queue | None, int]:
        base_y, queue = y
        base_x, counter = x
        return base_x, base_y, Queue(queue) if type(queue) is tuple else queue, counter

    def _join(self, x: Any, y: Any, queue: Queue | None, counter: int) -> tuple[Any, Queued]:
        return (x, counter), Queued(y, queue)

    def _arrive(self, x: Any, y: Any, queue: Queue, before: int, delay: int) -> list[Branch]:
        given = self._common_given.get((x, y), _UNASKED)
        if given is _UNASKED:
            given = self._common_given[x, y] = self._find_common_given(x, y)
        if given is _DEPENDS:
            given = self.delay_feature(x, y, self.done(x, y, queue.oldest))
        return [(1.0, Queued(y, queue), self._name_arrival(x, given, before, delay))]

    def _name_arrival(self, x: Any, given: Any, before: int, delay: int) -> Arrival:
        empty = not self.form.by_delay and before == delay == 0
        told = before if self.form.by_delay else None
        return Arrival(x, given, delay - before, empty, self.depth, told)

    def _find_common_given(self, x: Any, y: Any) -> Any:
        """The delay_feature in (x, y), if it is the same for all actions: then none is read."""
        first, *others = (self.delay_feature(x, y, a) for a in self.kind(x, y))
        return first if all(given == first for given in others) else _DEPENDS

    def _lift(self, z: Any) -> Any:
        if isinstance(z, Known):
            return Known({(x_next, SHOWN): p for x_next, p in z.law})
        return Move(z, self.depth)

    def _place_shown(self, y: Any, queue: Queue | None) -> Queued:
        return Queued(y, queue)

    def outcomes(self, z: Move | Arrival) -> Iterable[Any]:
        if isinstance(z, Move):
            found = self.base.outcomes(z.feature)
            if isinstance(found, Family):
                return found.rename(lambda x_next: (x_next, SHOWN))
            return [(x_next, SHOWN) for x_next in found]
        return [z.outcome(True), z.outcome(False)]

    def branching(self, z: Move | Arrival) -> int:
        return self.base.branching(z.feature) if isinstance(z, Move) else 2

    def share(self, z: Move | Arrival, y: Queued) -> float:
        n = 0 if y.queue is None else len(y.queue)
        if isinstance(z, Move):
            return self.queue_share(n + 1) * self.base_share(z.feature, y.y)
        return self.queue_share(n) / self.facts.n_y

    def note(self, x: Any, y: Any, a: Any) -> tuple[Any] | None:
        """(delay_key,) of the action that a tran resolves, for compiled hindsight."""
        if x[1] != TRAN:
            return None
        base_x, base_y, queue, counter = self.read(x, y)
        action = self._find_action(base_x, base_y, queue, counter)
        return None if action is None else (self.delay_key(base_x, base_y, action),)

    def samples(self, episode: Episode) -> Iterator[tuple[Any, Any]]:
        """The base's samples of all its moves, and those of the arrivals.

        Each raw number teaches the arrivals that it decided. With inter-arrival times, for
        j = -1, 0, ..., min(Delta, W - 1): Arrival(j) is TRAN if Delta = j, else j + 1; with an
        empty queue it is TRAN if Delta <= 0. Without raw numbers the samples are the visited
        arrivals.
        """
        revealed = episode.revealed
        deltas, base_part = (revealed, None) if self.revealed else (None, revealed)
        if isinstance(revealed, Hindsight):
            deltas, base_part = revealed.deltas, revealed.base
        base_episode = self.base_episode(episode, base_part)
        for z, x_next in list_samples(self.base, base_episode):
            yield Move(z, self.depth), (x_next, SHOWN)
        if not self.revealed:
            for z, (_, counter) in list_visited(self, episode):
                for other in self.lessons.alike.get(z, ()):
                    yield other, other.outcome(counter == TRAN)
            return
        acted = [move for move in base_episode if move.action is not None]
        if deltas is None or len(deltas) != len(acted):
            found = "nothing" if deltas is None else f"{len(deltas)} numbers"
            raise ModelError(
                f"episode.revealed has {found}; expected the raw {self.form.drawn}s of the "
                f"{len(acted)} actions, shown at the end; "
                "if they are never seen, use UnknownDelay(..., revealed=False)"
            )
        for move, delta in zip(acted, deltas, strict=True):
            yield from self.teach(self.delay_key(move.x, move.y, move.action), delta)

    def teach(self, key: Any, number: int) -> list[Sample]:
        """The samples that one raw number of a `delay_key` gives, of arrivals that can occur."""
        if not self.form.first <= number <= self.longest:
            raise ModelError(
                f"an {self.form.drawn} is {number!r}; "
                f"expected {self.form.first} to longest={self.longest}"
            )
        return self.lessons.of_number[key][number]

    def key_of(self, z: Arrival) -> Any:
        """The `delay_key` of the states and actions that z is about."""
        return (z.x, z.given) if self._each_its_own else z.given

    @cached_property
    def lessons(self) -> Lessons:
        """What numbers and visited arrivals teach."""
        found, groups = Lessons(), dict[Any, list[Arrival]]()
        for key, arrivals in self._arrivals.items():
            rows: dict[int, list[Sample]] = {
                number: [] for number in range(self.form.first, self.longest + 1)
            }
            for z in arrivals:
                question = found.questions[z] = self.form.ask(*z.delays)
                group = key, question, self.form.number_group(z.delays[0])
                found.alike[z] = groups.setdefault(group, [])
                found.alike[z].append(z)
                for arrived in (True, False):
                    low, high = question.limits(arrived, self.longest)
                    for number in range(max(low, self.form.first), int(high) + 1):
                        rows[number].append((z, z.outcome(arrived)))
            found.of_number[key] = rows
        return found

    @cached_property
    def _arrivals(self) -> Mapping[Any, tuple[Arrival, ...]]:
        """The arrivals of each key that can occur. Clips and the end of the episode force some."""
        found: dict[Any, tuple[Arrival, ...]] = {}
        for key, group in self._steps.items():
            found[key] = tuple(
                dict.fromkeys(
                    self._name_arrival(x, given, before, delay)
                    for (x, given), steps in group.items()
                    for before, delay in self._delays
                    # A delay before the first state is 0.
                    if steps[min(before, 1)] + delay < self.horizon
                )
            )
        return found

    @cached_property
    def _delays(self) -> list[tuple[int, int]]:
        """(before, delay) of each arrival that is not forced, one pair for all that are alike."""
        if self.max_delay == 0 or self.longest == 0:  # no state is ever late
            return []
        most = min(self.longest, self.max_delay) if self.form.by_delay else 1
        pairs = [
            (before, delay)
            for before in range(most + 1)
            for delay in range(max(before - 1, 0), self.max_delay)
        ]
        return [pair for pair in pairs if not self._is_last(*pair)]

    def x_label(self, x: tuple[Any, int]) -> str:
        return f"{self.base.x_label(x[0])}, {self._label_counter(x[1])}"

    def y_label(self, y: Queued) -> str:
        return self._label_queue(y.y, y.queue)

    def feature_label(self, z: Move | Arrival) -> str:
        if isinstance(z, Move):
            return self.base.feature_label(z.feature)
        queue = ", empty queue" if z.empty else ""
        late = "" if z.before is None else f", which was {z.before} late,"
        where = f"{self.base.x_label(z.x)}{late}"
        return f"arrival after {z.waited} from {where} given {z.given}{queue}"


@find_note.register(UnknownDelay)
def _find_note(model: UnknownDelay) -> Callable[[Any, Any, Any], tuple[Any] | None] | None:
    return model.note if model.revealed else None


def share_one_law(x: Any, y: Any, a: Any) -> None:
    """The `delay_feature` of a delay that depends on nothing."""


def _action(x: Any, y: Any, a: Any) -> Any:
    return a


def _y_and_action(x: Any, y: Any, a: Any) -> tuple[Any, Any]:
    return y, a


_DEPENDS: Final = object()  # on the action
_UNASKED: Final = object()
