"""What it costs to ignore that states come late or go missing, or that actions act late.

`Blind` follows a plan for a base as if its state in a transformed model were the current one and
every action acted at once. `follow` is the exact value of such a policy by one forward pass: a
policy that is followed reaches few of the states that a plan must prepare for.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from pkd import CHANCE, END, Known, ModelError, PartiallyKnownMDP, UnknownReward, transform
from pkd_delay.augmented import Augmented

if TYPE_CHECKING:
    import pkd
    from pkd.model import Law
    from pkd_delay.base import State

__all__ = ["Blind", "follow", "peel"]

Act = Callable[[int, Any, Any], Any]  # (h, x, y) -> action


def peel(model: PartiallyKnownMDP, base: PartiallyKnownMDP, x: Any, y: Any) -> tuple[Any, Any, int]:
    """(x, y) of the base inside transformers, and how many actions are newer than that state.

    >>> import pkd_delay
    >>> from pkd_delay.problems import two_state_chain
    >>> chain = two_state_chain().model()
    >>> late = pkd_delay.KnownDelay(pkd_delay.LateActions(chain, 1), {2: 1.0}, 2)
    >>> [(x, y)] = late.start()
    >>> peel(late, chain, x, y)
    (0, None, 0)
    """
    return _peel(_find_layers(model, base), x, y)


Layer = Augmented | transform.Transformed


def _peel(layers: list[Layer], x: Any, y: Any) -> tuple[Any, Any, int]:
    age = 0
    for layer in layers:
        if isinstance(layer, Augmented):
            x, y, queue, _ = layer.read(x, y)
            age += len(queue or ())
        else:
            age += layer.count_unseen(y)
            y = y.y
    return x, y, age


def _find_layers(model: PartiallyKnownMDP, base: PartiallyKnownMDP) -> list[Layer]:
    """The transformers of a model that are not those of its base, the outermost first."""
    layers, inside = _list_layers(model), _list_layers(base)
    return layers[: len(layers) - len(inside)]


def _list_layers(model: PartiallyKnownMDP) -> list[Layer]:
    layers = []
    while isinstance(model, Layer):
        layers.append(model)
        model = model.base
    return layers


class Blind:
    """A policy that follows a plan for the base as if nothing were late or missing.

    `model` is a transformed one, whose base the plan is for. If the base cannot be in the shown
    state at step h, the plan is asked for the step at which the base was there, or for the last one
    before it.

    >>> import pkd, pkd_delay
    >>> from pkd_delay.problems import two_state_chain
    >>> late = pkd_delay.DelayedMDP.constant(two_state_chain(stay=0.1), 1)
    >>> blind = Blind(late.known(), pkd.plan(late.mdp))
    >>> round(pkd.evaluate(late, blind), 10)  # a state that moves on with .9
    1.9
    """

    def __init__(self, model: PartiallyKnownMDP, plan: pkd.Plan) -> None:
        self.plan, self._layers = plan, _find_layers(model, plan.compiled.model)
        self._known: dict[tuple[int, Any, Any, int], Any] = {}

    def __call__(self, h: int, x: Any, y: Any) -> Any:
        base_x, base_y, age = _peel(self._layers, x, y)
        key = (h, base_x, base_y, age)
        if key not in self._known:
            self._known[key] = self._find(*key)
        return self._known[key]

    def _find(self, h: int, x: Any, y: Any, age: int) -> Any:
        for step in (h, *range(h - age, 0, -1)):
            try:
                return self.plan.action(step, x, y)
            except ModelError:
                continue
        raise ModelError(f"the plan has no action in (x={x!r}, y={y!r}) at step {h} or before it")


def follow(model: PartiallyKnownMDP, law: Law, act: Act, most: int = 10_000_000) -> float | None:
    """The exact expected return of a policy, by a forward pass; None after `most` moves.

        mu_{h+1}(s') = sum_s mu_h(s) P(s' | s, a_h(s)),   V = sum_h sum_s mu_h(s) r(s, a_h(s))

    >>> from pkd_delay.problems import two_state_chain
    >>> chain = two_state_chain()
    >>> round(follow(chain.model(), chain.law(), lambda h, x, y: x), 12)  # names the state
    10.0
    """
    forward = _Forward(model, law)
    start = model.start()
    here: dict[State, float] = dict(start) if isinstance(start, Mapping) else {start: 1.0}
    total, here = forward.settle(here, taken=0)
    for h in range(1, model.horizon + 1):
        after: dict[State, float] = {}
        for state, p in here.items():
            paid, reached = forward.move(state, act(h, *state), h)
            total += p * paid
            most -= len(reached)
            for s, q in reached.items():
                after[s] = after.get(s, 0.0) + p * q
        here = after
        if most < 0:
            return None
    return total + sum(p * model.final(*state) for state, p in here.items())


class _Forward:
    def __init__(self, model: PartiallyKnownMDP, law: Law) -> None:
        self.model = model
        self._ask = law.__getitem__ if isinstance(law, Mapping) else law
        self._moves: dict[tuple[State, Any, bool], tuple[float, dict[State, float]]] = {}

    def move(self, state: State, a: Any, taken: int) -> tuple[float, dict[State, float]]:
        """(expected pay, law of the next decision state) of an action and its chance moves."""
        key = (state, a, taken < self.model.horizon)
        if key not in self._moves:
            paid = self._pay(state, a)
            more, reached = self.settle(self._step(state, a, taken), taken)
            self._moves[key] = paid + more, reached
        return self._moves[key]

    def settle(self, states: dict[State, float], taken: int) -> tuple[float, dict[State, float]]:
        """Through the chance states; what ends is paid and dropped."""
        paid, resting = 0.0, dict[Any, float]()
        while states:
            further: dict[State, float] = {}
            for state, p in states.items():
                kind = self.model.actions(*state)
                if kind is CHANCE:
                    paid += p * self._pay(state, None)
                    for s, q in self._step(state, None, taken).items():
                        further[s] = further.get(s, 0.0) + p * q
                elif kind is END:
                    paid += p * self.model.final(*state)
                else:
                    resting[state] = resting.get(state, 0.0) + p
            states = further
        return paid, resting

    def _step(self, state: State, a: Any, taken: int) -> dict[State, float]:
        found: dict[State, float] = {}
        for p, y_next, z in self.model.branches(*state, a, taken):
            for x_next, q in z.law if isinstance(z, Known) else self._ask(z).items():
                if q > 0:
                    found[x_next, y_next] = found.get((x_next, y_next), 0.0) + p * q
        return found

    def _pay(self, state: State, a: Any) -> float:
        paid = self.model.reward(*state, a)
        if isinstance(paid, UnknownReward):
            return math.fsum(value * p for value, p in self._ask(paid.feature).items())
        return paid
