"""The delayed MDP as a POMDP: its belief-tree optimum against closed forms and against the delayed
planner, and the text it exports.
"""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pkd
import pkd_delay
from pkd_delay.theory.pomdp import Latent, delayed_pomdp, unobservable_pomdp

GUESS = pkd.TabularMDP(np.full((2, 2, 2), 0.5), np.eye(2), horizon=3)


def chain(stay, horizon):
    """Two states, kept with probability `stay` whatever is done; naming the state pays 1."""
    keep = np.array([[stay, 1 - stay], [1 - stay, stay]])
    return pkd.TabularMDP(np.stack([keep, keep], axis=1), np.eye(2), horizon)


@st.composite
def delayed_mdps(draw):
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    states, actions, horizon, longest = (
        draw(st.integers(low, high)) for low, high in [(1, 3), (1, 3), (1, 4), (0, 2)]
    )
    start = rng.dirichlet(np.ones(states))
    rows = rng.dirichlet(np.full(states, 0.5), (states, actions))
    mdp = pkd.TabularMDP(rows, rng.uniform(-1, 1, (states, actions)), horizon, start)
    waits = rng.dirichlet(np.full(longest + 2, 0.7), (states, actions))
    return pkd_delay.DelayedMDP(mdp, waits, draw(st.integers(0, 4)))


@pytest.mark.parametrize(
    ("mdp", "law", "max_delay", "expected"),
    [
        (GUESS, {-1: 0.5, 1: 0.5}, 2, 2.5),  # the arrival that is clipped at zero
        *((chain(0.9, 10), {d: 1.0}, d, v) for d, v in enumerate((10, 9.1, 8.46, 8.012, 7.7048))),
    ],
)
def test_the_optimum_is_the_worked_number(mdp, law, max_delay, expected):
    delayed = pkd_delay.DelayedMDP(mdp, law, max_delay)
    assert delayed_pomdp(delayed).optimal_value() == pytest.approx(expected, abs=1e-12)


@given(delayed_mdps())
@settings(deadline=None, max_examples=60)
def test_the_belief_tree_agrees_with_the_delayed_planner(delayed):
    expected = delayed_pomdp(delayed).optimal_value()
    assert pkd_delay.plan(delayed).value == pytest.approx(expected, abs=1e-10)


def test_the_unobservable_optimum_is_the_best_sequence_of_actions():
    rng = np.random.default_rng(4)
    rows, pay = rng.dirichlet(np.ones(3), (3, 3)), rng.uniform(size=(3, 3))
    mdp = pkd.TabularMDP(rows, pay, 4, start=rng.dirichlet(np.ones(3)))
    totals = []
    for actions in product(range(3), repeat=4):
        where, total = mdp.start_distribution, 0.0
        for a in actions:
            total += where @ mdp.rewards[:, a]
            where = where @ mdp.transitions[:, a]
        totals.append(total)
    assert unobservable_pomdp(mdp).optimal_value() == pytest.approx(max(totals), abs=1e-12)


@pytest.mark.parametrize("delay", [3, 4, 9])
def test_a_delay_up_to_the_last_step_is_the_unobservable_problem(delay):
    rng = np.random.default_rng(7)
    mdp = pkd.TabularMDP(rng.dirichlet(np.ones(3), (3, 3)), rng.uniform(size=(3, 3)), 4)
    blind = unobservable_pomdp(mdp).optimal_value()
    found = pkd_delay.plan(pkd_delay.DelayedMDP.constant(mdp, delay)).value
    assert found == pytest.approx(blind, abs=1e-12)


def test_a_latent_state_ends_in_the_current_state():
    assert (Latent(4).current, Latent(4, (2, 0), (1, 3)).current) == (4, 0)


def test_without_delay_nothing_is_ever_hidden():
    pomdp = delayed_pomdp(pkd_delay.DelayedMDP.constant(GUESS, 0))
    assert set(pomdp.states) == {Latent(0), Latent(1)}


