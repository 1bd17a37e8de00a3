"""Transition tables that hold only what can follow: P as a matrix of scipy.sparse.

A table over S states and A actions has S A rows, the one of (s, a) at s A + a, and T times as many
if it changes with the step. scipy is imported when the first sparse table is made.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs
import numpy as np
from numpy.typing import ArrayLike, NDArray

from pkd.model import ModelError

__all__ = ["SparseTable", "is_sparse"]

Floats = NDArray[np.float64]
Shape = tuple[int, ...]  # (S, A, S), or (T, S, A, S)


def is_sparse(given: Any) -> bool:
    """Whether this is a scipy.sparse matrix or array."""
    return hasattr(given, "tocsr") and hasattr(given, "nnz")


@attrs.frozen(eq=False, repr=False)
class SparseTable:
    """P(s' | s, a) of the states that can follow; zeros are left out.

    `table[s, a]` is one dense row, and `numpy.asarray(table)` the dense array.

    >>> table = SparseTable.of(np.array([[[0.5, 0.5]], [[0.0, 1.0]]]))
    >>> table, table[1, 0], table.list_successors((1, 0))
    (<SparseTable: shape (2, 1, 2), 3 entries>, array([0., 1.]), [1])
    """

    shape: Shape
    matrix: Any  # scipy.sparse.csr_array (rows, S), sorted and without zeros

    @classmethod
    def of(cls, table: Floats | SparseTable) -> SparseTable:
        """A table of either kind as a sparse one."""
        if isinstance(table, SparseTable):
            return table
        return cls._make(table.shape, table.reshape(-1, table.shape[-1]))

    @classmethod
    def of_entries(
        cls, shape: Shape, rows: ArrayLike, successors: ArrayLike, probabilities: ArrayLike
    ) -> SparseTable:
        """A table of entries in any order; those of the same place add up."""
        at = np.asarray(rows, np.int64), np.asarray(successors, np.int64)
        return cls._make(shape, (np.asarray(probabilities, np.float64), at))

    @classmethod
    def of_arrays(cls, shape: Shape, arrays: tuple[Any, Any, Any]) -> SparseTable:
        """A table of (probabilities, successors, pointers), which a file may have given."""
        try:
            table = cls._make(shape, arrays)
            if len(arrays[0]) == len(arrays[1]) == arrays[2][-1]:
                return table
        except (TypeError, ValueError, IndexError):
            pass
        raise ModelError("transitions: expected a sparse table; its rows and entries do not fit")

    @classmethod
    def of_matrices(cls, given: Any) -> SparseTable:
        """Reads scipy.sparse: an array (S, A, S) or (T, S, A, S); one matrix (S A, S); a list of A
        matrices (S, S), one per action; a list of T of either form, one per step.
        """
        from scipy.sparse import vstack

        if is_sparse(given) and len(given.shape) > 2:
            return cls._make(given.shape, given.reshape((-1, given.shape[-1])))
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
        return cls._make(shape, vstack([m for m, _ in steps]))

    @classmethod
    def _make(cls, shape: Shape, given: Any) -> SparseTable:
        from scipy.sparse import csr_array

        if len(shape) == 4 and shape[0] == 1:
            shape = shape[1:]  # one table does not change
        size = (int(np.prod(shape[:-1])), shape[-1])
        matrix = csr_array(given, shape=size, dtype=np.float64, copy=True)
        matrix.check_format(full_check=True)
        matrix.sum_duplicates()
        matrix.eliminate_zeros()
        return cls(tuple(map(int, shape)), matrix)

    def __repr__(self) -> str:
        return f"<SparseTable: shape {self.shape}, {self.matrix.nnz:,} entries>"

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def lengths(self) -> NDArray[np.int64]:
        """How many states can follow each (s, a), of shape (S, A) or (T, S, A)."""
        lengths: NDArray[np.int64] = np.diff(self.matrix.indptr).reshape(self.shape[:-1])
        return lengths

    @property
    def support(self) -> SparseTable:
        """The same with ones for probabilities: for a model, which must not hold them."""
        return self.replace(np.broadcast_to(np.float64(1.0), self.matrix.data.shape))

    def _find_row(self, at: Shape) -> slice:
        """Where the entries of a row are; IndexError outside the table."""
        if len(at) != len(self.shape) - 1:
            raise IndexError(f"{at} is no place in a table of shape {self.shape}")
        row = 0  # by hand: this is asked once for each row of a large table
        for i, n in zip(at, self.shape, strict=False):
            if not 0 <= i < n:
                raise IndexError(f"{at} is outside a table of shape {self.shape}")
            row = row * n + i
        return slice(int(self.matrix.indptr[row]), int(self.matrix.indptr[row + 1]))

    def list_successors(self, at: Shape) -> list[int]:
        """The states that can follow a row."""
        found: list[int] = self.matrix.indices[self._find_row(at)].tolist()
        return found

    def get_row(self, at: Shape) -> dict[int, float]:
        """{s': probability} of a row."""
        row = self._find_row(at)
        p = self.matrix.data[row].tolist()
        return dict(zip(self.matrix.indices[row].tolist(), p, strict=True))

    def mark_rows(self, marks: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Whether some entry of each (s, a) is marked, of shape (S, A) or (T, S, A)."""
        found = np.concatenate([[0], np.cumsum(marks)])[self.matrix.indptr]
        some: NDArray[np.bool_] = np.diff(found) > 0
        return some.reshape(self.shape[:-1])

    def replace(self, data: Floats) -> SparseTable:
        """The table with other numbers in the same places."""
        from scipy.sparse import csr_array

        m = self.matrix
        return SparseTable(self.shape, csr_array((data, m.indices, m.indptr), shape=m.shape))

    def __getitem__(self, at: Shape) -> Floats:
        row, dense = self._find_row(at), np.zeros(self.shape[-1])
        dense[self.matrix.indices[row]] = self.matrix.data[row]
        return dense

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        dense: NDArray[Any] = self.matrix.toarray().reshape(self.shape)
        return dense.astype(dtype or np.float64, copy=False)


def _stack(given: Any) -> tuple[Any, int]:
    """One step as a matrix (S A, S), and A."""
    if is_sparse(given):
        n_rows, n_states = given.shape
        if n_states == 0 or n_rows % n_states:
            raise ModelError(
                f"transitions: expected a sparse matrix of shape (S A, S), found {given.shape}; "
                "the row of (s, a) is s A + a"
            )
        return given, n_rows // n_states
    return _interleave(given), len(given)


def _interleave(matrices: Sequence[Any]) -> Any:
    """Matrices (S, S) of single actions as one whose row s A + a is row s of matrix a."""
    from scipy.sparse import vstack

    shapes = {m.shape if is_sparse(m) else type(m).__name__ for m in matrices}
    if len(shapes) != 1 or not all(is_sparse(m) and m.shape[0] == m.shape[1] for m in matrices):
        found = ", ".join(sorted(map(str, shapes))) or "nothing"
        raise ModelError(
            "transitions: expected one sparse matrix (S, S) for each action, or one (S A, S), "
            f"found {found}"
        )
    n = matrices[0].shape[0]
    order = np.arange(n * len(matrices)).reshape(len(matrices), n).T.ravel()
    return vstack(matrices, format="csr")[order]
