"""Small edits of stripes, for the passes: other columns, other branches, other actions.

What an edit leaves as it was stays the same object. Passes compare by identity, which is cheap.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from operator import is_

from pkd.engine.stripes.table import Action, Branch, Stripe
from pkd.graph import LAST, SETTLED

__all__ = [
    "edit_branches",
    "home_of",
    "redirect",
    "target_of",
    "with_actions",
    "with_branches",
    "with_parts",
]


def home_of(stripe: Stripe) -> int:
    """The space that holds the columns of a stripe: 0 for the layers, 1 for the settlement."""
    return int(stripe.part == SETTLED)


def target_of(stripe: Stripe) -> int:
    """The space into which the branches of a stripe lead: the last decision leaves the layers."""
    return int(stripe.part in (LAST, SETTLED))


def redirect(branch: Branch, target: int, stride: int) -> Branch:
    """The same branch to other columns."""
    if target == branch.target and stride == branch.stride:
        return branch
    return branch._replace(target=target, stride=stride)


def edit_branches(stripe: Stripe, edit: Callable[[Branch], Branch]) -> Stripe:
    """A stripe with an edit of each of its branches."""
    return with_branches(stripe, ([edit(b) for b in action.branches] for action in stripe.actions))


def with_branches(stripe: Stripe, branches: Iterable[list[Branch]]) -> Stripe:
    """A stripe with other branches: one list for each action."""
    made = [
        with_parts(action, action.reward, new)
        for action, new in zip(stripe.actions, branches, strict=True)
    ]
    return with_actions(stripe, made)


def with_actions(stripe: Stripe, actions: list[Action]) -> Stripe:
    """A stripe with other actions."""
    return (
        stripe
        if all(map(is_, actions, stripe.actions))
        else stripe._replace(actions=tuple(actions))
    )


def with_parts(action: Action, reward: int, branches: list[Branch]) -> Action:
    """An action with another row of rewards and other branches."""
    same = reward == action.reward and len(branches) == len(action.branches)
    return (
        action
        if same and all(map(is_, branches, action.branches))
        else Action(reward, tuple(branches))
    )
