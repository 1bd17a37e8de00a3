"""`KnownDelay`: the decomposition of the paper's Theorem 1, for a known law of the delay.

X is the base's X; Y is the base's Y x queue x counter. Only the base's own features are unknown, so
|Z| is that of the base.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from pkd import ModelError, PartiallyKnownMDP, Queue
from pkd.problem import as_model
from pkd_delay.augmented import SHOWN, TRAN, Augmented
from pkd_delay.base import Base, BaseFacts, Instead, State, survey
from pkd_delay.laws.kernel import DelayKernel, DelayOf, OneOrMany, per_action

if TYPE_CHECKING:
    from pkd.model import Branch


class Pending(NamedTuple):
    """The y of a `KnownDelay`."""

    y: Any  # of the last shown state of the base
    queue: Queue | None  # unresolved actions, oldest first; None: the episode is over
    counter: int  # steps since the last news, or TRAN, or SHOWN


class KnownDelay(Augmented):
    """A base model whose states are shown late by a known law.

        z = phi_Z of the base on tran;
        every other move is known, with P_Y(tran | s, q, c) the p of `Augmented`

    `inter_arrival` is {Delta: probability} for all states, or any other law of the delay (`Lags`,
    `DelayChain`), or a function (x, y, a) of the base's state and the action done in it.
    `max_delay` may be left out where the law has a largest delay. `instead` is needed only where
    the base's action sets differ: (x, y, a) -> the action that is done where a is not on offer.
    |Z| in the logarithms is that of the base, unless `n_features` is given. `facts` are those of
    the same base with the same `instead`, where they are known already.

    >>> import pkd, pkd_delay
    >>> from pkd_delay.models.tables import two_state_chain
    >>> chain = two_state_chain()
    >>> model = pkd_delay.KnownDelay(chain.model(), {1: 1.0}, max_delay=1)
    >>> round(pkd.plan(model, chain.law()).value, 12)  # its unknown features are those of the base
    9.1
    """

    y_type = Pending

    def __init__(
        self,
        base: Base,
        inter_arrival: OneOrMany | DelayOf,
        max_delay: int | None = None,
        *,
        instead: Instead = None,
        n_features: int | None = None,
        facts: BaseFacts | None = None,
    ) -> None:
        base = as_model(base)
        self.inter_arrival = per_action(inter_arrival)
        facts = facts or survey(base, instead)
        form, longest = find_form(base, facts, self.inter_arrival)
        largest = find_largest(self.inter_arrival, max_delay)
        features = base.n_features if n_features is None else n_features
        super().__init__(base, facts, form, longest, largest, instead, features)
        self.samples = None if base.samples is None else self.list_base_samples
        self._common_laws: dict[State, DelayKernel | None] = {}  # None: it depends on the action

    def read(self, x: Any, y: Any) -> tuple[Any, Any, Queue | None, int]:
        base_y, queue, counter = y
        return x, base_y, Queue(queue) if type(queue) is tuple else queue, counter

    def _join(self, x: Any, y: Any, queue: Queue | None, counter: int) -> tuple[Any, Pending]:
        return x, Pending(y, queue, counter)

    def _arrive(self, x: Any, y: Any, queue: Queue, before: int, delay: int) -> list[Branch]:
        law = self.inter_arrival.one or self._find_common_law(x, y)
        if law is None:
            law = self.inter_arrival(x, y, self.done(x, y, queue.oldest))
        p = law.arrival(before, delay)
        known = self._sure_of(x)
        branches = []
        if p > 0.0:
            branches.append((p, Pending(y, queue, TRAN), known))
        if p < 1.0:
            branches.append((1.0 - p, Pending(y, queue, delay - before + 1), known))
        return branches

    def _find_common_law(self, x: Any, y: Any) -> DelayKernel | None:
        """The law of the delay in (x, y), if all actions have the same: then no action is read."""
        if (x, y) not in self._common_laws:
            first, *others = (self.inter_arrival(x, y, a) for a in self.kind(x, y))
            same = all(law is first or law == first for law in others)
            self._common_laws[x, y] = first if same else None
        return self._common_laws[x, y]

    def _lift(self, z: Any) -> Any:
        return z

    def _place_shown(self, y: Any, queue: Queue | None) -> Pending:
        return Pending(y, queue, SHOWN)

    def share(self, z: Any, y: Pending) -> float:
        n = 0 if y.queue is None else len(y.queue)
        return self.queue_share(n + 1) * self.base_share(z, y.y)

    def y_label(self, y: Pending) -> str:
        return f"{self._label_queue(y.y, y.queue)}, {self._label_counter(y.counter)}"


def find_form(
    base: PartiallyKnownMDP, facts: BaseFacts, delay_of: DelayOf
) -> tuple[type[DelayKernel], int]:
    """The form of a law of the delay, and W: the largest number that it draws anywhere."""
    if delay_of.one is not None:
        return type(delay_of.one), delay_of.one.longest
    longest, found = 0, list[str]()
    forms: dict[type[DelayKernel], str] = {}
    for x, y in facts.decisions:
        for a in base.actions(x, y):
            try:
                law = delay_of(x, y, a)
            except ModelError as error:
                found += error.findings
                continue
            if not law.drawn and forms and law.longest != longest:
                found.append(
                    f"inter_arrival(x={x!r}, y={y!r}, a={a!r}) has {law.longest + 1} delays, "
                    f"others {longest + 1}; expected chains of one size"
                )
            longest = max(longest, law.longest)
            forms.setdefault(type(law), f"(x={x!r}, y={y!r}, a={a!r})")
    if len(forms) > 1:
        where = " and ".join(f"{form.__name__} in {place}" for form, place in forms.items())
        found.append(f"inter_arrival gives {where}; expected one form of law everywhere")
    if found:
        raise ModelError(found)
    return next(iter(forms)), longest


def find_largest(delay_of: DelayOf, max_delay: int | None) -> int:
    """The largest delay: the one that is given, or the law's own."""
    if max_delay is not None:
        return max_delay
    own = None if delay_of.one is None else delay_of.one.largest
    if own is None:
        raise ModelError(
            "max_delay is None, and this law has no largest delay of its own; "
            "expected a whole number >= 0"
        )
    return own
