"""A delayed MDP as a POMDP, after the paper's paragraph on them, and a solver without queues.

The latent state is the sequence of the last shown state and the states still hidden, each with the
steps until it is shown. The agent observes the last shown state and how many are hidden. The
belief-tree expectimax here plans over histories of such observations: it uses no augmented state
and no code of the core, so its optimum checks ours. `to_text` writes the .pomdp format of
Cassandra's solvers.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping
from typing import Any

import attrs

import pkd
from pkd_delay.delayed import DelayedMDP

Belief = Mapping[Hashable, float]


@attrs.frozen
class Latent:
    """A hidden situation: the last state that the agent has seen, and the hidden states after it.

    `waits` holds, for each hidden state, in how many steps it is shown; it never falls. The current
    state is the last of all.
    """

    shown: int
    hidden: tuple[int, ...] = ()
    waits: tuple[int, ...] = ()

    @property
    def current(self) -> int:
        """s_h, where the agent really is."""
        return self.hidden[-1] if self.hidden else self.shown

    def __str__(self) -> str:
        return f"s{self.shown}" + "".join(
            f"_s{s}in{wait}" for s, wait in zip(self.hidden, self.waits, strict=True)
        )


@attrs.frozen(eq=False)
class POMDP:
    """A finite-horizon POMDP whose observation is a function of the latent state.

    The observation of the first latent state is seen before the first action.
    """

    states: tuple[Hashable, ...]
    actions: tuple[Hashable, ...]
    transitions: Mapping[tuple[Hashable, Hashable], Belief]  # (state, action) -> {state: p}
    observations: Mapping[Hashable, Hashable]  # state -> what is seen there
    rewards: Mapping[tuple[Hashable, Hashable], float]
    start: Belief
    horizon: int

    def optimal_value(self) -> float:
        """The optimum over all policies that map histories of observations to actions.

        V_h(b) = max_a [ sum_s b(s) r(s, a) + sum_o Pr(o | b, a) V_{h+1}(b given a and o) ], by
        expectimax over beliefs.
        """
        known: dict[tuple[int, frozenset[tuple[Hashable, float]]], float] = {}

        def value(step: int, belief: Belief) -> float:
            if step > self.horizon:
                return 0.0
            key = (step, frozenset(belief.items()))
            if key not in known:
                known[key] = max(self._action_value(step, belief, a, value) for a in self.actions)
            return known[key]

        return sum(weight * value(1, belief) for weight, belief in self._seen(self.start))

    def to_text(self) -> str:
        """The POMDP in Cassandra's text format.

        The horizon is a comment, because the format has no word for it.
        """
        names = {s: _identifier(s) for s in self.states}
        looks = dict.fromkeys(self.observations[s] for s in self.states)
        preamble = {
            "discount": ["1.0"],
            "values": ["reward"],
            "states": names.values(),
            "actions": map(_identifier, self.actions),
            "observations": map(_identifier, looks),
            "start": (repr(float(self.start.get(s, 0.0))) for s in self.states),
        }
        lines = [f"# finite horizon: {self.horizon} actions, no discount"]
        lines += [f"{key}: {' '.join(words)}" for key, words in preamble.items()]
        lines += [
            f"T: {_identifier(a)} : {name} : {names[t]} {float(p)!r}"
            for s, name in names.items()
            for a in self.actions
            for t, p in self.transitions[s, a].items()
        ]
        for s, name in names.items():
            lines.append(f"O: * : {name} : {_identifier(self.observations[s])} 1.0")
        lines += [
            f"R: {_identifier(a)} : {name} : * : * {float(self.rewards[s, a])!r}"
            for s, name in names.items()
            for a in self.actions
        ]
        return "\n".join(lines) + "\n"

    def _action_value(
        self, step: int, belief: Belief, action: Hashable, value: Callable[[int, Belief], float]
    ) -> float:
        total = sum(p * self.rewards[s, action] for s, p in belief.items())
        ahead: dict[Hashable, float] = {}
        for s, p in belief.items():
            for t, q in self.transitions[s, action].items():
                ahead[t] = ahead.get(t, 0.0) + p * q
        return total + sum(weight * value(step + 1, after) for weight, after in self._seen(ahead))

    def _seen(self, belief: Belief) -> Iterator[tuple[float, Belief]]:
        """(probability, belief after it) for each observation that can be made."""
        groups: dict[Hashable, dict[Hashable, float]] = {}
        for s, p in belief.items():
            groups.setdefault(self.observations[s], {})[s] = p
        for group in groups.values():
            weight = sum(group.values())
            yield weight, {s: p / weight for s, p in group.items()}


def delayed_pomdp(delayed: DelayedMDP) -> POMDP:
    """The POMDP of a delayed MDP, straight from Assumption 1.

    It holds the latent states that can be reached within the horizon.
    """

    def moves(latent: Latent, a: int) -> Iterator[tuple[Latent, float]]:
        s = latent.current
        # D_{h-1}: how long the current state stays hidden.
        delay = latent.waits[-1] if latent.waits else 0
        for wait, p_delta in enumerate(delayed.delay_of(s, None, a).row(delay, delayed.max_delay)):
            for s_next, p in enumerate(delayed.mdp.transitions[s, a]):
                if p_delta * p > 0:
                    yield _a_step_later(latent, s_next, wait), float(p_delta * p)

    return _explore(
        delayed.mdp,
        {Latent(s): float(p) for s, p in enumerate(delayed.mdp.start_distribution) if p > 0},
        moves,
        current=lambda latent: latent.current,
        observe=lambda latent: (latent.shown, len(latent.hidden)),
    )


def unobservable_pomdp(mdp: pkd.TabularMDP) -> POMDP:
    """The MDP that shows nothing at all, its first state included.

    Its optimum is the best of the A^H sequences of actions.
    """

    def moves(s: int, a: int) -> Iterator[tuple[int, float]]:
        return ((s_next, float(p)) for s_next, p in enumerate(mdp.transitions[s, a]) if p > 0)

    start: Belief = {s: float(p) for s, p in enumerate(mdp.start_distribution) if p > 0}
    return _explore(mdp, start, moves, current=lambda s: s, observe=lambda s: "nothing")


def _a_step_later(latent: Latent, s_next: int, wait: int) -> Latent:
    """A new hidden state that is shown in `wait` steps.

    Every older wait shrinks by one, and what reaches 0 is shown.
    """
    path = [latent.shown, *latent.hidden, s_next]
    waits = [0, *(left - 1 for left in latent.waits), wait]
    seen = max(i for i, left in enumerate(waits) if left == 0)
    return Latent(path[seen], tuple(path[seen + 1 :]), tuple(waits[seen + 1 :]))


def _explore(
    mdp: pkd.TabularMDP,
    start: Belief,
    moves: Callable[[Any, int], Iterator[tuple[Any, float]]],
    current: Callable[[Any], int],
    observe: Callable[[Any], Hashable],
) -> POMDP:
    """Everything reachable in `horizon` actions.

    The states of the last step stay where they are, as they are never left.
    """
    transitions: dict[tuple[Hashable, Hashable], dict[Hashable, float]] = {}
    states = dict.fromkeys(start)
    layer = list(start)
    actions = range(mdp.n_actions)
    for _ in range(mdp.horizon):
        fresh: dict[Hashable, None] = {}
        for s in layer:
            for a in actions:
                row = transitions.setdefault((s, a), {})
                for target, p in moves(s, a):
                    row[target] = row.get(target, 0.0) + p
                    if target not in states:
                        fresh[target] = None
        states |= fresh
        layer = list(fresh)
    transitions |= {(s, a): {s: 1.0} for s in layer for a in actions}
    return POMDP(
        states=tuple(states),
        actions=tuple(actions),
        transitions=transitions,
        observations={s: observe(s) for s in states},
        rewards={(s, a): float(mdp.rewards[current(s), a]) for s in states for a in actions},
        start=start,
        horizon=mdp.horizon,
    )


def _identifier(value: Any) -> str:
    """A name that the text format accepts: a letter, then letters, digits and underscores."""
    if isinstance(value, tuple):
        return f"saw_s{value[0]}_with_{value[1]}_hidden"
    return f"n{value}" if isinstance(value, int) else str(value)
