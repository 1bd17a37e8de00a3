"""The contract: a Markov decision process whose dynamics are known in part.

The state is s = (x, y). The kernel P_Y of y is known. The law of x' depends only on the feature z = phi_Z(s, a, y'), which is known; the
law itself is not, and a model never holds it. This is the paper's definition "MDPs with partially known dynamics" with its assumption
"tabular structure", extended by what delayed observations need: states without an action (CHANCE), features whose law is known (Known),
and a settlement after the last action. Nothing here imports anything of ours.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Final

import attrs

__all__ = [
    "CHANCE",
    "END",
    "Branch",
    "Episode",
    "Known",
    "Law",
    "ModelError",
    "NoiseMDP",
    "PartiallyKnownMDP",
    "Transition",
    "UnknownReward",
    "sure",
]


class _Kind:
    """A named marker that `actions` returns instead of a list of actions."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"pkd.{self.name}"

    def __reduce__(self) -> str:
        return self.name  # pickled by name, so that a worker process gets the same object


CHANCE: Final = _Kind("CHANCE")  # no action is chosen and no time passes
END: Final = _Kind("END")  # the episode is over


class ModelError(ValueError):
    """What every bad model or bad input gets: each finding says what was expected, what was found, and where.

    >>> ModelError(["horizon is 0, not a positive whole number", "start() sums to 0.9, not 1"]).findings[1]
    'start() sums to 0.9, not 1'
    """

    findings: tuple[str, ...]

    def __init__(self, findings: str | Iterable[str]) -> None:
        self.findings = (findings,) if isinstance(findings, str) else tuple(findings)
        super().__init__(self._text())

    def _text(self) -> str:
        if len(self.findings) == 1:
            return self.findings[0]
        return f"{len(self.findings)} findings\n" + "\n".join(f"  - {finding}" for finding in self.findings)


def _pairs(law: Mapping[Any, float]) -> tuple[tuple[Hashable, float], ...]:
    if not isinstance(law, Mapping):
        raise ModelError(f"Known({law!r}): expected a mapping {{x': probability}}, got {type(law).__name__}")
    return tuple(law.items())


@attrs.frozen
class Known:
    """A feature whose law is known: it gets the plain expectation, no count and no bonus.

    >>> Known({"heads": 0.5, "tails": 0.5}).law
    (('heads', 0.5), ('tails', 0.5))
    """

    law: tuple[tuple[Hashable, float], ...] = attrs.field(converter=_pairs)


def sure(x: Hashable) -> Known:
    """The known point mass at x.

    >>> sure(3)
    Known(law=((3, 1.0),))
    """
    return Known({x: 1.0})


@attrs.frozen
class UnknownReward:
    """A reward in [low, high] whose mean is learned; `feature` names its law, which the learner does not hold.

    `PartiallyKnownMDP.reward` may return one. The law then gives {value: probability} for `feature`.

    >>> UnknownReward("tip", low=0.0, high=5.0).feature
    'tip'
    """

    feature: Hashable
    low: float
    high: float


Branch = tuple[float, Any, Any]  # (probability of y', y', z): z is a feature, or Known(...)
Law = Mapping[Any, Mapping[Any, float]] | Callable[[Any], Mapping[Any, float]]  # z -> {x': probability}


@attrs.frozen
class Transition:
    """One move of an episode: from (x, y), by `action` (None in a CHANCE state), to (x_next, y_next).

    >>> Transition("sunny", 3, "sell", "rainy", 2).y_next
    2
    """

    x: Any
    y: Any
    action: Any
    x_next: Any
    y_next: Any
    reward: float | None = None  # what was paid; needed only where the model has an UnknownReward


def _tuple(transitions: Iterable[Transition]) -> tuple[Transition, ...]:
    return tuple(transitions)


@attrs.frozen
class Episode:
    """Everything that is seen of one episode by its end.

    >>> episode = Episode([Transition(None, 0, "call", 1, 0)])
    >>> len(episode), [move.action for move in episode]
    (1, ['call'])
    """

    transitions: tuple[Transition, ...] = attrs.field(converter=_tuple)
    revealed: Any = None  # what the environment shows only at the end, such as raw delays

    def __len__(self) -> int:
        return len(self.transitions)

    def __iter__(self) -> Iterator[Transition]:
        return iter(self.transitions)


