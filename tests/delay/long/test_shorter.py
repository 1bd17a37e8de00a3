"""Optima under shorter delays, and the policy that looks equally far everywhere."""

import numpy as np
import pytest

import pkd_delay
from pkd_delay import Delayed, DelayedMDP
from pkd_delay.long.shorter import Shorter
from pkd_delay.long.table import make_table
from pkd_delay.models.tables import grid, random_mdp
from tests.delay.long.test_bounds import make_bounds, random_table
from tests.delay.strategies import TableBase, sparse_rows


@pytest.mark.parametrize("seed", range(30))
def test_every_shorter_delay_has_the_exact_optimum_or_a_little_more(seed):
    rng = np.random.default_rng(seed)
    H, D = int(rng.integers(2, 8)), int(rng.integers(1, 6))
    if seed % 2:
        mdp = random_table(rng, int(rng.integers(1, 5)), int(rng.integers(1, 4)), H)
        make = lambda delay: DelayedMDP.constant(mdp, delay)  # noqa: E731
    else:
        base = TableBase(rng, 2, H, ends=True, chance_start=True)
        law = {f"z{i}": dict(enumerate(sparse_rows(rng, (), 2).tolist())) for i in range(3)}
        make = lambda delay: Delayed.constant((base, law), delay)  # noqa: E731
    shorter = Shorter(make_table(make(D)), H, D, 1e8)
    for delay in range(1, min(D, H - 1) + 1):
        value, exact = shorter._solve(delay), pkd_delay.plan(make(delay)).value
        assert exact - 1e-9 <= value <= exact + 1e-3 * max(1.0, abs(exact))
    shorter.improve(30.0)
    assert shorter.delay == min(D, H - 1)
    assert shorter.value >= pkd_delay.plan(make(D)).value - 1e-9


def test_memory_and_time_limit_the_delay():
    table = make_table(DelayedMDP.constant(random_mdp(20, 4, 40), 20))
    small = Shorter(table, 40, 20, 8 * len(table.start) * 4**3)
    small.improve(60.0)
    assert small.delay == 3
    hurried = Shorter(table, 40, 20, 1e9)
    hurried.improve(0.0)
    assert hurried.delay == 0
    assert hurried.value == np.inf


def test_the_policy_of_the_even_net_is_played_and_kept():
    """Where it is better, the plan is its net, and follows it exactly."""
    delayed = DelayedMDP.constant(grid(4, 4, 25, 0.4), 7)
    bounds = make_bounds(delayed, 300_000)
    even = bounds._make_even()
    young = even.net.age[: even.nodes] <= 2
    assert (even.net.kind[: even.nodes][young] == 1).all()
    bounds.even = even
    bounds.solve()
    bounds._add_low(1.0, 0.001, even=True)
    bounds._go_back()
    assert bounds.net is even.net
    losses, _ = bounds.sample(3000, seed=1)
    value = bounds.follow()
    assert value is not None
    error = losses.std() / np.sqrt(3000)
    assert bounds.top - losses.mean() == pytest.approx(value, abs=4 * error + 1e-3)
