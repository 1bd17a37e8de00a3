"""A process that writes checkpoints and runs is killed; what it left is whole, and goes on."""

from __future__ import annotations

import os
import random
import signal
import time
from pathlib import Path
from typing import Any

import numpy as np

import pkd
from pkd.learning import learn as learning
from tests.fuzz.runs import assert_same

__all__ = ["attack"]

EPISODES = 3000


def attack(seed: int, folder: Path) -> int:
    """Kills a run at a random moment, and checks every file that is there."""
    if not hasattr(os, "fork"):
        return 0
    rng = random.Random(seed)
    mdp = make_table(seed)
    rule = rng.choice([pkd.Certified(), pkd.Greedy(), pkd.PosteriorSampling()])
    whole = pkd.learn(mdp, EPISODES, optimism=rule, seed=seed)  # also compiles, before the fork
    checkpoint, saved, learner = (folder / f"{name}.npz" for name in ("check", "run", "learner"))
    child = os.fork()
    if child == 0:
        try:
            write_for_ever(mdp, rule, seed, checkpoint, saved, learner)
        finally:
            os._exit(1)
    time.sleep(rng.uniform(0.005, 0.25))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    if checkpoint.exists():
        again = pkd.learn(mdp, EPISODES, optimism=rule, seed=seed, checkpoint=checkpoint)
        assert_same(whole, again, "a run that was killed")
    if saved.exists():
        run = pkd.Run.load(saved, mdp)
        assert run.policy is not None
    if learner.exists():
        pkd.OptimisticLearner.load(learner, mdp).act(1, 0, None)
    return 1


def make_table(seed: int) -> pkd.TabularMDP:
    """A small random table."""
    rng = np.random.default_rng(seed)
    return pkd.TabularMDP(rng.dirichlet(np.ones(4), (4, 2)), rng.random((4, 2)), 5)


def write_for_ever(mdp: Any, rule: Any, seed: int, checkpoint: Path, *others: Path) -> None:
    """Writes a checkpoint after every few episodes, then runs and learners, until it is killed."""
    learning.CHECKPOINT_SECONDS = -1.0
    learning.CHUNK_SECONDS = 1e-3
    saved, learner = others
    run = pkd.learn(mdp, EPISODES, optimism=rule, seed=seed, checkpoint=checkpoint)
    own = pkd.OptimisticLearner(mdp.model())
    while True:
        run.save(saved)
        own.save(learner)
