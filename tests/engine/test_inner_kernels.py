"""Kernels without a door to Python are called by kernels alone: Python would end at the call."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGES = "pkd", "pkd_delay", "pkd_examples"


def is_kernel(function: ast.FunctionDef, words: tuple[str, ...]) -> bool:
    return any(
        isinstance(mark, ast.Call) and ast.unparse(mark.func).split(".")[-1] in words
        for mark in function.decorator_list
    )


def functions(tree: ast.AST) -> Iterator[ast.FunctionDef]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))


def list_calls(source: str, inner: dict[str, set[str]]) -> list[str]:
    """The calls of inner kernels, {module: names}, from functions that are no kernels."""
    tree = ast.parse(source)
    known: dict[str, str] = {}  # "count" or "kernels.count" in this file -> "module.count"
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                here, path = alias.asname or alias.name, f"{node.module}.{alias.name}"
                if alias.name in inner.get(node.module or "", set()):
                    known[here] = path
                known |= {f"{here}.{name}": f"{path}.{name}" for name in inner.get(path, set())}
    calls = {
        ast.unparse(call.func): call
        for function in functions(tree)
        if not is_kernel(function, ("jit", "inner"))
        for call in ast.walk(function)
        if isinstance(call, ast.Call)
    }
    return [known[name] for name in calls if name in known]


def find_inner() -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for path in (ROOT / "pkd" / "engine").rglob("*.py"):
        module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        names = {f.name for f in functions(ast.parse(path.read_text())) if is_kernel(f, ("inner",))}
        if names:
            found[module] = names
    return found


def test_python_calls_no_inner_kernel() -> None:
    inner = find_inner()
    assert "gains_at_once" in inner["pkd.engine.set_values"]
    for package in PACKAGES:
        for path in (ROOT / package).rglob("*.py"):
            assert list_calls(path.read_text(), inner) == [], path


def test_a_call_from_python_is_noticed_and_one_from_a_kernel_is_not() -> None:
    inner = {"pkd.engine.bonus": {"hope"}}
    asks = "from pkd.engine import bonus\ndef f(x):\n    return bonus.hope(x)\n"
    assert list_calls(asks, inner) == ["pkd.engine.bonus.hope"]
    named = "from pkd.engine.bonus import hope\ndef f(x):\n    return hope(x)\n"
    assert list_calls(named, inner) == ["pkd.engine.bonus.hope"]
    assert list_calls(named.replace("def f", "@jit()\ndef f"), inner) == []
