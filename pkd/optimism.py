"""Optimism rules: how a learner values what it has not seen often.

A rule is a value; each works for every model. MVP is the paper's rule (its algorithm MVP-Est). With
p the observed frequencies, N = N(z), l = ell(z, y') and w the width of the values:

    MVP                pV + c1 sqrt(Var_p(V) l / N) + c2 w l / N      (N <= 1: the cap)
    MVP(monotone=True) pV + max(c1 sqrt(Var_p(V) l / N), c2 w l / N)  (monotone in V if c2 >= c1^2)
    Hoeffding          pV + c w l / sqrt(N)                           (N = 0: the cap; UCBVI-CH)
    Greedy             pV                                             (N = 0: uniform)
    PosteriorSampling  PV with P drawn from Dirichlet(prior + counts) at every plan
    Certified          max {qV : KL(p, q) <= C(z)}, the laws that the data have not refuted
    KLUCRL             max {qV : KL(p, q) <= C/N}, with the radius of KL-UCRL
    UCRL2              max {qV : |q - p|_1 <= C/sqrt(N)}, with the radius of UCRL2
    OPSRL              the largest PV of some P drawn from a posterior with an optimistic outcome
    BayesUCBVI         a quantile of PV under the same posterior
    PythonRule         what your own `value` says

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
    "KLUCRL", "MVP", "OPSRL", "UCRL2", "BayesUCBVI", "Certified", "Greedy", "Guarantee",
    "Hoeffding", "Optimism", "PosteriorSampling", "PythonRule", "from_config",
]  # fmt: skip

# The forms of the bonus, as `pkd.engine.bonus` knows them.
NO_BONUS, SUM, MAX, HOEFFDING, CERTIFIED, KL_BALL, L1_BALL, DRAWS, PYTHON = range(9)
OVER_SETS = CERTIFIED, KL_BALL  # the largest value over {q : KL(p, q) <= C(z)}
ONE_ROUND, ALL_ROUNDS = 1, 40  # of the search for the largest value over a set of laws
Guarantee = Literal["as published", "certified", "no guarantee"]
THEORY_C1, THEORY_C2 = 20 / 3, 400 / 9


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
    # Of the search for the largest value over a set of laws. DRAWS: which value counts, from 1 for
    # the largest.
    rounds: int = ONE_ROUND
    draws: int = 0  # DRAWS: laws that are drawn for each feature
    weight: float = 0.0  # DRAWS: how many samples the optimistic outcome counts for
    rule: Any = None  # PYTHON: the rule itself, whose `value` is asked


def _positive(rule: Any, field: Any, value: Any) -> None:
    if (
        isinstance(value, bool)
        or not isinstance(value, (int, float))
        or not math.isfinite(value)
        or value < 0
    ):
        raise ModelError(f"{type(rule).__name__}({field.name}={value!r}): expected a number >= 0")


def _positive_or_none(rule: Any, field: Any, value: Any) -> None:
    if value is not None:
        _positive(rule, field, value)


class Optimism:
    """Base of all rules.

    `bonus` gives the numbers for the kernels, `label` the words for tables and plots.

    >>> MVP.practical().to_config()
    {'rule': 'MVP', 'c1': 0.5, 'c2': 0.25, 'log_factor': 1.0, 'monotone': False}
    """

    def bonus(self) -> Bonus:
        raise ModelError(f"{type(self).__name__} does not define bonus()")

    @property
    def label(self) -> str:
        return type(self).__name__

    @property
    def guarantee(self) -> Guarantee:
        return "no guarantee"

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
        if kind in _OWN:
            return {"rule": kind.__name__, **attrs.asdict(self)}  # type: ignore[arg-type]
        name = f"{kind.__module__}:{kind.__qualname__}"
        return {"rule": name, "label": self.label, **self._arguments()}

    def _arguments(self) -> dict[str, Any]:
        """What the class is called with to make this rule again; all that a file can hold of it."""
        kind: Any = type(self)
        if attrs.has(kind):
            found = {field.alias: getattr(self, field.name) for field in attrs.fields(kind)}
        else:
            found = {key: value for key, value in vars(self).items() if key[0] != "_"}
        return {
            key: value if isinstance(value, bool | int | float | None) else repr(value)
            for key, value in found.items()
        }


@attrs.frozen
class MVP(Optimism):
    """The Bernstein rule of the paper; the default constants are those of its theorem.

    >>> MVP().label
    'MVP, theory constants'
    >>> MVP.practical().label
    'MVP, practical constants'
    """

    c1: float = attrs.field(default=THEORY_C1, validator=_positive)
    c2: float = attrs.field(default=THEORY_C2, validator=_positive)
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
    def label(self) -> str:
        form, own = " (max form)" if self.monotone else "", type(self) is MVP
        if own and (self.c1, self.c2, self.log_factor) == (THEORY_C1, THEORY_C2, None):
            return f"MVP{form}, theory constants"
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

    c: float = attrs.field(default=7.0, validator=_positive)
    log_factor: float | None = attrs.field(default=None, validator=_positive_or_none)

    def bonus(self) -> Bonus:
        return Bonus(HOEFFDING, c1=self.c, log_factor=self.log_factor)

    @property
    def guarantee(self) -> Guarantee:
        published = (self.c, self.log_factor) == (7.0, None) and type(self) is Hoeffding
        return "as published" if published else "no guarantee"

    @property
    def label(self) -> str:
        constants = "theory constants" if self.guarantee == "as published" else f"c={self.c:g}"
        logarithm = "" if self.log_factor is None else f", log factor {self.log_factor:g}"
        return f"{type(self).__name__}, {constants}{logarithm}"


@attrs.frozen
class Certified(Optimism):
    """Optimism over the laws that the data have not refuted: max {qV : KL(p, q) <= C(z)}.

    With probability 1 - delta the true laws are in all sets at all times (`pkd.confidence`), so
    every upper value is at least V*, and the least values over the same sets are at most V*. No
    number of episodes is needed. minimax: each pair (z, y') takes the smaller of this maximum and
    MVP-Est, each with delta / 2, so that the regret is also at most that of MVP-Est with delta / 2.
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
            rounds=ALL_ROUNDS if self.exact else ONE_ROUND,
        )

    @property
    def guarantee(self) -> Guarantee:
        return "certified" if type(self) is Certified else "no guarantee"

    @property
    def label(self) -> str:
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
    def label(self) -> str:
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

    prior: float = attrs.field(default=1.0, validator=_positive)

    def __attrs_post_init__(self) -> None:
        if self.prior == 0:
            raise ModelError("PosteriorSampling(prior=0): expected a number > 0")

    def bonus(self) -> Bonus:
        return Bonus(NO_BONUS, prior=self.prior)

    @property
    def label(self) -> str:
        name = "Posterior sampling" if type(self) is PosteriorSampling else type(self).__name__
        return f"{name}, prior {self.prior:g}"


