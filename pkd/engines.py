"""From a model to its compiled form: exploring it, and choosing the engine that fits."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

from pkd.compiled import Compiled
from pkd.flat_engine import FlatProgram
from pkd.graph import explore
from pkd.model import PartiallyKnownMDP

__all__ = ["compile"]

LARGE_STATES = 500_000  # from here on runs are looked for, which takes as long as exploring
LONG_RUNS = 8  # columns per run that make the run engine worth while


def compile(model: PartiallyKnownMDP | Compiled, large: bool | None = None) -> Compiled:
    """The compiled form of a model, which all functions of `pkd` accept in its place; a compiled one is returned as it is.

    large: True for the run engine, False for the flat program; by default the engine that fits. A model may emit its runs itself (see
    `PartiallyKnownMDP.runs`), so that a large Y never exists as Python objects.

    >>> import pkd
    >>> coin = pkd.TabularMDP([[[0.5, 0.5], [1.0, 0.0]], [[0.5, 0.5], [0.0, 1.0]]], [[0.0, 0.0], [1.0, 1.0]], horizon=3)
    >>> compiled = pkd.compile(coin.model())
    >>> compiled.n_states, compiled.features, pkd.plan(compiled, coin.law()).value
    (2, [(0, 0), (0, 1), (1, 0), (1, 1)], 1.25)
    """
    if isinstance(model, Compiled):
        return model
    with _no_collection():
        return _compiled(model, large)


def _compiled(model: PartiallyKnownMDP, large: bool | None) -> Compiled:
    emitted = None if large is False else model.runs()
    if emitted is None:
        graph = explore(model)
        if large is False or (large is None and len(graph.layers.states) <= LARGE_STATES):
            return FlatProgram(graph)
    from pkd.run_engine import RunEngine
    from pkd.runs import runs_of

    if emitted is not None:
        return RunEngine(model, emitted)
    engine = RunEngine(model, runs_of(graph), graph)
    worth_while = engine.layout.columns >= LONG_RUNS * len(engine.layout.runs)
    return engine if large or worth_while else FlatProgram(graph)


@contextmanager
def _no_collection() -> Iterator[None]:
    """Without the collector of cycles: it would look again and again at a million small objects, none of which is garbage."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
