"""What all tests share: the hypothesis profile, and kernels that are compiled once.

No deadline, because the first example of a test may compile kernels. The same examples every time,
so that a failure can be repeated.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "pkd",
    deadline=None,
    max_examples=60,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("pkd")


QUIET = [
    "--no-sandbox", "--disable-gpu", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--no-first-run",
]  # fmt: skip


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """Chromium without a screen; tests that use it are skipped where it is not there."""
    playwright = pytest.importorskip("playwright.sync_api")
    with playwright.sync_playwright() as started:
        opened = started.chromium.launch(executable_path=shutil.which("chromium"), args=QUIET)
        yield opened
        opened.close()


def pytest_configure(config: pytest.Config) -> None:
    """Compiles the usual kernels before workers start, so that no two compile the same ones."""
    if hasattr(config, "workerinput") or not getattr(config.option, "numprocesses", None):
        return  # a worker, or a run in one process
    import pkd
    from pkd.engine.jit import cache_folder
    from pkd_delay import DelayedMDP
    from pkd_delay.models.tables import two_state_chain

    if any(Path(cache_folder()).rglob("*.nbc")):
        return
    late = DelayedMDP(two_state_chain(horizon=3), {0: 0.5, 1: 0.5}, 1)
    for large in (False, True):
        engine = pkd.compile(late.model(), large=large)
        for rule in (pkd.Certified(), pkd.MVP()):
            pkd.learn(engine, late.law(), 3, optimism=rule)
        pkd.evaluate(engine, late.law(), pkd.plan(engine, late.law()))
