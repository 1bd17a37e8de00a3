"""Numbers of the core that are known from outside it, for `pkd verify`: (what, expected, found,
tolerance), computed when asked for.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from pkd.engine import compile
from pkd.learning.learn import learn
from pkd.optimism import MVP
from pkd.planning.plan import optimistic_plan, plan
from pkd.results.run import Run
from pkd.tables.tabular import TabularMDP


def facts() -> Iterator[tuple[str, float, float, float]]:
    """The facts of the core."""
    moves = [[[0.5, 0.5], [0.8, 0.2]], [[0.4, 0.6], [0.7, 0.3]]]
    toys = TabularMDP(moves, [[6.0, 4.0], [-3.0, -5.0]], horizon=4)
    what = "plan: the toymaker over four weeks (Howard 1960)"
    yield what, 12.222, plan(toys.model(), toys.law()).value, 1e-12

    guess = TabularMDP(np.full((2, 2, 2), 0.5), np.eye(2), horizon=10)
    unseen = optimistic_plan(guess.model(), {}, episodes=100).value
    what = "optimistic plan: with nothing seen it hopes for the most, 1 in each of 10 steps"
    yield what, 10.0, unseen, 0.0

    rng = np.random.default_rng(1)
    table = TabularMDP(rng.dirichlet(np.ones(5), (5, 3)), rng.random((5, 3)), horizon=8)
    model, law = table.model(), table.law()
    nodes, stripes = (plan(compile(model, large=large), law).value for large in (False, True))
    what = "engines: the stripe engine plans like the node engine, on a random table"
    yield what, nodes, stripes, 1e-12

    first, again = (learn(model, law, 300, optimism=MVP.practical(), seed=7) for _ in range(2))
    what = "learn: parts in which two runs of one seed differ, to the bit"
    yield what, 0, len(first.differences(again)), 0
    what = "learn: plans with the theory constants that fall below the optimum"
    yield what, 0, learn(model, law, 300).violations or 0, 0

    with tempfile.TemporaryDirectory() as folder:
        first.save(Path(folder) / "run.npz")
        loaded = Run.load(Path(folder) / "run.npz")
    what = "files: parts in which a saved run differs from the loaded one, to the bit"
    yield what, 0, len(first.differences(loaded)), 0
