"""Mutation testing: does a test fail when one operator or one number of the code is changed?

    python benchmarks/mutants.py pkd.theory.bounds pkd_delay.theory.bounds --every 3
    python benchmarks/mutants.py --all
    python benchmarks/mutants.py --map [--most 4] [--entries "alg:MVP" ...]

A mutant changes one place inside one function, one default of a function, or one number of a
module. A forked process makes the change and runs the tests of the module; so the start of Python
is paid once. Kernels are changed and run as Python. Survivors are printed with their line;
benchmarks/mutants.toml says why a survivor changes nothing that can be seen. The exit code is 1 if
one survives that has no reason there.

--map checks docs/map.toml: of the code that an entry names some places are changed, evenly spread
(defaults of arguments apart), and only the tests that the entry names are run. An entry of which no
change is noticed names the wrong tests: the exit code is 1.
"""

from __future__ import annotations

import argparse
import ast
import copy
import os
import pkgutil
import signal
import subprocess
import sys
import time
import tomllib
from collections.abc import Callable, Iterator
from functools import partial
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
SLOW = "definition", "any_form", "inventory", "grid", "stripes", "fixed_logs"
CERTIFICATES = [
    "tests/certification/test_certificate.py", "tests/delay/planning/test_certificate.py",
    "-k", " and ".join(f"not {name}" for name in SLOW),
]  # fmt: skip
HINDSIGHT = ["tests/delay/hindsight/test_hindsight_by_definition.py"]
LAWS = ["tests/delay/laws/test_laws_by_definition.py"]
OCCUR = "test_the_arrivals_that_the_model_lists_are_those_that_occur"
UNKNOWN = [
    "tests/delay/hindsight/test_unknown_by_definition.py",
    "tests/delay/hindsight/test_hindsight.py",
    "tests/delay/laws/test_unknown_laws.py", f"tests/delay/laws/test_delay_forms.py::{OCCUR}",
    "-k", "not regret and not certified_rule and not have_their_law",
]  # fmt: skip
TESTS = {  # besides the examples in the module itself
    "pkd.theory.bounds": BOUNDS,
    "pkd.certification.certificate": CERTIFICATES,
    "pkd.certification.confidence": ["tests/certification/test_confidence.py"],
    "pkd.engine.bonus": ["tests/engine/test_bonus.py"],
    "pkd.engine.confidence": ["tests/certification/test_confidence.py"],
    "pkd.engine.set_values": ["tests/engine/test_set_value_parts.py"],
    "pkd.engine.exogenous": [
        "tests/certification/test_exogenous.py",
        "tests/certification/test_needed.py",
    ],
    "pkd.engine.compiled": [
        "tests/certification/test_certified.py",
        "tests/certification/test_needed.py",
        "tests/learning/test_certified_learning.py",
    ],
    "pkd.learning.algorithm": [
        "tests/certification/test_needed.py",
        "tests/learning/test_certified_learning.py",
    ],
    "pkd.planning.estimator": [
        "tests/certification/test_narrow.py",
        "tests/learning/test_certified_learning.py",
    ],
    "pkd.families": ["tests/certification/test_families.py"],
    "pkd.engine.families": ["tests/certification/test_families.py"],
    "pkd.theory.certified": ["tests/theory/test_certified_bound.py"],
    "pkd.theory.inspection": [
        "tests/theory/test_inspection_by_definition.py",
        "tests/theory/test_inspection.py",
    ],
    "pkd.certification.logs": ["tests/certification/test_logs.py"],
    "pkd.optimism": ["tests/rules/test_rule_values.py", "tests/cli/test_rules.py"],
    "pkd.certification.unrefuted": ["tests/certification/test_unrefuted.py", *CERTIFICATES],
    "pkd_delay.theory.bounds": BOUNDS,
    "pkd_delay.hindsight": HINDSIGHT,
    "pkd_delay.kernels": HINDSIGHT,
    "pkd_delay.laws.kernel": LAWS,
    "pkd_delay.unknown": UNKNOWN,
}
# Kernels, and what lays out their arrays: an index outside of an array is an error in Python.
KERNELS = [name for name in TESTS if name.startswith("pkd.engine.") or TESTS[name] is HINDSIGHT]
ENVIRONMENT = {"NUMBA_DISABLE_JIT": "1"}  # kernels run as Python


class Mutant(NamedTuple):
    """One change: the function or name it is in, its line, what it was and what it is."""

    place: str
    line: int
    before: str
    after: str
    change: Callable[[], None]
    is_default: bool = False  # of an argument


