"""`Record`: what one agent did on one model with one seed, episode by episode.

Rules of optimism and a user's own agents leave the same record, so that tables and plots need not
ask which of them played. Its file has the same bytes whenever and wherever it is computed: times
are kept apart.
"""

from __future__ import annotations

import platform
from collections.abc import Mapping
from importlib.metadata import version
from typing import Any, Literal

import attrs
import numpy as np

from pkd import __version__
from pkd.model import ModelError
from pkd.optimism import Guarantee

__all__ = ["ARRAYS", "Record", "Regret", "list_versions"]

Regret = Literal["exact", "estimated"]
ARRAYS = ("policy_values", "returns", "upper_values", "lower_values", "plans")
FORM = "experiment 1"  # of a file
OPTIMISM_SLACK = 1e-9  # relative to the optimal value


@attrs.frozen(eq=False)
class Record:
    """One run of K episodes; arrays are (K,) unless they say otherwise.

    >>> import pkd
    >>> tosses = [[[0.5, 0.5], [1.0, 0.0]], [[0.5, 0.5], [0.0, 1.0]]]
    >>> coin = pkd.TabularMDP(tosses, [[0.0, 0.0], [1.0, 1.0]], horizon=3)
    >>> record = pkd.play(coin, pkd.Greedy(), 4)
    >>> record.regret_is, len(record.regret), record.label
    ('exact', 4, 'Greedy (no bonus)')
    """

    policy_values: np.ndarray  # the exact value of the policy; nan where the agent shows none
    returns: np.ndarray  # what the episode really paid
    upper_values: np.ndarray  # what the plan in force believed; (0,) for an agent without plans
    lower_values: np.ndarray  # certified lower values; (0,) where nothing is certified
    plans: np.ndarray  # (plans,) the episodes, from 0, before which a plan was made
    optimal_value: float
    label: str  # of the agent
    model: str  # the label of the model
    guarantee: Guarantee
    config: Mapping[str, Any]  # everything that the run was told
    problem: str  # the fingerprint of the model and its law
    versions: Mapping[str, str] = attrs.field(factory=lambda: list_versions())
    seconds: float = float("nan")  # how long it took; never part of a file

    def __repr__(self) -> str:
        return (
            f"<Record: {len(self.returns)} episodes of {self.model} with {self.label}, seed "
            f"{self.seed}; {self.regret_is} regret {self.regret[-1]:.6g}>"
        )

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

    def episodes_to(self, share: float, baseline: float) -> int | None:
        """The first episode, from 1, from which every policy keeps `share` of the gain.

        The gain goes from `baseline` to the optimum. None: it is never kept, or regret is estimated
        and nobody can tell.
        """
        if self.regret_is == "estimated":
            return None
        goal = baseline + share * (self.optimal_value - baseline)
        below = np.flatnonzero(self.policy_values < goal - 1e-12)
        last = int(below[-1]) + 1 if below.size else 0
        return last + 1 if last < len(self.policy_values) else None

    def to_file(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """The arrays and the JSON that a file keeps: everything but the time."""
        arrays = {name: getattr(self, name) for name in ARRAYS}
        plain = attrs.asdict(self, filter=lambda field, _: field.name not in (*ARRAYS, "seconds"))
        return arrays, {"form": FORM, **plain}

    @classmethod
    def from_file(
        cls, path: object, arrays: Mapping[str, np.ndarray], meta: Mapping[str, Any]
    ) -> Record:
        """The record that `to_file` described; ModelError for anything else."""
        try:
            if meta["form"] != FORM:
                raise ValueError(f"expected the form {FORM!r}, found {meta['form']!r}")
            fields: dict[str, Any] = {**arrays, **meta}
            del fields["form"]
            record = cls(**fields)
            episodes = record.config["episodes"]
            shapes = {name: getattr(record, name).shape for name in ARRAYS[:2]}
            if set(shapes.values()) != {(episodes,)}:
                raise ValueError(f"expected {episodes} episodes, found the shapes {shapes}")
            shapes = {name: getattr(record, name).shape for name in ARRAYS[2:4]}
            if not set(shapes.values()) <= {(0,), (episodes,)} or record.plans.ndim != 1:
                raise ValueError(f"expected {episodes} episodes or none, found {shapes}")
        except (KeyError, TypeError, ValueError, AttributeError) as problem:
            raise ModelError(f"{path} is not a run of an experiment: {problem}") from None
        return record


def list_versions() -> dict[str, str]:
    """The software that numbers may depend on."""
    return {
        "numba": version("numba"),
        "numpy": np.__version__,
        "pkd": __version__,
        "python": platform.python_version(),
    }
