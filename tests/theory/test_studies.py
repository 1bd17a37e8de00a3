"""The studies of benchmarks/studies in a tiny size: columns, and properties given by theory."""

from __future__ import annotations

import csv
from functools import cache
from math import isnan, log, sqrt

import numpy as np
import pytest

import pkd
import pkd_delay
from benchmarks.studies import crude_max_delay, optimism_failures, regret_in_episodes
from benchmarks.studies.measure import Estimate, against, mean, ratio, rising, slope
from benchmarks.studies.report import publish

TINY = {
    regret_in_episodes: regret_in_episodes.Setting(episodes=(100, 1_000), seeds=2, tail=2),
    optimism_failures: optimism_failures.Setting(
        scales=(1.0, 0.01), deltas=(0.5, 0.05), episodes=40, seeds=3
    ),
    crude_max_delay: crude_max_delay.Setting(told=(2, 3), episodes=2_000, seeds=2),
}


@cache
def report_of(module):
    return module.study(TINY[module])


@pytest.mark.parametrize("module", TINY, ids=lambda module: module.__name__.rpartition(".")[2])
def test_a_study_fills_its_table_and_says_its_seeds_and_draws_something(module):
    report = report_of(module)
    assert list(report.headers) == module.HEADERS
    assert report.rows
    assert all(len(row) == len(module.HEADERS) for row in report.rows)
    assert min(report.column("regret")) >= 0
    assert str(report.constants["seeds"])
    assert all(ax.lines for ax in report.figure.axes)
    assert report.conclusions


def test_a_published_study_is_a_figure_a_table_and_a_page(tmp_path, capsys):
    report = report_of(crude_max_delay)
    publish(report, tmp_path)
    with (tmp_path / "crude_max_delay.csv").open(newline="") as file:
        headers, *rows = csv.reader(file)
    assert headers == crude_max_delay.HEADERS
    assert [float(row[headers.index("regret")]) for row in rows] == report.column("regret")
    assert (tmp_path / "crude_max_delay.png").read_bytes().startswith(b"\x89PNG")
    page = (tmp_path / "crude_max_delay.md").read_text()
    assert report.caption in page
    assert all(line in page for line in report.conclusions)
    assert capsys.readouterr().out.strip() == page.strip()


def test_the_slope_of_a_power_is_its_exponent():
    found = slope([1, 4, 16], [np.array([k**0.7, 3 * k**0.7]) for k in (1, 4, 16)])
    assert found.value == pytest.approx(0.7)
    assert found.error == pytest.approx(
        0.0, abs=1e-12
    )  # the seeds differ by a factor, which a slope does not see


def test_the_error_of_a_slope_between_two_points_follows_from_the_errors_of_the_means():
    rng = np.random.default_rng(0)
    samples = [rng.normal(100, 1, 400), rng.normal(200, 1, 400)]
    first, second = map(mean, samples)
    expected = sqrt((first.error / first.value) ** 2 + (second.error / second.value) ** 2) / log(2)
    assert slope([1, 2], samples).error == pytest.approx(expected, rel=0.1)


def test_a_mean_of_zero_has_no_slope():
    assert isnan(slope([1, 2], [np.zeros(3), np.ones(3)]).value)


def test_the_slope_from_point_to_point_starts_at_the_second():
    first, second, third = rising([1, 2, 4], [np.array([1.0]), np.array([2.0]), np.array([8.0])])
    assert isnan(first)
    assert (second, third) == pytest.approx((1.0, 2.0))


def test_the_ratio_of_proportional_samples_has_no_error():
    sample = np.array([1.0, 5.0, 9.0])
    assert ratio(3 * sample, sample) == pytest.approx((3.0, 0.0))


@pytest.mark.parametrize(
    ("value", "words"), [(0.6, "is above x"), (0.55, "cannot be told from x"), (0.4, "is below x")]
)
def test_two_standard_errors_decide_what_is_said(value, words):
    assert against(Estimate(value, 0.04), 0.5, "x") == words


def test_measured_regret_stays_below_the_explicit_bound():
    assert max(report_of(regret_in_episodes).column("share of the bound")) < 1


def test_an_agent_of_the_shrinking_gap_loses_at_most_twice_what_chance_loses():
    # The worst policy takes the better pair with the wrong digit: (1 - theta)/2 of the pay, as far
    # below chance as the optimum is above.
    rows = report_of(regret_in_episodes).where(problem="gap 1/sqrt(K)")
    assert max(row["share of choosing at random"] for row in rows) <= 2


def test_the_constants_of_the_theory_do_not_fail():
    rows = report_of(optimism_failures).where(**{"c1 / (20/3)": 1.0})
    assert len(rows) == 6
    assert all(row["runs that fail"] == 0 for row in rows)


def test_without_a_bonus_optimism_fails():
    rows = report_of(optimism_failures).where(constants="no bonus")
    assert max(row["runs that fail"] for row in rows) > 0


def test_no_failure_in_n_runs_leaves_the_rule_of_three():
    assert optimism_failures.at_most(0, 20) == pytest.approx(1 - 0.05 ** (1 / 20))
    assert optimism_failures.at_most(20, 20) == 1.0


def test_with_a_known_law_a_crude_bound_changes_nothing():
    first, second = report_of(crude_max_delay).where(learner="law known")
    assert first["regret"] == second["regret"]
    assert first["D told"] < second["D told"]


def test_the_optimum_does_not_know_what_the_learner_is_told():
    mdp = crude_max_delay.base()
    values = [
        pkd.plan(*crude_max_delay.made(learner, mdp, told)).value
        for learner in crude_max_delay.LEARNERS
        for told in (2, 4)
    ]
    assert values == pytest.approx([values[0]] * 6, abs=1e-12)


def test_a_delay_of_the_crude_study_never_exceeds_two():
    model, _ = crude_max_delay.made("law known", crude_max_delay.base(), told=5)
    steps = range(1, model.horizon + 1)
    assert {len(y.queue) for h in steps for _, y in model.decision_states(h)} == {0, 1, 2}


def test_even_shares_add_up_to_at_most_one():
    base = crude_max_delay.base().model()
    model = crude_max_delay.EvenShares(base, crude_max_delay.inter_arrival, 3)
    assert sum(2**n * model.queue_share(n) for n in range(5)) == pytest.approx(8 / 9)
    assert isinstance(model, pkd_delay.KnownDelay)
