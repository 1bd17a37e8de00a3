"""The plan in the words of delayed MDPs: asked, printed, exported, saved and simulated."""

import csv
import math

import numpy as np
import pytest

import pkd
import pkd_delay
from pkd import PolicyTable
from pkd.results.policies import read_policy
from pkd_delay import DelayedMDP
from pkd_delay.models.autoscaler import autoscaler
from pkd_delay.models.tables import two_state_chain


@pytest.fixture(scope="module")
def plan():
    return pkd_delay.plan(DelayedMDP.constant(two_state_chain(horizon=4), 2))


def test_the_plan_names_the_likelier_state(plan):
    """The chain stays with .9: the last shown state is the best guess, whatever was done since."""
    assert plan.action(1, 0) == 0
    assert plan.action(3, 0, queue=(1, 0), waited=2) == 0
    assert plan.action(4, 1, queue=(1, 1), waited=0) == 1


def test_values_tell_how_much_worse_the_other_action_is(plan):
    """At step 4 the state shown is two steps old: a guess is right with (1 + .8^2) / 2 = .82.

    Pending rewards are common to both.
    """
    values = plan.values(4, 1, queue=(1, 1), waited=0)
    assert values[1] - values[0] == pytest.approx(0.82 - 0.18, abs=1e-12)


def test_a_state_that_cannot_occur_is_refused(plan):
    with pytest.raises(pkd.ModelError, match="cannot occur at step 1"):
        plan.action(1, 0, queue=(1,), waited=1)


def test_the_exact_value_of_an_optimal_plan_is_its_value(plan):
    assert plan.evaluate() == pytest.approx(plan.value, abs=1e-12)
    assert plan.value == pytest.approx(1 + 0.9 + 0.82 + 0.82, abs=1e-10)


def test_an_optimistic_plan_is_evaluated_under_the_truth():
    delayed = DelayedMDP.constant(two_state_chain(horizon=4), 2)
    plan = pkd_delay.optimistic_plan(delayed, delayed.mdp.transitions * 100, episodes=10)
    assert plan.value == 4.0
    assert plan.evaluate() <= 1 + 0.9 + 0.82 + 0.82 + 1e-12


def test_simulated_episodes_earn_the_value(plan):
    returns = np.array([episode.total for episode in plan.simulate(3000, seed=1)])
    assert returns.mean() == pytest.approx(
        plan.value, abs=4 * returns.std() / math.sqrt(len(returns))
    )


def test_the_table_shows_labels(plan):
    lines = [line.split() for line in plan.table(2).splitlines()]
    assert lines[0] == ["state", "queue", "waited", "action", "value"]
    assert [line[:4] for line in lines[1:]] == [
        ["low", "low", "1", "low"],
        ["low", "high", "1", "low"],
    ]


