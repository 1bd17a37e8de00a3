"""`LateActions`: `pkd.LateActions` with the laws of `LateEnv`.

A constant delay, a law {Delta: probability} of how the delay of commands changes (the mirror image
of `KnownDelay`), or `Lags`. `LateEnv(env, actions=law)` plays the model that
`LateActions(base, law)` plans.
"""

from __future__ import annotations

from typing import Any

import attrs

import pkd
from pkd import ModelError, transform
from pkd_delay.arrivals import Changes, Delay, read_delay
from pkd_delay.base import Base, Instead, survey
from pkd_delay.delay_kernel import DelayKernel
from pkd_delay.lags import Lags

__all__ = ["InOrder", "LateActions"]


@attrs.frozen
class InOrder:
    """Commands that never overtake: D_h ~ P(. | D_{h-1}), cut at `max_delay`, D_0 = 0.

    The command of step h comes at step h + D_h. With n commands on their way the oldest one is
    n - 1 steps old. After c steps without news the command before it was n - 1 - c steps late, and
    it comes with Pr(D = n - 1 | D >= n - 1, n - 1 - c).

    >>> from pkd_delay import InterArrival
    >>> line = InOrder(InterArrival((0.25, 0.25, 0.5)), max_delay=2)
    >>> line.comes(1, waited=0), line.comes(2, waited=-1), line.comes(3, waited=1)
    (0.5, 0.25, 1.0)
    """

    law: DelayKernel
    max_delay: int

    @property
    def counts(self) -> bool:
        """It matters for how long no command has come."""
        return True

    @property
    def longest(self) -> int:
        """The largest delay."""
        return self.max_delay

    def comes(self, n: int, waited: int) -> float:
        """The probability that the oldest of n commands comes now."""
        if n > self.max_delay:
            return 1.0
        return self.law.arrival(before=n - 1 - waited, delay=n - 1)


class LateActions(pkd.LateActions):
    """A base whose actions are executed late.

        D_h = clip(D_{h-1} + Delta_h; 0, max_delay),   D_0 = 0

    The command of step h comes at step h + D_h, and the newest command that has come is executed.
    `law` is a constant delay, {Delta: probability}, `Lags` (each command has its own, so that a
    newer one may overtake), or a `DelayChain`. `first_action` is executed before the first command
    has come; by default it is the first one that the base offers. Where the base's action sets
    differ, `instead` says what is done when an action is not on offer: (x, y, a) -> action.

    >>> import pkd, pkd_delay
    >>> from pkd_delay.problems import two_state_chain
    >>> chain = two_state_chain()
    >>> [round(pkd.plan(LateActions(chain, d), chain.law()).value, 10) for d in (0, 1, 2)]
    [10.0, 9.1, 8.46]
    >>> both = pkd_delay.KnownDelay(LateActions(chain, 1), {1: 1.0}, max_delay=1)
    >>> round(pkd.plan(both, chain.law()).value, 10)  # two steps in all
    8.46
    """

    def __init__(
        self,
        base: Base,
        law: Delay | transform.Line,
        max_delay: int | None = None,
        *,
        first_action: Any = None,
        instead: Instead = None,
    ) -> None:
        base = pkd.as_model(base)
        commands = None if instead is None else survey(base, instead).actions
        line = _read_line(law, max_delay)
        super().__init__(base, line, first_action=first_action, commands=commands, instead=instead)


class _OwnSamples(transform.OwnSamples, LateActions):
    pass


LateActions.twin = _OwnSamples


def _read_line(law: Delay | transform.Line, max_delay: int | None) -> transform.Line:
    """The line that a law of LateEnv means."""
    if hasattr(law, "comes"):
        return law  # type: ignore[return-value]
    rule = read_delay(law, max_delay, "actions")
    if rule.constant:
        return pkd.Travel(rule.max_delay)
    if isinstance(rule, Changes) and isinstance(rule.law, Lags):
        travel: dict[int, float] = {}
        for lag, p in enumerate(rule.law.probabilities):
            lag = min(lag, rule.max_delay)
            travel[lag] = travel.get(lag, 0.0) + p
        return pkd.Travel(travel)
    if isinstance(rule, Changes):
        return InOrder(rule.law, rule.max_delay)
    raise ModelError(
        f"the law of late actions is {law!r}; expected a constant delay, {{Delta: probability}} "
        "with max_delay, or pkd_delay.Lags: a law of the step or state cannot be planned"
    )
