"""Limits on memory, derived from the machine.

A model that is too large is refused before its memory is taken, with one ModelError that says what
was found and how to go on.
"""

from __future__ import annotations

import math
import os
import sys
from pathlib import Path

from pkd.expect import require, whole
from pkd.model import ModelError
from pkd.workers import memory

VARIABLE = "PKD_MAX_STATES"
SHARE = 0.5  # of the memory of this machine that an explicit walk may take
WALK_SHARE = 0.6  # of it that the process may hold when it asks again during the walk
STATE_BYTES = 3_400  # measured: a state with two actions, as graph, arrays and program
MOST_STEPS = 10**7  # the longest horizon
MOST_SECONDS = 600.0  # of a walk over all steps, one by one


class TooLargeError(ModelError):
    """A model needs more memory than there is, or a walk more time than is sensible."""

    def __reduce__(self) -> tuple[type[ModelError], tuple[tuple[str, ...]]]:
        return ModelError, (self.findings,)


def find_max_states(given: int | None = None) -> int:
    """States that an explicit walk may hold: as given, as PKD_MAX_STATES says, or as memory allows.

    >>> find_max_states(1000)
    1000
    """
    if given is not None:
        require(whole("max_states", given, least=1))
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


def refuse_seconds(needed: float, what: str) -> None:
    """Raises a TooLargeError if a walk over all steps, one by one, would take so long.

    >>> refuse_seconds(7200, "a table of 9 steps")
    Traceback (most recent call last):
    pkd.explore.limits.TooLargeError: a table of 9 steps takes about 2.0 hours; expected at most \
10 minutes. Give a shorter horizon
    """
    if needed > MOST_SECONDS:
        raise TooLargeError(
            f"{what} takes about {needed / 3600:,.1f} hours; expected at most "
            f"{MOST_SECONDS / 60:.0f} minutes. Give a shorter horizon"
        )


def refuse_steps(horizon: int) -> None:
    """Raises a TooLargeError if an episode has too many steps."""
    if horizon > MOST_STEPS:
        raise TooLargeError(f"horizon is {horizon:,}; expected at most {MOST_STEPS:,} steps")


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


def _say(size: int) -> str:
    """A number of bytes in words.

    >>> _say(3 * 10**9), _say(10**24)
    ('3 GB', '1e+15 GB')
    """
    return f"{size / 1e9:.3g} GB"