@attrs.frozen
class KLUCRL(Optimism):
    """Optimism over a KL ball: max {qV : KL(p, q) <= c C_P / N}, with the radius of KL-UCRL.

    Filippi, Cappe and Garivier (2010), arXiv 1004.5229. With S outcomes, S A = |Z|, T = K H and

        B = log(2 e S^2 A log(T) / delta),
        C_P = S (B + log(B + 1/log T) (1 + 1/(B + 1/log T)))

    (log T is taken as at least 1). An unknown reward of range w gets the term
    w sqrt(log(4 S A log(T) / delta) / (1.99 N)), where S A is the number of unknown rewards.
    Published: a regret of order D S sqrt(A T) against the best average reward of one endless run of
    an MDP with diameter D. Here episodes are finite and features are shared, so that theorem does
    not apply: no guarantee. c: scales the radius; 1 as published. exact: the maximum to 1e-9 of the
    range, else an upper bound of it that is quicker. Without data a pair has the largest value of
    its outcomes.

    >>> import pkd
    >>> tosses = [[[0.5, 0.5], [1.0, 0.0]], [[0.5, 0.5], [0.0, 1.0]]]
    >>> coin = pkd.TabularMDP(tosses, [[0.0, 0.0], [1.0, 1.0]], horizon=2)
    >>> counts = {(0, 0): {0: 500, 1: 500}, (0, 1): {0: 1000}}
    >>> found = pkd.optimistic_plan(coin.model(), counts, episodes=10, optimism=KLUCRL())
    >>> round(found.value, 4)
    0.6001
    """

    c: float = attrs.field(default=1.0, validator=_positive)
    exact: bool = True

    def bonus(self) -> Bonus:
        rounds = ALL_ROUNDS if self.exact else ONE_ROUND
        return Bonus(KL_BALL, c1=self.c, free=math.inf, rounds=rounds)

    @property
    def label(self) -> str:
        name = "KL-UCRL" if type(self) is KLUCRL else type(self).__name__
        scale = "" if self.c == 1.0 else f", c={self.c:g}"
        return name + scale + ("" if self.exact else ", quick")


