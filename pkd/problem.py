"""A problem is a model with the law that nature follows; here it is found by what a user types.

A user types a registered name, `module:object`, an .npz file, or a Gymnasium id. Any package can
register problems in the entry-point group `pkd.models`, so the core imports none of its adapters.
What a name or a `module:object` stands for may be any of

    an object with .model() and .law()        such as a TabularMDP
    a pair (model, law)
    a PartiallyKnownMDP                       a model alone: it can be checked, not planned
    a callable that returns one of these      called with the user's options as keyword arguments

An object that also has .picture(plan) draws its own optimal policy; one with .remarks has lines
that the command line shows on stderr, such as what its law was fitted to; one with .plan_within has
a planner that gives bounds where an exact plan does not fit. A `transform` makes
another problem of the one that was found, before its model and law are asked for.
"""

from __future__ import annotations

import ast
import difflib
import importlib
import inspect
import re
import sys
from collections.abc import Callable, Mapping
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import attrs

from pkd.model import Law, ModelError, PartiallyKnownMDP

__all__ = [
    "GROUP", "Found", "Pair", "Problem", "as_model", "as_problem", "find", "import_object",
    "installed", "load_object", "load_point", "names", "parse_options", "read", "registered",
    "unpack",
]  # fmt: skip

GROUP = "pkd.models"
GYMNASIUM_ID = re.compile(r"[\w./:-]+-v\d+")


@runtime_checkable
class Problem(Protocol):
    """A model with its truth."""

    def model(self) -> PartiallyKnownMDP:
        """What a learner gets."""

    def law(self) -> Law:
        """What only the exact planner and the simulator get."""


@attrs.frozen
class Pair:
    """A problem from its two halves."""

    _model: PartiallyKnownMDP
    _law: Law

    def model(self) -> PartiallyKnownMDP:
        return self._model

    def law(self) -> Law:
        return self._law

    def __repr__(self) -> str:
        return f"<Pair of {type(self._model).__name__} and its law>"


@attrs.frozen
class Found:
    """What a user's word stands for."""

    name: str  # as typed
    model: PartiallyKnownMDP
    law: Law | None  # None: a model alone
    picture: Callable[[Any], Any] | None = None  # plan -> matplotlib axes
    remarks: tuple[str, ...] = ()  # what a user should know
    plan_within: Callable[..., Any] | None = None  # (gap, seconds, memory, tell) -> plan and bounds

    def with_law(self) -> Law:
        """The law, or a ModelError that says how to give one."""
        if self.law is None:
            raise ModelError(
                f"{self.name} is a model without a law; give an object with .model() and "
                ".law(), or a pair (model, law)"
            )
        return self.law


def as_problem(given: Any) -> Problem:
    """A problem from what was given.

    given: an object with .model() and .law(), a pair (model, law), or a registered name.

    >>> import pkd
    >>> model = pkd.TabularMDP([[[1.0]]], [[2.0]], horizon=3).model()
    >>> as_problem((model, {(0, 0): {0: 1.0}})).model().horizon
    3
    """
    if isinstance(given, str):
        found = find(given)
        return Pair(found.model, found.with_law())
    return _check(given, "the problem", "a registered name")


def as_model(given: Any) -> PartiallyKnownMDP:
    """The model behind what a user gave: a model, a compiled model, or a problem in any form.

    >>> import pkd
    >>> as_model(pkd.TabularMDP([[[1.0]]], [[2.0]], horizon=3)).horizon
    3
    """
    model = read(given)[0]
    return model if isinstance(model, PartiallyKnownMDP) else model.model


def unpack(given: Any, law: Law | None = None) -> tuple[Any, Law]:
    """(model, law) of what a user gave: a model and a law, or a problem in any form.

    A law that is given takes the place of the problem's own. The model may be a compiled one. An
    array is a law, too, in the order of the compiled model: see `Compiled.name_law`.

    >>> import pkd
    >>> coin = pkd.TabularMDP([[[0.5, 0.5]], [[0.5, 0.5]]], [[0.0], [1.0]], horizon=3)
    >>> unpack(coin)[1][0, 0], unpack(coin, {(0, 0): {1: 1.0}})[1][0, 0]
    ({0: 0.5, 1: 0.5}, {1: 1.0})
    """
    model, ask = read(given)
    if law is not None:
        return model, _check_law("the law", law)
    if ask is None:
        kind = model if isinstance(model, PartiallyKnownMDP) else model.model
        raise ModelError(
            f"{type(kind).__name__} is a model without a law; give the law, or a problem with "
            ".model() and .law()"
        )
    return model, _check_law("the problem's law()", ask())


