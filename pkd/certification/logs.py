"""A log in the words of a model: which of its features was seen, and what followed.

A log holds pairs (z, x'). Each is looked up among the features and outcomes that can occur in the
model: by value, by label or by repr. What the model does not know is refused, all of it in one
error, because a law that was fitted to a misread log looks as good as any other.
"""

from __future__ import annotations

import ast
import difflib
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import attrs

from pkd.engine import Compiled, compile
from pkd.expect import show
from pkd.files.atomic import write_csv
from pkd.files.logs import Table, is_frame, read_table
from pkd.model import ModelError
from pkd.planning.plan import Model
from pkd.transforms.censored import Censored

__all__ = ["Log", "as_log", "read_log"]

SHOWN_FINDINGS = 20
SHOWN_PLACES = 3  # lines that one finding names
SHOWN_FEATURES = 12  # that a summary names
# The names of a column, the usual one first; upper and lower case are alike.
FEATURE = ("z", "feature", "features", "context", "key")
OUTCOME = ("x", "x'", "x_next", "next", "outcome", "value", "reward", "result")
NUMBER = ("count", "counts", "samples")
CONTEXT = ("state", "y", "action", "a")  # known beforehand: what follows must not depend on it
AT_LEAST = ">="
TRUE = frozenset({"1", "1.0", "true", "yes", "y"})
CLOSE = 0.3  # how like a name must be to be the nearest one, from 0 to 1


Context = tuple[tuple[str, Any], ...]


@attrs.frozen(eq=False, repr=False)
class Log(Mapping[Any, Mapping[Any, float]]):
    """Counts {z: {x': n}} that were read from a log; it can stand wherever counts can.

    >>> import pkd
    >>> log = as_log("gambler", [("coin", "heads"), ("coin", "tails"), ("coin", "tails")])
    >>> dict(log), log.samples, log.unseen
    ({'coin': {'heads': 1.0, 'tails': 2.0}}, {'coin': 3.0}, ())
    >>> log
    <Log of the log: 3 samples of 1 feature (coin: 3)>
    """

    source: str  # the file, as it was given
    counts: Mapping[Any, Mapping[Any, float]]
    labels: Mapping[Any, str]  # of all unknown features of the model, in its order
    unseen: tuple[Any, ...]  # features with several outcomes, and rewards, without a sample
    rewards: frozenset[Any]  # features that are unknown rewards
    # (z, x', ((column, value), ...)) in order of time; None where only counts are known.
    order: tuple[tuple[Any, Any, Context], ...] | None = None

    def __getitem__(self, z: Any) -> Mapping[Any, float]:
        return self.counts[z]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.counts)

    def __len__(self) -> int:
        return len(self.counts)

    def __repr__(self) -> str:
        return f"<Log of {self.summary().splitlines()[0]}>"

    @property
    def samples(self) -> dict[Any, float]:
        """{z: how many samples of it}, in the order of the model."""
        return {z: math.fsum(self.counts.get(z, {}).values()) for z in self.labels}

    def to_csv(self, path: str | Path) -> None:
        """Writes one line for each feature and outcome, with their reprs, for `read_log`."""
        rows = ((repr(z), repr(x), n) for z, row in self.counts.items() for x, n in row.items())
        write_csv(path, ("z", "x", "count"), rows)

    def summary(self) -> str:
        """How many samples each feature has, and which have none: one line each."""
        seen = {z: n for z, n in self.samples.items() if n}
        parts = [f"{self.labels[z]}: {n:.15g}" for z, n in seen.items()]
        total, plural = math.fsum(seen.values()), "s" if len(seen) != 1 else ""
        said = f"{self.source}: {total:.15g} samples of {len(seen)} feature{plural}"
        lines = [f"{said} ({_join(parts)})" if parts else said]
        if self.unseen:
            lines.append(f"no samples of {_join([self.labels[z] for z in self.unseen])}")
        return "\n".join(lines)


def read_log(log: Any, model: Model) -> Log:
    """The log of a CSV file or a frame with the columns z and x, in the model's own values.

    log: a path, a pandas or polars frame, or anything with the interchange protocol of frames. A
    cell is a Python literal, a word, or the label of a feature or an outcome. A third column
    `count` may say how often. For a model in `pkd.transforms.Censored` a cell may say >=5.
    Separators , ; tab and |, UTF-8, UTF-16 and Latin-1 are read, with or without a byte-order mark.
    Cells that the model does not know are refused with their lines.

    >>> import pathlib, tempfile
    >>> file = pathlib.Path(tempfile.mkdtemp(), "tosses.csv")
    >>> _ = file.write_text("z;x\\ncoin;heads\\ncoin;tails\\n")
    >>> dict(read_log(file, "gambler"))
    {'coin': {'heads': 1.0, 'tails': 1.0}}
    """
    table, compiled = read_table(log), compile(model)
    if isinstance(compiled.model, Censored):
        return _read_censored(table, compiled, compiled.model)
    return _count(compiled, _list_entries(table), table.source, table.unit)


