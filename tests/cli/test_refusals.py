"""Words that a command cannot take: each gets one line that says what was expected."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import pytest

import pkd
from pkd.cli import main
from pkd_delay.models.tables import two_state_chain

Refusal = Callable[[list[str]], str]
FILES = {
    "bad.toml": "episodes =",
    "epochs.toml": "epochs = 3",
    "table.toml": "[learn]\nepisodes = 3",
    "many.toml": 'episodes = "many"',
    "few.toml": "episodes = 3",
    "hope.toml": 'optimism = "hope"',
    "false.toml": "horizon = false",
    "good.csv": "z,x\n0,3\n",
}
# The words of a command, and a part of the line that it prints.
REFUSED = """\
plan
    pkd: error: no model was named; expected a registered name, module:object, an .npz file, or
plan missing.npz
    pkd: error: missing.npz: expected an .npz file with arrays P (S, A, S), r (S, A) and
plan climb.npz --step 9
    pkd: error: --step 9: climb.npz has 4 steps
plan climb.npz --step 0
    pkd plan: error: argument --step: expected a whole number >= 1, found '0'
plan climb.npz --option size=3
    pkd: error: climb.npz has no option size: an .npz file takes none
plan climb.npz --plot policy.abc
    pkd plan: error: argument --plot: 'policy.abc': expected a name that ends in one of
plan climb.npz --csv no/such/x.csv
    pkd plan: error: argument --csv: cannot write 'no/such/x.csv': expected a file in a folder
learn climb.npz --episodes 1.5
    pkd learn: error: argument --episodes: expected a whole number >= 1, found '1.5'
learn climb.npz --delta 2
    pkd learn: error: argument --delta: expected a number between 0 and 1, found '2'
learn climb.npz --seed -1
    pkd learn: error: argument --seed: expected a whole number >= 0, found '-1'
learn climb.npz --optimism hope
    pkd learn: error: argument --optimism: optimism rule 'hope' is unknown
learn --config missing.toml
    pkd: error: missing.toml: No such file or directory
learn --config bad.toml
    pkd: error: bad.toml: expected a TOML file:
learn climb.npz --config epochs.toml
    pkd: error: epochs.toml: unrecognized arguments: --epochs=3
learn climb.npz --config table.toml
    pkd: error: table.toml: [learn]: the only table is [options]
compare climb.npz --rules mvp,hope
    pkd compare: error: argument --rules/--agents: no agent is called 'hope'
bound --states 5
    pkd: error: the sizes --actions, --horizon, --max-delay are missing; expected --states,
bound climb.npz --states 5
    pkd: error: --states: climb.npz has its own sizes; expected a model or sizes, not both
latency climb.npz --delay 2
    pkd: error: pkd latency goes through all constant delays itself; expected --up-to D
plan climb.npz --delay -1
    pkd plan: error: argument --delay: expected a whole number >= 0, found '-1'
plan climb.npz --delay 1 --max-delay 2
    pkd: error: --delay D is constant and has no --max-delay
plan climb.npz --inter-arrival 0:1
    pkd: error: --inter-arrival needs --max-delay D, the largest delay
plan climb.npz --inter-arrival 0.5
    pkd plan: error: argument --inter-arrival: expected CHANGE:PROBABILITY,..., such as
plan climb.npz --inter-arrival 0:.4,0:.6
    pkd plan: error: argument --inter-arrival: the change 0 occurs twice
plan climb.npz --inter-arrival 0:.5 --max-delay 1
    pkd: error: inter_arrival sums to 0.5, not 1
plan climb.npz --delay-law unknown
    pkd: error: no delay was given; expected --delay D, or
report
    pkd report: error: the following arguments are required: WHAT
report climb.npz no.npz
    pkd: error: climb.npz is not a saved run: it has no entry 'form'; no.npz does not exist
report no.npz --out no/such/x.html
    pkd report: error: argument --out: cannot write 'no/such/x.html': expected a file in
verify no.npz gone.npz
    pkd: error: no.npz does not exist; gone.npz does not exist
fly
    pkd: error: no command is called 'fly'
plan own_for_tests:Crashing
    pkd: error: own_for_tests:Crashing is a model without a law
check own_for_tests:Nothing
    pkd: error: own_for_tests:Nothing cannot be imported:
export two_state_chain --out p.txt
    'p.txt': expected a name that ends in one of
export two_state_chain --out p.drn --stationary
    p.drn: a policy is written as .csv or .json
learn two_state_chain --until soon
    argument --until: expected a number > 0, found 'soon'
learn two_state_chain --until 0
    argument --until: expected a number > 0, found '0'
learn two_state_chain --replan seldom
    argument --replan:
learn two_state_chain --seed x
    expected a whole number >= 0
learn two_state_chain --optimism own_for_tests:Missing
    as module:Class it is not found
learn two_state_chain --optimism own_for_tests:Plain
    own_for_tests:Plain is not an optimism rule; expected a subclass of pkd.Optimism
learn two_state_chain --optimism best
    optimism rule 'best' is unknown; expected one of
