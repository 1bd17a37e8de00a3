"""Random models with a queue: both engines and the default choice equal the slow reference."""

from __future__ import annotations

from typing import Any

import attrs
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import pkd
import pkd.engine
import pkd.graph
from tests.engine import agreement
from tests.queue_strategies import LOOKS, WRAPPINGS, QueueCase, build, queue_cases, random_shape

MOST_STATES = 150
engines = pytest.mark.parametrize("large", [False, True, None], ids=["nodes", "stripes", "chosen"])


@pytest.fixture(autouse=True)
def _choose_stripes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small models take the engine for large ones, too."""
    monkeypatch.setattr(pkd.engine, "FEW_STATES", 0)
    monkeypatch.setattr(pkd.graph, "WORTH_HIDING", 0)


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


@settings(max_examples=60)
@given(case=queue_cases(**PIPELINES))
def test_pipelines_are_pulled_merged_and_cut_to_the_same_plans(case: QueueCase) -> None:
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
