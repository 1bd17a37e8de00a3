"""A model and its law as one plain table: what is left when the structure is forgotten.

The states of the table are the decision states, CHANCE states are summed out, and rewards are expected ones, so that every policy has the
same value as before. Where time matters (a settlement, a final pay, rewards before the first action) the states carry their step.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs
import numpy as np

from pkd.compiled import Compiled
from pkd.flat_engine import FlatProgram
from pkd.graph import CHANCE_STATE, DECIDE, Arm, Side, explore
from pkd.model import Law
from pkd.planning import Model
from pkd.tabular import TabularMDP

__all__ = ["flatten"]


@attrs.frozen
class Effect:
    """What a move amounts to: the expected reward until the next decision or end, and where it leads."""

    reward: float
    targets: Mapping[int, float]  # decision node -> probability; the rest of the mass has ended


def flatten(model: Model, law: Law) -> TabularMDP:
    """The table of a model under a law; a state with fewer actions than another repeats its own in turn.

    >>> import pkd
    >>> coin = pkd.TabularMDP([[[0.5, 0.5], [1.0, 0.0]], [[0.5, 0.5], [0.0, 1.0]]], [[0.0, 0.0], [1.0, 1.0]], horizon=3)
    >>> table = pkd.flatten(coin.model(), coin.law())
    >>> table.n_states, table.n_actions, pkd.plan(table.model(), table.law()).value  # both states and the end
    (3, 2, 1.25)
    """
    return _Flattener(FlatProgram(explore(model.model if isinstance(model, Compiled) else model)), law).table()


class _Flattener:
    def __init__(self, compiled: FlatProgram, law: Law) -> None:
        self.compiled, self.graph = compiled, compiled.graph
        truth, ptr = compiled.truth(law), compiled.program.row_ptr
        self.rows = [truth.p[ptr[i] : ptr[i + 1]] for i in range(len(ptr) - 1)]
        self.mean = truth.mean
        self.passed: dict[tuple[bool, int], Effect] = {}
        layers = self.graph.layers
        self.steps = {node: self.effects(layers, arms) for node, arms in layers.arms.items() if layers.kind[node] == DECIDE}
        self.lasts = {node: self.effects(self.graph.settled, arms) for node, arms in self.graph.last_arms.items()}

    def table(self) -> TabularMDP:
        start, early = self.start()
        if not start:
            return self.decided()
        timeless = not early and all(
            node not in self.steps or all(abs(a.reward - b.reward) < 1e-12 for a, b in zip(self.steps[node], effects, strict=True))
            for node, effects in self.lasts.items()
        )
        horizon, layers = self.graph.horizon, self.graph.layers
        deciders = [node for node, kind in enumerate(layers.kind) if kind == DECIDE]
        if timeless:
            keys = [(0, node) for node in deciders]
        else:
            keys = [(t, node) for t in range(horizon) for node in deciders if self.graph.holds(t, node)]
        place = {key: i for i, key in enumerate(keys)}
        end = len(keys)
        width = max(len(self.compiled.actions[node]) for node in deciders)
        p, r = np.zeros((end + 1, width, end + 1)), np.zeros((end + 1, width))
        for (t, node), i in place.items():
            last = (node not in self.steps) if timeless else t == horizon - 1
            effects = self.lasts[node] if last else self.steps[node]
            for a in range(width):
                effect = effects[a % len(effects)]
                r[i, a] = effect.reward + (early.get(node, 0.0) if t == 0 and not timeless else 0.0)
                if not last:
                    for target, q in effect.targets.items():
                        p[i, a, place[0 if timeless else t + 1, target]] += q
                p[i, a, end] = max(0.0, 1.0 - p[i, a].sum())
        p[end, :, end] = 1.0
        first = np.zeros(end + 1)
        for node, q in start.items():
            first[place[0, node]] += q
        first[end] = max(0.0, 1.0 - first.sum())
        return TabularMDP(p, r, horizon, start=first, state_names=self.names(keys, timeless), action_names=self.action_names(width))

    def decided(self) -> TabularMDP:
        """The table of a model that ends before the first decision."""
        paid = sum(p * self.landing(self.graph.layers, node).reward for node, p in self.graph.start)
        return TabularMDP([[[0.0, 1.0]], [[0.0, 1.0]]], [[paid], [0.0]], self.graph.horizon, state_names=["start", "end"])

    def start(self) -> tuple[dict[int, float], dict[int, float]]:
        """The law of the first decision state, and what is paid on the way to it, per state."""
        reached: dict[int, float] = {}
        paid: dict[int, float] = {}
        whole = 0.0
        for node, p in self.graph.start:
            effect = self.landing(self.graph.layers, node)
            whole += p * effect.reward
            for target, q in effect.targets.items():
                reached[target] = reached.get(target, 0.0) + p * q
        total = sum(reached.values())
        if whole != 0.0 and total > 0.0:
            # Paid whatever the agent does, so it may be spread over the first decisions: the expected return is the same.
            paid = dict.fromkeys(reached, whole / total)
        return reached, paid

    def effects(self, side: Side, arms: list[Arm]) -> list[Effect]:
        return [self.effect(side, arm) for arm in arms]

    def effect(self, side: Side, arm: Arm) -> Effect:
        reward = arm.reward + (float(self.mean[arm.mean]) if arm.mean >= 0 else 0.0)
        targets: dict[int, float] = {}
        for p, row, y in arm.branches:
            law = self.rows[row if row >= 0 else len(self.graph.features) - 1 - row]
            for x, q in zip(self.graph.row_states(row), law, strict=True):
                if q > 0:
                    landing = self.landing(side, side.index[x, self.graph.ys[y]])
                    reward += p * q * landing.reward
                    for target, share in landing.targets.items():
                        targets[target] = targets.get(target, 0.0) + p * q * share
        return Effect(reward, targets)

    def landing(self, side: Side, node: int) -> Effect:
        """What follows once a node is reached, until the next decision or end."""
        if side.kind[node] == DECIDE:
            return Effect(0.0, {node: 1.0})
        if side.kind[node] != CHANCE_STATE:
            return Effect(side.final[node], {})
        key = (side is self.graph.settled, node)
        if key not in self.passed:
            self.passed[key] = self.effect(side, side.arms[node][0])
        return self.passed[key]

    def names(self, keys: list[tuple[int, int]], timeless: bool) -> list[str]:
        model = self.compiled.model
        names = []
        for t, node in keys:
            x, y = self.graph.layers.states[node]
            names.append(f"{model.x_label(x)} | {model.y_label(y)}" + ("" if timeless else f" @ {t + 1}"))
        return [*names, "end"]

    def action_names(self, width: int) -> list[str] | None:
        deciders = [node for node, kind in enumerate(self.graph.layers.kind) if kind == DECIDE]
        sets: set[tuple[Any, ...]] = {tuple(map(self.compiled.model.action_label, self.compiled.actions[node])) for node in deciders}
        return list(next(iter(sets))) if len(sets) == 1 and len(next(iter(sets))) == width else None
