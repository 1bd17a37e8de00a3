"""Exact planning, and the optimistic plan from given counts: one sweep each."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from pkd.engine import Compiled, compile
from pkd.engine.belief import CONSTANTS, N_ARRAYS, NOTHING, Asking, Belief, find_belief_fault
from pkd.engine.compiled import Counts, Truth
from pkd.engine.families import FAMILIES
from pkd.expect import failure, key, require, whole
from pkd.expect import seed as check_seed
from pkd.explore.limits import refuse_seconds
from pkd.explore.reach import reach
from pkd.files.atomic import read_npz, write_npz
from pkd.files.frames import make_frame
from pkd.files.policies import Row, list_policy, write_policy_csv, write_policy_json
from pkd.model import Law, ModelError, PartiallyKnownMDP
from pkd.optimism import (
    ALL_ROUNDS,
    CERTIFIED,
    EXACT,
    HOEFFDING,
    MAX,
    MVP,
    NUMPY,
    SUM,
    PythonRule,
)
from pkd.problem import Problem, read, unpack
from pkd.progress import watch, working
from pkd.rules import Rule, as_rule, from_config
from pkd.show.tables import format_table

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from pkd.episode import Episode
    from pkd.planning.evaluation import Evaluation
    from pkd.planning.stationary import Stationary

HEADER = ("step", "x", "y", "action", "value")
SHOWN_ROWS = 30  # lines of a printed table
FORMS = EXACT, SUM, MAX, HOEFFDING, CERTIFIED, NUMPY
LAYER_SECONDS = 2e-7  # measured: of one step of one sweep, whatever is in it
STATE_SECONDS, OUTCOME_SECONDS = 20e-9, 1e-9  # of a sweep, per step


class Plan:
    """A policy for every step, with the values it was chosen by. Steps h count from 1.

    >>> import pkd
    >>> from pkd.tables.coin import coin
    >>> best = pkd.plan(coin)
    >>> best, list(best.states(1))
    (<Plan for TabularModel: value 1.25, horizon 3>, [(0, None)])
    >>> print(best.table())
    step  x  y  action  value
       1  0          0   1.25
    """

    def __init__(
        self,
        compiled: Compiled,
        belief: Belief | None,
        choices: np.ndarray,
        value: float,
        truth: Truth | None = None,
    ) -> None:
        self.compiled = compiled
        self.value = value
        self.choices = choices  # the action of each state in each layer, in the order of the engine
        self._belief = belief  # None: the plan was made from its law
        self.truth = truth  # the law that it was made for, where there is one

    @property
    def belief(self) -> Belief:
        """What the plan was made from."""
        if self._belief is not None:
            return self._belief
        assert self.truth is not None
        return self.truth.belief

    def __repr__(self) -> str:
        name = type(self.compiled.model).__name__.lstrip("_")
        return f"<Plan for {name}: value {self.value:.6g}, horizon {self.compiled.horizon}>"

    def _repr_html_(self) -> str:
        """Value, policy of the first step and picture, for a notebook."""
        from pkd.show.notebook import show_plan

        return show_plan(self)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draws the best action of each state at each step."""
        from pkd.show.policy_plots import plot_policy

        return plot_policy(self, ax)

    def action(self, h: int, x: Any, y: Any) -> Any:
        """The action at step h in the state (x, y)."""
        return self.compiled.action_at(self.choices, h, x, y)

    __call__ = action

    def values(self, h: int, x: Any, y: Any) -> dict[Any, float]:
        """Q_h of every action in (x, y); {None: V_h} in a CHANCE or END state."""
        try:
            if self._belief is None and self.truth is not None:
                return self.compiled.find_values_under(self.truth, h, x, y)
            return self.compiled.values_at(self.belief, h, x, y)
        except TypeError:
            require(key("x", x), key("y", y))
            raise

    def states(self, h: int) -> Iterator[tuple[Any, Any]]:
        """The decision states that can occur at step h."""
        return self.compiled.decision_states(h)

    def table(self, step: int = 1, most: int = SHOWN_ROWS) -> str:
        """The policy of one step as text, with the labels of the model; at most `most` lines."""
        require(whole("most", most, 0, sys.maxsize - 1))
        found = list(islice(self.rows(step), most + 1))
        text = format_table(HEADER, map(self.label_row, found[:most]))
        return f"{text}\n..." if len(found) > most else text

    def to_csv(self, path: str | Path, *, values: bool = False, every_state: bool = False) -> int:
        """Writes the policy, whole or not at all; how many lines that makes.

        Only states that the policy reaches have lines, unless `every_state`. Steps with one action
        are one line. values: a line for each step, with the value of each action, `Q(action)`.
        `PolicyTable.read` reads it.
        """
        return write_policy_csv(path, self.list_rows(values, every_state), self.label)

    def to_json(self, path: str | Path, *, values: bool = False, every_state: bool = False) -> int:
        """The same with the types of all values; how many rows.

        `PolicyTable.read` reads it; so do ten lines of any language.
        """
        return write_policy_json(path, self.list_rows(values, every_state), self.describe())

    def to_frame(self, *, values: bool = False, every_state: bool = False) -> pd.DataFrame:
        """The lines of `to_csv` as a pandas frame, with the values of states as they are.

        >>> import pkd
        >>> list(pkd.plan("gambler").to_frame())
        ['step', 'until', 'x', 'y', 'action']
        """
        return make_frame(list_policy(self.list_rows(values, every_state)))

    def describe(self) -> dict[str, Any]:
        """What a JSON file says before its rows."""
        return {
            "model": type(self.compiled.model).__name__.lstrip("_"),
            "horizon": self.compiled.horizon,
            "value": self.value,
            "value_is": self.meaning,
            "parts": ["x", "y"],
        }

    @property
    def meaning(self) -> str:
        """What `value` is: the optimum under the law that was given, or an upper value."""
        if self.truth is not None:
            return "the optimum under the law that was given"
        return "the value that the plan was made by, from counts or a file"

    def rows(self, step: int | None = None) -> Iterator[Row]:
        """The policy of one step or of all, with the value of every action."""
        horizon = self.compiled.horizon
        if step is None:
            self._refuse_values()
        steps = range(1, horizon + 1) if step is None else (step,)
        for h in watch(steps, "reading the policy"):
            for x, y in self.states(h):
                yield Row(h, {"x": x, "y": y}, self.action(h, x, y), self.values(h, x, y))

    def _refuse_values(self) -> None:
        """Refuses the values of all steps where they take too long."""
        horizon = self.compiled.horizon
        seconds = LAYER_SECONDS * horizon**2 + horizon * estimate_seconds(self.compiled) / 2
        refuse_seconds(seconds, f"a table with the values of {horizon:,} steps")

    def list_rows(self, values: bool = False, every_state: bool = False) -> Iterator[Row]:
        """The rows of a file: of the states that the policy reaches, without values."""
        if values:
            self._refuse_values()
        if every_state:
            steps = range(1, self.compiled.horizon + 1)
            layers: Iterable[tuple[int, Iterable[Any]]] = ((h, self.states(h)) for h in steps)
        else:
            layers = reach(self.compiled.model, self.action)
        for h, states in watch(layers, "reading the policy, step by step"):
            for x, y in states:
                q = self.values(h, x, y) if values else {}
                yield Row(h, {"x": x, "y": y}, self.action(h, x, y), q)

    def label(self, part: str, value: Any) -> str:
        """The model's words for an x, a y or an action; any other part as text."""
        model = self.compiled.model
        labels = {"x": model.x_label, "y": model.y_label, "action": model.action_label}
        return labels.get(part, str)(value)

    def label_row(self, row: Row, digits: int = 10) -> list[str]:
        """The cells of `HEADER`: one row in the words of the model."""
        parts = {**row.state, "action": row.action}
        words = [self.label(part, value) for part, value in parts.items()]
        return [str(row.step), *words, f"{row.values[row.action]:.{digits}g}"]

    def stationary(self, season: int | None = None) -> Stationary:
        """The policy of the beginning of this plan, for a controller that never stops.

        It depends on (x, y) alone. `.loss` is what it loses over the horizon, exactly; `.gain`,
        `.endless_value` and `.endless_loss` are bounds for an endless run, which narrow as the
        horizon grows. season: steps between the two values that the bounds compare.
        """
        from pkd.planning.stationary import make_stationary

        return make_stationary(self, season)

    def simulate(self, episodes: int, seed: int = 0, law: Law | None = None) -> list[Episode]:
        """Episodes of this policy under the law that it was made for, or under another one."""
        from pkd.planning.simulation import Simulator

        found = self._find_law("simulate", law)
        return Simulator(self.compiled, found, seed=seed).play(self, episodes)

    def evaluate(self, law: Law | None = None) -> Evaluation:
        """The return of this policy under the law that it was made for, or under another one."""
        from pkd.planning.evaluation import evaluate

        return evaluate(self.compiled, self._find_law("evaluate", law), self)

    def _find_law(self, call: str, law: Law | None) -> Law:
        if law is not None:
            return law
        if self.truth is None:
            raise ModelError(
                f"this plan was made from counts or read from a file and knows no law; "
                f"give {call}(law=...)"
            )
        return self.truth.law

    def save(self, path: str | Path) -> None:
        """Writes the plan to an .npz file of plain arrays, for `Plan.load`."""
        arrays: dict[str, np.ndarray] = {
            name: getattr(self.belief, name) for name in Belief._fields[:N_ARRAYS]
        }
        numbers = [getattr(self.belief, name) for name in CONSTANTS]
        constants = np.array([*numbers, self.value], float)
        arrays |= {"choices": self.choices, "constants": constants}
        meta: dict[str, object] = {"kind": "Plan", "fingerprint": self.compiled.fingerprint}
        if (asking := self.belief.asking) is not None:
            arrays["told"] = self.belief.told
            meta["rule"] = {"optimism": asking.rule.to_config(), "episode": asking.k}
        write_npz(path, arrays, meta)

    @classmethod
    def load(cls, path: str | Path, model: Model) -> Plan:
        """The plan that `save` wrote for this model; a file of another model is refused.

        A problem in place of the model brings the law that `simulate` and `evaluate` use.
        """
        arrays, meta = read_npz(path)
        found, ask = read(model)
        compiled = compile(found)
        if meta.get("kind") != "Plan":
            raise ModelError(f"{path} is not a plan that pkd saved")
        if meta.get("fingerprint") != compiled.fingerprint:
            raise ModelError(
                f"{path} is the plan of another model, or of an edited one; "
                "give the model it was made for"
            )
        plan = cls._restore(compiled, arrays, path, meta.get("rule"))
        plan.truth = None if ask is None else compiled.truth(ask())
        return plan

    @classmethod
    def _restore(
        cls, compiled: Compiled, arrays: Mapping[str, np.ndarray], path: str | Path, rule: Any
    ) -> Plan:
        template = compiled.optimistic(MVP().bonus(), 1, 0.5)
        try:
            form, *constants, rounds, value = arrays["constants"].tolist()
            for name in Belief._fields[:N_ARRAYS]:
                part, expected = arrays[name], getattr(template, name)
                shape = part.shape if name == "budget" else expected.shape  # it is the rule's own
                if part.shape != shape or part.dtype != expected.dtype:
                    raise ModelError(
                        f"{path} does not fit the model: expected {name} of shape "
                        f"{expected.shape}, found {part.shape}"
                    )
                if fault := find_belief_fault(name, part):
                    raise ModelError(f"{path} is not a plan that pkd saved: {fault}")
            if not np.isfinite(value):
                raise ModelError(f"{path} is not a plan that pkd saved: its value is {value}")
            compiled.check_policy(arrays["choices"])
            parts = [arrays[name] for name in Belief._fields[:N_ARRAYS]]
            if form not in FORMS or rounds not in range(1, ALL_ROUNDS + 1):
                raise ModelError(
                    f"{path} is not a plan that pkd saved: no rule has the form {form:g} with "
                    f"{rounds:g} rounds"
                )
            numbers = [int(form), *constants, int(rounds), NOTHING, None, template.exogenous]
            belief = Belief._make([*parts, *numbers])
            if form == NUMPY:
                made: PythonRule | None = attrs.evolve(compiled.unrefuted, sign=belief.sign)
                size = (compiled.unrefuted.size,)
                if rule["optimism"]["rule"] != FAMILIES:
                    made = from_config(dict(rule["optimism"])).bonus().rule
                    size = compiled.optimistic(made.bonus(), 1, 0.5).told.shape if made else size
                if made is None:
                    raise ModelError(f"{path} is not a plan that pkd saved: its rule has no values")
                asking = Asking(made, int(rule["episode"]))
                if arrays["told"].shape != size:
                    raise ModelError(f"{path} does not fit the model: its rule was told more")
                belief = belief._replace(told=arrays["told"], asking=asking)
            return cls(compiled, belief, arrays["choices"], value)
        except (KeyError, TypeError, ValueError) as problem:
            if isinstance(problem, ModelError):
                raise
            raise ModelError(f"{path} is not a plan that pkd saved: {problem!r}") from None


