"""Checks of what a model says about its unknown features z: outcomes, B(z), shares, |Z|.

These are the known quantities of the paper's assumption "tabular structure" and of the logarithms
in its bonus. The laws P_eff(z) themselves are no part of a model.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress

from pkd.check.answers import Answers
from pkd.check.asking import FAILED, TOLERANCE, call, hashable, is_number, is_whole, show
from pkd.explore import overrides
from pkd.families import Family
from pkd.model import UnknownReward


def check_outcomes(answers: Answers) -> Iterator[str]:
    """The outcomes of z are a non-empty list of distinct hashable values."""
    for z, answer in answers.outcomes.items():
        question = call("outcomes", z)
        if not isinstance(answer, tuple):
            found = "a mapping" if hasattr(answer, "keys") else show(answer)
            yield f"{question} returned {found}; list every x' that can follow this feature"
        elif not answer:
            yield f"{question} is empty; list every x' that can follow this feature"
        else:
            yield from (
                f"{question} lists {show(x)}, which is not hashable; use a tuple"
                for x in answer
                if not hashable(x)
            )
            counts = Counter(x for x in answer if hashable(x))
            yield from (
                f"{question} lists {show(x)} more than once; list each x' once"
                for x, n in counts.items()
                if n > 1
            )


def check_families(answers: Answers) -> Iterator[str]:
    """A declared family has laws that sum to 1, and logarithms that are concave in its parameter.

    Both are tested at points.
    """
    for z in answers.followers:
        with suppress(Exception):  # what is wrong with the answer itself is found elsewhere
            found = answers.model.outcomes(z)
            if isinstance(found, Family):
                yield from (f"{call('outcomes', z)}: {fault}" for fault in found.find_faults())


def check_branching(answers: Answers) -> Iterator[str]:
    """1 <= B(z) <= the number of outcomes; the default is that number and needs no check."""
    if not overrides(answers.model, "branching"):
        return
    for z in answers.followers:
        bound, most = answers.questions.ask("branching", z), len(set(answers.outcome_list(z)))
        if bound is not FAILED and most and not (is_whole(bound, 1) and bound <= most):
            expected = f"expected a whole number from 1 to {most}, the number of its outcomes"
            yield f"{call('branching', z)} returned {show(bound)}; {expected}"


def check_shares(answers: Answers) -> Iterator[str]:
    """Shares of the union bound are positive and sum to at most 1 over the y' of each z.

    None counts as 1/|Y|.
    """
    if not overrides(answers.model, "share"):
        return
    uniform = 1 / max(len({y for _, y in answers.kinds}), 1)
    for z, followers in answers.followers.items():
        shares = []
        for y in followers:
            share = answers.questions.ask("share", z, y)
            if share is None:
                shares.append(uniform)
            elif is_number(share) and 0 < share <= 1:
                shares.append(float(share))
            elif share is not FAILED:
                expected = "expected None or a number in (0, 1]"
                yield f"{call('share', z, y)} returned {show(share)}; {expected}"
        if math.fsum(shares) > 1 + TOLERANCE:
            total = f"{math.fsum(shares):.12g}"
            over = f"over the {len(shares)} y that come with this feature"
            yield f"share(z={show(z)}, y) sums to {total} {over}; expected at most 1"


def check_n_features(answers: Answers) -> Iterator[str]:
    """A declared |Z| is a positive whole number.

    It may be smaller than the number of features that occur: some algorithms count them that way.
    """
    declared: object = answers.model.n_features
    if declared is not None and not is_whole(declared, 1):
        yield f"n_features = {show(declared)}; expected None or a positive whole number"


def check_names_are_distinct(answers: Answers) -> Iterator[str]:
    """No value names both a law of x' and a law of rewards: one law object answers for both."""
    rewards = dict.fromkeys(
        r.feature
        for r in answers.rewards.values()
        if isinstance(r, UnknownReward) and hashable(r.feature)
    )
    for z in rewards:
        if z in answers.followers:
            found = f"{show(z)} names both a feature of x' and an UnknownReward"
            yield f"{found}; give one of them another name"


CHECKS = (
    check_outcomes,
    check_families,
    check_branching,
    check_shares,
    check_n_features,
    check_names_are_distinct,
)
