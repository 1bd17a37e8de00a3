"""The regret theorems as functions: numbers worked out by hand."""

import pickle
from math import e, log, sqrt

import pytest
from matplotlib.figure import Figure

import pkd
from pkd import bounds
from pkd_delay import bounds as late

SIZES = {"states": 5, "actions": 2, "horizon": 10, "max_delay": 3, "longest": 2, "branching": 5}


def test_the_known_delay_bound_with_the_printed_logarithms_is_the_worked_number():
    bound = late.known_delay(**SIZES, episodes=1e4, printed=True)
    assert bound.leading == pytest.approx(3.225639e6, rel=1e-6)
    assert bound.lower_order == pytest.approx(3.729480e8, rel=1e-6)


@pytest.mark.parametrize(("queue", "expected"), [(3, 26.515303), (4, 27.654738)])
def test_the_printed_log_factor_of_a_queue_is_the_worked_number(queue, expected):
    found = late.delay_log(
        queue, 5, actions=2, horizon=10, n_features=2 * 5 * 2, episodes=1e4, printed=True
    )
    assert found == pytest.approx(expected, abs=5e-7)


def test_the_log_factor_of_a_support_is_the_worked_number():
    assert bounds.support_log(5, 10, 2 * 5 * 2, 1e4) == pytest.approx(22.579564, abs=5e-7)


def test_the_generic_log_factors_are_the_worked_numbers():
    assert bounds.union_log(5, 20, 6, 100, 0.1) == pytest.approx(18.3798587494, abs=5e-11)
    assert 3 * bounds.support_log(3, 5, 6, 100, 0.1) == pytest.approx(44.6199025563, abs=5e-11)


def test_the_corrected_log_factor_adds_the_clock_to_the_printed_one():
    sizes = {"actions": 2, "horizon": 10, "n_features": 20, "episodes": 1e4}
    assert late.delay_log(3, 5, **sizes) - late.delay_log(
        3, 5, **sizes, printed=True
    ) == pytest.approx(log(11))


def test_the_corrected_union_log_adds_the_horizon_to_the_printed_one():
    assert bounds.union_log(7, 20, 6, 100) - bounds.union_log(
        7, 20, 6, 100, printed=True
    ) == pytest.approx(log(7))


def test_a_small_support_beats_a_long_queue():
    found = late.delay_log(40, 2, actions=4, horizon=50, n_features=80, episodes=1e5)
    assert found == pytest.approx(2 * log(32 * 50 * 2 * 80 * 1e5 / 0.05))


def test_the_printed_bound_says_something_only_after_160_million_episodes():
    first = bounds.smallest_episodes(
        lambda k: late.known_delay(**SIZES, episodes=k, printed=True), 10
    )
    assert first == pytest.approx(1.6e8, rel=0.02)


def test_the_smallest_number_of_episodes_is_where_a_bound_crosses_the_trivial_one():
    assert (
        bounds.smallest_episodes(lambda k: 10 * sqrt(k), 1.0) == 101
    )  # 10 sqrt(K) < K exactly for K > 100


def test_a_bound_below_the_trivial_one_at_once_needs_one_episode():
    assert bounds.smallest_episodes(lambda k: 0.0, 1.0) == 1


def test_a_bound_that_grows_linearly_is_refused():
    with pytest.raises(pkd.ModelError, match=r"bound\(K\)/K must fall to zero"):
        bounds.smallest_episodes(lambda k: 2.0 * k, 1.0)


def test_no_longest_inter_arrival_time_gives_no_logarithm_of_zero():
    with_zero = late.known_delay(5, 2, 10, 3, 0, 5, 1e4)
    assert with_zero == late.known_delay(5, 2, 10, 3, 1, 5, 1e4)


def test_the_rate_without_delay_is_the_rate_of_an_mdp_and_not_zero():
    iota = log(10 * 5 * 2 * 1e4 / 0.05)
    assert late.known_delay_rate(5, 2, 10, 0, 5, 1e4).leading == pytest.approx(
        10 * sqrt(5 * 2 * 1e4) * iota
    )


def test_a_delay_beyond_the_horizon_costs_no_more_than_one_up_to_it():
    short, long = (late.known_delay(50, 2, 10, d, 1, 50, 1e4) for d in (9, 40))
    assert short == long


def test_the_unknown_law_adds_a_hazard_for_each_counter_and_one_for_the_empty_queue():
    count, delta, K = 2 * 5 * 2, 0.05, 1e4
    wide = [5 * log(32 * 10 * 5 * count * K / delta)] * 10 + [
        2 * log(32 * 10 * 2 * count * K / delta)
    ] * (10 * (2 + 2))
    bound = late.unknown_delay(**SIZES, episodes=K)
    assert bound.lower_order == pytest.approx(2640 * 10 * log(e * K * 10) * sum(wide))


