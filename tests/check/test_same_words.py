"""`plan` and `compile` refuse what `check_model` refuses, with the same findings."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest

import pkd
from pkd.model import Known, ModelError, PartiallyKnownMDP, UnknownReward, sure
from tests.check import test_check_messages as messages
from tests.check.test_check_messages import reward, step
from tests.kiosk import FIRST, LAW, Kiosk, answering, having, read_table

# Planning asks each question once and no label, so it cannot notice these.
UNNOTICED = (
    "having(action_label=lambda self, a: a)",
    "reward(counter(1.0, 2.0))",
    "reward(lambda: UnknownReward(Point(), 0, 1))",
)

MORE_BAD_MODELS: dict[str, PartiallyKnownMDP] = {
    "a step whose keys are branches": step({(1.0, 1, "demand"): "oops"}),
    "a start of two letters": answering("start", (), "ab"),
    "a start that maps a list of two": answering("start", (), {"ab": 1.0}),
    "a start probability that is a word": answering("start", (), {(None, 1): "all"}),
    "a known law with nan": step([(1.0, 1, Known({0: math.nan, 1: 1.0}))]),
    "a known law with a word": step([(1.0, 1, Known({0: "all"}))]),
    "a reward that no float can hold": reward(10**400),
    "rewards whose sum no float can hold": having(reward=lambda self, x, y, a: 1.5e308),
    "rewards whose range no float can hold": having(
        reward=lambda self, x, y, a: UnknownReward("tip", -1.5e308, 1.5e308)
    ),
    "a negative number of features": having(n_features=-1),
    "a branching that is True": answering("branching", ("demand",), True),
    "a share above 1": answering("share", ("demand", 1), 1.5),
    "a share that raises": answering("share", ("demand", 1), KeyError("demand")),
    "a range of three numbers": having(return_range=(0, 1, 2)),
    "a range of words": having(return_range=("low", "high")),
}
MODELS = {kind: eval(kind, vars(messages)) for kind, _ in read_table(messages.BAD_MODELS)}
MODELS = {kind: model for kind, model in MODELS.items() if kind not in UNNOTICED}
MODELS |= MORE_BAD_MODELS


def find(call: Callable[[], Any]) -> tuple[str, ...]:
    with pytest.raises(ModelError) as error:
        call()
    return error.value.findings


@pytest.mark.parametrize("kind", MODELS)
def test_plan_says_what_the_check_says(kind: str) -> None:
    model = MODELS[kind]
    assert find(lambda: pkd.plan(model, LAW)) == find(lambda: pkd.check_model(model))


@pytest.mark.parametrize("kind", MODELS)
def test_the_engine_of_large_models_says_what_the_check_says(kind: str) -> None:
    model = MODELS[kind]
    assert find(lambda: pkd.compile(model, large=True)) == find(lambda: pkd.check_model(model))


@pytest.mark.parametrize(
    "kind",
    [
        "having(horizon=0)",
        "answering('start', (), ValueError('no state yet'))",
        "actions({0, 1})",
        "step([(0.9, 1, 'demand')])",
        "answering('feature', (*FIRST, 1), Known({0: 1.0, 1: -0.4}), KernelKiosk)",
        "step([(0.5, 1, 'demand'), (0.5, 1, 'rain')])",
        "answering('step', (0, 1, None), [(1.0, 1, sure(0))])",
        "having(last_step=lambda self, x, y, a: [(1.0, 1, sure({None: 0, 0: 1, 1: 0}[x]))])",
        "answering('branching', ('demand',), 0)",
        (
            "having(reward=lambda self, x, y, a: "
            "UnknownReward('tip', 0, a) if (x, y) == (None, 1) else 0.0)"
        ),
    ],
)
def test_a_bound_says_what_the_check_says(kind: str) -> None:
    model = MODELS[kind]
    assert find(lambda: pkd.bounds.regret_bound(model, 100)) == find(lambda: pkd.check_model(model))


class Whole(int):
    """An integer type of a user."""


GOOD_MODELS: dict[str, PartiallyKnownMDP] = {
    "a horizon of numpy": having(horizon=np.uint8(2)),
    "a horizon of an own type": having(horizon=Whole(2)),
    "a start as any mapping": answering("start", (), MappingProxyType({(None, 1): 1.0})),
    "actions as a range": answering("actions", (None, 1), range(2)),
    "actions as an array": answering("actions", (None, 1), np.arange(2)),
    "actions as a tuple": answering("actions", (None, 1), (0, 1)),
    "branches as a tuple of lists": step(([0.9, 1, "demand"], [0.1, "closed", sure(None)])),
    "branches from a generator": having(step=lambda self, *at: (b for b in Kiosk.step(self, *at))),
    "outcomes as a set": having(outcomes=lambda self, z: {0, 1}),
}


@pytest.mark.parametrize("kind", GOOD_MODELS)
@pytest.mark.parametrize("large", [False, True])
def test_any_type_that_the_check_accepts_can_be_planned(kind: str, large: bool) -> None:
    model = GOOD_MODELS[kind]
    pkd.check_model(model, LAW)
    value = pkd.plan(pkd.compile(model, large=large), LAW).value
    assert value == pytest.approx(pkd.plan(Kiosk(), LAW).value)


def count_to_the_limit(number: float) -> Mapping[str, Mapping[int, float]]:
    return {"demand": {0: number, 1: number}}


@pytest.mark.parametrize("large", [False, True])
def test_counts_that_no_float_can_hold_are_refused(large: bool) -> None:
    compiled = pkd.compile(Kiosk(), large=large)
    with pytest.raises(ModelError, match="counts add up to more than a number can hold"):
        pkd.optimistic_plan(compiled, count_to_the_limit(1.5e308), episodes=10)


@pytest.mark.parametrize("large", [False, True])
def test_counts_of_rewards_that_no_float_can_hold_are_refused(large: bool) -> None:
    model = answering("reward", FIRST, UnknownReward("tip", 0, 1e6))
    compiled = pkd.compile(model, large=large)
    with pytest.raises(ModelError, match="counts add up to more than a number can hold"):
        pkd.optimistic_plan(compiled, {"tip": {0.0: 1e305, 1e6: 1e305}}, episodes=10)


def test_a_fault_in_a_model_too_large_to_check_is_still_told(monkeypatch: Any) -> None:
    monkeypatch.setattr("pkd.check.MOST_STATES", 3)
    late = having(
        horizon=9, step=lambda self, x, y, a: [(1.0 if y < 8 else 0.5, y + 1, sure(None))]
    )
    with pytest.raises(ModelError, match=r"x=None, y=8.*sum to 0\.5"):
        pkd.plan(late, {})
