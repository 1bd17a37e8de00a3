"""The sizes of a model that the regret theorem needs: its unknown features, |Y|, what follows a feature, and how wide returns are.

One walk over everything that can be reached, written against the contract alone. It is plain and slow on purpose: it serves `pkd.bounds`,
and it shares no code with the engine whose regret those bounds are about.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from typing import Any

import attrs

from pkd.model import CHANCE, END, Known, ModelError, PartiallyKnownMDP, UnknownReward

__all__ = ["Survey", "survey"]

State = tuple[int, Any, Any]  # (layer, x, y); the settlement is layer H + 1


@attrs.frozen
class Survey:
    """What can happen in a model, whatever its law and the policy."""

    features: dict[Hashable, frozenset[Any]]  # unknown z -> every y' that can come with it
    rewards: frozenset[Hashable]  # features of unknown rewards
    n_y: int  # distinct y, main layers and settlement together
    width: float  # the largest range of possible returns over the start states
    unknown_moves: int  # the most moves with an unknown feature in one episode


def survey(model: PartiallyKnownMDP) -> Survey:
    """Walks every reachable state once, children first, and keeps [lowest return to go, highest return to go, unknown moves to go]."""
    features: dict[Hashable, set[Any]] = {}
    rewards: set[Hashable] = set()
    starts = _starts(model)
    done: dict[State, tuple[float, float, int]] = {}
    open_edges: dict[State, list[_Edge]] = {}
    stack = list(starts)
    while stack:
        state = stack[-1]
        if state in done:
            stack.pop()
        elif state in open_edges:
            done[state] = _to_go(model, state, open_edges.pop(state), done)
            stack.pop()
        else:
            open_edges[state] = edges = list(_edges(model, state))
            for edge in edges:
                if isinstance(edge.reward, UnknownReward):
                    rewards.add(edge.reward.feature)
                if edge.unknown:
                    features.setdefault(edge.feature, set()).add(edge.y_next)
                for child in edge.children:
                    if child in open_edges:
                        raise ModelError(
                            f"CHANCE states form a cycle through x={child[1]!r}, y={child[2]!r}; no time passes in them, so the episode "
                            "could not go on. check_model shows the cycle"
                        )
                    stack.append(child)
    return Survey(
        features={z: frozenset(followers) for z, followers in features.items()},
        rewards=frozenset(rewards),
        n_y=len({y for _, _, y in done}),
        width=max(done[start][1] - done[start][0] for start in starts),
        unknown_moves=max(done[start][2] for start in starts),
    )


@attrs.frozen
class _Edge:
    """One branch of one action: a reward and the states it can lead to."""

    reward: float | UnknownReward
    feature: Any
    unknown: bool
    y_next: Any
    children: list[State]


def _starts(model: PartiallyKnownMDP) -> list[State]:
    start = model.start()
    pairs = [pair for pair, p in start.items() if p > 0] if isinstance(start, Mapping) else [start]
    return [(1, x, y) for x, y in pairs]


def _edges(model: PartiallyKnownMDP, state: State) -> Iterator[_Edge]:
    """Every branch with a positive probability that leaves a state; none where the episode stops."""
    layer, x, y = state
    choices = model.actions(x, y)
    if choices is END or (choices is not CHANCE and layer > model.horizon):
        return
    chance = choices is CHANCE
    settling = layer > model.horizon or (layer == model.horizon and not chance)
    for a in (None,) if chance else choices:
        reward = model.reward(x, y, a)
        for p, y_next, z in (model.last_step if settling else model.step)(x, y, a):
            if p > 0:
                unknown = not isinstance(z, Known)
                landings = list(model.outcomes(z)) if unknown else [x_next for x_next, q in z.law if q > 0]
                children = [(layer if chance else layer + 1, x_next, y_next) for x_next in landings]
                yield _Edge(reward, z, unknown, y_next, children)


def _to_go(
    model: PartiallyKnownMDP, state: State, edges: list[_Edge], done: dict[State, tuple[float, float, int]]
) -> tuple[float, float, int]:
    if not edges:
        final = model.final(state[1], state[2])
        return final, final, 0
    lowest, highest, moves = float("inf"), float("-inf"), 0
    for edge in edges:
        r = edge.reward
        least, most = (r.low, r.high) if isinstance(r, UnknownReward) else (r, r)
        for child in edge.children:
            low, high, unknown = done[child]
            lowest, highest = min(lowest, least + low), max(highest, most + high)
            moves = max(moves, edge.unknown + unknown)
    return lowest, highest, moves
