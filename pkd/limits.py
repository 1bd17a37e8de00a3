"""Limits on memory, derived from the machine, and the line that shows how far a long walk is.

A model that is too large is refused before its memory is taken, with one ModelError that says what
was found and how to go on.
"""

from __future__ import annotations

import math
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TextIO

from pkd.model import ModelError
from pkd.workers import memory

__all__ = [
    "Progress",
    "Ticker",
    "TooLargeError",
    "find_max_bytes",
    "find_max_states",
    "read_resident",
    "refuse_bytes",
]

VARIABLE = "PKD_MAX_STATES"
SHARE = 0.5  # of the memory of this machine that an explicit walk may take
WALK_SHARE = 0.6  # of it that the process may hold when it asks again during the walk
STATE_BYTES = 3_400  # measured: a state with two actions, as graph, arrays and program
PATIENCE = 2.0  # seconds before a walk is shown
PAUSE = 0.5  # seconds between two lines

Progress = Callable[[int], None]  # is told how many states have been found


class TooLargeError(ModelError):
    """A model needs more memory than there is."""

    def __reduce__(self) -> tuple[type[ModelError], tuple[tuple[str, ...]]]:
        return ModelError, (self.findings,)


def find_max_states(given: int | None = None) -> int:
    """States that an explicit walk may hold: as given, as PKD_MAX_STATES says, or as memory allows.

    >>> find_max_states(1000)
    1000
    """
    if given is not None:
        if isinstance(given, bool) or not isinstance(given, int) or given < 1:
            raise ModelError(f"max_states is {given!r}; expected a whole number >= 1")
        return given
    said = os.environ.get(VARIABLE, "")
    if not said:
        return max(int(SHARE * memory()) // STATE_BYTES, 1)
    if not said.isdecimal() or int(said) < 1:
        raise ModelError(f"{VARIABLE} is {said!r}; expected a whole number >= 1")
    return int(said)


def find_max_bytes(given: int | None = None) -> float:
    """Bytes at which a walk stops whatever it has found; none if the limit of states was set."""
    return math.inf if given is not None or os.environ.get(VARIABLE) else WALK_SHARE * memory()


def refuse_bytes(needed: int, what: str) -> None:
    """Raises a TooLargeError if so many bytes do not fit into the memory of this machine."""
    there = memory()
    if needed > there:
        raise TooLargeError(
            f"{what} needs {_say(needed)}; this machine has {_say(there)} of memory. "
            "Give a smaller model: fewer states, shorter queues, or a shorter horizon"
        )


def read_resident() -> int:
    """Bytes of memory that this process holds, or has held; 0 where the system does not tell."""
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError, AttributeError):
        pass
    try:  # macOS: the most that was held; it counts bytes where others count 1024 of them
        import resource

        held = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return held if sys.platform == "darwin" else 1024 * held
    except ImportError:  # Windows: the limit of states has to do
        return 0


class Ticker:
    """Shows on a terminal how many states a walk has found, if it takes over two seconds."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self.stream = sys.stderr if stream is None else stream
        self.began = self.shown = time.perf_counter()
        self.written = 0  # the longest line so far

    def __call__(self, count: int) -> None:
        now = time.perf_counter()
        if now - self.began < PATIENCE or now - self.shown < PAUSE or not self.stream.isatty():
            return
        rate = count / (now - self.began)
        line = f"exploring: {count:,} states, {rate:,.0f} per second "
        self.shown, self.written = now, max(self.written, len(line))
        self.stream.write(f"\r{line}")
        self.stream.flush()

    def close(self) -> None:
        """Clears the line."""
        if self.written:
            # Blanks, because not every console knows the code that clears a line.
            self.stream.write(f"\r{' ' * self.written}\r")
            self.stream.flush()


def _say(size: int) -> str:
    """A number of bytes in words.

    >>> _say(3 * 10**9), _say(10**24)
    ('3 GB', '1e+15 GB')
    """
    return f"{size / 1e9:.3g} GB"
