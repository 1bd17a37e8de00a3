"""Learners from the literature of delays, on the interface of `pkd.Agent`.

Two are Q-learners that act at the last shown state: `MemorylessQ` takes it
for the current one when it learns, too, and `DelayAwareQ` credits an action to the state in which
it was done. `Chen2023` is the previous optimistic algorithm.

Q-learning on the augmented state is `pkd.experiments.rivals.QLearning`;
`pkd.experiments.rivals.PerState` counts per augmented state.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import pkd
from pkd import Agent, Episode, ModelError, PartiallyKnownMDP, Transition
from pkd.episode import list_visited
from pkd.experiments import rivals
from pkd.rules import as_rule, schedule_for
from pkd_delay.augmented import Augmented
from pkd_delay.rivals.planners import QMDP, IgnoreDelay, ModelBasedSimulation
from pkd_delay.rivals.sight import Sight
from pkd_delay.unknown import UnknownDelay

if TYPE_CHECKING:
    from pkd.experiments.rivals import Row, Step
    from pkd.planning.plan import Policy
    from pkd.rules import Rule
    from pkd.rules.schedule import Schedule

__all__ = [
    "QMDP", "Chen2023", "DelayAwareQ", "IgnoreDelay", "MemorylessQ", "ModelBasedSimulation",
]  # fmt: skip


class MemorylessQ(rivals.QLearning):
    """Q-learning that takes the last shown state for the current one, when it acts and learns.

    It forgets the queue and how long it has waited, and credits an action with what is paid before
    its next choice, although that is the pay of older actions. Its world is not Markov, so even its
    best policy can be worse than the optimum. The options are those of
    `pkd.experiments.rivals.QLearning`. No guarantee.

    >>> MemorylessQ().label
    'Memoryless Q-learning, epsilon 1 k^-0.333'
    """

    @property
    def label(self) -> str:
        return f"Memoryless {super().label}"

    def begin(self, model: PartiallyKnownMDP, *, episodes: int, seed: int) -> None:
        self.sight = Sight(model)
        super().begin(model, episodes=episodes, seed=seed)

    def see(self, x: Any, y: Any) -> Any:
        return self.sight.read(x, y)[0]


class DelayAwareQ(rivals.QLearning):
    """dQ and dSARSA (Schuitema, Busoniu, Babuska and Jonker 2010): the update uses the done action.

        Q_t(s_t, a_t) <- (1 - alpha) Q_t(s_t, a_t) + alpha (r_t + max_a Q_{t+1}(s_{t+1}, a))   dQ
                         ... Q_{t+1}(s_{t+1}, a_{t+1})                    dSARSA (on_policy=True)

    a_t is the action that met s_t, not the one that was chosen when s_t was seen. It acts greedily
    at the last shown state. So dQ finds the values of the base without delay and acts like
    `IgnoreDelay`. The paper has late actions, a discount and eligibility traces; here states are
    late, there is a horizon, and there are no traces. If a state was never met at step h, the row
    is that of the step at which the base was there. The other options are those of
    `pkd.experiments.rivals.QLearning`. No guarantee.

    >>> DelayAwareQ(on_policy=True).label
    'dSARSA, epsilon 1 k^-0.333'
    """

    def __init__(
        self,
        *,
        on_policy: bool = False,
        epsilon: float = 1.0,
        decay: float = 1 / 3,
        power: float = 0.8,
        initial: float = 0.0,
    ) -> None:
        super().__init__(epsilon=epsilon, decay=decay, power=power, initial=initial)
        self.on_policy = bool(on_policy)

    @property
    def label(self) -> str:
        return f"{'dSARSA' if self.on_policy else 'dQ'}, {self._label_exploration()}"

    def begin(self, model: PartiallyKnownMDP, *, episodes: int, seed: int) -> None:
        self.sight = Sight(model)
        super().begin(model, episodes=episodes, seed=seed)

    def recall(self, episode: Episode) -> list[Step]:
        return self.list_steps(self.sight.base, self.sight.retell(episode))

    def find_key(self, known: Mapping[tuple[int, Any], Any], h: int, x: Any, y: Any) -> Any:
        shown, queue = self.sight.read(x, y)
        return h if (h, shown) in known else h - len(queue), shown

    def value(self, row: Row, step: Step) -> float:
        return row.q[row.actions.index(step.action)] if self.on_policy else max(row.q)


class Chen2023(Agent):
    """The optimistic algorithm of Chen, Bai, Poor and Wang (2023), as far as it is described to us.

    What is taken from descriptions of it: the augmented state; an unknown law of the delay, which
    is learned with that of the base; counts shared between augmented states; raw inter-arrival
    times shown at the end of an episode; an upper confidence bound. Its regret is of order
    H^(3/2) D^(5/2) sqrt(S A K).

    What had to be filled in: the bonus, here the Hoeffding bonus of UCBVI-CH on each feature
    (`optimism`); its logarithm, here that of our own union bound; inter-arrival times of -1, which
    the paper does not have; plans when a count has doubled. So its regret bound is not claimed. A
    model with a known law of the delay shows no raw times: arrivals are then counted where they are
    seen, and the known law is not used.

    >>> Chen2023().label, Chen2023().guarantee
    ('Chen et al. 2023, Hoeffding', 'no guarantee')
    """

    def __init__(
        self,
        *,
        optimism: Rule | None = None,
        delta: float = 0.05,
        replan: Schedule = "doubling",
    ) -> None:
        self.optimism = as_rule(pkd.Hoeffding() if optimism is None else optimism)
        self.delta = delta
        self.replan = schedule_for(self.optimism.every_episode, replan).text

    @property
    def label(self) -> str:
        return f"Chen et al. 2023, {self.optimism.name}"

    def begin(self, model: PartiallyKnownMDP, *, episodes: int, seed: int) -> None:
        if not isinstance(model, Augmented):
            raise ModelError(
                f"Chen2023 on {type(model).__name__}; expected a KnownDelay or an UnknownDelay"
            )
        self.model = model
        self.own = model if isinstance(model, UnknownDelay) else _Unaware(model)
        self.learner = pkd.OptimisticLearner(
            self.own,
            episodes,
            optimism=self.optimism,
            delta=self.delta,
            seed=seed,
            replan=self.replan,
        )
        self._made: pkd.Plan | None = None

    def act(self, h: int, x: Any, y: Any) -> Any:
        return self.learner.act(h, *self._translate(x, y))

    def observe(self, episode: Episode) -> None:
        if self.own is not self.model:
            moves = [self._retell(move) for move in episode]
            episode = Episode(moves, episode.revealed, episode.final)
        self.learner.observe(episode)

    def policy(self) -> Policy:
        if self.own is self.model:
            return self.learner.plan
        if self._made is not self.learner.plan:
            self._made = self.learner.plan
            self._policy = partial(_act_elsewhere, self._made, self._translate)
        return self._policy

    def _translate(self, x: Any, y: Any) -> tuple[Any, Any]:
        return self.own.place(*self.model.read(x, y))

    def _retell(self, move: Transition) -> Transition:
        before, after = self._translate(move.x, move.y), self._translate(move.x_next, move.y_next)
        return Transition(*before, move.action, *after, move.reward)


def _act_elsewhere(plan: pkd.Plan, translate: Any, h: int, x: Any, y: Any) -> Any:
    return plan.action(h, *translate(x, y))


class _Unaware(UnknownDelay):
    """A model of known delay with its law forgotten, learned from what is visited."""

    def __init__(self, model: Augmented) -> None:
        super().__init__(
            model.base,
            model.longest,
            model.max_delay,
            form=model.form,
            revealed=False,
            instead=model.instead,
            facts=model.facts,
        )

    def samples(self, episode: Episode) -> Iterator[tuple[Any, Any]]:
        return iter(list_visited(self, episode))
