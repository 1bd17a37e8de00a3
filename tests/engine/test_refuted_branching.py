"""Data with more distinct outcomes than the declared B(z) refute it, and nothing is certified."""

import pytest

import pkd


class Die(pkd.PartiallyKnownMDP):
    horizon = 2

    def start(self):
        return 0, None

    def actions(self, x, y):
        return ["roll"]

    def step(self, x, y, a):
        return [(1.0, None, "die")]

    def outcomes(self, z):
        return range(6)

    def branching(self, z):
        return 2  # refuted by three faces

    def reward(self, x, y, a):
        return float(x)


COUNTS = {"die": {0: 3, 1: 2, 5: 1}}
SAID = r"3 distinct outcomes of 'die' were seen, but branching\('die'\) is 2"


def roll(*faces):
    return [
        pkd.Transition(x, None, "roll", x_next, None)
        for x, x_next in zip((0, *faces), faces, strict=False)
    ]


@pytest.mark.parametrize(
    "use",
    [
        lambda: pkd.certify(Die(), COUNTS),
        lambda: pkd.optimistic_plan(Die(), COUNTS, episodes=10),
        lambda: pkd.OptimisticLearner(Die(), 10, counts=COUNTS),
        lambda: pkd.learn(Die(), {"die": {0: 0.5, 1: 0.5}}, 10, counts=COUNTS),
    ],
    ids=["certify", "optimistic_plan", "OptimisticLearner", "learn"],
)
def test_counts_that_refute_the_branching_are_refused(use):
    with pytest.raises(pkd.ModelError, match=SAID):
        use()


def test_an_observed_episode_that_refutes_it_is_refused_whole():
    learner = pkd.OptimisticLearner(Die(), 10)
    learner.observe(roll(0, 1))
    for _ in range(2):
        with pytest.raises(pkd.ModelError, match=SAID):
            learner.observe(roll(1, 5))
    assert learner.counts == {"die": {0: 1.0, 1: 1.0}}
    assert learner.observed == 1


def test_counts_up_to_the_branching_and_zeros_are_accepted():
    pkd.certify(Die(), {"die": {0: 3, 5: 2, 1: 0}})
