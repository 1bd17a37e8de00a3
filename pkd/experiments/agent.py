"""`Agent`: the smallest interface of something that plays a model and learns from its episodes.

An agent gets the model, never the law. Rules of optimism are agents, and so is a user's own class.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

from pkd.model import ModelError

if TYPE_CHECKING:
    from pkd.model import Episode, Law, PartiallyKnownMDP
    from pkd.optimism import Guarantee
    from pkd.planning import Policy

__all__ = ["Agent"]


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

    @abstractmethod
    def begin(self, model: PartiallyKnownMDP, *, episodes: int, seed: int) -> None:
        """Forgets everything and prepares for a run of so many episodes.

        All randomness of the agent must come from the seed.
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
        as long as the policy is the same: it is evaluated once.
        """
        return None

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
