"""Checks of what a model pays: r(x, y, a), rewards whose mean is unknown, `final`, and a declared range of returns.

The paper needs 0 <= V <= H; here any finite range will do, but a range that is declared must hold for every return to go, because it is the
cap of the optimistic value and the width of the bonus.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from pkd.check.asking import TOLERANCE, call, hashable, is_number, show, state
from pkd.check.layers import Values, returns_to_go
from pkd.check.moves import check_chance_cycles
from pkd.check.walk import Walk
from pkd.model import CHANCE, END, UnknownReward

__all__ = ["check_finals", "check_return_range", "check_returns", "check_reward_ranges", "check_rewards", "check_unknown_rewards"]


def check_rewards(walk: Walk) -> Iterator[str]:
    """A reward is a finite number, or an UnknownReward."""
    for question, reward in walk.rewards.items():
        if not isinstance(reward, UnknownReward) and not is_number(reward):
            yield f"{call('reward', *question)} returned {show(reward)}; expected a finite number"


def check_unknown_rewards(walk: Walk) -> Iterator[str]:
    """An UnknownReward has a hashable feature and low <= high, both finite."""
    for question, reward in _unknown(walk):
        where = call("reward", *question)
        if not hashable(reward.feature):
            yield f"{where} has the reward feature {show(reward.feature)}, which is not hashable; use a tuple"
        if not (is_number(reward.low) and is_number(reward.high)):
            yield f"{where} has the range [{show(reward.low)}, {show(reward.high)}]; expected two finite numbers"
        elif reward.low > reward.high:
            yield f"{where} has low = {show(reward.low)} above high = {show(reward.high)}; expected low <= high"


def check_reward_ranges(walk: Walk) -> Iterator[str]:
    """One reward feature has one law, hence one range."""
    first: dict[Any, tuple[Any, UnknownReward]] = {}
    for question, reward in _unknown(walk):
        if not hashable(reward.feature):
            continue
        asked, known = first.setdefault(reward.feature, (question, reward))
        if (known.low, known.high) != (reward.low, reward.high):
            yield (
                f"reward feature {show(reward.feature)} has the range [{show(known.low)}, {show(known.high)}] in {call('reward', *asked)} "
                f"but [{show(reward.low)}, {show(reward.high)}] in {call('reward', *question)}; one feature has one range"
            )


def check_finals(walk: Walk) -> Iterator[str]:
    """What stopping pays is a finite number."""
    for at, paid in walk.finals.items():
        if not is_number(paid):
            yield f"{call('final', *at)} returned {show(paid)}; expected a finite number"


def check_return_range(walk: Walk) -> Iterator[str]:
    """A declared return_range is (low, high) with low <= high."""
    declared = walk.model.return_range
    if declared is not None and not _is_range(declared):
        yield f"return_range = {show(declared)}; expected None, or two finite numbers (low, high) with low <= high"


def check_returns(walk: Walk) -> Iterator[str]:
    """A declared return_range holds every return to go that actions, y' and listed outcomes can bring about."""
    declared = walk.model.return_range
    if declared is None or not _is_range(declared) or walk.reach is None or walk.overflow is not None or any(check_chance_cycles(walk)):
        return
    low, high = declared
    slack = TOLERANCE * max(1.0, abs(low), abs(high))
    for sign, bound, verb in ((1, high, "reach"), (-1, -low, "fall to")):
        where, value = _largest(walk, sign)
        if value > bound + slack:
            found = f"the return from {where} can {verb} {sign * value:.12g}"
            yield f"return_range = {show(declared)}, but {found}; widen the range, or declare None"


def _largest(walk: Walk, sign: int) -> tuple[str, float]:
    """Where the largest return to go lies, and that return; with sign -1 of the negated rewards."""
    assert walk.reach is not None
    inside, onward, last, settling = (
        edges.moves() if sign > 0 else edges.moves().negated() for edges in (walk.inside, walk.onward, walk.last, walk.settling)
    )
    ended, stopped = _stopping(walk, sign)
    layers = returns_to_go(walk.reach, walk.horizon, (inside, onward, ended), (settling, last, stopped))
    best = max(range(len(layers)), key=lambda h: float(layers[h].max()))
    i = int(layers[best].argmax())
    place = f"at layer {best + 1}" if best < walk.horizon else "after the last action"
    return f"{state(*walk.states[i])} {place}", float(layers[best][i])


def _stopping(walk: Walk, sign: int) -> tuple[Values, Values]:
    """What END pays before the last action, and what stopping pays after it; -inf where no episode stops."""
    ended, stopped = np.full((2, len(walk.states)), -np.inf)
    for i, at in enumerate(walk.states):
        kind = walk.kind(i)
        if kind is END:
            ended[i] = sign * walk.paid(at)
        if i in walk.settled and kind is not CHANCE:
            stopped[i] = sign * walk.paid(at)
    return ended, stopped


def _unknown(walk: Walk) -> Iterator[tuple[Any, UnknownReward]]:
    return ((question, reward) for question, reward in walk.rewards.items() if isinstance(reward, UnknownReward))


def _is_range(declared: Any) -> bool:
    return isinstance(declared, tuple | list) and len(declared) == 2 and all(map(is_number, declared)) and declared[0] <= declared[1]
