"""One optimistic plan from given counts (`pkd.optimistic_plan`): MVP-Est, its logs, its caps."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import pkd
from tests import reference
from tests.reference import Rule
from tests.strategies import Case, cases

both_engines = pytest.mark.parametrize("large", [False, True], ids=["nodes", "stripes"])

RULES = {
    "theory": (Rule(), pkd.MVP()),
    "theory-max": (Rule("mvp-max"), pkd.MVP(monotone=True)),
    "practical": (Rule("mvp", 0.5, 0.25, 1.0), pkd.MVP.practical()),
    "practical-max": (
        Rule("mvp-max", 0.5, 0.25, 1.0),
        pkd.MVP(0.5, 0.25, log_factor=1.0, monotone=True),
    ),
    "small": (Rule("mvp", 0.1, 0.01), pkd.MVP(0.1, 0.01)),
    "hoeffding": (Rule("hoeffding", 7.0), pkd.Hoeffding()),
    "small-hoeffding": (Rule("hoeffding", 0.01), pkd.Hoeffding(0.01)),
    "greedy": (Rule("greedy"), pkd.Greedy()),
}


def assert_same_plans(case: Case, large: bool, episodes: int, delta: float) -> None:
    """Under every rule value, action values and actions are those of the definition."""
    compiled = pkd.compile(case.model, large=large)
    for name, (plain, ours) in RULES.items():
        expected = reference.optimistic(case.model, case.counts, plain, episodes, delta)
        plan = pkd.optimistic_plan(
            compiled, case.counts, episodes=episodes, delta=delta, optimism=ours
        )
        assert plan.value == pytest.approx(expected.value, rel=0, abs=1e-10 * case.scale), name
        for h, x, y in reference.decisions(case.model):
            values = {a: expected.action(h, x, y, a) for a in case.model.actions(x, y)}
            assert plan.values(h, x, y) == pytest.approx(values, rel=0, abs=1e-10 * case.scale), (
                name
            )
            assert values[plan.action(h, x, y)] == pytest.approx(
                max(values.values()), rel=0, abs=1e-10 * case.scale
            ), name


@both_engines
@given(
    case=cases(unknown_rewards=False),
    episodes=st.sampled_from([1, 1000, 10**9]),
    delta=st.sampled_from([0.01, 0.5]),
)
def test_random_counts_give_the_plans_of_the_definition(
    large: bool, case: Case, episodes: int, delta: float
) -> None:
    assert_same_plans(case, large, episodes, delta)


@both_engines
@given(case=cases(data="many", unknown_rewards=False, n_features=st.integers(2, 3), n_actions=3))
def test_plentiful_counts_give_the_plans_of_the_definition(large: bool, case: Case) -> None:
    assert_same_plans(case, large, episodes=100, delta=0.05)


@both_engines
@given(case=cases(unknown_rewards=True))
def test_rewards_seen_so_far_give_their_optimistic_means(large: bool, case: Case) -> None:
    """Counts of an unknown reward are {w: {value: n}}, beside those of the features."""
    assert_same_plans(case, large, episodes=100, delta=0.05)


class Bandit(pkd.PartiallyKnownMDP):
    """One action of reward `r` with one unknown feature.

    Outcome i then ends the episode and pays values[i].
    """

    horizon = 1

    def __init__(
        self,
        values: Sequence[float],
        r: float = 0.0,
        return_range: tuple[float, float] | None = None,
    ) -> None:
        self.payments, self.r, self.return_range = tuple(values), r, return_range

    def start(self) -> Any:
        return 0, "before"

    def actions(self, x: Any, y: Any) -> Any:
        return ["pull"]

    def step(self, x: Any, y: Any, a: Any) -> list[tuple[float, Any, Any]]:
        return [(1.0, "after", "arm")]

    def outcomes(self, z: Any) -> range:
        return range(len(self.payments))

    def reward(self, x: Any, y: Any, a: Any) -> float:
        return self.r

    def final(self, x: Any, y: Any) -> float:
        return self.payments[x] if y == "after" else 0.0


def upper_value(
    model: pkd.PartiallyKnownMDP, counts: dict[Any, dict[Any, int]], optimism: Any
) -> float:
    return float(
        pkd.optimistic_plan(model, counts, episodes=100, delta=0.1, optimism=optimism).value
    )


@given(
    values=st.lists(st.floats(0, 5), min_size=2, max_size=4),
    seen=st.lists(st.integers(0, 10**5), min_size=4, max_size=4),
    r=st.floats(0, 1),
    ell=st.floats(0.1, 50),
)
def test_a_declared_range_gives_the_printed_mvp_est(
    values: list[float], seen: list[int], r: float, ell: float
) -> None:
    """With the range (0, H) and a fixed log factor one backup is MVPEst(r, p, V, N, ell)."""
    counts = dict(enumerate(seen[: len(values)]))
    n = sum(counts.values())
    expected = reference.mvp_est(
        r, [k / max(n, 1) for k in counts.values()], values, n, ell, cap=10.0
    )
    model = Bandit(values, r, return_range=(0.0, 10.0))
    assert upper_value(model, {"arm": counts}, pkd.MVP(log_factor=ell)) == pytest.approx(
        expected, rel=0, abs=1e-9
    )


@pytest.mark.parametrize(("values", "upper"), [((5.0, 0.0), 5.931), ((5.0, 5.0), 5.889)])
def test_the_sum_form_is_not_monotone(values: tuple[float, float], upper: float) -> None:
    """The worked example of the errata: p = (.999, .001), N = 10^4, ell = 20, H = 10.

    The larger V has the smaller upper value.
    """
    model = Bandit(values, return_range=(0.0, 10.0))
    assert upper_value(model, {"arm": {0: 9990, 1: 10}}, pkd.MVP(log_factor=20.0)) == pytest.approx(
        upper, abs=5e-4
    )


def test_the_max_form_is_monotone_in_the_same_example() -> None:
    """4.995 + c2 H ell/N = 5.8839 for V = (5, 0), and 5 + c2 H ell/N = 5.8889 for V = (5, 5)."""
    uppers = [
        upper_value(
            Bandit(values, return_range=(0.0, 10.0)),
            {"arm": {0: 9990, 1: 10}},
            pkd.MVP(log_factor=20.0, monotone=True),
        )
        for values in [(5.0, 0.0), (5.0, 5.0)]
    ]
    assert uppers == pytest.approx([4.995 + 8 / 9, 5 + 8 / 9], abs=1e-12)


@pytest.mark.parametrize("seen", [{}, {"arm": {}}, {"arm": {0: 1}}])
def test_one_sample_or_none_gives_the_largest_possible_return(
    seen: dict[Any, dict[Any, int]],
) -> None:
    assert upper_value(Bandit((-3.0, -8.0), r=-1.0), seen, pkd.MVP()) == -4


@pytest.mark.parametrize("seen", [{}, {"arm": {0: 1}}])
def test_without_data_a_declared_range_gives_its_upper_end(seen: dict[Any, dict[Any, int]]) -> None:
    assert upper_value(Bandit((1.0, 2.0), return_range=(0.0, 10.0)), seen, pkd.MVP()) == 10


def test_hoeffding_trusts_a_single_sample() -> None:
    """r + V + c * width * ell / sqrt(1), below the cap 4.

    ell = ell1 with H = |Z| = 1, |Y| = 2, K = 100, delta = .1.
    """
    ell = math.log(32 * 2 * 100 / 0.1)
    upper = upper_value(Bandit((2.0, 5.0), r=-1.0), {"arm": {0: 1}}, pkd.Hoeffding(0.01))
    assert upper == pytest.approx(-1 + 2 + 0.01 * 3 * ell, abs=1e-12)


def test_greedy_without_data_takes_all_outcomes_as_equally_likely() -> None:
    assert upper_value(Bandit((1.0, 2.0, 6.0)), {}, pkd.Greedy()) == pytest.approx(3.0, abs=1e-12)


def test_greedy_with_data_takes_the_frequencies() -> None:
    assert upper_value(
        Bandit((1.0, 2.0, 6.0)), {"arm": {0: 3, 2: 1}}, pkd.Greedy()
    ) == pytest.approx((3 * 1 + 6) / 4, abs=1e-12)


def test_equal_values_have_no_variance() -> None:
    """V = .1 at both outcomes that were seen; the third one was not.

    A variance of 1e-14 from rounding would show as 1e-8.
    """
    counts = {"arm": {1: 1, 2: 2}}
    assert upper_value(
        Bandit((10.0, 0.1, 0.1)), counts, pkd.MVP(c1=0.5, c2=0.0, log_factor=1.0)
    ) == pytest.approx(0.1, abs=1e-12)


class Paid(Bandit):
    """A Bandit whose reward is unknown, and whose outcome no longer matters."""

    def reward(self, x: Any, y: Any, a: Any) -> Any:
        return pkd.UnknownReward("pay", -10.0, 10.0)


def test_a_reward_that_never_varies_has_no_variance() -> None:
    optimism = pkd.MVP(c1=0.5, c2=0.0, log_factor=1.0)
    assert upper_value(Paid((0.0,)), {"pay": {7.7: 5}}, optimism) == pytest.approx(7.7, abs=1e-12)


def test_an_unknown_reward_without_data_is_the_largest_one() -> None:
    assert upper_value(Paid((0.0,)), {"pay": {-3.0: 1}}, pkd.MVP()) == 10


class Detour(Bandit):
    """A Bandit behind a sure move that costs 10: the return to go grows on the way."""

    horizon = 2

    def start(self) -> Any:
        return 0, "far"

    def step(self, x: Any, y: Any, a: Any) -> list[tuple[float, Any, Any]]:
        return [(1.0, "before", pkd.sure(0))] if y == "far" else super().step(x, y, a)

    def reward(self, x: Any, y: Any, a: Any) -> float:
        return -10.0 if y == "far" else 0.0


def test_the_cap_follows_the_state_and_not_the_start() -> None:
    """From the start at most -10 + 4 is possible, but 4 from the state after it.

    Capping with -6 would lose optimism.
    """
    plan = pkd.optimistic_plan(Detour((1.0, 4.0)), {}, episodes=100)
    assert plan.value == -6
    assert plan.values(2, 0, "before") == {"pull": 4}


class Ring(pkd.PartiallyKnownMDP):
    """H = 5, 20 values of y, 6 features with 3 outcomes.

    x is paid at the end, so one backup shows the log factor.
    """

    horizon = 5

    def __init__(self, weight: float | None = None) -> None:
        self.weight = weight

    def start(self) -> Any:
        return {(0, y): 1 / 20 for y in range(20)}

    def actions(self, x: Any, y: Any) -> Any:
        return ["go"]

    def step(self, x: Any, y: Any, a: Any) -> list[tuple[float, Any, Any]]:
        return [(1.0, (y + 1) % 20, y % 6)]

    def outcomes(self, z: Any) -> range:
        return range(3)

    def reward(self, x: Any, y: Any, a: Any) -> float:
        return 0.0

    def final(self, x: Any, y: Any) -> float:
        return float(x)

    def share(self, z: Any, y: Any) -> float | None:
        return self.weight


@pytest.mark.parametrize(
    ("weight", "ell"),
    [(None, 18.3798587494), (1 / 20, 18.3798587494), (1e-20, 44.6199025563)],
    ids=["ell1 from |Y|", "ell1 from shares", "B ell2"],
)
@both_engines
def test_the_log_factor_has_its_worked_value(large: bool, weight: float | None, ell: float) -> None:
    """H = 5, |Y| = 20, |Z| = 6, K = 100, delta = .1, B = 3.

    One outcome only was seen, so the bonus is c2 * 2 * ell/N.
    """
    counts = {z: {1: 1000} for z in range(6)}
    model = pkd.compile(Ring(weight), large=large)
    plan = pkd.optimistic_plan(model, counts, episodes=100, delta=0.1, optimism=pkd.MVP(c2=0.5))
    bonus = plan.values(5, 0, 7)["go"] - 1.0
    assert bonus * 1000 / (0.5 * 2) == pytest.approx(ell, abs=1e-9)


@pytest.mark.parametrize(
    "data", [{"arm": {9: 1}}, {"arm": {0: -1}}, {"leg": {0: 1}}], ids=["outcome", "sign", "feature"]
)
def test_counts_that_cannot_be_are_refused(data: dict[Any, dict[Any, float]]) -> None:
    with pytest.raises(pkd.ModelError):
        pkd.optimistic_plan(Bandit((0.0, 1.0)), data, episodes=10)


def test_a_declared_range_must_hold_on_the_way_too() -> None:
    """(-10, -6) holds every return from the start of a Detour, not those after its first move."""
    with pytest.raises(pkd.ModelError, match="return_range"):
        pkd.optimistic_plan(Detour((0.0, 4.0), return_range=(-10.0, -6.0)), {}, episodes=10)
