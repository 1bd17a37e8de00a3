"""Q-learning: agents that learn the value of every action in every state, and no law.

`QLearner` is what all of them share. `QLearning` explores by chance (Watkins 1989), `OptimisticQ`
by a bonus (Jin et al. 2018). They keep one row of values for each step h and each state. They know
what a state offers, and nothing else of the model but its sizes.

    Q_h(s, a) <- (1 - alpha) Q_h(s, a) + alpha (R + V_{h+1}(s'))

R is everything that was paid from the decision in s to the next decision, in s'; after the last
decision it contains the final pay. CHANCE states between two decisions have no values.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Literal, NamedTuple

from pkd.engine import Compiled
from pkd.episode import Episode, Transition
from pkd.expect import fraction, number, one_of, require
from pkd.experiments.agent import Agent, make_rng
from pkd.explore.graph import DECIDE, Graph, count_queues
from pkd.model import ModelError, PartiallyKnownMDP, UnknownReward
from pkd.optimism import Guarantee
from pkd.planning.plan import Policy

__all__ = [
    "BONUSES", "Bonus", "OptimisticQ", "QLearner", "QLearning", "Row", "Step", "count_triples",
    "find_range",
]  # fmt: skip

HOEFFDING_C = math.sqrt(2)  # enough for optimism, see `OptimisticQ`
Bonus = Literal["hoeffding", "bernstein"]
BONUSES = ("hoeffding", "bernstein")
See = Callable[[Any, Any], Any]  # (x, y) -> what an agent sees of the state


class Step(NamedTuple):
    """One decision of an episode, as a Q-learner remembers it."""

    state: Any  # what the agent sees of (x, y)
    actions: tuple[Any, ...]  # on offer there
    action: Any
    reward: float  # paid until the next decision


class Row:
    """The values of the actions in one state at one step, and how often each was taken."""

    __slots__ = ("actions", "best", "beta", "n", "q", "spread", "target")

    def __init__(self, actions: tuple[Any, ...], initial: float) -> None:
        self.actions = actions
        self.q = [initial] * len(actions)
        self.n = [0] * len(actions)
        self.best = 0  # the first of the best actions
        # Mean and sum of squared deviations of the targets, and beta, for the Bernstein bonus.
        self.target = [0.0] * len(actions)
        self.spread = [0.0] * len(actions)
        self.beta = [0.0] * len(actions)


class QLearner(Agent):
    """What all Q-learners share: rows of values, and acting greedily but for some steps by chance.

    A subclass says how a target changes a row. It may also say what it sees of a state (`see`) and
    what it learns from (`recall`).

    >>> import pkd
    >>> from pkd.experiments import rivals
    >>> class Hopeful(rivals.QLearner):
    ...     initial = 3.0
    ...     def update(self, row, i, target):
    ...         row.q[i] += (target - row.q[i]) / 4
    >>> from pkd.tables.coin import coin
    >>> agent, world = Hopeful(), pkd.Simulator(coin, seed=1)
    >>> agent.begin(coin.model(), episodes=100, seed=1)
    >>> for _ in range(100):
    ...     agent.observe(world.episode(agent.act))
    >>> pkd.evaluate(coin, agent.policy())
    1.25
    """

    initial = 0.0  # the value of an action that was never taken

    def begin(self, model: PartiallyKnownMDP, *, episodes: int, seed: int) -> None:
        self.model, self.horizon = model, int(model.horizon)
        self.episodes, self.observed = episodes, 0
        self.rows: dict[tuple[int, Any], Row] = {}
        self._greedy: dict[tuple[int, Any], Any] = {}
        self._rng = make_rng(seed)
        self._policy: Policy | None = None
        self._chances = self.draw_chances()

    def act(self, h: int, x: Any, y: Any) -> Any:
        return self._choose(self._greedy, self._chances, h, x, y)

    def policy(self) -> Policy:
        """The next episode's policy. Chance is drawn before an episode, so it is deterministic."""
        if self._policy is None:
            self._policy = partial(self._choose, dict(self._greedy), self._chances)
        return self._policy

    def observe(self, episode: Episode) -> None:
        steps = self.recall(episode)
        rows = [self._find_row(h, step) for h, step in enumerate(steps, start=1)]
        for i, (step, row) in enumerate(zip(steps, rows, strict=True)):
            target = step.reward
            if i + 1 < len(steps):
                target += self.value(rows[i + 1], steps[i + 1])
            self.update(row, row.actions.index(step.action), target)
            best = row.q.index(max(row.q))
            if best != row.best:
                row.best = best
                self._greedy[i + 1, step.state] = row.actions[best]
                self._policy = None
        self.observed += 1
        before, self._chances = self._chances, self.draw_chances()
        if before or self._chances:
            self._policy = None

    @abstractmethod
    def update(self, row: Row, i: int, target: float) -> None:
        """Learns that action i of a row led to a target."""

    def value(self, row: Row, step: Step) -> float:
        """V of the state that a step was decided in."""
        return max(row.q)

    def see(self, x: Any, y: Any) -> Any:
        """What the agent sees of a state."""
        return x, y

    def recall(self, episode: Episode) -> list[Step]:
        """The decisions that an episode is learned from, one for each step."""
        return self.list_steps(self.model, episode, self.see)

    @staticmethod
    def list_steps(
        model: PartiallyKnownMDP, episode: Episode, see: See = lambda x, y: (x, y)
    ) -> list[Step]:
        """The decisions of an episode, each with what was paid until the next one."""
        steps, paid = list[Step](), list[float]()
        for move in episode:
            reward = _find_reward(model, move)
            if move.action is not None:
                offer = tuple(model.actions(move.x, move.y))
                steps.append(Step(see(move.x, move.y), offer, move.action, 0.0))
                paid.append(reward)
            elif paid:
                paid[-1] += reward
        if paid:
            paid[-1] += episode.final
        return [step._replace(reward=r) for step, r in zip(steps, paid, strict=True)]

    def find_key(self, known: Mapping[tuple[int, Any], Any], h: int, x: Any, y: Any) -> Any:
        """The row by which to act."""
        return h, self.see(x, y)

    def draw_chances(self) -> dict[int, float]:
        """The steps of the next episode that are left to chance, each with a number in [0, 1)."""
        return {}

    def _choose(
        self, greedy: dict[tuple[int, Any], Any], chances: dict[int, float], h: int, x: Any, y: Any
    ) -> Any:
        if h in chances:
            offer = tuple(self.model.actions(x, y))
            return offer[int(chances[h] * len(offer))]
        key = self.find_key(greedy, h, x, y)
        return greedy[key] if key in greedy else next(iter(self.model.actions(x, y)))

    def _find_row(self, h: int, step: Step) -> Row:
        row = self.rows.get((h, step.state))
        if row is None:
            row = self.rows[h, step.state] = Row(step.actions, self.initial)
            self._greedy[h, step.state] = row.actions[0]
            self._policy = None
        return row


