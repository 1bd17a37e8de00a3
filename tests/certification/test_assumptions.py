"""A certificate looks at its log: what speaks against one law for each feature is found."""

from __future__ import annotations

import random

import pandas as pd
import pytest

import pkd
from pkd.certification.assumptions import check_log
from pkd.certification.logs import as_log

COIN = pkd.as_problem("gambler").model()
SIDES = ("tails", "heads")


def toss(chances, seed=0):
    rng = random.Random(seed)
    return [("coin", SIDES[rng.random() < p]) for p in chances]


def test_false_alarms_are_rare():
    """400 logs at level 1%: 14 or more alarms have a probability below 1e-4."""
    alarms = [not check_log(COIN, as_log(COIN, toss([0.5] * 60, s))).ok for s in range(400)]
    assert sum(alarms) < 14


@pytest.mark.parametrize(
    ("chances", "what"),
    [([0.2] * 300 + [0.7] * 700, "the time"), ([0.1, 0.9] * 100, "the x' before")],
)
def test_a_law_that_changes_certifies_nothing(chances, what):
    found = pkd.certify("gambler", toss(chances))
    assert found.rejected
    assert found.sentence.startswith("NOT certified, since the log breaks the assumptions")
    assert any(f"what follows depends on {what} (p = " in one for one in found.log_test.findings)


def test_columns_that_were_known_beforehand_must_not_matter():
    rng = random.Random(0)
    actions = [rng.randrange(2) for _ in range(400)]
    frame = pd.DataFrame(toss([0.3 + 0.4 * a for a in actions]), columns=["z", "x"])
    assert not pkd.certify("gambler", frame).rejected
    found = pkd.certify("gambler", frame.assign(action=actions)).log_test
    assert found.findings[0].startswith("coin: what follows depends on the column action")


def test_pairs_in_order_and_their_counts_give_one_certificate():
    pairs = toss([0.4] * 500)
    by_pairs, by_counts = (
        pkd.certify("gambler", log) for log in (pairs, dict(as_log(COIN, pairs)))
    )
    assert (by_pairs.low, by_pairs.high) == (by_counts.low, by_counts.high)
    assert by_pairs.log_test.ok
    assert by_counts.log_test is None
    assert not by_counts.rejected
