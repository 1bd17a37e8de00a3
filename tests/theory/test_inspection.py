"""The proof inspector: both sides of the lemmas, and tests that fail if a constant is too small."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

import pkd
from pkd import bounds
from pkd.episode import list_visited
from pkd.theory import inspection
from pkd.theory.inspection import bennett, empirical_bernstein, inspect_proof
from pkd_delay import DelayedMDP
from tests.rules.test_optimism import TwoArms

ARM = {"arm": {0: 0.5, 1: 0.5}}


class TwoArmsOfOne(TwoArms):
    """Two arms with their range."""

    return_range = (0.0, 1.0)


def table(seed: int = 0, horizon: int = 3) -> tuple[Any, Any]:
    """A random table in the paper's setting: rewards in [0, 1], the range (0, H)."""
    rng = np.random.default_rng(seed)
    mdp = pkd.TabularMDP(rng.dirichlet(np.ones(3), (3, 2)), rng.random((3, 2)), horizon)
    model = mdp.model()
    model.return_range = (0.0, float(horizon))
    return model, mdp.law()


def late(seed: int = 0) -> tuple[Any, Any]:
    """The same behind a random delay: CHANCE states, a settlement and shares."""
    rng = np.random.default_rng(seed)
    mdp = pkd.TabularMDP(rng.dirichlet(np.ones(2), (2, 2)), rng.random((2, 2)), 3)
    delayed = DelayedMDP(mdp, {-1: 0.2, 0: 0.5, 1: 0.3}, 2)
    return delayed.known(), delayed.law()


def sampled(law: Any, n: int, seed: int) -> dict[Any, dict[Any, int]]:
    """Counts of n samples of each feature."""
    rng = np.random.default_rng(seed)
    rows = law.items() if hasattr(law, "items") else [(z, law(z)) for z in np.ndindex(2, 2)]
    return {
        z: dict(zip(row, rng.multinomial(n, list(row.values())).tolist(), strict=True))
        for z, row in rows
    }


@pytest.mark.parametrize("problem", [table, late])
@pytest.mark.parametrize("n", [0, 30, 30_000])
def test_every_lemma_holds_along_a_run(problem: Any, n: int) -> None:
    model, law = problem(n)
    counts = sampled(law, n, seed=1) if n else None
    found = inspect_proof(model, law, 6, counts=counts)
    assert found.failures == {}
    assert len(found.lemmas) == (17 if n else len(found.lemmas))
    assert all(lemma.checked > 0 for lemma in found.lemmas.values())


@pytest.mark.parametrize("problem", [table, late])
def test_the_values_of_the_definition_are_those_of_the_plans(problem: Any) -> None:
    model, law = problem(3)
    found = inspect_proof(model, law, 5, counts=sampled(law, 20_000, seed=2))
    assert found.upper_values == pytest.approx(found.planned_values, abs=1e-12)
    assert found.upper_values[0] < model.return_range[1] - 0.1  # below the cap: it says something


def test_the_variance_decomposition_is_an_equation_where_nothing_is_paid() -> None:
    """Without rewards V_h = P V_{h+1} for the only action, and both sides are Var(V_{h+1})."""

    class Drift(pkd.PartiallyKnownMDP):
        horizon = 2
        return_range = (0.0, 2.0)

        def start(self) -> Any:
            return 0, "y"

        def actions(self, x: Any, y: Any) -> Any:
            return ["on"]

        def reward(self, x: Any, y: Any, a: Any) -> float:
            return 0.0

        def final(self, x: Any, y: Any) -> float:
            return float(x)

        def step(self, x: Any, y: Any, a: Any) -> Any:
            return [(1.0, "y", ("z", x))]

        def outcomes(self, z: Any) -> Any:
            return (0, 1, 2)

    law = {("z", x): {0: 0.2, 1: 0.3 + 0.1 * x, 2: 0.5 - 0.1 * x} for x in range(3)}
    found = inspect_proof(Drift(), law, 2)
    for label in ("lma:variance decomposition", "lma:eff variance decomposition"):
        lemma = found.lemmas[label]
        assert lemma.left > 1e-3
        assert lemma.left == pytest.approx(lemma.right, rel=1e-9)


def test_the_sums_of_u_are_those_of_one_feature_by_hand() -> None:
    """With N samples before, one choice and one step, U of episode k is min(1, ell / (N + k))."""
    model = TwoArms(0.0)
    model.return_range = (0.0, 1.0)
    K, N = 4, 200
    found = inspect_proof(model, {"arm": {0: 0.5, 1: 0.5}}, K, counts={"arm": {0: 100, 1: 100}})
    wide = 2 * math.log(32 * 2 * K / 0.05)
    ell = min(math.log(32 * 2 * K / 0.05), wide)  # |Y| = 2: "choice" and "paid"
    lemma = found.lemmas["lma:sum of U"]
    sums = [sum(min(1, part / (N + k)) for k in range(K)) for part in (ell, wide)]
    right = [4 * math.log(math.e * K) * part for part in (ell, wide)]
    pairs = list(zip(sums, right, strict=True))
    assert (lemma.left, lemma.right) in [pytest.approx(pair, rel=1e-12) for pair in pairs]


