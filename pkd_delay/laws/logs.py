"""Logs of late samples: when each state was sent, when it was shown, and what that says of delays.

A row of a log is one state that was sent: (episode, step, sent, shown), perhaps with the state
itself and the action that was taken in it. Without `episode` all is one episode; without `step` the
steps follow from `sent`. A log may hold the age of the newest sample in place of `sent` and
`shown`. The log of an episode is watched until `end`, by default until its last state was sent.
What was shown later says only that the delay was at least so long. It is *censored*.

Which ends are allowed: whether time h is watched may depend on the states that were sent by h (also
those that nobody has seen), on the actions, and on what was shown before h; never on how late a
state is that is still on its way. Proof. States come in order, so an episode asks one question at a
time: "is the oldest state on its way shown now?". D_h is drawn before s_{h+1}, and neither states
nor actions depend on a delay that has not been seen. So given all states sent by h, all actions and
all answers so far, the answer is yes with probability Pr(D = k | D_before, D >= k), the hazard of
the law. Whether it is asked is fixed by the same past. Hence the probability of the log is

    prod over the questions asked of (hazard if yes, 1 - hazard if no)

times factors of states, actions and the end that are free of the law of the delay. The answers to
one question are tosses of one coin at times that depend on the past alone, as the sets of
`pkd.certification.confidence` need. Allowed: a fixed horizon; the time at which the base
ended, seen or not; the time at which the agent saw the end; any rule of the agent.
Not allowed: to leave out the row of a state because it came too late, or because it came
at once and the agent did not act in it.

A state is *lost* if its row is missing, or if its `shown` is blank and a later state was shown, or
if it is blank although the largest delay has passed. Nothing is asked of a lost state, nor of the
next one, whose delay before is not known. Proof that this is harmless, if a loss does not depend on
the delay of the lost state given the past: whether state h is asked of is fixed by the past and by
the losses of h - 1 and h; given the past, these are independent of D_h; so each answer still has
the probability of the law, as above. If late states are lost more often, that is wrong, and only a
trace of it can be tested: whether losses depend on the delay before.

At the end of an episode a blank may be a late state or a lost one. If a log has lost states, only
those are used whose largest delay D_max had passed by the end: sent + D_max <= end is fixed by the
time of sending alone, and then a blank is surely a loss. So the end of such a log must not depend
on what was shown. If a log has no lost states, a blank is a late state.

A delay above `max_delay` is cut to it. A state after it is skipped: its delay before is outside of
the law, and it was known before the question was asked.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import attrs

from pkd import ModelError
from pkd.expect import if_given, require, show, whole
from pkd.files.logs import is_frame, read_table
from pkd_delay.laws.rows import Notes, Row, Scale, read_rows

__all__ = ["DelayLog", "Loss", "Sample", "ask_questions", "read_log"]

RARE = 1e-6  # a run of losses that single losses make with this probability is an outage


@attrs.frozen
class Sample:
    """One delay with the one before it."""

    episode: str
    step: int
    before: int  # D_{h-1}
    delay: int  # D_h; if censored, the least that it can be
    censored: bool
    change: int | None  # D_{h-1} - D_{h-2}; None: not known
    state: str | None  # in which the action was taken
    action: str | None
    next_state: str | None  # whose delay this is


@attrs.frozen
class Loss:
    """The states of a log that were never shown. An outage is a run that chance does not explain.

    >>> Loss.count([1] * 20 + [30], kept=950)
    Loss(kept=950, single=20, outages=(30,), asked=(), unused=0)
    """

    kept: int = 0  # states whose delay is known, or how long it is at least
    single: int = 0  # lost states outside of outages
    outages: tuple[int, ...] = ()  # how many states each of them took
    asked: tuple[tuple[int, bool], ...] = ()  # (delay before, whether the state was lost)
    unused: int = 0  # states at the ends of episodes that may be late or lost

    @property
    def lost(self) -> int:
        """All lost states."""
        return self.single + sum(self.outages)

    @classmethod
    def count(cls, runs: Sequence[int], kept: int) -> Loss:
        """Tells outages from single losses; runs: the numbers of states lost in a row."""
        longest = math.inf
        while True:
            single = sum(run for run in runs if run <= longest)
            n = kept + single
            limit = math.log(RARE / n) / math.log(single / n) if 0 < single < n else longest
            if limit >= longest:
                outages = tuple(run for run in runs if run > longest)
                return cls(kept, single, outages)
            longest = limit


@attrs.frozen
class DelayLog:
    """What a log says of the delays.

    >>> times = enumerate([0, 2, 2, 5])
    >>> rows = [{"episode": 1, "step": t, "sent": t, "shown": shown} for t, shown in times]
    >>> [(sample.before, sample.delay, sample.censored) for sample in read_log(rows).samples]
    [(0, 1, False), (1, 0, False), (0, 1, True)]
    """

    samples: tuple[Sample, ...]
    rows: int
    episodes: int
    out_of_order: tuple[str, ...]  # where a state was shown after a later one
    skipped: int  # rows whose delay before is not known: after a gap, or after a censored one
    loss: Loss = Loss()
    notes: tuple[str, ...] = ()  # what a reader must know: units, the tick, duplicates, cuts

    @property
    def censored(self) -> int:
        """How many samples the end of an episode cut short."""
        return sum(sample.censored for sample in self.samples)

    @property
    def has_pairs(self) -> bool:
        """Whether the log has states and actions."""
        return any(sample.state is not None for sample in self.samples)


@attrs.define
class _State:
    """A state of an episode, and when the agent can have seen it."""

    row: Row
    shown: float | None  # after all earlier ones; None: blank
    watched: int  # ticks from sending to the end
    late: bool  # shown after the end, or blank where no loss can be told
    delay: int  # if late, the least that it can be
    lost: bool = False


def read_log(log: Any, tick: float | str | None = None, max_delay: int | None = None) -> DelayLog:
    """The delays of a log: a CSV file, a frame, rows as mappings, or simulated episodes.

    tick: how long a step takes, in the unit of the log (in seconds if it has several), or in words
    such as "10s"; None: the spacing of `sent`. max_delay: what is later is cut to it.

    >>> rows = [{"sent": 1_700_000_000_000 + 500 * t, "received": None if t == 2 else
    ...          1_700_000_000_300 + 500 * t} for t in range(5)]
    >>> found = read_log(rows)
    >>> found.notes, [sample.delay for sample in found.samples], found.loss.lost
    (('times are milliseconds of the epoch; one tick is 500 ms, the spacing of `sent`',), [1], 1)
    """
    require(if_given(whole, "max_delay", max_delay))
    if not isinstance(log, str | Path) and not is_frame(log):
        items: list[Any] = []
        for i, item in enumerate(log if isinstance(log, Iterable) else [log]):
            if not isinstance(item, Mapping) and not hasattr(item, "log_rows"):
                raise ModelError(
                    f"log is {show(log)}; expected a CSV file, a frame, rows as mappings, or "
                    "episodes"
                )
            items += [item] if isinstance(item, Mapping) else item.log_rows(i)
        log = items
    table = read_table(log)
    if not len(table):
        raise ModelError("the log is empty; expected rows with episode, step, sent and shown")
    rows, scale, notes = read_rows(table, tick)
    episodes: dict[str, list[Row]] = {}
    for row in rows:
        episodes.setdefault(row.episode, []).append(row)
    late: list[str] = []
    ordered = [_order(group, scale, notes) for group in episodes.values()]
    followed = [_follow(group, scale, late) for group in ordered]
    seen = [one.delay for states in followed for one in states if not one.late]
    largest = max(seen, default=0) if max_delay is None else max_delay
    runs, any_lost = list[int](), False
    for states in followed:
        any_lost |= _find_losses(states, largest, sure=max_delay is not None)
    samples, skipped, asked, kept, unused = list[Sample](), 0, list[tuple[int, bool]](), 0, 0
    cut = math.inf if max_delay is None else max_delay
    for states in followed:
        if any_lost:
            unused += sum(one.watched < largest for one in states)
            states = [one for one in states if one.watched >= largest]
        of_one, missed = _list_samples(states, cut, asked)
        samples += of_one
        skipped += missed
        runs += _list_runs(states)
        kept += sum(not one.lost for one in states)
    if not samples:
        raise ModelError(
            f"the log has {len(rows)} rows and no delay that follows a known one; "
            "expected episodes of two steps and more"
        )
    loss = attrs.evolve(Loss.count(runs, kept), asked=tuple(asked), unused=unused)
    return DelayLog(
        tuple(samples), len(rows), len(episodes), tuple(late), skipped, loss,
        (*notes.said, *notes.count(), *_say_cut(seen, max_delay)),
    )  # fmt: skip


def ask_questions(sample: Sample, largest: int) -> Iterator[tuple[tuple[int, int], bool]]:
    """((before, delay), answer) of each question that a sample answers, the smallest delay first.

    Is D_h = delay, given D_{h-1} = before and D_h >= delay? The end of an episode leaves the last
    ones open, and the largest delay takes the last one away.
    """
    for k in range(max(sample.before - 1, 0), min(sample.delay, largest - 1) + 1):
        if k == sample.delay and sample.censored:
            return
        yield (sample.before, k), k == sample.delay


def _say_cut(seen: Sequence[int], max_delay: int | None) -> Iterator[str]:
    if max_delay is not None and (cut := sum(delay > max_delay for delay in seen)):
        yield (
            f"max_delay {max_delay} cuts {cut} of {len(seen)} delays ({cut / len(seen):.3g} of "
            f"the mass), which were up to {max(seen)}"
        )


def _order(group: Sequence[Row], scale: Scale, notes: Notes) -> list[Row]:
    """The rows of an episode by step, one for each."""
    found: dict[int, Row] = {}
    newest = -math.inf
    for row in group:
        notes.unsorted += row.step < newest
        newest = max(newest, row.step)
        first = found.setdefault(row.step, row)
        if first is not row:
            shown = [one.shown for one in (first, row) if one.shown is not None]
            notes.duplicates += 1
            notes.differing += abs(first.sent - row.sent) > scale.order or (
                bool(shown) and max(shown) - min(shown) > scale.order
            )
            found[row.step] = attrs.evolve(
                first, sent=min(first.sent, row.sent), shown=min(shown, default=None)
            )
    return [found[step] for step in sorted(found)]


def _follow(rows: Sequence[Row], scale: Scale, disorder: list[str]) -> list[_State]:
    """The states of an episode in order. One that overtook an earlier one is held back."""
    end = _find_end(rows)
    states = []
    latest, before = -math.inf, None  # when the last of the earlier states was shown, and its row
    for row in rows:
        if row.sent > end + scale.slack:
            continue
        shown = row.shown
        if shown is not None:
            if before is not None and shown < latest - scale.order:
                where = f"episode {row.episode}, step {row.step}"
                disorder.append(f"{where} was shown before step {before.step}")
            if shown >= latest:
                before = row
            shown = latest = max(shown, latest)
        watched = math.floor(end - row.sent + scale.slack)
        late = shown is None or shown > end + scale.slack
        delay = watched + 1 if shown is None or late else scale.count(shown - row.sent)
        states.append(_State(row, shown, watched, late, delay))
    return states


def _find_losses(states: Sequence[_State], largest: int, *, sure: bool) -> bool:
    """Marks the lost states of an episode; whether it has any, or misses a row."""
    gap = any(b.row.step != a.row.step + 1 for a, b in pairwise(states))
    followed = False  # whether a later state was shown
    for one in reversed(states):
        if one.shown is not None:
            followed = True
        elif sure:
            one.lost = followed or one.watched >= largest
        else:  # a log that says its end says that a blank is late
            one.lost = followed or (one.row.end is None and one.watched > largest)
        gap |= one.lost
    return gap


def _list_samples(
    states: Sequence[_State], most: float, asked: list[tuple[int, bool]]
) -> tuple[list[Sample], int]:
    """The samples of one episode, cut at a delay, and how many states are of no use."""
    samples, skipped = list[Sample](), 0
    before: int | None = None
    change: int | None = None
    last: Row | None = None
    for one in states:
        row = one.row
        if last is not None and row.step != last.step + 1:
            before, change = None, None
        if before is not None and before <= most:
            asked.append((before, one.lost))
        if one.lost:
            before, change, last = None, None, row
            continue
        if before is not None and before <= most and last is not None:
            delay = max(one.delay, before - 1)
            open_ = one.late and delay < most
            samples.append(
                Sample(row.episode, row.step, before, int(min(delay, most)), open_, change,
                       last.state, last.action, row.state)
            )  # fmt: skip
        else:
            skipped += last is not None
        change = one.delay - before if before is not None and not one.late else None
        before, last = None if one.late else one.delay, row
    return samples, skipped


def _list_runs(states: Sequence[_State]) -> list[int]:
    """How many states were lost in a row, for each such row."""
    runs, run = list[int](), 0
    for i, one in enumerate(states):
        run += one.row.step - states[i - 1].row.step - 1 if i else 0
        if one.lost:
            run += 1
            continue
        runs += [run] if run else []
        run = 0
    return [*runs, run] if run else runs


def _find_end(rows: Sequence[Row]) -> float:
    """Until when an episode was watched: its `end`, or when its last state was sent."""
    ends = sorted({row.end for row in rows if row.end is not None})
    if len(ends) > 1:
        raise ModelError(
            f"episode {rows[0].episode} has the ends {ends[0]:g} and {ends[-1]:g} (in ticks); "
            "expected one end for all rows of an episode"
        )
    return ends[0] if ends else max(row.sent for row in rows)
