"""Checks of the frame of a model: its horizon, form, start, actions and labels.

The frame is what the paper fixes before any probability: H, the initial state, the actions of each
state, and which of the two forms of (P_Y, phi_Z) is used. It also holds that methods are functions:
they raise nothing and answer a question the same way every time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from pkd.check.answers import Answers, is_action
from pkd.check.asking import FAILED, call, hashable, is_whole, judge_masses, show
from pkd.explore import is_pair, overrides
from pkd.model import CHANCE, END


def check_horizon(answers: Answers) -> Iterator[str]:
    """H is a positive whole number."""
    horizon: Any = getattr(answers.model, "horizon", None)
    if horizon is None:
        name = type(answers.model).__name__
        yield f"{name} has no horizon; set it to the number of actions of an episode"
    elif not is_whole(horizon, 1):
        expected = "expected a positive whole number, the actions of an episode"
        yield f"horizon = {show(horizon)}; {expected}"


def check_form(answers: Answers) -> Iterator[str]:
    """(P_Y, phi_Z) is given as `step`, or as `known_kernel` and `feature`."""
    name, kernel, feature = (
        type(answers.model).__name__,
        overrides(answers.model, "known_kernel"),
        overrides(answers.model, "feature"),
    )
    if overrides(answers.model, "step") or (kernel and feature):
        return
    if kernel or feature:
        has, lacks = ("known_kernel", "feature") if kernel else ("feature", "known_kernel")
        yield f"{name} has {has}() but no {lacks}(); define both, or step()"
    else:
        lacks = "has neither step() nor known_kernel() and feature()"
        yield f"{name} {lacks}; define one of the two forms"


def check_exceptions(answers: Answers) -> Iterator[str]:
    """No method raises."""
    yield from dict.fromkeys(answers.questions.raised)


def check_answers_repeat(answers: Answers) -> Iterator[str]:
    """The same question gets the same answer."""
    yield from dict.fromkeys(answers.questions.changed)


def check_size(answers: Answers) -> Iterator[str]:
    """The walk met every reachable state."""
    if answers.overflow:
        yield (
            f"more than {answers.max_states} states are reachable {answers.overflow}; "
            "the check stopped there: check a smaller instance, or give pkd.check_model "
            "a larger max_states"
        )


def check_start(answers: Answers) -> Iterator[str]:
    """The start is a state (x, y), or a mapping whose keys are states."""
    answer, expected = answers.start, "expected (x, y), or {(x, y): probability}"
    if answer is FAILED:
        return
    if isinstance(answer, Mapping):
        for at in answer:
            if not is_pair(at):
                yield f"start() has the key {show(at)}, which is not a pair; {expected}"
    elif not is_pair(answer):
        yield f"start() returned {show(answer)}; {expected}"
    elif not hashable(answer):
        yield f"start() returned {show(answer)}, which is not hashable; use tuples for x and y"


def check_start_distribution(answers: Answers) -> Iterator[str]:
    """A start distribution is one."""
    if isinstance(answers.start, Mapping):
        yield from judge_masses("start()", answers.start.items(), "")


def check_action_lists(answers: Answers) -> Iterator[str]:
    """`actions` returns CHANCE, END or a non-empty sequence."""
    for at, answer in answers.actions.items():
        if answer is CHANCE or answer is END or (_is_list(answer) and len(answer)):
            continue
        question = call("actions", *at)
        if answer is None:
            yield f"{question} returned None; expected a sequence of actions, pkd.CHANCE or pkd.END"
        elif isinstance(answer, str | bytes):
            found = f"{question} returned the string {show(answer)}"
            yield f"{found}, whose letters would be the actions; return a list"
        elif not _is_list(answer):
            expected = "expected a sequence such as a list: ties go to the first action"
            yield f"{question} returned a {type(answer).__name__}; {expected}"
        else:
            advice = (
                "return the actions of this state, pkd.CHANCE if none is chosen here, or pkd.END"
            )
            yield f"{question} is empty; {advice}"


def check_action_values(answers: Answers) -> Iterator[str]:
    """Actions are hashable, not None, and listed once."""
    for at, answer in answers.actions.items():
        if not _is_list(answer) or (
            all(map(is_action, answer)) and len(set(answer)) == len(answer)
        ):
            continue
        question, seen = call("actions", *at), set()
        for a in answer:
            if not hashable(a):
                yield f"{question} lists {show(a)}, which is not hashable; use a tuple"
            elif a is None:
                found = f"{question} lists None, which stands for no action"
                yield f"{found}; give the action another name"
            elif a is CHANCE or a is END:
                yield f"{question} lists {a!r}; return {a!r} itself, not a list of it"
            elif a in seen:
                yield f"{question} lists {show(a)} twice; list each action once"
            else:
                seen.add(a)


def check_labels(answers: Answers) -> Iterator[str]:
    """Labels are strings; only a model's own label methods are asked."""
    values: dict[str, Any] = {
        "x_label": dict.fromkeys(x for x, _ in answers.kinds),
        "y_label": dict.fromkeys(y for _, y in answers.kinds),
        "action_label": dict.fromkeys(a for at in answers.kinds for a in answers.choices(at)),
        "feature_label": answers.followers,
    }
    for method, arguments in values.items():
        for argument in arguments if overrides(answers.model, method) else ():
            answer = answers.questions.ask(method, argument)
            if answer is not FAILED and not isinstance(answer, str):
                yield f"{call(method, argument)} returned {show(answer)}; expected a string"


def _is_list(value: object) -> bool:
    return isinstance(value, Sequence | np.ndarray) and not isinstance(value, str | bytes)


CHECKS = (
    check_horizon,
    check_form,
    check_start,
    check_start_distribution,
    check_action_lists,
    check_action_values,
)
# Last, because the other checks ask questions of their own.
LAST_CHECKS = (check_labels, check_size, check_exceptions, check_answers_repeat)
