"""What a delayed model reads of its queue: nothing, or the oldest action where it must."""

import numpy as np
import pytest

import pkd
from pkd.queue import Look, Veil, hide
from pkd_delay import DelayedMDP, KnownDelay, UnknownDelay
from pkd_delay.augmented import SHOWN, TRAN
from pkd_delay.known import Pending
from pkd_delay.unknown import Arrival, Queued

MDP = pkd.TabularMDP(np.full((2, 3, 2), 0.5), np.arange(6.0).reshape(2, 3) / 6, 9)
ONE_LAW = {-1: 0.2, 0: 0.3, 1: 0.3, 2: 0.2}
LAW_OF_STATE = {(s, a): {s: 0.5, s + 1: 0.5} for s in range(2) for a in range(3)}
LAW_OF_ACTION = {(s, a): {a: 0.5, a + 1: 0.5} for s in range(2) for a in range(3)}
LAWS_THAT_IGNORE_THE_ACTION = [ONE_LAW, LAW_OF_STATE]


def known(law):
    return DelayedMDP(MDP, law, 5).known()


def unknown(delay_feature=None):
    return UnknownDelay(MDP.model(), 2, 5, delay_feature=delay_feature)


def looks(question):
    """Whether a question about a model reads a hidden entry."""
    try:
        question()
    except Look:
        return True
    return False


def hidden(model, n, counter, front=()):
    """(x, y) with n actions pending, of which only those of `front` are shown."""
    return model.place(1, None, hide(front, n - len(front), Veil()), counter)


@pytest.mark.parametrize(
    "law", LAWS_THAT_IGNORE_THE_ACTION, ids=["one law", "a law for each state"]
)
@pytest.mark.parametrize("counter", [0, 1, SHOWN])
def test_an_arrival_whose_law_ignores_the_action_reads_no_action(law, counter):
    model = known(law)
    x, y = hidden(model, 3, counter)
    assert not looks(lambda: model.actions(x, y))
    assert not looks(lambda: model.step(x, y, 2))
    assert not looks(lambda: model.last_step(x, y, 2))
    assert not looks(lambda: model.reward(x, y, 2))


@pytest.mark.parametrize("counter", [0, 1, SHOWN])
def test_an_arrival_whose_law_depends_on_the_action_reads_the_oldest_one(counter):
    model = known(LAW_OF_ACTION)
    assert looks(lambda: model.step(*hidden(model, 3, counter), 2))
    assert not looks(lambda: model.step(*hidden(model, 3, counter, front=(1,)), 2))


def test_an_arrival_that_is_forced_reads_no_action():
    model = known(LAW_OF_ACTION)
    full, waited = hidden(model, 5, 1), hidden(model, 3, model.longest)
    assert not looks(lambda: model.step(*full, 2))
    assert not looks(lambda: model.step(*waited, 2))


def test_an_unknown_law_reads_the_oldest_action_unless_the_user_says_that_it_does_not_matter():
    depends, free = unknown(), unknown(lambda x, y, a: None)
    assert looks(lambda: depends.step(*hidden(depends, 3, 1), 2))
    assert not looks(lambda: depends.step(*hidden(depends, 3, 1, front=(1,)), 2))
    assert not looks(lambda: free.step(*hidden(free, 3, 1), 2))


@pytest.mark.parametrize("model", [known(ONE_LAW), unknown()], ids=["known", "unknown"])
def test_a_move_of_the_base_reads_the_oldest_action_and_no_other(model):
    assert looks(lambda: model.step(*hidden(model, 3, TRAN), None))
    assert looks(lambda: model.reward(*hidden(model, 3, TRAN), None))
    x, y = hidden(model, 3, TRAN, front=(2,))
    assert not looks(lambda: model.step(x, y, None))
    assert model.reward(x, y, None) == MDP.rewards[1, 2]


@pytest.mark.parametrize("model", [known(ONE_LAW), unknown()], ids=["known", "unknown"])
def test_kinds_shares_and_final_pay_read_no_action(model):
    for counter in (0, 1, SHOWN, TRAN):
        x, y = hidden(model, 3, counter)
        assert not looks(lambda x=x, y=y: (model.actions(x, y), model.final(x, y)))
    ((_, y_next, z), *_) = model.step(*hidden(model, 3, TRAN, front=(2,)), None)
    assert not looks(lambda: model.share(z, y_next))


@pytest.mark.parametrize("model", [known(LAW_OF_ACTION), unknown()], ids=["known", "unknown"])
def test_an_answer_about_a_hidden_queue_is_the_answer_about_each_queue_behind_it(model):
    """Equal probabilities, features and lengths: only the entries behind the first one differ."""
    for counter in (0, 1, SHOWN, TRAN):
        action = None if counter < 0 else 1
        open_answer = model.step(*model.place(1, None, (2, 0, 1), counter), action)
        hidden_answer = model.step(*hidden(model, 3, counter, front=(2,)), action)
        assert [(p, z) for p, _, z in hidden_answer] == [(p, z) for p, _, z in open_answer]
        lengths = [[len(y.queue) for _, y, _ in a] for a in (hidden_answer, open_answer)]
        assert lengths[0] == lengths[1]


@pytest.mark.parametrize("model", [known(ONE_LAW), unknown()], ids=["known", "unknown"])
def test_a_tuple_may_stand_for_a_queue(model):
    x, y = model.place(1, None, (2, 0), 1)
    assert isinstance(y.queue, pkd.Queue)
    assert model.read(x, y) == (1, None, pkd.Queue((2, 0)), 1)
    plain = y._replace(queue=(2, 0))
    assert isinstance(model.read(x, plain)[2], pkd.Queue)
    assert model.step(x, plain, 1) == model.step(x, y, 1)
    assert model.place(1, None, None, 0)[1].queue is None


def test_the_queue_is_a_part_of_y_that_the_core_can_find():
    assert Pending(None, pkd.Queue((1,)), 0) == known(ONE_LAW).place(0, None, [1], 0)[1]
    assert Queued(None, pkd.Queue((1,))) == unknown().place(0, None, [1], 0)[1]


def test_a_base_is_asked_for_its_kind_and_its_moves_once():
    asked = []

    class Counted(type(MDP.model())):
        def actions(self, x, y):
            asked.append(("actions", x))
            return super().actions(x, y)

        def step(self, x, y, a):
            asked.append(("step", x, a))
            return super().step(x, y, a)

    base = MDP.model()
    base.__class__ = Counted
    model = KnownDelay(base, ONE_LAW, 3)
    asked.clear()
    for queue in ((0,), (0, 1), (0, 2, 1)):
        x, y = model.place(1, None, queue, TRAN)
        model.actions(x, y)
        model.step(x, y, None)
    assert asked == [("actions", 1), ("step", 1, 0)]


def test_arrivals_of_an_empty_queue_are_told_from_others():
    (((_, _, z),), ((_, _, other),)) = (
        unknown().step(*unknown().place(0, None, queue, 0), 1) for queue in ((), (1,))
    )
    assert (z, other) == (Arrival(0, 1, 0, True), Arrival(0, 1, 0, False))
