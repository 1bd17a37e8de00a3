"""Policies of delayed problems: the paper's maps (last shown state, queue, counter) -> action.

`DelayedPlan` is a plan in the words of delayed MDPs. It prints as a table, goes to CSV, and is
saved as a `SavedPolicy`, which needs neither the problem nor the planner to act.
"""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import attrs
import numpy as np

import pkd
from pkd import ModelError, results
from pkd_delay import files
from pkd_delay.augmented import Augmented
from pkd_delay.process import Delayed, DelayedMDP
from pkd_delay.record import Episode
from pkd_delay.simulator import simulate

__all__ = ["DelayedPlan", "Rule", "SavedPolicy"]

HEADER = ("step", "state", "queue", "waited", "action", "value")
KIND = "policy of a delayed MDP"  # what the file says of itself
SHOWN_FINDINGS = 5
# What NumPy, the zip reader and the JSON reader raise on damaged files. A RuntimeError: the file
# says that it is encrypted, or packed by a method that is not known here.
DAMAGE = (
    ModelError, OSError, EOFError, LookupError, TypeError, ValueError, RuntimeError, MemoryError,
    OverflowError, zipfile.BadZipFile, zlib.error,
)  # fmt: skip


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
    """A policy for every step of a delayed problem.

    A state of a `DelayedMDP` is a number; of any other `Delayed` it is the base's (x, y).

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
        return (
            f"<DelayedPlan: value {self.value:.6g}, horizon {self.model.horizon}, "
            f"delays up to {self.model.max_delay}>"
        )

    def _repr_html_(self) -> str:
        """Value, policy and picture, for a notebook."""
        return self.core._repr_html_()

    @property
    def value(self) -> float:
        """The expected return; the upper value for an optimistic plan."""
        return float(self.core.value)

    def action(self, h: int, state: Any, queue: Iterable[Any] = (), waited: int = 0) -> Any:
        """What to do at step h.

        `state` was the last one shown, `waited` steps ago; `queue` was done since that state.
        """
        return self.core.action(h, *self._place(state, queue, waited))

    def values(
        self, h: int, state: Any, queue: Iterable[Any] = (), waited: int = 0
    ) -> dict[Any, float]:
        """Q of every action there."""
        return dict(self.core.values(h, *self._place(state, queue, waited)))

    def _place(self, state: Any, queue: Iterable[Any], waited: int) -> tuple[Any, Any]:
        return self.model.place(*self.delayed.seen(state), queue, waited)

    def evaluate(self) -> pkd.Evaluation:
        """The exact expected return of this policy under the truth."""
        return pkd.evaluate(self.model, self.delayed.law(), self.core)

    def simulate(self, episodes: int, seed: int = 0) -> list[Episode]:
        """Episodes of this policy, drawn straight from Assumption 1."""
        return simulate(self.delayed, self.action, episodes, seed)

    def rules(self, step: int | None = None) -> Iterator[Rule]:
        """The policy line by line, of one step or of all; short queues come first."""
        for row in self.rows(step):
            state, queue, waited = row.state.values()
            yield Rule(row.step, state, queue, waited, row.action, max(row.values.values()))

    def rows(self, step: int | None = None) -> Iterator[results.Row]:
        """The same with the value of every action, for files."""
        actions = {a: i for i, a in enumerate(self.model.facts.actions)}
        states = {state: i for i, state in enumerate(self.model.facts.decisions)}

        def order(state: tuple[Any, Any]) -> tuple[int, list[int], int, int]:
            x, y, queue, waited = self.model.read(*state)
            entries = [actions[a] for a in queue or ()]
            return len(entries), entries, waited, states[x, y]

        for h in range(1, self.model.horizon + 1) if step is None else (step,):
            for x, y in sorted(self.core.states(h), key=order):
                base_x, base_y, queue, waited = self.model.read(x, y)
                shown = self.delayed.shown_as(base_x, base_y)
                state = {"state": shown, "queue": tuple(queue or ()), "waited": waited}
                yield results.Row(h, state, self.core.action(h, x, y), self.core.values(h, x, y))

    def table(self, step: int = 1) -> str:
        """The policy of one step as text, with the labels of states and actions."""
        lines = [HEADER[1:], *(self._label(rule)[1:] for rule in self.rules(step))]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        return "\n".join(
            "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
            for line in lines
        )

    def to_csv(self, path: str | Path) -> None:
        """Writes the policy of all steps, with labels and one column for the value of each action.

        A queue is written oldest action first, separated by blanks. A label that a spreadsheet
        would take for a formula gets an apostrophe in front.
        """
        base = self.model.base
        rows = (row._replace(state=self._spread(row.state)) for row in self.rows())
        labels = {"action": base.action_label}
        results.write_policy_csv(path, rows, lambda part, v: labels.get(part, str)(v))

    def _spread(self, state: Mapping[str, Any]) -> dict[str, Any]:
        """A state in words: one cell for a queue, and one for a plain state of the base."""
        base, (x, y) = self.model.base, self.delayed.seen(state["state"])
        cells = {"state": base.x_label(x)} if self.model.facts.n_y == 1 else {"x": x, "y": y}
        queue = " ".join(map(base.action_label, state["queue"])) or "-"
        return {**cells, "queue": queue, "waited": state["waited"]}

    def to_json(self, path: str | Path) -> None:
        """Writes the policy of all steps with the types of all values.

        `pkd.PolicyTable.read` reads it: `.action(h, state, queue, waited)`.
        """
        meta = {
            "model": type(self.model.base).__name__,
            "horizon": self.model.horizon,
            "season": None,
            "value": self.value,
            "value_is": self.core.meaning,
            "parts": ["state", "queue", "waited"],
        }
        results.write_policy_json(path, self.rows(), meta)

    def _label(self, rule: Rule) -> tuple[str, ...]:
        base, (x, y) = self.model.base, self.delayed.seen(rule.state)
        state = base.x_label(x)
        if self.model.facts.n_y > 1:
            state = f"{state} | {base.y_label(y)}"
        queue = " ".join(map(base.action_label, rule.queue)) or "-"
        action = base.action_label(rule.action)
        return str(rule.step), state, queue, str(rule.waited), action, f"{rule.value:.10g}"

    def save(self, path: str | Path) -> None:
        """Writes the policy to an .npz file of plain arrays, for `SavedPolicy.load`."""
        if not isinstance(self.delayed, DelayedMDP):
            raise ModelError(
                "save() needs states and actions that are numbers, those of a DelayedMDP; "
                "to_csv() writes any policy"
            )
        rules, mdp = list(self.rules()), self.delayed.mdp
        queues = np.full((len(rules), self.model.max_delay), -1, dtype=np.int32)
        for row, rule in zip(queues, rules, strict=True):
            row[: len(rule.queue)] = rule.queue
        arrays = {
            name: np.array([getattr(rule, name) for rule in rules])
            for name in HEADER
            if name != "queue"
        }
        meta = {
            "kind": KIND,
            "states": mdp.n_states,
            "actions": mdp.n_actions,
            "horizon": mdp.horizon,
        }
        files.write_npz(path, {**arrays, "queue": queues}, meta)


@attrs.frozen(eq=False, repr=False)
class SavedPolicy:
    """A policy from a file. It acts like the plan that was saved.

    >>> import pathlib, tempfile
    >>> from pkd_delay import DelayedMDP, plan
    >>> from pkd_delay.problems import two_state_chain
    >>> delayed = DelayedMDP.constant(two_state_chain(horizon=3), 1)
    >>> file = pathlib.Path(tempfile.mkdtemp(), "policy.npz")
    >>> plan(delayed).save(file)
    >>> SavedPolicy.load(file).action(2, state=0, queue=(0,), waited=1)
    0
    """

    rules: dict[tuple[int, int, tuple[int, ...], int], Rule]

    def __repr__(self) -> str:
        return f"<SavedPolicy: {len(self.rules)} rules>"

    @classmethod
    def load(cls, path: str | Path) -> SavedPolicy:
        """Reads what `DelayedPlan.save` wrote; ModelError for anything else."""
        try:
            arrays, meta = files.read_npz(path)
            found = _find_faults(arrays, meta)
        except DAMAGE as error:
            found = [str(error)]
        if found:
            raise ModelError(
                f"{path} is not a saved policy; expected an .npz file that DelayedPlan.save wrote "
                f"({'; '.join(found[:SHOWN_FINDINGS])})"
            )
        rules = (
            Rule(h, s, tuple(a for a in q if a >= 0), c, a, v)
            for h, s, q, c, a, v in zip(*(arrays[name].tolist() for name in HEADER), strict=True)
        )
        return cls({rule[:4]: rule for rule in rules})

    def action(self, h: int, state: int, queue: Iterable[int] = (), waited: int = 0) -> int:
        """What to do at step h; ModelError where this cannot occur."""
        key = (h, state, tuple(queue), waited)
        if key not in self.rules:
            raise ModelError(
                f"the policy has no rule for step {h}, state {state!r}, queue {key[2]!r}, "
                f"waited {waited}; it cannot occur"
            )
        return int(self.rules[key].action)


def _find_faults(arrays: dict[str, np.ndarray], meta: dict[str, Any]) -> list[str]:
    """What is wrong with the arrays of a file: names, shapes, kinds of numbers, ranges."""
    if not isinstance(meta, dict) or meta.get("kind") != KIND:
        return [f"it does not say that it is a {KIND}"]
    sizes = {name: meta.get(name) for name in ("states", "actions", "horizon")}
    found = [
        f"{name} is {size!r}; expected a positive whole number"
        for name, size in sizes.items()
        if type(size) is not int or size < 1
    ]
    found += [f"there is no array {name!r}" for name in HEADER if name not in arrays]
    if found:
        return found
    n = len(arrays["step"]) if arrays["step"].ndim else 0
    for name in HEADER:
        dimensions, kinds = 2 if name == "queue" else 1, "f" if name == "value" else "iu"
        array = arrays[name]
        if array.ndim != dimensions or len(array) != n or array.dtype.kind not in kinds:
            found.append(f"{name} has shape {array.shape} and type {array.dtype}")
    return found or _find_bad_numbers(arrays, meta["states"], meta["actions"], meta["horizon"])


def _find_bad_numbers(
    arrays: dict[str, np.ndarray], states: int, actions: int, horizon: int
) -> list[str]:
    """Numbers of a policy that no plan of these sizes can have."""
    queue, step, waited = arrays["queue"], arrays["step"], arrays["waited"]
    length = (queue >= 0).sum(axis=1)
    padded = np.arange(queue.shape[1]) >= length[:, None]  # -1 stands after the queue only
    good = {
        f"step outside 1..{horizon}": (step >= 1) & (step <= horizon),
        f"state outside 0..{states - 1}": (arrays["state"] >= 0) & (arrays["state"] < states),
        f"action outside 0..{actions - 1}": (arrays["action"] >= 0) & (arrays["action"] < actions),
        f"queue with an entry outside 0..{actions - 1}": np.where(
            padded, queue == -1, (queue >= 0) & (queue < actions)
        ).all(axis=1),
        "queue longer than the steps before it": length < step,
        "number of steps waited that is negative or longer than the queue": (waited >= 0)
        & (waited <= length),
        "value that is not finite": np.isfinite(arrays["value"]),
    }
    found = [
        f"line {int(np.argmin(holds))} has a {what}"
        for what, holds in good.items()
        if not holds.all()
    ]
    keys = np.column_stack([step, arrays["state"], waited, queue])
    if not found and len(np.unique(keys, axis=0)) < len(keys):
        found.append("two lines are about the same state")
    return found