def list_mutants(module: ModuleType) -> Iterator[Mutant]:
    """Every change of one place of a module."""
    path = Path(str(module.__file__))
    tree = ast.parse(path.read_text(encoding="utf-8"))
    yield from _change_constants(module, tree)
    for name, node in _functions(tree):
        function = find_function(module, name)
        if function is None:
            continue
        yield from _change_defaults(function, name, node.lineno)
        for part in [part for line in node.body for part in ast.walk(line)]:
            for before, after, undo in _change(part):
                code = _find_code(compile(copy.deepcopy(tree), str(path), "exec"), name)
                undo()
                if code is not None:
                    change = partial(setattr, function, "__code__", code)
                    yield Mutant(name, getattr(part, "lineno", node.lineno), before, after, change)


def _change_constants(module: ModuleType, tree: ast.Module) -> Iterator[Mutant]:
    """Numbers that a module names. Modules that imported one keep the old number."""
    for node in tree.body:
        if isinstance(node, ast.Assign):
            for name in [n.id for n in ast.walk(node.targets[0]) if isinstance(n, ast.Name)]:
                value = vars(module)[name]
                if type(value) in (int, float):
                    change = partial(setattr, module, name, value + 1)
                    yield Mutant(name, node.lineno, repr(value), repr(value + 1), change)


def _change_defaults(function: Any, name: str, line: int) -> Iterator[Mutant]:
    """Numbers and switches that an argument has if it is not given."""
    values = list(function.__defaults__ or ())
    for i, value in enumerate(values):
        if type(value) in (bool, int, float):
            new = _other(value)
            told = f"default {new!r}"
            after = (*values[:i], new, *values[i + 1 :])
            change = partial(setattr, function, "__defaults__", after)
            yield Mutant(name, line, f"default {value!r}", told, change, True)
    for key, value in (function.__kwdefaults__ or {}).items():
        if type(value) in (bool, int, float):
            new = _other(value)
            told = {**function.__kwdefaults__, key: new}
            change = partial(setattr, function, "__kwdefaults__", told)
            yield Mutant(name, line, f"{key}={value!r}", f"{key}={new!r}", change, True)


def _other(value: Any) -> Any:
    return not value if isinstance(value, bool) else value + 1


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
        node.value = _other(value)
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


def survives(mutant: Mutant, tests: list[str], seconds: int) -> bool:
    """Whether all tests pass after a change; a test that takes too long counts as failed."""
    child = os.fork()
    if child == 0:
        quiet = os.open(os.devnull, os.O_WRONLY)
        os.dup2(quiet, 1)
        os.dup2(quiet, 2)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(seconds)
        answer = 1
        try:
            mutant.change()
            answer = run_tests(tests)
        finally:
            os._exit(min(answer, 100))
    return os.waitpid(child, 0)[1] == 0


def run_tests(tests: list[str]) -> int:
    """The exit code of the tests; random examples are the same every time."""
    # A random number of a kernel overflows on purpose: as Python it warns.
    quiet = ["-x", "-q", "-p", "no:cacheprovider", "-W", "ignore::RuntimeWarning"]
    return int(pytest.main([*quiet, *tests]))


def forget(module: ModuleType) -> None:
    """Drops what the first run has kept: answers of unchanged code would hide a change."""
    for value in vars(module).values():
        if hasattr(value, "cache_clear"):
            value.cache_clear()
    for name in [name for name in sys.modules if name.startswith("tests.")]:
        del sys.modules[name]


def read_reasons(name: str) -> dict[tuple[str, str, str], str]:
    """Why survivors of a module change nothing: {(place, source line, change): reason}."""
    told = tomllib.loads((ROOT / "benchmarks/mutants.toml").read_text(encoding="utf-8"))
    return {
        (one["place"], one["line"], one["change"]): one["why"]
        for one in told["survivor"]
        if one["module"] == name
    }


def try_module(name: str, every: int, seconds: float, only: list[int]) -> int:
    """Prints the survivors of a module and their number; returns how many have no reason."""
    module, began = import_module(name), time.monotonic()
    lines = Path(str(module.__file__)).read_text(encoding="utf-8").splitlines()
    reasons = read_reasons(name)
    tests = [*TESTS[name], str(module.__file__)]
    assert run_tests(tests) == 0
    forget(module)
    limit = 10 + int(10 * (time.monotonic() - began))
    tried, alive, unexplained, began = 0, 0, 0, time.monotonic()
    for mutant in list(list_mutants(module))[::every]:
        if only and mutant.line not in only:
            continue
        if time.monotonic() - began > seconds:
            break
        tried += 1
        if survives(mutant, tests, limit):
            alive += 1
            change, line = f"{mutant.before} -> {mutant.after}", lines[mutant.line - 1].strip()
            why = reasons.get((mutant.place, line, change))
            unexplained += why is None
            print(f"{name}:{mutant.line} {mutant.place}: {line}")
            print(f"    {change}: {why or 'SURVIVES'}", flush=True)
    counted = f"{tried} mutants, {tried - alive} killed, {alive - unexplained} explained"
    print(f"{name}: {counted}, {unexplained} alive ({time.monotonic() - began:.0f} s)", flush=True)
    return unexplained


