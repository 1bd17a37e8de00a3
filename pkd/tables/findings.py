"""Everything that can be wrong with the numbers of a `TabularMDP`, found before it is used."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pkd.expect import show, whole
from pkd.model import ROUNDING
from pkd.tables.discounting import find_discount_faults
from pkd.tables.sparse import SparseTable

if TYPE_CHECKING:
    from pkd.tables.tabular import TabularMDP

__all__ = [
    "find_faults",
    "is_table",
    "normalise_rows",
    "normalise_segments",
    "sum_rows",
    "sum_segments",
]

Floats = NDArray[np.float64]
TOLERANCE = 1e-9  # how far a row of probabilities may be from 1
SPLIT = 2.0**22  # adding it rounds a probability to a multiple of 2^-30
PORTION = 1 << 17  # numbers that are split at once: they stay in the cache
SHOWN = 5  # bad rows that one finding names before it counts the rest


def find_faults(mdp: TabularMDP, sums: Floats | None) -> Iterator[str]:
    """Everything that is wrong with the numbers of a TabularMDP; sums: of its rows, or None."""
    p, r = mdp.transitions, mdp.rewards
    if sums is None:
        yield f"transitions: expected numbers of shape (S, A, S), found {_describe(p)}"
    else:
        yield from _row_findings("transitions", p, sums, _find_absent(r, p.shape))
        yield from _reward_findings(r, p.shape)
        yield from _start_findings(mdp.start, p.shape[-1])
        for field, names, n, what in (
            ("state_names", mdp.state_names, p.shape[-1], "S"),
            ("action_names", mdp.action_names, p.shape[-2], "A"),
        ):
            given: object = names  # the converter leaves what is no list as it is
            if given is not None and not isinstance(given, tuple):
                yield f"{field} is {show(given)}; expected a list of {n} names"
            elif names is not None and len(names) != n:
                yield f"{field}: expected {n} names ({what} = {n}), found {len(names)}"
    yield from whole("horizon", mdp.horizon, least=1)
    yield from find_discount_faults(mdp.discount)


def normalise_rows(table: Any, sums: Floats) -> Any:
    """The table with the rows that were accepted divided by their sums, as `pkd.model.normalise`
    does it.

    Rows that sum to 1 up to rounding keep their bits. Rows that are not on offer may sum to
    anything and stay as they are.
    """
    if isinstance(table, SparseTable):
        data = normalise_segments(table.matrix.data, table.matrix.indptr, sums.ravel())
        return table if data is table.matrix.data else table.replace(data)
    divisors = _find_divisors(sums)
    if (divisors == 1.0).all():
        return table
    divided = table / divisors[..., None]
    divided.flags.writeable = False
    return divided


def normalise_segments(p: Floats, ptr: NDArray[Any], sums: Floats) -> Floats:
    """The segments p[ptr[i]:ptr[i + 1]] divided by their sums in the same manner."""
    divisors = _find_divisors(sums)
    off = np.flatnonzero(divisors != 1.0)
    if not len(off):
        return p
    divided, size = p.copy(), max(PORTION * len(sums) // max(len(p), 1), 1)
    for lo in range(0, len(off), size):
        rows = off[lo : lo + size]
        lengths = ptr[rows + 1] - ptr[rows]
        ends = np.cumsum(lengths)
        at = np.arange(ends[-1]) + np.repeat(ptr[rows] - ends + lengths, lengths)
        divided[at] /= np.repeat(divisors[rows], lengths)
    return divided


def _find_divisors(sums: Floats) -> Floats:
    off = np.abs(sums - 1.0)
    found: Floats = np.where((off > ROUNDING) & (off <= TOLERANCE), sums, 1.0)
    return found


def sum_rows(table: Floats | SparseTable) -> Floats:
    """The sums of the rows along the last axis, rounded once, as `math.fsum` gives them.

    Multiples of 2^-30 add up without rounding, and what is left of each number is so small that
    its rounding does not matter.
    """
    shape = table.shape[:-1]
    if isinstance(table, SparseTable):
        return sum_segments(table.matrix.data, table.matrix.indptr).reshape(shape)
    data, size = table.reshape(-1, table.shape[-1]), max(PORTION // table.shape[-1], 1)
    sums = np.zeros(len(data))
    with np.errstate(all="ignore"):  # what is not finite is found by its sum
        for lo in range(0, len(data), size):
            part = data[lo : lo + size]
            coarse = (part + SPLIT) - SPLIT
            sums[lo : lo + size] = coarse.sum(axis=1) + (part - coarse).sum(axis=1)
    return sums.reshape(shape)


def sum_segments(p: Floats, ptr: NDArray[Any]) -> Floats:
    """The same of the segments p[ptr[i]:ptr[i + 1]]."""
    sums, rows = np.zeros(len(ptr) - 1), np.flatnonzero(ptr[1:] > ptr[:-1])
    starts, size = ptr[rows], max(PORTION * len(rows) // max(len(p), 1), 1)
    with np.errstate(all="ignore"):
        for lo in range(0, len(rows), size):
            at = starts[lo : lo + size]
            part = p[at[0] : starts[lo + size] if lo + size < len(rows) else ptr[-1]]
            coarse = (part + SPLIT) - SPLIT
            fine = np.add.reduceat(part - coarse, at - at[0])
            sums[rows[lo : lo + size]] = np.add.reduceat(coarse, at - at[0]) + fine
    return sums


def is_table(p: Any) -> bool:
    """Whether transitions have the shape (S, A, S) or (T, S, A, S)."""
    return (
        isinstance(p, np.ndarray | SparseTable)
        and p.ndim in (3, 4)
        and p.shape[-3] == p.shape[-1]
        and 0 not in p.shape
    )


def _find_absent(r: Any, shape: tuple[int, ...]) -> NDArray[np.bool_]:
    """The pairs that are not on offer, in the shape of the rows of the transitions: their rows are
    not used. With rewards that change, a row is used if one of its rewards is.
    """
    absent = np.zeros(shape[:-1], bool)
    if not isinstance(r, np.ndarray) or r.shape[-2:] != shape[-3:-1]:
        return absent
    missing: Any = np.isneginf(r)
    if missing.ndim > absent.ndim:
        missing = missing.all(axis=0)
    if missing.ndim == absent.ndim and missing.shape != absent.shape:
        return absent
    absent[...] = missing
    return absent


def _row_findings(
    field: str, rows: Floats | SparseTable, sums: Floats, absent: NDArray[np.bool_] | np.bool_
) -> Iterator[str]:
    """Rows of probabilities along the last axis that are no distributions, the first few."""
    entries = rows.matrix.data if isinstance(rows, SparseTable) else rows
    if entries.min(initial=0.0) >= 0 and (absent | (np.abs(sums - 1.0) <= TOLERANCE)).all():
        return
    infinite, below = ~np.isfinite(entries), entries < 0
    broken: Any
    negative: Any
    if isinstance(rows, SparseTable):
        broken, negative = rows.mark_rows(infinite), rows.mark_rows(below)
    else:
        broken, negative = infinite.any(axis=-1), below.any(axis=-1)
    broken = broken & ~absent
    negative = negative & ~broken & ~absent
    uneven = ~absent & ~broken & ~negative & (np.abs(sums - 1.0) > TOLERANCE)
    for at in _some(broken):
        yield f"{_place(field, at)} holds a number that is not finite{_more(broken, at)}"
    for at in _some(negative):
        least = f"{rows[at].min():.6g}"
        yield f"{_place(field, at)} holds the negative probability {least}{_more(negative, at)}"
    for at in _some(uneven):
        yield f"{_place(field, at)} sums to {sums[at]:.12g}, not 1{_more(uneven, at)}"


def _reward_findings(r: Any, shape: tuple[int, ...]) -> Iterator[str]:
    pair = shape[-3:-1]
    # (S, A, S) is taken for r(s, a, s') even where it could be S tables (S, A).
    by_successor = isinstance(r, np.ndarray) and r.shape == shape
    fits = isinstance(r, np.ndarray) and r.ndim in (2, 3) and r.shape[-2:] == pair
    if by_successor or not fits:
        hint = (
            f"; average over s' first: (transitions * rewards).sum(axis={len(shape) - 1})"
            if by_successor
            else ""
        )
        yield f"rewards: expected numbers of shape (S, A) = {pair}, found {_describe(r)}{hint}"
        return
    if r.ndim == 3 and len(shape) == 4 and len(r) != shape[0]:
        yield (
            f"rewards: expected as many tables as transitions has, {shape[0]}, or one, "
            f"found {len(r)}"
        )
    bad = np.isnan(r) | np.isposinf(r)
    for at in _some(bad):
        yield f"{_place('rewards', at)} is {r[at]}, not a finite number{_more(bad, at)}"
    nothing = np.isneginf(r).all(axis=-1)
    for at in _some(nothing):
        yield f"{_place('rewards', at)} offers no action: all are -inf{_more(nothing, at)}"


def _start_findings(start: Any, n: int) -> Iterator[str]:
    if isinstance(start, int | np.integer) and not isinstance(start, bool):
        if not 0 <= start < n:
            yield f"start: expected a state 0..{n - 1}, found {start}"
    elif not isinstance(start, np.ndarray) or start.shape != (n,):
        yield f"start: expected a state 0..{n - 1} or {n} probabilities, found {_describe(start)}"
    else:
        yield from _row_findings("start", start, sum_rows(start), np.bool_(False))


def _some(bad: np.bool_ | NDArray[np.bool_]) -> list[tuple[int, ...]]:
    """The places of the first few True."""
    return [tuple(map(int, at)) for at in np.argwhere(bad)[:SHOWN]]


def _more(bad: np.bool_ | NDArray[np.bool_], at: tuple[int, ...]) -> str:
    """Said at the last place shown: how many places were left out."""
    left = int(bad.sum()) - SHOWN
    return f" (and {left} more like it)" if left > 0 and at == _some(bad)[-1] else ""


def _place(field: str, at: tuple[int, ...]) -> str:
    return f"{field}[{', '.join(map(str, at))}]" if at else field


def _describe(value: Any) -> str:
    return (
        f"shape {value.shape}"
        if isinstance(value, np.ndarray)
        else f"{type(value).__name__} that is no array of numbers"
    )
