"""Sweeps: parameters are columns and axes, and intervals are over instances."""

from __future__ import annotations

import itertools
import json
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

import pkd
from pkd.cli import main
from pkd.cli.experiment_file import read_experiment
from pkd.experiments.grid import list_jobs, make_grid
from pkd.experiments.results import Results
from pkd.experiments.sweep import Point
from pkd.report import read_folder, write_page
from pkd.results.run import Run
from pkd.show.intervals import mean_interval

FILE = """
title = "How does regret grow with the horizon?"
agents = ["practical", { agent = "posterior", replan = "features=2,period=9" }]
models = [{ model = "two_state_chain", label = "chain", delay = 1 }]
episodes = 20
seeds = 2
[sweep]
horizon = [2, 3, 4]
stay = [0.6, 0.8]
[sweep.agents]
c1 = [0.5, 1.0]
"""


def write(folder: Path, text: str) -> Path:
    (folder / "grid.toml").write_text(text)
    return folder / "grid.toml"


def make_run(regret: float, seed: int, episodes: int = 4) -> Run:
    """Each episode loses the same."""
    values = np.full(episodes, 1.0 - regret / episodes)
    config = {"agent": {"agent": "it"}, "seed": seed}
    return Run(
        np.zeros(0), values, values, np.zeros(0, int), 1.0, {}, config, 0.0, {"pkd": "0"},
        label="it", model="m", guarantee="no guarantee",
    )  # fmt: skip


def make_results(regret: Any, sizes: Any, instances: Any, seeds: int = 2) -> Results:
    """Regrets as a function of (size, instance, seed, agent)."""
    cells, runs, points = [], [], {}
    for n in sizes:
        for i in instances:
            points[f"m n={n} instance={i}"] = Point("m", {"n": n, "instance": i})
            for agent in "ab":
                for seed in range(seeds):
                    cells.append((f"m n={n} instance={i}", agent, seed))
                    runs.append(make_run(regret(n, i, seed, agent), seed))
    return Results(cells, runs.__getitem__, points, {a: Point(a) for a in "ab"})