learn two_state_chain --optimism mvp:monotone=3
    monotone is 3; expected true or false
learn two_state_chain --optimism mvp:c1=true
    c1 is True; expected a number
compare two_state_chain --rules greedy,best
    no agent is called 'best'. Expected a name
evaluate two_state_chain --policy nothing
    --policy nothing: expected module:function, or a file that pkd wrote
evaluate two_state_chain --policy own_for_tests:absent
    --policy own_for_tests:absent cannot be imported
evaluate two_state_chain --policy own_for_tests:number
    --policy own_for_tests:number is int; expected a function
evaluate two_state_chain --policy own_for_tests:last_entry
    takes the step and 3 parts of a state; expected (h, x, y)
learn climb.npz --config many.toml
    pkd learn: error: many.toml: argument --episodes: expected a whole number >= 1
learn climb.npz --config hope.toml
    pkd learn: error: hope.toml: argument --optimism: optimism rule 'hope' is unknown
learn climb.npz --config few.toml --seed x
    pkd learn: error: argument --seed: expected a whole number >= 0
plan two_state_chain --config false.toml
    false.toml: unrecognized arguments: --no-horizon
learn climb.npz --delta 1e-300
    argument --delta: expected a number between 0 and 1, at least 1e-100
certify inventory
    no log was named; expected --log FILE, a CSV file of samples
certify inventory --log none.csv
    none.csv cannot be read: No such file or directory
certify inventory --log good.csv --policy good.csv
    good.csv is not a policy that pkd wrote: expected the columns step
models inventry
    no model is called 'inventry'; did you mean 'inventory'?
learn climb.npz --episodes 1e99
    1e99 episodes are too many to keep: expected at most
learn climb.npz --episodes 1e12
    1e12 episodes are too many to keep: expected at most
learn climb.npz --episodes 1e400
    expected a whole number >= 1, found '1e400'
learn climb.npz --episodes nan
    expected a whole number >= 1, found 'nan'
learn climb.npz --episodes inf
    expected a whole number >= 1, found 'inf'
"""


@pytest.mark.usefixtures("climb")
@pytest.mark.parametrize(
    ("words", "line"), list(zip(*[iter(REFUSED.splitlines())] * 2, strict=True)), ids=str.strip
)
def test_a_command_that_cannot_be_done_is_one_line(
    words: str, line: str, error_of: Refusal
) -> None:
    for name, text in FILES.items():
        Path(name).write_text(text)
    assert line.strip() in error_of(shlex.split(words))


@pytest.fixture
def run(folder: Path) -> pkd.Run:
    chain = two_state_chain(horizon=3)
    return pkd.learn(chain.model(), chain.law(), 5, optimism=pkd.Greedy())


def test_a_run_from_python_does_not_say_how_its_model_is_made(
    run: pkd.Run, error_of: Refusal
) -> None:
    run.save("run.npz")
    message = error_of(["export", "run.npz", "--out", "p.csv"])
    assert "run.npz does not say how its model is made" in message
    assert not Path("p.csv").exists()


def test_a_policy_is_not_written_as_a_problem(run: pkd.Run, error_of: Refusal) -> None:
    attrs.evolve(run, model_words=("two_state_chain", "--horizon", "3")).save("run.npz")
    message = error_of(["export", "run.npz", "--out", "p.prism"])
    assert "p.prism: a policy is written as .csv or .json" in message


def test_export_imports_what_a_run_names_only_if_it_is_trusted(
    run: pkd.Run, error_of: Refusal
) -> None:
    words = ("own_for_tests:two_state_chain", "--horizon", "3")
    attrs.evolve(run, model_words=words).save("run.npz")
    message = error_of(["export", "run.npz", "--out", "p.csv"])
    assert "run.npz names own_for_tests:two_state_chain as its model; give --trust" in message
    assert "own_for_tests" not in sys.modules
    assert main(["export", "run.npz", "--out", "p.csv", "--trust"]) == 0


def test_a_stationary_policy_of_episodes_that_end_has_no_endless_bound(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = str(tmp_path / "p.csv")
    assert main(["export", "gambler", "--stationary", "--out", file]) == 0
    assert "no bound for an endless run: episodes end" in capsys.readouterr().out


def test_a_model_that_cannot_be_imported_does_not_hide_the_others(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], error_of: Refusal
) -> None:
    from pkd.cli import models
    from pkd.problem import load_point

    def load(point: Any) -> Any:
        if point.name == "gambler":
            raise pkd.ModelError("gambler cannot be imported")
        return load_point(point)

    monkeypatch.setattr(models, "load_point", load)
    assert main(["models"]) == 0
    shown = capsys.readouterr()
    assert shown.err == "gambler: gambler cannot be imported\n"
    assert "\nriverswim " in shown.out
    assert "gambler cannot be imported" in error_of(["models", "gambler"])


def test_options_by_any_name_are_not_listed() -> None:
    from pkd.cli.models import list_options

    def factory(size: int, *more: int, win: float = 0.4, **others: Any) -> None: ...

    assert list(list_options(factory)) == [("size", "must be given"), ("win", "0.4")]
