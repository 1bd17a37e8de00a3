"""What an adapter may register for its own class of models: compiled samples, and tables of arrays.

A model with `samples` of its own is learned from recorded episodes, one by one. An adapter that
counts samples in compiled code registers a player for its class, and the notes that the player
needs of each action.

A model whose answers lie in arrays registers a `Table`. Then no method is called for each state:
features, outcomes, moves and rewards are read from the arrays, and a law that has a `find_masses`
gives its probabilities in their order. The methods must say the same, since the check calls them.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import singledispatch
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from pkd.model import Law, PartiallyKnownMDP

if TYPE_CHECKING:
    from pkd.engine.compiled import Compiled, Player, Truth

__all__ = ["Table", "find_masses", "find_note", "find_player", "find_table", "proves_range"]


@attrs.frozen(eq=False)
class Table:
    """A model as arrays: x is a state 0..S-1, y is None, or the clock (h - 1) mod T if T > 1.

    The feature of an action is (s, a), or (t, s, a) if its law changes with the clock: row s A + a,
    or (t S + s) A + a, of the successors. Nothing but rewards on the way is paid.
    """

    rewards: np.ndarray  # (T or 1, S, A); -inf: the action is not on offer
    period: int  # T
    changes: bool  # whether laws change with the clock
    # (pointers (rows + 1,), states): which states can follow each row, ascending; None: all of them
    successors: tuple[np.ndarray, np.ndarray] | None
    branching: int | None = None  # B(z) is at most this


@singledispatch
def find_table(model: PartiallyKnownMDP) -> Table | None:
    """The arrays of a model; None: it is asked state by state."""
    return None


@singledispatch
def find_masses(law: Law, table: Table) -> np.ndarray | None:
    """The probabilities of all successors of a table, row by row; None: the law is asked.

    They are distributions, normalised as `pkd.model.normalise` does it.
    """
    return None


@singledispatch
def proves_range(model: PartiallyKnownMDP) -> bool:
    """Whether the adapter derives `return_range` from a base that was checked.

    Then no sweep over all steps checks it again.
    """
    return False


@singledispatch
def find_note(model: PartiallyKnownMDP) -> Callable[[Any, Any, Any], Hashable | None] | None:
    """(x, y, a) -> what the player must know of this action; None: nothing of any."""
    return None


@singledispatch
def find_player(
    model: PartiallyKnownMDP, compiled: Compiled, truth: Truth, law: Law
) -> Player | None:
    """Plays episodes and counts the model's own samples; None: episodes are recorded."""
    return None
