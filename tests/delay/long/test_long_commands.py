"""`pkd plan --gap` and `pkd latency --gap`."""

import json

import pytest

from pkd.cli import main
from pkd_delay.latency.curve import DelayCost, _tighten


def run(capsys, *words):
    code = main(list(words))
    return code, capsys.readouterr()


def test_plan_prints_both_bounds_and_the_policy(capsys, tmp_path):
    file = tmp_path / "policy.csv"
    words = ["plan", "riverswim", "--horizon", "40", "--delay", "20", "--gap", "0.01"]
    code, said = run(capsys, *words, "--csv", str(file))
    assert code == 0
    assert "both bounds are exact" in said.out
    assert "right" in said.out
    assert len(file.read_text().splitlines()) > 40
    told = json.loads(run(capsys, *words, "--json")[1].out)
    assert 0 < told["value"] <= told["high"] <= 1.01 * told["value"]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["plan", "riverswim", "--gap", "0.01"], "no planner that gives bounds"),
        (["plan", "riverswim", "--delay", "2", "--seconds", "3"], "expected --gap G"),
        (["plan", "riverswim", "--delay", "2", "--gap", "0.01", "--all"], "not known in all"),
        (["plan", "random_mdp", "--horizon", "60", "--delay", "50"], "give --gap 0.01"),
        (["latency", "riverswim", "--gap", "0.1", "--log", "x.csv"], "give one of them"),
    ],
)
def test_refusals_say_what_to_do(capsys, words, expected):
    code, said = run(capsys, *words)
    assert code != 0
    assert expected in said.err


def test_latency_is_exact_for_short_delays_and_between_bounds_for_long_ones(capsys, tmp_path):
    words = ["latency", "two_state_chain", "--horizon", "30", "--up-to", "20", "--gap", "0.001"]
    code, said = run(capsys, *words, "--quiet", "--plot", str(tmp_path / "p.png"))
    assert code == 0
    lines = [line.split() for line in said.out.splitlines()]
    rows = [line for line in lines if line and line[0].isdigit()]
    for d, low, high in ((int(row[0]), float(row[1]), float(row[2])) for row in rows):
        value = sum((1 + 0.8 ** min(t, d)) / 2 for t in range(30))
        assert low <= value + 1e-5
        assert value - 1e-5 <= high
    assert "exact where both bounds are equal" in said.out
    assert (tmp_path / "p.png").stat().st_size > 10_000


def test_bounds_of_other_delays_narrow_those_of_a_long_one():
    """More ticks are worth no more. A simulated lower bound is not passed on."""
    lines = [
        DelayCost(0, 9.0, low=9.0, high=9.0),
        DelayCost(1, low=5.0, high=8.0),
        DelayCost(2, low=7.0, high=7.5, evidence=(2,)),
        DelayCost(3, low=6.0, high=8.5),
    ]
    found = _tighten(lines)
    assert [line.bounds for line in found] == [(9.0, 9.0), (6.0, 8.0), (7.0, 7.5), (6.0, 7.5)]
    assert [line.evidence for line in found] == [(), (), (2,), ()]
