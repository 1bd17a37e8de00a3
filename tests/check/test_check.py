"""`check_model`: what passes, which questions it asks, how far it walks, all findings at once."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given

import pkd
from pkd.check import CHECKS, check_model
from pkd.model import CHANCE, END, Known, ModelError, PartiallyKnownMDP, sure
from pkd.noise import NoiseMDP
from tests import reference, strategies
from tests.kiosk import FIRST, LAW, KernelKiosk, Kiosk, answering, having, truth_of


class Line(PartiallyKnownMDP):
    """y counts the actions taken; nothing is unknown."""

    horizon = 4

    def start(self) -> Any:
        return (None, 0)

    def actions(self, x: Any, y: Any) -> Any:
        return ["on"]

    def step(self, x: Any, y: Any, a: Any) -> Any:
        return [(1.0, y + 1, sure(None))]

    def reward(self, x: Any, y: Any, a: Any) -> float:
        return 1.0


class Coin(NoiseMDP):
    """A coin is called; heads pay 1."""

    horizon = 3

    def initial(self) -> Any:
        return 0

    def choices(self, s: Any) -> Any:
        return ["call"]

    def noise(self, s: Any, a: Any) -> Any:
        return "coin"

    def outcomes(self, z: Any) -> Any:
        return [0, 1]

    def land(self, s: Any, a: Any, w: Any) -> tuple[float, Any]:
        return w, s + w


@pytest.mark.parametrize(
    "model", [Kiosk(), KernelKiosk(), Line(), Coin()], ids=lambda model: type(model).__name__
)
def test_a_good_model_passes(model: PartiallyKnownMDP) -> None:
    check_model(model)


@given(strategies.cases())
def test_every_random_model_passes_with_its_law_and_its_truth(case: strategies.Case) -> None:
    check_model(case.model, case.law, truth_of(case.model, case.law))


@given(strategies.cases(declared=False))
def test_a_declared_range_may_be_as_tight_as_the_returns_and_no_tighter(
    case: strategies.Case,
) -> None:
    model, bounds = case.model, reference.ranges(case.model)
    ends = [bounds(*place) for place in reference.reachable(model).states]
    low, high = min(lo for lo, _ in ends), max(hi for _, hi in ends)
    assume(high - low > 1e-5 * case.scale)  # nothing is tighter than a point
    model.return_range = (low, high)
    check_model(model)
    for tighter, verb in (
        ((low, high - 1e-6 * case.scale), "reach"),
        ((low + 1e-6 * case.scale, high), "fall to"),
    ):
        model.return_range = tighter
        with pytest.raises(ModelError, match=rf"can {verb} "):
            check_model(model)


def test_numpy_values_pass() -> None:
    model = having(
        horizon=np.int64(2),
        actions=lambda self, x, y: (
            np.arange(2) if x is None and y != "closed" else Kiosk.actions(self, x, y)
        ),
        step=lambda self, x, y, a: [
            (np.float64(p), y_next, z) for p, y_next, z in Kiosk.step(self, x, y, a)
        ],
        branching=lambda self, z: np.int64(2),
        reward=lambda self, x, y, a: np.float32(1),
    )
    check_model(model, {"demand": {0: np.float64(0.5), 1: np.float64(0.5)}})


def test_a_compiled_model_is_checked_in_its_place() -> None:
    check_model(pkd.compile(Kiosk()), LAW)


def test_the_engine_refuses_a_bad_model_with_the_words_of_the_check() -> None:
    with pytest.raises(ModelError) as error:
        pkd.plan(answering("step", FIRST, [(0.9, 1, "demand")]), LAW)
    assert error.value.findings == ("step(x=None, y=1, a=0) sums to 0.9, not 1",)


def test_two_ways_to_the_same_y_add_up() -> None:
    check_model(answering("step", FIRST, [(0.25, 1, "demand"), (0.75, 1, "demand")]))


def test_a_known_law_is_the_same_in_another_order() -> None:
    check_model(
        answering(
            "step", FIRST, [(0.5, 1, Known({0: 0.3, 1: 0.7})), (0.5, 1, Known({1: 0.7, 0: 0.3}))]
        )
    )


def test_what_has_probability_zero_is_not_walked() -> None:
    check_model(answering("step", FIRST, [(1.0, 1, "demand"), (0.0, "nowhere", "nothing")]))


def test_findings_of_different_checks_come_together() -> None:
    bad = having(
        horizon=0, return_range=5, outcomes=lambda self, z: [], reward=lambda self, x, y, a: 1 / 0
    )
    with pytest.raises(ModelError) as error:
        check_model(bad, law=3, truth=3)
    starts = [
        "horizon = 0",
        "outcomes('demand') is empty",
        "return_range = 5",
        "reward(",
        "reward(",
        "law is a int",
        "truth is a int",
    ]
    assert [
        finding[: len(start)] for finding, start in zip(error.value.findings, starts, strict=True)
    ] == starts


def test_the_walk_goes_on_past_a_finding() -> None:
    class Broken(Line):
        def step(self, x: Any, y: Any, a: Any) -> Any:
            return [(1.0 if y else 0.5, y + 1, sure(None))]

        def reward(self, x: Any, y: Any, a: Any) -> float:
            return 1.0 if y < 3 else float("nan")

    with pytest.raises(ModelError) as error:
        check_model(Broken())
    assert error.value.findings == (
        "step(x=None, y=0, a='on') sums to 0.5, not 1",
        "reward(x=None, y=3, a='on') returned nan; expected a finite number",
    )


def test_five_findings_of_a_kind_are_shown_and_the_rest_counted() -> None:
    class Rough(Line):
        horizon = 12

        def reward(self, x: Any, y: Any, a: Any) -> float:
            return float("nan")

    with pytest.raises(ModelError) as error:
        check_model(Rough())
    shown = tuple(
        f"reward(x=None, y={y}, a='on') returned nan; expected a finite number" for y in range(5)
    )
    assert error.value.findings == (*shown, "... and 7 more of this kind (reward)")


def test_a_long_value_is_shortened_in_a_message() -> None:
    with pytest.raises(ModelError) as error:
        check_model(answering("step", FIRST, [(1.0, list(range(1000)), sure(None))]))
    assert error.value.findings[0].startswith("step(x=None, y=1, a=0) lists y' = [0, 1, 2,")
    assert len(error.value.findings[0]) < 200


def test_the_first_exception_of_the_model_is_the_cause() -> None:
    cause = KeyError("lost")
    with pytest.raises(ModelError) as error:
        check_model(answering("reward", FIRST, cause))
    assert error.value.__cause__ is cause


def test_every_question_is_asked_twice() -> None:
    asked: list[Any] = []
    model = having(reward=lambda self, x, y, a: asked.append((x, y, a)) or 0.0)
    check_model(model)
    assert {asked.count(question) for question in asked} == {2}


def test_a_model_that_draws_its_answers_is_caught() -> None:
    rng = random.Random(0)
    with pytest.raises(ModelError, match="the same question must get the same answer every time"):
        check_model(having(reward=lambda self, x, y, a: rng.random()))


def test_only_what_is_reachable_is_asked() -> None:
    class Short(Line):
        def step(self, x: Any, y: Any, a: Any) -> Any:
            assert y < 4, "the fourth action is the last"
            return super().step(x, y, a)

        def final(self, x: Any, y: Any) -> float:
            assert y == 4, "the episode stops after four actions"
            return 0.0

    check_model(Short())


@pytest.mark.parametrize("horizon", [4, 5, 10**7])
def test_last_step_is_asked_in_the_states_of_the_last_layer_alone(horizon: int) -> None:
    class Clock(Line):
        """y is the number of actions taken modulo 3, after a first stretch that does not repeat."""

        def step(self, x: Any, y: Any, a: Any) -> Any:
            return [(1.0, "tick 0" if y == 0 else f"tick {(int(y[-1]) + 1) % 3}", sure(None))]

        def last_step(self, x: Any, y: Any, a: Any) -> Any:
            assert y == f"tick {(horizon - 2) % 3}"
            return [(1.0, "stop", sure(None))]

    model = Clock()
    model.horizon = horizon
    check_model(model)


def test_chance_moves_ask_step_before_the_last_action_and_last_step_after_it() -> None:
    class Bell(PartiallyKnownMDP):
        """After each action a bell rings; the bell after the last one is of another kind."""

        horizon = 2
        asked: tuple[set[Any], set[Any]]

        def start(self) -> Any:
            return (None, "choose")

        def actions(self, x: Any, y: Any) -> Any:
            return {"choose": ["wait"], "bell": CHANCE, "last bell": CHANCE, "over": END}[y]

        def step(self, x: Any, y: Any, a: Any) -> Any:
            self.asked[0].add(y)
            return [(1.0, "bell" if y == "choose" else "choose", sure(None))]

        def last_step(self, x: Any, y: Any, a: Any) -> Any:
            self.asked[1].add(y)
            return [(1.0, "last bell" if y == "choose" else "over", sure(None))]

        def reward(self, x: Any, y: Any, a: Any) -> float:
            return 0.0

    bell = Bell()
    bell.asked = (set(), set())
    check_model(bell)
    assert bell.asked == ({"choose", "bell"}, {"choose", "last bell"})


def test_a_state_of_this_layer_and_the_next_is_walked_from_this_one() -> None:
    class Fork(PartiallyKnownMDP):
        """By layer: 1 fork, or by chance b; 2 b, c; 3 c, d.

        The bad reward in d is seen only if b is met in layer 1.
        """

        horizon = 3

        def start(self) -> Any:
            return {(None, "fork"): 0.5, (None, "chance"): 0.5}

        def actions(self, x: Any, y: Any) -> Any:
            return CHANCE if y == "chance" else ["on"]

        def step(self, x: Any, y: Any, a: Any) -> Any:
            return [
                (1.0, {"fork": "b", "chance": "b", "b": "c", "c": "d", "d": "d"}[y], sure(None))
            ]

        def reward(self, x: Any, y: Any, a: Any) -> Any:
            return None if y == "d" else 0.0

    with pytest.raises(ModelError) as error:
        check_model(Fork())
    assert error.value.findings == (
        "reward(x=None, y='d', a='on') returned None; expected a finite number",
    )


def test_every_check_is_a_function_named_after_what_it_checks() -> None:
    assert len(set(CHECKS)) == len(CHECKS)
    assert all(check.__name__.startswith("check_") and check.__doc__ for check in CHECKS)
