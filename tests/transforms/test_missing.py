"""Missing observations against the best history-dependent policy, and what an episode teaches."""

import pickle
from collections import Counter, defaultdict
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pkd
from pkd.episode import list_samples
from pkd.transforms.transformed import find_first_offer
from pkd_delay import DelayChain, KnownDelay
from tests.delay.reference import best_in_base
from tests.delay.transforms.test_composition import DEMAND, Inventory

CHAIN = pkd.TabularMDP([[[0.9, 0.1]] * 2, [[0.1, 0.9]] * 2], np.eye(2), 8)


def make_table(seed, S, A, H):
    rng = np.random.default_rng(seed)
    return pkd.TabularMDP(rng.dirichlet(np.ones(S) / 2, (S, A)), rng.random((S, A)), H)


def best_with_gaps(P, r, H, start, missing, longest):
    """Expectimax over what is seen: at each step the present state, or nothing.

    Only the present state is shown, not those before it: more would not help.
    """
    S, A = r.shape

    def best(h, belief, gap):
        if h > H:
            return 0.0
        values = []
        for a in range(A):
            total = sum(p * r[s, a] for s, p in belief.items())
            after = defaultdict(float)
            for s, p in belief.items():
                for t in range(S):
                    after[t] += p * P[s, a, t]
            lost = 0.0 if gap == longest else missing
            if lost > 0:
                total += best(h + 1, {t: lost * p for t, p in after.items()}, gap + 1)
            for t, p in after.items():
                if (1 - lost) * p > 0:
                    total += best(h + 1, {t: (1 - lost) * p}, 0)
            values.append(total)
        return max(values)

    return sum(best(1, {s: p}, 0) for s, p in enumerate(start) if p > 0)


@pytest.mark.parametrize("large", [False, True], ids=["nodes", "stripes"])
@settings(max_examples=50, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    sizes=st.tuples(st.integers(2, 3), st.integers(2, 3), st.integers(1, 4)),
    missing=st.sampled_from([0.0, 0.3, 0.8, 1.0]),
    longest=st.sampled_from([None, 0, 1, 2]),
    returned=st.booleans(),
)
def test_gaps_are_planned_as_well_as_any_history_dependent_policy_could(
    large, seed, sizes, missing, longest, returned
):
    table = make_table(seed, *sizes)
    model = pkd.Missing(table, missing, returned, longest=longest)
    expected = best_with_gaps(
        table.transitions,
        table.rewards,
        table.horizon,
        table.start_distribution,
        missing,
        longest,
    )
    value = pkd.plan(pkd.compile(model, large=large), table.law()).value
    assert value == pytest.approx(expected, abs=1e-10)


@pytest.mark.parametrize("seed", range(5))
def test_a_gap_is_a_delay_that_grows_by_one_and_ends_at_once(seed):
    """Pr(D = j | D before = 0) = p^j (1 - p), cut at the longest gap; then D falls by one."""
    table, p = make_table(seed, 3, 3, 5), 0.4
    rows = [[1 - p, p * (1 - p), p * p], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]
    late = KnownDelay(table, DelayChain(rows), 2)
    gaps = pkd.plan(pkd.Missing(table, p, longest=2), table.law()).value
    assert gaps == pytest.approx(pkd.plan(late, table.law()).value, abs=1e-10)


def test_a_base_with_chance_states_loses_more_the_more_goes_missing():
    base = Inventory()
    assert pkd.plan(pkd.Missing(base, 0.0), DEMAND).value == pytest.approx(
        best_in_base(base, DEMAND, lambda state, a: (0.0, 1.0), 0)
    )
    values = [pkd.plan(pkd.Missing(base, p), DEMAND).value for p in (0.0, 0.3, 0.6, 1.0)]
    assert values == sorted(values, reverse=True)
    assert values[0] > values[-1]


