"""Saved runs: they come back whole, and only with the model that they were saved with."""

from __future__ import annotations

import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import attrs
import numpy as np
import pytest

import pkd
from pkd.files.atomic import read_npz, write_npz


class Day(NamedTuple):
    number: int


@attrs.frozen
class Weather:
    kind: str


class Shop(pkd.NoiseMDP):
    """Stock of 0 to `size`, orders of 0 or 1, an unknown demand with its own classes."""

    horizon = 3

    def __init__(self, size: int, days: int = 2) -> None:
        self.size, self.days = size, days

    def initial(self) -> Any:
        return (0, 0)

    def choices(self, s: Any) -> Any:
        return range(min(2, self.size - s[1] + 1))

    def noise(self, s: Any, a: Any) -> Any:
        return Day(s[0])

    def outcomes(self, z: Any) -> Any:
        return [Weather("dry"), Weather("wet")]

    def land(self, s: Any, a: Any, w: Any) -> Any:
        sold = min(s[1] + a, 1 if w.kind == "dry" else 0)
        return 2.0 * sold - a, ((s[0] + 1) % self.days, s[1] + a - sold)


LAW = {Day(i): {Weather("dry"): 0.7, Weather("wet"): 0.3} for i in range(3)}


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("run") / "run.npz"
    pkd.learn(Shop(3), LAW, 40, optimism=pkd.MVP.practical(), seed=np.int64(3)).save(path)
    return path


def test_a_numpy_integer_may_be_the_seed(saved: Path) -> None:
    assert pkd.Run.load(saved).config["seed"] == 3


def test_with_its_model_a_run_comes_back_whole(saved: Path) -> None:
    again = pkd.learn(Shop(3), LAW, 40, optimism=pkd.MVP.practical(), seed=3)
    loaded = pkd.Run.load(saved, Shop(3))
    assert loaded.differences(again) == []
    assert loaded.counts == again.counts
    assert {type(z) for z in loaded.counts} == {Day}
    assert loaded.policy is not None
    assert again.policy is not None
    assert loaded.policy.values(1, *next(again.policy.states(1))) == pytest.approx(
        again.policy.values(1, *next(again.policy.states(1))), rel=1e-15
    )


def test_without_its_model_a_run_has_no_policy_and_can_be_compared(saved: Path) -> None:
    again = pkd.learn(Shop(3), LAW, 40, optimism=pkd.MVP.practical(), seed=3)
    loaded = pkd.Run.load(saved)
    assert loaded.policy is None
    assert loaded.differences(again) == []


def test_a_run_that_was_loaded_without_its_model_keeps_its_fingerprint(
    saved: Path, tmp_path: Path
) -> None:
    pkd.Run.load(saved).save(tmp_path / "copy.npz")
    assert pkd.Run.load(tmp_path / "copy.npz").fingerprint == pkd.Run.load(saved).fingerprint != ""


@pytest.mark.parametrize("other", [Shop(2), Shop(1), Shop(3, days=3), Shop(3, days=1)])
def test_a_run_of_another_model_is_refused(saved: Path, other: Shop) -> None:
    with pytest.raises(pkd.ModelError, match=r"run\.npz does not fit the model: it was saved with"):
        pkd.Run.load(saved, other)


def replace(array: np.ndarray, value: float) -> np.ndarray:
    other = array.copy()
    other.flat[0] = value
    return other


Change = Callable[[np.ndarray], np.ndarray | None]
FORGED: dict[str, tuple[str, Change, str]] = {
    "action 200": ("choices", lambda a: replace(a, 200), "the saved policy"),
    "signed actions": (
        "choices",
        lambda a: a.astype(np.int64) - 9,
        "the saved policy has the shape (3, 5) of int64; this model needs (3, 5) of uint8",
    ),
    "fewer actions": ("choices", lambda a: a[..., :-1], "the saved policy"),
    "probability 2": ("belief_p", lambda p: replace(p, 2.0), "belief_p: expected numbers from 0"),
    "no number": ("belief_p", lambda p: replace(p, np.nan), "belief_p: expected numbers from 0"),
    "negative count": ("belief_n", lambda n: replace(n, -1), "belief_n: expected numbers from 0"),
    "short belief": ("belief_n", lambda n: n[:-1], "belief_n: expected float64 of shape"),
    "text": ("belief_n", lambda n: n.astype(str), "belief_n: expected numbers, found <U"),
    "no belief": ("belief_p", lambda p: None, "belief_p: expected float64 of shape"),
    "infinite mean": ("belief_mean", lambda m: np.full(1, np.inf), "belief_mean: expected numbers"),
}


