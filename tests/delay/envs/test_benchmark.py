"""The registered late environments, and the exact numbers that agents are measured by."""

import subprocess
import sys

import attrs
import numpy as np
import pytest

import pkd
import pkd_delay
from pkd.cli import main
from pkd_delay.envs.benchmark import compute_scores, normalised_score, read_scores
from pkd_delay.envs.drive import play

pytest.importorskip("gymnasium")
import gymnasium as gym

from pkd_delay.envs import TASKS
from pkd_delay.envs.w_maze import MAZE, WMaze
from tests.delay.envs.test_late_env_values import assert_earns, returns

SMALL = [
    f"pkd/Late{name}-v0"
    for name in (
        "TwoState-d2", "TwoState-random", "RiverSwim-d3", "FrozenLake-d1", "Autoscaler-d1",
        "WMaze-a0", "WMaze-a3",
    )
]  # fmt: skip


@pytest.mark.parametrize("name", TASKS)
def test_an_id_makes_a_late_environment(name):
    env = gym.make(name)
    observation, _ = env.reset(seed=0)
    assert observation in env.observation_space
    assert env.get_wrapper_attr("late").horizon == read_scores()[name].horizon


MAKE = "gymnasium.make('pkd/LateTwoState-d1-v0').reset()"


@pytest.mark.parametrize(
    "code",
    [
        f"import gymnasium, pkd_delay; {MAKE}",
        f"import pkd_delay, gymnasium; {MAKE}",
        f"import pkd_delay.envs, gymnasium; {MAKE}",
        "import gymnasium; gymnasium.make('pkd_delay:pkd/LateTwoState-d1-v0').reset()",
        "import pkd_delay, gymnasium; gymnasium.make('pkd_delay:pkd/LateTaxi-d1-v0').reset()",
        "import sys, pkd_delay; assert 'gymnasium' not in sys.modules",
    ],
)
def test_a_fresh_process_finds_the_ids_and_needs_no_gymnasium_before(code):
    subprocess.run([sys.executable, "-c", code], check=True)


def test_an_id_can_be_made_again_from_its_spec():
    env = gym.make("pkd/LateFrozenLake-random-v0")
    again = gym.make(env.spec)
    assert again.observation_space == env.observation_space


def test_the_table_has_every_id():
    assert list(read_scores()) == list(TASKS)


@pytest.mark.parametrize("name", SMALL)
def test_the_stored_numbers_are_computed_anew(name):
    stored, found = read_scores()[name], compute_scores(name)
    for field in ("horizon", "optimal", "ignoring", "random"):
        assert getattr(found, field) == pytest.approx(getattr(stored, field), rel=1e-9)


def test_the_two_state_chain_has_its_closed_form():
    """facts.md: V = sum over t < 10 of (1 + .8^min(t, d)) / 2; a random name is right half the
    time.
    """
    for d in range(5):
        scores = read_scores()[f"pkd/LateTwoState-d{d}-v0"]
        assert scores.optimal == pytest.approx(sum((1 + 0.8 ** min(t, d)) / 2 for t in range(10)))
        assert scores.random == pytest.approx(5.0)


def test_published_numbers_are_in_the_table():
    """facts.md: FrozenLake over 100 steps, RiverSwim with delays 0 to 3."""
    scores = read_scores()
    assert scores["pkd/LateFrozenLake-d0-v0"].optimal == pytest.approx(0.744190287829, abs=1e-11)
    swim = [scores[f"pkd/LateRiverSwim-d{d}-v0"].optimal for d in range(4)]
    assert swim == pytest.approx([3.3972639592, 3.3968921124, 3.3967253173, 3.3966522172], abs=1e-9)


def test_no_stored_policy_beats_the_optimum():
    for scores in read_scores().values():
        assert max(scores.ignoring, scores.random) <= scores.optimal + 1e-9
        assert scores.random < scores.optimal


def test_the_optimum_falls_with_a_constant_delay():
    scores = read_scores()
    for task in TASKS.values():
        d = task.lateness
        longer = f"pkd/Late{task.base.name}-{d[0]}{int(d[1:]) + 1}-v0" if d[1:].isdigit() else None
        if longer in scores:
            assert scores[longer].optimal <= scores[task.id].optimal + 1e-9


def shortest_ways():
    """Steps from every cell to the nearest goal, by a search of its own."""
    cells = {(i, j) for i, line in enumerate(MAZE) for j, c in enumerate(line) if c != "#"}
    reach = {cell: 0 for cell in cells if MAZE[cell[0]][cell[1]] == "G"}
    border = list(reach)
    for i, j in border:
        for cell in ((i + 1, j), (i - 1, j), (i, j + 1), (i, j - 1)):
            if cell in cells and cell not in reach:
                reach[cell] = reach[i, j] + 1
                border.append(cell)
    return reach