def test_every_combination_is_a_model_or_an_agent_that_takes_it(tmp_path: Path) -> None:
    grid, _ = read_experiment(write(tmp_path, FILE))
    assert len(grid.models) == 3 * 2
    assert {(m.build().compiled.horizon, m.point.values["stay"]) for m in grid.models} == {
        (h, stay) for h in (2, 3, 4) for stay in (0.6, 0.8)
    }
    told = [(agent.point.base, agent.point.values, agent.replan) for agent in grid.agents]
    assert told == [
        ("MVP, practical constants", {"c1": 0.5}, None),
        ("MVP, practical constants", {"c1": 1.0}, None),
        ("Posterior sampling, prior 1", {}, "features=2,period=9"),
    ]
    schedules = [job.told["replan"] for job in list_jobs(grid)][: 2 * 3]
    assert schedules == ["doubling"] * 4 + ["features=2,period=9"] * 2


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ("widht = [1, 2]", "[sweep] widht: no model takes this"),
        ("horizon = 3", "[sweep] horizon is 3; expected a list of different values"),
        ("horizon = [3, 3]", "expected a list of different values"),
        ("[sweep.agents]\nc9 = [1]", "[sweep] c9: no agent takes this"),
        ("horizon = [3, 0]", "--horizon: expected a whole number >= 1"),
        ("episodes = [10, 0]", "episodes is 0; expected a whole number >= 1"),
    ],
)
def test_a_bad_sweep_is_explained(table: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(pkd.ModelError) as caught:
        read_experiment(write(tmp_path, FILE.partition("[sweep]")[0] + "[sweep]\n" + table))
    assert said in str(caught.value)


def test_a_list_of_seeds_of_a_model_is_refused_and_in_a_sweep_makes_instances(
    tmp_path: Path,
) -> None:
    base = 'agents = ["greedy"]\nepisodes = 5\nseeds = 2\n[[models]]\nmodel = "random_mdp"\n'
    with pytest.raises(pkd.ModelError, match=r"seed = \[0, 1\] is one seed that is a list"):
        read_experiment(write(tmp_path, base + "options = { seed = [0, 1] }\n"))
    grid, _ = read_experiment(write(tmp_path, base + "[sweep]\nseed = [0, 1]\n"))
    worlds = [model.build() for model in grid.models]
    assert worlds[0].fingerprint != worlds[1].fingerprint
    assert [model.point.values for model in grid.models] == [{"instance": 0}, {"instance": 1}]


def test_a_name_of_a_sweep_sets_several_values() -> None:
    law = {
        "early": {"inter-arrival": "-1:.5,0:.5", "max-delay": 1},
        "late": {"inter-arrival": "0:.2,1:.8", "max-delay": 2},
    }
    grid = make_grid("two_state_chain --horizon 4", "greedy", 5, 1, sweep={"law": law})
    assert [model.label.rpartition(" ")[2] for model in grid.models] == ["law=early", "law=late"]
    assert grid.models[1].words[-2:] == ("--inter-arrival=0:.2,1:.8", "--max-delay=2")


def test_the_number_of_episodes_is_an_axis_of_its_own_runs() -> None:
    found = pkd.experiment("two_state_chain --horizon 3", "mvp", 5, 3, sweep={"episodes": [10, 40]})
    assert sorted(found.arrays()["episodes"].tolist()) == [10] * 3 + [40] * 3
    line = found.axis("episodes")["MVP"]
    for value, place in ((10, 0), (40, 1)):
        model = found.models[place]
        expected = mean_interval(np.array([run.regret[-1] for run in found.runs(model, "MVP")]))
        assert (line.x[place], float(line.regret.value[place])) == (value, float(expected.value))


def test_parameters_are_columns_of_tables_and_files(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    path = write(tmp_path, FILE)
    assert main(["experiment", str(path), "--folder", str(tmp_path / "out"), "--quiet"]) == 0
    results = pkd.load_results(tmp_path / "out")
    results.to_csv(tmp_path / "runs.csv")
    frame = pandas.read_csv(tmp_path / "runs.csv")
    assert set(frame["model"]) == {"chain"}
    assert frame.groupby(["horizon", "stay"]).size().tolist() == [6] * 6
    assert set(frame["replan"]) == {"doubling", "features=2,period=9"}
    assert results.parameters == {"horizon": (2, 3, 4), "stay": (0.6, 0.8), "c1": (0.5, 1.0)}
    assert "  features=2,period=9  " in results.table()
    assert results.table(columns=["agent", "stay", "regret"]).splitlines()[0].split() == [
        "agent", "stay", "regret",
    ]  # fmt: skip
    with pytest.raises(pkd.ModelError, match="there is no column"):
        results.table(columns=["regrt"])


def test_an_interval_of_a_sweep_is_over_instances_and_not_over_runs() -> None:
    """Seeds agree, instances do not: an interval over runs would be far too narrow."""
    level = {0: 1.0, 1: 2.0, 2: 6.0, 3: 3.0}
    found = make_results(lambda n, i, s, a: n * level[i] + 1e-9 * s, (1, 2), level, seeds=10)
    line = found.axis("n")["a"]
    half = stats.t.ppf(0.975, 3) * np.std([1, 2, 6, 3], ddof=1) / 2
    assert (line.units, line.what) == (4, "instances")
    assert line.regret.high - line.regret.value == pytest.approx([half, 2 * half])


def test_models_of_one_draw_are_one_unit() -> None:
    """Twelve models at each n, but only three draws: twelve would make the interval too narrow."""
    cells, points, runs = [], {}, []
    level = (1.0, 2.0, 6.0)
    for n, i, law in itertools.product((1, 2), range(3), range(4)):
        label = f"m n={n} instance={i} law={law}"
        points[label] = Point("m", {"n": n, "instance": i, "law": law})
        for agent, seed in itertools.product("ab", range(2)):
            cells.append((label, agent, seed))
            runs.append(make_run(n * level[i] + law + (agent == "b"), seed))
    found = Results(cells, runs.__getitem__, points, {a: Point(a) for a in "ab"})
    line = found.axis("n")["a"]
    half = stats.t.ppf(0.975, 2) * np.std(level, ddof=1) / np.sqrt(3)
    assert (line.units, line.what) == (3, "instances")
    assert line.regret.value.tolist() == pytest.approx([4.5, 7.5])
    assert line.regret.high - line.regret.value == pytest.approx([half, 2 * half])
    assert found.pairs("instances")["a", "b"].seeds == 3
    assert found.axis("instance")["a"].what == "settings"
    other = found.select(instance=0)
    assert (other.axis("n")["a"].units, other.axis("n")["a"].what) == (4, "settings")


def test_fewer_than_three_instances_leave_an_interval_over_seeds() -> None:
    found = make_results(lambda n, i, s, a: n + 100 * i + s, (1, 2), (0, 1), seeds=3)
    line = found.axis("n")["a"]
    half = stats.t.ppf(0.975, 2) * np.std([0, 1, 2], ddof=1) / np.sqrt(3)
    assert (line.units, line.what) == (3, "seeds")
    assert line.regret.high - line.regret.value == pytest.approx([half, half])


def test_coverage_over_instances() -> None:
    """95% of the intervals over five random instances cover the mean over all of them."""
    rng = np.random.default_rng(0)
    hits = 0
    for _ in range(400):
        effect, noise = rng.normal(size=5), rng.normal(size=(5, 4))
        found = make_results(
            lambda n, i, s, a, e=effect, w=noise: 10 + e[i] + w[i, s], (1,), range(5), seeds=4
        )
        one = found.axis("n")["a"].regret
        hits += int(one.low[0] <= 10 <= one.high[0])
    assert 0.92 < hits / 400 < 0.98


@pytest.mark.parametrize("power", [0.5, 1.0])
def test_the_slope_in_a_parameter_is_fitted_within_instances(power: float) -> None:
    found = make_results(lambda n, i, s, a: (1 + i) * n**power, (1, 2, 4, 8), range(3))
    assert found.slopes("n")["a"][:] == pytest.approx((power,) * 3)
    with pytest.raises(pkd.ModelError, match="a slope needs positive regret"):
        make_results(lambda n, i, s, a: 0.0, (1, 2), range(3)).slopes("n")
    found = make_results(lambda n, i, s, a: i * n**power, (1, 2, 4), range(4))
    assert found.slopes("n")["a"][:] == pytest.approx((power,) * 3)  # nothing is lost in the first
    with pytest.raises(pkd.ModelError, match="a slope needs positive regret"):
        make_results(lambda n, i, s, a: (i + n - 1) * i, (1, 2), range(-1, 2)).slopes("n")


def test_pairs_over_instances_have_one_number_for_each() -> None:
    found = make_results(lambda n, i, s, a: i + (a == "b") + s, (1,), range(7), seeds=2)
    pair = found.pairs("instances")["a", "b"]
    assert (pair.seeds, pair.difference) == (7, -1.0)
    assert pair.p == pytest.approx(2 / 2**7)
    assert "7 instances" in str(pair)
    assert float(found.ranks()["a"].value) == 1.0


def test_a_part_keeps_the_colours_of_the_whole() -> None:
    found = make_results(lambda n, i, s, a: 1.0, (1, 2), (0,))
    part = found.select(agents="b", n=2)
    assert part.models == ("m n=2 instance=0",)
    assert part.styles["b"] == found.styles["b"] != found.styles["a"]
    with pytest.raises(pkd.ModelError, match="there is no parameter k; expected one of n"):
        found.select(k=2)
    with pytest.raises(pkd.ModelError, match="no run is left"):
        found.select(n=7)


def test_a_figure_has_a_line_for_each_agent_and_a_panel_for_each_value(tmp_path: Path) -> None:
    found = make_results(lambda n, i, s, a: n * (1 + i + s), (1, 2, 4), range(4))
    figure = found.plot({m: lambda k: 50.0 * k for m in found.models}, x="n", at=2)
    [ax] = figure.axes
    assert [line.get_label() for line in ax.lines] == ["a", "b", "bound"]
    assert ax.lines[0].get_ydata() == pytest.approx([n * 3.0 / 2 for n in (1, 2, 4)])
    assert ax.lines[2].get_ydata().tolist() == [100.0] * 3
    assert ax.get_title() == "mean and 95% interval over 4 instances"
    assert len(found.plot(x="n", split="instance").axes) == 4
    latex = found.table("latex", x="n")
    assert latex.splitlines()[4].startswith(r"1 & 3.0 $\pm$ 2.1 & 3.0 $\pm$ 2.1 \\")


@pytest.mark.parametrize("kind", ["pdf", "ps"])
def test_a_vector_file_has_its_fonts(kind: str, tmp_path: Path) -> None:
    """Type 42 is TrueType; journals refuse type 3, which is what matplotlib writes by default."""
    found = make_results(lambda n, i, s, a: n, (1, 2), range(3))
    found.plot(x="n", size=(3.3, 2.5), path=tmp_path / f"it.{kind}")
    data = (tmp_path / f"it.{kind}").read_bytes()
    assert (b"/FontType 42" if kind == "ps" else b"/FontFile2") in data
    assert b"/Type3" not in data
    assert b"/FontType 3" not in data
    if kind == "pdf":
        assert b"/MediaBox [ 0 0 237.6 180 ]" in data  # 3.3 by 2.5 inches


def test_many_models_share_a_page_and_more_are_refused() -> None:
    found = make_results(lambda n, i, s, a: n, range(1, 9), range(3))
    figure = found.plot()
    assert len(figure.axes) == 24
    width, height = figure.get_size_inches()
    assert width <= 7.5
    assert height <= 10
    many = make_results(lambda n, i, s, a: n, range(1, 33), range(3))
    with pytest.raises(pkd.ModelError, match="96 models do not fit a page"):
        many.plot()


def test_a_page_of_many_models_shows_the_sweep_and_no_chapters(tmp_path: Path) -> None:
    text = FILE.replace("[2, 3, 4]", "[2, 3, 4, 5, 6, 7, 8]")
    path = write(tmp_path, text)
    assert main(["experiment", str(path), "--folder", str(tmp_path / "out"), "--quiet"]) == 0
    content = read_folder(tmp_path / "out")
    assert len(content.results or ()) == 14 * 3 * 2
    page = write_page(content)
    assert page.count("<svg") == 3
    assert "<h2>Regret against horizon</h2>" in page
    assert "42 lines" in page
    again, _ = read_experiment(write(tmp_path, content.file))
    assert tomllib.loads(content.file)["sweep"]["agents"] == {"c1": [0.5, 1.0]}
    keys = {
        run["key"] for run in json.loads((tmp_path / "out" / "experiment.json").read_text())["runs"]
    }
    assert {job.key for job in list_jobs(again)} == keys


def test_a_function_of_the_parameters_makes_models() -> None:
    def coin(heads: float) -> pkd.TabularMDP:
        return pkd.TabularMDP([[[1 - heads, heads]] * 2] * 2, [[0.0, 0.0], [1.0, 1.0]], 3)

    found = pkd.experiment({"coin": coin}, "greedy", 5, 1, sweep={"heads": [0.25, 0.5]})
    assert [run.optimal_value for run in found] == pytest.approx([0.5, 1.0])


def test_each_agent_of_a_grid_has_its_own_schedule() -> None:
    agents = [{"agent": "mvp", "replan": "every"}, "mvp:replan=total", pkd.MVP.practical()]
    found = pkd.experiment("two_state_chain --horizon 3", agents, 20, 1, replan="doubling")
    assert [run.config["replan"] for run in found] == ["every", "total", "doubling"]
    assert len(found[0].plans) == 20
    assert " every " in found.table()
    with pytest.raises(pkd.ModelError, match="plans by itself"):
        make_grid("two_state_chain", {"q": {"agent": "q_learning", "replan": "every"}}, 5, 1)
