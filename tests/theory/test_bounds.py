"""The regret theorems as functions: numbers worked out by hand."""

import pickle
from math import e, log, sqrt

import attrs
import pytest
from matplotlib.figure import Figure

import pkd
from pkd import bounds
from pkd_delay.theory import bounds as late
from pkd_delay.theory.bounds import DelaySizes, delay_log
from pkd_delay.theory.l1 import smallest_dimension

SIZES = DelaySizes(5, 2, 10, max_delay=3, longest=2, branching=5)
LARGE = DelaySizes(100, 2, 100, max_delay=10, branching=40)
COMPARED = DelaySizes(20, 3, 16, max_delay=4, longest=2)


def test_the_known_delay_bound_with_the_printed_logarithms_is_the_worked_number():
    bound = SIZES.known_delay(1e4, printed=True)
    assert bound.leading == pytest.approx(3.225639e6, rel=1e-6)
    assert bound.lower_order == pytest.approx(3.729480e8, rel=1e-6)


@pytest.mark.parametrize(("queue", "expected"), [(3, 26.515303), (4, 27.654738)])
def test_the_printed_log_factor_of_a_queue_is_the_worked_number(queue, expected):
    sizes = {"actions": 2, "horizon": 10, "n_features": 2 * 5 * 2, "episodes": 1e4}
    found = delay_log(queue, 5, **sizes, printed=True)
    assert found == pytest.approx(expected, abs=5e-7)
    assert delay_log(queue, 5, **sizes) - found == pytest.approx(log(11))  # the clock


def test_the_generic_log_factors_are_the_worked_numbers():
    assert bounds.support_log(5, 10, 2 * 5 * 2, 1e4) == pytest.approx(22.579564, abs=5e-7)
    assert bounds.union_log(5, 20, 6, 100, 0.1) == pytest.approx(18.3798587494, abs=5e-11)
    assert 3 * bounds.support_log(3, 5, 6, 100, 0.1) == pytest.approx(44.6199025563, abs=5e-11)
    assert bounds.union_log(2, 3, 4, 5) == pytest.approx(log(32 * 2**2 * 3 * 4 * 5 / 0.05))
    printed = bounds.union_log(7, 20, 6, 100, printed=True)
    assert bounds.union_log(7, 20, 6, 100) - printed == pytest.approx(log(7))


def test_a_small_support_beats_a_long_queue():
    found = delay_log(40, 2, actions=4, horizon=50, n_features=80, episodes=1e5)
    assert found == pytest.approx(2 * log(32 * 50 * 2 * 80 * 1e5 / 0.05))


def test_the_printed_bound_says_something_only_after_160_million_episodes():
    first = bounds.smallest_episodes(lambda k: SIZES.known_delay(k, printed=True), 10)
    assert first == pytest.approx(1.6e8, rel=0.02)


@pytest.mark.parametrize(
    ("bound", "first"), [(lambda k: 10 * sqrt(k), 101), (lambda k: 0.0, 1), (lambda k: 8.0, 9)]
)
def test_the_smallest_number_of_episodes_is_where_a_bound_crosses_the_trivial_one(bound, first):
    assert bounds.smallest_episodes(bound, 1.0) == first


def test_a_bound_that_grows_linearly_is_refused():
    asked = []
    with pytest.raises(pkd.ModelError, match=r"at K = 2\^200; bound\(K\)/K must fall to zero"):
        bounds.smallest_episodes(lambda k: asked.append(k) or 2.0 * k, 1.0)
    assert max(asked) == 2**200


def test_sizes_that_change_nothing():
    none, one = (attrs.evolve(SIZES, longest=w) for w in (0, 1))
    assert none.known_delay(1e4) == one.known_delay(1e4)  # no logarithm of 0
    assert none.unknown_delay(1e4) == none.known_delay(1e4)  # no waiting, no hazard
    beyond = [DelaySizes(50, 2, 10, max_delay=d, longest=1).known_delay(1e4) for d in (9, 40)]
    assert beyond[0] == beyond[1]


def test_the_rate_without_delay_is_the_rate_of_an_mdp_and_not_zero():
    iota = log(10 * 5 * 2 * 1e4 / 0.05)
    found = attrs.evolve(SIZES, max_delay=0).known_delay_rate(1e4)
    assert found.leading == pytest.approx(10 * sqrt(5 * 2 * 1e4) * iota)


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
    found = DelaySizes(S, A, H, D, W, B, delta).unknown_delay(K)
    assert found.leading == pytest.approx(56 * H * sqrt(K * growth * first))
    assert found.lower_order == pytest.approx(2640 * H * growth * lower)


def test_the_first_order_bound_follows_each_delay():
    n, K = 2 * 2, 1e5
    logs = [(d + 1) * log(2) + log(64 * 20 * 21 * (d + 2) ** 2 * n * K / 0.05) for d in range(4)]
    found = DelaySizes(2, 2, 20, 3, longest=1, branching=50).first_order([[0, 1], [2, 3]], K)
    assert found.leading == pytest.approx(56 * 20 * sqrt(K * log(e * K * 20) * sum(logs)))
    wide = 50 * log(32 * 20 * 50 * n * K / 0.05)
    assert found.lower_order == pytest.approx(2640 * 20 * log(e * K * 20) * n * wide)


