"""Results as pandas frames hold the numbers of the objects they come from."""

import sys

import numpy as np
import pytest

import pkd
import pkd_delay

pd = pytest.importorskip("pandas")


def test_a_run_has_a_row_for_each_episode():
    run = pkd.learn("gambler", 7, seed=3)
    frame = run.to_frame()
    assert frame["episode"].tolist() == list(range(1, 8))
    assert frame["regret"].tolist() == run.regret.tolist()
    assert frame["return"].tolist() == run.returns.tolist()


def test_the_frame_of_a_plan_says_what_its_csv_says(tmp_path):
    plan = pkd.plan(pkd.TabularMDP.from_gymnasium("FrozenLake-v1", 12))
    frame = plan.to_frame()
    written = pd.read_csv(tmp_path / "p.csv") if plan.to_csv(tmp_path / "p.csv") else None
    assert len(frame) == len(written)
    for name in ("step", "until", "action"):
        assert frame[name].tolist() == written[name].tolist()
    for row in frame.itertuples():
        assert plan.action(row.step, row.x, None) == row.action


def test_a_state_that_is_a_record_has_a_column_for_each_field():
    frame = pkd.plan("inventory").to_frame()
    parts = [name for name in frame if name.startswith("y")]
    assert len(parts) > 1
    assert frame[parts].drop_duplicates().shape[0] > 5


def test_a_plan_with_values_has_the_value_of_every_action():
    plan = pkd.plan("gambler")
    frame = plan.to_frame(values=True, every_state=True)
    line = frame[frame["step"] == 1].iloc[0]
    values = plan.values(1, line["x"], line["y"])
    assert line["value"] == max(values.values())
    assert {a: line[f"Q({a})"] for a in values} == values


def test_a_delayed_plan_and_its_file_have_the_same_rows(tmp_path):
    plan = pkd_delay.plan(
        pkd_delay.DelayedMDP.constant(
            pkd.TabularMDP(
                [[[0.9, 0.1], [0.9, 0.1]], [[0.1, 0.9], [0.1, 0.9]]], [[1, 0], [0, 1]], 4
            ),
            1,
        )
    )
    plan.to_json(tmp_path / "policy.json")
    frame = pkd.PolicyTable.read(tmp_path / "policy.json").to_frame()
    key = ["step", "state", "queue", "waited"]
    own = plan.to_frame()
    assert set(key) <= set(frame.columns)
    assert frame.sort_values(key)[["step", "until", "action"]].values.tolist() == (
        own.sort_values(key)[["step", "until", "action"]].values.tolist()
    )


def test_a_policy_from_csv_has_the_words_of_the_file(tmp_path):
    plan = pkd.plan("gambler")
    plan.to_csv(tmp_path / "policy.csv")
    frame = pkd.PolicyTable.read(tmp_path / "policy.csv", plan.compiled.model).to_frame()
    assert len(frame) == len(pd.read_csv(tmp_path / "policy.csv"))


def test_results_and_certificates_become_frames():
    results = pkd.experiment("gambler", {"a": "mvp", "b": "greedy"}, 20, seeds=2)
    assert results.to_frame()["agent"].tolist() == ["a", "a", "b", "b"]
    with pytest.warns(DeprecationWarning, match="to_frame"):
        assert results.frame().equals(results.to_frame())
    certificate = pkd.certify("gambler", {"coin": {"heads": 40, "tails": 60}})
    frame = certificate.to_frame()
    assert frame[["feature", "samples"]].values.tolist() == [["coin", 100.0]]
    assert frame["radius"][0] == certificate.evidence[0].radius


def test_without_pandas_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(pkd.ModelError, match=r"pkd\[pandas\]"):
        pkd.learn("gambler", 2).to_frame()


def test_a_table_is_estimated_from_a_frame_of_trajectories():
    seen = [[("a", "go", 1.0, "b"), ("b", "go", 0.0, "a")], [("a", "go", 0.0, "a")]]
    rows = [(k, *move) for k, episode in enumerate(seen) for move in episode]
    frame = pd.DataFrame(rows, columns=["episode", "state", "action", "reward", "next_state"])
    one = pkd.TabularMDP.from_trajectories(seen)
    other = pkd.TabularMDP.from_trajectories(frame)
    assert one.law() == other.law()
    np.testing.assert_array_equal(one.rewards, other.rewards)
    with pytest.raises(pkd.ModelError, match="no column next_state"):
        pkd.TabularMDP.from_trajectories(frame.drop(columns="next_state"))
