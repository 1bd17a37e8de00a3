"""The decision states that a policy reaches: all others have no place in its file."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from pkd.episode import list_branches
from pkd.explore.walk import read_start
from pkd.model import CHANCE, END, Known, PartiallyKnownMDP

State = tuple[Any, Any]


def reach(
    model: PartiallyKnownMDP, act: Callable[[int, Any, Any], Any]
) -> Iterator[tuple[int, list[State]]]:
    """(h, decision states) of every step, whatever the laws of the unknown features are.

    >>> from pkd_examples.gambler import gambler
    >>> list(reach(gambler(goal=4, capital=2, horizon=2).model(), lambda h, x, y: 1))
    [(1, [(None, 2)]), (2, [(None, 3), (None, 1)])]
    """
    arrivals: dict[State, tuple[State, ...]] = {}  # decision states after a state, in no time
    following: dict[tuple[Any, Any, Any], tuple[State, ...]] = {}
    outcomes: dict[Any, tuple[Any, ...]] = {}

    def follow(x: Any, y: Any, a: Any) -> Iterator[State]:
        for _, y_next, z in list_branches(model, x, y, a, 0):
            if isinstance(z, Known):
                found = tuple(x_next for x_next, p in z.law if p > 0)
            else:
                found = outcomes[z] if z in outcomes else tuple(model.outcomes(z))
                outcomes[z] = found
            yield from ((x_next, y_next) for x_next in found)

    def arrive(first: State) -> tuple[State, ...]:
        """By a stack, since CHANCE states may follow each other for long."""
        stack = [first]
        while stack:
            state = stack[-1]
            if state in arrivals:
                stack.pop()
                continue
            kind = model.actions(*state)
            if kind is CHANCE:
                after = list(dict.fromkeys(follow(*state, None)))
                open_ = [one for one in after if one not in arrivals]
                if open_:
                    stack += open_
                    continue
                reached = (one for then in after for one in arrivals[then])
                arrivals[state] = tuple(dict.fromkeys(reached))
            else:
                arrivals[state] = () if kind is END else (state,)
        return arrivals[first]

    here = list(dict.fromkeys(one for start, _ in read_start(model) for one in arrive(start)))
    for h in range(1, model.horizon + 1):
        yield h, here
        after: dict[State, None] = {}
        for x, y in here if h < model.horizon else ():
            a = act(h, x, y)
            key = (x, y, a)
            if key not in following:
                found = (one for state in follow(x, y, a) for one in arrive(state))
                following[key] = tuple(dict.fromkeys(found))
            after |= dict.fromkeys(following[key])
        here = list(after)