def _read_censored(table: Table, compiled: Compiled, model: Censored) -> Log:
    """A log of the base in which an outcome may be "at least": a cell >=5, or a mark beside 5."""
    outcomes, marks = table.find(OUTCOME), table.find(("censored",))
    if outcomes is None:
        list(_list_entries(table))  # refuses a table without the columns of a log
    limits = [str(x).strip().startswith(AT_LEAST) for x in outcomes or ()]
    if marks is not None:
        limits = [
            a or str(b).strip().casefold() in TRUE for a, b in zip(limits, marks, strict=True)
        ]
    name = next(name for name in OUTCOME if name in table.columns)
    plain = [str(x).strip().removeprefix(AT_LEAST).strip() for x in outcomes or ()]
    of_base = attrs.evolve(table, columns={**table.columns, name: plain})
    read = _count(compile(model.base), _list_entries(of_base), table.source, table.unit)
    if read.order is None:
        raise ModelError(f"{table.source} has counts; expected one line for each sample")
    entries = (
        _Entry(place, _Given(coin), _Given(x), 1.0, context)
        for place, (z, value, context), limit in zip(table.places, read.order, limits, strict=True)
        for coin, x in model.list_samples(z, value, censored=limit)
    )
    return _count(compiled, entries, table.source, table.unit)


def as_log(model: Model, log: Any) -> Log:
    """A log from a file, a frame, pairs (z, x') or counts {z: {x': n}}, checked against a model.

    Counts may be an array in the order of the compiled model: see `Compiled.tally`.

    >>> as_log("gambler", [("coin", "head")])
    Traceback (most recent call last):
    ...
    pkd.model.ModelError: the log, pair 1: 'head' cannot follow coin; the nearest is 'heads'
    """
    if isinstance(log, Log):
        return log
    if isinstance(log, str | Path) or is_frame(log):
        return read_log(log, model)
    rows: list[tuple[Any, Any, Any, Context | None]]
    compiled = compile(model)
    log = compiled.name_counts(log)
    try:
        if isinstance(log, Mapping):
            rows = [(z, x, n, None) for z, row in log.items() for x, n in row.items()]
        else:
            rows = [(z, x, 1.0, ()) for z, x in log]
    except (TypeError, ValueError, AttributeError):
        raise ModelError(
            f"the log is {show(log)}; expected a file, pairs (z, x'), or counts {{z: {{x': n}}}}"
        ) from None
    entries = (_Entry(i, _Given(z), _Given(x), *row) for i, (z, x, *row) in enumerate(rows, 1))
    return _count(compiled, entries, "the log", "pair")


class _Given(NamedTuple):
    """What a log writes in one place."""

    value: Any  # shown in errors
    readings: tuple[Any, ...] = ()  # further values that it may mean


class _Entry(NamedTuple):
    place: int  # the number of its line or pair
    z: _Given
    x: _Given
    n: Any
    context: Context | None = None  # None: the log does not say when the sample was drawn


def _list_entries(table: Table) -> Iterator[_Entry]:
    z, x, n = (table.find(names) for names in (FEATURE, OUTCOME, NUMBER))
    if z is None or x is None:
        raise ModelError(
            f"{table.source}: expected a first line with the columns z and x, found "
            f"{list(table.columns)}; other names of z are {', '.join(FEATURE[1:])}, "
            f"of x {', '.join(OUTCOME[1:])}"
        )
    known = [(name, table.columns[name]) for name in CONTEXT if name in table.columns]
    for i, place in enumerate(table.places):
        one, other = (
            _read(v, table.comma) if isinstance(v, str) else _Given(v) for v in (z[i], x[i])
        )
        context = tuple((name, column[i]) for name, column in known) if n is None else None
        yield _Entry(place, one, other, 1.0 if n is None else n[i], context)


