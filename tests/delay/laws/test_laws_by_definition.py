"""Hazards, tails, arrivals and long-run laws, number by number, against sums over the table."""

import math

import numpy as np
import pytest

from pkd import ModelError
from pkd_delay import DelayChain, InterArrival, Lags
from pkd_delay.laws.kernel import (
    SMALLEST,
    ArrivalQuestion,
    as_kernel,
    describe_delays,
    per_action,
)

TABLE = (0.2, 0.4, 0.0, 0.3, 0.1)
LAWS = {"inter-arrival times": InterArrival(TABLE), "lags": Lags(TABLE)}
every_law = pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)


class Always:
    """A generator of random numbers that always gives the same one."""

    def __init__(self, number: float) -> None:
        self.number = number

    def random(self) -> float:
        return self.number


def masses(law):
    return dict(enumerate(law.probabilities, start=law.first))


@every_law
def test_the_numbers_of_a_table_begin_at_the_first(law):
    assert law.longest == max(masses(law))
    assert (InterArrival.first, Lags.first) == (-1, 0)


@every_law
def test_tails_and_heads_are_sums_over_the_table(law):
    for number in range(law.first, law.longest + 3):
        at_least = sum(p for n, p in masses(law).items() if n >= number)
        assert law.at_least(number) == pytest.approx(at_least, abs=1e-12)
        assert law.at_most(number) == pytest.approx(
            sum(p for n, p in masses(law).items() if n <= number), abs=1e-12
        )


@every_law
def test_a_hazard_is_a_part_of_its_tail(law):
    for number, p in masses(law).items():
        assert law.hazard(number) == pytest.approx(p / law.at_least(number))
    assert law.hazard(law.longest + 1) == law.hazard(law.longest + 5) == 1.0


def test_a_number_behind_all_mass_has_hazard_one():
    assert Lags((0.5, 0.5, 0.0, 0.0)).hazards == (0.5, 1.0, 1.0, 1.0)


def test_rounding_makes_no_probability_above_one():
    table = (0.2, 0.4, 0.3, 0.1)
    assert 0.2 + 0.4 + 0.3 + 0.1 > 1  # `sum` of Python 3.12 and later rounds only once
    assert Lags(table).at_most(3) == 1.0


@every_law
def test_an_answer_is_the_hazard_or_the_head(law):
    assert law.answer(ArrivalQuestion(1, at_most=True)) == law.at_most(1)
    assert law.answer(ArrivalQuestion(1, at_most=False)) == law.hazard(1)


@every_law
@pytest.mark.parametrize(("mark", "place"), [(0.0, 0), (0.1, 0), (0.3, 1), (0.7, 3), (0.999, 4)])
def test_a_draw_inverts_the_cumulative_law(law, mark, place):
    assert law.draw(Always(mark)) == law.first + place


def test_a_draw_on_a_border_takes_the_next_number():
    assert Lags((0.5, 0.5)).draw(Always(0.5)) == 1


def test_a_draw_in_a_window_without_mass_gives_its_low_end():
    law = InterArrival((0.5, 0.5, 0.0, 0.0))
    assert law.draw(Always(0.5), low=1) == 1
    assert law.draw(Always(0.5), low=1, high=2) == 1


@pytest.mark.parametrize("high", [0, 1, 2])
def test_a_window_cuts_the_law_at_both_ends(high):
    law = InterArrival((0.2, 0.2, 0.2, 0.2, 0.2))
    assert law.draw(Always(0.999), low=0, high=high) == high
    assert law.draw(Always(0.0), low=high) == high


CHAIN = DelayChain([[0.5, 0.3, 0.2], [0.3, 0.5, 0.2], [0.0, 0.6, 0.4]])
NEXT = {
    "inter-arrival times": (InterArrival(TABLE), lambda before, n: max(before + n - 1, 0)),
    "lags": (Lags(TABLE), lambda before, n: max(before - 1, n)),
    "a chain": (CHAIN, lambda before, n: n),
}


def rows_by_definition(kind, largest):
    """Pr(D_h | D_{h-1}), where the n-th entry of the table makes the delay `step(before, n)`."""
    law, step = NEXT[kind]
    rows = np.zeros((largest + 1, largest + 1))
    for before in range(largest + 1):
        table = law.to_table()
        for n, p in enumerate(table[before] if kind == "a chain" else table):
            rows[before, min(step(before, n), largest)] += p
    return rows


