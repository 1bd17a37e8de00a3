"""What a certificate assumes of a log, tested on the log: each feature has one law, and no memory.

Given z, the next x' must not depend on when it was drawn, on the x' before, or on what else the log
says was known beforehand. The tests are those of `pkd.check_samples`: valid for every policy that
collected the log, at any time. Counts have no order, so nothing of this can be tested on them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from pkd.certification.logs import Log
from pkd.check.samples import FeatureTest, check_samples
from pkd.model import PartiallyKnownMDP

__all__ = ["LogTest", "check_log"]

SHOWN = 5  # findings of one log
FALSE_ALARM = 0.01


@attrs.frozen
class LogTest:
    """What the tests of a log found: nothing, or what x' depends on, the surest first.

    >>> import pkd
    >>> from pkd.certification.logs import as_log
    >>> tosses = as_log("gambler", [("coin", "heads"), ("coin", "tails")] * 50)
    >>> print(check_log(pkd.as_problem("gambler").model(), tosses))
    coin: what follows depends on the x' before (p = 8.38e-24)
    """

    tests: Mapping[str, tuple[FeatureTest, ...]]  # {what x' must not depend on: a test per feature}
    labels: Mapping[Any, str]
    false_alarm: float  # of all tests together

    @property
    def ok(self) -> bool:
        """Whether nothing was found. A log that keeps the assumptions fails rarely."""
        return not self.findings

    @property
    def findings(self) -> tuple[str, ...]:
        """One sentence for each feature and dependence."""
        level = self.false_alarm / max(len(self.tests), 1)
        failed = sorted(
            (one.p_value, what, self.labels[one.feature])
            for what, tests in self.tests.items()
            for one in tests
            if one.p_value <= level
        )
        said = [
            f"{label}: what follows depends on {what} (p = {p:.3g})" for p, what, label in failed
        ]
        more = len(said) - SHOWN
        return (*said[:SHOWN], *([f"... and {more} more findings"] if more > 0 else []))

    def __str__(self) -> str:
        return "\n".join(self.findings) or "no dependence found"


def check_log(
    model: PartiallyKnownMDP, log: Log, false_alarm: float = FALSE_ALARM
) -> LogTest | None:
    """Tests every feature of a log that has an order; None: it has none.

    A log that keeps the assumptions is rejected with probability at most `false_alarm`.
    """
    if log.order is None:
        return None
    views: dict[str, list[Any]] = {}
    seen: dict[Any, list[Any]] = {}  # of each feature: how many samples, and the last x'
    for z, x, context in log.order:
        if z in log.rewards:
            continue
        n, last = seen.setdefault(z, [0, None])
        # Each part is as long as all before it: its end must not depend on what comes.
        views.setdefault("the time", []).append((z, x, int(n + 1).bit_length()))
        if n:
            views.setdefault("the x' before", []).append((z, x, last))
        for name, value in context:
            views.setdefault(f"the column {name}", []).append((z, x, value))
        seen[z] = [n + 1, x]
    tests = {
        what: check_samples(model, triples, false_alarm / len(views)).tests
        for what, triples in views.items()
    }
    return LogTest(tests, log.labels, false_alarm)
