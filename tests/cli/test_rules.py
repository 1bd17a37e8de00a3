"""Rules of optimism on the command line: names, constants, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

import pkd
from pkd.cli import main
from pkd.experiments.grid import split_agents
from pkd.rules import make_rule
from pkd.rules.literature import OPSRL, BayesUCBVI


@pytest.mark.parametrize(
    ("word", "rule"),
    [
        ("mvp", pkd.MVP()),
        ("mvp:c1=1,c2=1", pkd.MVP(c1=1, c2=1)),
        ("mvp-max:c1=2", pkd.MVP(c1=2, monotone=True)),
        ("practical", pkd.MVP.practical()),
        ("practical:c2=1", pkd.MVP(c1=0.5, c2=1, log_factor=1.0)),
        ("certified:minimax=false", pkd.Certified(minimax=False)),
        ("hoeffding:c=1", pkd.Hoeffding(c=1)),
        ("opsrl:draws=4", OPSRL(draws=4)),
        ("bayes-ucbvi:level=0.5", BayesUCBVI(level=0.5)),
    ],
)
def test_a_word_is_a_rule_with_its_constants(word: str, rule: pkd.Optimism) -> None:
    assert make_rule(word) == rule


def test_constants_belong_to_the_rule_before_them() -> None:
    words = "mvp:c1=1,c2=1,certified:minimax=false,greedy,hoeffding:c=1"
    assert split_agents(words) == [
        "mvp:c1=1,c2=1", "certified:minimax=false", "greedy", "hoeffding:c=1",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("word", "findings"),
    [
        ("hope", ["'hope' is unknown; expected one of certified, mvp"]),
        ("mvp:c1=1,c3=2,d=4", ["mvp has no constant 'c3'", "mvp has no constant 'd'"]),
        ("mvp:c1=-1", ["expected a number >= 0"]),
        ("certified:minimax=2", ["minimax is 2; expected true or false"]),
        ("greedy:c=1", ["greedy has no constant 'c'; expected none"]),
        ("mvp:c1", ["expected key=value"]),
        ("nowhere_at_all:Mine", ["not found"]),
        ("math:sqrt", ["math:sqrt is not an optimism rule"]),
    ],
)
def test_what_is_wrong_with_a_rule_is_said_in_one_message(
    word: str, findings: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["learn", "two_state_chain", "--optimism", word])
    assert stop.value.code == 2
    err = capsys.readouterr().err
    for finding in findings:
        assert finding in err


def test_a_comparison_names_every_finding_of_every_rule(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit):
        main(["compare", "two_state_chain", "--rules", "hope,mvp:c3=1,greedy,despair"])
    err: Any = capsys.readouterr().err
    for word in ("called 'hope'", "no constant 'c3'", "called 'despair'"):
        assert word in err
