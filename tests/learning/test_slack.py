"""The schedule with slack: what it promises of old counts, and that few features make no plan."""

from __future__ import annotations

import math

import numpy as np
import pytest

import pkd
from pkd.engine import doors
from pkd.rules.schedule import Replan, read_schedule

SLACK = 0.1


def table(states: int) -> pkd.TabularMDP:
    rng = np.random.default_rng(1)
    p = rng.random((states, 3, states)) * (rng.random((states, 3, states)) < 4 / states)
    p[..., 0] += 0.05
    return pkd.TabularMDP(p / p.sum(axis=-1, keepdims=True), rng.random((states, 3)), horizon=10)


def costs(samples: list[tuple[float, float]]) -> tuple[float, float]:
    """sum 1 / sqrt(N') and sum 1 / N' of samples (N' of the plan in force, N with this one)."""
    old = [max(1.0, planned) for planned, _ in samples]
    return sum(1 / math.sqrt(n) for n in old), sum(1 / n for n in old)


@pytest.mark.parametrize("skewed", [False, True])
def test_old_counts_cost_at_most_the_promised_factor(skewed: bool) -> None:
    """The bound of docs/explanations/replanning.md, sample by sample."""
    rng = np.random.default_rng(2)
    compiled = pkd.compile(table(20))
    tally = compiled.tally()
    tally.spent[0] = SLACK
    tally.set_marks(2.0)
    known, samples, present = np.zeros(60), list[tuple[float, float]](), [0.0, 0.0]
    weights = 1.0 / np.arange(1, 61) ** 2 if skewed else np.ones(60)
    plans = 0
    for _ in range(6000):
        z = int(rng.choice(60, p=weights / weights.sum()))
        due = doors.count(tally, z, int(compiled.row_ptr[z]))
        n = float(tally.n[z])
        samples.append((float(known[z]), n))
        present[0] += 1 / math.sqrt(n)
        present[1] += 1 / n
        assert known[z] > n / 16 - 1 or n <= 8
        if due:
            known, plans = tally.n.copy(), plans + 1
            tally.set_marks(2.0)
    found = costs(samples)
    assert found[0] <= (math.sqrt(2) + SLACK) * present[0] + 1
    assert found[1] <= (2 + SLACK) * present[1] + 1
    assert plans < 60 * math.log2(6000 / 60) / 2  # far fewer than for each doubled count


def test_without_slack_each_doubled_count_makes_a_plan_due() -> None:
    compiled = pkd.compile(table(5))
    tally = compiled.tally()
    tally.set_marks(2.0)
    assert doors.count(tally, 3, int(compiled.row_ptr[3]))


def test_many_features_are_learned_with_few_plans() -> None:
    mdp = table(80)
    runs = {word: pkd.learn(mdp, 300, optimism="practical", replan=word)
            for word in ("doubling", "slack", "auto")}  # fmt: skip
    assert len(runs["slack"].plans) < len(runs["doubling"].plans) / 4
    assert runs["auto"].config["replan"] == "slack"
    assert pkd.learn(table(5), 5).config["replan"] == "doubling"


def test_slack_needs_marks_at_twice_the_count() -> None:
    with pytest.raises(pkd.ModelError, match="expected features=2 with it"):
        Replan(features=3.0, slack=0.1)
    assert read_schedule("features=2,slack=0.3") == Replan(slack=0.3)
    assert read_schedule(Replan(slack=0.3).text) == Replan(slack=0.3)
