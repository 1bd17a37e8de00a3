"""What MVP-Delayed is measured against in the demo: an agent that takes old news for new.

`learn_ignoring_delay` plans for the base, takes the last shown state for the current one (`Blind`),
and is paid in the delayed world. `pkd.CountsPerState` of an augmented model is the other rival:
plain MVP on the augmented MDP. All rivals on the interface of `pkd.Agent` are in
`pkd_delay.agents`.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np

import pkd
from pkd import CountsPerState
from pkd_delay.blind import Blind
from pkd_delay.process import Delayed
from pkd_delay.simulator import simulate

if TYPE_CHECKING:
    from pkd.optimism import Optimism

__all__ = ["CountsPerState", "learn_ignoring_delay"]


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
    rule, law, model = optimism or pkd.MVP(), delayed.law(), delayed.known()
    world = pkd.compile(model) if compiled is None else compiled
    base = pkd.compile(delayed.base)
    upper, value, returns = np.zeros((3, episodes))
    counts: dict[Any, dict[Any, float]] = {}
    plans: list[int] = []
    optimal, began, done = pkd.plan(world, law).value, time.perf_counter(), 0
    while done < episodes:
        plan = pkd.optimistic_plan(
            base, counts, episodes=episodes, delta=delta, optimism=rule, seed=seed + done
        )
        policy = Blind(model, plan)
        batch = slice(done, min(max(2 * done, 1), episodes))
        plans.append(done)

        def act(h: int, state: Any, queue: Any, waited: int, policy: Blind = policy) -> Any:
            return policy(h, *model.place(*delayed.seen(state), queue, waited))

        upper[batch], value[batch] = plan.value, pkd.evaluate(world, law, policy)
        stream = int(np.random.SeedSequence([seed, done]).generate_state(1)[0])
        records = simulate(delayed, act, batch.stop - done, stream)
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
