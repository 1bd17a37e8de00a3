"""The command line: what it prints and writes, experiment files, one line for bad input."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from math import e, log, sqrt
from pathlib import Path
from typing import Any

import pytest

import pkd
from pkd.cli import main

PNG = b"\x89PNG"


def rows_of(path: str) -> list[dict[str, str]]:
    with Path(path).open(newline="") as file:
        return list(csv.DictReader(file))


def test_without_a_command_the_help_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    printed = capsys.readouterr().out
    assert all(
        command in printed
        for command in (
            "demo",
            "plan",
            "learn",
            "compare",
            "latency",
            "bound",
            "check",
            "verify",
            "report",
        )
    )


def test_the_version_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"pkd {pkd.__version__}\n"


def test_plan_prints_the_value_and_the_first_decision_in_words(
    climb: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["plan", climb]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "climb.npz: optimal value 4 over 4 steps",
        "step  x       action  value",
        "   1  ground  up          4",
    ]


def test_plan_shows_the_step_that_is_asked_for(
    climb: str, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["plan", climb, "--step", "4", "--json"])
    policy = json.loads(capsys.readouterr().out)["policy"]
    assert [(row["step"], row["x"], row["value"], row["values"]) for row in policy] == [
        (4, "ground", 0.0, {"up": 0.0, "rest": 0.0}),
        (4, "middle", 1.0, {"up": 0.0, "rest": 1.0}),
        (4, "top", 2.0, {"up": 0.0, "rest": 2.0}),
    ]


def test_plan_writes_the_policy_of_all_steps_to_a_csv_file(climb: str) -> None:
    main(["plan", climb, "--csv", "policy.csv"])
    rows = rows_of("policy.csv")
    assert {(row["step"], row["x"]): row["action"] for row in rows if row["x"] == "middle"} == {
        ("2", "middle"): "up",  # 2 + 2 on the top against 1 + 1 + 1
        ("4", "middle"): "rest",
    }
    # At step 3 it is 2 against 1 + 1: a tie, which goes to the first action, as at step 2.
    assert {row["until"] for row in rows if row["x"] == "middle" and row["step"] == "2"} == {"3"}


def test_a_horizon_replaces_that_of_the_file(
    climb: str, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["plan", climb, "--horizon", "2", "--json"])
    assert json.loads(capsys.readouterr().out)["value"] == 1.0


def test_a_long_table_is_cut_and_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    main(["plan", "CliffWalking-v1", "--horizon", "3", "--all"])
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2 + 60 + 1
    assert lines[-1] == "... 37 more; --csv writes all of them"  # 1 + 48 + 48 states


@pytest.mark.parametrize("command", [["plan"], ["learn", "--episodes", "20", "--seeds", "2"]])
def test_a_plot_is_written(climb: str, command: list[str]) -> None:
    assert main([*command, climb, "--plot", "figure.png"]) == 0
    assert Path("figure.png").read_bytes()[:4] == PNG


def test_learn_reports_regret_against_the_exact_optimum(climb: str) -> None:
    """Without data every state may follow, so only today's pay counts: up from the ground (a tie),
    then rest for 1 + 1 + 1.
    """
    assert main(["learn", climb, "--episodes", "1", "--csv", "results.csv"]) == 0
    (row,) = rows_of("results.csv")
    assert 0 < float(row["certified gap"]) <= 6  # all returns are within [0, 6]
    numbers = {key: float(row[key]) for key in row if key not in ("seconds", "certified gap")}
    assert numbers == {
        "seed": 0,
        "optimal value": 4,
        "return per episode": 3,
        "return at the end": 3,
        "regret": 1,
        "optimism violations": 0,
        "plans": 1,
    }


def test_learn_goes_through_the_seeds(climb: str) -> None:
    main(["learn", climb, "--episodes", "5", "--seed", "3", "--seeds", "2", "--csv", "results.csv"])
    assert [row["seed"] for row in rows_of("results.csv")] == ["3", "4"]


def test_a_saved_run_can_be_loaded(climb: str) -> None:
    main(
        [
            "learn",
            climb,
            "--episodes",
            "30",
            "--optimism",
            "greedy",
            "--seeds",
            "2",
            "--save",
            "run.npz",
        ]
    )
    assert len(pkd.Run.load("run-0.npz").regret) == 30
    assert Path("run-1.npz").exists()


WORDS = {
    "certified": "Certified",
    "mvp": "MVP, as published",
    "mvp-max": "MVP (max form), no guarantee",
    "practical": "MVP, practical constants, no guarantee",
    "hoeffding": "Hoeffding, as published",
    "kl-ucrl": "KL-UCRL, no guarantee",
    "ucrl2": "UCRL2, no guarantee",
    "bayes-ucbvi": "Bayes-UCBVI, quantile 0.9 of 100 draws, no guarantee",
    "opsrl": "OPSRL, 8 draws, no guarantee",
    "greedy": "Greedy (no bonus), no guarantee",
    "posterior": "Posterior sampling, prior 1, no guarantee",
}


@pytest.mark.parametrize("rule", WORDS)
def test_a_rule_learns_and_names_its_constants(
    climb: str, rule: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["learn", climb, "--episodes", "10", "--optimism", rule]) == 0
    schedule = "every" if rule in ("bayes-ucbvi", "opsrl", "posterior") else "doubling"
    proved = "interval" if "no guarantee" in WORDS[rule] else "regret and interval"
    assert capsys.readouterr().out.startswith(
        f"climb.npz: {WORDS[rule]}, 10 episodes, replanning: {schedule}, delta 0.05; "
        f"regret is exact; guaranteed: {proved}\n"
    )


def test_an_experiment_file_stands_for_its_flags(
    climb: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("experiment.toml").write_text(
        f'model = "{climb}"\nepisodes = 25\noptimism = "greedy"\nreplan = "every"\nquiet = true\n'
    )
    main(["learn", "--config", "experiment.toml"])
    assert capsys.readouterr().out.startswith(
        "climb.npz: Greedy (no bonus), no guarantee, 25 episodes, replanning: every, delta 0.05; "
        "regret is exact; guaranteed: interval\n"
    )


def test_a_flag_goes_before_the_experiment_file(
    climb: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("experiment.toml").write_text(f'model = "{climb}"\nepisodes = 25\n')
    main(["learn", "--config=experiment.toml", "--episodes", "7"])
    assert "7 episodes" in capsys.readouterr().out


def test_options_of_a_model_stand_in_a_table_of_the_experiment_file(
    climb: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("experiment.toml").write_text(
        'model = "FrozenLake-v1"\nhorizon = 6\n[options]\nis_slippery = false\ndesc = ["SFFG"]\n'
    )
    main(["plan", "--config", "experiment.toml", "--json"])
    assert json.loads(capsys.readouterr().out)["value"] == 1.0


@pytest.mark.usefixtures("climb")  # whose folder is the current one
def test_false_in_an_experiment_file_takes_a_flag_back(capsys: pytest.CaptureFixture[str]) -> None:
    Path("experiment.toml").write_text("json = false\nhorizon = 3\n")
    main(["plan", "two_state_chain", "--json", "--config", "experiment.toml"])
    assert json.loads(capsys.readouterr().out)["value"]  # what is typed goes before the file
    Path("experiment.toml").write_text("json = true\nhorizon = 3\n")
    main(["plan", "two_state_chain", "--config", "experiment.toml", "--no-json"])
    assert "optimal value" in capsys.readouterr().out


def test_titles_name_the_flags_that_changed_the_model(capsys: pytest.CaptureFixture[str]) -> None:
    for command in ("plan", "check", "simulate", "evaluate", "learn"):
        assert main([command, "two_state_chain", "--delay", "2"]) == 0
        assert "two_state_chain --delay 2" in capsys.readouterr().out


def test_plan_says_which_command_saves_a_policy(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["plan", "two_state_chain", "--save", "best.json"])
    said = capsys.readouterr().err
    assert "pkd export MODEL --out best.json writes a policy" in said
    assert "see pkd plan --help" in said


def test_check_prints_sizes_and_ok(climb: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", climb]) == 0
    lines = [line.rsplit(maxsplit=1) for line in capsys.readouterr().out.splitlines()]
    assert ["unknown features z", "6"] in lines
    assert lines[-1] == ["climb.npz:", "ok"]


def test_check_prints_every_finding_and_exits_with_1(
    climb: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", "own_for_tests:Broken"]) == 1
    captured = capsys.readouterr()
    assert "actions" in captured.err
    assert captured.out.startswith("own_for_tests:Broken: ")


@pytest.mark.parametrize(("delay", "value"), [(0, 10.0), (1, 9.1), (2, 8.46), (3, 8.012)])
def test_a_named_model_can_be_delayed(
    delay: int, value: float, capsys: pytest.CaptureFixture[str]
) -> None:
    """Closed form of the two-state chain: sum over t < 10 of (1 + .8^min(t, d)) / 2."""
    assert main(["plan", "two_state_chain", "--delay", str(delay), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["value"] == pytest.approx(value, abs=1e-12)


def test_an_inter_arrival_law_may_start_with_a_minus(capsys: pytest.CaptureFixture[str]) -> None:
    """The worked example of the clip at 0: uniform transitions, Delta = -1 or 1, H = 3 and D = 2
    give 2.5.
    """
    words = [
        "two_state_chain",
        "--option",
        "stay=0.5",
        "--horizon",
        "3",
        "--inter-arrival",
        "-1:.5,1:.5",
        "--max-delay",
        "2",
    ]
    assert main(["plan", *words, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["value"] == pytest.approx(2.5, abs=1e-12)


def test_a_file_and_a_gymnasium_id_can_be_delayed(
    climb: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where every move is sure, late states cost nothing."""
    main(["plan", climb, "--delay", "2", "--json"])
    assert json.loads(capsys.readouterr().out)["value"] == pytest.approx(4.0)
    main(
        [
            "plan",
            "FrozenLake-v1",
            "--option",
            "is_slippery=False",
            "--horizon",
            "6",
            "--delay",
            "2",
            "--json",
        ]
    )
    assert json.loads(capsys.readouterr().out)["value"] == pytest.approx(1.0)


