"""Rules of optimism as words: `mvp`, `mvp:c1=1,c2=1`, or a class of your own, `module:Class:c=2`.

A word is a name, or the place of a class, and constants after a colon. Everything that is wrong
with it is said at once.
"""

from __future__ import annotations

import argparse
import inspect
from typing import TYPE_CHECKING, Any

import attrs

from pkd.model import ModelError
from pkd.problem import import_object, parse_options

if TYPE_CHECKING:
    import pkd

__all__ = ["RULES", "make_rule", "rule_word"]

# The name of each rule: its class in `pkd`, and the constants that differ from its defaults.
RULES: dict[str, tuple[str, dict[str, Any]]] = {
    "certified": ("Certified", {}),
    "mvp": ("MVP", {}),
    "mvp-max": ("MVP", {"monotone": True}),
    "practical": ("MVP", {"c1": 0.5, "c2": 0.25, "log_factor": 1.0}),
    "hoeffding": ("Hoeffding", {}),
    "kl-ucrl": ("KLUCRL", {}),
    "ucrl2": ("UCRL2", {}),
    "bayes-ucbvi": ("BayesUCBVI", {}),
    "opsrl": ("OPSRL", {}),
    "greedy": ("Greedy", {}),
    "posterior": ("PosteriorSampling", {}),
}


def make_rule(word: str) -> pkd.Optimism:
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
    if name in RULES:
        import pkd

        kind, given = getattr(pkd, RULES[name][0]), RULES[name][1]
    else:
        path, _, text = text.partition(":")
        name, kind, given = f"{name}:{path}", _import_rule(name, path), {}
    constants = parse_options(text.split(",")) if text else {}
    findings = list(_find_faults(name, kind, constants))
    if findings:
        raise ModelError(findings)
    rule: pkd.Optimism = kind(**{**given, **constants})
    return rule


def _import_rule(module: str, path: str) -> Any:
    """The class of a user's own rule."""
    from pkd.optimism import Optimism

    unknown = f"optimism rule {module!r} is unknown; expected one of {', '.join(RULES)}"
    if not path or not module.replace(".", "").isidentifier():
        raise ModelError(f"{unknown}, or module:Class")
    try:
        kind = import_object(f"{module}:{path}")
    except (ImportError, AttributeError, SyntaxError) as error:
        raise ModelError(f"{unknown}; as module:Class it is not found: {error}") from None
    if not (isinstance(kind, type) and issubclass(kind, Optimism)):
        raise ModelError(f"{module}:{path} is no rule; expected a subclass of pkd.Optimism")
    return kind


def _find_faults(name: str, kind: Any, constants: dict[str, Any]) -> Any:
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


def rule_word(text: str) -> str:
    """The type of `--optimism` for argparse."""
    try:
        make_rule(text)
    except ModelError as error:
        raise argparse.ArgumentTypeError("; ".join(error.findings)) from None
    return text