def test_the_csv_holds_every_rule_with_labels(plan, tmp_path):
    plan.to_csv(tmp_path / "policy.csv", values=True, every_state=True)
    with (tmp_path / "policy.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == len(list(plan.rows())) == 1 + 2 + 4 + 2 * 4
    assert rows[0] | {"value": "", "Q(low)": "", "Q(high)": ""} == {
        "step": "1",
        "state": "low",
        "queue": "-",
        "waited": "0",
        "action": "low",
        "value": "",
        "Q(low)": "",
        "Q(high)": "",
    }
    assert float(rows[0]["value"]) == pytest.approx(plan.value, abs=1e-8)
    assert rows[-1]["queue"] == "high high"


def test_a_label_that_looks_like_a_formula_is_written_as_text(tmp_path):
    chain = two_state_chain(horizon=2)
    named = pkd.TabularMDP(
        chain.transitions, chain.rewards, 2, state_names=["=1+2", "@x"], action_names=["-1", "+y"]
    )
    pkd_delay.plan(DelayedMDP.constant(named, 1)).to_csv(tmp_path / "policy.csv", every_state=True)
    with (tmp_path / "policy.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert {row["state"] for row in rows} == {"'=1+2"}
    assert {row["queue"] for row in rows} == {"-", "-1", "'+y"}


@pytest.mark.parametrize("form", ["csv", "json", "npz"])
def test_every_file_of_a_plan_is_a_policy_of_the_delayed_model(form, plan, tmp_path):
    path = tmp_path / f"policy.{form}"
    whole = {} if form == "npz" else {"every_state": True}
    {"csv": plan.to_csv, "json": plan.to_json, "npz": plan.save}[form](path, **whole)
    policy = read_policy(path, plan.model)
    act = policy.action if form == "npz" else policy
    for row in plan.rows():
        shown, queue, waited = row.state.values()
        assert act(row.step, *plan.model.place(shown, None, queue, waited)) == row.action


def test_a_json_file_needs_no_model_and_refuses_what_cannot_occur(plan, tmp_path):
    plan.to_json(tmp_path / "policy.json", every_state=True)
    saved = PolicyTable.read(tmp_path / "policy.json")
    for row in plan.rows():
        assert saved.action(row.step, *row.state.values()) == row.action
    with pytest.raises(pkd.ModelError, match=r"no row for step 1 in \(state=1, queue=\(\)"):
        saved.action(1, 1, (), 0)


def test_files_of_a_composed_plan_are_policies_of_its_model(tmp_path):
    plan = pkd_delay.plan(autoscaler(horizon=4, max_delay=1))
    for form in ("csv", "json"):
        getattr(plan, f"to_{form}")(tmp_path / f"policy.{form}", every_state=True)
        policy = read_policy(tmp_path / f"policy.{form}", plan.model)
        for row in plan.core.rows():
            assert policy(row.step, *row.state.values()) == row.action


@pytest.mark.parametrize("form", ["csv", "json"])
def test_a_stationary_policy_of_late_states_acts_at_every_step(form, tmp_path):
    late = DelayedMDP.constant(two_state_chain(horizon=30), 2)
    keep = pkd_delay.plan(late).stationary()
    path = tmp_path / f"policy.{form}"
    getattr(keep, f"to_{form}")(path)
    policy = read_policy(path, keep.plan.model)
    for (x, y), (_, action) in keep.core._rules.items():
        assert policy(7, x, y) == policy(1_000_000, x, y) == action
        base_x, _, queue, waited = keep.plan.model.read(x, y)
        assert keep.action(base_x, queue or (), waited) == action
    assert "step" not in path.read_text()


@pytest.mark.parametrize("write", ["save", "to_csv"])
def test_a_write_that_fails_leaves_the_old_file(write, plan, tmp_path, monkeypatch):
    path = tmp_path / "policy"
    getattr(plan, write)(path)
    before = path.read_bytes()
    monkeypatch.setattr("os.fsync", _fail)
    with pytest.raises(OSError, match="disk full"):
        getattr(plan, write)(path)
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["policy"]


def _fail(*_):
    raise OSError("disk full")


def test_a_composed_plan_is_asked_with_the_state_of_its_base():
    plan = pkd_delay.plan(autoscaler(horizon=4, max_delay=1))
    assert plan.action(1, ("idle", (1, (0,)))) in (-1, 0, 1)
    assert "idle | 1 ready, 0 starting" in plan.table(1)


def test_a_place_that_cannot_occur_is_refused_in_the_words_of_the_caller() -> None:
    plan = pkd_delay.plan(DelayedMDP.constant(two_state_chain(), 8))
    for place, said in [
        (
            (10, 0, (0,) * 8, 8),
            "state 0 with a queue of 8 cannot have waited 8 at step 10; .* waited 0",
        ),
        ((10, 0, (0,) * 7, 0), "a queue of 7 cannot occur at step 10; expected a queue of 8"),
        ((1, 0, (0,), 0), "a queue of 1 cannot occur at step 1; expected a queue of 0"),
        ((10, 9, (0,) * 8, 0), "state 9 cannot be the last one shown at step 10; expected 0 or 1"),
        ((10, 0, ("up",) * 8, 0), r"cannot occur at step 10; expected actions of \[0, 1\]"),
        ((11, 0, (), 0), "11"),
    ]:
        for ask in (plan.action, plan.values):
            with pytest.raises(pkd.ModelError, match=said):
                ask(*place)
    late = pkd_delay.plan(pkd_delay.Delayed.constant(two_state_chain(), 1))
    with pytest.raises(pkd.ModelError, match=r"state is 0; expected the \(x, y\) of the base"):
        late.action(1, 0)
    assert late.action(1, (0, None)) == 0
