"""The plan in the words of delayed MDPs: asked, printed, exported, saved and simulated."""

import csv
import math

import numpy as np
import pytest

import pkd
import pkd_delay
from pkd_delay import DelayedMDP, SavedPolicy, files
from pkd_delay.autoscaler import autoscaler
from pkd_delay.problems import two_state_chain


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
    plan.to_csv(tmp_path / "policy.csv")
    with (tmp_path / "policy.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == len(list(plan.rules())) == 1 + 2 + 4 + 2 * 4
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
    pkd_delay.plan(DelayedMDP.constant(named, 1)).to_csv(tmp_path / "policy.csv")
    with (tmp_path / "policy.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert {row["state"] for row in rows} == {"'=1+2"}
    assert {row["queue"] for row in rows} == {"-", "-1", "'+y"}


def test_a_saved_policy_acts_like_the_plan(plan, tmp_path):
    plan.save(tmp_path / "policy.npz")
    saved = SavedPolicy.load(tmp_path / "policy.npz")
    assert list(saved.rules.values()) == list(plan.rules())
    assert all(saved.action(*rule[:4]) == rule.action for rule in plan.rules())


def test_a_saved_policy_without_delay_has_empty_queues(tmp_path):
    plan = pkd_delay.plan(DelayedMDP.constant(two_state_chain(horizon=3), 0))
    plan.save(tmp_path / "policy.npz")
    assert SavedPolicy.load(tmp_path / "policy.npz").action(3, 1) == 1


def test_a_saved_policy_refuses_what_cannot_occur(plan, tmp_path):
    plan.save(tmp_path / "policy.npz")
    with pytest.raises(
        pkd.ModelError,
        match=r"the policy has no rule for step 1, state 1, queue \(\), waited 0; it cannot occur",
    ):
        SavedPolicy.load(tmp_path / "policy.npz").action(1, 1)


@pytest.mark.parametrize("content", [b"not an archive", b""])
def test_a_file_that_is_no_policy_is_refused(content, tmp_path):
    (tmp_path / "other.npz").write_bytes(content)
    with pytest.raises(
        pkd.ModelError,
        match=r"is not a saved policy; expected an .npz file that DelayedPlan.save wrote",
    ):
        SavedPolicy.load(tmp_path / "other.npz")


def test_a_missing_file_is_refused(tmp_path):
    with pytest.raises(pkd.ModelError, match="is not a saved policy"):
        SavedPolicy.load(tmp_path / "absent.npz")


# NumPy leaves a file open whose zip directory is damaged, if it has opened it itself.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_damaged_file_is_refused_wherever_the_damage_is(plan, tmp_path):
    """Every file that lacks a part, or has one byte changed, is read as it was or refused."""
    plan.save(tmp_path / "policy.npz")
    whole, rules = (tmp_path / "policy.npz").read_bytes(), list(plan.rules())
    rng, refused = np.random.default_rng(0), 0
    for _ in range(150):
        data, at = bytearray(whole), int(rng.integers(len(whole)))
        data[at] ^= int(rng.integers(1, 256))
        damaged = bytes(data[:at] if rng.random() < 0.3 else data)
        (tmp_path / "damaged.npz").write_bytes(damaged)
        try:
            assert list(SavedPolicy.load(tmp_path / "damaged.npz").rules.values()) == rules
        except pkd.ModelError:
            refused += 1
    assert refused > 75


def forge(path, plan, **changes):
    """A saved policy with some arrays or sizes replaced."""
    plan.save(path)
    arrays, meta = files.read_npz(path)
    sizes = {name: changes.pop(name) for name in list(changes) if name in meta}
    files.write_npz(path, arrays | changes, meta | sizes)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda a: {"action": a["action"] - 1}, "an? action outside 0..1"),
        (lambda a: {"action": a["action"] + 2}, "an? action outside 0..1"),
        (lambda a: {"state": a["state"] - 1}, "a state outside 0..1"),
        (lambda a: {"step": a["step"] - 1}, "a step outside 1..4"),
        (lambda a: {"step": a["step"] + 4}, "a step outside 1..4"),
        (lambda a: {"waited": a["waited"] - 1}, "steps waited that is negative"),
        (lambda a: {"waited": a["waited"] + 3}, "longer than the queue"),
        (lambda a: {"queue": a["queue"] + 2}, "a queue with an entry outside 0..1"),
        (lambda a: {"queue": a["queue"][:, ::-1]}, "a queue with an entry outside 0..1"),
        (lambda a: {"queue": np.minimum(a["queue"], 7 * a["queue"])}, "an entry outside 0..1"),
        (lambda a: {"step": np.ones_like(a["step"])}, "queue longer than the steps before it"),
        (lambda a: {"queue": a["queue"][0]}, r"queue has shape \(2,\)"),
        (lambda a: {"value": a["value"] * np.nan}, "a value that is not finite"),
        (lambda a: {"value": a["value"][:-1]}, r"value has shape \(14,\)"),
        (lambda a: {"action": a["action"].astype(float)}, "action has shape .* and type float64"),
        (lambda a: {name: rows[[0, 0]] for name, rows in a.items()}, "the same state"),
        (lambda a: {"states": 1}, "a state outside 0..0"),
        (lambda a: {"horizon": 0}, "horizon is 0; expected a positive whole number"),
        (lambda a: {"kind": "a run"}, "it does not say that it is a policy of a delayed MDP"),
    ],
)
def test_a_forged_policy_is_refused_with_what_is_wrong_in_it(change, message, plan, tmp_path):
    plan.save(tmp_path / "policy.npz")
    arrays, _ = files.read_npz(tmp_path / "policy.npz")
    forge(tmp_path / "forged.npz", plan, **change(arrays))
    with pytest.raises(pkd.ModelError, match=f"forged.npz is not a saved policy.*{message}"):
        SavedPolicy.load(tmp_path / "forged.npz")


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


def test_a_composed_plan_is_asked_with_the_state_of_its_base(tmp_path):
    plan = pkd_delay.plan(autoscaler(horizon=4, max_delay=1))
    assert plan.action(1, ("idle", (1, (0,)))) in (-1, 0, 1)
    assert "idle | 1 ready, 0 starting" in plan.table(1)
    with pytest.raises(pkd.ModelError, match=r"save\(\) needs states and actions that are numbers"):
        plan.save(tmp_path / "policy.npz")
