"""Checks of a model against the true MDP.

    P(x', y' | x, y, a) = P_Y(y' | x, y, a) P_eff(phi_Z(x, y, a, y'))(x')

This is the paper's definition "MDPs with partially known dynamics", read as a test: the known
kernel is the true one, and phi_Z is sufficient, which means that two moves with the same z share
one law of x'. It needs the truth, so it is for simulated problems; for real data there is
`pkd.check_samples`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import SimpleNamespace
from typing import Any

from pkd.check.answers import Answers, Move, State
from pkd.check.asking import TOLERANCE, Questions, call, is_distribution, judge_masses, show
from pkd.model import Known
from pkd.tables.tabular import TabularMDP

Law = Mapping[State, float]  # of (x', y')
Truth = Callable[[Any, Any, Any], Law] | Mapping[tuple[Any, Any, Any], Law] | TabularMDP
Joint = dict[Any, dict[Any, float]]  # y' -> {x': probability of (x', y')}


def compare_truth(
    answers: Answers, truth: Truth, laws: Mapping[Any, dict[Any, float]]
) -> Iterator[str]:
    """Where a model, with the laws given for it, disagrees with the truth before the last action.

    truth: a function (x, y, a) -> {(x', y'): probability}, a mapping with the keys (x, y, a), or a
    TabularMDP whose states are x (y stays). laws: {z: {x': probability}}, empty if there are none.
    """
    if not _can_answer(truth):
        expected = "a function (x, y, a) -> {(x', y'): probability}, or a mapping or TabularMDP"
        yield f"truth is a {type(truth).__name__}; expected {expected}"
        return
    joints: dict[Move, Joint] = {}
    for move in answers.rows:
        if move[0] != "last_step":
            joint, findings = _read_joint(truth, *move[1:])
            yield from findings
            if not findings:
                joints[move] = joint
    for move, joint in joints.items():
        yield from _compare_kernel(answers, move, joint)
    yield from _compare_laws(answers, joints, laws)


def _can_answer(truth: object) -> bool:
    return isinstance(truth, Mapping | TabularMDP) or callable(truth)


def _read_joint(truth: Truth, x: Any, y: Any, a: Any) -> tuple[Joint, list[str]]:
    """P(x', y' | x, y, a) by y', and what is wrong with it."""
    name = call("truth", x, y, a)
    if isinstance(truth, TabularMDP):
        at = (y, x, a) if truth.transitions.ndim == 4 else (x, a)
        after = y if truth.n_tables == 1 else (y + 1) % truth.n_tables
        answer: Any = {(s, after): p for s, p in enumerate(truth.transitions[at].tolist())}
    elif isinstance(truth, Mapping):
        answer = truth.get((x, y, a))
        if answer is None:
            return {}, [f"truth has no entry for ({show(x)}, {show(y)}, {show(a)})"]
    else:
        questions = Questions(SimpleNamespace(truth=truth))
        answer = questions.ask("truth", x, y, a)
        if questions.raised or questions.changed:
            return {}, questions.raised + questions.changed
    if not isinstance(answer, Mapping) or not all(
        isinstance(at, tuple) and len(at) == 2 for at in answer
    ):
        return {}, [f"{name} returned {show(answer)}; expected {{(x', y'): probability}}"]
    if not is_distribution(answer.values()):
        return {}, judge_masses(name, answer.items(), "(x', y') = ")
    joint: Joint = {}
    for (x_next, y_next), p in answer.items():
        if p > 0:
            joint.setdefault(y_next, {})[x_next] = float(p)
    return joint, []


def _compare_kernel(answers: Answers, move: Move, joint: Joint) -> Iterator[str]:
    """P_Y is the true law of y'."""
    kernel: dict[Any, float] = {}
    for p, y_next, _ in answers.branches(move):
        kernel[y_next] = kernel.get(y_next, 0.0) + p
    for y_next in dict.fromkeys([*kernel, *joint]):
        said, true = kernel.get(y_next, 0.0), sum(joint.get(y_next, {}).values())
        if abs(said - true) > TOLERANCE:
            found = f"{call(*move)} gives y' = {show(y_next)} the probability {said:.12g}"
            yield f"{found}, but the truth gives it {true:.12g}"


def _compare_laws(
    answers: Answers, joints: dict[Move, Joint], laws: Mapping[Any, dict[Any, float]]
) -> Iterator[str]:
    """One feature, one law of x'.

    For each z the move that disagrees most with the first one, or with the law known or given.
    """
    first = {z: (f"the law of {show(z)}", law) for z, law in laws.items()}
    worst: dict[Any, tuple[float, str]] = {}
    outside: dict[Any, str] = {}
    for move, y_next, z, joint in _list_landings(answers, joints):
        total = sum(joint.values())
        seen = {x: p / total for x, p in joint.items()}
        place = f"{call('truth', *move[1:]).removeprefix('truth')} -> y' = {show(y_next)}"
        if isinstance(z, Known):
            first.setdefault(z, (show(z), {x: p for x, p in z.law if p > 0}))
        elif left := seen.keys() - set(answers.outcome_list(z)):
            x = next(x for x in seen if x in left)
            found = f"outcomes({show(z)}) does not list x' = {show(x)}"
            outside.setdefault(z, f"{found}, which the truth gives after {place}")
        source, expected = first.setdefault(z, (place, seen))
        gap, x = _find_gap(expected, seen)
        if gap > TOLERANCE / total and gap > worst.get(z, (0.0, ""))[0]:
            word = _word_misstated if isinstance(z, Known) or z in laws else _word_insufficient
            said = source, f"{expected.get(x, 0.0):.12g}"
            worst[z] = gap, word(show(z), show(x), said, (place, f"{seen.get(x, 0.0):.12g}"))
    yield from outside.values()
    yield from (text for _, text in worst.values())


def _list_landings(
    answers: Answers, joints: dict[Move, Joint]
) -> Iterator[tuple[Move, Any, Any, dict[Any, float]]]:
    """(move, y', z, true masses of x') of every y' that a move and the truth have in common."""
    for move, joint in joints.items():
        features = {y_next: z for _, y_next, z in answers.branches(move) if y_next in joint}
        for y_next, z in features.items():
            yield move, y_next, z, joint[y_next]


def _find_gap(expected: Mapping[Any, float], seen: Mapping[Any, float]) -> tuple[float, Any]:
    """The largest difference of two laws, and the x' where it is."""
    gaps = [(abs(expected.get(x, 0.0) - seen.get(x, 0.0)), x) for x in [*seen, *expected]]
    return max(gaps, key=lambda pair: pair[0])


def _word_misstated(z: str, x: str, stated: tuple[str, str], true: tuple[str, str]) -> str:
    found = f"{stated[0]} gives x' = {x} the probability {stated[1]}"
    return f"{found}, but after {true[0]} the truth gives it {true[1]}"


def _word_insufficient(z: str, x: str, one: tuple[str, str], other: tuple[str, str]) -> str:
    return (
        f"feature {z} is not sufficient: x' = {x} has probability {one[1]} after {one[0]} "
        f"but {other[1]} after {other[0]}; let the feature tell these apart"
    )
