"""Episodes of a model and its law under a policy, as records for a learner.

A plan of the compiled model itself is played in compiled code. Any other policy is asked move by
move, and so is the model: that needs no compiled model, and the law of a feature is read when it is
first drawn from. Both ways draw the same random numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from pkd.check.laws import read_law
from pkd.engine import Compiled, compile
from pkd.engine.arrays import find_array
from pkd.engine.belief import Tally
from pkd.engine.compiled import Truth
from pkd.engine.doors import count, count_reward, draw, uniform
from pkd.engine.nodes.engine import NodeEngine
from pkd.episode import Episode, Transition, list_branches
from pkd.expect import require, show, whole
from pkd.explore import read_start
from pkd.files.policies import adapt_policy
from pkd.model import (
    CHANCE,
    END,
    Known,
    Law,
    ModelError,
    UnknownReward,
    normalise,
)
from pkd.planning.plan import Model, Plan, Policy, seed_words, solve
from pkd.problem import as_model, unpack
from pkd.progress import watch
from pkd.workers import memory

BULK = 100_000  # episodes of one compiled call: an interrupt is answered between two of them
MOVE_BYTES = 100  # of a record of one move, at least
SLACK = 1e-9  # by which probabilities may miss 1

_Masses = tuple[Sequence[Any], np.ndarray]  # (values, their cumulative probabilities)


def simulate(
    model: Model, policy: Policy | None = None, episodes: int = 1, seed: int = 0
) -> list[Episode]:
    """Episodes of a problem under a policy; None: under its optimal plan.

    model: a problem, which is an object, a pair (model, law) or a name. episodes: how many. seed:
    the same one gives the same episodes. A policy is a plan, or a function (h, x, y) that gives an
    action or {action: probability}. A law with `reveal(episode, rng)` fills `Episode.revealed`.

    >>> import pkd
    >>> from pkd.tables.coin import coin
    >>> # Action 1 stays where it is.
    >>> [episode] = pkd.simulate(coin, lambda h, x, y: 1)
    >>> [(move.x, move.action, move.x_next) for move in episode]
    [(0, 1, 0), (0, 1, 0), (0, 1, 0)]
    """
    return Simulator(model, seed=seed).play(policy, episodes)


class Simulator:
    """Plays single episodes of one model and one law; what is built is built once.

    >>> import pkd
    >>> from pkd.tables.coin import coin
    >>> world, again = pkd.Simulator(coin, seed=1), pkd.Simulator(coin, seed=1)
    >>> toss_once = lambda h, x, y: int(h != 2)  # action 1 keeps the coin as it lies
    >>> totals = [world.episode(toss_once).total for _ in range(100)]
    >>> sorted(set(totals)), totals == [again.episode(toss_once).total for _ in range(100)]
    ([0.0, 1.0], True)
    """

    def __init__(self, model: Model, law: Law | Truth | None = None, *, seed: int = 0) -> None:
        if isinstance(law, Truth):
            self._given, self.law = model, law.law
            self.truth = law
        else:
            self._given, self.law = unpack(model, law)
            if hasattr(self.law, "__array__") or find_array(self.law):
                self.law = self.truth.law  # the law of the array, by name
        self.model = as_model(self._given)
        self.rng = seed_words(seed)
        # For what the law reveals at the end of an episode.
        sequence = np.random.SeedSequence(entropy=int(seed), spawn_key=(1,))
        self.reveal_rng = np.random.Generator(np.random.PCG64(sequence))
        self._reveal = getattr(self.law, "reveal", None)
        self._laws: dict[Hashable, _Masses] = {}  # of the features and rewards drawn from so far

    @cached_property
    def compiled(self) -> Compiled:
        """The compiled model; only plans and learners need it."""
        return compile(self._given)

    @cached_property
    def truth(self) -> Truth:
        """The law as the compiled model reads it, whole."""
        return self.compiled.truth(self.law)

    @cached_property
    def optimum(self) -> Plan:
        """The optimal plan."""
        return solve(self.compiled, self.truth)

    @cached_property
    def _start(self) -> _Masses:
        found = read_start(self.model)
        return [state for state, _ in found], np.cumsum([p for _, p in found])

    def play(self, policy: Policy | None, episodes: int) -> list[Episode]:
        """Episodes under a policy; None: under the optimal plan."""
        check_policy(policy)
        require(whole("episodes", episodes, 0, memory() // (MOVE_BYTES * self.model.horizon)))
        return [self.episode(policy) for _ in watch(range(episodes), "playing")]

    def returns(self, policy: Policy | None, episodes: int) -> np.ndarray:
        """The returns of episodes, (episodes,); a plan is played in compiled code.

        >>> import pkd
        >>> rows = [[[0.5, 0.5]], [[0.5, 0.5]]]
        >>> heads = pkd.TabularMDP(rows, [[0.0], [1.0]], 10, start=[0.5, 0.5])
        >>> returns = pkd.Simulator(heads).returns(None, 100_000)
        >>> bool(abs(returns.mean() - 5) < 0.02), bool(abs(returns.var() - 2.5) < 0.04)
        (True, True)
        """
        check_policy(policy)
        require(whole("episodes", episodes, 0, memory() // 8))
        policy = self.optimum if policy is None else policy
        returns, plan, done = np.zeros(episodes), self._find_own(policy), 0
        if plan is None:
            for k in watch(range(episodes), "playing"):
                returns[k] = self.episode(policy).total
            return returns
        tally = plan.compiled.tally()
        tally.marks[:] = tally.reward_marks[:] = np.inf  # no plan is ever due
        while done < episodes:
            chunk = returns[done : done + BULK]
            world = self.truth.world
            done += plan.compiled.episodes(world, plan.choices, tally, self.rng, chunk)[0]
        return returns

    def episode(self, policy: Policy | None) -> Episode:
        """The next episode; None: under the optimal plan."""
        check_policy(policy)
        return self.draw(self.optimum if policy is None else policy, None, self.rng)[0]

    def draw(self, policy: Policy, tally: Tally | None, rng: np.ndarray) -> tuple[Episode, bool]:
        """An episode; what was visited is added to a tally: (episode, whether a plan is due)."""
        plan = self._find_own(policy)
        if plan is not None and isinstance(plan.compiled, NodeEngine):
            tally = plan.compiled.tally() if tally is None else tally
            episode, due = plan.compiled.record(self.truth.world, plan.choices, tally, rng)
        else:
            episode, due = self._ask(policy, tally, rng)
        if self._reveal is not None:
            revealed = self._reveal(episode, self.reveal_rng)
            episode = Episode(episode.transitions, revealed, episode.final)
        return episode, due

    def _find_own(self, policy: Policy) -> Plan | None:
        """The policy, if it is a plan of this compiled model."""
        mine = self._given, self.__dict__.get("compiled")
        return policy if isinstance(policy, Plan) and policy.compiled in mine else None

    def _ask(self, act: Policy, tally: Tally | None, rng: np.ndarray) -> tuple[Episode, bool]:
        """One episode by asking policy and model move by move."""
        model, horizon, moves = self.model, self.model.horizon, list[Transition]()
        act = adapt_policy(model, act)
        x, y = _draw(self._start, uniform(rng))[1]
        taken, due = 0, False
        while (kind := model.actions(x, y)) is CHANCE or (kind is not END and taken < horizon):
            action = None
            if kind is not CHANCE:
                taken += 1
                where = f"step {taken} in (x={x!r}, y={y!r})"
                action = _choose(act(taken, x, y), list(kind), where, rng)
            reward = model.reward(x, y, action)
            if isinstance(reward, UnknownReward):
                feature, reward = reward.feature, _draw(self._pay(reward), uniform(rng))[1]
                if tally is not None:
                    w = self.compiled.reward_index[feature]
                    due |= bool(count_reward(tally, w, reward, 1.0))
            branches = list_branches(model, x, y, action, taken)
            if abs(math.fsum(branch[0] for branch in branches) - 1) > SLACK:
                raise ModelError(f"the moves from x={x!r}, y={y!r} by {action!r} do not sum to 1")
            _, y_next, z = _draw_one(branches, rng)
            if isinstance(z, Known):
                x_next = _draw_one([(p, value) for value, p in z.law if p > 0], rng)[1]
            else:
                law = self._follow(z)
                outcome, x_next = _draw(law, uniform(rng)) if len(law[0]) > 1 else (0, law[0][0])
                if tally is not None:
                    row = self.compiled.feature_index[z]
                    due |= bool(count(tally, row, self.compiled.row_ptr[row] + outcome))
            moves.append(Transition(x, y, action, x_next, y_next, float(reward)))
            x, y = x_next, y_next
        return Episode(moves, final=float(model.final(x, y))), due

    def _follow(self, z: Any) -> _Masses:
        """The law of x' given an unknown feature."""
        if z not in self._laws:
            states = tuple(self.model.outcomes(z))
            bound = {z: self.model.branching(z)}
            [(_, law)] = read_law({z: states}, self.law, branching=bound)
            self._laws[z] = states, np.cumsum([law.get(x, 0.0) for x in states])
        return self._laws[z]

    def _pay(self, reward: UnknownReward) -> _Masses:
        """The law of an unknown reward."""
        key = UnknownReward, reward.feature
        if key not in self._laws:
            limits = {reward.feature: (reward.low, reward.high)}
            [(_, law)] = read_law({}, self.law, rewards=limits)
            values = sorted(law)
            self._laws[key] = list(map(float, values)), np.cumsum([law[v] for v in values])
        return self._laws[key]


