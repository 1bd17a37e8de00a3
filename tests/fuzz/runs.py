"""Learning runs of random models: constants of any type, checkpoints of this run and of others."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import attrs
import numpy as np

import pkd
from tests import reference
from tests.fuzz.models import random_case
from tests.queue_strategies import QueueCase
from tests.strategies import TableModel

__all__ = ["attack"]

# Whole numbers where a float is meant, because users write them.
RULES = (
    pkd.MVP(c1=1, c2=1), pkd.MVP(c1=2, c2=1.5, log_factor=1), pkd.Hoeffding(7), pkd.MVP(),
    pkd.MVP(1, 1, monotone=True), pkd.PosteriorSampling(1), pkd.Certified(), pkd.Greedy(),
    pkd.Certified(minimax=False), pkd.MVP.practical(),
)  # fmt: skip
WITHOUT_LIMIT = (pkd.Certified, pkd.Greedy, pkd.PosteriorSampling)  # need no number of episodes


def attack(seed: int, folder: Path) -> int:
    """One run: its optimum, its repetition, its checkpoints, and those of a changed model."""
    rng, case = random.Random(seed), random_case(seed)
    rule, replan = rng.choice(RULES), rng.choice(["every", "doubling", "total"])
    compiled = pkd.compile(case.model, large=rng.random() < 0.5)
    episodes, inputs = rng.randint(2, 25), 3

    def run(rule: Any = rule, episodes: int = episodes, **more: Any) -> pkd.Run:
        return pkd.learn(
            compiled, case.law, episodes, optimism=rule, seed=seed, replan=replan, **more
        )

    whole, path = run(), folder / "run.npz"
    expected = reference.optimal(case.model, case.law).value
    assert abs(whole.optimal_value - expected) <= 1e-10 * case.scale, "the optimum"
    assert_same(whole, run(make_floats(rule)), "floats in place of whole numbers")
    if isinstance(rule, WITHOUT_LIMIT):
        run(episodes=rng.randint(1, episodes), checkpoint=path)
    assert_same(whole, run(checkpoint=path), "a run that went on")
    assert_same(whole, run(checkpoint=path), "a run that was finished")
    for what, model, law in changes(case, rng):
        inputs += 1
        other = pkd.compile(model, large=rng.random() < 0.5)
        try:
            pkd.learn(
                other, law, episodes, optimism=rule, seed=seed, replan=replan, checkpoint=path
            )
        except pkd.ModelError as error:
            answer = str(error)
        else:
            answer = "nothing"
        assert "another run" in answer, f"the checkpoint of another {what}: {answer}"
    return inputs


def assert_same(one: pkd.Run, other: pkd.Run, what: str) -> None:
    """Two runs have the same bits."""
    for name in ("upper_values", "policy_values", "returns", "plans"):
        a, b = getattr(one, name), getattr(other, name)
        assert a.tobytes() == b.tobytes(), f"{what}: {name} differ"
    assert one.counts == other.counts, f"{what}: counts differ"


def make_floats(rule: Any) -> Any:
    """The same rule with a float for each whole number."""
    numbers = {
        field.name: float(value)
        for field in attrs.fields(type(rule))
        if type(value := getattr(rule, field.name)) is int and field.type != "int"
    }
    return attrs.evolve(rule, **numbers)


def changes(case: QueueCase, rng: random.Random) -> list[tuple[str, Any, Any]]:
    """(what, model, law) of runs that differ from this one in one thing that matters."""
    model, law, found = case.model, case.law, list[tuple[str, Any, Any]]()
    for z in sorted(case.met.features, key=repr):
        turned = dict(zip(law[z], np.roll(list(law[z].values()), 1).tolist(), strict=True))
        if turned != law[z] and set(turned) <= set(model.outcomes(z)):
            found.append(("law", model, {**law, z: turned}))
            break
    if not isinstance(model, TableModel) or not case.met.features:
        return found
    z = rng.choice(sorted(case.met.features, key=repr))
    more = (model.n_features or len(case.met.features)) + 7
    found.append(("number of features", attrs.evolve(model, n_features=more), law))
    support = sum(p > 0 for p in law[z].values())
    for bound in range(support, len(model.outcomes(z)) + 1):
        if bound != model.bounds[z]:
            changed = attrs.evolve(model, bounds={**model.bounds, z: bound})
            found.append(("branching", changed, law))
            break
    weights = {**model.weights, z: dict.fromkeys((y for _, y in model.kinds), 0.01)}
    found.append(("share", attrs.evolve(model, weights=weights), law))
    return found
