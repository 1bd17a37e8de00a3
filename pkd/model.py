"""The contract: a Markov decision process whose dynamics are known in part.

The state is s = (x, y). The kernel P_Y of y is known. The law of x' depends only on the feature
z = phi_Z(s, a, y'), which is known; the law itself is not, and a model never holds it. This is the
paper's definition "MDPs with partially known dynamics" with its assumption "tabular structure",
extended by states without an action (CHANCE), features whose law is known (Known), and a settlement
after the last action. Nothing here imports anything of ours when it runs.
"""

from __future__ import annotations

import math
import re
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

import attrs

if TYPE_CHECKING:
    from pkd.episode import Episode

__all__ = [
    "CHANCE",
    "END",
    "Branch",
    "Known",
    "Law",
    "ModelError",
    "PartiallyKnownMDP",
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
        return f"{self.number} findings\n" + "\n".join(
            f"  - {finding}" for finding in self.findings
        )

    @property
    def number(self) -> int:
        """How many faults there are, those that a finding only counts included.

        >>> ModelError(["r(0) is nan", "r(1) is nan", "... and 34 more of this kind (r)"]).number
        36
        """
        return sum(map(_count_faults, self.findings))


def _count_faults(finding: str) -> int:
    """Of "... and 3 more of this kind" 3, of "P[0] is nan (and 3 more like it)" 4, else 1."""
    found = re.search(r"(\.\.\.|\() ?and (\d+) more", finding)
    return 1 if found is None else int(found[2]) + (found[1] == "(")


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


class PartiallyKnownMDP(ABC):
    """A finite-horizon MDP with state (x, y) whose dynamics are known in part.

        P(x', y' | x, y, a) = P_Y(y' | x, y, a) * P_eff(phi_Z(x, y, a, y'))(x')

    Subclasses give `horizon`, `start`, `actions`, `reward`, `outcomes` and either `step` or both
    `known_kernel` and `feature`; `final` and `last_step` where an end or a settlement pays. All
    values (x, y, actions, features) are hashable and otherwise free. Methods must answer the same
    question the same way every time.

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

    The last demand of this kiosk is never paid, because `reward` sees x and not x'. Pay in a CHANCE
    state after the demand instead: no action is chosen there and no time passes.

    >>> class PaidAtOnce(Kiosk):
    ...     def start(self): return None, 0
    ...     def actions(self, x, y): return [0, 1] if x is None else pkd.CHANCE
    ...     def reward(self, x, y, a): return -0.25 * a if x is None else min(x, y)
    ...     def step(self, x, y, a):
    ...         return [(1.0, a, "demand") if x is None else (1.0, 0, pkd.sure(None))]
    >>> pkd.plan(PaidAtOnce(), law).value  # three orders that gain 1/2 - 1/4 each
    0.75
    """

    horizon: int  # actions per episode

    # -- what every model says ---------------------------------------------------------------------

    @abstractmethod
    def start(self) -> Any:
        """The first state (x, y), or {(x, y): probability}."""

    @abstractmethod
    def actions(self, x: Any, y: Any) -> Any:
        """The actions that may be chosen in (x, y), a non-empty sequence; or CHANCE, or END."""

    def known_kernel(self, x: Any, y: Any, a: Any) -> Iterable[tuple[float, Any]]:
        """P_Y(. | x, y, a) as pairs (probability, y').

        Pairs, not a dict: two branches to the same y' add up.
        """
        raise ModelError(self._say_no_form())

    def feature(self, x: Any, y: Any, a: Any, y_next: Any) -> Any:
        """phi_Z(x, y, a, y'): any hashable value, or Known({x': probability}), or sure(x')."""
        raise ModelError(self._say_no_form())

    def _say_no_form(self) -> str:
        return (
            f"{type(self).__name__} has neither step() nor known_kernel() and feature(); define "
            "one of the two forms"
        )

    def step(self, x: Any, y: Any, a: Any) -> Iterable[Branch]:
        """P_Y and phi_Z at once, instead of `known_kernel` and `feature`: (probability, y', z).

        z is a function of y': two branches to the same y' must have the same z.
        """
        return [
            (p, y_next, self.feature(x, y, a, y_next)) for p, y_next in self.known_kernel(x, y, a)
        ]

    def outcomes(self, z: Any) -> Iterable[Any]:
        """Every x' that can follow the unknown feature z, or a family of laws (`pkd.families`)."""
        raise ModelError(
            f"{type(self).__name__}.outcomes({z!r}) is not defined; list every x' that can follow "
            "this feature"
        )

    @abstractmethod
    def reward(self, x: Any, y: Any, a: Any) -> float | UnknownReward:
        """r(x, y, a), any finite number, or an UnknownReward; a is None in a CHANCE state.

        It sees neither x' nor y'. What depends on them is paid in a CHANCE state that follows, or
        in `final`: paid one step late, the last outcome would be lost.
        """

    def final(self, x: Any, y: Any) -> float:
        """Paid once where the episode stops: at END, or in the state after the last action."""
        return 0.0

    def last_step(self, x: Any, y: Any, a: Any) -> Iterable[Branch]:
        """`step` for the settlement: the last action and every CHANCE state after it."""
        return self.step(x, y, a)

    # -- answers for many states at once, for large models; optional -------------------------------

    # (X, Y): every x is one of 0..X-1 and every y one of 0..Y-1. Only `step_many` needs it.
    grid: tuple[int, int] | None = None

    def step_many(self, x: Any, y: Any) -> Iterable[tuple[Any, Any, Any, Iterable[Branch]]]:
        """What `actions`, `reward` and `step` say of many states: x and y are arrays (n,) of int64.

        For each action in its order (a, where, reward, branches), a = None for CHANCE states.
        `where` are the states that have this action, and a state that has none is an END. Each
        branch is (probability, y', z). All of these are arrays (n,), or one value for all states;
        z is also Known(...), or `pkd.sure` of an array of x'. What arrays hold for other states is
        not read. A walk asks `step_many` where a model has it, and `check_model` compares it with
        the other methods. It is for models with a `grid`, without `last_step` and `share`.

        >>> import numpy as np
        >>> import pkd
        >>> class Shop(pkd.PartiallyKnownMDP):
        ...     horizon, grid = 4, (3, 1000)  # x: the demand just seen, y: the stock
        ...     def start(self): return 0, 500
        ...     def actions(self, x, y): return [a for a in (0, 1) if y + a < 1000]
        ...     def reward(self, x, y, a): return float(min(x, y)) - 0.25 * a
        ...     def step(self, x, y, a): return [(1.0, max(y - x, 0) + a, "demand")]
        ...     def outcomes(self, z): return [0, 1, 2]
        ...     def step_many(self, x, y):
        ...         for a in (0, 1):
        ...             after, paid = np.maximum(y - x, 0) + a, np.minimum(x, y) - 0.25 * a
        ...             yield a, y + a < 1000, paid, [(1.0, after, "demand")]
        >>> pkd.check_model(Shop())
        >>> pkd.compile(Shop()).n_states
        24
        """
        raise ModelError(f"{type(self).__name__} has no step_many()")

    # -- what the theorems may be told; every line is optional -------------------------------------

    # Bounds every return to go and caps unknown features; None: computed for each state.
    return_range: tuple[float, float] | None = None
    # |Z| in the logarithms; None: the number of unknown features that can occur.
    n_features: int | None = None
    # samples(episode): the (z, x') pairs that a finished episode teaches, if they are not those
    # that it visited (`pkd.episode.list_visited`). Which pairs count may depend on (x, y, a) and on
    # earlier outcomes, never on x' itself: samples selected by their outcome are biased, and no
    # bound holds for them.
    samples: Callable[[Episode], Iterable[tuple[Any, Any]]] | None = None
    # Whether `samples` teaches each feature, in expectation given the past, at least as often as an
    # episode visits it. Only then may a rule do without exploring what comes whatever is done.
    samples_cover_visits: bool = False

    def branching(self, z: Any) -> int:
        """B(z): a known bound on the number of x' that really follow z."""
        return len(tuple(self.outcomes(z)))

    def share(self, z: Any, y: Any) -> float | None:
        """The weight of y in the union bound for z; they sum to at most 1. None: all y alike."""
        return None

    def most_samples(self) -> int | None:
        """The most samples of one feature that an episode teaches; None: the most visits there are.

        It stands for H in the logarithms of the published rules. A model with `samples` of its own
        must say it if it can teach a feature more often than an episode can visit it.
        """
        return None

    # -- labels ------------------------------------------------------------------------------------

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

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: horizon {getattr(self, 'horizon', 'not given')}>"