@attrs.frozen
class UCRL2(Optimism):
    """Optimism over an L1 ball: max {qV : |q - p|_1 <= sqrt(c S log(2 A t / delta) / N)}.

    Jaksch, Ortner and Auer (2010), JMLR 11, with c = 14. S: outcomes of the feature; S A = |Z|, but
    A >= 1; t = 1 + the number of all samples so far. The best outcome gets half of the radius, the
    worst ones lose it. An unknown reward of range w gets w sqrt(c log(2 S A t / delta) / (4 N)),
    where S A is the number of unknown rewards (with c = 14 the published 7/2). Published: a regret
    of order D S sqrt(A T) against the best average reward of one endless run of an MDP with
    diameter D. Here episodes are finite and features are shared, so that theorem does not apply:
    no guarantee. Without data a pair has the largest value of its outcomes.

    >>> import pkd
    >>> tosses = [[[0.5, 0.5], [1.0, 0.0]], [[0.5, 0.5], [0.0, 1.0]]]
    >>> coin = pkd.TabularMDP(tosses, [[0.0, 0.0], [1.0, 1.0]], horizon=2)
    >>> counts = {(0, 0): {0: 5000, 1: 5000}, (0, 1): {0: 10000}}
    >>> found = pkd.optimistic_plan(coin.model(), counts, episodes=10, optimism=UCRL2())
    >>> round(found.value - 0.5, 6)  # half of the radius sqrt(28 log(80 * 20001) / 10000)
    0.099999
    """

    c: float = attrs.field(default=14.0, validator=_positive)

    def bonus(self) -> Bonus:
        return Bonus(L1_BALL, c1=self.c, free=math.inf)

    @property
    def label(self) -> str:
        return type(self).__name__ + ("" if self.c == 14.0 else f", c={self.c:g}")