class PartiallyKnownMDP(ABC):
    """A finite-horizon MDP with state (x, y), known law of y and a law of x' that depends on a known feature only.

    Subclasses give `horizon`, `start`, `actions`, `reward`, `outcomes` and either `step` or both `known_kernel` and `feature`. All values
    (x, y, actions, features) are hashable and otherwise free. Methods must answer the same question the same way every time.

        P(x', y' | x, y, a) = P_Y(y' | x, y, a) * P_eff(phi_Z(x, y, a, y'))(x')

    A kiosk: the demand x, of unknown law, meets the stock y; an order of a papers costs a quarter each and is tomorrow's stock.

    >>> import pkd
    >>> class Kiosk(pkd.PartiallyKnownMDP):
    ...     horizon = 3
    ...     def start(self): return 0, 0
    ...     def actions(self, x, y): return [0, 1]
    ...     def reward(self, x, y, a): return min(x, y) - 0.25 * a
    ...     def step(self, x, y, a): return [(1.0, a, "demand")]
    ...     def outcomes(self, z): return [0, 1]
    >>> law = {"demand": {0: 0.5, 1: 0.5}}
    >>> pkd.check_model(Kiosk(), law)
    >>> pkd.plan(Kiosk(), law).value  # two orders that gain 1/2 - 1/4 each
    0.5
    """

    horizon: int  # actions per episode
    return_range: tuple[float, float] | None = None  # bounds every return to go and caps unknown features; None: computed for each state
    n_features: int | None = None  # |Z| in the logarithms; None: the number of unknown features that can occur

    @abstractmethod
    def start(self) -> Any:
        """The first state (x, y), or {(x, y): probability}."""

    @abstractmethod
    def actions(self, x: Any, y: Any) -> Any:
        """The actions that may be chosen in (x, y), a non-empty sequence; or CHANCE, or END."""

    @abstractmethod
    def reward(self, x: Any, y: Any, a: Any) -> float | UnknownReward:
        """r(x, y, a), any finite number, or an UnknownReward; a is None in a CHANCE state."""

    def known_kernel(self, x: Any, y: Any, a: Any) -> Iterable[tuple[float, Any]]:
        """P_Y(. | x, y, a) as pairs (probability, y'). Pairs, not a dict: two ways to the same y' add up."""
        raise ModelError(f"{type(self).__name__} has neither step() nor known_kernel() and feature(); define one of the two forms")

    def feature(self, x: Any, y: Any, a: Any, y_next: Any) -> Any:
        """phi_Z(x, y, a, y'): any hashable value, or Known({x': probability}), or sure(x')."""
        raise ModelError(f"{type(self).__name__} has neither step() nor known_kernel() and feature(); define one of the two forms")

    def step(self, x: Any, y: Any, a: Any) -> Iterable[Branch]:
        """P_Y and phi_Z at once: (probability, y', z) for each y'. Override it instead of `known_kernel` and `feature`.

        z is a function of y': two branches to the same y' must have the same z.
        """
        return [(p, y_next, self.feature(x, y, a, y_next)) for p, y_next in self.known_kernel(x, y, a)]

    def last_step(self, x: Any, y: Any, a: Any) -> Iterable[Branch]:
        """`step` for the last action of an episode and for every CHANCE state after it (the settlement)."""
        return self.step(x, y, a)

    def outcomes(self, z: Any) -> Iterable[Any]:
        """Every x' that can follow the unknown feature z."""
        raise ModelError(f"{type(self).__name__}.outcomes({z!r}) is not defined; list every x' that can follow this feature")

    def branching(self, z: Any) -> int:
        """B(z): a known bound on the number of x' that really follow z."""
        return len(tuple(self.outcomes(z)))

    def share(self, z: Any, y: Any) -> float | None:
        """The weight of y in the union bound for z, with sum over y at most 1; None: all y alike."""
        return None

    def final(self, x: Any, y: Any) -> float:
        """Paid once where the episode stops: at END, or in the decision state after the last action."""
        return 0.0

    def samples(self, episode: Episode) -> Iterable[tuple[Any, Any]]:
        """The (z, x') pairs that a finished episode teaches; by default the visited ones."""
        return self.visited(episode)

    def simulator(self, compiled: Any, law: Any) -> Any:
        """Compiled episodes for a model that overrides `samples`; None: episodes are recorded and `samples` is asked of each.

        An object with `episodes(policy, tally, rng, returns)`, which draws episodes into `returns`, counts what they teach and stops when
        a plan is due: (how many, whether one is).
        """
        return None

    def visited(self, episode: Episode) -> list[tuple[Any, Any]]:
        """The (z, x') of the unknown features that an episode went through."""
        pairs, taken = [], 0
        for move in episode:
            taken += move.action is not None
            branches = (self.step if taken < self.horizon else self.last_step)(move.x, move.y, move.action)
            found = [z for p, y_next, z in branches if y_next == move.y_next and p > 0]
            if not found:
                raise ModelError(f"y' = {move.y_next!r} cannot follow (x={move.x!r}, y={move.y!r}) and the action {move.action!r}")
            if not isinstance(found[0], Known):
                pairs.append((found[0], move.x_next))
        return pairs

    def runs(self) -> Any:
        """A `pkd.runs.RunTable`, from a model so large that it must not be explored state by state; None: explore."""
        return None

    def x_label(self, x: Any) -> str:
        """How x is written in tables and plots."""
        return str(x)

    def y_label(self, y: Any) -> str:
        """How y is written in tables and plots."""
        return str(y)

    def action_label(self, a: Any) -> str:
        """How an action is written in tables and plots."""
        return str(a)

    def feature_label(self, z: Any) -> str:
        """How a feature is written in tables and plots."""
        return str(z)


