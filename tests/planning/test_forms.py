"""Every function accepts a model with a law, and a problem as object, pair or name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pkd
import pkd_delay
from pkd import ModelError, problem
from pkd.problem import as_model

COIN = pkd.TabularMDP(
    [[[0.5, 0.5], [1.0, 0.0]], [[0.5, 0.5], [0.0, 1.0]]], [[0.0, 0.0], [1.0, 1.0]], horizon=3
)
STAYS = {(s, a): {s: 1.0} for s in (0, 1) for a in (0, 1)}  # another law: nothing ever moves


def toss(h: int, x: Any, y: Any) -> int:
    return 0


@pytest.fixture
def name(monkeypatch: pytest.MonkeyPatch) -> str:
    """A registered name of the coin."""

    def find(word: str) -> problem.Found:
        assert word == "coin"
        return problem.Found(word, COIN.model(), COIN.law())

    monkeypatch.setattr(problem, "find", find)
    return "coin"


FORMS = ("object", "pair", "name", "compiled pair")


@pytest.fixture(params=FORMS)
def form(request: pytest.FixtureRequest, name: str) -> Any:
    """The coin as a problem, in every form."""
    return {
        "object": COIN,
        "pair": (COIN.model(), COIN.law()),
        "name": name,
        "compiled pair": (pkd.compile(COIN.model()), COIN.law()),
    }[request.param]


@pytest.fixture(params=["model", "compiled"])
def model(request: pytest.FixtureRequest) -> Any:
    """The coin's model, without a law."""
    return COIN.model() if request.param == "model" else pkd.compile(COIN.model())


# What a function finds in a problem alone, and in a model with a law: the value of an episode.
WITH_LAW: dict[str, Callable[..., float]] = {
    "plan": lambda *given: pkd.plan(*given).value,
    "flatten": lambda *given: pkd.plan(pkd.flatten(*given)).value,
    "evaluate": lambda *given: pkd.evaluate(*given, toss) + 0.25,
    "learn": lambda *given: pkd.learn(*given, 3).optimal_value,
    "Simulator": lambda *given: pkd.Simulator(*given).truth.belief.p[:2].sum() + 0.25,
    "simulate": lambda given, law=None: (
        len(pkd.simulate(given if law is None else (given, law), toss, episodes=2)[0]) - 1.75
    ),
}
WITHOUT_LAW: dict[str, Callable[[Any], Any]] = {
    "compile": lambda given: pkd.compile(given).horizon,
    "OptimisticLearner": lambda given: pkd.OptimisticLearner(given, episodes=5).compiled.horizon,
    "optimistic_plan": lambda given: 1 + pkd.optimistic_plan(given, {}, episodes=5).value,
    "check_model": lambda given: 3 if pkd.check_model(given) is None else 0,
    "check_samples": lambda given: 3 if pkd.check_samples(given, []).ok else 0,
    "as_model": lambda given: as_model(given).horizon,
}


@pytest.mark.parametrize("function", WITH_LAW)
def test_a_problem_brings_its_own_law(function: str, form: Any) -> None:
    assert WITH_LAW[function](form) == 1.25


@pytest.mark.parametrize("function", WITH_LAW)
def test_a_model_comes_with_its_law(function: str, model: Any) -> None:
    assert WITH_LAW[function](model, COIN.law()) == 1.25


@pytest.mark.parametrize("function", WITH_LAW)
def test_a_model_without_a_law_is_refused(function: str, model: Any) -> None:
    with pytest.raises(
        ModelError, match=r"^_TabularModel is a model without a law; give the law, "
    ):
        WITH_LAW[function](model)


@pytest.mark.parametrize("function", ["plan", "flatten", "learn"])
def test_a_law_that_is_given_replaces_that_of_the_problem(function: str, form: Any) -> None:
    assert WITH_LAW[function](form, STAYS) == 0.0


def test_evaluate_and_simulate_take_a_law_beside_a_problem(form: Any) -> None:
    assert pkd.evaluate(form, STAYS, toss) == 0.0
    assert pkd.Simulator(form, STAYS).episode(toss).transitions[-1].x_next == 0


