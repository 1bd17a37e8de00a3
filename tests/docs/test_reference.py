"""The reference is complete: every public name has its place on a page."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

import pytest

import pkd
import pkd_delay
import pkd_examples

REFERENCE = Path(__file__).parent.parent.parent / "docs" / "reference"
TEXT = "\n".join(path.read_text(encoding="utf-8") for path in REFERENCE.glob("*.md"))
PLACED = set(re.findall(r"^\.\. (?:auto|py:)\w+:: (\S+)$", TEXT, flags=re.MULTILINE))
PUBLIC = [
    f"{package.__name__}.{name}"
    for package in (pkd, pkd_delay, pkd_examples)
    for name in package.__all__
    if name != "__version__"
]


BOUNDS = [
    f"{module}.{name}"
    for module in ("pkd.bounds", "pkd_delay.bounds")
    for name in import_module(module).__all__
]
BOUNDS.remove("pkd_delay.bounds.Bound")  # the core's


@pytest.mark.parametrize("name", PUBLIC)
def test_a_public_name_is_in_the_reference(name: str) -> None:
    assert name in PLACED


@pytest.mark.parametrize("name", BOUNDS)
def test_a_bound_is_in_the_reference(name: str) -> None:
    assert name in PLACED


@pytest.mark.parametrize("name", PUBLIC)
def test_a_public_name_says_what_it_is(name: str) -> None:
    package, _, attribute = name.partition(".")
    value = getattr(import_module(package), attribute)
    assert name in ("pkd.CHANCE", "pkd.END") or (value.__doc__ or "").strip()
