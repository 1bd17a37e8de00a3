"""The map from the paper to the code: what it names exists, and no labelled item is missing."""

from __future__ import annotations

import ast
import tomllib
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent.parent
MAP = tomllib.loads((ROOT / "docs" / "map.toml").read_text(encoding="utf-8"))
ITEMS = MAP["item"]
CODE = sorted({name for item in ITEMS for name in item.get("code", [])})
TESTS = sorted({name for item in ITEMS for name in item.get("tests", [])})


def found(name: str) -> Any:
    """The object behind a dotted name: the longest prefix that is a module, then attributes."""
    parts = name.split(".")
    for cut in range(len(parts), 0, -1):
        try:
            value: Any = import_module(".".join(parts[:cut]))
        except ModuleNotFoundError:
            continue
        for part in parts[cut:]:
            value = getattr(value, part)
        return value
    raise ModuleNotFoundError(name)


@lru_cache
def named_in(path: str) -> frozenset[str]:
    """The tests of a file, as pytest names them."""
    names = set()
    for node in ast.parse((ROOT / path).read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef):
            names.add(node.name)
        elif isinstance(node, ast.ClassDef):
            names |= {
                f"{node.name}::{inner.name}"
                for inner in node.body
                if isinstance(inner, ast.FunctionDef)
            }
    return frozenset(names)


@pytest.mark.parametrize("name", CODE)
def test_a_target_in_the_code_exists(name: str) -> None:
    assert found(name) is not None


@pytest.mark.parametrize("name", TESTS)
def test_a_test_that_the_map_names_exists(name: str) -> None:
    path, _, test = name.partition("::")
    assert test in named_in(path)


def test_a_name_that_is_gone_is_noticed() -> None:
    with pytest.raises(AttributeError):
        found("pkd.MVP.no_such_thing")


def test_every_labelled_item_of_the_paper_is_on_the_map() -> None:
    assert set(MAP["labels"]) - {item.get("label") for item in ITEMS} == set()


def test_no_item_is_listed_twice() -> None:
    labels = [item["label"] for item in ITEMS if "label" in item]
    assert len(labels) == len(set(labels))


@pytest.mark.parametrize("item", ITEMS, ids=lambda item: item.get("label", item["name"]))
def test_an_item_has_code_or_says_why_it_needs_none(item: dict[str, Any]) -> None:
    assert item.get("code") or item.get("why", "").endswith(".")


@pytest.mark.parametrize(
    "item",
    [item for item in ITEMS if "code" in item],
    ids=lambda item: item.get("label", item["name"]),
)
def test_an_item_with_code_has_a_test(item: dict[str, Any]) -> None:
    assert item.get("tests")