def test_without_waiting_there_is_no_hazard_to_learn():
    assert late.unknown_delay(5, 2, 10, 3, 0, 5, 1e4) == late.known_delay(5, 2, 10, 3, 0, 5, 1e4)


def test_the_first_order_bound_follows_each_delay():
    n, K = 2 * 2, 1e5
    delays = [[0, 1], [2, 3]]
    logs = [
        (d + 1) * log(2) + log(64 * 20 * 21 * (d + 2) ** 2 * n * K / 0.05)
        for row in delays
        for d in row
    ]
    found = late.first_order(delays, 20, 1, 50, K)
    assert found.leading == pytest.approx(56 * 20 * sqrt(K * log(e * K * 20) * sum(logs)))
    wide = 50 * log(32 * 20 * 50 * n * K / 0.05)
    assert found.lower_order == pytest.approx(2640 * 20 * log(e * K * 20) * n * wide)


def test_the_first_order_bound_with_equal_delays_is_theorem_one():
    assert late.first_order([[3, 3]] * 5, 10, 2, 5, 1e4) == late.known_delay(**SIZES, episodes=1e4)


def test_the_general_theorem_takes_the_smaller_of_the_two_logarithms_of_each_feature():
    K, H, Y = 1e4, 6, 20
    first = log(32 * H**2 * Y * 2 * K / 0.05)
    narrow, wide = (b * log(32 * H * b * 2 * K / 0.05) for b in (1, 9))
    bound = bounds.general([1, 9], horizon=H, n_y=Y, episodes=K)
    assert narrow < first < wide
    assert bound.leading == pytest.approx(56 * H * sqrt(K * log(e * K * H) * (narrow + first)))
    assert bound.lower_order == pytest.approx(2640 * H * log(e * K * H) * (narrow + wide))


def test_the_general_rate_caps_the_logarithm_of_y_by_the_support():
    assert bounds.general_rate([1, 100], horizon=7, n_y=20, episodes=9) == pytest.approx(
        7 * sqrt(9 * (1 + log(20))) + 7 * 101
    )


def test_the_new_rate_improves_on_the_previous_one_by_the_factor_the_paper_claims():
    iota = log(16 * 20 * 3 * 1e6 / 0.05)
    new = late.known_delay_rate(20, 3, 16, 4, 20, 1e6).leading / iota
    assert late.previous_rate(20, 3, 16, 4, 1e6) / new == pytest.approx(sqrt(16) * 4**2)


def test_the_unknown_law_adds_the_second_term_of_theorem_two():
    iota = log(10 * 5 * 2 * 1e4 / 0.05)
    known, unknown = (
        late.known_delay_rate(5, 2, 10, 3, 5, 1e4),
        late.unknown_delay_rate(5, 2, 10, 3, 2, 5, 1e4),
    )
    assert unknown.leading - known.leading == pytest.approx(10 * sqrt(2 * 5 * 2 * 1e4) * iota)
    assert unknown.lower_order - known.lower_order == pytest.approx(10 * 2 * 5 * 2 * iota**2)


@pytest.mark.parametrize(("printed", "expected"), [(True, 97.915247), (False, 65.276832)])
def test_the_lower_bound_is_the_worked_number(printed, expected):
    assert late.lower_bound(100, 2, 100, 10, 40, 1e6, printed=printed) == pytest.approx(
        expected, abs=5e-7
    )


def test_a_lower_bound_without_room_for_a_code_names_the_smallest_size():
    with pytest.raises(pkd.ModelError, match=r"D~ = .* is 1, .* B/2 = 1"):
        late.lower_bound(100, 2, 100, 10, 2, 1e6)


def test_a_bound_remembers_its_terms_through_pickling():
    bound = pickle.loads(pickle.dumps(bounds.Bound(3.0, 4.0)))
    assert (bound, bound.leading, bound.lower_order) == (7.0, 3.0, 4.0)


def test_bad_sizes_come_in_one_error():
    with pytest.raises(pkd.ModelError) as error:
        late.known_delay(5, 2, 0, -1, -2, 5, 1e4, delta=1.5)
    assert error.value.findings == (
        "horizon is 0; expected a number of at least 1",
        "max_delay is -1; expected 0 or more",
        "longest is -2; expected 0 or more",
        "delta is 1.5; expected a probability strictly between 0 and 1",
    )


