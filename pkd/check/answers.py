"""What a model answers in every state that an episode can reach: the raw answers and their graph.

The walk is the one of `pkd.explore`. It asks a `Careful` model, which asks the user's model every
question twice, keeps the raw answers for the checks, and hands only the readable part on: actions
that cannot be read become END, a branch that cannot be read is left out. So the walk survives a
broken model and goes on elsewhere. Nothing is judged here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import attrs

from pkd.check.asking import FAILED, Questions, hashable, is_mass, is_number, state
from pkd.explore import TooManyStatesError, explore, overrides
from pkd.explore.graph import Graph
from pkd.model import CHANCE, END, Branch, Known, PartiallyKnownMDP, UnknownReward

State = tuple[Any, Any]  # (x, y)
Move = tuple[str, Any, Any, Any]  # (method that was asked, x, y, action); None in a CHANCE state

_FALLBACK_HORIZON: Final = 2  # with a bad horizon: the shortest one that asks step and last_step


@attrs.define
class Answers:
    """Raw answers, keyed by the question; what raised is missing."""

    model: PartiallyKnownMDP
    max_states: int
    horizon: int
    questions: Questions
    start: Any = FAILED
    actions: dict[State, Any] = attrs.field(factory=dict)
    kinds: dict[State, Any] = attrs.field(factory=dict)  # CHANCE, END or the readable actions
    rows: dict[Move, Any] = attrs.field(factory=dict)  # of step, last_step or known_kernel
    features: dict[tuple[Any, ...], Any] = attrs.field(factory=dict)  # of feature(x, y, a, y')
    rewards: dict[tuple[Any, Any, Any], Any] = attrs.field(factory=dict)
    finals: dict[State, Any] = attrs.field(factory=dict)
    outcomes: dict[Any, Any] = attrs.field(factory=dict)
    followers: dict[Any, dict[Any, None]] = attrs.field(factory=dict)  # unknown z -> y' with it
    graph: Graph | None = None  # None: the walk met too many states
    overflow: str = ""  # where the walk stopped, if it met too many states

    def branches(self, move: Move) -> Iterator[Branch]:
        """The readable (probability, y', z) of a move with a positive probability."""
        method, x, y, a = move
        width = 2 if method == "known_kernel" else 3
        row = self.rows.get(move)
        for entry in row if isinstance(row, tuple) else ():
            if not (isinstance(entry, tuple | list) and len(entry) == width):
                continue
            p, y_next = entry[:2]
            if not (is_mass(p) and p > 0 and hashable(y_next)):
                continue
            z = entry[2] if width == 3 else self.features.get((x, y, a, y_next), FAILED)
            if z is not FAILED and hashable(z):
                yield p, y_next, z

    def choices(self, at: State) -> tuple[Any, ...]:
        """The readable actions of a decision state; none in CHANCE and END."""
        kind = self.kinds[at]
        return kind if isinstance(kind, tuple) else ()

    def outcome_list(self, z: Any) -> tuple[Any, ...]:
        """The readable outcomes of an unknown feature."""
        answer = self.outcomes.get(z)
        return tuple(x for x in answer if hashable(x)) if isinstance(answer, tuple) else ()

    def row_method(self, last: bool) -> str | None:
        """The method that the model answers a move with; None if it has none."""
        if last and overrides(self.model, "last_step"):
            return "last_step"
        if overrides(self.model, "step"):
            return "step"
        both = overrides(self.model, "known_kernel") and overrides(self.model, "feature")
        return "known_kernel" if both else None


class Careful(PartiallyKnownMDP):
    """The readable part of another model: each question is asked twice and answered from memory."""

    def __init__(self, answers: Answers) -> None:
        self.answers = answers
        self.horizon = answers.horizon

    def start(self) -> dict[State, float]:
        answer = self.answers.start = self._ask("start")
        if isinstance(answer, Mapping):
            masses = {at: p for at, p in answer.items() if is_mass(p) and p > 0}
        else:
            masses = {answer: 1.0} if hashable(answer) else {}
        return {at: p for at, p in masses.items() if isinstance(at, tuple) and len(at) == 2}

    def actions(self, x: Any, y: Any) -> Any:
        answers = self.answers
        if (x, y) not in answers.kinds:
            answer = self._ask("actions", x, y)
            _keep(answers.actions, (x, y), answer)
            answers.kinds[x, y] = _read_actions(answer)
        kind = answers.kinds[x, y]
        return END if kind == () else kind

    def step(self, x: Any, y: Any, a: Any) -> list[Branch]:
        return self._branches(self.answers.row_method(last=False), x, y, a)

    def last_step(self, x: Any, y: Any, a: Any) -> list[Branch]:
        return self._branches(self.answers.row_method(last=True), x, y, a)

    def reward(self, x: Any, y: Any, a: Any) -> float | UnknownReward:
        rewards = self.answers.rewards
        if (x, y, a) not in rewards:
            _keep(rewards, (x, y, a), self._ask("reward", x, y, a))
        answer = rewards.get((x, y, a))
        if isinstance(answer, UnknownReward):
            numbers = is_number(answer.low) and is_number(answer.high)
            return answer if numbers and hashable(answer.feature) else 0.0
        return _read_number(answer)

    def final(self, x: Any, y: Any) -> float:
        answers = self.answers
        if (x, y) not in answers.finals and answers.kinds[x, y] != ():
            _keep(answers.finals, (x, y), self._ask("final", x, y))
        return _read_number(answers.finals.get((x, y)))

    def outcomes(self, z: Any) -> tuple[Any, ...]:
        if z not in self.answers.outcomes:
            _keep(self.answers.outcomes, z, self._ask("outcomes", z, listed=True))
        return tuple(dict.fromkeys(self.answers.outcome_list(z)))

    def _ask(self, method: str, *arguments: Any, listed: bool = False) -> Any:
        return self.answers.questions.ask(method, *arguments, listed=listed)

    def _branches(self, method: str | None, x: Any, y: Any, a: Any) -> list[Branch]:
        if method is None:
            return []
        move = (method, x, y, a)
        if move not in self.answers.rows:
            _keep(self.answers.rows, move, self._ask(*move, listed=True))
            if method == "known_kernel":
                self._ask_features(move)
        found = list(self.answers.branches(move))
        for _, y_next, z in found:
            if not isinstance(z, Known):
                self.answers.followers.setdefault(z, {})[y_next] = None
        return [(p, y_next, _read_law(z)) for p, y_next, z in found]

    def _ask_features(self, move: Move) -> None:
        row, features = self.answers.rows.get(move), self.answers.features
        for entry in row if isinstance(row, tuple) else ():
            if isinstance(entry, tuple | list) and len(entry) == 2 and hashable(entry[1]):
                question = (*move[1:], entry[1])
                if question not in features:
                    _keep(features, question, self._ask("feature", *question))


def is_action(value: object) -> bool:
    """Whether `value` can be an action: None and the markers mean something else."""
    return value is not None and value is not CHANCE and value is not END and hashable(value)


def walk_model(model: PartiallyKnownMDP, max_states: int) -> Answers:
    """Walks the model from its start and keeps every answer."""
    given: object = getattr(model, "horizon", None)
    horizon = int(given) if is_number(given) and given >= 1 else _FALLBACK_HORIZON
    answers = Answers(model, max_states, horizon, Questions(model))
    try:
        answers.graph = explore(Careful(answers), strict=False, max_states=max_states)
    except TooManyStatesError as full:
        answers.overflow = f"by layer {full.layer}, the next one {state(*full.state)}"
    return answers


def _read_actions(answer: object) -> Any:
    """CHANCE, END, or the readable actions; () if there are none."""
    if answer is CHANCE or answer is END:
        return answer
    if not isinstance(answer, Iterable) or isinstance(answer, str | Mapping):
        return ()
    return tuple(dict.fromkeys(a for a in answer if is_action(a)))


def _read_law(z: Any) -> Any:
    if isinstance(z, Known) and not all(is_mass(p) for _, p in z.law):
        return Known({x: p for x, p in z.law if is_mass(p)})
    return z


def _read_number(answer: object) -> float:
    return float(answer) if is_number(answer) else 0.0


def _keep(answers: dict[Any, Any], question: Any, answer: Any) -> None:
    if answer is not FAILED:
        answers[question] = answer
