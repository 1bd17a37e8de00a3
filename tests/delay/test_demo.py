"""The demonstration: who is compared, with which constants, and that the exact values in it are
right.
"""

from __future__ import annotations

import pytest

import pkd
import pkd_delay
from pkd_delay import demo
from pkd_delay.autoscaler import autoscaler

EPISODES = 3


@pytest.fixture(scope="module")
def shown() -> demo.Showcase:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(demo, "LONG", 5)
        patch.setattr(demo, "LONGEST_DELAY", 2)
        return demo.autoscaler_demo(episodes=EPISODES, seeds=2, workers=1)


def row(shown: demo.Showcase, *agent: str) -> dict[str, str]:
    (found,) = [cells for cells in shown.rows if cells[: len(agent)] == agent]
    return dict(zip(shown.headers, found, strict=True))


def test_every_agent_is_shown_with_its_constants(shown: demo.Showcase) -> None:
    assert {cells[:2] for cells in shown.rows} == {
        ("optimum", ""),
        ("MVP-Delayed, known delay law", "practical"),
        ("MVP-Delayed, known delay law", "theory"),
        ("MVP-Delayed, known delay law", "no bonus"),
        ("MVP-Delayed, unknown delay law", "practical"),
        ("MVP-Delayed, unknown delay law", "theory"),
        ("counts per augmented state", "practical"),
        ("ignores the delay, learns", "practical"),
        ("ignores the delay, law known", ""),
    }


def test_the_optimum_is_that_of_the_delayed_problem(shown: demo.Showcase) -> None:
    assert (
        row(shown, "optimum")["return per episode"] == f"{pkd_delay.plan(autoscaler()).value:.3f}"
    )


def test_regret_is_what_the_episodes_fall_short_of_the_optimum(shown: demo.Showcase) -> None:
    optimum = float(row(shown, "optimum")["return per episode"])
    for cells in shown.rows:
        _, _, value, regret, _ = cells
        assert float(regret) == pytest.approx(
            EPISODES * (optimum - float(value)), abs=0.05 + 0.001 * EPISODES
        )


def test_what_is_not_reached_says_how_long_was_tried(shown: demo.Showcase) -> None:
    """Without data no plan of the theory is near the optimum: 5 episodes for the long run, 3 for
    the others.
    """
    assert row(shown, "MVP-Delayed, known delay law", "theory")["episodes to 95%"] == "> 5"
    assert row(shown, "MVP-Delayed, unknown delay law", "theory")["episodes to 95%"] == "> 3"


def test_the_price_of_each_tick_is_drawn(shown: demo.Showcase) -> None:
    problem = autoscaler().problem
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
