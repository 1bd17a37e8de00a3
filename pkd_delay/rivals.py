"""What MVP-Delayed is measured against: two rivals that do not use the structure of the delay.

`IgnoringDelay` takes the last shown state for the current one: it plans for the base, and is paid
in the delayed world. `CountsPerState` keeps the augmented model and its known half but forgets
phi_Z, so that nothing learned in one augmented state helps in another: plain MVP on the augmented
MDP.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

import pkd
from pkd import Known, PartiallyKnownMDP, UnknownReward
from pkd_delay.process import Delayed
from pkd_delay.simulator import simulate

if TYPE_CHECKING:
    from pkd.model import Branch, Law
    from pkd.optimism import Optimism

__all__ = ["CountsPerState", "IgnoringDelay", "Own", "learn_ignoring_delay"]


class Own(NamedTuple):
    """A feature that no other state shares."""

    x: Any
    y: Any
    action: Any
    y_next: Any
    feature: Any  # the shared one, by which the truth is looked up


class CountsPerState(PartiallyKnownMDP):
    """A model with phi_Z forgotten: every (x, y, a, y') is a feature of its own.

    It learns from visited states only. A feature comes with one y', so its share in the union bound
    is 1: it does not pay log |Y|.
    """

    def __init__(self, model: PartiallyKnownMDP) -> None:
        self.shared = model
        self.horizon = model.horizon
        self.return_range = model.return_range

    def law(self, law: Law) -> Callable[[Own], Mapping[Any, float]]:
        """The truth of this model, from that of the model it was made of."""
        return lambda z: law[z.feature] if isinstance(law, Mapping) else law(z.feature)

    def start(self) -> Any:
        return self.shared.start()

    def actions(self, x: Any, y: Any) -> Any:
        return self.shared.actions(x, y)

    def step(self, x: Any, y: Any, a: Any) -> list[Branch]:
        return self._own(x, y, a, self.shared.step(x, y, a))

    def last_step(self, x: Any, y: Any, a: Any) -> list[Branch]:
        return self._own(x, y, a, self.shared.last_step(x, y, a))

    def _own(self, x: Any, y: Any, a: Any, branches: Iterable[Branch]) -> list[Branch]:
        return [
            (p, y_next, z if isinstance(z, Known) else Own(x, y, a, y_next, z))
            for p, y_next, z in branches
        ]

    def outcomes(self, z: Own) -> Iterable[Any]:
        return self.shared.outcomes(z.feature)

    def branching(self, z: Own) -> int:
        return self.shared.branching(z.feature)

    def share(self, z: Own, y: Any) -> float:
        return 1.0

    def reward(self, x: Any, y: Any, a: Any) -> float | UnknownReward:
        return self.shared.reward(x, y, a)

    def final(self, x: Any, y: Any) -> float:
        return self.shared.final(x, y)

    def x_label(self, x: Any) -> str:
        return self.shared.x_label(x)

    def y_label(self, y: Any) -> str:
        return self.shared.y_label(y)

    def action_label(self, a: Any) -> str:
        return self.shared.action_label(a)


class IgnoringDelay:
    """A policy that follows a plan for the base as if the last shown state were the current one.

    If the base cannot be in the shown state at step h, the plan is asked for the step at which the
    base was there.
    """

    def __init__(self, delayed: Delayed, plan: pkd.Plan) -> None:
        self.delayed, self.model = delayed, delayed.known()
        # Looked up once: the delayed world has many times the states of the base.
        self._actions = {
            (h, *state): plan.action(h, *state)
            for h in range(1, self.model.horizon + 1)
            for state in plan.states(h)
        }

    def __call__(self, h: int, x: Any, y: Any) -> Any:
        """The action in a state (x, y) of `delayed.known()`, as `pkd.evaluate` asks for it."""
        base_x, base_y, queue, _ = self.model.read(x, y)
        return self._act(h, base_x, base_y, len(queue or ()))

    def action(self, h: int, state: Any, queue: tuple[Any, ...] = (), waited: int = 0) -> Any:
        """The action at step h, as `pkd_delay.simulate` asks for it."""
        return self._act(h, *self.delayed.seen(state), len(queue))

    def _act(self, h: int, x: Any, y: Any, age: int) -> Any:
        now = (h, x, y)
        return self._actions[now] if now in self._actions else self._actions[h - age, x, y]


def learn_ignoring_delay(
    delayed: Delayed,
    episodes: int,
    *,
    optimism: Optimism | None = None,
    delta: float = 0.05,
    seed: int = 0,
    compiled: pkd.Compiled | None = None,
) -> pkd.Run:
    """A run of the optimistic algorithm that learns the base and ignores that its states are late.

    It counts what MVP-Delayed counts, plans for the base without delay, and acts in the delayed
    world, by whose optimum its regret is measured. Its upper values are those of its own plans. It
    plans before the episodes 1, 2, 3, 5, 9, ...: whenever the number of episodes has doubled.
    `compiled`: the compiled `delayed.known()`, if it is there already.
    """
    rule, law = optimism or pkd.MVP(), delayed.law()
    world = pkd.compile(delayed.known()) if compiled is None else compiled
    base = pkd.compile(delayed.base)
    upper, value, returns = np.zeros((3, episodes))
    counts: dict[Any, dict[Any, float]] = {}
    plans: list[int] = []
    optimal, began, done = pkd.plan(world, law).value, time.perf_counter(), 0
    while done < episodes:
        plan = pkd.optimistic_plan(
            base, counts, episodes=episodes, delta=delta, optimism=rule, seed=seed + done
        )
        policy = IgnoringDelay(delayed, plan)
        batch = slice(done, min(max(2 * done, 1), episodes))
        plans.append(done)
        upper[batch], value[batch] = plan.value, pkd.evaluate(world, law, policy)
        stream = int(np.random.SeedSequence([seed, done]).generate_state(1)[0])
        records = simulate(delayed, policy.action, batch.stop - done, stream)
        for k, record in enumerate(records, start=done):
            returns[k] = record.total
            parts = (record.opening, *record.moves)
            happened = pkd.Episode([move for part in parts for move in part])
            for z, x_next in delayed.base.samples(happened):
                row = counts.setdefault(z, {})
                row[x_next] = row.get(x_next, 0.0) + 1.0
        done = batch.stop
    return pkd.Run(
        upper_values=upper,
        policy_values=value,
        returns=returns,
        plans=np.array(plans),
        optimal_value=optimal,
        counts=counts,
        config={
            "model": f"{type(delayed.base).__name__}, delay ignored",
            "episodes": episodes,
            "optimism": rule.to_config(),
            "delta": delta,
            "seed": seed,
            "replan": "powers of two",
        },
        seconds=time.perf_counter() - began,
    )
