"""`BoundedPlan`: a policy for a long delay, between two bounds on the optimum."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

import pkd
from pkd import ModelError, files
from pkd.expect import failure, function, if_given, instance, key, number, require, whole
from pkd.files import read_npz, write_npz
from pkd.workers import memory as find_memory
from pkd_delay.delayed import Delayed
from pkd_delay.long.bounds import Bounds, Round
from pkd_delay.long.line import Places, make_line
from pkd_delay.long.table import Table, make_table
from pkd_delay.policies import LatePlan

if TYPE_CHECKING:
    from pkd.model import Law

__all__ = ["Bounded", "BoundedPlan", "plan_long", "plan_table"]

KIND = "BoundedPlan"
LATE = "a problem with late observations: pkd_delay.Delayed or DelayedMDP"
GIGABYTE = 1e9
MOST_STATES = 1000  # of each step of an exported policy
Queue = tuple[int, ...]
Met = tuple[int, Queue, int]  # last shown state, actions since, waited: all as numbers


@attrs.frozen(eq=False, repr=False)
class BoundedPlan(LatePlan):
    """A policy whose value is at least `low`, and low <= optimum <= high.

    `low` is exact where `delta` is 0. Otherwise it was simulated, and fails with probability delta
    at most; `high` never fails. An action is computed when it is asked for, in any state that can
    occur. `values` are upper values, by which it is chosen.
    """

    delayed: Delayed
    low: float
    high: float
    delta: float  # with which probability `low` may fail; 0: it is exact
    table_of_base: Table
    places: Places
    bounds: Bounds

    def __repr__(self) -> str:
        kind = f"simulated, delta {self.delta:g}" if self.delta else "exact bounds"
        return (
            f"<BoundedPlan: {self.low:.6g} <= optimum <= {self.high:.6g} ({kind}), "
            f"horizon {self.horizon}, delays up to {self.delayed.max_delay}>"
        )

    def say(self) -> str:
        """The bounds in a sentence."""
        kind = "both bounds are exact"
        if self.delta:
            kind = f"the lower one was simulated and holds with probability {1 - self.delta:g}"
        return (
            f"optimal value between {self.low:.8g} and {self.high:.8g} over {self.horizon} steps "
            f"(gap {self.gap:.2%}; {kind}); this policy earns at least {self.low:.8g}"
        )

    @property
    def value(self) -> float:
        """What the policy earns at least, on average."""
        return self.low

    @property
    def gap(self) -> float:
        """high - low, relative to the larger of both."""
        return (self.high - self.low) / max(abs(self.low), abs(self.high), 1e-300)

    @property
    def horizon(self) -> int:
        """Steps of an episode."""
        return self.bounds.horizon

    def action(self, h: int, state: Any, queue: Iterable[Any] = (), waited: int = 0) -> Any:
        return self.table_of_base.actions[self._ask(h, state, queue, waited)[0]]

    def values(
        self, h: int, state: Any, queue: Iterable[Any] = (), waited: int = 0
    ) -> dict[Any, float]:
        """An upper bound on what is paid from now on, after every action; the past is not in it."""
        q = self._ask(h, state, queue, waited)[1]
        return dict(zip(self.table_of_base.actions, q.tolist(), strict=True))

    def act(self, h: int, x: Any, y: Any) -> Any:
        """The action in a state (x, y) of `delayed.known()`, as `pkd.evaluate` asks for it.

        It also asks about states that the model allows and the law rules out. There the first
        action is as good as any other.
        """
        base_x, base_y, queue, waited = self.delayed.known().read(x, y)
        if (base_x, base_y) not in self.table_of_base.states:
            return self.table_of_base.actions[0]
        return self.action(h, self.delayed.shown_as(base_x, base_y), tuple(queue or ()), waited)

    def _ask(self, h: int, state: Any, queue: Iterable[Any], waited: int) -> tuple[int, Any]:
        require(
            whole("h", h, 1, self.horizon), key("state", state), whole("waited", waited),
            instance("queue", queue, Iterable, "the actions since then, oldest first"),
        )  # fmt: skip
        table, done, found = self.table_of_base, tuple(queue), list[str]()
        require(key("queue", done))
        place = self.delayed.seen(state)
        if place not in table.states:
            found.append(f"state {state!r} is no decision state of the base that can occur")
        number = {a: k for k, a in enumerate(table.actions)}
        found += [f"queue: {a!r} is no action; expected one of {table.actions}" for a in done
                  if a not in number]  # fmt: skip
        if len(done) >= h:
            found.append(f"{len(done)} actions cannot be done before step {h}")
        require(found)
        d = self.places.find(len(done), waited)
        return self.bounds.ask(h, d, table.states[place], [number[a] for a in done])

    def evaluate(self) -> float:
        """The exact value of this policy, by following every state that it meets."""
        value = self.bounds.follow()
        if value is None:
            raise ModelError(
                "the policy meets more states than there is room for, so its exact value is not "
                "to be had; expected more memory, or .low and .simulate(episodes)"
            )
        return value

    def rows(self, step: int | None = None, most: int = MOST_STATES) -> Iterator[files.Row]:
        """The policy of one step or of all, in the `most` likeliest states that it meets.

        The values are upper values.
        """
        require(if_given(whole, "step", step, 1, self.horizon), whole("most", most))
        table, names = self.table_of_base, list(self.table_of_base.states)
        actions, last = table.actions, self.horizon if step is None else step
        start = table.start[:-1].tolist()  # without the end
        law: dict[Met, float] = {(s, (), 0): p for s, p in enumerate(start) if p > 0.0}
        for h in range(1, last + 1):
            kept = sorted(law, key=law.__getitem__, reverse=True)[:most]
            following: dict[Met, float] = {}
            for s, queue, waited in sorted(kept, key=lambda met: (len(met[1]), met)):
                d = self.places.find(len(queue), waited)
                k, q = self.bounds.ask(h, d, s, list(queue))
                if step in (None, h):
                    state = {
                        "state": self.delayed.shown_as(*names[s]),
                        "queue": tuple(actions[a] for a in queue),
                        "waited": waited,
                    }
                    values = dict(zip(actions, q.tolist(), strict=True))
                    yield files.Row(h, state, actions[k], values)
                for met, p in self._follow(s, (*queue, k), waited):
                    following[met] = following.get(met, 0.0) + law[s, queue, waited] * p
            law = following

    def list_rows(self, *, values: bool = False, every_state: bool = False) -> Iterator[files.Row]:
        if every_state:
            raise ModelError(
                "every_state: this plan knows no list of all states; it writes the likeliest ones"
            )
        for row in self.rows():
            kept = row.values if values else {row.action: row.values[row.action]}
            yield row._replace(values=kept)

    def _follow(self, s: int, queue: Queue, waited: int) -> Iterator[tuple[Met, float]]:
        """What may be known after the last action, with probabilities; an end is left out."""
        table, law, done = self.table_of_base, {s: 1.0}, 0
        row = self.places.rows[len(queue) - 1, waited]
        for (n, later), p in sorted(row.items(), reverse=True):
            for a in queue[done : len(queue) - n]:
                after: dict[int, float] = {}
                for i, q in law.items():
                    n_next = int(table.n[i, a])
                    to, p_to = table.to[i, a, :n_next].tolist(), table.p[i, a, :n_next].tolist()
                    for j, p_j in zip(to, p_to, strict=True):
                        after[j] = after.get(j, 0.0) + q * p_j
                law = after
            done = len(queue) - n
            for i, q in law.items():
                if i < len(table.states):
                    yield (i, queue[done:], later), p * q

    def describe(self) -> dict[str, Any]:
        kind = f"simulated, holds with probability {1 - self.delta:g}" if self.delta else "exact"
        return {
            "horizon": self.horizon,
            "season": None,
            "value": self.low,
            "value_is": f"a lower bound on the value of the policy ({kind})",
            "high": self.high,
        }

    def save(self, path: str | Path) -> None:
        """Writes the plan to an .npz file of plain arrays, for `BoundedPlan.load`."""
        meta: dict[str, object] = {
            "kind": KIND,
            "fingerprint": _identify(self.delayed, self.table_of_base, self.places),
            "low": self.low,
            "high": self.high,
            "delta": self.delta,
        }
        write_npz(path, self.bounds.to_arrays(), meta)

    @classmethod
    def load(cls, path: str | Path, delayed: Delayed) -> BoundedPlan:
        """The plan that `save` wrote for this problem; a file of another one is refused."""
        require(instance("delayed", delayed, Delayed, LATE))
        arrays, meta = read_npz(path)
        if meta.get("kind") != KIND:
            raise ModelError(f"{path} is not a plan with bounds that pkd_delay saved")
        table, places = make_table(delayed), make_line(delayed)
        if meta.get("fingerprint") != _identify(delayed, table, places):
            raise ModelError(f"{path} is the plan of another problem, or of an edited one")
        try:
            bounds = Bounds.of_arrays(table, places.line, delayed.base.horizon, arrays)
            low, high, delta = (float(meta[name]) for name in ("low", "high", "delta"))
        except (KeyError, IndexError, TypeError, ValueError) as problem:
            raise ModelError(f"{path} is damaged: {problem!r}") from None
        return cls(delayed, low, high, delta, table, places, bounds)


def plan_long(
    delayed: Delayed,
    gap: float,
    *,
    seconds: float = 60.0,
    memory: float | None = None,
    delta: float = 0.001,
    tell: Callable[[Round], object] | None = None,
) -> BoundedPlan:
    """Bounds on the optimum of a delayed problem, and a policy whose value is at least the lower.

    It stops when high - low is at most `gap` times the larger of both, or after about `seconds`,
    or when the net has filled `memory` gigabytes (default: a gigabyte, or a quarter of the
    machine's if that is less). The lower bound is exact as long as all that the policy meets can be
    followed. After that it is simulated, and fails with probability delta at most; delta=0 wants
    exact bounds only. tell: is called with each `Round`.
    """
    require(
        instance("delayed", delayed, Delayed, LATE),
        number("gap", gap), number("seconds", seconds, above=True),
        [] if isinstance(delta, int | float) and delta == 0 else failure("delta", delta),
        [] if memory is None else number("memory", memory, above=True),
        if_given(function, "tell", tell, "of a Round"),
    )  # fmt: skip
    return plan_table(
        delayed, make_table(delayed), make_line(delayed), gap, seconds=seconds, memory=memory,
        delta=delta, tell=tell,
    )  # fmt: skip


def plan_table(
    delayed: Delayed,
    table: Table,
    places: Places,
    gap: float,
    *,
    seconds: float,
    memory: float | None,
    delta: float,
    tell: Callable[[Round], object] | None = None,
) -> BoundedPlan:
    """`plan_long` with a table of the base that was made already."""
    room = min(GIGABYTE, find_memory() / 4) if memory is None else memory * GIGABYTE
    bounds = Bounds(table, places.line, delayed.base.horizon, room)
    bounds.refine(gap, seconds, delta, tell or (lambda found: None))
    best = bounds.best
    return BoundedPlan(delayed, best.value, bounds.high, best.delta, table, places, bounds)


@attrs.frozen
class Bounded:
    """A delayed problem with the planner that gives bounds: what `pkd plan --gap` asks."""

    delayed: Delayed

    @property
    def remarks(self) -> tuple[str, ...]:
        """Those of the delayed problem."""
        return self.delayed.remarks

    @property
    def picture(self) -> Callable[[pkd.Plan], Any] | None:
        """That of the delayed problem."""
        return self.delayed.picture

    def model(self) -> pkd.PartiallyKnownMDP:
        return self.delayed.model()

    def law(self) -> Law:
        return self.delayed.law()

    def plan_within(self, gap: float, **limits: Any) -> BoundedPlan:
        """`plan_long` of the problem."""
        return plan_long(self.delayed, gap, **limits)


def _identify(delayed: Delayed, table: Table, places: Places) -> str:
    """A hash of everything that a plan depends on."""
    digest = hashlib.sha256(f"{delayed.base.horizon} {table.early} {table.actions}".encode())
    digest.update(repr(list(table.states)).encode())
    for part in (table.start, table.to, table.p, table.pay, table.last, *places.line):
        digest.update(part.tobytes())
    return digest.hexdigest()
