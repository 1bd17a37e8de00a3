"""Stripes as the arrays that kernels take: levels, batches and tiles, and the lookup of a state."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import accumulate, pairwise

import attrs
import numpy as np

from pkd.engine.stripes import walk
from pkd.engine.stripes.kernels import Stripes
from pkd.engine.stripes.passes import Layout
from pkd.engine.stripes.table import MISSING, Branch, Stripe, StripeTable
from pkd.explore.graph import CHANCES, LAST, SETTLED, STEP

# Values of V that a tile reads: a quarter of a megabyte stays in a core's cache.
TILE_VALUES = 1 << 15

Array = np.ndarray


@attrs.frozen(eq=False)
class StripeArrays:
    """Arrays for the kernels. Stripes keep their order."""

    table: StripeTable
    listed: list[Stripe]
    stripes: Stripes
    windows: list[int]  # the layers of each stripe, as bits
    covers: dict[int, walk.Cover]

    def choice_at(self, t: int, x: int, column: int) -> int:
        """Where the choice of a state stands in a policy."""
        g = self.stripes
        first, beyond = int(g.policy_from[t]), int(g.policy_to[t])
        if not first <= column < beyond:
            raise KeyError((t, x, column))
        return int(g.policy_ptr[t]) + x * (beyond - first) + column - first

    def stripe_at(self, part: int, x: int, column: int) -> int:
        """The stripe that holds a state, or -1."""
        return int(walk.find(self.covers[part], x, column))

    def isolate_actions(self, stripe: int, x: int, column: int) -> Stripes:
        """Each action of one state as a stripe of its own, whose V is the Q of that action."""
        g = self.stripes
        actions = np.arange(g.stripe_action[stripe], g.stripe_action[stripe + 1] + 1)
        count, offset = len(actions) - 1, column - int(g.stripe_start[stripe])
        each, zero, one = np.arange(count), np.zeros(1, np.int64), np.ones(1, np.int64)
        return g._replace(
            stripe_set=np.zeros(count, np.int64),
            stripe_start=each - offset,
            stripe_decides=np.zeros(count, bool),
            stripe_fan=np.zeros(count, np.int64),
            stripe_action=actions,
            set_ptr=np.array([0, 1]),
            set_x=np.array([x]),
            batch_stripe=each,
            batch_ptr=np.array([0, count]),
            batch_active=np.ones((1, 1), bool),
            tile_batch=zero,
            tile_from=np.array([offset]),
            tile_count=one,
        )


def to_arrays(table: StripeTable, layout: Layout, windows: list[int], horizon: int) -> StripeArrays:
    """Lays out stripes for the kernels."""
    stripes = layout.stripes
    check_reads(layout)
    actions = [action for stripe in stripes for action in stripe.actions]
    branches = [branch for action in actions for branch in action.branches]
    columns = np.array(branches, np.int64).reshape(len(branches), len(Branch._fields)).T
    outcomes = table.graph.outcomes
    row_ptr = _ints([0, *accumulate(map(len, [*outcomes, *table.known]))])
    row_x = [table.x_index[x] for states in outcomes for x in states] + [
        x for law in table.known for x, _ in law
    ]
    laws = table.law.array()
    laws = np.where(laws >= 0, laws, np.where(laws == MISSING, 0, len(outcomes) - 1 - laws))
    levels = _find_levels(stripes)
    fans = [find_fan(stripe) for stripe in stripes]
    batches, tiles, level_ptr = _tile(table, stripes, fans, windows, levels)
    bits = [[windows[batch[0]] >> t & 1 for t in range(horizon + 1)] for batch in batches]
    active = np.array(bits, bool).reshape(len(batches), horizon + 1)
    tile_batch = np.array([tile[0] for tile in tiles], np.int64)
    nothing = np.zeros(horizon + 1, bool)
    level_active = np.array(
        [
            active[tile_batch[lo:hi]].any(axis=0) if hi > lo else nothing
            for lo, hi in pairwise(level_ptr)
        ]
    )
    policy_from, policy_to = find_deciding_columns(stripes, windows, horizon)
    made = Stripes(
        stripe_set=_ints(stripe.xs for stripe in stripes),
        stripe_start=_ints(stripe.start for stripe in stripes),
        stripe_decides=np.array([stripe.part in (STEP, LAST) for stripe in stripes], bool),
        stripe_fan=_ints(fans),
        stripe_action=_ints([0, *accumulate(len(stripe.actions) for stripe in stripes)]),
        action_reward=_ints(action.reward for action in actions),
        action_branch=_ints([0, *accumulate(len(action.branches) for action in actions)]),
        branch_p=columns[0].copy(),
        branch_law=columns[1].copy(),
        branch_weight=columns[2].copy(),
        branch_target=columns[3].copy(),
        branch_stride=columns[4].copy(),
        branch_reward=columns[5].copy(),
        branch_note=columns[6].copy(),
        set_ptr=_ints([0, *accumulate(map(len, table.sets))]),
        set_x=np.concatenate([np.zeros(0, np.int64), *table.sets]),
        p=table.p.array(),
        law=laws,
        weight=table.weight.array(),
        note=table.note.array(),
        row_ptr=row_ptr,
        row_x=_ints(row_x),
        n_unknown=len(outcomes),
        batch_stripe=_ints(stripe for batch in batches for stripe in batch),
        batch_ptr=_ints([0, *accumulate(map(len, batches))]),
        batch_active=active,
        tile_batch=tile_batch,
        tile_from=_ints(tile[1] for tile in tiles),
        tile_count=_ints(tile[2] for tile in tiles),
        policy_ptr=_ints([0, *accumulate(len(table.xs) * (policy_to - policy_from))]),
        policy_from=policy_from,
        policy_to=policy_to,
        level_ptr=_ints(level_ptr),
        level_active=level_active,
        settlement=2 + len({stripe.level for stripe in stripes if stripe.part == CHANCES}),
    )
    covers = {part: cover(table, stripes, (part,)) for part in (STEP, LAST, CHANCES, SETTLED)}
    return StripeArrays(table, stripes, made, windows, covers)


def check_reads(layout: Layout) -> None:
    """Each branch reads columns that the layers have: kernels do not look where they read."""
    for stripe in layout.stripes:
        columns = layout.columns[stripe.target_space]
        for branch in stripe.branches():
            begin, end = branch.span(stripe.length)
            if begin < 0 or end > columns:
                raise AssertionError(f"{branch} reads columns {begin} to {end} of {columns}")


def find_fan(stripe: Stripe) -> int:
    """The number of actions if the stripe is a fan (action a leads to target + a), else 0."""
    count = len(stripe.actions)
    if count < 2 or stripe.part not in (STEP, LAST):
        return 0
    first = stripe.actions[0]
    for a, action in enumerate(stripe.actions):
        if action.reward != first.reward or len(action.branches) != len(first.branches):
            return 0
        for branch, base in zip(action.branches, first.branches, strict=True):
            moved = branch._replace(target=branch.target - a)
            if moved != base or branch.stride != count:
                return 0
    return count


def find_deciding_columns(
    stripes: list[Stripe], windows: list[int], horizon: int
) -> tuple[Array, Array]:
    """The columns, from and up to, in which the decisions of each layer lie."""
    lowest, beyond = np.full(horizon, 2**62), np.zeros(horizon, np.int64)
    for stripe, layers in zip(stripes, windows, strict=True):
        if stripe.part in (STEP, LAST):
            met = [t for t in range(horizon) if layers >> t & 1]
            lowest[met] = np.minimum(lowest[met], stripe.start)
            beyond[met] = np.maximum(beyond[met], stripe.start + stripe.length)
    return np.minimum(lowest, beyond), beyond


def _find_levels(stripes: list[Stripe]) -> list[list[int]]:
    """Stripes by level: decisions, last decisions, CHANCE states by level, settlement."""
    groups: dict[tuple[int, int], list[int]] = {(STEP, 0): [], (LAST, 0): []}
    for i, stripe in enumerate(stripes):
        groups.setdefault((stripe.part, stripe.level), []).append(i)
    return [groups[key] for key in sorted(groups)]


def _tile(
    table: StripeTable,
    stripes: list[Stripe],
    fans: list[int],
    windows: list[int],
    levels: list[list[int]],
) -> tuple[list[list[int]], list[tuple[int, int, int]], list[int]]:
    """Batches of stripes that read the same columns in the same layers, and their tiles."""
    batches: list[list[int]] = []
    tiles: list[tuple[int, int, int]] = []
    level_ptr = [0]
    for level in levels:
        together: dict[tuple[object, ...], list[int]] = {}
        for i in level:
            reads = tuple(
                (b.target, b.stride) for action in stripes[i].actions for b in action.branches
            )
            together.setdefault((stripes[i].length, reads, fans[i], windows[i]), []).append(i)
        for batch in together.values():
            length, fan = stripes[batch[0]].length, fans[batch[0]]
            size = max(1, TILE_VALUES // (len(table.xs) * max(fan, 1)))
            tiles.extend(
                (len(batches), lo, min(size, length - lo)) for lo in range(0, length, size)
            )
            batches.append(batch)
        level_ptr.append(len(tiles))
    return batches, tiles, level_ptr


def cover(table: StripeTable, stripes: list[Stripe], parts: tuple[int, ...]) -> walk.Cover:
    """For each x, the stripes of some parts in the order of their columns."""
    held: list[list[tuple[int, int, int]]] = [[] for _ in table.xs]
    for i, stripe in enumerate(stripes):
        if stripe.part in parts:
            for x in table.sets[stripe.xs].tolist():
                held[x].append((stripe.start, stripe.start + stripe.length, i))
    rows = np.array([row for x in held for row in sorted(x)], np.int64).reshape(-1, 3)
    ptr = _ints([0, *accumulate(map(len, held))])
    return walk.Cover(ptr, rows[:, 0].copy(), rows[:, 1].copy(), rows[:, 2].copy())


def _ints(values: Iterable[int]) -> Array:
    return np.array(list(values), np.int64)
