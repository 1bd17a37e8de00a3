"""The one walk over the contract: every state, feature and move that can occur, and in which layer.

Layer t = h - 1 holds the states in which the h-th action is about to be chosen, with the CHANCE
states before it. After the last action comes the settlement, whose states are kept apart because
`last_step` rules there. Nothing unreachable is asked of the model, and one walk asks each
question once.

The words block, node, cell and landing are explained in `pkd.explore.graph`.

A worked example: x is a coin (0 or 1), y is `Queue((a,))`, the last action, and `step` returns
`[(1.0, queue.push(b).pop(), ("coin", queue.oldest))]`. An explicit walk finds 2 x 2 nodes,
(0, (0)), (0, (1)), (1, (0)), (1, (1)), with one cell each. With hidden queues there is one block
(length 1) and two nodes; `oldest` looks, so each node has a cell for the entry 0 and one for the
entry 1. In the cell of entry 0, action b leads to the landing {0, 1} x block with the back (b,).
"""

from __future__ import annotations

import gc
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from pkd.explore.graph import Graph, QueuesMatterError
from pkd.explore.index import Manner, TooManyStatesError, is_pair, overrides
from pkd.explore.limits import TooLargeError, find_max_bytes, find_max_states
from pkd.explore.walk import read_start, walk
from pkd.model import PartiallyKnownMDP
from pkd.progress import count
from pkd.queue import find_queue

__all__ = [
    "QueuesMatterError", "TooLargeError", "TooManyStatesError", "explore", "has_queue", "is_pair",
    "overrides", "read_start",
]  # fmt: skip


def explore(
    model: PartiallyKnownMDP,
    *,
    hide_queues: bool = False,
    max_states: int | None = None,
    strict: bool = True,
) -> Graph:
    """The graph of everything that can be reached.

    hide_queues: walk over blocks instead of single y. max_states: nodes from which on the walk
    gives up with a `TooManyStatesError`; by default what PKD_MAX_STATES says, or what fits into
    half of the memory. strict: answers are checked as they are used. `pkd.check.explained` says all
    that is wrong with a model on which this raises.

    >>> import pkd
    >>> from pkd.tables.coin import coin
    >>> graph = explore(coin.model())
    >>> graph.n_states, graph.features, list(graph.decision_states(2))
    (2, [(0, 0), (0, 1), (1, 0), (1, 1)], [(0, None), (1, None)])
    """
    manner = Manner(hide_queues, find_max_states(max_states), find_max_bytes(max_states), strict)
    with _no_collection(), count("exploring") as progress:
        return walk(model, manner, progress)


def has_queue(model: PartiallyKnownMDP) -> bool:
    """Whether the y of a start state holds a `Queue`."""
    try:
        start = model.start()
        states = list(start) if isinstance(start, Mapping) else [start]
    except Exception:  # noqa: BLE001 - the explorer asks again and says what is wrong
        return False
    return any(find_queue(state[1]) is not None for state in states if is_pair(state))


@contextmanager
def _no_collection() -> Iterator[None]:
    """Switches the cycle collector off: it would scan objects again and again that all stay."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
