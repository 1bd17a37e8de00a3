"""Late actions and missing observations from the command line."""

import json

import numpy as np
import pytest

import pkd
from pkd.cli import main
from pkd_delay import Delayed, KnownDelay, Lags
from pkd_delay.models.tables import two_state_chain
from pkd_delay.transforms.late_actions import LateCommands

CHAIN = two_state_chain()


def value(capsys, *words):
    assert main(["plan", "two_state_chain", *words, "--json"]) == 0
    return json.loads(capsys.readouterr().out)["value"]


@pytest.mark.parametrize(
    ("words", "model"),
    [
        (["--action-delay", "2"], LateCommands(CHAIN, 2)),
        (["--action-delay-law", "0:.5,1:.5"], LateCommands(CHAIN, Lags({0: 0.5, 1: 0.5}))),
        (["--action-delay", "1", "--first-action", "high"], LateCommands(CHAIN, 1, first_action=1)),
        (["--missing", ".2", "--longest-gap", "3"], pkd.Missing(CHAIN, 0.2, longest=3)),
        (
            ["--missing", ".2", "--missing-returned", "no", "--longest-gap", "3"],
            pkd.Missing(CHAIN, 0.2, False, longest=3),
        ),
        (
            ["--action-delay", "1", "--missing", ".2", "--longest-gap", "1", "--delay", "1"],
            KnownDelay(pkd.Missing(LateCommands(CHAIN, 1), 0.2, longest=1), {1: 1.0}, 1),
        ),
    ],
)
def test_flags_make_the_model_that_they_name(capsys, words, model):
    assert value(capsys, *words) == pytest.approx(pkd.plan(model, CHAIN.law()).value)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--longest-gap", "2"], "--longest-gap needs --missing P"),
        (["--first-action", "low"], "--first-action needs --action-delay D"),
        (["--action-delay", "1", "--first-action", "up"], "expected one of low, high"),
        (["--action-delay-law", "0:.5"], "sums to 0.5, not 1"),
        (["--missing", ".2", "--horizon", "90"], "such as --longest-gap 3"),
    ],
)
def test_flags_that_do_not_fit_are_named(capsys, words, said):
    assert main(["plan", "two_state_chain", *words]) == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--action-delay", "soon"], "expected a whole number >= 0, found 'soon'"),
        (["--action-delay-law", "0:.5,x"], "expected STEPS:PROBABILITY"),
        (["--missing", "2"], "expected a number in [0, 1]"),
    ],
)
def test_words_that_cannot_be_read_are_named(capsys, words, said):
    with pytest.raises(SystemExit):
        main(["plan", "two_state_chain", *words])
    assert said in capsys.readouterr().err


def test_instead_is_about_late_actions_where_no_state_is_late(capsys):
    words = ["gambler", "--action-delay", "1", "--instead", "first", "--horizon", "5"]
    assert main(["plan", *words]) == 0


@pytest.mark.parametrize("delay_law", ["known", "unknown"])
def test_late_states_of_a_late_world_are_learned_without_a_violation(delay_law):
    inner = LateCommands(CHAIN, 1)
    late = Delayed((inner, CHAIN.law()), {0: 0.5, 1: 0.5}, 1, delay_law)
    run = pkd.learn(late.model(), late.law(), 100, optimism=pkd.Certified())
    assert np.all(run.upper_values >= run.optimal_value - 1e-9)
