"""Transition tables that hold only what can follow: P in compressed rows.

A table over S states and A actions has S A rows, the one of (s, a) at s A + a, and T times as many
if it changes with the step. `SparseTable` reads the matrices of scipy.sparse without importing
scipy, and never builds the dense array unless it is asked for one row or for all of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from pkd.model import ModelError

__all__ = ["SparseTable", "Support", "is_sparse"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Shape = tuple[int, ...]  # (S, A, S), or (T, S, A, S)


def is_sparse(given: Any) -> bool:
    """Whether this is a scipy.sparse matrix or array."""
    return hasattr(given, "tocsr") and hasattr(given, "nnz")


@attrs.frozen(eq=False, repr=False)
class Support:
    """Which states can follow each row, without their probabilities."""

    shape: Shape
    pointers: Integers  # (rows + 1,)
    successors: Integers  # (entries,), ascending in each row

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: shape {self.shape}, {len(self.successors):,} entries>"

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def lengths(self) -> Integers:
        """How many states can follow each (s, a), of shape (S, A) or (T, S, A)."""
        return np.diff(self.pointers).reshape(self.shape[:-1])

    def find_row(self, at: Shape) -> slice:
        """Where the entries of a row are; IndexError outside the table."""
        if len(at) != len(self.shape) - 1:
            raise IndexError(f"{at} is no place in a table of shape {self.shape}")
        row = 0  # by hand: this is asked once for each row of a large table
        for i, n in zip(at, self.shape, strict=False):
            if not 0 <= i < n:
                raise IndexError(f"{at} is outside a table of shape {self.shape}")
            row = row * n + i
        return slice(int(self.pointers[row]), int(self.pointers[row + 1]))

    def list_successors(self, at: Shape) -> list[int]:
        """The states that can follow a row."""
        found: list[int] = self.successors[self.find_row(at)].tolist()
        return found


@attrs.frozen(eq=False, repr=False)
class SparseTable(Support):
    """P(s' | s, a) of the states that can follow; zeros are left out.

    `table[s, a]` is one dense row, and `numpy.asarray(table)` the dense array.

    >>> table = SparseTable.of_dense(np.array([[[0.5, 0.5]], [[0.0, 1.0]]]))
    >>> table, table[1, 0], table.list_successors((1, 0))
    (<SparseTable: shape (2, 1, 2), 3 entries>, array([0., 1.]), [1])
    """

    probabilities: Floats  # (entries,)

    @classmethod
    def of(cls, table: Floats | SparseTable) -> SparseTable:
        """A table of either kind as a sparse one."""
        return table if isinstance(table, SparseTable) else cls.of_dense(table)

    @classmethod
    def of_dense(cls, dense: Floats) -> SparseTable:
        """The entries of an array (S, A, S) or (T, S, A, S) that are not 0."""
        rows, successors = np.nonzero(dense.reshape(-1, dense.shape[-1]))
        p = dense.reshape(-1, dense.shape[-1])[rows, successors]
        return cls.of_entries(dense.shape, rows, successors, p)

    @classmethod
    def of_entries(
        cls,
        shape: Shape,
        rows: Integers | Sequence[int],
        successors: Integers | Sequence[int],
        probabilities: Floats | Sequence[float],
    ) -> SparseTable:
        """A table of entries in any order; those of the same place add up."""
        row, column = np.asarray(rows, np.int64), np.asarray(successors, np.int64)
        p = np.asarray(probabilities, np.float64)
        order = np.lexsort((column, row))
        row, column, p = row[order], column[order], p[order]
        fresh = np.ones(len(row), bool)
        fresh[1:] = (np.diff(row) != 0) | (np.diff(column) != 0)
        first = np.flatnonzero(fresh)
        p = np.add.reduceat(p, first) if len(p) else p
        kept = p != 0
        row, column, p = row[first][kept], column[first][kept], p[kept]
        n_rows = int(np.prod(shape[:-1]))
        pointers = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=n_rows))])
        return cls(shape, pointers.astype(np.int64), column, p)

    @classmethod
    def of_matrices(cls, given: Any) -> SparseTable:
        """Reads scipy.sparse: one matrix (S A, S); a list of A matrices (S, S), one per action; a
        list of T of either form, one per step.
        """
        matrices = [given] if is_sparse(given) else list(given)
        by_step: list[Any] = [m if is_sparse(m) else list(m) for m in matrices]
        if all(is_sparse(m) and m.shape[0] == m.shape[1] for m in by_step) and len(by_step) > 1:
            by_step = [by_step]  # one square matrix per action
        steps = [_stack(m) for m in by_step]
        shapes = {(rows.shape, actions) for rows, actions in steps}
        if len(shapes) != 1:
            found = ", ".join(sorted(str(shape) for shape, _ in shapes))
            raise ModelError(
                f"transitions: expected one shape for all steps, (S A, S), found {found}"
            )
        (n_rows, n_states), n_actions = next(iter(shapes))
        shape: Shape = (n_rows // n_actions, n_actions, n_states)
        if len(steps) > 1:
            shape = (len(steps), *shape)
        rows = np.concatenate([m.row + t * n_rows for t, (m, _) in enumerate(steps)])
        columns = np.concatenate([m.col for m, _ in steps])
        return cls.of_entries(shape, rows, columns, np.concatenate([m.data for m, _ in steps]))

    @property
    def support(self) -> Support:
        """The same without probabilities, for a model, which must not hold them."""
        return Support(self.shape, self.pointers, self.successors)

    def sum_rows(self, weights: NDArray[Any]) -> Floats:
        """The sum of one number per entry over each (s, a), of shape (S, A) or (T, S, A)."""
        rows = np.repeat(np.arange(len(self.pointers) - 1), np.diff(self.pointers))
        sums: Floats = np.bincount(rows, weights, len(self.pointers) - 1).astype(np.float64)
        return sums.reshape(self.shape[:-1])

    def get_row(self, at: Shape) -> dict[int, float]:
        """{s': probability} of a row."""
        row = self.find_row(at)
        return dict(
            zip(self.successors[row].tolist(), self.probabilities[row].tolist(), strict=True)
        )

    def __getitem__(self, at: Shape) -> Floats:
        row, dense = self.find_row(at), np.zeros(self.shape[-1])
        dense[self.successors[row]] = self.probabilities[row]
        return dense

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        dense = np.zeros((len(self.pointers) - 1, self.shape[-1]))
        rows = np.repeat(np.arange(len(dense)), np.diff(self.pointers))
        dense[rows, self.successors] = self.probabilities
        return dense.reshape(self.shape).astype(dtype or np.float64, copy=False)

    def scipy(self) -> Any:
        """The table as a scipy.sparse array (S A, S)."""
        from scipy.sparse import csr_array

        shape = (len(self.pointers) - 1, self.shape[-1])
        return csr_array((self.probabilities, self.successors, self.pointers), shape=shape)


def _stack(given: Any) -> tuple[Any, int]:
    """One step as entries of a matrix (S A, S), and A."""
    if is_sparse(given):
        n_rows, n_states = given.shape
        if n_states == 0 or n_rows % n_states:
            raise ModelError(
                f"transitions: expected a sparse matrix of shape (S A, S), found {given.shape}; "
                "the row of (s, a) is s A + a"
            )
        return given.tocoo(), n_rows // n_states
    return _interleave([matrix.tocoo() for matrix in _check_square(given)]), len(given)


def _check_square(matrices: Sequence[Any]) -> Iterable[Any]:
    shapes = {m.shape if is_sparse(m) else type(m).__name__ for m in matrices}
    square = len(shapes) == 1 and all(is_sparse(m) and m.shape[0] == m.shape[1] for m in matrices)
    if not square:
        found = ", ".join(sorted(map(str, shapes))) or "nothing"
        raise ModelError(
            "transitions: expected one sparse matrix (S, S) for each action, or one (S A, S), "
            f"found {found}"
        )
    return matrices


@attrs.frozen(eq=False)
class _Entries:
    shape: tuple[int, int]
    row: Integers
    col: Integers
    data: Floats


def _interleave(matrices: Sequence[Any]) -> _Entries:
    """Matrices of single actions as one whose row s A + a is row s of matrix a."""
    n_actions, n_states = len(matrices), matrices[0].shape[0]
    return _Entries(
        (n_states * n_actions, n_states),
        np.concatenate([m.row.astype(np.int64) * n_actions + a for a, m in enumerate(matrices)]),
        np.concatenate([m.col for m in matrices]),
        np.concatenate([m.data for m in matrices]),
    )
