"""Policies in files that other programs read: CSV in the words of the model, JSON in its values.

A *row* says what to do in one state at one step. Steps with one action in one state are merged: a
line of a file has `step`, the first of them, and `until`, the last; in between, the state may be
one that cannot occur. With values, each step has a line of its own. The policy of every step alike
has no column for steps. A CSV file has one column for each part of the state, the action, and with
values one for its value and one `Q(action)` for each action. Where words do not tell values apart,
a column holds JSON. A JSON file has the same rows with the types of all values
(`pkd.files.values`). `PolicyTable` reads both and acts without the planner. An adapter whose states
can be said in other parts than (x, y) registers them (`state_views`).
"""

from __future__ import annotations

import csv
import inspect
import io
import json
import math
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import singledispatch
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import attrs

from pkd.expect import instance, pathname, require
from pkd.files.atomic import DAMAGE, neutralise, say, write_csv, write_text
from pkd.files.frames import make_frame
from pkd.files.values import decode, encode, get_fields, is_literal, key_of
from pkd.model import ModelError, PartiallyKnownMDP
from pkd.progress import watch
from pkd.queue import Queue

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "ANY_STEP",
    "NoRowError",
    "PolicyTable",
    "Row",
    "StateView",
    "adapt_policy",
    "merge_rows",
    "state_views",
    "write_policy_csv",
    "write_policy_json",
]

KIND, FORM = "pkd policy", 2
STEPS = ("step", "until")
ANY_STEP = 0  # the step of a row that holds for all
SAMPLE = 100  # lines from which the size of a file is estimated
EMPTY = "-"  # a queue without entries
BLANK = ("", "None")  # a column of these alone is left out
TYPED = " (typed)"  # ends the header of a column of JSON
PLAIN = ("x", "y")
Label = Callable[[str, Any], str]  # (part, value) -> words; the parts are those of a row and action
Act = Callable[..., Any]
Columns = dict[str, str]  # column -> text


class Row(NamedTuple):
    """One row: what to do, and what every action is worth."""

    step: int
    state: Mapping[str, Any]  # the parts of the state by name, such as x and y
    action: Any
    values: Mapping[Any, float]  # empty where nobody asks for them


class NoRowError(ModelError):
    """A policy from a file was asked in a state that it does not reach."""


class StateView(NamedTuple):
    """One way to say a state (x, y) of a model: its parts, and the words for their values."""

    parts: Callable[[Any, Any], Iterable[Any]]  # in the order of their names
    label: Label


@singledispatch
def state_views(model: Any) -> dict[tuple[str, ...], StateView]:
    """The ways to say a state of a model, by the names of the parts; first its own, (x, y).

    An adapter registers those of its class. A file may use any of them, and a function of n parts
    is asked in the last one that has n.
    """
    labels = {"x": model.x_label, "y": model.y_label, "action": model.action_label}
    return {PLAIN: StateView(lambda x, y: (x, y), lambda part, v: labels.get(part, str)(v))}


def adapt_policy(model: PartiallyKnownMDP, act: Act, *, typed: bool = False) -> Act:
    """A function of the step and the parts of a state as a policy (h, x, y) of the model.

    A function of (h, x, y) is one already, unless it was typed on a command line, where models are
    made late by flags: then it is asked about the state that was shown last.
    """
    parts = _count_parts(act)
    if parts == len(PLAIN) and not typed:
        return act
    views = {len(names): (names, view) for names, view in state_views(model).items()}
    if parts not in views:
        expected = " or ".join(f"(h, {', '.join(names)})" for names, _ in views.values())
        raise ModelError(
            f"the policy takes the step and {parts} parts of a state; expected {expected}"
        )
    _, view = views[parts]
    return lambda h, x, y: act(h, *view.parts(x, y))


def _count_parts(act: Act) -> int:
    """How many parts of a state a function takes after the step; those of (x, y) if unclear."""
    try:
        parameters = inspect.signature(act).parameters.values()
    except (TypeError, ValueError):
        return len(PLAIN)
    if any(p.kind is p.VAR_POSITIONAL for p in parameters):
        return len(PLAIN)
    needed = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    return max(len([p for p in needed if p.default is p.empty]) - 1, 0)


