"""Compiled models: exploring a model, and choosing the engine that fits."""

from __future__ import annotations

from pkd.engine.compiled import Compiled
from pkd.explore import QueuesMatterError, explore, has_queue
from pkd.limits import Progress, TooLargeError, find_max_states
from pkd.model import Law, PartiallyKnownMDP
from pkd.problem import Problem, read

__all__ = ["Compiled", "compile"]

# Up to this many states the engine of nodes is used: its sweeps of small models are faster.
FEW_STATES = 5_000


def compile(
    model: PartiallyKnownMDP | Compiled | Problem | str | tuple[PartiallyKnownMDP, Law],
    large: bool | None = None,
    progress: Progress | None = None,
    max_states: int | None = None,
) -> Compiled:
    """The compiled form of a model, which all functions of `pkd` accept in its place.

    large: True for the engine of large models (stripes), False for that of small ones (nodes); by
    default the core decides. A compiled model is returned as it is; a problem gives its model.
    progress: called with the number of states that have been found. max_states: states that may be
    held apart, by default as many as fit into half of the memory, or as PKD_MAX_STATES says.

    >>> import pkd
    >>> tosses = [[[0.5, 0.5], [1.0, 0.0]], [[0.5, 0.5], [0.0, 1.0]]]
    >>> coin = pkd.TabularMDP(tosses, [[0.0, 0.0], [1.0, 1.0]], horizon=3)
    >>> compiled = pkd.compile(coin.model())
    >>> compiled.n_states, compiled.features, pkd.plan(compiled, coin.law()).value
    (2, [(0, 0), (0, 1), (1, 0), (1, 1)], 1.25)
    """
    found, _ = read(model)
    if isinstance(found, Compiled):
        return found
    find_max_states(max_states)  # a bad limit is not the fault of the model
    try:
        return _choose(found, large, progress, max_states)
    except (TooLargeError, MemoryError):
        raise
    except Exception:
        from pkd.check import explain

        explain(found)  # the same finding in the words of the check
        raise


def _choose(
    model: PartiallyKnownMDP, large: bool | None, progress: Progress | None, most: int | None
) -> Compiled:
    if large or (large is None and has_queue(model)):
        found = _try_stripes(model, bool(large), progress, most)
        if found is not None:
            return found
    from pkd.engine.nodes.engine import NodeEngine

    return NodeEngine(explore(model, progress=progress, max_states=most))


def _try_stripes(
    model: PartiallyKnownMDP, wanted: bool, progress: Progress | None, most: int | None
) -> Compiled | None:
    """The model as stripes, where that pays or is wanted; None: keep every state apart."""
    from pkd.engine.stripes.engine import StripeEngine

    try:
        graph = explore(model, hide_queues=True, progress=progress, max_states=most)
        if graph.exact and (wanted or (graph.n_states > FEW_STATES and graph.pays_hiding())):
            return StripeEngine(graph)
    except QueuesMatterError:
        pass
    if not wanted:
        return None
    return StripeEngine(explore(model, progress=progress, max_states=most))
