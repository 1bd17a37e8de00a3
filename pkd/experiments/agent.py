"""`Agent`: the smallest interface of something that plays a model and learns from its episodes.

An agent gets the model, never the law. Rules of optimism are agents, and so is a user's own class.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

import numpy as np

from pkd.engine import Compiled, compile
from pkd.model import ModelError

if TYPE_CHECKING:
    from pkd.episode import Episode
    from pkd.model import Law, PartiallyKnownMDP
    from pkd.optimism import Guarantee
    from pkd.planning.plan import Policy

__all__ = ["Agent", "make_rng"]

STREAM = 2  # of the seed: a simulator draws from the streams 0 and 1


class Agent(ABC):
    """Plays one run of a model, episode after episode.

    A run calls `begin` once. For each episode it calls `act` at every decision, then `observe` with
    the finished episode, in which everything is shown that the model reveals at its end.

    >>> import pkd
    >>> class First(pkd.Agent):
    ...     def begin(self, model, *, episodes, seed):
    ...         self.model = model
    ...
    ...     def act(self, h, x, y):
    ...         return next(iter(self.model.actions(x, y)))
    ...
    ...     def observe(self, episode):
    ...         pass
    >>> First().label, First().guarantee
    ('First', 'no guarantee')
    """

    knows_law: bool = False  # True: a run calls `inform` with the true law before `begin`
    compiled: Compiled | None = None  # the model as it is compiled; a run sets it before `begin`

    @abstractmethod
    def begin(self, model: PartiallyKnownMDP, *, episodes: int, seed: int) -> None:
        """Forgets everything and prepares for a run of so many episodes.

        All randomness of the agent must come from the seed. `self.compile(model)` is the compiled
        model: `pkd.optimistic_plan` and `pkd.OptimisticLearner`, which has counts, take it, and the
        value of their plans costs one sweep.
        """

    @abstractmethod
    def act(self, h: int, x: Any, y: Any) -> Any:
        """The action at step h (from 1) in the decision state (x, y)."""

    @abstractmethod
    def observe(self, episode: Episode) -> None:
        """Learns from a finished episode."""

    def policy(self) -> Policy | None:
        """What `act` will do in the next episode: a plan or a function (h, x, y) -> action.

        With it regret is exact; None: regret is estimated from returns. Return the same object
        as long as the policy is the same: it is evaluated once. What is shown is compared with what
        is played; where they differ, a warning says so and regret is estimated.
        """
        return None

    def compile(self, model: PartiallyKnownMDP) -> Compiled:
        """The compiled model: in a run the one that is there already."""
        found = self.compiled
        return found if found is not None and found.model is model else compile(model)

    def inform(self, law: Law) -> None:
        """Receives the true law, where `knows_law` says so: for oracles only."""
        raise ModelError(f"{self.label} sets knows_law but does not define inform(law)")

    @property
    def label(self) -> str:
        """The words for tables and plots."""
        return type(self).__name__

    @property
    def guarantee(self) -> Guarantee:
        """What is proved about the agent."""
        return "no guarantee"


def make_rng(seed: int) -> np.random.Generator:
    """The random numbers of an agent: another stream than those of the world it plays in.

    >>> make_rng(3).random() == make_rng(3).random()
    True
    """
    sequence = np.random.SeedSequence(entropy=int(seed), spawn_key=(STREAM,))
    return np.random.Generator(np.random.PCG64(sequence))