class QLearning(QLearner):
    """Q-learning (Watkins 1989) with epsilon-greedy exploration.

        alpha = n^-power,    epsilon_k = epsilon k^-decay

    n: how often the action was taken in this state at this step. k: the number of the episode. With
    1/2 < power <= 1 the values converge wherever every action is taken again and again (Even-Dar
    and Mansour 2003 recommend about 0.8). `initial` is the value of an action that was never taken.
    No regret is guaranteed.

    >>> import pkd
    >>> from pkd.experiments import rivals
    >>> from pkd.tables.coin import coin
    >>> agent, world = rivals.QLearning(), pkd.Simulator(coin, seed=1)
    >>> agent.begin(coin.model(), episodes=2000, seed=1)
    >>> for _ in range(2000):
    ...     agent.observe(world.episode(agent.act))
    >>> agent.rows[1, (0, None)].best, pkd.plan(coin).action(1, 0, None)
    (0, 0)
    """

    def __init__(
        self,
        *,
        epsilon: float = 1.0,
        decay: float = 1 / 3,
        power: float = 0.8,
        initial: float = 0.0,
    ) -> None:
        name = type(self).__name__
        require(
            fraction(f"{name}: epsilon", epsilon, closed=True),
            number(f"{name}: decay", decay),
            fraction(f"{name}: power", power, closed=True),
            number(f"{name}: initial", initial, -math.inf),
        )
        self.epsilon, self.decay, self.power = float(epsilon), float(decay), float(power)
        self.initial = float(initial)

    @property
    def label(self) -> str:
        return f"Q-learning, {self._label_exploration()}"

    def _label_exploration(self) -> str:
        if self.decay == 0:
            return f"epsilon {self.epsilon:g}"
        return f"epsilon {self.epsilon:g} k^-{self.decay:.3g}"

    def update(self, row: Row, i: int, target: float) -> None:
        row.n[i] += 1
        row.q[i] += row.n[i] ** -self.power * (target - row.q[i])

    def draw_chances(self) -> dict[int, float]:
        epsilon = self.epsilon * (self.observed + 1) ** -self.decay
        if epsilon == 0:
            return {}
        coins, numbers = self._rng.random((2, self.horizon)).tolist()
        return {h: numbers[h - 1] for h in range(1, self.horizon + 1) if coins[h - 1] < epsilon}


