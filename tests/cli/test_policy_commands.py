"""`pkd models`, `simulate`, `evaluate` and `export`: what users see of problems and policies."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest

import pkd
import pkd_delay
from pkd.cli import main
from pkd.cli.plan import announce
from pkd.problem import names
from pkd_delay.episodes import simulate
from pkd_delay.models.tables import two_state_chain
from pkd_examples.inventory import inventory

pytestmark = pytest.mark.usefixtures("folder")


def test_models_lists_every_registered_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["models"]) == 0
    printed = capsys.readouterr().out
    assert all(f"\n{name} " in f"\n{printed}" for name in names())
    assert "lead_time=1" in printed
    assert max(map(len, printed.splitlines())) <= 100


def test_models_shows_one_in_full(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["models", "gambler"]) == 0
    printed = capsys.readouterr().out
    assert "win      0.4\n" in printed
    assert "The other options are the fields of" in printed


def test_models_as_json_has_every_option(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["models", "--json"]) == 0
    listed = {entry["name"]: entry for entry in json.loads(capsys.readouterr().out)}
    assert listed["riverswim"]["options"]["horizon"] == 20


def test_evaluate_gives_the_exact_value_of_a_rule(capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        main(["evaluate", "inventory", "--policy", "own_for_tests:order_up_to_six", "--json"]) == 0
    )
    found = json.loads(capsys.readouterr().out)
    problem = inventory()
    value = pkd.evaluate(problem, lambda h, x, y: min(max(6 - y[1], 0), 6))
    assert found["value_of_the_policy"] == float(value)
    assert found["loss"] == pytest.approx(pkd.plan(problem).value - value)
    assert found["standard_deviation_of_the_return"] == pytest.approx(value.variance**0.5)


def test_evaluate_asks_a_rule_of_the_base_about_the_state_shown_last(
    capsys: pytest.CaptureFixture[str],
) -> None:
    words = ["evaluate", "two_state_chain", "--delay", "2", "--json", "--policy"]
    assert main([*words, "own_for_tests:stay_low"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["optimal_value"] == pytest.approx(8.46)
    chain = two_state_chain()
    by_hand = pkd.evaluate(chain, lambda h, x, y: 0)  # a constant rule needs no news
    assert found["value_of_the_policy"] == pytest.approx(float(by_hand))


def test_evaluate_tells_a_rule_what_was_done_since(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["evaluate", "two_state_chain", "--delay", "2", "--json", "--policy"]
    assert main([*words, "own_for_tests:last_entry"]) == 0
    found = json.loads(capsys.readouterr().out)["value_of_the_policy"]
    late = pkd_delay.DelayedMDP.constant(two_state_chain(), 2)
    episodes = simulate(late, lambda h, s, q, w: q[-1] if q else s, 4000, seed=1)
    returns = np.array([episode.total for episode in episodes])
    assert found == pytest.approx(returns.mean(), abs=4 * returns.std() / 4000**0.5 + 1e-9)


def test_evaluate_takes_a_rule_that_chooses_at_random(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["evaluate", "two_state_chain", "--json", "--policy", "own_for_tests:flip"]
    assert main(words) == 0
    found = json.loads(capsys.readouterr().out)["value_of_the_policy"]
    assert found == pytest.approx(5.0)


@pytest.mark.parametrize("form", ["csv", "json"])
@pytest.mark.parametrize("delay", [[], ["--delay", "1"]])
def test_evaluate_reads_the_policy_that_export_wrote(
    form: str, delay: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["export", "two_state_chain", *delay, "--out", f"policy.{form}"]) == 0
    capsys.readouterr()
    words = ["evaluate", "two_state_chain", *delay, "--policy", f"policy.{form}", "--json"]
    assert main(words) == 0
    assert json.loads(capsys.readouterr().out)["loss"] == pytest.approx(0, abs=1e-12)


def test_a_file_of_a_delayed_plan_is_evaluated(capsys: pytest.CaptureFixture[str]) -> None:
    late = pkd_delay.DelayedMDP.constant(two_state_chain(), 1)
    pkd_delay.plan(late).to_json("policy.json")
    words = ["evaluate", "two_state_chain", "--delay", "1", "--policy", "policy.json", "--json"]
    assert main(words) == 0
    assert json.loads(capsys.readouterr().out)["value_of_the_policy"] == pytest.approx(9.1)


def test_simulate_shows_mean_error_and_exact_value(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", "two_state_chain", "--episodes", "50", "--show", "1"]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("episode 1: return 10\n")
    assert "mean return 10 +- 0 over 50 episodes (standard error); exact 10" in printed


def test_simulate_writes_every_move(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["simulate", "gambler", "--episodes", "20", "--seed", "3", "--csv", "moves.csv"]
    assert main(words) == 0
    with Path("moves.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert {row["episode"] for row in rows} == {str(k) for k in range(1, 21)}
    paid = sum(float(row["reward"]) for row in rows)
    assert f"mean return {paid / 20:.7g} " in capsys.readouterr().out or paid == 0.0


def test_simulate_is_repeated_by_its_seed(capsys: pytest.CaptureFixture[str]) -> None:
    printed = []
    for _ in range(2):
        main(["simulate", "gambler", "--episodes", "30", "--seed", "5", "--show", "30"])
        printed.append(capsys.readouterr().out)
    assert printed[0] == printed[1]


@pytest.mark.parametrize("form", ["drn", "prism", "pomdp", "npz"])
def test_export_writes_the_whole_problem(form: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["export", "inventory", "--horizon", "3", "--out", f"table.{form}"]) == 0
    assert "114 states, 7 actions, horizon 3" in capsys.readouterr().out
    if form == "npz":
        best = pkd.plan(pkd.TabularMDP.from_npz("table.npz")).value
        assert best == pytest.approx(pkd.plan(inventory(horizon=3)).value, abs=1e-10)


def test_storm_finds_the_optimum_of_an_exported_delayed_problem() -> None:
    stormpy = pytest.importorskip("stormpy", reason="stormpy is in the extra `bench`")
    words = ["export", "two_state_chain", "--inter-arrival", "-1:.2,0:.5,1:.3", "--max-delay", "2"]
    assert main([*words, "--out", "table.drn"]) == 0
    model = stormpy.build_model_from_drn("table.drn")
    (question,) = stormpy.parse_properties('R{"reward"}max=? [C<=11]')
    answer = stormpy.model_checking(model, question, only_initial_states=True)
    late = pkd_delay.DelayedMDP(two_state_chain(), {-1: 0.2, 0: 0.5, 1: 0.3}, 2)
    assert answer.get_value(model.initial_states[0]) == pytest.approx(
        pkd_delay.plan(late).value, abs=1e-8
    )


def test_export_writes_a_stationary_policy_with_its_loss(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["export", "riverswim", "--horizon", "40", "--stationary", "--out", "p.json"]) == 0
    printed = capsys.readouterr().out
    assert "over the horizon, exactly" in printed
    assert "per step of an endless run" in printed
    assert json.loads(Path("p.json").read_text())["columns"] == ["x", "y", "action"]


def test_export_writes_the_policy_of_a_run(capsys: pytest.CaptureFixture[str]) -> None:
    main(["learn", "two_state_chain", "--episodes", "30", "--save", "run.npz", "--quiet"])
    capsys.readouterr()
    assert main(["export", "run.npz", "--out", "policy.json"]) == 0
    policy = pkd.PolicyTable.read("policy.json")
    value = pkd.Run.load("run.npz").policy_values[-1]
    assert pkd.evaluate(two_state_chain(), policy) == pytest.approx(value)


def test_a_discount_on_the_command_line_is_that_of_python(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["plan", "inventory", "--discount", ".9", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["value"]
    assert found == pkd.plan(pkd.discounted("inventory", 0.9)).value


def test_a_long_plan_is_announced(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled = pkd.compile(two_state_chain())
    announce("chain", compiled)
    assert capsys.readouterr().err == ""
    monkeypatch.setattr("pkd.cli.plan.MOMENT", 0.0)
    announce("chain", compiled)
    assert capsys.readouterr().err.startswith("chain: 2 states, 10 steps; planning takes about ")
