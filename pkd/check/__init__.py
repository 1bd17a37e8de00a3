"""Checking a model: every condition of the contract, one named check per function.

`check_model` walks everything that an episode can reach, asks each method of the model twice, runs
every check over the answers, and raises one ModelError with all findings. It is the conformance kit
that users run on a model of their own:

    def test_my_model():
        pkd.check_model(MyModel(), my_law)
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from pkd.check import features, frame, many, moves, rewards
from pkd.check.answers import Answers, walk_model
from pkd.check.asking import hashable, is_whole
from pkd.check.laws import checked_law
from pkd.check.truth import Truth, compare_truth
from pkd.explore import QueuesMatterError, overrides
from pkd.explore.limits import TooLargeError
from pkd.model import Law, ModelError, PartiallyKnownMDP, UnknownReward
from pkd.problem import Problem, as_model, read

if TYPE_CHECKING:
    from pkd.engine.compiled import Compiled

__all__ = ["CHECKS", "check_model", "checked_law", "explain", "explained"]

MOST_STATES: Final = 200_000  # states that a check walks through
_SHOWN: Final = 5  # findings of one kind that are written out

CHECKS: Final[tuple[Callable[[Answers], Iterator[str]], ...]] = (
    *frame.CHECKS,
    *moves.CHECKS,
    *features.CHECKS,
    *rewards.CHECKS,
    *many.CHECKS,
    *frame.LAST_CHECKS,
)


def check_model(
    model: PartiallyKnownMDP | Compiled | Problem | str | tuple[PartiallyKnownMDP, Law],
    law: Law | None = None,
    truth: Truth | None = None,
    *,
    max_states: int = MOST_STATES,
) -> None:
    """Raises a ModelError with everything that is wrong with a model, or a problem and its law.

    law: also check that P_eff fits the model, z -> {x': probability} as a mapping or a function.
    truth: also check P_Y and the sufficiency of phi_Z against P(x', y' | x, y, a), given as a
    function (x, y, a) -> {(x', y'): probability}, as a mapping with the keys (x, y, a), or as a
    TabularMDP. max_states: where the walk over reachable states gives up.

    >>> import pkd
    >>> from pkd.tables.coin import coin
    >>> pkd.check_model(coin.model(), coin.law(), truth=coin)
    >>> pkd.check_model(coin.model(), {**coin.law(), (1, 1): {0: 0.5, 1: 0.25}})
    Traceback (most recent call last):
    ...
    pkd.model.ModelError: law[(1, 1)] sums to 0.75, not 1
    """
    found, ask = read(model)
    law = ask() if law is None and ask is not None else law
    answers = walk_model(as_model(found), max_states)
    findings = list(_find(answers, CHECKS))
    laws: dict[Any, dict[Any, float]] = {}
    if law is not None:
        try:
            laws = _check_law(answers, law)
        except ModelError as error:
            findings += _cap(error.findings)
    if truth is not None:
        findings += _cap(compare_truth(answers, truth, laws))
    if findings:
        raise ModelError(findings) from answers.questions.first_exception


@contextmanager
def explained(model: PartiallyKnownMDP) -> Iterator[None]:
    """Words a fault that is found in a model as `check_model` does: all findings at once.

    What does not fit into memory is no fault of the model.
    """
    try:
        yield
    except (QueuesMatterError, TooLargeError, MemoryError):
        raise
    except Exception:
        explain(model)
        raise


def explain(model: PartiallyKnownMDP) -> None:
    """Raises what `check_model` raises; says nothing of a model whose only fault is its size."""
    answers = walk_model(model, MOST_STATES)
    findings = list(_find(answers, CHECKS))
    if findings != list(frame.check_size(answers)):
        raise ModelError(findings) from answers.questions.first_exception


def _find(answers: Answers, checks: Iterable[Callable[[Answers], Iterator[str]]]) -> Iterator[str]:
    for check in checks:
        yield from _cap(check(answers))


def _check_law(answers: Answers, law: Law) -> dict[Any, dict[Any, float]]:
    """The law of the features that occur."""
    outcomes = {z: answers.outcome_list(z) for z in answers.followers if answers.outcome_list(z)}
    ranges = {
        reward.feature: (reward.low, reward.high)
        for reward in answers.rewards.values()
        if isinstance(reward, UnknownReward) and hashable(reward.feature)
    }
    bounds: Mapping[Any, Any] = {}
    if overrides(answers.model, "branching"):
        bounds = {z: answers.questions.ask("branching", z) for z in outcomes}
    branching = {z: bound for z, bound in bounds.items() if is_whole(bound, 1)}
    return checked_law(outcomes, law, branching=branching, rewards=ranges)


def _cap(findings: Iterable[str]) -> Iterator[str]:
    """The first findings of each kind, and how many more there are.

    The first word tells the kind; it is mostly the method.
    """
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
