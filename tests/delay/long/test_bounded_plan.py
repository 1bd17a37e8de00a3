"""The plan between two bounds: asked, exported, saved, refused."""

import numpy as np
import pytest

import pkd
import pkd_delay
from pkd import ModelError, PolicyTable
from pkd_delay import Delayed, DelayedMDP, Lags
from pkd_delay.envs.drive import play
from pkd_delay.long.plan import BoundedPlan
from pkd_delay.models.autoscaler import autoscaler, spot_autoscaler
from pkd_delay.models.tables import grid, random_mdp, two_state_chain


@pytest.fixture(scope="module")
def late():
    return DelayedMDP(grid(3, 3, 8, 0.3), Lags((0.4, 0.3, 0.3)))


@pytest.fixture(scope="module")
def plan(late):
    return pkd_delay.plan(late, gap=1e-9, delta=0)


def test_a_chain_under_a_delay_of_30_has_its_closed_form():
    late = DelayedMDP.constant(two_state_chain(horizon=40), 30)
    plan = pkd_delay.plan(late, gap=1e-9)
    value = sum((1 + 0.8 ** min(t, 30)) / 2 for t in range(40))
    assert plan.low == pytest.approx(value, abs=1e-9)
    assert plan.high == pytest.approx(value, abs=1e-9)
    assert plan.action(40, 1, queue=(0,) * 30, waited=0) == 1


def test_the_policy_is_a_policy_of_the_augmented_model(late, plan):
    """The engine evaluates it in every augmented state, with its own arithmetic."""
    assert pkd.evaluate(late.known(), late.law(), plan.act) == pytest.approx(plan.low, abs=1e-7)
    assert plan.evaluate() == pytest.approx(plan.low, abs=1e-7)
    assert plan.value == plan.low


@pytest.mark.parametrize("make", [autoscaler, spot_autoscaler])
def test_a_base_with_y_and_chance_states_plans_and_plays(make):
    late = Delayed(make(horizon=5).problem if make is autoscaler else make(horizon=5), {1: 1.0}, 1)
    if isinstance(late.problem, Delayed):
        late = late.problem
    exact = pkd_delay.plan(late)
    plan = pkd_delay.plan(late, gap=1e-9, delta=0)
    assert plan.low - 1e-9 <= exact.value <= plan.high + 1e-9
    assert plan.gap < 1e-5
    assert pkd.evaluate(late.known(), late.law(), plan.act) == pytest.approx(exact.value, rel=1e-5)


def test_rows_are_what_the_policy_meets(late, plan):
    """Following the policy in every row, from the first one on, meets no other state."""
    rows = {(r.step, *r.state.values()): r.action for r in plan.rows()}
    for episode in plan.simulate(300, seed=1):
        for h in range(1, 9):
            t = max(t for t in range(1, h + 1) if episode.shown_at(t) <= h)
            waited = h - episode.shown_at(t)
            key = (h, episode.states[t - 1], episode.actions[t - 1 : h - 1], waited)
            assert rows[key] == episode.actions[h - 1]


def test_files_act_as_the_plan_does(late, plan, tmp_path):
    plan.to_json(tmp_path / "p.json")
    plan.to_csv(tmp_path / "p.csv")
    plan.save(tmp_path / "p.npz")
    loaded = BoundedPlan.load(tmp_path / "p.npz", late)
    assert (loaded.low, loaded.high, loaded.delta) == (plan.low, plan.high, plan.delta)
    tables = [PolicyTable.read(tmp_path / f"p.{end}", late.known()) for end in ("json", "csv")]
    for row in plan.rows():
        h, (state, queue, waited) = row.step, row.state.values()
        assert loaded.action(h, state, queue, waited) == row.action
        assert loaded.values(h, state, queue, waited) == plan.values(h, state, queue, waited)
        x, y = late.known().place(state, None, queue, waited)
        assert [table.action(h, x, y) for table in tables] == [row.action] * 2
    for table in tables:
        value = pkd.evaluate(late.known(), late.law(), _or_first(table, late.known()))
        assert value == pytest.approx(plan.low, abs=1e-7)
    assert plan.table(2).splitlines()[0].split() == ["state", "queue", "waited", "action", "value"]


