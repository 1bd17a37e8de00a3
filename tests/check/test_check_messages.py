"""What `check_model` says about each kind of bad model, word for word.

Every model is the good kiosk, broken in one place.
"""

from __future__ import annotations

import itertools
import math  # noqa: F401 (the table reads it)
from typing import Any

import pytest

import pkd
from pkd.check import check_model
from pkd.model import (  # noqa: F401 (the table reads them)
    CHANCE,
    Known,
    ModelError,
    PartiallyKnownMDP,
    UnknownReward,
    sure,
)
from tests.kiosk import FIRST, KernelKiosk, Kiosk, answering, having, read_table


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


# The model, as an expression, and below it every finding; a line that is indented further goes on.
BAD_MODELS = """\
# the frame
having(horizon=0)
    horizon = 0; expected a positive whole number, the actions of an episode
having(horizon=2.5)
    horizon = 2.5; expected a positive whole number, the actions of an episode
having(horizon=True)
    horizon = True; expected a positive whole number, the actions of an episode
having(horizon=None)
    Kiosk has no horizon; set it to the number of actions of an episode
having(step=PartiallyKnownMDP.step)
    Kiosk has neither step() nor known_kernel() and feature(); define one of the two forms
having(KernelKiosk, feature=PartiallyKnownMDP.feature)
    KernelKiosk has known_kernel() but no feature(); define both, or step()
having(KernelKiosk, known_kernel=PartiallyKnownMDP.known_kernel)
    KernelKiosk has feature() but no known_kernel(); define both, or step()
having(action_label=lambda self, a: a)
    action_label(0) returned 0; expected a string
    action_label(1) returned 1; expected a string
# the start
answering('start', (), None)
    start() returned None; expected (x, y), or {(x, y): probability}
answering('start', (), 3)
    start() returned 3; expected (x, y), or {(x, y): probability}
answering('start', (), [None, 1])
    start() returned [None, 1]; expected (x, y), or {(x, y): probability}
answering('start', (), (None, [1]))
    start() returned (None, [1]), which is not hashable; use tuples for x and y
answering('start', (), {1: 1.0})
    start() has the key 1, which is not a pair; expected (x, y), or {(x, y): probability}
answering('start', (), {(None, 1): 0.5})
    start() sums to 0.5, not 1
answering('start', (), {(None, 1): 1.0, (None, 0): -0.5})
    start() gives (None, 0) the probability -0.5; expected a number in [0, 1]
# the actions
actions([])
    actions(x=None, y=1) is empty; return the actions of this state, pkd.CHANCE if none is
        chosen here, or pkd.END
actions(None)
    actions(x=None, y=1) returned None; expected a sequence of actions, pkd.CHANCE or pkd.END
actions('go')
    actions(x=None, y=1) returned the string 'go', whose letters would be the actions; return a
        list
actions({0, 1})
    actions(x=None, y=1) returned a set; expected a sequence such as a list: ties go to the
        first action
actions(lambda: iter([0, 1]))
    actions(x=None, y=1) returned a list_iterator; expected a sequence such as a list: ties go
        to the first action
actions([0, 1, 0])
    actions(x=None, y=1) lists 0 twice; list each action once
actions([0, [1]])
    actions(x=None, y=1) lists [1], which is not hashable; use a tuple
actions([0, None])
    actions(x=None, y=1) lists None, which stands for no action; give the action another name
actions([CHANCE])
    actions(x=None, y=1) lists pkd.CHANCE; return pkd.CHANCE itself, not a list of it
# the moves
step(None)
    step(x=None, y=1, a=0) returned None; expected a list of (probability, y', z)
step(3)
    step(x=None, y=1, a=0) returned 3; expected a list of (probability, y', z)
step([])
    step(x=None, y=1, a=0) is empty; expected at least one (probability, y', z)
step({1: (1.0, 'demand')})
    step(x=None, y=1, a=0) returned a dict; expected a list of (probability, y', z), so that two
        ways to the same y' add up
step([(1.0, 1)])
    step(x=None, y=1, a=0) lists (1.0, 1), which is not a triple (probability, y', z)
step([(0.9, 1, 'demand')])
    step(x=None, y=1, a=0) sums to 0.9, not 1
step([(0.9, 1, 'demand'), (0.100001, 2, 'demand')])
    step(x=None, y=1, a=0) sums to 1.000001, not 1
step([(1.0, 1, 'demand'), (-0.2, 'closed', sure(None))])
    step(x=None, y=1, a=0) gives y' = 'closed' the probability -0.2; expected a number in [0, 1]
step([(math.nan, 1, 'demand')])
    step(x=None, y=1, a=0) gives y' = 1 the probability nan; expected a number in [0, 1]
step([('closed', 1.0, sure(None))])
    step(x=None, y=1, a=0) gives y' = 1.0 the probability 'closed'; expected a number in [0, 1];
        the order is (probability, y', z)
kernel([(0.9, 1)])
    known_kernel(x=None, y=1, a=0) sums to 0.9, not 1
kernel({1: 1.0})
    known_kernel(x=None, y=1, a=0) returned a dict; expected a list of (probability, y'), so
        that two ways to the same y' add up
kernel([(1.0, 1, 'demand')])
    known_kernel(x=None, y=1, a=0) lists (1.0, 1, 'demand'), which is not a pair (probability,
        y')
step([(1.0, [1], 'demand')])
    step(x=None, y=1, a=0) lists y' = [1], which is not hashable; return a tuple
step([(1.0, {1}, 'demand')])
    step(x=None, y=1, a=0) lists y' = {1}, which is not hashable; return a frozenset
step([(1.0, 1, ['demand'])])
    step(x=None, y=1, a=0) lists the feature ['demand'], which is not hashable; return a tuple
answering('feature', (*FIRST, 1), ['demand'], KernelKiosk)
    feature(x=None, y=1, a=0, y_next=1) returned ['demand'], which is not hashable; return a
        tuple
answering('feature', (*FIRST, 1), {0: 1.0}, KernelKiosk)
    feature(x=None, y=1, a=0, y_next=1) returned {0: 1.0}, which is not hashable; wrap a law
        that is known in pkd.Known
step([(0.5, 1, 'demand'), (0.5, 1, 'rain')])
    step(x=None, y=1, a=0) gives y' = 1 two features, 'demand' and 'rain'; the feature is a
        function of y': put what tells them apart into y'
step([(1.0, 1, Known({0: 0.5, 1: 0.4}))])
    Known({0: 0.5, 1: 0.4}) of step(x=None, y=1, a=0) sums to 0.9, not 1
answering('feature', (*FIRST, 1), Known({0: 1.0, 1: -0.4}), KernelKiosk)
    Known({0: 1.0, 1: -0.4}) of feature(x=None, y=1, a=0, y_next=1) gives x' = 1 the probability
        -0.4; expected a number in [0, 1]
step(lambda: [(1.0, 1, Known(0))])
    Known(0): expected a mapping {x': probability}, got int
answering('step', (0, 1, None), [(1.0, 1, sure(0))])
    CHANCE states of step form a cycle: (x=0, y=1) -> (x=0, y=1); no time passes in them, so a
        decision or pkd.END must break it
having(last_step=lambda self, x, y, a: [(1.0, 1, sure({None: 0, 0: 1, 1: 0}[x]))])
    CHANCE states of last_step form a cycle: (x=0, y=1) -> (x=1, y=1) -> (x=0, y=1); no time
        passes in them, so a decision or pkd.END must break it
# the features
outcomes([])
    outcomes('demand') is empty; list every x' that can follow this feature
outcomes(None)
    outcomes('demand') returned None; list every x' that can follow this feature
outcomes(3)
    outcomes('demand') returned 3; list every x' that can follow this feature
outcomes({0: 0.5, 1: 0.5})
    outcomes('demand') returned a mapping; list every x' that can follow this feature
outcomes([0, 1, 1])
    outcomes('demand') lists 1 more than once; list each x' once
outcomes([0, [1]])
    outcomes('demand') lists [1], which is not hashable; use a tuple
having(outcomes=PartiallyKnownMDP.outcomes)
    Kiosk.outcomes('demand') is not defined; list every x' that can follow this feature
answering('branching', ('demand',), 0)
    branching('demand') returned 0; expected a whole number from 1 to 2, the number of its
        outcomes
answering('branching', ('demand',), 3)
    branching('demand') returned 3; expected a whole number from 1 to 2, the number of its
        outcomes
answering('branching', ('demand',), 1.5)
    branching('demand') returned 1.5; expected a whole number from 1 to 2, the number of its
        outcomes
answering('share', ('demand', 1), 0.0)
    share(z='demand', y=1) returned 0.0; expected None or a number in (0, 1]
having(share=lambda self, z, y: 0.5)
    share(z='demand', y) sums to 1.5 over the 3 y that come with this feature; expected at most
        1
having(n_features=0)
    n_features = 0; expected None or a positive whole number
# the rewards
reward(math.inf)
    reward(x=None, y=1, a=0) returned inf; expected a finite number
reward(None)
    reward(x=None, y=1, a=0) returned None; expected a finite number
reward('1')
    reward(x=None, y=1, a=0) returned '1'; expected a finite number
reward(UnknownReward('tip', 1, 0))
    reward(x=None, y=1, a=0) has low = 1 above high = 0; expected low <= high
reward(UnknownReward('tip', 0, math.inf))
    reward(x=None, y=1, a=0) has the range [0, inf]; expected two finite numbers
reward(UnknownReward(['tip'], 0, 1))
    reward(x=None, y=1, a=0) has the reward feature ['tip'], which is not hashable; use a tuple
having(reward=lambda self, x, y, a: UnknownReward('tip', 0, a) if (x, y) == (None, 1) else 0.0)
    reward feature 'tip' has the range [0, 0] in reward(x=None, y=1, a=0) but [0, 1] in
        reward(x=None, y=1, a=1); one feature has one range
reward(UnknownReward('demand', 0, 1))
    'demand' names both a feature of x' and an UnknownReward; give one of them another name
answering('final', (None, 1), math.nan)
    final(x=None, y=1) returned nan; expected a finite number
having(return_range=(1, 0))
    return_range = (1, 0); expected None, or two finite numbers (low, high) with low <= high
having(return_range=5)
    return_range = 5; expected None, or two finite numbers (low, high) with low <= high
# Two sales of 2 from a stock of 2 make 4; two orders of 1 and nothing sold make -2, if the
# kiosk closes.
having(return_range=(-1, 3))
    return_range = (-1, 3), but the return from (x=1, y=2) at layer 2 can reach 4; widen the
        range, or declare None
    return_range = (-1, 3), but the return from (x=None, y=1) at layer 1 can fall to -2; widen
        the range, or declare None
# exceptions, and answers that change
step(KeyError(7))
    step(x=None, y=1, a=0) raised KeyError: 7
answering('start', (), ValueError('no state yet'))
    start() raised ValueError: no state yet
actions(ZeroDivisionError('division by zero'))
    actions(x=None, y=1) raised ZeroDivisionError: division by zero
answering('branching', ('demand',), TypeError('unknown'))
    branching('demand') raised TypeError: unknown
reward(counter(1.0, 2.0))
    reward(x=None, y=1, a=0) answered 1.0 and then 2.0; the same question must get the same
        answer every time
reward(lambda: UnknownReward(Point(), 0, 1))
    reward(x=None, y=1, a=0) answered UnknownReward(feature=Point(1), low=0, high=1) twice, and
        the two are not equal; give its class __eq__ and __hash__
"""


@pytest.mark.parametrize(("model", "expected"), read_table(BAD_MODELS))
def test_a_bad_model_gets_this_message(model: str, expected: list[str]) -> None:
    with pytest.raises(ModelError) as error:
        check_model(eval(model))
    assert list(error.value.findings) == expected


def test_more_states_than_allowed_is_told_with_the_next_one() -> None:
    endless = having(
        horizon=50, step=lambda self, x, y, a: [(1.0, y + 1, sure(None))], return_range=(0, 1)
    )
    with pytest.raises(ModelError) as error:
        check_model(endless, max_states=10)
    found = "more than 10 states are reachable by layer 10, the next one (x=None, y=11)"
    todo = "check a smaller instance, or give pkd.check_model a larger max_states"
    assert error.value.findings == (f"{found}; the check stopped there: {todo}",)


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
