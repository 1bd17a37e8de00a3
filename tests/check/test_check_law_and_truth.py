"""The words of `check_model` about a law that does not fit, and about a wrong truth."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from pkd.check import check_model, checked_law
from pkd.model import ModelError, UnknownReward
from pkd.tables.tabular import TabularMDP
from tests.kiosk import FIRST, LAW, Kiosk, answering, read_table, truth_of

TRUE = truth_of(Kiosk(), LAW)
TIP = answering("reward", FIRST, UnknownReward("tip", 0, 1))
PLACES = [
    *itertools.product([None], range(3), range(2)),
    *itertools.product([0, 1], range(3), [None]),
]
HOLED = {place: TRUE(*place) for place in PLACES if place != FIRST}


def altered(change: dict[tuple[Any, Any], float]) -> Any:
    """The true kiosk with another distribution after the first state and action 0."""
    return lambda x, y, a: change if (x, y, a) == FIRST else TRUE(x, y, a)


def uneven(x: Any, y: Any, a: Any) -> Any:
    """The true kiosk, but with a stock of 2 the demand has another law."""
    change = {(0, 2): 0.45, (1, 2): 0.45, (None, "closed"): 0.1}
    return change if (x, y) == (None, 2) else TRUE(x, y, a)


def doubled(x: Any, y: Any, a: Any) -> Any:
    """The true kiosk, but where one unit was asked for, two are."""
    return {(2 if u == 1 else u, v): p for (u, v), p in TRUE(x, y, a).items()}


# Each call, and every finding: see `read_table`.
FINDINGS = """\
check_model(Kiosk(), [0.5, 0.5])
    law is a list; expected a mapping {z: {x': probability}} or a function of z
check_model(Kiosk(), {'demnd': LAW['demand']})
    law has no entry for the feature 'demand'; its keys are 'demnd'
check_model(Kiosk(), lambda z: {}[z])
    law('demand') raised KeyError: 'demand'
check_model(Kiosk(), {'demand': [0.5, 0.5]})
    law['demand'] is [0.5, 0.5]; expected {x': probability}
check_model(Kiosk(), lambda z: {0: 0.5, 1: 0.4})
    law('demand') sums to 0.9, not 1
check_model(Kiosk(), {'demand': {0: -0.5, 1: 1.0}})
    law['demand'] gives x' = 0 the probability -0.5; expected a number in [0, 1]
check_model(Kiosk(), {'demand': {0: 0.5, 2: 0.5}})
    law['demand'] gives x' = 2 the probability 0.5, but outcomes('demand') does not list it
check_model(answering('branching', ('demand',), 1), LAW)
    law['demand'] has 2 x' of positive probability, more than branching('demand') = 1
check_model(TIP, LAW | {'tip': {0.5: 0.5, 2.0: 0.5}})
    law['tip'] pays 2.0 with probability 0.5; expected a number in [0, 1]
check_model(Kiosk(), {'demand': {0: 0.5, 1: 0.5}}, TRUE)
    the law of 'demand' gives x' = 0 the probability 0.5, but after (x=None, y=1, a=0) -> y' = 1
        the truth gives it 0.25
check_model(Kiosk(), truth=3)
    truth is a int; expected a function (x, y, a) -> {(x', y'): probability}, or a mapping or
        TabularMDP
check_model(Kiosk(), truth=HOLED)
    truth has no entry for (None, 1, 0)
check_model(Kiosk(), truth=altered({1: 1.0}))
    truth(x=None, y=1, a=0) returned {1: 1.0}; expected {(x', y'): probability}
check_model(Kiosk(), truth=altered({(0, 1): 0.9}))
    truth(x=None, y=1, a=0) sums to 0.9, not 1
check_model(Kiosk(), truth=altered({(0, 1): 0.2, (1, 1): 0.6, (None, 'closed'): 0.2}))
    step(x=None, y=1, a=0) gives y' = 1 the probability 0.9, but the truth gives it 0.8
    step(x=None, y=1, a=0) gives y' = 'closed' the probability 0.1, but the truth gives it 0.2
check_model(Kiosk(), truth=altered({(0, 1): 0.225, (1, 1): 0.675, (0, 'closed'): 0.1}))
    Known(law=((None, 1.0),)) gives x' = 0 the probability 0, but after (x=None, y=1, a=0) -> y'
        = 'closed' the truth gives it 1
check_model(Kiosk(), truth=doubled)
    outcomes('demand') does not list x' = 2, which the truth gives after (x=None, y=1, a=0) ->
        y' = 1
check_model(Kiosk(), truth=uneven)
    feature 'demand' is not sufficient: x' = 0 has probability 0.25 after (x=None, y=1, a=0) ->
        y' = 1 but 0.5 after (x=None, y=2, a=0) -> y' = 2; let the feature tell these apart
"""


@pytest.mark.parametrize(("call", "expected"), read_table(FINDINGS))
def test_a_bad_law_or_truth_gets_this_message(call: str, expected: list[str]) -> None:
    with pytest.raises(ModelError) as error:
        eval(call)
    assert list(error.value.findings) == expected


def test_the_true_law_and_the_true_mdp_pass() -> None:
    check_model(Kiosk(), LAW, TRUE)


def test_the_truth_may_be_a_mapping() -> None:
    places = [
        *itertools.product([None], [0, 1, 2], [0, 1]),
        *itertools.product([0, 1], [0, 1, 2], [None]),
    ]
    check_model(Kiosk(), LAW, {place: TRUE(*place) for place in places})


def test_the_truth_may_be_a_table() -> None:
    table = TabularMDP(
        [[[0.5, 0.5], [1.0, 0.0]], [[0.25, 0.75], [0.0, 1.0]]], [[0.0, 0.0], [1.0, 1.0]], horizon=3
    )
    check_model(table.model(), table.law(), table)


def test_a_feature_that_forgets_the_state_is_caught_by_the_table() -> None:
    table = TabularMDP([[[0.5, 0.5]], [[0.25, 0.75]]], [[0.0], [1.0]], horizon=3)
    model = table.model()
    model.step = lambda x, y, a: [(1.0, None, a)]
    model.outcomes = lambda z: [0, 1]
    model.branching = lambda z: 2
    with pytest.raises(
        ModelError,
        match=r"feature 0 is not sufficient: x' = 0 has probability 0.5 after .* but 0.25 after",
    ):
        check_model(model, truth=table)


def test_a_checked_law_is_plain_dictionaries_without_zeros() -> None:
    law = checked_law({"coin": (0, 1, 2)}, lambda z: {0: 1, 1: 0.0}, rewards={})
    assert law == {"coin": {0: 1.0}}
    assert isinstance(law["coin"][0], float)


def test_all_findings_of_a_law_come_together() -> None:
    with pytest.raises(ModelError) as error:
        checked_law(
            {"a": (0, 1), "b": (0, 1), "c": (0,)},
            {"a": {0: 0.5}, "c": {1: 1.0}},
            branching={"a": 2},
        )
    assert error.value.findings == (
        "law['a'] sums to 0.5, not 1",
        "law has no entry for the feature 'b'; its keys are 'a', 'c'",
        "law['c'] gives x' = 1 the probability 1, but outcomes('c') does not list it",
    )
