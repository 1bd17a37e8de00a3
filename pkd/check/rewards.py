"""Checks of what a model pays: r(x, y, a), unknown rewards, `final`, and the range of returns.

The paper needs 0 <= V <= H; here any finite range will do. A range that is declared must hold for
every return to go, because it is the cap of the optimistic value and the width of the bonus.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, TypeGuard

import numpy as np

from pkd.check.answers import Answers
from pkd.check.asking import TOLERANCE, call, hashable, is_number, show, state
from pkd.check.moves import check_chance_cycles
from pkd.explore.graph import Graph
from pkd.explore.sizes import RETURNS, may_overflow, sweep_returns
from pkd.model import UnknownReward


def check_rewards(answers: Answers) -> Iterator[str]:
    """A reward is a finite number, or an UnknownReward."""
    for question, reward in answers.rewards.items():
        if not isinstance(reward, UnknownReward) and not is_number(reward):
            where = call("reward", *question)
            yield f"{where} returned {show(reward)}; expected a finite number"


def check_unknown_rewards(answers: Answers) -> Iterator[str]:
    """An UnknownReward has a hashable feature and low <= high, both finite."""
    for question, reward in _unknown(answers):
        where, low, high = call("reward", *question), show(reward.low), show(reward.high)
        if not hashable(reward.feature):
            feature = show(reward.feature)
            yield f"{where} has the reward feature {feature}, which is not hashable; use a tuple"
        if not (is_number(reward.low) and is_number(reward.high)):
            yield f"{where} has the range [{low}, {high}]; expected two finite numbers"
        elif reward.low > reward.high:
            yield f"{where} has low = {low} above high = {high}; expected low <= high"


def check_reward_ranges(answers: Answers) -> Iterator[str]:
    """One reward feature has one law, hence one range."""
    first: dict[Any, tuple[Any, UnknownReward]] = {}
    for question, reward in _unknown(answers):
        if not hashable(reward.feature):
            continue
        asked, known = first.setdefault(reward.feature, (question, reward))
        if (known.low, known.high) != (reward.low, reward.high):
            yield (
                f"reward feature {show(reward.feature)} has the range "
                f"[{show(known.low)}, {show(known.high)}] in {call('reward', *asked)} but "
                f"[{show(reward.low)}, {show(reward.high)}] in {call('reward', *question)}; "
                "one feature has one range"
            )


def check_finals(answers: Answers) -> Iterator[str]:
    """What stopping pays is a finite number."""
    for at, paid in answers.finals.items():
        if not is_number(paid):
            yield f"{call('final', *at)} returned {show(paid)}; expected a finite number"


def check_return_range(answers: Answers) -> Iterator[str]:
    """A declared return_range is (low, high) with low <= high."""
    declared = answers.model.return_range
    if declared is not None and not _is_range(declared):
        expected = "expected None, or two finite numbers (low, high) with low <= high"
        yield f"return_range = {show(declared)}; {expected}"


def check_returns(answers: Answers) -> Iterator[str]:
    """Every return to go is finite and lies in the declared return_range.

    Every return that actions, y' and listed outcomes can bring about counts.
    """
    graph, declared = answers.graph, answers.model.return_range
    if declared is None:
        (low, high), advice = RETURNS, "scale the rewards down"
        told = f"returns must lie in [{low:.3g}, {high:.3g}]"
    elif _is_range(declared):
        (low, high), told = declared, f"return_range = {show(declared)}"
        advice = "widen the range, or declare None"
    else:
        return
    if graph is None or (declared is None and not may_overflow(graph)) or _has_cycle(answers):
        return
    slack = 0.0 if declared is None else TOLERANCE * max(1.0, abs(low), abs(high))
    for where, value, verb, ok in _find_extremes(graph, low - slack, high + slack):
        if not ok:
            found = f"the return from {where} can {verb} {value:.12g}"
            yield f"{told}, but {found}; {advice}"


def _has_cycle(answers: Answers) -> bool:
    return any(check_chance_cycles(answers))


def _find_extremes(graph: Graph, low: float, high: float) -> Iterator[tuple[str, float, str, bool]]:
    """(where, value, verb, whether it is allowed) of the largest return to go and the smallest."""
    most, least = ("", -math.inf), ("", math.inf)
    for layer in sweep_returns(graph):
        settled = layer.t == graph.horizon
        side = graph.settled if settled else graph.layers
        # The order of the walk: of several states with the same return the first one is named.
        nodes = np.array(sorted(graph.ends if settled else graph.members[layer.t]), np.int64)
        if not len(nodes):
            continue
        place = "after the last action" if settled else f"at layer {layer.t + 1}"
        at = int(nodes[layer.high[nodes].argmax()])
        if layer.high[at] >= most[1]:
            most = f"{state(*graph.state(side, at))} {place}", float(layer.high[at])
        at = int(nodes[layer.low[nodes].argmin()])
        if layer.low[at] <= least[1]:
            least = f"{state(*graph.state(side, at))} {place}", float(layer.low[at])
    yield *most, "reach", most[1] <= high
    yield *least, "fall to", least[1] >= low


def _unknown(answers: Answers) -> Iterator[tuple[Any, UnknownReward]]:
    return (
        (question, reward)
        for question, reward in answers.rewards.items()
        if isinstance(reward, UnknownReward)
    )


def _is_range(declared: object) -> TypeGuard[tuple[float, float]]:
    if not isinstance(declared, tuple | list) or len(declared) != 2:
        return False
    return all(map(is_number, declared)) and declared[0] <= declared[1]


CHECKS = (
    check_rewards,
    check_unknown_rewards,
    check_reward_ranges,
    check_finals,
    check_return_range,
    check_returns,
)
