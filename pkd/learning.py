"""`learn`: a run of the optimistic algorithm in simulation, with its exact regret.

The law is given to the simulator and to the exact values that regret is measured by, never to the
planner.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Mapping
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from pkd.algorithm import Learning
from pkd.engine import Compiled
from pkd.engine.belief import Tally
from pkd.engine.compiled import Counts, Player
from pkd.explore import overrides
from pkd.model import Law, ModelError
from pkd.optimism import Certified, Optimism
from pkd.planning import Model, Plan, check_schedule, make_plan, resolve
from pkd.results.files import DAMAGE, read_npz, write_npz
from pkd.results.run import Run
from pkd.results.values import refuse_unwritable
from pkd.schedule import NAMED, NEVER, Replan, Schedule, read_schedule
from pkd.simulation import Simulator

__all__ = ["Trial", "learn"]

CHUNK_SECONDS = 0.25  # how often progress is shown and a checkpoint may be written
CHECKPOINT_SECONDS = 5.0
# Lower values are computed at the first plan after the episodes have grown by this factor.
LOWER = Replan(features=None, growth=1.1)
RESERVED = 1 << 16  # episodes for which memory is taken at first
PER_EPISODE = ("uppers", "lowers", "values", "returns", "planned")


def learn(
    model: Model,
    law: Law | int | None = None,
    episodes: int | None = None,
    *,
    optimism: Optimism = Certified(),
    delta: float = 0.05,
    seed: int = 0,
    replan: Schedule = "doubling",
    until: float | None = None,
    progress: bool = False,
    counts: Counts | None = None,
    checkpoint: str | Path | None = None,
    optimal_value: float | None = None,
) -> Run:
    """A run of the optimistic algorithm: learn(model, law, episodes) or learn(problem, episodes).

    replan: "every" plans before each episode, as published; "doubling" when some N(z) has doubled
    since the last plan: the same order of regret with about |Z| log2(K H) plans; `pkd.Replan` has
    other schedules. until: the run stops as soon as the certified gap, upper less lower value, is
    at most this; it needs `pkd.Certified` and no number of episodes. counts: {z: {x': n}} to start
    from. checkpoint: a file that the run is saved to; a run that was stopped goes on from it, with
    the same result to the bit. optimal_value: given, it is not planned again.

    >>> import pkd
    >>> tosses = [[[0.5, 0.5], [1.0, 0.0]], [[0.5, 0.5], [0.0, 1.0]]]
    >>> coin = pkd.TabularMDP(tosses, [[0.0, 0.0], [1.0, 1.0]], horizon=3)
    >>> run = pkd.learn(coin, 2000)
    >>> # The last policy is optimal.
    >>> run.optimal_value, float(run.upper_values[0]), float(run.policy_values[-1])
    (1.25, 2.0, 1.25)
    >>> found = pkd.learn(coin, until=0.5)  # the robust plan is within 0.5 of the optimum
    >>> found.gap <= 0.5, found.interval.low <= 1.25 <= found.interval.high
    (True, True)
    """
    if episodes is None and not isinstance(law, Mapping) and not callable(law):
        law, episodes = None, law  # learn(problem, episodes)
    schedule = _check(episodes, delta, replan, until, optimism)
    compiled, found = resolve(model, law)  # type: ignore[arg-type]
    compiled = compiled.suited_to(optimism.bonus())
    config: dict[str, Any] = {"episodes": None if episodes is None else int(episodes)}
    config |= {"optimism": optimism.to_config(), "delta": float(delta), "seed": int(seed)}
    config |= {"replan": schedule.text, "until": None if until is None else float(until)}
    if checkpoint is not None:
        refuse_unwritable(chain(compiled.features, *compiled.outcomes))
    trial = Trial(compiled, found, optimism, config, counts, optimal_value)
    if checkpoint is not None:
        trial.resume(Path(checkpoint))
    with _Bar(config["episodes"], trial.done, progress) as advance:
        trial.go(advance, None if checkpoint is None else Path(checkpoint))
    return trial.run()


def _check(episodes: Any, delta: Any, replan: Schedule, until: Any, optimism: Optimism) -> Replan:
    """The schedule of plans; one ModelError names everything that is wrong."""
    findings: list[str] = []
    schedule = NAMED["doubling"]
    for check in (
        lambda: check_schedule(1 if episodes is None and until is not None else episodes, delta),
        lambda: read_schedule(replan),
    ):
        try:
            schedule = check() or schedule
        except ModelError as error:
            findings.extend(error.findings)
    if until is not None:
        if isinstance(until, bool) or not isinstance(until, int | float) or not until > 0:
            findings.append(f"until is {until!r}; expected a number > 0, in units of the return")
        if optimism.guarantee != "certified":
            findings.append(f"until needs certified values; {optimism.label} has none")
        if replan == "doubling":  # a gap that is looked at more often is found earlier
            schedule = Replan(features=2.0, growth=LOWER.growth)
    if findings:
        raise ModelError(findings)
    return schedule


class Trial:
    """A run in progress: everything that the next episode depends on."""

    def __init__(
        self,
        compiled: Compiled,
        law: Law,
        optimism: Optimism,
        config: dict[str, Any],
        counts: Counts | None = None,
        optimal_value: float | None = None,
    ) -> None:
        self.compiled, self.config = compiled, config
        self.learning = Learning(
            compiled, optimism, config["episodes"], config["delta"], config["seed"], counts,
            read_schedule(config["replan"]),
        )  # fmt: skip
        self.truth = compiled.truth(law)
        if optimal_value is None:
            optimal_value = make_plan(compiled, self.truth.belief).value
        self.optimal_value = optimal_value
        self.every = self.learning.schedule == NAMED["every"]
        self.last = NEVER if config["episodes"] is None else config["episodes"]
        self.identity = self._identify(law, counts)
        # Set if the model overrides `samples` without compiled code of its own.
        self.simulator: Simulator | None = None
        self.play = self._player(law)
        self.value = np.nan  # the exact value of the policy in force
        self.lower = np.nan  # the last certified lower value of V*
        self.lower_at = 0  # the number of episodes from which on it is computed anew
        self.reached = False  # the certified gap is small enough
        size = min(self.last, RESERVED)
        self.uppers, self.lowers, self.values, self.returns = np.zeros((4, size))
        self.planned = np.zeros(size, bool)
        self.done = 0
        self.seconds = 0.0

    def _player(self, law: Law) -> Player:
        """What plays episodes: compiled code, or one at a time where hindsight needs a record."""
        compiled = self.compiled
        if not overrides(compiled.model, "samples"):
            return partial(compiled.episodes, self.truth.world)
        player = compiled.model.hindsight(compiled, self.truth, law)
        if player is not None:
            return player
        self.simulator = Simulator(compiled, law, seed=self.config["seed"])
        self.simulator.truth = self.truth
        return self._play_recorded

    def _play_recorded(
        self, policy: np.ndarray, tally: Tally, rng: np.ndarray, returns: np.ndarray
    ) -> tuple[int, bool]:
        """Records one episode and asks the model what it teaches."""
        assert self.simulator is not None
        if not len(returns):
            return 0, False
        counts, n = np.zeros_like(tally.counts), np.zeros_like(tally.n)
        visited = tally._replace(counts=counts, n=n, marks=np.full_like(n, np.inf))
        plan = Plan(self.compiled, self.learning.belief, policy, self.learning.upper)
        episode, due = self.simulator.draw(plan, visited, rng)
        returns[0] = episode.total
        return 1, self.compiled.count(tally, self.compiled.model.samples(episode)) or due

    def go(self, advance: Callable[[int], None], checkpoint: Path | None) -> None:
        """Plays all episodes that are left, in chunks of a fraction of a second."""
        quick = self.every and self._is_plain and not self.learning.timed
        fused = self.compiled.fused_loop(self) if quick else None
        self._compile_kernels(fused)
        size, saved = 1, time.perf_counter()
        while self.done < self.last and not self.reached:
            began, before = time.perf_counter(), self.done
            stop = min(self.done + size, self.last)
            self._reserve(stop)
            if fused is None:
                self._play_chunk(stop)
            else:
                self._play_fused(fused, stop)
            now, played = time.perf_counter(), self.done - before
            self.seconds += now - began
            size = max(1, min(4 * size, int(played * CHUNK_SECONDS / max(now - began, 1e-6))))
            advance(played)
            ended = self.done == self.last or self.reached
            if checkpoint is not None and (now - saved > CHECKPOINT_SECONDS or ended):
                self.save(checkpoint)
                saved = now

    @property
    def _is_plain(self) -> bool:
        """Whether an episode teaches what it visited."""
        return not overrides(self.compiled.model, "samples")

    def _play_chunk(self, stop: int) -> None:
        """The loop: plan when due, play until the next plan is due, record the values in force."""
        learning = self.learning
        while self.done < stop:
            k = self.done
            if learning.due or k >= learning.due_at:
                self.planned[k] = True
                if learning.replan() or np.isnan(self.value):
                    self.value, _ = self.compiled.sweep(
                        self.truth.belief, learning.policy, follow=True
                    )
                if self._find_lower(k):
                    return
            most = min(stop, learning.due_at)
            count, due = self.play(
                learning.policy, learning.tally, learning.rng, self.returns[k:most]
            )
            self._record(k, count)
            self.values[k : k + count], self.uppers[k : k + count] = self.value, learning.upper
            learning.due |= due

    def _play_fused(self, fused: Callable[[slice], int], stop: int) -> None:
        """The same loop with a plan before every episode, as one compiled call."""
        learning, k = self.learning, self.done
        learning.renew()
        if self._find_lower(k, fresh=True):
            return
        last = min(stop, learning.most_episodes)
        if learning.certified:
            last = min(last, self.lower_at)
        self._record(k, fused(slice(k, last)))

    def _record(self, k: int, count: int) -> None:
        self.lowers[k : k + count] = self.lower
        self.done = self.learning.done = k + count

    def _find_lower(self, k: int, *, fresh: bool = False) -> bool:
        """Renews the certified lower value if it is time; returns whether the gap is reached.

        fresh: the plan in force is not that of the present counts.
        """
        if not self.learning.certified or k < self.lower_at:
            return False
        self.lower_at = LOWER.next_due(k)
        found = self.learning.find_interval(fresh=fresh)
        self.lower, until = found.low, self.config["until"]
        # A run has at least one episode, also where nothing has to be learned.
        self.reached = until is not None and k > 0 and found.high - found.low <= until
        return self.reached

    def _reserve(self, size: int) -> None:
        """Makes room for so many episodes."""
        if size > len(self.returns):
            more = min(max(size, 2 * len(self.returns)), self.last)
            for name in PER_EPISODE:
                array = getattr(self, name)
                grown = np.zeros(more, array.dtype)
                grown[: len(array)] = array
                setattr(self, name, grown)

    def _compile_kernels(self, fused: Callable[[slice], int] | None) -> None:
        """Calls everything once with nothing to do: compiling is not part of the time of a run."""
        learning, compiled = self.learning, self.compiled
        scratch, rng = learning.belief.copy(), learning.rng.copy()
        compiled.estimate(scratch, learning.tally, learning.bonus, learning.reward_bonus, rng)
        if fused is not None:
            fused(slice(0, 0))
        else:
            self.play(learning.policy, learning.tally, learning.rng, self.returns[:0])

    def run(self) -> Run:
        """The record of the finished run."""
        done, learning = self.done, self.learning
        config = {"model": type(self.compiled.model).__name__, **self.config, "episodes": done}
        return Run(
            upper_values=self.uppers[:done],
            lower_values=self.lowers[:done] if learning.certified else None,
            policy_values=self.values[:done],
            returns=self.returns[:done],
            plans=np.flatnonzero(self.planned[:done]),
            optimal_value=self.optimal_value,
            counts=self.compiled.named_counts(learning.tally),
            config=config,
            seconds=self.seconds,
            policy=learning.plan(),
            interval=learning.find_interval() if learning.certified else None,
        )

    # -- stopping and going on ---------------------------------------------------------------------

    def save(self, path: Path) -> None:
        """Everything that the next episode depends on, atomically."""
        reveal = None if self.simulator is None else self.simulator.reveal_rng.bit_generator.state
        write_npz(path, self._arrays(), {"checkpoint": self.identity, "reveal": reveal})

    def resume(self, path: Path) -> None:
        """Goes on from a checkpoint, if there is one; that of another run is refused."""
        if not path.exists():
            return
        arrays, meta = read_npz(path)
        if meta.get("checkpoint") != self.identity:
            raise ModelError(
                f"{path} is the checkpoint of another run; expected {self.identity}, found "
                f"{meta.get('checkpoint')}"
            )
        progress = arrays.pop("progress", np.zeros(0))
        sound = progress.shape == (5,) and progress.dtype == np.float64
        done = int(progress[0]) if sound and np.isfinite(progress[[0, 1, 4]]).all() else -1
        kept = {name: arrays.pop(name, np.zeros(0)) for name in PER_EPISODE}
        if done < 0 or any(
            (array.shape, array.dtype) != ((done,), getattr(self, name).dtype)
            for name, array in kept.items()
        ):
            raise ModelError(f"{path} is damaged: its arrays do not fit the run")
        if done > self.last:
            raise ModelError(
                f"{path} has {done:,} episodes; expected at most the {self.last:,} of this run"
            )
        try:
            self.learning.restore(arrays)
            if self.simulator is not None:
                self.simulator.reveal_rng.bit_generator.state = meta["reveal"]
        except DAMAGE as error:
            raise ModelError(f"{path} is damaged: {' '.join(str(error).split())}") from None
        self.done, self.seconds, self.value, self.lower = done, *map(float, progress[1:4])
        self.lower_at = int(progress[4])
        self._reserve(done)
        for name, array in kept.items():
            getattr(self, name)[:done] = array

    def _identify(self, law: Law, counts: Counts | None) -> dict[str, Any]:
        """A fingerprint of everything that the result depends on.

        The number of episodes and the gap at which a run stops belong to it only where they change
        what is played before: without them a run can be continued.
        """
        digest = hashlib.sha256(self.compiled.fingerprint.encode())
        for part in (
            *self.truth.belief[:3],
            *self.truth.world,
            *self.learning.tally,
            self.learning.belief.ell,
        ):
            digest.update(np.ascontiguousarray(part).tobytes())
        name, optimum = type(self.compiled.model).__name__, float(self.optimal_value).hex()
        config = {key: value for key, value in self.config.items() if key != "until"}
        if not self.learning.bonus.needs_episodes:
            del config["episodes"]
        return {"model": name, "run": digest.hexdigest(), "optimum": optimum, **config}

    def _arrays(self) -> dict[str, np.ndarray]:
        progress = [self.done, self.seconds, self.value, self.lower, self.lower_at]
        return {
            "progress": np.array(progress, float),
            **{name: getattr(self, name)[: self.done] for name in PER_EPISODE},
            **self.learning.to_arrays(),
        }


class _Bar:
    """A progress bar, or nothing."""

    def __init__(self, total: int | None, done: int, wanted: bool) -> None:
        self.bar: Any = None
        if wanted:
            from tqdm import tqdm

            self.bar = tqdm(
                total=total, initial=done, unit=" episodes", unit_scale=True, leave=False
            )

    def __enter__(self) -> Callable[[int], None]:
        return (lambda count: None) if self.bar is None else self.bar.update

    def __exit__(self, *exception: object) -> None:
        if self.bar is not None:
            self.bar.close()
