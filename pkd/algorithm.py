"""The generic optimistic algorithm: plan from the counts, act for an episode, count, and again.

`Learning` is the algorithm between two episodes: counts, the plan in force, and whether the next
one is due. `pkd.learning` runs it in simulation, `pkd.learner` in a user's own environment.
"""

from __future__ import annotations

import math

import numpy as np

from pkd.engine import Compiled
from pkd.engine.belief import Belief
from pkd.engine.compiled import Counts
from pkd.model import ModelError
from pkd.optimism import CERTIFIED, Optimism
from pkd.planning import Plan, make_plan, seed_words
from pkd.results.run import Interval
from pkd.schedule import NEVER, Replan

__all__ = ["Learning"]


class Learning:
    """The state of the algorithm between two episodes."""

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
        self.bonus, self.delta, self.optimism = optimism.bonus(), delta, optimism
        self.compiled = compiled
        self.certified = self.bonus.form == CERTIFIED
        self.timed = optimism.log_factor_at(1) is not None  # its logarithm depends on the episode
        if episodes is None and self.bonus.needs_episodes and not self.timed:
            raise ModelError(
                f"{optimism.label}: its logarithms depend on the number of episodes of the whole "
                "run; give episodes, or optimism=pkd.Certified()"
            )
        self.belief = compiled.optimistic(self.bonus, episodes or 1, delta)
        self.reward_bonus = compiled.reward_bonus(self.bonus, episodes or 1, delta)
        self.tally = compiled.tally(counts)
        self.rng = seed_words(seed)
        self.schedule = schedule
        self.policy = compiled.policy()
        self.done = 0  # episodes
        self.due_at = 0  # the number of episodes at which the next plan is due at the latest
        self.due = True
        self.upper = np.nan  # what the plan in force believes
        self.epoch = -1  # anytime rules: the logarithms hold for 2^epoch episodes
        self.renew()

    def replan(self) -> bool:
        """Makes the next plan from the counts.

        Returns whether its policy differs from the last one.
        """
        self.renew()
        self.estimate(self.belief)
        self.upper, changed = self.compiled.sweep(self.belief, self.policy, follow=False)
        self.tally.set_marks(self.schedule.features or math.inf)
        self.due, self.due_at = False, self.schedule.next_due(self.done)
        return changed

    def estimate(self, belief: Belief) -> None:
        """Fills a belief from the counts."""
        self.compiled.estimate(
            belief, self.tally, self.bonus, self.reward_bonus, self.rng, rank=True
        )

    # -- anytime rules -----------------------------------------------------------------------------

    def renew(self) -> None:
        """Brings what depends on the episode up to date: the logarithms of an anytime rule.

        They are those of K = 2^j episodes and delta / ((j + 1) (j + 2)), with the least j for which
        the next episode is one of the K and no feature has more than K H samples.
        """
        k = self.done + 1
        if self.timed:
            self.belief.ell[:] = self.reward_bonus[0] = self.optimism.log_factor_at(k)
        if self.belief.rule is not None:
            self.belief = self.belief._replace(rule=(self.belief.rule[0], k))
        if not self.bonus.anytime:
            return
        samples = math.ceil(self.tally.most_seen() / self.compiled.horizon)
        epoch = (max(self.done + 1, samples) - 1).bit_length()
        if epoch != self.epoch:
            self.epoch = epoch
            delta = self.delta / divisor_of(epoch)
            self.compiled.fill_logarithms(self.belief.ell, self.bonus, 1 << epoch, delta)
            self.reward_bonus[0] = self.compiled.reward_bonus(self.bonus, 1 << epoch, delta)[0]

    @property
    def most_episodes(self) -> int:
        """The logarithms in force hold until so many episodes have been played."""
        return 1 << self.epoch if self.bonus.anytime else NEVER

    @property
    def most_samples(self) -> float:
        """The logarithms in force hold while no feature has more samples."""
        return float(self.compiled.horizon << self.epoch) if self.bonus.anytime else math.inf

    # -- what the counts prove ---------------------------------------------------------------------

    def find_interval(self, *, fresh: bool = True) -> Interval:
        """Certified bounds of V* from all counts, and the robust plan.

        fresh: the upper bound is computed anew; otherwise it is that of the plan in force.
        """
        least = self.compiled.pessimistic(self.belief).copy()
        self.estimate(least)
        robust = make_plan(self.compiled, least)
        if not fresh:
            return Interval(robust.value, float(self.upper), robust)
        largest = self.belief.copy()
        self.renew()
        self.estimate(largest)
        return Interval(robust.value, make_plan(self.compiled, largest).value, robust)

    def plan(self) -> Plan:
        """The plan in force, which later plans do not change."""
        return Plan(self.compiled, self.belief.copy(), self.policy.copy(), float(self.upper))

    # -- stopping and going on ---------------------------------------------------------------------

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Everything that the next plan and the next episode depend on."""
        arrays = {f"tally_{name}": array for name, array in self.tally._asdict().items()}
        kept = (*KEPT, "draws") if self.belief.draws.size else KEPT
        arrays |= {f"belief_{name}": getattr(self.belief, name) for name in kept}
        return arrays | {
            "rng": self.rng,
            "policy": self.policy,
            "reward_bonus": self.reward_bonus,
            "upper": np.array([self.upper]),
            "steps": np.array([self.done, self.due_at, self.epoch, self.due], np.int64),
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
        sets, rank, steps = len(self.belief.budget), arrays["tally_rank"], arrays["steps"]
        if not ((rank >= 0) & (rank < sets)).all():
            findings.append(f"tally_rank: expected numbers from 0 to {sets - 1}")
        if (steps[[0, 1, 3]] < 0).any() or not -1 <= steps[2] < MOST_EPOCHS:
            findings.append(f"steps: found {steps.tolist()}, which no run has")
        findings += [
            f"{name}: expected finite numbers >= 0"
            for name in ("tally_counts", "tally_n", "belief_p", "belief_n")
            if not (np.isfinite(arrays[name]) & (arrays[name] >= 0)).all()
        ]
        if findings:
            raise ModelError(findings)
        for name, array in mine.items():
            array[...] = arrays[name]
        self.upper = float(mine["upper"][0])
        self.done, self.due_at, self.epoch, due = (int(step) for step in mine["steps"])
        self.due = bool(due)


MOST_EPOCHS = 62  # 2^62 episodes are NEVER


def divisor_of(epoch: int) -> int:
    """By which delta is divided for the logarithms of an epoch; the parts of all sum to delta.

    >>> divisor_of(0), round(sum(1 / divisor_of(j) for j in range(1000)), 3)
    (2, 0.999)
    """
    return (epoch + 1) * (epoch + 2)


KEPT = ("p", "mean", "n", "ell", "radius")  # the parts of a belief that counts and time change
