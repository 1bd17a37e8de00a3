"""One compiled model in several threads, several threads in one sweep: always the same bits."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pkd
from pkd.engine.stripes import sweeps as stripes
from pkd.engine.threads import Crew, set_threads
from pkd_delay import DelayedMDP
from tests.queue_strategies import QueueShape, build

ROUNDS = 25
both_engines = pytest.mark.parametrize("large", [False, True], ids=["nodes", "stripes"])


def delayed(horizon: int = 6, max_delay: int = 4) -> DelayedMDP:
    rng = np.random.default_rng(11)
    p = rng.dirichlet(np.ones(4), (4, 3))
    mdp = pkd.TabularMDP(p, rng.random((4, 3)), horizon)
    return DelayedMDP(mdp, {-1: 0.2, 0: 0.4, 1: 0.3, 2: 0.1}, max_delay)


def problems(large: bool) -> list[tuple[Any, Any]]:
    one, case = delayed(), build(QueueShape(4, horizon=4, longest=3, n_x=3, chance=0.3))
    models = [(one.known(), one.law()), (one.unknown(), one.law()), (case.model, case.law)]
    return [(pkd.compile(model, large=large), law) for model, law in models]


@pytest.fixture
def _hasty() -> Iterator[None]:
    """Threads take turns a hundred times as often."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


def run_both(tasks: list[Callable[[], Any]]) -> list[list[Any]]:
    """Each task ROUNDS times in a thread of its own, all at once."""
    with ThreadPoolExecutor(len(tasks)) as pool:
        futures = [pool.submit(lambda task=task: [task() for _ in range(ROUNDS)]) for task in tasks]
        return [future.result() for future in futures]


def counts_of(compiled: Any, seed: int) -> dict[Any, dict[Any, int]]:
    rng = np.random.default_rng(seed)
    return {
        z: {x: int(rng.integers(1, 500)) for x in xs}
        for z, xs in zip(compiled.features, compiled.outcomes, strict=True)
    }


@pytest.mark.usefixtures("_hasty")
@both_engines
def test_two_threads_that_share_a_compiled_model_get_what_each_gets_alone(large: bool) -> None:
    for compiled, law in problems(large):
        counts = counts_of(compiled, 0)

        def plan(compiled: Any = compiled, law: Any = law) -> Any:
            found = pkd.plan(compiled, law)
            return found.value, found.choices.tobytes()

        def hope(compiled: Any = compiled, counts: Any = counts) -> Any:
            rule = pkd.MVP.practical()
            found = pkd.optimistic_plan(compiled, counts, episodes=50, optimism=rule)
            return found.value, found.choices.tobytes()

        def values(compiled: Any = compiled, law: Any = law) -> Any:
            best = pkd.plan(compiled, law)
            steps = range(1, compiled.horizon + 1)
            states = [(h, *next(iter(best.states(h)), (None, None))) for h in steps]
            return [best.values(*state) for state in states if list(best.states(state[0]))]

        def evaluate(compiled: Any = compiled, law: Any = law) -> float:
            return pkd.evaluate(compiled, law, lambda h, x, y: compiled.model.actions(x, y)[-1])

        tasks: list[Callable[[], Any]] = [plan, hope, values, evaluate]
        alone = [task() for task in tasks]
        for expected, found in zip(alone, run_both(tasks), strict=True):
            assert all(answer == expected for answer in found)


@pytest.mark.usefixtures("_hasty")
@pytest.mark.parametrize("replan", ["every", "doubling"])
@both_engines
def test_two_runs_that_share_a_compiled_model_are_what_each_is_alone(
    large: bool, replan: Any
) -> None:
    for compiled, law in problems(large)[:2]:

        def run(seed: int, compiled: Any = compiled, law: Any = law) -> Any:
            rule = pkd.MVP.practical()
            found = pkd.learn(compiled, law, 12, seed=seed, replan=replan, optimism=rule)
            arrays = found.upper_values, found.policy_values, found.returns, found.plans
            return [array.tobytes() for array in arrays], found.counts

        alone = [run(seed) for seed in (1, 2)]
        with ThreadPoolExecutor(2) as pool:
            together = [list(pool.map(run, (1, 2))) for _ in range(6)]
        assert all(found == alone for found in together)


