"""Policies of delayed problems: the paper's maps (last shown state, queue, counter) -> action, one for each step.

`DelayedPlan` is a plan with the words of delayed MDPs; it prints as a table, goes to CSV, and is saved as a `SavedPolicy`, which needs
neither the problem nor the planner to act.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import attrs
import numpy as np

import pkd
from pkd import ModelError
from pkd_delay.augmented import Augmented
from pkd_delay.process import Delayed, DelayedMDP
from pkd_delay.record import Episode
from pkd_delay.simulator import simulate

__all__ = ["DelayedPlan", "Rule", "SavedPolicy"]

HEADER = ("step", "state", "queue", "waited", "action", "value")


class Rule(NamedTuple):
    """One line of a policy."""

    step: int  # h
    state: Any  # the last shown state
    queue: tuple[Any, ...]  # actions since then, oldest first
    waited: int  # steps since it was shown
    action: Any
    value: float  # what is expected from here on


@attrs.frozen(eq=False, repr=False)
class DelayedPlan:
    """A policy for every step of a delayed problem. A state of a `DelayedMDP` is a number; otherwise it is the base's (x, y).

    >>> from pkd_delay import DelayedMDP, plan
    >>> from pkd_delay.problems import two_state_chain
    >>> delayed = DelayedMDP.constant(two_state_chain(horizon=3), 1)
    >>> best = plan(delayed)
    >>> best.action(2, state=0, queue=(0,), waited=1), round(best.evaluate(), 10)
    (0, 2.8)
    """

    delayed: Delayed
    model: Augmented
    core: pkd.Plan  # the same plan in the core's words: (h, x, y)

    def __repr__(self) -> str:
        return f"<DelayedPlan: value {self.value:.6g}, horizon {self.model.horizon}, delays up to {self.model.max_delay}>"

    @property
    def value(self) -> float:
        """The expected return; the upper value for an optimistic plan."""
        return float(self.core.value)

    def action(self, h: int, state: Any, queue: Iterable[Any] = (), waited: int = 0) -> Any:
        """What to do at step h when `state` was the last one shown, `waited` steps ago, and `queue` was done since it."""
        return self.core.action(h, *self._place(state, queue, waited))

    def values(self, h: int, state: Any, queue: Iterable[Any] = (), waited: int = 0) -> dict[Any, float]:
        """Q of every action there."""
        return dict(self.core.values(h, *self._place(state, queue, waited)))

    def _place(self, state: Any, queue: Iterable[Any], waited: int) -> tuple[Any, Any]:
        return self.model.place(*self.delayed.seen(state), tuple(queue), waited)

    def evaluate(self) -> float:
        """The exact expected return of this policy under the truth."""
        return float(pkd.evaluate(self.model, self.delayed.law(), self.core))

    def simulate(self, episodes: int, seed: int = 0) -> list[Episode]:
        """Episodes of this policy, drawn straight from Assumption 1."""
        return simulate(self.delayed, self.action, episodes, seed)

    def rules(self, step: int | None = None) -> Iterator[Rule]:
        """The policy line by line: every decision state that can occur at a step, or at any step, short queues first."""
        actions, states = (
            {value: i for i, value in enumerate(values)} for values in (self.model.facts.actions, self.model.facts.decisions)
        )

        def order(state: tuple[Any, Any]) -> tuple[Any, ...]:
            base_x, base_y, queue, waited = self.model.read(*state)
            return len(queue or ()), [actions[a] for a in queue or ()], waited, states[base_x, base_y]

        for h in range(1, self.model.horizon + 1) if step is None else (step,):
            for x, y in sorted(self.core.states(h), key=order):
                base_x, base_y, queue, waited = self.model.read(x, y)
                value = max(self.core.values(h, x, y).values())
                yield Rule(h, self.delayed.shown_as(base_x, base_y), queue or (), waited, self.core.action(h, x, y), value)

    def table(self, step: int = 1) -> str:
        """The policy of one step as text, with the labels of states and actions."""
        lines = [HEADER[1:], *(self._labelled(rule)[1:] for rule in self.rules(step))]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines)

    def to_csv(self, path: str | Path) -> None:
        """Writes the policy of all steps, with labels; a queue is written oldest action first, separated by blanks."""
        with Path(path).open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(HEADER)
            writer.writerows(self._labelled(rule) for rule in self.rules())

    def _labelled(self, rule: Rule) -> tuple[str, ...]:
        base, (x, y) = self.model.base, self.delayed.seen(rule.state)
        state = base.x_label(x) if self.model.facts.n_y == 1 else f"{base.x_label(x)} | {base.y_label(y)}"
        queue = " ".join(map(base.action_label, rule.queue)) or "-"
        return str(rule.step), state, queue, str(rule.waited), base.action_label(rule.action), f"{rule.value:.10g}"

    def save(self, path: str | Path) -> None:
        """Writes the policy to an .npz file of plain arrays, for `SavedPolicy.load`; states and actions must be numbers."""
        if not isinstance(self.delayed, DelayedMDP):
            raise ModelError("save() needs states and actions that are numbers, those of a DelayedMDP; to_csv() writes any policy")
        rules = list(self.rules())
        queues = np.full((len(rules), self.model.max_delay), -1, dtype=np.int32)
        for row, rule in zip(queues, rules, strict=True):
            row[: len(rule.queue)] = rule.queue
        columns = {name: np.array([getattr(rule, name) for rule in rules]) for name in HEADER if name != "queue"}
        with Path(path).open("wb") as file:
            np.savez_compressed(file, allow_pickle=False, queue=queues, **columns)


@attrs.frozen(eq=False, repr=False)
class SavedPolicy:
    """A policy from a file. It acts like the plan that was saved.

    >>> import pathlib, tempfile
    >>> from pkd_delay import DelayedMDP, plan
    >>> from pkd_delay.problems import two_state_chain
    >>> delayed = DelayedMDP.constant(two_state_chain(horizon=3), 1)
    >>> file = pathlib.Path(tempfile.mkdtemp(), "policy.json")
    >>> plan(delayed).save(file)
    >>> SavedPolicy.load(file).action(2, state=0, queue=(0,), waited=1)
    0
    """

    rules: dict[tuple[int, int, tuple[int, ...], int], Rule]

    def __repr__(self) -> str:
        return f"<SavedPolicy: {len(self.rules)} rules>"

    @classmethod
    def load(cls, path: str | Path) -> SavedPolicy:
        """Reads what `DelayedPlan.save` wrote."""
        try:
            with np.load(path, allow_pickle=False) as arrays:
                columns = [arrays[name].tolist() for name in HEADER]
        except (OSError, EOFError, KeyError, ValueError) as error:
            raise ModelError(f"{path} is not a saved policy; expected an .npz file that DelayedPlan.save wrote ({error})") from None
        rules = (Rule(h, s, tuple(a for a in q if a >= 0), c, a, v) for h, s, q, c, a, v in zip(*columns, strict=True))
        return cls({rule[:4]: rule for rule in rules})

    def action(self, h: int, state: int, queue: Iterable[int] = (), waited: int = 0) -> int:
        """What to do at step h; ModelError where this cannot occur."""
        key = (h, state, tuple(queue), waited)
        if key not in self.rules:
            raise ModelError(f"the policy has no rule for step {h}, state {state!r}, queue {key[2]!r}, waited {waited}; it cannot occur")
        return int(self.rules[key].action)
