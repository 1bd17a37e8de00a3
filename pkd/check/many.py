"""The check of `step_many`: it says the same as `actions`, `reward` and `step` in every state."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from pkd.check.answers import Answers
from pkd.check.asking import call, is_number, show, state
from pkd.explore import overrides
from pkd.explore.many import Many, read_grid, read_many
from pkd.model import CHANCE, Known, ModelError

__all__ = ["CHECKS"]

SLACK = 1e-12  # numpy and the module math may round differently


def check_step_many(answers: Answers) -> Iterator[str]:
    """`step_many` is what the other methods say, state by state."""
    model = answers.model
    if not overrides(model, "step_many"):
        return
    for name in ("last_step", "share"):
        if overrides(model, name):
            yield f"step_many is never asked, because the model has {name}(); leave one of them out"
            return
    try:
        grid = read_grid(model)
        outside = [s for s in answers.kinds if not _is_inside(s, grid)]
        for at in outside:
            yield f"step_many needs x in 0..{grid[0] - 1} and y in 0..{grid[1] - 1}; {state(*at)}"
        if outside or not answers.kinds:
            return
        x, y = np.array(list(answers.kinds), np.int64).T
        many = read_many(model, x.copy(), y.copy())
        many.find_kinds()
    except ModelError as error:
        yield from error.findings
        return
    except Exception as error:  # noqa: BLE001 - the method of a user may raise anything
        yield f"step_many raised {type(error).__name__}: {error}"
        return
    for i, at in enumerate(answers.kinds):
        yield from _compare(answers, many, i, *at)


def _is_inside(at: tuple[Any, Any], grid: tuple[int, int]) -> bool:
    return all(
        isinstance(v, int | np.integer) and not isinstance(v, bool) and 0 <= v < n
        for v, n in zip(at, grid, strict=True)
    )


def _compare(answers: Answers, many: Many, i: int, x: Any, y: Any) -> Iterator[str]:
    """What differs in one state."""
    kind, method = answers.kinds[x, y], answers.row_method(last=False)
    mine = tuple(a for a, here in zip(many.actions, many.on_offer[i], strict=True) if here)
    its = (None,) if kind is CHANCE else kind if isinstance(kind, tuple) else ()
    if mine != its:
        wanted = f"those of actions() are {its!r}"
        yield f"step_many gives {state(x, y)} the actions {mine!r}; {wanted}, None for CHANCE"
        return
    for place, a in enumerate(many.actions):
        if not many.on_offer[i, place]:
            continue
        paid, reward = answers.rewards.get((x, y, a)), float(many.reward[i, place])
        if is_number(paid) and not math.isclose(paid, reward, rel_tol=SLACK, abs_tol=SLACK):
            asked = call("reward", x, y, a)
            yield f"step_many pays {reward!r} where {asked} is {show(paid)}"
        move = (method or "", x, y, a)
        if move in answers.rows:
            one, other = _join(many.list_branches(i, place)), _join(answers.branches(move))
            if not _are_alike(one, other):
                yield f"step_many gives {show(one)} where {call(*move)} gives {show(other)}"


def _join(branches: Any) -> dict[Any, tuple[float, Any]]:
    """{y': (probability, z)}; two branches to one y' add up."""
    found: dict[Any, tuple[float, Any]] = {}
    for p, y_next, z in branches:
        law = dict(z.law) if isinstance(z, Known) else z
        found[y_next] = found.get(y_next, (0.0, None))[0] + p, law
    return found


def _are_alike(one: dict[Any, Any], other: dict[Any, Any]) -> bool:
    return one.keys() == other.keys() and all(
        abs(one[y][0] - other[y][0]) <= SLACK and bool(one[y][1] == other[y][1]) for y in one
    )


CHECKS = (check_step_many,)
