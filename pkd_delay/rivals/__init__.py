"""Rivals from the literature of delays, each a `pkd.Agent`."""

from pkd_delay.rivals.agents import Chen2023, DelayAwareQ, MemorylessQ
from pkd_delay.rivals.planners import QMDP, IgnoreDelay, ModelBasedSimulation

__all__ = [
    "QMDP", "Chen2023", "DelayAwareQ", "IgnoreDelay", "MemorylessQ", "ModelBasedSimulation",
]  # fmt: skip
