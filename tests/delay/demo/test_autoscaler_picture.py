"""The picture of the autoscaler's policy, and its log."""

import pytest

import pkd
from pkd import ModelError
from pkd_delay.models.autoscaler import CHAIN, autoscaler

TEXTS = {1: "start", 0: "wait", -1: "stop"}


def test_each_panel_shows_the_actions_of_the_plan_for_one_age():
    late = autoscaler(horizon=12, max_delay=2)
    plan = pkd.plan(late)
    panels = late.picture(plan).figure.axes
    assert [ax.get_title() for ax in panels] == ["0 ticks old", "1 tick old", "2 ticks old"]
    for age, panel in enumerate(panels):
        words = {tuple(map(round, t.get_position())): t.get_text() for t in panel.texts}
        assert len(set(words.values())) > 1
        for column, load in enumerate(("idle", "normal", "busy", "peak")):
            for ready in (1, 2, 3, 4):
                state = late.known().place(load, (ready, (0,)), (0,) * age, 0)
                assert words.get((column, ready)) == find_word(plan, state)


def find_word(plan, state):
    """What the plan does in the middle of the episode; None: it cannot be there."""
    try:
        return TEXTS[plan.action(6, *state)]
    except ModelError:
        return None


def test_a_delay_of_the_flags_keeps_the_picture(tmp_path):
    path = tmp_path / "policy.svg"
    words = ["plan", "autoscaler", "--horizon", "5", "--delay", "1", "--plot", str(path)]
    assert pkd.cli.main(words) == 0
    assert "1 tick old" in path.read_text(encoding="utf-8")


def test_a_log_replaces_the_chain_of_loads(tmp_path):
    path = tmp_path / "loads.csv"
    rows = [f"{z},{x}\n" for z, law in CHAIN.items() for x, p in law.items()
            for _ in range(round(100 * p))]  # fmt: skip
    path.write_text("z,x\n" + "".join(rows), encoding="utf-8")
    fitted = autoscaler(horizon=6, log=str(path))
    assert pkd.plan(fitted).value == pytest.approx(pkd.plan(autoscaler(horizon=6)).value, abs=1e-12)
    assert "samples of 4 features" in fitted.remarks[0]


def test_a_log_with_an_unknown_load_is_refused(tmp_path):
    path = tmp_path / "loads.csv"
    path.write_text("z,x\nidle,pek\n", encoding="utf-8")
    with pytest.raises(ModelError, match="the nearest is 'peak'"):
        autoscaler(log=str(path))
