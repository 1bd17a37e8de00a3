"""Checking a model: every structural condition of an MDP with partially known dynamics, one named check per function.

`check_model` walks all that an episode can reach, asks each method of the model twice, runs every check over the answers, and raises one
ModelError with all findings. It is the conformance kit that a user runs on an own model:

    def test_my_model():
        pkd.check_model(MyModel(), my_law)
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

from pkd.check import features, frame, moves, rewards
from pkd.check.asking import hashable, is_whole
from pkd.check.laws import checked_law
from pkd.check.truth import truth_findings
from pkd.check.walk import Walk, overrides, walk_model
from pkd.model import ModelError, PartiallyKnownMDP, UnknownReward

__all__ = ["CHECKS", "check_model", "checked_law"]

_SHOWN: Final = 5  # findings of one kind that are written out

CHECKS: Final[tuple[Callable[[Walk], Iterator[str]], ...]] = (
    frame.check_horizon,
    frame.check_form,
    frame.check_start,
    frame.check_start_distribution,
    frame.check_action_lists,
    frame.check_action_values,
    moves.check_rows,
    moves.check_branches,
    moves.check_kernels,
    moves.check_next_y_is_hashable,
    moves.check_features_are_hashable,
    moves.check_one_feature_per_y,
    moves.check_known_laws,
    moves.check_chance_cycles,
    features.check_outcomes,
    features.check_branching,
    features.check_shares,
    features.check_n_features,
    features.check_names_are_distinct,
    rewards.check_rewards,
    rewards.check_unknown_rewards,
    rewards.check_reward_ranges,
    rewards.check_finals,
    rewards.check_return_range,
    rewards.check_returns,
    frame.check_labels,
    frame.check_size,
    # Last, because the checks above ask questions of their own.
    frame.check_exceptions,
    frame.check_answers_repeat,
)


def check_model(model: PartiallyKnownMDP, law: Any = None, truth: Any = None, *, max_states: int = 200_000) -> None:
    """Raises a ModelError with everything that is wrong with a model, and returns nothing if nothing is.

    law: also check that P_eff fits the model, z -> {x': probability} as a mapping or a function. truth: also check P_Y and the sufficiency
    of phi_Z against P(x', y' | x, y, a), given as a function (x, y, a) -> {(x', y'): probability}, as a mapping with the keys (x, y, a), or
    as a TabularMDP. max_states: where the walk over reachable states gives up.

    >>> import pkd
    >>> coin = pkd.TabularMDP([[[0.5, 0.5], [1.0, 0.0]], [[0.5, 0.5], [0.0, 1.0]]], [[0.0, 0.0], [1.0, 1.0]], horizon=3)
    >>> pkd.check_model(coin.model(), coin.law(), truth=coin)
    >>> pkd.check_model(coin.model(), {**coin.law(), (1, 1): {0: 0.5, 1: 0.25}})
    Traceback (most recent call last):
    ...
    pkd.model.ModelError: law[(1, 1)] sums to 0.75, not 1
    """
    given: Any = model
    if isinstance(getattr(given, "model", None), PartiallyKnownMDP):
        given = given.model  # a compiled model
    if not isinstance(given, PartiallyKnownMDP):
        found = f"the class {given.__name__}" if isinstance(given, type) else f"a {type(given).__name__}"
        advice = "pass its model()" if callable(getattr(given, "model", None)) else "pass an instance of a subclass"
        raise ModelError(f"check_model expected a pkd.PartiallyKnownMDP, got {found}; {advice}")
    walk = walk_model(given, max_states)
    findings = [finding for check in CHECKS for finding in _capped(check(walk))]
    laws: dict[Any, dict[Any, float]] = {}
    if law is not None:
        try:
            laws = _checked_law(walk, law)
        except ModelError as error:
            findings += _capped(error.findings)
    if truth is not None:
        findings += _capped(truth_findings(walk, truth, laws))
    if findings:
        raise ModelError(findings) from walk.questions.first_exception


def _checked_law(walk: Walk, law: Any) -> dict[Any, dict[Any, float]]:
    """The law of the features that occur."""
    outcomes = {z: walk.outcome_list(z) for z in walk.followers if walk.outcome_list(z)}
    unknown = [reward for reward in walk.rewards.values() if isinstance(reward, UnknownReward) and hashable(reward.feature)]
    bounds = {z: walk.questions.ask("branching", z) for z in outcomes} if overrides(walk.model, "branching") else {}
    branching = {z: bound for z, bound in bounds.items() if is_whole(bound, 1)}
    return checked_law(outcomes, law, branching=branching, rewards={r.feature: (r.low, r.high) for r in unknown})


def _capped(findings: Iterable[str]) -> Iterator[str]:
    """The first findings of each kind, and how many more there are; a kind is told by the first word, mostly the method."""
    met: Counter[str] = Counter()
    for finding in findings:
        kind = _kind(finding)
        met[kind] += 1
        if met[kind] <= _SHOWN:
            yield finding
    for kind, count in met.items():
        if count > _SHOWN:
            yield f"... and {count - _SHOWN} more of this kind ({kind})"


def _kind(finding: str) -> str:
    match = re.match(r"\w+", finding)
    return match.group() if match else ""
