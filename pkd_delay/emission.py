"""The runs of a delayed tabular base, written down at once instead of found state by state: with queues of eight actions there are more
than a million y, and the model must never exist as that many Python objects. A test holds these runs equal to the plain construction.

Columns are blocks of all queues of one length n, the oldest action most significant: queue q is column sum_i q_i A^(n-i). Within a block
the queues with the same oldest action are neighbours, and their moves differ only in the column they lead to; so each block is one run per
oldest action, and appending an action leads to column q A + a.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from pkd import Known, UnknownReward, runs
from pkd_delay.augmented import SHOWN, TRAN

if TYPE_CHECKING:
    from pkd_delay.known import KnownDelay

__all__ = ["runs_of_known"]

Block = tuple[int, int]  # (counter, length of the queue)


def runs_of_known(model: KnownDelay) -> runs.RunTable:
    """The runs of a `KnownDelay` with a tabular base."""
    return _Emitter(model).table


class _Emitter:
    def __init__(self, model: KnownDelay) -> None:
        self.model, self.base = model, model.base
        self.actions = model.facts.actions
        self.A, self.D = len(self.actions), min(model.max_delay, model.horizon - 1)
        (self.y,) = {y for _, y in model.facts.decisions}
        deciders = [x for x, _ in model.facts.decisions]
        self.laws = {(x, a): self._feature(x, a) for x in deciders for a in self.actions}
        features = list(dict.fromkeys(z for z in self.laws.values() if not isinstance(z, Known)))
        outcomes = [tuple(self.base.outcomes(z)) for z in features]
        known = (x for z in self.laws.values() if isinstance(z, Known) for x, p in z.law if p > 0)
        xs = dict.fromkeys([*deciders, *(x for states in outcomes for x in states), *known])
        self.table = runs.RunTable(list(xs), features, outcomes)
        self.index = self.table.x_index
        self.deciders = [self.index[x] for x in deciders]
        self.all = self.table.set_of(self.deciders)
        self.numbers = {z: i for i, z in enumerate(features)}
        self.stay = self.table.law_row({x: self.table.known_law([(x, 1.0)]) for x in self.deciders})
        self.no_share = self.table.share_row({})
        self.offsets: list[dict[Block, int]] = [{}, {}]
        self._lay()
        self._emit()

    def _feature(self, x: Any, a: Any) -> Any:
        ((_, _, z),) = [branch for branch in self.base.step(x, self.y, a) if branch[0] > 0]
        return z

    # -- columns -------------------------------------------------------------------------------------------------------------------

    def _lay(self) -> None:
        """Blocks that can occur, decisions first; the settlement has blocks of its own, and one column where it all ends."""
        table, reached = self.table, sorted(self._reachable(), key=lambda block: (block[0] < 0, block))
        for block in reached:
            self._place(0, block)
        for n in range(1, self.D + 2):
            self._place(1, (TRAN, n))
            if n <= self.D:
                self._place(1, (SHOWN, n))
        self._place(1, (SHOWN, 0))
        table.decision_columns = sum(self.A**n for counter, n in reached if counter >= 0)
        table.columns = sum(length for _, length in table.blocks)
        table.settled_columns = sum(length for _, length in table.settled_blocks)
        over = self.offsets[1][SHOWN, 0]
        table.settled_ends = {(x, over): 0.0 for x in range(len(table.xs))}
        table.n_y = table.columns
        table.column_of, table.y_of = self._column, self._pending
        start = self.model.start()
        for (x, y), p in start.items() if isinstance(start, dict) else [(start, 1.0)]:
            if p > 0:
                column = self._column(y)
                assert column is not None
                table.start.append((self.index[x], column, p))

    def _place(self, space: int, block: Block) -> None:
        blocks = self.table.settled_blocks if space else self.table.blocks
        at = sum(blocks[-1]) if blocks else 0
        self.offsets[space][block] = at
        blocks.append((at, self.A ** block[1]))

    def _reachable(self) -> set[Block]:
        reached: set[Block] = set()
        pending: list[Block] = [(0, 0)]
        while pending:
            block = pending.pop()
            if block in reached:
                continue
            reached.add(block)
            counter, n = block
            if counter == TRAN:
                pending.append((SHOWN, n - 1))
            elif counter == SHOWN:
                pending.extend(target for target, p in self._news(n, -1) if n and p) if n else pending.append((0, 0))
            elif n < self.D or self.model.max_delay <= self.D:
                pending.extend(target for target, p in self._news(n + 1, counter, empty=n == 0) if p)
        return {block for block in reached if block[1] <= self.D + (block[0] == TRAN)}

    def _news(self, n: int, waited: int, *, empty: bool = False) -> Iterator[tuple[Block, bool]]:
        """The two blocks that queues of length n may lead to after so much waiting, and whether any state and action can."""
        rows = [self._arrival(a, waited, n, empty=empty) for a in range(self.A)]
        yield (TRAN, n), any(p > 0 for row in rows for p in row.values())
        yield (waited + 1, n), any(p < 1 for row in rows for p in row.values())

    def _arrival(self, oldest: int, waited: int, n: int, *, empty: bool = False) -> dict[int, float]:
        """The probability, over x, that the effect of the oldest of n queued actions is shown now."""
        if n > self.model.max_delay or waited == self.model.longest:
            return dict.fromkeys(self.deciders, 1.0)
        row = {}
        for x in self.deciders:
            law = self.model.inter_arrival(self.table.xs[x], self.y, self.actions[oldest])
            row[x] = law.at_most_zero if empty else law.hazard(waited)
        return row

    def _column(self, y: Any) -> int | None:
        offset = None if y.queue is None else self.offsets[0].get((y.counter, len(y.queue)))
        if offset is None:
            return None
        code = 0
        for a in y.queue:
            code = code * self.A + self.actions.index(a)
        return offset + code

    def _pending(self, column: int) -> Any:
        for (counter, n), offset in self.offsets[0].items():
            if offset <= column < offset + self.A**n:
                code, queue = column - offset, []
                for _ in range(n):
                    code, a = divmod(code, self.A)
                    queue.append(self.actions[a])
                return self.model.y_type(self.y, tuple(reversed(queue)), counter)
        raise KeyError(column)

    # -- runs ----------------------------------------------------------------------------------------------------------------------

    def _emit(self) -> None:
        for block in self.offsets[0]:
            counter, n = block
            if counter == TRAN:
                self._tran(runs.CHANCES, n)
            elif counter == SHOWN:
                self._shown(runs.CHANCES, n)
            else:
                self._decide(counter, n)
        for n in range(1, self.D + 2):
            self._tran(runs.SETTLED, n)
            if n <= self.D:
                self._shown(runs.SETTLED, n)

    def _per_oldest(self, part: int, block: Block, moves: Callable[[int], tuple[runs.Move, ...]], level: int = 0) -> None:
        """One run for each oldest action; `moves` gives its moves, with targets for the first queue of the run."""
        n, size = block[1], self.A ** max(block[1] - 1, 0)
        offset = self.offsets[int(part == runs.SETTLED)][block]
        for oldest in range(self.A if n else 1):
            self.table.runs.append(runs.Run(part, self.all, offset + oldest * size, size, moves(oldest), level))

    def _decide(self, counter: int, n: int) -> None:
        size = self.A ** max(n - 1, 0)

        def appended(space: int, block: Block, oldest: int, a: int) -> int:
            return self.offsets[space][block] + (oldest * size * self.A if n else 0) + a

        def moves(oldest: int) -> tuple[runs.Move, ...]:
            made = []
            for a in range(self.A):
                p = self._arrival(oldest if n else a, counter, n + 1, empty=n == 0)
                ways = [self._way(p, appended(0, (TRAN, n + 1), oldest, a), self.A)] if any(p.values()) else []
                if any(q < 1 for q in p.values()):
                    wait = {x: 1.0 - q for x, q in p.items()}
                    ways.append(self._way(wait, appended(0, (counter + 1, n + 1), oldest, a), self.A))
                made.append(runs.Move(self.table.no_reward, tuple(ways)))
            return tuple(made)

        def last(oldest: int) -> tuple[runs.Move, ...]:
            sure = dict.fromkeys(self.deciders, 1.0)
            return tuple(
                runs.Move(self.table.no_reward, (self._way(sure, appended(1, (TRAN, n + 1), oldest, a), self.A),)) for a in range(self.A)
            )

        if n < self.D or (TRAN, n + 1) in self.offsets[0]:
            self._per_oldest(runs.DECISIONS, (counter, n), moves)
        self._per_oldest(runs.LAST, (counter, n), last)

    def _tran(self, part: int, n: int) -> None:
        table, target = self.table, self.offsets[int(part == runs.SETTLED)][SHOWN, n - 1]
        ones = table.p_row(dict.fromkeys(self.deciders, 1.0))

        def moves(oldest: int) -> tuple[runs.Move, ...]:
            action = self.actions[oldest]
            laws, shares = dict[int, int](), dict[int, float]()
            paid, means = dict[int, float](), dict[int, int]()
            for x in self.deciders:
                z = self.laws[table.xs[x], action]
                reward = self.base.reward(table.xs[x], self.y, action)
                paid[x] = 0.0 if isinstance(reward, UnknownReward) else reward
                if isinstance(reward, UnknownReward):
                    if reward not in table.unknown_rewards:
                        table.unknown_rewards.append(reward)
                    means[x] = table.unknown_rewards.index(reward)
                if isinstance(z, Known):
                    laws[x] = table.known_law((self.index[t], p) for t, p in z.law)
                else:
                    laws[x] = self.numbers[z]
                    shares[x] = self.model.queue_share(n) * self.model.base_share(z, self.y)
            row = table.reward_row(paid, means)
            inside = self.model.return_range is not None and any(law >= 0 for law in laws.values())
            way = runs.Way(ones, table.law_row(laws), table.share_row(shares), target, 1, row if inside else table.no_reward)
            return (runs.Move(table.no_reward if inside else row, (way,)),)

        self._per_oldest(part, (TRAN, n), moves, level=2 * n - 1)

    def _shown(self, part: int, n: int) -> None:
        space = int(part == runs.SETTLED)
        offsets, size = self.offsets[space], self.A ** max(n - 1, 0)

        def moves(oldest: int) -> tuple[runs.Move, ...]:
            if n == 0:
                return (runs.Move(self.table.no_reward, (self._way(dict.fromkeys(self.deciders, 1.0), offsets[0, 0], 1),)),)
            p = dict.fromkeys(self.deciders, 1.0) if space else self._arrival(oldest, -1, n)
            ways = [self._way(p, offsets[TRAN, n] + oldest * size, 1)] if any(p.values()) else []
            if any(q < 1 for q in p.values()):
                ways.append(self._way({x: 1.0 - q for x, q in p.items()}, offsets[0, n] + oldest * size, 1))
            return (runs.Move(self.table.no_reward, tuple(ways)),)

        if n or not space:
            self._per_oldest(part, (SHOWN, n), moves, level=2 * n)

    def _way(self, p: dict[int, float], target: int, stride: int) -> runs.Way:
        return runs.Way(self.table.p_row(p), self.stay, self.no_share, target, stride)
