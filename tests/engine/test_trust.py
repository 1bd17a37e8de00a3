"""What hostile testing once found: checkpoints, flattening, integer constants, orders."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pkd
from pkd.learning import learn as learning
from tests import reference
from tests.kiosk import LAW, Kiosk, having

both_engines = pytest.mark.parametrize("large", [False, True], ids=["nodes", "stripes"])


class Coin(pkd.PartiallyKnownMDP):
    """x is the last throw; action a throws coin a; y is a queue of two actions."""

    horizon = 3

    def __init__(self, **changes: Any) -> None:
        self.weight, self.bound = changes.pop("weight", None), changes.pop("bound", 2)
        self.rewards = changes.pop("rewards", (0.0, 1.0))
        vars(self).update(changes)

    def start(self) -> Any:
        return 0, pkd.Queue((0, 0))

    def actions(self, x: Any, y: Any) -> Any:
        return (0, 1)

    def reward(self, x: Any, y: Any, a: Any) -> float:
        return self.rewards[x]

    def step(self, x: Any, y: Any, a: Any) -> list[Any]:
        return [(1.0, y.push(a).pop(), ("coin", y.oldest))]

    def outcomes(self, z: Any) -> Any:
        return (0, 1)

    def branching(self, z: Any) -> int:
        return self.bound

    def share(self, z: Any, y: Any) -> float | None:
        return self.weight


COINS = {("coin", 0): {0: 0.5, 1: 0.5}, ("coin", 1): {0: 0.25, 1: 0.75}}
SURE_COINS = {("coin", 0): {0: 1.0}, ("coin", 1): {1: 1.0}}

OTHER_RUNS: dict[str, tuple[dict[str, Any], dict[Any, dict[Any, float]]]] = {
    "law": ({}, {**COINS, ("coin", 1): {0: 0.75, 1: 0.25}}),
    "features": ({"n_features": 7}, COINS),
    "range": ({"return_range": (0.0, 5.0)}, COINS),
    "share": ({"weight": 0.1}, COINS),
    "horizon": ({"horizon": 4}, COINS),
    "rewards": ({"rewards": (0.0, 1.0 + 1e-15)}, COINS),
}


@both_engines
@pytest.mark.parametrize("change", [*OTHER_RUNS])
def test_the_checkpoint_of_a_run_that_differs_in_anything_is_refused(
    tmp_path: Path, large: bool, change: str
) -> None:
    path, (other, law) = tmp_path / "run.npz", OTHER_RUNS[change]
    pkd.learn(pkd.compile(Coin(), large=large), COINS, 5, checkpoint=path)
    pkd.learn(pkd.compile(Coin(), large=large), COINS, 5, checkpoint=path)
    with pytest.raises(pkd.ModelError, match="another run"):
        pkd.learn(pkd.compile(Coin(**other), large=large), law, 5, checkpoint=path)


@both_engines
def test_the_checkpoint_of_a_run_with_another_branching_is_refused(
    tmp_path: Path, large: bool
) -> None:
    """Also where the other term of the logarithm is the smaller one, and where rewards decide."""
    path = tmp_path / "run.npz"
    pkd.learn(pkd.compile(Coin(bound=2), large=large), SURE_COINS, 5, checkpoint=path)
    with pytest.raises(pkd.ModelError, match="another run"):
        pkd.learn(pkd.compile(Coin(bound=1), large=large), SURE_COINS, 5, checkpoint=path)


def test_the_checkpoint_of_a_model_that_pushes_another_entry_is_refused(tmp_path: Path) -> None:
    class Backwards(Coin):
        def step(self, x: Any, y: Any, a: Any) -> list[Any]:
            return [(1.0, y.push(1 - a).pop(), ("coin", y.oldest))]

    Backwards.__name__ = "Coin"
    path = tmp_path / "run.npz"
    pkd.learn(pkd.compile(Coin(), large=True), COINS, 5, checkpoint=path)
    with pytest.raises(pkd.ModelError, match="another run"):
        pkd.learn(pkd.compile(Backwards(), large=True), COINS, 5, checkpoint=path)


@pytest.mark.parametrize("scale", [1.0, 1e-13, 1e-200])
@pytest.mark.parametrize("late", [0.0, 1.0])
def test_flatten_keeps_rewards_however_small(scale: float, late: float) -> None:
    """The last action pays differently, by less than any absolute tolerance."""

    class Late(Kiosk):
        def final(self, x: Any, y: Any) -> float:
            return late * scale * len(str(y))

        def reward(self, x: Any, y: Any, a: Any) -> float:
            return scale * super().reward(x, y, a)

    model = Late()
    expected = reference.optimal(model, LAW).value
    assert expected != 0
    assert pkd.plan(pkd.flatten(model, LAW)).value == pytest.approx(expected, rel=1e-12, abs=0)


class Rare(pkd.PartiallyKnownMDP):
    """A CHANCE state that pays 2 leads to a decision with p, else to an END that pays 3."""

    horizon = 2

    def __init__(self, p: float) -> None:
        self.p = p

    def start(self) -> Any:
        return None, "draw"

    def actions(self, x: Any, y: Any) -> Any:
        return {"draw": pkd.CHANCE, "over": pkd.END}.get(y, (0, 1))

    def reward(self, x: Any, y: Any, a: Any) -> float:
        return 2.0 if a is None else 0.5 * a

    def step(self, x: Any, y: Any, a: Any) -> list[Any]:
        if y == "draw":
            known = pkd.sure(None)
            return [(self.p, "go", known), (1 - self.p, "over", known)]
        return [(1.0, "go", pkd.sure(None))]

    def final(self, x: Any, y: Any) -> float:
        return 3.0 if y == "over" else 0.0


@pytest.mark.parametrize("p", [0.5, 1e-9, 1e-15, 1e-17, 1e-200, 1e-300, 5e-324])
def test_flatten_takes_decisions_of_any_probability(p: float) -> None:
    model = Rare(p)
    expected = reference.optimal(model, {}).value
    best = pkd.plan(pkd.flatten(model, {}))
    assert best.value == pytest.approx(expected, rel=1e-9)
    go = best.compiled.model.start()
    state = min(x for x, _ in go)
    q = best.values(1, state, None)
    assert q[1] - q[0] == pytest.approx(0.5)  # the pay before it does not drown the decision


@both_engines
@pytest.mark.parametrize(
    "optimism",
    [
        pkd.MVP(c1=1, c2=1),
        pkd.MVP(c1=1, c2=1, log_factor=1),
        pkd.Hoeffding(7),
        pkd.PosteriorSampling(1),
    ],
    ids=lambda rule: type(rule).__name__,
)  # fmt: skip
def test_whole_numbers_as_constants_are_as_good_as_floats(optimism: Any, large: bool) -> None:
    import attrs

    numbers = {
        f.name: float(value)
        for f in attrs.fields(type(optimism))
        if isinstance(value := getattr(optimism, f.name), int) and not isinstance(value, bool)
    }
    assert numbers
    compiled = pkd.compile(Coin(), large=large)
    for replan in ("every", "doubling"):
        runs = [
            pkd.learn(compiled, COINS, 20, optimism=rule, replan=replan)  # type: ignore[arg-type]
            for rule in (optimism, attrs.evolve(optimism, **numbers))
        ]
        assert np.array_equal(runs[0].upper_values, runs[1].upper_values)
        assert np.array_equal(runs[0].returns, runs[1].returns)


@both_engines
def test_the_order_of_a_law_changes_no_episode(large: bool) -> None:
    class Tips(Coin):
        def reward(self, x: Any, y: Any, a: Any) -> Any:
            return pkd.UnknownReward(("tip", a), 0.0, 9.0)

    law: dict[Any, dict[Any, float]] = COINS | {
        ("tip", a): {1.0: 0.2, 0.0: 0.3, 9.0: 0.1, 5.0: 0.4 - 0.0 * a} for a in (0, 1)
    }
    turned = {z: dict(reversed(row.items())) for z, row in reversed(law.items())}
    compiled = pkd.compile(Tips(), large=large)
    one, other = (pkd.learn(compiled, truth, 60, seed=3) for truth in (law, turned))
    assert np.array_equal(one.returns, other.returns)
    assert one.counts == other.counts
    policy = pkd.plan(compiled, law)
    episodes = [pkd.simulate((compiled, truth), policy, 20, seed=5) for truth in (law, turned)]
    assert episodes[0] == episodes[1]


BAD: dict[str, tuple[dict[str, Any], Any]] = {
    "shares that add up to more than 1": ({"weight": 0.5}, "sum"),
    "a share above 1": ({"weight": 1.5}, "share"),
    "branching 0": ({"bound": 0}, "branching"),
    "branching above the outcomes": ({"bound": 3}, "branching"),
    "no features": ({"n_features": 0}, "n_features"),
    "a negative number of features": ({"n_features": -1}, "n_features"),
    "a range that is too small": ({"return_range": (0.0, 1.5)}, "return_range"),
    "a range that does not hold the worst": ({"return_range": (0.5, 9.0)}, "return_range"),
    "a range without end": ({"return_range": (0.0, math.inf)}, "return_range"),
    "rewards that overflow": ({"rewards": (0.0, 1e308)}, "return"),
}


@pytest.mark.parametrize("kind", [*BAD])
def test_both_engines_refuse_the_same_things_in_the_same_words(kind: str) -> None:
    changes, word = BAD[kind]
    said = []
    for call in (
        lambda: pkd.compile(Coin(**changes), large=False),
        lambda: pkd.compile(Coin(**changes), large=True),
        lambda: pkd.plan(Coin(**changes), COINS),
        lambda: pkd.check_model(Coin(**changes)),
    ):
        with pytest.raises(pkd.ModelError, match=word) as error:
            call()
        said.append(error.value.findings)
    assert said[0] == said[1] == said[2] == said[3]


def test_a_range_that_is_exact_is_taken() -> None:
    for large in (False, True):
        pkd.compile(Coin(return_range=(0.0, 2.0)), large=large)
        with pytest.raises(pkd.ModelError):
            pkd.compile(Coin(return_range=(0.0, 2.0 - 1e-6)), large=large)


def test_any_whole_number_is_a_horizon_and_any_mapping_a_start() -> None:
    from types import MappingProxyType

    model = having(horizon=np.int32(3))
    assert pkd.plan(model, LAW).value == pkd.plan(having(horizon=3), LAW).value
    states = MappingProxyType({(0, pkd.Queue((0, 1))): 0.5, (1, pkd.Queue((1, 1))): 0.5})
    mapped = Coin(start=lambda: states)
    values = [pkd.plan(pkd.compile(mapped, large=large), COINS).value for large in (False, True)]
    assert (
        values[0]
        == pytest.approx(values[1])
        == pytest.approx(reference.optimal(mapped, COINS).value)
    )


def test_a_table_is_a_problem() -> None:
    table = pkd.TabularMDP([[[0.5, 0.5]], [[0.0, 1.0]]], [[0.0], [1.0]], 3)
    assert pkd.plan(table).value == 1.25
    assert learning.learn(table, 3).optimal_value == 1.25
