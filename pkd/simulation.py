"""Episodes drawn from a model and its law under a policy, as the records that a learner is shown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pkd.engine import Compiled
from pkd.engine.belief import Tally, World
from pkd.engine.bonus import count, count_reward
from pkd.engine.compiled import Act, Truth
from pkd.engine.random import draw, uniform
from pkd.evaluation import find_policy_fault, read_weights
from pkd.model import CHANCE, END, Episode, Known, Law, ModelError, Transition, UnknownReward
from pkd.planning import Model, Plan, Policy, resolve, seed_words

__all__ = ["Simulator", "simulate"]

BULK = 100_000  # episodes of one compiled call: an interrupt is answered between two of them


def simulate(
    model: Model, law: Law | None, policy: Policy, episodes: int, seed: int = 0
) -> list[Episode]:
    """So many episodes under a policy. A law with `reveal(episode, rng)` fills `Episode.revealed`.

    >>> import pkd
    >>> coin = pkd.TabularMDP([[[0.5, 0.5], [1.0, 0.0]], [[0.5, 0.5], [0.0, 1.0]]], [[0.0, 0.0], [1.0, 1.0]], horizon=3)
    >>> [episode] = pkd.simulate(coin, None, lambda h, x, y: 1, episodes=1)  # action 1 stays where it is
    >>> [(move.x, move.action, move.x_next) for move in episode]
    [(0, 1, 0), (0, 1, 0), (0, 1, 0)]
    """
    return Simulator(model, law, seed=seed).play(policy, episodes)


class Simulator:
    """Plays single episodes of one model and one law; everything is built once.

    >>> import pkd
    >>> coin = pkd.TabularMDP([[[0.5, 0.5], [1.0, 0.0]], [[0.5, 0.5], [0.0, 1.0]]], [[0.0, 0.0], [1.0, 1.0]], horizon=3)
    >>> world = pkd.Simulator(coin, seed=1)
    >>> [world.episode(lambda h, x, y: h % 2).total for _ in range(3)]
    [1.0, 0.0, 0.0]
    """

    def __init__(
        self, model: Model, law: Law | Truth | None = None, *, seed: int = 0
    ) -> None:
        if isinstance(law, Truth) and isinstance(model, Compiled):
            self.compiled, self.truth = model, law
        else:
            self.compiled, found = resolve(model, law)  # type: ignore[arg-type]
            self.truth = self.compiled.truth(found)
        self._reveal = getattr(self.truth.law, "reveal", None)
        self.rng = seed_words(seed)
        # For what the law reveals at the end of an episode.
        sequence = np.random.SeedSequence(entropy=int(seed), spawn_key=(1,))
        self.reveal_rng = np.random.Generator(np.random.PCG64(sequence))
        self._tally = self.compiled.tally()

    def play(self, policy: Policy, episodes: int) -> list[Episode]:
        """So many episodes."""
        return [self.episode(policy) for _ in range(episodes)]

    def returns(self, policy: Policy, episodes: int) -> np.ndarray:
        """The returns of so many episodes, (episodes,); those of a plan are played in compiled code.

        >>> import pkd
        >>> rows = [[[0.5, 0.5]], [[0.5, 0.5]]]
        >>> heads = pkd.TabularMDP(rows, [[0.0], [1.0]], 10, start=[0.5, 0.5])
        >>> returns = pkd.Simulator(heads).returns(pkd.plan(heads), 100_000)
        >>> bool(abs(returns.mean() - 5) < 0.02), bool(abs(returns.var() - 2.5) < 0.04)
        (True, True)
        """
        returns = np.zeros(episodes)
        if not (isinstance(policy, Plan) and policy.compiled is self.compiled):
            for k in range(episodes):
                returns[k] = self.episode(policy).total
            return returns
        tally, done = self.compiled.tally(), 0
        tally.marks[:] = tally.reward_marks[:] = np.inf  # no plan is ever due
        while done < episodes:
            chunk = returns[done : done + BULK]
            count, _ = self.compiled.episodes(
                self.truth.world, policy.choices, tally, self.rng, chunk
            )
            done += count
        return returns

    def episode(self, policy: Policy) -> Episode:
        """The next episode."""
        return self.draw(policy, self._tally, self.rng)[0]

    def draw(self, policy: Policy, tally: Tally, rng: np.ndarray) -> tuple[Episode, bool]:
        """An episode; what was visited is added to the tally: (episode, whether a plan is due)."""
        if isinstance(policy, Plan) and policy.compiled is self.compiled:
            episode, due = self.compiled.record(self.truth.world, policy.choices, tally, rng)
        else:
            act = policy.action if isinstance(policy, Plan) else policy
            episode, due = play_model(self.compiled, self.truth.world, act, tally, rng)
        if self._reveal is not None:
            episode = Episode(
                episode.transitions, self._reveal(episode, self.reveal_rng), episode.final
            )
        return episode, due


def play_model(
    compiled: Compiled, world: World, act: Act, tally: Tally, rng: np.ndarray
) -> tuple[Episode, bool]:
    """One episode by asking the model move by move; draws the same numbers as compiled episodes."""
    model, horizon = compiled.model, compiled.horizon
    starts = compiled.graph.start
    node, entries, _ = starts[
        draw(np.cumsum([p for *_, p in starts]), 0, len(starts), uniform(rng))
    ]
    x, y = compiled.graph.layers.x[node], compiled.graph.start_y(node, entries)
    moves: list[Transition] = []
    taken, due = 0, False
    while (kind := model.actions(x, y)) is CHANCE or (kind is not END and taken < horizon):
        action = None
        if kind is not CHANCE:
            taken += 1
            action = _choose(act(taken, x, y), list(kind), f"step {taken} in (x={x!r}, y={y!r})", rng)
        reward = model.reward(x, y, action)
        if isinstance(reward, UnknownReward):
            w = compiled.reward_index[reward.feature]
            lo, hi = world.reward_ptr[w], world.reward_ptr[w + 1]
            reward = float(world.reward_value[draw(world.reward_rows, lo, hi, uniform(rng))])
            due |= bool(count_reward(tally, w, reward, 1.0))
        _, y_next, z = _draw_one(model.branches(x, y, action, taken), rng)
        if isinstance(z, Known):
            _, x_next = _draw_one([(p, value) for value, p in z.law if p > 0], rng)
        else:
            row = compiled.feature_index[z]
            place, last = compiled.row_ptr[row], compiled.row_ptr[row + 1]
            if last - place > 1:
                place = draw(world.rows, place, last, uniform(rng))
            due |= bool(count(tally, row, place))
            x_next = compiled.outcomes[row][place - compiled.row_ptr[row]]
        moves.append(Transition(x, y, action, x_next, y_next, float(reward)))
        x, y = x_next, y_next
    return Episode(moves, final=float(model.final(x, y))), due


def _choose(answer: Any, actions: list[Any], where: str, rng: np.ndarray) -> Any:
    """The action that a policy answered, drawn where it gave {action: probability}."""
    if not isinstance(answer, Mapping):
        if answer not in actions:
            raise ModelError(
                f"the policy takes {answer!r} at {where}; expected one of {actions!r}"
            )
        return answer
    fault = find_policy_fault(answer, actions)
    if fault is not None:
        raise ModelError(f"the policy {fault} at {where}")
    return _draw_one([(p, action) for action, p in read_weights(answer)], rng)[1]


def _draw_one(branches: Sequence[Any], rng: np.ndarray) -> Any:
    """One of some tuples that begin with their probabilities."""
    if len(branches) == 1:
        return branches[0]
    masses = np.cumsum([branch[0] for branch in branches])
    return branches[draw(masses, 0, len(branches), uniform(rng))]
