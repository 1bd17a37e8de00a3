"""Where the tables of a `TabularMDP` come from: Gymnasium environments with a transition table,
.npz files, a function of (s, a), trajectories, QuantEcon's `DiscreteDP`, and networkx graphs.

All readers return the keyword arguments of `TabularMDP`, which validates them. A source that
cannot be read is a `ModelError`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pkd.expect import function, if_given, instance, key, pathname, require, show, whole
from pkd.files.atomic import read_arrays
from pkd.files.logs import is_frame, read_table
from pkd.model import ModelError
from pkd.tables.sparse import SparseTable, is_sparse

if TYPE_CHECKING:
    import gymnasium
    import networkx

__all__ = [
    "read_function", "read_gymnasium", "read_networkx", "read_npz", "read_quantecon",
    "read_trajectories",
]  # fmt: skip

EDGE = ("action", "probability", "reward")
SPARSE = {"P_shape", "P_pointers", "P_successors", "P_probabilities"}
Entry = tuple[float, int, float, bool]  # (probability, s', reward, terminated)
Table = Mapping[int, Mapping[int, Sequence[Entry]]]  # s -> a -> entries


def read_gymnasium(
    env: gymnasium.Env[Any, Any] | str, horizon: int | None, options: Mapping[str, Any]
) -> dict[str, Any]:
    """The table of an environment, with E[reward | s, a] for r(s, a) and terminal states that
    absorb and pay 0.
    """
    require(if_given(whole, "horizon", horizon, 1))
    if isinstance(env, str):
        env = _make(env, options)
    if not hasattr(env, "spec") or not hasattr(env, "unwrapped"):
        raise ModelError(f"env is {show(env)}; expected a Gymnasium environment or its id")
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
            "environments can be planned. To play in it, give the environment itself: "
            f"gymnasium.make({name!r})"
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
    require(pathname("path", path), if_given(whole, "horizon", horizon, 1))
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
        arrays["P"] = SparseTable.of_arrays(  # type: ignore[assignment]
            tuple(arrays["P_shape"].tolist()),
            (arrays["P_probabilities"], arrays["P_successors"], arrays["P_pointers"]),
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
    found = function("step", step, "(s, a) -> [(probability, s', reward), ...]")
    if not callable(actions):
        wanted = "a list of actions, at least one, or a function of the state"
        listed = isinstance(actions, Sequence) and not isinstance(actions, str | bytes)
        found += [] if listed and actions else [f"actions is {show(actions)}; expected {wanted}"]
    found += [] if isinstance(start, Mapping) else key("start", start)
    require(found, whole("horizon", horizon, 1))
    offer = actions if callable(actions) else lambda s: actions
    first = dict(start) if isinstance(start, Mapping) else {start: 1.0}
    place: dict[Hashable, int] = {s: i for i, s in enumerate(first)}
    moves: list[tuple[int, Any, float, int, float]] = []  # (s, action, p, s', reward)
    names: dict[Any, int] = {}
    layer = list(first)
    for _ in range(horizon):
        fresh = []
        for s in layer:
            offered = offer(s)
            require(instance(f"actions({show(s)})", offered, Iterable, "a list of actions"))
            for a in offered:
                names.setdefault(a, len(names))
                for p, after, reward in _read_entries(
                    step(s, a), 3, f"step({s!r}, {a!r})", "(probability, s', reward)"
                ):
                    if p == 0:
                        continue  # what cannot follow is no state
                    if after not in place:
                        place[after] = len(place)
                        fresh.append(after)
                    moves.append((place[s], a, p, place[after], reward))
        layer = fresh
        if not layer:
            break
    if not moves:
        raise ModelError("actions and step offer no move from start; expected at least one")
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
    require(
        instance("trajectories", trajectories, Iterable, "lists of (s, a, reward, s')"),
        if_given(whole, "horizon", horizon, 1),
    )
    if is_frame(trajectories):
        trajectories = _split_frame(trajectories)
    place: dict[Hashable, int] = {}
    names: dict[Any, int] = {}
    seen: list[tuple[int, Any, float, int]] = []
    tries: dict[tuple[int, Any], int] = {}
    firsts: dict[int, int] = {}
    longest = 0
    for number, trajectory in enumerate(trajectories):
        length, before = 0, None
        moves_of = _read_entries(trajectory, 4, f"trajectories[{number}]", "(s, a, reward, s')")
        for length, (s, a, reward, after) in enumerate(moves_of, start=1):
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
        raise ModelError("trajectories are empty; expected a step (s, a, reward, s')")
    moves = [(s, a, 1 / tries[s, a], after, reward) for s, a, reward, after in seen]
    begin: Any = next(iter(firsts))
    if len(firsts) > 1:
        begin = np.zeros(len(place))
        begin[list(firsts)] = np.array(list(firsts.values())) / sum(firsts.values())
    given = {"horizon": horizon or longest, "start": begin, "state_names": list(place)}
    return {**_collect(len(place), names, moves), **given}


def _split_frame(frame: Any) -> list[list[tuple[Any, ...]]]:
    """The trajectories of a frame, in the order of its rows."""
    table = read_table(frame)
    wanted = ("state", "action", "reward", "next_state")
    missing = [name for name in wanted if name not in table.columns]
    if missing:
        raise ModelError(
            f"the frame has no column {', '.join(missing)}; expected {', '.join(wanted)}, and "
            "episode if it holds several"
        )
    columns = [table.columns[name] for name in wanted]
    episodes = table.columns.get("episode", [0] * len(columns[0]))
    found: dict[Any, list[tuple[Any, ...]]] = {}
    for episode, *row in zip(episodes, *columns, strict=True):
        found.setdefault(episode, []).append(tuple(row))
    return list(found.values())


def read_quantecon(ddp: Any, horizon: int, start: Any) -> dict[str, Any]:
    """The table of a DiscreteDP: product form, or state-action pairs, dense or sparse."""
    if not all(hasattr(ddp, name) for name in ("R", "Q", "beta", "num_states")):
        raise ModelError(f"ddp is {show(ddp)}; expected a quantecon DiscreteDP")
    given = {"horizon": horizon, "start": start, "discount": float(ddp.beta)}
    pairs = getattr(ddp, "s_indices", None)
    if pairs is None:
        return {"transitions": ddp.Q, "rewards": ddp.R, **given}
    s, a = np.asarray(ddp.s_indices, np.int64), np.asarray(ddp.a_indices, np.int64)
    n, n_actions = int(ddp.num_states), int(a.max()) + 1
    rewards = np.full((n, n_actions), -np.inf)
    rewards[s, a] = ddp.R
    if is_sparse(ddp.Q):
        q = ddp.Q.tocoo()
        pair, column, p = q.row.astype(np.int64), q.col, q.data
    else:
        pair, column = np.nonzero(ddp.Q)
        p = np.asarray(ddp.Q)[pair, column]
    rows = (s * n_actions + a)[pair]
    table = SparseTable.of_entries((n, n_actions, n), rows, column, p)
    return {"transitions": table, "rewards": rewards, **given}


def read_networkx(graph: networkx.Graph[Any], horizon: int, start: Any) -> dict[str, Any]:
    """The table of a directed graph whose edges carry action, probability and reward."""
    if not (hasattr(graph, "edges") and graph.is_directed()):
        raise ModelError(
            f"expected a directed networkx graph (nx.MultiDiGraph), found {type(graph).__name__}"
        )
    place = {node: i for i, node in enumerate(graph)}
    edges = list(graph.edges(data=True))
    found = [
        f"the edge {s!r} -> {t!r} has no {name}; expected action, probability and reward"
        for s, t, data in edges
        for name in EDGE
        if name not in data
    ]
    if not place:
        found.append("the graph has no nodes; expected one for each state")
    require(found)
    names: dict[Any, int] = {}
    for _, _, data in edges:
        names.setdefault(data["action"], len(names))
    moves = [
        (place[s], data["action"], float(data["probability"]), place[t], data["reward"])
        for s, t, data in edges
    ]
    return {
        **_collect(len(place), names or {"stay": 0}, moves),
        "horizon": horizon,
        "start": _read_start(place, start),
        "state_names": list(place),
    }


def _read_entries(given: Any, width: int, where: str, form: str) -> list[tuple[Any, ...]]:
    """A list of tuples that a user gave; a number stands at the place `reward` or `probability`."""
    try:
        found = [tuple(entry) for entry in given]
        if any(len(entry) != width for entry in found):
            raise ValueError
        hash(tuple(found))
        numbers = [float(entry[2]) for entry in found]
        numbers += [float(entry[0]) for entry in found if width == 3]
        if not np.isfinite(numbers).all():
            raise ValueError
    except (TypeError, ValueError):
        raise ModelError(
            f"{where} is {show(given)}; expected a list of {form} with hashable states and finite "
            "numbers"
        ) from None
    return found


def _read_start(place: Mapping[Any, int], start: Any) -> Any:
    """A node, or {node: probability}, as a state or a distribution; None: the first node."""
    if start is None:
        return 0
    if not isinstance(start, Mapping):
        require(key("start", start))
    law = start if isinstance(start, Mapping) else {start: 1.0}
    unknown = [node for node in law if node not in place]
    if unknown:
        raise ModelError(f"start: {unknown[0]!r} is no node of the graph")
    if not isinstance(start, Mapping):
        return place[start]
    first = np.zeros(len(place))
    for node, p in law.items():
        first[place[node]] += p
    return first


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