def test_two_states_can_be_shown_in_one_step():
    # Delta = 2, then -1: s_2 is hidden for two steps, s_3 for one, and both are shown at step 4.
    line = pkd.TabularMDP(np.eye(4)[[[1], [2], [3], [3]]], np.zeros((4, 1)), horizon=4)
    delayed = pkd_delay.DelayedMDP(
        line, {(0, 0): {2: 1.0}, (1, 0): {-1: 1.0}, (2, 0): {0: 1.0}, (3, 0): {0: 1.0}}, 2
    )
    pomdp = delayed_pomdp(delayed)
    (second,) = pomdp.transitions[Latent(0), 0]
    (third,) = pomdp.transitions[second, 0]
    (fourth,) = pomdp.transitions[third, 0]
    assert (second, third) == (Latent(0, (1,), (2,)), Latent(0, (1, 2), (1, 1)))
    assert (fourth.shown, fourth.hidden) == (2, (3,))


def test_every_latent_state_has_a_full_law_for_every_action():
    pomdp = delayed_pomdp(pkd_delay.DelayedMDP(chain(0.8, 4), {-1: 0.3, 0: 0.3, 1: 0.4}, 2))
    sums = [sum(pomdp.transitions[s, a].values()) for s in pomdp.states for a in pomdp.actions]
    assert sums == pytest.approx([1.0] * len(sums))


def read_text(text):
    """A small reader of the .pomdp format, enough for what is exported: preamble, T, O and R
    entries.
    """
    preamble, entries = {}, {"T": {}, "O": {}, "R": {}}
    for line in text.splitlines():
        key, _, rest = line.partition(":")
        if key in entries:
            *path, last = (part.strip() for part in rest.split(":"))
            name, number = last.split()
            entries[key][(*path, name)] = float(number)
        elif not line.startswith("#"):
            preamble[key] = rest.split()
    return preamble, entries


def value_of_text(text, horizon):
    """The optimum of an exported file, by belief recursion on arrays made from the text alone."""
    preamble, entries = read_text(text)
    states, actions, looks = (preamble[key] for key in ("states", "actions", "observations"))
    T = np.array(
        [[[entries["T"].get((a, s, t), 0.0) for t in states] for s in states] for a in actions]
    )
    sights = entries["O"]
    O = np.array([[sights.get(("*", s, o), 0.0) for s in states] for o in looks])  # noqa: E741
    R = np.array([[entries["R"][a, s, "*", "*"] for s in states] for a in actions])

    def value(belief, left):
        if left == 0:
            return 0.0
        ahead = [[belief @ T[a] * seen for seen in O] for a in range(len(actions))]
        return max(
            R[a] @ belief + sum(value(b, left - 1) for b in ahead[a] if b.sum() > 0)
            for a in range(len(actions))
        )

    return value(np.array([float(p) for p in preamble["start"]]), horizon)


def test_the_exported_text_has_the_same_optimum():
    delayed = pkd_delay.DelayedMDP(GUESS, {-1: 0.5, 1: 0.5}, 2)
    assert value_of_text(delayed_pomdp(delayed).to_text(), 3) == pytest.approx(2.5, abs=1e-12)


def test_the_exported_names_are_what_the_format_allows():
    late = pkd_delay.DelayedMDP(chain(0.8, 4), {0: 0.5, 2: 0.5}, 3)
    preamble, _ = read_text(delayed_pomdp(late).to_text())
    names = [*preamble["states"], *preamble["actions"], *preamble["observations"]]
    assert len(names) == len(set(names))
    assert all(name[0].isalpha() and name.replace("_", "").isalnum() for name in names)


def test_the_exported_unobservable_problem_has_one_observation():
    preamble, _ = read_text(unobservable_pomdp(GUESS).to_text())
    assert preamble["observations"] == ["nothing"]
