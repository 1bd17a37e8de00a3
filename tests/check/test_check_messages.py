"""What `check_model` says about each kind of bad model, word for word.

Every model is the good kiosk, broken in one place.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

import pytest

import pkd
from pkd.check import check_model
from pkd.model import CHANCE, Known, ModelError, PartiallyKnownMDP, UnknownReward, sure
from tests.kiosk import FIRST, KernelKiosk, Kiosk, answering, having

AT = "x=None, y=1"
MOVE = f"{AT}, a=0"
START = "expected (x, y), or {(x, y): probability}"
CYCLE = "no time passes in them, so a decision or pkd.END must break it"
ONE_FEATURE = "the feature is a function of y': put what tells them apart into y'"
EQUALITY = "twice, and the two are not equal; give its class __eq__ and __hash__"
TRIPLE = "(probability, y', z)"


class Point:
    """A value that has a repr but no equality of its own."""

    def __repr__(self) -> str:
        return "Point(1)"


def step(answer: Any) -> PartiallyKnownMDP:
    return answering("step", FIRST, answer)


def kernel(answer: Any) -> PartiallyKnownMDP:
    return answering("known_kernel", FIRST, answer, KernelKiosk)


def reward(answer: Any) -> PartiallyKnownMDP:
    return answering("reward", FIRST, answer)


def actions(answer: Any) -> PartiallyKnownMDP:
    return answering("actions", (None, 1), answer)


def outcomes(answer: Any) -> PartiallyKnownMDP:
    return answering("outcomes", ("demand",), answer)


def counter(*answers: Any) -> Any:
    """A function that gives the answers in turn, over and over."""
    turn = itertools.cycle(answers)
    return lambda: next(turn)


BAD_MODELS: dict[str, tuple[PartiallyKnownMDP, list[str]]] = {
    # the frame
    "horizon of zero": (
        having(horizon=0),
        ["horizon = 0; expected a positive whole number, the actions of an episode"],
    ),
    "horizon with a fraction": (
        having(horizon=2.5),
        ["horizon = 2.5; expected a positive whole number, the actions of an episode"],
    ),
    "horizon True": (
        having(horizon=True),
        ["horizon = True; expected a positive whole number, the actions of an episode"],
    ),
    "no horizon": (
        having(horizon=None),
        ["Kiosk has no horizon; set it to the number of actions of an episode"],
    ),
    "neither form": (
        having(step=PartiallyKnownMDP.step),
        ["Kiosk has neither step() nor known_kernel() and feature(); define one of the two forms"],
    ),
    "known_kernel alone": (
        having(KernelKiosk, feature=PartiallyKnownMDP.feature),
        ["KernelKiosk has known_kernel() but no feature(); define both, or step()"],
    ),
    "feature alone": (
        having(KernelKiosk, known_kernel=PartiallyKnownMDP.known_kernel),
        ["KernelKiosk has feature() but no known_kernel(); define both, or step()"],
    ),
    "label that is no string": (
        having(action_label=lambda self, a: a),
        [
            "action_label(0) returned 0; expected a string",
            "action_label(1) returned 1; expected a string",
        ],
    ),
    # the start
    "start None": (answering("start", (), None), [f"start() returned None; {START}"]),
    "start without y": (answering("start", (), 3), [f"start() returned 3; {START}"]),
    "start as a list": (
        answering("start", (), [None, 1]),
        [f"start() returned [None, 1]; {START}"],
    ),
    "start unhashable": (
        answering("start", (), (None, [1])),
        ["start() returned (None, [1]), which is not hashable; use tuples for x and y"],
    ),
    "start distribution over non-states": (
        answering("start", (), {1: 1.0}),
        [f"start() has the key 1, which is not a pair; {START}"],
    ),
    "start distribution short of 1": (
        answering("start", (), {(None, 1): 0.5}),
        ["start() sums to 0.5, not 1"],
    ),
    "start distribution negative": (
        answering("start", (), {(None, 1): 1.0, (None, 0): -0.5}),
        ["start() gives (None, 0) the probability -0.5; expected a number in [0, 1]"],
    ),
    # the actions
    "no actions": (
        actions([]),
        [
            (
                f"actions({AT}) is empty; return the actions of this state, pkd.CHANCE if none is "
                "chosen here, or pkd.END"
            )
        ],
    ),
    "actions None": (
        actions(None),
        [f"actions({AT}) returned None; expected a sequence of actions, pkd.CHANCE or pkd.END"],
    ),
    "actions as a string": (
        actions("go"),
        [
            (
                f"actions({AT}) returned the string 'go', whose letters would be the actions; "
                "return "
                "a list"
            )
        ],
    ),
    "actions as a set": (
        actions({0, 1}),
        [
            (
                f"actions({AT}) returned a set; expected a sequence such as a list: ties go to the "
                "first action"
            )
        ],
    ),
    "actions as an iterator": (
        actions(lambda: iter([0, 1])),
        [
            (
                f"actions({AT}) returned a list_iterator; expected a sequence such as a list: "
                "ties go "
                "to the first action"
            )
        ],
    ),
    "an action twice": (
        actions([0, 1, 0]),
        [f"actions({AT}) lists 0 twice; list each action once"],
    ),
    "an unhashable action": (
        actions([0, [1]]),
        [f"actions({AT}) lists [1], which is not hashable; use a tuple"],
    ),
    "None as an action": (
        actions([0, None]),
        [f"actions({AT}) lists None, which stands for no action; give the action another name"],
    ),
    "CHANCE inside a list": (
        actions([CHANCE]),
        [f"actions({AT}) lists pkd.CHANCE; return pkd.CHANCE itself, not a list of it"],
    ),
    # the moves
    "step None": (step(None), [f"step({MOVE}) returned None; expected a list of {TRIPLE}"]),
    "step a number": (step(3), [f"step({MOVE}) returned 3; expected a list of {TRIPLE}"]),
    "step empty": (step([]), [f"step({MOVE}) is empty; expected at least one {TRIPLE}"]),
    "step as a dict": (
        step({1: (1.0, "demand")}),
        [
            (
                f"step({MOVE}) returned a dict; expected a list of {TRIPLE}, so that two ways to "
                "the "
                "same y' add up"
            )
        ],
    ),
    "step with pairs": (
        step([(1.0, 1)]),
        [f"step({MOVE}) lists (1.0, 1), which is not a triple {TRIPLE}"],
    ),
    "step short of 1": (step([(0.9, 1, "demand")]), [f"step({MOVE}) sums to 0.9, not 1"]),
    "step a little above 1": (
        step([(0.9, 1, "demand"), (0.100001, 2, "demand")]),
        [f"step({MOVE}) sums to 1.000001, not 1"],
    ),
    "step negative": (
        step([(1.0, 1, "demand"), (-0.2, "closed", sure(None))]),
        [f"step({MOVE}) gives y' = 'closed' the probability -0.2; expected a number in [0, 1]"],
    ),
    "step nan": (
        step([(math.nan, 1, "demand")]),
        [f"step({MOVE}) gives y' = 1 the probability nan; expected a number in [0, 1]"],
    ),
    "step with the probability second": (
        step([("closed", 1.0, sure(None))]),
        [
            (
                f"step({MOVE}) gives y' = 1.0 the probability 'closed'; expected a number in [0, "
                "1]; "
                f"the order is {TRIPLE}"
            )
        ],
    ),
    "known_kernel short of 1": (kernel([(0.9, 1)]), [f"known_kernel({MOVE}) sums to 0.9, not 1"]),
    "known_kernel as a dict": (
        kernel({1: 1.0}),
        [
            (
                f"known_kernel({MOVE}) returned a dict; expected a list of (probability, y'), so "
                "that "
                "two ways to the same y' add up"
            )
        ],
    ),
    "known_kernel with triples": (
        kernel([(1.0, 1, "demand")]),
        [f"known_kernel({MOVE}) lists (1.0, 1, 'demand'), which is not a pair (probability, y')"],
    ),
    "unhashable y'": (
        step([(1.0, [1], "demand")]),
        [f"step({MOVE}) lists y' = [1], which is not hashable; return a tuple"],
    ),
    "y' as a set": (
        step([(1.0, {1}, "demand")]),
        [f"step({MOVE}) lists y' = {{1}}, which is not hashable; return a frozenset"],
    ),
    "unhashable feature in step": (
        step([(1.0, 1, ["demand"])]),
        [f"step({MOVE}) lists the feature ['demand'], which is not hashable; return a tuple"],
    ),
    "unhashable feature": (
        answering("feature", (*FIRST, 1), ["demand"], KernelKiosk),
        [f"feature({MOVE}, y_next=1) returned ['demand'], which is not hashable; return a tuple"],
    ),
    "law as a feature": (
        answering("feature", (*FIRST, 1), {0: 1.0}, KernelKiosk),
        [
            (
                f"feature({MOVE}, y_next=1) returned {{0: 1.0}}, which is not hashable; wrap a law "
                "that is known in pkd.Known"
            )
        ],
    ),
    "two features of one y'": (
        step([(0.5, 1, "demand"), (0.5, 1, "rain")]),
        [f"step({MOVE}) gives y' = 1 two features, 'demand' and 'rain'; {ONE_FEATURE}"],
    ),
    "known law short of 1": (
        step([(1.0, 1, Known({0: 0.5, 1: 0.4}))]),
        [f"Known({{0: 0.5, 1: 0.4}}) of step({MOVE}) sums to 0.9, not 1"],
    ),
    "known law negative": (
        answering("feature", (*FIRST, 1), Known({0: 1.0, 1: -0.4}), KernelKiosk),
        [
            (
                f"Known({{0: 1.0, 1: -0.4}}) of feature({MOVE}, y_next=1) gives x' = 1 the "
                "probability -0.4; expected a number in [0, 1]"
            )
        ],
    ),
    "known law that is no mapping": (
        step(lambda: [(1.0, 1, Known(0))]),
        ["Known(0): expected a mapping {x': probability}, got int"],
    ),
    "CHANCE state that stays": (
        answering("step", (0, 1, None), [(1.0, 1, sure(0))]),
        [f"CHANCE states of step form a cycle: (x=0, y=1) -> (x=0, y=1); {CYCLE}"],
    ),
    "CHANCE cycle in the settlement": (
        having(last_step=lambda self, x, y, a: [(1.0, 1, sure({None: 0, 0: 1, 1: 0}[x]))]),
        [
            (
                "CHANCE states of last_step form a cycle: (x=0, y=1) -> (x=1, y=1) -> (x=0, y=1); "
                f"{CYCLE}"
            )
        ],
    ),
    # the features
    "no outcomes": (
        outcomes([]),
        ["outcomes('demand') is empty; list every x' that can follow this feature"],
    ),
    "outcomes None": (
        outcomes(None),
        ["outcomes('demand') returned None; list every x' that can follow this feature"],
    ),
    "outcomes a number": (
        outcomes(3),
        ["outcomes('demand') returned 3; list every x' that can follow this feature"],
    ),
    "outcomes a law": (
        outcomes({0: 0.5, 1: 0.5}),
        ["outcomes('demand') returned a mapping; list every x' that can follow this feature"],
    ),
    "an outcome twice": (
        outcomes([0, 1, 1]),
        ["outcomes('demand') lists 1 more than once; list each x' once"],
    ),
    "an unhashable outcome": (
        outcomes([0, [1]]),
        ["outcomes('demand') lists [1], which is not hashable; use a tuple"],
    ),
    "outcomes not defined": (
        having(outcomes=PartiallyKnownMDP.outcomes),
        ["Kiosk.outcomes('demand') is not defined; list every x' that can follow this feature"],
    ),
    "branching of zero": (
        answering("branching", ("demand",), 0),
        [
            (
                "branching('demand') returned 0; expected a whole number from 1 to 2, the number "
                "of "
                "its outcomes"
            )
        ],
    ),
    "branching above the outcomes": (
        answering("branching", ("demand",), 3),
        [
            (
                "branching('demand') returned 3; expected a whole number from 1 to 2, the number "
                "of "
                "its outcomes"
            )
        ],
    ),
    "branching with a fraction": (
        answering("branching", ("demand",), 1.5),
        [
            (
                "branching('demand') returned 1.5; expected a whole number from 1 to 2, the "
                "number of "
                "its outcomes"
            )
        ],
    ),
    "share of zero": (
        answering("share", ("demand", 1), 0.0),
        ["share(z='demand', y=1) returned 0.0; expected None or a number in (0, 1]"],
    ),
    "shares above 1": (
        having(share=lambda self, z, y: 0.5),
        [
            (
                "share(z='demand', y) sums to 1.5 over the 3 y that come with this feature; "
                "expected "
                "at most 1"
            )
        ],
    ),
    "n_features of zero": (
        having(n_features=0),
        ["n_features = 0; expected None or a positive whole number"],
    ),
    # the rewards
    "reward infinite": (
        reward(math.inf),
        [f"reward({MOVE}) returned inf; expected a finite number"],
    ),
    "reward None": (reward(None), [f"reward({MOVE}) returned None; expected a finite number"]),
    "reward a string": (reward("1"), [f"reward({MOVE}) returned '1'; expected a finite number"]),
    "unknown reward upside down": (
        reward(UnknownReward("tip", 1, 0)),
        [f"reward({MOVE}) has low = 1 above high = 0; expected low <= high"],
    ),
    "unknown reward without a bound": (
        reward(UnknownReward("tip", 0, math.inf)),
        [f"reward({MOVE}) has the range [0, inf]; expected two finite numbers"],
    ),
    "unknown reward unhashable": (
        reward(UnknownReward(["tip"], 0, 1)),
        [f"reward({MOVE}) has the reward feature ['tip'], which is not hashable; use a tuple"],
    ),
    "unknown reward with two ranges": (
        having(
            reward=lambda self, x, y, a: UnknownReward("tip", 0, a) if (x, y) == (None, 1) else 0.0
        ),
        [
            (
                f"reward feature 'tip' has the range [0, 0] in reward({AT}, a=0) but [0, 1] in "
                f"reward({AT}, a=1); one feature has one range"
            )
        ],
    ),
    "unknown reward named like a feature": (
        reward(UnknownReward("demand", 0, 1)),
        ["'demand' names both a feature of x' and an UnknownReward; give one of them another name"],
    ),
    "final nan": (
        answering("final", (None, 1), math.nan),
        [f"final({AT}) returned nan; expected a finite number"],
    ),
    "return range upside down": (
        having(return_range=(1, 0)),
        [
            (
                "return_range = (1, 0); expected None, or two finite numbers (low, high) with low "
                "<= "
                "high"
            )
        ],
    ),
    "return range a number": (
        having(return_range=5),
        ["return_range = 5; expected None, or two finite numbers (low, high) with low <= high"],
    ),
    # Two sales of 2 from a stock of 2 make 4; two orders of 1 and nothing sold make -2, if the
    # kiosk closes.
    "return range exceeded": (
        having(return_range=(-1, 3)),
        [
            (
                "return_range = (-1, 3), but the return from (x=1, y=2) at layer 2 can reach 4; "
                "widen the range, or declare None"
            ),
            (
                f"return_range = (-1, 3), but the return from ({AT}) at layer 1 can fall to -2; "
                "widen the range, or declare None"
            ),
        ],
    ),
    # exceptions, and answers that change
    "step raises": (step(KeyError(7)), [f"step({MOVE}) raised KeyError: 7"]),
    "start raises": (
        answering("start", (), ValueError("no state yet")),
        ["start() raised ValueError: no state yet"],
    ),
    "actions raises": (
        actions(ZeroDivisionError("division by zero")),
        [f"actions({AT}) raised ZeroDivisionError: division by zero"],
    ),
    "branching raises": (
        answering("branching", ("demand",), TypeError("unknown")),
        ["branching('demand') raised TypeError: unknown"],
    ),
    "reward changes": (
        reward(counter(1.0, 2.0)),
        [
            (
                f"reward({MOVE}) answered 1.0 and then 2.0; the same question must get the same "
                "answer every time"
            )
        ],
    ),
    "a value without equality": (
        reward(lambda: UnknownReward(Point(), 0, 1)),
        [f"reward({MOVE}) answered UnknownReward(feature=Point(1), low=0, high=1) {EQUALITY}"],
    ),
}


@pytest.mark.parametrize("kind", BAD_MODELS)
def test_a_bad_model_gets_this_message(kind: str) -> None:
    model, expected = BAD_MODELS[kind]
    with pytest.raises(ModelError) as error:
        check_model(model)
    assert list(error.value.findings) == expected


def test_more_states_than_allowed_is_told_with_the_next_one() -> None:
    endless = having(
        horizon=50, step=lambda self, x, y, a: [(1.0, y + 1, sure(None))], return_range=(0, 1)
    )
    with pytest.raises(ModelError) as error:
        check_model(endless, max_states=10)
    found = "more than 10 states are reachable by layer 10, the next one (x=None, y=11)"
    assert error.value.findings == (
        f"{found}; the check stopped there: check a smaller instance, or pass a larger max_states",
    )


WANTED = "expected an object with .model() and .law(), a pair (model, law) or a registered name"


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (3, f"the problem: {WANTED}, found int"),
        (Kiosk, f"the problem is the class Kiosk; {WANTED}: call it first, Kiosk(...)"),
    ],
)
def test_what_is_no_model_is_told(given: Any, told: str) -> None:
    with pytest.raises(ModelError) as error:
        check_model(given)
    assert error.value.findings == (told,)


def test_every_cycle_of_chance_states_is_named() -> None:
    class Wheels(pkd.PartiallyKnownMDP):
        """Two wheels of CHANCE states, {1, 2} and {3}, that are never left."""

        horizon = 1

        def start(self) -> Any:
            return {(0, 1): 0.5, (0, 3): 0.5}

        def actions(self, x: int, y: int) -> Any:
            return pkd.CHANCE

        def step(self, x: int, y: int, a: None) -> Any:
            return [(1.0, {1: 2, 2: 1, 3: 3}[y], pkd.sure(0))]

        def reward(self, x: int, y: int, a: None) -> float:
            return 0.0

    with pytest.raises(pkd.ModelError) as found:
        pkd.check_model(Wheels())
    assert "(x=0, y=1) -> (x=0, y=2) -> (x=0, y=1)" in str(found.value)
    assert "(x=0, y=3) -> (x=0, y=3)" in str(found.value)