def test_the_first_order_bound_with_equal_delays_is_theorem_one():
    assert SIZES.first_order([[3, 3]] * 5, 1e4) == SIZES.known_delay(1e4)


def test_a_crude_maximal_delay_lengthens_the_queues_of_hazards_by_one():
    """Two features, and three hazards each with a queue of more than one action."""
    H, K, n = 9, 1e4, 4
    waits, told = [[1, 1]], [DelaySizes(1, 2, H, d, longest=2, branching=2) for d in (2, 3, 8)]
    tight, crude, most = (sizes.first_order([[2, 2]], K, waits) for sizes in told)
    sizes = {"actions": 2, "horizon": H, "n_features": n, "episodes": K}
    longer = delay_log(3, 2, **sizes) - delay_log(2, 2, **sizes)
    growth = 56 * H * sqrt(K * log(e * K * H))
    found = (crude.leading / growth) ** 2 - (tight.leading / growth) ** 2
    assert found == pytest.approx(2 * 3 * longer)
    assert crude == most


def test_the_general_theorem_takes_the_smaller_of_the_two_logarithms_of_each_feature():
    K, H, Y = 1e4, 6, 20
    first = log(32 * H**2 * Y * 2 * K / 0.05)
    narrow, wide = (b * log(32 * H * b * 2 * K / 0.05) for b in (1, 9))
    bound = bounds.general([1, 9], horizon=H, n_y=Y, episodes=K)
    assert narrow < first < wide
    assert bound.leading == pytest.approx(56 * H * sqrt(K * log(e * K * H) * (narrow + first)))
    assert bound.lower_order == pytest.approx(2640 * H * log(e * K * H) * (narrow + wide))


def test_the_general_rate_caps_the_logarithm_of_y_by_the_support():
    found = bounds.general_rate([1, 100], horizon=7, n_y=20, episodes=9)
    assert found == pytest.approx(7 * sqrt(9 * (1 + log(20))) + 7 * 101)


@pytest.mark.parametrize("logarithms", [True, False])
def test_the_rates_are_those_of_the_theorems_and_of_the_previous_bound(logarithms):
    S, A, H, D, K = 20, 3, 16, 4, 1e6
    iota = log(H * S * A * K / 0.05) if logarithms else 1.0
    known = COMPARED.known_delay_rate(K, logarithms=logarithms)
    assert known.leading == pytest.approx(H * sqrt(D * S * A * K) * iota)
    assert known.lower_order == pytest.approx(H * S * S * A * iota**2)  # B = S
    claimed = COMPARED.previous_rate(K) / (known.leading / iota)
    assert claimed == pytest.approx(sqrt(H) * D**2)


@pytest.mark.parametrize("logarithms", [True, False])
def test_the_unknown_law_adds_the_second_term_of_theorem_two(logarithms):
    iota = log(16 * 20 * 3 * 1e6 / 0.05) if logarithms else 1.0
    known = COMPARED.known_delay_rate(1e6, logarithms=logarithms)
    unknown = COMPARED.unknown_delay_rate(1e6, logarithms=logarithms)
    assert unknown.leading - known.leading == pytest.approx(16 * sqrt(2 * 20 * 3 * 1e6) * iota)
    assert unknown.lower_order - known.lower_order == pytest.approx(16 * 2 * 20 * 3 * iota**2)


@pytest.mark.parametrize(
    ("bound", "terms"), [(bounds.Bound(3.0, 4.0), (7.0, 3.0, 4.0)), (bounds.Bound(3.0), (3, 3, 0))]
)
def test_a_bound_remembers_its_terms_through_pickling(bound, terms):
    for found in (bound, pickle.loads(pickle.dumps(bound))):
        assert (found, found.leading, found.lower_order) == terms


def test_bad_sizes_come_in_one_error():
    with pytest.raises(pkd.ModelError) as error:
        DelaySizes(5, 2, 0, -1, -2, 5, delta=1.5)
    assert error.value.findings == (
        "horizon is 0; expected a whole number >= 1",
        "max_delay is -1; expected a whole number >= 0",
        "longest is -2; expected a whole number >= 0",
        "delta is 1.5; expected a number between 0 and 1",
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"delta": 0.0}, "delta is 0.0; expected a number between 0 and 1"),
        ({"delta": 1.0}, "delta is 1.0"),
        ({"branching": [0, 5]}, "branching is 0; expected a whole number >= 1"),
    ],
)
def test_bad_sizes_of_the_general_theorem_are_refused(options, message):
    sizes = {"branching": [2], "horizon": 2, "n_y": 2, "episodes": 10, **options}
    with pytest.raises(pkd.ModelError, match=message):
        bounds.general(**sizes)


