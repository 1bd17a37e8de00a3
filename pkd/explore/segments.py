"""Segments: arrays cut by pointers, ptr[i]..ptr[i + 1], and what both engines do with them."""

from __future__ import annotations

import numpy as np

Array = np.ndarray


def lengths_to_ptr(lengths: Array) -> Array:
    """Pointers from lengths.

    >>> lengths_to_ptr(np.array([2, 0, 3])).tolist()
    [0, 2, 2, 5]
    """
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)


def spread(first: Array, last: Array) -> tuple[Array, Array]:
    """All numbers first..last - 1 of each segment, one after the other: (which segment, number).

    >>> [part.tolist() for part in spread(np.array([3, 7]), np.array([5, 8]))]
    [[0, 0, 1], [3, 4, 7]]
    """
    count = np.maximum(last - first, 0)
    which = np.repeat(np.arange(len(first)), count)
    return which, np.arange(len(which)) - np.repeat(np.cumsum(count) - count, count) + first[which]


def take(ptr: Array, order: Array) -> tuple[Array, Array]:
    """Segments in another order: (new pointers, where each element was).

    >>> [part.tolist() for part in take(np.array([0, 2, 3]), np.array([1, 0]))]
    [[0, 1, 3], [2, 0, 1]]
    """
    _, elements = spread(ptr[order], ptr[order + 1])
    return lengths_to_ptr(ptr[order + 1] - ptr[order]), elements


def accumulate(values: Array, ptr: Array) -> Array:
    """Cumulative sums within each segment, added one by one as in a loop.

    >>> accumulate(np.array([0.25, 0.75, 1.0, 0.5, 0.5]), np.array([0, 2, 3, 5])).tolist()
    [0.25, 1.0, 1.0, 0.5, 1.0]
    """
    out = values.copy()
    lengths = np.diff(ptr)
    for length in np.unique(lengths[lengths > 1]).tolist():  # segments of one length at once
        at = ptr[:-1][lengths == length][:, None] + np.arange(length)
        out[at] = np.cumsum(values[at], axis=1)
    return out


class Segments:
    """Those of the segments ptr[i]..ptr[i + 1], lo <= i < hi, that occur in a layer.

    first, last: the layers in which each occurs.
    """

    def __init__(self, ptr: Array, first: Array, last: Array, lo: int, hi: int) -> None:
        self.ptr, self.first, self.last, self.lo = ptr, first[lo:hi], last[lo:hi], lo
        self.which, self.elements, self.starts = np.zeros((3, 0), np.int64)

    def move_to(self, t: int) -> bool:
        """Takes the segments of layer t; returns whether there are any."""
        which = self.lo + np.flatnonzero((self.first <= t) & (t <= self.last))
        if not np.array_equal(which, self.which):  # most layers are alike
            ptr, self.elements = take(self.ptr, which)
            self.which, self.starts = which, ptr[:-1]
        return len(which) > 0
