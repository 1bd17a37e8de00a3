"""The optimistic algorithm one episode at a time, for an environment of the user's own. No law is involved."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal

import numpy as np

from pkd.compiled import compile
from pkd.graph import DECIDE, Arm
from pkd.kernels import flat
from pkd.model import Episode, ModelError, Transition
from pkd.optimism import MVP, Optimism
from pkd.planning import Model, Plan, checked_schedule, seeded, sweep

__all__ = ["OptimisticLearner"]


class OptimisticLearner:
    """Acts by an optimistic plan and learns from each episode that it is shown.

    `episodes` is how many there will be in all; the logarithms of the bonus depend on it. `counts` {z: {x': n}} are what is known already.

        learner = OptimisticLearner(model, episodes=1000)
        ... a = learner.act(h, x, y) for every decision state, collecting pkd.Transition(x, y, a, x_next, y_next) for every move ...
        learner.observe(transitions)
    """

    def __init__(
        self,
        model: Model,
        episodes: int,
        *,
        optimism: Optimism = MVP(),
        delta: float = 0.05,
        seed: int = 0,
        replan: Literal["doubling", "every"] = "doubling",
        counts: Mapping[Any, Mapping[Any, float]] | None = None,
    ) -> None:
        checked_schedule(episodes, delta)
        if replan not in ("doubling", "every"):
            raise ModelError(f'replan is {replan!r}; expected "doubling" or "every"')
        self.compiled = compile(model)
        self.optimism = optimism
        self.replan = replan
        self.observed = 0  # episodes so far
        self.plans = 0  # plans so far
        self._bonus = optimism.bonus()
        self._reward_bonus = self.compiled.reward_bonus(self._bonus, episodes, delta)
        self._belief = self.compiled.optimistic(self._bonus, episodes, delta)
        self._tally = self.compiled.tally() if counts is None else self.compiled.counted(counts)
        self._rng = seeded(seed)
        self._plan: Plan | None = None

    @property
    def counts(self) -> dict[Any, dict[Any, float]]:
        """Everything counted so far, {z: {x': n}}."""
        return self.compiled.named(self._tally)

    @property
    def plan(self) -> Plan:
        """The plan in force; it is made when it is first asked for."""
        if self._plan is None:
            flat.estimate(self.compiled.program, self._belief, self._tally, self._bonus.prior, self._rng, self._reward_bonus)
            own = self._belief._replace(p=self._belief.p.copy(), mean=self._belief.mean.copy(), n=self._belief.n.copy())
            self._plan = sweep(self.compiled, own)
            flat.set_marks(self._tally)
            self.plans += 1
        return self._plan

    @property
    def upper_value(self) -> float:
        """What the plan in force believes an episode to be worth."""
        return self.plan.value

    def act(self, h: int, x: Any, y: Any) -> Any:
        """The action at step h (from 1) in the state (x, y)."""
        return self.plan.action(h, x, y)

    def observe(self, episode: Episode | Iterable[Transition]) -> None:
        """Learns from a finished episode; one that the model calls impossible is refused whole, with every reason."""
        if not isinstance(episode, Episode):
            episode = Episode(tuple(episode))
        self.check(episode)
        due = self.compiled.count(self._tally, self.compiled.model.samples(episode))
        due |= self._count_rewards(episode)
        self.observed += 1
        if due or self.replan == "every":
            self._plan = None

    def check(self, episode: Episode) -> None:
        """Raises a ModelError unless the model allows every move of the episode."""
        graph, findings, taken = self.compiled.graph, [], 0
        if episode.transitions:
            first = episode.transitions[0]
            if (first.x, first.y) not in {graph.layers.states[node] for node, _ in graph.start}:
                findings.append(f"move 1 starts in (x={first.x!r}, y={first.y!r}), which start() does not allow")
        for number, move in enumerate(episode, 1):
            if number > 1 and (before := episode.transitions[number - 2]) and (before.x_next, before.y_next) != (move.x, move.y):
                where = f"(x={before.x_next!r}, y={before.y_next!r})"
                findings.append(f"move {number} starts in (x={move.x!r}, y={move.y!r}), but move {number - 1} ended in {where}")
            if fault := self._fault(move, taken):
                findings.append(f"move {number}: {fault}")
            taken += move.action is not None
        if findings:
            raise ModelError(findings[:20])

    def _arms(self, move: Transition, taken: int) -> list[Arm] | None:
        graph, horizon = self.compiled.graph, self.compiled.horizon
        side = graph.layers if taken < horizon else graph.settled
        node = side.index.get((move.x, move.y))
        if node is None:
            return None
        last = side is graph.layers and side.kind[node] == DECIDE and taken == horizon - 1
        return (graph.last_arms if last else side.arms).get(node)

    def _fault(self, move: Transition, taken: int) -> str | None:
        graph = self.compiled.graph
        arms = self._arms(move, taken)
        if arms is None:
            return f"(x={move.x!r}, y={move.y!r}) cannot occur after {taken} actions, or the episode has ended there"
        arm = next((arm for arm in arms if arm.action == move.action), None)
        if arm is None:
            return f"the action {move.action!r} is not possible in (x={move.x!r}, y={move.y!r}); expected one of {[a.action for a in arms]!r}"
        branch = next((row for _, row, y in arm.branches if graph.ys[y] == move.y_next), None)
        if branch is None:
            return f"y' = {move.y_next!r} cannot follow (x={move.x!r}, y={move.y!r}) and the action {move.action!r}"
        if move.x_next not in graph.row_states(branch):
            return f"x' = {move.x_next!r} cannot follow; expected one of {list(graph.row_states(branch))!r}"
        if arm.mean >= 0:
            reward = graph.rewards[arm.mean]
            if move.reward is None or not reward.low <= move.reward <= reward.high:
                return f"the reward is {move.reward!r}; expected a number in [{reward.low:g}, {reward.high:g}], since it is to be learned"
        return None

    def _count_rewards(self, episode: Episode) -> bool:
        if not self.compiled.graph.rewards:
            return False
        due, taken, sums = False, 0, self._tally.reward_sums
        for move in episode:
            arms = self._arms(move, taken)
            mean = next(arm.mean for arm in arms or [] if arm.action == move.action)
            if mean >= 0 and move.reward is not None:
                shifted = move.reward - self._tally.reward_low[mean]
                sums[:, mean] += np.array([1.0, shifted, shifted * shifted])
                due |= bool(sums[0, mean] >= self._tally.reward_marks[mean])
            taken += move.action is not None
        return due
