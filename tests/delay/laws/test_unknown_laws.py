"""What an unknown law of the delay is learned from: one law for all, or one per state and action;
raw numbers at the end, or visited arrivals alone; inter-arrival times, lags, or any chain.
"""

from collections import Counter

import attrs
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pkd
import pkd_delay
from pkd.episode import list_visited
from pkd_delay import DelayChain, Delayed, DelayedMDP, Lags, UnknownDelay
from pkd_delay.augmented import TRAN
from pkd_delay.episodes import simulate
from pkd_delay.hindsight import DelayLaw
from pkd_delay.models.autoscaler import autoscaler
from pkd_delay.models.tables import random_mdp
from pkd_delay.unknown import Arrival
from tests.delay.strategies import delayed_mdps

MDP = random_mdp(states=3, actions=2, horizon=6, successors=3, seed=1)
LAW = {-1: 0.2, 0: 0.3, 1: 0.3, 2: 0.2}
LAGS = Lags({0: 0.4, 1: 0.3, 2: 0.1, 3: 0.2})
CHAIN = DelayChain([[0.5, 0.3, 0.2], [0.3, 0.5, 0.2], [0.0, 0.6, 0.4]])
KINDS = {
    "shared": DelayedMDP(MDP, LAW, 3),
    "per pair": DelayedMDP(MDP, LAW, 3, shared=False),
    "shared lags": DelayedMDP(MDP, LAGS),
    "lags per pair": DelayedMDP(MDP, LAGS, shared=False),
    "unrevealed": DelayedMDP(MDP, LAW, 3, revealed=False),
    "unrevealed per pair": DelayedMDP(MDP, LAW, 3, shared=False, revealed=False),
    "unrevealed lags": DelayedMDP(MDP, LAGS, revealed=False),
    "chain": DelayedMDP(MDP, CHAIN, revealed=False),
}
every_kind = pytest.mark.parametrize("kind", KINDS)


def arrivals_of(run):
    return {z: row for z, row in run.counts.items() if isinstance(z, Arrival)}


@pytest.mark.parametrize(
    ("law", "shared"),
    [
        (LAW, True),
        (list(LAW.values()), True),
        (LAGS, True),
        ({(s, a): LAW for s in range(3) for a in range(2)}, False),
        (np.tile(list(LAW.values()), (3, 2, 1)), False),
    ],
)
def test_the_law_that_is_given_says_whether_it_is_shared(law, shared):
    assert DelayedMDP(MDP, law, 3).is_shared is shared


def test_any_problem_says_whether_its_law_is_shared():
    assert Delayed(MDP, LAW, 3).is_shared
    assert not Delayed(MDP, lambda x, y, a: LAW, 3).is_shared
    assert not Delayed(MDP, LAW, 3, shared=False).is_shared


@settings(max_examples=40, deadline=None)
@given(numbers=st.lists(st.integers(-1, 2), min_size=6, max_size=6))
def test_one_inter_arrival_time_is_a_sample_of_every_arrival_that_shares_its_law(numbers):
    """Each Delta >= j asks Arrival(j) of every state, and every Delta that with an empty queue."""
    late = KINDS["shared"]
    model = late.unknown()
    (record,) = simulate(late, lambda h, state, queue, waited: h % 2, 1, deltas=numbers)
    found = Counter(z for z, _ in model.samples(record.augmented(model)) if isinstance(z, Arrival))
    for z, n in found.items():
        assert n == (6 if z.empty else sum(delta >= z.waited for delta in numbers))
    assert {z.x for z in found} == {0, 1, 2}


