"""The short form of `make fuzz`: a few seeds of each campaign, and the runner itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fuzz import __main__ as runner
from tests.fuzz.campaign import CAMPAIGNS, attack
from tests.fuzz.defects import DEFECTS

ROOT = Path(__file__).parents[2]
SEEDS = {"models": 6, "runs": 4, "files": 5, "words": 2, "threads": 4, "kills": 2}


@pytest.mark.parametrize(
    ("name", "seed"), [(name, seed) for name in CAMPAIGNS for seed in range(SEEDS[name])]
)
def test_an_attack_finds_nothing(name: str, seed: int, tmp_path: Path) -> None:
    assert attack(name, seed, tmp_path) > 0


def test_every_campaign_has_seeds_here() -> None:
    assert set(SEEDS) == set(CAMPAIGNS)


def listen_to(*words: tuple[str, int, str]) -> object:
    """A process that says these words, whatever it is asked."""
    return lambda name, seed, count, seconds, defect: iter(words)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ([("begin", 0, "-"), ("end", 0, "7"), ("stop", 0, "")], (1, 7, [])),
        ([("begin", 0, "-"), ("found", 0, "wrong"), ("stop", 0, "")], (1, 0, [("wrong", 0)])),
        ([("begin", 0, "-"), ("stop", -11, "died")], (0, 0, [("died", 0)])),
        ([("begin", 0, "-"), ("end", 0, "1"), ("begin", 1, "-"), ("stop", -9, "hangs")],
         (1, 1, [("hangs", 1)])),
    ],
    ids=["nothing", "a finding", "a crash", "a hang"],
)  # fmt: skip
def test_a_crash_and_a_hang_are_findings_with_the_seed_that_repeats_them(
    words: list[tuple[str, int, str]],
    expected: tuple[int, int, list[tuple[str, int]]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(runner, "_listen", listen_to(*words))
    found = runner.run_campaign("models", 0, 2, 60.0, 1)
    seeds, inputs, findings = expected
    assert (found.seeds, found.inputs, len(found.findings)) == (seeds, inputs, len(findings))
    for said, (text, seed) in zip(found.findings, findings, strict=True):
        assert text in said
        assert f"--seed {seed} --count 1" in said


@pytest.mark.slow
@pytest.mark.parametrize("name", DEFECTS)
def test_the_net_finds_a_defect_that_is_put_back(name: str) -> None:
    found = runner.run_campaign(DEFECTS[name].campaign, 0, 400, 120.0, 1, name)
    assert found.findings


@pytest.mark.parametrize("name", DEFECTS)
def test_a_defect_can_still_be_put_back(name: str) -> None:
    for module, edits in DEFECTS[name].edits.items():
        text = ROOT.joinpath(*module.split(".")).with_suffix(".py").read_text(encoding="utf-8")
        assert [text.count(now) for now, _ in edits] == [1] * len(edits)


# They once found: a plan with 1e300 rounds, values and rewards that are texts, infinite progress.
@pytest.mark.parametrize("seed", [5, 91, 112, 213])
def test_a_file_that_was_once_answered_by_a_raw_exception_is_refused(
    seed: int, tmp_path: Path
) -> None:
    assert attack("files", seed, tmp_path) > 0
