"""The rows of a log of late states in ticks: its columns, its tick, and what had to be mended."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import attrs
import numpy as np

from pkd import ModelError
from pkd.files.logs import Table, is_blank
from pkd_delay.laws.times import Times, read_tick, read_times

__all__ = ["Notes", "Row", "Scale", "read_rows"]

SHOWN_FINDINGS = 5
LATEST = 1e15  # ticks: above them a float cannot tell two ticks apart
SLACK = 1e-9  # of a tick: a time that rounding puts just after a tick belongs to it
GUESSED_SLACK = 0.01  # the same where the tick was guessed
MOST_OFF = 1.5  # by which factor the spacing of `sent` may differ from a tick
COLUMNS = {  # the usual name of each column first
    "episode": ("episode", "episode_id", "trace", "trace_id"),
    "step": ("step", "t", "seq", "sequence"),
    "sent": ("sent", "sent_at", "time", "timestamp", "created", "created_at"),
    "shown": ("shown", "shown_at", "received", "received_at", "arrived", "arrived_at"),
    "end": ("end",),
    "age": ("age",),
    "state": ("state",),
    "action": ("action",),
}
WANTED = "episode, step, sent, shown (and perhaps end, state, action), or episode, step, age"


@attrs.frozen
class Row:
    episode: str
    step: int
    sent: float  # in ticks
    shown: float | None
    end: float | None
    state: str | None
    action: str | None


@attrs.frozen
class Scale:
    """How times of the log are compared, in ticks."""

    slack: float  # a time that is so much after a tick belongs to it
    order: float  # two times that differ by this may be equal

    def count(self, time: float) -> int:
        return max(math.ceil(time - self.slack), 0)


@attrs.define
class Notes:
    """What was mended while the log was read."""

    said: list[str] = attrs.Factory(list)
    duplicates: int = 0
    differing: int = 0  # duplicates with other times
    unsorted: int = 0

    def count(self) -> Iterator[str]:
        """The counts in words."""
        if self.duplicates:
            more = f", {self.differing} with other times (the earliest count)"
            yield f"{self.duplicates} duplicate rows left out{more if self.differing else ''}"
        if self.unsorted:
            yield f"{self.unsorted} rows out of order in the log, sorted by step"


def read_rows(table: Table, tick: float | str | None) -> tuple[list[Row], Scale, Notes]:
    """The rows in ticks; one ModelError for all that cannot be read."""
    cells = {name: table.find(names) for name, names in COLUMNS.items()}
    ages = cells["age"] is not None and (cells["sent"] is None or cells["shown"] is None)
    needed = ("age", "step") if ages else ("sent", "shown")
    if any(cells[name] is None for name in needed):
        names = ", ".join(sorted(table.columns))
        raise ModelError(f"the log has the columns {names}; expected {WANTED}")
    findings: list[tuple[int, str]] = []
    notes = Notes()
    n = len(table)
    words = {
        name: [None] * n if (column := cells[name]) is None else [_text(cell) for cell in column]
        for name in ("episode", "state", "action")
    }
    episode = [text or "" for text in words["episode"]]
    step = None if cells["step"] is None else _read_steps(cells["step"], findings)
    if ages:
        assert step is not None
        rows = _read_ages(cells, episode, step, tick, words, findings)
        _refuse(table, findings)
        return list(_turn_ages(rows)), Scale(SLACK, SLACK), notes
    wanted = ("sent", "shown", "end")
    times = read_times({k: c for k in wanted if (c := cells[k]) is not None}, findings)
    sent, shown = times.columns["sent"], times.columns["shown"]
    end = times.columns.get("end", np.full(n, math.nan))
    reported = {i for i, _ in findings}
    sent_cells = cells["sent"]
    assert sent_cells is not None
    for i in np.flatnonzero(np.isnan(sent)).tolist():
        if i not in reported:
            findings.append((i, f"sent is {sent_cells[i]!r}; expected a time"))
    _refuse(table, findings)
    codes = np.unique(episode, return_inverse=True)[1]
    width, scale = _find_tick(tick, times, codes, sent, step, notes)
    if step is None:
        step = _number_steps(codes, sent / width, scale)
    shown_cells = cells["shown"]
    assert shown_cells is not None
    for name, read in times.columns.items():
        for i in np.flatnonzero(np.abs(read / width) >= LATEST).tolist():
            said = f"{name} is {read[i]:g} and a tick {width:g}; expected a larger tick"
            findings.append((i, said))
    for i in np.flatnonzero(shown < sent - scale.order * width).tolist():
        said = f"shown is {shown_cells[i]!r}, before sent = {sent_cells[i]!r}"
        findings.append((i, said))
    _refuse(table, findings)
    columns = [
        [None if math.isnan(v) else v for v in column.tolist()]
        for column in (np.maximum(shown, sent) / width, end / width)
    ]
    given = zip(
        episode, step, (sent / width).tolist(), *columns, words["state"], words["action"],
        strict=True,
    )  # fmt: skip
    return [Row(*row) for row in given], scale, notes


def _refuse(table: Table, findings: Sequence[tuple[int, str]]) -> None:
    if findings:
        found = [f"{table.say_place(i)}: {text}" for i, text in sorted(findings)]
        more = len(found) - SHOWN_FINDINGS
        raise ModelError(found[:SHOWN_FINDINGS] + ([f"... and {more} more"] if more > 0 else []))


def _find_tick(
    tick: float | str | None, times: Times, codes: Any, sent: Any, step: Any, notes: Notes
) -> tuple[float, Scale]:
    """The length of a tick in the unit of the times, and how times are compared.

    The tick is the mean spacing of `sent` per step; spacings far from the median are left out.
    """
    order = np.lexsort((sent, codes) if step is None else (sent, step, codes))
    gaps, same = np.diff(sent[order]), np.diff(codes[order]) == 0
    steps = np.ones(len(gaps)) if step is None else np.diff(np.asarray(step)[order])
    use = same & (gaps > times.resolution) & (steps > 0)
    gaps, steps = gaps[use], steps[use]
    spacing = 0.0
    if len(gaps):
        spacing = float(np.median(gaps / steps))
        if step is None:
            steps = np.maximum(np.rint(gaps / spacing), 1)
        near = np.abs(gaps / steps / spacing - 1) < 0.5
        spacing = _shorten(float(gaps[near].sum() / steps[near].sum()))
    unit = " s" if times.absolute else ""
    if tick is None:
        width, why = spacing or 1.0, ", the spacing of `sent`" if spacing else ""
    else:
        width, why = read_tick(tick, times), ""
        if spacing and not 1 / MOST_OFF <= spacing / width <= MOST_OFF:
            raise ModelError(
                f"tick is {tick!r}, but the states of the log are sent {spacing / width:.4g} ticks "
                f"apart; a step takes one tick: expected {_say_width(spacing, times)}, or none"
            )
    if times.absolute or width != 1.0:
        said = f"one tick is {_say_width(width, times)}{why}"
        notes.said.append(f"times are {times.said}; {said}")
    resolution = times.resolution / width
    if resolution > GUESSED_SLACK:
        notes.said.append(f"the units of the times differ by up to {times.resolution:g}{unit}")
    fine = max(SLACK, min(resolution, 1e-3)) if tick is not None else GUESSED_SLACK
    return width, Scale(fine, max(resolution, 1e-6))


def _say_width(width: float, times: Times) -> str:
    if not times.absolute:
        return f"{width:.6g}"
    return f"{width:.6g} s" if width >= 1 else f"{1000 * width:.6g} ms"


def _shorten(value: float) -> float:
    """The roundest number within .05% of a value."""
    rounded = (float(f"{value:.{digits}g}") for digits in range(1, 5))
    return next((one for one in rounded if abs(one / value - 1) < 5e-4), value)


def _number_steps(codes: Any, sent: Any, scale: Scale) -> list[int]:
    """The steps of a log that does not say them, from the times of sending in ticks."""
    order = np.lexsort((sent, codes))
    gaps = np.diff(sent[order])
    ahead = np.where(np.abs(gaps) <= scale.order, 0, np.maximum(np.rint(gaps), 1))
    steps = np.zeros(len(sent), np.int64)
    steps[order[1:]] = np.cumsum(ahead)
    return [int(step) for step in steps]


def _read_steps(cells: Sequence[Any], findings: list[tuple[int, str]]) -> list[int]:
    steps = []
    for i, cell in enumerate(cells):
        number = _number(cell)
        if number != int(number) if math.isfinite(number) else True:
            findings.append((i, f"step is {cell!r}; expected a whole number"))
            number = 0.0
        steps.append(int(number))
    return steps


def _read_ages(
    cells: Mapping[str, Sequence[Any] | None], episode: Sequence[str], step: Sequence[int],
    tick: float | str | None, words: Mapping[str, Sequence[str | None]],
    findings: list[tuple[int, str]],
) -> list[Row]:  # fmt: skip
    """Rows of ages; `sent` holds the age in ticks."""
    width = 1.0 if tick is None else read_tick(tick, None)
    if any(not is_blank(cell) for cell in cells["end"] or ()):
        raise ModelError("end goes with sent and shown; a log of ages ends with its last row")
    rows = []
    for i, cell in enumerate(cells["age"] or ()):
        age = _number(cell)
        if not age >= 0:
            findings.append((i, f"age is {cell!r}; expected a number >= 0"))
            age = 0.0
        if age / width >= LATEST:
            findings.append((i, f"age is {cell!r} and a tick {width:g}; expected a larger tick"))
            age = 0.0
        late = float(math.ceil(age / width - SLACK))
        rows.append(
            Row(episode[i], step[i], late, None, None, words["state"][i], words["action"][i])
        )
    return rows


def _turn_ages(rows: Sequence[Row]) -> Iterator[Row]:
    """Rows of ages as rows of times: at step h the newest state is that of step h - age."""
    episodes: dict[str, dict[int, Row]] = {}
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
        last = float(max(group))
        for step, row in sorted(group.items()):
            if step in shown or step > (newest or step - 1):
                at = shown.get(step)
                yield attrs.evolve(
                    row, sent=float(step), shown=None if at is None else float(at), end=last
                )


def _number(cell: Any) -> float:
    """A cell as a finite number, or nan."""
    try:
        number = float(cell)
    except (TypeError, ValueError):
        return math.nan
    return number if abs(number) < LATEST else math.nan


def _text(cell: Any) -> str | None:
    """A cell as text; whole numbers of a frame may have come as floats."""
    if is_blank(cell):
        return None
    return str(int(cell)) if isinstance(cell, float) and cell.is_integer() else str(cell).strip()
