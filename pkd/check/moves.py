"""Checks of moves: P_Y(y' | x, y, a), phi_Z(x, y, a, y'), known laws, and cycles of CHANCE states.

A move is one row of `step` or `last_step`, or one row of `known_kernel` with the answers of
`feature`. Messages name the method that the user wrote.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from typing import Any

from pkd.check.answers import Answers, Move
from pkd.check.asking import call, hashable, is_distribution, judge_masses, show, state
from pkd.explore.graph import CHANCE_STATE, CHANCES, SETTLED, Graph
from pkd.model import Known


def check_rows(answers: Answers) -> Iterator[str]:
    """A row is a non-empty list of branches."""
    for move, row in answers.rows.items():
        if isinstance(row, Mapping):
            found = type(row).__name__
            expected = f"a list of {_shape(move)}, so that two ways to the same y' add up"
            yield f"{call(*move)} returned a {found}; expected {expected}"
        elif not isinstance(row, tuple):
            yield f"{call(*move)} returned {show(row)}; expected a list of {_shape(move)}"
        elif not row:
            yield f"{call(*move)} is empty; expected at least one {_shape(move)}"


def check_branches(answers: Answers) -> Iterator[str]:
    """A branch is a pair (probability, y') of `known_kernel` or a triple (probability, y', z)."""
    for move, row in answers.rows.items():
        for entry in row if isinstance(row, tuple) else ():
            if not _readable(move, entry):
                expected = f"{'pair' if _width(move) == 2 else 'triple'} {_shape(move)}"
                yield f"{call(*move)} lists {show(entry)}, which is not a {expected}"


def check_kernels(answers: Answers) -> Iterator[str]:
    """P_Y(. | x, y, a) is a distribution: numbers in [0, 1] that sum to 1 within 1e-9."""
    for move, row in answers.rows.items():
        readable = (
            isinstance(row, tuple) and bool(row) and all(_readable(move, entry) for entry in row)
        )
        if readable and not is_distribution(entry[0] for entry in row):
            pairs = ((entry[1], entry[0]) for entry in row)
            yield from judge_masses(call(*move), pairs, "y' = ", f"; the order is {_shape(move)}")


def check_next_y_is_hashable(answers: Answers) -> Iterator[str]:
    """y' can be part of a state."""
    for move, entry in _list_entries(answers):
        if not hashable(entry[1]):
            found = f"{call(*move)} lists y' = {show(entry[1])}"
            yield f"{found}, which is not hashable; {_advise(entry[1])}"


def check_features_are_hashable(answers: Answers) -> Iterator[str]:
    """z can be the key of a count."""
    for move, entry in _list_entries(answers):
        if _width(move) == 3 and not isinstance(entry[2], Known) and not hashable(entry[2]):
            found = f"{call(*move)} lists the feature {show(entry[2])}"
            yield f"{found}, which is not hashable; {_advise(entry[2], 'pkd.Known')}"
    for question, z in answers.features.items():
        if not isinstance(z, Known) and not hashable(z):
            found = f"{call('feature', *question)} returned {show(z)}"
            yield f"{found}, which is not hashable; {_advise(z, 'pkd.Known')}"


def check_one_feature_per_y(answers: Answers) -> Iterator[str]:
    """phi_Z is a function of y': a row that lists y' twice gives it the same z."""
    for move in answers.rows:
        first: dict[Any, Any] = {}
        for _, y_next, z in answers.branches(move):
            if not _have_same_feature(first.setdefault(y_next, z), z):
                yield (
                    f"{call(*move)} gives y' = {show(y_next)} two features, "
                    f"{show(first[y_next])} and {show(z)}; "
                    "the feature is a function of y': put what tells them apart into y'"
                )


def check_known_laws(answers: Answers) -> Iterator[str]:
    """A Known law is a distribution; each one is judged once."""
    seen = set()
    given: list[tuple[tuple[Any, ...], Any]] = [
        (move, entry[2]) for move, entry in _list_entries(answers) if _width(move) == 3
    ]
    given += [(("feature", *question), z) for question, z in answers.features.items()]
    for question, z in given:
        if (
            isinstance(z, Known)
            and not is_distribution(p for _, p in z.law)
            and show(z) not in seen
        ):
            seen.add(show(z))
            yield from judge_masses(
                f"Known({show(dict(z.law))}) of {call(*question)}", z.law, "x' = "
            )


def check_chance_cycles(answers: Answers) -> Iterator[str]:
    """CHANCE states have a topological order, before the last action and after it."""
    graph, seen = answers.graph, set[str]()
    if graph is None:
        return
    for part in (CHANCES, SETTLED):
        for cycle in _find_cycles(graph, part):
            if cycle not in seen:
                seen.add(cycle)
                method = answers.row_method(last=part == SETTLED)
                yield (
                    f"CHANCE states of {method} form a cycle: {cycle}; no time passes in them, "
                    "so a decision or pkd.END must break it"
                )


def _find_cycles(graph: Graph, part: int) -> Iterator[str]:
    side, cells = (graph.settled if part == SETTLED else graph.layers), graph.cells[part]
    sources: dict[int, set[int]] = {}
    for cell, node in enumerate(cells.node):
        for i in {i for k in cells.branches(cell) for i in graph.landings[cells.landing[k]]}:
            if side.kind[i] == CHANCE_STATE:
                sources.setdefault(i, set()).add(node)
    while True:
        try:
            TopologicalSorter(sources).prepare()
        except CycleError as found:
            cycle = found.args[1][:-1]
            first = cycle.index(min(cycle))
            nodes = [*cycle[first:], *cycle[: first + 1]]
            yield " -> ".join(state(*graph.state(side, i)) for i in nodes)
            sources = {i: others - set(cycle) for i, others in sources.items() if i not in cycle}
        else:
            return


def _width(move: Move) -> int:
    return 2 if move[0] == "known_kernel" else 3


def _shape(move: Move) -> str:
    return "(probability, y')" if _width(move) == 2 else "(probability, y', z)"


def _readable(move: Move, entry: object) -> bool:
    return isinstance(entry, tuple | list) and len(entry) == _width(move)


def _list_entries(answers: Answers) -> Iterator[tuple[Move, Any]]:
    for move, row in answers.rows.items():
        yield from (
            ((move, entry) for entry in row if _readable(move, entry))
            if isinstance(row, tuple)
            else ()
        )


def _have_same_feature(one: object, other: object) -> bool:
    # Known laws are compared as distributions: the order of their entries does not matter.
    return (
        bool(dict(one.law) == dict(other.law))
        if isinstance(one, Known) and isinstance(other, Known)
        else bool(one == other)
    )


def _advise(value: object, law: str | None = None) -> str:
    if isinstance(value, Mapping):
        return f"wrap a law that is known in {law}" if law else "return a tuple of its items"
    return "return a frozenset" if isinstance(value, set) else "return a tuple"


CHECKS = (
    check_rows,
    check_branches,
    check_kernels,
    check_next_y_is_hashable,
    check_features_are_hashable,
    check_one_feature_per_y,
    check_known_laws,
    check_chance_cycles,
)
