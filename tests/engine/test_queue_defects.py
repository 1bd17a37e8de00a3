"""Single models with a queue, each of which once came out wrong."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

import pkd
from pkd.explore import QueuesMatterError, explore
from pkd.explore.graph import count_union, join_boxes
from pkd.queue import HOLE, Look, Veil, find_queue, hide, replace_part
from tests import reference


class Shift(pkd.PartiallyKnownMDP):
    """y is (phase, queue); each action is pushed and the oldest entry is dropped."""

    horizon = 4

    def start(self) -> Any:
        return 0, (0, pkd.Queue((0, 0)))

    def actions(self, x: Any, y: Any) -> Any:
        return (0, 1)

    def reward(self, x: Any, y: Any, a: Any) -> float:
        return 0.0

    def step(self, x: Any, y: Any, a: Any) -> list[Any]:
        phase, queue = y
        return [(1.0, (phase, queue.push(a).pop()), "z")]

    def outcomes(self, z: Any) -> Any:
        return (0, 1)


def test_y_is_counted_exactly_where_the_nodes_of_a_block_hold_different_queues() -> None:
    class Diagonal(Shift):
        """The block (1, 2 entries) holds (0, 0) beside x = 0 and (1, 1) beside x = 1."""

        horizon = 1

        def step(self, x: Any, y: Any, a: Any) -> list[Any]:
            return [(1.0, (1, pkd.Queue((a, a))), pkd.sure(a))]

    for large in (False, True):
        assert pkd.compile(Diagonal(), large=large).n_y == 3  # the start, (0, 0) and (1, 1)


def test_boxes_are_counted_together_where_their_union_is_no_box() -> None:
    assert count_union([(0b01, 0b01), (0b10, 0b10)]) == 2
    assert count_union([(0b11, 0b11, 0b01), (0b10, 0b01, 0b11)]) == 5
    assert count_union([()]) == 1
    assert join_boxes([(0b01, 0b01), (0b10, 0b10)]) == ((0b11, 0b11), False)


def test_shares_may_add_up_to_one_exactly() -> None:
    """Two entries of two letters: four queues with a quarter each, for any prefix."""

    class Shared(Shift):
        def step(self, x: Any, y: Any, a: Any) -> list[Any]:
            phase, queue = y
            if x == 1:
                queue.oldest  # noqa: B018 - looks, so the same y' come from two kinds of cells
            return [(1.0, (phase, queue.push(a).pop()), "z")]

        def share(self, z: Any, y: Any) -> float:
            return 0.5 ** len(y[1])

    class TooMuch(Shared):
        def share(self, z: Any, y: Any) -> float:
            return 0.26

    for large in (False, True):
        pkd.compile(Shared(), large=large)
        with pytest.raises(pkd.ModelError, match="sum"):
            pkd.compile(TooMuch(), large=large)


def test_what_a_swallowed_look_led_to_is_not_listed() -> None:
    class Careless(Shift):
        def _read(self, queue: Any) -> Any:
            try:
                return queue.oldest
            except:  # noqa: E722 - such models exist
                return "never"

        def step(self, x: Any, y: Any, a: Any) -> list[Any]:
            phase, queue = y
            return [(1.0, (phase, queue.push(a).pop()), ("z", self._read(queue)))]

        def reward(self, x: Any, y: Any, a: Any) -> Any:
            return pkd.UnknownReward(("pay", self._read(y[1])), 0.0, 1.0)

        def share(self, z: Any, y: Any) -> float:
            return 0.01 if self._read(y[1]) == "never" else 0.25

    law = {("z", a): {0: 0.5, 1: 0.5} for a in (0, 1)} | {("pay", a): {1.0: 1.0} for a in (0, 1)}
    asked = []

    def look_up(z: Any) -> Any:
        asked.append(z)
        return law[z]

    for large in (False, True):
        compiled = pkd.compile(Careless(), large=large)
        assert set(compiled.features) == {("z", 0), ("z", 1)}
        assert {reward.feature for reward in compiled.rewards} == {("pay", 0), ("pay", 1)}
        assert {share for _, share in compiled.weights} == {0.25}
        assert pkd.plan(compiled, look_up).value == pytest.approx(4.0)
    assert set(asked) == set(law)


def test_features_that_masks_allow_but_no_queue_has_are_not_listed() -> None:
    """After (0, 0) and (1, 1) the masks allow (0, 1), whose feature does not exist."""

    class Pairs(Shift):
        def start(self) -> Any:
            return {(0, (0, pkd.Queue((0, 0)))): 0.5, (0, (0, pkd.Queue((1, 1)))): 0.5}

        def step(self, x: Any, y: Any, a: Any) -> list[Any]:
            phase, queue = y
            return [(1.0, (phase, queue), ("z", queue[0], queue[1]))]

    assert not explore(Pairs(), hide_queues=True).exact
    law = {("z", a, a): {0: 0.5, 1: 0.5} for a in (0, 1)}
    for large in (False, True, None):
        compiled = pkd.compile(Pairs(), large=large)
        assert set(compiled.features) == set(law)
        assert compiled.n_y == 2
        assert pkd.plan(compiled, law).value == 0.0


def test_a_state_whose_kind_reads_its_queue_is_found_out_at_once() -> None:
    asked = []

    class Peeking(Shift):
        def start(self) -> Any:
            return 0, (0, pkd.Queue((0, 1) * 5))

        def actions(self, x: Any, y: Any) -> Any:
            asked.append(y)
            return pkd.END if y[0] == 3 and y[1].oldest else (0, 1)

        def step(self, x: Any, y: Any, a: Any) -> list[Any]:
            phase, queue = y
            return [(1.0, (phase + 1, queue.push(a).pop()), pkd.sure(0))]

    with pytest.raises(QueuesMatterError):
        explore(Peeking(), hide_queues=True)
    assert len(asked) < 10  # once for each node, not once for each queue


@attrs.frozen(cache_hash=True)
class Guarded:
    """An attrs class that refuses anything but a queue."""

    day: int
    _queue: pkd.Queue = attrs.field(validator=attrs.validators.instance_of(pkd.Queue))


def test_an_attrs_class_may_check_its_fields_and_keep_its_hash() -> None:
    y = Guarded(3, pkd.Queue((1, 2)))
    seen = hash(y)
    path = find_queue(y)
    assert path == ("_queue",)
    holed = replace_part(y, path, HOLE)
    assert (holed.day, holed._queue, hash(y)) == (3, HOLE, seen)
    assert hash(holed) != seen
    assert replace_part(holed, path, pkd.Queue((1, 2))) == y


def test_a_tuple_class_with_more_than_its_entries_is_left_alone() -> None:
    class Labelled(tuple):
        label = "kept"

    y = Labelled((1, pkd.Queue((0,))))
    assert find_queue(y) is None
    assert find_queue((0, (1, pkd.Queue()))) == (1, 1)


def test_a_queue_whose_entries_are_hidden_counts_pops_and_pushes_only() -> None:
    veil = Veil()
    queue = hide((7,), 2, veil)
    assert (len(queue), queue.oldest, queue[0], bool(queue)) == (3, 7, 7, True)
    assert queue.push(9)[-1] == 9
    assert queue.pop(3).push(4) == (4,)
    assert (len(queue.pop(2)), len(queue.pop(9)), len(queue.clear())) == (1, 0, 0)
    assert queue != (1,)
    assert queue is not None
    assert not veil.looked
    for look in (
        lambda: queue[1], lambda: queue[-1], lambda: queue[:1], lambda: list(queue),
        lambda: 7 in queue,
        lambda: queue == (7, 0, 0), lambda: hash(queue), lambda: repr(queue), lambda: f"{queue}",
        lambda: queue < (8,), lambda: sorted(queue), lambda: queue.pop().oldest, lambda: {queue: 1},
        lambda: queue.pop(-1), lambda: queue == pkd.Queue((7, 0, 0)), lambda: (7, 0, 0) == queue,  # noqa: SIM300 - the reflected comparison
    ):  # fmt: skip
        veil.looked = False
        with pytest.raises(Look):
            look()
        assert veil.looked


class Late(Shift):
    """The oldest entry acts: 1 pays. `pushed` is what an action a pushes."""

    horizon = 6

    def __init__(self, pushed: tuple[Any, Any], actions: tuple[Any, Any] = (0, 1)) -> None:
        self.pushed, self.list = pushed, actions

    def actions(self, x: Any, y: Any) -> Any:
        return self.list

    def step(self, x: Any, y: Any, a: Any) -> list[Any]:
        phase, queue = y
        return [(1.0, (phase, queue.push(self.pushed[self.list.index(a)]).pop()), "z")]

    def reward(self, x: Any, y: Any, a: Any) -> float:
        return float(y[1].oldest == 1)


def test_models_that_push_different_entries_have_different_fingerprints() -> None:
    models = [Late((0, 1)), Late((1, 0)), Late((0, 1), (1, 0)), Late((1, 0), (1, 0))]
    prints = [pkd.compile(model, large=True).fingerprint for model in models]
    assert len(set(prints)) == len(prints)
    assert prints[0] == pkd.compile(Late((0, 1)), large=True).fingerprint


class OneLetter(pkd.PartiallyKnownMDP):
    """Three entries "a", whatever is done; three branches write the same queue differently.

    Every step pays the coin x, which is thrown anew with the feature "z".
    """

    horizon = 3
    features = ("z", "z", "z")

    def start(self) -> Any:
        return 1, pkd.Queue("aaa")

    def actions(self, x: Any, y: Any) -> Any:
        return ("a", "b")

    def reward(self, x: Any, y: Any, a: Any) -> float:
        return float(x) + len(y) / 4

    def step(self, x: Any, y: Any, a: Any) -> list[Any]:
        if len(y) < 3:
            return [(1.0, y, "z")]
        written = [y, y.pop().push(y.oldest), y.clear().push(*"aaa")]
        moves = list(zip((0.25, 0.125, 0.125), written, self.features, strict=True))
        return [*moves, (0.5, y.pop() if a == "b" else y.pop().push("a"), "z")]

    def outcomes(self, z: Any) -> Any:
        return (0, 1)


def test_branches_to_one_queue_of_one_letter_add_up_however_they_are_written() -> None:
    model, law = OneLetter(), {"z": {0: 0.25, 1: 0.75}}
    # x pays 1 + 3/4 + 3/4, and three entries, kept by the action "a", 3/4 at each step.
    assert reference.brute_force(model, law) == 4.75
    counts = {"z": {0: 2, 1: 5}}
    bounds = [reference.certified(model, counts, 0.1, least=b).value for b in (True, False)]
    for large in (False, True):
        compiled = pkd.compile(model, large=large)
        assert pkd.plan(compiled, law).value == 4.75
        found = pkd.certify(compiled, counts, delta=0.1)
        assert [found.low, found.high] == pytest.approx(bounds, rel=1e-8)


def test_one_queue_of_one_letter_with_two_features_is_refused() -> None:
    class TwoFeatures(OneLetter):
        features = ("other", "z", "z")

    for large in (False, True):
        with pytest.raises(pkd.ModelError, match="y'"):
            pkd.compile(TwoFeatures(), large=large)


def test_the_core_never_hides_a_queue_of_one_letter(monkeypatch: pytest.MonkeyPatch) -> None:
    """It has one queue of each length, so that hiding it saves nothing."""
    monkeypatch.setattr(pkd.engine, "FEW_STATES", 0)
    assert not explore(OneLetter(), hide_queues=True).pays_hiding()
    assert type(pkd.compile(OneLetter())).__name__ == "NodeEngine"
