"""The core is abstract: no file of `pkd` speaks of the one adapter that it was written for."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import pkd

CORE = Path(pkd.__file__).parent
FILES = sorted(
    path.relative_to(CORE).as_posix()
    for path in CORE.rglob("*")
    if path.is_file() and "__pycache__" not in path.parts
)


def find_word(text: str) -> list[str]:
    """The lines that say the word, with their numbers."""
    return [
        f"{number}: {line.strip()}"
        for number, line in enumerate(text.splitlines(), start=1)
        if re.search("delay", line, flags=re.IGNORECASE)
    ]


@pytest.mark.parametrize("name", FILES)
def test_a_file_of_the_core_does_not_speak_of_delays(name: str) -> None:
    assert "delay" not in name.lower()
    assert find_word((CORE / name).read_text(encoding="utf-8")) == []


def test_the_search_finds_the_word_in_any_case() -> None:
    assert find_word("a\nMVP-Delayed\n  max_delay = 1") == ["2: MVP-Delayed", "3: max_delay = 1"]


def test_the_search_looks_at_the_whole_core() -> None:
    assert {"model.py", "cli/bound.py", "results/run.py"} <= set(FILES)