def list_mutants_of(name: str) -> list[Mutant]:
    """The mutants of what a dotted name of the map stands for: a function, a class or a module."""
    found = pkgutil.resolve_name(name)
    for inner in ("__func__", "fget", "func", "__wrapped__", "py_func"):
        found = getattr(found, inner, found)
    if isinstance(found, ModuleType):
        return list(list_mutants(found))
    module = import_module(found.__module__)
    places = getattr(found, "__qualname__", "")
    return [
        mutant
        for mutant in list_mutants(module)
        if (mutant.place == places or mutant.place.startswith(f"{places}."))
        and not mutant.is_default
    ]


def read_map(chosen: list[str]) -> list[dict[str, Any]]:
    """The entries of the map that name code and tests; chosen: labels or names, none: all."""
    items = tomllib.loads((ROOT / "docs/map.toml").read_text(encoding="utf-8"))["item"]
    named = [item for item in items if item.get("code") and item.get("tests")]
    return [i for i in named if not chosen or {i["name"], i.get("label")} & {*chosen}]


def try_entry(item: dict[str, Any], most: int) -> int:
    """Prints how many changes of its code the tests of an entry notice; returns 1 if none."""
    mutants = [mutant for name in item["code"] for mutant in list_mutants_of(name)]
    chosen = mutants[:: max(1, len(mutants) // most)][:most]
    began = time.monotonic()
    assert run_tests(item["tests"]) == 0
    for name in [name for name in sys.modules if name.startswith("tests.")]:
        del sys.modules[name]
    limit, noticed = 10 + int(10 * (time.monotonic() - began)), 0
    missed = []
    for mutant in chosen:
        if survives(mutant, item["tests"], limit):
            missed.append(f"    {mutant.place}:{mutant.line} {mutant.before} -> {mutant.after}")
        else:
            noticed += 1
    label = item.get("label", item["name"])
    verdict = "" if noticed or not chosen else ": its tests notice NOTHING"
    print(f"{label}: {noticed} of {len(chosen)} noticed{verdict}", *missed, sep="\n", flush=True)
    return int(not noticed and bool(chosen))


def main() -> int:
    """Tries the mutants of each module in a process of its own."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("modules", nargs="*", help=f"of {', '.join(TESTS)}")
    parser.add_argument("--all", action="store_true", help="all modules")
    parser.add_argument("--every", type=int, default=1, help="try each N-th mutant only")
    parser.add_argument("--seconds", type=float, default=1e9, help="for each module at most")
    parser.add_argument("--lines", type=int, nargs="+", default=[], help="only mutants of these")
    parser.add_argument("--map", action="store_true", help="the tests that the map names")
    parser.add_argument("--entries", nargs="+", default=[], help="labels of entries of the map")
    parser.add_argument("--most", type=int, default=4, help="changes of each entry of the map")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    os.chdir(ROOT)
    sys.path.insert(0, str(ROOT))
    if args.map and args.inside:
        return max(try_entry(item, args.most) for item in read_map(args.entries))
    if args.map:
        runs = []
        for item in read_map(args.entries):
            label = item.get("label", item["name"])
            words = ["--map", "--inside", "--most", str(args.most), "--entries", label]
            kernels = any(name.startswith("pkd.engine.") for name in item["code"])
            more = ENVIRONMENT if kernels else {}
            environment = {**os.environ, **more}
            runs.append(subprocess.run([sys.executable, __file__, *words], env=environment))
        return int(any(run.returncode for run in runs))
    if args.inside:
        return 1 if try_module(args.modules[0], args.every, args.seconds, args.lines) else 0
    failed = 0
    for name in TESTS if args.all else args.modules:
        words = [name, "--inside", "--every", str(args.every), "--seconds", str(args.seconds)]
        words += ["--lines", *map(str, args.lines)] if args.lines else []
        more = ENVIRONMENT if name in KERNELS else {}
        run = subprocess.run([sys.executable, __file__, *words], env={**os.environ, **more})
        failed += run.returncode != 0
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
