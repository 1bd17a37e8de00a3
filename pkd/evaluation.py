"""The return of a policy, exactly: its mean, its variance and its law.

The mean of a plan or of a function is one sweep of the engine. Variance and law need every state
apart, so a model that was compiled as stripes is compiled once more for them, explicitly. With
M(s) and U(s) the mean and the variance of the return to go,

    M(s) = E[r + M(s')],    U(s) = E[Var(r) + U(s') + (r + M(s') - M(s))^2].

Every term of U is a square or a variance, so nothing cancels. The law is found forwards: the joint
law of the state and of what has been paid so far.

A worked example: a fair coin is tossed twice and pays 1 for each head. After the first toss M is .5
and U is .25 in both states; at the start M = 1, and U = .25 + ((1.5 - 1)^2 + (.5 - 1)^2) / 2 = .5.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import attrs
import numpy as np

from pkd.engine.compiled import Act, Compiled, Truth
from pkd.engine.nodes.kernels import CHANCES, LAST, STEP
from pkd.engine.play import find_policy_fault, read_weights
from pkd.engine.segments import lengths_to_ptr, spread
from pkd.graph import DECIDE
from pkd.model import Law, ModelError
from pkd.planning import Model, Plan, Policy, resolve, to_function
from pkd.progress import working

if TYPE_CHECKING:
    from pkd.engine.nodes.engine import NodeEngine
    from pkd.engine.nodes.program import Flat

__all__ = ["Choices", "Evaluation", "evaluate", "tabulate_weights"]

Array = np.ndarray

MOST_VALUES = 1_000_000  # values that the law of a return may have
LIVE_PER_VALUE = 4  # pairs (state, paid so far) that may be held for each of them
CHUNK = 1 << 21  # moves that are followed at once
NOISE = 1e-12  # sums that differ by less, relative to the largest one, differ by rounding
SHOWN_FINDINGS = 10


def evaluate(
    model: Model, law: Law | Policy | None = None, policy: Policy | None = None
) -> Evaluation:
    """The exact expected return: evaluate(model, law, policy) or evaluate(problem, policy).

    A policy is a plan, or a function (h, x, y) that gives an action, or {action: probability} where
    it chooses at random. The answer is a number; `.variance` and `.returns()` tell more.

    >>> import pkd
    >>> toss, stay = [0.5, 0.5], [[1.0, 0.0], [0.0, 1.0]]
    >>> rows, pay = [[toss, stay[0]], [toss, stay[1]]], [[0.0, 0.0], [1.0, 1.0]]
    >>> coin = pkd.TabularMDP(rows, pay, horizon=3)
    >>> heads = pkd.evaluate(coin, lambda h, x, y: 0)  # a fair coin at every step: 0 + 1/2 + 1/2
    >>> heads, heads.variance, heads.returns()
    (1.0, 0.5, {0.0: 0.25, 1.0: 0.5, 2.0: 0.25})
    >>> pkd.evaluate(coin, lambda h, x, y: {0: 0.5, 1: 0.5})  # one half of the coins is not tossed
    0.625
    """
    if policy is None:
        law, policy = None, law
    if not isinstance(policy, Plan) and not callable(policy):
        raise ModelError(
            f"policy is {policy!r}; expected a Plan, or a function (h, x, y) -> action"
        )
    compiled, found = resolve(model, law)  # type: ignore[arg-type]
    if isinstance(policy, Plan) and policy.compiled is compiled:
        with working("evaluating"):
            value, _ = compiled.sweep(compiled.truth(found).belief, policy.choices, follow=True)
        return Evaluation(value, compiled, found, policy.action, policy.choices)
    act, plain = to_function(policy), compiled.plain
    try:
        with working("asking the policy"):
            choices = plain.tabulate(_refuse_weights(act))
    except _RandomisedError:
        return Evaluation(None, compiled, found, act)
    with working("evaluating"):
        value, _ = plain.sweep(plain.truth(found).belief, choices, follow=True)
    return Evaluation(value, compiled, found, act, choices if plain is compiled else None)


class Evaluation(float):
    """The expected return of a policy; a number that also knows the law of the return.

    >>> import pkd
    >>> toss = pkd.TabularMDP([[[0.5, 0.5]], [[0.5, 0.5]]], [[0.0], [1.0]], 10, start=[0.5, 0.5])
    >>> heads = pkd.evaluate(toss, lambda h, x, y: 0)
    >>> heads, heads.variance, round(heads.returns()[5.0], 10)  # binomial: 252 of 1024
    (5.0, 2.5, 0.24609375)
    """

    _return: _Return

    def __new__(
        cls,
        value: float | None,
        compiled: Compiled,
        law: Law,
        act: Act,
        choices: Array | None = None,
    ) -> Evaluation:
        """value: where it is known already. choices: the policy of `compiled` itself."""
        law_of_return = _Return(compiled, law, act, choices)
        self = super().__new__(cls, law_of_return.moments[0] if value is None else value)
        self._return = law_of_return
        return self

    def __reduce__(self) -> tuple[type[float], tuple[float]]:
        return float, (float(self),)  # a file or another process gets the number

    @property
    def variance(self) -> float:
        """The variance of the return."""
        return self._return.moments[1]

    @property
    def deviation(self) -> float:
        """The standard deviation of the return."""
        return math.sqrt(self.variance)

    def returns(
        self, *, tolerance: float = 0.0, max_values: int = MOST_VALUES
    ) -> dict[float, float]:
        """The law of the return, {value: probability}, values ascending.

        Values that differ only by rounding are one value. tolerance: values may also be moved by at
        most so much, so that close ones become one; the mean stays as it is. A law of more than
        `max_values` values is refused with a ModelError.
        """
        if not 0 <= tolerance < math.inf:
            raise ModelError(f"tolerance is {tolerance!r}; expected a number >= 0")
        return self._return.find_law(tolerance, max_values)


@attrs.frozen(eq=False)
class Choices:
    """The probabilities of all actions, layer by layer. Actions are counted over all decisions."""

    ptr: Array  # (decisions + 1,)
    layers: list[tuple[Array, Array]]  # (which action, its probability) where it is positive

    def weigh(self, t: int) -> Array:
        """The probability of each action in layer t, (actions of all decisions,)."""
        weights = np.zeros(int(self.ptr[-1]))
        places, values = self.layers[t]
        weights[places] = values
        return weights

    @classmethod
    def from_plan(cls, engine: NodeEngine, choices: Array) -> Choices:
        """A policy of the engine: one action for each decision."""
        ptr = lengths_to_ptr(engine.n_actions)
        sure = np.ones(len(ptr) - 1)
        return cls(ptr, [(ptr[:-1] + layer, sure) for layer in choices])


def tabulate_weights(engine: NodeEngine, act: Act) -> Choices:
    """A function (h, x, y) -> action or {action: probability} as probabilities of actions."""
    graph, ptr, findings = engine.graph, lengths_to_ptr(engine.n_actions), list[str]()
    side, layers = graph.layers, []
    for h in range(1, engine.horizon + 1):
        places, weights = list[int](), list[float]()
        for node in graph.members[h - 1]:
            if side.kind[node] == DECIDE:
                x, y = graph.state(side, node)
                first, actions = int(ptr[engine.flat.choice[node]]), list(side.choices[node])
                answer = act(h, x, y)
                wrong = find_policy_fault(answer, actions)
                if wrong is not None:
                    findings.append(f"the policy {wrong} at step {h} in (x={x!r}, y={y!r})")
                    continue
                for action, p in read_weights(answer):
                    places.append(first + actions.index(action))
                    weights.append(p)
        if findings:
            raise ModelError(findings[:SHOWN_FINDINGS])
        layers.append((np.array(places, np.int64), np.array(weights, float)))
    return Choices(ptr, layers)


class _RandomisedError(Exception):
    """A policy chooses at random."""


def _refuse_weights(act: Act) -> Act:
    """The policy, with a _RandomisedError where it chooses at random."""

    def choose(h: int, x: Any, y: Any) -> Any:
        answer = act(h, x, y)
        if isinstance(answer, Mapping):
            raise _RandomisedError
        return answer

    return choose


@attrs.define(eq=False, slots=False)
class _Return:
    """The return of one policy; each part is computed when it is first asked for."""

    compiled: Compiled
    law: Law
    act: Act
    choices: Array | None  # as a policy of `compiled`, where there is one

    @cached_property
    def engine(self) -> NodeEngine:
        return self.compiled.explicit

    @cached_property
    def truth(self) -> Truth:
        return self.engine.truth(self.law)

    @cached_property
    def weights(self) -> Choices:
        if self.choices is not None and self.engine is self.compiled:
            return Choices.from_plan(self.engine, self.choices)
        return tabulate_weights(self.engine, self.act)

    @cached_property
    def moments(self) -> tuple[float, float]:
        return find_moments(self.engine, self.truth, self.weights)

    def find_law(self, tolerance: float, most: int) -> dict[float, float]:
        return _Forward(self.engine, self.truth, self.weights, tolerance, most).run()


# -- mean and variance, backwards ----------------------------------------------------------------


class _Level(NamedTuple):
    """The cells of one level and the pairs that are ready for it."""

    groups: tuple[int, int]
    cells: tuple[int, int]
    places: Array | None  # of the actions of its cells among all choices; None: CHANCE


def find_moments(engine: NodeEngine, truth: Truth, choices: Choices) -> tuple[float, float]:
    """The mean and the variance of the return, by one backward recursion over the layers."""
    g, horizon = engine.program, engine.horizon
    levels = [_level(engine, choices, number) for number in range(len(g.levels))]
    edges = _Edges(engine, truth.belief.p)
    paid = _reward_moments(truth)
    final, settled_final = engine.flat.final
    # Row 0 is the mean, row 1 the variance of the return to go.
    layers = [np.array([final, np.zeros_like(final)]) for _ in range(2)]
    settled = np.array([settled_final, np.zeros_like(settled_final)])
    for t in range(horizon, -1, -1):
        weights = choices.weigh(t) if t < horizon else np.zeros(0)
        for number, level in enumerate(levels):
            if (number >= g.settlement) != (t == horizon):
                continue
            if number == (STEP if t == horizon - 1 else LAST):
                continue
            target = settled if t == horizon else layers[t % 2]
            source = target
            if number < CHANCES:
                source = settled if number == LAST else layers[(t + 1) % 2]
            edges.fill(level, t, source)
            _back_up(engine, level, t, edges.e, source, paid, weights, target)
    start = layers[0][:, g.start_node]
    mean = float(g.start_p @ start[0])
    return mean, float(g.start_p @ (start[1] + (start[0] - mean) ** 2))


def _level(engine: NodeEngine, choices: Choices, number: int) -> _Level:
    g = engine.program
    first, last, group_first, group_last = g.levels[number].tolist()
    places = None
    if number < CHANCES:
        chosen = g.cell_choice[first:last]
        _, places = spread(choices.ptr[chosen], choices.ptr[chosen + 1])
    return _Level((group_first, group_last), (first, last), places)


def _reward_moments(truth: Truth) -> Array:
    """The mean and the variance of each unknown reward, and of a reward that is known: 0, 0."""
    moments = np.zeros((2, len(truth.belief.mean) + 1))
    for w, mean in enumerate(truth.belief.mean.tolist()):
        values, masses = _reward_law(truth, w)
        moments[:, w] = mean, masses @ (values - mean) ** 2
    return moments


def _reward_law(truth: Truth, w: int) -> tuple[Array, Array]:
    """The values of an unknown reward and their probabilities."""
    world = truth.world
    at = slice(int(world.reward_ptr[w]), int(world.reward_ptr[w + 1]))
    return world.reward_value[at], np.diff(world.reward_rows[at], prepend=0.0)


class _Edges:
    """From pairs (law row, landing) to nodes, for outcomes of positive probability."""

    def __init__(self, engine: NodeEngine, p: Array) -> None:
        g = self.g = engine.program
        first = g.group_ptr[g.pair_group]
        pair, place = spread(first, g.group_ptr[g.pair_group + 1])
        q = p[g.row_ptr[g.pair_row[pair]] + place - first[pair]]
        kept = q > 0
        self.q, self.pair, self.node = q[kept], pair[kept], g.group_node[place[kept]]
        self.ptr = lengths_to_ptr(np.bincount(self.pair, minlength=len(g.pair_row)))
        self.e = np.zeros((2, len(g.pair_row)))  # mean and variance of what follows each pair

    def fill(self, level: _Level, t: int, source: Array) -> None:
        """The mean and the variance of what follows the pairs of a level."""
        g, (first, last) = self.g, level.groups
        last = first + int(np.searchsorted(g.group_first[first:last], t, "right"))
        pairs = slice(int(g.group_pair[first]), int(g.group_pair[last]))
        if pairs.start == pairs.stop:
            return
        ptr = self.ptr[pairs]
        at = slice(int(ptr[0]), int(self.ptr[pairs.stop]))
        ptr = ptr - at.start
        q, (mean, variance) = self.q[at], source[:, self.node[at]]
        self.e[0, pairs] = np.add.reduceat(q * mean, ptr)
        mean -= self.e[0][self.pair[at]]
        self.e[1, pairs] = np.add.reduceat(q * (variance + mean * mean), ptr)


def _back_up(
    engine: NodeEngine, level: _Level, t: int, e: Array, source: Array, paid: Array, weights: Array,
    target: Array,
) -> None:  # fmt: skip
    """Fills the mean and the variance of the return to go of the cells of a level.

    A branch reads its pair in e, or the one node of source that a known law leads to.
    """
    g, (first, last) = engine.program, level.cells
    last = first + int(np.searchsorted(g.cell_first[first:last], t, "right"))
    if first == last:
        return
    action_ptr = g.action_ptr[first : last + 1]
    actions = slice(int(action_ptr[0]), int(action_ptr[-1]))
    branch_ptr = g.branch_ptr[actions.start : actions.stop + 1]
    branches = slice(int(branch_ptr[0]), int(branch_ptr[-1]))
    p, pair = g.branch_p[branches], g.branch_pair[branches]
    after, variance = np.empty((2, len(pair)))
    lone = pair < 0
    after[~lone], variance[~lone] = e[:, pair[~lone]]
    after[lone], variance[lone] = source[:, -1 - pair[lone]]
    after += g.branch_reward[branches]
    ptr = branch_ptr[:-1] - branches.start
    q = np.add.reduceat(p * after, ptr)
    after -= np.repeat(q, np.diff(branch_ptr))
    u = np.add.reduceat(p * (variance + after * after), ptr)
    q += paid[0, g.action_mean[actions]]
    u += paid[1, g.action_mean[actions]]
    if level.places is not None:
        chosen, ptr = weights[level.places[: len(q)]], action_ptr[:-1] - actions.start
        mean = np.add.reduceat(chosen * q, ptr)
        u += (q - np.repeat(mean, np.diff(action_ptr))) ** 2
        q, u = mean, np.add.reduceat(chosen * u, ptr)
    target[:, g.cell_node[first:last]] = q, u


# -- the law of the return, forwards -------------------------------------------------------------


class _Mass(NamedTuple):
    """Probability over pairs (node, paid so far)."""

    node: Array
    paid: Array
    p: Array

    def take(self, which: Any) -> _Mass:
        return _Mass(self.node[which], self.paid[which], self.p[which])


NOTHING = _Mass(np.zeros(0, np.int64), np.zeros(0), np.zeros(0))


@attrs.define(eq=False, slots=False)
class _Forward:
    """The joint law of the state and of what has been paid, from the start to the end."""

    engine: NodeEngine
    truth: Truth
    choices: Choices
    tolerance: float
    most: int

    def __attrs_post_init__(self) -> None:
        flat: Flat = self.engine.flat
        self.flat = flat
        self.step = self.tolerance / ((self.engine.horizon + 2) * (len(self.engine.program.levels)))
        reach = np.concatenate([[0], np.cumsum(np.diff(flat.landing_ptr)[flat.landing])])
        fan = reach[flat.branch_ptr[1:]] - reach[flat.branch_ptr[:-1]]  # moves of each action
        total = np.concatenate([[0], np.cumsum(fan)])
        self.fan = total[flat.action_ptr[1:]] - total[flat.action_ptr[:-1]]  # of each cell
        self.ended: list[_Mass] = []

    def run(self) -> dict[float, float]:
        program, horizon = self.engine.program, self.engine.horizon
        here = _Mass(program.start_node, np.zeros(len(program.start_node)), program.start_p)
        for t in range(horizon):
            here = self._pass(here, t, settled=False)
            cell_of = self.flat.cell_of[1 if t == horizon - 1 else 0]
            here = self._move(here, cell_of[here.node], t)
        self._pass(here, horizon, settled=True)
        law = self._merge(_join(self.ended))
        if len(law.p) > self.most:
            raise self._refusal(len(law.p))
        return dict(zip(law.paid.tolist(), law.p.tolist(), strict=True))

    def _pass(self, here: _Mass, t: int, *, settled: bool) -> _Mass:
        """Runs through the CHANCE states of a layer and returns the decisions."""
        flat, decisions = self.flat, [NOTHING]
        cell_of, final = flat.cell_of[2 if settled else 0], flat.final[int(settled)]
        kinds = flat.kind[int(settled)]
        while len(here.p):
            decides = np.zeros(len(here.p), bool) if settled else kinds[here.node] == DECIDE
            decisions.append(here.take(decides))
            cell = np.where(decides, -1, cell_of[here.node])
            stops = ~decides & (cell < 0)
            over = here.take(stops)
            # All ends are one node: only what was paid matters.
            self.ended.append(
                _Mass(np.zeros(len(over.p), np.int64), over.paid + final[over.node], over.p)
            )
            self.ended = [self._merge(_join(self.ended))]
            self._check(len(self.ended[0].p), self.most)
            passes = ~decides & ~stops
            here = self._move(here.take(passes), cell[passes], t)
        return self._merge(_join(decisions))

    def _move(self, here: _Mass, cell: Array, t: int) -> _Mass:
        """Where one move leads, in portions that fit into memory."""
        found = NOTHING
        weights = self.choices.weigh(t) if t < self.engine.horizon else np.zeros(0)
        for part in _cut(self.fan[cell]):
            moved = self._follow(here.take(part), cell[part], weights)
            found = self._merge(_join([found, moved]))
            self._check(len(found.p), LIVE_PER_VALUE * self.most)
        return found

    def _follow(self, here: _Mass, cell: Array, weights: Array) -> _Mass:
        flat, world = self.flat, self.truth.world
        # Actions.
        which, action = spread(flat.action_ptr[cell], flat.action_ptr[cell + 1])
        p = here.p[which]
        if len(cell) and flat.part[cell[0]] <= LAST:
            first = self.choices.ptr[flat.choice[flat.node[cell]]]
            p = p * weights[first[which] + action - flat.action_ptr[cell][which]]
        kept = p > 0
        action, p, paid = action[kept], p[kept], here.paid[which[kept]] + flat.reward[action[kept]]
        # Unknown rewards.
        w = flat.mean[action]
        if (w >= 0).any():
            first, last = world.reward_ptr[w], world.reward_ptr[w + 1]
            known = w < 0
            which, value = spread(np.where(known, 0, first), np.where(known, 1, last))
            masses = np.concatenate(
                [_reward_law(self.truth, i)[1] for i in range(len(world.reward_ptr) - 1)]
            )
            sure = known[which]
            p = p[which] * np.where(sure, 1.0, masses[value])
            paid = paid[which] + np.where(sure, 0.0, world.reward_value[value])
            action = action[which]
        # Branches, then outcomes.
        which, branch = spread(flat.branch_ptr[action], flat.branch_ptr[action + 1])
        p, paid = p[which] * flat.p[branch], paid[which]
        landing, row = flat.landing[branch], flat.row[branch]
        which, place = spread(flat.landing_ptr[landing], flat.landing_ptr[landing + 1])
        outcome = place - flat.landing_ptr[landing][which]
        p = p[which] * self.truth.belief.p[flat.row_ptr[row][which] + outcome]
        kept = p > 0
        return _Mass(flat.landing_node[place[kept]], paid[which[kept]], p[kept])

    def _merge(self, mass: _Mass) -> _Mass:
        """Joins equal pairs (node, paid), and those that differ by rounding or by the tolerance."""
        if not len(mass.p):
            return mass
        mass = mass.take(np.lexsort((mass.paid, mass.node)))
        width = max(self.step, NOISE * float(np.abs(mass.paid).max()))
        gap = (np.diff(mass.paid) > width) | (np.diff(mass.node) > 0)
        starts = np.flatnonzero(np.concatenate([[True], gap]))
        # A long chain of close values is cut into pieces that are at most `width` wide.
        reach = mass.paid - np.repeat(mass.paid[starts], np.diff(starts, append=len(mass.p)))
        piece = np.ceil(reach / width - 1.0) if width > 0 else np.zeros(len(reach))
        cut = np.concatenate([[True], gap | (np.diff(np.maximum(piece, 0.0)) > 0)])
        starts = np.flatnonzero(cut)
        if len(starts) == len(mass.p):
            return mass
        first = mass.paid[starts]
        p = np.add.reduceat(mass.p, starts)
        offset = mass.paid - np.repeat(first, np.diff(starts, append=len(mass.p)))
        return _Mass(mass.node[starts], first + np.add.reduceat(mass.p * offset, starts) / p, p)

    def _check(self, found: int, most: int) -> None:
        if found > most:
            raise self._refusal(found)

    def _refusal(self, found: int) -> ModelError:
        return ModelError(
            f"the law of the return needs {found:,} values so far; it may have {self.most:,}. Give "
            "returns(tolerance=...) to join values that are close, or a larger max_values"
        )


def _join(parts: list[_Mass]) -> _Mass:
    return parts[0] if len(parts) == 1 else _Mass(*map(np.concatenate, zip(*parts, strict=True)))


def _cut(fan: Array) -> Iterator[slice]:
    """Slices of entries whose moves together number about CHUNK."""
    total = np.cumsum(fan)
    begin = 0
    while begin < len(fan):
        before = int(total[begin - 1]) if begin else 0
        end = max(int(np.searchsorted(total, before + CHUNK, "right")), begin + 1)
        yield slice(begin, end)
        begin = end
