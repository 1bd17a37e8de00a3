"""benchmarks/wrapped.py in a small size: FrozenLake 4x4, planned, learned and played."""

import attrs
import pytest

import pkd

pytest.importorskip("gymnasium")
from benchmarks import wrapped

LAKE = attrs.evolve(wrapped.WORLDS["lake"], horizon=15, episodes=50, played=200)


@pytest.mark.parametrize("kind", ["observations", "actions"])
def test_a_late_lake_is_played_at_the_exact_values(kind):
    line = wrapped.study(LAKE, kind, 2)
    assert line.best.z < 4
    assert line.learned.z < 4
    assert line.learned.exact <= line.best.exact + 1e-12


def test_a_mean_that_misses_the_exact_value_has_a_large_z():
    assert wrapped.Played(1.0, 0.5, 0.1).z == pytest.approx(5)
    assert wrapped.Played(1.0, 0.5, 0.0).z == float("inf")
    assert wrapped.Played(-3.0, -3.0, 0.0).z == 0


@pytest.mark.parametrize("d", [1, 2])
def test_late_actions_after_waiting_have_the_optimum_of_late_observations(d):
    late_states, late_commands = wrapped.compare_kinds(LAKE, d)
    assert late_commands == pytest.approx(late_states, abs=1e-12)


def test_without_waiting_late_actions_cost_more_where_the_first_command_harms():
    """Action 2, right, is not what the plan for late observations begins with."""
    table = pkd.TabularMDP.from_gymnasium(wrapped.gym.make("FrozenLake-v1"), 15)
    late_states, _ = wrapped.compare_kinds(LAKE, 1)
    late = pkd.LateActions(table, 1, first_action=2)
    assert pkd.plan(late, table.law()).value < late_states - 1e-4