def write_policy_csv(path: str | Path, rows: Iterable[Row], label: Label) -> int:
    """Writes the rows, whole or not at all; how many lines that makes.

    A tuple, a named tuple or an attrs class has one column for each of its fields; a queue has one,
    oldest entry first. A column that is empty everywhere is left out. Where the words of a part or
    of the actions do not tell its values apart, its column is `x (typed)` and holds JSON.
    """
    found = merge_rows(rows)
    parts = tuple(found[0].row.state) if found else ()
    states = {
        part: _write_part(part, (one.row.state[part] for one in found), label) for part in parts
    }
    taken = (a for one in found for a in (*one.row.values, one.row.action))
    actions = _write_part("action", taken, label)
    names = {a: next(iter(cells.values())) for a, cells in actions.items()}
    action = next((c for cells in actions.values() for c in cells), "action")
    lines: list[Columns] = []
    for row, until in watch(found, _say_size(found)):
        cells = {c: t for part in parts for c, t in states[part][row.state[part]].items()}
        line = {"step": str(row.step), "until": str(until), **cells, action: names[row.action]}
        if row.values:
            line["value"] = repr(float(row.values[row.action]))
            line |= {f"Q({names[a]})": repr(float(q)) for a, q in row.values.items()}
        lines.append(line)
    valued = any(one.row.values for one in found)
    last = [action]
    if valued:
        last += ["value", *(f"Q({name})" for name in dict.fromkeys(names.values()))]
    used = dict.fromkeys(c for line in lines for c in line if c not in (*STEPS, *last))
    kept = [column for column in used if any(line.get(column, "") not in BLANK for line in lines)]
    columns = [*_name_steps(found), *kept, *last]
    write_csv(path, columns, ([line.get(c, "") for c in columns] for line in lines))
    return len(lines)


def write_policy_json(path: str | Path, rows: Iterable[Row], meta: Mapping[str, Any]) -> int:
    """Writes one JSON object with one row per line, whole or not at all; how many rows."""
    found = merge_rows(rows)
    steps = _name_steps(found)
    valued = any(one.row.values for one in found)
    columns = [*steps, *meta["parts"], "action", *(("value", "values") if valued else ())]
    head = json.dumps({"kind": KIND, "form": FORM, **meta, "columns": columns})[:-1]
    known: dict[Any, Any] = {}  # equal values of one class are written alike

    def write(value: Any) -> Any:
        key = (type(value), value)
        if key not in known:
            known[key] = encode(value)
        return known[key]

    lines = []
    try:
        for row, until in watch(found, _say_size(found)):
            line: list[Any] = [row.step, until][: len(steps)]
            line += [encode(value) for value in row.state.values()] + [write(row.action)]
            if valued:
                values = [[write(a), float(q)] for a, q in row.values.items()]
                line += [float(row.values[row.action]), values]
            lines.append(json.dumps(line, separators=(",", ":")))
    except TypeError as problem:
        raise ModelError(
            f"this policy cannot be written as JSON: {problem}; use numbers, texts, tuples, "
            "enums, named tuples or attrs classes of these, or write it as CSV"
        ) from None
    rows_text = ",\n".join(lines)
    write_text(path, f'{head}, "rows": [\n{rows_text}\n]}}\n')
    return len(lines)


def list_policy(rows: Iterable[Row]) -> list[dict[str, Any]]:
    """The rows of a frame: steps, one column for each field of the state, the action, values.

    >>> list_policy([Row(1, {"x": (3, "a"), "y": None}, "go", {"go": 2.0})])
    [{'step': 1, 'x.1': 3, 'x.2': 'a', 'y': None, 'action': 'go', 'value': 2.0, 'Q(go)': 2.0}]
    """
    found = merge_rows(rows)
    steps, lines = _name_steps(found), []
    for row, until in found:
        line: dict[str, Any] = dict(zip(steps, (row.step, until), strict=False))
        for part, value in row.state.items():
            line |= _spread_value(part, value)
        line["action"] = row.action
        if row.values:
            line["value"] = float(row.values[row.action])
            line |= {f"Q({action})": float(q) for action, q in row.values.items()}
        lines.append(line)
    return lines


