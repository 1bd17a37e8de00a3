"""The record of a learning run: regret, values, counts, and where it all came from."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from pkd import __version__
from pkd.model import ModelError
from pkd.optimism import from_config
from pkd.results.files import read_npz, write_npz

if TYPE_CHECKING:
    from pkd.planning import Model, Plan

__all__ = ["Run"]

BELIEF = ("p", "mean", "n")  # the parts of a belief that a file keeps; the rest follows from the configuration
OPTIMISM_SLACK = 1e-9  # relative to the optimal value: below it a plan counts as not optimistic
ARRAYS = ("upper_values", "policy_values", "returns", "plans")
FORM = 1  # of a file; a file that does not say its form has this one
MOST_DECISIONS = 60  # that a file keeps in words


@attrs.frozen
class Words:
    """A run in the words of its model, for readers who do not have the model."""

    features: tuple[str, ...]  # the label of each feature, in the order of the counts
    decisions: tuple[tuple[int, str, str, str], ...]  # (step, x, y, action) of the last plan, its first states


@attrs.frozen(eq=False)
class Run:
    """What a run of K episodes leaves behind. Arrays are per episode, (K,), unless they say otherwise.

    >>> import pkd
    >>> coin = pkd.TabularMDP([[[0.5, 0.5], [1.0, 0.0]], [[0.5, 0.5], [0.0, 1.0]]], [[0.0, 0.0], [1.0, 1.0]], horizon=3)
    >>> run = pkd.learn(coin.model(), coin.law(), 4)  # too few to learn: action 0 is repeated, worth 1 of 1.25
    >>> run.regret.tolist(), run.violations, run.episodes_to(0.8)
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
    policy: Plan | None = attrs.field(default=None, repr=False)  # the last plan; after `load` only where a model is given
    model_words: tuple[str, ...] = ()  # what `pkd learn` was told about the model; empty where the model was an object
    _words: Words | None = attrs.field(default=None, repr=False)  # as a file keeps them

    def __repr__(self) -> str:
        return (
            f"<Run: {len(self.returns)} episodes with {self.label}; regret {self.regret[-1]:.6g}, optimal value {self.optimal_value:.6g}, "
            f"{len(self.plans)} plans, {self.seconds:.2f} s>"
        )

    @property
    def regret(self) -> np.ndarray:
        """Cumulative regret: sum over episodes of the optimal value less the exact value of the policy."""
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

    def episodes_to(self, share: float, baseline: float = 0.0) -> int | None:
        """The first episode, from 1, from which every policy has gone `share` of the way from `baseline` to the optimum; None: never.

        The default baseline reads as "so much of the optimal value". With costs, give the value of a simple policy.
        """
        goal = baseline + share * (self.optimal_value - baseline)
        below = np.flatnonzero(self.policy_values < goal - 1e-12)
        if below.size == 0:
            return 1
        return int(below[-1]) + 2 if below[-1] + 1 < len(self.policy_values) else None

    @property
    def words(self) -> Words | None:
        """Labels of features and decisions; None where neither the run nor its file has them."""
        return self._words if self.policy is None else _in_words(self.policy, self.counts)

    def differences(self, other: Run) -> list[str]:
        """What is not equal to the bit in two runs, one sentence each; the time they took does not count."""
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
                found.append(f"{apart.size} of {mine.size} {words} differ, first number {i + 1}: {mine[i]:.17g} and {theirs[i]:.17g}")
        mine, theirs = _plain(self.counts), _plain(other.counts)
        features = [z for z in {**mine, **theirs} if mine.get(z) != theirs.get(z)]
        if features:
            z = features[0]
            found.append(f"the counts of {len(features)} features differ, first {z!r}: {mine.get(z, {})} and {theirs.get(z, {})}")
        return found

    def save(self, path: str | Path) -> None:
        """An .npz with arrays and JSON, written atomically; no pickle."""
        features = [repr(z) for z in self.counts]
        table = [[[repr(x), n] for x, n in row.items()] for row in self.counts.values()]
        words = self.words
        meta = {"run": dict(self.config), "optimal_value": self.optimal_value, "seconds": self.seconds, "version": self.version}
        meta |= {"form": FORM, "model_words": self.model_words, "words": words and attrs.asdict(words)}
        arrays = {name: getattr(self, name) for name in ARRAYS}
        if self.policy is not None:
            arrays |= {"choices": self.policy.choices} | {f"belief_{name}": getattr(self.policy.belief, name) for name in BELIEF}
        write_npz(path, arrays, {**meta, "features": features, "counts": table})

    @classmethod
    def load(cls, path: str | Path, model: Model | None = None) -> Run:
        """A saved run. With its model, `policy` can be asked again; without it `policy` is None."""
        from pkd.engine import compile

        arrays, meta = read_npz(path)
        names = {} if model is None else compile(model).names
        belief = {name: arrays.pop(f"belief_{name}", None) for name in BELIEF}
        arms = arrays.pop("choices", None)
        try:
            if meta.get("form", FORM) != FORM:
                raise ModelError(f"it has the form {meta['form']} of pkd {meta.get('version')}; pkd {__version__} reads the form {FORM}")
            counts = {
                _value(z, names): {_value(x, names): n for x, n in row} for z, row in zip(meta["features"], meta["counts"], strict=True)
            }
            run = cls(
                **arrays,  # type: ignore[arg-type]
                optimal_value=meta["optimal_value"],
                counts=counts,
                config=meta["run"],
                seconds=meta["seconds"],
                version=meta["version"],
                model_words=tuple(meta.get("model_words", ())),
                words=_read_words(meta.get("words")),
            )
            run._refuse_what_does_not_fit()
        except KeyError as error:
            raise ModelError(f"{path} is not a saved run: it has no entry {error}") from None
        except (AttributeError, IndexError, ModelError, TypeError, ValueError) as error:
            raise ModelError(f"{path} is not a saved run: {error}") from None
        return run if model is None or arms is None else attrs.evolve(run, policy=run._plan_again(model, arms, belief))

    def _refuse_what_does_not_fit(self) -> None:
        """A ModelError where the parts of a file are not those of one run."""
        episodes = self.config["episodes"]
        shapes = {name: getattr(self, name).shape for name in ARRAYS[:3]}
        if set(shapes.values()) != {(episodes,)}:
            raise ModelError(f"expected {episodes} numbers each, found the shapes {shapes}")
        if self.plans.ndim != 1 or self.plans.dtype.kind != "i" or not ((self.plans >= 0) & (self.plans < episodes)).all():
            raise ModelError(f"plans: expected episodes from 0 to {episodes - 1}")
        if isinstance(self.optimal_value, bool) or not isinstance(self.optimal_value, int | float):
            raise ModelError(f"optimal_value: expected a number, found {self.optimal_value!r}")
        if not all(isinstance(word, str) for word in self.model_words):
            raise ModelError(f"model_words: expected words, found {self.model_words!r}")
        if self._words is not None and len(self._words.features) != len(self.counts):
            raise ModelError(f"expected {len(self.counts)} labels of features, found {len(self._words.features)}")
        for key in ("model", "delta", "seed", "replan"):
            self.config[key]
        from_config(self.config["optimism"])

    def _plan_again(self, model: Model, arms: np.ndarray, kept: Mapping[str, Any]) -> Plan:
        from pkd.engine import compile
        from pkd.planning import Plan

        compiled = compile(model)
        if compiled.policy().shape != arms.shape:
            raise ModelError(
                f"the saved policy has the shape {arms.shape}, the model needs {compiled.policy().shape}; give the model of the run"
            )
        belief = compiled.optimistic(from_config(self.config["optimism"]).bonus(), self.config["episodes"], self.config["delta"])
        for name in BELIEF:
            getattr(belief, name)[...] = kept[name]
        compiled.refresh(belief)
        return Plan(compiled, belief, arms, float(self.upper_values[-1]))

    def plot(self, ax: Any = None, **line: Any) -> Any:
        """Cumulative regret over episodes, labelled by the rule and its constants; returns the axes."""
        from pkd.plotting import plot_regret

        return plot_regret([self], ax=ax, **line)


