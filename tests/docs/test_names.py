"""What the pages name exists: files, and dotted names of the three packages."""

from __future__ import annotations

import re
from pathlib import Path
from pkgutil import resolve_name

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [
    ROOT / "CONTRIBUTING.md",
    ROOT / "README.md",
    *(page for page in sorted((ROOT / "docs").rglob("*.md")) if "_build" not in page.parts),
]
FILE = re.compile(r"`((?:pkd|pkd_delay|pkd_examples|tests|docs|benchmarks)/[\w./-]*)`")
NAME = re.compile(r"`((?:pkd|pkd_delay|pkd_examples)(?:\.\w+)+)(?:\(.*?\))?`")
GROUPS = {
    "pkd.agents",
    "pkd.models",
    "pkd.commands",
    "pkd.transformers",
    "pkd.demos",
}  # of entry points
pages = pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))


def is_a_name(dotted: str) -> bool:
    try:
        resolve_name(dotted)
    except (ImportError, AttributeError):
        return False
    return True


@pages
def test_a_file_that_a_page_names_exists(page: Path) -> None:
    named = set(FILE.findall(page.read_text()))
    assert [name for name in sorted(named) if not (ROOT / name).exists()] == []


@pages
def test_a_dotted_name_on_a_page_exists(page: Path) -> None:
    named = set(NAME.findall(page.read_text())) - GROUPS
    assert [name for name in sorted(named) if not is_a_name(name)] == []


def test_a_name_that_is_gone_is_noticed() -> None:
    assert FILE.findall("see `pkd/explore.py`") == ["pkd/explore.py"]
    assert NAME.findall("see `pkd.no_such_name(a=1)`") == ["pkd.no_such_name"]
    assert not is_a_name("pkd.no_such_name")
