"""The contract: a Markov decision process whose dynamics are known in part.

The state is s = (x, y). The kernel P_Y of y is known. The law of x' depends only on the feature
z = phi_Z(s, a, y'), which is known; the law itself is not, and a model never holds it. This is the
paper's definition "MDPs with partially known dynamics" with its assumption "tabular structure",
extended by states without an action (CHANCE), features whose law is known (Known), and a settlement
after the last action. Nothing here imports anything of ours when it runs.
"""

from __future__ import annotations

import math
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import attrs

if TYPE_CHECKING:
    from pkd.engine.compiled import Compiled, Player, Truth

__all__ = [
    "CHANCE",
    "END",
    "Branch",
    "Episode",
    "Known",
    "Law",
    "ModelError",
    "PartiallyKnownMDP",
    "Transition",
    "UnknownReward",
    "normalise",
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
    """The error for every bad model or bad input.

    Each finding says what was expected, what was found, and where.

    >>> ModelError(["horizon is 0, not a whole number", "start() sums to 0.9, not 1"]).findings[1]
    'start() sums to 0.9, not 1'
    """

    findings: tuple[str, ...]

    def __init__(self, findings: str | Iterable[str]) -> None:
        self.findings = (findings,) if isinstance(findings, str) else tuple(findings)
        super().__init__(self._text())

    def _text(self) -> str:
        if len(self.findings) == 1:
            return self.findings[0]
        return f"{len(self.findings)} findings\n" + "\n".join(
            f"  - {finding}" for finding in self.findings
        )


ROUNDING = 4 * sys.float_info.epsilon  # by how much rounding alone makes a law miss 1


def normalise(masses: Iterable[float]) -> list[float]:
    """Probabilities divided by their sum; those that sum to 1 up to rounding keep their bits.

    Checks accept sums in 1 +- 1e-9. Over 10,000 steps such an error would grow to 1e-5.

    >>> normalise([0.5, 0.25, 0.25]), normalise([0.5 + 5e-10, 0.5 + 5e-10])
    ([0.5, 0.25, 0.25], [0.5, 0.5])
    """
    found = list(masses)
    total = math.fsum(found)
    return found if abs(total - 1) <= ROUNDING else [p / total for p in found]


def _pairs(law: Mapping[Any, float]) -> tuple[tuple[Hashable, float], ...]:
    if not isinstance(law, Mapping):
        raise ModelError(
            f"Known({law!r}): expected a mapping {{x': probability}}, got {type(law).__name__}"
        )
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
    known = Known.__new__(Known)  # without the converter: explorers make millions of these
    object.__setattr__(known, "law", ((x, 1.0),))
    return known


@attrs.frozen
class UnknownReward:
    """A reward in [low, high] whose mean is learned.

    `PartiallyKnownMDP.reward` may return one. The law, which the learner does not hold, then gives
    {value: probability} for `feature`.

    >>> UnknownReward("tip", low=0.0, high=5.0).feature
    'tip'
    """

    feature: Hashable
    low: float
    high: float


Branch = tuple[float, Any, Any]  # (probability of y', y', z): z is a feature, or Known(...)
# z -> {x': probability}.
Law = Mapping[Any, Mapping[Any, float]] | Callable[[Any], Mapping[Any, float]]


@attrs.frozen
class Transition:
    """One move of an episode: from (x, y) to (x_next, y_next).

    `action` is None in a CHANCE state.

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
    revealed: Any = None  # what the environment shows only at the end
    final: float = 0.0  # what was paid where the episode stopped

    @property
    def total(self) -> float:
        """The return: everything that was paid, the final pay included."""
        return math.fsum(move.reward or 0.0 for move in self.transitions) + self.final

    def table(self) -> str:
        """The moves as text, one line each."""
        lines = [("x", "y", "action", "reward", "x'", "y'")]
        for m in self.transitions:
            paid = "" if m.reward is None else f"{m.reward:.6g}"
            action = "-" if m.action is None else str(m.action)
            lines.append((str(m.x), str(m.y), action, paid, str(m.x_next), str(m.y_next)))
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        rows = ("  ".join(c.ljust(w) for c, w in zip(line, widths, strict=True)) for line in lines)
        return "\n".join(row.rstrip() for row in rows)

    def __str__(self) -> str:
        return f"<Episode: {len(self)} moves, return {self.total:.6g}>"

    def __len__(self) -> int:
        return len(self.transitions)

    def __iter__(self) -> Iterator[Transition]:
        return iter(self.transitions)


class PartiallyKnownMDP(ABC):
    """A finite-horizon MDP with state (x, y) whose dynamics are known in part.

    The law of y is known; the law of x' depends on a known feature only.

    Subclasses give `horizon`, `start`, `actions`, `reward`, `outcomes` and either `step` or both
    `known_kernel` and `feature`. All values (x, y, actions, features) are hashable and otherwise
    free. Methods must answer the same question the same way every time.

        P(x', y' | x, y, a) = P_Y(y' | x, y, a) * P_eff(phi_Z(x, y, a, y'))(x')

    A kiosk: the demand x, of unknown law, meets the stock y; an order of a papers costs a quarter
    each and is tomorrow's stock.

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

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: horizon {getattr(self, 'horizon', 'not given')}>"

    horizon: int  # actions per episode
    # Bounds every return to go and caps unknown features; None: computed for each state.
    return_range: tuple[float, float] | None = None
    # |Z| in the logarithms; None: the number of unknown features that can occur.
    n_features: int | None = None

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
        """P_Y(. | x, y, a) as pairs (probability, y').

        Pairs, not a dict: two branches to the same y' add up.
        """
        raise ModelError(
            f"{type(self).__name__} has neither step() nor known_kernel() and feature(); define "
            "one of the two forms"
        )

    def feature(self, x: Any, y: Any, a: Any, y_next: Any) -> Any:
        """phi_Z(x, y, a, y'): any hashable value, or Known({x': probability}), or sure(x')."""
        raise ModelError(
            f"{type(self).__name__} has neither step() nor known_kernel() and feature(); define "
            "one of the two forms"
        )

    def step(self, x: Any, y: Any, a: Any) -> Iterable[Branch]:
        """P_Y and phi_Z at once: (probability, y', z) for each y'.

        Override it instead of `known_kernel` and `feature`.

        z is a function of y': two branches to the same y' must have the same z.
        """
        return [
            (p, y_next, self.feature(x, y, a, y_next)) for p, y_next in self.known_kernel(x, y, a)
        ]

    def last_step(self, x: Any, y: Any, a: Any) -> Iterable[Branch]:
        """`step` for the settlement: the last action and every CHANCE state after it."""
        return self.step(x, y, a)

    def outcomes(self, z: Any) -> Iterable[Any]:
        """Every x' that can follow the unknown feature z."""
        raise ModelError(
            f"{type(self).__name__}.outcomes({z!r}) is not defined; list every x' that can follow "
            "this feature"
        )

    def branching(self, z: Any) -> int:
        """B(z): a known bound on the number of x' that really follow z."""
        return len(tuple(self.outcomes(z)))

    def share(self, z: Any, y: Any) -> float | None:
        """The weight of y in the union bound for z; they sum to at most 1. None: all y alike."""
        return None

    def final(self, x: Any, y: Any) -> float:
        """Paid once where the episode stops: at END, or in the state after the last action."""
        return 0.0

    def samples(self, episode: Episode) -> Iterable[tuple[Any, Any]]:
        """The (z, x') pairs that a finished episode teaches; by default the visited ones."""
        return self.visited(episode)

    def most_samples(self) -> int | None:
        """The most samples of one feature that an episode teaches; None: the most visits there are.

        It stands for H in the logarithms of the published rules. A model that overrides `samples`
        must say it if it can teach a feature more often than an episode can visit it.
        """
        return None

    def hindsight(self, compiled: Compiled, truth: Truth, law: Law) -> Player | None:
        """Compiled episodes of a model that overrides `samples`.

        None: episodes are recorded one by one, and `samples` is asked of each.
        """
        return None

    def note(self, x: Any, y: Any, a: Any) -> Hashable | None:
        """What compiled hindsight must know of this move; None: nothing."""
        return None

    def load_policy(self, path: str | Path) -> Callable[[int, Any, Any], Any] | None:
        """A policy (h, x, y) -> action from a file of the adapter's own; None: it has no such."""
        return None

    def branches(self, x: Any, y: Any, a: Any, taken: int) -> list[Branch]:
        """What can follow when `taken` actions have been taken, this one included: p > 0 only."""
        answer = (self.step if taken < self.horizon else self.last_step)(x, y, a)
        return [branch for branch in answer if branch[0] > 0]

    def visited(self, episode: Episode) -> list[tuple[Any, Any]]:
        """The (z, x') of the unknown features that an episode went through."""
        pairs, taken = [], 0
        for move in episode:
            taken += move.action is not None
            branches = self.branches(move.x, move.y, move.action, taken)
            found = [z for _, y_next, z in branches if y_next == move.y_next]
            if not found:
                where = f"(x={move.x!r}, y={move.y!r}) and the action {move.action!r}"
                raise ModelError(f"y' = {move.y_next!r} cannot follow {where}")
            if not isinstance(found[0], Known):
                pairs.append((found[0], move.x_next))
        return pairs

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
