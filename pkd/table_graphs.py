"""Tables from and for two neighbours: QuantEcon's `DiscreteDP`, and networkx graphs.

Readers return the keyword arguments of `TabularMDP`, which validates them. Neither library is
imported before it is needed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from pkd.model import ModelError
from pkd.sparse_table import SparseTable, is_sparse

if TYPE_CHECKING:
    import networkx

    from pkd.tabular import TabularMDP

__all__ = ["make_networkx", "make_quantecon", "read_networkx", "read_quantecon"]

EDGE = ("action", "probability", "reward")


def read_quantecon(ddp: Any, horizon: int, start: Any) -> dict[str, Any]:
    """The table of a DiscreteDP: product form, or state-action pairs, dense or sparse."""
    if not all(hasattr(ddp, name) for name in ("R", "Q", "beta", "num_states")):
        raise ModelError(f"expected a quantecon DiscreteDP, found {type(ddp).__name__}")
    given = {"horizon": horizon, "start": start, "discount": float(ddp.beta)}
    pairs = getattr(ddp, "s_indices", None)
    if pairs is None:
        return {"transitions": ddp.Q, "rewards": ddp.R, **given}
    s, a = np.asarray(ddp.s_indices, np.int64), np.asarray(ddp.a_indices, np.int64)
    n, n_actions = int(ddp.num_states), int(a.max()) + 1
    rewards = np.full((n, n_actions), -np.inf)
    rewards[s, a] = ddp.R
    if is_sparse(ddp.Q):
        q = ddp.Q.tocoo()
        pair, column, p = q.row.astype(np.int64), q.col, q.data
    else:
        pair, column = np.nonzero(ddp.Q)
        p = np.asarray(ddp.Q)[pair, column]
    rows = (s * n_actions + a)[pair]
    table = SparseTable.of_entries((n, n_actions, n), rows, column, p)
    return {"transitions": table, "rewards": rewards, **given}


def make_quantecon(mdp: TabularMDP) -> Any:
    """A DiscreteDP of state-action pairs: those on offer, with sparse Q."""
    try:
        from quantecon.markov import DiscreteDP
    except ImportError:
        raise ModelError("to_quantecon() needs QuantEcon; pip install quantecon") from None
    rows = SparseTable.of(mdp.transitions).scipy()
    s, a = np.nonzero(mdp.on_offer)
    q = rows[s * mdp.n_actions + a]
    return DiscreteDP(mdp.rewards[s, a], q, float(mdp.discount), s, a)


def read_networkx(graph: networkx.Graph[Any], horizon: int, start: Any) -> dict[str, Any]:
    """The table of a directed graph whose edges carry action, probability and reward."""
    if not (hasattr(graph, "edges") and graph.is_directed()):
        raise ModelError(
            f"expected a directed networkx graph (nx.MultiDiGraph), found {type(graph).__name__}"
        )
    place = {node: i for i, node in enumerate(graph)}
    found = [
        f"the edge {s!r} -> {t!r} has no {name}; expected action, probability and reward"
        for s, t, data in graph.edges(data=True)
        for name in EDGE
        if name not in data
    ]
    if not place:
        found.append("the graph has no nodes; expected one for each state")
    if found:
        raise ModelError(found)
    actions: dict[Any, int] = {}
    for _, _, data in graph.edges(data=True):
        actions.setdefault(data["action"], len(actions))
    actions = actions or {"stay": 0}
    n, n_actions = len(place), len(actions)
    rewards, rows, columns, p = np.zeros((n, n_actions)), [], [], []
    tried = np.zeros((n, n_actions), bool)
    for s, t, data in graph.edges(data=True):
        at, a = place[s], actions[data["action"]]
        tried[at, a] = True
        rewards[at, a] += data["probability"] * data["reward"]
        rows.append(at * n_actions + a)
        columns.append(place[t])
        p.append(float(data["probability"]))
    for at in np.flatnonzero(~tried.any(axis=1)).tolist():
        tried[at, 0] = True
        rows.append(at * n_actions)
        columns.append(at)
        p.append(1.0)
    return {
        "transitions": SparseTable.of_entries((n, n_actions, n), rows, columns, p),
        "rewards": np.where(tried, rewards, -np.inf),
        "horizon": horizon,
        "start": _read_start(place, start),
        "state_names": list(place),
        "action_names": list(actions),
    }


def make_networkx(mdp: TabularMDP) -> networkx.MultiDiGraph[Any]:
    """The graph of a table: nodes in the order of states, one edge for each (s, a, s')."""
    import networkx

    graph: networkx.MultiDiGraph[Any] = networkx.MultiDiGraph()
    names: Any = mdp.state_names or range(mdp.n_states)
    if len(set(names)) < mdp.n_states:
        raise ModelError("two states have the same name; nodes of a graph need different ones")
    actions: Any = mdp.action_names or range(mdp.n_actions)
    graph.add_nodes_from(names)
    law = mdp.law()
    for s, a in np.argwhere(mdp.on_offer).tolist():
        for t, p in law[s, a].items():
            graph.add_edge(
                names[s],
                names[t],
                action=actions[a],
                probability=p,
                reward=float(mdp.rewards[s, a]),
            )
    return graph


def _read_start(place: Mapping[Any, int], start: Any) -> Any:
    """A node, or {node: probability}, as a state or a distribution; None: the first node."""
    if start is None:
        return 0
    law = start if isinstance(start, Mapping) else {start: 1.0}
    unknown = [node for node in law if node not in place]
    if unknown:
        raise ModelError(f"start: {unknown[0]!r} is no node of the graph")
    if not isinstance(start, Mapping):
        return place[start]
    first = np.zeros(len(place))
    for node, p in law.items():
        first[place[node]] += p
    return first
