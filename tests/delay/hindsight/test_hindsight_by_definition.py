"""The compiled hindsight, part by part from its definition; small enough to run as plain Python."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pkd
import pkd_delay
from pkd.episode import list_samples
from pkd.kernels import rollout_nodes
from pkd.planning.plan import seed_words
from pkd_delay import DelayChain, DelayedMDP, InterArrival, Lags, UnknownDelay
from pkd_delay.hindsight import DelayLaw, HindsightPlayer
from pkd_delay.kernels import draw_delta, look_back
from tests.delay.episodes import steps_shown
from tests.delay.strategies import delayed_mdps

H, D = 4, 2
MDP = pkd.TabularMDP(np.full((2, 2, 2), 0.5), np.ones((2, 2)), H)
LAW = {-1: 0.2, 0: 0.3, 1: 0.3, 2: 0.2}
LAGS = Lags({0: 0.4, 1: 0.3, 2: 0.3})
CHAIN = DelayChain([[0.5, 0.3, 0.2], [0.3, 0.5, 0.2], [0.0, 0.6, 0.4]])
SHOWN = {
    "shared": DelayedMDP(MDP, LAW, D),
    "per pair": DelayedMDP(MDP, LAW, D, shared=False),
    "shared lags": DelayedMDP(MDP, LAGS),
    "lags per pair": DelayedMDP(MDP, LAGS, shared=False),
}
HIDDEN = {
    "unrevealed": DelayedMDP(MDP, LAW, D, revealed=False),
    "unrevealed per pair": DelayedMDP(MDP, LAW, D, shared=False, revealed=False),
    "chain": DelayedMDP(MDP, CHAIN, revealed=False),
}


def words_of(u):
    """A state of the random numbers whose next U is u: s0 = 0, so U is made of s3 alone."""
    word = int(u * 2**53) << 11
    return np.array([0, 1, 2, (word >> 23) | (word << 41) & (2**64 - 1)], np.uint64)


def player_of(late, large=False):
    model, law = late.unknown(), late.law()
    compiled = pkd.compile(model, large=large)
    return HindsightPlayer(compiled, model, compiled.truth(law).world, law.delay_of), model


def play(player, tally, rng):
    """One episode on the node engine: (the episode, whether a plan is due)."""
    compiled, path = player.compiled, player.path
    n = len(compiled.model.facts.actions)
    policy = compiled.tabulate(lambda h, x, y: h % n)
    total, _, moves = rollout_nodes(
        compiled.walk, player.world, policy, compiled.tally(), rng, path
    )
    due = look_back(player.delays, tally, path, moves, rng, player.deltas)
    told = tuple(player.deltas.tolist())
    return pkd.Episode(compiled.name_path(path[:moves], total).transitions, told), due


@pytest.mark.parametrize(("low", "high"), [(-1, 3), (0, 2), (-1, 0), (1, 3), (2, 2), (3, 3)])
def test_a_delta_is_the_quantile_of_its_law_between_the_bounds(low, high):
    """Delta = min{j : Pr(low <= Delta <= j) > U Pr(low <= Delta <= high)}, exactly in 16ths."""
    law = [Fraction(n, 16) for n in (2, 4, 0, 8, 2)]
    table = np.array(law, np.float64)
    inside = [j for j in range(low, high + 1) if law[j + 1] > 0] or [low]
    for k in range(64):
        mark = Fraction(k, 64) * sum(law[j + 1] for j in inside)
        drawn = next(j for j in inside if sum(law[i + 1] for i in inside if i <= j) > mark)
        assert draw_delta(table, low, high, words_of(k / 64)) == drawn


def test_a_delta_that_cannot_be_is_not_drawn_where_rounding_leaves_a_rest():
    """With U = 1 - 2^-53 rounding makes U x (0.3 + 0.7) as large as the sum itself."""
    assert (1 - 2**-53) - 0.3 - 0.7 == 0.0
    assert draw_delta(np.array([0.3, 0.7, 0.0, 0.0]), -1, 2, words_of(1 - 2**-53)) == 0


@pytest.mark.parametrize("kind", [*SHOWN, *HIDDEN])
def test_an_episode_counts_what_samples_says(kind):
    player, model = player_of({**SHOWN, **HIDDEN}[kind])
    compiled, rng = player.compiled, seed_words(1)
    kernel, asked = compiled.tally(), compiled.tally()
    for k in range(20):
        # The marks are lifted before each episode, so that some make a plan due and some do not.
        kernel.marks[:] = asked.marks[:] = asked.n.max() + 1 + k % 4
        episode, due = play(player, kernel, rng)
        if not model.revealed:
            episode = pkd.Episode(episode.transitions)
        assert due == compiled.count(asked, list_samples(model, episode))
        assert np.array_equal(kernel.counts, asked.counts)
        assert np.array_equal(kernel.n, asked.n)
    assert asked.n.any()


@pytest.mark.parametrize("kind", SHOWN)
def test_the_deltas_explain_when_each_state_was_shown(kind):
    late, rng = SHOWN[kind], seed_words(2)
    player, model = player_of(late)
    for _ in range(30):
        episode, _ = play(player, player.compiled.tally(), rng)
        delay, expected = 0, []
        for t, delta in enumerate(episode.revealed, start=1):
            delay = max(delay - 1, delta) if "lags" in kind else min(max(delay + delta, 0), D)
            expected.append(min(t + 1 + delay, H + 1))
        assert steps_shown(model, episode) == expected


@pytest.mark.parametrize("kind", SHOWN)
def test_every_number_that_the_law_allows_is_drawn_at_the_last_action(kind):
    """The end of the episode hides the last delay, so its number has the whole law."""
    player, _ = player_of(SHOWN[kind])
    rng, seen = seed_words(3), set()
    for _ in range(60):
        seen.add(play(player, player.compiled.tally(), rng)[0].revealed[-1])
    assert seen == ({0, 1, 2} if "lags" in kind else {-1, 0, 1, 2})


@pytest.mark.parametrize("large", [False, True])
@pytest.mark.parametrize("kind", ["shared", "unrevealed per pair"])
def test_episodes_are_played_until_a_plan_is_due(kind, large):
    """The last of them brings some feature to 9 samples, and those before it bring none there."""
    player, _ = player_of({**SHOWN, **HIDDEN}[kind], large)
    policy = player.compiled.policy()

    def run(most):
        tally, returns = player.compiled.tally(), np.full(most, np.nan)
        tally.marks[:] = 9.0
        return player(policy, tally, seed_words(4), returns), tally.n.max(), returns

    (count, due), most, returns = run(30)
    assert 2 <= count < 30
    assert due is True
    assert most >= 9
    assert returns[:count].tolist() == [H] * count  # each action pays 1
    assert np.isnan(returns[count:]).all()
    (count_before, due), most, returns = run(count - 1)
    assert (count_before, due) == (count - 1, False)
    assert most < 9
    assert returns.tolist() == [H] * (count - 1)


@pytest.mark.parametrize("form", [InterArrival, Lags])
def test_numbers_beyond_the_longest_that_have_no_mass_change_nothing(form):
    longest, counts = 2 + form.first, []
    for law in (form((0.2, 0.5, 0.3)), form((0.2, 0.5, 0.3, 0.0, 0.0, 0.0))):
        model = UnknownDelay(MDP.model(), longest, max_delay=D, form=form)
        compiled = pkd.compile(model, large=False)
        truth = DelayLaw(MDP.law(), law, model)
        world = compiled.truth(truth).world
        player, tally = HindsightPlayer(compiled, model, world, truth.delay_of), compiled.tally()
        tally.marks[:] = np.inf
        player(compiled.policy(), tally, seed_words(5), np.zeros(10))
        counts.append(tally.counts.tolist())
    assert counts[0] == counts[1]
    assert sum(counts[0]) > 0


@settings(max_examples=60)
@given(delayed=delayed_mdps(largest_tree=10**6), seed=st.integers(0, 10**6))
def test_an_episode_is_counted_as_samples_says(delayed, seed):
    (player, model), rng = player_of(delayed), seed_words(seed)
    compiled = player.compiled
    kernel, asked = compiled.tally(), compiled.tally()
    for _ in range(5):
        compiled.count(asked, model.samples(play(player, kernel, rng)[0]))
    assert np.array_equal(kernel.counts, asked.counts)
    assert np.array_equal(kernel.n, asked.n)


def test_the_deltas_that_are_drawn_follow_their_law():
    """500 episodes of 8 actions: the frequencies of Delta are within 4 standard errors of the law,
    whatever the path has censored.
    """
    rng = np.random.default_rng(3)
    mdp = pkd.TabularMDP(rng.dirichlet(np.ones(2), (2, 2)), rng.random((2, 2)), 8)
    law = {-1: 0.2, 0: 0.3, 1: 0.4, 2: 0.1}
    delayed = DelayedMDP(mdp, law, 2)
    (player, _), words, seen = player_of(delayed), seed_words(0), np.zeros(4)
    for _ in range(500):
        play(player, player.compiled.tally(), words)
        seen += np.bincount(player.deltas + 1, minlength=4)
    p = np.array(list(law.values()))
    assert np.all(np.abs(seen / 4000 - p) < 4 * np.sqrt(p * (1 - p) / 4000))


def test_a_run_with_an_unknown_delay_law_is_the_same_twice():
    rng = np.random.default_rng(5)
    mdp = pkd.TabularMDP(rng.dirichlet(np.ones(3), (3, 2)), rng.random((3, 2)), 5)
    delayed = DelayedMDP(mdp, {0: 0.5, 1: 0.5}, 2)
    first, second = (
        pkd_delay.learn(delayed, 200, delay_law="unknown", optimism=pkd.MVP.practical(), seed=4)
        for _ in range(2)
    )
    assert np.array_equal(first.returns, second.returns)
    assert first.counts == second.counts
