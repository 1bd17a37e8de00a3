"""The truth of a delayed model: the law of its features, and the raw numbers shown at the end.

Only the simulator and the exact planner get it; the models never hold it. One object serves both
adapters: it answers the base's features (`KnownDelay`), and `Move` and `Arrival` (`UnknownDelay`).

`HindsightPlayer` plays the same in compiled code: the path of an episode says of each action's
number that low <= number <= high, it is drawn from its law on that range, so that path and numbers
have their true joint law, and what it teaches is counted. A test holds this equal to
`UnknownDelay.samples`, move by move.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from pkd import Episode, ModelError
from pkd.adapters import find_player
from pkd.episode import list_branches
from pkd_delay.augmented import SHOWN, TRAN, Augmented
from pkd_delay.kernels import NO_ARRIVAL, Delays, play_nodes, play_stripes
from pkd_delay.laws.kernel import DelayKernel, DelayOf, OneOrMany, per_action
from pkd_delay.unknown import Arrival, Hindsight, Move, UnknownDelay, next_depth

if TYPE_CHECKING:
    from pkd.engine import Compiled
    from pkd.engine.belief import Tally, World
    from pkd.engine.compiled import Truth
    from pkd.model import Law

SHOWN_FINDINGS = 5


class DelayLaw:
    """z -> {x': probability} for a delayed base.

        Move(z):                 P_eff(z) of the base
        Arrival(x, a, c, False): tran with Pr(Delta = c | Delta >= c), else c + 1
        Arrival(x, a, 0, True):  tran with Pr(Delta <= 0), else 1
        any other form of law:   tran with Pr(D_h = d + c | D_{h-1} = d, D_h >= d + c), else c + 1

    where "tran" is the outcome (x, TRAN) and a number c the outcome (x, c). Every other feature is
    one of the base, and so are moves and arrivals of another depth: the base may be delayed itself.

    >>> from pkd_delay import DelayedMDP
    >>> from pkd_delay.models.tables import two_state_chain
    >>> law = DelayedMDP.constant(two_state_chain(horizon=3), 1).law()
    >>> round(law((0, 1))[0], 10)
    0.9
    """

    def __init__(
        self,
        base: Law,
        inter_arrival: OneOrMany | DelayOf,
        *models: Augmented,
        later: Iterable[tuple[type, Callable[[], Augmented]]] = (),
    ) -> None:
        """`models`: the adapters whose features and episodes it will be asked about.

        `later` holds pairs (class of an augmented y, how to get its adapter), for adapters that
        are not built before they are asked about. The law is checked against an UnknownDelay as
        soon as that is there.
        """
        self._base, self.delay_of = base, per_action(inter_arrival)
        self._models = {model.y_type: model for model in models}
        self._later = dict(later)
        # The depth of the features of an UnknownDelay of this base; -1: there is no such adapter.
        self._depth = next_depth(models[0].facts.features) if models else -1
        self._laws: dict[Any, DelayKernel] | None = None  # of each delay_key
        if UnknownDelay.y_type in self._models:
            self._arrival_laws()

    def _model(self, y_type: type) -> Augmented:
        """The adapter with this class of y, built if need be."""
        if y_type not in self._models:
            if y_type not in self._later:
                raise ModelError(
                    f"this DelayLaw has no adapter for {y_type.__name__}; give it the model that "
                    "it should serve"
                )
            self._models[y_type] = self._later[y_type]()
        return self._models[y_type]

    def _arrival_laws(self) -> Mapping[Any, DelayKernel]:
        """The law of the delay for each delay_key of the UnknownDelay."""
        if self._laws is None:
            self._laws = collect_laws(self._unknown_model(), self.delay_of)
        return self._laws

    def _find_law(self, z: Arrival) -> DelayKernel:
        if self.delay_of.one is not None:  # whatever the model tells apart
            return self.delay_of.one
        return self._arrival_laws()[self._unknown_model().key_of(z)]

    def _unknown_model(self) -> UnknownDelay:
        model = self._model(UnknownDelay.y_type)
        assert isinstance(model, UnknownDelay)
        return model

    def __call__(self, z: Any) -> Mapping[Any, float]:
        if isinstance(z, Move | Arrival) and z.depth == self._depth:
            if isinstance(z, Move):
                law = _ask(self._base, z.feature)
                return {(x_next, SHOWN): p for x_next, p in law.items()}
            p = self._find_law(z).arrival(*z.delays)
            return {z.outcome(True): p, z.outcome(False): 1.0 - p}
        return _ask(self._base, z)

    def reveal(self, episode: Episode, rng: np.random.Generator) -> Any:
        """What is shown at the end: the raw Deltas, for an `UnknownDelay`, and the base's part.

        An `UnknownDelay` with revealed=False gets the base's part alone. The augmented trajectory
        says that low <= Delta <= high for each action of the base. Where the end or a clip hid the
        rest, Delta is drawn from its law on that range. So trajectory and Deltas have their true
        joint law.
        """
        if not episode.transitions:  # the base started at an END
            return ()
        model = self._model(type(episode.transitions[0].y))
        base_reveal = getattr(self._base, "reveal", None)
        base_part = None
        if base_reveal is not None:
            base_part = base_reveal(model.base_episode(episode), rng)
        if not model.revealed:
            return base_part
        assert isinstance(model, UnknownDelay)
        deltas = tuple(
            self.delay_of(x, y, a).numbers(0).draw(rng, low, high)
            for x, y, a, low, high in _find_ranges(model, episode)
        )
        return deltas if base_reveal is None else Hindsight(deltas, base_part)


def collect_laws(model: UnknownDelay, delay_of: DelayOf) -> dict[Any, DelayKernel]:
    """The law of each delay_key: one key must not hide two laws, and W must cover them all."""
    laws: dict[Any, DelayKernel] = {}
    found: list[str] = []
    for x, y in model.facts.decisions:
        for a in model.base.actions(x, y):
            law, key = delay_of(x, y, a), model.delay_key(x, y, a)
            where = f"inter_arrival(x={x!r}, y={y!r}, a={a!r})"
            if type(law) is not model.form:
                found.append(
                    f"{where} is {type(law).__name__}; the model learns {model.form.__name__}: "
                    "give the model form= the form of the law"
                )
            elif _reaches_beyond(law, model.longest):
                found.append(
                    f"{where} reaches {law.longest}; the model has longest={model.longest}"
                )
            if laws.setdefault(key, law) is not law and laws[key] != law:
                found.append(
                    f"{where} is {law.to_table()}, but another state and action with delay_feature "
                    f"{key!r} has {laws[key].to_table()}; delay_feature must tell them apart"
                )
    if found:
        raise ModelError(found[:SHOWN_FINDINGS])
    return laws


def _reaches_beyond(law: DelayKernel, longest: int) -> bool:
    befores = range((law.largest or 0) + 1)
    return any(law.numbers(before).at_least(longest + 1) > 0.0 for before in befores)


def _ask(law: Law, z: Any) -> Mapping[Any, float]:
    return law[z] if isinstance(law, Mapping) else law(z)


def _find_ranges(model: UnknownDelay, episode: Episode) -> list[tuple[Any, Any, Any, int, int]]:
    """(x, y, action, low, high) for each action of the base: what the path says of its Delta."""
    known = []
    first, longest = model.form.first, model.longest
    low, high, taken = first, longest, 0
    for move in episode:
        x, y, queue, counter = model.read(move.x, move.y)
        taken += move.action is not None
        z = list_branches(model, move.x, move.y, move.action, taken)[0][2]
        if isinstance(z, Arrival):
            question = model.lessons.questions[z]
            least, most = question.limits(move.x_next[1] == TRAN, longest)
            low, high = max(low, least), min(high, int(most))
        if counter == TRAN and queue:
            known.append((x, y, model.done(x, y, queue.oldest), low, high))
            low, high = first, longest
    return known


class HindsightPlayer:
    """The core's `Player` for an `UnknownDelay`: plays episodes and counts what they teach."""

    def __init__(
        self, compiled: Compiled, model: UnknownDelay, world: World, delay_of: DelayOf
    ) -> None:
        self.compiled, self.world = compiled, world
        self.delays = _lay_out(compiled, model, delay_of)
        self.path = compiled.new_path()
        self.deltas = np.zeros(model.horizon, np.int64)  # at most one per action

    def __call__(
        self, policy: np.ndarray, tally: Tally, rng: np.ndarray, returns: np.ndarray
    ) -> tuple[int, bool]:
        n = np.zeros_like(tally.n)
        marks, spent = np.full_like(n, np.inf), np.zeros_like(tally.spent)
        visited = tally._replace(counts=np.zeros_like(tally.counts), n=n, marks=marks, spent=spent)
        common = (self.delays, self.world, policy, tally, visited, rng, self.path, self.deltas)
        count, due = self.compiled.call_walk(play_nodes, play_stripes, (*common, returns))
        return int(count), bool(due)


@find_player.register(UnknownDelay)
def _find_player(
    model: UnknownDelay, compiled: Compiled, truth: Truth, law: Law
) -> HindsightPlayer | None:
    """Compiled episodes, if the base has no `samples` of its own and law is a `DelayLaw`."""
    if model.base.samples is not None or not isinstance(law, DelayLaw):
        return None
    return HindsightPlayer(compiled, model, truth.world, law.delay_of)


def _lay_out(compiled: Compiled, model: UnknownDelay, delay_of: DelayOf) -> Delays:
    """The lessons of a model as arrays; a number stands at number + 1, for a lag -1 stays empty."""
    features, longest, notes = compiled.features, model.longest, compiled.graph.notes
    laws = collect_laws(model, delay_of)
    lessons, shift = model.lessons, model.form.first + 1
    table, ptr = np.zeros((len(notes), longest + 2)), [0]
    place, row = list[int](), list[int]()
    for i, (key,) in enumerate(notes):
        p = laws[key].numbers(0).probabilities[: longest + 2 - shift]
        table[i, shift : shift + len(p)] = p
        for number in range(-1, longest + 1):
            for z, outcome in lessons.of_number[key].get(number, ()):
                row.append(compiled.feature_index[z])
                at = compiled.place(row[-1], outcome)
                assert at is not None
                place.append(at)
            ptr.append(len(place))
    limits = np.full((len(features), 2, 2), NO_ARRIVAL, np.int64)
    alike_ptr, alike = [0], list[int]()
    for i, z in enumerate(features):
        if z in lessons.questions:
            for arrived in (True, False):
                at = compiled.place(i, z.outcome(arrived))
                assert at is not None
                limits[i, at - compiled.row_ptr[i]] = lessons.questions[z].limits(arrived, longest)
            if not model.revealed:
                alike += [compiled.feature_index[other] for other in lessons.alike[z]]
        alike_ptr.append(len(alike))
    return Delays(
        row_ptr=compiled.row_ptr,
        limits=limits,
        alike_ptr=np.array(alike_ptr, np.int64),
        alike=np.array(alike, np.int64),
        law=table,
        place_ptr=np.array(ptr, np.int64),
        place=np.array(place, np.int64),
        row=np.array(row, np.int64),
        longest=longest,
        revealed=model.revealed,
    )
