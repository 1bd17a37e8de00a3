"""Further rules of optimism: those of other papers, rules in Python, rules that are not at hand.

With p the observed frequencies, N = N(z) and pairs (z, y') as in `pkd.optimism`:

    KLUCRL      max {qV : KL(p, q) <= C/N}, with the radius of KL-UCRL
    UCRL2       max {qV : |q - p|_1 <= C/sqrt(N)}, with the radius of UCRL2
    OPSRL       the largest PV of some P drawn from a posterior with an optimistic outcome
    BayesUCBVI  a quantile of PV under the same posterior
    PythonRule  what your own `value` says

They were proved for other settings than ours, so none of them claims a guarantee.
"""

from __future__ import annotations

import math
import sys
from typing import Any

import attrs

from pkd.model import ModelError
from pkd.optimism import (
    ALL_ROUNDS,
    DRAWS,
    KL_BALL,
    L1_BALL,
    ONE_ROUND,
    PYTHON,
    Bonus,
    Optimism,
    positive,
)

__all__ = ["KLUCRL", "OPSRL", "UCRL2", "BayesUCBVI", "PythonRule", "UnknownRule"]


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

    c: float = attrs.field(default=1.0, validator=positive)
    exact: bool = True

    def bonus(self) -> Bonus:
        rounds = ALL_ROUNDS if self.exact else ONE_ROUND
        return Bonus(KL_BALL, c1=self.c, free=math.inf, rounds=rounds)

    @property
    def name(self) -> str:
        title = "KL-UCRL" if type(self) is KLUCRL else type(self).__name__
        scale = "" if self.c == 1.0 else f", c={self.c:g}"
        return title + scale + ("" if self.exact else ", quick")


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

    c: float = attrs.field(default=14.0, validator=positive)

    def bonus(self) -> Bonus:
        return Bonus(L1_BALL, c1=self.c, free=math.inf)

    @property
    def name(self) -> str:
        return type(self).__name__ + ("" if self.c == 14.0 else f", c={self.c:g}")


def _whole(rule: Any, field: Any, value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ModelError(
            f"{type(rule).__name__}({field.name}={value!r}): expected a whole number >= 1"
        )


def _above_zero(rule: Any, field: Any, value: Any) -> None:
    positive(rule, field, value)
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
    def name(self) -> str:
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
    def name(self) -> str:
        title = "Bayes-UCBVI" if type(self) is BayesUCBVI else type(self).__name__
        weight = "" if self.weight == 1.0 else f", weight {self.weight:g}"
        return f"{title}, quantile {self.level:g} of {self.draws} draws{weight}"


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
        return Bonus(PYTHON, free=math.inf, rule=self, apart=True)

    @property
    def name(self) -> str:
        given = ", ".join(f"{key}={value}" for key, value in self._arguments().items())
        return type(self).__name__ + (f", {given}" if given else "")


@attrs.frozen
class UnknownRule(Optimism):
    """A rule of a file whose class is not at hand: it has its label and plans nothing."""

    config: dict[str, Any]

    @property
    def name(self) -> str:
        return str(self.config.get("label", self.config["rule"]))

    def value(self, *arguments: Any) -> float:
        name = self.config["rule"]
        raise ModelError(
            f"the rule {name!r} of this file cannot be imported, so its values cannot be computed; "
            "import its module first, or put it where Python finds it"
        )

    def bonus(self) -> Bonus:
        return Bonus(PYTHON, free=math.inf, rule=self, apart=self.config.get("apart") is True)

    def to_config(self) -> dict[str, Any]:
        return dict(self.config)


PUBLISHED: tuple[type[Optimism], ...] = (KLUCRL, UCRL2, BayesUCBVI, OPSRL)


def find_own(name: str, config: dict[str, Any]) -> Optimism | None:
    """The rule "module:Class" of a file, if its module is imported and it can be made again.

    A file makes nothing be imported: that would run code of its choice.
    """
    module, _, path = name.partition(":")
    if config.get("complete") is not True or not isinstance(config.get("arguments"), dict):
        return None
    found: Any = sys.modules.get(module)
    for part in path.split("."):
        found = getattr(found, part, None)
    if not (isinstance(found, type) and issubclass(found, Optimism)):
        return None
    try:
        return found(**config["arguments"])
    except (TypeError, ValueError):  # the class has changed since then
        return None
