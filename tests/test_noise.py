"""`NoiseMDP.land` with known randomness, against a recursion over (h, s) from the definition."""

from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

import pkd

numbers = st.integers(1, 5)


class Walk(pkd.NoiseMDP):
    """s' and the reward depend on the noise and on a known coin."""

    horizon = 3

    def __init__(self, seed, as_list=True):
        self.seed, self.as_list = seed, as_list

    def initial(self):
        return 0

    def choices(self, s):
        return pkd.END if s == 3 else ["a", "b"]

    def noise(self, s, a):
        return a

    def outcomes(self, z):
        return [0, 1]

    def land(self, s, a, w):
        up, paid = self.seed[(s + w) % len(self.seed)], len(a) + 0.25 * w * s
        if self.as_list:
            return [(0.1 * up, paid + (a == "b"), min(s + 1, 3)), (1 - 0.1 * up, 0.5 * w, s)]
        return paid, min(s + w, 3)

    def ending(self, s):
        return 0.1 * s


LAW = {"a": {0: 0.5, 1: 0.5}, "b": {0: 0.25, 1: 0.75}}


def solve(model):
    """max_a sum_w P(w) sum_{(p, r, s')} p (r + V(h + 1, s'))."""

    @cache
    def value(h, s):
        if s == 3 or h == model.horizon:
            return model.ending(s)
        return max(
            sum(
                pw * p * (r + value(h + 1, after))
                for w, pw in LAW[a].items()
                for p, r, after in (
                    [(1.0, *model.land(s, a, w))] if not model.as_list else model.land(s, a, w)
                )
            )
            for a in ("a", "b")
        )

    return value(0, 0)


@given(seed=st.lists(numbers, min_size=1, max_size=4), as_list=st.booleans())
def test_known_randomness_is_planned_exactly(seed, as_list):
    model = Walk(tuple(seed), as_list)
    pkd.check_model(model, LAW)
    assert pkd.plan(model, LAW).value == pytest.approx(solve(model), abs=1e-12)


def test_the_return_is_drawn_and_not_averaged():
    """Each step pays 1, 0 or 0.5 at s = 0 in the first step, as `land` lists them."""

    class Once(Walk):
        horizon = 1

        def ending(self, s):
            return 0.0

    returns = pkd.evaluate(Once((5,)), LAW, lambda h, x, y: "a").returns()
    assert returns == pytest.approx({0.0: 0.25, 0.5: 0.25, 1.0: 0.5})


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ([(0.5, 0.0, 0), (0.4, 0.0, 1)], "sums to 0.9, not 1"),
        ([(0.5, 0), (0.5, 1)], r"expected \(reward, s'\) or a list of \(probability, reward, s'\)"),
        ((1.0, 0.0, 0), r"land\(s=0, a='a', w=0\) returned \(1.0, 0.0, 0\); expected"),
        (0.0, r"land\(s=0, a='a', w=0\) returned 0.0; expected"),
    ],
)
def test_what_land_says_is_checked(answer, said, monkeypatch):
    monkeypatch.setattr(Walk, "land", lambda self, s, a, w: answer)
    with pytest.raises(pkd.ModelError, match=said):
        pkd.check_model(Walk((1,)))
