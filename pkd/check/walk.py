"""What a model answers in every state that an episode can reach: the questions, the raw answers, and the graph they make.

This is the augmented state space S = X x Y of the paper, walked layer by layer from the start, in a way that survives a broken model: an
answer that cannot be read leads nowhere, and the walk goes on elsewhere. Nothing is judged here; the checks read the raw answers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import attrs

from pkd.check.asking import FAILED, Questions, hashable, is_mass, is_number, state
from pkd.check.layers import Edges, Reach, reachable
from pkd.model import CHANCE, END, Known, PartiallyKnownMDP, UnknownReward

__all__ = ["Move", "State", "Walk", "is_action", "overrides", "walk_model"]

State = tuple[Any, Any]  # (x, y)
Move = tuple[str, Any, Any, Any]  # (method that answers for it, x, y, action); the action is None in a CHANCE state

_FALLBACK_HORIZON: Final = 2  # with a bad horizon: the shortest one that asks both step and last_step


class _TooManyStatesError(Exception):
    """More states than the walk may hold."""


@attrs.define
class Walk:
    """Raw answers, keyed by the question; what raised is missing. States are numbered in the order of meeting."""

    model: PartiallyKnownMDP
    max_states: int
    horizon: int
    questions: Questions
    start: Any = FAILED
    actions: dict[State, Any] = attrs.field(factory=dict)
    rows: dict[Move, Any] = attrs.field(factory=dict)  # of step, last_step or known_kernel
    features: dict[tuple[Any, Any, Any, Any], Any] = attrs.field(factory=dict)  # of feature(x, y, a, y')
    rewards: dict[tuple[Any, Any, Any], Any] = attrs.field(factory=dict)
    finals: dict[State, Any] = attrs.field(factory=dict)
    outcomes: dict[Any, Any] = attrs.field(factory=dict)
    followers: dict[Any, set[Any]] = attrs.field(factory=dict)  # unknown z -> the y' that come with it
    states: list[State] = attrs.field(factory=list)
    number: dict[State, int] = attrs.field(factory=dict)  # the place of a state in `states`
    settled: set[int] = attrs.field(factory=set)  # states met after the last action
    inside: Edges = attrs.field(factory=Edges)  # CHANCE moves before the last action
    onward: Edges = attrs.field(factory=Edges)  # moves by an action that is not the last
    last: Edges = attrs.field(factory=Edges)  # moves by the last action
    settling: Edges = attrs.field(factory=Edges)  # CHANCE moves after the last action
    reach: Reach | None = None
    overflow: str | None = None  # where the walk stopped, if it met too many states

    def branches(self, move: Move) -> Iterator[tuple[float, Any, Any]]:
        """The readable (probability, y', z) of a move with a positive probability."""
        method, x, y, a = move
        width = 2 if method == "known_kernel" else 3
        row = self.rows.get(move)
        for entry in row if isinstance(row, tuple) else ():
            if not (isinstance(entry, tuple | list) and len(entry) == width and is_mass(entry[0]) and entry[0] > 0 and hashable(entry[1])):
                continue
            z = entry[2] if width == 3 else self.features.get((x, y, a, entry[1]), FAILED)
            if z is not FAILED and hashable(z):
                yield entry[0], entry[1], z

    def kind(self, i: int) -> Any:
        """CHANCE, END, or None for a decision state or an unreadable one."""
        answer = self.actions.get(self.states[i])
        return answer if answer is CHANCE or answer is END else None

    def choices(self, at: State) -> tuple[Any, ...]:
        """The readable actions of a decision state; none in CHANCE and END."""
        answer = self.actions.get(at)
        if not isinstance(answer, Iterable) or isinstance(answer, str | Mapping):
            return ()
        return tuple(dict.fromkeys(a for a in answer if is_action(a)))

    def outcome_list(self, z: Any) -> tuple[Any, ...]:
        """The readable outcomes of an unknown feature."""
        answer = self.outcomes.get(z)
        return tuple(x for x in answer if hashable(x)) if isinstance(answer, tuple) else ()

    def paid(self, at: State) -> float:
        """What stopping in a state pays, 0 where `final` has no readable answer."""
        answer: Any = self.finals.get(at)
        return float(answer) if is_number(answer) else 0.0

    def row_method(self, last: bool) -> str | None:
        """The method that the model answers a move with; None if it has none."""
        if last and overrides(self.model, "last_step"):
            return "last_step"
        if overrides(self.model, "step"):
            return "step"
        return "known_kernel" if overrides(self.model, "known_kernel") and overrides(self.model, "feature") else None


def is_action(value: Any) -> bool:
    """Whether `value` can be an action: None and the markers mean something else."""
    return value is not None and value is not CHANCE and value is not END and hashable(value)


def overrides(model: PartiallyKnownMDP, method: str) -> bool:
    """Whether the class of the model, or the object itself, has its own `method`."""
    return getattr(getattr(model, method), "__func__", None) is not getattr(PartiallyKnownMDP, method)


def walk_model(model: PartiallyKnownMDP, max_states: int) -> Walk:
    """Walk the model from its start and keep every answer."""
    horizon: Any = getattr(model, "horizon", None)
    walk = Walk(model, max_states, int(horizon) if is_number(horizon) and horizon >= 1 else _FALLBACK_HORIZON, Questions(model))
    walk.start = walk.questions.ask("start")
    try:
        start = [_numbered(walk, at, 1) for at in _start_states(walk.start)]
        _walk_layers(walk, start)
        walk.reach = reachable(start, len(walk.states), walk.horizon, walk.inside.moves(), walk.onward.moves())
        _walk_settlement(walk, walk.reach)
    except _TooManyStatesError as full:
        walk.overflow = str(full)
    for i, at in enumerate(walk.states):
        if walk.kind(i) is END or (i in walk.settled and walk.kind(i) is not CHANCE):
            _keep(walk.finals, at, walk.questions.ask("final", *at))
    return walk


def _start_states(answer: Any) -> list[State]:
    candidates = [at for at, p in answer.items() if is_mass(p) and p > 0] if isinstance(answer, Mapping) else [answer]
    return [at for at in candidates if isinstance(at, tuple) and len(at) == 2 and hashable(at)]


def _walk_layers(walk: Walk, start: list[int]) -> None:
    layer, met = list(start), set(start)
    for h in range(1, walk.horizon + 1):
        # CHANCE first: a state that an action reaches in the next layer may also lie in this one, and must then be met here.
        for i in layer:  # grows
            if walk.kind(i) is CHANCE:
                layer.extend(_new(met, _targets(walk, i, None, walk.inside, h)))
        following: list[int] = []
        if h < walk.horizon:
            for i in layer:
                for a in walk.choices(walk.states[i]):
                    following.extend(_new(met, _targets(walk, i, a, walk.onward, h)))
        if not following:
            return
        layer = following


def _walk_settlement(walk: Walk, reach: Reach) -> None:
    layer: list[int] = []
    for i in reach.at(walk.horizon).nonzero()[0].tolist():
        for a in walk.choices(walk.states[i]):
            layer.extend(_new(walk.settled, _targets(walk, i, a, walk.last, walk.horizon, last=True)))
    for i in layer:  # grows
        if walk.kind(i) is CHANCE:
            layer.extend(_new(walk.settled, _targets(walk, i, None, walk.settling, walk.horizon, last=True)))


def _targets(walk: Walk, i: int, a: Any, edges: Edges, layer: int, last: bool = False) -> list[int]:
    """Ask for one move, record its edges, and return the numbers of the states it can lead to."""
    x, y = walk.states[i]
    method = walk.row_method(last)
    if (x, y, a) not in walk.rewards:
        _keep(walk.rewards, (x, y, a), walk.questions.ask("reward", x, y, a))
    if method is None:
        return []
    move = (method, x, y, a)
    if move not in walk.rows:
        _ask_row(walk, move)
    reached = [(x_next, y_next) for _, y_next, z in walk.branches(move) for x_next in _followers(walk, z, y_next)]
    targets = [_numbered(walk, at, layer) for at in dict.fromkeys(reached)]
    edges.add(i, targets, *_reward_range(walk.rewards.get((x, y, a))))
    return targets


def _ask_row(walk: Walk, move: Move) -> None:
    method, x, y, a = move
    _keep(walk.rows, move, walk.questions.ask(*move, listed=True))
    row = walk.rows.get(move)
    if method != "known_kernel" or not isinstance(row, tuple):
        return
    for entry in row:
        question = (x, y, a, entry[1]) if isinstance(entry, tuple | list) and len(entry) == 2 and hashable(entry[1]) else None
        if question is not None and question not in walk.features:
            _keep(walk.features, question, walk.questions.ask("feature", *question))


def _followers(walk: Walk, z: Any, y_next: Any) -> Iterable[Any]:
    if isinstance(z, Known):
        return [x_next for x_next, p in z.law if is_mass(p) and p > 0]
    if z not in walk.followers:
        walk.followers[z] = set()
        _keep(walk.outcomes, z, walk.questions.ask("outcomes", z, listed=True))
    walk.followers[z].add(y_next)
    return walk.outcome_list(z)


def _reward_range(answer: Any) -> tuple[float, float]:
    low, high = (answer.low, answer.high) if isinstance(answer, UnknownReward) else (answer, answer)
    return (float(low), float(high)) if is_number(low) and is_number(high) else (0.0, 0.0)


def _numbered(walk: Walk, at: State, layer: int) -> int:
    i = walk.number.get(at)
    if i is not None:
        return i
    if len(walk.states) >= walk.max_states:
        raise _TooManyStatesError(f"by layer {layer}, the next one {state(*at)}")
    walk.number[at] = len(walk.states)
    walk.states.append(at)
    _keep(walk.actions, at, walk.questions.ask("actions", *at))
    return walk.number[at]


def _new(met: set[int], targets: list[int]) -> list[int]:
    new = [i for i in targets if i not in met]
    met.update(new)
    return new


def _keep(answers: dict[Any, Any], question: Any, answer: Any) -> None:
    if answer is not FAILED:
        answers[question] = answer
