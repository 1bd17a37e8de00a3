"""All rules of optimism: their words on command lines and in files, and rules read from files.

A word is a name, or the place of a class of your own, and constants after a colon: `mvp`,
`mvp:c1=1,c2=1`, `module:Class:c=2`. A mapping says the same: {"rule": "mvp", "c1": 1}. All faults
are reported together.
"""

from __future__ import annotations

import difflib
import inspect
import sys
from collections.abc import Iterator, Mapping
from typing import Any

import attrs

from pkd.expect import show
from pkd.model import ModelError
from pkd.optimism import (
    MVP,
    Certified,
    Floats,
    Greedy,
    Hoeffding,
    Optimism,
    Pairs,
    PosteriorSampling,
    PythonRule,
)
from pkd.problem import import_object, parse_options
from pkd.rules.literature import KLUCRL, OPSRL, UCRL2, BayesUCBVI
from pkd.rules.schedule import schedule_for

__all__ = [
    "KINDS", "RULES", "Rule", "UnknownRule", "as_rule", "from_config", "is_rule", "make_rule",
    "schedule_for",
]  # fmt: skip

# A rule of optimism, its words, or a mapping with its name and constants.
Rule = Optimism | str | Mapping[str, Any]

# The one list of rules, by word: the class, and the constants that differ from its defaults.
RULES: dict[str, tuple[type[Optimism], dict[str, Any]]] = {
    "certified": (Certified, {}),
    "mvp": (MVP, {}),
    "mvp-max": (MVP, {"monotone": True}),
    "practical": (MVP, {"c1": 0.5, "c2": 0.25, "log_factor": 1.0}),
    "hoeffding": (Hoeffding, {}),
    "kl-ucrl": (KLUCRL, {}),
    "ucrl2": (UCRL2, {}),
    "bayes-ucbvi": (BayesUCBVI, {}),
    "opsrl": (OPSRL, {}),
    "greedy": (Greedy, {}),
    "posterior": (PosteriorSampling, {}),
}
KINDS: dict[str, type[Any]] = {kind.__name__: kind for kind, _ in RULES.values()}


def as_rule(rule: Rule) -> Optimism:
    """A rule of optimism as a value, from what an experiment file or a command can say.

    It is a rule, its words, or a mapping with the name and constants. A name is that of the command
    line or of the class, in any case. What `Optimism.to_config` gives is such a mapping.

    >>> as_rule("greedy").name, as_rule({"rule": "hoeffding", "c": 1.0}).name
    ('Greedy (no bonus)', 'Hoeffding, c=1')
    >>> as_rule("mvp:c1=1,c2=1").name, as_rule("practical").name
    ('MVP, c1=1, c2=1', 'MVP, practical constants')
    """
    if isinstance(rule, Optimism):
        return rule
    if isinstance(rule, str):
        return make_rule(rule)
    if not isinstance(rule, Mapping):
        raise ModelError(
            f"optimism is {show(rule)}; expected a rule such as pkd.MVP(), its words such as "
            "'practical' or 'mvp:c1=1', or a mapping with its name and constants"
        )
    if "arguments" in rule:  # a class of a user's own, as a file keeps it
        return from_config(dict(rule))
    constants = dict(rule)
    name = constants.pop("rule", None)
    if not isinstance(name, str):
        raise ModelError(f"a rule as a mapping needs 'rule', its name; found {dict(rule)!r}")
    return _make(name, constants)


def make_rule(word: str) -> Optimism:
    """The rule that a word stands for; a ModelError names everything that is wrong with it.

    >>> make_rule("hoeffding:c=1,log_factor=2")
    Hoeffding(c=1, log_factor=2)
    >>> make_rule("mvp:c3=1,monotone=2")
    Traceback (most recent call last):
    pkd.model.ModelError: 2 findings
      - mvp has no constant 'c3'; expected c1, c2, log_factor, monotone
      - mvp: monotone is 2; expected true or false
    """
    name, _, text = word.partition(":")
    if _find(name) is None:
        path, _, text = text.partition(":")
        name = f"{name}:{path}" if path else name
    return _make(name, parse_options(text.split(",")) if text else {})


