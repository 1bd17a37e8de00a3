"""`pkd check` says whether exploration is needed."""

from __future__ import annotations

import pytest

from pkd.cli import check, main


def test_check_says_which_features_must_be_sought(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "riverswim"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "Exploration is needed" in out
    assert "must be sought" in out


def test_check_says_where_exploration_is_not_needed(capsys: pytest.CaptureFixture[str]) -> None:
    """Demand comes whatever is ordered."""
    assert main(["check", "inventory"]) == 0
    assert "Exploration is not needed" in capsys.readouterr().out


def test_check_leaves_out_what_takes_long(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(check, "QUICK", 1.0)
    assert main(["check", "riverswim"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "--exploration computes how often" in out
    assert "Acting decides how often" in out


def test_the_flag_prints_the_visits_of_every_feature(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(check, "QUICK", 1.0)
    assert main(["check", "riverswim", "--exploration"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert any(line.split() == ["feature", "least", "most"] for line in lines)
    assert any("must be" in line for line in lines)