# (h, x, y) -> an action, or {action: probability}. A plan is one, and so is a policy from a file.
Policy = Callable[[int, Any, Any], Any]
# What every function accepts for a model: a model, or a problem as an object, a pair or a name.
Model = PartiallyKnownMDP | Compiled | Problem | str | tuple[PartiallyKnownMDP, Law]


def resolve(given: Model, law: Law | None) -> tuple[Compiled, Law]:
    """The compiled model and the law behind what a user gave: a model and a law, or a problem."""
    model, law = unpack(given, law)
    compiled = compile(model)
    return compiled, compiled.name_law(law)


def plan(model: Model, law: Law | None = None, *, max_states: int | None = None) -> Plan:
    """The optimal plan under a given law.

    model: a model, or a problem (an object, a pair, a name), which brings its own law. max_states:
    states that may be held apart; see `compile`.

    V_h(s) = max_a [ r(s, a) + sum_y' P_Y(y'|s, a) sum_x' P_eff(z)(x') V_{h+1}(x', y') ]

    >>> import pkd
    >>> from pkd.tables.coin import coin
    >>> best = pkd.plan(coin.model(), coin.law())
    >>> best.value, best.action(1, 0, None), best.values(1, 0, None)
    (1.25, 0, {0: 1.25, 1: 0.5})
    """
    found, law = unpack(model, law)
    compiled = compile(found, max_states=max_states)
    truth = compiled.truth(law)
    return solve(compiled, truth)


