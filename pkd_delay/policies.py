"""What every plan under delay can do with its policy: simulate it, print it, write it.

A subclass says what it does in a state and which states its rows are for.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pkd import files
from pkd.show.tables import format_table
from pkd_delay.delayed import Delayed
from pkd_delay.episodes import DelayedEpisode, simulate

if TYPE_CHECKING:
    import pandas as pd


class LatePlan(ABC):
    """A policy for every step of a delayed problem."""

    delayed: Delayed

    @abstractmethod
    def action(self, h: int, state: Any, queue: Iterable[Any] = (), waited: int = 0) -> Any:
        """What to do at step h.

        `state` was the last one shown, `waited` steps ago; `queue` was done since that state.
        """

    @abstractmethod
    def rows(self, step: int | None = None) -> Iterator[files.Row]:
        """The policy of one step or of all, with the value of every action."""

    @abstractmethod
    def describe(self) -> dict[str, Any]:
        """What a JSON file says before its rules."""

    def simulate(self, episodes: int, seed: int = 0) -> list[DelayedEpisode]:
        """Episodes of this policy, drawn straight from Assumption 1."""
        return simulate(self.delayed, self.action, episodes, seed)

    def table(self, step: int = 1) -> str:
        """The policy of one step as text, with the labels of states and actions."""
        base, lines = self.delayed.base, []
        for row in self.rows(step):
            shown, queue, waited = row.state.values()
            x, y = self.delayed.seen(shown)
            plain = self.delayed.facts.n_y == 1
            state = base.x_label(x) if plain else f"{base.x_label(x)} | {base.y_label(y)}"
            words = " ".join(map(base.action_label, queue)) or "-"
            value = f"{row.values[row.action]:.10g}"
            lines.append((state, words, waited, base.action_label(row.action), value))
        return format_table(("state", "queue", "waited", "action", "value"), lines)

    @abstractmethod
    def list_rows(self, *, values: bool = False, every_state: bool = False) -> Iterator[files.Row]:
        """The rows of a file; values: with the value of every action."""

    def to_csv(self, path: str | Path, *, values: bool = False, every_state: bool = False) -> int:
        """Writes the policy with labels, as `pkd.Plan.to_csv` does; how many lines that makes.

        A queue is written oldest action first, separated by blanks. A label that a spreadsheet
        would take for a formula gets an apostrophe in front.
        """
        rows = self.list_rows(values=values, every_state=every_state)
        spread = (row._replace(state=self._spread(row.state)) for row in rows)
        return files.write_policy_csv(path, spread, self._label)

    def to_json(self, path: str | Path, *, values: bool = False, every_state: bool = False) -> int:
        """The same with the types of all values; how many rows.

        `pkd.PolicyTable.read` reads it: `.action(h, state, queue, waited)`. The state is the base's
        x where its y is trivial, else (x, y).
        """
        rows = map(self._say_state, self.list_rows(values=values, every_state=every_state))
        return files.write_policy_json(path, rows, self._describe())

    def to_frame(self, *, values: bool = False, every_state: bool = False) -> pd.DataFrame:
        """The rows of `to_json` as a pandas frame, with the values of states as they are."""
        rows = map(self._say_state, self.list_rows(values=values, every_state=every_state))
        return files.make_frame(files.list_policy(rows))

    def _describe(self) -> dict[str, Any]:
        return {
            **self.describe(),
            "model": type(self.delayed.base).__name__,
            "parts": ["state", "queue", "waited"],
        }

    def _label(self, part: str, value: Any) -> str:
        base = self.delayed.base
        labels = {"action": base.action_label, "entry": base.action_label, "state": base.x_label}
        return labels.get(part, str)(value)

    def _spread(self, state: Mapping[str, Any]) -> dict[str, Any]:
        """A state in its columns: one for a queue, and one for a plain state of the base."""
        x, y = self.delayed.seen(state["state"])
        cells = {"state": x} if self.delayed.facts.n_y == 1 else {"x": x, "y": y}
        return {**cells, "queue": state["queue"], "waited": state["waited"]}

    def _say_state(self, row: files.Row) -> files.Row:
        x, y = self.delayed.seen(row.state["state"])
        state = x if self.delayed.facts.n_y == 1 else (x, y)
        return row._replace(state={**row.state, "state": state})
