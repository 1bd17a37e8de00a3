"""Ctrl-C is answered inside a sweep: compiled code runs in portions of a fraction of a second."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import pkd
from pkd.engine import threads
from pkd.engine.nodes import engine as nodes
from pkd.engine.stripes import sweeps as stripes
from tests.kiosk import LAW, Kiosk


def interrupt_at(call: int, function: Callable[..., Any], calls: list[int]) -> Callable[..., Any]:
    """The same function; somebody presses Ctrl-C during its n-th call."""

    def wrapped(*arguments: Any) -> Any:
        calls.append(1)
        if len(calls) == call:
            signal.raise_signal(signal.SIGINT)
        return function(*arguments)

    return wrapped


@pytest.fixture(autouse=True)
def _answer_interrupts() -> Iterator[None]:
    """A shell may start tests in the background with Ctrl-C ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("optimism", [pkd.MVP(), pkd.Certified(), pkd.Hoeffding()])
def test_a_sweep_in_portions_has_the_same_bits(
    optimism: pkd.Optimism, monkeypatch: pytest.MonkeyPatch
) -> None:
    def learn() -> pkd.Run:
        compiled = pkd.compile(Kiosk(), large=False)
        return pkd.learn(compiled, LAW, 30, optimism=optimism, replan="every")

    whole = learn()
    monkeypatch.setattr(nodes, "PORTION_SIZE", 1)
    parts = learn()
    assert np.array_equal(whole.upper_values, parts.upper_values)
    assert np.array_equal(whole.policy_values, parts.policy_values)


def test_an_interrupt_ends_a_sweep_over_nodes_after_one_portion(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    compiled, calls = pkd.compile(Kiosk(), large=False), list[int]()
    monkeypatch.setattr(nodes, "PORTION_SIZE", 1)
    monkeypatch.setattr(nodes.kernels, "sweep", interrupt_at(2, nodes.kernels.sweep, calls))
    with pytest.raises(KeyboardInterrupt):
        pkd.plan(compiled, LAW)
    assert len(calls) == 2  # of three: two layers and the settlement


def test_an_interrupt_ends_a_sweep_over_stripes_after_one_portion(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    compiled, calls = pkd.compile(Kiosk(), large=True), list[int]()
    monkeypatch.setattr(threads, "PORTION_SIZE", 1)
    monkeypatch.setattr(stripes, "PARALLEL_WORK", 0)
    threads.set_threads(1)
    monkeypatch.setattr(stripes.kernels, "values", interrupt_at(2, stripes.kernels.values, calls))
    try:
        with pytest.raises(KeyboardInterrupt):
            pkd.plan(compiled, LAW)
    finally:
        threads.set_threads(None)
    assert len(calls) == 2