def test_the_constants_of_the_theorem_are_made_of_those_of_its_lemmas() -> None:
    root, rest = inspection.SURPLUS
    assert (root, rest, inspection.SUM_OF_U) == (28, 660, 4)
    assert math.sqrt(inspection.SUM_OF_U) * root == bounds.LEADING
    assert inspection.SUM_OF_U * rest == bounds.LOWER


@pytest.mark.parametrize("n", [5_000, 20_000, 50_000])
@pytest.mark.parametrize("seen", [0.02, 0.1, 0.4])
def test_optimism_holds_at_the_edge_of_the_event(n: int, seen: float) -> None:
    """The truth is as far above the data as the concentration lemma allows."""
    _, upper, truth = edge(n, seen, pkd.MVP())
    assert seen < truth <= upper < 1


def test_a_tenth_of_the_constants_is_too_little_at_the_edge() -> None:
    theory = pkd.MVP()
    _, upper, truth = edge(5_000, 0.1, pkd.MVP(theory.c1 / 10, theory.c2 / 10))
    assert upper < truth
    small = pkd.MVP(theory.c1 / 1000, theory.c2 / 1000)
    model, _, truth = edge(5_000, 0.1, small)
    law, counts = {"arm": {0: 1 - truth, 1: truth}}, {"arm": {0: 4_500, 1: 500}}
    found = inspect_proof(model, law, 1, optimism=small, counts=counts)
    assert found.lemmas["lma:partially:optimism"].failed > 0
    assert found.lemmas["lma:partially:pre optimisim"].failed > 0


def edge(n: int, seen: float, rule: pkd.MVP) -> tuple[Any, float, float]:
    """A model, what a plan from n samples believes, and the largest truth in the event."""
    model = TwoArms(0.0)
    model.return_range = (0.0, 1.0)
    episodes = 100
    ell = math.log(32 * 2 * episodes / 0.05)  # |Y| = 2, |Z| = 1, H = 1, below 2 ell_2
    truth = seen + empirical_bernstein(seen * (1 - seen), ell, n)
    counts = {"arm": {0: round(n * (1 - seen)), 1: round(n * seen)}}
    plan = pkd.optimistic_plan(model, counts, episodes=episodes, delta=0.05, optimism=rule)
    return model, plan.value, truth


def failure(n: int, p: float, radius: Any) -> float:
    """Pr(p - mean > radius(mean)) for n tosses of a coin, exactly."""
    heads = np.arange(n + 1)
    late = np.array([p - k / n > radius(k / n) for k in heads])
    return float(binom.pmf(heads, n, p)[late].sum())


@pytest.mark.parametrize("n", [5, 40, 400])
@pytest.mark.parametrize("p", [0.02, 0.3, 0.9])
@pytest.mark.parametrize("ell", [0.7, 2.0, 5.0])
def test_the_inequalities_of_the_concentration_lemmas_hold_for_coins(
    n: int, p: float, ell: float
) -> None:
    assert failure(n, p, lambda _: bennett(p * (1 - p), ell, n)) <= math.exp(-ell)
    found = failure(n, p, lambda q: empirical_bernstein(q * (1 - q), ell, n))
    assert found <= 2 * math.exp(-ell)


def test_a_tenth_of_their_radii_is_too_little_for_a_coin() -> None:
    n, p, ell = 400, 0.3, 2.0
    assert failure(n, p, lambda _: bennett(p * (1 - p), ell, n) / 10) > math.exp(-ell)
    tenth = failure(n, p, lambda q: empirical_bernstein(q * (1 - q), ell, n) / 10)
    assert tenth > 2 * math.exp(-ell)


def test_a_model_outside_of_the_setting_is_refused() -> None:
    class Loses(TwoArms):
        def reward(self, x: Any, y: Any, a: Any) -> float:
            return -0.5

    with pytest.raises(pkd.ModelError, match=r"a='sure'\) is -0.5; expected rewards >= 0"):
        inspect_proof(Loses(), {"arm": {0: 0.5, 1: 0.5}}, 2)

    class Tips(TwoArms):
        return_range = (0.0, 2.0)

        def reward(self, x: Any, y: Any, a: Any) -> Any:
            return pkd.UnknownReward("tip", 0.0, 1.0)

    model = Tips()
    with pytest.raises(pkd.ModelError, match="some rewards are unknown"):
        inspect_proof(model, {"arm": {0: 0.5, 1: 0.5}}, 2)


def test_an_inspection_prints_one_line_for_each_lemma() -> None:
    model, law = table()
    found = inspect_proof(model, law, 2)
    assert len(str(found).splitlines()) == 1 + len(found.lemmas)


def test_what_the_proof_does_not_speak_of_is_refused() -> None:
    class Teaching(TwoArms):
        return_range = (0.0, 1.0)

        def samples(self, episode: Any) -> Any:
            return list_visited(self, episode)

    with pytest.raises(pkd.ModelError) as caught:
        inspect_proof(Teaching(), ARM, 2, optimism=pkd.MVP(monotone=True))
    assert ["samples" in caught.value.findings[0], "sum form" in caught.value.findings[1]] == [
        True
    ] * 2
    assert inspect_proof(TwoArmsOfOne(), ARM, 2).failures == {}


