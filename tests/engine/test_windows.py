"""The layers in which stripes can be met, against a list of all pairs (stripe, stripe after it)."""

from __future__ import annotations

import pytest

import pkd
from pkd.engine.stripes.engine import StripeEngine
from pkd.engine.stripes.lookup import find_windows
from pkd.explore.graph import CHANCES, LAST, SETTLED, STEP
from pkd_examples.inventory import inventory


def find_windows_by_pairs(engine: StripeEngine) -> list[int]:
    stripes, horizon = engine.table.stripes, engine.horizon
    follow: list[set[int]] = []
    for stripe in stripes:
        after = set()
        for branch in stripe.branches():
            begin, end = branch.span(stripe.length)
            for j, other in enumerate(stripes):
                settles = stripe.part in (LAST, SETTLED)
                meets = begin < other.start + other.length and other.start < end
                if meets and (other.part == SETTLED) == settles:
                    after.add(j)
        follow.append(after)

    def close(layer: set[int], part: int) -> set[int]:
        todo = list(layer)
        for i in todo:  # the loop appends to the list that it reads
            if stripes[i].part == part:
                todo += [j for j in follow[i] if j not in todo]
        return set(todo)

    def step(layer: set[int], part: int) -> set[int]:
        return {j for i in layer if stripes[i].part == part for j in follow[i]}

    columns = {y for _, y, _ in engine.table.start}
    layer = {
        i
        for i, s in enumerate(stripes)
        if s.part != SETTLED and any(s.start <= y < s.start + s.length for y in columns)
    }
    windows = [0] * len(stripes)
    for t in range(horizon):
        layer = close(layer, CHANCES)
        for i in layer:
            if stripes[i].part != (STEP if t == horizon - 1 else LAST):
                windows[i] |= 1 << t
        last, layer = layer, step(layer, STEP)
    for i in close(step(last, LAST), SETTLED):
        windows[i] |= 1 << horizon
    return windows


@pytest.mark.parametrize("lead_time", [1, 2])
@pytest.mark.parametrize("stock", [0, 2])
def test_windows_of_stripes_are_those_of_the_list_of_pairs(lead_time: int, stock: int) -> None:
    shop = inventory(
        capacity=3, max_order=2, max_demand=2, lead_time=lead_time, stock=stock, horizon=5,
        demand=(1, 2, 1),
    )  # fmt: skip
    engine = pkd.compile(shop, large=True)
    assert isinstance(engine, StripeEngine)
    table = engine.table
    found = find_windows(table.start, table.stripes, engine.horizon)
    assert found == find_windows_by_pairs(engine)
    assert len(set(found)) > 2  # not all of them are met in every layer
