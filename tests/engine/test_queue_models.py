"""Random models with a queue: both engines and the default choice equal the slow reference."""

from __future__ import annotations

from collections import Counter
from operator import is_not
from typing import Any

import attrs
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import pkd
import pkd.engine
import pkd.explore.graph
from pkd.engine.stripes.arrays import find_fan
from pkd.engine.stripes.engine import StripeEngine
from pkd.engine.stripes.inline import inline
from pkd.engine.stripes.passes import cut, drop_zeros
from pkd.explore import graph
from tests.engine import agreement
from tests.queue_strategies import (
    LOOKS,
    WRAPPINGS,
    QueueCase,
    QueueModel,
    QueueShape,
    build,
    queue_cases,
    random_shape,
    shapes,
)

MOST_STATES = 150
engines = pytest.mark.parametrize("large", [False, True, None], ids=["nodes", "stripes", "chosen"])


@pytest.fixture(autouse=True)
def _choose_stripes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small models take the engine for large ones, too."""
    monkeypatch.setattr(pkd.engine, "FEW_STATES", 0)
    monkeypatch.setattr(graph, "WORTH_HIDING", 0)


def compile_small(case: QueueCase, large: bool | None) -> Any:
    assume(len(case.met.states) <= MOST_STATES)
    return pkd.compile(case.model, large=large)


@engines
@settings(max_examples=40)
@given(case=queue_cases())
def test_states_features_and_sizes_are_those_that_can_occur(
    large: bool | None, case: QueueCase
) -> None:
    agreement.assert_structure(case, compile_small(case, large))


@engines
@settings(max_examples=25)
@given(case=queue_cases(), episodes=st.sampled_from([2, 10**8]))
def test_plans_are_those_of_the_definition(
    large: bool | None, case: QueueCase, episodes: int
) -> None:
    rules = ("theory", "max", "small", "greedy")
    compiled = compile_small(case, large)
    agreement.assert_plans(case, compiled, agreement.Worst(), rules, episodes)


@engines
@settings(max_examples=15)
@given(case=queue_cases(data="many", n_features=st.integers(2, 3), n_x=3))
def test_plentiful_counts_give_the_plans_of_the_definition(
    large: bool | None, case: QueueCase
) -> None:
    rules = ("practical", "small", "hoeffding")
    agreement.assert_plans(case, compile_small(case, large), agreement.Worst(), rules)


@engines
@settings(max_examples=20)
@given(case=queue_cases())
def test_policies_are_evaluated_as_by_the_definition(large: bool | None, case: QueueCase) -> None:
    agreement.assert_evaluations(case, compile_small(case, large), agreement.Worst())


@engines
@settings(max_examples=15)
@given(case=queue_cases(n_x=st.integers(2, 3), unknown_rewards=st.booleans()))
def test_episodes_pay_and_show_what_the_definition_expects(
    large: bool | None, case: QueueCase
) -> None:
    agreement.assert_episodes(case, compile_small(case, large), 2000)


PIPELINES: dict[str, Any] = {
    "pipeline": True, "strange_entries": False, "none": 0.0, "end": 0.0, "n_actions": 2,
    "n_x": st.integers(1, 2),
    "wrapping": "tuple",
    "looks": st.sampled_from([("nothing",), ("oldest",), ("nothing", "oldest")]),
    "longest": st.integers(1, 2), "horizon": st.integers(2, 4), "n_phases": st.integers(1, 3),
}  # fmt: skip


# Four actions stand twice: they are drawn least, and have a kernel of their own.
FANS: dict[str, Any] = {
    "appends": True, "n_actions": st.sampled_from([4, 3, 2, 4]), "longest": st.integers(2, 3),
    "horizon": st.integers(2, 4), "n_x": st.integers(1, 2), "n_phases": st.integers(1, 2),
    "looks": st.sampled_from([("nothing",), ("oldest",), ("nothing", "oldest")]),
    "none": 0.0, "spread_start": False,
}  # fmt: skip


def test_random_models_have_what_kernels_of_stripes_must_be_tested_on() -> None:
    """Fans of several columns, strides above 1, merged and inlined stripes."""
    found, examples = Counter[str](), 0

    @settings(max_examples=100)
    @given(shape=shapes(**FANS))
    def find(shape: QueueShape) -> None:
        nonlocal examples
        engine = pkd.compile(QueueModel(shape), large=True)
        assert isinstance(engine, StripeEngine)
        stripes, cuts = engine.layout.stripes, cut(drop_zeros(engine.table, engine.table.stripes))
        examples += 1
        found.update(
            fan=any(find_fan(stripe) and stripe.length > 1 for stripe in stripes),
            fan_of_four=any(find_fan(stripe) == 4 and stripe.length > 1 for stripe in stripes),
            stride=any(branch.stride > 1 for stripe in stripes for branch in stripe.branches()),
            merged=bool(engine.layout.aliases),
            inlined=any(map(is_not, inline(engine.table, cuts), cuts)),
        )

    find()
    least = {"fan": 0.5, "fan_of_four": 0.15, "stride": 0.5, "merged": 0.2, "inlined": 0.5}
    for what, share in least.items():
        assert found[what] >= share * examples, (found, examples)


@settings(max_examples=25)
@given(case=queue_cases(**FANS))
def test_fans_give_the_plans_of_the_definition(case: QueueCase) -> None:
    compiled = compile_small(case, large=True)
    agreement.assert_plans(case, compiled, agreement.Worst(), ("max",))
    agreement.assert_evaluations(case, compiled, agreement.Worst())


@settings(max_examples=60)
@given(case=queue_cases(**PIPELINES))
def test_pipelines_are_inlined_merged_and_cut_to_the_same_plans(case: QueueCase) -> None:
    """Decisions that push and CHANCE states that pop: what stripes were made for."""
    assume(len(case.met.states) <= 300)
    compiled = pkd.compile(case.model, large=True)
    agreement.assert_plans(case, compiled, agreement.Worst(), ("max", "small"))
    agreement.assert_episodes(case, compiled, 500)


@pytest.mark.parametrize("wrapping", WRAPPINGS)
@pytest.mark.parametrize("looks", [(look,) for look in LOOKS], ids=lambda looks: looks[0])
def test_every_place_of_a_queue_and_every_look_is_right(
    wrapping: str, looks: tuple[str, ...]
) -> None:
    for seed in range(2):
        free = random_shape(1000 + seed)
        shape = attrs.evolve(
            free, wrapping=wrapping, looks=looks, horizon=3, longest=2, n_actions=2, n_x=2,
            strange_entries=False, none=0.0, differing_actions=False,
        )  # fmt: skip
        case = build(shape)
        for large in (False, True):
            compiled = pkd.compile(case.model, large=large)
            agreement.assert_structure(case, compiled)
            agreement.assert_plans(case, compiled, agreement.Worst(), ("max",))


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, 400, 50))
def test_hundreds_of_queue_models_equal_the_reference(first: int) -> None:
    for seed in range(first, first + 50):
        case = build(random_shape(seed))
        if len(case.met.states) > 250:
            continue
        for large in (False, True, None):
            compiled, worst = pkd.compile(case.model, large=large), agreement.Worst()
            agreement.assert_structure(case, compiled)
            agreement.assert_plans(case, compiled, worst)
            agreement.assert_evaluations(case, compiled, worst)
            agreement.assert_episodes(case, compiled, 1500)
