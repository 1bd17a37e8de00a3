"""Times of a log: ISO timestamps, seconds, milli-, micro- or nanoseconds of the epoch, or numbers.

One log may mix them: the size of an epoch time says its unit. All become seconds since the first
time of the log; numbers that are no times of the epoch stay in their own unit.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal, InvalidOperation
from typing import Any, NamedTuple

import attrs
import numpy as np
from numpy.typing import NDArray

from pkd import ModelError
from pkd.expect import number, require
from pkd.files.logs import is_blank

__all__ = ["Times", "read_tick", "read_times"]

NS = 10**9
UNITS = {"s": NS, "ms": 10**6, "us": 10**3, "ns": 1}  # nanoseconds of each
NAMES = {"s": "seconds", "ms": "milliseconds", "us": "microseconds", "ns": "nanoseconds"}
FIRST, LAST = 600_000_000, 4_100_000_000  # a number is a time of the epoch from 1989 to 2099
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
TICKS = {**UNITS, "min": 60 * NS, "h": 3600 * NS, "d": 86400 * NS}
MOST = 1e18  # of a number that is no time of the epoch
FINEST = 1e-6  # seconds: clocks do not agree better than this


@attrs.frozen(eq=False)
class Times:
    """Columns of times in one unit; nan where a cell is blank."""

    columns: Mapping[str, NDArray[np.float64]]
    absolute: bool  # in seconds; otherwise in the unit of the log
    said: str  # what they were
    one_unit: str | None  # the unit of the epoch that all share; None: several, or no epoch
    resolution: float  # by how much equal times may differ, in the unit of `columns`


class _Read(NamedTuple):
    value: Decimal | datetime
    digits: int  # behind the point


def read_times(columns: Mapping[str, Sequence[Any]], findings: list[tuple[int, str]]) -> Times:
    """All columns on one scale. What cannot be read is added to the findings, with its row.

    >>> cells = ["1700000000", "1700000001500", "2023-11-14T23:13:22+01:00", ""]
    >>> found = read_times({"sent": cells}, [])
    >>> found.columns["sent"].tolist(), found.said
    ([0.0, 1.5, 2.0, nan], 'ISO timestamps, seconds and milliseconds of the epoch')
    """
    read = {
        name: [_read(cell, name, i, findings) for i, cell in enumerate(cells)]
        for name, cells in columns.items()
    }
    units = {name: [_find_unit(one) for one in cells] for name, cells in read.items()}
    found = [unit for of_one in units.values() for unit in of_one if unit is not None]
    absolute = sum(unit != "" for unit in found) > len(found) / 2
    if not absolute:
        numbers = {
            name: np.array([_to_float(one, name, i, findings) for i, one in enumerate(cells)])
            for name, cells in read.items()
        }
        return Times(numbers, False, "numbers", None, 0.0)
    whole: dict[str, list[int | None]] = {}
    digits: dict[str, int] = {}
    for name, cells in read.items():
        whole[name] = []
        for i, (one, unit) in enumerate(zip(cells, units[name], strict=True)):
            if unit == "" and one is not None:
                findings.append((i, f"{name} is {one.value}; expected a time like the others"))
            value = None if one is None or not unit else _count_ns(one, unit)
            whole[name].append(value)
            if one is not None and unit:
                digits[unit] = max(digits.get(unit, 0), one.digits)
    plain = _list_plain(read)
    if plain and len(plain) < sum(unit == "iso" for unit in found):
        text = "has no time zone, others have one; expected a zone for all or for none"
        findings += [(i, f"{name} is {value}, which {text}") for name, i, value in plain]
    first = min((v for values in whole.values() for v in values if v is not None), default=0)
    kinds = [unit for unit in ("iso", *UNITS) if unit in digits]
    # Written in one way, times are cut alike and keep their order.
    coarse = max(UNITS.get(unit, NS) / NS / 10 ** digits[unit] for unit in kinds)
    return Times(
        {
            name: np.array([math.nan if v is None else (v - first) / NS for v in values])
            for name, values in whole.items()
        },
        True,
        _say_kinds(kinds) + (" (no time zone: read as UTC)" if plain else ""),
        kinds[0] if len(kinds) == 1 and kinds != ["iso"] else None,
        max(FINEST, coarse if len(kinds) > 1 else 0.0),
    )


def read_tick(tick: float | str, times: Times | None) -> float:
    """A tick in the unit of the times; without times (a log of ages) words are seconds.

    >>> read_tick("1.5min", None), read_tick(10, None)
    (90.0, 10.0)
    """
    if not isinstance(tick, str):
        require(number("tick", tick, above=True))
        one_unit = None if times is None else times.one_unit
        return tick * (UNITS[one_unit] / NS if one_unit else 1.0)
    match = re.fullmatch(r"\s*([0-9.eE+-]+?)\s*([a-zµ]*)\s*", tick)
    unit = "" if match is None else match[2].replace("µ", "u").replace("sec", "s")
    try:
        value = float(match[1]) if match is not None else math.nan
    except ValueError:
        value = math.nan
    if not (value > 0 and math.isfinite(value)) or unit not in ("", *TICKS):
        raise ModelError(f"tick is {tick!r}; expected a number > 0, or a time such as 10s or 250ms")
    if not unit:
        return read_tick(value, times)
    if times is not None and not times.absolute:
        raise ModelError(
            f"tick is {tick!r}, but the times of the log are numbers without a unit; expected a "
            "number in their unit"
        )
    return value * TICKS[unit] / NS


def _read(cell: Any, name: str, i: int, findings: list[tuple[int, str]]) -> _Read | None:
    if is_blank(cell):
        return None
    if isinstance(cell, datetime):
        return _Read(cell, 6)
    text = str(cell).strip()
    try:
        value = Decimal(text)
        if value.is_finite():
            exponent = value.as_tuple().exponent
            return _Read(value, max(-exponent, 0) if isinstance(exponent, int) else 0)
    except InvalidOperation:
        try:
            moment = datetime.fromisoformat(re.sub(r"\s*(UTC|GMT)$", "Z", text))
            return _Read(moment, 6 if re.search(r":\d\d[.,]\d", text) else 0)
        except ValueError:
            pass
    findings.append((i, f"{name} is {cell!r}; expected a number or a time as 2026-05-01T10:00:00Z"))
    return None


def _find_unit(one: _Read | None) -> str | None:
    """iso, a unit of the epoch, or "" for another number; None: blank."""
    if one is None:
        return None
    if isinstance(one.value, datetime):
        return "iso"
    size = one.value
    return next((u for u, ns in UNITS.items() if FIRST <= size * ns / NS <= LAST), "")


def _count_ns(one: _Read, unit: str) -> int:
    """Nanoseconds of the epoch, exactly. A timestamp without a zone is read as UTC."""
    if not isinstance(one.value, datetime):
        return int(one.value * UNITS[unit])
    moment = one.value if one.value.tzinfo is not None else one.value.replace(tzinfo=UTC)
    fine = int(getattr(one.value, "nanosecond", 0))  # of a pandas Timestamp
    return (moment - EPOCH) // timedelta(microseconds=1) * 1000 + fine


def _list_plain(read: Mapping[str, Sequence[_Read | None]]) -> list[tuple[str, int, datetime]]:
    """The timestamps without a zone: (column, row, timestamp)."""
    return [
        (name, i, one.value)
        for name, cells in read.items()
        for i, one in enumerate(cells)
        if one is not None and isinstance(one.value, datetime) and one.value.tzinfo is None
    ]


def _to_float(one: _Read | None, name: str, i: int, findings: list[tuple[int, str]]) -> float:
    if one is None:
        return math.nan
    if isinstance(one.value, datetime):
        findings.append((i, f"{name} is {one.value}; expected a number like the others"))
        return math.nan
    if abs(one.value) >= MOST:
        findings.append((i, f"{name} is {one.value:.6g}; expected a number below {MOST:g}"))
        return math.nan
    return float(one.value)


def _say_kinds(kinds: Sequence[str]) -> str:
    epoch = [NAMES[unit] for unit in kinds if unit in NAMES]
    parts = ["ISO timestamps"] * ("iso" in kinds)
    if epoch:
        parts.append(f"{' and '.join(epoch)} of the epoch")
    return ", ".join(parts)
