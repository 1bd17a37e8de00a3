"""Policies and learners play in a `LateEnv`: observations become states, records episodes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, SupportsFloat, cast

import attrs
import numpy as np

import pkd
from pkd import ModelError, PartiallyKnownMDP, transforms
from pkd.expect import instance, require, show
from pkd_delay.augmented import Augmented
from pkd_delay.long.learning import LongLearner
from pkd_delay.policies import LatePlan

if TYPE_CHECKING:
    from pkd_delay.envs.late_env import LateEnv

__all__ = ["LateReader", "drive", "play"]


class LateReader:
    """Reads a `LateEnv` as a late model, for `pkd.drive`."""

    def __init__(self, env: LateEnv, model: PartiallyKnownMDP) -> None:
        refuse_other_lateness(env, model)
        self.env, self.model = env, model
        self.observation: Any = None
        self.ended = False  # the environment ended the episode before the horizon

    def begin(self, observation: Any) -> None:
        self.observation, self.ended = observation, False

    def place(self) -> tuple[int, Any, Any]:
        return self.env.place_of(self.observation, self.model)

    def code(self, action: Any) -> Any:
        return self.env.code_of(action)

    def move(self, action: Any, answer: tuple[Any, SupportsFloat, bool, bool]) -> bool:
        self.observation, _, self.ended, truncated = answer
        return self.ended or truncated

    def episode(self) -> pkd.Episode:
        record = self.env.episode()
        if self.ended and isinstance(_layers(self.model)[-1], pkd.UnknownTable):
            *before, (*moves, last) = record.moves
            over = attrs.evolve(last, x_next=pkd.UnknownTable.OVER)
            record = attrs.evolve(record, moves=(*before, (*moves, over)))
        return record.augmented(self.model)


def _layers(model: PartiallyKnownMDP) -> list[PartiallyKnownMDP]:
    """A model and what it transforms, the innermost one last."""
    found = [model]
    while isinstance(model, Augmented | transforms.Transformed):
        model = model.base
        found.append(model)
    return found


def refuse_other_lateness(env: LateEnv, model: PartiallyKnownMDP) -> None:
    """ModelError unless the model is late where the environment is."""
    if not hasattr(env, "packing"):
        raise ModelError(f"env is {show(env)}; expected a pkd_delay.LateEnv")
    found, wanted = _layers(model), ["a base"]
    layers, fits = found[:-1], True
    late = env.packing.queue or isinstance(found[0], Augmented)
    for needed, kind, name in (
        (late, Augmented, "pkd_delay.KnownDelay or UnknownDelay"),
        (env.packing.commands, transforms.LateActions, "LateActions"),
    ):
        if needed:
            wanted.insert(-1, name)
            fits = fits and bool(layers) and isinstance(layers.pop(0), kind)
    if not fits:
        names = " of ".join(type(layer).__name__ for layer in found)
        raise ModelError(
            f"the model is {names}; in this environment expected {' of '.join(wanted)}"
        )


def drive(
    env: LateEnv,
    learner: pkd.OptimisticLearner | LongLearner,
    episodes: int,
    *,
    seed: int = 0,
    save: str | Path | None = None,
) -> np.ndarray:
    """`pkd.drive` in an environment with late observations, late actions, or both.

    The learner's model is late in the same way: `KnownDelay` or `UnknownDelay` of a base,
    `LateActions` of a base, or the former of the latter. `env.problem().model()` is one.

    >>> import pkd, pkd_delay
    >>> from pkd_delay.models.tables import two_state_chain
    >>> late = pkd_delay.DelayedMDP.constant(two_state_chain(horizon=4), 1)
    >>> learner = pkd.OptimisticLearner(late.known())
    >>> paid = drive(pkd_delay.LateEnv(late), learner, 30)
    >>> learner.observed, len(paid)
    (30, 30)
    """
    kinds = (pkd.OptimisticLearner, LongLearner)
    require(instance("learner", learner, kinds, "a pkd.OptimisticLearner or a LongLearner"))
    if isinstance(learner, LongLearner):
        if save is not None:
            raise ModelError("save: a LongLearner has no file; its .counts are all that it knows")
        model: PartiallyKnownMDP = learner.model
    else:
        model = learner.compiled.model
    reader, found = LateReader(env, model), cast("Any", learner)
    return pkd.drive(env, found, episodes, reader=reader, seed=seed, save=save)


def play(
    env: LateEnv,
    policy: LatePlan | pkd.Plan | pkd.OptimisticLearner,
    episodes: int,
    *,
    seed: int = 0,
) -> np.ndarray:
    """The returns of a policy in an environment, played as `drive` plays: nothing is learned.

    `policy` is a plan of `env.problem()`, or a learner of its model.

    >>> import pkd_delay
    >>> from pkd_delay.models.tables import two_state_chain
    >>> env = pkd_delay.LateEnv(two_state_chain(stay=1.0), 2, 1, first_action=0)
    >>> play(env, pkd_delay.plan(env.problem()), 3)
    array([10., 10., 10.])
    """
    core: Any = getattr(policy, "core", policy)
    wanted = "a plan of env.problem(), or a learner of its model"
    require(instance("policy", core, (LatePlan, pkd.Plan, pkd.OptimisticLearner), wanted))
    model = core.delayed.known() if isinstance(core, LatePlan) else core.compiled.model
    still: Any = _Still(core.action if isinstance(core, pkd.Plan) else core.act)
    return pkd.drive(env, still, episodes, reader=LateReader(env, model), seed=seed)


class _Still:
    """A policy in the place of a learner."""

    observed = 0

    def __init__(self, act: Callable[[int, Any, Any], Any]) -> None:
        self.act = act

    def observe(self, episode: pkd.Episode) -> None:
        pass
