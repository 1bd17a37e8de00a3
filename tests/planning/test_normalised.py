"""Probabilities that sum to 1 up to the tolerance are divided by their sum where they enter."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import pkd
import pkd_delay
from pkd.model import normalise
from pkd.transforms.travel import Travel

HORIZON = 10_000
OFF = 0.9e-9  # within the tolerance; over the horizon it would be 1e-5 of the value
both_engines = pytest.mark.parametrize("large", [False, True], ids=["nodes", "stripes"])
scales = pytest.mark.parametrize("scale", [1 - OFF, 1 + OFF], ids=["too little", "too much"])


class Pays(pkd.PartiallyKnownMDP):
    """Every step pays 1, so that every return is the horizon. All laws are scaled."""

    horizon = HORIZON

    def __init__(self, start: float = 1.0, step: float = 1.0, known: float = 1.0) -> None:
        self.scales = start, step, known

    def start(self) -> Any:
        return {(x, 0): 0.5 * self.scales[0] for x in (0, 1)}

    def actions(self, x: Any, y: Any) -> Any:
        return (0, 1)

    def reward(self, x: Any, y: Any, a: Any) -> float:
        return 1.0

    def step(self, x: Any, y: Any, a: Any) -> list[Any]:
        _, step, known = self.scales
        law = pkd.Known({0: 0.25 * known, 1: 0.75 * known})
        return [(0.5 * step, 0, "z"), (0.5 * step, 1, law)]

    def outcomes(self, z: Any) -> Any:
        return (0, 1)


@both_engines
@scales
@pytest.mark.parametrize("field", ["start", "step", "known", "law"])
def test_a_long_horizon_does_not_add_up_what_a_law_is_off(
    field: str, scale: float, large: bool
) -> None:
    model = Pays() if field == "law" else Pays(**{field: scale})
    off = scale if field == "law" else 1.0
    law = {"z": {0: 0.5 * off, 1: 0.5 * off}}
    compiled = pkd.compile(model, large=large)
    value = pkd.plan(compiled, law).value
    assert value <= HORIZON * (1 + 1e-12)
    assert value == pytest.approx(HORIZON, rel=1e-12)
    found = pkd.certify(compiled, {"z": {0: 5, 1: 5}}, delta=0.1)
    assert found.low <= HORIZON * (1 + 1e-12)
    assert found.high >= HORIZON * (1 - 1e-12)


@scales
def test_a_policy_that_is_off_does_not_gain(scale: float) -> None:
    half = {0: 0.5 * scale, 1: 0.5 * scale}
    value = pkd.evaluate(Pays(), {"z": {0: 0.5, 1: 0.5}}, lambda h, x, y: half)
    assert float(value) == pytest.approx(HORIZON, rel=1e-12)


@scales
@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
def test_tables_are_normalised(sparse: bool, scale: float) -> None:
    rows: Any = np.array([[[0.25, 0.75]], [[0.5, 0.5]]])
    rows[0] *= scale
    if sparse:
        rows = pytest.importorskip("scipy.sparse").csr_array(rows.reshape(2, 2))
    table = pkd.TabularMDP(rows, [[1.0], [1.0]], HORIZON, start=[0.5 * scale, 0.5 * scale])
    assert math.fsum(np.asarray(table.transitions)[0, 0]) == pytest.approx(1.0, abs=3e-16)
    assert np.asarray(table.transitions)[1, 0].tolist() == [0.5, 0.5]
    assert table.start_distribution.tolist() == [0.5, 0.5]
    assert pkd.plan(table).value == pytest.approx(HORIZON, rel=1e-12)


@scales
@pytest.mark.parametrize(
    "read",
    [
        lambda law: pkd_delay.InterArrival(law).probabilities,
        lambda law: pkd_delay.Lags(law).probabilities,
        lambda law: pkd_delay.DelayChain([law, law]).numbers(1).probabilities,
        lambda law: list(Travel(dict(enumerate(law))).law.values()),
    ],
    ids=["inter-arrival", "lags", "chain", "travel"],
)
def test_laws_of_delays_are_normalised(read: Any, scale: float) -> None:
    assert list(read([0.25 * scale, 0.75 * scale])) == pytest.approx([0.25, 0.75], abs=1e-15)
    assert list(read([0.3, 0.7])) == [0.3, 0.7]


def test_laws_that_sum_to_1_keep_their_bits() -> None:
    for law in ([0.1, 0.2, 0.7], [1 / 3] * 3, [0.1] * 10, [1.0]):
        assert normalise(law) == law
        once = normalise([p * (1 + OFF) for p in law])
        assert normalise(once) == once
