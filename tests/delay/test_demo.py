"""The demonstration: who is compared under which rule, and whether its exact values are right."""

from __future__ import annotations

import numpy as np
import pytest

import pkd
import pkd_delay
from pkd_delay import demo, demo_study
from pkd_delay.autoscaler import spot_autoscaler

EPISODES = 3


def show(workers: int) -> demo.Showcase:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(demo_study, "LONG", 5)
        patch.setattr(demo_study, "LONGEST_DELAY", 2)
        return demo.autoscaler_demo(episodes=EPISODES, seeds=2, workers=workers)


@pytest.fixture(scope="module")
def shown() -> demo.Showcase:
    return show(workers=1)


def row(shown: demo.Showcase, *agent: str) -> dict[str, str]:
    (found,) = [cells for cells in shown.rows if cells[: len(agent)] == agent]
    return dict(zip(shown.headers, found, strict=True))


def test_every_agent_is_shown_with_its_rule_and_what_that_guarantees(shown: demo.Showcase) -> None:
    assert [cells[:2] for cells in shown.rows] == [
        ("optimum", ""),
        ("delay law known", "Certified"),
        ("delay law unknown", "Certified"),
        ("delay law known", "MVP, practical constants, no guarantee"),
        ("delay law known", "Greedy (no bonus), no guarantee"),
        ("delay law known", "MVP, as published"),
        ("counts per augmented state", "MVP, practical constants, no guarantee"),
        ("ignores the delay", "MVP, practical constants, no guarantee"),
        ("ignores the delay", "knows all laws"),
    ]


def test_the_optimum_is_that_of_the_delayed_problem(shown: demo.Showcase) -> None:
    optimum = pkd_delay.plan(spot_autoscaler()).value
    assert row(shown, "optimum")["return per episode"] == f"{optimum:.3f}"


def test_regret_is_what_the_episodes_fall_short_of_the_optimum(shown: demo.Showcase) -> None:
    optimum = float(row(shown, "optimum")["return per episode"])
    for cells in shown.rows:
        _, _, value, regret, _ = cells
        assert float(regret) == pytest.approx(
            EPISODES * (optimum - float(value)), abs=0.05 + 0.001 * EPISODES
        )


def test_what_is_not_reached_says_how_long_was_tried(shown: demo.Showcase) -> None:
    """Nobody is near the optimum so soon: 5 episodes for the long runs, 3 for the others."""
    assert row(shown, "delay law known", "MVP, as published")["episodes to 95%"] == "> 5"
    assert row(shown, "delay law unknown")["episodes to 95%"] == "> 3"


def test_the_price_of_each_tick_is_drawn(shown: demo.Showcase) -> None:
    problem = spot_autoscaler().problem
    values = [
        pkd_delay.plan(pkd_delay.Delayed.constant(problem, delay)).value for delay in (0, 1, 2)
    ]
    right = shown.figure.axes[2]
    assert right.lines[0].get_ydata().tolist() == pytest.approx(values)
    assert [text.get_text() for text in right.texts] == [
        f"{values[1] - values[0]:.2f}",
        f"{values[2] - values[1]:.2f}",
    ]
    assert values[0] == pytest.approx(pkd.plan(problem.model(), problem.law()).value)


def test_each_seed_is_a_line_and_no_range_of_seeds_is_drawn(shown: demo.Showcase) -> None:
    left = shown.figure.axes[0]
    assert len(left.collections) == 0
    assert len(left.lines) == 7 * 3  # agents, each with a mean and two seeds
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


def test_the_certified_interval_that_is_drawn_holds_the_optimum(shown: demo.Showcase) -> None:
    middle = shown.figure.axes[1]
    drawn = middle.collections[0].get_paths()[0].vertices[:, 1]
    optimum = float(row(shown, "optimum")["return per episode"])
    assert drawn.min() < optimum < drawn.max()
    compiled, law = pkd.compile(spot_autoscaler().known(), large=False), spot_autoscaler().law()
    first, second = (pkd.learn(compiled, law, 5, seed=seed) for seed in (0, 1))
    assert drawn.min() == min(first.lower_values.min(), second.lower_values.min())
    assert drawn.max() == max(first.upper_values.max(), second.upper_values.max())
    low, high = (
        min(first.lower_values[2], second.lower_values[2]),
        max(first.upper_values[2], second.upper_values[2]),
    )
    assert f"[{low:.2f}, {high:.2f}]; after 5 in" in shown.notes[2]


def test_several_workers_show_the_same(shown: demo.Showcase) -> None:
    other = show(workers=2)
    assert (other.rows, other.notes) == (shown.rows, shown.notes)
    for mine, theirs in zip(shown.figure.axes, other.figure.axes, strict=True):
        for line, same in zip(mine.lines, theirs.lines, strict=True):
            assert np.array_equal(line.get_xydata(), same.get_xydata())