class TestWhatIsLearned:
    def play(self, model, episodes=300):
        return pkd.simulate((model, CHAIN.law()), lambda h, x, y: h % 2, episodes, seed=3)

    def test_what_comes_back_at_the_end_teaches_every_move(self):
        model = pkd.Missing(CHAIN, 0.7, longest=3)
        assert all(len(list(list_samples(model, e))) == 8 for e in self.play(model, 20))

    def test_what_never_comes_back_teaches_only_between_two_states_shown_in_time(self):
        model = pkd.Missing(CHAIN, 0.5, False, longest=3)
        for episode in self.play(model, 50):
            # s_1 is shown. A move teaches if the state before it and the one after it were shown.
            shown = [True]
            for move in episode:
                if move.action is not None:
                    shown.append(move.y_next.phase == "replays")
            expected = sum(a and b for a, b in pairwise(shown))
            assert len(list(list_samples(model, episode))) == expected

    def test_the_last_state_may_be_lost_for_ever(self):
        one = pkd.TabularMDP(CHAIN.transitions, CHAIN.rewards, 1)
        model = pkd.Missing(one, 0.5, False)
        taught = [
            len(list(list_samples(model, e)))
            for e in pkd.simulate((model, one.law()), lambda h, x, y: 0, 400, seed=1)
        ]
        assert 150 < sum(taught) < 250

    def test_the_samples_that_are_left_are_not_biased(self):
        model = pkd.Missing(CHAIN, 0.5, False, longest=3)
        counts = Counter()
        for episode in self.play(model, 3000):
            counts.update((z[0] == x_next) for z, x_next in list_samples(model, episode))
        n = sum(counts.values())
        assert abs(counts[True] / n - 0.9) < 4 * np.sqrt(0.09 / n)

    @pytest.mark.parametrize("returned", [True, False])
    def test_certified_learning_has_no_violation(self, returned):
        table = make_table(4, 3, 2, 5)
        model = pkd.Missing(table, 0.4, returned, longest=2)
        pkd.check_model(model, table.law())
        run = pkd.learn(model, table.law(), 300, optimism=pkd.Certified())
        assert all(run.upper_values >= run.optimal_value - 1e-9)
        seen = sum(sum(row.values()) for row in run.counts.values())
        assert seen == 300 * 5 if returned else 0 < seen < 300 * 5


@pytest.mark.parametrize(
    "model",
    [
        pkd.Missing(CHAIN, 0.5),
        pkd.Missing(CHAIN, 0.5, False),
        pkd.LateActions(CHAIN, {0: 0.5, 1: 0.5}),
    ],
)
def test_a_transformed_model_goes_to_another_process(model):
    again = pickle.loads(pickle.dumps(model))
    assert type(again) is type(model)
    assert pkd.plan(again, CHAIN.law()).value == pkd.plan(model, CHAIN.law()).value


class TestBadInput:
    @pytest.mark.parametrize("probability", [-0.1, 1.5, "often", None])
    def test_a_wrong_probability_is_refused(self, probability):
        with pytest.raises(pkd.ModelError, match=r"expected a number in \[0, 1\]"):
            pkd.Missing(CHAIN, probability)

    def test_more_sequences_than_any_machine_can_hold_need_a_bound(self):
        long = pkd.TabularMDP(CHAIN.transitions, CHAIN.rewards, 100)
        with pytest.raises(pkd.ModelError, match="such as longest=3"):
            pkd.Missing(long, 0.5)
        assert pkd.Missing(long, 0.0).horizon == 100

    def test_a_base_that_teaches_from_whole_episodes_needs_them_back(self):
        class Teacher(Inventory):
            def samples(self, episode):
                return []

        with pytest.raises(pkd.ModelError, match="expected returned=True"):
            pkd.Missing(Teacher(), 0.5, False)
        assert list(pkd.Missing(Teacher(), 0.5).samples(pkd.Episode([]))) == []


class Deal(pkd.PartiallyKnownMDP):
    """An urn is dealt from `depth` times before anything is chosen, if anything ever is."""

    horizon = 1

    def __init__(self, depth, known=True, ends=False):
        self.depth, self.known, self.ends = depth, known, ends

    def start(self):
        return {(0, 0): 0.5, (1, 0): 0.5}

    def actions(self, x, y):
        if y < self.depth:
            return pkd.CHANCE
        return pkd.END if self.ends else ["hold", "fold"]

    def step(self, x, y, a):
        return [(1.0, y + 1, pkd.Known({0: 0.5, 1: 0.5}) if self.known else "urn"), (0.0, -1, "no")]

    def outcomes(self, z):
        return [0, 1]

    def reward(self, x, y, a):
        return float(x)


@pytest.mark.parametrize("known", [True, False])
def test_the_first_offer_may_come_after_chance(known):
    assert find_first_offer(Deal(3, known)) == ("hold", "fold")
    assert find_first_offer(Deal(0)) == ("hold", "fold")


def test_a_model_without_any_decision_has_no_offer():
    with pytest.raises(pkd.ModelError, match=r"^Deal has no decision state"):
        find_first_offer(Deal(2, ends=True))
