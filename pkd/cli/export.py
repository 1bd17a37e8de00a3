"""Writes a problem or a policy for another program; the ending of FILE says which.

  .drn .prism .pomdp .npz   the whole problem as a table: Storm, PRISM, POMDP solvers, NumPy
  .csv .json                the optimal policy of all steps; with --stationary one for ever

pkd export inventory --horizon 7 --out table.drn
pkd export FrozenLake-v1 --horizon 50 --out policy.json
pkd export run.npz --out policy.csv

A run that `pkd learn --save` wrote may stand for MODEL: its learned policy is written. A file that
names a module:object is used only with --trust, because it decides which code is executed.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from pkd.cli.arguments import add_model, ending, find_model, model_arguments
from pkd.cli.output import print_json
from pkd.model import ModelError
from pkd.problem import Found

if TYPE_CHECKING:
    import pkd

HELP = "write a problem or a policy for another program"
PROBLEMS, POLICIES = (".drn", ".prism", ".pomdp", ".npz"), (".csv", ".json")


def configure(parser: argparse.ArgumentParser) -> None:
    add_model(parser)
    parser.add_argument(
        "--out",
        type=ending(PROBLEMS + POLICIES),
        required=True,
        metavar="FILE",
        help="the file that is written",
    )
    parser.add_argument(
        "--stationary",
        action="store_true",
        help="a policy of the state alone, for a controller that never stops",
    )
    values = "a line for each step, with the value of each action"
    parser.add_argument("--values", action="store_true", help=values)
    every = "also states that the policy does not reach"
    parser.add_argument("--every-state", action="store_true", help=every)
    parser.add_argument(
        "--trust", action="store_true", help="import the module:object that a run names"
    )


def run(args: argparse.Namespace) -> int:
    learned = _read_run(args) if str(args.words).endswith(".npz") else None
    if args.out.suffix in PROBLEMS:
        if learned is not None or args.stationary:
            raise ModelError(f"{args.out}: a policy is written as .csv or .json")
        _write_problem(find_model(args), args.out, as_json=args.json)
        return 0
    plan = learned if learned is not None else _make_plan(find_model(args))
    if args.stationary:
        _write_stationary(plan, args.out, as_json=args.json)
        return 0
    asked = {"values": args.values, "every_state": args.every_state}
    write = plan.to_csv if args.out.suffix == ".csv" else plan.to_json
    rows = write(args.out, **asked)
    size = args.out.stat().st_size / 1e6
    if args.json:
        told = {"file": str(args.out), "horizon": plan.compiled.horizon, "rows": rows}
        print_json({**told, "value": plan.value, "value_is": plan.meaning})
        return 0
    print(f"{args.out}: policy of {plan.compiled.horizon} steps, {rows:,} rows, {size:.1f} MB")
    print(f"value {plan.value:.10g}: {plan.meaning}")
    return 0


def _make_plan(found: Found) -> pkd.Plan:
    import pkd

    return pkd.plan(found.model, found.with_law())


def _write_stationary(plan: pkd.Plan, path: Path, *, as_json: bool) -> None:
    keep = plan.stationary()
    rows = keep.to_csv(path) if path.suffix == ".csv" else keep.to_json(path)
    if as_json:
        bounds = {"loss": keep.loss, "endless_loss": keep.endless_loss, "gain": keep.gain}
        print_json({"file": str(path), "rows": rows, **bounds})
        return
    print(f"{path}: stationary policy, {rows:,} rows")
    print(f"it loses {keep.loss:.6g} over the horizon, exactly")
    if keep.endless_loss is not None:
        what = "per step of" if keep.gain is not None else "of the discounted return of"
        print(f"at most {keep.endless_loss:.3g} {what} an endless run")
    else:
        print("no bound for an endless run: episodes end, or the horizon is too short")


def _write_problem(found: Found, path: Path, *, as_json: bool) -> None:
    import pkd

    table = pkd.flatten(found.model, found.with_law(), sparse=True)
    write = {
        ".drn": table.to_drn,
        ".prism": table.to_prism,
        ".pomdp": table.to_pomdp,
        ".npz": table.save_npz,
    }
    write[path.suffix](path)
    if as_json:
        size = {"states": table.n_states, "actions": table.n_actions, "horizon": table.horizon}
        ask = table.storm_property if path.suffix in (".drn", ".prism") else None
        print_json({"file": str(path), **size, "storm_property": ask})
        return
    print(f"{path}: {table.n_states} states, {table.n_actions} actions, horizon {table.horizon}")
    if path.suffix in (".drn", ".prism"):
        print(f"ask for: {table.storm_property}")


def _read_run(args: argparse.Namespace) -> pkd.Plan | None:
    """The policy of a saved run; None: the file is a table."""
    import pkd

    try:
        run = pkd.Run.load(args.words)
    except ModelError:
        return None
    if not run.model_words:
        raise ModelError(
            f"{args.words} does not say how its model is made; give the policy from Python: "
            "Run.load(path, model).policy.to_csv(...)"
        )
    named = model_arguments(run.model_words)
    if ":" in str(named.words) and not args.trust:
        raise ModelError(
            f"{args.words} names {named.words} as its model; give --trust to import and run it"
        )
    policy = pkd.Run.load(args.words, find_model(named).model).policy
    if policy is None:
        raise ModelError(f"{args.words} holds no policy")
    return policy
