"""A model and its law as one plain table: what is left when the structure is forgotten.

The states of the table are the decision states, CHANCE states are summed out, and rewards are
expected ones, so that every policy has the same value as before. Where time matters (a settlement,
a final pay, rewards before the first action) the states carry their step.
"""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np

from pkd.engine.nodes.engine import NodeEngine
from pkd.explore import explore
from pkd.graph import DECIDE, LAST, STEP
from pkd.model import Law, ModelError
from pkd.planning import Model
from pkd.problem import as_model, unpack
from pkd.sparse_table import SparseTable
from pkd.tabular import TabularMDP

__all__ = ["flatten"]

MOST_ENTRIES = 50_000_000  # of the table, S x A x S: 400 megabytes


@attrs.frozen
class Effect:
    """What a move amounts to until the next decision or end."""

    reward: float  # expected
    targets: dict[int, float]  # decision node -> probability; the rest of the mass has ended


def flatten(model: Model, law: Law | None = None, *, sparse: bool = False) -> TabularMDP:
    """The table of a model under a law; a state with fewer actions than another repeats its own.

    sparse: hold only what can follow, for tables that are too large for a plain array. A learner
    of such a table knows the successors.

    >>> import pkd
    >>> tosses = [[[0.5, 0.5], [1.0, 0.0]], [[0.5, 0.5], [0.0, 1.0]]]
    >>> coin = pkd.TabularMDP(tosses, [[0.0, 0.0], [1.0, 1.0]], horizon=3)
    >>> table = pkd.flatten(coin)
    >>> table.n_states, table.n_actions, pkd.plan(table).value  # both states and the end
    (3, 2, 1.25)
    """
    found, law = unpack(model, law)
    return _Flattener(NodeEngine(explore(as_model(found))), law).table(sparse)


class _Flattener:
    def __init__(self, compiled: NodeEngine, law: Law) -> None:
        self.compiled, self.graph, self.flat = compiled, compiled.graph, compiled.flat
        truth = compiled.truth(law).belief
        self.p, self.mean = truth.p, truth.mean
        self.passed: dict[tuple[bool, int], Effect] = {}
        self.steps, self.lasts = self._find_effects(STEP), self._find_effects(LAST)

    def _find_effects(self, part: int) -> dict[int, list[Effect]]:
        """What each action of the decisions of a part amounts to, by node."""
        flat, found = self.flat, {}
        for cell in np.flatnonzero(flat.part == part).tolist():
            actions = range(int(flat.action_ptr[cell]), int(flat.action_ptr[cell + 1]))
            found[int(flat.node[cell])] = [
                self._find_effect(a, settled=part == LAST) for a in actions
            ]
        return found

    def _find_effect(self, action: int, *, settled: bool) -> Effect:
        flat = self.flat
        reward = float(flat.reward[action])
        if flat.mean[action] >= 0:
            reward += float(self.mean[flat.mean[action]])
        targets: dict[int, float] = {}
        for k in range(int(flat.branch_ptr[action]), int(flat.branch_ptr[action + 1])):
            row, landing, p = int(flat.row[k]), int(flat.landing[k]), float(flat.p[k])
            nodes = flat.landing_node[
                flat.landing_ptr[landing] : flat.landing_ptr[landing + 1]
            ].tolist()
            law = self.p[flat.row_ptr[row] : flat.row_ptr[row + 1]].tolist()
            for node, q in zip(nodes, law, strict=True):
                if q > 0:
                    after = self._land(node, settled=settled)
                    reward += p * q * after.reward
                    for target, share in after.targets.items():
                        targets[target] = targets.get(target, 0.0) + p * q * share
        return Effect(reward, targets)

    def _land(self, node: int, *, settled: bool) -> Effect:
        """What follows once a node is reached, until the next decision or end."""
        if not settled and self.flat.kind[0][node] == DECIDE:
            return Effect(0.0, {node: 1.0})
        cell = int(self.flat.cell_of[2 if settled else 0][node])
        if cell < 0:
            return Effect(float(self.flat.final[int(settled)][node]), {})
        if (settled, node) not in self.passed:
            self.passed[settled, node] = self._find_effect(
                int(self.flat.action_ptr[cell]), settled=settled
            )
        return self.passed[settled, node]

    def table(self, sparse: bool) -> TabularMDP:
        """The table of the model."""
        start, early, ended = self._find_start()
        if not start:
            return self._end_at_once()
        timeless = not early and all(
            node not in self.steps
            or all(a.reward == b.reward for a, b in zip(self.steps[node], last, strict=True))
            for node, last in self.lasts.items()
        )
        horizon, side = self.graph.horizon, self.graph.layers
        deciders = [node for node, kind in enumerate(side.kind) if kind == DECIDE]
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
            last = (node not in self.steps) if timeless else t == horizon - 1
            effects = self.lasts[node] if last else self.steps[node]
            for a in range(width):
                effect = effects[a % len(effects)]
                r[i, a] = effect.reward + (early.get(node, 0.0) if t == 0 and not timeless else 0.0)
                targets = {} if last else effect.targets
                for target, q in targets.items():
                    after = place[0 if timeless else t + 1, target]
                    entries.append((i * width + a, after, q))
                entries.append((i * width + a, end, max(0.0, 1.0 - sum(targets.values()))))
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
        paid = sum(p * self._land(node, settled=False).reward for node, _, p in self.graph.start)
        rows = [[[0.0, 1.0]], [[0.0, 1.0]]]
        return TabularMDP(rows, [[paid], [0.0]], self.graph.horizon, state_names=["start", "end"])

    def _find_start(self) -> tuple[dict[int, float], dict[int, float], float]:
        """The law of the first decision state, what is paid there, and what an end at once is paid.

        What is paid before the first decision does not depend on the agent, so it may be paid
        anywhere as long as its mean is right: where most of the mass is, so that numbers stay
        small.
        """
        reached: dict[int, float] = {}
        whole = 0.0
        for node, _, p in self.graph.start:
            effect = self._land(node, settled=False)
            whole += p * effect.reward
            for target, q in effect.targets.items():
                reached[target] = reached.get(target, 0.0) + p * q
        total = sum(reached.values())
        if whole == 0.0:
            return reached, {}, 0.0
        if total < 0.5:
            return reached, {}, whole / (1 - total)
        return reached, dict.fromkeys(reached, whole / total), 0.0

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
