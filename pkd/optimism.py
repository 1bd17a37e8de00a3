"""Optimism rules: how a learner values what it has not seen often.

A rule is a value; each works for every model. MVP is the paper's rule (its algorithm MVP-Est). With
p the observed frequencies, N = N(z), l = ell(z, y') and w the width of the values:

    MVP                pV + c1 sqrt(Var_p(V) l / N) + c2 w l / N      (N <= 1: the cap)
    MVP(monotone=True) pV + max(c1 sqrt(Var_p(V) l / N), c2 w l / N)  (monotone in V if c2 >= c1^2)
    Hoeffding          pV + c w l / sqrt(N)                           (N = 0: the cap; UCBVI-CH)
    Greedy             pV                                             (N = 0: uniform)
    PosteriorSampling  PV with P drawn from Dirichlet(prior + counts) at every plan
    Certified          max {qV : KL(p, q) <= C(z)}, the laws that the data have not refuted

Further rules, and rules in Python, are in `pkd.rules`.

Every rule says what it guarantees: "as published" (the rule and the constants of a theorem),
"certified" (its upper values hold with probability 1 - delta, by `pkd.confidence`), or
"no guarantee".
"""

from __future__ import annotations

import math
from typing import Any, Literal

import attrs

from pkd.model import ModelError

__all__ = [
    "MVP", "Certified", "Greedy", "Guarantee", "Hoeffding", "Optimism", "PosteriorSampling",
    "from_config",
]  # fmt: skip

# The forms of the bonus, as `pkd.engine.bonus` knows them.
NO_BONUS, SUM, MAX, HOEFFDING, CERTIFIED, KL_BALL, L1_BALL, DRAWS, PYTHON = range(9)
OVER_SETS = CERTIFIED, KL_BALL  # the largest value over {q : KL(p, q) <= C(z)}
ONE_ROUND, ALL_ROUNDS = 1, 40  # of the search for the largest value over a set of laws
Guarantee = Literal["as published", "certified", "no guarantee"]
THEORY_C1, THEORY_C2 = 20 / 3, 400 / 9
HOMES = ("pkd.optimism", "pkd.rules")  # the modules of the rules that come with pkd


@attrs.frozen
class Bonus:
    """A rule in the numbers that kernels take."""

    form: int
    c1: float = 0.0
    c2: float = 0.0
    free: float = 0.0  # N(z) <= free gives the cap
    prior: float = 0.0  # > 0: laws are drawn from a Dirichlet posterior
    log_factor: float | None = None  # in place of ell
    parts: int = 1  # delta is divided by this: a rule that takes the best of two bounds halves it
    anytime: bool = False  # the logarithms grow with the episodes: their number need not be known
    # Of the search for the largest value over a set of laws. DRAWS: which value counts, from 1 for
    # the largest.
    rounds: int = ONE_ROUND
    draws: int = 0  # DRAWS: laws that are drawn for each feature
    weight: float = 0.0  # DRAWS: how many samples the optimistic outcome counts for
    rule: Any = None  # PYTHON: the rule itself, whose `value` is asked
    apart: bool = False  # PYTHON: it plans for a model that keeps every state apart

    @property
    def needs_episodes(self) -> bool:
        """Whether the logarithms depend on the number of episodes of the whole run."""
        free = self.form in (NO_BONUS, L1_BALL, DRAWS, PYTHON)
        return not free and self.log_factor is None and not self.anytime


def positive(rule: Any, field: Any, value: Any) -> None:
    if (
        isinstance(value, bool)
        or not isinstance(value, (int, float))
        or not math.isfinite(value)
        or value < 0
    ):
        raise ModelError(f"{type(rule).__name__}({field.name}={value!r}): expected a number >= 0")


def _positive_or_none(rule: Any, field: Any, value: Any) -> None:
    if value is not None:
        positive(rule, field, value)


