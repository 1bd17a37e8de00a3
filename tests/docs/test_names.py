"""What the pages name exists: files, and dotted names of the three packages."""

from __future__ import annotations

import re
from functools import cache
from importlib import import_module
from inspect import getsource
from pathlib import Path
from pkgutil import resolve_name, walk_packages

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [
    ROOT / "CONTRIBUTING.md",
    ROOT / "README.md",
    *(page for page in sorted((ROOT / "docs").rglob("*.md")) if "_build" not in page.parts),
]
# `pkd/Late...` is the id of an environment.
FILE = re.compile(r"`((?:pkd(?!/Late)|pkd_delay|pkd_examples|tests|docs|benchmarks)/[\w./-]*)`")
NAME = re.compile(r"`((?:pkd|pkd_delay|pkd_examples)(?:\.\w+)+)(?:\(.*?\))?`")
MEMBER = re.compile(r"`([A-Z]\w+)\.([a-z]\w*)(?:\(.*?\))?`")  # Class.method
PACKAGES = ("pkd", "pkd_delay", "pkd_examples")
GROUPS = {
    "pkd.agents",
    "pkd.models",
    "pkd.commands",
    "pkd.transformers",
    "pkd.facts",
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


@cache
def list_members() -> dict[str, set[str]]:
    """The members of all classes of the packages, by the name of the class."""
    found: dict[str, set[str]] = {}
    for package in PACKAGES:
        for one in walk_packages(import_module(package).__path__, f"{package}."):
            if one.name.endswith("__main__"):
                continue
            for name, kind in vars(import_module(one.name)).items():
                if isinstance(kind, type) and kind.__module__.partition(".")[0] in PACKAGES:
                    own = [c for c in kind.__mro__ if c.__module__.partition(".")[0] in PACKAGES]
                    fields = [f for c in own for f in getattr(c, "__annotations__", ())]
                    made = [f for c in own for f in re.findall(r"self\.(\w+)", getsource(c))]
                    found.setdefault(name, set()).update(dir(kind), fields, made)
    return found


@pages
def test_a_member_of_a_class_on_a_page_exists(page: Path) -> None:
    members = list_members()
    named = set(MEMBER.findall(page.read_text()))
    assert [f"{kind}.{name}" for kind, name in named if name not in members.get(kind, {name})] == []


def test_a_name_that_is_gone_is_noticed() -> None:
    assert FILE.findall("see `pkd/explore.py`") == ["pkd/explore.py"]
    assert NAME.findall("see `pkd.no_such_name(a=1)`") == ["pkd.no_such_name"]
    assert not is_a_name("pkd.no_such_name")
    assert MEMBER.findall("see `Plan.no_such(a)`") == [("Plan", "no_such")]
    assert "no_such" not in list_members()["Plan"] >= {"action", "values"}
