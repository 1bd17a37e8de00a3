"""Delays that are too large are left out, and what was found before is kept."""

from __future__ import annotations

import attrs
import pytest

import pkd_delay
from pkd.cli import main
from pkd.explore import TooLargeError
from pkd_delay.latency.curve import measure
from pkd_delay.models.tables import two_state_chain


@attrs.frozen
class Huge:
    """A problem that no machine holds."""

    def model(self):
        raise TooLargeError("1e99 states")

    def law(self):
        return {}


def make(delay):
    if delay == 2:
        return lambda problem: Huge()
    return lambda problem: pkd_delay.DelayedMDP.constant(problem, delay)


def test_the_values_that_were_found_are_kept():
    told, asked = [], []
    ticks = [(d, lambda problem, d=d: asked.append(d) or make(d)(problem)) for d in range(5)]
    lines = measure(two_state_chain(), ticks, told.append)
    assert [line.value for line in lines] == pytest.approx([10.0, 9.1])
    assert told == ["a delay of 2 is left out: 1e99 states"]
    assert asked == [0, 1, 2]  # larger delays are not even tried


def test_without_a_listener_it_is_an_error():
    with pytest.raises(TooLargeError, match="1e99 states"):
        measure(two_state_chain(), [(2, make(2))])


def test_the_command_prints_what_it_has(monkeypatch, capsys):
    from pkd_delay.cli import latency

    change = latency._make
    monkeypatch.setattr(latency, "_make", lambda args: make(2) if args.delay == 2 else change(args))
    assert main(["latency", "two_state_chain", "--up-to", "3", "--quiet"]) == 0
    said = capsys.readouterr()
    assert "9.1" in said.out
    assert "8.46" not in said.out
    assert "a delay of 2 is left out: 1e99 states; --gap 0.01 gives bounds" in said.err


def test_the_value_is_printed_where_only_the_deviation_is_too_large(monkeypatch, capsys):
    from pkd.planning.evaluation import Evaluation

    def refuse(self):
        raise TooLargeError("1e99 states")

    monkeypatch.setattr(Evaluation, "deviation", property(refuse))
    assert main(["evaluate", "two_state_chain", "--delay", "1"]) == 0
    said = capsys.readouterr()
    assert "9.1" in said.out
    assert "no standard deviation: 1e99 states" in said.err
