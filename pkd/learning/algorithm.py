"""The generic optimistic algorithm: plan from the counts, act for an episode, count, and again.

`Learning` is the algorithm between two episodes: counts, the plan in force, and whether the next
one is due. `learn` runs it in simulation, `learner` in a user's own environment.
"""

from __future__ import annotations

import math
from itertools import compress

import attrs
import numpy as np

from pkd.engine import Compiled
from pkd.engine.belief import Belief, find_belief_fault
from pkd.engine.compiled import Counts
from pkd.model import ModelError
from pkd.optimism import CERTIFIED, Bonus, Optimism
from pkd.planning.estimator import Estimator, narrow, prove, split
from pkd.planning.plan import Plan, make_plan, seed_words
from pkd.results.run import CertifiedInterval
from pkd.rules.schedule import NEVER, Replan

MOST_EPOCHS = 62  # 2^62 episodes are NEVER
# The parts of a belief that counts and time change.
KEPT = ("p", "mean", "n", "ell", "radius", "told")


class Learning:
    """The state of the algorithm between two episodes: what it acts by, and what it has proved."""

    def __init__(
        self,
        compiled: Compiled,
        optimism: Optimism,
        episodes: int | None,
        delta: float,
        seed: int,
        counts: Counts | None,
        schedule: Replan = Replan(),
    ) -> None:
        self.compiled = compiled
        self.acting = Estimator(compiled, optimism, episodes, delta)
        self.proving = Estimator(compiled, prove(compiled), None, split(compiled, delta))
        # Whether the value of every plan is an upper value of V*.
        self.certified = self.bonus.form == CERTIFIED and self.bonus.exogenous is None
        self.certified &= not self.bonus.rate
        # Bounds of the visits of each feature and reward in an episode, for `Certified.rate`.
        size = len(compiled.features) + len(compiled.rewards)
        self.most = np.full(size if self.bonus.rate else 0, math.inf)
        self.looked = 0  # the number of episodes when they were found
        self.tally = compiled.tally(counts)
        self.rng = seed_words(seed)
        if self.bonus.rate and schedule.growth is None and schedule.period is None:
            schedule = attrs.evolve(schedule, growth=2.0)
        self.schedule = schedule
        self.tally.spent[0] = schedule.slack
        self.policy = compiled.policy()
        self.done = 0  # episodes
        self.due_at = 0  # the number of episodes at which the next plan is due at the latest
        self.due = True
        self.upper = np.nan  # the value of the plan in force
        self.renew()

    @property
    def bonus(self) -> Bonus:
        """The numbers of the rule that is acted by."""
        return self.acting.bonus

    @property
    def belief(self) -> Belief:
        """What is acted by."""
        return self.acting.belief

    @property
    def reward_bonus(self) -> np.ndarray:
        """The same of unknown rewards."""
        return self.acting.reward_bonus

    @property
    def unexplored(self) -> tuple[str, ...]:
        """Labels of the features, then of the rewards, that are taken as they are estimated."""
        if self.bonus.exogenous is None:
            return ()
        names = [*self.compiled.features, *self.compiled.reward_index]
        found = list(compress(names, self.bonus.exogenous))
        try:
            return tuple(map(self.compiled.model.feature_label, found))
        except Exception:  # noqa: BLE001 - labels are the user's code; no run is lost for them
            return tuple(map(repr, found))

    def renew(self) -> None:
        """Brings what depends on the episode up to date."""
        self.acting.renew(self.done + 1, self.tally)

    def replan(self) -> bool:
        """Makes the next plan from the counts.

        Returns whether its policy differs from the last one.
        """
        self.renew()
        if self.bonus.rate:
            self._choose_explored()
        self.acting.fill(self.tally, self.rng, rank=True)
        self.upper, changed = self.compiled.sweep(self.belief, self.policy, follow=False)
        self.tally.set_marks(self.schedule.features or math.inf)
        self.due, self.due_at = False, self.schedule.next_due(self.done)
        return changed

    def _choose_explored(self) -> None:
        """Takes all estimates as they are where data come at the rate, else those of the rule."""
        if self.done + 1 >= 2 * self.looked:
            self.looked = self.done + 1
            sets = self.proving.belief
            self.proving.fill(self.tally, self.rng, rank=True, belief=sets)
            found = [self.compiled.find_visits(sets, z, most=True) for z in range(len(self.most))]
            self.most = np.minimum(self.most, found)
        mask = self.bonus.exogenous
        mask = np.zeros(len(self.most), np.bool_) if mask is None else mask
        n = np.concatenate([self.tally.n, self.tally.rewards[0]])
        enough = (n > 0) & (n >= self.bonus.rate * (self.done + 1) * self.most)
        if enough[~mask].all():
            mask = np.ones(len(self.most), np.bool_)
        self.acting.belief = self.acting.belief._replace(exogenous=mask)

    @property
    def most_episodes(self) -> int:
        """The logarithms in force hold until so many episodes have been played."""
        return 1 << self.acting.epoch if self.bonus.anytime else NEVER

    @property
    def most_samples(self) -> float:
        """The logarithms in force hold while no feature has more samples."""
        most = self.compiled.horizon << max(self.acting.epoch, 0)
        return float(most) if self.bonus.anytime else math.inf

    # -- what the counts prove ---------------------------------------------------------------------

    def find_interval(self, *, exact: bool = False) -> CertifiedInterval:
        """Certified bounds of V* from all counts, whatever rule collected them; the robust plan.

        exact: the extreme values over the sets to 1e-9 of the range, unless that takes very long.
        """
        proving, compiled = self.proving, self.compiled
        rounds = proving.bonus.rounds if exact else self.acting.bonus.rounds
        largest = proving.belief._replace(rounds=rounds)
        least = compiled.pessimistic(largest).copy()
        for belief in (largest, least):
            proving.fill(self.tally, self.rng, rank=True, belief=belief)
        robust = make_plan(compiled, least)
        high = make_plan(compiled, narrow(compiled, largest, self.tally)).value
        return CertifiedInterval(robust.value, high, robust)

    def find_lower(self) -> float:
        """The lower value of V* by the sets that are acted by: it holds with all upper values."""
        least = self.compiled.pessimistic(self.belief).copy()
        self.acting.fill(self.tally, self.rng, rank=True, belief=least)
        return make_plan(self.compiled, least).value

    def plan(self) -> Plan:
        """The plan in force, which later plans do not change."""
        return Plan(self.compiled, self.belief.copy(), self.policy.copy(), float(self.upper))

    # -- stopping and going on ---------------------------------------------------------------------

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Everything that the next plan and the next episode depend on."""
        arrays = {f"tally_{name}": array for name, array in self.tally._asdict().items()}
        arrays |= {f"belief_{name}": getattr(self.belief, name) for name in KEPT}
        if self.bonus.rate:
            arrays["most"] = np.append(self.most, self.looked)
        return arrays | {
            "rng": self.rng,
            "policy": self.policy,
            "reward_bonus": self.reward_bonus,
            "upper": np.array([self.upper]),
            "steps": np.array([self.done, self.due_at, self.acting.epoch, self.due], np.int64),
        }

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        """Goes on from what `to_arrays` gave; arrays that do not fit are a ModelError."""
        mine = self.to_arrays()
        findings = [
            f"{name}: expected {mine[name].dtype} of shape {mine[name].shape}, found "
            + (f"{arrays[name].dtype} of shape {arrays[name].shape}" if name in arrays else "none")
            for name in mine
            if name not in arrays
            or (arrays[name].shape, arrays[name].dtype) != (mine[name].shape, mine[name].dtype)
        ]
        if findings:
            raise ModelError(findings)
        self.compiled.check_policy(arrays["policy"])
        sets, rank, steps = len(self.proving.belief.budget), arrays["tally_rank"], arrays["steps"]
        if not ((rank >= 0) & (rank < sets)).all():
            findings.append(f"tally_rank: expected numbers from 0 to {sets - 1}")
        if (steps[[0, 1, 3]] < 0).any() or not -1 <= steps[2] < MOST_EPOCHS:
            findings.append(f"steps: found {steps.tolist()}, which no run has")
        findings += [
            f"{name}: expected finite numbers >= 0"
            for name in ("tally_counts", "tally_n")
            if not (np.isfinite(arrays[name]) & (arrays[name] >= 0)).all()
        ]
        findings += [
            f"{name}: expected numbers above 0"
            for name in ("tally_marks", "tally_reward_marks")
            if not (arrays[name] > 0).all()
        ]
        beliefs = (name for name in mine if name.startswith("belief_"))
        faults = (find_belief_fault(name.removeprefix("belief_"), arrays[name]) for name in beliefs)
        findings += [f"belief_{fault}" for fault in faults if fault]
        if np.isinf(arrays["upper"]).any():
            findings.append("upper: expected a finite number")
        if self.bonus.rate and not (arrays["most"] >= 0).all():
            findings.append("most: expected numbers >= 0")
        if findings:
            raise ModelError(findings)
        for name, array in mine.items():
            array[...] = arrays[name]
        self.upper = float(mine["upper"][0])
        if self.bonus.rate:
            self.most, self.looked = mine["most"][:-1], int(mine["most"][-1])
        self.done, self.due_at, self.acting.epoch, due = (int(step) for step in mine["steps"])
        self.due = bool(due)
