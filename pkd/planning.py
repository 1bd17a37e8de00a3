"""Exact planning, and the optimistic plan from given counts: one sweep each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from pkd.engine import Compiled, compile
from pkd.engine.belief import CONSTANTS, N_ARRAYS, NO_DRAWS, Belief
from pkd.engine.compiled import Act, Counts, Truth
from pkd.model import Law, ModelError, PartiallyKnownMDP
from pkd.optimism import ALL_ROUNDS, DRAWS, MVP, PYTHON, Optimism
from pkd.problem import Problem, read, unpack
from pkd.progress import watch, working
from pkd.results.files import read_npz, write_npz
from pkd.results.policies import Row, write_policy_csv, write_policy_json

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from pkd.endless import Stationary
    from pkd.evaluation import Evaluation
    from pkd.model import Episode

__all__ = ["Plan", "Policy", "optimistic_plan", "plan", "resolve"]

HEADER = ("step", "x", "y", "action", "value")
SHOWN_RULES = 30  # lines of a printed table
STATE_SECONDS, OUTCOME_SECONDS = 20e-9, 1e-9  # of a sweep, per step


class Rule(NamedTuple):
    """One line of a policy."""

    step: int
    x: Any
    y: Any
    action: Any
    value: float  # Q of the action


class Plan:
    """A policy for every step, with the values it was chosen by. Steps h count from 1.

    >>> import pkd
    >>> tosses = [[[0.5, 0.5], [1.0, 0.0]], [[0.5, 0.5], [0.0, 1.0]]]
    >>> coin = pkd.TabularMDP(tosses, [[0.0, 0.0], [1.0, 1.0]], horizon=3)
    >>> best = pkd.plan(coin)
    >>> best, list(best.states(1))
    (<Plan for _TabularModel: value 1.25, horizon 3>, [(0, None)])
    >>> print(best.table())
    step  x  y  action  value
    1     0     0       1.25
    """

    def __init__(
        self,
        compiled: Compiled,
        belief: Belief,
        choices: np.ndarray,
        value: float,
        truth: Truth | None = None,
    ) -> None:
        self.compiled = compiled
        self.value = value
        self.choices = choices  # the action of each state in each layer, in the order of the engine
        self.belief = belief  # what the plan was made from
        self.truth = truth  # the law that it was made for, where there is one

    def __repr__(self) -> str:
        name = type(self.compiled.model).__name__
        return f"<Plan for {name}: value {self.value:.6g}, horizon {self.compiled.horizon}>"

    def _repr_html_(self) -> str:
        """Value, policy of the first step and picture, for a notebook."""
        from pkd.results.notebook import show_plan

        return show_plan(self)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draws the best action of each state at each step."""
        from pkd.results.policy_plots import plot_policy

        return plot_policy(self, ax)

    def action(self, h: int, x: Any, y: Any) -> Any:
        """The action at step h in the state (x, y)."""
        return self.compiled.action_at(self.choices, h, x, y)

    def values(self, h: int, x: Any, y: Any) -> dict[Any, float]:
        """Q_h of every action in (x, y); {None: V_h} in a CHANCE or END state."""
        return self.compiled.values_at(self.belief, h, x, y)

    def states(self, h: int) -> Iterator[tuple[Any, Any]]:
        """The decision states that can occur at step h."""
        return self.compiled.decision_states(h)

    def rules(self, step: int | None = None) -> Iterator[Rule]:
        """The policy line by line, of one step or of all."""
        for h in range(1, self.compiled.horizon + 1) if step is None else (step,):
            for x, y in self.states(h):
                action = self.action(h, x, y)
                yield Rule(h, x, y, action, self.values(h, x, y)[action])

    def table(self, step: int = 1, most: int = SHOWN_RULES) -> str:
        """The policy of one step as text, with the labels of the model; at most so many lines."""
        found = list(islice(self.rules(step), most + 1))
        lines = [HEADER, *(self._labels(rule) for rule in found[:most])]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        rows = [
            "  ".join(c.ljust(w) for c, w in zip(line, widths, strict=True)).rstrip()
            for line in lines
        ]
        return "\n".join(rows + (["..."] if len(found) > most else []))

    def to_csv(self, path: str | Path) -> None:
        """Writes the policy of all steps, whole or not at all: one line per step and state.

        Each part of the state has a column, and each action has one for its value, `Q(action)`.
        `PolicyTable.read` reads it.
        """
        write_policy_csv(path, self.rows(), self.label)

    def to_json(self, path: str | Path) -> None:
        """Writes the policy of all steps with the types of all values, whole or not at all.

        `PolicyTable.read` reads it; so do ten lines of any language.
        """
        write_policy_json(path, self.rows(), self.describe())

    def describe(self) -> dict[str, Any]:
        """What a JSON file says before its rules."""
        return {
            "model": type(self.compiled.model).__name__,
            "horizon": self.compiled.horizon,
            "season": None,
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
        steps = range(1, self.compiled.horizon + 1) if step is None else (step,)
        for h in watch(steps, "reading the policy"):
            for x, y in self.states(h):
                yield Row(h, {"x": x, "y": y}, self.action(h, x, y), self.values(h, x, y))

    def label(self, part: str, value: Any) -> str:
        """The model's words for an x, a y or an action."""
        model = self.compiled.model
        labels = {"x": model.x_label, "y": model.y_label, "action": model.action_label}
        return labels[part](value)

    def _labels(self, rule: Rule) -> tuple[str, ...]:
        model = self.compiled.model
        state = model.x_label(rule.x), model.y_label(rule.y)
        return str(rule.step), *state, model.action_label(rule.action), f"{rule.value:.10g}"

    def stationary(self, season: int | None = None) -> Stationary:
        """The policy of the beginning of this plan, for a controller that never stops.

        It depends on (x, y) alone. `.loss` is what it loses over the horizon, exactly; `.gain`,
        `.endless_value` and `.endless_loss` are bounds for an endless run, which are the narrower
        the longer the horizon is. season: steps between the two values that the bounds compare.
        """
        from pkd.endless import make_stationary

        return make_stationary(self, season)

    def simulate(self, episodes: int, seed: int = 0, law: Law | None = None) -> list[Episode]:
        """Episodes of this policy under the law that it was made for, or under another one."""
        from pkd.simulation import Simulator

        found = self._find_law("simulate", law)
        return Simulator(self.compiled, found, seed=seed).play(self, episodes)

    def evaluate(self, law: Law | None = None) -> Evaluation:
        """The return of this policy under the law that it was made for, or under another one."""
        from pkd.evaluation import evaluate

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
        if self.belief.draws.size:
            arrays["draws"] = self.belief.draws
        write_npz(path, arrays, {"kind": "Plan", "fingerprint": self.compiled.fingerprint})

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
        plan = cls._restore(compiled, arrays, path)
        plan.truth = None if ask is None else compiled.truth(ask())
        return plan

    @classmethod
    def _restore(
        cls, compiled: Compiled, arrays: Mapping[str, np.ndarray], path: str | Path
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
            compiled.check_policy(arrays["choices"])
            parts = [arrays[name] for name in Belief._fields[:N_ARRAYS]]
            draws = arrays.get("draws", NO_DRAWS)
            if draws.size and draws.shape[1:] != (
                int(compiled.row_ptr[len(template.n)]) + len(template.n),
            ):
                raise ModelError(f"{path} does not fit the model: its draws have other outcomes")
            most = len(draws) if form == DRAWS else ALL_ROUNDS
            if form not in range(PYTHON + 1) or rounds not in range(1, most + 1):
                raise ModelError(
                    f"{path} is not a plan that pkd saved: no rule has the form {form:g} with "
                    f"{rounds:g} rounds"
                )
            belief = Belief._make([*parts, int(form), *constants, int(rounds), draws, None])
            return cls(compiled, belief, arrays["choices"], value)
        except (KeyError, TypeError, ValueError) as problem:
            if isinstance(problem, ModelError):
                raise
            raise ModelError(f"{path} is not a plan that pkd saved: {problem!r}") from None


# A function takes (h, x, y) and gives an action, or {action: probability}.
Policy = Plan | Callable[[int, Any, Any], Any]
# What every function accepts for a model: a model, or a problem as an object, a pair or a name.
Model = PartiallyKnownMDP | Compiled | Problem | str | tuple[PartiallyKnownMDP, Law]


def resolve(given: Model, law: Law | None) -> tuple[Compiled, Law]:
    """The compiled model and the law behind what a user gave: a model and a law, or a problem."""
    model, law = unpack(given, law)
    return compile(model), law


def plan(model: Model, law: Law | None = None, *, max_states: int | None = None) -> Plan:
    """The optimal plan under a given law. A problem (an object, a pair, a name) brings its own law.

    max_states: states that may be held apart; see `compile`.

    V_h(s) = max_a [ r(s, a) + sum_y' P_Y(y'|s, a) sum_x' P_eff(z)(x') V_{h+1}(x', y') ]

    >>> import pkd
    >>> tosses = [[[0.5, 0.5], [1.0, 0.0]], [[0.5, 0.5], [0.0, 1.0]]]
    >>> coin = pkd.TabularMDP(tosses, [[0.0, 0.0], [1.0, 1.0]], horizon=3)
    >>> best = pkd.plan(coin.model(), coin.law())
    >>> best.value, best.action(1, 0, None), best.values(1, 0, None)
    (1.25, 0, {0: 1.25, 1: 0.5})
    """
    found, law = unpack(model, law)
    compiled = compile(found, max_states=max_states)
    truth = compiled.truth(law)
    return make_plan(compiled, truth.belief, truth)


def optimistic_plan(
    model: Model,
    counts: Counts,
    *,
    episodes: int,
    delta: float = 0.05,
    optimism: Optimism = MVP(),
    seed: int = 0,
) -> Plan:
    """The plan that the optimistic algorithm makes from given counts {z: {x': n}}.

    episodes: of the whole run; the logarithms depend on it. `.value` is the upper value. `seed`
    matters only to `PosteriorSampling`.

    >>> import pkd
    >>> tosses = [[[0.5, 0.5], [1.0, 0.0]], [[0.5, 0.5], [0.0, 1.0]]]
    >>> coin = pkd.TabularMDP(tosses, [[0.0, 0.0], [1.0, 1.0]], horizon=3)
    >>> # Nothing was seen: it hopes to be in state 1 for good.
    >>> pkd.optimistic_plan(coin.model(), {}, episodes=100).value
    2.0
    >>> seen, rule = {(0, 0): {0: 1, 1: 3}}, pkd.Greedy()
    >>> pkd.optimistic_plan(coin.model(), seen, episodes=100, optimism=rule).value
    1.3125
    """
    check_schedule(episodes, delta)
    bonus = optimism.bonus()
    compiled = compile(model).suited_to(bonus)
    belief = compiled.optimistic(bonus, episodes, delta)
    limits = compiled.reward_bonus(bonus, episodes, delta)
    compiled.estimate(belief, compiled.tally(counts), bonus, limits, seed_words(seed))
    return make_plan(compiled, belief)


def make_plan(compiled: Compiled, belief: Belief, truth: Truth | None = None) -> Plan:
    """The plan of one backward sweep under a belief."""
    choices = compiled.policy()
    with working("planning"):
        value, _ = compiled.sweep(belief, choices, follow=False)
    return Plan(compiled, belief, choices, value, truth)


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


def to_function(policy: Policy) -> Act:
    """Any policy as a function (h, x, y) -> action."""
    return policy.action if isinstance(policy, Plan) else policy


def seed_words(seed: int, stream: int = 0) -> np.ndarray:
    """The state of a kernel's random numbers, (4,) words."""
    return np.random.SeedSequence(entropy=int(seed), spawn_key=(stream,)).generate_state(
        4, np.uint64
    )


def check_schedule(episodes: Any, delta: Any) -> None:
    """ModelError that names everything wrong with episodes and delta."""
    findings = []
    if isinstance(episodes, bool) or not isinstance(episodes, (int, np.integer)) or episodes < 1:
        findings.append(f"episodes is {episodes!r}; expected a whole number >= 1")
    if isinstance(delta, bool) or not isinstance(delta, (int, float)) or not 0 < delta < 1:
        findings.append(f"delta is {delta!r}; expected a number between 0 and 1")
    if findings:
        raise ModelError(findings)