@lru_cache(maxsize=100_000)  # a log has few different cells
def _read(text: str, comma: bool) -> _Given:
    """A cell with the values that it may mean: the text, a literal, a number with a comma."""
    readings = []
    if comma:
        readings.append(_to_number(text.replace(",", ".")))
    try:
        readings.append(ast.literal_eval(text))
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        readings.append(_to_number(text))
    return _Given(text, tuple(value for value in readings if value is not None))


def _to_number(value: Any) -> float | None:
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None
    return number if math.isfinite(number) else None


class _Names:
    """Values of a model by everything that a log may write for them."""

    def __init__(self, values: Iterable[Any], label: Callable[[Any], str]) -> None:
        self.own = {value: value for value in values}
        self.labels = {value: _label(label, value) for value in self.own}
        self.written: dict[str, list[Any]] = {}
        self.found: dict[Any, list[Any]] = {}  # what was looked up before
        for value, name in self.labels.items():
            for text in {name, repr(value)}:
                self.written.setdefault(text, []).append(value)

    def find(self, given: _Given) -> list[Any]:
        """The values that are meant: one, none, or several where it is ambiguous."""
        if not _is_hashable(given.value):
            return []
        if given.value not in self.found:
            meant = (v for v in (given.value, *given.readings) if _is_hashable(v))
            found = [self.own[v] for v in meant if v in self.own]
            if isinstance(given.value, str):
                found += self.written.get(given.value, [])
            self.found[given.value] = list(dict.fromkeys(found))
        return self.found[given.value]

    def show(self, value: Any) -> str:
        """A value as a log may write it."""
        label = self.labels[value]
        alone = len(self.written[label]) == 1
        return repr(value) if not alone or label == str(value) else f"{label!r} ({value!r})"

    def nearest(self, given: _Given) -> str:
        """The value whose name is most like what was given, or else the first values."""
        number = next(
            (n for n in map(_to_number, (*given.readings, given.value)) if n is not None), None
        )
        numbers = [v for v in self.labels if isinstance(v, int | float)]
        if number is not None and numbers:
            return f"the nearest is {self.show(min(numbers, key=lambda v: abs(v - number)))}"
        wanted = str(given.value).casefold()
        close = {text: _likeness(wanted, text.casefold()) for text in self.written}
        if not close:
            return "it has none that is unknown"
        best = max(close, key=lambda text: close[text])
        contained, ratio = close[best]
        if contained or ratio >= CLOSE:
            return f"the nearest is {self.show(self.written[best][0])}"
        return f"expected one of {_join([self.show(v) for v in self.labels])}"


def _likeness(one: str, other: str) -> tuple[bool, float]:
    """(whether `other` contains `one`, how much they resemble each other, from 0 to 1).

    `ratio` depends on the order of its arguments, so the texts keep theirs.
    """
    return one in other, difflib.SequenceMatcher(None, one, other, autojunk=False).ratio()


def _count(compiled: Compiled, entries: Iterable[_Entry], source: str, unit: str) -> Log:
    """Counts all entries; those that do not fit the model are one ModelError."""
    reader = _Reader(compiled)
    for entry in entries:
        reader.add(entry)
    if reader.faults:
        raise ModelError(_say(reader.faults, source, unit))
    if not reader.counts:
        wanted = "at least one pair (z, x')" if unit == "pair" else f"a pair (z, x') in each {unit}"
        raise ModelError(f"{source} has no samples; expected {wanted}")
    unseen = [
        z
        for z in reader.features.labels
        if not any(reader.counts.get(z, {}).values())
        and (z in compiled.reward_index or len(compiled.outcomes[compiled.feature_index[z]]) > 1)
    ]
    counts = {z: reader.counts[z] for z in reader.features.labels if z in reader.counts}
    rewards = frozenset(compiled.reward_index)
    order = None if reader.order is None else tuple(reader.order)
    return Log(source, counts, reader.features.labels, tuple(unseen), rewards, order)