class OptimisticQ(QLearner):
    """Optimistic Q-learning (Jin et al. 2018): UCB-H (bonus="hoeffding") and UCB-B ("bernstein").

        Q_h(s, a) = H at first; after the t-th visit, with alpha_t = (H + 1) / (H + t),
        Q_h(s, a) <- (1 - alpha_t) Q_h(s, a) + alpha_t (r + V_{h+1}(s') + b_t)
        V_h(s)     = min(H, max_a Q_h(s, a))

        UCB-H:  b_t = c sqrt(H^3 iota / t)
        UCB-B:  b_t = (beta_t - (1 - alpha_t) beta_{t-1}) / (2 alpha_t),  beta_0 = 0,
                beta_t = min(c1 (sqrt(H (W_t + H) iota / t) + sqrt(H^7 S A) iota / t),
                             c2 sqrt(H^3 iota / t)),
                W_t = the variance of the t targets so far;  iota = log(S A H K / delta)

    As published, but for what a model of ours needs. S A H is the number of triples (h, s, a) that
    can occur. Returns are measured in units in which their range has the width H, the published
    case. The paper calls c, c1 and c2 absolute constants and gives no numbers. c = sqrt(2) is
    enough for UCB-H: by Azuma and Hoeffding t weighted steps with sum alpha^2 <= 2 H / t miss
    their mean by more than sqrt(H^3 log(2 S A H K / delta) / t) with probability delta / (S A H K).
    So UCB-H with c >= sqrt(2) is "as published". c2 = 2 sqrt(2) gives the same second term, since
    beta counts twice. For c1 no number is known to be enough: UCB-B has no guarantee here.

    >>> import pkd
    >>> from pkd.experiments import rivals
    >>> from pkd.tables.coin import coin
    >>> rivals.OptimisticQ().guarantee, rivals.OptimisticQ(c=0.1).guarantee
    ('as published', 'no guarantee')
    >>> agent, world = rivals.OptimisticQ(c=0.1), pkd.Simulator(coin, seed=1)
    >>> agent.begin(coin.model(), episodes=2000, seed=1)
    >>> for _ in range(2000):
    ...     agent.observe(world.episode(agent.act))
    >>> pkd.evaluate(coin, agent.policy())
    1.25
    """

    def __init__(
        self,
        *,
        bonus: Bonus = "hoeffding",
        c: float = HOEFFDING_C,
        c1: float = 1.0,
        c2: float = 2 * HOEFFDING_C,
        delta: float = 0.05,
    ) -> None:
        name = type(self).__name__
        require(
            number(f"{name}: c", c),
            number(f"{name}: c1", c1),
            number(f"{name}: c2", c2),
            fraction(f"{name}: delta", delta),
            one_of(f"{name}: bonus", bonus, BONUSES),
        )
        self.bonus: Bonus = bonus
        self.c, self.c1, self.c2, self.delta = float(c), float(c1), float(c2), float(delta)

    @property
    def label(self) -> str:
        if self.bonus == "bernstein":
            return f"Optimistic Q-learning (UCB-B), c1={self.c1:g}, c2={self.c2:.3g}"
        constant = "" if self.c == HOEFFDING_C else f", c={self.c:g}"
        return f"Optimistic Q-learning (UCB-H){constant}"

    @property
    def guarantee(self) -> Guarantee:
        published = self.bonus == "hoeffding" and self.c >= HOEFFDING_C
        return "as published" if published else "no guarantee"

    def begin(self, model: PartiallyKnownMDP, *, episodes: int, seed: int) -> None:
        compiled = self.compile(model)
        self.low, self.high = find_range(compiled)
        self.initial = self.high
        self.triples = max(count_triples(compiled.graph), 1)
        self.iota = math.log(self.triples * episodes / self.delta)
        super().begin(model, episodes=episodes, seed=seed)
        # Returns in these units have a range of width H.
        self._unit = (self.high - self.low) / self.horizon

    def value(self, row: Row, step: Step) -> float:
        return min(self.high, max(row.q))

    def update(self, row: Row, i: int, target: float) -> None:
        row.n[i] += 1
        t, H = row.n[i], self.horizon
        alpha = (H + 1) / (H + t)
        if self.bonus == "bernstein":
            extra = self._bernstein(row, i, t, alpha, target)
        else:
            extra = self.c * math.sqrt(H**3 * self.iota / t)
        row.q[i] += alpha * (target + self._unit * extra - row.q[i])

    def _bernstein(self, row: Row, i: int, t: int, alpha: float, target: float) -> float:
        """b_t of UCB-B, in units of which the range of returns has H."""
        H, iota = self.horizon, self.iota
        gap = target - row.target[i]
        row.target[i] += gap / t
        row.spread[i] += gap * (target - row.target[i])
        variance = row.spread[i] / t / self._unit**2 if self._unit > 0 else 0.0
        pairs = self.triples / H  # S A
        first = math.sqrt(H * (variance + H) * iota / t) + math.sqrt(H**7 * pairs) * iota / t
        beta = min(self.c1 * first, self.c2 * math.sqrt(H**3 * iota / t))
        before, row.beta[i] = row.beta[i], beta
        return (beta - (1 - alpha) * before) / (2 * alpha)


