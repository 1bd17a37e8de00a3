"""Kernels for adapters with compiled code of their own. They never raise: callers validate."""

from pkd.engine.bonus import count as count
from pkd.engine.jit import jit as jit
from pkd.engine.nodes.walk import rollout as rollout_nodes
from pkd.engine.random import uniform as uniform
from pkd.engine.stripes.walk import rollout as rollout_stripes

__all__ = ["count", "jit", "rollout_nodes", "rollout_stripes", "uniform"]
