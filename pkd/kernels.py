"""Kernels for adapters with compiled code of their own. They never raise: callers validate."""

from pkd.engine.doors import count as count
from pkd.engine.doors import uniform as uniform
from pkd.engine.jit import jit as jit
from pkd.engine.nodes import walk as nodes
from pkd.engine.stripes import walk as stripes

__all__ = ["count", "jit", "rollout_nodes", "rollout_stripes", "uniform"]


@jit()
def rollout_nodes(walk, world, policy, tally, rng, path):
    """One episode on the engine of nodes: (return, whether a plan is due, number of moves)."""
    return nodes.rollout(walk, world, policy, tally, rng, path)


@jit()
def rollout_stripes(g, walk, world, policy, tally, rng, path):
    """The same on the engine of stripes."""
    return stripes.rollout(g, walk, world, policy, tally, rng, path)
