"""Whether exploration is needed: how often each unknown feature is seen, over all policies.

For a feature z let n(z) be the number of times that an episode draws from its law. Two backward
sweeps, in which every such draw pays 1 and nothing else pays, give

    least(z) = min over policies of E[n(z)],    most(z) = max over policies of E[n(z)].

Where least = most for all features, the data that an episode brings do not depend on what is done:
a learner that never explores learns as much as any other. Where least = 0 < most, a policy may
never see the feature: it must be sought.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import attrs

from pkd.explore import overrides
from pkd.model import Law
from pkd.planning import Model, resolve

__all__ = ["Exploration", "Visits", "exploration"]

SLACK = 1e-9  # visits that differ by less, relative to the larger one, differ by rounding
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
    def is_fixed(self) -> bool:
        """Whether every policy sees the feature equally often."""
        return self.most - self.least <= SLACK * max(1.0, self.most)

    @property
    def is_avoidable(self) -> bool:
        """Whether some policy never sees the feature, and another one does."""
        return self.least <= SLACK < self.most


@attrs.frozen(eq=False)
class Exploration:
    """How often each unknown feature is seen at least and at most; `print` it for the verdict.

    >>> import pkd
    >>> tosses = [[[0.5, 0.5], [1.0, 0.0]], [[0.5, 0.5], [0.0, 1.0]]]
    >>> coin = pkd.TabularMDP(tosses, [[0.0, 0.0], [1.0, 1.0]], horizon=2)
    >>> found = pkd.exploration(coin)
    >>> found.visits[0], found.needed, found.must_seek[:2]
    (Visits(feature=(0, 0), least=0.0, most=1.5), True, [(0, 0), (0, 1)])
    """

    model: str  # its name
    visits: tuple[Visits, ...]
    hindsight: bool  # an episode may teach more than it visits: the model defines `samples`
    label: Callable[[Any], str] = attrs.field(default=str, repr=False)  # of a feature

    @property
    def needed(self) -> bool:
        """Whether some feature is seen more or less often, depending on what is done."""
        return not all(row.is_fixed for row in self.visits)

    @property
    def must_seek(self) -> list[Any]:
        """Features that some policy never sees and another one does."""
        return [row.feature for row in self.visits if row.is_avoidable]

    def table(self, most: int = SHOWN_ROWS) -> str:
        """Visits per episode as text; at most so many lines."""
        lines = [("feature", "least", "most")]
        lines += [(self.label(z), f"{low:.6g}", f"{high:.6g}") for z, low, high in self.visits]
        widths = [max(map(len, column)) for column in zip(*lines[: most + 1], strict=True)]
        rows = [
            "  ".join(cell.ljust(w) for cell, w in zip(line, widths, strict=True)).rstrip()
            for line in lines[: most + 1]
        ]
        return "\n".join(rows + (["..."] if len(lines) > most + 1 else []))

    def __str__(self) -> str:
        sentences = [self._give_verdict()]
        if self.hindsight:
            sentences.append(
                "This model defines `samples`: an episode may teach more than these visits."
            )
        return " ".join(sentences)

    def _give_verdict(self) -> str:
        if not self.visits:
            return "Nothing is unknown, so there is nothing to explore."
        if not self.needed:
            return (
                "Exploration is not needed: every policy sees each of the unknown features "
                f"({len(self.visits)}) equally often, so the data do not depend on what is done, "
                f"and Greedy suffices. {PUBLISHED}"
            )
        sought = [self.label(z) for z in self.must_seek]
        if not sought:
            return (
                "Every policy sees all features that can be seen, but not equally often. Greedy "
                "goes on learning whatever it does; exploration may learn faster."
            )
        more = f" and {len(sought) - SHOWN} more" if len(sought) > SHOWN else ""
        return (
            f"Exploration is needed: {len(sought)} of {len(self.visits)} unknown features must be "
            f"sought, since some policy never sees them: {', '.join(sought[:SHOWN])}{more}."
        )


def exploration(model: Model, law: Law | None = None, *, progress: bool = False) -> Exploration:
    """For each unknown feature the least and the largest expected number of visits per episode.

    Unknown rewards are listed after the features. It takes two sweeps for each of them.

    >>> import pkd
    >>> walk = [[[0.5, 0.5], [0.5, 0.5]], [[0.25, 0.75], [0.25, 0.75]]]
    >>> inputs = pkd.TabularMDP(walk, [[0.0, 1.0], [1.0, 0.0]], horizon=2)
    >>> print(pkd.exploration(inputs).table())  # a feature is (state, action)
    feature  least  most
    0, 0     0      1.5
    0, 1     0      1.5
    1, 0     0      0.5
    1, 1     0      0.5
    """
    compiled, found = resolve(model, law)
    belief = compiled.truth(found).belief
    names = [*compiled.features, *(reward.feature for reward in compiled.rewards)]
    numbers: Any = range(len(names))
    if progress:
        from tqdm import tqdm

        numbers = tqdm(numbers, unit=" features", leave=False)
    rows = []
    for i in numbers:
        least, most = (compiled.find_visits(belief, i, most=most) for most in (False, True))
        rows.append(Visits(names[i], max(least, 0.0) + 0.0, most + 0.0))
    chosen = compiled.model
    return Exploration(
        type(chosen).__name__, tuple(rows), overrides(chosen, "samples"), chosen.feature_label
    )
