"""The command line: what it prints and writes, experiment files, one line for bad input."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from math import e, log, sqrt
from pathlib import Path
from typing import Any

import attrs
import pytest

import pkd
from pkd.cli import main
from pkd.rule_words import RULES
from pkd.tabular import TabularMDP

PNG = b"\x89PNG"

BROKEN = """
import pkd

class Broken(pkd.NoiseMDP):
    horizon = 2
    def initial(self): return 0
    def choices(self, s): return []
    def noise(self, s, a): return "coin"
    def outcomes(self, z): return [0, 1]
    def land(self, s, a, w): return w, s

class Crashing(Broken):
    def choices(self, s): return {}["no such key"]
"""


@pytest.fixture
def climb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A ladder of three rungs: `up` climbs for sure, `rest` pays the number of the rung. The
    optimum of 4 steps is 0 + 0 + 2 + 2.
    """
    transitions = [[[0, 1, 0], [1, 0, 0]], [[0, 0, 1], [0, 1, 0]], [[0, 0, 1], [0, 0, 1]]]
    rewards = [[0, 0], [0, 1], [0, 2]]
    mdp = TabularMDP(
        transitions,
        rewards,
        4,
        state_names=["ground", "middle", "top"],
        action_names=["up", "rest"],
    )
    mdp.save_npz(tmp_path / "climb.npz")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    return "climb.npz"


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
        ("3", "middle"): "up",  # 2 against 1 + 1: a tie, which goes to the first action
        ("4", "middle"): "rest",
    }
    assert (rows[0]["Q(up)"], rows[0]["Q(rest)"]) == ("4.0", "2.0")


def test_a_horizon_replaces_that_of_the_file(
    climb: str, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["plan", climb, "--horizon", "2", "--json"])
    assert json.loads(capsys.readouterr().out)["value"] == 1.0


def test_a_long_table_is_cut_and_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    main(["plan", "CliffWalking-v1", "--horizon", "3", "--all"])
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2 + 60 + 1
    assert lines[-1] == "... 37 more states; --csv writes all of them"  # 1 + 48 + 48 states


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


@pytest.mark.parametrize("rule", RULES)
def test_every_rule_learns_and_names_its_constants(
    climb: str, rule: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["learn", climb, "--episodes", "10", "--optimism", rule]) == 0
    assert capsys.readouterr().out.startswith(
        f"climb.npz: {WORDS[rule]}, 10 episodes, replanning: doubling, delta 0.05\n"
    )


