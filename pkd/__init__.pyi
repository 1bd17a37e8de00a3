"""The names of `pkd`, one line each; type checkers and the package itself read them here."""

import pkd.adapters
import pkd.certification.assumptions
import pkd.certification.certificate
import pkd.certification.confidence
import pkd.certification.exploration
import pkd.certification.fitting
import pkd.certification.logs
import pkd.check
import pkd.cli
import pkd.engine
import pkd.episode
import pkd.expect
import pkd.experiments
import pkd.experiments.rivals
import pkd.explore
import pkd.explore.graph
import pkd.explore.sizes
import pkd.families
import pkd.files
import pkd.files.logs
import pkd.kernels
import pkd.lazy
import pkd.model
import pkd.noise
import pkd.planning.stationary
import pkd.problem
import pkd.progress
import pkd.rules
import pkd.rules.literature
import pkd.show
import pkd.show.tables
import pkd.theory
import pkd.theory.bounds
import pkd.theory.certified
import pkd.theory.inspection
import pkd.transforms
import pkd.workers
import pkd.wrapped
from pkd.certification.certificate import Certificate as Certificate
from pkd.certification.certificate import certify as certify
from pkd.certification.exploration import exploration as exploration
from pkd.certification.fitting import fit_law as fit_law
from pkd.certification.logs import read_log as read_log
from pkd.check import check_model as check_model
from pkd.check.samples import check_samples as check_samples
from pkd.engine import compile as compile
from pkd.episode import Episode as Episode
from pkd.episode import Transition as Transition
from pkd.experiments.agent import Agent as Agent
from pkd.experiments.experiment import compare as compare
from pkd.experiments.experiment import experiment as experiment
from pkd.experiments.results import Results as Results
from pkd.experiments.results import load_results as load_results
from pkd.families import Binomial as Binomial
from pkd.families import Family as Family
from pkd.families import Geometric as Geometric
from pkd.families import Mixture as Mixture
from pkd.families import OneOf as OneOf
from pkd.families import Poisson as Poisson
from pkd.files.policies import PolicyTable as PolicyTable
from pkd.learning.drive import drive as drive
from pkd.learning.learn import learn as learn
from pkd.learning.learner import OptimisticLearner as OptimisticLearner
from pkd.model import CHANCE as CHANCE
from pkd.model import END as END
from pkd.model import Known as Known
from pkd.model import Law as Law
from pkd.model import ModelError as ModelError
from pkd.model import PartiallyKnownMDP as PartiallyKnownMDP
from pkd.model import UnknownReward as UnknownReward
from pkd.model import sure as sure
from pkd.noise import NoiseMDP as NoiseMDP
from pkd.optimism import MVP as MVP
from pkd.optimism import Certified as Certified
from pkd.optimism import Greedy as Greedy
from pkd.optimism import Hoeffding as Hoeffding
from pkd.optimism import Optimism as Optimism
from pkd.optimism import PosteriorSampling as PosteriorSampling
from pkd.optimism import PythonRule as PythonRule
from pkd.planning.evaluation import Evaluation as Evaluation
from pkd.planning.evaluation import evaluate as evaluate
from pkd.planning.flatten import flatten as flatten
from pkd.planning.plan import Plan as Plan
from pkd.planning.plan import optimistic_plan as optimistic_plan
from pkd.planning.plan import plan as plan
from pkd.planning.simulation import Simulator as Simulator
from pkd.planning.simulation import simulate as simulate
from pkd.planning.stationary import discounted as discounted
from pkd.problem import Problem as Problem
from pkd.problem import as_problem as as_problem
from pkd.queue import Queue as Queue
from pkd.results.run import Run as Run
from pkd.rules.schedule import Replan as Replan
from pkd.tables.tabular import TabularMDP as TabularMDP
from pkd.tables.unknown import UnknownTable as UnknownTable
from pkd.theory import bounds as bounds
from pkd.transforms import LateActions as LateActions
from pkd.transforms import Missing as Missing

__version__: str
FOR_ADAPTERS: tuple[str, ...]
