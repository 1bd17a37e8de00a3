"""DelayedMDP and Delayed: what they hold, what they refuse, and that the models made from them hold
no truth.
"""

import attrs
import numpy as np
import pytest

import pkd
import pkd_delay
from pkd_delay import Delayed, DelayedMDP
from pkd_delay.unknown import Arrival
from tests.delay.strategies import TableBase
from tests.kiosk import read_table

MDP = pkd.TabularMDP(np.full((2, 2, 2), 0.5), np.eye(2), 3)
BASE = TableBase(np.random.default_rng(0), 2, 2, ends=False, chance_start=False)
EXPECTED = " (expected {Delta: probability} with Delta >= -1, or a list)"
LAW = {-1: 0.2, 0: 0.5, 2: 0.3}


def test_one_law_serves_all_states_and_actions():
    delayed = DelayedMDP(MDP, LAW, 2)
    assert delayed.inter_arrival.shape == (2, 2, 4)
    assert delayed.inter_arrival[1, 0] == pytest.approx([0.2, 0.5, 0.0, 0.3])
    assert delayed.longest == 2


def test_laws_may_differ_between_states_and_actions():
    delayed = DelayedMDP(MDP, {(s, a): {s + a: 1.0} for s in range(2) for a in range(2)}, 2)
    assert delayed.inter_arrival[1, 1].tolist() == [0.0, 0.0, 0.0, 1.0]
    assert delayed.inter_arrival[0, 0].tolist() == [0.0, 1.0, 0.0, 0.0]


def test_an_array_keeps_its_largest_inter_arrival_time_even_if_it_never_happens():
    assert DelayedMDP(MDP, np.tile([0.5, 0.5, 0.0, 0.0], (2, 2, 1)), 2).longest == 2


def test_a_constant_delay_is_an_inter_arrival_time_that_the_clip_holds():
    delayed = DelayedMDP.constant(MDP, 2)
    assert (delayed.max_delay, delayed.longest) == (2, 2)
    assert delayed.inter_arrival[0, 0].tolist() == [0.0, 0.0, 0.0, 1.0]


def change(**arguments):
    return DelayedMDP(**{"mdp": MDP, "inter_arrival": LAW, "max_delay": 2} | arguments)


BAD = """\
change(inter_arrival={0: 0.5})
    inter_arrival sums to 0.5, not 1
change(inter_arrival={-2: 1.0})
    inter_arrival: the number is -2; expected a whole number >= -1
change(max_delay=-1)
    max_delay is -1; expected a whole number >= 0
change(max_delay=1.5)
    max_delay is 1.5; expected a whole number >= 0
change(inter_arrival=np.ones((2, 3, 3)) / 3)
    inter_arrival has shape (2, 3, 3); expected (S, A, W + 2) = (2, 2, at least 2): Pr(Delta = -1),
        Pr(Delta = 0), ..., Pr(Delta = W)
change(inter_arrival={(0, 0): {0: 1.0}, (0, 1): {0: 1.0}, (1, 1): {0: 1.0}})
    inter_arrival[1, 0] is None
change(inter_arrival={(s, a): {0: 1.0} for s in range(3) for a in range(2)})
    inter_arrival has a law for (2, 0); expected (s, a) with s < 2 and a < 2
    inter_arrival has a law for (2, 1); expected (s, a) with s < 2 and a < 2
change(branching=1)
    branching=1, but transitions[0, 0] has 2 successors; give at least 2, or None
change(inter_arrival={0: float('nan')}, max_delay=-3, branching=1)
    max_delay is -3; expected a whole number >= 0
    inter_arrival: a probability is nan; expected a number >= 0
    branching=1, but transitions[0, 0] has 2 successors; give at least 2, or None
"""


@pytest.mark.parametrize(("call", "expected"), read_table(BAD))
def test_bad_input_is_refused_with_all_findings_at_once(call, expected):
    with pytest.raises(pkd.ModelError) as error:
        eval(call)
    assert [text.removesuffix(EXPECTED) for text in error.value.findings] == expected


def test_many_bad_rows_are_counted_and_not_all_listed():
    with pytest.raises(pkd.ModelError) as error:
        DelayedMDP(
            pkd.TabularMDP(np.ones((9, 1, 9)) / 9, np.ones((9, 1)), 2), np.zeros((9, 1, 2)), 1
        )
    assert error.value.findings[0].startswith("inter_arrival[0, 0] sums to 0, not 1")
    assert error.value.findings[-1] == "... and 4 more"


