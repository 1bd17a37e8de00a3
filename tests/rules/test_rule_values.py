"""Each rule as a value: its numbers for the kernels, its name, its guarantee, its form in files."""

from __future__ import annotations

import math
from typing import Any

import pytest

import pkd
from pkd import optimism
from pkd.optimism import Bonus
from pkd.rules import from_config
from pkd.rules.literature import KLUCRL, OPSRL, UCRL2

SETS: dict[str, Any] = {"anytime": True, "rounds": 1, "needed": True}


class Own(pkd.MVP):
    """A rule of a user's own with the constants of the theorem."""


@pytest.mark.parametrize(
    ("rule", "bonus"),
    [
        (pkd.MVP(), Bonus(optimism.SUM, 20 / 3, 400 / 9, free=1.0)),
        (pkd.MVP(1.0, 2.0, 3.0), Bonus(optimism.SUM, 1.0, 2.0, free=1.0, log_factor=3.0)),
        (pkd.MVP(monotone=True), Bonus(optimism.MAX, 20 / 3, 400 / 9, free=1.0)),
        (pkd.MVP.practical(), Bonus(optimism.SUM, 0.5, 0.25, free=1.0, log_factor=1.0)),
        (pkd.Hoeffding(), Bonus(optimism.HOEFFDING, 7.0)),
        (pkd.Hoeffding(1.0, 2.0), Bonus(optimism.HOEFFDING, 1.0, log_factor=2.0)),
        (pkd.Greedy(), Bonus(optimism.EXACT)),
        (pkd.PosteriorSampling(), Bonus(optimism.EXACT, prior=1.0)),
        (pkd.Certified(), Bonus(optimism.CERTIFIED, 20 / 3, 400 / 9, free=1.0, parts=2, **SETS)),
        (
            pkd.Certified(minimax=False, exact=True),
            Bonus(optimism.CERTIFIED, 20 / 3, 400 / 9, free=math.inf, **SETS | {"rounds": 40}),
        ),
    ],
)
def test_a_rule_has_the_numbers_of_its_formula(rule: pkd.Optimism, bonus: Bonus) -> None:
    assert rule.bonus() == bonus


def test_forms_are_told_apart() -> None:
    forms = [
        optimism.EXACT, optimism.SUM, optimism.MAX, optimism.HOEFFDING, optimism.CERTIFIED,
        optimism.NUMPY,
    ]  # fmt: skip
    assert len(set(forms)) == 6


def test_without_words_a_bonus_has_none_of_its_parts() -> None:
    assert Bonus(optimism.SUM) == Bonus(optimism.SUM, 0.0, 0.0, 0.0, 0.0, None, 1, False, 1, None)


@pytest.mark.parametrize(
    ("rule", "needs"),
    [
        (pkd.MVP(), True),
        (pkd.MVP(log_factor=1.0), False),
        (pkd.Hoeffding(), True),
        (pkd.Greedy(), False),
        (pkd.Certified(), False),
        (UCRL2(), False),
        (KLUCRL(), True),
        (OPSRL(), False),
    ],
)
def test_logarithms_of_some_rules_need_the_number_of_episodes(
    rule: pkd.Optimism, needs: bool
) -> None:
    assert rule.bonus().needs_episodes is needs


@pytest.mark.parametrize(
    ("rule", "label"),
    [
        (pkd.MVP(), "MVP, as published"),
        (pkd.MVP(monotone=True), "MVP (max form), no guarantee"),
        (pkd.MVP.practical(), "MVP, practical constants, no guarantee"),
        (pkd.MVP(c1=1, c2=2), "MVP, c1=1, c2=2, no guarantee"),
        (pkd.MVP(c1=1, c2=2, log_factor=3), "MVP, c1=1, c2=2, log factor 3, no guarantee"),
        (pkd.MVP(log_factor=1), "MVP, c1=6.66667, c2=44.4444, log factor 1, no guarantee"),
        (Own(), "Own, c1=6.66667, c2=44.4444, no guarantee"),
        (Own(0.5, 0.25, 1.0), "Own, c1=0.5, c2=0.25, log factor 1, no guarantee"),
        (pkd.Hoeffding(), "Hoeffding, as published"),
        (pkd.Hoeffding(1), "Hoeffding, c=1, no guarantee"),
        (pkd.Hoeffding(log_factor=2), "Hoeffding, c=7, log factor 2, no guarantee"),
        (pkd.Greedy(), "Greedy (no bonus), no guarantee"),
        (pkd.PosteriorSampling(2), "Posterior sampling, prior 2, no guarantee"),
        (pkd.Certified(), "Certified"),
        (pkd.Certified(minimax=False), "Certified, without MVP"),
        (pkd.Certified(exact=True), "Certified, exact"),
        (pkd.Certified(minimax=False, exact=True), "Certified, without MVP, exact"),
        (pkd.Certified(explore="everywhere"), "Certified, everywhere"),
    ],
)
def test_a_label_says_the_constants_and_what_is_guaranteed(rule: pkd.Optimism, label: str) -> None:
    assert rule.label == label


@pytest.mark.parametrize("value", [-1, -0.5, math.nan, math.inf, True, "1"])
def test_constants_are_numbers_from_zero_on(value: Any) -> None:
    for make in (
        lambda: pkd.MVP(c1=value),
        lambda: pkd.MVP(c2=value),
        lambda: pkd.MVP(log_factor=value),
        lambda: pkd.Hoeffding(c=value),
        lambda: pkd.PosteriorSampling(prior=value),
    ):
        with pytest.raises(pkd.ModelError, match=r"; expected a number >=? 0"):
            make()


def test_zero_is_a_constant_but_no_prior() -> None:
    assert pkd.MVP(0, 0, 0).bonus().c1 == 0
    with pytest.raises(pkd.ModelError, match=r"PosteriorSampling: prior is 0; expected .* > 0"):
        pkd.PosteriorSampling(0)


@pytest.mark.parametrize(
    "rule",
    [pkd.MVP(1, 2, 3, True), pkd.Hoeffding(1), pkd.Greedy(), pkd.Certified(False, True), Own(1, 2)],
    ids=lambda rule: rule.label,
)
def test_a_rule_comes_back_from_its_config(rule: pkd.Optimism) -> None:
    config = rule.to_config()
    assert from_config(config) == rule
    own = type(rule) is Own
    assert (config.get("label"), config.get("complete")) == (
        (rule.label, True) if own else (None, None)
    )


class Loose(pkd.Optimism):
    """Keeps what cannot be written, and something of its own behind an underscore."""

    def __init__(self, size: int, table: Any = None) -> None:
        self.size, self.table, self._own = size, table, 3

    def bonus(self) -> Bonus:
        return Bonus(optimism.EXACT)


def test_a_config_keeps_plain_arguments_and_says_whether_they_are_all() -> None:
    whole, part = Loose(3).to_config(), Loose(3, [1]).to_config()
    assert whole["arguments"] == {"size": 3, "table": None}
    assert whole["complete"] is True
    assert part["arguments"] == {"size": 3}
    assert part["complete"] is False


def test_an_unknown_rule_in_a_file_is_named() -> None:
    for name in ("Hope", None, 3):
        with pytest.raises(pkd.ModelError, match=r"is unknown; expected one of Certified, MVP"):
            from_config({"rule": name})


def test_a_rule_without_a_bonus_says_so() -> None:
    with pytest.raises(pkd.ModelError, match=r"^Optimism does not define bonus\(\)$"):
        pkd.Optimism().bonus()
    assert pkd.Optimism().label == "Optimism, no guarantee"
    assert pkd.Optimism().log_factor_at(1) is None