def _or_first(table, model):
    """The policy of a file; any action in states that it does not meet."""

    def act(h, x, y):
        try:
            return table.action(h, x, y)
        except ModelError:
            return model.actions(x, y)[0]

    return act


def test_a_plan_of_another_problem_is_refused(plan, tmp_path):
    plan.save(tmp_path / "p.npz")
    with pytest.raises(ModelError, match="another problem"):
        BoundedPlan.load(tmp_path / "p.npz", DelayedMDP(grid(3, 3, 8, 0.2), Lags((0.4, 0.3, 0.3))))
    pkd_delay.plan(DelayedMDP.constant(two_state_chain(), 1)).save(tmp_path / "q.npz")
    with pytest.raises(ModelError, match="is not a plan with bounds"):
        BoundedPlan.load(tmp_path / "q.npz", DelayedMDP.constant(two_state_chain(), 1))


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        ((0, 0), "h is 0; expected a whole number from 1 to 8"),
        ((3, 99), "no decision state"),
        ((3, 0, (7,), 1), "7 is no action"),
        ((2, 0, (0, 0), 1), "cannot be done before step 2"),
        ((8, 0, (0,) * 7, 7), "cannot occur"),
    ],
)
def test_what_cannot_be_asked_is_refused(plan, ask, words):
    with pytest.raises(ModelError, match=words):
        plan.action(*ask)


def test_laws_that_depend_on_state_or_action_are_refused():
    laws = {(s, a): {s % 2: 1.0} for s in range(2) for a in range(2)}
    late = DelayedMDP(two_state_chain(), laws, 1)
    with pytest.raises(ModelError, match="depends on state and action"):
        pkd_delay.plan(late, gap=0.01)


def test_faults_of_the_call_are_named_together():
    late = DelayedMDP.constant(two_state_chain(), 1)
    with pytest.raises(ModelError) as error:
        pkd_delay.plan(late, gap=-1, seconds=0, memory=-1, delta=2)
    assert len(error.value.findings) == 4
    with pytest.raises(ModelError, match="seconds without gap"):
        pkd_delay.plan(late, seconds=3)


def test_an_exact_plan_that_does_not_fit_says_how_to_ask_for_bounds():
    late = DelayedMDP.constant(random_mdp(20, 4, 40), 24)
    with pytest.raises(ModelError, match=r"gap=0\.01"):
        pkd_delay.plan(late)


def test_a_late_environment_is_played_by_the_plan():
    late = DelayedMDP.constant(grid(4, 4, 20, 0.1), 12)
    plan = pkd_delay.plan(late, gap=0.02, seconds=10)
    paid = play(pkd_delay.LateEnv(late), plan, 300)
    error = paid.std() / np.sqrt(len(paid))
    assert plan.low - 4 * error < paid.mean() < plan.high + 4 * error
    env = pkd_delay.LateEnv(late)
    observation, _ = env.reset(seed=0)
    assert env.code_of(plan.action(1, 0)) == env.ask(plan, observation)


def test_a_policy_is_evaluated_where_a_state_is_allowed_and_never_occurs():
    """The model of a table allows every successor; here the law never leads to state 0."""
    stay = np.zeros((3, 2, 3))
    stay[:, 0, 1] = stay[:, 1, 2] = 1.0
    table = pkd.TabularMDP(stay, [[9.0, 9.0], [1.0, 0.0], [0.0, 2.0]], 4, start=1)
    delayed = pkd_delay.DelayedMDP.constant(table, 2)
    plan = pkd_delay.plan(delayed, gap=1e-9)
    assert pkd.evaluate(delayed.known(), delayed.law(), plan.act) == pytest.approx(plan.low)
    assert plan.low == pytest.approx(pkd_delay.plan(delayed).value)
