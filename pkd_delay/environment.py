"""`DelayedEnv`: a delayed MDP as a Gymnasium environment, simulated straight from Assumption 1.

It shows what an agent needs under delay and nothing more: the last shown state with its age, the
actions that are not resolved yet, and an explicit "nothing yet". States come in order, several at
once where their delays shrink; none is lost, because the end shows all of them.
"""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces

from pkd_delay.process import DelayedMDP
from pkd_delay.simulator import Simulator, View

__all__ = ["DelayedEnv"]

Observation = dict[str, Any]


class DelayedEnv(gym.Env[Observation, np.int64]):
    """A `DelayedMDP` to act in. Steps count from 1; an episode terminates after H actions.

    The observation at the beginning of step h:

        step     h, from 1; H + 1 after the last action
        state    s_t, the last shown state; t = h - age. s_1 is shown at once, so there is one
        age      h - t: by how many steps s_t is old. It is also the number of pending actions
        waited   steps since s_t was shown; 0: it is fresh news
        news     the states shown at this very step, oldest first, each as 1 + state;
                 0: nothing (more). All zeros: nothing yet
        pending  the actions a_t, ..., a_{h-1} whose effect is not shown yet, oldest first,
                 each as 1 + action; 0: none

    The reward of a_t is paid when s_{t+1} is shown, because earlier it would tell s_t. When the
    episode is over everything is shown, and `info` holds all states, actions, raw inter-arrival
    times Delta and total delays D. Before that `info` is empty.

    >>> from pkd_delay import DelayedEnv, DelayedMDP
    >>> from pkd_delay.problems import two_state_chain
    >>> env = DelayedEnv(DelayedMDP.constant(two_state_chain(horizon=2, stay=1.0), 1))
    >>> _ = env.reset(seed=0)
    >>> [env.step(0)[1:3] for _ in range(2)]  # (reward, terminated): rewards come with the states
    [(0.0, False), (2.0, True)]
    """

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012  # Gymnasium's own declaration

    def __init__(self, delayed: DelayedMDP) -> None:
        S, A, H, D = (
            delayed.mdp.n_states,
            delayed.mdp.n_actions,
            delayed.mdp.horizon,
            delayed.max_delay,
        )
        self.delayed = delayed
        self._most = min(
            D, H - 1
        )  # the longest queue at a decision; one state more can be shown at once
        self.action_space = spaces.Discrete(A)
        self.observation_space = spaces.Dict(
            {
                "step": spaces.Discrete(H + 1, start=1),
                "state": spaces.Discrete(S),
                "age": spaces.Discrete(self._most + 1),
                "waited": spaces.Discrete(min(delayed.longest, self._most) + 1),
                "news": spaces.MultiDiscrete([S + 1] * (self._most + 1)),
                "pending": spaces.MultiDiscrete([A + 1] * max(self._most, 1)),
            }
        )
        self._simulator = Simulator(delayed)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Starts an episode.

        options={"deltas": (...)} plays the given inter-arrival times instead of drawn ones.
        """
        super().reset(seed=seed)
        self._simulator = Simulator(self.delayed, self.np_random)
        view = self._simulator.reset((options or {}).get("deltas"))
        return self._observation(view), {}

    def step(self, action: np.int64) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Queues an action; what is due is shown."""
        view = self._simulator.act(int(action))
        info: dict[str, Any] = {}
        if view.over:
            record = self._simulator.record()
            info = {
                "states": record.states,
                "actions": record.actions,
                "deltas": record.deltas,
                "delays": record.delays,
            }
        return self._observation(view), view.reward, view.over, False, info

    def _observation(self, view: View) -> Observation:
        news, pending = np.zeros(self._most + 1, np.int64), np.zeros(max(self._most, 1), np.int64)
        news[: len(view.news)] = [1 + state for state in view.news]
        pending[: len(view.queue)] = [1 + action for action in view.queue]
        return {
            "step": np.int64(view.step),
            "state": np.int64(view.state),
            "age": np.int64(len(view.queue)),
            "waited": np.int64(view.waited),
            "news": news,
            "pending": pending,
        }
