"""Declared families of laws: sets of parameters, values over them, and what is done with them."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import optimize
from scipy import stats as scipy_stats

import pkd
import pkd_delay
from pkd.engine.families import log_mixture
from pkd.learning import learn as learning
from pkd_examples.inventory import Inventory

stats: Any = scipy_stats  # its types say too little
both_engines = pytest.mark.parametrize("large", [False, True], ids=["nodes", "stripes"])
THREE = [{0: 0.7, 1: 0.2, 2: 0.1}, {0: 0.1, 1: 0.1, 2: 0.8}, {0: 0.2, 1: 0.8}]
FAMILIES: dict[str, pkd.Family] = {
    "poisson": pkd.Poisson(max=6),
    "binomial": pkd.Binomial(5),
    "geometric": pkd.Geometric(max=4),
    "one of": pkd.OneOf(THREE),
    "mixture of two": pkd.Mixture(THREE[:2]),
    "mixture of three": pkd.Mixture(THREE),
}
each_family = pytest.mark.parametrize("name", FAMILIES)


def draw_member(family: pkd.Family, rng: np.random.Generator, size: int) -> Any:
    """(size, outcomes) laws of the family, from the definition and not from `log_law`."""
    if isinstance(family, pkd.Mixture):
        return rng.dirichlet(np.full(len(family.laws), 0.7), size) @ family.laws
    if isinstance(family, pkd.OneOf):
        return family.laws[rng.integers(len(family.laws), size=size)]
    t, k = rng.uniform(family.low, family.high, size)[:, None], np.arange(len(family))
    if isinstance(family, pkd.Binomial):
        return stats.binom.pmf(k, len(family) - 1, t)
    if isinstance(family, pkd.Poisson):
        pmf, tail = stats.poisson.pmf(k, t), stats.poisson.sf(len(family) - 2, t)
    else:
        pmf, tail = stats.geom.pmf(k + 1, t), stats.geom.sf(len(family) - 1, t)
    return np.hstack([pmf[:, :-1], tail])


def log_likelihood(laws: np.ndarray, n: np.ndarray) -> Any:
    with np.errstate(divide="ignore"):
        return np.log(laws[:, n > 0]) @ n[n > 0]


@each_family
def test_laws_that_are_not_refuted_lie_in_the_cells(name: str) -> None:
    """The bound is outward: no law that is left has a q.v above the value over the cells."""
    family, rng = FAMILIES[name], np.random.default_rng(1)
    for samples in (0, 3, 40, 2000, 100_000):
        truth = draw_member(family, rng, 1)[0]
        n = rng.multinomial(samples, truth / truth.sum()).astype(float)
        budget = 3.0
        cells = family.unrefuted(n, budget, log_mixture(n))
        laws = np.vstack([draw_member(family, rng, 20_000), truth])
        # Any mixture that is at most the best of the family gives a set inside of this one.
        likely = log_likelihood(laws, n)
        best = max(float(likely.max()), float(log_likelihood(family.fit(n)[None], n)[0]))
        assert family.most_likely(n) >= best - 1e-9
        left = laws[likely >= best - budget]
        v = rng.random((30, len(family)))
        assert (v @ left.T <= cells.largest(v)[:, None] + 1e-9).all()


@each_family
def test_cells_are_about_as_wide_as_the_set(name: str) -> None:
    """The excess over laws that are known to be left is small: a loose cover would be no use."""
    family, rng = FAMILIES[name], np.random.default_rng(2)
    truth = draw_member(family, rng, 1)[0]
    n = 400 * truth
    cells = family.unrefuted(n, 3.0)
    laws = np.vstack([draw_member(family, rng, 200_000), truth])
    left = laws[log_likelihood(laws, n) >= log_likelihood(truth[None], n)[0] - 3.0 - math.log(60)]
    v = rng.random((30, len(family)))
    wide = cells.largest(v) + cells.largest(-v)
    inner = (v @ left.T).max(axis=1) - (v @ left.T).min(axis=1)
    assert wide.sum() <= 1.5 * inner.sum() + 1e-9


@pytest.mark.parametrize("name", ["poisson", "binomial", "geometric"])
def test_the_mixture_of_a_family_is_at_most_one_bet(name: str) -> None:
    """The weights of all laws in m(n) sum to at most 1: with no data m(n) <= 1, and close to it."""
    family = FAMILIES[name]
    none = np.zeros(len(family))
    for peak in np.linspace(family.low, family.high, 7):
        assert -0.7 < family._mix(none, float(peak)) <= 1e-12


@each_family
def test_bets_against_a_true_law_rarely_win(name: str) -> None:
    """Ville: with a budget of log 5 the truth is refuted at some time in at most a fifth of runs.

    The wealth is checked after each of 60 samples.
    """
    family, rng, refuted = FAMILIES[name], np.random.default_rng(3), 0
    for _ in range(60):
        truth = draw_member(family, rng, 1)[0]
        truth = truth / truth.sum()
        n, v = np.zeros(len(family)), np.vstack([np.eye(len(family)), -np.eye(len(family))])
        for step in range(60):
            n[rng.choice(len(family), p=truth)] += 1
            if step % 6 == 5:
                cells = family.unrefuted(n, math.log(5), log_mixture(n))
                if not len(cells.lower) or (v @ truth > cells.largest(v) + 1e-9).any():
                    refuted += 1
                    break
    assert refuted <= 18  # 12 expected at most; P(more than 18) = 2%; found: 0 to 2


@each_family
def test_values_over_cells_are_those_of_a_linear_program(name: str) -> None:
    linprog: Any = optimize.linprog
    family, rng = FAMILIES[name], np.random.default_rng(4)
    cells = family.unrefuted(30 * draw_member(family, rng, 1)[0], 2.0)
    v = rng.random((4, len(family)))
    found = cells.largest(v)
    seen = v if cells.laws is None else v @ cells.laws.T
    for row, value in zip(seen, found, strict=True):
        best = max(
            -1.0 * linprog(-row, A_eq=np.ones((1, len(row))), b_eq=[1.0],
                     bounds=list(zip(low, high, strict=True))).fun
            for low, high in zip(cells.lower, cells.upper, strict=True)
        )  # fmt: skip
        assert value == pytest.approx(best, abs=1e-8)


def test_a_law_outside_of_the_family_is_refuted_in_the_end() -> None:
    n = np.array([500.0, 0.0, 0.0, 0.0, 500.0])
    assert pkd.Binomial(4).unrefuted(n, 3.0, log_mixture(n)).text == "none"
    assert pkd.Mixture([{0: 1.0}, {1: 1.0}]).unrefuted([5.0, 5.0], 3.0).text != "none"


def test_a_family_that_bends_the_wrong_way_is_found() -> None:
    class Bent(pkd.Family):
        outcomes, low, high = (0, 1), 0.1, 0.9

        def log_law(self, t: np.ndarray) -> np.ndarray:
            heads = np.exp(t**2 - 1)
            return np.asarray(np.log(np.stack([heads, 1 - heads], axis=1)))

    class Shop(Guess):
        def outcomes(self, z: Any) -> Any:
            return Bent()

    assert any("not concave" in fault for fault in Bent().find_faults())
    with pytest.raises(pkd.ModelError, match="not concave"):
        pkd.check_model(Shop())
    for family in FAMILIES.values():
        assert not [*family.find_faults()]


# -- models ----------------------------------------------------------------------------------------


class Demand(Inventory):
    """The shipped inventory with a family."""

    def outcomes(self, z: Any) -> Any:
        return pkd.Poisson(max=self.max_demand)


class Guess(pkd.PartiallyKnownMDP):
    """Guess the number of heads of four coins: what is drawn depends on the guess, so explore."""

    horizon = 2

    def start(self) -> Any:
        return None, "guess"

    def actions(self, x: Any, y: Any) -> Any:
        return [1, 3] if y == "guess" else pkd.CHANCE

    def step(self, x: Any, y: Any, a: Any) -> Any:
        return [(1.0, a, ("heads", a)) if y == "guess" else (1.0, "guess", pkd.sure(None))]

    def outcomes(self, z: Any) -> Any:
        return pkd.Binomial(4)

    def reward(self, x: Any, y: Any, a: Any) -> float:
        return float(x == y)


def guess_law(z: Any) -> dict[int, float]:
    chance = {1: 0.3, 3: 0.8}[z[1]]
    return {k: math.comb(4, k) * chance**k * (1 - chance) ** (4 - k) for k in range(5)}


SMALL = Demand(horizon=4, days=2, capacity=5, max_order=2, max_demand=5, stock=2)
TABLE = Inventory(horizon=4, days=2, capacity=5, max_order=2, max_demand=5, stock=2)
SMALL_LAW = {day: dict(enumerate(draw.tolist())) for day, draw in enumerate(
    np.vstack([np.hstack([stats.poisson.pmf(np.arange(5), t), stats.poisson.sf(4, t)])
               for t in (1.0, 2.5)])
)}  # fmt: skip


def by_definition(counts: dict[int, np.ndarray], sign: float, laws: dict[int, np.ndarray]) -> float:
    """The extreme value of V* over given laws of each day, by recursion over the states."""

    def after(h: int, day: int, stock: int, coming: tuple[int, ...]) -> float:
        if h == SMALL.horizon:
            return SMALL.salvage * max(stock, 0)
        best = -math.inf
        for a in range(SMALL.max_order + 1):
            queue = (*coming, a)
            have = min(stock + queue[0], SMALL.capacity)
            values = np.array([
                -SMALL.holding * max(have - d, 0) - SMALL.shortage * max(d - have, 0)
                + after(h + 1, (day + 1) % 2, max(have - d, 0), queue[1:])
                for d in range(6)
            ])  # fmt: skip
            extreme = sign * float((sign * laws[day] @ values).max())
            best = max(best, -SMALL.unit * a - SMALL.fixed * (a > 0) + extreme)
        return best

    return after(0, 0, SMALL.stock, (0,) * SMALL.lead_time)


@both_engines
def test_a_certificate_bounds_values_over_all_parameters_that_are_left(large: bool) -> None:
    compiled = pkd.compile(SMALL, large=large)
    t = {0: np.linspace(0, 5, 400), 1: np.linspace(0, 5, 400)}
    counts = {0: {0: 10, 1: 12, 2: 5}, 1: {1: 4, 2: 8, 3: 7, 4: 3}}
    found = pkd.certify(compiled, counts)
    weight = found._question.sets.budget
    laws = {}
    for day, row in counts.items():
        n = np.array([row.get(x, 0) for x in range(6)], float)
        drawn = np.hstack([
            stats.poisson.pmf(np.arange(5), t[day][:, None]),
            stats.poisson.sf(4, t[day])[:, None],
        ])  # fmt: skip
        likely = log_likelihood(drawn, n)
        laws[day] = drawn[likely >= likely.max() - weight]  # all of them are left, and more
    high, low = (by_definition({}, sign, laws) for sign in (1.0, -1.0))
    assert found.optimal_low <= low + 1e-9
    assert high - 1e-9 <= found.optimal_high
    assert found.gap <= 1.8 * (high - low)
    plain = pkd.certify(pkd.compile(TABLE, large=large), counts)
    assert found.gap < 0.7 * plain.gap
    assert "mean in [" in found.table()


def test_both_engines_and_plans_from_files_agree(tmp_path: Path) -> None:
    counts = {0: {0: 10, 1: 12, 2: 5}, 1: {1: 4, 2: 8}}
    values = []
    for large in (False, True):
        compiled = pkd.compile(SMALL, large=large)
        found = pkd.certify(compiled, counts)
        values.append((found.low, found.high))
        found.plan.save(tmp_path / "plan.npz")
        again = pkd.Plan.load(tmp_path / "plan.npz", compiled)
        x, y = next(again.states(1))
        assert again.values(1, x, y) == found.plan.values(1, x, y)
    assert values[0] == pytest.approx(values[1], abs=1e-9)


def test_the_fitted_law_is_acted_by_where_nothing_is_explored() -> None:
    """All demands are exogenous: plans are those for the family's most likely law."""
    counts = {0: {0: 10, 1: 12, 2: 5}, 1: {1: 4, 2: 8}}
    plan = pkd.OptimisticLearner(SMALL, counts=counts).plan
    fitted = pkd.fit_law(SMALL, counts)
    assert fitted(0)[0] == pytest.approx(math.exp(-22 / 27))  # the mean of the samples
    assert plan.value == pytest.approx(pkd.plan(SMALL, fitted).value, abs=1e-12)


