"""`drive`: a learner plays in an environment with `reset` and `step`, as those of Gymnasium have.

A `Reader` says how observations are read as states of the model. `TableReader` is the one for
tables; an adapter may bring its own.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol, SupportsFloat

import numpy as np

from pkd.episode import Episode, Transition
from pkd.expect import if_given, pathname, require, show, whole
from pkd.expect import seed as check_seed
from pkd.learning.learner import OptimisticLearner
from pkd.model import CHANCE, END, ModelError, PartiallyKnownMDP
from pkd.progress import watch
from pkd.tables.unknown import OVER
from pkd.workers import memory


class Environment(Protocol):
    """The part of Gymnasium's interface that is used."""

    def reset(self, *, seed: int | None = None) -> tuple[Any, dict[str, Any]]: ...

    def step(self, action: Any) -> tuple[Any, SupportsFloat, bool, bool, dict[str, Any]]: ...


class Reader(Protocol):
    """Reads the observations of one episode as states of a model."""

    def begin(self, observation: Any) -> None:
        """Starts an episode with its first observation."""

    def place(self) -> tuple[int, Any, Any]:
        """(h, x, y) of the decision that is due."""

    def code(self, action: Any) -> Any:
        """The environment's word for an action of the model."""

    def move(self, action: Any, answer: tuple[Any, SupportsFloat, bool, bool]) -> bool:
        """Takes (observation, reward, terminated, truncated); returns whether it was the last."""

    def episode(self) -> Episode:
        """The finished episode, as a learner observes it."""


def drive(
    env: Environment,
    learner: OptimisticLearner,
    episodes: int,
    *,
    reader: Reader | None = None,
    seed: int = 0,
    save: str | Path | None = None,
) -> np.ndarray:
    """Plays until the learner has observed so many episodes; returns what the new ones paid.

    env: an environment with Gymnasium's interface. reader: says what its observations are in the
    model; None: an observation is a state.
    Episode k is reset with a seed made of `seed` and k. save: the learner is written there after
    every episode, so that a program that was stopped goes on with the same bits:
    `drive(env, OptimisticLearner.load(path, model), ...)`.

    >>> import pkd
    >>> class Coin:  # action 1 pays 1 with probability 3/4
    ...     def reset(self, *, seed=None):
    ...         self.rng = np.random.default_rng(seed)
    ...         return 0, {}
    ...
    ...     def step(self, action):
    ...         return 0, float(action and self.rng.random() < 0.75), False, False, {}
    >>> learner = pkd.OptimisticLearner(pkd.UnknownTable(1, 2, horizon=5, ends=False))
    >>> paid = pkd.drive(Coin(), learner, 200, seed=1)
    >>> learner.observed, bool(paid[-50:].mean() > 3)
    (200, True)
    """
    faults = (
        whole("episodes", episodes, 0, memory() // 8)
        + check_seed("seed", seed)
        + if_given(pathname, "save", save)
    )
    if not all(callable(getattr(env, name, None)) for name in ("reset", "step")):
        faults.append(f"env is {show(env)}; expected an environment with reset and step")
    if not all(hasattr(learner, name) for name in ("act", "observe", "observed")):
        faults.append(f"learner is {show(learner)}; expected a pkd.OptimisticLearner")
    require(faults)
    found = TableReader(learner.compiled.model) if reader is None else reader
    paid = []
    for k in watch(range(learner.observed, int(episodes)), "episodes"):
        words = np.random.SeedSequence([int(seed), k]).generate_state(1)
        paid.append(_play(env, learner, found, int(words[0])))
        if save is not None:
            learner.save(save)
    return np.array(paid, float)


def _play(env: Environment, learner: OptimisticLearner, reader: Reader, seed: int) -> float:
    """One episode; returns what it paid."""
    observation, _ = env.reset(seed=seed)
    reader.begin(observation)
    paid, over = 0.0, False
    while not over:
        action = learner.act(*reader.place())
        observation, reward, terminated, truncated, _ = env.step(reader.code(action))
        over = reader.move(action, (observation, reward, bool(terminated), bool(truncated)))
        paid += float(reward)
    learner.observe(reader.episode())
    return paid


class TableReader:
    """Numbered observations are the states of a table, or of an `UnknownTable`.

    An episode that the environment ends before the horizon needs a model whose outcomes say so:
    `UnknownTable(ends=True)`, or a table with states that are END.
    """

    def __init__(self, model: PartiallyKnownMDP) -> None:
        self.model = model
        self.moves: list[Transition] = []
        self.step, self.x = 1, None

    def begin(self, observation: Any) -> None:
        self.moves, self.step, self.x = [], 1, self._read(observation)
        start = self.model.start()
        if isinstance(start, tuple) and self.model.actions(*start) is CHANCE:
            x, y = start
            self.moves.append(Transition(x, y, None, self.x, None, 0.0))

    def place(self) -> tuple[int, Any, None]:
        return self.step, self.x, None

    def code(self, action: Any) -> Any:
        return action

    def move(self, action: Any, answer: tuple[Any, SupportsFloat, bool, bool]) -> bool:
        observation, reward, terminated, truncated = answer
        after = self._read(observation)
        if terminated and self.model.actions(after, None) is not END:
            after = OVER
        last = self.step == self.model.horizon
        if truncated and not (terminated or last):
            raise ModelError(
                f"the environment cut the episode off after {self.step} steps; expected "
                f"{self.model.horizon}: make the horizon of the model shorter, or take the time "
                "limit off the environment"
            )
        self.moves.append(Transition(self.x, None, action, after, None, float(reward)))
        self.step, self.x = self.step + 1, after
        return terminated or last

    def episode(self) -> Episode:
        return Episode(self.moves)

    def _read(self, observation: Any) -> Any:
        try:
            number = int(observation)
        except (TypeError, ValueError):
            number = -1
        if number < 0 or number != observation:
            raise ModelError(
                f"the environment showed {observation!r}; expected the number of a state. Give "
                "drive(reader=...) for other observations"
            )
        return number
