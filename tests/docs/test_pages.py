"""Pages are readable: code fits, pictures say what they show, the promised page is short."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = [
    path for path in sorted(DOCS.rglob("*.md")) if not {"_build", "_gallery"} & set(path.parts)
]
NARROW = [
    *DOCS.glob("tutorials/*.md"),
    *DOCS.glob("howto/*.md"),
    DOCS / "index.md",
    DOCS / "install.md",
]
WIDTH = 84
MOST_LINES = 40


def find_blocks(path: Path) -> list[str]:
    text = path.read_text(encoding="utf-8")
    return re.findall(r"^```[^\n]*\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("path", NARROW, ids=lambda path: path.stem)
def test_code_of_a_page_needs_no_scrolling(path: Path) -> None:
    lines = [line for block in find_blocks(path) for line in block.splitlines()]
    assert [line for line in lines if len(line) > WIDTH] == []


@pytest.mark.parametrize("path", [*PAGES, ROOT / "README.md"], ids=lambda path: path.stem)
def test_every_picture_says_what_it_shows(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert [alt for alt in re.findall(r"!\[(.*?)\]\(", text) if len(alt.split()) < 4] == []


def test_a_messy_log_becomes_a_policy_in_forty_lines() -> None:
    text = (DOCS / "howto" / "messy_log.md").read_text(encoding="utf-8")
    cells = re.findall(r"^```\{code-cell\}\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE)
    lines = [
        line
        for cell in cells
        if not cell.startswith(":tags: [hide-input]")  # it makes the log
        for line in cell.splitlines()
        if line.strip()
    ]
    assert 20 < len(lines) <= MOST_LINES
