"""Episodes drawn from a model and its law under a policy, as the records that a learner is shown."""

from __future__ import annotations

import numpy as np

from pkd.compiled import Compiled, compile
from pkd.graph import DECIDE
from pkd.kernels import flat
from pkd.model import Episode, Law, Transition
from pkd.planning import Model, Policy, policy_arms, seeded

__all__ = ["simulate"]


def simulate(model: Model, law: Law, policy: Policy, episodes: int, seed: int = 0) -> list[Episode]:
    """So many episodes under a policy. A law with `reveal(episode, rng)` fills `Episode.revealed`."""
    compiled = compile(model)
    world, arms, rng, path = compiled.world(law), policy_arms(compiled, policy), seeded(seed), room_for_a_path(compiled)
    reveal = Revealer(law, seed)
    drawn = []
    for _ in range(episodes):
        _, _, moves = flat.rollout(compiled.program, world, arms, compiled.tally(), rng, path)
        drawn.append(reveal(recorded(compiled, path[:moves])))
    return drawn


class Revealer:
    """Adds to an episode what its law shows at the end."""

    def __init__(self, law: Law, seed: int) -> None:
        self._reveal = getattr(law, "reveal", None)
        self.rng = np.random.Generator(np.random.PCG64(np.random.SeedSequence(entropy=seed, spawn_key=(1,))))

    def __call__(self, episode: Episode) -> Episode:
        return episode if self._reveal is None else Episode(episode.transitions, self._reveal(episode, self.rng))


def room_for_a_path(compiled: Compiled) -> np.ndarray:
    """Room for the longest possible episode."""
    blocks = len(compiled.program.blocks)
    return np.zeros((compiled.horizon * blocks + blocks, 5))


def recorded(compiled: Compiled, path: np.ndarray) -> Episode:
    """The path of a rollout in the model's own values."""
    graph, program = compiled.graph, compiled.program
    settled_from = int(program.blocks[program.settlement - 1, 1])
    transitions = []
    for slot, arm, branch, outcome, reward in path:
        slot, node = int(slot), int(program.slot_node[int(slot)])
        side = graph.layers if slot < settled_from else graph.settled
        x, y = side.states[node]
        action = compiled.actions[node][int(arm - program.arm_ptr[slot])] if side.kind[node] == DECIDE else None
        _, row, y_next = compiled.pairs[int(program.branch_pair[int(branch)])]
        transitions.append(Transition(x, y, action, graph.row_states(row)[int(outcome)], graph.ys[y_next], float(reward)))
    return Episode(transitions)
