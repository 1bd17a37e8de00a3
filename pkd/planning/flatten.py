"""A model and its law as one plain table: what is left when the structure is forgotten.

The states of the table are the decision states, CHANCE states are summed out, and rewards are
expected ones, so that every policy has the same value as before. Where time matters (a settlement,
a final pay, rewards before the first action) the states carry their step.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from pkd.check import explained
from pkd.engine.nodes.engine import NodeEngine
from pkd.explore import explore
from pkd.explore.graph import CHANCES, DECIDE, SETTLED
from pkd.explore.segments import spread
from pkd.model import Law, ModelError
from pkd.planning.plan import Model
from pkd.problem import as_model, unpack
from pkd.tables.sparse import SparseTable
from pkd.tables.tabular import TabularMDP

MOST_ENTRIES = 50_000_000  # of the table, S x A x S: 400 megabytes


def flatten(model: Model, law: Law | None = None, *, sparse: bool = False) -> TabularMDP:
    """The table of a model under a law; a state with fewer actions than another repeats its own.

    sparse: hold only what can follow, for tables that are too large for a plain array. A learner
    of such a table knows the successors.

    >>> import pkd
    >>> from pkd.tables.coin import coin
    >>> table = pkd.flatten(coin)
    >>> table.n_states, table.n_actions, pkd.plan(table).value  # both states and the end
    (3, 2, 1.25)
    """
    found, law = unpack(model, law)
    plain = as_model(found)
    with explained(plain):
        engine = NodeEngine(explore(plain))
    return _Flattener(engine, law).table(sparse)


class _Flattener:
    """What every action amounts to until the next decision or end.

    With M the law of the node after an action, W the same for CHANCE nodes, D the identity on
    decisions, and c what CHANCE nodes and ends pay,

        targets = M (D + W D + W^2 D + ...),    reward = r + M (c + W c + W^2 c + ...).
    """

    def __init__(self, compiled: NodeEngine, law: Law) -> None:
        from scipy.sparse import csr_array

        self.compiled, self.graph, flat = compiled, compiled.graph, compiled.flat
        self.flat, truth = flat, compiled.truth(law).belief
        beyond = len(flat.kind[0])  # nodes of the settlement are counted after those of the layers
        size, actions = beyond + len(flat.kind[1]), len(flat.reward)
        action = np.repeat(np.arange(actions), np.diff(flat.branch_ptr))
        branch, place = spread(flat.landing_ptr[flat.landing], flat.landing_ptr[flat.landing + 1])
        outcome = place - flat.landing_ptr[flat.landing][branch]
        p = flat.p[branch] * truth.p[flat.row_ptr[flat.row[branch]] + outcome]
        settles = np.array(self.graph.settling, bool)[flat.landing[branch]]
        node = flat.landing_node[place] + np.where(settles, beyond, 0)
        moves = csr_array((p, (action[branch], node)), shape=(actions, size))
        reward = flat.reward + np.append(truth.mean, 0.0)[flat.mean]
        cells = np.flatnonzero(flat.part >= CHANCES)
        cells = cells[np.diff(flat.branch_ptr)[flat.action_ptr[cells]] > 0]
        taken = flat.action_ptr[cells]
        at = flat.node[cells] + np.where(flat.part[cells] == SETTLED, beyond, 0)
        passing = csr_array((np.ones(len(at)), (at, taken)), shape=(size, actions))
        decides = np.flatnonzero(flat.kind[0] == DECIDE)
        stay = csr_array((np.ones(len(decides)), (decides, decides)), shape=(size, beyond))
        pay = np.concatenate(flat.final) + passing @ reward
        ahead, self.landing, self.paid = passing @ moves, stay, pay
        for _ in range(max(levels.max(initial=0) for levels in self.graph.levels)):
            self.landing, self.paid = ahead @ self.landing + stay, ahead @ self.paid + pay
        self.targets, self.reward = moves @ self.landing, reward + moves @ self.paid

    def _find_actions(self, node: int, *, last: bool) -> range:
        """The actions of a decision node, before the last step or there; none if it is not met."""
        cell = int(self.flat.cell_of[int(last)][node])
        ptr = self.flat.action_ptr
        return range(int(ptr[cell]), int(ptr[cell + 1])) if cell >= 0 else range(0)

    def _is_timeless(self, node: int) -> bool:
        """Whether a node pays in the last step what it pays before."""
        step, last = (self._find_actions(node, last=last) for last in (False, True))
        either = not (step and last)
        return either or bool(np.allclose(self.reward[step], self.reward[last], rtol=1e-12, atol=0))

    def table(self, sparse: bool) -> TabularMDP:
        """The table of the model."""
        start, early, ended = self._find_start()
        if not start:
            return self._end_at_once()
        horizon, side = self.graph.horizon, self.graph.layers
        deciders = np.flatnonzero(self.flat.kind[0] == DECIDE).tolist()
        timeless = not early and all(map(self._is_timeless, deciders))
        keys = [(0, node) for node in deciders]
        if not timeless:
            keys = [
                (t, node) for t in range(horizon) for node in deciders if self.graph.holds(t, node)
            ]
        place = {key: i for i, key in enumerate(keys)}
        n, width = len(keys), max(len(tuple(side.choices[node])) for node in deciders)
        at_once = n  # the state of episodes that end before the first decision, if they are paid
        end = n + 1 if ended else n
        if not sparse and (end + 1) ** 2 * width > MOST_ENTRIES:
            raise ModelError(
                f"the table of this model has {end + 1} states and {width} actions, too many for "
                "a plain array; give flatten(..., sparse=True)"
            )
        shape, r = (end + 1, width, end + 1), np.zeros((end + 1, width))
        entries: list[tuple[int, int, float]] = []  # (row of the table, successor, probability)
        for (t, node), i in place.items():
            step = self._find_actions(node, last=False)
            last = not step if timeless else t == horizon - 1
            actions = self._find_actions(node, last=True) if last else step
            for a in range(width):
                action, left = actions[a % len(actions)], 1.0
                r[i, a] = self.reward[action] + (early if t == 0 and not timeless else 0.0)
                for target, q in _read_row(self.targets, action) if not last else ():
                    entries.append((i * width + a, place[0 if timeless else t + 1, target], q))
                    left -= q
                entries.append((i * width + a, end, max(0.0, left)))
        entries += [(row, end, 1.0) for row in range(at_once * width, (end + 1) * width)]
        table = SparseTable.of_entries(shape, *map(list, zip(*entries, strict=True)))
        first = np.zeros(end + 1)
        for node, q in start.items():
            first[place[0, node]] += q
        first[at_once] = max(0.0, 1.0 - first.sum())
        r[at_once] = ended
        return TabularMDP(
            table if sparse else np.asarray(table), r, horizon, start=first,
            state_names=self._name_states(keys, timeless, ended),
            action_names=self._name_actions(deciders, width),
        )  # fmt: skip

    def _end_at_once(self) -> TabularMDP:
        """The table of a model that ends before the first decision."""
        paid = sum(p * self.paid[node] for node, _, p in self.graph.start)
        rows = [[[0.0, 1.0]], [[0.0, 1.0]]]
        return TabularMDP(rows, [[paid], [0.0]], self.graph.horizon, state_names=["start", "end"])

    def _find_start(self) -> tuple[dict[int, float], float, float]:
        """The law of the first decision state, what is paid there, and what an end at once is paid.

        What is paid before the first decision does not depend on the agent, so it may be paid
        anywhere as long as its mean is right: where most of the mass is, so that numbers stay
        small.
        """
        reached: dict[int, float] = {}
        for node, _, p in self.graph.start:
            for target, q in _read_row(self.landing, node):
                reached[target] = reached.get(target, 0.0) + p * q
        whole = float(sum(p * self.paid[node] for node, _, p in self.graph.start))
        total = sum(reached.values())
        if whole == 0.0:
            return reached, 0.0, 0.0
        if total < 0.5:
            return reached, 0.0, whole / (1 - total)
        return reached, whole / total, 0.0

    def _name_states(self, keys: list[tuple[int, int]], timeless: bool, ended: float) -> list[str]:
        model, names = self.compiled.model, []
        for t, node in keys:
            x, y = self.graph.state(self.graph.layers, node)
            step = "" if timeless else f" @ {t + 1}"
            names.append(f"{model.x_label(x)} | {model.y_label(y)}{step}")
        return [*names, *(["end at once"] if ended else []), "end"]

    def _name_actions(self, deciders: list[int], width: int) -> list[str] | None:
        label, side = self.compiled.model.action_label, self.graph.layers
        sets: set[tuple[Any, ...]] = {tuple(map(label, side.choices[node])) for node in deciders}
        names = next(iter(sets))
        return list(names) if len(sets) == 1 and len(names) == width else None


def _read_row(matrix: Any, row: int) -> Iterator[tuple[int, float]]:
    """(column, value) of the positive entries of a row."""
    at = slice(matrix.indptr[row], matrix.indptr[row + 1])
    columns, values = matrix.indices[at].tolist(), matrix.data[at].tolist()
    return ((j, q) for j, q in zip(columns, values, strict=True) if q > 0)
