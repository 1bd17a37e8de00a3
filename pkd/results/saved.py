"""What a file says about a run, written and read; nothing that is read is trusted.

Two questions are answered before an engine sees an array: is this the record of one run, and is it
a run of this model? The model is known by its fingerprint, its features and its outcomes; the
policy and the belief by shapes, types and ranges.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple, get_args

import attrs
import numpy as np

from pkd.engine.belief import find_belief_fault
from pkd.files.values import decode, encode, index_values, refuse_unwritable
from pkd.model import ModelError
from pkd.optimism import Guarantee, Optimism
from pkd.rules import from_config
from pkd.rules.schedule import read_schedule

if TYPE_CHECKING:
    from pkd.engine import Compiled
    from pkd.planning.plan import Plan
    from pkd.results.run import Run

ARRAYS = ("upper_values", "policy_values", "returns", "lower_values", "plans")
# The parts of a belief that a file keeps; the rest follows.
BELIEF = ("p", "mean", "n", "ell", "radius", "told")
ROBUST = "robust_"  # begins the names of the arrays of the robust plan
FORM = 3  # of a file


class CertifiedInterval(NamedTuple):
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


def describe(run: Run) -> tuple[dict[str, np.ndarray], dict[str, object]]:
    """The arrays of a run, and what its file says beside them, as JSON.

    A feature or outcome that a file cannot give back is a ModelError.
    """
    refuse_unwritable([*run.counts, *(x for row in run.counts.values() for x in row)])
    words, policy = run.words, run.policy
    arrays = {name: array for name in ARRAYS if (array := getattr(run, name)) is not None}
    if policy is not None:
        arrays |= {"value": np.array([policy.value], float), **_list_plan(policy, "")}
    if run.interval is not None and run.interval.robust is not None:
        arrays |= _list_plan(run.interval.robust, ROBUST)
    return arrays, {
        "form": FORM,
        "run": _to_plain(run.config),
        "label": run.label,
        "model": run.model,
        "guarantee": run.guarantee,
        "world": run.world,
        "optimal_value": float(run.optimal_value),
        "interval": run.interval and [float(run.interval.low), float(run.interval.high)],
        "seconds": None if np.isnan(run.seconds) else float(run.seconds),
        "versions": dict(run.versions),
        "unexplored": list(run.unexplored),
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
    if meta["form"] != FORM:
        raise ModelError(f"expected the form {FORM}, found {meta['form']!r}")
    _refuse_config(meta["run"])
    for name, part in arrays.items():  # also where there is no model that could use them
        _, is_belief, short = name.rpartition("belief_")
        if is_belief and (fault := find_belief_fault(short, part)):
            raise ModelError(f"belief_{fault}")
    features = [] if compiled is None else [*compiled.features, *chain(*compiled.outcomes)]
    read = partial(decode, own=index_values(features))
    counts = {
        read(z): {read(x): n for x, n in row}
        for z, row in zip(meta["features"], meta["counts"], strict=True)
    }
    seconds = meta["seconds"]
    texts = ("label", "model", "guarantee", "world", "fingerprint")
    return dict(
        **{name: arrays[name] for name in ARRAYS if name != "lower_values"},
        **{name: meta[name] for name in texts},
        lower_values=arrays.get("lower_values"),
        optimal_value=meta["optimal_value"],
        interval=_read_interval(meta["interval"]),
        counts=counts,
        config=meta["run"],
        seconds=np.nan if seconds is None else seconds,
        versions=meta["versions"],
        unexplored=tuple(meta.get("unexplored", ())),
        model_words=tuple(meta["model_words"]),
        words=_read_words(meta["words"]),
    )


def refuse_unfit(run: Run) -> None:
    """A ModelError where the parts of a file are not those of one run."""
    episodes, is_rule = run.config["episodes"], "optimism" in run.config
    per_episode = [name for name in ARRAYS[:4] if getattr(run, name) is not None]
    if not is_rule and not len(run.upper_values):  # an agent without plans
        per_episode.remove("upper_values")
    shapes = {name: getattr(run, name).shape for name in per_episode}
    if set(shapes.values()) != {(episodes,)}:
        raise ModelError(f"expected {episodes} numbers each, found the shapes {shapes}")
    for name in per_episode:
        array = getattr(run, name)
        if array.dtype != np.float64:
            raise ModelError(f"{name}: expected the type float64, found {array.dtype}")
        unknown = np.isnan(array) if name == "policy_values" and not is_rule else False
        if not (np.isfinite(array) | unknown).all():
            raise ModelError(f"{name}: expected finite numbers, found one that is not")
    plans = run.plans
    if plans.ndim != 1 or plans.dtype.kind != "i" or not _all_within(plans, 0, episodes - 1):
        raise ModelError(f"plans: expected episodes from 0 to {episodes - 1}")
    timed = () if run.seconds != run.seconds else ("seconds",)
    for name in ("optimal_value", *timed):
        if not _is_number(value := getattr(run, name)):
            raise ModelError(f"{name}: expected a number, found {value!r}")
    for name in ("label", "model", "world", "fingerprint"):
        if not isinstance(value := getattr(run, name), str):
            raise ModelError(f"{name}: expected a text, found {value!r}")
    known = None
    if is_rule and ":" not in run.config["optimism"]["rule"]:
        known = from_config(run.config["optimism"]).guarantee
    if run.guarantee not in get_args(Guarantee) or known not in (None, run.guarantee):
        raise ModelError(
            f"guarantee: expected {known or 'what is proved'}, found {run.guarantee!r}"
        )
    if not isinstance(run.versions, dict) or not all(map(_is_text, run.versions.values())):
        raise ModelError(f"versions: expected texts by name, found {run.versions!r}")
    if not all(map(_is_text, run.unexplored)):
        raise ModelError(f"unexplored: expected labels, found {run.unexplored!r}")
    if not all(map(_is_text, run.model_words)):
        raise ModelError(f"model_words: expected words, found {run.model_words!r}")
    for z, row in run.counts.items():
        for x, n in row.items():
            if not _is_number(n) or n < 0:
                raise ModelError(f"counts of {z!r}, {x!r}: expected a number >= 0, found {n!r}")
    if run._words is not None and len(run._words.features) != len(run.counts):
        labels = len(run._words.features)
        raise ModelError(f"expected {len(run.counts)} labels of features, found {labels}")


def read_plans(run: Run, compiled: Compiled, arrays: Mapping[str, np.ndarray]) -> dict[str, Any]:
    """The last plan and the interval with its robust plan; a file of another model is refused."""
    if run.fingerprint and run.fingerprint != compiled.fingerprint:
        raise ModelError(
            "it was saved with another model, or with an earlier version of this one (the "
            "fingerprints differ); give the model of the run"
        )
    compiled.tally(run.counts)  # every feature and outcome must be one of the model's
    policy, interval = _read_plan(run, compiled, arrays, ""), run.interval
    if interval is not None:
        interval = interval._replace(robust=_read_plan(run, compiled, arrays, ROBUST))
    return {"policy": policy, "interval": interval}


def _list_plan(plan: Plan, prefix: str) -> dict[str, np.ndarray]:
    """What a file keeps of a plan."""
    belief = {f"{prefix}belief_{name}": getattr(plan.belief, name) for name in BELIEF}
    return {f"{prefix}choices": plan.choices, **belief}


def _read_plan(
    run: Run, compiled: Compiled, arrays: Mapping[str, np.ndarray], prefix: str
) -> Plan | None:
    """A plan from the arrays of a file, checked before an engine sees them; None: not kept.

    prefix: "" for the last plan of the run, otherwise that of its robust plan.
    """
    from pkd.engine.exogenous import settle
    from pkd.planning.estimator import prove
    from pkd.planning.plan import Plan

    choices = arrays.get(f"{prefix}choices")
    if choices is None:
        return None
    compiled.check_policy(choices)
    rule: Optimism = from_config(run.config["optimism"])
    value = arrays.get("value", run.upper_values[-1:])
    if prefix:
        assert run.interval is not None  # only such a run has a robust plan
        rule = prove(compiled)
        value = np.array([run.interval.low])
    if value.shape != (1,) or value.dtype != np.float64 or not np.isfinite(value).all():
        raise ModelError(f"value: expected a finite number, found {value!r}")
    bonus = settle(compiled, rule)
    belief = compiled.optimistic(bonus, run.config["episodes"], run.config["delta"])
    if prefix:
        belief = compiled.pessimistic(belief)
    for name in BELIEF:
        part, values = arrays.get(f"{prefix}belief_{name}"), getattr(belief, name)
        if part is None or part.shape != values.shape or part.dtype != values.dtype:
            found = "nothing" if part is None else f"{part.dtype} of shape {part.shape}"
            raise ModelError(
                f"belief_{name}: expected {values.dtype} of shape {values.shape}, found {found}"
            )
        if fault := find_belief_fault(name, part):
            raise ModelError(f"belief_{fault}")
        values[...] = part
    return Plan(compiled, belief, choices, float(value[0]))


def _read_interval(kept: Any) -> CertifiedInterval | None:
    if kept is None:
        return None
    low, high = kept
    if not (_is_number(low) and _is_number(high)):
        raise ModelError(f"interval: expected two numbers, found {kept!r}")
    return CertifiedInterval(float(low), float(high), None)


def _read_words(kept: Any) -> Words | None:
    if kept is None:
        return None
    decisions = tuple((int(h), str(x), str(y), str(a)) for h, x, y, a in kept["decisions"])
    return Words(tuple(map(str, kept["features"])), decisions)


def _refuse_config(config: Any) -> None:
    """A ModelError where a file says something that no run would have taken."""
    if not isinstance(config, dict):
        raise ModelError(f"run: expected a configuration, found {config!r}")
    is_rule = "agent" not in config
    for key in ("model", "episodes", "seed", *(("delta", "replan", "optimism") * is_rule)):
        config[key]  # a KeyError names what is missing
    for key, least in (("episodes", 1), ("seed", 0)):
        value = config[key]
        if type(value) is not int or value < least:
            raise ModelError(f"{key}: expected a whole number >= {least}, found {value!r}")
    if not is_rule:
        return
    if not _is_number(config["delta"]) or not 0 < config["delta"] < 1:
        raise ModelError(f"delta: expected a number between 0 and 1, found {config['delta']!r}")
    if config["replan"] != "powers of two":
        read_schedule(config["replan"])
    rule = config["optimism"]
    if ":" in str(rule["rule"]) and not isinstance(rule["arguments"], dict):
        raise ModelError(f"optimism: expected arguments by name, found {rule['arguments']!r}")
    for key, value in rule.items() if ":" not in str(rule["rule"]) else ():
        plain = value is None or isinstance(value, bool) or _is_number(value)
        if key not in ("rule", "explore") and not plain:
            raise ModelError(f"optimism: expected numbers, found {key} = {value!r}")
    from_config(rule)


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


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _all_within(array: np.ndarray, low: float, high: float) -> bool:
    return bool(((array >= low) & (array <= high)).all())
