"""Where the tables of a `TabularMDP` come from: Gymnasium environments with a transition table,
.npz files, a function of (s, a), and trajectories.

All readers return the keyword arguments of `TabularMDP`, which validates them. A source that
cannot be read is a `ModelError`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pkd.model import ModelError
from pkd.results.files import read_arrays
from pkd.sparse_table import SparseTable

if TYPE_CHECKING:
    import gymnasium

__all__ = ["read_function", "read_gymnasium", "read_npz", "read_trajectories"]

SPARSE = {"P_shape", "P_pointers", "P_successors", "P_probabilities"}
Entry = tuple[float, int, float, bool]  # (probability, s', reward, terminated)
Table = Mapping[int, Mapping[int, Sequence[Entry]]]  # s -> a -> entries


def read_gymnasium(
    env: gymnasium.Env[Any, Any] | str, horizon: int | None, options: Mapping[str, Any]
) -> dict[str, Any]:
    """The table of an environment, with E[reward | s, a] for r(s, a) and terminal states that
    absorb and pay 0.
    """
    if isinstance(env, str):
        env = _make(env, options)
    name = env.spec.id if env.spec is not None else type(env.unwrapped).__name__
    if horizon is None and env.spec is not None:
        horizon = env.spec.max_episode_steps
    table, first = (
        getattr(env.unwrapped, "P", None),
        getattr(env.unwrapped, "initial_state_distrib", None),
    )
    if table is None:
        raise ModelError(
            f"{name}: expected a transition table in env.unwrapped.P, found none; only tabular "
            "environments can be read"
        )
    findings = []
    if first is None:
        findings.append(
            f"{name}: expected the probabilities of the first state in "
            "env.unwrapped.initial_state_distrib, found none"
        )
    if horizon is None:
        findings.append(f"{name} has no step limit of its own; give a horizon")
    if findings:
        raise ModelError(findings)
    transitions, rewards, start = _tables(table, np.asarray(first, dtype=np.float64))
    return {"transitions": transitions, "rewards": rewards, "horizon": horizon, "start": start}


def read_npz(path: str | Path, horizon: int | None) -> dict[str, Any]:
    """Arrays P and r with horizon, start and names where present; a horizon given here goes before
    the file's.
    """
    expected = f"{path}: expected an .npz file with arrays P (S, A, S), r (S, A) and horizon"
    if not Path(path).exists():
        raise ModelError(f"{expected}, found no such file")
    if _is_single_array(path):
        raise ModelError(f"{expected}, found a single array")
    try:
        arrays = read_arrays(path)
    except ModelError as error:
        raise ModelError(f"{expected}, found a file of another kind") from error
    if arrays.keys() >= SPARSE:
        arrays["P"] = SparseTable(  # type: ignore[assignment]
            tuple(arrays["P_shape"].tolist()),
            *(arrays[f"P_{part}"] for part in ("pointers", "successors", "probabilities")),
        )
    missing = {"P", "r"} - arrays.keys()
    if horizon is None and "horizon" not in arrays:
        missing.add("horizon")
    if missing:
        raise ModelError(
            f"{expected}, found only {sorted(arrays)}; add {' and '.join(sorted(missing))}"
        )
    start = arrays.get("start", np.array(0))
    return {
        "transitions": arrays["P"],
        "rewards": arrays["r"],
        "horizon": _scalar(arrays["horizon"]) if horizon is None else horizon,
        "start": _scalar(start),
        "state_names": arrays.get("state_names"),
        "action_names": arrays.get("action_names"),
        "discount": _scalar(arrays.get("discount", np.array(1.0))),
    }


def read_function(
    step: Callable[[Any, Any], Iterable[tuple[float, Any, float]]],
    actions: Sequence[Any] | Callable[[Any], Sequence[Any]],
    start: Any,
    horizon: int,
) -> dict[str, Any]:
    """What step(s, a) = [(probability, s', reward), ...] says of every state that can be reached.

    States of the last layer are not asked: they absorb and pay 0, because no action is left.
    """
    offer = actions if callable(actions) else lambda s: actions
    first = dict(start) if isinstance(start, Mapping) else {start: 1.0}
    place: dict[Hashable, int] = {s: i for i, s in enumerate(first)}
    moves: list[tuple[int, Any, float, int, float]] = []  # (s, action, p, s', reward)
    names: dict[Any, int] = {}
    layer = list(first)
    for _ in range(horizon):
        fresh = []
        for s in layer:
            for a in offer(s):
                names.setdefault(a, len(names))
                for p, after, reward in step(s, a):
                    if p == 0:
                        continue  # what cannot follow is no state
                    if after not in place:
                        place[after] = len(place)
                        fresh.append(after)
                    moves.append((place[s], a, p, place[after], reward))
        layer = fresh
    table = _collect(len(place), names, moves)
    begin: Any = 0
    if len(first) > 1:
        begin = np.array([first.get(s, 0.0) for s in place])
    return {**table, "horizon": horizon, "start": begin, "state_names": list(place)}


def read_trajectories(
    trajectories: Iterable[Iterable[tuple[Hashable, Hashable, float, Hashable]]],
    horizon: int | None,
) -> dict[str, Any]:
    """Frequencies and mean rewards of trajectories of (s, a, reward, s')."""
    place: dict[Hashable, int] = {}
    names: dict[Any, int] = {}
    seen: list[tuple[int, Any, float, int]] = []
    tries: dict[tuple[int, Any], int] = {}
    firsts: dict[int, int] = {}
    longest = 0
    for trajectory in trajectories:
        length, before = 0, None
        for length, (s, a, reward, after) in enumerate(trajectory, start=1):
            if length > 1 and s != before:
                raise ModelError(
                    f"step {length} of a trajectory begins in {s!r}, but the step before it ended "
                    f"in {before!r}"
                )
            at = place.setdefault(s, len(place))
            names.setdefault(a, len(names))
            seen.append((at, a, float(reward), place.setdefault(after, len(place))))
            tries[at, a] = tries.get((at, a), 0) + 1
            if length == 1:
                firsts[at] = firsts.get(at, 0) + 1
            before = after
        longest = max(longest, length)
    if not seen:
        raise ModelError("there is no trajectory with a step (s, a, reward, s')")
    moves = [(s, a, 1 / tries[s, a], after, reward) for s, a, reward, after in seen]
    begin: Any = next(iter(firsts))
    if len(firsts) > 1:
        begin = np.zeros(len(place))
        begin[list(firsts)] = np.array(list(firsts.values())) / sum(firsts.values())
    given = {"horizon": horizon or longest, "start": begin, "state_names": list(place)}
    return {**_collect(len(place), names, moves), **given}


def _collect(
    n: int, names: Mapping[Any, int], moves: Sequence[tuple[int, Any, float, int, float]]
) -> dict[str, Any]:
    """The sparse table of moves (s, action, p, s', reward).

    A pair without a move is not on offer; a state without any absorbs and pays 0.
    """
    width = len(names)
    pair = np.array([s * width + names[a] for s, a, *_ in moves], np.int64)
    p = np.array([move[2] for move in moves], float)
    paid = np.bincount(pair, p * np.array([move[4] for move in moves], float), n * width)
    tried = (np.bincount(pair, minlength=n * width) > 0).reshape(n, width)
    rewards = np.where(tried, paid.reshape(n, width), -np.inf)
    still = np.flatnonzero(~tried.any(axis=1))
    rewards[still, 0] = 0.0
    table = SparseTable.of_entries(
        (n, width, n),
        np.concatenate([pair, still * width]),
        np.concatenate([np.array([move[3] for move in moves], np.int64), still]),
        np.concatenate([p, np.ones(len(still))]),
    )
    return {"transitions": table, "rewards": rewards, "action_names": list(names)}


def _is_single_array(path: str | Path) -> bool:
    magic = np.lib.format.MAGIC_PREFIX
    try:
        with Path(path).open("rb") as file:
            return file.read(len(magic)) == magic
    except OSError:
        return False


def _make(name: str, options: Mapping[str, Any]) -> gymnasium.Env[Any, Any]:
    try:
        import gymnasium
    except ImportError:
        raise ModelError(
            f"{name} looks like a Gymnasium id, but Gymnasium is not installed; pip install "
            "'pkd[gymnasium]'"
        ) from None
    try:
        return gymnasium.make(name, **options)
    except (gymnasium.error.Error, ImportError, TypeError) as problem:
        raise ModelError(
            f"Gymnasium cannot make {name}: {' '.join(str(problem).split())}"
        ) from None


def _tables(
    table: Table, start: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """P, r and the start of a Gymnasium table.

    Where every terminal state is entered only by ending, it absorbs. If one can also be passed
    through, all endings go to one added state: Gymnasium's "terminated" belongs to the transition,
    not to the state.
    """
    entries = [
        (s, a, *entry)
        for s, row in table.items()
        for a, cell in row.items()
        for entry in cell
        if entry[0] > 0
    ]
    terminal = {after for _, _, _, after, _, over in entries if over}
    passed = {after for s, _, _, after, _, over in entries if not over and s not in terminal} | set(
        np.flatnonzero(start).tolist()
    )
    added = bool(terminal & passed)
    n_states, n_actions = len(table) + added, len(table[0])
    absorbing = {len(table)} if added else terminal

    transitions = np.zeros((n_states, n_actions, n_states))
    rewards = np.zeros((n_states, n_actions))
    for s, a, p, after, r, over in entries:
        if s not in absorbing:
            transitions[s, a, len(table) if over and added else after] += p
            rewards[s, a] += p * r
    for s in absorbing:
        transitions[s, :, s] = 1.0
    return transitions, rewards, np.append(start, [0.0] * added)


def _scalar(array: NDArray[Any]) -> Any:
    return array.item() if array.ndim == 0 else array