def test_a_plot_draws_each_bound_and_the_trivial_one():
    axes = Figure().subplots()
    bounds.plot({"root": lambda k: 10 * sqrt(k)}, [1, 100, 10_000], width=2.0, axes=axes)
    drawn = {line.get_label(): list(line.get_ydata()) for line in axes.get_lines()}
    assert drawn == {"root": [10.0, 100.0, 1000.0], "trivial: 2 K": [2.0, 200.0, 20_000.0]}


def test_rates_without_logarithms_can_be_compared_with_the_previous_one():
    new = late.known_delay_rate(20, 3, 16, 4, 20, 1e6, logarithms=False)
    assert new.leading == pytest.approx(16 * sqrt(4 * 20 * 3 * 1e6))
    assert late.previous_rate(20, 3, 16, 4, 1e6) / new.leading == pytest.approx(sqrt(16) * 4**2)


def test_the_unknown_rate_without_logarithms_adds_the_root_of_the_longest_wait():
    new = late.unknown_delay_rate(20, 3, 16, 4, 2, 20, 1e6, logarithms=False)
    assert new.leading == pytest.approx(16 * (sqrt(4 * 20 * 3 * 1e6) + sqrt(2 * 20 * 3 * 1e6)))
    assert new.lower_order == 16 * (20 + 2) * 20 * 3


def test_a_lower_bound_says_whether_it_is_proved():
    """The absolute constant of the theorem is 2,817,999 for D~."""
    small = late.lower_bound(100, 2, 100, 10, 40, 1e6)
    assert not small.proved
    sizes = (12 * 10**6, 2, 12 * 10**6, 3 * 10**6 - 1, 10**7)
    assert late.lower_bound(*sizes, 1e16).proved
    assert not late.lower_bound(*sizes, 1e10).proved  # too few episodes
    assert pickle.loads(pickle.dumps(small)).proved is False


def test_a_crude_maximal_delay_lengthens_the_queues_of_hazards_by_one():
    """A learner that is told D = 9 meets queues of D_max(s, a) + 1 = 3."""
    K, H, n = 1e5, 20, 2 * 4
    tight = late.first_order([[2, 2]] * 2, H, 2, 50, K, inter_arrivals=[[2, 2]] * 2)
    crude = late.first_order([[2, 2]] * 2, H, 2, 50, K, inter_arrivals=[[2, 2]] * 2, max_delay=9)
    sizes = {"actions": 2, "horizon": H, "n_features": n, "episodes": K}
    longer = late.delay_log(3, 2, **sizes) - late.delay_log(2, 2, **sizes)
    growth = 56 * H * sqrt(K * log(e * K * H))
    assert (crude.leading / growth) ** 2 - (tight.leading / growth) ** 2 == pytest.approx(
        12 * longer
    )


@pytest.mark.parametrize("delta", [0.0, 1.0])
def test_a_certain_or_impossible_failure_is_refused(delta):
    with pytest.raises(pkd.ModelError, match="strictly between 0 and 1"):
        bounds.general([2], horizon=2, n_y=2, episodes=10, delta=delta)


def test_one_feature_without_an_outcome_is_refused_among_others():
    with pytest.raises(pkd.ModelError, match="branching is 0"):
        bounds.general([0, 5], horizon=2, n_y=2, episodes=10)


def test_one_negative_delay_is_refused_among_others():
    with pytest.raises(pkd.ModelError, match="max_delay is -1"):
        late.first_order([[-1, 3]], 5, 1, 2, 100)


def test_a_bound_that_equals_the_trivial_one_says_nothing_yet():
    assert bounds.smallest_episodes(lambda k: 8.0, 1.0) == 9


def test_the_largest_delay_is_the_limit_that_a_learner_is_told():
    """Queues of hazards end at D = 3, the largest of the delays, unless another D is given."""
    sizes = ([[0, 3]], 9, 2, 2, 1e4)
    waits = [[1, 1]]
    found = late.first_order(*sizes, inter_arrivals=waits)
    assert found == late.first_order(*sizes, inter_arrivals=waits, max_delay=3)
    assert found != late.first_order(*sizes, inter_arrivals=waits, max_delay=1)


def test_a_bound_of_one_term_has_no_other():
    assert (bounds.Bound(3.0), bounds.Bound(3.0).lower_order) == (3.0, 0.0)


def test_the_logarithm_of_the_union_has_the_usual_delta_unless_told():
    assert bounds.union_log(2, 3, 4, 5) == pytest.approx(log(32 * 2**2 * 3 * 4 * 5 / 0.05))


