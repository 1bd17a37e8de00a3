"""A discount as a known chance of ending: a model that goes on with probability gamma per action.

    E[ sum_h gamma^(h-1) r_h + gamma^n final ]  =  E[ return of the model that ends with 1 - gamma ]

Every action, with the CHANCE states that follow it, is paid in full. Before the next decision (or
before the final pay) the episode ends with probability 1 - gamma and pays no more. The chance is
known, so it is part of y, and a learner has nothing more to learn than before.
"""

from __future__ import annotations

from typing import Any

import attrs

from pkd.model import CHANCE, END, Branch, ModelError, PartiallyKnownMDP, sure
from pkd.wrapped import Wrapped

__all__ = ["Discounted", "Due", "Over", "find_discount_faults"]


@attrs.frozen
class Due:
    """The y after an action: whether the episode goes on is decided before the next one."""

    y: Any


@attrs.frozen
class Over:
    """The y of an episode that has ended by the discount."""


OVER = Over()


class Discounted(Wrapped):
    """Any model with a known chance 1 - discount of ending after each action.

    The decision states are those of the base. `pkd.discounted` makes one.
    """

    def __init__(self, base: PartiallyKnownMDP, discount: float) -> None:
        findings = find_discount_faults(discount)
        if base.samples is not None:
            findings.append(
                f"{type(base).__name__} learns from whole episodes (it overrides samples), and a "
                "discount cuts them short; discount the model that it was made of"
            )
        if findings:
            raise ModelError(findings)
        super().__init__(base)
        self.discount, self.return_range = float(discount), None

    def __repr__(self) -> str:
        return f"<{type(self.base).__name__}: horizon {self.horizon}, discount {self.discount:g}>"

    def first(self, x: Any, y: Any) -> tuple[Any, Any]:
        return x, y

    def actions(self, x: Any, y: Any) -> Any:
        if isinstance(y, Over):
            return END
        return CHANCE if isinstance(y, Due) else self.kind(x, y)

    def reward(self, x: Any, y: Any, a: Any) -> Any:
        if not isinstance(y, Due):
            return self.base.reward(x, y, a)
        return self.base.reward(x, y.y, None) if self._is_chance(x, y.y) else 0.0

    def step(self, x: Any, y: Any, a: Any) -> list[Branch]:
        return self._follow(x, y, a, self.base.step)

    def last_step(self, x: Any, y: Any, a: Any) -> list[Branch]:
        return self._follow(x, y, a, self.base.last_step)

    def _follow(self, x: Any, y: Any, a: Any, step: Any) -> list[Branch]:
        if not isinstance(y, Due):
            branches: list[Branch] = list(step(x, y, a))
            # Before the first action nothing is due.
            return branches if a is None else [(p, Due(y_next), z) for p, y_next, z in branches]
        if self._is_chance(x, y.y):
            return [(p, Due(y_next), z) for p, y_next, z in step(x, y.y, None)]
        return [(self.discount, y.y, sure(x)), (1.0 - self.discount, OVER, sure(x))]

    def _is_chance(self, x: Any, y: Any) -> bool:
        return self.kind(x, y) is CHANCE

    def share(self, z: Any, y: Any) -> float | None:
        share = self.base.share(z, y.y if isinstance(y, Due) else y)
        return None if share is None else share / 2  # each y can occur twice: due, and at the start

    def final(self, x: Any, y: Any) -> float:
        return 0.0 if isinstance(y, Over | Due) else self.base.final(x, y)

    def y_label(self, y: Any) -> str:
        return (
            "ended" if isinstance(y, Over) else self.base.y_label(y.y if isinstance(y, Due) else y)
        )


def find_discount_faults(discount: Any) -> list[str]:
    """What is wrong with a discount."""
    good = isinstance(discount, int | float) and not isinstance(discount, bool)
    if good and 0 < discount <= 1:
        return []
    return [f"discount: expected a number above 0 and at most 1, found {discount!r}"]
