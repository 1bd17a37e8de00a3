"""The reference is complete: every public name has its place on a page."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import pkd
import pkd_delay
import pkd_examples

# Models and engines, whose methods the core calls.
MOSTLY_INTERNAL = {
    "pkd.LateActions", "pkd.Missing", "pkd.NoiseMDP", "pkd.engine.Compiled",
    "pkd.transforms.Travel",
}  # fmt: skip
REFERENCE = Path(__file__).parent.parent.parent / "docs" / "reference"
TEXT = "\n".join(path.read_text(encoding="utf-8") for path in REFERENCE.glob("*.md"))
PLACED = set(re.findall(r"^\.\. (?:auto|py:)\w+:: (\S+)$", TEXT, flags=re.MULTILINE))
PUBLIC = [
    f"{package.__name__}.{name}"
    for package in (pkd, pkd_delay, pkd_examples)
    for name in package.__all__
    if name not in ("__version__", "bounds", "rivals", "theory")  # modules
]


BOUNDS = [
    f"{module}.{name}"
    for module in ("pkd.theory.bounds", "pkd_delay.theory.bounds")
    for name in import_module(module).__all__
]


@pytest.mark.parametrize("name", PUBLIC)
def test_a_public_name_is_in_the_reference(name: str) -> None:
    assert name in PLACED


def test_members_are_listed_by_hand_only_where_most_are_not_for_users() -> None:
    """Elsewhere the page of the core shows every public member that has a docstring."""
    page = (REFERENCE / "pkd.md").read_text(encoding="utf-8")
    listed = re.findall(r"autoclass:: (\S+)\n   :members: ", page)
    assert set(listed) <= MOSTLY_INTERNAL


@pytest.mark.parametrize("package", [pkd, pkd_delay], ids=lambda package: package.__name__)
def test_importing_the_package_is_enough_for_every_name_of_its_page(package: ModuleType) -> None:
    """In a fresh process, where no other import has helped."""
    name, stub = package.__name__, Path(package.__file__ or "").with_suffix(".pyi")
    page = (REFERENCE / f"{name}.md").read_text(encoding="utf-8")
    listed = set(re.findall(rf"^\.\. (?:auto|py:)\w+:: {name}\.(\S+)$", page, re.MULTILINE))
    names = sorted(listed | set(getattr(package, "FOR_ADAPTERS", ())))
    find = "for name in sys.argv[1:]:\n    operator.attrgetter(name)(package)"
    code = f"import operator, sys, {name} as package\n{find}"
    subprocess.run([sys.executable, "-c", code, *names], check=True)
    with pytest.raises(AttributeError, match="has no attribute 'no_such_name'"):
        _ = package.theory.no_such_name
    imported = re.findall(r"^import (\S+)$", stub.read_text(encoding="utf-8"), re.MULTILINE)
    homes = {f"{name}.{one}".rpartition(".")[0] for one in listed if "." in one}
    modules = {home for home in homes if not home.rpartition(".")[2][0].isupper()}
    modules |= {f"{name}.{one}" for one in getattr(package, "FOR_ADAPTERS", ())}
    assert modules <= set(imported)  # type checkers read the stub


@pytest.mark.parametrize("name", BOUNDS)
def test_a_bound_is_in_the_reference(name: str) -> None:
    assert name in PLACED


@pytest.mark.parametrize("name", PUBLIC)
def test_a_public_name_says_what_it_is(name: str) -> None:
    package, _, attribute = name.partition(".")
    value = getattr(import_module(package), attribute)
    assert name in ("pkd.CHANCE", "pkd.END") or (value.__doc__ or "").strip()


FUNCTIONS = [
    (f"{package.__name__}.{name}", getattr(package, name))
    for package in (pkd, pkd_delay)
    for name in package.__all__
    if inspect.isfunction(getattr(package, name))
]


@pytest.mark.parametrize(("name", "function"), FUNCTIONS, ids=[name for name, _ in FUNCTIONS])
def test_a_public_function_says_what_each_parameter_is(name: str, function: Any) -> None:
    said = inspect.getdoc(function) or ""
    text = said.partition(">>>")[0]
    parameters = inspect.signature(function).parameters
    assert [one for one in parameters if not re.search(rf"\b{re.escape(one)}\b", text)] == []
