"""What stripes read: columns that the layers have, and nothing else that matters to an episode."""

from __future__ import annotations

import math

import numpy as np
import pytest

import pkd
from pkd.engine.stripes import kernels
from pkd.engine.stripes.arrays import check_reads
from pkd.engine.stripes.engine import StripeEngine
from pkd.engine.stripes.passes import Layout
from pkd.engine.stripes.sweeps import Memory
from pkd.rules.literature import OPSRL
from tests.engine import agreement
from tests.queue_strategies import QueueShape, build, random_shape

# After the passes of this one, a stripe was left that no episode meets: it led to columns -81, -27
# and -108. Of the random shapes, these lost columns, too.
ODD = QueueShape(
    seed=357, horizon=2, n_x=3, n_phases=3, n_actions=3, longest=3, n_features=2,
    looks=("oldest",), chance=0, pipeline=True, drains=True, end=0.15, known=0.4, alike=0.8,
    settlement=True, data="none",
)  # fmt: skip
SHAPES = {"odd": ODD} | {str(seed): random_shape(seed) for seed in (*range(20), 1091, 1349, 1378)}
MOST_STATES = 300
every_shape = pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)


def surround(values: np.ndarray) -> np.ndarray:
    """The same array within a larger one of NaN."""
    n, rim = values.size, 1000
    around = np.full(n + 2 * rim, math.nan)
    around[rim : rim + n] = values.ravel()
    return around[rim : rim + n].reshape(values.shape)


def give(memory: Memory, inside: float) -> Memory:
    """The memory with NaN around its layers, and this number in each place of them."""

    def make(layer: kernels.Layer) -> kernels.Layer:
        return kernels.Layer(*(surround(np.full_like(layer.v, inside)) for _ in range(3)))

    return Memory([make(layer) for layer in memory.layers], make(memory.settled))


def allocate(monkeypatch: pytest.MonkeyPatch, inside: float) -> list[Memory]:
    """Lets engines get such memory; returns all that they have got."""
    plain, given = Memory.allocate, list[Memory]()

    def make(n_x: int, layout: Layout) -> Memory:
        given.append(give(plain(n_x, layout), inside))
        return given[-1]

    monkeypatch.setattr(Memory, "allocate", make)
    return given


@every_shape
def test_no_stripe_reads_beside_the_layers(
    shape: QueueShape, monkeypatch: pytest.MonkeyPatch
) -> None:
    case, given = build(shape), allocate(monkeypatch, 0.0)
    compiled = pkd.compile(case.model, large=True)
    for optimism in (pkd.Greedy(), pkd.MVP(), pkd.Certified(), OPSRL(draws=3)):
        pkd.optimistic_plan(compiled, case.counts, episodes=9, optimism=optimism, seed=1)
    layers = [layer for memory in given for layer in (*memory.layers, memory.settled)]
    assert all(np.isfinite(values).all() for layer in layers for values in layer)


@every_shape
def test_what_no_stripe_computes_changes_no_state_that_an_episode_can_be_in(
    shape: QueueShape, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = build(shape)
    if len(case.met.states) > MOST_STATES:
        pytest.skip("the reference is slow")
    given = allocate(monkeypatch, math.nan)
    compiled = pkd.compile(case.model, large=True)
    agreement.assert_plans(case, compiled, agreement.Worst(), ("max", "small", "greedy"))
    assert given


def test_a_branch_that_leaves_the_layers_is_refused() -> None:
    engine = pkd.compile(build(ODD).model, large=True)
    assert isinstance(engine, StripeEngine)
    layout = engine.layout
    beyond = layout.columns[layout.stripes[0].target_space]
    for target in (-1, beyond):
        stripe = layout.stripes[0].edit(lambda branch, to=target: branch.lead_to(to, 0))
        with pytest.raises(AssertionError, match="reads columns"):
            check_reads(Layout([stripe], layout.columns, layout.start, [], []))
