"""Which engine `pkd.compile` chooses: stripes where hidden queues spare most of the questions."""

from __future__ import annotations

import pytest

import pkd
import pkd.graph
from pkd.engine.nodes.engine import NodeEngine
from pkd.engine.stripes.engine import StripeEngine
from pkd.explore import explore
from pkd.graph import CHANCES, STEP, Graph
from pkd_examples.inventory import inventory


def count_branches(graph: Graph) -> int:
    return len(graph.cells[STEP].p) + len(graph.cells[CHANCES].p)


@pytest.mark.parametrize("lead_time", [1, 2])
@pytest.mark.parametrize("demand", [4, 40])
def test_hiding_pays_from_a_ratio_of_explicit_branches_to_hidden_ones_on(
    lead_time: int, demand: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = inventory(
        capacity=5, max_order=3, max_demand=demand, lead_time=lead_time, stock=0
    ).model()
    hidden = explore(model, hide_queues=True)
    ratio = count_branches(explore(model)) / count_branches(hidden)
    monkeypatch.setattr(pkd.graph, "WORTH_HIDING", ratio)
    assert hidden.pays_hiding()
    monkeypatch.setattr(pkd.graph, "WORTH_HIDING", ratio * (1 + 1e-9))
    assert not hidden.pays_hiding()


def test_a_short_queue_beside_many_outcomes_is_kept_apart_state_by_state() -> None:
    """Its stripes would be short and many: an inventory took 534 s that takes 23 s as nodes."""
    shop = inventory(capacity=12, max_order=6, max_demand=60, lead_time=1)
    assert isinstance(pkd.compile(shop), NodeEngine)


def test_a_long_queue_is_hidden() -> None:
    shop = inventory(capacity=6, max_order=3, max_demand=4, lead_time=5)
    assert isinstance(pkd.compile(shop), StripeEngine)