def find_range(compiled: Compiled) -> tuple[float, float]:
    """The smallest and the largest return to go of any state, or what the model declares."""
    declared = compiled.model.return_range
    if declared is not None:
        return float(declared[0]), float(declared[1])
    found = [(low, high) for _, low, high in compiled.return_ranges()]
    return min(low for low, _ in found), max(high for _, high in found)


def count_triples(graph: Graph) -> int:
    """The number of (h, s, a) that can occur.

    >>> import pkd
    >>> from pkd.tables.coin import coin
    >>> count_triples(pkd.explore.explore(coin.model()))  # one state, then two, with two actions
    10
    """
    side, found = graph.layers, dict[int, int]()
    total = 0
    for layer in graph.members:
        if id(layer) not in found:
            found[id(layer)] = sum(
                count_queues(mask) * len(tuple(side.choices[node]))
                for node, mask in layer.items()
                if side.kind[node] == DECIDE
            )
        total += found[id(layer)]
    return total


def _find_reward(model: PartiallyKnownMDP, move: Transition) -> float:
    if move.reward is not None:
        return move.reward
    reward = model.reward(move.x, move.y, move.action)
    if isinstance(reward, UnknownReward):
        raise ModelError(
            f"the move from (x={move.x!r}, y={move.y!r}) has no reward; expected a number, since "
            "it is to be learned"
        )
    return float(reward)
