"""What MVP-Delayed is measured against in the demo: an agent that takes old news for new.

`IgnoringDelay` takes the last shown state for the current one: it plans for the base, and is paid
in the delayed world. `learn_ignoring_delay` learns that plan. `pkd.CountsPerState` of an augmented
model is the other rival: plain MVP on the augmented MDP. All rivals on the interface of `pkd.Agent`
are in `pkd_delay.agents`.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np

import pkd
from pkd import CountsPerState
from pkd_delay.process import Delayed
from pkd_delay.simulator import simulate

if TYPE_CHECKING:
    from pkd.optimism import Optimism

__all__ = ["CountsPerState", "IgnoringDelay", "learn_ignoring_delay"]


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
