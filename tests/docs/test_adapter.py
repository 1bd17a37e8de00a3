"""The adapter that the contributing page gives to copy works as it stands."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

ADAPTER = Path(__file__).parent.parent.parent / "docs" / "project" / "adapter"


def test_the_tests_of_the_adapter_pass() -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-c", "/dev/null", "--rootdir", ".", "."]
    done = subprocess.run(
        [*command, "-p", "no:cacheprovider"], cwd=ADAPTER, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout


def test_every_entry_point_of_the_adapter_names_a_file_and_an_object() -> None:
    project = tomllib.loads((ADAPTER / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    for group in project["entry-points"].values():
        for target in group.values():
            module, _, name = target.partition(":")
            code = (ADAPTER / f"{module}.py").read_text(encoding="utf-8")
            assert not name or f"\ndef {name}(" in code
