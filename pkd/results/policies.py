"""Policies in files that other programs read: CSV in the words of the model, JSON in its values.

A *rule* says what to do in one state at one step. A CSV file has one line per rule: the step, one
column for each part of the state, the action, its value, and one column `Q(action)` for each
action. A JSON file has the same rules with the types of all values (`pkd.results.values`).
`PolicyTable` reads both and acts without the planner.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import attrs

from pkd.model import ModelError, PartiallyKnownMDP
from pkd.queue import Queue
from pkd.results.files import DAMAGE, neutralise, write_csv, write_text
from pkd.results.values import decode, encode, get_fields, key_of

__all__ = ["PolicyTable", "Row", "write_policy_csv", "write_policy_json"]

KIND, FORM = "pkd policy", 1
EMPTY = "-"  # a queue without entries
Label = Callable[[str, Any], str]  # (part, value) -> words; the parts are those of a row and action
Cells = dict[str, str]  # column -> text


class Row(NamedTuple):
    """One rule: what to do, and what every action is worth."""

    step: int
    state: Mapping[str, Any]  # the parts of the state by name, such as x and y
    action: Any
    values: Mapping[Any, float]


def write_policy_csv(
    path: str | Path, rows: Iterable[Row], label: Label, season: int | None = None
) -> None:
    """Writes one line per rule, whole or not at all.

    A tuple, a named tuple or an attrs class has one column for each of its fields; a queue has one,
    oldest entry first. A column that is empty everywhere is left out. season: steps count from 1 to
    it and begin anew; the first column then says so.
    """
    found = list(rows)
    distinct = {
        part: _are_distinct(part, {row.state[part]: None for row in found}, label)
        for part in (found[0].state if found else ())
    }
    lines: list[Cells] = []
    actions: dict[str, None] = {}
    for row in found:
        cells: Cells = {}
        for part, value in row.state.items():
            cells |= spread_value(part, value, label if distinct[part] else _write_plainly)
        values = {label("action", a): q for a, q in row.values.items()}
        actions |= dict.fromkeys(values)
        lines.append(
            {
                "step": str(row.step),
                **cells,
                "action": label("action", row.action),
                "value": repr(float(row.values[row.action])),
                **{f"Q({name})": repr(float(q)) for name, q in values.items()},
            }
        )
    last = ["action", "value", *(f"Q({name})" for name in actions)]
    used = dict.fromkeys(c for line in lines for c in line if c not in ("step", *last))
    kept = [
        column
        for column in used
        if any(line.get(column) not in (None, "", "None") for line in lines)
    ]
    columns = ["step", *kept, *last]
    headers = [f"step mod {season}" if c == "step" and season else c for c in columns]
    write_csv(path, headers, ([line.get(c, "") for c in columns] for line in lines))


def write_policy_json(path: str | Path, rows: Iterable[Row], meta: Mapping[str, Any]) -> None:
    """Writes one JSON object with one rule per line, whole or not at all."""
    head = json.dumps({"kind": KIND, "form": FORM, **meta})[:-1]
    try:
        lines = [
            json.dumps(
                {
                    "step": row.step,
                    **{part: encode(value) for part, value in row.state.items()},
                    "action": encode(row.action),
                    "value": float(row.values[row.action]),
                    "values": [[encode(a), float(q)] for a, q in row.values.items()],
                }
            )
            for row in rows
        ]
    except TypeError as problem:
        raise ModelError(
            f"this policy cannot be written as JSON: {problem}; use numbers, texts, tuples, "
            "enums, named tuples or attrs classes of these, or write it as CSV"
        ) from None
    rules = ",\n".join(lines)
    write_text(path, f'{head}, "rules": [\n{rules}\n]}}\n')


def spread_value(part: str, value: Any, label: Label) -> Cells:
    """The cells of one part of a state: one for each field of a record, by its path."""
    fields = _list_fields(value)
    if fields is None:
        return {part: _join(value) if isinstance(value, Queue) else label(part, value)}
    cells: Cells = {}
    for name, field in fields.items():
        cells |= spread_value(f"{part}.{name}", field, _write_plainly)
    return cells


@attrs.frozen(repr=False)
class PolicyTable:
    """A policy from a file. It acts like the plan that was written, and needs no planner.

    It is a function (h, x, y) -> action, so `pkd.evaluate` and `pkd.simulate` take it.

    >>> import pathlib, pkd, tempfile
    >>> tosses = [[[0.5, 0.5], [1.0, 0.0]], [[0.5, 0.5], [0.0, 1.0]]]
    >>> coin = pkd.TabularMDP(tosses, [[0.0, 0.0], [1.0, 1.0]], horizon=3)
    >>> file = pathlib.Path(tempfile.mkdtemp(), "policy.json")
    >>> pkd.plan(coin).to_json(file)
    >>> policy = PolicyTable.read(file)
    >>> policy, policy.action(2, 1, None), pkd.evaluate(coin, policy)
    (<PolicyTable: 5 rules>, 1, 1.25)
    """

    rules: Mapping[Any, Any]  # (step, state) as the file writes it -> the action, likewise
    parts: tuple[str, ...]  # of a state, such as ("x", "y")
    season: int | None = None  # steps begin anew after so many
    model: PartiallyKnownMDP | None = None  # whose own values are given back
    columns: tuple[str, ...] | None = None  # of a CSV file; None: the file was JSON

    def __repr__(self) -> str:
        return f"<PolicyTable: {len(self.rules)} rules>"

    def __call__(self, h: int, *state: Any) -> Any:
        """What to do at step h; ModelError where the file has no rule."""
        step = h if self.season is None else (h - 1) % self.season + 1
        for key in self._list_keys(step, state):
            if key in self.rules:
                return self._read_action(self.rules[key], state)
        where = ", ".join(f"{p}={v!r}" for p, v in zip(self.parts, state, strict=False))
        raise ModelError(f"the policy has no rule for step {h} in ({where})")

    action = __call__

    def _list_keys(self, step: int, state: Sequence[Any]) -> Iterable[Any]:
        """What the file may call this state: a label, or else the value itself."""
        if self.columns is None:
            yield (step, *map(key_of, state))
            return
        labels = [_label_of(self.model), _write_plainly]
        for choice in product(labels, repeat=len(state)):
            cells: Cells = {}
            for part, value, label in zip(self.parts, state, choice, strict=True):
                cells |= spread_value(part, value, label)
            yield (step, *(str(neutralise(cells.get(column, ""))) for column in self.columns))

    def _read_action(self, written: Any, state: Sequence[Any]) -> Any:
        if self.model is None or self.parts != ("x", "y"):
            return decode(written)
        for action in self.model.actions(*state):
            if self.columns is None:
                if key_of(action) == json.dumps(written, sort_keys=True):
                    return action
            elif neutralise(self.model.action_label(action)) == written:
                return action
        raise ModelError(f"the policy takes {written!r} in {tuple(state)!r}, which is not on offer")

    @classmethod
    def read(cls, path: str | Path, model: Any = None) -> PolicyTable:
        """The policy of a JSON or CSV file; anything else is a ModelError.

        With a model, or an object or pair that has one, actions are the model's own values. A CSV
        file needs it, because it has only words.
        """
        if model is not None and not isinstance(model, PartiallyKnownMDP):
            model = model.model() if callable(getattr(model, "model", None)) else model[0]
        try:
            text = Path(path).read_text(encoding="utf-8")
            if not text.lstrip().startswith("{"):
                return _read_csv(text, model)
            return _read_json(json.loads(text), model)
        except ModelError as problem:
            raise ModelError(f"{path} is not a policy that pkd wrote: {problem}") from None
        except FileNotFoundError:
            raise ModelError(f"{path} does not exist") from None
        except DAMAGE as problem:
            said = " ".join(str(problem).split()) or type(problem).__name__
            raise ModelError(f"{path} is not a policy that pkd wrote: {said}") from None


def _read_json(read: Any, model: PartiallyKnownMDP | None) -> PolicyTable:
    if not isinstance(read, dict) or read.get("kind") != KIND or read.get("form") != FORM:
        raise ModelError(f"expected a JSON object of the kind {KIND!r}, form {FORM}")
    parts, season = tuple(read["parts"]), read.get("season")
    rules = {
        (rule["step"], *(json.dumps(rule[part], sort_keys=True) for part in parts)): rule["action"]
        for rule in read["rules"]
    }
    return PolicyTable(rules, parts, season, model)


def _read_csv(text: str, model: PartiallyKnownMDP | None) -> PolicyTable:
    if model is None:
        raise ModelError("a CSV file has only words; give the model, or read a JSON file")
    headers, *lines = csv.reader(io.StringIO(text))
    if not re.fullmatch(r"step(?: mod \d+)?", headers[0]) or "action" not in headers:
        raise ModelError("expected the columns step, parts of the state, action, value")
    end = headers.index("action")
    season = headers[0].removeprefix("step").removeprefix(" mod ")
    rules = {(int(line[0]), *line[1:end]): line[end] for line in lines}
    columns = tuple(headers[1:end])
    return PolicyTable(rules, ("x", "y"), int(season) if season else None, model, columns)


def _label_of(model: PartiallyKnownMDP | None) -> Label:
    """The words of a model for x, y and actions."""
    if model is None:
        return _write_plainly
    labels = {"x": model.x_label, "y": model.y_label, "action": model.action_label}
    return lambda part, value: labels[part](value)


def _are_distinct(part: str, values: Iterable[Any], label: Label) -> bool:
    """Whether no two plain values have the same label."""
    labels = [label(part, v) for v in values if _list_fields(v) is None]
    return len(set(labels)) == len(labels)


def _list_fields(value: Any) -> dict[str, Any] | None:
    """The parts of a record or tuple by name; None for a plain value. Parts count from 1."""
    if isinstance(value, Queue):
        return None
    fields = get_fields(value)
    if fields is None and type(value) is tuple and value:
        return {str(i): part for i, part in enumerate(value, start=1)}
    return fields or None


def _write_plainly(part: str, value: Any) -> str:
    return str(value)


def _join(queue: Queue) -> str:
    """A queue in one cell, oldest entry first."""
    return " ".join(map(str, queue)) or EMPTY
