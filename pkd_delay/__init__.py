"""pkd_delay: planning and learning when states are shown late, as an adapter of `pkd`.

`DelayedMDP` is a tabular MDP with random delays, and `Delayed` is any problem with them.
`KnownDelay` and `UnknownDelay` turn a partially known MDP into its delayed version, which is a
partially known MDP again. So MVP-Delayed is the core's generic algorithm on these models, and
nothing else.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pkd_delay.agents import Chen2023 as Chen2023
    from pkd_delay.agents import DelayAwareQ as DelayAwareQ
    from pkd_delay.agents import MemorylessQ as MemorylessQ
    from pkd_delay.benchmark import normalised_score as normalised_score
    from pkd_delay.delay_kernel import DelayKernel as DelayKernel
    from pkd_delay.driving import drive as drive
    from pkd_delay.driving import play as play
    from pkd_delay.envs import late_vector as late_vector
    from pkd_delay.fitting import FittedDelay as FittedDelay
    from pkd_delay.inter_arrival import InterArrival as InterArrival
    from pkd_delay.known import KnownDelay as KnownDelay
    from pkd_delay.lags import DelayChain as DelayChain
    from pkd_delay.lags import Lags as Lags
    from pkd_delay.late_actions import LateActions as LateActions
    from pkd_delay.late_env import LateEnv as LateEnv
    from pkd_delay.late_view import FlatLateEnv as FlatLateEnv
    from pkd_delay.law import DelayLaw as DelayLaw
    from pkd_delay.law_file import read_law as read_law
    from pkd_delay.law_file import write_law as write_law
    from pkd_delay.missing import Missing as Missing
    from pkd_delay.planners import QMDP as QMDP
    from pkd_delay.planners import IgnoreDelay as IgnoreDelay
    from pkd_delay.planners import ModelBasedSimulation as ModelBasedSimulation
    from pkd_delay.planning import learn as learn
    from pkd_delay.planning import optimistic_plan as optimistic_plan
    from pkd_delay.planning import plan as plan
    from pkd_delay.policy import DelayedPlan as DelayedPlan
    from pkd_delay.policy import SavedPolicy as SavedPolicy
    from pkd_delay.problem_env import ProblemEnv as ProblemEnv
    from pkd_delay.process import Delayed as Delayed
    from pkd_delay.process import DelayedMDP as DelayedMDP
    from pkd_delay.record import Episode as Episode
    from pkd_delay.simulator import Simulator as Simulator
    from pkd_delay.simulator import View as View
    from pkd_delay.simulator import simulate as simulate
    from pkd_delay.theory import hard as hard
    from pkd_delay.theory import l1 as l1
    from pkd_delay.theory import pomdp as pomdp
    from pkd_delay.theory import remez as remez
    from pkd_delay.theory import sat as sat
    from pkd_delay.unknown import UnknownDelay as UnknownDelay

# Imported when first used: Gymnasium is an extra, and the command line asks only for names.
_HOME_OF = {
    "Chen2023": "agents",
    "DelayAwareQ": "agents",
    "Delayed": "process",
    "DelayedMDP": "process",
    "DelayedPlan": "policy",
    "DelayChain": "lags",
    "DelayKernel": "delay_kernel",
    "DelayLaw": "law",
    "Episode": "record",
    "FittedDelay": "fitting",
    "FlatLateEnv": "late_view",
    "IgnoreDelay": "planners",
    "InterArrival": "inter_arrival",
    "KnownDelay": "known",
    "Lags": "lags",
    "LateActions": "late_actions",
    "LateEnv": "late_env",
    "MemorylessQ": "agents",
    "Missing": "missing",
    "ModelBasedSimulation": "planners",
    "ProblemEnv": "problem_env",
    "QMDP": "planners",
    "SavedPolicy": "policy",
    "Simulator": "simulator",
    "UnknownDelay": "unknown",
    "View": "simulator",
    "drive": "driving",
    "late_vector": "envs",
    "learn": "planning",
    "normalised_score": "benchmark",
    "read_law": "law_file",
    "write_law": "law_file",
    "optimistic_plan": "planning",
    "plan": "planning",
    "play": "driving",
    "simulate": "simulator",
}
_MODULES = ("hard", "l1", "pomdp", "remez", "sat")  # of pkd_delay.theory

__all__ = sorted([*_HOME_OF, *_MODULES])


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        value: Any = import_module(f"pkd_delay.theory.{name}")
    elif name in _HOME_OF:
        value = getattr(import_module(f"pkd_delay.{_HOME_OF[name]}"), name)
    else:
        raise AttributeError(f"module 'pkd_delay' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__


# `gymnasium.make("pkd_delay:...")` imports this package to register its ids. Where Gymnasium is not
# there yet, nobody asks, and importing it would cost time.
if "gymnasium" in sys.modules:
    import_module("pkd_delay.envs")
