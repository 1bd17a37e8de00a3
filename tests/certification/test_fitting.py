"""A law from a log: frequencies, smoothing, what was never seen, what cannot be."""

from __future__ import annotations

from pathlib import Path

import pytest

import pkd
from pkd import fit_law, read_log
from pkd.episode import list_samples
from pkd_examples.inventory import inventory
from pkd_examples.maintenance import maintenance

MODEL = inventory(demand=(1, 2), max_demand=3).model()
LOG = [(0, 1), (0, 1), (0, 3), (1, 0)]


def test_the_law_is_the_frequency_of_what_followed() -> None:
    assert fit_law(MODEL, LOG)(0) == {
        0: 0.0,
        1: pytest.approx(2 / 3),
        2: 0.0,
        3: pytest.approx(1 / 3),
    }


def test_smoothing_adds_to_every_outcome() -> None:
    assert fit_law(MODEL, LOG, smoothing=0.5)(1) == {0: 1.5 / 3, 1: 0.5 / 3, 2: 0.5 / 3, 3: 0.5 / 3}


def test_a_feature_that_the_log_does_not_mention_is_uniform() -> None:
    assert fit_law(MODEL, [(0, 1)])(1) == dict.fromkeys(range(4), 0.25)


def test_negative_smoothing_is_refused() -> None:
    with pytest.raises(pkd.ModelError, match=r"smoothing is -1; expected a number >= 0"):
        fit_law(MODEL, LOG, smoothing=-1)


def test_every_impossible_pair_of_a_log_is_named() -> None:
    with pytest.raises(pkd.ModelError) as caught:
        fit_law(MODEL, [(0, 9), (0, 1), (1, -1)])
    assert caught.value.findings == (
        "the log, pair 1: 9 cannot follow demand on day 1; the nearest is 3",
        "the log, pair 3: -1 cannot follow demand on day 2; the nearest is 0",
    )


def test_a_problem_plans_with_the_law_of_a_csv_file(tmp_path: Path) -> None:
    # Every day brings one customer. The first one comes before the first order and is lost for 4;
    # after that one is ordered for each.
    path = tmp_path / "demand.csv"
    path.write_text("z,x\n0,1\n1,1\n")
    problem = inventory(demand=(1, 2), max_demand=3, stock=0, horizon=6, log=str(path))
    assert pkd.plan(problem.model(), problem.law()).value == pytest.approx(-4.0)


def test_a_problem_says_what_its_law_was_fitted_to() -> None:
    problem = inventory(demand=(1, 2), max_demand=3).fit([(0, 1), (0, 2)])
    assert problem.remarks == (
        "the log: 2 samples of 1 feature (demand on day 1: 2)",
        "no samples of demand on day 2: there the law is uniform",
    )


def test_the_examples_offer_the_reader_of_the_core() -> None:
    import pkd_examples

    assert (pkd_examples.fit_law, pkd_examples.read_log) == (fit_law, read_log)


def test_an_unknown_reward_takes_its_values_from_the_log() -> None:
    law = fit_law(maintenance().model(), [(("earns", 0), 0.25), (("earns", 0), 0.75)])
    assert law(("earns", 0)) == {0.25: 0.5, 0.75: 0.5}
    with pytest.raises(pkd.ModelError, match=r"the log never mentions the reward \('earns', 1\)"):
        law(("earns", 1))


def test_the_samples_of_simulated_episodes_are_such_a_log() -> None:
    problem = inventory(demand=(1, 2), max_demand=3, horizon=10)
    model = problem.model()
    episodes = pkd.simulate((model, problem.law()), lambda h, x, y: 1, 2000, seed=0)
    fitted = problem.fit([pair for episode in episodes for pair in list_samples(model, episode)])
    # 10,000 demands of each day: the frequency is within 4 standard errors of Pr(0) = exp(-mean).
    for day, p in ((0, 0.36787944), (1, 0.13533528)):
        assert fitted.law()(day)[0] == pytest.approx(p, abs=4 * (p * (1 - p) / 10_000) ** 0.5)