def _spread_value(part: str, value: Any) -> dict[str, Any]:
    fields = None if isinstance(value, Queue) or part == "queue" else _list_fields(value)
    if fields is None:
        return {part: value}
    return {
        k: v
        for name, one in fields.items()
        for k, v in _spread_value(f"{part}.{name}", one).items()
    }


class _Merged(NamedTuple):
    """A row that holds from its step until another one."""

    row: Row
    until: int


def merge_rows(rows: Iterable[Row]) -> list[_Merged]:
    """Rows of one state with one action after the other as one; rows with values stay apart.

    >>> rows = [Row(h, {"x": 0}, action, {}) for h, action in enumerate("aabba", start=1)]
    >>> [(one.row.step, one.until, one.row.action) for one in merge_rows(rows)]
    [(1, 2, 'a'), (3, 4, 'b'), (5, 5, 'a')]
    """
    found: list[_Merged] = []
    newest: dict[Any, int] = {}  # the place of the last row of each state
    for row in rows:
        key = tuple((type(value), value) for value in row.state.values())
        place = newest.get(key)
        if place is not None and not row.values and found[place].row.action == row.action:
            found[place] = found[place]._replace(until=row.step)
        else:
            newest[key] = len(found)
            found.append(_Merged(row, row.step))
    return found


def _name_steps(found: Sequence[_Merged]) -> tuple[str, ...]:
    """The columns for steps that these rows need."""
    if found and all(one.row.step == ANY_STEP for one in found):
        return ()
    return STEPS[:1] if all(one.row.values for one in found) else STEPS


def _say_size(found: Sequence[_Merged]) -> str:
    """How many rows will be written, and about how many bytes."""
    sample = found[:SAMPLE]
    size = sum(len(repr(tuple(one.row.state.values()))) + 20 for one in sample)
    megabytes = size / max(len(sample), 1) * len(found) / 1e6
    return f"writing {len(found):,} rows, about {megabytes:.1f} MB"


def _write_part(part: str, values: Iterable[Any], label: Label) -> dict[Any, Columns]:
    """The cells of all values of one part: words if these tell the values apart, else JSON."""
    found = dict.fromkeys(values)
    words = {value: _write_words(part, value, label) for value in found}
    shown = {None if c is None else frozenset(_list_shown(c).items()) for c in words.values()}
    if None not in shown and len(shown) == len(found):
        return {value: cells for value, cells in words.items() if cells is not None}
    try:
        return {value: {f"{part}{TYPED}": key_of(value)} for value in found}
    except TypeError as problem:
        raise ModelError(
            f"this policy cannot be written as CSV: values of {part} have the same label, and "
            f"{problem}; use numbers, texts, tuples, enums, named tuples or attrs classes of "
            "these, or give each value a label of its own"
        ) from None


def _list_shown(cells: Columns) -> Columns:
    """The cells as a file has them, without those that are left out where all are so."""
    return {c: str(neutralise(text)) for c, text in cells.items() if text not in BLANK}


def _write_words(part: str, value: Any, label: Label) -> Columns | None:
    """The cells of one part: one for each field of a record, by its path.

    None if a text in it could be another value: "1", "None", "". Words that the model gives to a
    value are trusted.
    """
    is_queue = part == "queue" or (isinstance(value, Queue) and part != "action")
    fields = None if is_queue or part == "action" else _list_fields(value)
    if fields is None:
        entries, name = (value, "entry") if is_queue else ((value,), part)
        words = [label(name, entry) for entry in entries]
        pairs = zip(words, entries, strict=True)
        unclear = any(word == entry and _is_unclear(word) for word, entry in pairs)
        return None if unclear else {part: " ".join(words) if words else EMPTY}
    cells: Columns = {}
    for name, field in fields.items():
        more = _write_words(f"{part}.{name}", field, lambda _, entry: str(entry))
        if more is None:
            return None
        cells |= more
    return cells


