"""The record of a learning run: regret, values, counts, and where it all came from.

`pkd.results.saved` says what a file keeps of it, and checks what a file says.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from pkd import __version__
from pkd.model import ModelError
from pkd.optimism import Guarantee, from_config
from pkd.results.files import DAMAGE, read_npz, write_npz
from pkd.results.saved import (
    ARRAYS,
    Interval,
    Words,
    describe,
    plan_again,
    plan_arrays,
    read_fields,
    refuse_other_model,
    refuse_unfit,
)
from pkd.results.values import Written, key_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from pkd.planning import Model, Plan

__all__ = ["Interval", "Run"]

OPTIMISM_SLACK = 1e-9  # relative to the optimal value: below it a plan counts as not optimistic
ROBUST = "robust_"  # begins the names of the arrays of the robust plan
MOST_DECISIONS = 60  # that a file keeps in words


@attrs.frozen(eq=False)
class Run:
    """What a run of K episodes leaves behind; arrays are (K,), one number per episode.

    >>> import pkd
    >>> stay, toss = [0.0, 1.0], [0.5, 0.5]
    >>> coin = pkd.TabularMDP([[toss, stay[::-1]], [toss, stay]], [[0, 0], [1, 1]], horizon=3)
    >>> run = pkd.learn(coin, 4, optimism=pkd.MVP())  # too few to learn: 1 of 1.25 in each
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
    # The last plan; after `load` only where a model is given.
    policy: Plan | None = attrs.field(default=None, repr=False)
    # Certified lower values of V*, where the rule has them; nan before the first one.
    lower_values: np.ndarray | None = attrs.field(default=None, repr=False)
    # What all counts prove of V* in the end; None where the rule certifies nothing.
    interval: Interval | None = attrs.field(default=None, repr=False)
    # What `pkd learn` was told about the model; empty where the model was an object.
    model_words: tuple[str, ...] = ()
    fingerprint: str = ""  # of the model, as a file keeps it; empty where there is no file
    _words: Words | None = attrs.field(default=None, repr=False)  # as a file keeps them

    def __repr__(self) -> str:
        return (
            f"<Run: {len(self.returns)} episodes with {self.label}; regret "
            f"{self.regret[-1]:.6g}, optimal value {self.optimal_value:.6g}, "
            f"{len(self.plans)} plans, {self.seconds:.2f} s>"
        )

    def _repr_html_(self) -> str:
        """What was learned, the policy and the regret, for a notebook."""
        from pkd.results.notebook import show_run

        return show_run(self)

    @property
    def regret(self) -> np.ndarray:
        """Cumulative regret: the sum of the optimal value less the exact value of the policy."""
        return np.cumsum(self.optimal_value - self.policy_values)

    @property
    def violations(self) -> int:
        """Plans whose upper value is below the optimal value: where optimism failed."""
        slack = OPTIMISM_SLACK * max(1.0, abs(self.optimal_value))
        return int(np.sum(self.upper_values[self.plans] < self.optimal_value - slack))

    def without_plans(self) -> Run:
        """The same run without its plans, which hold a compiled model: small enough to be sent."""
        interval = self.interval and self.interval._replace(robust=None)
        return attrs.evolve(self, policy=None, interval=interval)

    @property
    def lower_violations(self) -> int:
        """Plans in force of which the certified lower value is above the optimal value."""
        if self.lower_values is None:
            return 0
        slack = OPTIMISM_SLACK * max(1.0, abs(self.optimal_value))
        return int(np.sum(self.lower_values[self.plans] > self.optimal_value + slack))

    @property
    def gap(self) -> float:
        """high - low of what the counts prove in the end: how far the robust plan may be from V*.

        Infinite where the rule certifies nothing.
        """
        return np.inf if self.interval is None else self.interval.high - self.interval.low

    @property
    def label(self) -> str:
        """The rule with its constants, as plots and tables name it."""
        return from_config(self.config["optimism"]).label

    @property
    def guarantee(self) -> Guarantee:
        """What is proved about the rule: "as published", "certified" or "no guarantee"."""
        return from_config(self.config["optimism"]).guarantee

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
            if mine is None or theirs is None:
                if mine is not theirs:
                    found.append(f"only one of the runs has {words}")
                continue
            if len(mine) != len(theirs):
                found.append(f"there are {len(mine)} and {len(theirs)} {words}")
            elif (apart := np.flatnonzero(mine != theirs)).size:
                i = int(apart[0])
                found.append(
                    f"{apart.size} of {mine.size} {words} differ, first number {i + 1}: "
                    f"{mine[i]:.17g} and {theirs[i]:.17g}"
                )
        mine, theirs = _index_counts(self.counts, other.counts)
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
        arrays = {name: array for name in ARRAYS if (array := getattr(self, name)) is not None}
        if self.policy is not None:
            arrays |= plan_arrays(self.policy, "")
        if self.interval is not None and self.interval.robust is not None:
            arrays |= plan_arrays(self.interval.robust, ROBUST)
        write_npz(path, arrays, describe(self))

    @classmethod
    def load(cls, path: str | Path, model: Model | None = None) -> Run:
        """A saved run. With its model, `policy` can be asked again; without it `policy` is None.

        Everything that the file says is checked, and with a model against that model: a file of
        another model is a ModelError.
        """
        arrays, meta = read_npz(path)
        compiled = None
        if model is not None:
            from pkd.engine import compile

            compiled = compile(model)
        fields = {name: arrays.pop(name) for name in ARRAYS if name in arrays}
        try:
            run = cls(**read_fields(fields, meta, compiled))
            refuse_unfit(run)
        except KeyError as error:
            raise ModelError(f"{path} is not a saved run: it has no entry {error}") from None
        except DAMAGE as error:
            raise ModelError(f"{path} is not a saved run: {error}") from None
        if compiled is None:
            return run
        try:
            rule = from_config(run.config["optimism"])
            compiled = compiled.suited_to(rule.bonus(), quiet=True)
            refuse_other_model(run, compiled)
            policy = plan_again(run, compiled, arrays, "")
            interval = run.interval
            if interval is not None:
                interval = interval._replace(robust=plan_again(run, compiled, arrays, ROBUST))
            return attrs.evolve(run, policy=policy, interval=interval)
        except ModelError as error:
            findings = [f"{path} does not fit the model: {finding}" for finding in error.findings]
            raise ModelError(findings) from None

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
    except Exception:  # noqa: BLE001 - labels are the user's code; no run is lost for them
        return None


def _index_counts(*runs: Mapping[Any, Mapping[Any, float]]) -> list[dict[str, dict[str, float]]]:
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
