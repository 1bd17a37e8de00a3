"""The optimistic algorithm one episode at a time, for an environment of the user's own: no law."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from pkd.engine import compile
from pkd.engine.compiled import Counts
from pkd.engine.doors import count_reward
from pkd.episode import Episode, Transition, list_branches, list_samples
from pkd.expect import require, show
from pkd.expect import seed as check_seed
from pkd.files.atomic import DAMAGE, read_npz, write_npz
from pkd.learning.algorithm import Learning
from pkd.model import CHANCE, END, Known, ModelError, UnknownReward
from pkd.optimism import Certified
from pkd.planning.plan import Model, Plan, check_schedule
from pkd.results.run import CertifiedInterval
from pkd.rules import Rule, as_rule, from_config
from pkd.rules.schedule import Schedule, schedule_for

KIND = "OptimisticLearner"  # what a saved file says that it is


class OptimisticLearner:
    """Acts by an optimistic plan and learns from each episode that it is shown.

    `episodes` is how many there will be in all; only rules as published need it, because their
    logarithms depend on it. `counts` {z: {x': n}} are what is known already. Ask `act` in every
    decision state, collect a `pkd.Transition(x, y, a, x_next, y_next)` for every move, and
    `observe` them at the end:

    >>> import pkd
    >>> from pkd.tables.coin import coin
    >>> learner = pkd.OptimisticLearner(coin.model())
    >>> seen = [(1, 0), (2, 1), (3, 0)]
    >>> episode = [pkd.Transition(s, None, learner.act(h, s, None), 1 - s, None) for h, s in seen]
    >>> learner.observe(episode)
    >>> learner.observed, sum(sum(row.values()) for row in learner.counts.values())
    (1, 3.0)
    """

    def __init__(
        self,
        model: Model,
        episodes: int | None = None,
        *,
        optimism: Rule = Certified(),
        delta: float = 0.05,
        seed: int = 0,
        replan: Schedule = "auto",
        counts: Counts | None = None,
    ) -> None:
        check_schedule(1 if episodes is None else episodes, delta)
        require(check_seed("seed", seed))
        optimism = as_rule(optimism)
        schedule_for(optimism.every_episode, replan)  # refused before the model is walked
        self.compiled = compile(model)
        schedule = schedule_for(optimism.every_episode, replan, len(self.compiled.features))
        self.optimism = optimism
        self._config: dict[str, Any] = {
            "episodes": None if episodes is None else int(episodes),
            "optimism": optimism.to_config(),
            "delta": float(delta),
            "seed": int(seed),
            "replan": schedule.text,
        }
        self.observed = 0  # episodes so far
        self.plans = 0  # plans so far
        self._learning = Learning(self.compiled, optimism, episodes, delta, seed, counts, schedule)
        self._plan: Plan | None = None
        self._found: tuple[int, CertifiedInterval] | None = (
            None  # (episodes observed, the interval then)
        )

    @property
    def counts(self) -> dict[Any, dict[Any, float]]:
        """Everything counted so far, {z: {x': n}}."""
        return self.compiled.named_counts(self._learning.tally)

    @property
    def plan(self) -> Plan:
        """The plan in force, made when it is first asked for. Later plans do not change it."""
        learning = self._learning
        if learning.due or learning.done >= learning.due_at or self._plan is None:
            learning.replan()
            self._plan = learning.plan()
            self.plans += 1
        return self._plan

    @property
    def upper_value(self) -> float:
        """What the plan in force believes an episode to be worth, where that is an upper value.

        A plan that takes some features as they are estimated (`Certified(explore="needed")`) has
        none; then it is the certified one of `interval`.
        """
        bonus = self._learning.bonus
        mixed = bonus.exogenous is not None or bonus.rate
        return self.interval.high if mixed else self.plan.value

    @property
    def interval(self) -> CertifiedInterval:
        """(low, high, robust plan): what all episodes so far prove of V*, with every rule."""
        if self._found is None or self._found[0] != self.observed:
            self._found = self.observed, self._learning.find_interval(exact=True)
        return self._found[1]

    @property
    def lower_value(self) -> float:
        """What the robust plan earns at least, with probability 1 - delta."""
        return self.interval.low

    @property
    def robust_plan(self) -> Plan:
        """The plan with the largest lower value that the data prove."""
        robust = self.interval.robust
        assert robust is not None
        return robust

    @property
    def gap(self) -> float:
        """high - low of `interval`.

        With probability 1 - delta the robust plan is that close to V*.

        >>> import pkd
        >>> from pkd.tables.coin import short_coin as coin
        >>> counts = {(0, 0): {0: 500, 1: 500}, (0, 1): {0: 1000}}
        >>> rule = pkd.Certified(minimax=False)
        >>> learner = pkd.OptimisticLearner(coin.model(), optimism=rule, counts=counts)
        >>> round(learner.lower_value, 3), round(learner.upper_value, 3), round(learner.gap, 3)
        (0.434, 0.566, 0.132)
        """
        return self.interval.high - self.interval.low

    def act(self, h: int, x: Any, y: Any) -> Any:
        """The action at step h (from 1) in the state (x, y)."""
        return self.plan.action(h, x, y)

    def observe(self, episode: Episode | Iterable[Transition]) -> None:
        """Learns from a finished episode; one that the model calls impossible is refused whole."""
        episode = _read_episode(episode)
        self.check(episode)
        due = self.compiled.count(self._learning.tally, list_samples(self.compiled.model, episode))
        due |= self._count_rewards(episode)
        self.observed += 1
        self._learning.done = self.observed
        self._learning.due |= due

    def save(self, path: str | Path) -> None:
        """Writes everything that the next episode depends on, whole or not at all.

        `load` goes on with the same bits. A learner may save itself after every episode.
        """
        meta: dict[str, object] = {"kind": KIND, "fingerprint": self.compiled.fingerprint}
        meta |= {"config": self._config, "observed": self.observed, "plans": self.plans}
        write_npz(path, self._learning.to_arrays(), meta)

    @classmethod
    def load(cls, path: str | Path, model: Model) -> OptimisticLearner:
        """The learner that `save` wrote, for the same model; a file of another one is refused.

        >>> import pkd, tempfile
        >>> tosses = [[[0.5, 0.5], [1.0, 0.0]], [[0.5, 0.5], [0.0, 1.0]]]
        >>> coin = pkd.TabularMDP(tosses, [[0.0, 0.0], [1.0, 1.0]], horizon=1)
        >>> learner = pkd.OptimisticLearner(coin.model())
        >>> learner.observe([pkd.Transition(0, None, learner.act(1, 0, None), 1, None)])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     learner.save(f"{folder}/learner.npz")
        ...     again = pkd.OptimisticLearner.load(f"{folder}/learner.npz", coin.model())
        >>> again.observed, again.counts == learner.counts
        (1, True)
        """
        arrays, meta = read_npz(path)
        compiled = compile(model)
        if meta.get("kind") != KIND:
            raise ModelError(f"{path} is not a learner that pkd saved")
        try:
            rule = from_config(dict(meta["config"]["optimism"]))
        except DAMAGE as error:
            raise ModelError(f"{path} is damaged: {error}") from None
        if meta.get("fingerprint") != compiled.fingerprint:
            raise ModelError(
                f"{path} is the learner of another model, or of an edited one; give the model it "
                "was made for. Its counts can be carried over: OptimisticLearner(new_model, "
                "counts=OptimisticLearner.load(file, old_model).counts)"
            )
        try:
            config = dict(meta["config"])
            _, count = config.pop("optimism"), config.pop("episodes")
            learner = cls(compiled, count, optimism=rule, **config)
            learner._learning.restore(arrays)
            learner.observed, learner.plans = int(meta["observed"]), int(meta["plans"])
        except DAMAGE as error:
            raise ModelError(f"{path} is damaged: {error}") from None
        if learner.plans:
            learner._plan = learner._learning.plan()
        return learner

    def check(self, episode: Episode | Iterable[Transition]) -> None:
        """Raises a ModelError with every reason why the model does not allow an episode."""
        episode = _read_episode(episode)
        findings, taken = list[str](), 0
        before: Any = None
        for number, move in enumerate(episode, 1):
            where = _state(move.x, move.y)
            if number == 1 and not self._starts(move):
                findings.append(f"move 1 starts in {where}, which start() does not allow")
            if number > 1 and before != (move.x, move.y):
                findings.append(
                    f"move {number} starts in {where}, but move {number - 1} ended in "
                    f"{_state(*before)}"
                )
            if fault := self._find_fault(move, taken):
                findings.append(f"move {number}: {fault}")
            taken += move.action is not None
            before = (move.x_next, move.y_next)
        if not findings and not self._may_stop(before, taken):
            where = "before its first move" if before is None else f"in {_state(*before)}"
            done = f"{taken} of {self.compiled.horizon} actions"
            findings.append(f"the episode stops {where} after {done}; expected all of it")
        if findings:
            raise ModelError(findings[:20])

    def _may_stop(self, state: Any, taken: int) -> bool:
        """Whether an episode may stop there; None: before its first move, at an END."""
        model = self.compiled.model
        if state is None:
            start = model.start()
            return any(
                model.actions(x, y) is END
                for x, y in (start if isinstance(start, Mapping) else [start])
            )
        actions = model.actions(*state)
        return actions is END or (actions is not CHANCE and taken == self.compiled.horizon)

    def _starts(self, move: Transition) -> bool:
        start = self.compiled.model.start()
        if isinstance(start, Mapping):
            return bool(start.get((move.x, move.y), 0) > 0)
        return bool(start == (move.x, move.y))

    def _find_fault(self, move: Transition, taken: int) -> str | None:
        """Why the model calls a move impossible, or None."""
        model, horizon = self.compiled.model, self.compiled.horizon
        where, actions = _state(move.x, move.y), model.actions(move.x, move.y)
        if actions is END or (taken >= horizon and actions is not CHANCE):
            return f"the episode has ended in {where}"
        expected = [None] if actions is CHANCE else list(actions)
        if move.action not in expected:
            return (
                f"the action {move.action!r} is not possible in {where}; expected one of "
                f"{expected!r}"
            )
        branches = list_branches(
            model, move.x, move.y, move.action, taken + (actions is not CHANCE)
        )
        z = next((z for _, y_next, z in branches if y_next == move.y_next), _NOTHING)
        if z is _NOTHING:
            return f"y' = {move.y_next!r} cannot follow {where} and the action {move.action!r}"
        states = [x for x, p in z.law if p > 0] if isinstance(z, Known) else list(model.outcomes(z))
        if move.x_next not in states:
            after = f"{where}, the action {move.action!r} and y' = {move.y_next!r}"
            return f"x' = {move.x_next!r} cannot follow {after}; expected one of {states!r}"
        reward = model.reward(move.x, move.y, move.action)
        if isinstance(reward, UnknownReward) and (
            move.reward is None or not reward.low <= move.reward <= reward.high
        ):
            limits = f"[{reward.low:g}, {reward.high:g}]"
            return (
                f"the reward is {move.reward!r}; expected a number in {limits}, since it is to be "
                "learned"
            )
        return None

    def _count_rewards(self, episode: Episode) -> bool:
        index, due = self.compiled.reward_index, False
        for move in episode if index else ():
            reward = self.compiled.model.reward(move.x, move.y, move.action)
            if isinstance(reward, UnknownReward) and move.reward is not None:
                w = index[reward.feature]
                due |= bool(count_reward(self._learning.tally, w, float(move.reward), 1.0))
        return due


_NOTHING = object()


def _state(x: Any, y: Any) -> str:
    return f"(x={x!r}, y={y!r})"


def _read_episode(given: Any) -> Episode:
    if isinstance(given, Episode):
        return given
    moves = tuple(given) if isinstance(given, Iterable) else ()
    if not moves or not all(isinstance(move, Transition) for move in moves):
        raise ModelError(f"episode is {show(given)}; expected a pkd.Episode, or pkd.Transitions")
    return Episode(moves)
