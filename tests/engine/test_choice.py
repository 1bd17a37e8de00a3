"""Which engine `pkd.compile` chooses: stripes where hidden queues spare most of the questions."""

from __future__ import annotations

from typing import Any

import pytest

import pkd
import pkd.engine
import pkd.explore.graph
import pkd_delay
from pkd.cli import main
from pkd.engine.nodes.engine import NodeEngine
from pkd.engine.stripes.engine import StripeEngine
from pkd.explore import explore, graph
from pkd.explore.graph import CHANCES, STEP, Graph
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
    monkeypatch.setattr(graph, "WORTH_HIDING", ratio)
    assert hidden.pays_hiding()
    monkeypatch.setattr(graph, "WORTH_HIDING", ratio * (1 + 1e-9))
    assert not hidden.pays_hiding()


def test_a_short_queue_beside_many_outcomes_is_kept_apart_state_by_state() -> None:
    """Its stripes would be short and many: an inventory took 534 s that takes 23 s as nodes."""
    shop = inventory(capacity=12, max_order=6, max_demand=60, lead_time=1)
    compiled = pkd.compile(shop)
    assert isinstance(compiled, NodeEngine)
    assert (compiled.engine, "spares few questions" in compiled.why) == ("nodes", True)


def test_a_long_queue_is_hidden() -> None:
    shop = inventory(capacity=6, max_order=3, max_demand=4, lead_time=5)
    assert isinstance(pkd.compile(shop), StripeEngine)


class Lag(pkd.PartiallyKnownMDP):
    """A command takes effect two steps later; y is a level and the commands on their way."""

    horizon = 6

    def start(self) -> Any:
        return 0, (4, pkd.Queue((0, 0)))

    def actions(self, x: Any, y: Any) -> Any:
        return (0, 1, 2)

    def step(self, x: Any, y: Any, a: Any) -> Any:
        level, sent = y[0], y[1].push(a)
        return [(1.0, (min(max(level + sent.oldest - x, 0), 8), sent.pop()), "flow")]

    def outcomes(self, z: Any) -> Any:
        return (0, 1, 2)

    def reward(self, x: Any, y: Any, a: Any) -> float:
        return float(3 <= y[0] <= 5)


class Guarded(Lag):
    """What can be done depends on the command that takes effect next."""

    def actions(self, x: Any, y: Any) -> Any:
        return (0, 1) if y[1].oldest == 2 else (0, 1, 2)


FLOW = {"flow": {0: 0.2, 1: 0.5, 2: 0.3}}
DELAYED = pkd_delay.Delayed.constant((Lag(), FLOW), 3)
WRAPPED = {
    "delayed": (DELAYED.known(), DELAYED.law()),
    "discounted": (pkd.discounted(Lag(), 0.9), FLOW),
}


@pytest.mark.parametrize(("model", "law"), WRAPPED.values(), ids=WRAPPED)
def test_the_queue_of_a_base_stays_hidden_in_a_wrapper(
    model: Any, law: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pkd.engine, "FEW_STATES", 100)
    monkeypatch.setattr(graph, "WORTH_HIDING", 1)
    compiled = pkd.compile(model)
    assert compiled.engine == "stripes", compiled.why
    explicit = pkd.compile(model, large=False)
    assert (explicit.engine, explicit.why) == ("nodes", "large=False was asked for")
    value = pkd.plan(compiled, law).value
    assert value == pytest.approx(pkd.plan(explicit, law).value, rel=1e-12)
    assert value > 0


def test_an_engine_says_where_a_queue_was_read(capsys: pytest.CaptureFixture[str]) -> None:
    compiled = pkd.compile(Guarded())
    assert compiled.why.startswith("the queue was not hidden: actions(x=0, y=(4, queue)) reads")
    assert main(["check", f"{__name__}:Guarded"]) == 0
    assert " ".join(compiled.why.split()) in " ".join(capsys.readouterr().out.split())