def read(given: Any) -> tuple[Any, Callable[[], Law] | None]:
    """The model, compiled or not, and how to ask for its law; None: it comes without one.

    The one place that knows every form in which a user may give a model or a problem.
    """
    if isinstance(given, PartiallyKnownMDP) or _is_compiled(given):
        return given, None
    if isinstance(given, str):
        found = find(given)
        return found.model, None if found.law is None else found.with_law
    problem = _check(given, "the problem", "a registered name")
    model: object = problem.model()  # a user's method may return anything
    if not isinstance(model, PartiallyKnownMDP) and not _is_compiled(model):
        raise ModelError(
            f"the problem's model() is {type(model).__name__}; expected a pkd.PartiallyKnownMDP"
        )
    return model, problem.law


def _is_compiled(given: Any) -> bool:
    return isinstance(getattr(given, "model", None), PartiallyKnownMDP)


def _check_law(name: str, law: Any) -> Law:
    if isinstance(law, Mapping) or callable(law) or hasattr(law, "__array__"):
        checked: Law = law
        return checked
    raise ModelError(
        f"{name} is {law!r}; expected a mapping {{z: {{x': probability}}}} or a function of z"
    )


def _check(given: Any, name: str, otherwise: str) -> Problem:
    """A given object or pair as a problem; `otherwise`: what could be given besides them."""
    if isinstance(given, tuple) and len(given) == 2:
        model, law = given
        if isinstance(model, PartiallyKnownMDP) or _is_compiled(model):
            return Pair(model, _check_law(f"{name}'s law", law))
    if isinstance(given, Problem) and not isinstance(given, type):
        return given
    wanted = f"an object with .model() and .law(), a pair (model, law) or {otherwise}"
    if isinstance(given, PartiallyKnownMDP):
        raise ModelError(f"{name} is a model without a law; expected {wanted}")
    if isinstance(given, type):
        called = f"call it first, {given.__name__}(...)"
        raise ModelError(f"{name} is the class {given.__name__}; expected {wanted}: {called}")
    raise ModelError(f"{name}: expected {wanted}, found {type(given).__name__}")


def names() -> dict[str, EntryPoint]:
    """The registered names of models."""
    return registered(GROUP)


def registered(group: str) -> dict[str, EntryPoint]:
    """The entry points of installed packages in a group, by name, in alphabetical order."""
    points = sorted(entry_points(group=group), key=lambda point: point.name)
    return {point.name: point for point in points}


def load_point(point: EntryPoint, what: str | None = None) -> Any:
    """What an entry point stands for; an error says which package registered it."""
    package = None if point.dist is None else point.dist.name
    remedy = (
        f". The package {package} registers it in {point.group}: install {package} again, or "
        f"remove it with pip uninstall {package}"
        if package
        else ""
    )
    return _load(what or point.name, point.load, remedy)


def installed(group: str) -> dict[str, Any]:
    """What installed packages offer in an entry-point group, by name, in alphabetical order."""
    return {name: load_point(point) for name, point in registered(group).items()}


def find(
    word: str,
    options: Mapping[str, Any] | None = None,
    horizon: int | None = None,
    transform: Callable[[Problem], Problem] | None = None,
) -> Found:
    """The problem that `word` stands for, made with `options`, then transformed.

    A horizon is one more option of a callable, and replaces the horizon of a file or the step limit
    of a Gymnasium environment.
    """
    thing = _made(word, dict(options or {}), horizon)
    alone = isinstance(thing, PartiallyKnownMDP)
    thing = Pair(thing, {}) if alone else _check(thing, word, "a model")
    remarks = tuple(getattr(thing, "remarks", ()))
    if transform is not None:
        thing = transform(thing)
    law = None if alone else thing.law()
    own = (getattr(thing, name, None) for name in ("picture", "plan_within"))
    return Found(word, thing.model(), law, next(own), remarks, next(own))


