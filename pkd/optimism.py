"""Optimism rules: how a learner values what it has not seen often.

A rule is a value; each works for every model. MVP is the paper's rule (its algorithm MVP-Est). With
p the observed frequencies, N = N(z), l = ell(z, y') and w the width of the values:

    MVP                pV + c1 sqrt(Var_p(V) l / N) + c2 w l / N      (N <= 1: the cap)
    MVP(monotone=True) pV + max(c1 sqrt(Var_p(V) l / N), c2 w l / N)  (monotone in V if c2 >= c1^2)
    Hoeffding          pV + c w l / sqrt(N)                           (N = 0: the cap; UCBVI-CH)
    Greedy             pV                                             (N = 0: uniform)
    PosteriorSampling  PV with P drawn from Dirichlet(prior + counts) at every plan
    Certified          max {qV : KL(p, q) <= C(z)}, the laws that the data have not refuted
    PythonRule         what its `values` says, in numpy

Rules of other papers are in `pkd.rules.literature`; `pkd.rules` lists all rules and their words.

Every rule says what it guarantees: "as published" (the rule and the constants of a theorem),
"certified" (its upper values hold with probability 1 - delta, by
`pkd.certification.confidence`), or "no guarantee".
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

import attrs

from pkd import lazy
from pkd.expect import field, flag, fraction, number, one_of
from pkd.model import ModelError

if TYPE_CHECKING:
    import numpy as np
else:  # the command line lists rules without it
    np = lazy.Heavy("numpy")

__all__ = [
    "MVP", "Certified", "Facts", "Greedy", "Guarantee", "Hoeffding", "Optimism", "Pairs",
    "PosteriorSampling", "PythonRule",
]  # fmt: skip

# The forms of a value: which sweep of an engine computes it, or which of its formulas.
EXACT, SUM, MAX, HOEFFDING, CERTIFIED, NUMPY = 0, 1, 2, 3, 4, 5
ONE_ROUND, ALL_ROUNDS = 1, 40  # of the search for the largest value over a set of laws
Guarantee = Literal["as published", "certified", "no guarantee"]
THEORY_C1, THEORY_C2 = 20 / 3, 400 / 9
Floats: TypeAlias = "np.ndarray[Any, Any]"


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
    rounds: int = ONE_ROUND  # of the search for the largest value over a set of laws
    rule: PythonRule | None = None  # NUMPY: the rule itself, which is asked
    needed: bool = False  # CERTIFIED: features that come whatever is done need no exploration
    rate: float = 0.0  # CERTIFIED: see `Certified.rate`; 0: never
    # (unknown features + unknown rewards,) whose estimate is taken as it is; None: of no one's.
    exogenous: Floats | None = attrs.field(default=None, eq=False)

    @property
    def needs_episodes(self) -> bool:
        """Whether the logarithms depend on the number of episodes of the whole run."""
        if self.rule is not None:
            return self.rule.needs_episodes
        return self.form != EXACT and self.log_factor is None and not self.anytime


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

    @property
    def every_episode(self) -> bool:
        """The plan is random or depends on the episode: it is made before every episode.

        With a schedule that waits for counts alone, such a rule could keep one unlucky plan for
        ever. A rule of your own may say otherwise.
        """
        return self.bonus().prior > 0 or self.log_factor_at(1) is not None

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
        if kind.__module__.split(".")[0] == "pkd" and attrs.has(kind):
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

    c1: float = attrs.field(default=THEORY_C1, validator=field(number))
    c2: float = attrs.field(default=THEORY_C2, validator=field(number))
    log_factor: float | None = attrs.field(
        default=None, validator=attrs.validators.optional(field(number))
    )  # None: the theorem's ell
    monotone: bool = attrs.field(default=False, validator=field(flag))

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
    >>> from pkd.tables.coin import short_coin as coin
    >>> counts = {(0, 0): {0: 50, 1: 50}, (0, 1): {0: 100}}
    >>> rule = Hoeffding(c=1, log_factor=1)  # 1/2 + 1/sqrt(100)
    >>> pkd.optimistic_plan(coin.model(), counts, episodes=10, optimism=rule).value
    0.6
    """

    c: float = attrs.field(default=7.0, validator=field(number))
    log_factor: float | None = attrs.field(
        default=None, validator=attrs.validators.optional(field(number))
    )

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

    With probability 1 - delta the true laws are in all sets at all times
    (`pkd.certification.confidence`), so every upper value is at least V*, and the least values over
    the same sets are at most V*. No number of episodes is needed.

    explore: "needed" takes the features that are seen equally often whatever is done
    (`pkd.exploration`) as they are estimated, because there is nothing to explore, and is
    optimistic about the others alone. The values of such a plan are no upper values: certified ones
    are computed apart, from all sets. "everywhere" is optimistic about every feature. Where
    no feature is exogenous both are the same.
    minimax: where no feature is exogenous, or with "everywhere", each pair (z, y') takes the
    smaller of this maximum and MVP-Est, each with delta / 2, so that the regret has the bound of
    MVP-Est with delta / 2, too.
    A learner does not promise its number of episodes to MVP-Est: while it has played at most 2^j,
    it uses K = 2^j and delta / (2 (j + 1) (j + 2)), which sum to delta / 2 over j.
    rate: an option that is off by default. Let most(z) bound the visits of z in an episode over all
    policies and all laws that are left; it is computed anew when the episodes have doubled. Where
    every feature that acting decides has N(z) >= rate k most(z) > 0 samples before episode k, the
    plan takes the estimates of all, because data come fast enough by themselves; otherwise nothing
    changes. Plans are also made when the episodes have doubled. It is off in a run with `until`.
    exact: the maximum to 1e-9 of the range. Otherwise plans use an upper bound of it: it is a few
    percent larger as a rule, and up to 1.35 times the gain over the mean in a small model, 2.84
    times in a large one. The intervals that a run or a learner reports in the end are exact.

    >>> import pkd
    >>> from pkd.tables.coin import short_coin as coin
    >>> counts = {(0, 0): {0: 50, 1: 50}, (0, 1): {0: 100}}
    >>> rule = Certified(exact=True)
    >>> found = pkd.optimistic_plan(coin.model(), counts, episodes=10, optimism=rule)
    >>> round(found.value, 4)
    0.6955
    """

    minimax: bool = attrs.field(default=True, validator=field(flag))
    exact: bool = attrs.field(default=False, validator=field(flag))
    explore: Literal["needed", "everywhere"] = attrs.field(
        default="needed", validator=field(one_of, choices=("needed", "everywhere"))
    )
    rate: float | None = attrs.field(
        default=None, validator=attrs.validators.optional(field(fraction))
    )

    def __attrs_post_init__(self) -> None:
        if self.rate is not None and self.explore == "everywhere":
            raise ModelError(
                'Certified(rate=...) explores what is needed; drop explore="everywhere"'
            )

    def to_config(self) -> dict[str, Any]:
        found = super().to_config()
        if self.rate is None:  # files from before there was a choice say the same
            found.pop("rate", None)
        return found

    def bonus(self) -> Bonus:
        return Bonus(
            CERTIFIED,
            THEORY_C1,
            THEORY_C2,
            free=1.0 if self.minimax else math.inf,
            parts=2 if self.minimax else 1,
            anytime=True,
            rounds=ALL_ROUNDS if self.exact else ONE_ROUND,
            needed=self.explore == "needed",
            rate=self.rate or 0.0,
        )

    @property
    def guarantee(self) -> Guarantee:
        return "certified" if type(self) is Certified else "no guarantee"

    @property
    def name(self) -> str:
        options = {
            "everywhere": self.explore == "everywhere",
            "without MVP": not self.minimax,
            "exact": self.exact,
            f"rate {self.rate}": self.rate is not None,
        }
        return ", ".join([type(self).__name__, *(word for word, on in options.items() if on)])


@attrs.frozen
class Greedy(Optimism):
    """No bonus: the plan for the observed frequencies. It never explores.

    >>> import pkd
    >>> from pkd.tables.coin import short_coin as coin
    >>> counts = {(0, 0): {0: 1, 1: 3}, (0, 1): {0: 4}}
    >>> pkd.optimistic_plan(coin.model(), counts, episodes=10, optimism=Greedy()).value
    0.75
    """

    def bonus(self) -> Bonus:
        return Bonus(EXACT)

    @property
    def name(self) -> str:
        return f"{type(self).__name__} (no bonus)"


@attrs.frozen
class PosteriorSampling(Optimism):
    """Plans for a law drawn from Dirichlet(prior + counts), anew before every episode.

    >>> import pkd
    >>> from pkd.tables.coin import short_coin as coin
    >>> many = {(0, 0): {0: 1e8, 1: 1e8}, (0, 1): {0: 1e8}}  # every draw is close to 1/2
    >>> rule = PosteriorSampling()
    >>> draw = lambda k: pkd.optimistic_plan(
    ...     coin.model(), many, episodes=10, optimism=rule, seed=k
    ... )
    >>> [round(draw(k).value, 3) for k in (1, 2)]
    [0.5, 0.5]
    """

    prior: float = attrs.field(default=1.0, validator=field(number, above=True))

    def bonus(self) -> Bonus:
        return Bonus(EXACT, prior=self.prior)

    @property
    def name(self) -> str:
        title = "Posterior sampling" if type(self) is PosteriorSampling else type(self).__name__
        return f"{title}, prior {self.prior:g}"


class Pairs(NamedTuple):
    """What a rule in numpy is asked: n pairs (z, y') of one layer with up to B outcomes each.

    A feature with fewer outcomes has P = 0 and the V of its first outcome in the places beyond.
    """

    P: Floats  # (n, B) the observed frequencies; uniform without data
    V: Floats  # (n, B) the values of the next states
    N: Floats  # (n,) samples of the feature
    width: Floats  # (n,) of the values that are possible
    cap: Floats  # (n,) the largest possible return to go
    row: np.ndarray  # (n,) which feature, as in `Facts`
    k: int  # the episode, from 1
    told: Floats  # what `prepare` returned for this plan


class Facts(NamedTuple):
    """What a rule in numpy is told once for each plan. Row z has counts[ptr[z]:ptr[z + 1]]."""

    k: int  # the episode, from 1
    whole: int | None  # episodes of the whole run; None: the rule has no `needs_episodes`
    horizon: int
    delta: float
    n_features: int  # |Z|
    ptr: np.ndarray  # (features + 1,)
    counts: Floats  # (outcomes of all features,)
    N: Floats  # (features,)
    paid: Floats  # (3, unknown rewards): number, mean, sum of squared deviations
    low: Floats  # (unknown rewards,)
    high: Floats  # (unknown rewards,)
    rng: np.ndarray  # (4,) the state of the random numbers of `pkd.engine.random`

    @property
    def episodes(self) -> int:
        """The number of episodes of the whole run, which a rule with `needs_episodes` is told."""
        if self.whole is None:
            raise ModelError(
                "a rule reads facts.episodes without needs_episodes = True; its runs need no "
                "number of episodes, so none is known: write needs_episodes = True into its class"
            )
        return self.whole


class PythonRule(Optimism):
    """A rule in numpy: subclass it and write `values`. It works for every model and engine.

    It is asked for all pairs (z, y') of a layer at once, in portions. A constant of the rule is a
    field of an attrs class, or an attribute of the same name as its argument, so that a run can be
    saved and read again. No guarantee.

    >>> import pkd
    >>> class Growing(pkd.PythonRule):
    ...     def values(self, pairs):
    ...         bonus = 0.5 * pairs.width * np.sqrt(np.log(1 + pairs.k) / pairs.N)
    ...         return (pairs.P * pairs.V).sum(axis=1) + bonus
    >>> toss = pkd.TabularMDP([[[0.5, 0.5]], [[0.5, 0.5]]], [[0.0], [1.0]], horizon=2)
    >>> counts = {(0, 0): {0: 50, 1: 50}}
    >>> found = pkd.optimistic_plan(toss.model(), counts, episodes=10, optimism=Growing())
    >>> round(found.value, 6), round(0.5 + 0.05 * math.sqrt(math.log(2)), 6)
    (0.541628, 0.541628)
    """

    needs_episodes = False  # whether `prepare` reads the number of episodes of the whole run
    values_unseen = False  # whether `values` is also asked for N = 0 and no cap is applied

    def values(self, pairs: Pairs) -> Floats:
        """(n,) the optimistic value of each pair; the cap is applied afterwards.

        An unknown reward is asked for with its two ends as V, as if it were a coin that shows the
        higher one.
        """
        raise ModelError(f"{type(self).__name__} does not define values(pairs)")

    def prepare(self, facts: Facts) -> Floats:
        """An array that `values` needs, made once for each plan and kept in its file."""
        return np.zeros((0, 0))

    def means(self, facts: Facts) -> Floats:
        """(unknown rewards,) the optimistic means of those that have been paid.

        Here those of coins, by `values` without `told`, which has no rows for rewards.
        """
        if type(self).prepare is not PythonRule.prepare:
            name = type(self).__name__
            raise ModelError(
                f"the model has unknown rewards, and {name} has prepare(facts), whose array has no "
                f"rows for them: where {name}.values reads told, write {name}.means(facts), too"
            )
        share = (facts.paid[1] - facts.low) / np.maximum(facts.high - facts.low, 1e-300)
        share = np.clip(share, 0.0, 1.0)
        ends = np.stack([facts.low, facts.high], axis=1)
        n = np.where(facts.paid[0] > 0, facts.paid[0], 1.0)
        chances = np.stack([1.0 - share, share], axis=1)
        width, row = facts.high - facts.low, np.full(len(n), -1)
        told = np.zeros((0, 0))
        return self.values(Pairs(chances, ends, n, width, facts.high, row, facts.k, told))

    @property
    def every_episode(self) -> bool:
        return True

    def bonus(self) -> Bonus:
        return Bonus(NUMPY, rule=self)

    @property
    def name(self) -> str:
        given = ", ".join(f"{key}={value}" for key, value in self._arguments().items())
        return type(self).__name__ + (f", {given}" if given else "")