def _draw(masses: _Masses, u: float) -> tuple[int, Any]:
    """(place, value) of a draw."""
    values, cumulative = masses
    place = int(draw(cumulative, 0, len(values), u))
    return place, values[place]


def _draw_one(branches: Sequence[Any], rng: np.ndarray) -> Any:
    """One of some tuples that begin with their probabilities."""
    if len(branches) == 1:
        return branches[0]
    return _draw((branches, np.cumsum([branch[0] for branch in branches])), uniform(rng))[1]


def _choose(answer: Any, actions: list[Any], where: str, rng: np.ndarray) -> Any:
    """The action that a policy answered, drawn where it gave {action: probability}."""
    fault = find_policy_fault(answer, actions)
    if fault is not None:
        raise ModelError(f"the policy {fault} at {where}")
    return _draw_one([(p, action) for action, p in read_weights(answer)], rng)[1]


def find_policy_fault(answer: Any, actions: list[Any]) -> str | None:
    """What is wrong with the answer of a policy, or None."""
    if not isinstance(answer, Mapping):
        return None if answer in actions else f"takes {answer!r}, expected one of {actions!r},"
    strange = next((a for a, p in answer.items() if a not in actions and p != 0), None)
    if strange is not None:
        return f"takes {strange!r}, expected one of {actions!r},"
    try:
        masses = [float(p) for p in answer.values()]
    except (TypeError, ValueError):
        masses = [math.nan]
    if not all(p >= 0 for p in masses) or not abs(math.fsum(masses) - 1) <= SLACK:
        return f"is {answer!r}, expected probabilities that sum to 1,"
    return None


def check_policy(policy: Any) -> None:
    """A ModelError for what is no policy; None stands for the optimal one."""
    if policy is not None and (not callable(policy) or isinstance(policy, type)):
        raise ModelError(
            f"policy is {show(policy)}; expected a Plan, or a function (h, x, y) -> action"
        )


def read_weights(answer: Any) -> list[tuple[Any, float]]:
    """What a policy answered, as pairs (action, probability > 0)."""
    if not isinstance(answer, Mapping):
        return [(answer, 1.0)]
    taken = {action: float(p) for action, p in answer.items() if p > 0}
    return list(zip(taken, normalise(taken.values()), strict=True))


class RandomisedError(Exception):
    """A policy chooses at random."""


def refuse_weights(act: Policy) -> Callable[[int, Any, Any], Any]:
    """The policy, with a RandomisedError where it chooses at random."""

    def choose(h: int, x: Any, y: Any) -> Any:
        answer = act(h, x, y)
        if isinstance(answer, Mapping):
            raise RandomisedError
        return answer

    return choose