def test_a_plan_that_no_memory_can_hold_is_refused_before_any_is_taken():
    delayed = DelayedMDP.constant(pkd.TabularMDP(MDP.transitions, MDP.rewards, 200), 150)
    with pytest.raises(
        pkd.ModelError,
        match=r"KnownDelay has \S+ states; a plan of 200 steps needs \S+ GB; this machine has",
    ):
        pkd_delay.plan(delayed)


class Wrong:
    def model(self):
        return "table"

    def law(self):
        return {}


@pytest.mark.parametrize(
    ("make", "finding"),
    [
        (
            lambda: DelayedMDP(BASE, LAW, 1),
            r"expected a pkd.TabularMDP \(for any other model use pkd_delay.Delayed\)",
        ),
        (lambda: DelayedMDP.constant(MDP, -1), "delay is -1; expected a whole number >= 0"),
        (
            lambda: pkd_delay.learn(DelayedMDP(MDP, LAW, 1), 10, delay_law="guess"),
            "delay_law is 'guess'; expected one of known, unknown",
        ),
        (lambda: Delayed(MDP.model(), LAW, 1), "a model without a law"),
        (lambda: Delayed(7, LAW, 1), r"expected an object with .model\(\) and .law\(\)"),
        (lambda: Delayed(Wrong(), LAW, 1), r"model\(\) is str; expected a pkd.Partially"),
        (
            lambda: pkd_delay.optimistic_plan(
                DelayedMDP(MDP, LAW, 2, delay_law="unknown"), np.ones((2, 2, 2)), episodes=10
            ),
            'delay_law of the problem is "unknown"',
        ),
    ],
)
def test_what_makes_no_delayed_problem_is_refused_at_once(make, finding):
    with pytest.raises(pkd.ModelError, match=finding):
        make()


def test_sizes_are_those_of_the_papers_definitions():
    """(S, A, H, D, W) = (5, 2, 10, 3, 2): 15 queues, |S_aug| = 4125, |Y| = 825 and 165, |Z| = 15
    and 150.
    """
    sizes = DelayedMDP(
        pkd.TabularMDP(np.full((5, 2, 5), 0.2), np.ones((5, 2)), 10), {0: 0.5, 2: 0.5}, 3
    ).sizes
    assert (sizes.queues, sizes.augmented_states) == (15, 4125)
    assert (sizes.y, sizes.z) == ((825, 165), (15, 150))


def test_erratum_the_number_of_y_needs_all_counters():
    """(A, D, W, H) = (2, 1, 1, 4): 3 queues x (W + 3 = 4) counters x 5 clock values = 60.

    W + 2 counters would give 45.
    """
    assert (
        DelayedMDP(
            pkd.TabularMDP(np.full((2, 2, 2), 0.5), np.eye(2), 4), {0: 0.5, 1: 0.5}, 1
        ).sizes.y[0]
        == 60
    )


def reachable_values(thing, seen):
    """Every array and number that an object holds, through attributes and containers."""
    if id(thing) in seen:
        return
    seen[id(thing)] = thing
    if isinstance(thing, np.ndarray):
        yield thing
    elif isinstance(thing, float):
        yield np.array(thing)
    elif isinstance(thing, dict):
        for part in thing.values():
            yield from reachable_values(part, seen)
    elif isinstance(thing, (list, tuple, set)):
        for part in thing:
            yield from reachable_values(part, seen)
    elif getattr(thing, "__closure__", None):
        for cell in thing.__closure__:
            yield from reachable_values(cell.cell_contents, seen)
    elif attrs.has(type(thing)):
        for field in attrs.fields(type(thing)):
            yield from reachable_values(getattr(thing, field.name), seen)
    elif hasattr(thing, "__dict__") and not isinstance(thing, type):
        yield from reachable_values(vars(thing), seen)


def test_the_models_hold_no_transition_law_and_the_second_no_delay_law():
    """The secret numbers .37/.63 of P and .41/.59 of the delay must not be found in what a learner
    is given.
    """
    mdp = pkd.TabularMDP(np.tile([0.37, 0.63], (2, 2, 1)), np.eye(2), 3)
    delayed = DelayedMDP(mdp, {0: 0.41, 1: 0.59}, 1)

    def holds(model, number):
        return any(np.any(np.isclose(values, number)) for values in reachable_values(model, {}))

    assert not holds(delayed.known(), 0.37)
    assert not holds(delayed.unknown(), 0.37)
    assert not holds(delayed.unknown(), 0.41)
    assert holds(delayed, 0.37)
    assert holds(delayed.known(), 0.41)