class Optimism:
    """Base of all rules.

    `bonus` gives the numbers for the kernels, `name` the rule with its constants, and `label` the
    words for tables and plots, which say what is guaranteed.

    >>> MVP.practical().to_config()
    {'rule': 'MVP', 'c1': 0.5, 'c2': 0.25, 'log_factor': 1.0, 'monotone': False}
    """

    def bonus(self) -> Bonus:
        raise ModelError(f"{type(self).__name__} does not define bonus()")

    @property
    def name(self) -> str:
        return type(self).__name__

    @property
    def guarantee(self) -> Guarantee:
        return "no guarantee"

    @property
    def label(self) -> str:
        told = self.guarantee in self.name.lower()
        return self.name if told else f"{self.name}, {self.guarantee}"

    def log_factor_at(self, k: int) -> float | None:
        """The logarithm ell of the plan before episode k (from 1); None: as `bonus` says.

        >>> class Growing(MVP):
        ...     def log_factor_at(self, k: int) -> float:
        ...         return math.log(1 + k)
        >>> Growing(c1=1.0, c2=1.0).log_factor_at(1)
        0.6931471805599453
        """
        return None

    def to_config(self) -> dict[str, Any]:
        """A rule as plain data, for files. A rule of your own also keeps its label."""
        kind = type(self)
        if kind.__module__ in HOMES and attrs.has(kind):
            return {"rule": kind.__name__, **attrs.asdict(self)}  # type: ignore[arg-type]
        given = self._arguments()
        plain = {
            key: value
            for key, value in given.items()
            if value is None or isinstance(value, bool | int | float | str)
        }
        return {
            "rule": f"{kind.__module__}:{kind.__qualname__}",
            "label": self.label,
            "arguments": plain,
            "complete": len(plain) == len(given),
            "apart": self.bonus().apart,
        }

    def _arguments(self) -> dict[str, Any]:
        """What the class is called with to make this rule again."""
        kind: Any = type(self)
        if attrs.has(kind):
            return {field.alias: getattr(self, field.name) for field in attrs.fields(kind)}
        return {key: value for key, value in vars(self).items() if key[0] != "_"}


@attrs.frozen
class MVP(Optimism):
    """The Bernstein rule of the paper; the default constants are those of its theorem.

    >>> MVP().label
    'MVP, as published'
    >>> MVP.practical().label
    'MVP, practical constants, no guarantee'
    """

    c1: float = attrs.field(default=THEORY_C1, validator=positive)
    c2: float = attrs.field(default=THEORY_C2, validator=positive)
    log_factor: float | None = attrs.field(
        default=None, validator=_positive_or_none
    )  # None: the theorem's ell
    monotone: bool = False

    @classmethod
    def practical(cls) -> MVP:
        """Small constants that learn quickly, without a guarantee.

        With c2 >= c1^2 the max form is monotone.
        """
        return cls(c1=0.5, c2=0.25, log_factor=1.0)

    def bonus(self) -> Bonus:
        return Bonus(
            MAX if self.monotone else SUM, self.c1, self.c2, free=1.0, log_factor=self.log_factor
        )

    @property
    def guarantee(self) -> Guarantee:
        published = (self.c1, self.c2, self.log_factor) == (THEORY_C1, THEORY_C2, None)
        own = type(self) is MVP and not self.monotone
        return "as published" if published and own else "no guarantee"

    @property
    def name(self) -> str:
        form, own = " (max form)" if self.monotone else "", type(self) is MVP
        if own and (self.c1, self.c2, self.log_factor) == (THEORY_C1, THEORY_C2, None):
            return f"MVP{form}"
        if own and (self.c1, self.c2, self.log_factor) == (0.5, 0.25, 1.0):
            return f"MVP{form}, practical constants"
        logarithm = "" if self.log_factor is None else f", log factor {self.log_factor:g}"
        return f"{type(self).__name__}{form}, c1={self.c1:g}, c2={self.c2:g}{logarithm}"


@attrs.frozen
class Hoeffding(Optimism):
    """The bonus c w l / sqrt(N) of UCBVI-CH, with c = 7 as published there.

    >>> import pkd
    >>> tosses = [[[0.5, 0.5], [1.0, 0.0]], [[0.5, 0.5], [0.0, 1.0]]]
    >>> coin = pkd.TabularMDP(tosses, [[0.0, 0.0], [1.0, 1.0]], horizon=2)
    >>> counts = {(0, 0): {0: 50, 1: 50}, (0, 1): {0: 100}}
    >>> rule = Hoeffding(c=1, log_factor=1)  # 1/2 + 1/sqrt(100)
    >>> pkd.optimistic_plan(coin.model(), counts, episodes=10, optimism=rule).value
    0.6
    """

    c: float = attrs.field(default=7.0, validator=positive)
    log_factor: float | None = attrs.field(default=None, validator=_positive_or_none)

    def bonus(self) -> Bonus:
        return Bonus(HOEFFDING, c1=self.c, log_factor=self.log_factor)

    @property
    def guarantee(self) -> Guarantee:
        published = (self.c, self.log_factor) == (7.0, None) and type(self) is Hoeffding
        return "as published" if published else "no guarantee"

    @property
    def name(self) -> str:
        constant = "" if self.guarantee == "as published" else f", c={self.c:g}"
        logarithm = "" if self.log_factor is None else f", log factor {self.log_factor:g}"
        return f"{type(self).__name__}{constant}{logarithm}"


