"""An ordinary finite-horizon MDP from tables: the simplest MDP with partially known dynamics.

`TabularMDP` is a problem with its truth: the arrays P and r, from a program, an .npz file or a
Gymnasium table. Its `model()` has a trivial y and the feature z = (s, a), so that the generic
algorithm on it is the paper's base algorithm MVP. Its `law()` is P; the model never holds P.

Tables may be sparse, may change with the step, may offer fewer actions in some states, and may be
discounted. Where they change, y is a clock t = (h - 1) mod T, and z = (t, s, a).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np
from numpy.typing import NDArray

from pkd.adapters import Table, find_masses, find_table
from pkd.expect import flag, if_given, require, whole
from pkd.files.atomic import write_npz, write_text
from pkd.model import Branch, ModelError, PartiallyKnownMDP
from pkd.tables.discounting import Discounted
from pkd.tables.exports import (
    make_networkx,
    make_quantecon,
    unroll,
    write_drn,
    write_pomdp,
    write_prism,
)
from pkd.tables.findings import find_faults, is_table, normalise_rows, sum_rows
from pkd.tables.sources import (
    read_function,
    read_gymnasium,
    read_networkx,
    read_npz,
    read_quantecon,
    read_trajectories,
)
from pkd.tables.sparse import SparseTable, is_sparse

if TYPE_CHECKING:
    import gymnasium
    import networkx

__all__ = ["TabularMDP"]

Floats = NDArray[np.float64]
Transitions = Floats | SparseTable
Feature = tuple[int, ...]  # (s, a), or (t, s, a) where P changes with the step
Step = Callable[[Any, Any], Iterable[tuple[float, Any, float]]]  # (s, a) -> (p, s', reward)


def _frozen_array(value: Any) -> Any:
    try:
        array = np.array(value, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        # Not numbers: `find_faults` says so, together with everything else. An array means numbers.
        return value.tolist() if isinstance(value, np.ndarray) else value
    array.flags.writeable = False
    return array


def _transitions(value: Any) -> Any:
    """A dense array, or a SparseTable of what scipy.sparse gives."""
    if isinstance(value, SparseTable):
        return value
    first = value
    while isinstance(first, list | tuple) and first:
        first = first[0]
    if is_sparse(first):
        return SparseTable.of_matrices(value)
    found = _frozen_array(value)
    one = isinstance(found, np.ndarray) and found.ndim == 4 and len(found) == 1
    return found[0] if one else found  # one table does not change


def _start(value: Any) -> Any:
    return value if isinstance(value, int | np.integer) else _frozen_array(value)


def _names(value: Iterable[Any] | None) -> Any:
    if value is None:
        return None
    # What is no list of names: `find_faults` says so, together with everything else.
    listed = isinstance(value, Iterable) and not isinstance(value, str | bytes | Mapping)
    return tuple(str(name) for name in value) if listed else value


@attrs.frozen(eq=False, repr=False)
class TabularMDP:
    """A finite-horizon MDP with all its numbers.

    P(s' | s, a) = transitions[s, a, s'] and r(s, a) = rewards[s, a], for `horizon` actions from a
    state `start` or a distribution over states. Rewards may have any finite range.

    - Sparse: transitions may be a scipy.sparse matrix (S A, S), whose row s A + a is P(. | s, a),
      or a list of A matrices (S, S). Then the successors are known to a learner, too.
    - Changing: with one axis more in front, (T, S, A, S) and (T, S, A), step h uses table
      (h - 1) mod T. Give T = horizon tables, or one for each step of a season.
    - Fewer actions: rewards[s, a] = -inf says that a is not on offer in s.
    - Discounted: after each action the episode goes on with the known probability `discount`, so
      that the expected return is the discounted one.

    >>> tosses = [[[0.5, 0.5], [1.0, 0.0]], [[0.5, 0.5], [0.0, 1.0]]]
    >>> coin = TabularMDP(tosses, [[0.0, 0.0], [1.0, 1.0]], horizon=3)
    >>> coin.n_states, coin.n_actions, coin.law()[0, 1]
    (2, 2, {0: 1.0})
    """

    transitions: Transitions = attrs.field(converter=_transitions)  # (S, A, S) or (T, S, A, S)
    rewards: Floats = attrs.field(converter=_frozen_array)  # (S, A) or (T, S, A)
    horizon: int
    start: int | Floats = attrs.field(default=0, converter=_start)  # a state, or (S,) probabilities
    state_names: tuple[str, ...] | None = attrs.field(default=None, converter=_names)
    action_names: tuple[str, ...] | None = attrs.field(default=None, converter=_names)
    discount: float = 1.0

    def __attrs_post_init__(self) -> None:
        sums: Any = sum_rows(self.transitions) if is_table(self.transitions) else None
        if findings := list(find_faults(self, sums)):
            raise ModelError(findings)
        object.__setattr__(self, "transitions", normalise_rows(self.transitions, sums))
        if isinstance(self.start, np.ndarray):
            object.__setattr__(self, "start", normalise_rows(self.start, sum_rows(self.start)))

    def __repr__(self) -> str:
        sizes = f"{self.n_states} states, {self.n_actions} actions, horizon {self.horizon}"
        more = f", {self.n_tables} tables" if self.n_tables > 1 else ""
        return f"<TabularMDP: {sizes}{more}{self._say_discount()}>"

    def _say_discount(self) -> str:
        return f", discount {self.discount:g}" if self.discount < 1 else ""

    @property
    def n_states(self) -> int:
        return int(self.transitions.shape[-1])

    @property
    def n_actions(self) -> int:
        return int(self.transitions.shape[-2])

    @property
    def n_tables(self) -> int:
        """T: after this many steps P and r begin anew; 1 where they do not change."""
        tables = [
            int(t.shape[0]) for t, n in ((self.transitions, 4), (self.rewards, 3)) if t.ndim == n
        ]
        return max(tables, default=1)

    @property
    def on_offer(self) -> NDArray[np.bool_]:
        """Which actions can be chosen where, (S, A) or (T, S, A)."""
        return ~np.isneginf(self.rewards)

    @property
    def start_distribution(self) -> Floats:
        """Probabilities of the first state, (S,)."""
        if isinstance(self.start, np.ndarray):
            return self.start
        point = np.zeros(self.n_states)
        point[self.start] = 1.0
        return point

    def model(
        self, *, branching: int | None = None, support: bool | None = None
    ) -> PartiallyKnownMDP:
        """The partially known MDP of this problem: x = s, y trivial or a clock, z = (s, a).

        outcomes(z) are all states, or the true successors with `support=True`, which is what a
        sparse table does unless told otherwise; B(z) = min(`branching`, number of outcomes).
        """
        table = self.transitions
        sparse = isinstance(table, SparseTable)
        require(if_given(whole, "branching", branching), if_given(flag, "support", support))
        if branching is not None:
            if isinstance(table, SparseTable):
                lengths = table.lengths
            else:
                lengths = np.count_nonzero(table, axis=-1)
            most = int(lengths.max())
            if branching < most:
                at = ", ".join(map(str, np.argwhere(lengths == most)[0]))
                raise ModelError(
                    f"branching={branching}, but transitions[{at}] has {most} successors; "
                    f"give at least {most}, or None"
                )
        known = SparseTable.of(table).support if (sparse if support is None else support) else None
        model = _TabularModel(self, branching, known)
        return model if self.discount == 1 else Discounted(model, self.discount)

    def law(self) -> Mapping[Feature, Mapping[int, float]]:
        """P as a law: (s, a) -> {s': probability}, successors of probability 0 left out.

        Where P changes with the step, (t, s, a) -> {s': probability}, t = (h - 1) mod T.
        """
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

    @classmethod
    def from_function(
        cls,
        step: Step,
        actions: Sequence[Any] | Callable[[Any], Sequence[Any]],
        start: Any,
        horizon: int,
        **options: Any,
    ) -> TabularMDP:
        """The sparse table of step(s, a) = [(probability, s', reward), ...].

        States are any hashable values; those that can be reached from `start` (a state, or
        {state: probability}) within the horizon are found and numbered in that order. `actions` is
        one sequence, or a function of the state.

        >>> import pkd
        >>> walk = TabularMDP.from_function(
        ...     lambda s, a: [(0.5, min(s + a, 3), s), (0.5, 0, s)], [0, 1], start=0, horizon=4)
        >>> walk.state_names, round(pkd.plan(walk).value, 4)
        (('0', '1', '2', '3'), 2.125)
        """
        return cls(**read_function(step, actions, start, horizon), **options)

    @classmethod
    def from_trajectories(
        cls,
        trajectories: Iterable[Iterable[tuple[Hashable, Hashable, float, Hashable]]],
        horizon: int | None = None,
        **options: Any,
    ) -> TabularMDP:
        """The sparse table of the frequencies in trajectories of (s, a, reward, s').

        A frame with the columns state, action, reward, next_state, and perhaps episode, will do.
        A pair that was never tried is not on offer; a state that was never left absorbs and pays
        0. The horizon is that of the longest trajectory unless given. These are frequencies, with
        no guarantee; `pkd.certify` gives bounds that hold.

        >>> seen = [[("a", "go", 1.0, "b"), ("b", "go", 0.0, "a")], [("a", "go", 0.0, "a")]]
        >>> table = TabularMDP.from_trajectories(seen)
        >>> table.state_names, table.law()[0, 0], float(table.rewards[0, 0])
        (('a', 'b'), {0: 0.5, 1: 0.5}, 0.5)
        """
        return cls(**read_trajectories(trajectories, horizon), **options)

    @classmethod
    def from_networkx(
        cls, graph: networkx.Graph[Any], horizon: int, start: Any = None, **options: Any
    ) -> TabularMDP:
        """The sparse table of a directed multigraph whose edges carry `action`, `probability` and
        `reward` (of the pair, or of the edge: the expectation is taken).

        Nodes are states; `start` is a node or {node: probability}, by default the first node. A
        node without edges absorbs and pays 0.
        """
        return cls(**read_networkx(graph, horizon, start), **options)

    def to_networkx(self) -> networkx.MultiDiGraph[Any]:
        """A directed multigraph: one edge for each (s, a, s') with `action`, `probability` and
        `reward` r(s, a). Nodes are the names of states, or their numbers.
        """
        return make_networkx(self.unrolled())

    @classmethod
    def from_quantecon(
        cls, ddp: Any, horizon: int, start: int | Floats = 0, **options: Any
    ) -> TabularMDP:
        """The table of a `quantecon.markov.DiscreteDP`, in any form; beta is the discount."""
        return cls(**read_quantecon(ddp, horizon, start), **options)

    def to_quantecon(self) -> Any:
        """A `quantecon.markov.DiscreteDP` in the form of state-action pairs, with sparse Q.

        `backward_induction(ddp, horizon)` gives the values of this problem.
        """
        return make_quantecon(self.unrolled(keep_discount=True))

    def to_drn(self, path: str | Path) -> None:
        """Writes the problem for Storm in its explicit format; see `storm_property`."""
        write_text(path, write_drn(self.unrolled()))

    def to_prism(self, path: str | Path) -> None:
        """Writes the problem in the language of PRISM, which Storm reads, too; see
        `storm_property`.
        """
        write_text(path, write_prism(self.unrolled()))

    def to_pomdp(self, path: str | Path) -> None:
        """Writes the problem in Cassandra's format, with the state as observation.

        The format has no word for the horizon: it is a comment.
        """
        write_text(path, write_pomdp(self.unrolled(keep_discount=True)))

    @property
    def storm_property(self) -> str:
        """What to ask Storm or PRISM for: the largest expected return over the horizon.

        A file has one first state. If the start is random, it is a state before the first step.
        """
        steps = self.horizon + isinstance(self.start, np.ndarray)
        return f'R{{"reward"}}max=? [C<={steps}]'

    def unrolled(self, *, keep_discount: bool = False) -> TabularMDP:
        """The same problem with one sparse table and no discount: states are (t, s), and "end".

        The same object if it is like this already, dense or not.
        """
        discounted = self.discount < 1 and not keep_discount
        if self.n_tables == 1 and not discounted:
            return self
        return TabularMDP(**unroll(self, discounted))

    def save_npz(self, path: str | Path) -> None:
        """Writes the problem to an .npz file, whole or not at all."""
        arrays: dict[str, NDArray[Any]] = {
            "r": self.rewards,
            "horizon": np.array(self.horizon),
            "start": np.array(self.start),
            "discount": np.array(self.discount),
        }
        if isinstance(self.transitions, SparseTable):
            arrays |= {
                "P_shape": np.array(self.transitions.shape),
                "P_pointers": self.transitions.matrix.indptr.astype(np.int64),
                "P_successors": self.transitions.matrix.indices.astype(np.int64),
                "P_probabilities": self.transitions.matrix.data,
            }
        else:
            arrays["P"] = self.transitions
        if self.state_names is not None:
            arrays["state_names"] = np.array(self.state_names)
        if self.action_names is not None:
            arrays["action_names"] = np.array(self.action_names)
        write_npz(path, arrays, {"kind": "TabularMDP"})


class _TabularModel(PartiallyKnownMDP):
    """x = s, y = None or the clock t, z = (s, a) or (t, s, a).

    Holds rewards and supports, never probabilities.
    """

    def __init__(self, mdp: TabularMDP, branching: int | None, support: SparseTable | None) -> None:
        self.horizon = mdp.horizon
        self.table = Table(
            rewards=mdp.rewards if mdp.rewards.ndim == 3 else mdp.rewards[None],
            period=mdp.n_tables,
            changes=mdp.transitions.ndim == 4,
            successors=None if support is None else (support.matrix.indptr, support.matrix.indices),
            branching=branching,
        )
        first, start = None if mdp.n_tables == 1 else 0, mdp.start_distribution
        self._start = {(int(s), first): float(start[s]) for s in np.flatnonzero(start)}
        self._support = support
        # One object for all states and all features.
        self._states = range(mdp.n_states)
        self._actions = range(mdp.n_actions)
        self._state_names = mdp.state_names
        self._action_names = mdp.action_names

    @cached_property
    def _rewards(self) -> list[list[list[float]]]:
        found: list[list[list[float]]] = self.table.rewards.tolist()
        return found

    @cached_property
    def _offers(self) -> list[list[list[int]]] | None:
        """None: every action everywhere."""
        offered = self.table.rewards > -np.inf
        if offered.all():
            return None
        return [[np.flatnonzero(row).tolist() for row in table] for table in offered]

    def start(self) -> Any:
        return dict(self._start)

    def actions(self, x: int, y: int | None) -> Sequence[int]:
        return self._actions if self._offers is None else self._pick(self._offers, y)[x]

    def reward(self, x: int, y: int | None, a: int) -> float:
        paid: float = self._pick(self._rewards, y)[x][a]
        return paid

    def _pick(self, tables: list[Any], y: int | None) -> Any:
        return tables[0 if y is None or len(tables) == 1 else y]

    def step(self, x: int, y: int | None, a: int) -> Sequence[Branch]:
        if y is None:
            return [(1.0, None, (x, a))]
        later = (y + 1) % self.table.period
        return [(1.0, later, (y, x, a) if self.table.changes else (x, a))]

    def outcomes(self, z: Feature) -> Sequence[int]:
        return self._states if self._support is None else self._support.list_successors(z)

    def branching(self, z: Feature) -> int:
        outcomes, bound = len(self.outcomes(z)), self.table.branching
        return outcomes if bound is None else min(bound, outcomes)

    def x_label(self, x: int) -> str:
        return str(x) if self._state_names is None else self._state_names[x]

    def y_label(self, y: int | None) -> str:
        return "" if y is None else f"t = {y}"

    def action_label(self, a: int) -> str:
        return str(a) if self._action_names is None else self._action_names[a]

    def feature_label(self, z: Feature) -> str:
        *clock, s, a = z
        return ", ".join([*(f"t = {t}" for t in clock), self.x_label(s), self.action_label(a)])


class _TabularLaw(Mapping[Feature, Mapping[int, float]]):
    """z -> {s': probability}, read from the table when asked."""

    def __init__(self, transitions: Transitions) -> None:
        self._transitions = transitions
        self._shape = transitions.shape[:-1]

    def __getitem__(self, z: Feature) -> dict[int, float]:
        if len(z) != len(self._shape) or not all(
            0 <= i < n for i, n in zip(z, self._shape, strict=True)
        ):
            raise KeyError(z)
        if isinstance(self._transitions, SparseTable):
            return self._transitions.get_row(z)
        row = self._transitions[z]
        (successors,) = row.nonzero()
        return dict(zip(successors.tolist(), row[successors].tolist(), strict=True))

    def __iter__(self) -> Iterator[Feature]:
        return product(*map(range, self._shape))

    def __len__(self) -> int:
        return int(np.prod(self._shape))


@find_table.register
def _(model: _TabularModel) -> Table:
    return model.table


@find_masses.register
def _(law: _TabularLaw, table: Table) -> NDArray[np.float64] | None:
    given, shape = law._transitions, (table.period, *table.rewards.shape[1:])
    if law._shape != shape[1 - table.changes :]:
        return None
    if table.successors is None:
        return np.asarray(given).reshape(-1)
    found = SparseTable.of(given).matrix
    same = all(
        mine is its or np.array_equal(mine, its)
        for mine, its in zip((found.indptr, found.indices), table.successors, strict=True)
    )
    return found.data if same else None
