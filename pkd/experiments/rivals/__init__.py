"""Agents to compare with: from the literature, and the landmarks of every comparison.

They have names on the command line (`pkd compare MODEL --rules ucbvi,random`), through the
entry-point group `pkd.agents`.
"""

from pkd.experiments.rivals.landmarks import Oracle, RandomPlay
from pkd.experiments.rivals.per_state import CountsPerState, PerState
from pkd.experiments.rivals.q_learning import OptimisticQ, QLearner, QLearning, Row, Step
from pkd.experiments.rivals.ucbvi import UCBVI

__all__ = [
    "UCBVI", "CountsPerState", "OptimisticQ", "Oracle", "PerState", "QLearner", "QLearning",
    "RandomPlay", "Row", "Step",
]  # fmt: skip