@settings(max_examples=40, deadline=None)
@given(numbers=st.lists(st.integers(0, 3), min_size=6, max_size=6))
def test_one_lag_is_a_sample_of_every_arrival_that_asks_about_it(numbers):
    """Arrival after the delay `before`: is L = k, if L >= k; together with it: is L < before."""
    late = KINDS["shared lags"]
    model = late.unknown()
    (record,) = simulate(late, lambda h, state, queue, waited: h % 2, 1, deltas=numbers)
    found, yes = Counter(), Counter()
    for z, (_, counter) in model.samples(record.augmented(model)):
        if isinstance(z, Arrival):
            found[z] += 1
            yes[z] += counter == TRAN
    assert found
    for z in found:
        k = z.before + z.waited
        if z.waited == -1:
            assert (found[z], yes[z]) == (6, sum(lag <= k for lag in numbers))
        else:
            assert found[z] == sum(lag >= k for lag in numbers)
            assert yes[z] == sum(lag == k for lag in numbers)


@every_kind
def test_the_counts_of_a_run_follow_the_law(kind):
    """Every arrival's share of yes is within 4.5 standard errors of its law: nothing is biased."""
    late = KINDS[kind]
    run = pkd_delay.learn(late, 3000, delay_law="unknown", optimism=pkd.MVP.practical(), seed=2)
    law = late.law()
    checked = 0
    for z, row in arrivals_of(run).items():
        n, p = sum(row.values()), law(z)[z.x, TRAN]
        if n >= 100:
            share = row.get((z.x, TRAN), 0) / n
            assert abs(share - p) <= 4.5 * np.sqrt(p * (1 - p) / n) + 1e-12
            checked += 1
    assert checked


@every_kind
def test_optimism_holds_whatever_is_shown_and_shared(kind):
    run = pkd_delay.learn(KINDS[kind], 300, delay_law="unknown", optimism=pkd.MVP())
    assert run.violations == 0


def test_the_certified_rule_is_optimistic_without_the_reveal():
    late = DelayedMDP(MDP, LAW, 3, delay_law="unknown", revealed=False)
    run = pkd.learn(late, 2000, optimism=pkd.Certified(), seed=3)
    assert run.violations == 0


def test_without_the_reveal_visited_arrivals_are_all_that_is_counted():
    late = KINDS["unrevealed per pair"]
    model = late.unknown()
    (record,) = simulate(late, lambda h, state, queue, waited: 0, 1, deltas=(0, 0, 0, 0, 2, 1))
    episode = record.augmented(model)
    assert episode.revealed is None
    assert Counter(model.samples(episode)) == Counter(list_visited(model, episode))


def test_a_run_does_not_go_on_where_other_numbers_are_shown(tmp_path):
    file = tmp_path / "run.npz"
    pkd_delay.learn(KINDS["shared"], 5, delay_law="unknown", checkpoint=file)
    with pytest.raises(pkd.ModelError):
        pkd_delay.learn(KINDS["unrevealed"], 5, delay_law="unknown", checkpoint=file)


def test_one_shared_law_costs_less_regret_than_one_per_state_and_action():
    def learn(shared):
        late = attrs.evolve(autoscaler(horizon=8, delay_law="unknown"), shared=shared)
        return pkd.learn(late, 2000, optimism=pkd.MVP.practical(), seed=1)

    one, many = learn(True), learn(False)
    assert one.regret[-1] < 0.5 * many.regret[-1]
    assert len(one.plans) < 0.5 * len(many.plans)


@settings(max_examples=20, deadline=None)
@given(delayed_mdps())
def test_a_feature_of_the_delay_that_tells_all_apart_is_one_law_per_pair(delayed):
    own = DelayedMDP(
        delayed.mdp, delayed.inter_arrival, delayed.max_delay, delay_feature=lambda x, y, a: (x, a)
    ).unknown()
    model = delayed.unknown()
    (record,) = simulate(delayed, lambda h, state, queue, waited: 0, 1)
    told, own_told = (
        Counter(
            (z._replace(given=0) if isinstance(z, Arrival) else z, x_next)
            for z, x_next in m.samples(record.augmented(m))
        )
        for m in (model, own)
    )
    assert told == own_told


def test_a_law_of_another_form_than_the_model_learns_is_refused():
    model = UnknownDelay(MDP.model(), 3, 3)
    with pytest.raises(pkd.ModelError, match="is Lags; the model learns InterArrival"):
        DelayLaw(MDP.law(), lambda x, y, a: LAGS, model)
