"""When a learner plans anew: a schedule is a value.

Between two plans the policy is fixed, so episodes are played in bulk. The paper plans before every
episode. A plan after some N(z) has doubled costs at most a constant factor of regret.
"""

from __future__ import annotations

import math

import attrs

from pkd.model import ModelError

__all__ = ["Replan", "Schedule", "read_schedule"]


def _is_factor(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 1 < value < math.inf


@attrs.frozen
class Replan:
    """A plan is due as soon as one of these has happened since the last plan; None: never.

    features: some N(z) has grown by this factor, or z was seen for the first time.
    growth: the number of episodes has grown by this factor.
    period: so many episodes have been played.

    >>> Replan(features=None, growth=1.5).text
    'growth=1.5'
    >>> read_schedule("every") == Replan(features=None, period=1)
    True
    """

    features: float | None = 2.0
    growth: float | None = None
    period: int | None = None

    def __attrs_post_init__(self) -> None:
        findings = [
            f"Replan({name}={value!r}): expected a finite number above 1, or None"
            for name, value in (("features", self.features), ("growth", self.growth))
            if value is not None and not _is_factor(value)
        ]
        if self.period is not None and (
            isinstance(self.period, bool) or not isinstance(self.period, int) or self.period < 1
        ):
            findings.append(
                f"Replan(period={self.period!r}): expected a whole number >= 1, or None"
            )
        if self.features is None and self.growth is None and self.period is None:
            findings.append("Replan(features=None): expected at least one condition for a new plan")
        if findings:
            raise ModelError(findings)

    @property
    def text(self) -> str:
        """The words of the command line and of files, which `read_schedule` reads."""
        for word, schedule in NAMED.items():
            if schedule == self:
                return word
        parts = attrs.asdict(self, filter=lambda _, value: value is not None)
        return ",".join(f"{name}={value:g}" for name, value in parts.items())

    def next_due(self, done: int) -> int:
        """The number of episodes at which the next plan is due at the latest, after one at `done`.

        >>> Replan(growth=1.1).next_due(100), Replan(growth=1.1).next_due(0)
        (110, 1)
        """
        after = [NEVER]
        if self.period is not None:
            after.append(done + self.period)
        if self.growth is not None:
            after.append(max(done + 1, int(self.growth * done)))
        return min(after)


NEVER = 1 << 62  # episodes
NAMED = {
    "doubling": Replan(),
    "every": Replan(features=None, period=1),
    "total": Replan(features=None, growth=2.0),
}
Schedule = str | Replan  # what `replan=` takes


def read_schedule(given: Schedule) -> Replan:
    """A schedule from its value, its name, or words such as "features=4,period=100".

    >>> read_schedule("features=4,period=100")
    Replan(features=4.0, growth=None, period=100)
    """
    if isinstance(given, Replan):
        return given
    if isinstance(given, str) and given in NAMED:
        return NAMED[given]
    expected = "expected doubling, every, total, or words such as features=2,growth=1.1,period=100"
    try:
        pairs = dict(part.split("=") for part in given.split(","))
        unknown = pairs.keys() - {"features", "growth", "period"}
        if unknown:
            raise ValueError(unknown)
        numbers: dict[str, float] = {name: float(text) for name, text in pairs.items()}
    except (AttributeError, ValueError):
        raise ModelError(f"replan is {given!r}; {expected}") from None
    period = numbers.get("period")
    if period is not None and not period.is_integer():
        raise ModelError(f"replan is {given!r}; expected a whole number of episodes as period")
    return Replan(
        features=numbers.get("features"),
        growth=numbers.get("growth"),
        period=None if period is None else int(period),
    )
