"""What a file says about a run, written and read; nothing that is read is trusted.

Two questions are answered before an engine sees an array: is this the record of one run, and is it
a run of this model? The model is known by its fingerprint, its features and its outcomes; the
policy and the belief by shapes, types and ranges.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

import attrs
import numpy as np

from pkd import __version__
from pkd.model import ModelError
from pkd.optimism import from_config
from pkd.results.values import decode, encode, index_values, read_repr, refuse_unwritable
from pkd.schedule import read_schedule

if TYPE_CHECKING:
    from pkd.engine import Compiled
    from pkd.planning import Plan
    from pkd.results.run import Run

__all__ = [
    "ARRAYS",
    "Interval",
    "Words",
    "describe",
    "plan_again",
    "plan_arrays",
    "read_fields",
    "refuse_other_model",
    "refuse_unfit",
]

ARRAYS = ("upper_values", "policy_values", "returns", "lower_values", "plans")
# The parts of a belief that a file keeps; the rest follows. The first files had only three of them.
BELIEF = ("p", "mean", "n", "ell", "radius")
FORM = 2  # of a file; the form 1 had the repr of features and no fingerprint


class Interval(NamedTuple):
    """What counts prove of V*: with probability 1 - delta it lies in [low, high]."""

    low: float
    high: float
    # It earns at least `low`. After `Run.load` only where a model is given.
    robust: Plan | None


@attrs.frozen
class Words:
    """A run in the words of its model, for readers who do not have the model."""

    features: tuple[str, ...]  # the label of each feature, in the order of the counts
    # (step, x, y, action) of the last plan, its first states.
    decisions: tuple[tuple[int, str, str, str], ...]


def describe(run: Run) -> dict[str, object]:
    """What a file says about a run beside its arrays, as JSON.

    A feature or outcome that a file cannot give back is a ModelError.
    """
    refuse_unwritable([*run.counts, *(x for row in run.counts.values() for x in row)])
    words, policy = run.words, run.policy
    return {
        "form": FORM,
        "run": _to_plain(run.config),
        "optimal_value": float(run.optimal_value),
        "interval": run.interval and [float(run.interval.low), float(run.interval.high)],
        "seconds": float(run.seconds),
        "version": run.version,
        "model_words": list(run.model_words),
        "words": words and attrs.asdict(words),
        "fingerprint": run.fingerprint if policy is None else policy.compiled.fingerprint,
        "features": [encode(z) for z in run.counts],
        "counts": [[[encode(x), float(n)] for x, n in row.items()] for row in run.counts.values()],
    }


def read_fields(
    arrays: Mapping[str, np.ndarray], meta: Mapping[str, Any], compiled: Compiled | None
) -> dict[str, Any]:
    """The fields of the run that a file describes, still unchecked."""
    form = meta.get("form", 1)
    if form not in (1, FORM):
        raise ModelError(
            f"it has the form {form} of pkd {meta.get('version')}; "
            f"pkd {__version__} reads the forms 1 and {FORM}"
        )
    features = [] if compiled is None else [*compiled.features, *chain(*compiled.outcomes)]
    read: Callable[[Any], Hashable]
    if form == 1:
        read = partial(read_repr, own={repr(value): value for value in features})
    else:
        read = partial(decode, own=index_values(features))
    counts = {
        read(z): {read(x): n for x, n in row}
        for z, row in zip(meta["features"], meta["counts"], strict=True)
    }
    return dict(
        **arrays,
        optimal_value=meta["optimal_value"],
        interval=_read_interval(meta.get("interval")),
        counts=counts,
        config=meta["run"],
        seconds=meta["seconds"],
        version=meta["version"],
        model_words=tuple(meta.get("model_words", ())),
        words=_read_words(meta.get("words")),
        fingerprint=meta.get("fingerprint", ""),
    )


def refuse_unfit(run: Run) -> None:
    """A ModelError where the parts of a file are not those of one run."""
    _refuse_config(run.config)
    episodes = run.config["episodes"]
    per_episode = [name for name in ARRAYS[:4] if getattr(run, name) is not None]
    shapes = {name: getattr(run, name).shape for name in per_episode}
    if set(shapes.values()) != {(episodes,)}:
        raise ModelError(f"expected {episodes} numbers each, found the shapes {shapes}")
    for name in per_episode:
        array = getattr(run, name)
        if array.dtype != np.float64:
            raise ModelError(f"{name}: expected the type float64, found {array.dtype}")
        if not np.isfinite(array).all():
            raise ModelError(f"{name}: expected finite numbers, found one that is not")
    plans = run.plans
    if plans.ndim != 1 or plans.dtype.kind != "i" or not _all_within(plans, 0, episodes - 1):
        raise ModelError(f"plans: expected episodes from 0 to {episodes - 1}")
    for name in ("optimal_value", "seconds"):
        if not _is_number(value := getattr(run, name)):
            raise ModelError(f"{name}: expected a number, found {value!r}")
    for name in ("version", "fingerprint"):
        if not isinstance(value := getattr(run, name), str):
            raise ModelError(f"{name}: expected a text, found {value!r}")
    if not all(isinstance(word, str) for word in run.model_words):
        raise ModelError(f"model_words: expected words, found {run.model_words!r}")
    for z, row in run.counts.items():
        for x, n in row.items():
            if not _is_number(n) or n < 0:
                raise ModelError(f"counts of {z!r}, {x!r}: expected a number >= 0, found {n!r}")
    if run._words is not None and len(run._words.features) != len(run.counts):
        labels = len(run._words.features)
        raise ModelError(f"expected {len(run.counts)} labels of features, found {labels}")


def refuse_other_model(run: Run, compiled: Compiled) -> None:
    """A ModelError where a file was not written for this model."""
    if run.fingerprint and run.fingerprint != compiled.fingerprint:
        raise ModelError(
            "it was saved with another model, or with an earlier version of this one (the "
            "fingerprints differ); give the model of the run"
        )
    compiled.tally(run.counts)  # every feature and outcome must be one of the model's


def plan_arrays(plan: Plan, prefix: str) -> dict[str, np.ndarray]:
    """What a file keeps of a plan; the first files called its choices arms."""
    names = (*BELIEF, "draws") if plan.belief.draws.size else BELIEF
    belief = {f"{prefix}belief_{name}": getattr(plan.belief, name) for name in names}
    return {f"{prefix}arms": plan.choices, **belief}


def plan_again(
    run: Run, compiled: Compiled, arrays: Mapping[str, np.ndarray], prefix: str
) -> Plan | None:
    """A plan from the arrays of a file, checked before an engine sees them; None: not kept.

    prefix: "" for the last plan of the run, otherwise that of its robust plan.
    """
    from pkd.planning import Plan

    choices = arrays.get(f"{prefix}arms")
    if choices is None:
        return None
    compiled.check_policy(choices)
    bonus = from_config(run.config["optimism"]).bonus()
    belief = compiled.optimistic(bonus, run.config["episodes"], run.config["delta"])
    value = float(run.upper_values[-1])
    if prefix:
        assert run.interval is not None  # only such a run has a robust plan
        belief, value = compiled.pessimistic(belief), float(run.interval.low)
    for name in (*BELIEF, "draws") if belief.draws.size else BELIEF:
        part, values = arrays.get(f"{prefix}belief_{name}"), getattr(belief, name)
        low, high = -np.inf if name == "mean" else 0.0, 1.0 if name in ("p", "draws") else np.inf
        if part is None and name in ("ell", "radius"):  # a file of the first kind
            continue
        if part is None or part.shape != values.shape or part.dtype != values.dtype:
            found = "nothing" if part is None else f"{part.dtype} of shape {part.shape}"
            raise ModelError(
                f"belief_{name}: expected {values.dtype} of shape {values.shape}, found {found}"
            )
        finite = np.isfinite(part).all() or (name == "radius" and not np.isnan(part).any())
        if not finite or not _all_within(part, low, high):
            raise ModelError(f"belief_{name}: expected numbers from {low:g} to {high:g}")
        values[...] = part
    return Plan(compiled, belief, choices, value)


def _read_interval(kept: Any) -> Interval | None:
    if kept is None:
        return None
    low, high = kept
    if not (_is_number(low) and _is_number(high)):
        raise ModelError(f"interval: expected two numbers, found {kept!r}")
    return Interval(float(low), float(high), None)


def _read_words(kept: Any) -> Words | None:
    if kept is None:
        return None
    decisions = tuple((int(h), str(x), str(y), str(a)) for h, x, y, a in kept["decisions"])
    return Words(tuple(map(str, kept["features"])), decisions)


def _refuse_config(config: Any) -> None:
    """A ModelError where a file says something that `learn` would not have taken."""
    if not isinstance(config, dict):
        raise ModelError(f"run: expected a configuration, found {config!r}")
    for key in ("model", "episodes", "delta", "seed", "replan", "optimism"):
        config[key]  # a KeyError names what is missing
    for key, least in (("episodes", 1), ("seed", 0)):
        value = config[key]
        if type(value) is not int or value < least:
            raise ModelError(f"{key}: expected a whole number >= {least}, found {value!r}")
    if not _is_number(config["delta"]) or not 0 < config["delta"] < 1:
        raise ModelError(f"delta: expected a number between 0 and 1, found {config['delta']!r}")
    if config["replan"] != "powers of two":
        read_schedule(config["replan"])
    rule = config["optimism"]
    if ":" in str(rule["rule"]) and not isinstance(rule["arguments"], dict):
        raise ModelError(f"optimism: expected arguments by name, found {rule['arguments']!r}")
    for key, value in rule.items() if ":" not in str(rule["rule"]) else ():
        if key != "rule" and not (value is None or isinstance(value, bool) or _is_number(value)):
            raise ModelError(f"optimism: expected numbers, found {key} = {value!r}")
    from_config(config["optimism"])


def _to_plain(config: Mapping[str, Any]) -> dict[str, Any]:
    """A configuration that JSON can say: NumPy numbers become those of Python."""
    return {
        key: _to_plain(value)
        if isinstance(value, Mapping)
        else value.item()
        if isinstance(value, np.generic)
        else value
        for key, value in config.items()
    }


def _is_number(value: object) -> bool:
    """Whether a value is a finite number of JSON."""
    return type(value) in (int, float) and abs(value) < np.inf  # type: ignore[arg-type]


def _all_within(array: np.ndarray, low: float, high: float) -> bool:
    return bool(((array >= low) & (array <= high)).all())
