"""Experiments in words: agents and models by name, and one error for everything that is wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import pkd
from pkd.cli import main
from pkd.cli.experiment_file import list_files, read_experiment
from pkd.experiments import rivals
from pkd.experiments.grid import AGENTS, list_jobs, make_agent, make_grid, split_agents
from pkd.problem import as_model, names, registered

HERE = Path(__file__).parent
CHAIN = "two_state_chain --horizon 3"


@pytest.fixture(autouse=True)
def _agents(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(HERE))


def write(folder: Path, text: str) -> Path:
    path = folder / "grid.toml"
    path.write_text(text)
    return path


def test_an_agent_is_a_rule_with_constants_or_a_class_with_options() -> None:
    assert make_agent("mvp:c1=1,c2=2") == pkd.MVP(c1=1, c2=2)
    assert make_agent("MVP:c1=1,c2=2") == make_agent("mvp:c1=1,c2=2")
    assert make_agent("UCRL2") == make_agent("ucrl2")
    assert make_agent("practical:monotone=true") == pkd.MVP(0.5, 0.25, 1.0, True)
    agent: Any = make_agent("agents_for_tests:QLearning:rate=0.5,show=false")
    assert (agent.rate, agent.show) == (0.5, False)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("mvpp", "no agent is called 'mvpp'; did you mean 'mvp'"),
        ("mvp:c9=1", "mvp has no constant 'c9'; expected c1, c2"),
        ("agents_for_tests:Nobody", "cannot be imported"),
        ("agents_for_tests:QLearning:speed=1", "its options are rate, show"),
        ("os:getcwd", "expected a pkd.Agent or a rule of optimism"),
    ],
)
def test_bad_words_of_an_agent_are_explained(words: str, said: str) -> None:
    with pytest.raises(pkd.ModelError, match=said):
        make_agent(words)


def test_an_option_may_be_a_rule_with_constants(tmp_path: Path) -> None:
    table = '{ agent = "per_state", optimism = { rule = "mvp", c1 = 1.0 }, delta = 0.1 }'
    text = f'agents = [{table}]\nmodels = "{CHAIN}"\nepisodes = 2\nseeds = 1\n'
    agent: Any = read_experiment(write(tmp_path, text))[0].agents[0].build()
    assert (agent.optimism, agent.delta) == (pkd.MVP(c1=1.0), 0.1)


def test_a_comma_before_an_option_belongs_to_its_agent() -> None:
    words = "mvp:c1=1,c2=1,greedy,m:Q:rate=2,posterior"
    assert split_agents(words) == ["mvp:c1=1,c2=1", "greedy", "m:Q:rate=2", "posterior"]


def test_one_error_names_every_finding() -> None:
    with pytest.raises(pkd.ModelError) as caught:
        make_grid(["nowhere", f"{CHAIN} --wrong 1"], ["mvpp", 3], 0, -1, delta=2, replan="never")
    starts = ("episodes is 0", "delta is 2", "replan is", "seeds is -1")
    starts = (*starts, "model 1: no model", "model 2: unrec", "agent 1: no agent", "agent 2: it")
    assert [f.startswith(s) for f, s in zip(caught.value.findings, starts, strict=True)] == [
        True
    ] * 8


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("agents_for_tests:Forgetful:speed=1", "agents_for_tests:Forgetful:speed=2"),
        tuple(rivals.PerState(optimism=pkd.MVP(c)) for c in (1.0, 1.0 + 1e-9)),
    ],
    ids=["words", "objects"],
)
def test_agents_with_one_label_and_other_options_have_files_of_their_own(
    one: Any, other: Any
) -> None:
    keys = [
        [job.key for job in list_jobs(make_grid(CHAIN, {"mine": agent}, 5, 1))]
        for agent in (one, other, one)
    ]
    assert keys[0] == keys[2] != keys[1]


def test_options_make_different_labels() -> None:
    models = ["two_state_chain", "two_state_chain --horizon 4"]
    grid = make_grid(
        models, ["agents_for_tests:QLearning", "agents_for_tests:QLearning:rate=2"], 5, 1
    )
    assert [model.label for model in grid.models] == models
    assert [agent.label for agent in grid.agents] == [
        "QLearning (agents_for_tests:QLearning)",
        "QLearning (agents_for_tests:QLearning:rate=2)",
    ]


def test_two_models_with_one_label_are_refused() -> None:
    problem = pkd.TabularMDP([[[1.0]]], [[1.0]], horizon=2)
    with pytest.raises(pkd.ModelError, match="2 models are called"):
        make_grid([problem, problem], "greedy", 5, 1)


def test_a_file_is_read_as_its_words(tmp_path: Path) -> None:
    text = """
    episodes = 7
    seeds = [4, 2]
    agents = ["greedy", { agent = "mvp", c1 = 1.0, label = "mine" }]
    [[models]]
    model = "two_state_chain"
    horizon = 3
    [[models]]
    model = "inventory"
    label = "shop"
    options = { lead_time = 2 }
    [outputs]
    folder = "there"
    """
    grid, outputs = read_experiment(write(tmp_path, text))
    assert (grid.episodes, grid.seeds, outputs.folder) == (7, (4, 2), "there")
    assert [model.label for model in grid.models] == ["two_state_chain --horizon 3", "shop"]
    assert grid.models[1].words == ("inventory", "--option=lead_time=2")
    assert [agent.label for agent in grid.agents] == ["Greedy (no bonus)", "mine"]
    assert grid.agents[1].words == "mvp:c1=1.0"


def test_a_bad_file_gets_one_error_with_every_finding(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = """
    episods = 7
    seeds = 0
    agents = ["mvpp", 3]
    models = [{ horizon = 3 }, "two_state_chain --horizon x"]
    outputs = { folde = "x" }
    """
    assert main(["experiment", str(write(tmp_path, text))]) == 2
    said = capsys.readouterr().err
    for finding in (
        "8 findings",
        "episodes is missing",
        "episods: expected one of",
        "outputs: expected a table with folder",
        "model 1: a table of a model needs model = NAME",
        "agent 2: expected words or a table, found 3",
        "seeds is 0",
        "--horizon: expected a whole number",
        "no agent is called 'mvpp'",
    ):
        assert finding in said


def test_a_file_has_a_title_and_labels_for_words(tmp_path: Path) -> None:
    text = f'title = "Why?"\nmodels = [{{ label = "a", words = "{CHAIN}" }}]\nagents = ["greedy"]\n'
    grid, _ = read_experiment(write(tmp_path, text + "episodes = 5\nseeds = 2\n"))
    assert (grid.title, grid.models[0].label) == ("Why?", "a")
    assert grid.models[0].words == tuple(CHAIN.split())
    wrong = text.replace('"Why?"', "3") + "episodes = 5\nseeds = 2\n"
    with pytest.raises(pkd.ModelError, match="title: expected a text, found 3"):
        read_experiment(write(tmp_path, wrong))


def test_every_registered_model_has_an_experiment_file() -> None:
    files = list_files()
    assert set(names()) <= set(files)
    for path in files.values():
        grid, _ = read_experiment(path)
        assert len(grid) >= 10


def test_the_study_of_rivals_has_every_registered_agent() -> None:
    words = [spec.words for spec in read_experiment(list_files()["study_rivals"])[0].agents]
    assert {word.partition(":")[0] for word in words} >= set(registered(AGENTS))


def test_the_command_runs_a_file_and_says_what_is_done(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    agents = '["greedy", "agents_for_tests:Random"]'
    text = f'models = ["{CHAIN}"]\nagents = {agents}\nepisodes = 5\nseeds = 2\n'
    file = str(write(tmp_path, text))
    assert main(["experiment", file, "--status"]) == 0
    assert capsys.readouterr().out.splitlines()[1].split()[-2:] == ["0", "2"]
    words = ["experiment", file, "--csv", "runs.csv", "--plot", "regret.svg", "--form", "markdown"]
    assert main(words) == 0
    out = capsys.readouterr().out
    assert out.count("| exact ") == out.count("| estimated ") == 1
    assert "5 episodes, means over 2 seeds, Student's 95% intervals; 4 runs in out/grid" in out
    assert Path("runs.csv").read_text().count("\n") == 5
    assert "<svg" in Path("regret.svg").read_text()
    assert main(["experiment", file, "--status"]) == 0
    assert capsys.readouterr().out.splitlines()[1].split()[-2:] == ["2", "0"]


LATE = """
agents = ["greedy"]
episodes = 5
seeds = 2
models = [
    {{ model = "two_state_chain", lags = "0:.5,1:.5", delay-law = "unknown", {flag} }},
    "two_state_chain --inter-arrival 0:.5,1:.5 --max-delay 1",
]
"""


@pytest.mark.parametrize("workers", ["1", "2"])
def test_what_is_said_about_a_model_is_said_once(
    workers: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(tmp_path, LATE.format(flag="shared-delay = true"))
    folder = str(tmp_path / "out")
    assert main(["experiment", str(path), "--folder", folder, "--workers", workers]) == 0
    lines = capsys.readouterr().err.splitlines()
    assert [": delay: " in line or ": warning: " in line for line in lines] == [True] * 4
    assert len(set(lines)) == 4
    assert all(line.startswith("pkd: two_state_chain --") for line in lines)


def test_false_in_a_file_reaches_the_model(tmp_path: Path) -> None:
    told = read_experiment(write(tmp_path, LATE.format(flag="shared-delay = false")))[0].models[0]
    assert "--no-shared-delay" in told.words
    shared = read_experiment(write(tmp_path, LATE.format(flag="shared-delay = true")))[0].models[0]
    features = [len(one.build().compiled.features) for one in (told, shared)]
    assert features[0] > features[1]


def test_false_for_a_key_that_nothing_knows_is_a_finding(tmp_path: Path) -> None:
    with pytest.raises(pkd.ModelError, match="unrecognized arguments: --no-shared-dely"):
        read_experiment(write(tmp_path, LATE.format(flag="shared-dely = false")))


def test_compare_goes_on_from_its_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "log"
    monkeypatch.setenv("PKD_TEST_LOG", str(log))
    folder = str(tmp_path / "f")
    words = ["compare", *CHAIN.split(), "--rules", "greedy,agents_for_tests:Random"]
    words += ["--episodes", "5", "--save", folder, "--seeds"]
    assert [main([*words, seeds]) for seeds in ("1", "3", "3")] == [0, 0, 0]
    assert log.read_text().count("\n") == 3
    assert "estimated" in capsys.readouterr().out


def test_an_unknown_file_names_the_installed_ones(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["experiment", "nothing.toml"]) == 2
    assert "there is no experiment file nothing.toml; expected a path, or one of" in (
        capsys.readouterr().err
    )


def test_the_table_is_written_in_three_forms() -> None:
    found = pkd.experiment({"a_b": CHAIN}, {"x_1": "greedy", "y": "posterior"}, 20, 3)
    assert found.table().splitlines()[1].startswith("x_1")
    assert found.table("markdown").splitlines()[1].startswith("| ----")
    latex = found.table("latex")
    assert "\\toprule" in latex
    assert "x\\_1 &" in latex
    with pytest.raises(pkd.ModelError, match="expected one of plain, markdown, latex"):
        found.table("html")


def test_the_figure_names_bands_and_estimates() -> None:
    agents = {"q": "agents_for_tests:QLearning:show=false", "g": "posterior"}
    figure = pkd.compare(CHAIN, agents, 30, 3).plot()
    left, right = figure.axes
    labels = [text.get_text() for text in right.get_legend().get_texts()]
    assert labels == ["q, estimated, no guarantee", "g, no guarantee", "exact optimum"]
    assert left.get_legend() is None
    # The panel that announces bands is the one that has them.
    assert "bands: its 95% intervals" in left.get_title()
    assert len(left.collections) == 2
    assert "band" not in right.get_title()
    assert len(right.collections) == 0


def test_the_figure_shows_certified_bands_and_the_bound() -> None:
    bound = pkd.bounds.ModelBound.of(as_model("two_state_chain"))
    found = pkd.compare({"chain": "two_state_chain"}, ["certified", "greedy"], 50, seeds=2)
    left, right = found.plot({"chain": bound}).axes
    assert left.lines[-1].get_ydata()[-1] == float(bound(50))
    legend = [text.get_text() for text in right.get_legend().get_texts()]
    assert [label for label in legend if "band of the optimum" in label] == [
        "Certified: band of the optimum"
    ]
    assert any(label.startswith("explicit bound") for label in legend)
    (band,) = right.collections
    lowest = min(run.lower_values.min() for run in found.runs("chain", "Certified"))
    assert band.get_paths()[0].vertices[:, 1].min() == pytest.approx(lowest)