def _made(word: str, options: dict[str, Any], horizon: int | None) -> Any:
    known = names()
    if word in known:
        return _called(word, load_point(known[word]), options, horizon)
    if word.endswith(".npz") or Path(word).is_file():
        from pkd.tables.tabular import TabularMDP

        _refuse(word, options, "an .npz file takes none")
        try:
            return TabularMDP.from_npz(word, horizon)
        except ModelError as error:
            named = [f if f.startswith(word) else f"{word}: {f}" for f in error.findings]
            raise ModelError(named) from None
    if GYMNASIUM_ID.fullmatch(word):
        from pkd.tables.tabular import TabularMDP

        return TabularMDP.from_gymnasium(word, horizon, **options)
    if ":" in word:
        return _called(word, _load(word, lambda: import_object(word)), options, horizon)
    close = difflib.get_close_matches(word, known, n=1)
    raise ModelError(
        f"no model is called {word!r}{f'; did you mean {close[0]!r}?' if close else '.'} "
        f"Expected a name ({', '.join(known) or 'none is registered'}), module:object, an "
        ".npz file, or a Gymnasium id"
    )


def parse_options(words: list[str]) -> dict[str, Any]:
    """Options typed as key=value.

    Numbers, tuples and None are read as in Python, true and false in any case, the rest is text.

    >>> parse_options(["lead_time=2", "demand=1,2.5", "name=shop", "backlog=false"])
    {'lead_time': 2, 'demand': (1, 2.5), 'name': 'shop', 'backlog': False}
    """
    options = {}
    for word in words:
        key, equals, text = word.partition("=")
        if not (equals and key.isidentifier()):
            raise ModelError(f"option {word!r}: expected key=value, such as lead_time=2")
        options[key] = _value(text)
    return options


def _value(text: str) -> Any:
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def _called(word: str, thing: Any, options: dict[str, Any], horizon: int | None) -> Any:
    if _is_factory(thing):
        if horizon is not None:
            options["horizon"] = horizon
        return _call(word, thing, options)
    _refuse(word, options, "it is ready made")
    if horizon is not None:
        raise ModelError(
            f"{word} is ready made and has its own horizon; name a callable that takes one"
        )
    return thing


def _is_factory(thing: Any) -> bool:
    # A class with methods model and law looks like a Problem; it is one only after it has been
    # called.
    return isinstance(thing, type) or (
        callable(thing) and not isinstance(thing, Problem | PartiallyKnownMDP)
    )


def _call(word: str, factory: Callable[..., Any], options: dict[str, Any]) -> Any:
    try:
        signature = inspect.signature(factory)
    except ValueError:  # some classes of Python's own have none
        raise ModelError(f"{word} does not say its options; name a function of yours") from None
    try:
        signature.bind(**options)
    except TypeError as problem:
        takes = ", ".join(
            str(p)
            for p in signature.parameters.values()
            if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)
        )
        raise ModelError(f"{word}: {problem}; its options are {takes or 'none'}") from None
    return factory(**options)


def _refuse(word: str, options: Mapping[str, Any], why: str) -> None:
    if options:
        raise ModelError(f"{word} has no option {', '.join(options)}: {why}")


def load_object(word: str) -> Any:
    """What `module:object` names; ModelError where it cannot be imported."""
    return _load(word, lambda: import_object(word))


def _load(word: str, load: Callable[[], Any], remedy: str = "") -> Any:
    try:
        return load()
    except (ImportError, AttributeError) as problem:
        raise ModelError(f"{word} cannot be imported: {problem}{remedy}") from problem


def import_object(word: str) -> Any:
    """The object that "module:object" names; modules of the current folder are found too."""
    module, _, path = word.partition(":")
    if not all(part.isidentifier() for part in (*module.split("."), *path.split("."))):
        raise ModelError(f"{word!r}: expected module:object, such as my_models:bakery")
    # A console script does not look into the current folder, but that is where a user's own module
    # lies.
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    thing: Any = importlib.import_module(module)
    for part in path.split("."):
        thing = getattr(thing, part)
    return thing
