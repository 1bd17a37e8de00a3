"""The generic optimistic algorithm: plan from the counts, act for an episode, count, and again.

`Learning` is the algorithm between two episodes: counts, the plan in force, and whether the next
one is due. `learn` runs it in simulation, where the law is given to the simulator and to the exact
values that regret is measured by, never to the planner. `pkd.learner` runs it in a user's own
environment.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Mapping
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, Literal

import numpy as np

from pkd.engine import Compiled
from pkd.engine.belief import Tally
from pkd.engine.bonus import set_marks
from pkd.engine.compiled import Counts, Player
from pkd.explore import overrides
from pkd.model import Law, ModelError
from pkd.optimism import MVP, Optimism
from pkd.planning import Model, Plan, check_schedule, make_plan, resolve, seed_words
from pkd.results.files import read_npz, write_npz
from pkd.results.run import Run
from pkd.results.values import refuse_unwritable
from pkd.simulation import Simulator

__all__ = ["Learning", "learn"]

CHUNK_SECONDS = 0.25  # how often progress is shown and a checkpoint may be written
CHECKPOINT_SECONDS = 5.0

Replan = Literal["doubling", "every"]


def learn(
    model: Model,
    law: Law | int | None = None,
    episodes: int | None = None,
    *,
    optimism: Optimism = MVP(),
    delta: float = 0.05,
    seed: int = 0,
    replan: Replan = "doubling",
    progress: bool = False,
    counts: Counts | None = None,
    checkpoint: str | Path | None = None,
    optimal_value: float | None = None,
) -> Run:
    """A run of the optimistic algorithm: learn(model, law, episodes) or learn(problem, episodes).

    replan: "every" plans before each episode, as published; "doubling" when some N(z) has doubled
    since the last plan: the same order of regret with about |Z| log2(K H) plans. counts:
    {z: {x': n}} to start from. checkpoint: a file that the run is saved to; a run that was stopped
    goes on from it, with the same result to the bit. optimal_value: given, it is not planned again.

    >>> import pkd
    >>> tosses = [[[0.5, 0.5], [1.0, 0.0]], [[0.5, 0.5], [0.0, 1.0]]]
    >>> coin = pkd.TabularMDP(tosses, [[0.0, 0.0], [1.0, 1.0]], horizon=3)
    >>> run = pkd.learn(coin, 2000, optimism=pkd.MVP.practical())
    >>> # The last policy is optimal.
    >>> run.optimal_value, float(run.upper_values[0]), float(run.policy_values[-1])
    (1.25, 2.0, 1.25)
    """
    if episodes is None and not isinstance(law, Mapping) and not callable(law):
        law, episodes = None, law  # learn(problem, episodes)
    check_schedule(episodes, delta, replan)
    count = int(episodes)  # type: ignore[arg-type]
    compiled, found = resolve(model, law)  # type: ignore[arg-type]
    config: dict[str, Any] = {"episodes": count, "optimism": optimism.to_config()}
    config |= {"delta": float(delta), "seed": int(seed), "replan": replan}
    if checkpoint is not None:
        refuse_unwritable(chain(compiled.features, *compiled.outcomes))
    trial = Trial(compiled, found, optimism, config, counts, optimal_value)
    if checkpoint is not None:
        trial.resume(Path(checkpoint))
    with _Bar(count, trial.done, progress) as advance:
        trial.go(advance, None if checkpoint is None else Path(checkpoint))
    return trial.run()


class Learning:
    """The state of the algorithm between two episodes."""

    def __init__(
        self,
        compiled: Compiled,
        optimism: Optimism,
        episodes: int,
        delta: float,
        seed: int,
        counts: Counts | None,
    ) -> None:
        self.compiled, self.bonus = compiled, optimism.bonus()
        self.belief = compiled.optimistic(self.bonus, episodes, delta)
        self.reward_bonus = compiled.reward_bonus(self.bonus, episodes, delta)
        self.tally = compiled.tally(counts)
        self.rng = seed_words(seed)
        self.policy = compiled.policy()
        self.upper = np.nan  # what the plan in force believes
        self.due = True

    def replan(self) -> bool:
        """Makes the next plan from the counts.

        Returns whether its policy differs from the last one.
        """
        self.compiled.estimate(self.belief, self.tally, self.bonus, self.reward_bonus, self.rng)
        self.upper, changed = self.compiled.sweep(self.belief, self.policy, follow=False)
        set_marks(self.tally)
        self.due = False
        return changed

    def lower(self) -> tuple[float, Plan]:
        """(a certified lower value of V*, the robust plan that attains it) from all counts."""
        least = self.compiled.pessimistic(self.belief).copy()
        self.compiled.estimate(least, self.tally, self.bonus, self.reward_bonus, self.rng)
        robust = make_plan(self.compiled, least)
        return robust.value, robust

    def plan(self) -> Plan:
        """The plan in force, which later plans do not change."""
        return Plan(self.compiled, self.belief.copy(), self.policy.copy(), float(self.upper))


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
        episodes = config["episodes"]
        self.compiled, self.config = compiled, config
        self.truth = compiled.truth(law)
        if optimal_value is None:
            optimal_value = make_plan(compiled, self.truth.belief).value
        self.optimal_value = optimal_value
        self.learning = Learning(
            compiled, optimism, episodes, config["delta"], config["seed"], counts
        )
        self.every = config["replan"] == "every"
        self.identity = self._identify(law, counts)
        # Set if the model overrides `samples` without compiled code of its own.
        self.simulator: Simulator | None = None
        self.play = self._player(law)
        self.value = np.nan  # the exact value of the policy in force
        self.uppers, self.values, self.returns = np.zeros((3, episodes))
        self.planned = np.zeros(episodes, bool)
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
        fused = self.compiled.fused_loop(self) if self.every and self._is_plain else None
        self._compile_kernels(fused)
        episodes, size, saved = self.config["episodes"], 1, time.perf_counter()
        while self.done < episodes:
            began = time.perf_counter()
            chunk = slice(self.done, min(self.done + size, episodes))
            if fused is not None:
                fused(chunk)
            else:
                self._play_chunk(chunk)
            self.done = chunk.stop
            now = time.perf_counter()
            self.seconds += now - began
            size = max(1, min(4 * size, int(size * CHUNK_SECONDS / max(now - began, 1e-6))))
            advance(chunk.stop - chunk.start)
            if checkpoint is not None and (
                now - saved > CHECKPOINT_SECONDS or self.done == episodes
            ):
                self.save(checkpoint)
                saved = now

    @property
    def _is_plain(self) -> bool:
        """Whether an episode teaches what it visited."""
        return not overrides(self.compiled.model, "samples")

    def _play_chunk(self, chunk: slice) -> None:
        """The loop: plan when due, play until the next plan is due, record the values in force."""
        learning, k = self.learning, chunk.start
        while k < chunk.stop:
            if self.every or learning.due:
                self.planned[k] = True
                if learning.replan() or np.isnan(self.value):
                    self.value, _ = self.compiled.sweep(
                        self.truth.belief, learning.policy, follow=True
                    )
            stop = k + 1 if self.every else chunk.stop
            count, due = self.play(
                learning.policy, learning.tally, learning.rng, self.returns[k:stop]
            )
            self.uppers[k : k + count], self.values[k : k + count] = learning.upper, self.value
            learning.due |= due
            k += count

    def _compile_kernels(self, fused: Callable[[slice], None] | None) -> None:
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
        return Run(
            upper_values=self.uppers,
            policy_values=self.values,
            returns=self.returns,
            plans=np.flatnonzero(self.planned),
            optimal_value=self.optimal_value,
            counts=self.compiled.named_counts(self.learning.tally),
            config={"model": type(self.compiled.model).__name__, **self.config},
            seconds=self.seconds,
            policy=self.learning.plan(),
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
        mine, progress = self._arrays(), arrays.pop("progress", np.zeros(0))
        sizes = {name: array.shape for name, array in mine.items()}
        per_episode = ("uppers", "values", "returns", "planned")
        done = int(progress[0]) if progress.shape == (4,) else -1
        expected = {
            name: (done,) if name in per_episode else sizes[name]
            for name in sizes
            if name != "progress"
        }
        if {
            name: array.shape for name, array in arrays.items()
        } != expected or not 0 <= done <= self.config["episodes"]:
            raise ModelError(f"{path} is damaged: its arrays do not fit the run")
        self.compiled.check_policy(arrays["policy"])
        if self.simulator is not None:
            self.simulator.reveal_rng.bit_generator.state = meta["reveal"]
        self.done, self.seconds = done, float(progress[1])
        self.learning.upper, self.value = map(float, progress[2:4])
        self.learning.due = bool(arrays.pop("due")[0])
        for name, array in arrays.items():
            (getattr(self, name)[:done] if name in per_episode else mine[name])[...] = array

    def _identify(self, law: Law, counts: Counts | None) -> dict[str, Any]:
        """A fingerprint of everything that the result depends on."""
        digest = hashlib.sha256(self.compiled.fingerprint.encode())
        for part in (
            *self.truth.belief[:3],
            *self.truth.world,
            *self.learning.tally,
            self.learning.belief.ell,
        ):
            digest.update(np.ascontiguousarray(part).tobytes())
        name, optimum = type(self.compiled.model).__name__, float(self.optimal_value).hex()
        return {"model": name, "run": digest.hexdigest(), "optimum": optimum, **self.config}

    def _arrays(self) -> dict[str, np.ndarray]:
        done, learning = self.done, self.learning
        tally = {f"tally_{name}": array for name, array in learning.tally._asdict().items()}
        parts = ("p", "mean", "n", "radius", *(["draws"] if learning.belief.draws.size else []))
        belief = {f"belief_{name}": getattr(learning.belief, name) for name in parts}
        return {
            "progress": np.array([done, self.seconds, learning.upper, self.value]),
            "due": np.array([learning.due]),
            "rng": learning.rng,
            "policy": learning.policy,
            "uppers": self.uppers[:done],
            "values": self.values[:done],
            "returns": self.returns[:done],
            "planned": self.planned[:done],
            **tally,
            **belief,
        }


class _Bar:
    """A progress bar, or nothing."""

    def __init__(self, total: int, done: int, wanted: bool) -> None:
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
