"""Random partially known MDPs with a law and counts, for hypothesis.

Small tables that use every part of the contract.

A `Shape` says which corners a model has; `build` turns it into a `Case` with a seeded generator.
Hypothesis draws and shrinks shapes only, so a failing case prints as one line that rebuilds it.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

import attrs
from hypothesis import strategies as st

from pkd.episode import Episode, list_visited
from pkd.model import CHANCE, END, Known, PartiallyKnownMDP, UnknownReward
from tests import reference

XS = (None, 1, "two", (3,))  # values of four types, which no sort and no arithmetic can order
YS = (("y", 0), "y1", 2, frozenset({3}))
ACTIONS = (0, "b", ("c",))
AnyShape = TypeVar("AnyShape")


@attrs.frozen
class Shape:
    """The corners of a random model.

    Shares of states or branches are probabilities; `data` is "none", "few" or "many" (all N >= 50).
    """

    seed: int
    horizon: int = 2
    n_x: int = 3
    n_y: int = 3
    n_actions: int = 2
    n_features: int = 2
    chance: float = 0.0
    end: float = 0.0
    known: float = 0.0
    settlement: bool = False
    spread_start: bool = False
    rewards: tuple[float, float] = (0.0, 1.0)
    unknown_rewards: bool = False
    declared: bool = False
    shares: bool = False
    extra_features: int | None = None
    narrow: bool = False
    hindsight: bool = False
    data: str = "few"


@attrs.frozen(eq=False)
class Case:
    """A random model with a law that fits it and counts that an optimistic plan can start from."""

    shape: Shape
    model: TableModel = attrs.field(repr=False)
    law: dict[Any, dict[Any, float]] = attrs.field(repr=False)
    counts: dict[Any, dict[Any, int]] = attrs.field(repr=False)
    scale: float = attrs.field(
        repr=False
    )  # the largest possible return in absolute value, at least 1


@attrs.define(eq=False)
class TableModel(PartiallyKnownMDP):
    """A partially known MDP that looks every answer up in a table."""

    horizon: int
    first: dict[tuple[Any, Any], float]
    kinds: dict[tuple[Any, Any], Any]
    main: dict[tuple[Any, Any, Any], list[tuple[float, Any, Any]]]
    last: dict[tuple[Any, Any, Any], list[tuple[float, Any, Any]]]
    pay: dict[tuple[Any, Any, Any], float | UnknownReward]
    finals: dict[tuple[Any, Any], float]
    supports: dict[Any, tuple[Any, ...]]
    bounds: dict[Any, int]
    weights: dict[Any, dict[Any, float]]
    n_features: int | None
    return_range: tuple[float, float] | None = None

    def start(self) -> Any:
        return next(iter(self.first)) if len(self.first) == 1 else self.first

    def actions(self, x: Any, y: Any) -> Any:
        return self.kinds[x, y]

    def step(self, x: Any, y: Any, a: Any) -> list[tuple[float, Any, Any]]:
        return self.main[x, y, a]

    def last_step(self, x: Any, y: Any, a: Any) -> list[tuple[float, Any, Any]]:
        return self.last[x, y, a]

    def reward(self, x: Any, y: Any, a: Any) -> float | UnknownReward:
        return self.pay[x, y, a]

    def final(self, x: Any, y: Any) -> float:
        return self.finals[x, y]

    def outcomes(self, z: Any) -> Sequence[Any]:
        return self.supports[z]

    def branching(self, z: Any) -> int:
        return self.bounds[z]

    def share(self, z: Any, y: Any) -> float | None:
        return self.weights[z][y] if z in self.weights else None


class HindsightModel(TableModel):
    """The same, but the first pair of an episode counts twice."""

    def samples(self, episode: Episode) -> Iterable[tuple[Any, Any]]:
        seen = list_visited(self, episode)
        return seen + seen[:1]


# The values of each field of a shape; a number is the share of True where shapes are drawn by seed.
Choices = Mapping[str, Sequence[Any] | float]
CHOICES: Choices = {
    "horizon": range(1, 5),
    "n_x": range(1, len(XS) + 1),
    "n_y": range(1, len(YS) + 1),
    "n_actions": range(1, len(ACTIONS) + 1),
    "n_features": range(1, 4),
    "chance": [0.0, 0.3, 0.6],
    "end": [0.0, 0.2],
    "known": [0.0, 0.4],
    "settlement": 0.5,
    "spread_start": 0.5,
    "rewards": [(0.0, 1.0), (-1.0, 1.0), (-3.0, -1.0), (-50.0, 2000.0)],
    "unknown_rewards": 0.5,
    "declared": 0.5,
    "shares": 0.5,
    "extra_features": [None, 0, 5],
    "narrow": 0.5,
    "hindsight": 0.5,
    "data": ["none", "few", "many"],
}


def draw_shapes(
    kind: type[AnyShape], choices: Choices, fixed: Mapping[str, Any]
) -> st.SearchStrategy[AnyShape]:
    """Shapes with the given fields fixed; a field may also be fixed to a strategy."""
    drawn: dict[str, st.SearchStrategy[Any]] = {"seed": st.integers(0, 10**6)}
    for name, values in choices.items():
        drawn[name] = st.booleans() if isinstance(values, float) else st.sampled_from(values)
    for name, value in fixed.items():
        drawn[name] = value if isinstance(value, st.SearchStrategy) else st.just(value)
    return st.builds(kind, **drawn)


def draw_shape(kind: type[AnyShape], choices: Choices, seed: int) -> AnyShape:
    """A shape without hypothesis, for long runs over seeds."""
    rng = random.Random(seed)
    drawn = {
        name: rng.random() < values if isinstance(values, float) else rng.choice(values)
        for name, values in choices.items()
    }
    return kind(seed=seed, **drawn)


def shapes(**fixed: Any) -> st.SearchStrategy[Shape]:
    return draw_shapes(Shape, CHOICES, fixed)


def random_shape(seed: int) -> Shape:
    return draw_shape(Shape, CHOICES, seed)


def cases(**fixed: Any) -> st.SearchStrategy[Case]:
    """Cases whose shape has the given fields fixed."""
    return shapes(**fixed).map(build)


def build(shape: Shape) -> Case:
    """The case of a shape: the same one every time."""
    rng = random.Random(shape.seed)
    xs, ys = XS[: shape.n_x], YS[: shape.n_y]
    supports = {
        f"z{i}": tuple(rng.sample(xs, rng.randint(1, len(xs)))) for i in range(shape.n_features)
    }
    law: dict[Any, dict[Any, float]] = {
        z: draw_law(rng, outcomes, holes=0.25) for z, outcomes in supports.items()
    }
    kinds = {(x, y): _kind(rng, shape, y == ys[-1]) for x in xs for y in ys}
    places = [
        (x, y, a)
        for (x, y), kind in kinds.items()
        if kind is not END
        for a in ((None,) if kind is CHANCE else kind)
    ]
    main = {place: _moves(rng, shape, kinds, supports, place) for place in places}
    last = (
        {place: _moves(rng, shape, kinds, supports, place) for place in places}
        if shape.settlement
        else main
    )

    low, high = shape.rewards
    pay: dict[tuple[Any, Any, Any], float | UnknownReward] = {
        place: rng.uniform(low, high) for place in places
    }
    if shape.unknown_rewards:
        learned = [UnknownReward(("pay", i), low - i, high + i) for i in range(2)]
        law |= {
            r.feature: draw_law(rng, [r.low, rng.uniform(r.low, r.high), r.high], holes=0.25)
            for r in learned
        }
        pay |= {place: rng.choice(learned) for place in places if rng.random() < 0.3}

    # Two classes, because the engine has a compiled loop for models that do not override `samples`.
    model = (HindsightModel if shape.hindsight else TableModel)(
        horizon=shape.horizon,
        first=draw_law(rng, list(kinds), holes=0.25)
        if shape.spread_start
        else {(xs[0], ys[0]): 1.0},
        kinds=kinds,
        main=main,
        last=last,
        pay=pay,
        finals={place: rng.uniform(low, high) if rng.random() < 0.5 else 0.0 for place in kinds},
        supports=supports,
        bounds={
            z: sum(p > 0 for p in law[z].values()) if shape.narrow else len(supports[z])
            for z in supports
        },
        weights={z: {y: 0.9 * p for y, p in draw_law(rng, ys).items()} for z in list(supports)[:-1]}
        if shape.shares
        else {},
        n_features=None
        if shape.extra_features is None
        else shape.n_features + shape.extra_features,
    )
    met, bounds = reference.reachable(model), reference.ranges(model)
    ends = [bounds(*place) for place in met.states]
    least, most = min(lo for lo, _ in ends), max(hi for _, hi in ends)
    if shape.declared:
        model.return_range = (least - 0.5, most + 0.25)
    # Data never refute a declared B(z): outcomes that cannot occur are not seen.
    learned_laws = {
        z: tuple(x for x, q in p.items() if q > 0) if shape.narrow else supports.get(z, tuple(p))
        for z, p in law.items()
        if z in met.features | met.reward_features
    }
    counts = (
        {}
        if shape.data == "none"
        else {z: _seen(rng, values, shape.data) for z, values in learned_laws.items()}
    )
    return Case(shape, model, law, counts, max(1.0, abs(least), abs(most)))


def _kind(rng: random.Random, shape: Shape, last_y: bool) -> Any:
    draw = rng.random()
    if draw < shape.end:
        return END
    if (
        draw < shape.end + shape.chance and not last_y
    ):  # the last y has no CHANCE state, so that every chain of them has an exit
        return CHANCE
    return tuple(rng.sample(ACTIONS[: shape.n_actions], rng.randint(1, shape.n_actions)))


def _moves(
    rng: random.Random,
    shape: Shape,
    kinds: dict[tuple[Any, Any], Any],
    supports: dict[Any, tuple[Any, ...]],
    place: tuple[Any, Any, Any],
) -> list[tuple[float, Any, Any]]:
    """A distribution over y' with one feature each.

    Sometimes a branch is split in two, and one of probability 0 leads nowhere.
    """
    x, y, a = place
    xs, ys = XS[: shape.n_x], YS[: shape.n_y]
    moves: dict[Any, Any] = {}
    for y_next in rng.sample(ys, rng.randint(1, min(3, len(ys)))):
        if rng.random() < shape.known:
            z: Any = Known(draw_law(rng, rng.sample(xs, rng.randint(1, len(xs))), holes=0.25))
        else:
            z = rng.choice(list(supports))
        targets = supports[z] if isinstance(z, str) else [x_next for x_next, p in z.law if p > 0]
        # CHANCE states may only move up the order (y, x): inside a layer there must be no cycle.
        here = (ys.index(y), xs.index(x))
        climbs = all(
            kinds[t, y_next] is not CHANCE or (ys.index(y_next), xs.index(t)) > here
            for t in targets
        )
        moves.setdefault(y_next if a is not None or climbs else ys[-1], z)
    branches = [(p, y_next, moves[y_next]) for y_next, p in draw_law(rng, list(moves)).items()]
    if rng.random() < 0.3:
        p, y_next, z = branches.pop()
        branches += [(0.25 * p, y_next, z), (0.75 * p, y_next, z)]
    if rng.random() < 0.3:
        branches.insert(0, (0.0, "nowhere", "never"))
    return branches


def draw_law(rng: random.Random, values: Sequence[Any], holes: float = 0.0) -> dict[Any, float]:
    """Random probabilities; the share `holes` of them are 0."""
    weights = [0.0 if holes and rng.random() < holes else rng.uniform(0.05, 1.0) for _ in values]
    if not any(weights):
        weights[0] = 1.0
    return {value: weight / sum(weights) for value, weight in zip(values, weights, strict=True)}


def _seen(rng: random.Random, values: Sequence[Any], data: str) -> dict[Any, int]:
    if data == "many":
        return {value: rng.randint(0, 400) for value in values} | {
            rng.choice(values): rng.randint(50, 4000)
        }
    return {value: rng.choice([1, 2, 30]) for value in values if rng.random() < 0.6}
