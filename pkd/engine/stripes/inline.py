"""Inlining: CHANCE stripes become part of the stripes that lead into them.

A CHANCE stripe that only passes on is skipped: branches into it lead to where it leads. A CHANCE
stripe with one user becomes part of its user: probabilities multiply, and the progressions of
columns compose. A worked example: a branch with target 8 and stride 2 enters a CHANCE stripe that
starts at column 6 and whose branch has target 1 and stride 1. Together they have target
1 + 1 (8 - 6) = 3 and stride 2.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from pkd.engine.stripes.lookup import Places, fills
from pkd.engine.stripes.table import MISSING, Action, Branch, Stripe, StripeTable
from pkd.explore.graph import CHANCES, LAST, SETTLED, STEP


def inline(table: StripeTable, stripes: list[Stripe]) -> list[Stripe]:
    """CHANCE stripes that only pass on, or that have one user, become part of their users."""
    inliner = _Inliner(table, stripes)
    return [
        stripe.replace_actions([inliner.inline(action, stripe) for action in stripe.actions])
        for stripe in stripes
    ]


class _Inliner:
    """The stripes of one table, and which of them can be inlined."""

    def __init__(self, table: StripeTable, stripes: list[Stripe]) -> None:
        self.table, self.stripes = table, stripes
        self.chances = Places(stripes, (CHANCES,)), Places(stripes, (SETTLED,))
        self.whole = Places(stripes, (STEP, CHANCES, LAST)), Places(stripes, (SETTLED,))
        self.identity = {i for i, row in enumerate(table.law.rows) if _is_identity(table, row)}
        self.xs = [frozenset(row.tolist()) for row in table.sets]
        self.lines = [_find_line(table, stripe, self.identity) for stripe in stripes]
        self.has_one_user = self._find_single_users()

    def _find_single_users(self) -> list[bool]:
        """Whether every state of a stripe is entered exactly once, by sure branches alone.

        Counted in states (x, column): the users together are as large as the stripe.
        """
        stripes, xs = self.stripes, self.xs
        entered, shared = [0] * len(stripes), [False] * len(stripes)
        sizes = [len(xs[stripe.xs]) * stripe.length for stripe in stripes]
        for stripe, size in zip(stripes, sizes, strict=True):
            chances = self.chances[stripe.target_space]
            for branch in stripe.branches():
                for i in chances.within(*branch.span(stripe.length)):
                    if branch.law not in self.identity:
                        shared[i] = True
                    elif self._covers(stripes[i], branch, stripe):
                        entered[i] += size
                    elif not xs[stripe.xs].isdisjoint(xs[stripes[i].xs]):
                        shared[i] = True
        for x, column, _ in self.table.start:
            for i in self.chances[0].within(column, column + 1):
                shared[i] |= x in xs[stripes[i].xs]
        return [
            n == size and not other for n, size, other in zip(entered, sizes, shared, strict=True)
        ]

    def inline(self, action: Action, stripe: Stripe) -> Action:
        """The action, with what can be inlined."""
        table, reward, branches = self.table, action.reward, list[Branch]()
        for branch in (self._skip(branch, stripe) for branch in action.branches):
            hop = self._find_hop(branch, stripe)
            if hop is None or not self._can_carry(action, reward, branch, stripe, hop.actions[0]):
                branches.append(branch)
                continue
            if hop.actions[0].reward != table.no_reward:
                reward = hop.actions[0].reward
            branches.extend(_compose(table, branch, stripe, hop))
        return action.replace(reward, branches)

    def _skip(self, branch: Branch, stripe: Stripe) -> Branch:
        """A branch into columns that only pass on, for every x, leads to where they lead."""
        begin, end = branch.span(stripe.length)
        found = self.whole[stripe.target_space].within(begin, end)
        line = self.lines[found[0]] if found else None
        if line is None or any(self.lines[i] != line for i in found):
            return branch
        if not fills([self.stripes[i] for i in found], begin, end):
            return branch
        shift, stride = line
        return branch.lead_to(shift + stride * branch.target, stride * branch.stride)

    def _find_hop(self, branch: Branch, stripe: Stripe) -> Stripe | None:
        """The one CHANCE stripe that a branch leads into with all its columns and x, if it can be
        inlined.
        """
        if branch.law not in self.identity or branch.reward != self.table.no_reward:
            return None
        mine, stripes = self.xs[stripe.xs], self.stripes
        within = self.chances[stripe.target_space].within(*branch.span(stripe.length))
        found = [i for i in within if not self.xs[stripes[i].xs].isdisjoint(mine)]
        if len(found) != 1 or not (self.lines[found[0]] or self.has_one_user[found[0]]):
            return None
        hop = stripes[found[0]]
        return hop if self._covers(hop, branch, stripe) else None

    def _can_carry(
        self, action: Action, reward: int, branch: Branch, stripe: Stripe, inner: Action
    ) -> bool:
        """Whether one action has room for the notes and the reward of the inner one.

        A branch has one note. An action has one reward: that of the inner one can take its place if
        it is none so far and the branch is sure.
        """
        table = self.table
        if branch.note != table.no_note and any(b.note != table.no_note for b in inner.branches):
            return False
        if inner.reward == table.no_reward:
            return True
        sure = (table.p.rows[branch.p][table.sets[stripe.xs]] == 1.0).all()
        return reward == table.no_reward and len(action.branches) == 1 and bool(sure)

    def _covers(self, hop: Stripe, branch: Branch, stripe: Stripe) -> bool:
        """Whether a stripe holds all columns and all x of a branch."""
        begin, end = branch.span(stripe.length)
        columns = hop.start <= begin and end <= hop.end
        return columns and self.xs[stripe.xs] <= self.xs[hop.xs]


def _find_line(table: StripeTable, hop: Stripe, identity: set[int]) -> tuple[int, int] | None:
    """(shift, stride) where every column y of a stripe only passes on to shift + stride * y."""
    if hop.part not in (CHANCES, SETTLED) or len(hop.actions[0].branches) != 1:
        return None
    (inside,) = hop.actions[0].branches
    plain = inside.law in identity and inside.reward == hop.actions[0].reward == table.no_reward
    if not plain or inside.note != table.no_note:
        return None
    return inside.target - inside.stride * hop.start, inside.stride


def _compose(table: StripeTable, branch: Branch, stripe: Stripe, hop: Stripe) -> Iterator[Branch]:
    """A branch followed by those of the CHANCE stripe it enters.

    Probabilities multiply, and the progressions of columns compose.
    """
    for inside in hop.actions[0].branches:
        p = table.p.rows[branch.p] * table.p.rows[inside.p]
        if p[table.sets[stripe.xs]].any():
            target = inside.target + inside.stride * (branch.target - hop.start)
            note = inside.note if inside.note != table.no_note else branch.note
            stride = inside.stride * branch.stride
            yield Branch(
                table.p.add(p), inside.law, inside.weight, target, stride, inside.reward, note
            )


def _is_identity(table: StripeTable, row: np.ndarray) -> bool:
    """Whether a row of laws leaves every x where it is."""
    for x, law in enumerate(row.tolist()):
        if law >= 0 or (law > MISSING and table.known[-1 - law] != ((x, 1.0),)):
            return False
    return True