def _is_unclear(text: str) -> bool:
    """Whether a text looks like that of a value of another type, or like an empty queue."""
    text = text.strip()
    return text in ("", EMPTY, "nan", "inf", "-inf") or is_literal(text)


def _list_fields(value: Any) -> dict[str, Any] | None:
    """The parts of a record or tuple by name; None for a plain value. Parts count from 1."""
    fields = get_fields(value)
    if fields is None and type(value) is tuple and value:
        return {str(i): part for i, part in enumerate(value, start=1)}
    return fields or None


class _Run(NamedTuple):
    """The action of one state at some steps, as a file writes it."""

    step: int
    until: float
    action: str


@attrs.frozen(repr=False)
class PolicyTable:
    """A policy from a file. It acts like the plan that was written, and needs no planner.

    With a model it is a function (h, x, y) -> action, so `pkd.evaluate` and `pkd.simulate` take it.
    Without one it takes the step and the parts of a state as the file has them, such as
    (h, state, queue, waited).

    >>> import pathlib, pkd, tempfile
    >>> from pkd.tables.coin import coin
    >>> file = pathlib.Path(tempfile.mkdtemp(), "policy.json")
    >>> _ = pkd.plan(coin).to_json(file)
    >>> policy = PolicyTable.read(file)
    >>> policy, policy.action(2, 1, None), pkd.evaluate(coin, policy)
    (<PolicyTable: 3 rows>, 1, 1.25)
    """

    rows: Mapping[Any, Sequence[_Run]]  # cells of the state -> the runs of steps, in their order
    parts: tuple[str, ...]  # of a state, such as ("x", "y")
    columns: tuple[str, ...]  # of the state
    typed: bool  # whether actions are written as JSON, and not as words of the model
    model: PartiallyKnownMDP | None  # whose own states and actions are meant
    view: StateView | None  # of the model

    def __repr__(self) -> str:
        return f"<PolicyTable: {sum(map(len, self.rows.values()))} rows>"

    def __call__(self, h: int, *state: Any) -> Any:
        """What to do at step h; ModelError where the file has no row."""
        said = state if self.view is None else tuple(self.view.parts(*state))
        cells = self._write_state(said)
        runs = () if cells is None else self.rows.get(tuple(cells), ())
        place = bisect_right(runs, h, key=lambda run: run.step) - 1
        if place < 0 or h > runs[place].until:
            where = ", ".join(f"{p}={v!r}" for p, v in zip(self.parts, said, strict=False))
            raise NoRowError(f"the policy has no row for step {h} in ({where})")
        written = runs[place].action
        if self.model is None:
            return decode(json.loads(written))
        write = key_of if self.typed else self.model.action_label
        for action in self.model.actions(*state):
            if neutralise(write(action)) == written:
                return action
        raise ModelError(f"the policy takes {written!r} in {state!r}, which is not on offer")

    action = __call__

    def _write_state(self, said: Iterable[Any]) -> list[str] | None:
        """The cells of a state as the file would have them; None if it has no columns for them."""
        cells: Columns = {}
        for part, value in zip(self.parts, said, strict=True):
            typed = f"{part}{TYPED}"
            if typed in self.columns or self.view is None:
                cells[typed] = key_of(value)
                continue
            words = _write_words(part, value, self.view.label)
            if words is None or not _list_shown(words).keys() <= set(self.columns):
                return None
            cells |= words
        return [str(neutralise(cells.get(column, ""))) for column in self.columns]

    def to_frame(self) -> pd.DataFrame:
        """The rows as a pandas frame: step, until, the columns of the state, action."""
        lines = []
        for state, runs in self.rows.items():
            cells = {c: _read_cell(c, text) for c, text in zip(self.columns, state, strict=True)}
            cells = {c.removesuffix(TYPED): cell for c, cell in cells.items()}
            for step, until, action in runs:
                taken = _read_cell(TYPED if self.typed else "", action)
                steps = {} if until == math.inf else {"step": step, "until": int(until)}
                lines.append({**steps, **cells, "action": taken})
        return make_frame(sorted(lines, key=lambda line: line.get("step", 0)))

    @classmethod
    def read(cls, path: str | Path, model: Any = None) -> PolicyTable:
        """The policy of a JSON or CSV file; anything else is a ModelError.

        With a model, or an object or pair that has one, states and actions are the model's own. A
        CSV file needs it, because it has only words.
        """
        require(pathname("path", path))
        if model is not None and not isinstance(model, PartiallyKnownMDP):
            pair = isinstance(model, tuple) and len(model) == 2
            made = model.model() if callable(getattr(model, "model", None)) else model
            found = made[0] if pair else made
            wanted = "a model, or an object or pair that has one"
            require(instance("model", found, PartiallyKnownMDP, wanted))
            model = found
        try:
            text = Path(path).read_bytes().decode()  # a label may have any end of line in it
            if text.lstrip().startswith("{"):
                return _read_json(json.loads(text), model)
            return _read_csv(text, model)
        except FileNotFoundError:
            raise ModelError(f"{path} does not exist") from None
        except DAMAGE as problem:
            raise ModelError(f"{path} is not a policy that pkd wrote: {say(problem)}") from None


