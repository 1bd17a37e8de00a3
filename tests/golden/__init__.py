"""Frozen numbers: values, policies, regrets and fingerprints of every shipped model and rule.

They say that a change of structure changed nothing. They do not say that a number is right: the
independent references do that. `python -m tests.golden` writes the file anew; do it only when a
number is meant to change, and say why in the change log.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import pkd
import pkd_delay
from pkd.rules import as_rule

FILE = Path(__file__).with_name("golden.json")
RULES = (
    "certified", "certified:explore=everywhere", "mvp", "mvp-max", "practical", "hoeffding",
    "kl-ucrl", "ucrl2", "bayes-ucbvi", "opsrl", "greedy", "posterior",
)  # fmt: skip
EPISODES = 60
FEW = {"bayes-ucbvi": 6, "opsrl": 6}  # many draws before every episode take their time
DELAYED = {
    "two_state_chain",
    "riverswim",
    "gambler",
    "pricing",
    "tank",
}  # small enough under a delay


def shipped() -> dict[str, Any]:
    """Every registered model of this distribution with its default options."""
    found = {
        entry.name: entry.load()
        for entry in entry_points(group="pkd.models")
        if entry.value.split(".")[0] in ("pkd_delay", "pkd_examples")
    }
    return {name: found[name]() for name in sorted(found)}


def cases() -> Iterator[tuple[str, Any]]:
    """(name, problem): the shipped models, and some of them under a delay."""
    for name, problem in shipped().items():
        yield name, problem
        if name in DELAYED:
            yield f"{name}, known delay", pkd_delay.Delayed(problem, {0: 0.5, 1: 0.5}, max_delay=2)
            late = pkd_delay.Delayed(problem, {0: 0.5, 1: 0.5}, max_delay=1)
            yield f"{name}, unknown delay law", (late.unknown(), late.law())


def measure(problem: Any) -> dict[str, Any]:
    """The numbers of one problem: its optimum and policy, and each rule after some episodes."""
    plan = pkd.plan(problem)
    numbers: dict[str, Any] = {
        "value": float(plan.value),
        "fingerprint": plan.compiled.fingerprint,
        "policy": _digest(plan),
    }
    for rule in RULES:
        run = pkd.learn(problem, FEW.get(rule, EPISODES), optimism=as_rule(rule), seed=1)
        numbers[rule] = [float(run.regret[-1]), float(run.upper_values[-1])]
    return numbers


def _digest(plan: pkd.Plan) -> str:
    """The actions of all states of the first and the last step, in an order of their own."""
    lines = sorted(
        f"{h} {x!r} {y!r} {plan.action(h, x, y)!r}"
        for h in sorted({1, plan.compiled.horizon})
        for x, y in plan.states(h)
    )
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]
