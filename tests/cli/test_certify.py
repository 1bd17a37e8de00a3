"""`pkd certify`, and `--option log=` of every command: what is printed, saved and refused."""

from __future__ import annotations

import csv
import random
from pathlib import Path
from typing import Any

import pytest

import pkd
from pkd.certification.logs import as_log
from pkd.cli import main
from pkd.problem import names
from pkd_examples.inventory import DAYS

# 50 weeks of independent demands: the same log in three notations.
RNG = random.Random(0)
SALES = [(day, RNG.randrange(4)) for week in range(50) for day in range(7)]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name, notation in (("good", str), ("one", lambda z: z + 1), ("words", DAYS.__getitem__)):
        rows = "".join(f"{notation(z)},{x}\n" for z, x in SALES)
        (tmp_path / f"{name}.csv").write_text(f"z,x\n{rows}")
    return tmp_path


def run_command(words: str) -> None:
    """Runs a command that must succeed."""
    assert main(words.split()) == 0


def certify(name: str, counts: Any, **options: Any) -> pkd.Certificate:
    return pkd.certify(pkd.as_problem(name).model(), counts, **options)


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("command", ["plan inventory --option log=", "certify inventory --log "])
@pytest.mark.parametrize(("log", "meant"), [("one", "Sun' (6)"), ("words", "Mon' (0)")])
def test_a_log_with_other_weekdays_is_refused(
    command: str, log: str, meant: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(f"{command}{log}.csv".split()) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert f"is no feature of the model; the nearest is 'demand on {meant}" in printed.err


@pytest.mark.usefixtures("folder")
def test_a_plan_from_a_log_says_what_it_was_fitted_to(capsys: pytest.CaptureFixture[str]) -> None:
    run_command("plan inventory --option log=good.csv")
    printed = capsys.readouterr()
    assert printed.err.startswith("pkd: good.csv: 350 samples of 7 features (demand on Mon: 50, ")
    assert printed.out.startswith("inventory log=good.csv: optimal value ")


@pytest.mark.usefixtures("folder")
def test_the_sentence_and_the_samples_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    run_command("certify inventory --log good.csv")
    found = certify("inventory", as_log("inventory", SALES))
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f"inventory: {found.sentence} (certified)"
    assert lines[1].split() == ["feature", "samples", "radius", "more", "samples"]
    assert [line.split()[3] for line in lines[2:9]] == ["50"] * 7
    total = sum(found.more_samples().values())
    assert lines[9].startswith(f"about {total:,} more samples, as in the last column, would halve")


@pytest.mark.usefixtures("folder")
def test_the_robust_plan_can_be_certified_from_its_file(
    capsys: pytest.CaptureFixture[str],
) -> None:
    run_command("certify inventory --log good.csv --save robust.npz")
    run_command("certify inventory --log good.csv --policy robust.npz")
    log = as_log("inventory", SALES)
    compiled = pkd.compile("inventory")
    robust = pkd.certify(compiled, log).plan
    expected = pkd.certify(compiled, log, policy=robust)
    assert f"{expected.sentence} (certified)" in capsys.readouterr().out
    assert expected.low == pytest.approx(robust.value)


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("form", ["csv", "json"])
def test_the_policy_that_export_wrote_is_certified(
    form: str, capsys: pytest.CaptureFixture[str]
) -> None:
    run_command(f"export inventory --out policy.{form}")
    run_command(f"certify inventory --log good.csv --policy policy.{form}")
    expected = certify("inventory", as_log("inventory", SALES), policy=pkd.plan("inventory"))
    assert f"{expected.sentence} (certified)" in capsys.readouterr().out


@pytest.mark.usefixtures("folder")
def test_what_the_robust_plan_earns_is_rounded_down(capsys: pytest.CaptureFixture[str]) -> None:
    run_command("certify inventory --log good.csv --save robust.npz")
    found = certify("inventory", as_log("inventory", SALES))
    said = capsys.readouterr().out.splitlines()[-1]
    start, _, value = said.rpartition(" ")
    assert start == "the robust plan is in robust.npz: it earns at least"
    assert found.low - 1e-3 < float(value) <= found.low


@pytest.mark.usefixtures("folder")
def test_the_policy_of_a_saved_run_is_certified(capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        main(
            ["learn", "inventory", "--episodes", "50", "--optimism", "greedy", "--save", "run.npz"]
        )
        == 0
    )
    assert (
        main(["certify", "inventory", "--log", "good.csv", "--policy", "run.npz", "--delta", ".1"])
        == 0
    )
    run = pkd.Run.load("run.npz", "inventory")
    log = as_log("inventory", SALES)
    expected = certify("inventory", log, policy=run.policy, delta=0.1)
    assert f"{expected.sentence} (certified)" in capsys.readouterr().out
    assert expected.sentence.startswith("with 90% confidence this policy earns between")


@pytest.mark.usefixtures("folder")
def test_the_table_goes_to_a_file_with_all_digits() -> None:
    run_command("certify inventory --log good.csv --csv evidence.csv")
    found = certify("inventory", as_log("inventory", SALES))
    with Path("evidence.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [float(row["radius"]) for row in rows] == [one.radius for one in found.evidence]
    assert [row["feature"] for row in rows] == [f"demand on {day}" for day in DAYS]


@pytest.mark.usefixtures("folder")
def test_a_log_of_base_features_certifies_the_delayed_model(
    capsys: pytest.CaptureFixture[str],
) -> None:
    chain = pkd.as_problem("two_state_chain")
    counts = {z: {x: 400 * p for x, p in row.items()} for z, row in chain.law().items()}
    as_log(chain, counts).to_csv("chain.csv")
    for delay in (0, 1):
        assert main(f"certify two_state_chain --delay {delay} --log chain.csv".split()) == 0
    said = [line for line in capsys.readouterr().out.splitlines() if "confidence" in line]
    for line, optimum in zip(said, (10.0, 9.1), strict=True):  # those of docs/index.md
        low, high = (float(line.split(word)[1].split()[0]) for word in ("between", " and"))
        assert low <= optimum <= high < low + 2


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("name", sorted(names()))
def test_every_registered_model_can_be_certified(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The log is the expectation of 30 samples of each feature."""
    problem = pkd.as_problem(name)
    compiled, law = pkd.compile(problem.model()), problem.law()
    ask = law if callable(law) else law.__getitem__
    features = [*compiled.features, *compiled.reward_index]
    counts = {z: {x: 30 * p for x, p in ask(z).items() if p > 0} for z in features}
    as_log(compiled, counts).to_csv("log.csv")
    assert main(f"certify {name} --log log.csv".split()) == 0
    assert "confidence the best possible policy earns between" in capsys.readouterr().out
    found = pkd.certify(compiled, counts)
    assert found.low <= pkd.plan(compiled, law).value <= found.high


@pytest.mark.usefixtures("folder")
def test_a_log_with_a_memory_is_not_certified(
    capsys: pytest.CaptureFixture[str], folder: Path
) -> None:
    """Each week sells one more than the week before, up to 3: what follows is known beforehand."""
    rows = "".join(f"{day},{(day + week) % 4}\n" for week in range(50) for day in range(7))
    (folder / "memory.csv").write_text(f"z,x\n{rows}")
    assert main(["certify", "inventory", "--log", "memory.csv"]) == 1
    printed = capsys.readouterr().out
    assert "(certified)" not in printed
    assert printed.startswith("inventory: NOT certified, since the log breaks the assumptions")
    assert "demand on Mon: what follows depends on the x' before (p = " in printed


@pytest.mark.usefixtures("folder")
def test_counts_are_certified_without_a_test_and_say_so(
    capsys: pytest.CaptureFixture[str],
) -> None:
    as_log("inventory", SALES).to_csv("counts.csv")
    run_command("certify inventory --log counts.csv")
    assert "not tested whether the features have one law each" in capsys.readouterr().out
