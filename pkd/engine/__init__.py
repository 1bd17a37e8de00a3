"""Compiled models: exploring a model, and choosing the engine that fits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

from pkd.adapters import Table, find_table
from pkd.check import explained
from pkd.engine.compiled import Compiled
from pkd.expect import flag, if_given, require
from pkd.explore import QueuesMatterError, explore, has_queue
from pkd.explore.limits import find_max_states
from pkd.model import Law, PartiallyKnownMDP
from pkd.problem import Problem, read

if TYPE_CHECKING:
    from pkd.explore.graph import Graph

__all__ = ["Choice", "Compiled", "choose", "compile"]

# Up to this many states the engine of nodes is used: its sweeps of small models are faster.
FEW_STATES = 5_000


def compile(
    model: PartiallyKnownMDP | Compiled | Problem | str | tuple[PartiallyKnownMDP, Law],
    large: bool | None = None,
    max_states: int | None = None,
) -> Compiled:
    """The compiled form of a model, which all functions of `pkd` accept in its place.

    large: True for the engine of large models (stripes), False for that of small ones (nodes); by
    default the core decides. A compiled model is returned as it is; a problem gives its model.
    max_states: states that may be held apart, by default as many as fit into half of the memory, or
    as PKD_MAX_STATES says. `engine` is the name of the engine, "table", "nodes" or "stripes", and
    `why` says why it was chosen.

    >>> import pkd
    >>> from pkd.tables.coin import coin
    >>> compiled = pkd.compile(coin.model())
    >>> compiled.n_states, compiled.features, pkd.plan(compiled, coin.law()).value
    (2, [(0, 0), (0, 1), (1, 0), (1, 1)], 1.25)
    """
    found, _ = read(model)
    if isinstance(found, Compiled):
        return found
    require(if_given(flag, "large", large))
    find_max_states(max_states)  # a bad limit is not the fault of the model
    with explained(found):
        return _make_engine(choose(found, large, max_states), found, max_states)


class Choice(NamedTuple):
    """Which engine a model gets, and why; the graph, if it was explored for this choice."""

    engine: Literal["table", "nodes", "stripes"]
    why: str
    graph: Graph | None = None
    table: Table | None = None


def choose(
    model: PartiallyKnownMDP, large: bool | None = None, max_states: int | None = None
) -> Choice:
    """The engine that `compile` takes for a model."""
    table = None if large else find_table(model)
    if table is not None:
        return Choice("table", "the model is a table", table=table)
    if large is None and not has_queue(model):
        return Choice("nodes", "no y of a start state holds a pkd.Queue")
    if large is False:
        return Choice("nodes", "large=False was asked for")
    asked = "large=True was asked for"
    try:
        graph = explore(model, hide_queues=True, max_states=max_states)
        # A cycle of CHANCE states that only hidden queues have is an error.
        graph.levels  # noqa: B018
    except QueuesMatterError as error:
        why = f"the queue was not hidden: {error}"
        return Choice("stripes", f"{asked}; {why}") if large else Choice("nodes", why)
    if not graph.exact:
        why = "the queue was not hidden: which entries it can hold depends on its other entries"
        return Choice("stripes", f"{asked}; {why}") if large else Choice("nodes", why)
    if large:
        return Choice("stripes", asked, graph)
    if graph.n_states <= FEW_STATES:
        return Choice("nodes", f"{graph.n_states:,} states are few ({FEW_STATES:,} at most)")
    if not graph.pays_hiding():
        return Choice("nodes", "hiding the queue spares few questions: moves read most entries")
    return Choice("stripes", "the queue was hidden, which spares most questions", graph)


def _make_engine(choice: Choice, model: PartiallyKnownMDP, max_states: int | None) -> Compiled:
    from pkd.engine.nodes.engine import NodeEngine
    from pkd.engine.stripes.engine import StripeEngine
    from pkd.engine.table.engine import TableEngine

    made: Compiled
    if choice.table is not None:
        made = TableEngine(model, choice.table, max_states)
    else:
        graph = choice.graph or explore(model, max_states=max_states)
        made = (StripeEngine if choice.engine == "stripes" else NodeEngine)(graph)
    made.why = choice.why
    return made