def test_the_search_for_the_first_episode_asks_up_to_the_number_that_it_names():
    asked = []
    with pytest.raises(pkd.ModelError, match=r"at K = 2\^200"):
        bounds.smallest_episodes(lambda k: asked.append(k) or 2.0 * k, 1.0)
    assert max(asked) == 2**200


def test_an_unknown_law_adds_its_hazards_where_the_queue_is_long():
    """Theorem 2 written out: after 15 waiting actions it is cheaper to pay for both outcomes."""
    S, A, H, D, W, B, K, delta = 2, 3, 20, 15, 2, 4, 1000, 0.05

    def ell(n, b):
        by_queue = n * log(A) + log(64 * H * (H + 1) * (n + 1) ** 2 * W * S * A * K / delta)
        return min(by_queue, b * ell_2(b))

    def ell_2(b):
        return log(32 * H * b * W * S * A * K / delta)

    assert ell(D, 2) == 2 * ell_2(2)
    first = S * A * (ell(D + 1, B) + ell(1, 2) + (W + 1) * ell(D, 2))
    lower = S * A * (B * ell_2(B) + (W + 2) * 2 * ell_2(2))
    growth = log(e * K * H)
    found = late.unknown_delay(S, A, H, D, W, B, K, delta)
    assert found.leading == pytest.approx(56 * H * sqrt(K * growth * first))
    assert found.lower_order == pytest.approx(2640 * H * growth * lower)


def test_no_states_have_no_bound():
    with pytest.raises(pkd.ModelError, match=r"states is 0; .*\n.*actions is 0; expected"):
        late.first_order([], 5, 1, 2, 10)


def test_the_rate_of_theorem_1_has_the_square_of_its_logarithm_in_the_lower_order():
    S, A, H, D, B, K, delta = 7, 3, 11, 4, 5, 1000, 0.1
    found = late.known_delay_rate(S, A, H, D, B, K, delta)
    assert found.lower_order == pytest.approx(H * B * S * A * log(H * S * A * K / delta) ** 2)


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        ((100, 100, 3, 40), 3),  # D
        ((100, 19, 10, 40), 4),  # H / 4
        ((100, 100, 10, 7), 3),  # B / 2
        ((23, 100, 10, 40), 4),  # S / 4 - 1
    ],
)
def test_the_code_is_as_long_as_the_smallest_size_allows(sizes, expected):
    assert late.code_size(*sizes) == expected


def test_a_code_of_two_is_long_enough_and_a_shorter_one_names_the_sizes():
    S, A, H, K = 100, 2, 100, 1e6
    expected = H / 4608 * sqrt(2 * S * A * K / (96 * log(2)))
    assert late.lower_bound(S, A, H, 2, 40, K) == pytest.approx(expected)
    with pytest.raises(pkd.ModelError) as error:
        late.lower_bound(90, A, 42, 1, 41, K)
    assert str(error.value).endswith("D = 1, H/4 = 10.5, B/2 = 20.5, S/4 - 1 = 21.5")


class TestTheConditionsOfTheorem3:
    """Each at its border, for codes that are long enough: S = 64, A = 2 need H >= 8 + 4 * 6."""

    @pytest.fixture(autouse=True)
    def _long(self, monkeypatch):
        monkeypatch.setattr(late, "_is_long", lambda size: True)

    def proved(self, *, states=64, actions=2, horizon=32, episodes=1e4):
        return late.lower_bound(states, actions, horizon, 4, 40, episodes).proved

    def test_they_hold_at_their_borders(self):
        assert self.proved()

    def test_the_horizon_must_reach_every_leaf(self):
        assert not self.proved(horizon=31)

    def test_there_must_be_a_choice(self):
        assert not self.proved(actions=1, states=200, horizon=1000)

    def test_there_must_be_more_than_96_pairs(self):
        assert not self.proved(states=48, horizon=40)
        assert self.proved(states=49, horizon=40)

    def test_there_must_be_enough_episodes(self):
        least = 4 * 128 * log(4) / 24
        assert self.proved(episodes=least)
        assert not self.proved(episodes=least * (1 - 1e-12))


def test_a_code_is_long_from_the_dimension_of_the_weighted_lemma_on():
    from pkd_delay import l1

    least = l1.smallest_dimension(weighted=True)
    assert least != l1.smallest_dimension(weighted=False)
    assert late._is_long(least)
    assert not late._is_long(least - 1)


def test_a_plot_makes_axes_of_its_own():
    axes = bounds.plot({"root": sqrt}, [1, 4, 16], width=2)
    assert [line.get_label() for line in axes.lines] == ["root", "trivial: 2 K"]
    assert axes.lines[0].get_ydata().tolist() == [1, 2, 4]
    assert axes.get_legend() is not None
