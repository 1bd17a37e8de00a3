"""What a campaign of fuzzing is, and the list of all of them.

A campaign is one kind of attack. It is a function of a seed and an empty folder, so every finding
is repeated by its seed. It raises an AssertionError, or whatever the software should not have
raised, and otherwise returns how many inputs it has tried.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

__all__ = ["CAMPAIGNS", "attack"]

CAMPAIGNS = ("models", "runs", "files", "words", "threads", "kills")


def attack(name: str, seed: int, folder: Path) -> int:
    """Runs one attack of a campaign in a folder of its own; returns how many inputs it tried."""
    run: Callable[[int, Path], int] = import_module(f"tests.fuzz.{name}").attack
    folder.mkdir(parents=True, exist_ok=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # damaged numbers may overflow; only the answer counts
        return run(seed, folder)