def test_a_problem_chooses_its_model_by_what_is_known():
    problem = Delayed(MDP, LAW, 2)
    assert isinstance(problem.model(), pkd_delay.KnownDelay)
    assert isinstance(Delayed(MDP, LAW, 2, delay_law="unknown").model(), pkd_delay.UnknownDelay)
    assert problem.unknown().longest == 2


class TestTheProblem:
    """What is given for the base is looked at when it is given."""

    def test_a_pair_a_name_and_an_object_are_problems(self):
        pair, name, thing = (MDP.model(), MDP.law()), "two_state_chain", MDP
        values = [pkd_delay.plan(Delayed(given, {1: 1.0}, 1)).value for given in (pair, thing)]
        assert values[0] == pytest.approx(values[1], abs=1e-12)
        assert pkd_delay.plan(Delayed(name, {1: 1.0}, 1)).value == pytest.approx(9.1, abs=1e-10)

    def test_every_fault_of_the_delay_is_named_at_once(self):
        with pytest.raises(pkd.ModelError) as error:
            Delayed(MDP, {0: 0.5}, -1, delay_law="guess")
        assert list(error.value.findings) == [
            "max_delay is -1; expected a whole number >= 0",
            "delay_law is 'guess'; expected one of known, unknown",
            "inter_arrival sums to 0.5, not 1" + EXPECTED,
        ]

    def test_a_table_is_a_delayed_problem_like_any_other(self):
        table, general = DelayedMDP(MDP, LAW, 2), Delayed(MDP, LAW, 2)
        assert isinstance(table, Delayed)
        assert pkd_delay.plan(table).value == pytest.approx(pkd_delay.plan(general).value)
        assert table.longest == general.longest == 2

    def test_model_and_law_of_the_base_are_asked_for_once(self):
        asked = []

        class Counted:
            def model(self):
                asked.append("model")
                return MDP.model()

            def law(self):
                asked.append("law")
                return MDP.law()

        delayed = Delayed(Counted(), LAW, 2)
        plan = pkd_delay.plan(delayed)
        plan.evaluate()
        plan.simulate(2)
        pkd_delay.learn(delayed, 2, delay_law="unknown")
        assert sorted(asked) == ["law", "model"]


class TestWhichLaw:
    """`delay_law` of the problem says what the learner knows, unless `learn` is told otherwise."""

    @pytest.mark.parametrize("kind", ["known", "unknown"])
    @pytest.mark.parametrize("make", [Delayed, DelayedMDP])
    def test_learn_takes_it_from_the_problem(self, make, kind):
        run = pkd_delay.learn(make(MDP, LAW, 2, delay_law=kind), 5)
        assert any(isinstance(z, Arrival) for z in run.counts) is (kind == "unknown")

    @pytest.mark.parametrize("kind", ["known", "unknown"])
    def test_a_word_given_to_learn_goes_first(self, kind):
        other = {"known": "unknown", "unknown": "known"}[kind]
        run = pkd_delay.learn(Delayed(MDP, LAW, 2, delay_law=other), 5, delay_law=kind)
        assert any(isinstance(z, Arrival) for z in run.counts) is (kind == "unknown")

    def test_the_unknown_adapter_is_not_built_for_a_known_law(self, monkeypatch):
        monkeypatch.setattr("pkd_delay.delayed.UnknownDelay", None)
        delayed = Delayed(MDP, LAW, 2)
        assert pkd_delay.learn(delayed, 5).violations == 0
        assert delayed.law()((0, 0)) == MDP.law()[0, 0]

    def test_the_known_adapter_is_not_built_for_an_unknown_law(self, monkeypatch):
        monkeypatch.setattr("pkd_delay.delayed.KnownDelay", None)
        assert pkd_delay.learn(Delayed(MDP, LAW, 2, delay_law="unknown"), 5).violations == 0


def test_the_models_pass_every_structural_check():
    """The unknown one with a |Z| that counts the arrivals.

    MVP-Delayed's own logarithms use W' S A, which is less.
    """
    delayed = DelayedMDP(MDP, LAW, 2)
    for model in (delayed.known(), pkd_delay.UnknownDelay(MDP.model(), 2, 2)):
        pkd.check_model(model, delayed.law())