def test_the_w_maze_without_delay_is_a_shortest_way():
    ways = shortest_ways()
    exact = np.mean([12 - ways[row, 0] for row in range(7)])  # -1 a step, and 11 for the last
    assert read_scores()["pkd/LateWMaze-a0-v0"].optimal == pytest.approx(exact)


def test_the_late_w_maze_is_played_at_its_optimum():
    """The agent knows the commands that come, so it knows where its own will be executed."""
    env = gym.make("pkd/LateWMaze-a3-v0").get_wrapper_attr("late")
    maze, ways = WMaze(), shortest_ways()

    def look_ahead(state, commands):
        for command in commands:
            ((_, state, _, over),) = maze.P[state][command]
            if over:
                return None
        return state

    def distance(move):
        return ways[divmod(move[1], 11)]

    def act(observation):
        here = look_ahead(env.state_of(observation).state[0], env.commands_of(observation)[1])
        moves = {a: maze.P[here][a][0] for a in range(4)} if here is not None else {0: None}
        return min(moves, key=lambda a: distance(moves[a]) if moves[a] else 0)

    assert_earns(returns(env, act, 400), read_scores()["pkd/LateWMaze-a3-v0"].optimal)


@pytest.mark.parametrize("d", [1, 2])
def test_the_late_w_maze_is_planned_at_its_optimum(d):
    env = gym.make(f"pkd/LateWMaze-a{d}-v0").get_wrapper_attr("late")
    exact = read_scores()[f"pkd/LateWMaze-a{d}-v0"].optimal
    assert pkd_delay.plan(env.problem()).value == pytest.approx(exact, rel=1e-9)


def test_ignoring_late_actions_earns_what_the_table_says():
    env = gym.make("pkd/LateWMaze-a2-v0").get_wrapper_attr("late")
    plan = pkd.plan(pkd.TabularMDP.from_gymnasium(WMaze(), 300))

    def act(observation):
        h, (state, _), _, _ = env.state_of(observation)
        return plan.action(h, state, None)

    assert_earns(returns(env, act, 300), read_scores()["pkd/LateWMaze-a2-v0"].ignoring)


def test_a_score_is_zero_at_random_and_one_at_the_optimum():
    for name, scores in read_scores().items():
        assert normalised_score(name, scores.random) == pytest.approx(0.0, abs=1e-12)
        assert normalised_score(name, scores.optimal) == pytest.approx(1.0)


def test_an_unknown_id_is_named_with_the_nearest():
    with pytest.raises(pkd.ModelError, match="did you mean 'pkd/LateTwoState-d1-v0'"):
        normalised_score("pkd/LateTwoStates-d1-v0", 1.0)


def test_the_command_shows_and_recomputes(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["benchmark"]) == 0
    assert "pkd/LateTaxi-d1-v0" in capsys.readouterr().out
    assert main(["benchmark", "pkd/LateTwoState-d1-v0", "--recompute", "--csv", "table.csv"]) == 0
    _, line = (tmp_path / "table.csv").read_text().splitlines()
    assert line.startswith("pkd/LateTwoState-d1-v0,10,9.1")
    assert main(["benchmark", "pkd/LateTwoStat-d1-v0"]) == 2
    assert "did you mean" in capsys.readouterr().err


def test_a_number_that_differs_is_told(monkeypatch, capsys):
    name = "pkd/LateTwoState-d1-v0"
    other = {name: attrs.evolve(read_scores()[name], optimal=9.0)}
    monkeypatch.setattr("pkd_delay.envs.benchmark.read_scores", lambda: other)
    assert main(["benchmark", name, "--recompute"]) == 1
    assert "1 differ" in capsys.readouterr().out


PLAYED = [
    "pkd/LateTwoState-random-v0",
    "pkd/LateRiverSwim-bursty-v0",
    "pkd/LateFrozenLake8x8-d1-v0",
    "pkd/LateAutoscaler-random-v0",
    "pkd/LateInventory-d1-v0",
    pytest.param("pkd/LateCliffWalking-random-v0", marks=pytest.mark.slow),
    pytest.param("pkd/LateTaxi-d1-v0", marks=pytest.mark.slow),
    pytest.param("pkd/LateTaxi-d2-v0", marks=pytest.mark.slow),
]


@pytest.mark.parametrize("name", PLAYED)
def test_an_optimal_plan_earns_the_stored_optimum(name):
    env = gym.make(name).get_wrapper_attr("late")
    totals = play(env, pkd_delay.plan(env.problem()), 200)
    assert_earns(totals, read_scores()[name].optimal)
