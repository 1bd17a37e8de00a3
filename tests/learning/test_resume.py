"""A run that was stopped goes on where it was, with the same result to the bit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pkd
from pkd.learning import learn as learning
from pkd.optimism import Pairs
from pkd.rules.literature import OPSRL, BayesUCBVI
from pkd_delay import DelayedMDP


class Steady(pkd.PythonRule):
    """A rule in numpy of a user's own."""

    def values(self, pairs: Pairs) -> Any:
        return (pairs.P * pairs.V).sum(axis=1) + pairs.width / (1 + pairs.N)


class StoppedError(Exception):
    """What the tests end a run with."""


def problem() -> DelayedMDP:
    rng = np.random.default_rng(2)
    mdp = pkd.TabularMDP(rng.dirichlet(np.ones(3), (3, 2)), rng.random((3, 2)), 5)
    return DelayedMDP(mdp, {0: 0.5, 1: 0.5}, 2)


def stop_after(monkeypatch: pytest.MonkeyPatch, saves: int) -> None:
    """Ends the run right after so many checkpoints, as a kill would."""
    save, left = learning.Trial.save, [saves]

    def counting(self: Any, path: Path) -> None:
        save(self, path)
        left[0] -= 1
        if left[0] == 0:
            raise StoppedError

    monkeypatch.setattr(learning.Trial, "save", counting)


RULES = [
    pkd.MVP.practical(), pkd.PosteriorSampling(), OPSRL(),
    BayesUCBVI(level=0.6, draws=5, weight=0.5),
]  # fmt: skip


@pytest.mark.parametrize("large", [False, True], ids=["nodes", "stripes"])
@pytest.mark.parametrize("delay_law", ["known", "unknown"])
@pytest.mark.parametrize("replan", ["every", "doubling"])
@pytest.mark.parametrize("optimism", RULES, ids=lambda rule: rule.name)
def test_a_stopped_run_ends_as_if_it_had_never_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, optimism: Any, replan: Any, delay_law: str,
    large: bool,
) -> None:  # fmt: skip
    delayed = problem()
    model = pkd.compile(delayed.known() if delay_law == "known" else delayed.unknown(), large=large)
    options: dict[str, Any] = {"optimism": optimism, "replan": replan, "seed": 7}
    whole = pkd.learn(model, delayed.law(), 100, **options)
    monkeypatch.setattr(learning, "CHECKPOINT_SECONDS", 0.0)
    with monkeypatch.context() as patch:
        stop_after(patch, 3)
        with pytest.raises(StoppedError):
            pkd.learn(model, delayed.law(), 100, checkpoint=tmp_path / "run.npz", **options)
    again = pkd.learn(model, delayed.law(), 100, checkpoint=tmp_path / "run.npz", **options)
    assert again.differences(whole) == []
    assert again.policy is not None
    assert whole.policy is not None
    assert np.array_equal(again.policy.choices, whole.policy.choices)


def test_the_checkpoint_of_another_run_is_refused(tmp_path: Path) -> None:
    delayed = problem()
    pkd.learn(delayed.known(), delayed.law(), 50, seed=1, checkpoint=tmp_path / "run.npz")
    with pytest.raises(pkd.ModelError) as refused:
        pkd.learn(delayed.known(), delayed.law(), 50, seed=2, checkpoint=tmp_path / "run.npz")
    said = "run.npz is the checkpoint of another run: its seed is 1, expected 2"
    assert str(refused.value).endswith(said)  # nothing else differs, and nothing else is named
    other = DelayedMDP(delayed.mdp, {0: 0.9, 1: 0.1}, 2)
    with pytest.raises(pkd.ModelError, match=r"run: its model, its law or the counts .* others$"):
        pkd.learn(other.known(), other.law(), 50, seed=1, checkpoint=tmp_path / "run.npz")


@pytest.mark.parametrize("optimism", [OPSRL(), BayesUCBVI(), Steady()], ids=lambda r: r.name)
def test_a_run_that_needs_no_episodes_is_continued_with_more_of_them(
    tmp_path: Path, optimism: Any
) -> None:
    """Its plans do not depend on their number, so neither does its checkpoint."""
    delayed, path = problem(), tmp_path / "run.npz"
    assert not optimism.bonus().needs_episodes
    for episodes in (20, 40):
        run = pkd.learn(
            delayed.known(), delayed.law(), episodes, optimism=optimism, seed=3, checkpoint=path
        )
    whole = pkd.learn(delayed.known(), delayed.law(), 40, optimism=optimism, seed=3)
    assert np.array_equal(run.upper_values, whole.upper_values)
    assert run.counts == whole.counts


def test_a_damaged_checkpoint_gets_one_clear_error(tmp_path: Path) -> None:
    delayed = problem()
    (tmp_path / "run.npz").write_bytes(b"not a checkpoint")
    with pytest.raises(pkd.ModelError, match="is not a file that pkd wrote"):
        pkd.learn(delayed.known(), delayed.law(), 50, checkpoint=tmp_path / "run.npz")


def test_a_finished_run_taken_up_again_has_the_values_of_its_plan(tmp_path: Path) -> None:
    delayed = problem()
    first, again = (
        pkd.learn(
            delayed.known(),
            delayed.law(),
            50,
            optimism=pkd.MVP.practical(),
            checkpoint=tmp_path / "run.npz",
        )
        for _ in range(2)
    )
    assert first.policy is not None
    assert again.policy is not None
    for x, y in first.policy.states(1):
        assert again.policy.values(1, x, y) == first.policy.values(1, x, y)


def test_a_checkpoint_is_not_that_of_a_run_with_other_counts(tmp_path: Path) -> None:
    delayed = problem()
    pkd.learn(delayed.known(), delayed.law(), 50, checkpoint=tmp_path / "run.npz")
    with pytest.raises(pkd.ModelError, match="is the checkpoint of another run"):
        pkd.learn(
            delayed.known(),
            delayed.law(),
            50,
            checkpoint=tmp_path / "run.npz",
            counts={(0, 0): {0: 1000, 1: 2000}},
        )
