"""The generic optimistic algorithm in simulation: plan from the counts, act for an episode, count, and again (the paper's algorithm for
partially known dynamics). The law is given to the simulator and to the exact values that regret is measured by, never to the planner.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal

import numpy as np

from pkd.compiled import Compiled
from pkd.engines import compile
from pkd.kernels import flat
from pkd.model import Law, ModelError, PartiallyKnownMDP
from pkd.optimism import MVP, Optimism
from pkd.planning import Model, Plan, checked_schedule, planned, seeded
from pkd.results.run import Run
from pkd.simulation import Recorder
from pkd.results.files import read_npz, write_npz

__all__ = ["learn"]

CHUNK_SECONDS = 0.25  # how often progress is shown and a checkpoint may be written
CHECKPOINT_SECONDS = 5.0


def learn(
    model: Model,
    law: Law,
    episodes: int,
    *,
    optimism: Optimism = MVP(),
    delta: float = 0.05,
    seed: int = 0,
    replan: Literal["doubling", "every"] = "doubling",
    progress: bool = False,
    counts: Mapping[Any, Mapping[Any, float]] | None = None,
    checkpoint: str | Path | None = None,
    optimal_value: float | None = None,
) -> Run:
    """A run of the optimistic algorithm against the given law.

    replan: "every" plans before each episode, as published; "doubling" when some N(z) has doubled since the last plan: the same order of
    regret with about |Z| log2(K H) plans. counts: {z: {x': n}} to start from. checkpoint: a file in which the run is kept as it goes; a
    run that was stopped goes on from it, with the same result to the bit. optimal_value: that of the law, where it is known already.

    >>> import pkd
    >>> coin = pkd.TabularMDP([[[0.5, 0.5], [1.0, 0.0]], [[0.5, 0.5], [0.0, 1.0]]], [[0.0, 0.0], [1.0, 1.0]], horizon=3)
    >>> run = pkd.learn(coin.model(), coin.law(), 2000, optimism=pkd.MVP.practical())
    >>> run.optimal_value, float(run.upper_values[0]), float(run.policy_values[-1])  # unseen states are hoped for; the last policy is best
    (1.25, 2.0, 1.25)
    """
    checked_schedule(episodes, delta, replan)
    compiled = compile(model)
    config = {"episodes": int(episodes), "optimism": optimism.to_config(), "delta": delta, "seed": seed, "replan": replan}
    trial = Trial(compiled, law, optimism, delta, seed, config, counts, optimal_value)
    if checkpoint is not None:
        trial.resume(Path(checkpoint))
    with _Bar(episodes, trial.done, progress) as advance:
        trial.go(advance, None if checkpoint is None else Path(checkpoint))
    return trial.run()


class Trial:
    """A run in progress: everything that the next episode depends on."""

    def __init__(
        self, compiled: Compiled, law: Law, optimism: Optimism, delta: float, seed: int, config: dict[str, Any], counts: Any = None,
        optimal_value: float | None = None,
    ) -> None:
        episodes = config["episodes"]
        self.compiled, self.config, self.optimism = compiled, config, optimism
        self.bonus = optimism.bonus()
        self.truth, self.world = compiled.truth(law), compiled.world(law)
        self.optimal_value = planned(compiled, self.truth).value if optimal_value is None else optimal_value
        self.belief = compiled.optimistic(self.bonus, episodes, delta)
        self.reward_bonus = compiled.reward_bonus(self.bonus, episodes, delta)
        self.tally = compiled.tally() if counts is None else compiled.counted(counts)
        self.given = None if counts is None else hashlib.sha256(b"".join(part.tobytes() for part in self.tally)).hexdigest()
        self.every = config["replan"] == "every"
        self.rng = seeded(seed)
        hindsight = type(compiled.model).samples is not PartiallyKnownMDP.samples
        self.simulator = compiled.model.simulator(compiled, law) if hindsight else None
        self.recorder = Recorder(compiled, law, seed) if hindsight and self.simulator is None else None
        self.state = np.array([1.0, np.nan, np.nan])  # whether a plan is due, its upper value, the true value of its policy
        self.policy = compiled.policy()
        self.upper, self.value, self.returns = np.zeros((3, episodes))
        self.planned = np.zeros(episodes, bool)
        self.done = 0
        self.seconds = 0.0

    def go(self, advance: Callable[[int], None], checkpoint: Path | None) -> None:
        self._compile_kernels()
        episodes, size, saved = self.config["episodes"], 1, time.perf_counter()
        while self.done < episodes:
            began = time.perf_counter()
            chunk = slice(self.done, min(self.done + size, episodes))
            if self.simulator is not None:
                self.in_bulk(chunk, self.simulator.episodes)
            elif self.recorder is not None:
                self._with_hindsight(self.recorder, chunk)
            else:
                self.compiled.learn_chunk(self, chunk)
            self.done = chunk.stop
            now = time.perf_counter()
            self.seconds += now - began
            size = max(1, min(4 * size, int(size * CHUNK_SECONDS / max(now - began, 1e-6))))
            advance(chunk.stop - chunk.start)
            if checkpoint is not None and (now - saved > CHECKPOINT_SECONDS or self.done == episodes):
                self.save(checkpoint)
                saved = now

    def _compile_kernels(self) -> None:
        """Calls everything once with nothing to do: compiling is not part of the time of a run."""
        scratch = self.compiled.optimistic(self.bonus, self.config["episodes"], self.config["delta"])
        self.compiled.estimate(scratch, self.tally, self.bonus, self.reward_bonus, self.rng.copy())
        if self.simulator is not None:
            self.in_bulk(slice(0, 0), self.simulator.episodes)
        elif self.recorder is None:
            self.compiled.learn_chunk(self, slice(0, 0))

    def replan_if_due(self, k: int) -> None:
        """A new plan before episode k, if one is due; the values in force are written down."""
        self.planned[k] = self.every or self.state[0] != 0.0
        if self.planned[k]:
            self.compiled.estimate(self.belief, self.tally, self.bonus, self.reward_bonus, self.rng)
            self.state[1], changed = self.compiled.sweep(self.belief, self.policy, follow=False)
            if changed or np.isnan(self.state[2]):
                self.state[2], _ = self.compiled.sweep(self.truth, self.policy, follow=True)
            flat.set_marks(self.tally)
            self.state[0] = 0.0
        self.upper[k], self.value[k] = self.state[1], self.state[2]

    def in_bulk(self, chunk: slice, episodes: Callable[..., tuple[int, bool]]) -> None:
        """Plans when one is due; between two plans `episodes(policy, tally, rng, returns)` runs until the next one is."""
        k = chunk.start
        if k == chunk.stop:
            episodes(self.policy, self.tally, self.rng, self.returns[chunk])
        while k < chunk.stop:
            self.replan_if_due(k)
            stop = k + 1 if self.every else chunk.stop
            count, due = episodes(self.policy, self.tally, self.rng, self.returns[k:stop])
            self.upper[k : k + count], self.value[k : k + count] = self.state[1], self.state[2]
            if due:
                self.state[0] = 1.0
            k += count

    def _with_hindsight(self, recorder: Recorder, chunk: slice) -> None:
        """The same loop in Python: the model says what an episode teaches."""
        counts, n = np.zeros_like(self.tally.counts), np.zeros_like(self.tally.n)
        visited = self.tally._replace(counts=counts, n=n, marks=np.full_like(n, np.inf))
        for k in range(chunk.start, chunk.stop):
            self.replan_if_due(k)
            if self.planned[k] or k == chunk.start:
                recorder.follow(Plan(self.compiled, self.belief, self.policy, self.state[1]))
            episode, self.returns[k], due = recorder.episode(visited, self.rng)
            due |= self.compiled.count(self.tally, self.compiled.model.samples(episode))
            if due:
                self.state[0] = 1.0

    def run(self) -> Run:
        compiled = self.compiled
        final = Plan(compiled, self.belief, self.policy, float(self.state[1]))
        return Run(
            upper_values=self.upper,
            policy_values=self.value,
            returns=self.returns,
            plans=np.flatnonzero(self.planned),
            optimal_value=self.optimal_value,
            counts=compiled.named_counts(self.tally),
            config={"model": type(compiled.model).__name__, **self.config},
            seconds=self.seconds,
            policy=final,
        )

    # -- stopping and going on -----------------------------------------------------------------------------------------------------

    def save(self, path: Path) -> None:
        """Everything that the next episode depends on, atomically."""
        write_npz(
            path,
            self._arrays(),
            {"checkpoint": self._identity(), "reveal": None if self.recorder is None else self.recorder.rng.bit_generator.state},
        )

    def resume(self, path: Path) -> None:
        if not path.exists():
            return
        arrays, meta = read_npz(path)
        if meta.get("checkpoint") != self._identity():
            raise ModelError(f"{path} is the checkpoint of another run; expected {self._identity()}, found {meta.get('checkpoint')}")
        if self.recorder is not None:
            self.recorder.rng.bit_generator.state = meta["reveal"]
        self.done = int(arrays["progress"][0])
        self.seconds = float(arrays["progress"][1])
        mine = self._arrays()
        for name, array in arrays.items():
            if name in ("upper", "value", "returns", "planned"):
                mine[name][: self.done] = array
            elif name != "progress":
                mine[name][...] = array
        self.compiled.refresh(self.belief)

    def _identity(self) -> dict[str, Any]:
        compiled = self.compiled
        identity = {"model": type(compiled.model).__name__, "sizes": [compiled.n_states, len(compiled.features)]}
        return {**identity, "optimum": self.optimal_value.hex(), "counts": self.given, **self.config}

    def _arrays(self) -> dict[str, np.ndarray]:
        done = self.done
        tally = {f"tally_{name}": array for name, array in self.tally._asdict().items()}
        per_episode = {
            "upper": self.upper[:done],
            "value": self.value[:done],
            "returns": self.returns[:done],
            "planned": self.planned[:done],
        }
        belief = {"belief_p": self.belief.p, "belief_mean": self.belief.mean, "belief_n": self.belief.n}
        progress = np.array([done, self.seconds])
        return {"progress": progress, "rng": self.rng, "state": self.state, "policy": self.policy, **tally, **per_episode, **belief}


class _Bar:
    """A progress bar, or nothing."""

    def __init__(self, total: int, done: int, wanted: bool) -> None:
        self.bar: Any = None
        if wanted:
            from tqdm import tqdm

            self.bar = tqdm(total=total, initial=done, unit=" episodes", unit_scale=True, leave=False)

    def __enter__(self) -> Callable[[int], None]:
        return (lambda count: None) if self.bar is None else self.bar.update

    def __exit__(self, *exception: object) -> None:
        if self.bar is not None:
            self.bar.close()
