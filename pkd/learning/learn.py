"""`learn`: a run of the optimistic algorithm in simulation, with its exact regret.

The law is given to the simulator and to the exact values that regret is measured by, never to the
planner.
"""

from __future__ import annotations

import hashlib
import math
import time
from collections.abc import Callable, Mapping
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import attrs
import numpy as np

from pkd.adapters import find_player
from pkd.engine import Compiled
from pkd.engine.belief import Tally
from pkd.engine.compiled import Counts, Player
from pkd.episode import list_samples
from pkd.expect import flag, if_given, number, pathname, require, whole
from pkd.expect import seed as check_seed
from pkd.files.atomic import DAMAGE, read_npz, write_npz
from pkd.files.values import refuse_unwritable
from pkd.learning.algorithm import Learning
from pkd.model import Law, ModelError
from pkd.optimism import CERTIFIED, Certified, Optimism
from pkd.planning.plan import Model, Plan, check_schedule, resolve, solve
from pkd.planning.simulation import Simulator
from pkd.progress import count
from pkd.results.run import Run
from pkd.rules import Rule, as_rule
from pkd.rules.schedule import NAMED, NEVER, Replan, Schedule, read_schedule, schedule_for
from pkd.workers import memory

CHUNK_SECONDS = 0.25  # how often progress is shown and a checkpoint may be written
CHECKPOINT_SECONDS = 5.0
# Lower values are computed at the first plan after the episodes have grown by this factor.
LOWER = Replan(features=None, growth=1.1)
EPISODE_BYTES = 33  # of an episode in the record of a run
RESERVED = 1 << 16  # episodes for which memory is taken at first
PER_EPISODE = ("uppers", "lowers", "values", "returns", "planned")