@pytest.mark.parametrize("n", [0, 30_000])
def test_a_range_that_is_not_declared_is_that_of_all_states(n: int) -> None:
    model, law = table(1)
    counts = sampled(law, n, seed=1) if n else None
    width = max(high for _, _, high in pkd.compile(model).return_ranges())
    model.return_range = None
    free = inspect_proof(model, law, 4, counts=counts)
    model.return_range = (0.0, width)
    low = min(low for _, low, _ in pkd.compile(model).return_ranges())
    model.return_range = (low, width)
    assert free.failures == {}
    assert str(free) == str(inspect_proof(model, law, 4, counts=counts))
    assert free.upper_values == pytest.approx(free.planned_values, abs=1e-12)


def test_a_range_below_zero_is_shifted_to_the_one_of_the_paper() -> None:
    """A final loss of 1 in every state moves all values and no gap."""

    class Taxed(TwoArmsOfOne):
        return_range = (-1.0, 0.0)

        def final(self, x: Any, y: Any) -> float:
            return super().final(x, y) - 1.0

    counts = {"arm": {0: 50_100, 1: 49_900}}
    taxed, plain = (inspect_proof(m, ARM, 3, counts=counts) for m in (Taxed(), TwoArmsOfOne()))
    for label, lemma in plain.lemmas.items():
        assert taxed.lemmas[label].failed == 0
        if "optimism" not in label and "optimisim" not in label:
            assert taxed.lemmas[label].left == pytest.approx(lemma.left, abs=1e-9), label
            assert taxed.lemmas[label].right == pytest.approx(lemma.right, abs=1e-9), label


@pytest.mark.parametrize("problem", [table, late])
def test_a_certified_run_is_inspected_for_the_data_and_its_values(problem: Any) -> None:
    model, law = problem(2)
    found = inspect_proof(model, law, 5, optimism=pkd.Certified(), counts=sampled(law, 300, 0))
    assert found.failures == {}
    assert found.lemmas["certified: V* <= upper value"].checked > 20
    assert found.lemmas["certified: lower value <= V*"].checked == 5
    assert "lma:surplus bound" not in found.lemmas  # it is about the bonus of MVP


def test_a_certificate_from_false_counts_is_found_out() -> None:
    """The counts say that the arm never pays; it pays half of the time."""
    counts = {"arm": {0: 100_000, 1: 0}}
    model = TwoArmsOfOne(0.0)
    found = inspect_proof(model, ARM, 1, optimism=pkd.Certified(), counts=counts)
    assert "certified: V* <= upper value" in found.failures
    assert "lma:probability concentration" in found.failures


def test_a_sweep_meets_every_edge_once() -> None:
    """Levels are as many as steps: a pass over all edges for each of them is quadratic."""
    model, law = table(0, horizon=900)
    proof = inspection._Proof(model, law, 1, 0.05, pkd.MVP())
    assert len(proof.parts) == 900
    edges = [i for part in proof.parts for i in range(part.edges.start, part.edges.stop)]
    assert edges == list(range(len(proof.target)))
    star = pkd.plan(model, law).value
    assert sum(p * proof.star[i] for i, p in proof.start.items()) == pytest.approx(star, rel=1e-12)


def test_a_run_has_20_episodes_and_seed_0_if_none_are_given() -> None:
    model, law = table()
    assert len(inspect_proof(TwoArmsOfOne(), ARM).upper_values) == 20
    counts = sampled(law, 3_000_000, seed=1)

    def values(**options: int) -> tuple[float, ...]:
        return inspect_proof(model, law, 4, counts=counts, **options).upper_values

    assert values() == values(seed=0) != values(seed=1)


def test_an_outcome_that_a_known_law_excludes_is_not_visited() -> None:
    class Twice(TwoArms):
        horizon = 2
        return_range = (0.0, 9.0)
        more: Any = ()

        def step(self, x: Any, y: Any, a: Any) -> list[tuple[float, Any, Any]]:
            known = pkd.Known({0: 1.0, **dict.fromkeys(self.more, 0.0)})
            return [(1.0, "paid", known if a == "sure" else "arm")]

    class Excluding(Twice):
        more = (5,)

    law = {"arm": {0: 0.5, 1: 0.5}}
    one, other = (inspect_proof(m, law, 2) for m in (Twice(), Excluding()))
    assert str(one) == str(other)


@pytest.mark.parametrize(("width", "slack"), [(1.0, 1e-9), (1.5, 1.5**2 * 1e-9)])
def test_rounding_is_allowed_in_units_of_the_largest_square(
    width: float, slack: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sides are values up to R or squares up to R^2: the larger one counts."""
    found: set[float] = set()
    monkeypatch.setattr(inspection.Lemma, "hold", lambda self, left, right, s: found.add(s))
    model = TwoArms()
    model.return_range = (0.0, width)
    inspect_proof(model, {"arm": {0: 0.5, 1: 0.5}}, 1)
    assert list(found) == [pytest.approx(slack, rel=1e-12)]