def _read_json(read: Any, model: PartiallyKnownMDP | None) -> PolicyTable:
    if not isinstance(read, dict) or read.get("kind") != KIND or read.get("form") != FORM:
        raise ModelError(f"expected a JSON object of the kind {KIND!r}, form {FORM}")
    parts, columns = tuple(read["parts"]), list(read["columns"])
    views = {} if model is None else state_views(model)
    if model is not None and parts not in views:
        raise ModelError(f"its states have the parts {', '.join(parts)}, not those of the model")
    places = [columns.index(part) for part in parts]
    rows = _index_rows(
        (
            _read_steps(dict(zip(columns, row, strict=True))),
            tuple(_dump(row[place]) for place in places),
            _dump(row[columns.index("action")]),
        )
        for row in read["rows"]
    )
    typed = tuple(part + TYPED for part in parts)
    return PolicyTable(rows, parts, typed, True, model, views.get(parts))


def _read_csv(text: str, model: PartiallyKnownMDP | None) -> PolicyTable:
    if model is None:
        raise ModelError("a CSV file has only words; give the model, or read a JSON file")
    headers, *lines = csv.reader(io.StringIO(text, newline=""))
    action = "action" if "action" in headers else f"action{TYPED}"
    if action not in headers:
        raise ModelError("expected the columns step, until, parts of the state, action")
    start, end = sum(name in STEPS for name in headers), headers.index(action)
    columns = tuple(headers[start:end])
    heads = {column.removesuffix(TYPED).partition(".")[0] for column in columns}
    found = ((names, view) for names, view in state_views(model).items() if heads <= set(names))
    parts, view = next(found, ((), None))
    if view is None:
        raise ModelError(f"its columns {', '.join(columns)} are not parts of a state of the model")
    rows = _index_rows(
        (_read_steps(dict(zip(headers, line, strict=True))), tuple(line[start:end]), line[end])
        for line in lines
    )
    return PolicyTable(rows, parts, columns, action != "action", model, view)


def _read_steps(row: Mapping[str, Any]) -> tuple[int, float]:
    """The first and the last step of a row; all of them where it names none."""
    if "step" not in row:
        return 1, math.inf
    return int(row["step"]), int(row.get("until", row["step"]))


def _index_rows(
    found: Iterable[tuple[tuple[int, float], tuple[str, ...], str]],
) -> dict[Any, list[_Run]]:
    """The runs of each state; ModelError if one of them has two actions at one step."""
    rows: dict[Any, list[_Run]] = {}
    for (step, until), state, action in found:
        rows.setdefault(state, []).append(_Run(step, until, action))
    for state, runs in rows.items():
        runs.sort(key=lambda run: run.step)
        for one, other in pairwise(runs):
            if other.step <= one.until and one.action != other.action:
                raise ModelError(
                    f"step {other.step} in {state} has two actions; write the file anew"
                )
    return rows


def _read_cell(column: str, text: str) -> Any:
    """The value of a typed cell, or the words of another one."""
    return decode(json.loads(text)) if column.endswith(TYPED) else text


def _dump(read: Any) -> str:
    return json.dumps(read, sort_keys=True)
