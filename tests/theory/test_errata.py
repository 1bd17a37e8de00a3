"""The errata page: what is wrong with the paper's printed rules; every test it names exists."""

import math
import re
from functools import cache
from itertools import product
from pathlib import Path

import numpy as np
import pytest

import pkd
import pkd_delay
from pkd.episode import list_samples, list_visited
from pkd_delay import l1
from pkd_delay.models.tables import two_state_chain

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
    (episode,) = pkd.simulate((model, delayed.law()), lambda h, x, y: 0, 1, 0)
    with_empty_queue = [
        [z for z, _ in pairs if getattr(z, "empty", False)]
        for pairs in (list_visited(model, episode), list_samples(model, episode))
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


NAMING = pkd.TabularMDP(np.full((2, 2, 2), 0.5), np.eye(2), horizon=1, start=[0.5, 0.5])


def test_a_constant_delay_shows_the_first_state_at_once() -> None:
    assert pkd_delay.plan(pkd_delay.DelayedMDP.constant(NAMING, 1)).value == 1.0


def test_an_auxiliary_first_state_hides_the_true_one() -> None:
    """State 2 is s_start: it leads to the states 0 and 1, pays nothing and takes a step."""
    moves = np.zeros((3, 2, 3))
    moves[:, :, :2] = 0.5
    with_start = pkd.TabularMDP(moves, [[1, 0], [0, 1], [0, 0]], horizon=2, start=2)
    late = np.zeros((3, 2, 3))  # Delta = -1, 0, 1
    late[:2, :, 1] = late[2, :, 2] = 1.0
    assert pkd_delay.plan(pkd_delay.DelayedMDP(with_start, late, 1)).value == 0.5


def best_sequence(mdp: pkd.TabularMDP) -> float:
    """The value of the best fixed sequence of actions, by trying all."""
    best = -np.inf
    for actions in product(range(mdp.n_actions), repeat=mdp.horizon):
        law, value = np.eye(mdp.n_states)[mdp.start], 0.0
        for a in actions:
            value += float(law @ mdp.rewards[:, a])
            law = law @ mdp.transitions[:, a]
        best = max(best, value)
    return best


def test_nothing_is_seen_from_a_delay_of_one_less_than_the_horizon_on() -> None:
    mdp = two_state_chain(horizon=4)
    blind = best_sequence(mdp)
    values = [pkd_delay.plan(pkd_delay.DelayedMDP.constant(mdp, d)).value for d in (2, 3, 4)]
    assert values[1:] == pytest.approx([blind, blind], abs=1e-12)
    assert values[0] > blind + 1e-3


def max_form(v: tuple[float, float], width: float) -> float:
    """f(p, V, n, ell) of the lemma at p = (.9, .1), with (20/3) sqrt(ell/n) = .55."""
    p, ratio = np.array([0.9, 0.1]), (0.55 * 3 / 20) ** 2
    mean = float(p @ v)
    deviation = math.sqrt(float(p @ (np.array(v) - mean) ** 2))
    return mean + max(0.55 * deviation, 400 / 9 * width * ratio)


def test_the_max_form_needs_values_in_an_interval_of_length_one() -> None:
    """The larger V has the smaller f, although all |V(s)| <= 1; not with the width 2 of V."""
    assert max_form((1.0, -0.95), 1.0) < max_form((1.0, -1.0), 1.0) - 1e-3
    assert max_form((1.0, -0.95), 2.0) > max_form((1.0, -1.0), 2.0)


def test_one_sample_gives_no_bound_and_no_estimate() -> None:
    """The smallest ell is log 32. So the printed bound is above H at N = 1, and nothing is lost."""
    least = pkd.bounds.union_log(1, 1, 1, 1, 1 - 1e-12)
    assert least == pytest.approx(math.log(32))
    assert 14 / 3 * least > 1
    assert pkd.MVP().bonus().free == 1.0


def test_the_sum_of_u_needs_the_logarithm_outside_of_the_one() -> None:
    """|Z| = 1, H = K = 2: the printed line is below the one that it should bound."""
    H, K, delta = 2, 2, 0.05
    ell = pkd.bounds.union_log(H, 1, 1, K, delta)
    before = 4 * ell * math.log(K * H) + 3 * math.log(8 * H / delta)
    assert 4 * (ell * math.log(K * H) + 1) < before
    assert 4 * ell * (math.log(K * H) + 1) >= before
    assert 4 * ell * (math.log(K * H) + 1) == pytest.approx(4 * math.log(math.e * K * H) * ell)


def test_the_printed_stopping_time_plays_one_sample_too_many() -> None:
    """N^k counts the episodes before k. One visit in every episode: N^k = k - 1 reaches n at n + 1.

    The first n + 1 episodes then hold n + 1 samples, and those tell more than n.
    """
    n, visits = 4, [1] * 10
    reaches = next(k for k in range(1, 11) if sum(visits[: k - 1]) == n)
    assert sum(visits[:reaches]) == n + 1
    corrected = next(k for k in range(1, 11) if sum(visits[:k]) == n)
    assert sum(visits[:corrected]) == n
    assert l1.divergence(2, n + 1, 2, 0.5).kl > l1.divergence(2, n, 2, 0.5).kl * (1 + 1e-9)


def test_the_divergence_of_trajectories_is_more_than_that_given_their_length() -> None:
    """An algorithm that stops after the first 1 of at most two coins, of bias p or q.

    Given the number of samples, the first one is known: the printed equation loses its divergence.
    The lemma holds: two samples tell at least as much.
    """
    p, q = 0.5, 0.25
    paths = {(1,): (p, q), (0, 1): ((1 - p) * p, (1 - q) * q), (0, 0): ((1 - p) ** 2, (1 - q) ** 2)}
    whole = sum(a * math.log(a / b) for a, b in paths.values())
    coin = p * math.log(p / q) + (1 - p) * math.log((1 - p) / (1 - q))
    printed = 0.0
    for size in (1, 2):
        laws = [pair for path, pair in paths.items() if len(path) == size]
        first, second = (sum(pair[i] for pair in laws) for i in (0, 1))
        printed += sum(a * math.log(a / first / (b / second)) for a, b in laws)
    assert printed == pytest.approx((1 - p) * coin)
    assert whole == pytest.approx((2 - p) * coin)
    assert printed < whole <= 2 * coin