def test_an_experiment_file_stands_for_its_flags(
    climb: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("experiment.toml").write_text(
        f'model = "{climb}"\nepisodes = 25\noptimism = "greedy"\nreplan = "every"\nquiet = true\n'
    )
    main(["learn", "--config", "experiment.toml"])
    assert capsys.readouterr().out.startswith(
        "climb.npz: Greedy (no bonus), no guarantee, 25 episodes, replanning: every, delta 0.05\n"
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


@pytest.mark.usefixtures("climb")
def test_false_for_a_flag_that_takes_a_value_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    Path("experiment.toml").write_text("horizon = false\n")
    with pytest.raises(SystemExit) as stop:
        main(["plan", "two_state_chain", "--config", "experiment.toml"])
    assert stop.value.code == 2
    assert "experiment.toml: unrecognized arguments: --no-horizon" in capsys.readouterr().err


def test_check_prints_sizes_and_ok(climb: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", climb]) == 0
    lines = [line.rsplit(maxsplit=1) for line in capsys.readouterr().out.splitlines()]
    assert ["unknown features z", "6"] in lines
    assert lines[-1] == ["climb.npz:", "ok"]


def test_check_prints_every_finding_and_exits_with_1(
    climb: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("broken_for_tests.py").write_text(BROKEN)
    assert main(["check", "broken_for_tests:Broken"]) == 1
    captured = capsys.readouterr()
    assert "actions" in captured.err
    assert captured.out.startswith("broken_for_tests:Broken: ")


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
    from pkd_delay.autoscaler import autoscaler

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


def test_compare_puts_rules_side_by_side(climb: str) -> None:
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
    rows = rows_of("rules.csv")
    assert [row["agent"] for row in rows] == ["MVP", "Greedy (no bonus)"]
    assert [row["guarantee"] for row in rows] == ["as published", "no guarantee"]
    assert (rows[0]["return per episode"], rows[0]["95% from"], rows[0]["to"]) == (
        "3.0",
        "1.0",
        "1.0",
    )  # as for `learn` above
    assert rows[0]["episodes to 95% of the gain"] == "> 1"
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


@attrs.frozen
class Shown:
    title: str = "a title"
    headers: tuple[str, ...] = ("agent", "regret")
    rows: tuple[tuple[Any, ...], ...] = (("clever", 1.5),)
    notes: tuple[str, ...] = ("a note",)

    @property
    def figure(self) -> Any:
        from matplotlib.figure import Figure

        return Figure()


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What the one registered demonstration is asked for."""
    calls: list[dict[str, Any]] = []
    monkeypatch.setattr(
        "pkd.cli.demo.installed",
        lambda group: {"toy": lambda **given: calls.append(given) or Shown()},
    )
    return calls


def test_demo_shows_what_an_installed_package_offers(
    asked: list[dict[str, Any]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["demo", "--out", str(tmp_path / "new")]) == 0
    assert capsys.readouterr().out.splitlines()[:4] == [
        "a title",
        "agent   regret",
        "clever     1.5",
        "a note",
    ]
    assert (tmp_path / "new" / "demo.png").read_bytes()[:4] == PNG
    assert rows_of(str(tmp_path / "new" / "demo.csv")) == [{"agent": "clever", "regret": "1.5"}]


def test_demo_passes_on_only_what_was_typed(asked: list[dict[str, Any]], tmp_path: Path) -> None:
    main(["demo", "toy", "--seeds", "3", "--out", str(tmp_path)])
    main(["demo", "--out", str(tmp_path)])
    assert asked == [{"progress": False, "seeds": 3}, {"progress": False}]


def test_demo_without_any_package_is_one_clear_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("pkd.cli.demo.installed", lambda group: {})
    assert main(["demo"]) == 2
    expected = (
        "pkd: error: no installed package has a demonstration; "
        "expected one in the entry-point group pkd.demos\n"
    )
    assert capsys.readouterr().err == expected


BAD_INPUT = [
    (
        ["plan"],
        (
            "pkd: error: no model was named; expected a registered name, module:object, an .npz "
            "file, or a Gymnasium id"
        ),
    ),
    (
        ["plan", "missing.npz"],
        (
            "pkd: error: missing.npz: expected an .npz file with arrays P (S, A, S), r (S, A) and "
            "horizon, found no such file"
        ),
    ),
    (["plan", "climb.npz", "--step", "9"], "pkd: error: --step 9: climb.npz has 4 steps"),
    (
        ["plan", "climb.npz", "--step", "0"],
        "pkd plan: error: argument --step: expected a whole number of at least 1, found '0'",
    ),
    (
        ["plan", "climb.npz", "--option", "size=3"],
        "pkd: error: climb.npz has no option size: an .npz file takes none",
    ),
    (
        ["plan", "climb.npz", "--plot", "policy.abc"],
        "pkd plan: error: argument --plot: 'policy.abc': expected a name that ends in one of",
    ),
    (
        ["plan", "climb.npz", "--csv", "no/such/x.csv"],
        (
            "pkd plan: error: argument --csv: cannot write 'no/such/x.csv': expected a file in a "
            "folder"
        ),
    ),
    (
        ["learn", "climb.npz", "--episodes", "1.5"],
        "pkd learn: error: argument --episodes: expected a whole number of at least 1, found '1.5'",
    ),
    (
        ["learn", "climb.npz", "--delta", "2"],
        "pkd learn: error: argument --delta: expected a number between 0 and 1, found '2'",
    ),
    (
        ["learn", "climb.npz", "--seed", "-1"],
        "pkd learn: error: argument --seed: expected a whole number of at least 0, found '-1'",
    ),
    (
        ["learn", "climb.npz", "--optimism", "hope"],
        "pkd learn: error: argument --optimism: optimism rule 'hope' is unknown",
    ),
    (["learn", "--config", "missing.toml"], "pkd: error: missing.toml: No such file or directory"),
    (["learn", "--config", "bad.toml"], "pkd: error: bad.toml: expected a TOML file: "),
    (
        ["learn", "climb.npz", "--config", "unknown.toml"],
        "pkd: error: unknown.toml: unrecognized arguments: --epochs=3",
    ),
    (
        ["learn", "climb.npz", "--config", "table.toml"],
        "pkd: error: table.toml: [learn]: the only table is [options]",
    ),
    (
        ["demo", "nothing"],
        "pkd: error: no demonstration is called 'nothing'; expected one of autoscaler",
    ),
    (
        ["compare", "climb.npz", "--rules", "mvp,hope"],
        "pkd compare: error: argument --rules/--agents: no agent is called 'hope'",
    ),
    (
        ["bound", "--states", "5"],
        "pkd: error: the sizes --actions, --horizon, --max-delay are missing; expected --states, ",
    ),
    (
        ["bound", "climb.npz", "--states", "5"],
        "pkd: error: --states: climb.npz has its own sizes; expected a model or sizes, not both",
    ),
    (
        ["latency", "climb.npz", "--delay", "2"],
        "pkd: error: pkd latency goes through all constant delays itself; expected --up-to D",
    ),
    (
        ["plan", "climb.npz", "--delay", "-1"],
        "pkd plan: error: argument --delay: expected a number of steps, found '-1'",
    ),
    (
        ["plan", "climb.npz", "--delay", "1", "--max-delay", "2"],
        "pkd: error: --delay D is constant and has no --max-delay",
    ),
    (
        ["plan", "climb.npz", "--inter-arrival", "0:1"],
        "pkd: error: --inter-arrival needs --max-delay D, the largest delay",
    ),
    (
        ["plan", "climb.npz", "--inter-arrival", "0.5"],
        (
            "pkd plan: error: argument --inter-arrival: expected CHANGE:PROBABILITY,..., such as "
            "-1:.2,0:.5,2:.3, found '0.5'"
        ),
    ),
    (
        ["plan", "climb.npz", "--inter-arrival", "0:.4,0:.6"],
        "pkd plan: error: argument --inter-arrival: the change 0 occurs twice",
    ),
    (
        ["plan", "climb.npz", "--inter-arrival", "0:.5", "--max-delay", "1"],
        "pkd: error: inter_arrival sums to 0.5, not 1",
    ),
    (
        ["plan", "climb.npz", "--delay-law", "unknown"],
        "pkd: error: there is no delay to speak of; expected --delay D, or ",
    ),
    (["report"], "pkd report: error: the following arguments are required: WHAT"),
    (
        ["report", "climb.npz", "no.npz"],
        (
            "pkd: error: climb.npz is not a saved run: it has no entry 'features'; no.npz does not "
            "exist"
        ),
    ),
    (
        ["report", "no.npz", "--out", "no/such/x.html"],
        "pkd report: error: argument --out: cannot write 'no/such/x.html': expected a file in",
    ),
    (
        ["verify", "no.npz", "gone.npz"],
        "pkd: error: no.npz does not exist; gone.npz does not exist",
    ),
    (["fly"], "pkd: error: argument COMMAND: invalid choice: 'fly'"),
    (
        ["plan", "broken_for_tests:Crashing"],
        "pkd: error: broken_for_tests:Crashing is a model without a law",
    ),
    (
        ["check", "broken_for_tests:Nothing"],
        "pkd: error: broken_for_tests:Nothing cannot be imported: ",
    ),
]


@pytest.mark.parametrize(("words", "line"), BAD_INPUT)
def test_bad_input_is_one_line_and_exit_code_2(
    climb: str, words: list[str], line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("bad.toml").write_text("episodes =")
    Path("unknown.toml").write_text("epochs = 3")
    Path("table.toml").write_text("[learn]\nepisodes = 3")
    Path("broken_for_tests.py").write_text(BROKEN)
    try:
        code: Any = main(words)
    except SystemExit as stop:
        code = stop.code
    printed = capsys.readouterr().err
    assert (code, printed.count("\n")) == (2, 1)
    assert printed.startswith(line)


CRASH = """
from pkd.tabular import TabularMDP

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
