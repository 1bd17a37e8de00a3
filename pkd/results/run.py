"""The record of a learning run: regret, values, counts, and where it all came from.

A file keeps the record with a fingerprint of its model. Whatever is read is checked, before an
engine sees it: which model it is of, and that shapes, types and ranges are those of that model.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from pkd import __version__
from pkd.model import ModelError
from pkd.optimism import from_config
from pkd.results.files import DAMAGE, read_npz, write_npz
from pkd.results.values import (
    Written,
    decode,
    encode,
    index_values,
    key_of,
    read_repr,
    refuse_unwritable,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from pkd.compiled import Compiled
    from pkd.planning import Model, Plan

__all__ = ["Run"]

BELIEF = (
    "p",
    "mean",
    "n",
)  # the parts of a belief that a file keeps; the rest follows from the configuration
OPTIMISM_SLACK = 1e-9  # relative to the optimal value: below it a plan counts as not optimistic
ARRAYS = ("upper_values", "policy_values", "returns", "plans")
FORM = 2  # of a file; the form 1 had the repr of features and no fingerprint
MOST_DECISIONS = 60  # that a file keeps in words


@attrs.frozen
class Words:
    """A run in the words of its model, for readers who do not have the model."""

    features: tuple[str, ...]  # the label of each feature, in the order of the counts
    decisions: tuple[
        tuple[int, str, str, str], ...
    ]  # (step, x, y, action) of the last plan, its first states


@attrs.frozen(eq=False)
class Run:
    """What a run of K episodes leaves behind. Arrays are per episode, (K,), unless they say
    otherwise.

    >>> import pkd
    >>> stay, toss = [0.0, 1.0], [0.5, 0.5]
    >>> coin = pkd.TabularMDP([[toss, stay[::-1]], [toss, stay]], [[0, 0], [1, 1]], horizon=3)
    >>> run = pkd.learn(coin.model(), coin.law(), 4)  # too few to learn: 1 of 1.25 in each
    >>> run.regret.tolist(), run.violations, run.episodes_to(0.8, baseline=0.0)
    ([0.25, 0.5, 0.75, 1.0], 0, 1)
    """

    upper_values: np.ndarray  # what the plan in force believed
    policy_values: np.ndarray  # the exact value of its policy
    returns: np.ndarray  # what the episode really paid
    plans: np.ndarray  # (plans,) the episodes, from 0, before which a plan was made
    optimal_value: float
    counts: Mapping[Any, Mapping[Any, float]] = attrs.field(repr=False)  # {z: {x': n}}
    config: Mapping[str, Any]
    seconds: float
    version: str = __version__
    policy: Plan | None = attrs.field(
        default=None, repr=False
    )  # the last plan; after `load` only where a model is given
    model_words: tuple[
        str, ...
    ] = ()  # what `pkd learn` was told about the model; empty where the model was an object
    fingerprint: str = ""  # of the model, as a file keeps it; empty where there is no file
    _words: Words | None = attrs.field(default=None, repr=False)  # as a file keeps them

    def __repr__(self) -> str:
        return (
            f"<Run: {len(self.returns)} episodes with {self.label}; regret "
            f"{self.regret[-1]:.6g}, optimal value {self.optimal_value:.6g}, "
            f"{len(self.plans)} plans, {self.seconds:.2f} s>"
        )

    @property
    def regret(self) -> np.ndarray:
        """Cumulative regret: the sum of the optimal value less the exact value of the policy."""
        return np.cumsum(self.optimal_value - self.policy_values)

    @property
    def violations(self) -> int:
        """Plans whose upper value is below the optimal value: where optimism failed."""
        slack = OPTIMISM_SLACK * max(1.0, abs(self.optimal_value))
        return int(np.sum(self.upper_values[self.plans] < self.optimal_value - slack))

    @property
    def label(self) -> str:
        """The rule with its constants, as plots and tables name it."""
        return from_config(self.config["optimism"]).label

    def episodes_to(self, share: float, baseline: float | None = None) -> int | None:
        """The first episode, from 1, from which every policy keeps `share` of the gain.

        The gain goes from `baseline` to the optimum; None stands for the value of the first policy,
        which is what the rule does without data. None is returned if the share is never kept.
        """
        first = float(self.policy_values[0]) if baseline is None else baseline
        goal = first + share * (self.optimal_value - first)
        below = np.flatnonzero(self.policy_values < goal - 1e-12)
        if below.size == 0:
            return 1
        return int(below[-1]) + 2 if below[-1] + 1 < len(self.policy_values) else None

    @property
    def words(self) -> Words | None:
        """Labels of features and decisions; None where neither the run nor its file has them."""
        return self._words if self.policy is None else _in_words(self.policy, self.counts)

    def differences(self, other: Run) -> list[str]:
        """What is not equal to the bit in two runs, one sentence each; their times do not count."""
        found = []
        if dict(self.config) != dict(other.config):
            found.append(f"the configuration is {dict(self.config)} and {dict(other.config)}")
        if self.optimal_value != other.optimal_value:
            found.append(f"the optimal value is {self.optimal_value!r} and {other.optimal_value!r}")
        for name in ARRAYS:
            mine, theirs, words = getattr(self, name), getattr(other, name), name.replace("_", " ")
            if len(mine) != len(theirs):
                found.append(f"there are {len(mine)} and {len(theirs)} {words}")
            elif (apart := np.flatnonzero(mine != theirs)).size:
                i = int(apart[0])
                found.append(
                    f"{apart.size} of {mine.size} {words} differ, first number {i + 1}: "
                    f"{mine[i]:.17g} and {theirs[i]:.17g}"
                )
        mine, theirs = _counts_by_text(self.counts, other.counts)
        features = [z for z in {**mine, **theirs} if mine.get(z) != theirs.get(z)]
        if features:
            z = features[0]
            found.append(
                f"the counts of {len(features)} features differ, first {z}: "
                f"{mine.get(z, {})} and {theirs.get(z, {})}"
            )
        return found

    def save(self, path: str | Path) -> None:
        """An .npz with arrays and JSON, written whole or not at all; no pickle.

        A feature or outcome that a file cannot give back is a ModelError, and no file is written.
        """
        refuse_unwritable([*self.counts, *(x for row in self.counts.values() for x in row)])
        words, policy = self.words, self.policy
        meta = {
            "form": FORM,
            "run": _to_plain(self.config),
            "optimal_value": float(self.optimal_value),
            "seconds": float(self.seconds),
            "version": self.version,
            "model_words": list(self.model_words),
            "words": words and attrs.asdict(words),
            "fingerprint": self.fingerprint if policy is None else policy.compiled.fingerprint,
            "features": [encode(z) for z in self.counts],
            "counts": [
                [[encode(x), float(n)] for x, n in row.items()] for row in self.counts.values()
            ],
        }
        arrays = {name: getattr(self, name) for name in ARRAYS}
        if policy is not None:
            arrays["arms"] = policy.arms
            arrays |= {f"belief_{name}": getattr(policy.belief, name) for name in BELIEF}
        write_npz(path, arrays, meta)

    @classmethod
    def load(cls, path: str | Path, model: Model | None = None) -> Run:
        """A saved run. With its model, `policy` can be asked again; without it `policy` is None.

        Everything that the file says is checked, and with a model against that model: a file of
        another model is a ModelError.
        """
        arrays, meta = read_npz(path)
        compiled = None
        if model is not None:
            from pkd.engines import compile

            compiled = compile(model)
        kept = {name: arrays.pop(f"belief_{name}", None) for name in BELIEF}
        arms = arrays.pop("arms", None)
        try:
            run = _read_run(arrays, meta, compiled)
            run._refuse_what_does_not_fit()
        except KeyError as error:
            raise ModelError(f"{path} is not a saved run: it has no entry {error}") from None
        except DAMAGE as error:
            raise ModelError(f"{path} is not a saved run: {error}") from None
        if compiled is None:
            return run
        try:
            run._refuse_other_model(compiled)
            if arms is None:
                return run
            return attrs.evolve(run, policy=run._plan_again(compiled, arms, kept))
        except ModelError as error:
            findings = [f"{path} does not fit the model: {finding}" for finding in error.findings]
            raise ModelError(findings) from None

    def _refuse_what_does_not_fit(self) -> None:
        """A ModelError where the parts of a file are not those of one run."""
        _refuse_config(self.config)
        episodes = self.config["episodes"]
        shapes = {name: getattr(self, name).shape for name in ARRAYS[:3]}
        if set(shapes.values()) != {(episodes,)}:
            raise ModelError(f"expected {episodes} numbers each, found the shapes {shapes}")
        for name in ARRAYS[:3]:
            array = getattr(self, name)
            if array.dtype != np.float64:
                raise ModelError(f"{name}: expected the type float64, found {array.dtype}")
            if not np.isfinite(array).all():
                raise ModelError(f"{name}: expected finite numbers, found one that is not")
        plans = self.plans
        if plans.ndim != 1 or plans.dtype.kind != "i" or not _all_within(plans, 0, episodes - 1):
            raise ModelError(f"plans: expected episodes from 0 to {episodes - 1}")
        for name in ("optimal_value", "seconds"):
            if not _is_number(value := getattr(self, name)):
                raise ModelError(f"{name}: expected a number, found {value!r}")
        for name in ("version", "fingerprint"):
            if not isinstance(value := getattr(self, name), str):
                raise ModelError(f"{name}: expected a text, found {value!r}")
        if not all(isinstance(word, str) for word in self.model_words):
            raise ModelError(f"model_words: expected words, found {self.model_words!r}")
        for z, row in self.counts.items():
            for x, n in row.items():
                if not _is_number(n) or n < 0:
                    raise ModelError(f"counts of {z!r}, {x!r}: expected a number >= 0, found {n!r}")
        if self._words is not None and len(self._words.features) != len(self.counts):
            labels = len(self._words.features)
            raise ModelError(f"expected {len(self.counts)} labels of features, found {labels}")

    def _refuse_other_model(self, compiled: Compiled) -> None:
        """A ModelError where a file was not written for this model."""
        if self.fingerprint and self.fingerprint != compiled.fingerprint:
            raise ModelError(
                "it was saved with another model, or with an earlier version of this one (the "
                "fingerprints differ); give the model of the run"
            )
        compiled.counted(self.counts)  # every feature and outcome must be one of the model's

    def _plan_again(
        self, compiled: Compiled, arms: np.ndarray, kept: Mapping[str, np.ndarray | None]
    ) -> Plan:
        """The last plan from the arrays of a file, checked before an engine sees them."""
        from pkd.planning import Plan

        compiled.check_policy(arms)
        bonus = from_config(self.config["optimism"]).bonus()
        belief = compiled.optimistic(bonus, self.config["episodes"], self.config["delta"])
        for name, high in zip(BELIEF, (1.0, np.inf, np.inf), strict=True):
            part, room = kept[name], getattr(belief, name)
            low = -np.inf if name == "mean" else 0.0
            if part is None or part.shape != room.shape or part.dtype != room.dtype:
                found = "nothing" if part is None else f"{part.dtype} of shape {part.shape}"
                raise ModelError(
                    f"belief_{name}: expected {room.dtype} of shape {room.shape}, found {found}"
                )
            if not np.isfinite(part).all() or not _all_within(part, low, high):
                raise ModelError(f"belief_{name}: expected numbers from {low:g} to {high:g}")
            room[...] = part
        compiled.refresh(belief)
        return Plan(compiled, belief, arms, float(self.upper_values[-1]))

    def plot(self, ax: Axes | None = None, **line: Any) -> Axes:
        """Draws the cumulative regret, labelled by the rule and its constants."""
        from pkd.results.plots import plot_regret

        return plot_regret([self], ax=ax, **line)


def _in_words(policy: Plan, counts: Mapping[Any, Any]) -> Words | None:
    model, horizon = policy.compiled.model, policy.compiled.horizon
    try:
        states = ((h, x, y) for h in range(1, horizon + 1) for x, y in policy.states(h))
        first = islice(states, MOST_DECISIONS)
        decisions = [
            (h, model.x_label(x), model.y_label(y), model.action_label(policy.action(h, x, y)))
            for h, x, y in first
        ]
        return Words(tuple(model.feature_label(z) for z in counts), tuple(decisions))
    except Exception:  # noqa: BLE001 - labels are the user's own code, and a run must not be lost for want of words
        return None


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
    if config["replan"] not in ("every", "doubling"):
        raise ModelError(f"replan: expected every or doubling, found {config['replan']!r}")
    for key, value in config["optimism"].items():
        if key != "rule" and not (value is None or isinstance(value, bool) or _is_number(value)):
            raise ModelError(f"optimism: expected numbers, found {key} = {value!r}")
    from_config(config["optimism"])


def _read_run(
    arrays: Mapping[str, np.ndarray], meta: Mapping[str, Any], compiled: Compiled | None
) -> Run:
    """The run that a file describes, still unchecked."""
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
    return Run(
        **arrays,  # type: ignore[arg-type]
        optimal_value=meta["optimal_value"],
        counts=counts,
        config=meta["run"],
        seconds=meta["seconds"],
        version=meta["version"],
        model_words=tuple(meta.get("model_words", ())),
        words=_read_words(meta.get("words")),
        fingerprint=meta.get("fingerprint", ""),
    )


def _counts_by_text(*runs: Mapping[Any, Mapping[Any, float]]) -> list[dict[str, dict[str, float]]]:
    """Counts by the text that tells values apart, so that runs from files can be compared.

    Files of the first form have only the repr of a value of a model's own class.
    """
    values = [value for counts in runs for z, row in counts.items() for value in (z, *row)]
    old = any(isinstance(value, Written) and value.key is None for value in values)
    name = repr if old else key_of
    return [
        {name(z): {name(x): n for x, n in row.items()} for z, row in counts.items()}
        for counts in runs
    ]


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
