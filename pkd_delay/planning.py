"""`plan`, `learn` and `optimistic_plan` for delayed problems: the core's functions on the adapters, in the words of delayed MDPs.

MVP-Delayed (the paper's Algorithm 4) is `pkd.learn` on `KnownDelay` or `UnknownDelay`; nothing is added here but names.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

import pkd
from pkd import ModelError
from pkd_delay.policy import DelayedPlan
from pkd_delay.process import Delayed, DelayedMDP, DelayLawKind, refuse_other_words
from pkd_delay.unknown import Move

if TYPE_CHECKING:
    from pkd.optimism import Optimism

__all__ = ["learn", "named_counts", "optimistic_plan", "plan"]


def plan(delayed: Delayed) -> DelayedPlan:
    """The optimal plan: the best over all policies that may use everything they have seen.

    >>> import pkd_delay
    >>> from pkd_delay.problems import two_state_chain
    >>> best = pkd_delay.plan(pkd_delay.DelayedMDP.constant(two_state_chain(), 1))
    >>> best.action(1, 0), {a: round(q, 12) for a, q in best.values(1, 0).items()}
    (0, {0: 9.1, 1: 8.1})
    """
    refuse_what_cannot_fit(delayed)
    model = delayed.known()
    return DelayedPlan(delayed, model, pkd.plan(model, delayed.law()))


def learn(
    delayed: Delayed, episodes: int, *, delay_law: DelayLawKind = "known", optimism: Optimism | None = None, **options: Any
) -> pkd.Run:
    """A run of MVP-Delayed. `delay_law`: whether the learner knows the law of the delay; `options` are those of `pkd.learn`.

    >>> import pkd_delay
    >>> from pkd_delay.problems import two_state_chain
    >>> run = pkd_delay.learn(pkd_delay.DelayedMDP.constant(two_state_chain(), 1), episodes=20, delay_law="unknown")
    >>> round(run.optimal_value, 12), float(run.upper_values[0]), run.violations
    (9.1, 10.0, 0)
    """
    refuse_what_cannot_fit(delayed)
    return pkd.learn(_model(delayed, delay_law), delayed.law(), episodes, optimism=optimism or pkd.MVP(), **options)


def optimistic_plan(
    delayed: DelayedMDP,
    transition_counts: Any,
    delay_counts: Any = None,
    *,
    episodes: int,
    delta: float = 0.05,
    optimism: Optimism | None = None,
) -> DelayedPlan:
    """The plan that MVP-Delayed makes from given counts, in a run of so many episodes; `.value` is its upper value.

    transition_counts: (S, A, S) of s'. delay_counts: (S, A, W + 2) of Delta = -1..W for an unknown law of the delay, None for a known one.

    >>> import pkd, pkd_delay
    >>> from pkd_delay.problems import two_state_chain
    >>> chain = two_state_chain()
    >>> counts, late = 10 * chain.transitions, pkd_delay.DelayedMDP.constant(chain, 1)
    >>> [round(pkd_delay.optimistic_plan(late, counts, episodes=20, optimism=rule).value, 12) for rule in (pkd.MVP(), pkd.Greedy())]
    [10.0, 9.1]
    """
    refuse_what_cannot_fit(delayed)
    model = _model(delayed, "known" if delay_counts is None else "unknown")
    counts = named_counts(delayed, transition_counts, delay_counts)
    made = pkd.optimistic_plan(model, counts, episodes=episodes, delta=delta, optimism=optimism or pkd.MVP())
    return DelayedPlan(delayed, model, made)


def named_counts(delayed: DelayedMDP, transition_counts: Any, delay_counts: Any = None) -> dict[Any, dict[Any, float]]:
    """Count arrays as the core wants them, {z: {x': n}}; counts of what cannot be met within the horizon are left out.

    N(s, a, j) = number of Delta >= j,   estimated hazard (N(j) - N(j+1)) / N(j),   empty queue: (N(-1) - N(1)) / N(-1)
    """
    S, A = delayed.mdp.n_states, delayed.mdp.n_actions
    moves = _checked("transition_counts", transition_counts, (S, A, S))
    if delay_counts is None:
        acting = {x for x, _ in delayed.known().facts.decisions}
        return {(s, a): dict(enumerate(moves[s, a].tolist())) for s in acting for a in range(A)}
    deltas = _checked("delay_counts", delay_counts, (S, A, delayed.longest + 2))
    model = delayed.unknown()
    counts: dict[Any, dict[Any, float]] = {}
    for s, y in model.facts.decisions:
        for a in range(A):
            counts[Move((s, a))] = {model.place(t, y, (), -1)[0]: n for t, n in enumerate(moves[s, a].tolist())}
            for delta, n in enumerate(deltas[s, a].tolist(), start=-1):
                for z, outcome in model.arrivals(s, a, delta):
                    row = counts.setdefault(z, {})
                    row[outcome] = row.get(outcome, 0.0) + n
    return counts


def refuse_what_cannot_fit(delayed: Delayed) -> None:
    """Says before any memory is taken that a plan is too large: it holds at least one byte for each decision state of each step."""
    if not isinstance(delayed, DelayedMDP):
        return
    S, A, H, D = delayed.mdp.n_states, delayed.mdp.n_actions, delayed.mdp.horizon, delayed.max_delay
    layers = [sum(A**n for n in range(min(D, h - 1) + 1)) for h in range(1, min(H, D + 1) + 1)]
    needed = S * (sum(layers) + (H - len(layers)) * layers[-1])
    there = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if needed > there:
        raise ModelError(
            f"a plan for S={S}, A={A}, H={H}, max_delay={D} has {needed:.3g} decision states, at least one byte each; this machine has "
            f"{there:.3g} bytes of memory. Lower max_delay or the horizon"
        )


def _model(delayed: Delayed, delay_law: DelayLawKind) -> Any:
    refuse_other_words(delay_law)
    return delayed.known() if delay_law == "known" else delayed.unknown()


def _checked(name: str, counts: Any, shape: tuple[int, ...]) -> np.ndarray[Any, np.dtype[np.float64]]:
    if isinstance(counts, Mapping):
        raise ModelError(f"{name} is a mapping; expected an array of shape {shape} (pkd.optimistic_plan takes {{z: {{x': n}}}})")
    array = np.asarray(counts, dtype=np.float64)
    if array.shape != shape:
        raise ModelError(f"{name} has shape {array.shape}; expected {shape}")
    bad = np.argwhere(~(np.isfinite(array) & (array >= 0)))
    if len(bad):
        raise ModelError([f"{name}{[int(i) for i in at]} is {array[tuple(at)]}; expected a count >= 0" for at in bad[:5]])
    return array
