"""Checks this installation against numbers from outside it, or replays saved runs.

  pkd verify
  pkd verify run.npz

Without a file: closed forms and published numbers, computed here and now, one line each. With
files: every run is repeated from the model, the configuration and the seed that its file holds, and
must come out to the bit. Exit code 1: something differs; 2: a run cannot be repeated, and the line
says why. Any package can add numbers of its own in the entry-point group `pkd.facts`: a callable
that yields (what, expected, found, tolerance).
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pkd.cli.arguments import find_model, model_arguments, read_runs
from pkd.cli.output import print_json
from pkd.model import ModelError
from pkd.problem import load_point, registered

if TYPE_CHECKING:
    import pkd

HELP = "check this installation, or replay saved runs"
GROUP = "pkd.facts"
DIFFERS, CANNOT = 1, 2


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "runs", nargs="*", metavar="RUN.npz", help="a run that pkd learn --save wrote"
    )
    parser.add_argument(
        "--trust",
        action="store_true",
        help="import the module:object that a file names as its model",
    )


def run(args: argparse.Namespace) -> int:
    if args.runs:
        return _replay(args.runs, trust=args.trust, as_json=args.json)
    return _check_installation(as_json=args.json)


def _check_installation(*, as_json: bool) -> int:
    began, lines, good, told = time.perf_counter(), 0, 0, list[dict[str, Any]]()
    if not as_json:
        print(_versions(), flush=True)
    for holds, line in _check_facts():
        told.append({"fact": line, "holds": holds})
        if not as_json:
            print(f"{'ok     ' if holds else 'DIFFERS'}  {line}", flush=True)
        lines, good = lines + 1, good + holds
    if lines == 0:
        raise ModelError(
            "no installed package has anything to check; expected a callable in the "
            f"entry-point group {GROUP}"
        )
    seconds = time.perf_counter() - began
    if as_json:
        said = {"versions": _versions(), "facts": told, "seconds": seconds}
        print_json({**said, "as_expected": good, "checked": lines})
    else:
        print(f"{good} of {lines} as expected, {seconds:.1f} s")
    return 0 if good == lines else DIFFERS


def _check_facts() -> Iterator[tuple[bool, str]]:
    """(whether it holds, the line) of every fact of every package; a package that breaks off is one
    fact that does not hold.
    """
    for name, point in registered(GROUP).items():
        try:
            for what, expected, found, tolerance in load_point(point)():
                line = f"{what}: expected {expected:.12g}, found {found:.12g}"
                yield bool(abs(found - expected) <= tolerance), line
        except Exception as problem:  # noqa: BLE001 - the next package may be sound
            said = " ".join(str(problem).split())
            yield False, f"{name}: broke off with {type(problem).__name__}: {said}"


def _versions() -> str:
    import platform
    from importlib.metadata import version

    import pkd

    packages = ", ".join(f"{name} {version(name)}" for name in ("numpy", "numba"))
    python = f"Python {platform.python_version()}"
    machine = f"{platform.system()} {platform.machine()}"
    return f"pkd {pkd.__version__}, {python}, {packages}, {machine}"


def _replay(paths: list[str], *, trust: bool, as_json: bool) -> int:
    codes, told = set(), list[dict[str, Any]]()
    for path, saved in read_runs(paths).items():
        try:
            again = repeat(saved, trust=trust)
        except Exception as problem:  # noqa: BLE001 - a model is somebody's own code
            said = f"cannot be repeated: {' '.join(str(problem).split())}"
            told.append({"file": path, "same": None, "said": said})
            if not as_json:
                print(f"{path}: {said}", flush=True)
            codes.add(CANNOT)
            continue
        differences = saved.differences(again)
        versions = ""
        if saved.versions != again.versions:
            versions = f" (saved by {saved.software}, repeated by {again.software})"
        if differences:
            said = f"DIFFERS, saved and repeated: {'; '.join(differences)}"
            codes.add(DIFFERS)
        else:
            model, seed = " ".join(saved.model_words), saved.config["seed"]
            what = f"{model}, {saved.label}, seed {seed}, {len(saved.returns):,} episodes"
            said = f"ok, regret, upper values and counts come out to the bit: {what}"
        told.append({"file": path, "same": not differences, "said": f"{said}{versions}"})
        if not as_json:
            print(f"{path}: {said}{versions}", flush=True)
    if as_json:
        print_json(told)
    return min(codes, default=0)


def repeat(saved: pkd.Run, *, trust: bool) -> pkd.Run:
    """The same run once more, from what its file says."""
    if not saved.model_words:
        name = saved.config["model"]
        raise ModelError(
            f"the file does not say how its model, a {name}, is made: it was given as an "
            "object, not to pkd learn --save"
        )
    args = model_arguments(saved.model_words)
    word = args.words or args.model or ""
    if ":" in word and not trust:
        raise ModelError(f"its model {word} is code that the file names; --trust imports it")
    found = find_model(args)
    import pkd
    from pkd.rules import from_config

    config = saved.config
    return pkd.learn(
        found.model,
        found.with_law(),
        config["episodes"],
        optimism=from_config(config["optimism"]),
        delta=config["delta"],
        seed=config["seed"],
        replan=config["replan"],
        progress=sys.stderr.isatty(),
    )
