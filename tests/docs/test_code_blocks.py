"""Every Python block and every command of the pages runs; cells run when the pages are built."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from pkd.cli import main

DOCS = Path(__file__).parent.parent.parent / "docs"
PAGES = {
    str(path.relative_to(DOCS)): path.read_text(encoding="utf-8")
    for path in sorted(DOCS.rglob("*.md"))
    if "_build" not in path.parts
}
BLOCKS = {
    name: re.findall(r"^```python\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE)
    for name, text in PAGES.items()
}
COMMANDS = [
    line
    for text in PAGES.values()
    for line in re.findall(r"^\$ pkd (.*)$", text, flags=re.MULTILINE)
]


@pytest.mark.parametrize("page", [page for page, blocks in BLOCKS.items() if blocks])
def test_the_python_blocks_of_a_page_run_one_after_the_other(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    namespace = {"__name__": "page"}
    for code in BLOCKS[page]:
        exec(compile(code, page, "exec"), namespace)


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_of_a_page_succeeds(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(shlex.split(command)) == 0


def test_every_page_with_cells_is_executed() -> None:
    assert [
        page
        for page, text in PAGES.items()
        if "{code-cell}" in text and not text.startswith("---\nfile_format: mystnb")
    ] == []