def learn(
    model: Model,
    law: Law | int | None = None,
    episodes: int | None = None,
    *,
    optimism: Rule = Certified(),
    delta: float = 0.05,
    seed: int = 0,
    replan: Schedule = "auto",
    until: float | None = None,
    certify: bool = False,
    progress: bool = False,
    counts: Counts | None = None,
    checkpoint: str | Path | None = None,
    optimal_value: float | None = None,
) -> Run:
    """A run of the optimistic algorithm: learn(model, law, episodes) or learn(problem, episodes).

    optimism: a rule, or its words such as "practical" or "mvp:c1=1,c2=1". delta: the probability
    with which the guarantee may fail. seed: the same one gives the same bits. progress: a bar on
    stderr. replan: "every" plans before each episode, as published; "doubling" when some N(z) has
    doubled since the last plan: the same order of regret with about |Z| log2(K H) plans; "slack"
    when enough of them have, so that the number of plans does not grow with |Z|; "auto" is "slack"
    for a model with more than 200 features, and else "doubling"; `pkd.Replan` has others. A rule
    whose plan is random or depends on the episode (`every_episode`) plans before each episode,
    unless a growth or a period is asked for. until: the run stops as soon as the certified gap,
    upper less lower value, is at most this; it needs no number of episodes. certify: certified
    lower and upper values of V* are recorded with every rule, at the first plan after the episodes
    have grown by a tenth; `pkd.Certified` and `until` do so anyway. They hold for data that any
    rule collected, as `Run.interval` does; whether the regret has a bound is another question
    (`Run.guaranteed`). counts: {z: {x': n}} to start from. checkpoint: a file that the run is saved
    to; a run that was stopped goes on from it, with the same result to the bit. optimal_value:
    given, it is not planned again.

    >>> import pkd
    >>> from pkd.tables.coin import coin
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
    optimism = as_rule(optimism)
    if until is not None and isinstance(optimism, Certified):
        optimism = attrs.evolve(optimism, rate=None)
    schedule = _check(episodes, delta, replan, until, optimism)
    require(
        check_seed("seed", seed),
        if_given(whole, "episodes", episodes, 1, memory() // EPISODE_BYTES),
        if_given(pathname, "checkpoint", checkpoint),
        if_given(number, "optimal_value", optimal_value, -math.inf),
        flag("progress", progress),
    )
    compiled, found = resolve(model, law)  # type: ignore[arg-type]
    if replan == "auto":
        settled = schedule_for(optimism.every_episode, replan, len(compiled.features))
        schedule = attrs.evolve(schedule, slack=settled.slack)
    config: dict[str, Any] = {"episodes": None if episodes is None else int(episodes)}
    config |= {"optimism": optimism.to_config(), "delta": float(delta), "seed": int(seed)}
    config |= {"replan": schedule.text, "until": None if until is None else float(until)}
    if checkpoint is not None:
        refuse_unwritable(chain(compiled.features, *compiled.outcomes))
    trial = Trial(compiled, found, optimism, config, counts, optimal_value, certify)
    if checkpoint is not None:
        trial.resume(Path(checkpoint))
    with count("episodes", config["episodes"], wanted=progress, done=trial.done) as advance:
        trial.go(advance, None if checkpoint is None else Path(checkpoint))
    return trial.run()


def _check(episodes: Any, delta: Any, replan: Schedule, until: Any, optimism: Optimism) -> Replan:
    """The schedule of plans; one ModelError names everything that is wrong."""
    findings: list[str] = []
    schedule = NAMED["doubling"]
    for check in (
        lambda: check_schedule(1 if episodes is None and until is not None else episodes, delta),
        lambda: schedule_for(optimism.every_episode, replan),
    ):
        try:
            schedule = check() or schedule
        except ModelError as error:
            findings.extend(error.findings)
    if until is not None:
        findings += [
            f"{said}, in units of the return" for said in number("until", until, above=True)
        ]
        # A gap that is looked at more often is found earlier.
        if isinstance(replan, str) and replan in ("auto", "doubling"):
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
        certify: bool = False,
    ) -> None:
        self.compiled, self.config = compiled, config
        self.learning = Learning(
            compiled, optimism, config["episodes"], config["delta"], config["seed"], counts,
            read_schedule(config["replan"]),
        )  # fmt: skip
        # Whether certified values are computed along the way.
        self.certifies = certify or config["until"] is not None
        self.certifies |= self.learning.bonus.form == CERTIFIED
        # Whether their upper values are others than those of the plans in force.
        self.apart = config["until"] is not None or not self.learning.certified
        self.truth = compiled.truth(law)
        if optimal_value is None:
            optimal_value = solve(compiled, self.truth).value
        self.optimal_value = optimal_value
        self.every = self.learning.schedule == NAMED["every"]
        self.last = NEVER if config["episodes"] is None else config["episodes"]
        self.identity = self._identify(law, counts)
        # Set if the model has `samples` of its own without compiled code for them.
        self.simulator: Simulator | None = None
        self.play = self._player(law)
        self.value = np.nan  # the exact value of the policy in force
        self.lower = self.high = np.nan  # the last certified bounds of V*
        self.lower_at = 0  # the number of episodes from which on they are computed anew
        self.reached = False  # the certified gap is small enough
        size = min(self.last, RESERVED)
        self.uppers, self.lowers, self.values, self.returns = np.zeros((4, size))
        self.planned = np.zeros(size, bool)
        self.done = 0
        self.seconds = 0.0

    def _player(self, law: Law) -> Player:
        """What plays episodes: compiled code, or one at a time where hindsight needs a record."""
        compiled = self.compiled
        if self._is_plain:
            return partial(compiled.episodes, self.truth.world)
        player = find_player(compiled.model, compiled, self.truth, law)
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
        marks, spent = np.full_like(n, np.inf), np.zeros_like(tally.spent)
        visited = tally._replace(counts=counts, n=n, marks=marks, spent=spent)
        plan = Plan(self.compiled, self.learning.belief, policy, self.learning.upper)
        episode, due = self.simulator.draw(plan, visited, rng)
        returns[0] = episode.total
        return 1, self.compiled.count(tally, list_samples(self.compiled.model, episode)) or due

    def go(self, advance: Callable[[int], None], checkpoint: Path | None) -> None:
        """Plays all episodes that are left, in chunks of a fraction of a second."""
        quick = self.every and self._is_plain and not self.learning.acting.timed
        quick = quick and not self.learning.bonus.rate
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
        return self.compiled.model.samples is None

    def _play_chunk(self, stop: int) -> None:
        """The loop: plan when due, play until the next plan is due, record the values in force."""
        learning = self.learning
        while self.done < stop:
            k = self.done
            if learning.due or k >= learning.due_at:
                self.planned[k] = True
                if learning.replan() or np.isnan(self.value):
                    self.value, _ = self.compiled.solve(self.truth, learning.policy, follow=True)
                if self._find_lower(k):
                    return
            most = min(stop, learning.due_at)
            count, due = self.play(
                learning.policy, learning.tally, learning.rng, self.returns[k:most]
            )
            self.uppers[k : k + count] = learning.upper
            self._record(k, count)
            self.values[k : k + count] = self.value
            learning.due |= due

    def _play_fused(self, fused: Callable[[slice], int], stop: int) -> None:
        """The same loop with a plan before every episode, as one compiled call."""
        learning, k = self.learning, self.done
        learning.renew()
        if self._find_lower(k):
            return
        last = min(stop, learning.most_episodes)
        if self.certifies:
            last = min(last, self.lower_at)
        self._record(k, fused(slice(k, last)))

    def _record(self, k: int, count: int) -> None:
        self.lowers[k : k + count] = self.lower
        if self.certifies and self.apart:
            self.uppers[k : k + count] = self.high
        self.done = self.learning.done = k + count

    def _find_lower(self, k: int) -> bool:
        """Renews the certified values if it is time; returns whether the gap is reached."""
        if not self.certifies or k < self.lower_at:
            return False
        self.lower_at = LOWER.next_due(k)
        if not self.apart:
            self.lower = self.learning.find_lower()
            return False
        self.lower, self.high, _ = self.learning.find_interval()
        until = self.config["until"]
        # A run has at least one episode, also where nothing has to be learned.
        self.reached = until is not None and k > 0 and self.high - self.lower <= until
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
        if self.compiled.families:  # the theorems are about features without one
            config["families"] = len(self.compiled.families)
        return Run(
            upper_values=self.uppers[:done],
            lower_values=self.lowers[:done] if self.certifies else None,
            policy_values=self.values[:done],
            returns=self.returns[:done],
            plans=np.flatnonzero(self.planned[:done]),
            optimal_value=self.optimal_value,
            counts=self.compiled.named_counts(learning.tally),
            config=config,
            seconds=self.seconds,
            policy=learning.plan(),
            interval=learning.find_interval(exact=True),
            unexplored=learning.unexplored,
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
        require(_find_differences(path, self.identity, meta.get("checkpoint")))
        progress = arrays.pop("progress", np.zeros(0))
        sound = progress.shape == (6,) and progress.dtype == np.float64
        done = int(progress[0]) if sound and np.isfinite(progress[[0, 1, 5]]).all() else -1
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
        self.seconds, self.value, self.lower, self.high = map(float, progress[1:5])
        self.done, self.lower_at = done, int(progress[5])
        self._reserve(done)
        for name, array in kept.items():
            getattr(self, name)[:done] = array

    def _identify(self, law: Law, counts: Counts | None) -> dict[str, Any]:
        """A fingerprint of everything that the result depends on.

        The number of episodes and the gap at which a run stops belong to it only where they change
        what is played before: without them a run can be continued.
        """
        digest = hashlib.sha256(self.compiled.fingerprint.encode())
        for note in self.compiled.graph.notes:  # whether numbers are shown at the end
            digest.update(repr(note).encode())
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
        progress = [self.done, self.seconds, self.value, self.lower, self.high, self.lower_at]
        return {
            "progress": np.array(progress, float),
            **{name: getattr(self, name)[: self.done] for name in PER_EPISODE},
            **self.learning.to_arrays(),
        }


def _find_differences(path: Path, mine: Mapping[str, Any], found: Any) -> list[str]:
    """Why a checkpoint is not one of this run: what differs."""
    said, wrong = [], f"{path} is the checkpoint of another run"
    if not isinstance(found, Mapping):
        return [f"{wrong}: it does not say of which"]
    for key in dict.fromkeys((*mine, *found)):
        one, other = mine.get(key), found.get(key)
        if one != other and key == "run":
            said.append("its model, its law or the counts that it began with are others")
        elif one != other and key != "optimum":  # that of another model or law
            said.append(f"its {key} is {other!r}, expected {one!r}")
    return [f"{wrong}: {'; '.join(said)}"] if said else []
