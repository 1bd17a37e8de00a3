"""The code in README.md runs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

README = (Path(__file__).parent.parent.parent / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("code", re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL))
def test_a_code_block_of_the_readme_runs(code: str, capsys: pytest.CaptureFixture[str]) -> None:
    exec(compile(code, "README.md", "exec"), {})
    assert "<Run: 2000 episodes with Certified;" in capsys.readouterr().out


@pytest.mark.parametrize("target", re.findall(r"\]\(([^)#:]+)\)", README))
def test_a_link_of_the_readme_leads_to_a_file(target: str) -> None:
    assert (Path(__file__).parent.parent.parent / target).exists()
