"""`plan`, `learn` and `optimistic_plan` in the words of delayed MDPs.

MVP-Delayed (the paper's Algorithm 4) is `pkd.learn` on `KnownDelay` or `UnknownDelay`; nothing is
added here but names.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

import pkd
from pkd import ModelError
from pkd_delay.augmented import SHOWN
from pkd_delay.policy import DelayedPlan
from pkd_delay.process import Delayed, DelayedMDP, DelayLawKind, refuse_other_words
from pkd_delay.unknown import Move

if TYPE_CHECKING:
    from pkd.optimism import Optimism

__all__ = ["learn", "name_counts", "optimistic_plan", "plan"]

Counts = dict[Any, dict[Any, float]]  # {z: {x': n}}


@overload
def plan(delayed: Delayed) -> DelayedPlan: ...
@overload
def plan(delayed: pkd.Problem) -> DelayedPlan | pkd.Plan: ...
def plan(delayed: pkd.Problem) -> DelayedPlan | pkd.Plan:
    """The optimal plan: the best over all policies that may use everything they have seen.

    It is made with the true laws, whatever a learner knows of them. A problem whose actions alone
    are late has a plain `pkd.Plan`.

    >>> import pkd_delay
    >>> from pkd_delay.problems import two_state_chain
    >>> best = pkd_delay.plan(pkd_delay.DelayedMDP.constant(two_state_chain(), 1))
    >>> best.action(1, 0), {a: round(q, 12) for a, q in best.values(1, 0).items()}
    (0, {0: 9.1, 1: 8.1})
    """
    if not isinstance(delayed, Delayed):
        return pkd.plan(delayed.model(), delayed.law())
    model = delayed.known()
    return DelayedPlan(delayed, model, pkd.plan(model, delayed.law()))


def learn(
    delayed: pkd.Problem,
    episodes: int | None = None,
    *,
    delay_law: DelayLawKind | None = None,
    **options: Any,
) -> pkd.Run:
    """A run of the optimistic algorithm; `options` are those of `pkd.learn`.

    With `optimism=pkd.MVP()` it is MVP-Delayed as published. delay_law: whether the learner knows
    the law of the delay; None: what the problem says.

    >>> import pkd_delay
    >>> from pkd_delay.problems import two_state_chain
    >>> late = pkd_delay.DelayedMDP.constant(two_state_chain(), 1)
    >>> run = pkd_delay.learn(late, episodes=20, delay_law="unknown")
    >>> round(run.optimal_value, 12), float(run.upper_values[0]), run.violations
    (9.1, 10.0, 0)
    """
    if not isinstance(delayed, Delayed):
        if delay_law is not None:
            raise ModelError(
                f"delay_law is {delay_law!r}, but no observation of the problem is late"
            )
        return pkd.learn(delayed.model(), delayed.law(), episodes, **options)
    kind = delayed.delay_law if delay_law is None else delay_law
    refuse_other_words(kind)
    model = delayed.known() if kind == "known" else delayed.unknown()
    return pkd.learn(model, delayed.law(), episodes, **options)


def optimistic_plan(
    delayed: DelayedMDP,
    transition_counts: ArrayLike,
    delay_counts: ArrayLike | None = None,
    *,
    episodes: int,
    delta: float = 0.05,
    optimism: Optimism | None = None,
) -> DelayedPlan:
    """The plan that MVP-Delayed makes from given counts; `.value` is its upper value.

    transition_counts: (S, A, S) of s'. delay_counts: (S, A, W + 2) of Delta = -1..W for an unknown
    law of the delay, None for a known one. As in the paper, each (s, a) has a law of its own.
    episodes: of the whole run.

    >>> import pkd, pkd_delay
    >>> from pkd_delay.problems import two_state_chain
    >>> chain = two_state_chain()
    >>> counts, late = 10 * chain.transitions, pkd_delay.DelayedMDP.constant(chain, 1)
    >>> for rule in (pkd.MVP(), pkd.Greedy()):
    ...     plan = pkd_delay.optimistic_plan(late, counts, episodes=20, optimism=rule)
    ...     print(round(plan.value, 12))
    10.0
    9.1
    """
    if delay_counts is None and delayed.delay_law == "unknown":
        raise ModelError(
            'delay_counts is None, but delay_law of the problem is "unknown"; '
            "expected counts of Delta, or a problem with a known law"
        )
    delayed = delayed.per_pair()
    model = delayed.known() if delay_counts is None else delayed.unknown()
    counts = name_counts(delayed, transition_counts, delay_counts)
    rule = optimism or pkd.MVP()
    core = pkd.optimistic_plan(model, counts, episodes=episodes, delta=delta, optimism=rule)
    return DelayedPlan(delayed, model, core)


def name_counts(
    delayed: DelayedMDP, transition_counts: ArrayLike, delay_counts: ArrayLike | None = None
) -> Counts:
    """Count arrays as the core wants them, without what cannot be met within the horizon.

    N(s, a, j) = number of Delta >= j,   estimated hazard (N(j) - N(j+1)) / N(j),
    empty queue: (N(-1) - N(1)) / N(-1)
    """
    S, A = delayed.mdp.n_states, delayed.mdp.n_actions
    moves = _check_counts("transition_counts", transition_counts, (S, A, S))
    acting = dict.fromkeys(x for x, _ in delayed.facts.decisions)
    if delay_counts is None:
        return {(s, a): dict(enumerate(moves[s, a].tolist())) for s in acting for a in range(A)}
    wide = delayed.longest + 1 - delayed.form.first
    deltas = _check_counts("delay_counts", delay_counts, (S, A, wide))
    model = delayed.unknown()
    counts: Counts = {}
    for s in acting:
        for a in range(A):
            row = {(t, SHOWN): n for t, n in enumerate(moves[s, a].tolist())}
            counts[Move((s, a), model.depth)] = row
            key = model.delay_key(s, None, a)
            for delta, n in enumerate(deltas[s, a].tolist(), start=delayed.form.first):
                for z, outcome in model.arrivals(key, delta):
                    row = counts.setdefault(z, {})
                    row[outcome] = row.get(outcome, 0.0) + n
    return counts


def _check_counts(name: str, counts: ArrayLike, shape: tuple[int, ...]) -> NDArray[np.float64]:
    if isinstance(counts, Mapping):
        raise ModelError(
            f"{name} is a mapping; expected an array of shape {shape} "
            "(pkd.optimistic_plan takes {z: {x': n}})"
        )
    array = np.asarray(counts, dtype=np.float64)
    if array.shape != shape:
        raise ModelError(f"{name} has shape {array.shape}; expected {shape}")
    bad = np.argwhere(~(np.isfinite(array) & (array >= 0)))
    if len(bad):
        raise ModelError(
            [
                f"{name}{[int(i) for i in at]} is {array[tuple(at)]}; expected a count >= 0"
                for at in bad[:5]
            ]
        )
    return array
