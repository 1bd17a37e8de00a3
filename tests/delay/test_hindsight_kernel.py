"""The compiled hindsight counts exactly what `UnknownDelay.samples` says of the same episode."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import pkd
from pkd.kernels import rollout_nodes
from pkd.planning import seed_words
from pkd_delay import DelayedMDP, learn
from pkd_delay.hindsight import HindsightPlayer
from pkd_delay.kernels import look_back
from tests.delay.strategies import delayed_mdps


@settings(max_examples=60)
@given(delayed=delayed_mdps(largest_tree=10**6), seed=st.integers(0, 10**6))
def test_an_episode_is_counted_as_samples_says(delayed, seed):
    model, law = delayed.unknown(), delayed.law()
    compiled = pkd.compile(model, large=False)
    world, rng = compiled.truth(law).world, seed_words(seed)
    player = HindsightPlayer(compiled, model, world, law.delay_of)
    policy = pkd.plan(compiled, law).choices
    kernel, asked = compiled.tally(), compiled.tally()
    for _ in range(5):
        path = player.path
        total, _, moves = rollout_nodes(compiled.walk, world, policy, compiled.tally(), rng, path)
        look_back(player.delays, kernel, path, moves, rng, player.deltas)
        episode = compiled.name_path(path[:moves], total)
        revealed = pkd.Episode(episode.transitions, tuple(int(delta) for delta in player.deltas))
        compiled.count(asked, model.samples(revealed))
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
    compiled = pkd.compile(delayed.unknown(), large=False)
    world, state = compiled.truth(delayed.law()).world, seed_words(0)
    player = HindsightPlayer(compiled, delayed.unknown(), world, delayed.law().delay_of)
    policy, seen = compiled.policy(), np.zeros(4)
    for _ in range(500):
        path, tally = player.path, compiled.tally()
        _, _, moves = rollout_nodes(compiled.walk, world, policy, tally, state, path)
        look_back(player.delays, compiled.tally(), path, moves, state, player.deltas)
        seen += np.bincount(player.deltas + 1, minlength=4)
    p = np.array(list(law.values()))
    assert np.all(np.abs(seen / 4000 - p) < 4 * np.sqrt(p * (1 - p) / 4000))


def test_a_run_with_an_unknown_delay_law_is_the_same_twice():
    rng = np.random.default_rng(5)
    mdp = pkd.TabularMDP(rng.dirichlet(np.ones(3), (3, 2)), rng.random((3, 2)), 5)
    delayed = DelayedMDP(mdp, {0: 0.5, 1: 0.5}, 2)
    first, second = (
        learn(delayed, 200, delay_law="unknown", optimism=pkd.MVP.practical(), seed=4)
        for _ in range(2)
    )
    assert np.array_equal(first.returns, second.returns)
    assert first.counts == second.counts