def test_a_delay_takes_the_place_of_the_one_a_model_has(capsys: pytest.CaptureFixture[str]) -> None:
    """The autoscaler comes with delays of up to 3 ticks; without any its optimum is that of its
    base.
    """
    from pkd_delay.models.autoscaler import autoscaler

    base = autoscaler(horizon=4).problem
    main(["plan", "autoscaler", "--horizon", "4", "--delay", "0", "--json"])
    assert json.loads(capsys.readouterr().out)["value"] == pytest.approx(
        pkd.plan(base.model(), base.law()).value, abs=1e-12
    )


@pytest.mark.parametrize(
    ("flags", "features"),
    [
        (["known"], 4),
        (["unknown", "--no-shared-delay"], 4 + 4 * 2),
        (["unknown"], 4 + 2 * 2),
    ],
)
def test_an_unknown_delay_law_has_features_of_its_own(
    flags: list[str], features: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """D = W = 1: the arrivals with an empty queue and right after a state was shown; the rest is
    forced. Each of 4 pairs (s, a) has its own, or each of 2 states if the law is shared.
    """
    words = ["two_state_chain", "--inter-arrival", "-1:.5,1:.5", "--max-delay", "1", "--delay-law"]
    words += flags
    assert main(["check", *words]) == 0
    lines = [line.rsplit(maxsplit=1) for line in capsys.readouterr().out.splitlines()]
    assert ["unknown features z", str(features)] in lines


def test_learning_takes_an_unknown_delay_law(capsys: pytest.CaptureFixture[str]) -> None:
    words = [
        "two_state_chain",
        "--delay",
        "1",
        "--delay-law",
        "unknown",
        "--episodes",
        "20",
        "--optimism",
        "greedy",
    ]
    assert main(["learn", *words]) == 0
    assert " 9.1 " in capsys.readouterr().out


UNEVEN = """
import pkd

class Uneven(pkd.NoiseMDP):
    horizon = 2
    def initial(self): return 0
    def choices(self, s): return [0, 1] if s == 0 else [0]
    def noise(self, s, a): return "coin"
    def outcomes(self, z): return [0]
    def land(self, s, a, w): return float(a), a

def uneven():
    return Uneven(), {"coin": {0: 1.0}}
"""


def test_what_is_done_instead_of_an_action_that_is_not_on_offer_must_be_said(
    climb: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Action 1 pays 1 and takes the offer away, so one of two steps can pay."""
    Path("uneven_for_tests.py").write_text(UNEVEN)
    assert main(["plan", "uneven_for_tests:uneven", "--delay", "1", "--json"]) == 2
    assert "all decision states must offer the same actions" in capsys.readouterr().err
    assert (
        main(["plan", "uneven_for_tests:uneven", "--delay", "1", "--instead", "first", "--json"])
        == 0
    )
    assert json.loads(capsys.readouterr().out)["value"] == pytest.approx(1.0)


def test_latency_gives_the_price_of_each_tick(climb: str) -> None:
    assert main(["latency", "two_state_chain", "--csv", "price.csv", "--plot", "price.png"]) == 0
    rows = rows_of("price.csv")
    assert [float(row["optimal value"]) for row in rows] == pytest.approx(
        [10, 9.1, 8.46, 8.012, 7.7048]
    )
    assert [float(row["price of this tick"]) for row in rows] == pytest.approx(
        [0, 0.9, 0.64, 0.448, 0.3072]
    )
    assert Path("price.png").read_bytes()[:4] == PNG


def test_compare_puts_rules_side_by_side(climb: str, capsys: pytest.CaptureFixture[str]) -> None:
    words = [
        "compare",
        climb,
        "--rules",
        "mvp,greedy",
        "--episodes",
        "1",
        "--seeds",
        "2",
        "--csv",
        "rules.csv",
        "--plot",
        "rules.png",
    ]
    assert main(words) == 0
    rows = rows_of("rules.csv")  # one line for each run
    assert [row["agent"] for row in rows] == ["MVP"] * 2 + ["Greedy (no bonus)"] * 2
    assert [row["guarantee"] for row in rows[::2]] == ["as published", "no guarantee"]
    assert [row["return_per_episode"] for row in rows[:2]] == ["3.0"] * 2  # as for `learn` above
    out = capsys.readouterr().out
    assert "1 episode, means over 2 seeds" in out
    assert out.count(" (few) ") == 2
    assert Path("rules.png").read_bytes()[:4] == PNG


RATE = "leading rate without logarithms"
SIZES = [
    "--states",
    "100",
    "--actions",
    "2",
    "--horizon",
    "100",
    "--max-delay",
    "10",
    "--branching",
    "40",
    "--episodes",
    "1e6",
]


def test_bound_prints_the_theorems_from_sizes(climb: str) -> None:
    """H^(3/2) D^(5/2) sqrt(S A K) for the previous bound, H sqrt(D S A K) for ours: both without
    logarithms. The lower bound is published.
    """
    assert main(["bound", *SIZES, "--csv", "bounds.csv", "--plot", "bounds.png"]) == 0
    regret = {row["bound"]: float(row["regret"]) for row in rows_of("bounds.csv")}
    assert regret["Theorem 3 (lower bound)"] == pytest.approx(65.276832, abs=1e-6)
    assert regret[f"previous bound (Chen et al. 2023), {RATE}"] == pytest.approx(
        100**1.5 * 10**2.5 * (100 * 2 * 1e6) ** 0.5
    )
    assert regret[f"Theorem 1, {RATE}"] == pytest.approx(100 * (10 * 100 * 2 * 1e6) ** 0.5)
    assert regret[f"Theorem 2, {RATE}"] == pytest.approx(
        2 * 100 * (10 * 100 * 2 * 1e6) ** 0.5
    )  # W = D
    assert Path("bounds.png").read_bytes()[:4] == PNG


def test_bound_says_from_where_on_it_says_something(climb: str) -> None:
    """The previous rate is below H K from K = H D^5 S A on: sqrt(K) must exceed H^(1/2) D^(5/2)
    sqrt(S A).
    """
    main(["bound", *SIZES, "--csv", "bounds.csv"])
    start = {row["bound"]: row["below H K from"] for row in rows_of("bounds.csv")}
    assert float(start[f"previous bound (Chen et al. 2023), {RATE}"]) == pytest.approx(
        100 * 10**5 * 100 * 2, rel=1e-8
    )


def test_bound_counts_the_features_of_a_model(climb: str) -> None:
    """The general theorem by its formula. Any state may follow for all a learner knows, so returns
    lie between 0 and 0 + 2 + 2 + 2.
    """
    assert main(["bound", climb, "--episodes", "100", "--csv", "bounds.csv"]) == 0
    (row,) = rows_of("bounds.csv")
    ell1, ell2 = (
        log(32 * 4**2 * 6 * 100 / 0.05),
        log(32 * 4 * 3 * 6 * 100 / 0.05),
    )  # H = 4, |Y| = 1, |Z| = 6, B = 3, K = 100
    assert float(row["leading term"]) == pytest.approx(56 * 6 * sqrt(100 * log(e * 400) * 6 * ell1))
    assert float(row["lower order"]) == pytest.approx(2640 * 6 * log(e * 400) * 18 * ell2)


CRASH = """
from pkd.tables.tabular import TabularMDP

class Problem:
    def model(self):
        return TabularMDP([[[1.0]]], [[0.0]], 1).model()
    def law(self):
        return {}["no such key"]
"""


def test_an_error_in_a_users_own_code_says_where(
    climb: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("crash_for_tests.py").write_text(CRASH)
    assert main(["plan", "crash_for_tests:Problem"]) == 2
    assert capsys.readouterr().err.endswith(
        "crash_for_tests.py:8: 'no such key' (--debug shows more)\n"
    )


def test_debug_shows_the_traceback(climb: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("crash_for_tests.py").write_text(CRASH)
    assert main(["plan", "crash_for_tests:Problem", "--debug"]) == 2
    assert "Traceback" in capsys.readouterr().err


def test_an_interrupt_is_one_line_and_exit_code_130(
    climb: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(pkd, "plan", interrupted, raising=False)
    assert main(["plan", climb]) == 130
    assert capsys.readouterr().err == "pkd: interrupted\n"


def test_a_reader_that_stops_reading_is_no_error(climb: str) -> None:
    program = "import sys; from pkd.cli import main; sys.exit(main())"
    words = [
        sys.executable,
        "-c",
        program,
        "plan",
        "CliffWalking-v1",
        "--horizon",
        "100",
        "--all",
        "--json",
    ]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(timeout=60) == 0
