"""The registered late environments with their exact optimum, so that any agent can be measured.

For each id: the optimal expected return, that of ignoring the delay (the optimal policy for the
undelayed world, which takes the last shown state for the present one), and that of random play. All
three are exact. They are stored in `benchmark.csv`; `pkd benchmark --recompute` computes them anew.
"""

from __future__ import annotations

import csv
import difflib
from functools import cache
from importlib import resources
from typing import Any

import attrs
import numpy as np

import pkd
from pkd import ModelError

__all__ = [
    "HEADERS",
    "Scores",
    "compute_scores",
    "describe_unknown",
    "normalised_score",
    "read_scores",
]

HEADERS = ("id", "horizon", "optimal", "ignoring the delay", "random")


@attrs.frozen
class Scores:
    """Exact expected returns in one environment."""

    id: str
    horizon: int
    optimal: float
    ignoring: float
    random: float


def normalised_score(id: str, value: float) -> float:  # noqa: A002  # Gymnasium's own word
    """(value - random) / (optimal - random): 0 is random play, 1 the exact optimum.

    `id` is a registered late environment, and `value` a mean return in it. More than 1 is luck, or
    an agent that sees what it should not.

    >>> import pkd_delay
    >>> round(pkd_delay.envs.benchmark.normalised_score("pkd/LateTwoState-d1-v0", 9.1), 12)
    1.0
    """
    scores = read_scores()
    if id not in scores:
        raise ModelError(describe_unknown(id))
    found = scores[id]
    return (float(value) - found.random) / (found.optimal - found.random)


def describe_unknown(id: str) -> str:  # noqa: A002  # Gymnasium's own word
    """What is wrong with an id that is not registered."""
    close = difflib.get_close_matches(id, read_scores(), n=1)
    hint = f"did you mean {close[0]!r}?" if close else "`pkd benchmark` lists all of them"
    return f"no late environment is called {id!r}; {hint}"


@cache
def read_scores() -> dict[str, Scores]:
    """The stored table."""
    with resources.files("pkd_delay.envs").joinpath("benchmark.csv").open(encoding="utf-8") as file:
        lines = list(csv.DictReader(file))
    return {
        line["id"]: Scores(line["id"], int(line["horizon"]), *(float(line[h]) for h in HEADERS[2:]))
        for line in lines
    }


def compute_scores(id: str) -> Scores:  # noqa: A002  # Gymnasium's own word
    """The three returns of one environment, computed anew."""
    try:
        import gymnasium as gym
    except ImportError:
        raise ModelError("computing needs Gymnasium: pip install 'pkd[gymnasium]'") from None
    from pkd_delay.envs import TASKS
    from pkd_delay.envs.late_env import LateEnv

    env: Any = gym.make(id)
    late = env.get_wrapper_attr("late")
    if not isinstance(late, LateEnv) or late.horizon is None:
        raise ModelError(f"{id} is not a late environment with a horizon")
    scores = _score_late_actions(late) if TASKS[id].lateness[0] == "a" else _score_late_news(late)
    return Scores(id, late.horizon, *scores)


def _score_late_news(late: Any) -> tuple[float, float, float]:
    from pkd_delay.planning import plan
    from pkd_delay.transforms.blind import Blind

    delayed = late.problem()
    ignoring = Blind(delayed.known(), pkd.plan(delayed.base, delayed.base_law))
    return (
        plan(delayed).value,
        float(pkd.evaluate(delayed.known(), delayed.law(), ignoring)),
        _play_at_random(delayed.base, delayed.base_law),
    )


def _play_at_random(model: pkd.PartiallyKnownMDP, law: pkd.Law) -> float:
    """Random play does not look, so the delay makes no difference."""
    return float(pkd.evaluate(model, law, lambda h, x, y: _spread(model, x, y)))


def _spread(model: pkd.PartiallyKnownMDP, x: Any, y: Any) -> dict[Any, float]:
    actions: Any = model.actions(x, y)
    return dict.fromkeys(actions, 1.0 / len(actions))


def _score_late_actions(late: Any) -> tuple[float, float, float]:
    """A world without chance whose first d commands are random and seen.

    The agent knows in which state its command will be executed. So nothing is lost after the first
    d steps, and the optimum is that of random play for d steps, then of the undelayed optimum.
    """
    from pkd_delay.envs.problem_env import EnvProblem

    d, table = late.packing.commands, EnvProblem(late.env, late.horizon)
    if not np.isin(table.mdp.transitions, (0.0, 1.0)).all():
        raise ModelError("the scores of late actions are known only for worlds without chance")
    model, law = table.model(), table.law()
    best = pkd.plan(model, law)

    def wait(h: int, x: Any, y: Any) -> Any:
        return _spread(model, x, y) if h <= d else best.action(h, x, y)

    optimal = float(pkd.evaluate(model, law, wait)) if d else best.value
    return optimal, _ignore_late_actions(table, best, d), _play_at_random(model, law)


def _ignore_late_actions(table: Any, best: pkd.Plan, d: int) -> float:
    """The mean over all starts and all first commands; each of them leads to one episode."""
    mdp = table.mdp
    S, A, H = mdp.n_states, mdp.n_actions, mdp.horizon
    follow, ends = mdp.transitions.argmax(axis=2), np.zeros(S, bool)
    ends[list(table.ends)] = True
    starts = np.flatnonzero(mdp.start_distribution)
    here = np.repeat(starts, A**d)
    weight = np.repeat(mdp.start_distribution[starts], A**d) / A**d
    code = np.tile(np.arange(A**d), len(starts))
    queue = [(code // A**k % A).astype(np.int8) for k in range(d)]
    paid = np.zeros(len(here))
    for h in range(1, H + 1):
        if ends[here].all():
            break
        choice = np.zeros(S, np.int8)
        for x, y in best.states(h):
            choice[x] = best.action(h, x, y)
        queue.append(choice[here])
        action = queue.pop(0)
        paid += mdp.rewards[here, action]
        here = follow[here, action]
    return float(weight @ paid)