def optimistic_plan(
    model: Model,
    counts: Counts,
    *,
    episodes: int,
    delta: float = 0.05,
    optimism: Rule = MVP(),
    seed: int = 0,
) -> Plan:
    """The plan that the optimistic algorithm makes from given counts {z: {x': n}}.

    model: a model or a problem, whose law is not used. episodes: of the whole run; the logarithms
    depend on it. optimism: a rule, or its words such as "practical" or "mvp:c1=1,c2=1". Counts that
    so many episodes cannot give stand for more of them where the rule is `Certified`; other rules
    have no guarantee then. `.value` is the upper value, so `Certified` is optimistic about every
    feature here, whatever its `explore` says. delta: the probability with which the value may not
    be an upper one. `seed` matters only to `PosteriorSampling`.

    >>> import pkd
    >>> from pkd.tables.coin import coin
    >>> # Nothing was seen: it hopes to be in state 1 for good.
    >>> pkd.optimistic_plan(coin.model(), {}, episodes=100).value
    2.0
    >>> seen, rule = {(0, 0): {0: 1, 1: 3}}, pkd.Greedy()
    >>> pkd.optimistic_plan(coin.model(), seen, episodes=100, optimism=rule).value
    1.3125
    """
    check_schedule(episodes, delta)
    bonus = as_rule(optimism).bonus()
    compiled = compile(model)
    tally = compiled.tally(counts)
    if bonus.anytime:
        episodes = max(episodes, math.ceil(tally.most_seen() / compiled.horizon))
    belief = compiled.optimistic(bonus, episodes, delta)
    limits = compiled.reward_bonus(bonus, episodes, delta)
    compiled.estimate(belief, tally, bonus, limits, seed_words(seed))
    return make_plan(compiled, belief)