@attrs.frozen
class Landing:
    """The y of a `NoiseMDP` between an action and its effect: the noise is drawn and about to act.

    >>> Landing(3, "order").state
    3
    """

    state: Any
    action: Any


class NoiseMDP(PartiallyKnownMDP):
    """The everyday form s' = f(s, a, w): `land` is known, the law of the noise w is not.

    Subclasses give `horizon`, `initial`, `choices`, `noise`, `outcomes` and `land`. As a partially known MDP: y = s and x = None where a
    choice is made; then x = w and y = Landing(s, a), where the reward is paid and no time passes.

    >>> class Coin(NoiseMDP):
    ...     horizon = 3
    ...     def initial(self): return 0
    ...     def choices(self, s): return ["call"]
    ...     def noise(self, s, a): return "coin"
    ...     def outcomes(self, z): return [0, 1]
    ...     def land(self, s, a, w): return w, s + w
    >>> Coin().step(None, 0, "call")
    [(1.0, Landing(state=0, action='call'), 'coin')]
    """

    _AT_CHOICE: ClassVar[None] = None

    @abstractmethod
    def initial(self) -> Any:
        """The first state s. For a distribution override `start` with {(None, s): probability}."""

    @abstractmethod
    def choices(self, s: Any) -> Any:
        """The actions in s: a non-empty sequence, or CHANCE, or END."""

    @abstractmethod
    def noise(self, s: Any, a: Any) -> Any:
        """z: the feature on which the law of w depends, or Known(...)."""

    @abstractmethod
    def land(self, s: Any, a: Any, w: Any) -> tuple[float, Any]:
        """(reward, s') when w meets action a in s."""

    def ending(self, s: Any) -> float:
        """Paid once where the episode stops."""
        return 0.0

    def start(self) -> Any:
        return (self._AT_CHOICE, self.initial())

    def actions(self, x: Any, y: Any) -> Any:
        return CHANCE if isinstance(y, Landing) else self.choices(y)

    def step(self, x: Any, y: Any, a: Any) -> Sequence[Branch]:
        if isinstance(y, Landing):
            return [(1.0, self.land(y.state, y.action, x)[1], sure(self._AT_CHOICE))]
        return [(1.0, Landing(y, a), self.noise(y, a))]

    def reward(self, x: Any, y: Any, a: Any) -> float | UnknownReward:
        return self.land(y.state, y.action, x)[0] if isinstance(y, Landing) else 0.0

    def final(self, x: Any, y: Any) -> float:
        return 0.0 if isinstance(y, Landing) else self.ending(y)

    def y_label(self, y: Any) -> str:
        return f"{y.state} after {self.action_label(y.action)}" if isinstance(y, Landing) else str(y)
