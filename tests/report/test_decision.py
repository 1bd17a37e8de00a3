"""A page for those who decide: what four commands found, in one file."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path

import pytest

from pkd import ModelError
from pkd.cli import main
from pkd.report import make_findings, read_findings, write_decision


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The findings of fit-delay, latency, certify and plan."""
    base = tmp_path_factory.mktemp("findings")
    rng, delay = random.Random(0), 0
    lines = ["step,sent,shown"]
    for t in range(400):
        delay = max(delay - 1, rng.choice([0, 0, 1, 2]))
        lines.append(f"{t},{t},{t + delay}")
    (base / "arrivals.csv").write_text("\n".join(lines))
    tosses = "\n".join(f"coin,{rng.choice(['heads', 'tails'])}" for _ in range(300))
    (base / "tosses.csv").write_text(f"z,x\n{tosses}\n")
    commands = {
        "delay": f"fit-delay {base}/arrivals.csv",
        "price": "latency two_state_chain --up-to 2 --sensor-price .7 --quiet",
        "proof": f"certify gambler --log {base}/tosses.csv",
        "policy": "plan two_state_chain --delay 1",
    }
    for name, words in commands.items():
        assert main([*words.split(), "--findings", f"{base}/{name}.json"]) == 0
    files = [f"{base}/{name}.json" for name in commands]
    assert main(["report", *files, "--title", "Buy it?", "--out", f"{base}/page.html"]) == 0
    return base


def test_the_answers_come_first_and_what_to_measure_next(folder: Path) -> None:
    text = (folder / "page.html").read_text(encoding="utf-8")
    top = re.sub(r"<[^>]*>", " ", text[text.index("<h1>") : text.index('<img class="drawn')])
    assert "Buy it?" in top
    assert re.search(r"A state comes 0\.\d+ ticks late on average, and at most 2\.", top)
    # The optimum of the chain is 10, then 9.1, then 8.46: 1.54 - 2 * 0.7 is left.
    assert "At 0.7 per tick a faster sensor pays down to a delay of 0: net gain 0.14." in top
    assert re.search(r"With 95% confidence the best possible policy earns between 0\.\d+ and", top)
    assert "The best policy earns 9.1 on average in an episode of 10 steps." in top
    assert top.index("What to measure next") < top.index("In the log ")
    assert "say it (--max-delay)" in top


def test_the_page_asks_for_nothing_and_runs_nothing(folder: Path) -> None:
    text = (folder / "page.html").read_text(encoding="utf-8")
    assert "<script" not in text
    assert set(re.findall(r'src="([^",]*),', text)) == {"data:image/svg+xml;base64"}
    assert text.count("<img ") == 3
    assert "default-src &#39;none&#39;" in text or "default-src 'none'" in text


def test_words_are_explained_only_where_they_occur(folder: Path) -> None:
    text = (folder / "page.html").read_text(encoding="utf-8")
    assert "<strong>confidence</strong>" in text
    assert "<strong>regret</strong>" not in text


def test_text_of_a_file_is_text_and_not_markup() -> None:
    found = make_findings("<b>late</b>", ["<script>alert(1)</script>"], [("", ["<i>"], [["<u>"]])])
    page = write_decision([found])
    assert all(mark not in page for mark in ("<b>late", "<script", "<i>", "<u>"))


def test_long_tables_are_cut_and_say_so() -> None:
    found = make_findings("t", ["s"], [("All.", ["n", "x"], [[i, 1 / 3] for i in range(100)])])
    assert found.tables[0].caption == "All. The first 40 of 100 lines."
    assert found.tables[0].rows[39] == ["39", "0.3333"]


def test_findings_are_read_back(tmp_path: Path) -> None:
    found = make_findings("t", ["s"], [("c", ["n"], [[1]])], advice=["measure"], command="pkd x")
    found.write(tmp_path / "f.json")
    assert write_decision(read_findings([tmp_path / "f.json"])) == write_decision([found])


@pytest.mark.parametrize(
    "told",
    [
        "[]",
        "{",
        '{"kind": "pkd policy"}',
        '{"kind": "pkd findings", "title": "t", "said": [], "tables": []}',
        '{"kind": "pkd findings", "title": "t", "said": [1], "tables": []}',
        '{"kind": "pkd findings", "title": "t", "said": ["s"], "tables": [{"headers": []}]}',
    ],
)
def test_another_file_is_refused(told: str, tmp_path: Path) -> None:
    (tmp_path / "f.json").write_text(told)
    with pytest.raises(ModelError, match=r"f\.json is no file that --findings wrote"):
        read_findings([tmp_path / "f.json"])


def test_findings_and_runs_are_not_mixed(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", f"{folder}/price.json", "run.npz"]) == 2
    assert "run.npz" in capsys.readouterr().err
    assert json.loads((folder / "price.json").read_text())["kind"] == "pkd findings"
