"""An ordinary finite-horizon MDP from tables: the simplest MDP with partially known dynamics.

`TabularMDP` is a problem with its truth: the arrays P and r, from a program, an .npz file or a
Gymnasium table. Its `model()` has a trivial y and the feature z = (s, a), so that the generic
algorithm on it is the paper's base algorithm MVP. Its `law()` is P; the model never holds P.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np
from numpy.typing import NDArray

from pkd.model import Branch, ModelError, PartiallyKnownMDP
from pkd.results.files import write_npz
from pkd.table_sources import read_gymnasium, read_npz

if TYPE_CHECKING:
    import gymnasium

__all__ = ["TabularMDP"]

Floats = NDArray[np.float64]
TOLERANCE = 1e-9  # how far a row of probabilities may be from 1
SHOWN = 5  # bad rows that one finding names before it counts the rest


def _frozen_array(value: Any) -> Any:
    try:
        array = np.array(value, dtype=np.float64)
    except (TypeError, ValueError):
        return value  # not an array of numbers: `_findings` says so, together with everything else
    array.flags.writeable = False
    return array


def _start(value: Any) -> Any:
    return value if isinstance(value, int | np.integer) else _frozen_array(value)


def _names(value: Iterable[Any] | None) -> tuple[str, ...] | None:
    return None if value is None else tuple(str(name) for name in value)


@attrs.frozen(eq=False, repr=False)
class TabularMDP:
    """A finite-horizon MDP with all its numbers.

    P(s' | s, a) = transitions[s, a, s'] and r(s, a) = rewards[s, a], for `horizon` actions from a
    state `start` or a distribution over states. Rewards may have any finite range.

    >>> tosses = [[[0.5, 0.5], [1.0, 0.0]], [[0.5, 0.5], [0.0, 1.0]]]
    >>> coin = TabularMDP(tosses, [[0.0, 0.0], [1.0, 1.0]], horizon=3)
    >>> coin.n_states, coin.n_actions, coin.law()[0, 1]
    (2, 2, {0: 1.0})
    """

    transitions: Floats = attrs.field(converter=_frozen_array)  # (S, A, S)
    rewards: Floats = attrs.field(converter=_frozen_array)  # (S, A)
    horizon: int
    start: int | Floats = attrs.field(default=0, converter=_start)  # a state, or (S,) probabilities
    state_names: tuple[str, ...] | None = attrs.field(default=None, converter=_names)
    action_names: tuple[str, ...] | None = attrs.field(default=None, converter=_names)

    def __attrs_post_init__(self) -> None:
        if findings := list(_findings(self)):
            raise ModelError(findings)

    def __repr__(self) -> str:
        sizes = f"{self.n_states} states, {self.n_actions} actions, horizon {self.horizon}"
        return f"<TabularMDP: {sizes}>"

    @property
    def n_states(self) -> int:
        return int(self.transitions.shape[0])

    @property
    def n_actions(self) -> int:
        return int(self.transitions.shape[1])

    @property
    def start_distribution(self) -> Floats:
        """Probabilities of the first state, (S,)."""
        if isinstance(self.start, np.ndarray):
            return self.start
        point = np.zeros(self.n_states)
        point[self.start] = 1.0
        return point

    def model(self, *, branching: int | None = None, support: bool = False) -> PartiallyKnownMDP:
        """The partially known MDP of this problem: x = s, y trivial, z = (s, a).

        outcomes(z) are all states, or the true successors with `support=True`;
        B(z) = min(`branching`, number of outcomes).
        """
        successors = self.transitions > 0
        most = int(successors.sum(axis=2).max())
        if branching is not None and branching < most:
            s, a = np.argwhere(successors.sum(axis=2) == most)[0]
            raise ModelError(
                f"branching={branching}, but transitions[{s}, {a}] has {most} successors; "
                f"give at least {most}, or None"
            )
        return _TabularModel(
            horizon=self.horizon,
            rewards=self.rewards.tolist(),
            start=self.start_distribution,
            branching=branching,
            support=successors if support else None,
            state_names=self.state_names,
            action_names=self.action_names,
        )

    def law(self) -> Mapping[tuple[int, int], Mapping[int, float]]:
        """P as a law: (s, a) -> {s': probability}, successors of probability 0 left out."""
        return _TabularLaw(self.transitions)

    @classmethod
    def from_gymnasium(
        cls, env: gymnasium.Env[Any, Any] | str, horizon: int | None = None, **options: Any
    ) -> TabularMDP:
        """The table of a Gymnasium environment that has one: FrozenLake, CliffWalking, Taxi.

        It is read from `unwrapped.P`. r(s, a) is the expected reward. A terminal state absorbs and
        pays 0. `env` may be an id, made with `options`. Without a horizon the environment's own
        step limit is taken.
        """
        return cls(**read_gymnasium(env, horizon, options))

    @classmethod
    def from_npz(cls, path: str | Path, horizon: int | None = None) -> TabularMDP:
        """Reads what `save_npz` writes: P (S, A, S), r (S, A), and what else is present."""
        return cls(**read_npz(path, horizon))

    def save_npz(self, path: str | Path) -> None:
        """Writes the problem to an .npz file, whole or not at all."""
        arrays: dict[str, NDArray[Any]] = {
            "P": self.transitions,
            "r": self.rewards,
            "horizon": np.array(self.horizon),
            "start": np.array(self.start),
        }
        if self.state_names is not None:
            arrays["state_names"] = np.array(self.state_names)
        if self.action_names is not None:
            arrays["action_names"] = np.array(self.action_names)
        write_npz(path, arrays, {"kind": "TabularMDP"})


class _TabularModel(PartiallyKnownMDP):
    """x = s, y = None, z = (s, a). Holds rewards and supports, never probabilities."""

    def __init__(
        self,
        *,
        horizon: int,
        rewards: list[list[float]],
        start: Floats,
        branching: int | None,
        support: NDArray[np.bool_] | None,
        state_names: tuple[str, ...] | None,
        action_names: tuple[str, ...] | None,
    ) -> None:
        self.horizon = horizon
        self._rewards = rewards
        self._start = {(int(s), None): float(start[s]) for s in np.flatnonzero(start)}
        self._branching = branching
        self._support = support
        # One object for all states and all features.
        self._states = range(len(rewards))
        self._actions = range(len(rewards[0]))
        self._state_names = state_names
        self._action_names = action_names

    def start(self) -> Any:
        return dict(self._start)

    def actions(self, x: int, y: None) -> Sequence[int]:
        return self._actions

    def reward(self, x: int, y: None, a: int) -> float:
        return self._rewards[x][a]

    def step(self, x: int, y: None, a: int) -> Sequence[Branch]:
        return [(1.0, None, (x, a))]

    def outcomes(self, z: tuple[int, int]) -> Sequence[int]:
        return self._states if self._support is None else np.flatnonzero(self._support[z]).tolist()

    def branching(self, z: tuple[int, int]) -> int:
        outcomes = len(self.outcomes(z))
        return outcomes if self._branching is None else min(self._branching, outcomes)

    def x_label(self, x: int) -> str:
        return str(x) if self._state_names is None else self._state_names[x]

    def y_label(self, y: None) -> str:
        return ""

    def action_label(self, a: int) -> str:
        return str(a) if self._action_names is None else self._action_names[a]

    def feature_label(self, z: tuple[int, int]) -> str:
        return f"{self.x_label(z[0])}, {self.action_label(z[1])}"


class _TabularLaw(Mapping[tuple[int, int], Mapping[int, float]]):
    """(s, a) -> {s': P(s' | s, a)}, read from the array when asked."""

    def __init__(self, transitions: Floats) -> None:
        self._transitions = transitions

    def __getitem__(self, z: tuple[int, int]) -> dict[int, float]:
        s, a = z
        if not (0 <= s < self._transitions.shape[0] and 0 <= a < self._transitions.shape[1]):
            raise KeyError(z)
        row = self._transitions[s, a]
        (successors,) = row.nonzero()
        return dict(zip(successors.tolist(), row[successors].tolist(), strict=True))

    def __iter__(self) -> Iterator[tuple[int, int]]:
        return (
            (s, a)
            for s in range(self._transitions.shape[0])
            for a in range(self._transitions.shape[1])
        )

    def __len__(self) -> int:
        return int(self._transitions.shape[0] * self._transitions.shape[1])


def _findings(mdp: TabularMDP) -> Iterator[str]:
    """Everything that is wrong with the numbers of a TabularMDP."""
    p, r = mdp.transitions, mdp.rewards
    sound = isinstance(p, np.ndarray) and p.ndim == 3 and p.shape[0] == p.shape[2] and p.size > 0
    if not sound:
        yield f"transitions: expected numbers of shape (S, A, S), found {_describe(p)}"
    else:
        yield from _row_findings("transitions", p)
        yield from _reward_findings(r, p.shape)
        yield from _start_findings(mdp.start, p.shape[0])
        for field, names, n, what in (
            ("state_names", mdp.state_names, p.shape[0], "S"),
            ("action_names", mdp.action_names, p.shape[1], "A"),
        ):
            if names is not None and len(names) != n:
                yield f"{field}: expected {n} names ({what} = {n}), found {len(names)}"
    horizon: Any = mdp.horizon
    if isinstance(horizon, bool) or not isinstance(horizon, int | np.integer) or horizon < 1:
        yield f"horizon: expected a whole number of at least 1, found {horizon!r}"


def _row_findings(field: str, rows: Floats) -> Iterator[str]:
    """Rows of probabilities along the last axis that are no distributions, the first few."""
    sums = rows.sum(axis=-1)
    finite = np.isfinite(rows).all(axis=-1)
    negative = finite & (rows < 0).any(axis=-1)
    uneven = finite & ~negative & (np.abs(sums - 1.0) > TOLERANCE)
    for at in _some(~finite):
        yield f"{_place(field, at)} holds a number that is not finite{_more(~finite, at)}"
    for at in _some(negative):
        least = f"{rows[at].min():.6g}"
        yield f"{_place(field, at)} holds the negative probability {least}{_more(negative, at)}"
    for at in _some(uneven):
        yield f"{_place(field, at)} sums to {sums[at]:.12g}, not 1{_more(uneven, at)}"


def _reward_findings(r: Any, shape: tuple[int, ...]) -> Iterator[str]:
    if not isinstance(r, np.ndarray) or r.shape != shape[:2]:
        hint = (
            "; average over s' first: (transitions * rewards).sum(axis=2)"
            if isinstance(r, np.ndarray) and r.shape == shape
            else ""
        )
        yield f"rewards: expected numbers of shape (S, A) = {shape[:2]}, found {_describe(r)}{hint}"
        return
    for at in _some(~np.isfinite(r)):
        yield f"{_place('rewards', at)} is {r[at]}, not a finite number{_more(~np.isfinite(r), at)}"


def _start_findings(start: Any, n: int) -> Iterator[str]:
    if isinstance(start, int | np.integer) and not isinstance(start, bool):
        if not 0 <= start < n:
            yield f"start: expected a state 0..{n - 1}, found {start}"
    elif not isinstance(start, np.ndarray) or start.shape != (n,):
        yield f"start: expected a state 0..{n - 1} or {n} probabilities, found {_describe(start)}"
    else:
        yield from _row_findings("start", start)


def _some(bad: np.bool_ | NDArray[np.bool_]) -> list[tuple[int, ...]]:
    """The places of the first few True."""
    return [tuple(map(int, at)) for at in np.argwhere(bad)[:SHOWN]]


def _more(bad: np.bool_ | NDArray[np.bool_], at: tuple[int, ...]) -> str:
    """Said at the last place shown: how many places were left out."""
    left = int(bad.sum()) - SHOWN
    return f" (and {left} more like it)" if left > 0 and at == _some(bad)[-1] else ""


def _place(field: str, at: tuple[int, ...]) -> str:
    return f"{field}[{', '.join(map(str, at))}]" if at else field


def _describe(value: Any) -> str:
    return (
        f"shape {value.shape}"
        if isinstance(value, np.ndarray)
        else f"{type(value).__name__} that is no array of numbers"
    )