def test_a_run_with_a_family_learns_faster_and_its_interval_holds() -> None:
    own = pkd.learn(SMALL, SMALL_LAW, 300, seed=1)
    plain = pkd.learn(TABLE, SMALL_LAW, 300, seed=1)
    assert own.interval is not None
    assert plain.interval is not None
    assert own.violations == own.lower_violations == 0
    assert own.interval.high - own.interval.low < 0.7 * (plain.interval.high - plain.interval.low)
    assert own.unexplored == plain.unexplored != ()
    assert (own.guaranteed, plain.guaranteed) == ("interval", "regret and interval")
    with pytest.raises(pkd.ModelError, match="declares families"):
        pkd.theory.certified.certified_bound(SMALL, 100)


@both_engines
def test_features_that_are_sought_are_explored_within_their_family(large: bool) -> None:
    compiled = pkd.compile(Guess(), large=large)
    run = pkd.learn(compiled, guess_law, 400, seed=2)
    assert run.unexplored == ()
    assert (run.upper_values >= run.optimal_value - 1e-9).all()
    assert run.lower_violations == 0
    assert run.regret[-1] == pytest.approx(run.regret[299], abs=1e-9)


def test_a_stopped_run_goes_on_with_the_same_bits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = pkd.learn(Guess(), guess_law, 60, seed=4)
    monkeypatch.setattr(learning, "CHECKPOINT_SECONDS", 0.0)
    path = tmp_path / "run.npz"
    pkd.learn(Guess(), guess_law, 25, seed=4, checkpoint=path)
    again = pkd.learn(Guess(), guess_law, 60, seed=4, checkpoint=path)
    assert not again.differences(whole)
    whole.save(tmp_path / "whole.npz")
    kept = pkd.Run.load(tmp_path / "whole.npz", Guess())
    assert kept.policy is not None
    assert whole.policy is not None
    x, y = next(kept.policy.states(1))
    assert kept.policy.values(1, x, y) == whole.policy.values(1, x, y)


