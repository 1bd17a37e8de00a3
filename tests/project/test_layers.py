"""Rules on imports that import-linter (run by `make lint`) cannot check.

Adapters use exported names only, and nothing heavy is loaded at start-up.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

import pkd

ROOT = Path(__file__).parents[2]
ADAPTERS = sorted(
    path.relative_to(ROOT).as_posix()
    for package in ("pkd_delay", "pkd_examples")
    for path in (ROOT / package).rglob("*.py")
)
HEAVY = {"gymnasium", "matplotlib", "networkx", "numba", "numpy", "scipy", "tqdm"}


def unexported(source: str) -> set[str]:
    """The names of `pkd` that a source uses at run time and that are not for adapters."""
    used = set()
    for node in running(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "pkd":
            used |= {f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Import):
            used |= {alias.name for alias in node.names if alias.name.startswith("pkd.")}
        elif (
            isinstance(node, ast.Attribute)
            and isinstance(node.value, ast.Name)
            and node.value.id == "pkd"
        ):
            used.add(f"pkd.{node.attr}")
    known = {f"pkd.{name}" for name in (*pkd.__all__, *pkd.FOR_ADAPTERS)}
    return {name for name in used if name not in known and name.rpartition(".")[0] not in known}


def running(tree: ast.AST) -> Iterator[ast.AST]:
    """Every node that can run: what stands under `if TYPE_CHECKING:` never does."""
    for node in ast.iter_child_nodes(tree):
        if not (
            isinstance(node, ast.If)
            and isinstance(node.test, ast.Name)
            and node.test.id == "TYPE_CHECKING"
        ):
            yield node
            yield from running(node)


@pytest.mark.parametrize("path", ADAPTERS)
def test_an_adapter_uses_only_exported_names(path: str) -> None:
    assert unexported((ROOT / path).read_text(encoding="utf-8")) == set()


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("import pkd\npkd.plan", set()),
        ("from pkd import MVP, bounds", set()),
        ("from pkd.explore import graph", set()),
        ("import pkd\npkd.engine", {"pkd.engine"}),
        ("from pkd.engine import compile", {"pkd.engine.compile"}),
        ("import pkd.engine", {"pkd.engine"}),
        ("def f():\n    from pkd import learning", {"pkd.learning"}),
        ("if TYPE_CHECKING:\n    from pkd.model import Law", set()),
    ],
)
def test_the_search_for_unexported_names_finds_them(source: str, names: set[str]) -> None:
    assert unexported(source) == names


@pytest.mark.parametrize("name", pkd.__all__)
def test_every_exported_name_exists(name: str) -> None:
    assert getattr(pkd, name) is not None


@pytest.mark.parametrize("name", pkd.FOR_ADAPTERS)
def test_every_module_for_adapters_exists(name: str) -> None:
    assert import_module(f"pkd.{name}").__all__


def modules_loaded_by(program: str) -> set[str]:
    # -S: what packages of the environment import at start-up does not count.
    code = (
        f"import sys; sys.path[:0] = {sys.path!r}; sys.stdout = open('/dev/null', 'w')\n"
        f"{program}\nprint(*sys.modules, file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-S", "-c", code], capture_output=True, text=True, check=True
    )
    return {name.split(".")[0] for name in done.stderr.split()}


def test_importing_pkd_loads_nothing_heavy() -> None:
    assert modules_loaded_by("import pkd") & HEAVY == set()


def test_the_help_of_the_command_line_loads_nothing_heavy() -> None:
    program = (
        "import pkd.cli\ntry:\n    pkd.cli.main(['learn', '--help'])\nexcept SystemExit:\n    pass"
    )
    assert modules_loaded_by(program) & HEAVY == set()


@pytest.mark.parametrize("package", ["pkd", "pkd_delay"])
def test_type_checkers_see_a_list_of_names_and_no_getattr(package: str) -> None:
    stub = (ROOT / package / "__init__.pyi").read_text(encoding="utf-8")
    assert "__getattr__" not in stub  # it would hide misspelt names
    assert stub.count(" as ") > 10
