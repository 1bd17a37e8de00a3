"""Mutation testing: does a test fail when one operator or one number of the code is changed?

    python benchmarks/mutants.py pkd.bounds pkd_delay.bounds --every 3
    NUMBA_DISABLE_JIT=1 python benchmarks/mutants.py pkd.engine.confidence

Each mutant changes one place inside one function. It replaces the code of that function in a forked
process, which runs the tests of the module; so the start of Python is paid once. Numbers outside of
functions are not mutated. Kernels need NUMBA_DISABLE_JIT=1. Survivors are printed with their line;
benchmarks/mutants.toml says why a survivor changes nothing that can be seen.
"""

from __future__ import annotations

import argparse
import ast
import copy
import os
import signal
import sys
import time
import tomllib
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any, NamedTuple

import pytest

ROOT = Path(__file__).parents[1]
SWAPS: dict[type, type] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq, ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.Pow: ast.Mult,
    ast.FloorDiv: ast.Mult, ast.Mod: ast.Add, ast.And: ast.Or, ast.Or: ast.And,
}  # fmt: skip
NAMES = {"min": "max", "max": "min"}
BOUNDS = ["tests/theory/test_bounds.py", "tests/theory/test_bounds_of_models.py"]
LAWS = ["tests/delay/test_inter_arrival.py", "tests/delay/test_unknown_laws.py"]
TESTS = {
    "pkd.bounds": BOUNDS,
    "pkd_delay.bounds": BOUNDS,
    "pkd.confidence": ["tests/test_confidence.py"],
    "pkd.engine.confidence": ["tests/test_confidence.py"],
    "pkd.inspection": ["tests/test_inspection.py"],
    "pkd_delay.delay_kernel": LAWS,
    "pkd_delay.inter_arrival": LAWS,
    "pkd_delay.lags": LAWS,
    "pkd_delay.unknown": ["tests/delay/test_hindsight.py", "tests/delay/test_delayed_mdp.py"],
}


class Mutant(NamedTuple):
    """One change: the function it is in, its line, what it was and what it is."""

    function: str
    line: int
    before: str
    after: str
    code: CodeType


def list_mutants(module: ModuleType) -> Iterator[Mutant]:
    """Every change of one place inside one function of a module."""
    path = Path(str(module.__file__))
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for name, function in _functions(tree):
        # Defaults are no part of the code of a function.
        for node in [node for part in function.body for node in ast.walk(part)]:
            for before, after, undo in _change(node):
                code = _find_code(compile(copy.deepcopy(tree), str(path), "exec"), name)
                undo()
                if code is not None:
                    yield Mutant(
                        name, getattr(node, "lineno", function.lineno), before, after, code
                    )


def _functions(tree: ast.Module) -> Iterator[tuple[str, ast.FunctionDef]]:
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            yield node.name, node
        elif isinstance(node, ast.ClassDef):
            for inner in node.body:
                if isinstance(inner, ast.FunctionDef):
                    yield f"{node.name}.{inner.name}", inner


def _change(node: ast.AST) -> Iterator[tuple[str, str, Any]]:
    """Changes a node in place; the third part undoes it."""
    text = ast.unparse(node) if isinstance(node, ast.expr | ast.stmt) else ""
    if isinstance(node, ast.BinOp | ast.AugAssign | ast.BoolOp) and type(node.op) in SWAPS:
        old = node.op
        node.op = SWAPS[type(old)]()  # type: ignore[assignment]
        yield text, ast.unparse(node), lambda: setattr(node, "op", old)
    elif isinstance(node, ast.Compare) and type(node.ops[0]) in SWAPS:
        ops = node.ops
        node.ops = [SWAPS[type(ops[0])](), *ops[1:]]
        yield text, ast.unparse(node), lambda: setattr(node, "ops", ops)
    elif isinstance(node, ast.Constant) and type(node.value) in (int, float, bool):
        value = node.value
        node.value = not value if isinstance(value, bool) else value + 1
        yield text, ast.unparse(node), lambda: setattr(node, "value", value)
    elif isinstance(node, ast.Name) and node.id in NAMES:
        name = node.id
        node.id = NAMES[name]
        yield text, node.id, lambda: setattr(node, "id", name)
    elif isinstance(node, ast.IfExp):
        one, other = node.body, node.orelse
        node.body, node.orelse = other, one

        def undo() -> None:
            node.body, node.orelse = one, other

        yield text, ast.unparse(node), undo


def _find_code(code: CodeType, name: str) -> CodeType | None:
    for part in name.split("."):
        inner = [c for c in code.co_consts if isinstance(c, CodeType) and c.co_name == part]
        if not inner:
            return None
        code = inner[-1]
    return code


def find_function(module: ModuleType, name: str) -> Any:
    """The plain function behind a name of a module: out of properties, class methods, caches."""
    owner, _, last = name.rpartition(".")
    value = vars(getattr(module, owner) if owner else module).get(last)
    for inner in ("__func__", "fget", "func", "__wrapped__"):
        value = getattr(value, inner, value)
    return value if hasattr(value, "__code__") else None


def survives(function: Any, code: CodeType, tests: list[str], seconds: int) -> bool:
    """Whether all tests pass with another code; a test that takes too long counts as failed."""
    child = os.fork()
    if child == 0:
        quiet = os.open(os.devnull, os.O_WRONLY)
        os.dup2(quiet, 1)
        os.dup2(quiet, 2)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(seconds)
        answer = 1
        try:
            function.__code__ = code
            answer = int(pytest.main(["-x", "-q", "-p", "no:cacheprovider", *tests]))
        finally:
            os._exit(min(answer, 100))
    return os.waitpid(child, 0)[1] == 0


def main() -> int:
    """Prints the survivors of each module and their number."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("modules", nargs="+", choices=TESTS)
    parser.add_argument("--every", type=int, default=1, help="try each N-th mutant only")
    parser.add_argument("--seconds", type=float, default=1e9, help="for each module at most")
    args = parser.parse_args()
    os.chdir(ROOT)
    sys.path.insert(0, str(ROOT))
    reasons = tomllib.loads((ROOT / "benchmarks/mutants.toml").read_text(encoding="utf-8"))
    unexplained = 0
    for name in args.modules:
        module, began = import_module(name), time.monotonic()
        assert pytest.main(["-x", "-q", "-p", "no:cacheprovider", *TESTS[name]]) == 0
        limit = 10 + int(10 * (time.monotonic() - began))
        tried, alive, began = 0, 0, time.monotonic()
        for mutant in list(list_mutants(module))[:: args.every]:
            function = find_function(module, mutant.function)
            if function is None or time.monotonic() - began > args.seconds:
                continue
            tried += 1
            if survives(function, mutant.code, TESTS[name], limit):
                alive += 1
                why = reasons.get(name, {}).get(f"{mutant.function}: {mutant.after}")
                unexplained += why is None
                change = f"{mutant.before}  ->  {mutant.after}"
                print(f"{name}:{mutant.line} {mutant.function}: {change}   [{why or 'SURVIVES'}]")
        print(f"{name}: {tried} mutants, {tried - alive} killed, {alive} alive")
        sys.stdout.flush()
    return 1 if unexplained else 0


if __name__ == "__main__":
    raise SystemExit(main())
