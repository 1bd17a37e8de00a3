"""Episodes drawn from a model and its law under a policy, as records for a learner."""

from __future__ import annotations

import numpy as np

from pkd.engine import Compiled
from pkd.engine.belief import Tally
from pkd.engine.compiled import Truth
from pkd.engine.play import play_model
from pkd.model import Episode, Law
from pkd.planning import Model, Plan, Policy, resolve, seed_words
from pkd.progress import watch

__all__ = ["Simulator", "simulate"]

BULK = 100_000  # episodes of one compiled call: an interrupt is answered between two of them


def simulate(
    model: Model, law: Law | None, policy: Policy, episodes: int, seed: int = 0
) -> list[Episode]:
    """So many episodes under a policy. A law with `reveal(episode, rng)` fills `Episode.revealed`.

    >>> import pkd
    >>> tosses = [[[0.5, 0.5], [1.0, 0.0]], [[0.5, 0.5], [0.0, 1.0]]]
    >>> coin = pkd.TabularMDP(tosses, [[0.0, 0.0], [1.0, 1.0]], horizon=3)
    >>> # Action 1 stays where it is.
    >>> [episode] = pkd.simulate(coin, None, lambda h, x, y: 1, episodes=1)
    >>> [(move.x, move.action, move.x_next) for move in episode]
    [(0, 1, 0), (0, 1, 0), (0, 1, 0)]
    """
    return Simulator(model, law, seed=seed).play(policy, episodes)


class Simulator:
    """Plays single episodes of one model and one law; everything is built once.

    >>> import pkd
    >>> tosses = [[[0.5, 0.5], [1.0, 0.0]], [[0.5, 0.5], [0.0, 1.0]]]
    >>> coin = pkd.TabularMDP(tosses, [[0.0, 0.0], [1.0, 1.0]], horizon=3)
    >>> world, again = pkd.Simulator(coin, seed=1), pkd.Simulator(coin, seed=1)
    >>> toss_once = lambda h, x, y: int(h != 2)  # action 1 keeps the coin as it lies
    >>> totals = [world.episode(toss_once).total for _ in range(100)]
    >>> sorted(set(totals)), totals == [again.episode(toss_once).total for _ in range(100)]
    ([0.0, 1.0], True)
    """

    def __init__(self, model: Model, law: Law | Truth | None = None, *, seed: int = 0) -> None:
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
        return [self.episode(policy) for _ in watch(range(episodes), "playing")]

    def returns(self, policy: Policy, episodes: int) -> np.ndarray:
        """The returns of so many episodes, (episodes,); a plan is played in compiled code.

        >>> import pkd
        >>> rows = [[[0.5, 0.5]], [[0.5, 0.5]]]
        >>> heads = pkd.TabularMDP(rows, [[0.0], [1.0]], 10, start=[0.5, 0.5])
        >>> returns = pkd.Simulator(heads).returns(pkd.plan(heads), 100_000)
        >>> bool(abs(returns.mean() - 5) < 0.02), bool(abs(returns.var() - 2.5) < 0.04)
        (True, True)
        """
        returns = np.zeros(episodes)
        if not (isinstance(policy, Plan) and policy.compiled is self.compiled):
            for k in watch(range(episodes), "playing"):
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