@pytest.mark.parametrize("kind", NEXT)
def test_a_row_is_the_law_of_the_next_delay(kind):
    law, largest = NEXT[kind][0], 2
    for before, row in enumerate(rows_by_definition(kind, largest)):
        assert law.row(before, largest) == pytest.approx(row, abs=1e-12)


@pytest.mark.parametrize("kind", NEXT)
def test_an_arrival_is_a_hazard_of_the_next_delay(kind):
    law, largest = NEXT[kind][0], 2 if kind == "a chain" else 7
    for before, row in enumerate(rows_by_definition(kind, largest)):
        for delay in range(max(before - 1, 0), largest):
            tail = row[delay:].sum()
            if tail > 1e-9:
                assert law.arrival(before, delay) == pytest.approx(row[delay] / tail)


@pytest.mark.parametrize("kind", NEXT)
@pytest.mark.parametrize("steps", [1, 2, 5])
def test_delays_over_some_steps_start_at_no_delay(kind, steps):
    rows, now, total = rows_by_definition(kind, 2), np.array([1.0, 0.0, 0.0]), np.zeros(3)
    for _ in range(steps):
        now = now @ rows
        total += now
    assert NEXT[kind][0].delays(2, steps) == pytest.approx(total / steps)


@pytest.mark.parametrize("kind", NEXT)
def test_the_long_run_law_is_the_stationary_one(kind):
    rows = rows_by_definition(kind, 2)
    equations = np.vstack([rows.T - np.eye(3), np.ones(3)])
    stationary = np.linalg.lstsq(equations, np.array([0.0, 0.0, 0.0, 1.0]), rcond=None)[0]
    assert NEXT[kind][0].delays(2) == pytest.approx(stationary)


def test_the_long_run_starts_at_no_delay():
    assert DelayChain([[1.0, 0.0], [0.0, 1.0]]).delays(1) == [1.0, 0.0]


def test_only_growth_of_inter_arrival_times_has_no_largest_delay():
    assert InterArrival((0.5, 0.5)).largest == 0
    assert InterArrival((0.5, 0.5, 0.0)).largest == 0
    assert InterArrival((0.5, 0.4, 0.1)).largest is None
    assert (Lags(TABLE).largest, CHAIN.largest, CHAIN.longest) == (4, 2, 2)


@pytest.mark.parametrize(
    ("table", "grows"),
    [((0.0, 0.5, 0.5), True), ((0.1, 0.4, 0.5), False), ((0.0, 1.0), False), ((0.0, 0, 1), False)],
)
def test_a_delay_only_grows_if_it_never_shrinks_and_is_random(table, grows):
    assert InterArrival(table).only_grows is grows


def test_delays_that_hardly_occur_are_left_out_of_the_sentence():
    assert describe_delays([1 - SMALLEST, SMALLEST]).startswith("0, 1 ticks late with 1, .0005")
    assert describe_delays([1 - SMALLEST / 2, SMALLEST / 2]) == "always 0 ticks late"
    assert SMALLEST == 5e-4


def test_a_number_below_one_has_no_leading_zero_and_three_digits():
    assert describe_delays([0.2, 0.3, 0.5]) == "0, 1, 2 ticks late with .2, .3, .5; mean 1.3"
    assert describe_delays([2 / 3, 1 / 3]) == "0, 1 ticks late with .667, .333; mean .333"


def test_a_sentence_says_over_how_many_steps():
    assert Lags((1.0,)).describe(0, 3) == "always 0 ticks late (over 3 steps)"


def test_one_mapping_and_many_give_their_longest_number():
    assert InterArrival({-1: 1.0}).probabilities == (1.0, 0.0)
    assert InterArrival({2: 1.0}).probabilities == (0.0, 0.0, 0.0, 1.0)
    assert Lags({2: 0.5, 0: 0.5}).probabilities == (0.5, 0.0, 0.5)


def test_a_law_of_another_form_passes_as_it_is():
    assert as_kernel(CHAIN) is CHAIN
    assert per_action(CHAIN)("x", "y", "a") is CHAIN


