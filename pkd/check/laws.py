"""Checks of a law: P_eff(z) of every unknown feature, as the planner and the simulator get it.

A law is a mapping or a function z -> {x': probability}. No model holds it, so it can disagree with
the model: `checked_law` is the one place where the two meet. The engine uses it as well.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

from pkd.check.asking import TOLERANCE, Questions, is_number, judge_masses, show
from pkd.model import ModelError, normalise

Range = tuple[float, float]


def checked_law(
    outcomes: Mapping[Any, Sequence[Any]],
    law: Any,
    *,
    branching: Mapping[Any, int] | None = None,
    rewards: Mapping[Any, Range] | None = None,
) -> dict[Any, dict[Any, float]]:
    """The law of every feature as plain dictionaries without zeros, or a ModelError.

    outcomes: {z: every x' that can follow}. branching: {z: B(z)}. rewards: {reward feature: (low,
    high)}, whose laws are over values paid.

    >>> checked_law({"coin": (0, 1)}, {"coin": {0: 0.5, 1: 0.5}})
    {'coin': {0: 0.5, 1: 0.5}}
    """
    return dict(read_law(outcomes, law, branching=branching, rewards=rewards))


def read_law(
    outcomes: Mapping[Any, Sequence[Any]],
    law: Any,
    *,
    branching: Mapping[Any, int] | None = None,
    rewards: Mapping[Any, Range] | None = None,
) -> Iterator[tuple[Any, dict[Any, float]]]:
    """The same one by one: (feature, its law), features first, then rewards.

    A caller that keeps none of them needs the memory of one. The ModelError comes after the last.
    """
    if not isinstance(law, Mapping) and not callable(law):
        expected = "expected a mapping {z: {x': probability}} or a function of z"
        raise ModelError(f"law is a {type(law).__name__}; {expected}")
    bounds, findings = branching or {}, list[str]()
    for z, listed in outcomes.items():
        masses, wrong = _read_masses(law, z, "x'")
        wrong = wrong or list(_find_misfits(_name(law, z), z, masses, listed, bounds.get(z)))
        findings += wrong
        yield z, {} if wrong else _leave_out_zeros(masses)
    for feature, limits in (rewards or {}).items():
        masses, wrong = _read_masses(law, feature, "reward")
        wrong = wrong or list(_find_bad_values(_name(law, feature), masses, *limits))
        findings += wrong
        yield feature, {} if wrong else _leave_out_zeros(masses)
    if findings:
        raise ModelError(findings)


def _leave_out_zeros(masses: Mapping[Any, Any]) -> dict[Any, float]:
    left = {x: float(p) for x, p in masses.items() if p > 0}
    return dict(zip(left, normalise(left.values()), strict=True))


def _find_bad_values(
    name: str, masses: Mapping[Any, float], low: float, high: float
) -> Iterator[str]:
    """Payments outside of the range of an unknown reward."""
    for value, p in masses.items():
        if p > 0 and not (is_number(value) and low - TOLERANCE <= value <= high + TOLERANCE):
            paid = f"{name} pays {show(value)} with probability {p:.12g}"
            yield f"{paid}; expected a number in [{show(low)}, {show(high)}]"


def _read_masses(law: Any, z: Any, noun: str) -> tuple[Mapping[Any, Any], list[str]]:
    """The law of one feature, and what is wrong with it as a distribution."""
    answer, findings = _ask_law(law, z)
    if findings:
        return {}, findings
    if not isinstance(answer, Mapping):
        return {}, [f"{_name(law, z)} is {show(answer)}; expected {{{noun}: probability}}"]
    return answer, judge_masses(_name(law, z), answer.items(), f"{noun} = ")


def _find_misfits(
    name: str, z: Any, masses: Mapping[Any, float], listed: Sequence[Any], bound: int | None
) -> Iterator[str]:
    """Where a distribution leaves what the model says of z."""
    possible = set(listed)
    for x, p in masses.items():
        if p > 0 and x not in possible:
            given = f"{name} gives x' = {show(x)} the probability {p:.12g}"
            yield f"{given}, but outcomes({show(z)}) does not list it"
    support = sum(p > 0 for p in masses.values())
    if bound is not None and support > bound:
        found = f"{name} has {support} x' of positive probability"
        yield f"{found}, more than branching({show(z)}) = {bound}"


def _ask_law(law: Any, z: Any) -> tuple[Any, list[str]]:
    if not isinstance(law, Mapping):
        questions = Questions(SimpleNamespace(law=law))
        return questions.ask("law", z), questions.raised + questions.changed
    try:
        return law[z], []
    except KeyError:
        keys = ", ".join(show(key) for key in list(law)[:3]) + (", ..." if len(law) > 3 else "")
        return None, [f"law has no entry for the feature {show(z)}; its keys are {keys or 'none'}"]


def _name(law: Any, z: Any) -> str:
    return f"law[{show(z)}]" if isinstance(law, Mapping) else f"law({show(z)})"