@pytest.mark.parametrize("delays", [[], [[3, 3]], [[-1, 3]] * 5])
def test_delays_of_other_pairs_are_refused(delays):
    with pytest.raises(pkd.ModelError, match="expected numbers >= 0 for each of the 10 pairs"):
        SIZES.first_order(delays, 1e4)


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        (DelaySizes(100, 2, 100, 3, branching=40), 3),  # D
        (DelaySizes(100, 2, 19, 10, branching=40), 4),  # H / 4
        (DelaySizes(100, 2, 100, 10, branching=7), 3),  # B / 2
        (DelaySizes(23, 2, 100, 10, branching=40), 4),  # S / 4 - 1
    ],
)
def test_the_code_is_as_long_as_the_smallest_size_allows(sizes, expected):
    assert sizes.code_size == expected


@pytest.mark.parametrize(("printed", "expected"), [(True, 97.915247), (False, 65.276832)])
def test_the_lower_bound_is_the_worked_number(printed, expected):
    assert LARGE.lower_bound(1e6, printed=printed) == pytest.approx(expected, abs=5e-7)


def test_a_code_of_two_is_long_enough_and_a_shorter_one_names_the_sizes():
    S, A, H, K = 100, 2, 100, 1e6
    expected = H / 4608 * sqrt(2 * S * A * K / (96 * log(2)))
    assert attrs.evolve(LARGE, max_delay=2).lower_bound(K) == pytest.approx(expected)
    with pytest.raises(pkd.ModelError) as error:
        DelaySizes(90, A, 42, 1, branching=41).lower_bound(K)
    assert str(error.value).endswith("D = 1, H/4 = 10.5, B/2 = 20.5, S/4 - 1 = 21.5")


def test_the_corrected_constant_follows_from_the_steps_of_the_proof():
    found = LARGE.lower_bound(1e6)
    pulls = 1e6 / (100 / 8 * 2 * found.samples)  # Markov: Pr(N >= n) <= K/(L A n), with L >= S/8
    # What Pinsker and the lemma leave; the paper multiplies `pulls` by 3/4, which it must not.
    confusion = 1 / 4 - pulls
    assert found == pytest.approx(found.gap * 1e6 / 2 * confusion)
    # No pair is tried half of the time before it is known.
    assert found.samples == pytest.approx(48 * 1e6 / 200)
    assert found.samples < 1e6 / 2


@pytest.mark.parametrize(
    ("sizes", "episodes", "unmet"),
    [  # codes of 4, S = 64, A = 2: H >= 8 + 4 * 6
        ({}, 1e4, ()),
        ({"horizon": 31}, 1e4, ("horizon is 31; the theorem needs H >= 8 + 4 log_A S = 32",)),
        ({"actions": 1, "states": 200, "horizon": 999}, 1e4,
         ("actions is 1; the theorem needs A >= 2",)),
        ({"states": 48, "horizon": 40}, 1e4,
         ("S A is 96; n = 48 K/(S A) stays below K/2 only for S A > 96",)),
        ({"states": 49, "horizon": 40}, 1e4, ()),
        ({}, 4 * 128 * log(4) / 24, ()),
        ({}, 4 * 128 * log(4) / 24 * (1 - 1e-12),
         ("episodes is 29.5743; the theorem needs K >= D~ S A log(D~)/24 = 29.5743",)),
    ],
)  # fmt: skip
def test_the_conditions_of_theorem_3_end_at_their_borders(sizes, episodes, unmet, monkeypatch):
    monkeypatch.setattr(late, "smallest_dimension", lambda *, weighted: 4)
    standard = {"states": 64, "actions": 2, "horizon": 32, "max_delay": 4, "branching": 40}
    found = DelaySizes(**{**standard, **sizes}).lower_bound(episodes)
    assert (found.unmet, found.proved) == (unmet, not unmet)


@pytest.mark.parametrize(("missing", "proved"), [(1, False), (0, True)])
def test_the_theorem_is_proved_from_its_absolute_constant_on(missing, proved):
    size = smallest_dimension(weighted=True) - missing
    assert size + missing == 2_817_999 != smallest_dimension(weighted=False)
    sizes = DelaySizes(4 * (size + 1), 2, 4 * size, size, branching=2 * size)
    assert sizes.lower_bound(1e16).proved is proved
    assert pickle.loads(pickle.dumps(sizes.lower_bound(1e16))).proved is proved
    assert not sizes.lower_bound(1e10).proved  # too few episodes


@pytest.mark.parametrize("axes", [None, Figure().subplots()])
def test_a_plot_draws_each_bound_and_the_trivial_one(axes):
    axes = bounds.plot({"root": lambda k: 10 * sqrt(k)}, [1, 100, 10_000], 2.0, axes)
    drawn = {line.get_label(): list(line.get_ydata()) for line in axes.get_lines()}
    assert drawn == {"root": [10.0, 100.0, 1000.0], "trivial: 2 K": [2.0, 200.0, 20_000.0]}
    assert axes.get_legend() is not None
