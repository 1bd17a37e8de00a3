"""A plain loop that lets an agent play, for tests of agents."""

from __future__ import annotations

from typing import Any

import numpy as np

import pkd


def play(
    agent: pkd.Agent, problem: Any, episodes: int, seed: int = 0, check: bool = False
) -> np.ndarray:
    """The returns of an agent; `check`: in every visited state it does what its policy says."""
    world = pkd.Simulator(problem, seed=seed)
    if agent.knows_law:
        agent.inform(world.truth.law)
    agent.begin(world.compiled.model, episodes=episodes, seed=seed)
    returns = np.zeros(episodes)
    for k in range(episodes):
        policy = agent.policy() if check else None
        episode = world.episode(agent.act)
        if policy is not None:
            obeys(policy, episode)
        returns[k] = episode.total
        agent.observe(episode)
    return returns


def obeys(policy: Any, episode: pkd.Episode) -> None:
    act = policy.action if isinstance(policy, pkd.Plan) else policy
    decisions = (move for move in episode if move.action is not None)
    for h, move in enumerate(decisions, start=1):
        answer = act(h, move.x, move.y)
        if isinstance(answer, dict):
            assert answer[move.action] > 0
        else:
            assert answer == move.action


def worth(agent: pkd.Agent, problem: Any) -> float:
    """The exact value of the policy that an agent has now."""
    policy = agent.policy()
    assert policy is not None
    return float(pkd.evaluate(problem, policy))
