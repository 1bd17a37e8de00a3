"""Laws: what the learner does not hold. A law is a mapping or a callable z -> {x': probability}; here it becomes arrays.

Only the simulator and the exact planner read one. A law may also have `reveal(episode, rng)`: what the environment shows at the end of an
episode, such as raw delays.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pkd.model import Law, ModelError, UnknownReward

SLACK = 1e-9


def read(law: Law, z: Any) -> Mapping[Any, float]:
    """The law of one feature."""
    if isinstance(law, Mapping):
        if z not in law:
            raise ModelError(f"the law has no entry for the feature {z!r}")
        found = law[z]
    elif callable(law):
        found = law(z)
    else:
        raise ModelError(f"the law is a {type(law).__name__}; expected a mapping or a function z -> {{x': probability}}")
    if not isinstance(found, Mapping):
        raise ModelError(f"the law of {z!r} is {found!r}; expected a mapping {{x': probability}}")
    return found


def probabilities(law: Law, features: Sequence[Any], outcomes: Sequence[Sequence[Any]]) -> np.ndarray:
    """P_eff of every feature over its outcomes, one after the other."""
    parts: list[float] = []
    findings: list[str] = []
    for z, states in zip(features, outcomes, strict=True):
        try:
            row = read(law, z)
        except ModelError as error:
            findings.extend(error.findings)
            continue
        findings.extend(_findings(z, row, f"outside outcomes({z!r})", set(states).__contains__))
        parts.extend(row.get(x, 0.0) for x in states)
    if findings:
        raise ModelError(findings)
    return np.array(parts, float)


def reward_laws(law: Law, rewards: Sequence[UnknownReward]) -> list[dict[float, float]]:
    """The laws of unknown rewards, {value: probability}."""
    laws: list[dict[float, float]] = []
    findings: list[str] = []
    for reward in rewards:
        try:
            row = dict(read(law, reward.feature))
        except ModelError as error:
            findings.extend(error.findings)
            continue
        inside = f"outside [{reward.low:g}, {reward.high:g}]"
        findings.extend(_findings(reward.feature, row, inside, lambda value, r=reward: r.low <= value <= r.high))
        laws.append({float(value): float(p) for value, p in row.items()})
    if findings:
        raise ModelError(findings)
    return laws


def _findings(z: Any, row: Mapping[Any, float], outside: str, allowed: Any) -> list[str]:
    findings = []
    for value, p in row.items():
        if not isinstance(p, (int, float, np.floating, np.integer)) or not p >= 0:
            findings.append(f"the law of {z!r} gives {value!r} the probability {p!r}")
        elif p > 0 and not allowed(value):
            findings.append(f"the law of {z!r} gives {value!r} the probability {p!r}, but that is {outside}")
    if not findings and abs(math.fsum(row.values()) - 1) > SLACK:
        findings.append(f"the law of {z!r} sums to {math.fsum(row.values()):.12g}, not 1")
    return findings
