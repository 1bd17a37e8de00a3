"""Logs of late samples: when each state was sent, when it was shown, and what that says of delays.

A row of a log is one state that was sent: (episode, step, sent, shown), perhaps with the state
itself and the action that was taken in it. A log may hold the age of the newest sample in place of
`sent` and `shown`. The log of an episode is watched until `end`, by default until its last state
was sent. What was shown later says only that the delay was at least so long. It is *censored*.

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
`pkd.confidence` need. Allowed: a fixed horizon; the time at which the base ended, seen or not; the
time at which the agent saw the end; any rule of the agent. Not allowed: to leave out the row of a
state because it came too late, or because it came at once and the agent did not act in it.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

from pkd import ModelError
from pkd_delay.record import Episode

__all__ = ["DelayLog", "Sample", "read_log", "to_rows"]

SHOWN_FINDINGS = 5
SLACK = 1e-9  # of a tick: a time that rounding puts just after a tick belongs to it
TIMES, AGES = ("episode", "step", "sent", "shown"), ("episode", "step", "age")


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

    @property
    def censored(self) -> int:
        """How many samples the end of an episode cut short."""
        return sum(sample.censored for sample in self.samples)

    @property
    def has_pairs(self) -> bool:
        """Whether the log has states and actions."""
        return any(sample.state is not None for sample in self.samples)


@attrs.frozen
class _Row:
    episode: str
    step: int
    sent: float  # in ticks
    shown: float | None
    end: float | None
    state: str | None
    action: str | None


def read_log(log: Any, tick: float = 1.0) -> DelayLog:
    """The delays of a log: a CSV file, rows as mappings, or episodes of `simulate`.

    tick: how much of the time unit of the log one step takes.
    """
    if not tick > 0:
        raise ModelError(f"tick is {tick!r}; expected a number > 0")
    if isinstance(log, str | Path):
        rows = _read_rows(_read_csv(Path(log)), f"{log}, line", 2, tick)
    else:
        items = list(log)
        if items and all(isinstance(item, Episode) for item in items):
            items = [row for i, item in enumerate(items) for row in to_rows(item, i)]
        rows = _read_rows(items, "row", 0, tick)
    episodes: dict[str, list[_Row]] = {}
    for row in rows:
        episodes.setdefault(row.episode, []).append(row)
    samples, skipped, late = list[Sample](), 0, list[str]()
    for group in episodes.values():
        found, missed, disorder = _read_episode(sorted(group, key=lambda row: row.step))
        samples += found
        skipped += missed
        late += disorder
    if not samples:
        raise ModelError(
            f"the log has {len(rows)} rows and no delay that follows a known one; "
            "expected episodes of two steps and more"
        )
    return DelayLog(tuple(samples), len(rows), len(episodes), tuple(late), skipped)


def to_rows(record: Episode, episode: int = 0) -> list[dict[str, Any]]:
    """The log of one simulated episode: a row for each state that was sent before step H + 1.

    The episode is watched until the agent saw that the base had ended, at most until step H: at
    step H + 1 everything is shown.
    """
    end = min(len(record.actions) + 1, record.horizon)
    ended = len(record.states)  # no action is taken in the last state
    return [
        {
            "episode": episode,
            "step": t,
            "sent": t,
            "shown": record.shown_at(t) + (record.start_delay if t == 1 else 0),
            "end": end,
            "state": record.states[t - 1],
            "action": record.actions[t - 1] if t < ended else None,
        }
        for t in range(1, min(ended, record.horizon) + 1)
    ]


def _read_episode(rows: Sequence[_Row]) -> tuple[list[Sample], int, list[str]]:
    """The samples of one episode, how many rows are of no use, and what came out of order.

    A state that overtook an earlier one is held back until that one is shown.
    """
    end = _find_end(rows)
    rows = [row for row in rows if row.sent <= end + SLACK]
    samples, skipped, disorder = list[Sample](), 0, list[str]()
    latest = -math.inf  # when the last of the earlier states was shown
    before: int | None = None
    change: int | None = None
    for i, row in enumerate(rows):
        if i and row.step != rows[i - 1].step + 1:
            before, change, latest = None, None, -math.inf
        seen = row.shown is not None and row.shown <= end + SLACK
        shown = math.inf if row.shown is None else row.shown
        if shown < latest - SLACK:
            where = f"episode {row.episode}, step {row.step}"
            disorder.append(f"{where} was shown before step {rows[i - 1].step}")
            shown = latest
            seen = shown <= end + SLACK
        latest = max(latest, shown)
        delay = _ticks(shown - row.sent) if seen else math.floor(end - row.sent + SLACK) + 1
        if before is not None:
            last = rows[i - 1]
            samples.append(
                Sample(row.episode, row.step, before, max(delay, before - 1), not seen, change,
                       last.state, last.action, row.state)
            )  # fmt: skip
        else:
            skipped += i > 0
        change = delay - before if before is not None and seen else None
        before = delay if seen else None
    return samples, skipped, disorder


def _find_end(rows: Sequence[_Row]) -> float:
    """Until when an episode was watched: its `end`, or when its last state was sent."""
    ends = sorted({row.end for row in rows if row.end is not None})
    if len(ends) > 1:
        raise ModelError(
            f"episode {rows[0].episode} has the ends {ends[0]:g} and {ends[-1]:g} (in ticks); "
            "expected one end for all rows of an episode"
        )
    return ends[0] if ends else max(row.sent for row in rows)


def _ticks(time: float) -> int:
    return max(math.ceil(time - SLACK), 0)


def _read_rows(
    rows: Iterable[Mapping[str, Any]], where: str, start: int, tick: float
) -> list[_Row]:
    """The rows with their numbers read; one ModelError for all that cannot be."""
    items = [dict(row) for row in rows]
    if not items:
        raise ModelError("the log is empty; expected rows with episode, step, sent and shown")
    names = {str(name).strip().lower() for name in items[0]}
    ages = not set(TIMES) <= names and set(AGES) <= names
    if not ages and not set(TIMES) <= names:
        raise ModelError(
            f"the log has the columns {', '.join(sorted(names))}; "
            f"expected {', '.join(TIMES)} (and perhaps end, state, action), or {', '.join(AGES)}"
        )
    found: list[str] = []
    read: list[_Row] = []
    for i, item in enumerate(items):
        row = {str(name).strip().lower(): value for name, value in item.items()}
        try:
            read.append(_read_row(row, ages, tick))
        except (TypeError, ValueError) as error:
            found.append(f"{where} {i + start}: {error}")
    if found:
        more = len(found) - SHOWN_FINDINGS
        raise ModelError(found[:SHOWN_FINDINGS] + ([f"... and {more} more"] if more > 0 else []))
    return list(_turn_ages(read)) if ages else read


def _read_row(row: Mapping[str, Any], ages: bool, tick: float) -> _Row:
    step = _number(row.get("step"), "step")
    if step != int(step):
        raise ValueError(f"step is {row.get('step')!r}; expected a whole number")
    state, action = (_text(row.get(name)) for name in ("state", "action"))
    episode = _text(row.get("episode")) or ""
    if ages:
        age = math.ceil(_number(row.get("age"), "age") / tick - SLACK)
        if age < 0:
            raise ValueError(f"age is {row.get('age')!r}; expected a number >= 0")
        if _text(row.get("end")) is not None:
            raise ValueError("end goes with sent and shown; a log of ages ends with its last row")
        return _Row(episode, int(step), float(age), None, None, state, action)
    sent = _number(row.get("sent"), "sent") / tick
    shown, end = (
        None if _text(row.get(name)) is None else _number(row.get(name), name) / tick
        for name in ("shown", "end")
    )
    if shown is not None and shown < sent - SLACK:
        raise ValueError(f"shown is {row['shown']!r}, before sent = {row['sent']!r}")
    return _Row(episode, int(step), sent, shown, end, state, action)


def _turn_ages(rows: Sequence[_Row]) -> Iterator[_Row]:
    """Rows of ages as rows of times: at step h the newest state is that of step h - age."""
    episodes: dict[str, dict[int, _Row]] = {}
    for row in rows:
        episodes.setdefault(row.episode, {})[row.step] = row
    for group in episodes.values():
        shown: dict[int, int] = {}
        newest: int | None = None
        for step in sorted(group):
            now = step - int(group[step].sent)
            if newest is None and now == step:
                shown[now] = step
            elif newest is not None:
                shown |= dict.fromkeys(range(newest + 1, now + 1), step)
            newest = now if newest is None else max(now, newest)
        for step, row in sorted(group.items()):
            if step in shown or step > (newest or step - 1):
                at = shown.get(step)
                yield attrs.evolve(row, sent=float(step), shown=None if at is None else float(at))


def _number(value: Any, name: str) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not math.isfinite(number):
        raise ValueError(f"{name} is {value!r}; expected a number")
    return number


def _text(value: Any) -> str | None:
    text = "" if value is None else str(value).strip()
    return text or None


def _read_csv(path: Path) -> list[dict[str, Any]]:
    """The rows of a CSV file with commas, semicolons or tabs."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise ModelError(f"{path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        at = f"byte {error.object[error.start]:#04x} at position {error.start}"
        raise ModelError(f"{path} is not UTF-8 text: {at}; save it as UTF-8") from None
    head = text.partition("\n")[0]
    separator = max(",;\t", key=head.count)
    return list(csv.DictReader(io.StringIO(text), delimiter=separator))
