"""What a delay must know of the model that it delays, read off the graph of its reachable states.

The agent chooses before it sees the state that its action will meet. So the base must offer the
same actions everywhere, or the user must say what is done instead of an action that is not on
offer. The adapters read nothing of this module but `survey` and `BaseFacts`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

import attrs

from pkd import Law, ModelError, PartiallyKnownMDP, Problem, check, explore
from pkd.explore import graph as core
from pkd.explore import sizes
from pkd.explore.graph import Graph
from pkd.wrapped import Instead

__all__ = ["Base", "BaseFacts", "Instead", "State", "do_first", "survey"]

State = tuple[Any, Any]  # (x, y) of the base
# What an adapter delays: a model, or a problem (an object, a pair, a registered name) with a model.
Base = PartiallyKnownMDP | Problem | str | tuple[PartiallyKnownMDP, Law]


@attrs.frozen
class BaseFacts:
    """Facts about the reachable part of a base model."""

    actions: tuple[Any, ...]  # what the agent may choose, whatever it has not seen
    # Each decision state: the first step at which it can occur, and the first one from 2 on.
    decisions: Mapping[State, tuple[int, float]]
    n_y: int  # distinct reachable y
    n_states: int  # distinct reachable (x, y)
    features: tuple[Any, ...]  # distinct unknown features of x'
    tabular: bool  # one y, no CHANCE, no END, no final pay: the paper's own case
    unit_rewards: bool  # every reward lies in [0, 1]
    most_samples: int  # the most samples of one feature that an episode teaches

    @property
    def n_features(self) -> int:
        """The number of distinct unknown features."""
        return len(self.features)


def survey(base: PartiallyKnownMDP, instead: Instead = None) -> BaseFacts:
    """The facts about a base; ModelError if an action that the agent may queue cannot be done."""
    with check.explained(base):
        graph = explore.explore(base)
    side = graph.layers
    decisions = _find_steps(graph)
    if not decisions:
        raise ModelError(
            f"{type(base).__name__} has no decision state, so there is nothing to delay; "
            "expected at least one"
        )
    states = {graph.state(part, i) for part in (side, graph.settled) for i in range(len(part.x))}
    offers = {graph.state(side, node): tuple(side.choices[node]) for node in decisions}
    ends = [cells.reward[i] for part, cells in enumerate(graph.cells) for i in _stops(graph, part)]
    chances = any(kind == core.CHANCE_STATE for part in (side, graph.settled) for kind in part.kind)
    early = any(kind == core.STOP for kind in side.kind)
    paid = [r for cells in graph.cells for r in cells.reward]
    paid += [limit for reward in graph.rewards for limit in (reward.low, reward.high)]
    return BaseFacts(
        actions=_find_common_actions(base, offers, instead),
        decisions={graph.state(side, node): steps for node, steps in decisions.items()},
        n_y=graph.n_y,
        n_states=len(states),
        features=tuple(graph.features),
        tabular=graph.n_y == 1 and not chances and not early and not any(ends),
        unit_rewards=min(paid) >= 0.0 and max(paid) <= 1.0,
        most_samples=base.most_samples() or sizes.find_most_visits(graph),
    )


def _find_steps(graph: Graph) -> dict[int, tuple[int, float]]:
    """Each decision node: the first step at which it can occur, and the first one from 2 on."""
    first: dict[int, int] = {}
    again: dict[int, int] = {}
    seen: set[int] = set()
    for h, layer in enumerate(graph.members, start=1):
        if h > 2 and id(layer) in seen:
            continue
        seen |= {id(layer)} if h > 1 else set()
        for node in layer:
            if graph.layers.kind[node] == core.DECIDE:
                first.setdefault(node, h)
                if h > 1:
                    again.setdefault(node, h)
    return {node: (h, again.get(node, math.inf)) for node, h in first.items()}


def _stops(graph: Graph, part: int) -> Iterable[int]:
    """The actions of a part that only say what stopping pays."""
    side, cells = (graph.settled if part == core.SETTLED else graph.layers), graph.cells[part]
    return (
        cells.action_ptr[i] for i, node in enumerate(cells.node) if side.kind[node] == core.STOP
    )


def _find_common_actions(
    base: PartiallyKnownMDP, offers: Mapping[State, tuple[Any, ...]], instead: Instead
) -> tuple[Any, ...]:
    first, common = next(iter(offers.items()))
    if instead is None:
        for (x, y), offer in offers.items():
            if offer != common:
                raise ModelError(
                    f"{type(base).__name__}.actions(x={x!r}, y={y!r}) is {list(offer)!r} but "
                    f"actions(x={first[0]!r}, y={first[1]!r}) is {list(common)!r}; a delayed agent "
                    "chooses before it sees the state, so all decision states must offer the same "
                    "actions, or `instead=(x, y, a) -> action` must say what is done when a is not "
                    "on offer"
                )
        return common
    union = tuple(dict.fromkeys(a for offer in offers.values() for a in offer))
    found = []
    for (x, y), offer in offers.items():
        for a in union:
            if a not in offer and instead(x, y, a) not in offer:
                found.append(
                    f"instead(x={x!r}, y={y!r}, a={a!r}) is {instead(x, y, a)!r}; "
                    f"expected one of {list(offer)!r}"
                )
    if found:
        raise ModelError(found)
    return union


def do_first(base: PartiallyKnownMDP) -> Instead:
    """(x, y, a) -> the first action on offer, for --instead first."""
    return lambda x, y, a: next(iter(base.actions(x, y)))