def make_plan(compiled: Compiled, belief: Belief) -> Plan:
    """The plan of one backward sweep under a belief."""
    choices = compiled.policy()
    with working("planning"):
        value, _ = compiled.sweep(belief, choices, follow=False)
    return Plan(compiled, belief, choices, value)


def solve(compiled: Compiled, truth: Truth) -> Plan:
    """The optimal plan under a law that was read."""
    choices = compiled.policy()
    with working("planning"):
        value, _ = compiled.solve(truth, choices)
    return Plan(compiled, None, choices, value, truth)


def estimate_seconds(compiled: Compiled) -> float:
    """About how long one sweep takes, within a factor of three on an ordinary machine.

    Measured: 20 ns for each state and step, and 1 ns for each outcome of each explicit move.

    >>> import pkd
    >>> estimate_seconds(pkd.compile(pkd.TabularMDP([[[1.0]]], [[2.0]], horizon=3))) < 1e-5
    True
    """
    graph = compiled.graph
    sizes = np.array([len(nodes) for nodes in graph.landings])
    outcomes = sum(int(sizes[np.array(cells.landing, np.int64)].sum()) for cells in graph.cells)
    return compiled.horizon * (STATE_SECONDS * compiled.n_states + OUTCOME_SECONDS * outcomes)


def seed_words(seed: int, stream: int = 0) -> np.ndarray:
    """The state of a kernel's random numbers, (4,) words."""
    require(check_seed("seed", seed))
    return np.random.SeedSequence(entropy=int(seed), spawn_key=(stream,)).generate_state(
        4, np.uint64
    )


def check_schedule(episodes: Any, delta: Any) -> None:
    """ModelError that names everything wrong with episodes and delta."""
    require(whole("episodes", episodes, least=1), failure("delta", delta))
