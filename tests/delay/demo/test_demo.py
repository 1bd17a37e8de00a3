"""The demonstration: who is compared under which rule, and whether its exact values are right."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from matplotlib.axes import Axes

import pkd
import pkd_delay
from pkd.cli import main
from pkd_delay.demo import page as demo
from pkd_delay.models.autoscaler import spot_autoscaler

EPISODES = 3
Rows = list[tuple[str, ...]]


@pytest.fixture(scope="module")
def study() -> demo.Study:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(demo, "LONG", 5)
        patch.setattr(demo, "LONGEST_DELAY", 2)
        return demo.run_study(EPISODES, 2, workers=2)


@pytest.fixture(scope="module")
def rows(study: demo.Study) -> Rows:
    return demo.make_rows(study)


@pytest.fixture(scope="module")
def panels(study: demo.Study) -> list[Axes]:
    return demo.draw_study(study).axes


def row(rows: Rows, *agent: str) -> dict[str, str]:
    (found,) = [cells for cells in rows if cells[: len(agent)] == agent]
    return dict(zip(demo.HEADERS, found, strict=True))


def test_the_command_prints_the_table_and_writes_table_and_figure(
    study: demo.Study,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    asked: list[tuple[int, int]] = []
    monkeypatch.setattr(demo, "run_study", lambda *sizes, progress: asked.append(sizes) or study)
    out = tmp_path / "new"
    assert main(["demo", "--seeds", "2", "--out", str(out)]) == 0
    assert asked == [(500, 2)]
    printed = capsys.readouterr().out.splitlines()
    assert printed[0].endswith("3 episodes, 2 seeds")
    assert printed[1].split("  ")[0] == "agent"
    assert printed[-2] == demo.write_notes(study)[-1]
    assert (out / "demo.png").read_bytes()[:4] == b"\x89PNG"
    assert len((out / "demo.csv").read_text().splitlines()) == 1 + len(demo.make_rows(study))


def test_every_agent_is_shown_with_its_rule_and_what_that_guarantees(
    rows: Rows,
) -> None:
    assert [cells[:2] for cells in rows] == [
        ("optimum", ""),
        ("delay law known", "Certified"),
        ("delay law unknown", "Certified"),
        ("delay law known", "Certified, everywhere"),
        ("delay law known", "MVP, practical constants, no guarantee"),
        ("delay law known", "Greedy (no bonus), no guarantee"),
        ("delay law known", "MVP, as published"),
        ("counts per augmented state", "MVP, practical constants, no guarantee"),
        ("ignores the delay", "MVP, practical constants, no guarantee"),
        ("ignores the delay", "knows all laws"),
    ]


def test_the_optimum_is_that_of_the_delayed_problem(rows: Rows) -> None:
    optimum = pkd_delay.plan(spot_autoscaler()).value
    assert row(rows, "optimum")["return per episode"] == f"{optimum:.3f}"


def test_regret_is_what_the_episodes_fall_short_of_the_optimum(rows: Rows) -> None:
    optimum = float(row(rows, "optimum")["return per episode"])
    for cells in rows:
        _, _, value, regret, _ = cells
        assert float(regret) == pytest.approx(
            EPISODES * (optimum - float(value)), abs=0.05 + 0.001 * EPISODES
        )


def test_what_is_not_reached_says_how_long_was_tried(rows: Rows) -> None:
    """Nobody is near the optimum so soon: 5 episodes for the long runs, 3 for the others."""
    assert row(rows, "delay law known", "MVP, as published")["episodes to 95%"] == "> 5"
    assert row(rows, "delay law unknown")["episodes to 95%"] == "> 3"


def test_the_price_of_each_tick_is_drawn(panels: list[Axes]) -> None:
    problem = spot_autoscaler().problem
    late = [pkd_delay.Delayed.constant(problem, delay) for delay in (0, 1, 2)]
    values = [pkd_delay.plan(one).value for one in late]
    right = panels[2]
    assert right.lines[0].get_ydata().tolist() == pytest.approx(values)
    assert [text.get_text() for text in right.texts] == [
        f"{values[1] - values[0]:.2f}",
        f"{values[2] - values[1]:.2f}",
    ]
    assert values[0] == pytest.approx(pkd.plan(problem.model(), problem.law()).value)


def test_each_seed_is_a_line_and_no_range_of_seeds_is_drawn(panels: list[Axes]) -> None:
    left = panels[0]
    assert len(left.collections) == 0
    assert len(left.lines) == 8 * 3  # agents, each with a mean and two seeds
    mean, *seeds = (line.get_ydata() for line in left.lines[:3])
    assert mean == pytest.approx(np.mean(seeds, axis=0))
    compiled, law = pkd.compile(spot_autoscaler().known(), large=False), spot_autoscaler().law()
    assert seeds[1].tolist() == pkd.learn(compiled, law, 5, seed=1).regret.tolist()


def test_the_median_of_two_seeds_is_halfway_between_them() -> None:
    class Reached:
        def __init__(self, episode: int | None) -> None:
            self.episode, self.returns = episode, range(50)

        def episodes_to(self, goal: float, baseline: float) -> int | None:
            return self.episode

    assert demo._label_episodes([Reached(4), Reached(9)]) == "6.5"
    assert demo._label_episodes([Reached(9), Reached(4), Reached(None)]) == "9"
    assert demo._label_episodes([Reached(4), Reached(None)]) == "> 50"


def test_the_certified_interval_that_is_drawn_holds_the_optimum(
    rows: Rows, panels: list[Axes], study: demo.Study
) -> None:
    middle = panels[1]
    drawn = middle.collections[0].get_paths()[0].vertices[:, 1]
    optimum = float(row(rows, "optimum")["return per episode"])
    assert drawn.min() < optimum < drawn.max()
    compiled, law = pkd.compile(spot_autoscaler().known(), large=False), spot_autoscaler().law()
    first, second = (pkd.learn(compiled, law, 5, seed=seed) for seed in (0, 1))
    assert drawn.min() == min(first.lower_values.min(), second.lower_values.min())
    assert drawn.max() == max(first.upper_values.max(), second.upper_values.max())
    low, high = (
        min(first.lower_values[2], second.lower_values[2]),
        max(first.upper_values[2], second.upper_values[2]),
    )
    assert f"[{low:.2f}, {high:.2f}]; after 5 in" in demo.write_notes(study)[3]
