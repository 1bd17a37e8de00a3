"""Everything that can be wrong with the numbers of a `TabularMDP`, found before it is used."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np
from numpy.typing import NDArray

from pkd.discounting import find_discount_faults
from pkd.sparse_table import SparseTable

if TYPE_CHECKING:
    from pkd.tabular import TabularMDP

__all__ = ["find_faults", "normalise_rows"]

Floats = NDArray[np.float64]
TOLERANCE = 1e-9  # how far a row of probabilities may be from 1
ROUNDING = 1e-13  # by how much the sum of a long row may miss 1 by rounding alone
SHOWN = 5  # bad rows that one finding names before it counts the rest


def find_faults(mdp: TabularMDP) -> Iterator[str]:
    """Everything that is wrong with the numbers of a TabularMDP."""
    p, r = mdp.transitions, mdp.rewards
    if isinstance(p, SparseTable) and (broken := list(_structure_findings(p))):
        yield from broken
    elif not _is_table(p):
        yield f"transitions: expected numbers of shape (S, A, S), found {_describe(p)}"
    else:
        yield from _row_findings("transitions", p, _find_absent(r, p.shape))
        yield from _reward_findings(r, p.shape)
        yield from _start_findings(mdp.start, p.shape[-1])
        for field, names, n, what in (
            ("state_names", mdp.state_names, p.shape[-1], "S"),
            ("action_names", mdp.action_names, p.shape[-2], "A"),
        ):
            if names is not None and len(names) != n:
                yield f"{field}: expected {n} names ({what} = {n}), found {len(names)}"
    horizon: Any = mdp.horizon
    if isinstance(horizon, bool) or not isinstance(horizon, int | np.integer) or horizon < 1:
        yield f"horizon: expected a whole number of at least 1, found {horizon!r}"
    yield from find_discount_faults(mdp.discount)


def normalise_rows(table: Any) -> Any:
    """The table with the rows that were accepted divided by their sums.

    Rows that sum to 1 up to rounding keep their bits. Rows that are not on offer may sum to
    anything and stay as they are.
    """
    sparse = isinstance(table, SparseTable)
    sums = table.sum_rows(table.probabilities) if sparse else table.sum(axis=-1)
    off = np.abs(sums - 1.0)
    divisors = np.where((off > ROUNDING) & (off <= TOLERANCE), sums, 1.0)
    if (divisors == 1.0).all():
        return table
    if sparse:
        by_entry = np.repeat(divisors.ravel(), np.diff(table.pointers))
        return attrs.evolve(table, probabilities=table.probabilities / by_entry)
    divided = table / divisors[..., None]
    divided.flags.writeable = False
    return divided


def _is_table(p: Any) -> bool:
    """Whether transitions have the shape (S, A, S) or (T, S, A, S)."""
    return (
        isinstance(p, np.ndarray | SparseTable)
        and p.ndim in (3, 4)
        and p.shape[-3] == p.shape[-1]
        and 0 not in p.shape
    )


def _structure_findings(p: SparseTable) -> Iterator[str]:
    """What is wrong with the arrays of a sparse table, which a file may have given."""
    kinds = [array.dtype.kind for array in (p.pointers, p.successors, p.probabilities)]
    rows = int(np.prod(p.shape[:-1])) if p.shape else 0
    ends = p.pointers[[0, -1]].tolist() if p.pointers.ndim == 1 and p.pointers.size else []
    if (
        kinds != ["i", "i", "f"]
        or p.pointers.shape != (rows + 1,)
        or p.successors.shape != p.probabilities.shape
        or ends != [0, len(p.successors)]
        or (np.diff(p.pointers) < 0).any()
    ):
        yield "transitions: expected a sparse table; its rows and entries do not fit together"
    elif len(p.successors) and not 0 <= p.successors.min() <= p.successors.max() < p.shape[-1]:
        yield f"transitions: expected successors 0..{p.shape[-1] - 1}, found others"


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
    field: str, rows: Floats | SparseTable, absent: NDArray[np.bool_] | np.bool_
) -> Iterator[str]:
    """Rows of probabilities along the last axis that are no distributions, the first few."""
    entries = rows.probabilities if isinstance(rows, SparseTable) else rows
    infinite, below = ~np.isfinite(entries), entries < 0
    broken: Any
    negative: Any
    if isinstance(rows, SparseTable):
        broken, negative = rows.sum_rows(infinite * 1.0) > 0, rows.sum_rows(below * 1.0) > 0
        sums = rows.sum_rows(np.where(infinite, 0.0, entries))
    else:
        broken, negative, sums = infinite.any(axis=-1), below.any(axis=-1), rows.sum(axis=-1)
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
        yield from _row_findings("start", start, np.bool_(False))


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
