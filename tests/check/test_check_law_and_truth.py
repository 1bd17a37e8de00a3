"""The words of `check_model` about a law that does not fit, and about a wrong truth."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from pkd.check import check_model, checked_law
from pkd.model import ModelError, UnknownReward
from pkd.tables.tabular import TabularMDP
from tests.kiosk import FIRST, LAW, Kiosk, answering, truth_of

MOVE = "x=None, y=1, a=0"
PAIR = (
    f"x' = 0 has probability 0.25 after ({MOVE}) -> y' = 1 but 0.5 after (x=None, y=2, a=0) -> y' "
    "= 2"
)
TRUE = truth_of(Kiosk(), LAW)

BAD_LAWS: dict[str, tuple[Any, list[str]]] = {
    "a list": (
        [0.5, 0.5],
        ["law is a list; expected a mapping {z: {x': probability}} or a function of z"],
    ),
    "a missing feature": (
        {"demnd": LAW["demand"]},
        ["law has no entry for the feature 'demand'; its keys are 'demnd'"],
    ),
    "a function that raises": (lambda z: {}[z], ["law('demand') raised KeyError: 'demand'"]),
    "a list for a feature": (
        {"demand": [0.5, 0.5]},
        ["law['demand'] is [0.5, 0.5]; expected {x': probability}"],
    ),
    "a sum below 1": (lambda z: {0: 0.5, 1: 0.4}, ["law('demand') sums to 0.9, not 1"]),
    "a negative probability": (
        {"demand": {0: -0.5, 1: 1.0}},
        ["law['demand'] gives x' = 0 the probability -0.5; expected a number in [0, 1]"],
    ),
    "mass outside the outcomes": (
        {"demand": {0: 0.5, 2: 0.5}},
        ["law['demand'] gives x' = 2 the probability 0.5, but outcomes('demand') does not list it"],
    ),
}


@pytest.mark.parametrize("kind", BAD_LAWS)
def test_a_bad_law_gets_this_message(kind: str) -> None:
    law, expected = BAD_LAWS[kind]
    with pytest.raises(ModelError) as error:
        check_model(Kiosk(), law)
    assert list(error.value.findings) == expected


def test_a_law_with_more_support_than_branching_allows_is_told() -> None:
    with pytest.raises(ModelError) as error:
        check_model(answering("branching", ("demand",), 1), LAW)
    assert error.value.findings == (
        "law['demand'] has 2 x' of positive probability, more than branching('demand') = 1",
    )


def test_a_reward_law_outside_its_range_is_told() -> None:
    with pytest.raises(ModelError) as error:
        check_model(
            answering("reward", FIRST, UnknownReward("tip", 0, 1)),
            LAW | {"tip": {0.5: 0.5, 2.0: 0.5}},
        )
    assert error.value.findings == (
        "law['tip'] pays 2.0 with probability 0.5; expected a number in [0, 1]",
    )


def altered(change: dict[tuple[Any, Any], float]) -> Any:
    """The true kiosk with another distribution after the first state and action 0."""
    return lambda x, y, a: change if (x, y, a) == FIRST else TRUE(x, y, a)


BAD_TRUTHS: dict[str, tuple[Any, list[str]]] = {
    "a number": (
        3,
        [
            (
                "truth is a int; expected a function (x, y, a) -> {(x', y'): probability}, or a "
                "mapping or TabularMDP"
            )
        ],
    ),
    "a mapping with a hole": (
        {
            place: TRUE(*place)
            for place in itertools.product([None], [0, 1, 2], [0, 1])
            if place != FIRST
        }
        | {place: TRUE(*place) for place in itertools.product([0, 1], [0, 1, 2], [None])},
        ["truth has no entry for (None, 1, 0)"],
    ),
    "no pairs": (
        altered({1: 1.0}),
        [f"truth({MOVE}) returned {{1: 1.0}}; expected {{(x', y'): probability}}"],
    ),
    "a sum below 1": (altered({(0, 1): 0.9}), [f"truth({MOVE}) sums to 0.9, not 1"]),
    "another law of y'": (
        altered({(0, 1): 0.2, (1, 1): 0.6, (None, "closed"): 0.2}),
        [
            f"step({MOVE}) gives y' = 1 the probability 0.9, but the truth gives it 0.8",
            f"step({MOVE}) gives y' = 'closed' the probability 0.1, but the truth gives it 0.2",
        ],
    ),
    "another known law": (
        altered({(0, 1): 0.225, (1, 1): 0.675, (0, "closed"): 0.1}),
        [
            (
                f"Known(law=((None, 1.0),)) gives x' = 0 the probability 0, but after ({MOVE}) -> "
                "y' "
                "= 'closed' the truth gives it 1"
            )
        ],
    ),
    "an outcome that is not listed": (
        lambda x, y, a: {((2 if x2 == 1 else x2), y2): p for (x2, y2), p in TRUE(x, y, a).items()},
        [
            (
                f"outcomes('demand') does not list x' = 2, which the truth gives after ({MOVE}) "
                "-> y' "
                "= 1"
            )
        ],
    ),
    "an insufficient feature": (
        lambda x, y, a: (
            TRUE(x, y, a)
            if y != 2 or x is not None
            else {(0, 2): 0.45, (1, 2): 0.45, (None, "closed"): 0.1}
        ),
        [f"feature 'demand' is not sufficient: {PAIR}; let the feature tell these apart"],
    ),
}


def test_a_law_that_is_not_the_true_one_is_told() -> None:
    with pytest.raises(ModelError) as error:
        check_model(Kiosk(), {"demand": {0: 0.5, 1: 0.5}}, TRUE)
    assert error.value.findings == (
        (
            f"the law of 'demand' gives x' = 0 the probability 0.5, but after ({MOVE}) -> y' = 1 "
            "the truth gives it 0.25"
        ),
    )


@pytest.mark.parametrize("kind", BAD_TRUTHS)
def test_a_disagreement_with_the_truth_gets_this_message(kind: str) -> None:
    truth, expected = BAD_TRUTHS[kind]
    with pytest.raises(ModelError) as error:
        check_model(Kiosk(), truth=truth)
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
