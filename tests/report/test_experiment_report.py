"""`pkd report FOLDER`: the experiment of a folder as one page, and its model built again."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

import attrs
import pytest

import pkd
from pkd.cli import main
from pkd.cli.experiment_file import read_experiment
from pkd.experiments.grid import list_jobs
from pkd.report import read_folder, write_page
from pkd.report.content import Chapter, Group
from pkd.report.figures import find_transitions
from pkd.report.structure import describe_model

FILE = """
title = "Is it worth <waiting>?"
models = ["two_state_chain --horizon 3 --delay 1", { words = "tank", label = "a tank" }]
agents = ["certified", "greedy", { agent = "q_learning", label = "Q" }]
episodes = 30
seeds = [4, 7]
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    base = tmp_path_factory.mktemp("grid")
    (base / "grid.toml").write_text(FILE)
    words = ["experiment", str(base / "grid.toml"), "--folder", str(base / "out"), "--quiet"]
    assert main(words) == 0
    return base / "out"


@pytest.fixture(scope="module")
def text(folder: Path) -> str:
    return write_page(read_folder(folder))


def test_the_question_is_the_heading(text: str) -> None:
    assert "<h1>Is it worth &lt;waiting&gt;?</h1>" in text


def test_there_is_one_chapter_and_one_figure_of_regret_for_each_model(text: str) -> None:
    assert re.findall(r"<h2>(.*?)</h2>", text) == [
        "two_state_chain --horizon 3 --delay 1",
        "a tank",
        "Words",
        "How to run it again",
    ]
    assert text.count("Cumulative regret ends at") == 2


def test_every_line_has_the_mean_of_the_seeds_and_a_guarantee(folder: Path, text: str) -> None:
    results = pkd.load_results(folder)
    for agent, guarantee in (("Certified", "certified"), ("Q", "no guarantee")):
        for model in results.models:
            mean = sum(float(run.regret[-1]) for run in results.runs(model, agent)) / 2
            cells = [agent, guarantee, "[a-z]*", re.escape(f"{mean:.4g}")]
            assert re.search(r"</td>\s*<td[^>]*>".join(cells), text)


def test_agents_are_ranked_over_the_models(folder: Path, text: str) -> None:
    for name, rank in pkd.load_results(folder).ranks().items():
        cells = [re.escape(name), "[a-z ]+", f"{float(rank.value):.3g}"]
        assert re.search(r"</td>\s*<td[^>]*>".join(cells), text)
    assert "No agent&#39;s mean rank is told from the least, that of" in text  # with two seeds
    assert "least regret has" not in text


def test_the_sizes_of_the_model_are_shown() -> None:
    """Two states with two actions each, named right in all three steps; y is not used."""
    shown = describe_model(chapter("two_state_chain --horizon 3", 3.0), 1, trust=False)
    assert shown.sizes is not None
    assert {name.partition(":")[0]: size for name, size in shown.sizes.rows} == {
        "|X|": "2",
        "|Y|": "1",
        "|Z|": "4",
        "states (x, y)": "2",
        "most outcomes of a feature": "2",
        "horizon": "3",
    }


def test_the_page_says_whether_exploration_is_needed(text: str) -> None:
    assert "Exploration is needed: 4 of 4 unknown features must be sought" in text
    optimum = pkd.plan("admission").value  # arrivals come whatever is done
    shown = describe_model(chapter("admission", optimum), 1, trust=False)
    assert "Exploration is not needed" in shown.exploration


def test_the_optimal_policy_can_be_looked_at(text: str) -> None:
    value = pkd.plan("tank").value
    assert f"The optimal policy, value {value:.7g}" in text


def test_the_file_on_the_page_makes_the_same_runs(folder: Path, tmp_path: Path) -> None:
    written = read_folder(folder).file
    assert tomllib.loads(written)["seeds"] == [4, 7]
    (tmp_path / "again.toml").write_text(written)
    grid, _ = read_experiment(tmp_path / "again.toml")
    assert grid.title == "Is it worth <waiting>?"
    keys = {run["key"] for run in json.loads((folder / "experiment.json").read_text())["runs"]}
    assert {job.key for job in list_jobs(grid)} == keys


def test_an_unfinished_experiment_says_what_is_missing(folder: Path, tmp_path: Path) -> None:
    copy = tmp_path / "part"
    (copy / "runs").mkdir(parents=True)
    (copy / "experiment.json").write_text((folder / "experiment.json").read_text())
    for path in sorted((folder / "runs").iterdir())[:5]:
        (copy / "runs" / path.name).write_bytes(path.read_bytes())
    assert "7 runs of the grid are not there yet." in write_page(read_folder(copy))


def chapter(words: str, optimum: float) -> Chapter:
    run = pkd.experiment("two_state_chain --horizon 2", "greedy", 3, 1)[0]
    run = attrs.evolve(run, optimal_value=optimum)
    return Chapter("it", tuple(words.split()), [Group("greedy", [run], [""])])


@pytest.mark.parametrize(
    ("words", "trust", "why"),
    [
        ("", False, "it was given as an object"),
        ("nobody", False, "nobody"),
        ("os:getcwd", False, "os:getcwd is code that the files name; --trust imports it"),
        ("tank", True, "its words make a model with the optimum"),
    ],
)
def test_a_model_that_cannot_be_built_again_is_explained(words: str, trust: bool, why: str) -> None:
    assert why in describe_model(chapter(words, -1.0), 1, trust=trust).why


def test_a_transition_graph_has_the_moves_with_positive_probability() -> None:
    rows = [[[0.5, 0.5, 0.0]], [[0.0, 0.0, 1.0]], [[0.0, 0.0, 1.0]]]
    walk = pkd.TabularMDP(rows, [[0.0]] * 3, horizon=2)
    graph = find_transitions(walk.model(), walk.law())
    assert graph is not None
    assert sorted((a[0], b[0]) for a, b in graph.edges) == [(0, 0), (0, 1), (1, 2), (2, 2)]
    assert all(unknown for *_, unknown in graph.edges(data="unknown"))
    assert find_transitions(walk.model(), walk.law(), most=2) is None


def test_a_folder_that_is_none_and_a_folder_among_files_are_refused(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["report", str(tmp_path)]) == 2
    assert "is not the folder of an experiment" in capsys.readouterr().err
    assert main(["report", str(folder), "run.npz"]) == 2
    assert "expected one folder, or files" in capsys.readouterr().err


def test_the_band_of_the_certified_rule_is_in_the_page(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list[list[str]] = []
    monkeypatch.setattr(
        "pkd.report.figures.plot_certified", lambda agents, *rest: drawn.append([*agents])
    )
    page = write_page(read_folder(folder))
    assert drawn == [["Certified", "Greedy (no bonus)", "Q"]] * 2
    assert page.count("its band is where the certified rule proves the optimum to be") == 2