def _whole(rule: Any, field: Any, value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ModelError(
            f"{type(rule).__name__}({field.name}={value!r}): expected a whole number >= 1"
        )


def _above_zero(rule: Any, field: Any, value: Any) -> None:
    _positive(rule, field, value)
    if value == 0:
        raise ModelError(f"{type(rule).__name__}({field.name}={value!r}): expected a number > 0")


@attrs.frozen
class OPSRL(Optimism):
    """Optimistic posterior sampling: the largest PV of `draws` laws P, for each pair (z, y').

    Tiapkin et al. (2022b), arXiv 2209.14414. The laws of a feature are drawn anew at every plan,
    from Dirichlet(counts, weight): the last outcome is an optimistic one whose value is the largest
    possible return to go, and it counts as `weight` samples. Outcomes that were never seen have
    mass 0, so a feature without data has the largest possible value. An unknown reward is the
    largest of as many draws from a Beta posterior, in which it counts as a fraction of heads of a
    coin that also showed `weight` heads. Published: a regret of order sqrt(H^3 S A T) for tables
    whose laws differ from step to step, with a number of draws that grows with log(S A H T). The
    constants of that theorem are not used here, and here steps share laws: no guarantee.

    >>> import pkd
    >>> tosses = [[[0.5, 0.5], [1.0, 0.0]], [[0.5, 0.5], [0.0, 1.0]]]
    >>> coin = pkd.TabularMDP(tosses, [[0.0, 0.0], [1.0, 1.0]], horizon=2)
    >>> many = {(0, 0): {0: 1e8, 1: 1e8}, (0, 1): {0: 1e8}}  # every draw is close to 1/2
    >>> found = pkd.optimistic_plan(coin.model(), many, episodes=10, optimism=OPSRL())
    >>> round(found.value, 3)
    0.5
    """

    draws: int = attrs.field(default=8, validator=_whole)
    weight: float = attrs.field(default=1.0, validator=_above_zero)

    def bonus(self) -> Bonus:
        return Bonus(DRAWS, free=math.inf, draws=self.draws, weight=self.weight)

    @property
    def label(self) -> str:
        weight = "" if self.weight == 1.0 else f", weight {self.weight:g}"
        return f"{type(self).__name__}, {self.draws} draws{weight}"


@attrs.frozen
class BayesUCBVI(Optimism):
    """A quantile of PV under the posterior of P, for each pair (z, y').

    Tiapkin et al. (2022a), arXiv 2205.07704. The posterior is that of `OPSRL`, with one optimistic
    outcome. The quantile is taken among `draws` laws of each feature that are drawn anew at every
    plan (a Monte Carlo estimate, from the random numbers of the run): the value that a share
    `level` of them does not exceed. Published: a regret of order sqrt(H^3 S A T) for tables whose
    laws differ from step to step, with exact quantiles whose level grows with the counts. Here the
    level is fixed, the quantile is estimated, and steps share laws: no guarantee.

    >>> import pkd
    >>> tosses = [[[0.5, 0.5], [1.0, 0.0]], [[0.5, 0.5], [0.0, 1.0]]]
    >>> coin = pkd.TabularMDP(tosses, [[0.0, 0.0], [1.0, 1.0]], horizon=2)
    >>> counts = {(0, 0): {0: 5000, 1: 5000}, (0, 1): {0: 10000}}
    >>> found = pkd.optimistic_plan(coin.model(), counts, episodes=10, optimism=BayesUCBVI())
    >>> round(found.value, 2)  # 1/2 + 1.28 * 0.005
    0.51
    """

    level: float = attrs.field(default=0.9, validator=_above_zero)
    draws: int = attrs.field(default=100, validator=_whole)
    weight: float = attrs.field(default=1.0, validator=_above_zero)

    def __attrs_post_init__(self) -> None:
        if not self.level <= 1:
            raise ModelError(f"BayesUCBVI(level={self.level!r}): expected a number in (0, 1]")

    def bonus(self) -> Bonus:
        above = self.draws - math.ceil(self.level * self.draws - 1e-9)
        return Bonus(DRAWS, free=math.inf, rounds=above + 1, draws=self.draws, weight=self.weight)

    @property
    def label(self) -> str:
        name = "Bayes-UCBVI" if type(self) is BayesUCBVI else type(self).__name__
        weight = "" if self.weight == 1.0 else f", weight {self.weight:g}"
        return f"{name}, quantile {self.level:g} of {self.draws} draws{weight}"


class PythonRule(Optimism):
    """A rule of your own: subclass it and write `value`. It works for every model, slowly.

    Plans are made in Python, one pair (z, y') at a time, with every state apart. A constant of the
    rule is a field of an attrs class, or an attribute of the same name as its argument, so that a
    run can be saved and read again. For speed make it a form of the compiled kernels: see
    "Add an optimism rule" in the page for contributors. No guarantee.

    >>> import pkd
    >>> class Root(pkd.PythonRule):
    ...     def value(self, p_hat, V, N, k, width):
    ...         return p_hat @ V + 0.5 * width * math.sqrt(math.log(1 + k) / N)
    >>> toss = pkd.TabularMDP([[[0.5, 0.5]], [[0.5, 0.5]]], [[0.0], [1.0]], horizon=2)
    >>> counts = {(0, 0): {0: 50, 1: 50}}
    >>> found = pkd.optimistic_plan(toss.model(), counts, episodes=10, optimism=Root())
    >>> round(found.value, 6), round(0.5 + 0.05 * math.sqrt(math.log(2)), 6)
    (0.541628, 0.541628)
    """

    def value(self, p_hat: Any, V: Any, N: float, k: int, width: float) -> float:
        """The optimistic value of a pair (z, y') that was seen N > 0 times, before its cap.

        p_hat, V: (outcomes,) frequencies and values of the next states. k: the episode, from 1.
        width: of the values that are possible. The cap, the largest possible return to go, is
        applied afterwards, and it is the value where N = 0. An unknown reward is asked for with its
        two ends as V, as if it were a coin that shows the higher one.
        """
        raise ModelError(f"{type(self).__name__} does not define value(p_hat, V, N, k, width)")

    def bonus(self) -> Bonus:
        return Bonus(PYTHON, free=math.inf, rule=self)

    @property
    def label(self) -> str:
        given = ", ".join(f"{key}={value}" for key, value in self._arguments().items())
        return type(self).__name__ + (f", {given}" if given else "")


@attrs.frozen
class UnknownRule(Optimism):
    """A rule of a file whose class is not at hand: it has its label and plans nothing."""

    config: dict[str, Any]

    @property
    def label(self) -> str:
        return str(self.config.get("label", self.config["rule"]))

    def value(self, *arguments: Any) -> float:
        name = self.config["rule"]
        raise ModelError(
            f"the rule {name!r} of this file cannot be imported, so its values cannot be computed; "
            "import its module first, or put it where Python finds it"
        )

    def bonus(self) -> Bonus:
        return Bonus(PYTHON, free=math.inf, rule=self)

    def to_config(self) -> dict[str, Any]:
        return dict(self.config)


_OWN: tuple[type[Optimism], ...] = (
    MVP, Certified, Hoeffding, Greedy, PosteriorSampling, KLUCRL, UCRL2, BayesUCBVI, OPSRL,
)  # fmt: skip


def from_config(config: dict[str, Any]) -> Optimism:
    """The rule that `to_config` wrote.

    A rule of a user's own is imported by its name "module:Class"; nothing else of a file is run.
    Where that is not possible the rule still has its label.
    """
    rules: dict[str, type[Any]] = {rule.__name__: rule for rule in _OWN}
    arguments = dict(config)
    name = arguments.pop("rule", None)
    if isinstance(name, str) and ":" in name:
        arguments.pop("label", None)
        found = find_rule(name)
        try:
            return UnknownRule(dict(config)) if found is None else found(**arguments)
        except (TypeError, ValueError):  # the class has changed, or a file cannot hold its options
            return UnknownRule(dict(config))
    if name not in rules:
        raise ModelError(f"optimism rule {name!r} is unknown; expected one of {', '.join(rules)}")
    rule: Optimism = rules[name](**arguments)
    return rule


def find_rule(name: str) -> type[Optimism] | None:
    """The class "module:Class", if it can be imported and is a rule."""
    import importlib
    import sys

    module_name, _, path = name.partition(":")
    found: Any = sys.modules.get(module_name)
    if found is None:
        try:
            found = importlib.import_module(module_name)
        except Exception:  # noqa: BLE001 - whatever a module does when it is imported
            return None
    for part in path.split("."):
        found = getattr(found, part, None)
    return found if isinstance(found, type) and issubclass(found, Optimism) else None