@pytest.fixture
def _small_sweeps_are_shared(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(stripes, "PARALLEL_WORK", 0)
    monkeypatch.setattr("pkd.engine.stripes.arrays.TILE_VALUES", 64)
    yield
    set_threads(None)


@pytest.mark.usefixtures("_small_sweeps_are_shared")
def test_one_two_and_three_threads_give_the_same_bits() -> None:
    for compiled, law in problems(large=True):
        counts, found = counts_of(compiled, 1), []
        for threads in (1, 2, 3):
            set_threads(threads)
            plans = [pkd.plan(compiled, law)]
            for rule in (
                pkd.MVP(0.1, 0.01),
                pkd.Hoeffding(0.01),
                pkd.MVP(0.1, 0.02, monotone=True),
            ):
                plans.append(pkd.optimistic_plan(compiled, counts, episodes=9, optimism=rule))
            values = [pkd.evaluate(compiled, law, plan) for plan in plans]
            found.append(([p.value for p in plans], [p.choices.tobytes() for p in plans], values))
        assert found[0] == found[1] == found[2]


@pytest.mark.usefixtures("_hasty", "_small_sweeps_are_shared")
def test_sweeps_that_share_their_helpers_get_what_each_gets_alone() -> None:
    compiled, law = problems(large=True)[0]
    set_threads(3)
    alone = pkd.plan(compiled, law)

    def plan() -> Any:
        found = pkd.plan(compiled, law)
        return found.value, found.choices.tobytes()

    for answers in run_both([plan, plan, plan]):
        assert all(answer == (alone.value, alone.choices.tobytes()) for answer in answers)


def test_a_crew_does_every_piece_once() -> None:
    for threads in (1, 2, 3):
        crew = Crew(threads)
        for count in (0, 1, 2, 7, 1000):
            for _ in range(4):  # alone and together, while it measures
                done = np.zeros(count, int)

                def work(begin: int, end: int, done: Any = done) -> int:
                    done[begin:end] += 1
                    return end - begin

                assert crew.share(work, count, 1.0) == count
                assert (done == 1).all()


PROGRAM = """
import numpy as np, pkd
from pkd_delay import DelayedMDP
rng = np.random.default_rng(3)
mdp = pkd.TabularMDP(rng.dirichlet(np.ones(3), (3, 2)), rng.random((3, 2)), 5)
problem = DelayedMDP(mdp, {0: 0.5, 1: 0.5}, 2)
print(pkd.plan(pkd.compile(problem.known(), large=False), problem.law()).value.hex())
"""


@pytest.mark.slow
def test_processes_may_fill_one_kernel_cache_together(tmp_path: Path) -> None:
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    started = [
        subprocess.Popen(
            [sys.executable, "-c", PROGRAM], env=environment, stdout=subprocess.PIPE, text=True
        )
        for _ in range(3)
    ]
    answers = {process.communicate()[0] for process in started}
    assert all(process.returncode == 0 for process in started)
    again = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    assert answers == {again.stdout}
    assert len(again.stdout) > 5


def _plan_in_child(queue: Any) -> None:
    one = delayed(4, 2)
    set_threads(2)
    stripes.PARALLEL_WORK = 0
    queue.put(pkd.plan(pkd.compile(one.known(), large=True), one.law()).value)


@pytest.mark.usefixtures("_small_sweeps_are_shared")
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_has_helpers_of_its_own() -> None:
    one = delayed(4, 2)
    set_threads(2)
    here = pkd.plan(pkd.compile(one.known(), large=True), one.law()).value
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=_plan_in_child, args=(queue,))
    child.start()
    assert queue.get(timeout=120) == here
    child.join()