def from_config(config: dict[str, Any]) -> Optimism:
    """The rule that `to_config` wrote.

    A rule of a user's own is found by its name "module:Class" if that module is imported already:
    a file makes nothing be imported, because that would run code of its choice. Where it is not
    found the rule still has its label.
    """
    arguments = dict(config)
    name = arguments.pop("rule", None)
    if isinstance(name, str) and ":" in name:
        return _find_own(name, config) or UnknownRule(dict(config))
    if name not in KINDS:
        raise ModelError(f"optimism rule {name!r} is unknown; expected one of {', '.join(KINDS)}")
    if KINDS[name] is Certified:
        arguments.setdefault("explore", "everywhere")  # a file from before there was a choice
    rule: Optimism = KINDS[name](**arguments)
    return rule


@attrs.frozen
class UnknownRule(PythonRule):
    """A rule of a file whose class is not at hand: it has its label and plans nothing."""

    config: dict[str, Any]

    @property
    def name(self) -> str:
        return str(self.config.get("label", self.config["rule"]))

    def values(self, pairs: Pairs) -> Floats:
        name = self.config["rule"]
        raise ModelError(
            f"the rule {name!r} of this file cannot be imported, so its values cannot be computed; "
            "import its module first, or put it where Python finds it"
        )

    def to_config(self) -> dict[str, Any]:
        return dict(self.config)


def _find_own(name: str, config: dict[str, Any]) -> Optimism | None:
    """The rule "module:Class" of a file, if its module is imported and it can be made again."""
    module, _, path = name.partition(":")
    if config.get("complete") is not True or not isinstance(config.get("arguments"), dict):
        return None
    found: Any = sys.modules.get(module)
    for part in path.split("."):
        found = getattr(found, part, None)
    if not (isinstance(found, type) and issubclass(found, Optimism)):
        return None
    try:
        return found(**config["arguments"])
    except (TypeError, ValueError):  # the class has changed since then
        return None


def _make(name: str, constants: dict[str, Any]) -> Optimism:
    found = _find(name)
    kind, given = (_import_rule(name), {}) if found is None else found
    findings = list(_find_faults(name, kind, constants))
    if findings:
        raise ModelError(findings)
    return kind(**{**given, **constants})


def is_rule(name: str) -> bool:
    """Whether a name is that of a rule of ours, as a word or as a class, in any case."""
    return _find(name) is not None


def _find(name: str) -> tuple[type[Optimism], dict[str, Any]] | None:
    """The class and the constants of a name, in any case; None: it is no name of ours."""
    kinds = {kind.__name__.lower(): kind for kind, _ in RULES.values()}
    name = name.lower()
    return RULES.get(name) or ((kinds[name], {}) if name in kinds else None)


def _import_rule(name: str) -> type[Optimism]:
    """The class of a user's own rule."""
    close = difflib.get_close_matches(name.lower(), RULES, n=1)
    hint = f"did you mean {close[0]!r}? E" if close else "e"
    unknown = f"optimism rule {name!r} is unknown; {hint}xpected one of {', '.join(RULES)}"
    module, _, path = name.partition(":")
    if not path or not module.replace(".", "").isidentifier():
        raise ModelError(f"{unknown}, or module:Class")
    try:
        kind = import_object(name)
    except (ImportError, AttributeError, SyntaxError) as error:
        raise ModelError(f"{unknown}; as module:Class it is not found: {error}") from None
    if not (isinstance(kind, type) and issubclass(kind, Optimism)):
        raise ModelError(f"{name} is not an optimism rule; expected a subclass of pkd.Optimism")
    return kind


def _find_faults(name: str, kind: Any, constants: dict[str, Any]) -> Iterator[str]:
    """What is wrong with the names and the types of constants; their ranges are the rule's own."""
    if attrs.has(kind):
        defaults = {field.alias: field.default for field in attrs.fields(kind)}
    else:
        found = inspect.signature(kind).parameters.values()
        defaults = {one.name: one.default for one in found if one.kind != one.VAR_KEYWORD}
    for key, value in constants.items():
        if key not in defaults:
            listed = ", ".join(defaults) or "none"
            yield f"{name} has no constant {key!r}; expected {listed}"
        elif isinstance(defaults[key], bool) and not isinstance(value, bool):
            yield f"{name}: {key} is {value!r}; expected true or false"
        elif isinstance(value, bool) and not isinstance(defaults[key], bool):
            yield f"{name}: {key} is {value!r}; expected a number"