def test_the_law_of_a_simulator_may_be_an_array() -> None:
    stays = np.array([1, 0, 1, 0, 0, 1, 0, 1])
    for law in (stays, {"p": stays}):
        world = pkd.Simulator(COIN, law)
        assert all(world.episode(toss).transitions[-1].x_next == 0 for _ in range(9))


@pytest.mark.parametrize("function", WITHOUT_LAW)
def test_where_only_a_model_is_needed_that_of_the_problem_is_taken(
    function: str, form: Any
) -> None:
    assert WITHOUT_LAW[function](form) == 3


@pytest.mark.parametrize("function", WITHOUT_LAW)
def test_where_only_a_model_is_needed_no_law_is_asked_for(function: str, model: Any) -> None:
    assert WITHOUT_LAW[function](model) == 3


def test_the_law_of_a_problem_is_checked_with_its_model() -> None:
    with pytest.raises(ModelError, match=r"law\[\(0, 0\)\] sums to 0\.5, not 1"):
        pkd.check_model((COIN.model(), {**COIN.law(), (0, 0): {0: 0.5}}))


ADAPTERS: dict[str, Callable[[Any], float]] = {
    "Delayed": lambda given: pkd_delay.plan(pkd_delay.Delayed(given, {1: 1.0}, 1)).value,
    "KnownDelay": lambda given: (
        pkd.plan(pkd_delay.KnownDelay(given, {1: 1.0}, 1), COIN.law()).value
    ),
    "UnknownDelay": lambda given: (
        pkd.plan(
            pkd_delay.UnknownDelay(given, 1, 1), pkd_delay.DelayedMDP.constant(COIN, 1).law()
        ).value
    ),
}


@pytest.mark.parametrize("adapter", ADAPTERS)
@pytest.mark.parametrize("form", FORMS[:3], indirect=True)
def test_a_delay_takes_a_problem_in_every_form(adapter: str, form: Any) -> None:
    assert ADAPTERS[adapter](form) == 1.0  # nobody sees in time whether to stay


@pytest.mark.parametrize("adapter", ["KnownDelay", "UnknownDelay"])
def test_a_delay_takes_a_model(adapter: str) -> None:
    assert ADAPTERS[adapter](COIN.model()) == 1.0


class Broken:
    """Its halves are what a user may write by mistake."""

    def __init__(self, model: Any, law: Any) -> None:
        self._halves = model, law

    def model(self) -> Any:
        return self._halves[0]

    def law(self) -> Any:
        return self._halves[1]


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (Broken(COIN, {}), "the problem's model() is TabularMDP; expected a pkd.PartiallyKnownMDP"),
        (Broken(COIN.model(), 7), "the problem's law() is 7; expected a mapping {z: {x': probabil"),
        ((COIN.model(), None), "the problem's law is None; expected a mapping {z: {x': probabil"),
        (pkd.TabularMDP, "the problem is the class TabularMDP; expected an object with .model()"),
        (7, "the problem: expected an object with .model() and .law(), a pair (model, law) or a "),
    ],
)
@pytest.mark.parametrize("function", WITH_LAW)
def test_a_broken_problem_is_refused_when_it_is_given(function: str, given: Any, told: str) -> None:
    with pytest.raises(ModelError) as error:
        WITH_LAW[function](given)
    assert str(error.value).startswith(told)


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda: pkd.learn(COIN), "episodes is None; expected a whole number >= 1"),
        (lambda: pkd.learn(COIN, COIN.law()), "episodes is None; expected a whole number >= 1"),
        (lambda: pkd.learn(COIN.model(), 100), "_TabularModel is a model without a law; give the"),
        (lambda: pkd.learn(COIN, 7, 100), "the law is 7; expected a mapping {z: {x': probability"),
        (lambda: pkd.plan(COIN, 7), "the law is 7; expected a mapping {z: {x': probability"),
        (lambda: pkd.evaluate(COIN), "policy is None; expected a Plan, or a function (h, x, y)"),
        (
            lambda: pkd.evaluate(COIN, COIN.law()),
            "policy is <pkd.tables.tabular._TabularLaw object at",
        ),
    ],
)
def test_a_call_that_lacks_something_says_what(call: Callable[[], Any], told: str) -> None:
    with pytest.raises(ModelError) as error:
        call()
    assert str(error.value).startswith(told)