@pytest.mark.parametrize("kind", FORGED)
def test_what_a_forged_file_says_never_reaches_an_engine(
    saved: Path, tmp_path: Path, kind: str
) -> None:
    name, change, message = FORGED[kind]
    arrays, meta = read_npz(saved)
    changed = change(arrays.pop(name))
    forged = arrays if changed is None else {**arrays, name: changed}
    write_npz(tmp_path / "forged.npz", forged, meta)
    with pytest.raises(pkd.ModelError) as error:
        pkd.Run.load(tmp_path / "forged.npz", Shop(3))
    assert str(error.value).startswith(f"{tmp_path / 'forged.npz'} ")
    assert f": {message}" in str(error.value)


@pytest.mark.parametrize("kind", ["probability 2", "no number", "negative count", "text"])
def test_a_run_is_checked_without_its_model_too(saved: Path, tmp_path: Path, kind: str) -> None:
    name, change, message = FORGED[kind]
    arrays, meta = read_npz(saved)
    write_npz(tmp_path / "forged.npz", {**arrays, name: change(arrays[name])}, meta)  # type: ignore[dict-item]
    with pytest.raises(pkd.ModelError, match=message):
        pkd.Run.load(tmp_path / "forged.npz")


BELIEFS = ("p", "n", "ell", "radius", "budget", "bound")


@pytest.mark.parametrize("value", [-1.0, np.nan])
@pytest.mark.parametrize("name", BELIEFS)
def test_a_plan_that_believes_no_numbers_is_refused(
    name: str, value: float, tmp_path: Path
) -> None:
    pkd.optimistic_plan(Shop(3), {}, episodes=9, optimism="certified").save(tmp_path / "plan.npz")
    arrays, meta = read_npz(tmp_path / "plan.npz")
    write_npz(tmp_path / "forged.npz", {**arrays, name: replace(arrays[name], value)}, meta)
    with pytest.raises(pkd.ModelError, match=f"{name}: expected numbers"):
        pkd.Plan.load(tmp_path / "forged.npz", Shop(3))


def test_a_file_with_two_members_of_one_name_is_refused(saved: Path, tmp_path: Path) -> None:
    twice = tmp_path / "twice.npz"
    twice.write_bytes(saved.read_bytes())
    with zipfile.ZipFile(twice, "a") as archive, warnings.catch_warnings(action="ignore"):
        archive.writestr("returns.npy", archive.read("returns.npy"))
    with pytest.raises(pkd.ModelError, match="two of its members have one name"):
        pkd.Run.load(twice)