def _in_words(policy: Plan, counts: Mapping[Any, Any]) -> Words | None:
    model, horizon = policy.compiled.model, policy.compiled.horizon
    try:
        states = ((h, x, y) for h in range(1, horizon + 1) for x, y in policy.states(h))
        first = islice(states, MOST_DECISIONS)
        decisions = [(h, model.x_label(x), model.y_label(y), model.action_label(policy.action(h, x, y))) for h, x, y in first]
        return Words(tuple(model.feature_label(z) for z in counts), tuple(decisions))
    except Exception:  # noqa: BLE001 - labels are the user's own code, and a run must not be lost for want of words
        return None


def _read_words(kept: Any) -> Words | None:
    return None if kept is None else Words(tuple(kept["features"]), tuple((h, x, y, action) for h, x, y, action in kept["decisions"]))


def _plain(counts: Mapping[Any, Mapping[Any, float]]) -> dict[Any, dict[Any, float]]:
    """Counts with the names that a file gives back without a model."""
    return {_value(repr(z), {}): {_value(repr(x), {}): n for x, n in row.items()} for z, row in counts.items()}


def _value(text: str, names: Mapping[str, Any]) -> Any:
    """A value from its repr: one of the model's own where there is a model, or a literal; else the text itself."""
    if text in names:
        return names[text]
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text
