"""Plans and runs show themselves in a notebook, and everything long shows its progress."""

from __future__ import annotations

import io
import time
from typing import Any
from xml.etree import ElementTree

import pytest

import pkd
from pkd.progress import count, watch, working
from pkd.show.policy_plots import order_states, plot_policy
from pkd_delay.models.tables import riverswim, two_state_chain
from pkd_examples.inventory import inventory


def test_a_plan_shows_its_value_its_policy_and_a_picture() -> None:
    shown = pkd.plan(riverswim())._repr_html_()
    assert "value 3.397263959 over 20 steps" in shown
    assert "the optimum under the law that was given" in shown
    assert shown.count("<svg") == shown.count("<table") == 1
    ElementTree.fromstring(f"<page>{shown}</page>")  # it is well formed


def test_a_run_says_what_stands_behind_it() -> None:
    run = pkd.learn(two_state_chain(), 20, optimism=pkd.Greedy())
    shown = run._repr_html_()
    assert "Run of 20 episodes" in shown
    assert "(no guarantee)" in shown
    assert shown.count("<svg") == shown.count("<table") == 1
    ElementTree.fromstring(f"<page>{shown}</page>")


def test_a_label_that_fails_does_not_hide_the_value() -> None:
    model = inventory(horizon=3).model()

    class Broken(type(model)):  # type: ignore[misc]
        def y_label(self, y: Any) -> str:
            raise RuntimeError("no words")

    shown = pkd.plan(Broken(horizon=3), inventory(horizon=3).law())._repr_html_()
    assert "value -" in shown
    assert "not shown: no words" in shown


def test_names_are_text_and_never_markup() -> None:
    named = pkd.TabularMDP([[[1.0]]], [[1.0]], 2, state_names=["<b>"], action_names=["<i>"])
    shown = pkd.plan(named)._repr_html_()
    assert "<b></" not in shown
    assert "<i>" not in shown
    assert "&lt;i&gt;" in shown


def test_states_are_drawn_in_their_natural_order() -> None:
    tank = pkd.plan("tank")  # starts in level 3
    labels = [text.get_text() for text in plot_policy(tank).get_yticklabels()]
    assert labels == ["0", "1", "2", "3", "4", "5", "6"]


def test_values_of_any_types_can_be_ordered() -> None:
    states = [("b", (2, 1)), ("a", None), (3, (1,)), (True, None), ("a", frozenset({1}))]
    assert order_states(states)[:2] == [(True, None), ("a", None)]


def test_a_large_model_is_drawn_by_the_states_it_meets_most() -> None:
    axes = plot_policy(pkd.plan(inventory(lead_time=2)))
    assert len(axes.get_yticklabels()) == 40
    assert "of all visits, simulated" in axes.get_title()


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_long_call_shows_its_time_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pkd.progress.PATIENCE", 0.0)
    monkeypatch.setattr("pkd.progress.PAUSE", 0.01)
    screen, file = Terminal(), io.StringIO()
    for stream in (screen, file):
        monkeypatch.setattr("sys.stderr", stream)
        with working("planning"):
            time.sleep(0.2)
    assert screen.getvalue().startswith("\rplanning: 00:00")
    assert screen.getvalue().endswith("\r")  # the line is cleared
    assert file.getvalue() == ""


def test_a_loop_shows_its_count_only_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pkd.progress.PATIENCE", 0.0)
    screen, file = Terminal(), io.StringIO()
    for stream in (screen, file):
        monkeypatch.setattr("sys.stderr", stream)
        assert list(watch(range(3), "reading")) == [0, 1, 2]
        with count("runs", 2) as advance:
            advance()
    assert "\rreading:   0%" in screen.getvalue()
    assert "\rruns:   0%" in screen.getvalue()
    assert screen.getvalue().endswith("\r")
    assert file.getvalue() == ""