@attrs.frozen
class Certified(Optimism):
    """Optimism over the laws that the data have not refuted: max {qV : KL(p, q) <= C(z)}.

    With probability 1 - delta the true laws are in all sets at all times (`pkd.confidence`), so
    every upper value is at least V*, and the least values over the same sets are at most V*. No
    number of episodes is needed. minimax: each pair (z, y') takes the smaller of this maximum and
    MVP-Est, each with delta / 2, so that the regret is also at most that of MVP-Est with delta / 2.
    A learner does not promise its number of episodes to MVP-Est: while it has played at most 2^j,
    it uses K = 2^j and delta / (2 (j + 1) (j + 2)), which sum to delta / 2 over j.
    exact: the maximum to 1e-9 of the range; otherwise an upper bound of it that is at most a few
    percent larger.

    >>> import pkd
    >>> tosses = [[[0.5, 0.5], [1.0, 0.0]], [[0.5, 0.5], [0.0, 1.0]]]
    >>> coin = pkd.TabularMDP(tosses, [[0.0, 0.0], [1.0, 1.0]], horizon=2)
    >>> counts = {(0, 0): {0: 50, 1: 50}, (0, 1): {0: 100}}
    >>> rule = Certified(exact=True)
    >>> found = pkd.optimistic_plan(coin.model(), counts, episodes=10, optimism=rule)
    >>> round(found.value, 4)
    0.6955
    """

    minimax: bool = True
    exact: bool = False

    def bonus(self) -> Bonus:
        return Bonus(
            CERTIFIED,
            THEORY_C1,
            THEORY_C2,
            free=1.0 if self.minimax else math.inf,
            parts=2 if self.minimax else 1,
            anytime=True,
            rounds=ALL_ROUNDS if self.exact else ONE_ROUND,
        )

    @property
    def guarantee(self) -> Guarantee:
        return "certified" if type(self) is Certified else "no guarantee"

    @property
    def name(self) -> str:
        options = [] if self.minimax else ["without MVP"]
        return ", ".join([type(self).__name__, *options, *(["exact"] if self.exact else [])])


@attrs.frozen
class Greedy(Optimism):
    """No bonus: the plan for the observed frequencies. It never explores.

    >>> import pkd
    >>> tosses = [[[0.5, 0.5], [1.0, 0.0]], [[0.5, 0.5], [0.0, 1.0]]]
    >>> coin = pkd.TabularMDP(tosses, [[0.0, 0.0], [1.0, 1.0]], horizon=2)
    >>> counts = {(0, 0): {0: 1, 1: 3}, (0, 1): {0: 4}}
    >>> pkd.optimistic_plan(coin.model(), counts, episodes=10, optimism=Greedy()).value
    0.75
    """

    def bonus(self) -> Bonus:
        return Bonus(NO_BONUS)

    @property
    def name(self) -> str:
        return f"{type(self).__name__} (no bonus)"


@attrs.frozen
class PosteriorSampling(Optimism):
    """Plans for a law drawn from Dirichlet(prior + counts), anew at every plan.

    >>> import pkd
    >>> tosses = [[[0.5, 0.5], [1.0, 0.0]], [[0.5, 0.5], [0.0, 1.0]]]
    >>> coin = pkd.TabularMDP(tosses, [[0.0, 0.0], [1.0, 1.0]], horizon=2)
    >>> many = {(0, 0): {0: 1e8, 1: 1e8}, (0, 1): {0: 1e8}}  # every draw is close to 1/2
    >>> rule = PosteriorSampling()
    >>> draw = lambda k: pkd.optimistic_plan(
    ...     coin.model(), many, episodes=10, optimism=rule, seed=k
    ... )
    >>> [round(draw(k).value, 3) for k in (1, 2)]
    [0.5, 0.5]
    """

    prior: float = attrs.field(default=1.0, validator=positive)

    def __attrs_post_init__(self) -> None:
        if self.prior == 0:
            raise ModelError("PosteriorSampling(prior=0): expected a number > 0")

    def bonus(self) -> Bonus:
        return Bonus(NO_BONUS, prior=self.prior)

    @property
    def name(self) -> str:
        title = "Posterior sampling" if type(self) is PosteriorSampling else type(self).__name__
        return f"{title}, prior {self.prior:g}"


def from_config(config: dict[str, Any]) -> Optimism:
    """The rule that `to_config` wrote.

    A rule of a user's own is imported by its name "module:Class"; nothing else of a file is run.
    Where that is not possible the rule still has its label.
    """
    from pkd import rules

    arguments = dict(config)
    name = arguments.pop("rule", None)
    if isinstance(name, str) and ":" in name:
        return rules.find_own(name, config) or rules.UnknownRule(dict(config))
    known: dict[str, type[Any]] = {
        kind.__name__: kind
        for kind in (MVP, Certified, Hoeffding, Greedy, PosteriorSampling, *rules.PUBLISHED)
    }
    if name not in known:
        raise ModelError(f"optimism rule {name!r} is unknown; expected one of {', '.join(known)}")
    rule: Optimism = known[name](**arguments)
    return rule