def test_a_function_is_asked_once_for_each_state_and_action():
    asked = []
    law = per_action(lambda *pair: asked.append(pair) or {0: 1.0})
    assert per_action(law) is law
    assert law(1, 2, 3) is law(1, 2, 3)
    assert law(1, 2, 4).probabilities == (0.0, 1.0)
    assert asked == [(1, 2, 3), (1, 2, 4)]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: InterArrival({-2: 0.5, 0: 0.5}),
            "the number is -2; expected a whole number >= -1",
        ),
        (lambda: InterArrival({True: 1.0}), "inter_arrival: the number is True; expected a whole"),
        (lambda: InterArrival({0.5: 1.0}), "inter_arrival: the number is 0.5; expected a whole"),
        (lambda: InterArrival({0: math.nan}), "a probability is nan; expected a number >= 0"),
        (lambda: InterArrival({0: "often"}), "a probability is 'often'; expected a number >= 0"),
        (lambda: InterArrival({0: -0.1, 1: 1.1}), "inter_arrival: a probability is -0.1; expected"),
        (lambda: InterArrival({}), "inter_arrival sums to 0, not 1 (expected {Delta: probability}"),
        (lambda: InterArrival([1.0]), "inter_arrival has 1 entries; expected at least 2"),
        (lambda: InterArrival(None), "inter_arrival is None (expected {Delta: probability} with"),
        (lambda: InterArrival("slow"), "inter_arrival is 'slow' (expected {Delta: probability} w"),
        (lambda: InterArrival([0.5, 0.6]), "inter_arrival sums to 1.1, not 1"),
        (lambda: InterArrival([0.5, 0.5 + 2e-9]), "not 1"),
        (lambda: Lags({True: 1.0}), "lags: the number is True; expected a whole number >= 0"),
        (lambda: Lags({0: 0.5, 1: 0.4}), "lags sums to 0.9, not 1"),
        (lambda: Lags([]), "lags has 0 entries; expected at least 1"),
        (lambda: Lags(7), "lags is 7 (expected {lag: probability}, or a list)"),
        (lambda: Lags({-1: 0.5, 0: 0.6}), "2 findings"),
        (lambda: as_kernel({0: 0.5}, "the law of a"), "the law of a sums to 0.5, not 1"),
        (lambda: DelayChain([]), "expected a square table"),
        (lambda: DelayChain([[1.0], [1.0, 0.0]]), "expected a square table"),
        (lambda: DelayChain([[1.0, 0.0]]), "expected a square table"),
        (lambda: DelayChain([1.0]), "expected a square table"),
        (lambda: DelayChain([[0.5]]), "delays[0] sums to 0.5, not 1"),
        (lambda: DelayChain(np.eye(3)[::-1]), "delays[2] reaches 0; a delay shrinks by at most 1"),
    ],
)
def test_what_is_no_distribution_is_refused(make, message):
    with pytest.raises(ModelError) as error:
        make()
    assert message in str(error.value)


def test_a_sum_within_the_tolerance_is_accepted():
    assert InterArrival([0.5, 0.5 + 5e-10]).longest == 0
    assert Lags([1.0 + 5e-10]).longest == 0


def test_the_first_faults_of_a_chain_are_shown():
    with pytest.raises(ModelError) as error:
        DelayChain(np.eye(9)[::-1])
    assert str(error.value).count("reaches") == 4  # rows 5 to 8; row 4 stays, row 3 grows
    with pytest.raises(ModelError) as error:
        DelayChain(np.full((9, 9), 1 / 9))
    assert str(error.value).startswith("5 findings\n  - delays[2] reaches 0; a delay shrinks by")
    assert "so delays[2] starts at 1" in str(error.value)


def test_the_hazards_rebuild_the_law():
    law = InterArrival((0.1, 0.35, 0.0, 0.25, 0.3))
    survived, rebuilt = 1.0, []
    for j in range(-1, 4):
        rebuilt.append(survived * law.hazard(j))
        survived *= 1 - law.hazard(j)
    assert rebuilt == pytest.approx(law.probabilities, abs=1e-12)


def test_draws_follow_the_law_on_a_window():
    law, rng = InterArrival((0.2, 0.4, 0.3, 0.1)), np.random.default_rng(1)
    n = 20_000
    draws = [law.draw(rng, low=0, high=1) for _ in range(n)]
    assert set(draws) == {0, 1}
    assert np.mean(draws) == pytest.approx(3 / 7, abs=4 * math.sqrt(0.25 / n))


@pytest.mark.parametrize("form", [InterArrival, Lags, DelayChain])
def test_the_limits_of_an_answer_are_the_numbers_that_give_it(form):
    """A number n makes the delay `follow(before, n)`; the question is asked if that is >= delay."""
    for before in range(4):
        for delay in range(max(before - 1, 0), 5):
            question, smallest = form.ask(before, delay), max(form.first, -9)
            for n in range(smallest, 9):
                made = form.follow(before, n)
                for answer in (True, False):
                    low, high = question.limits(answer, 8)
                    asked = made >= delay and form.follow(before, n) >= max(before - 1, 0)
                    assert (low <= n <= high) == (asked and (made == delay) == answer)
