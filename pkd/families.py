"""Families of laws: what `outcomes(z)` may return where the law of z has few parameters.

Let n be the counts of z, L(q) = prod_x q(x)^n(x), and w(n) the probability of the data under the
mixture of `pkd.engine.confidence`. A family has a mixture of its own, m(n) = sum_j w_j L(p_j) over
some of its laws. For the true law p the ratio (m(n) + w(n)) / 2 L(p) is the wealth of a fair bet,
so by Ville's inequality it stays below 1 / (weight delta) for ever with probability 1 - weight
delta. The laws of the family that are not refuted are

    { p_t : log L(p_t) >= log((m(n) + w(n)) / 2) - log(1 / (weight delta)) }.

If there is none, the data refute the family: w(n) explains them better than every one of its laws.
Each term of m(n) that is left out makes the set larger, never smaller.

A set is given as cells {q : lower <= q <= upper, sum q = 1} that cover it; the largest q.V over all
cells is an upper bound of the largest p_t.V. One parameter t: log p_t(x) is concave in t for each
x. So L is, too, and the set is an interval; in a part [a, b] of it the least p_t(x) is at an end,
and the largest one lies below the chords through the points next to a and b.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from pkd.expect import fraction, if_given, number, require, show, whole
from pkd.lazy import Heavy
from pkd.model import ModelError

if TYPE_CHECKING:
    from scipy import special
else:  # most models need none of it
    special = Heavy("scipy.special")

__all__ = ["Binomial", "Cells", "Family", "Geometric", "Mixture", "OneOf", "Poisson"]

POINTS, ROUNDS = 65, 9  # a search for a point takes so many points at once, so often
CELLS = 48  # that cover an interval of parameters
LEVELS, NEAR = 36, 8  # of the grids of m(n), and how many points of each on both sides count
ROUNDING = 1e-9  # of a logarithm of a likelihood; a set is larger by this much
OUTWARD = 1e-12  # of a probability
SHORT = 60  # characters of an outcome in a message


Numbers = Sequence[float] | np.ndarray


class Cells(NamedTuple):
    """What is left of a family: laws q with lower <= q <= upper in one of the cells."""

    lower: np.ndarray  # (cells, outcomes)
    upper: np.ndarray  # (cells, outcomes)
    text: str  # the parameters that are left, in words; "none" without a cell
    laws: np.ndarray | None = None  # (K, outcomes): cells are of weights of these laws

    def largest(self, v: np.ndarray) -> np.ndarray:
        """(n,) the largest q.v over all cells; v: (n, outcomes).

        >>> cells = Cells(np.array([[0.2, 0.5]]), np.array([[0.5, 0.7]]), "")
        >>> cells.largest(np.array([[1.0, 0.0], [0.0, 1.0]])).round(3).tolist()
        [0.5, 0.7]
        """
        v = v if self.laws is None else v @ self.laws.T
        order = np.argsort(-v, axis=1)
        sorted_v = np.take_along_axis(v, order, axis=1)
        left = 1.0 - self.lower.sum(axis=1)
        reach = v @ self.lower.T + sorted_v[:, :1] * left  # no q.v of a cell is above it
        best = np.full(len(v), -np.inf)
        for cell in np.argsort(-reach.max(axis=0, initial=-np.inf)).tolist():
            ask = np.flatnonzero(reach[:, cell] > best)
            room = np.maximum(self.upper[cell] - self.lower[cell], 0.0)[order[ask]]
            before = np.cumsum(room, axis=1) - room
            taken = np.clip(left[cell] - before, 0.0, room)
            taken[:, -1] += left[cell] - taken.sum(axis=1)  # rounding only
            found = v[ask] @ self.lower[cell] + (taken * sorted_v[ask]).sum(axis=1)
            best[ask] = np.maximum(best[ask], found)
        largest: np.ndarray = np.minimum(best, sorted_v[:, 0])
        return largest


class Family(ABC):
    """Laws with one parameter in [low, high]. `outcomes(z)` of a model returns the family.

    A family of your own says its outcomes, `low`, `high` and `log_law`. log p_t(x) must be concave
    in t for each x, which `check_model` tests at points.

    >>> class Coin(Family):
    ...     outcomes, low, high = ("tails", "heads"), 0.25, 0.75
    ...     def log_law(self, t):
    ...         return np.log(np.stack([1 - t, t], axis=1))
    >>> Coin().fit([30, 70]).round(2).tolist()
    [0.3, 0.7]
    >>> Coin().unrefuted([300, 700], budget=3.0).text  # doctest: +ELLIPSIS
    'parameter in [0.6..., 0.7...]'
    """

    outcomes: Sequence[Any]
    low: float
    high: float
    parameter = "parameter"  # its name in tables

    @abstractmethod
    def log_law(self, t: np.ndarray) -> np.ndarray:
        """(len(t), outcomes) the logarithms of p_t(x), -inf for 0."""

    def __iter__(self) -> Iterator[Any]:
        return iter(self.outcomes)

    def __len__(self) -> int:
        return len(self.outcomes)

    def rename(self, to: Callable[[Any], Any]) -> Family:
        """The same laws of other outcomes."""
        return Renamed(self, to)

    @property
    def identity(self) -> str:
        """What tells the family from others with the same outcomes, for fingerprints."""
        laws = np.exp(self.log_law(np.linspace(self.low, self.high, 5)))
        return f"{type(self).__name__} {self.low} {self.high} {laws.round(9).tolist()}"

    def find_faults(self) -> Iterator[str]:
        """What is wrong with `log_law` at points between low and high."""
        t = np.linspace(self.low, self.high, POINTS)
        logs = np.asarray(self.log_law(t), float)
        if logs.shape != (POINTS, len(self)):
            yield f"log_law(t) of {POINTS} parameters has the shape {logs.shape}; expected " + str(
                (POINTS, len(self))
            )
            return
        if np.isnan(logs).any() or np.abs(np.exp(logs).sum(axis=1) - 1.0).max() > 1e-9:
            yield "some law of the family does not sum to 1"
        with np.errstate(invalid="ignore"):
            bends = logs[1:-1] - 0.5 * (logs[:-2] + logs[2:]) < -1e-9 * (1.0 + np.abs(logs[1:-1]))
        if bends.any():
            at, i = np.argwhere(bends)[0]
            yield (
                f"the logarithm of the probability of {self.outcomes[i]!r} is not concave in the "
                f"parameter near {t[at + 1]:.4g}; its values could not be bounded"
            )

    def fit(self, counts: Numbers) -> np.ndarray:
        """(outcomes,) the most likely law; that of the middle parameter without data."""
        n = np.asarray(counts, float)
        t = self._find_peak(n) if n.any() else 0.5 * (self.low + self.high)
        law = np.exp(self.log_law(np.array([t]))[0])
        return np.asarray(law / law.sum())

    def most_likely(self, counts: Numbers) -> float:
        """An upper bound of log L over the family, exact up to rounding."""
        n = np.asarray(counts, float)
        found = float(self._likelihood(np.array([self._find_peak(n)]), n)[0])
        return found + ROUNDING * (1.0 + abs(found))

    def unrefuted(self, counts: Numbers, budget: float, table: float = -math.inf) -> Cells:
        """The laws that are left; table: log w(n), budget: log(1 / (weight delta))."""
        n = np.asarray(counts, float)
        peak = self._find_peak(n)
        level = self._find_level(self._mix(n, peak), table, budget)
        if float(self._likelihood(np.array([peak]), n)[0]) < level:
            return self._no_cells()
        left, right = (self._find_end(n, peak, end, level) for end in (self.low, self.high))
        text = f"{self.parameter} in [{left:.4g}, {right:.4g}]"
        return Cells(*self._cover(left, right), text)

    # -- parts -------------------------------------------------------------------------------------

    def _no_cells(self) -> Cells:
        none = np.zeros((0, len(self)))
        return Cells(none, none, "none")

    def _find_level(self, mixture: float, table: float, budget: float) -> float:
        """The least log L of what is left."""
        level = float(np.logaddexp(mixture, table)) - float(np.log(2.0)) - budget
        return level - ROUNDING * (1.0 + abs(level))

    def _likelihood(self, t: np.ndarray, n: np.ndarray) -> np.ndarray:
        """(len(t),) log L."""
        seen = n > 0
        found: np.ndarray = self.log_law(t)[:, seen] @ n[seen]
        return found

    def _find_peak(self, n: np.ndarray) -> float:
        low, high = self.low, self.high
        for _ in range(ROUNDS):
            t = np.linspace(low, high, POINTS)
            best = int(np.argmax(self._likelihood(t, n)))
            low, high = t[max(best - 1, 0)], t[min(best + 1, POINTS - 1)]
        return float(t[best])

    def _find_end(self, n: np.ndarray, peak: float, end: float, level: float) -> float:
        """A parameter between the end and the peak at which log L is below the level, or the end.

        All of the set on that side lies between it and the peak.
        """
        if self._likelihood(np.array([end]), n)[0] >= level:
            return end
        inner, outer = peak, end
        for _ in range(ROUNDS):
            t = np.linspace(outer, inner, POINTS)
            first = int(np.argmax(self._likelihood(t, n) >= level))
            if first == 0:  # the peak itself is at the level, up to rounding
                break
            outer, inner = float(t[first - 1]), float(t[first])
        return outer

    def _mix(self, n: np.ndarray, peak: float) -> float:
        """log m(n), from below. Level k = 0, 1, ... has 2^k laws, and the weight 1/((k+1)(k+2))."""
        k = np.arange(LEVELS)[:, None]
        number = 2.0**k
        width = (self.high - self.low) / number
        near = np.floor((peak - self.low) / np.maximum(width, 1e-300)) + np.arange(-NEAR, NEAR + 1)
        inside = (near >= 0) & (near < number)
        t = np.clip(self.low + (near + 0.5) * width, self.low, self.high)
        weight = np.broadcast_to(-np.log((k + 1.0) * (k + 2.0)) - np.log(number), t.shape)
        found = self._likelihood(t.ravel(), n).reshape(t.shape) + weight
        return float(np.logaddexp.reduce(np.where(inside, found, -np.inf), axis=None))

    def _cover(self, left: float, right: float) -> tuple[np.ndarray, np.ndarray]:
        """(lower, upper) of the cells of [left, right]."""
        if not left < right:
            law = np.exp(self.log_law(np.array([left])))
            return law, law
        step = (right - left) / CELLS
        t = np.concatenate([[left - step], np.linspace(left, right, CELLS + 1), [right + step]])
        given = (t >= self.low) & (t <= self.high)
        f = np.where(given[:, None], self.log_law(np.clip(t, self.low, self.high)), np.nan)
        f, outside = f[1:-1], (f[0], f[-1])
        with np.errstate(invalid="ignore"):
            rise = np.diff(np.vstack([outside[0], f, outside[1]]), axis=0)
            # A chord through the points before a cell, and one through the points after it.
            before = f[:-1] + np.maximum(rise[:-2], 0.0)
            after = f[1:] + np.maximum(-rise[2:], 0.0)
            top = np.fmin(before, after)
        top = np.where(np.isfinite(top), top, 0.0)
        lower = np.exp(np.minimum(f[:-1], f[1:])) * (1.0 - OUTWARD)
        upper = np.minimum(np.exp(top) * (1.0 + OUTWARD), 1.0)
        return lower, np.maximum(upper, lower)


class Renamed(Family):
    """A family whose outcomes have other names."""

    def __init__(self, family: Family, to: Callable[[Any], Any]) -> None:
        self.family, self.outcomes = family, tuple(map(to, family))
        self.low, self.high, self.parameter = family.low, family.high, family.parameter

    def __repr__(self) -> str:
        return repr(self.family)

    @property
    def identity(self) -> str:
        return self.family.identity

    def find_faults(self) -> Iterator[str]:
        return self.family.find_faults()

    def log_law(self, t: np.ndarray) -> np.ndarray:
        return self.family.log_law(t)

    def fit(self, counts: Numbers) -> np.ndarray:
        return self.family.fit(counts)

    def most_likely(self, counts: Numbers) -> float:
        return self.family.most_likely(counts)

    def unrefuted(self, counts: Numbers, budget: float, table: float = -math.inf) -> Cells:
        return self.family.unrefuted(counts, budget, table)


class Poisson(Family):
    """Pr(k) = exp(-t) t^k / k! for k < max; all above it is put at max. t in [low, high].

    log Pr(x >= max) is concave in t, too: it is the distribution function of a gamma law.

    >>> Poisson(max=3).fit([2, 1, 1, 0]).round(4).tolist()
    [0.4724, 0.3543, 0.1329, 0.0405]
    """

    parameter = "mean"

    def __init__(
        self,
        max: int,  # noqa: A002
        low: float = 0.0,
        high: float | None = None,
    ) -> None:
        require(whole("max", max, 1), number("low", low, 0), if_given(number, "high", high, 0))
        self.low, self.high = float(low), float(max if high is None else high)
        require(number("high", self.high, self.low))
        self.outcomes = range(max + 1)

    def __repr__(self) -> str:
        return f"Poisson(max={self.outcomes[-1]}, low={self.low:g}, high={self.high:g})"

    def log_law(self, t: np.ndarray) -> np.ndarray:
        k, t = np.arange(len(self) - 1), np.asarray(t, float)[:, None]
        with np.errstate(divide="ignore"):
            tail = np.log(special.gammainc(len(self) - 1, t))
        return np.hstack([special.xlogy(k, t) - t - special.gammaln(k + 1), tail])


class Binomial(Family):
    """Pr(k) = C(n, k) t^k (1 - t)^(n - k) for k = 0..n. t in [low, high].

    >>> Binomial(2).fit([1, 2, 1]).round(6).tolist()
    [0.25, 0.5, 0.25]
    """

    parameter = "chance"

    def __init__(self, n: int, low: float = 0.0, high: float = 1.0) -> None:
        _require_chances(whole("n", n, 1), low, high)
        self.low, self.high, self.outcomes = float(low), float(high), range(n + 1)

    def __repr__(self) -> str:
        return f"Binomial({len(self) - 1}, low={self.low:g}, high={self.high:g})"

    def log_law(self, t: np.ndarray) -> np.ndarray:
        n, k, t = len(self) - 1, np.arange(len(self)), np.asarray(t, float)[:, None]
        ways = special.gammaln(n + 1) - special.gammaln(k + 1) - special.gammaln(n - k + 1)
        found: np.ndarray = ways + special.xlogy(k, t) + special.xlog1py(n - k, -t)
        return found


class Geometric(Family):
    """Pr(k) = t (1 - t)^k for k < max, failures before a success; all above is put at max.

    >>> Geometric(max=2).fit([2, 1, 1]).round(6).tolist()
    [0.5, 0.25, 0.25]
    """

    parameter = "chance"

    def __init__(self, max: int, low: float = 0.0, high: float = 1.0) -> None:  # noqa: A002
        _require_chances(whole("max", max, 1), low, high)
        self.low, self.high, self.outcomes = float(low), float(high), range(max + 1)

    def __repr__(self) -> str:
        return f"Geometric(max={len(self) - 1}, low={self.low:g}, high={self.high:g})"

    def log_law(self, t: np.ndarray) -> np.ndarray:
        last, t = len(self) - 1, np.asarray(t, float)[:, None]
        missed = special.xlog1py(np.arange(last + 1), -t)
        with np.errstate(divide="ignore"):
            return np.hstack([missed[:, :-1] + np.log(t), missed[:, -1:]])


def _require_chances(findings: Iterable[str], low: float, high: float) -> None:
    require(findings, fraction("low", low, closed=True), fraction("high", high, closed=True))
    require([] if low <= high else [f"low is {low!r}; expected at most high, {high!r}"])


class _OfLaws(Family):
    """What is made of given laws, which sum to 1 and have no parameter between them."""

    least = 1  # laws

    def __init__(self, laws: Sequence[Mapping[Any, float]]) -> None:
        listed = isinstance(laws, Sequence) and len(laws) >= self.least
        if not listed or not all(isinstance(law, Mapping) and law for law in laws):
            raise ModelError(
                f"{type(self).__name__}({show(laws)}): expected a list of laws "
                f"{{x': probability}}, at least {self.least}"
            )
        self.outcomes = tuple(dict.fromkeys(x for law in laws for x in law))
        found = [_find_masses(type(self).__name__, law) for law in laws]
        self.laws = np.array([[law.get(x, 0.0) for x in self.outcomes] for law in found])
        self.low, self.high = 0.0, 1.0

    def __repr__(self) -> str:
        return f"{type(self).__name__} of {len(self.laws)} laws"

    def log_law(self, t: np.ndarray) -> np.ndarray:
        raise ModelError(f"{type(self).__name__} is given by laws, not by one parameter")

    def find_faults(self) -> Iterator[str]:
        return iter(())

    @property
    def identity(self) -> str:
        return f"{type(self).__name__} {self.laws.tolist()}"

    def _of_laws(self, n: np.ndarray) -> np.ndarray:
        """log L of each law."""
        with np.errstate(divide="ignore"):
            found: np.ndarray = np.log(self.laws)[:, n > 0] @ n[n > 0]
        return found


def _find_masses(name: str, law: Mapping[Any, float]) -> dict[Any, float]:
    good = not any(finding for p in law.values() for finding in number("p", p))
    total = sum(law.values()) if good else 0.0
    if abs(total - 1) > 1e-9:
        raise ModelError(f"{name}: {str(law)[:SHORT]} is no law; expected numbers that sum to 1")
    return {x: p / total for x, p in law.items()}


class OneOf(_OfLaws):
    """One of the given laws; nobody knows which.

    >>> coins = OneOf([{0: 0.5, 1: 0.5}, {0: 0.9, 1: 0.1}])
    >>> coins.fit([8, 2]).tolist()
    [0.9, 0.1]
    >>> coins.unrefuted([900, 100], budget=3.0).text
    'law 2'
    """

    def fit(self, counts: Numbers) -> np.ndarray:
        n = np.asarray(counts, float)
        best: np.ndarray = self.laws[int(np.argmax(self._of_laws(n)))]
        return best if n.any() else self.laws.mean(axis=0)

    def most_likely(self, counts: Numbers) -> float:
        return float(self._of_laws(np.asarray(counts, float)).max())

    def unrefuted(self, counts: Numbers, budget: float, table: float = -math.inf) -> Cells:
        found = self._of_laws(np.asarray(counts, float))
        mixture = float(np.logaddexp.reduce(found)) - float(np.log(len(found)))
        left = found >= self._find_level(mixture, table, budget)
        numbers = ", ".join(str(i + 1) for i in np.flatnonzero(left))
        text = f"law{'s' if left.sum() > 1 else ''} {numbers}" if left.any() else "none"
        return Cells(self.laws[left], self.laws[left], text)


class Mixture(_OfLaws):
    """A mixture sum_k t_k p_k of given laws with unknown weights t.

    Data are a portfolio problem, so Cover's universal portfolio with the weights of Dirichlet(1/2)
    has, for K laws and N samples, whatever the data are (Cover and Ordentlich 1996),

        log m(n) >= max_t log L(t) - log [Gamma(1/2) Gamma(N + K/2) / (Gamma(K/2) Gamma(N + 1/2))].

    log L lies below its tangents. With u the slopes of log L at some weights s, less N,

        log L(t) <= log L(s) + u.t,    so with  i = max_{j != k} u_j,  b = log L(s) - level
        t_k <= (i + b) / (i - u_k)  where u_k < -b,     t_k >= (-b - i) / (u_k - i)  where i < -b

    for every t that is left. The box of these limits covers the set; it is one cell of weights.

    >>> noise = Mixture([{0: 1.0}, {0: 0.5, 1: 0.5}])
    >>> noise.fit([75, 25]).round(6).tolist()
    [0.75, 0.25]
    >>> noise.unrefuted([7500, 2500], budget=3.0).text
    'weights in [0.463, 0.536], [0.464, 0.537]'
    """

    least = 2

    def fit(self, counts: Numbers) -> np.ndarray:
        law = self._climb(np.asarray(counts, float)) @ self.laws
        return np.asarray(law / law.sum())

    def most_likely(self, counts: Numbers) -> float:
        """log L(s) + max_k u_k: every log L(t) is below it."""
        n = np.asarray(counts, float)
        found, slope = self._rise(self._climb(n), n)
        return found + max(float(slope.max()), 0.0) + ROUNDING * (1.0 + abs(found))

    def unrefuted(self, counts: Numbers, budget: float, table: float = -math.inf) -> Cells:
        n = np.asarray(counts, float)
        total, size = float(n.sum()), len(self.laws)
        best = self._climb(n)
        found, _ = self._rise(best, n)
        cost = special.gammaln([0.5, total + size / 2, size / 2, total + 0.5]) @ [1, 1, -1, -1]
        level = self._find_level(found - max(float(cost), 0.0), table, budget)
        if not self.most_likely(n) >= level:
            return self._no_cells()
        ends = [[self._find_limit(best, n, level, k, up) for k in range(size)] for up in (0, 1)]
        text = ", ".join(f"[{low:.3g}, {high:.3g}]" for low, high in zip(*ends, strict=True))
        low, high = (np.array([end]) for end in ends)
        return Cells(low, high, f"weights in {text}", self.laws)

    def _climb(self, n: np.ndarray, k: int = -1, kept: float = 0.0, steps: int = 500) -> np.ndarray:
        """Likely weights, by expectation and maximisation; t_k = kept, if there is a k."""
        t = np.ones(len(self.laws)) / len(self.laws)
        for _ in range(steps):
            old = t
            if n.any():
                t = t * np.maximum(self._rise(t, n)[1] + n.sum(), 0.0)
            if k >= 0:
                t = np.where(np.arange(len(t)) == k, 0.0, t)
            t = (1.0 - kept) * t / t.sum() if t.sum() > 0.0 else np.where(t == t, 1.0 - kept, 0.0)
            if k >= 0:
                t[k] = kept
            if np.abs(t - old).max() < 1e-13:
                break
        return t

    def _rise(self, t: np.ndarray, n: np.ndarray) -> tuple[float, np.ndarray]:
        """log L at the weights t, and its slopes less N."""
        seen = n > 0
        p = np.maximum(t @ self.laws[:, seen], 1e-300)
        return float(n[seen] @ np.log(p)), self.laws[:, seen] @ (n[seen] / p) - n.sum()

    def _find_limit(self, best: np.ndarray, n: np.ndarray, level: float, k: int, up: int) -> float:
        """A bound of t_k over all weights with log L >= level, from the tangent near its end."""
        inner, outer = float(best[k]), float(up)
        for _ in range(16):
            middle = 0.5 * (inner + outer)
            left = self._rise(self._climb(n, k, middle, 30), n)[0] >= level
            inner, outer = (middle, outer) if left else (inner, middle)
        found, slope = self._rise(self._climb(n, k, outer), n)
        others, b = float(np.delete(slope, k).max()), found - level
        if up:
            limit = (others + b) / (others - slope[k]) if slope[k] < -b else 1.0
        else:
            limit = (-b - others) / (slope[k] - others) if others < -b else 0.0
        # At the end of the simplex, or with rounding alone between them, nothing is excluded.
        sound = np.isfinite(limit) and (limit >= best[k] if up else limit <= best[k])
        limit = limit + (ROUNDING if up else -ROUNDING) if sound else float(up)
        return float(min(max(limit, 0.0), 1.0))
