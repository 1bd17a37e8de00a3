"""The errata page: what is wrong with the paper's printed rules; every test it names exists."""

import re
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import pkd
import pkd_delay

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "errata.md"
GUESS = pkd.TabularMDP(np.full((2, 2, 2), 0.5), np.eye(2), horizon=3)


def augmented_optimum(mdp, law, longest, max_delay, *, printed):
    """The optimum of the paper's augmented MDP, and the longest queue whose tran value it reads.

    `printed` takes Pr(Delta = 0 | Delta >= 0) for the empty queue, as the paper does, in place of
    Pr(Delta <= 0).
    """
    longest_tran = 0

    def hazard(waited):
        tail = sum(law.get(j, 0.0) for j in range(waited, longest + 1))
        return law.get(waited, 0.0) / tail if tail else 1.0

    @cache
    def decision(s, queue, waited, h):
        return max(
            after(s, (*queue, a), waited, h + 1, empty=not queue) for a in range(mdp.n_actions)
        )

    def after(s, queue, waited, h, *, empty):
        forced = h == mdp.horizon + 1 or len(queue) == max_delay + 1 or waited == longest
        p = (
            1.0
            if forced
            else law.get(-1, 0.0) + law.get(0, 0.0)
            if empty and not printed
            else hazard(waited)
        )
        late = (1 - p) * decision(s, queue, waited + 1, h) if p < 1 else 0.0
        return late + (p * tran(s, queue, h) if p else 0.0)

    @cache
    def tran(s, queue, h):
        nonlocal longest_tran
        longest_tran = max(longest_tran, len(queue))
        ahead = sum(
            p * shown(t, queue[1:], h) for t, p in enumerate(mdp.transitions[s, queue[0]]) if p
        )
        return mdp.rewards[s, queue[0]] + ahead

    def shown(s, queue, h):
        if h == mdp.horizon + 1:
            return tran(s, queue, h) if queue else 0.0
        p = hazard(-1) if queue else 0.0
        return (p * tran(s, queue, h) if p else 0.0) + (
            (1 - p) * decision(s, queue, 0, h) if p < 1 else 0.0
        )

    return decision(mdp.start, (), 0, 1), longest_tran


def test_the_printed_rule_for_the_empty_queue_loses_a_quarter():
    value, _ = augmented_optimum(GUESS, {-1: 0.5, 1: 0.5}, longest=1, max_delay=2, printed=True)
    assert value == pytest.approx(2.25)


def test_the_corrected_rule_for_the_empty_queue_gives_the_true_optimum():
    value, _ = augmented_optimum(GUESS, {-1: 0.5, 1: 0.5}, longest=1, max_delay=2, printed=False)
    assert value == pytest.approx(2.5)
    assert pkd_delay.plan(pkd_delay.DelayedMDP(GUESS, {-1: 0.5, 1: 0.5}, 2)).value == pytest.approx(
        2.5, abs=1e-12
    )


def test_an_optimum_reads_values_of_queues_one_longer_than_the_maximal_delay():
    _, longest_tran = augmented_optimum(GUESS, {1: 1.0}, longest=1, max_delay=1, printed=False)
    assert longest_tran == 2


def test_both_rules_agree_where_no_delta_is_negative():
    law = {0: 0.25, 1: 0.5, 2: 0.25}
    printed, corrected = (
        augmented_optimum(GUESS, law, longest=2, max_delay=2, printed=rule)[0]
        for rule in (True, False)
    )
    assert printed == pytest.approx(corrected)


def test_hindsight_counts_every_delta_and_visits_do_not():
    # One state, Delta = 1 always, D = 1, H = 3: only the first action meets an empty queue, and
    # then the clip forces every arrival.
    delayed = pkd_delay.DelayedMDP(pkd.TabularMDP([[[1.0]]], [[0.0]], 3), {1: 1.0}, 1)
    model = delayed.unknown()
    (episode,) = pkd.simulate(model, delayed.law(), lambda h, x, y: 0, 1, 0)
    with_empty_queue = [
        [z for z, _ in pairs if getattr(z, "empty", False)]
        for pairs in (model.visited(episode), model.samples(episode))
    ]
    assert [len(features) for features in with_empty_queue] == [1, 3]


def named_tests():
    return re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", PAGE.read_text())


def test_every_test_that_the_errata_name_exists():
    missing = [
        f"{file}::{name}"
        for file, name in named_tests()
        if f"def {name}(" not in (ROOT / file).read_text()
    ]
    assert missing == []


@pytest.mark.parametrize("number", range(1, 12))
def test_every_correction_names_a_test_or_says_why_it_needs_none(number):
    section = re.search(
        rf"^## {number}\. .*?(?=^## |\Z)", PAGE.read_text(), re.MULTILINE | re.DOTALL
    )
    assert section is not None
    assert "::test_" in section[0] or "No test:" in section[0]
