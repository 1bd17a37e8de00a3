"""A world that is not the model of the learner: what is played, and what regret is against."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pkd
from pkd.cli import main
from pkd.cli.experiment_file import read_experiment
from pkd.experiments.grid import list_jobs
from pkd.report import read_folder

HEADS = {"left": 0.2, "right": 0.9}


class Coins(pkd.PartiallyKnownMDP):
    """Toss the left or the right coin; heads pay 1. `shared`: a learner believes they are alike."""

    horizon = 1

    def __init__(self, shared: bool) -> None:
        self.shared = shared

    def start(self) -> Any:
        return 0, "choice"

    def actions(self, x: Any, y: Any) -> Any:
        return ["left", "right"] if y == "choice" else pkd.END

    def step(self, x: Any, y: Any, a: Any) -> Any:
        return [(1.0, "tossed", "coin" if self.shared else a)]

    def outcomes(self, z: Any) -> Any:
        return (0, 1)

    def reward(self, x: Any, y: Any, a: Any) -> float:
        return 0.0

    def final(self, x: Any, y: Any) -> float:
        return float(x)


def make_law(z: Any) -> dict[int, float]:
    p = HEADS.get(z, 0.5)
    return {0: 1 - p, 1: p}


APART = {"model": (Coins(shared=True), make_law), "world": (Coins(shared=False), make_law)}


def test_a_learner_of_a_wrong_model_plays_in_the_true_world() -> None:
    """Alike coins leave nothing to choose: it tosses the left one and loses .7 each time."""
    found = pkd.experiment({"coins": APART}, ["certified", "posterior", "greedy"], 30, 2)
    for run in found:
        assert run.optimal_value == pytest.approx(0.9)
        assert run.regret == pytest.approx(0.7 * np.arange(1, 31))
        assert run.regret_is == "exact"
        assert run.config["model_optimum"] == pytest.approx(0.2)
    assert found.regrets() == pytest.approx(21.0)
    assert found.regrets(against="model") == pytest.approx(0.0)
    assert found.regrets(np.array([10, 20]), against="model") == pytest.approx(0.0)


def test_the_returns_are_those_of_the_world() -> None:
    run = pkd.experiment({"coins": APART}, "greedy", 500, 1)[0]
    assert abs(run.returns.mean() - 0.2) < 4 * 0.4 / np.sqrt(500)


def test_where_model_and_world_agree_the_regret_is_that_of_a_run() -> None:
    model = Coins(shared=False), make_law
    agents = ["practical", "q_learning"]
    both = pkd.experiment({"coins": {"model": model, "world": model}}, agents, 50, 2)
    plain = pkd.experiment({"coins": model}, agents, 50, 2)
    for agent in both.agents:
        assert both.runs("coins", agent)[0].regret[-1] < 25
    q = both.agents[1]
    assert both.curves("coins", q).tolist() == plain.curves("coins", q).tolist()


def test_a_file_names_a_world_and_a_folder_knows_it(tmp_path: Path) -> None:
    text = """
    agents = ["greedy"]
    episodes = 20
    seeds = 2
    [[models]]
    model = "two_state_chain"
    world = "two_state_chain --option stay=0.2"
    horizon = 4
    [sweep]
    horizon = [3, 4]
    """
    (tmp_path / "grid.toml").write_text(text)
    grid, _ = read_experiment(tmp_path / "grid.toml")
    assert [one.build().compiled.horizon for one in grid.models] == [3, 4]
    folder = str(tmp_path / "out")
    words = ["experiment", str(tmp_path / "grid.toml"), "--folder", folder, "--quiet"]
    assert main(words) == 0
    assert main(words) == 0
    found = pkd.load_results(folder)
    assert found[0].config["model_optimum"] <= found[0].optimal_value
    (tmp_path / "again.toml").write_text(read_folder(folder).file)
    again, _ = read_experiment(tmp_path / "again.toml")
    assert [job.key for job in list_jobs(again)] == [job.key for job in list_jobs(grid)]


def test_a_table_without_a_world_is_refused() -> None:
    with pytest.raises(pkd.ModelError, match="'model' and 'world'"):
        pkd.experiment({"coins": {"world": APART["world"]}}, "greedy", 5, 1)
