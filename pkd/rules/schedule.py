"""When a learner plans anew: a schedule is a value.

Between two plans the policy is fixed, so episodes are played in bulk. The paper plans before every
episode. A plan after some N(z) has doubled costs at most a constant factor of regret.
"""

from __future__ import annotations

import attrs

from pkd.expect import fraction, number, show, whole
from pkd.model import ModelError


def _is_factor(value: object) -> bool:
    return not number("factor", value, 1.0, above=True)


@attrs.frozen
class Replan:
    """A plan is due as soon as one of these has happened since the last plan; None: never.

    features: some N(z) has grown by this factor, or z was seen for the first time.
    growth: the number of episodes has grown by this factor.
    period: this many episodes have been played.

    slack: the plan that features=2 asks for waits until what the samples cost more under the counts
    of the old plan, all together, is this share of what they cost with present counts. The number
    of plans then does not grow with |Z|: a few features that have doubled do not make one due.

    >>> Replan(features=None, growth=1.5).text
    'growth=1.5'
    >>> read_schedule("every") == Replan(features=None, period=1)
    True
    """

    features: float | None = 2.0
    growth: float | None = None
    period: int | None = None
    slack: float = 0.0

    def __attrs_post_init__(self) -> None:
        findings = [
            f"Replan({name}={show(value)}): expected a finite number above 1, or None"
            for name, value in (("features", self.features), ("growth", self.growth))
            if value is not None and not _is_factor(value)
        ]
        if self.period is not None and (whole("period", self.period, 1)):
            findings.append(
                f"Replan(period={show(self.period)}): expected a whole number >= 1, or None"
            )
        if fraction("slack", self.slack, closed=True):
            findings.append(f"Replan(slack={show(self.slack)}): expected a number from 0 to 1")
        elif self.slack and self.features != 2:
            findings.append(f"Replan(slack={self.slack!r}): expected features=2 with it")
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
        parts = attrs.asdict(self, filter=lambda _, value: value is not None and value != 0)
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
    "slack": Replan(slack=0.1),
    "every": Replan(features=None, period=1),
    "total": Replan(features=None, growth=2.0),
}
MANY_FEATURES = 200  # from which on a plan for each doubled count costs more than it gains
Schedule = str | Replan  # what `replan=` takes


def schedule_for(every_episode: bool, given: Schedule, n_features: int = 0) -> Replan:
    """The schedule of a rule, from what was asked for and from `Optimism.every_episode`.

    "auto" is "doubling", or "slack" for a model with many features. A rule of every episode plans
    before each where counts alone would make a plan due. A growth or a period that was asked for
    holds.

    >>> schedule_for(True, "doubling").text, schedule_for(False, "doubling").text
    ('every', 'doubling')
    >>> schedule_for(False, "auto", 50).text, schedule_for(False, "auto", 5000).text
    ('doubling', 'slack')
    >>> schedule_for(True, "features=2,growth=1.5").text
    'features=2,growth=1.5'
    """
    if isinstance(given, str) and given == "auto":
        given = "slack" if n_features > MANY_FEATURES else "doubling"
    schedule = read_schedule(given)
    if every_episode and schedule.growth is None and schedule.period is None:
        return NAMED["every"]
    return schedule


def read_schedule(given: Schedule) -> Replan:
    """A schedule from its value, its name, or words such as "features=4,period=100".

    >>> read_schedule("features=4,period=100")
    Replan(features=4.0, growth=None, period=100, slack=0.0)
    """
    if isinstance(given, Replan):
        return given
    if isinstance(given, str) and given in NAMED:
        return NAMED[given]
    expected = (
        "expected auto, doubling, slack, every, total, or words such as features=2,growth=1.1"
    )
    try:
        pairs = dict(part.split("=") for part in given.split(","))
        unknown = pairs.keys() - {"features", "growth", "period", "slack"}
        if unknown:
            raise ValueError(unknown)
        numbers: dict[str, float] = {name: float(text) for name, text in pairs.items()}
    except (AttributeError, TypeError, ValueError):
        raise ModelError(f"replan is {show(given)}; {expected}") from None
    period = numbers.get("period")
    if period is not None and not period.is_integer():
        raise ModelError(f"replan is {given!r}; expected a whole number of episodes as period")
    return Replan(
        features=numbers.get("features"),
        growth=numbers.get("growth"),
        period=None if period is None else int(period),
        slack=numbers.get("slack", 0.0),
    )