@pytest.mark.parametrize(
    ("entry", "value", "message"),
    [
        ("fingerprint", 3, "fingerprint: expected a text, found 3"),
        ("versions", {"pkd": 3}, "versions: expected texts by name, found"),
        ("guarantee", "certified", "guarantee: expected no guarantee, found 'certified'"),
        ("model_words", ["chain", 3], "model_words: expected words, found ('chain', 3)"),
        ("interval", [0.5, "x"], "interval: expected two numbers, found [0.5, 'x']"),
        ("words", {"features": ["one"], "decisions": []}, "expected 2 labels of features, found 1"),
        ("run", {"optimism": {"rule": "a:B", "arguments": 3}}, "optimism: expected arguments by"),
        ("seconds", "long", "seconds: expected a number, found 'long'"),
        ("features", [[1], [2]], "expected a value, found the list [1]"),
        ("features", [{"tuple": [1, {}]}, 2], "expected a value, found {}"),
        ("counts", [[[0, -1.0]], []], "counts of Day(number=0), 0: expected a number >= 0"),
        ("counts", [[[0, "x"]], []], "counts of Day(number=0), 0: expected a number >= 0"),
        ("form", 7, "expected the form 3, found 7"),
        ("run", [], "run: expected a configuration, found []"),
        ("run", {}, "it has no entry 'model'"),
        ("run", {"episodes": 0}, "episodes: expected a whole number >= 1, found 0"),
        ("run", {"episodes": "40"}, "episodes: expected a whole number >= 1, found '40'"),
        ("run", {"seed": -1}, "seed: expected a whole number >= 0, found -1"),
        ("run", {"delta": 2}, "delta: expected a number between 0 and 1, found 2"),
        (
            "run",
            {"replan": "never"},
            "replan is 'never'; expected auto, doubling, slack, every, total, or words such as",
        ),
        ("run", {"optimism": {"rule": "Hope"}}, "optimism rule 'Hope' is unknown"),
        ("run", {"optimism": {"rule": "MVP", "c1": "x"}}, "optimism: expected numbers, found c1"),
    ],
)
def test_a_forged_description_is_one_error(
    saved: Path, tmp_path: Path, entry: str, value: Any, message: str
) -> None:
    arrays, meta = read_npz(saved)
    if value and isinstance(value, dict):
        value = {**meta[entry], **value}
    write_npz(tmp_path / "forged.npz", arrays, {**meta, entry: value})
    with pytest.raises(pkd.ModelError) as error:
        pkd.Run.load(tmp_path / "forged.npz")
    assert str(error.value).startswith(f"{tmp_path / 'forged.npz'} is not a saved run: {message}")


def test_counts_of_features_that_the_model_has_not_are_refused(saved: Path, tmp_path: Path) -> None:
    arrays, meta = read_npz(saved)
    write_npz(tmp_path / "forged.npz", arrays, {**meta, "features": ["a", "b"], "words": None})
    with pytest.raises(pkd.ModelError, match=r"counts have the feature 'a', which cannot occur"):
        pkd.Run.load(tmp_path / "forged.npz", Shop(3))


def test_values_that_are_not_finite_are_refused(saved: Path, tmp_path: Path) -> None:
    arrays, meta = read_npz(saved)
    arrays["upper_values"][3] = np.nan
    write_npz(tmp_path / "f.npz", arrays, meta)
    with pytest.raises(pkd.ModelError, match="upper_values: expected finite numbers"):
        pkd.Run.load(tmp_path / "f.npz")


def test_arrays_of_another_type_are_refused(saved: Path, tmp_path: Path) -> None:
    arrays, meta = read_npz(saved)
    write_npz(tmp_path / "f.npz", {**arrays, "returns": arrays["returns"].astype(str)}, meta)
    with pytest.raises(pkd.ModelError, match=r"returns: expected the type float64, found <U"):
        pkd.Run.load(tmp_path / "f.npz")


def a_run(values: list[float], optimum: float) -> pkd.Run:
    zeros = np.zeros(len(values))
    config = {"optimism": pkd.Greedy().to_config(), "episodes": len(values)}
    return pkd.Run(zeros, np.array(values), zeros, np.array([0]), optimum, {}, config, 0.0)


@pytest.mark.parametrize(
    ("values", "optimum", "baseline", "expected"),
    [
        ([-9.0, -5.0, -4.0], -4.0, None, 3),  # 95% of the gain from -9 is -4.25
        ([-9.0, -4.25, -4.25], -4.0, None, 2),
        ([-9.0, -4.0, -8.0], -4.0, None, None),  # it must stay there
        ([-4.0, -4.0], -4.0, None, 1),  # the first policy is optimal
        ([0.0, 3.8, 3.8], 4.0, None, 2),
        ([3.0, 3.8, 3.8], 4.0, None, None),  # from 3 the goal is 3.95
        ([3.0, 3.8, 3.8], 4.0, 0.0, 2),
    ],
)
def test_the_episodes_to_a_share_of_the_gain(
    values: list[float], optimum: float, baseline: float | None, expected: int | None
) -> None:
    assert a_run(values, optimum).episodes_to(0.95, baseline) == expected


def test_a_feature_that_cannot_be_written_leaves_no_file(tmp_path: Path) -> None:
    run = attrs.evolve(a_run([1.0], 1.0), counts={object(): {}})
    with pytest.raises(pkd.ModelError, match="cannot be written to a file"):
        run.save(tmp_path / "run.npz")
    assert list(tmp_path.iterdir()) == []