class _Reader:
    """Looks entries up and counts them; what is wrong is kept by what is said about it."""

    def __init__(self, compiled: Compiled) -> None:
        self.compiled, model = compiled, compiled.model
        self.features = _Names([*compiled.features, *compiled.reward_index], model.feature_label)
        self.outcomes: dict[int, _Names] = {}  # by set of outcomes; many features share one
        self.counts: dict[Any, dict[Any, float]] = {}
        self.order: list[tuple[Any, Any, Context]] | None = []
        # What is wrong, with its places. The key says it once for all lines that are alike.
        self.faults: dict[tuple[Any, ...], tuple[Callable[[], str], list[int]]] = {}

    def add(self, entry: _Entry) -> None:
        """Counts one entry, or keeps what is wrong with it."""
        n = _to_number(entry.n)
        if n is None or n < 0:
            said = f"the number of samples is {entry.n!r}; expected a number of at least 0"
            return self._refuse(entry, ("n", str(entry.n)), lambda: said)
        found = self.features.find(entry.z)
        if len(found) != 1:
            return self._refuse_name(entry, entry.z, self.features, found, "")
        [z] = found
        if z in self.compiled.reward_index:
            return self._add_reward(entry, z, n)
        names = self._names_of(z)
        outcomes = names.find(entry.x)
        if len(outcomes) != 1:
            return self._refuse_name(entry, entry.x, names, outcomes, self.features.labels[z])
        self._add(entry, z, outcomes[0], n)
        return None

    def _names_of(self, z: Any) -> _Names:
        compiled, row = self.compiled, self.compiled.feature_index[z]
        number = compiled.graph.feature_set[row]
        if number not in self.outcomes:
            self.outcomes[number] = _Names(compiled.outcomes[row], compiled.model.x_label)
        return self.outcomes[number]

    def _add_reward(self, entry: _Entry, z: Any, n: float) -> None:
        reward = self.compiled.rewards[self.compiled.reward_index[z]]
        values = [_to_number(v) for v in (*entry.x.readings, entry.x.value)]
        value = next((v for v in values if v is not None), None)
        if value is None or not reward.low <= value <= reward.high:
            label = self.features.labels[z]
            limits = f"[{reward.low:g}, {reward.high:g}]"
            said = f"the reward {label} is {entry.x.value!r}; expected a number in {limits}"
            return self._refuse(entry, ("reward", z, str(entry.x.value)), lambda: said)
        return self._add(entry, z, value, n)

    def _add(self, entry: _Entry, z: Any, x: Any, n: float) -> None:
        if entry.context is None:
            self.order = None
        elif self.order is not None:
            self.order.append((z, x, entry.context))
        row = self.counts.setdefault(z, {})
        row[x] = row.get(x, 0.0) + n

    def _refuse_name(
        self, entry: _Entry, given: _Given, names: _Names, found: list[Any], after: str
    ) -> None:
        def say() -> str:
            if found:
                meant = " or ".join(map(repr, found))
                return (
                    f"{given.value!r} may mean {meant}, by value or by label; change the labels, "
                    "or give pairs (z, x') in Python"
                )
            if given.value == "":
                return f"there is no {'outcome' if after else 'feature'}"
            what = f"cannot follow {after}" if after else "is no feature of the model"
            if str(given.value).startswith(AT_LEAST):
                return (
                    f"{given.value!r} {what}; a log that says 'at least' needs --censored, or "
                    "pkd.transforms.Censored around the model"
                )
            return f"{given.value!r} {what}; {names.nearest(given)}"

        self._refuse(entry, (repr(given.value), after), say)

    def _refuse(self, entry: _Entry, key: tuple[Any, ...], say: Callable[[], str]) -> None:
        self.faults.setdefault(key, (say, []))[1].append(entry.place)


def _say(
    faults: Mapping[Any, tuple[Callable[[], str], list[int]]], source: str, unit: str
) -> list[str]:
    """All findings, each with its places; the rest is counted."""
    shown = list(faults.values())[:SHOWN_FINDINGS]
    said = [f"{source}, {_name_places(places, unit)}: {say()}" for say, places in shown]
    if len(faults) > len(shown):
        rest = len(faults) - len(shown)
        said.append(f"{source}: ... and {rest} more finding{'s' if rest > 1 else ''}")
    return said


def _name_places(places: list[int], unit: str) -> str:
    first = ", ".join(map(str, places[:SHOWN_PLACES]))
    rest = len(places) - SHOWN_PLACES
    return f"{unit}{'s' if len(places) > 1 else ''} {first}" + (
        f" and {rest} more" if rest > 0 else ""
    )


def _join(parts: list[str]) -> str:
    """Some words with commas; the rest is counted."""
    rest = len(parts) - SHOWN_FEATURES
    return ", ".join(parts[:SHOWN_FEATURES]) + (f" and {rest} more" if rest > 0 else "")


def _label(label: Callable[[Any], str], value: Any) -> str:
    try:
        return label(value)
    except Exception:  # noqa: BLE001 - a label is the user's own code, and a log can do without it
        return str(value)


def _is_hashable(value: Any) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True
