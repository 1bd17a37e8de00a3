"""Whether exploration is needed: how often each unknown feature is seen, over all policies.

For a feature z let n(z) be the number of times that an episode draws from its law. Two backward
sweeps, in which every such draw pays 1 and nothing else pays, give

    least(z) = min over policies of E[n(z)],    most(z) = max over policies of E[n(z)].

Where least = most under every law, the feature is exogenous (`find_exogenous` tests it exactly). If
all are, the data that an episode brings do not depend on what is done: a learner that never
explores learns as much as any other. Where least = 0 < most, a policy may
never see the feature: it must be sought.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import compress
from typing import Any, NamedTuple

import attrs

from pkd.engine import compile
from pkd.engine.exogenous import find_exogenous
from pkd.model import Law
from pkd.planning.plan import Model
from pkd.problem import read
from pkd.progress import watch
from pkd.show.tables import format_table

__all__ = ["Exploration", "Visits", "exploration"]

SLACK = 1e-9  # fewer expected visits than this are none
SHOWN = 10  # names in a sentence
SHOWN_ROWS = 30  # lines of a printed table

PUBLISHED = (
    "Published for exogenous MDPs, whose inputs have a law that no action changes: Liang et al. "
    "(arXiv 2601.20694) bound the regret of pure exploitation in tabular Exo-MDPs, by the order of "
    "H^2 |inputs| sqrt(K); see also Sinclair et al. (hindsight learning). "
    "Whether your inputs meet their conditions is for you to check: this test compares expected "
    "numbers of visits under the given law, and nothing else."
)


class Visits(NamedTuple):
    """Expected visits of one feature in an episode, over all policies."""

    feature: Any  # z, or the feature of an UnknownReward
    least: float
    most: float

    @property
    def is_avoidable(self) -> bool:
        """Whether some policy never sees the feature, and another one does."""
        return self.least <= SLACK < self.most


@attrs.frozen(eq=False)
class Exploration:
    """How often each unknown feature is seen at least and at most; `print` it for the verdict.

    >>> import pkd
    >>> from pkd.tables.coin import short_coin as coin
    >>> found = pkd.exploration(coin)
    >>> found.visits[0], found.needed, found.must_seek[:2]
    (Visits(feature=(0, 0), least=0.0, most=1.5), True, [(0, 0), (0, 1)])
    """

    model: str  # its name
    features: tuple[Any, ...]  # all unknown ones, then those of unknown rewards
    visits: tuple[Visits, ...]  # of each of them under a law; empty without one
    hindsight: bool  # an episode may teach more than it visits: the model defines `samples`
    exogenous: frozenset[Any]  # features that every policy sees equally often, under every law
    label: Callable[[Any], str] = attrs.field(default=str, repr=False)  # of a feature

    @property
    def needed(self) -> bool:
        """Whether some feature is seen more or less often, depending on what is done."""
        return bool(self.sought)

    @property
    def sought(self) -> list[Any]:
        """Features of which acting decides how often they are seen: all but the exogenous ones."""
        return [z for z in self.features if z not in self.exogenous]

    @property
    def must_seek(self) -> list[Any]:
        """Features that some policy never sees and another one does, under the given law."""
        return [row.feature for row in self.visits if row.is_avoidable]

    def table(self, most: int = SHOWN_ROWS) -> str:
        """Visits per episode as text, of the first `most` features."""
        rows = [(self.label(z), f"{low:.6g}", f"{high:.6g}") for z, low, high in self.visits]
        return format_table(("feature", "least", "most"), rows, most=most)

    def __str__(self) -> str:
        sentences = [self._give_verdict()]
        if self.hindsight:
            sentences.append(
                "This model defines `samples`: an episode may teach more than these visits."
            )
        return " ".join(sentences)

    def _give_verdict(self) -> str:
        if not self.features:
            return "Nothing is unknown, so there is nothing to explore."
        if not self.needed:
            return (
                "Exploration is not needed: every policy sees each of the unknown features "
                f"({len(self.features)}) equally often under every law, so the data do not depend "
                f"on what is done, and Greedy suffices. {PUBLISHED}"
            )
        rest = len(self.features) - len(self.sought)
        come = ""
        if rest:
            come = (
                f" The other {rest} come whatever is done, under every law: "
                "the certified rule does not explore them."
            )
        if not self.visits:
            return (
                f"Acting decides how often {self._name(self.sought)} of "
                f"{len(self.features)} unknown features are seen.{come}"
            )
        if not self.must_seek:
            return (
                "Every policy sees all features that can be seen, but not equally often. Greedy "
                f"goes on learning whatever it does; exploration may learn faster.{come}"
            )
        return (
            f"Exploration is needed: {len(self.must_seek)} of {len(self.features)} unknown "
            "features must be sought, since some policy never sees them: "
            f"{self._name(self.must_seek)}.{come}"
        )

    def _name(self, features: list[Any]) -> str:
        """The first of some features, in words."""
        more = f" and {len(features) - SHOWN} more" if len(features) > SHOWN else ""
        return ", ".join(map(self.label, features[:SHOWN])) + more


def exploration(model: Model, law: Law | None = None, *, progress: bool = False) -> Exploration:
    """Which unknown features are seen equally often whatever is done, under every law.

    That needs no law, and its work has a bound: what is not tested counts as sought. With a law it
    also finds for each feature the least and the largest expected number of visits per episode,
    by two sweeps. Unknown rewards are listed after the features. model: a model or a problem, which
    brings its own law. progress: a bar on stderr.

    >>> found = exploration("spot_autoscaler")
    >>> found.sought, len(found.exogenous)
    (['spot'], 4)

    >>> import pkd
    >>> walk = [[[0.5, 0.5], [0.5, 0.5]], [[0.25, 0.75], [0.25, 0.75]]]
    >>> inputs = pkd.TabularMDP(walk, [[0.0, 1.0], [1.0, 0.0]], horizon=2)
    >>> print(pkd.exploration(inputs).table())  # a feature is (state, action)
    feature  least  most
    0, 0         0   1.5
    0, 1         0   1.5
    1, 0         0   0.5
    1, 1         0   0.5
    """
    given, ask = read(model)
    compiled = compile(given)
    if law is None and ask is not None:
        law = ask()
    names = [*compiled.features, *(reward.feature for reward in compiled.rewards)]
    rows = []
    truth = None if law is None else compiled.truth(law)
    for i in watch(range(len(names) if truth else 0), "features", wanted=progress):
        assert truth is not None
        least, most = (compiled.find_visits(truth.belief, i, most=most) for most in (False, True))
        rows.append(Visits(names[i], max(least, 0.0) + 0.0, most + 0.0))
    chosen = compiled.model
    fixed = frozenset(compress(names, find_exogenous(compiled)))
    return Exploration(
        type(chosen).__name__, tuple(names), tuple(rows), chosen.samples is not None, fixed,
        chosen.feature_label,
    )  # fmt: skip
