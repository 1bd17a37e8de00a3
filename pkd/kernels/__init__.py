"""All compiled code: plain functions over arrays, in the paper's letters. Kernels never raise: their callers have validated the input.

An adapter with compiled code of its own builds it from the few names that are exported here.
"""

from pkd.kernels.flat import count as count
from pkd.kernels.flat import rollout as rollout
from pkd.kernels.jit import jit as jit
from pkd.kernels.rng import uniform as uniform

__all__ = ["count", "jit", "rollout", "uniform"]