def test_a_truth_outside_of_the_family_is_refused() -> None:
    with pytest.raises(pkd.ModelError, match=r"is none of Binomial\(4"):
        pkd.learn(Guess(), lambda z: dict.fromkeys(range(5), 0.2), 5)
    assert pkd.evaluate(Guess(), guess_law, lambda h, x, y: 1) > 0


def test_data_that_refute_the_family_are_an_error() -> None:
    even = {("heads", 1): dict.fromkeys(range(5), 1000)}
    for ask in (pkd.certify, lambda m, n: pkd.OptimisticLearner(m, counts=n).plan):
        with pytest.raises(pkd.ModelError, match="has a law of Binomial"):
            ask(Guess(), even)


def test_check_samples_tests_the_family() -> None:
    rng = np.random.default_rng(0)
    z = ("heads", 1)
    fitting = [(z, int(x), (0, 0, 1)) for x in rng.binomial(4, 0.3, 2000)]
    assert pkd.check_samples(Guess(), fitting).ok
    strange = [(z, int(x), (0, 0, 1)) for x in rng.choice([0, 4], 200)]
    report = pkd.check_samples(Guess(), strange)
    assert not report.ok
    assert "no law of Binomial(4" in report.findings[0]
    assert report.p_values[z] < 1e-10


