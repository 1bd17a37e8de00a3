"""A `TabularMDP` as text for other programs: Storm's explicit format (DRN), the language of PRISM,
and Cassandra's .pomdp; and as QuantEcon's `DiscreteDP` or a networkx graph.

All take one table without a clock and, DRN and PRISM, without a discount: `unroll` makes the clock
a part of the state and the discount a chance of ending. Numbers are written with all their digits.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from pkd.model import ModelError
from pkd.tables.sparse import SparseTable

if TYPE_CHECKING:
    import networkx

    from pkd.tables.tabular import TabularMDP

__all__ = ["make_networkx", "make_quantecon", "unroll", "write_drn", "write_pomdp", "write_prism"]


def write_drn(mdp: TabularMDP) -> str:
    """The text of a .drn file: one state per state, its actions with their reward.

    A random start is one more state, the first one, with one action that pays nothing.
    """
    choices = list(_list_choices(mdp))
    drawn = isinstance(mdp.start, np.ndarray)
    n_states = mdp.n_states + drawn
    lines = [
        f"// {_say_sizes(mdp)}",
        "@type: MDP",
        "@parameters",
        "",
        "@reward_models",
        "reward",
        "@nr_states",
        str(n_states),
        "@nr_choices",
        str(len(choices) + drawn),
        "@model",
    ]
    first = n_states - 1 if drawn else int(mdp.start)
    last = -1
    for s, a, r, row in choices:
        if s != last:
            lines.append(f"state {s} [0]{' init' if s == first else ''}")
            last = s
        lines.append(f"\taction {a} [{r!r}]")
        lines += [f"\t\t{t} : {p!r}" for t, p in row.items()]
    if drawn:
        lines += [f"state {first} [0] init", "\taction 0 [0]"]
        lines += [f"\t\t{s} : {p!r}" for s, p in _list_start(mdp)]
    return "\n".join(lines) + "\n"


def write_prism(mdp: TabularMDP) -> str:
    """The text of a PRISM model: one variable s, one command for each (s, a)."""
    choices = list(_list_choices(mdp))
    drawn = isinstance(mdp.start, np.ndarray)
    last = mdp.n_states - 1 + drawn
    first = last if drawn else int(mdp.start)
    lines = [f"// {_say_sizes(mdp)}", "mdp", "", "module table", f"  s : [0..{last}] init {first};"]
    lines += [f"  [a{a}] s={s} -> {_write_updates(row)};" for s, a, _, row in choices]
    if drawn:
        lines.append(f"  [a0] s={first} -> {_write_updates(dict(_list_start(mdp)))};")
    lines += ["endmodule", "", 'rewards "reward"']
    lines += [f"  [a{a}] s={s} : {r!r};" for s, a, r, _ in choices if r != 0]
    return "\n".join([*lines, "endrewards"]) + "\n"


def write_pomdp(mdp: TabularMDP) -> str:
    """The text of a .pomdp file in which every state is seen.

    The format has the same actions everywhere: one that is not on offer does what the first one on
    offer does.
    """
    n, n_actions = mdp.n_states, mdp.n_actions
    lines = [
        f"# {_say_sizes(mdp)}",
        f"discount: {float(mdp.discount)!r}",
        "values: reward",
        f"states: {n}",
        f"actions: {n_actions}",
        f"observations: {n}",
        "start: " + " ".join(repr(p) for p in mdp.start_distribution.tolist()),
    ]
    found = {(s, a): (r, row) for s, a, r, row in _list_choices(mdp)}
    rewards = []
    for s in range(n):
        offered = [a for a in range(n_actions) if (s, a) in found]
        for a in range(n_actions):
            r, row = found.get((s, a), found[s, offered[0]])
            lines += [f"T: {a} : {s} : {t} {p!r}" for t, p in row.items()]
            if r != 0:
                rewards.append(f"R: {a} : {s} : * : * {r!r}")
    lines += [f"O: * : {s} : {s} 1.0" for s in range(n)]
    return "\n".join([*lines, *rewards]) + "\n"


def make_quantecon(mdp: TabularMDP) -> Any:
    """A DiscreteDP of state-action pairs: those on offer, with sparse Q."""
    try:
        from quantecon.markov import DiscreteDP
    except ImportError:
        raise ModelError("to_quantecon() needs QuantEcon; pip install quantecon") from None
    rows = SparseTable.of(mdp.transitions).matrix
    s, a = np.nonzero(mdp.on_offer)
    q = rows[s * mdp.n_actions + a]
    return DiscreteDP(mdp.rewards[s, a], q, float(mdp.discount), s, a)


def make_networkx(mdp: TabularMDP) -> networkx.MultiDiGraph[Any]:
    """The graph of a table: nodes in the order of states, one edge for each (s, a, s')."""
    try:
        import networkx
    except ImportError:
        raise ModelError("to_networkx needs networkx: pip install pkd[graphs]") from None

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


def _list_choices(mdp: TabularMDP) -> Iterator[tuple[int, int, float, dict[int, float]]]:
    """(s, a, r(s, a), {s': probability}) of the pairs that are on offer."""
    law = mdp.law()
    for s, a in np.argwhere(mdp.on_offer).tolist():
        yield s, a, float(mdp.rewards[s, a]), dict(law[s, a])


def _list_start(mdp: TabularMDP) -> list[tuple[int, float]]:
    return [(s, p) for s, p in enumerate(mdp.start_distribution.tolist()) if p > 0]


def _write_updates(row: dict[int, float]) -> str:
    return " + ".join(f"{p!r}:(s'={t})" for t, p in row.items())


def _say_sizes(mdp: TabularMDP) -> str:
    sizes = f"{mdp.n_states} states, {mdp.n_actions} actions, finite horizon: {mdp.horizon} actions"
    return f"{sizes}, discount {mdp.discount:g}" if mdp.discount < 1 else sizes


def unroll(mdp: TabularMDP, discounted: bool) -> dict[str, Any]:
    """The arguments of the table whose states are (t, s), and "end" for discounted episodes."""
    table = SparseTable.of(mdp.transitions)
    n_tables, n, n_actions = mdp.n_tables, mdp.n_states, mdp.n_actions
    size = n_tables * n + discounted
    go_on = mdp.discount if discounted else 1.0
    rows_of_all = np.repeat(np.arange(table.matrix.shape[0]), table.lengths.ravel())
    rows, columns, p = [], [], []
    for t in range(n_tables):
        here = slice(None)
        if table.ndim == 4:
            per = n * n_actions
            here = slice(int(table.matrix.indptr[t * per]), int(table.matrix.indptr[(t + 1) * per]))
        rows.append(rows_of_all[here] % (n * n_actions) + t * n * n_actions)
        columns.append(table.matrix.indices[here] + (t + 1) % n_tables * n)
        p.append(table.matrix.data[here] * go_on)
    if discounted:
        ending = np.arange(n_tables * n * n_actions)
        rows += [ending, np.arange(len(ending), len(ending) + n_actions)]
        columns += [np.full(len(ending) + n_actions, size - 1)]
        p += [np.full(len(ending), 1.0 - mdp.discount), np.ones(n_actions)]
    rewards = np.zeros((size, n_actions))
    rewards[: n_tables * n] = np.broadcast_to(mdp.rewards, (n_tables, n, n_actions)).reshape(
        -1, n_actions
    )
    entries = np.concatenate(rows), np.concatenate(columns), np.concatenate(p)
    kept = SparseTable.of_entries((size, n_actions, size), *entries)
    start = np.zeros(size)
    start[:n] = mdp.start_distribution
    return {
        "transitions": kept,
        "rewards": rewards,
        "horizon": mdp.horizon,
        "start": start if isinstance(mdp.start, np.ndarray) else mdp.start,
        "state_names": _name_unrolled(mdp, discounted),
        "action_names": mdp.action_names,
        "discount": 1.0 if discounted else mdp.discount,
    }


def _name_unrolled(mdp: TabularMDP, discounted: bool) -> list[str]:
    names = mdp.state_names or [str(s) for s in range(mdp.n_states)]
    clock = [f" @ {t}" if mdp.n_tables > 1 else "" for t in range(mdp.n_tables)]
    return [f"{name}{at}" for at in clock for name in names] + ["end"] * discounted
