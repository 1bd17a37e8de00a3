"""Every domain can be delayed: its observations come one step late, its features stay the same, and news is worth something."""

from __future__ import annotations

import pytest

import pkd
from tests.examples.worlds import shipped

pkd_delay = pytest.importorskip("pkd_delay")

SHIPPED = shipped()
SMALL = [name for name in SHIPPED if name != "blackjack"]  # its queue makes a plan of many seconds, and nothing new


@pytest.mark.parametrize("name", SMALL)
def test_a_delayed_domain_is_worth_at_most_the_undelayed_one(name: str) -> None:
    problem, _ = SHIPPED[name]
    delayed = pkd_delay.KnownDelay(problem.model(), {1: 1.0}, 1)
    assert pkd.plan(delayed, problem.law()).value <= pkd.plan(problem.model(), problem.law()).value + 1e-9


def test_a_late_price_is_worth_less() -> None:
    problem, _ = SHIPPED["battery"]
    delayed = pkd_delay.KnownDelay(problem.model(), {1: 1.0}, 1)
    assert pkd.plan(delayed, problem.law()).value < pkd.plan(problem.model(), problem.law()).value - 0.1


@pytest.mark.parametrize("name", SMALL)
def test_a_delay_of_zero_changes_nothing(name: str) -> None:
    problem, _ = SHIPPED[name]
    delayed = pkd_delay.KnownDelay(problem.model(), {0: 1.0}, 0)
    assert pkd.plan(delayed, problem.law()).value == pytest.approx(pkd.plan(problem.model(), problem.law()).value, abs=1e-9)


@pytest.mark.parametrize("name", SMALL)
@pytest.mark.parametrize("law", [{1: 1.0}, {-1: 0.2, 0: 0.5, 1: 0.3}], ids=["constant", "random"])
def test_a_domain_is_worth_the_same_on_both_engines(name: str, law: dict[int, float]) -> None:
    """For both adapters, with the truth and, optimistically, without any data."""
    problem, _ = SHIPPED[name]
    models = pkd_delay.KnownDelay(problem.model(), law, 1), pkd_delay.UnknownDelay(problem.model(), 1, 1)
    truth = pkd_delay.DelayLaw(problem.law(), law, *models)
    for model in models:
        engines = [pkd.compile(model, large=large) for large in (True, False)]
        for values in zip(*(_values(engine, truth) for engine in engines), strict=True):
            assert values[0] == pytest.approx(values[1], rel=1e-10, abs=1e-10)


def _values(compiled: pkd.Compiled, truth: pkd.Law) -> tuple[float, float]:
    return pkd.plan(compiled, truth).value, pkd.optimistic_plan(compiled, {}, episodes=100).value


def test_a_large_delayed_inventory_is_not_explored(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three days of orders on their way unseen are worth less than two, and two less than one, with the same features."""
    from pkd_examples.inventory import inventory

    problem = inventory(horizon=5, demand=(1.0, 3.0), capacity=8, max_order=4, max_demand=4)
    values = [pkd.plan(pkd_delay.KnownDelay(problem.model(), {1: 1.0}, 1), problem.law()).value]
    monkeypatch.setattr("pkd.engines.explore", None)
    for delay in (2, 3):
        compiled = pkd.compile(pkd_delay.KnownDelay(problem.model(), {delay: 1.0}, delay))
        assert compiled.features == [0, 1]
        values.append(pkd.plan(compiled, problem.law()).value)
    assert values == sorted(values, reverse=True)


def test_a_delayed_inventory_still_learns_one_law_for_each_day() -> None:
    problem, _ = SHIPPED["inventory"]
    delayed = pkd_delay.KnownDelay(problem.model(), {1: 1.0}, 1)
    run = pkd.learn(delayed, problem.law(), 20, optimism=pkd.Greedy(), seed=0)
    assert set(run.counts) == {0, 1, 2}