def test_families_pass_through_delays_and_missing_observations() -> None:
    late = pkd_delay.UnknownDelay(Guess(), 1, 1, instead=lambda x, y, a: a)
    compiled = pkd.compile(late)
    assert {repr(family) for family in compiled.families.values()} == {"Binomial(4, low=0, high=1)"}
    assert pkd.compile(pkd.Missing(Guess(), 0.5, True, longest=1)).families
    assert pkd.compile(Guess()).fingerprint != pkd.compile(plain_guess()).fingerprint


def plain_guess() -> pkd.PartiallyKnownMDP:
    class Plain(Guess):
        def outcomes(self, z: Any) -> Any:
            return range(5)

    return Plain()


def test_how_much_more_data_is_asked_of_the_family() -> None:
    counts = {("heads", a): {0: 10, 1: 20, 2: 15, 3: 5} for a in (1, 3)}
    found = pkd.certify(Guess(), counts)
    more = found.more_samples()
    grown = {z: {x: n * (1 + more.get(z, 0) / 50) for x, n in row.items()}
             for z, row in counts.items()}  # fmt: skip
    assert pkd.certify(Guess(), grown).gap == pytest.approx(found.gap / 2, rel=0.15)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: pkd.Poisson(max=0), "max is 0"),
        (lambda: pkd.Binomial(3, low=0.5, high=0.2), "low is 0.5"),
        (lambda: pkd.Binomial(3, high=2), "high is 2"),
        (lambda: pkd.OneOf([]), "at least 1"),
        (lambda: pkd.Mixture([{0: 1.0}]), "at least 2"),
        (lambda: pkd.OneOf([{0: 0.5}]), "sum to 1"),
    ],
)
def test_a_family_that_is_none_says_what_is_wrong(make: Any, said: str) -> None:
    with pytest.raises(pkd.ModelError, match=said):
        make()
