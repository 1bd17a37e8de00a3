"""The record of a run: regret, values, counts, and where it all came from.

Rules of optimism and a user's own agents leave the same record. `pkd.results.saved` says what a
file keeps of it, and checks what a file says.
"""

from __future__ import annotations

import math
import platform
from collections.abc import Mapping
from importlib.metadata import version
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import attrs
import numpy as np

from pkd import __version__
from pkd.expect import fraction, if_given, instance, number, require
from pkd.files.atomic import DAMAGE, read_npz, write_npz
from pkd.files.frames import make_frame
from pkd.files.values import key_of
from pkd.model import ModelError
from pkd.optimism import Guarantee
from pkd.results.saved import (
    ARRAYS,
    CertifiedInterval,
    Words,
    describe,
    read_fields,
    read_plans,
    refuse_unfit,
)
from pkd.rules import from_config
from pkd.rules.schedule import read_schedule

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from pkd.planning.plan import Model, Plan

__all__ = ["CertifiedInterval", "Regret", "Run"]

Regret = Literal["exact", "estimated"]

OPTIMISM_SLACK = 1e-9  # relative to the optimal value: below it a plan counts as not optimistic
MOST_DECISIONS = 60  # that a file keeps in words


@attrs.frozen(eq=False)
class Run:
    """What a run of K episodes leaves behind; arrays are (K,), one number per episode.

    >>> import pkd
    >>> from pkd.tables.coin import coin
    >>> run = pkd.learn(coin, 4, optimism=pkd.MVP())  # too few to learn: 1 of 1.25 in each
    >>> run.regret.tolist(), run.violations, run.episodes_to(0.8, baseline=0.0)
    ([0.25, 0.5, 0.75, 1.0], 0, 1)
    """

    # Certified, where there are `lower_values`; else what the plan in force believed. (0,) for an
    # agent without plans.
    upper_values: np.ndarray
    # The exact value of the policy; nan where an agent shows none.
    policy_values: np.ndarray
    returns: np.ndarray  # what the episode really paid
    plans: np.ndarray  # (plans,) the episodes, from 0, before which a plan was made
    optimal_value: float
    counts: Mapping[Any, Mapping[Any, float]] = attrs.field(repr=False)  # {z: {x': n}}
    config: Mapping[str, Any]  # everything that the run was told
    seconds: float
    versions: Mapping[str, str] = attrs.field(factory=lambda: _list_versions())
    # The last plan; after `load` only where a model is given.
    policy: Plan | None = attrs.field(default=None, repr=False)
    # Certified lower values of V*, where the run recorded them.
    lower_values: np.ndarray | None = attrs.field(default=None, repr=False)
    # What all counts prove of V* in the end, with every rule; None for an agent.
    interval: CertifiedInterval | None = attrs.field(default=None, repr=False)
    # Labels of the features that the rule took as they were estimated: they come whatever is done.
    unexplored: tuple[str, ...] = ()
    # What `pkd learn` was told about the model; empty where the model was an object.
    model_words: tuple[str, ...] = ()
    fingerprint: str = ""  # of the model, as a file keeps it; empty where there is no file
    world: str = ""  # the fingerprint of the model and its law, in an experiment
    _words: Words | None = attrs.field(default=None, repr=False)  # as a file keeps them
    # The names of the agent and of the model, as tables and plots have them.
    label: str = attrs.field()
    model: str = attrs.field()
    guarantee: Guarantee = attrs.field()  # what is proved about the agent

    @label.default
    def _name_rule(self) -> str:
        return from_config(self.config["optimism"]).label

    @model.default
    def _name_model(self) -> str:
        return str(self.config.get("model", "")).lstrip("_")

    @guarantee.default
    def _find_guarantee(self) -> Guarantee:
        return from_config(self.config["optimism"]).guarantee

    def __repr__(self) -> str:
        return (
            f"<Run: {len(self.returns)} episodes with {self.label}; {self.regret_is} regret "
            f"{self.regret[-1]:.6g}, optimal value {self.optimal_value:.6g}, "
            f"{len(self.plans)} plans, {self.seconds:.2f} s>"
        )

    def _repr_html_(self) -> str:
        """What was learned, the policy and the regret, for a notebook."""
        from pkd.show.notebook import show_run

        return show_run(self)

    @property
    def software(self) -> str:
        """The software that made the run, with its versions."""
        return ", ".join(f"{name} {number}" for name, number in self.versions.items())

    @property
    def guaranteed(self) -> str:
        """What is proved: a bound of the regret needs the rule and its schedule, `interval` none.

        >>> import pkd
        >>> pkd.learn("gambler", 5).guaranteed
        'regret and interval'
        >>> pkd.learn("gambler", 5, optimism=pkd.Greedy()).guaranteed
        'interval'
        """
        words = ["regret"] if self._bounds_regret() else []
        words += [] if self.interval is None else ["interval"]
        return " and ".join(words) or "nothing"

    def _bounds_regret(self) -> bool:
        """Whether a theorem bounds the regret: plans use at least half of the present counts."""
        if self.guarantee == "no guarantee" or self.config.get("families"):
            return False
        if "replan" not in self.config or self.config["replan"] == "powers of two":
            return True  # an agent of the literature with its own schedule
        schedule = read_schedule(self.config["replan"])
        estimates = self.unexplored or self.config["optimism"].get("rate")
        if schedule.slack and estimates:  # proved for features that are explored alone
            return False
        return schedule.period == 1 or (schedule.features or math.inf) <= 2

    @property
    def seed(self) -> int:
        """The seed of the run."""
        return int(self.config["seed"])

    @property
    def regret_is(self) -> Regret:
        """Whether regret is exact, or estimated from returns in some episodes."""
        return "estimated" if np.isnan(self.policy_values).any() else "exact"

    @property
    def values(self) -> np.ndarray:
        """The value of each policy; where the agent shows none, what its episode paid."""
        return np.where(np.isnan(self.policy_values), self.returns, self.policy_values)

    @property
    def regret(self) -> np.ndarray:
        """Cumulative regret: the sum of the optimal value less `values`."""
        return np.cumsum(self.optimal_value - self.values)

    @property
    def violations(self) -> int | None:
        """Plans whose upper value is below the optimum; None for an agent without upper values."""
        if not self.upper_values.size:
            return None
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

        Infinite for an agent, which certifies nothing.
        """
        return np.inf if self.interval is None else self.interval.high - self.interval.low

    def episodes_to(self, share: float, baseline: float | None = None) -> int | None:
        """The first episode, from 1, from which every policy keeps `share` of the gain.

        The gain goes from `baseline` to the optimum; None stands for the value of the first policy,
        which is what the rule does without data. None is returned if the share is never kept, and
        where regret is estimated, so that nobody can tell.
        """
        require(
            fraction("share", share, closed=True), if_given(number, "baseline", baseline, -math.inf)
        )
        if self.regret_is == "estimated":
            return None
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
        require(instance("other", other, Run, "a pkd.Run"))
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
                continue
            same = (mine == theirs) | (np.isnan(mine) & np.isnan(theirs))
            if (apart := np.flatnonzero(~same)).size:
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
        write_npz(path, *describe(self))

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
        try:
            run = cls(**read_fields(arrays, meta, compiled))
            refuse_unfit(run)
        except KeyError as error:
            raise ModelError(f"{path} is not a saved run: it has no entry {error}") from None
        except DAMAGE as error:
            raise ModelError(f"{path} is not a saved run: {error}") from None
        if compiled is None:
            return run
        try:
            return attrs.evolve(run, **read_plans(run, compiled, arrays))
        except ModelError as error:
            findings = [f"{path} does not fit the model: {finding}" for finding in error.findings]
            raise ModelError(findings) from None

    def to_frame(self) -> pd.DataFrame:
        """One row for each episode, as a pandas frame; columns that the run lacks are left out.

        >>> import pkd
        >>> frame = pkd.learn("gambler", 3).to_frame()
        >>> list(frame)
        ['episode', 'return', 'policy_value', 'upper_value', 'lower_value', 'regret']
        """
        columns = {
            "episode": np.arange(1, len(self.returns) + 1),
            "return": self.returns,
            "policy_value": self.policy_values,
            "upper_value": self.upper_values,
            "lower_value": self.lower_values,
            "regret": self.regret,
        }
        return make_frame({k: v for k, v in columns.items() if v is not None and len(v)})

    def plot(self, ax: Axes | None = None, **line: Any) -> Axes:
        """Draws the cumulative regret, labelled by the rule and its constants."""
        from pkd.show.plots import plot_regret

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
    """Counts by the text that tells values apart, so that runs from files can be compared."""
    return [
        {key_of(z): {key_of(x): n for x, n in row.items()} for z, row in counts.items()}
        for counts in runs
    ]


def _list_versions() -> dict[str, str]:
    """The software that numbers may depend on."""
    return {
        "numba": version("numba"),
        "numpy": np.__version__,
        "pkd": __version__,
        "python": platform.python_version(),
    }
