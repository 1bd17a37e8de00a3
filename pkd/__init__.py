"""pkd: planning and learning in Markov decision processes whose dynamics are known in part.

The state is (x, y). The kernel of y is known. The law of x' depends only on a known feature
z = phi_Z(s, a, y'), and only that law is learned. Subclass `PartiallyKnownMDP`; `check_model`,
`plan`, `evaluate` and `learn` then work for the new domain.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pkd import bounds as bounds
    from pkd import cli as cli
    from pkd import confidence as confidence
    from pkd import explore as explore
    from pkd import graph as graph
    from pkd import kernels as kernels
    from pkd import results as results
    from pkd import transform as transform
    from pkd import workers as workers
    from pkd.certificate import Certificate as Certificate
    from pkd.certificate import Evidence as Evidence
    from pkd.certificate import certify as certify
    from pkd.check import check_model as check_model
    from pkd.check.samples import check_samples as check_samples
    from pkd.driving import drive as drive
    from pkd.endless import Stationary as Stationary
    from pkd.endless import discounted as discounted
    from pkd.engine import Compiled as Compiled
    from pkd.engine import compile as compile
    from pkd.evaluation import Evaluation as Evaluation
    from pkd.evaluation import evaluate as evaluate
    from pkd.experiments.agent import Agent as Agent
    from pkd.experiments.agents import CountsPerState as CountsPerState
    from pkd.experiments.agents import Oracle as Oracle
    from pkd.experiments.agents import PerState as PerState
    from pkd.experiments.agents import RandomPlay as RandomPlay
    from pkd.experiments.comparison import Comparison as Comparison
    from pkd.experiments.comparison import compare as compare
    from pkd.experiments.experiment import experiment as experiment
    from pkd.experiments.optimistic_q import OptimisticQ as OptimisticQ
    from pkd.experiments.play import play as play
    from pkd.experiments.q_learning import QLearner as QLearner
    from pkd.experiments.q_learning import QLearning as QLearning
    from pkd.experiments.record import Record as Record
    from pkd.experiments.results import Results as Results
    from pkd.experiments.results import load_results as load_results
    from pkd.experiments.ucbvi import UCBVI as UCBVI
    from pkd.fitting import FittedLaw as FittedLaw
    from pkd.fitting import fit_law as fit_law
    from pkd.flattening import flatten as flatten
    from pkd.graph import Graph as Graph
    from pkd.learner import OptimisticLearner as OptimisticLearner
    from pkd.learning import learn as learn
    from pkd.logs import Log as Log
    from pkd.logs import as_log as as_log
    from pkd.logs import read_log as read_log
    from pkd.model import CHANCE as CHANCE
    from pkd.model import END as END
    from pkd.model import Branch as Branch
    from pkd.model import Episode as Episode
    from pkd.model import Known as Known
    from pkd.model import Law as Law
    from pkd.model import ModelError as ModelError
    from pkd.model import PartiallyKnownMDP as PartiallyKnownMDP
    from pkd.model import Transition as Transition
    from pkd.model import UnknownReward as UnknownReward
    from pkd.model import sure as sure
    from pkd.noise import Landing as Landing
    from pkd.noise import NoiseMDP as NoiseMDP
    from pkd.optimism import MVP as MVP
    from pkd.optimism import Certified as Certified
    from pkd.optimism import Greedy as Greedy
    from pkd.optimism import Hoeffding as Hoeffding
    from pkd.optimism import Optimism as Optimism
    from pkd.optimism import PosteriorSampling as PosteriorSampling
    from pkd.planning import Plan as Plan
    from pkd.planning import optimistic_plan as optimistic_plan
    from pkd.planning import plan as plan
    from pkd.problem import Problem as Problem
    from pkd.problem import as_model as as_model
    from pkd.problem import as_problem as as_problem
    from pkd.queue import Queue as Queue
    from pkd.results.policies import PolicyTable as PolicyTable
    from pkd.results.run import Run as Run
    from pkd.rule_words import as_rule as as_rule
    from pkd.rules import KLUCRL as KLUCRL
    from pkd.rules import OPSRL as OPSRL
    from pkd.rules import UCRL2 as UCRL2
    from pkd.rules import BayesUCBVI as BayesUCBVI
    from pkd.rules import PythonRule as PythonRule
    from pkd.schedule import Replan as Replan
    from pkd.simulation import Simulator as Simulator
    from pkd.simulation import simulate as simulate
    from pkd.tabular import TabularMDP as TabularMDP
    from pkd.transform import LateActions as LateActions
    from pkd.transform import Missing as Missing
    from pkd.transform import Travel as Travel
    from pkd.unknown_table import UnknownTable as UnknownTable
    from pkd.visits import Exploration as Exploration
    from pkd.visits import exploration as exploration

__version__ = "0.1.0"

# Names are imported when they are first used, so that `import pkd` and `pkd --help` are quick.
_HOMES = {
    "model": [
        "CHANCE", "END", "Branch", "Episode", "Known", "Law", "ModelError", "PartiallyKnownMDP",
        "Transition", "UnknownReward", "sure",
    ],
    "problem": ["Problem", "as_model", "as_problem"],
    "noise": ["Landing", "NoiseMDP"],
    "queue": ["Queue"],
    "tabular": ["TabularMDP"],
    "flattening": ["flatten"],
    "endless": ["Stationary", "discounted"],
    "experiments.agent": ["Agent"],
    "experiments.comparison": ["Comparison", "compare"],
    "experiments.experiment": ["experiment"],
    "experiments.play": ["play"],
    "experiments.record": ["Record"],
    "experiments.results": ["Results", "load_results"],
    "experiments.agents": ["CountsPerState", "Oracle", "PerState", "RandomPlay"],
    "experiments.optimistic_q": ["OptimisticQ"],
    "experiments.q_learning": ["QLearner", "QLearning"],
    "experiments.ucbvi": ["UCBVI"],
    "check": ["check_model"],
    "check.samples": ["check_samples"],
    "engine": ["Compiled", "compile"],
    "graph": ["Graph"],
    "planning": ["Plan", "optimistic_plan", "plan"],
    "evaluation": ["Evaluation", "evaluate"],
    "visits": ["Exploration", "exploration"],
    "optimism": ["MVP", "Certified", "Greedy", "Hoeffding", "Optimism", "PosteriorSampling"],
    "certificate": ["Certificate", "Evidence", "certify"],
    "logs": ["Log", "as_log", "read_log"],
    "fitting": ["FittedLaw", "fit_law"],
    "rule_words": ["as_rule"],
    "rules": ["KLUCRL", "OPSRL", "UCRL2", "BayesUCBVI", "PythonRule"],
    "learning": ["learn"],
    "learner": ["OptimisticLearner"],
    "driving": ["drive"],
    "simulation": ["Simulator", "simulate"],
    "results.policies": ["PolicyTable"],
    "results.run": ["Run"],
    "schedule": ["Replan"],
    "transform": ["LateActions", "Missing", "Travel"],
    "unknown_table": ["UnknownTable"],
}  # fmt: skip
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}
# Modules for authors of adapters; users do not need them.
FOR_ADAPTERS = (
    "Graph", "cli", "confidence", "explore", "graph", "kernels", "results", "sizes", "transform",
    "workers",
)  # fmt: skip

__all__ = ["__version__", "bounds", *sorted(_HOME_OF.keys() - set(FOR_ADAPTERS))]


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF and (name == "bounds" or name in FOR_ADAPTERS):
        return import_module(f"pkd.{name}")
    if name not in _HOME_OF:
        raise AttributeError(f"module 'pkd' has no attribute {name!r}")
    value = getattr(import_module(f"pkd.{_HOME_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*__all__, *FOR_ADAPTERS, "FOR_ADAPTERS"})
