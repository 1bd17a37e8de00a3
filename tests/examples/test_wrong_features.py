"""A wrong phi_Z is caught in every domain: by the table of the true MDP, and by data alone.

A case is nature (a model with fine enough features, and its law) and a model whose features are too
coarse for it. Where the shipped model has several features, the wrong one merges them; where it has
a single one, nature is given a habit that the shipped model cannot express.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Any

import attrs
import pytest

import pkd
from pkd_examples.admission import Admission
from pkd_examples.blackjack import Blackjack
from pkd_examples.gambler import Gambler
from pkd_examples.option import AmericanPut
from tests.examples.worlds import TRAVEL, shipped, truth_of

SHIPPED = shipped()


def options_of(model: Any) -> dict[str, Any]:
    return {
        field.name: getattr(model, field.name) for field in attrs.fields(type(model)) if field.init
    }


def merged(model: Any, coarser: Callable[[Any], Any], outcomes: Any = None) -> Any:
    """The same model with z replaced by coarser(z)."""

    class Merged(type(model)):
        def step(self, x: Any, y: Any, a: Any) -> Any:
            return [
                (p, y_next, z if isinstance(z, pkd.Known) else coarser(z))
                for p, y_next, z in super().step(x, y, a)
            ]

        def outcomes(self, z: Any) -> Any:
            return super().outcomes(z) if outcomes is None else outcomes

    return Merged(**options_of(model))


class MergedBase(pkd.PartiallyKnownMDP):
    """A base with z replaced by coarser(z), for transformers."""

    def __init__(self, base: pkd.PartiallyKnownMDP, coarser: Callable[[Any], Any]) -> None:
        self.base, self.coarser, self.horizon = base, coarser, base.horizon

    def start(self) -> Any:
        return self.base.start()

    def actions(self, x: Any, y: Any) -> Any:
        return self.base.actions(x, y)

    def reward(self, x: Any, y: Any, a: Any) -> Any:
        return self.base.reward(x, y, a)

    def step(self, x: Any, y: Any, a: Any) -> Any:
        return [(p, y_next, self.coarser(z)) for p, y_next, z in self.base.step(x, y, a)]

    def outcomes(self, z: Any) -> Any:
        return range(5)


class PayingForService(Admission):
    """Customers pay more where a server is free."""

    def feature(self, x: Any, y: Any, a: Any, y_next: Any) -> Any:
        return y_next > 0


class Momentum(AmericanPut):
    """A price above its start goes on rising."""

    def noise(self, s: Any, a: Any) -> Any:
        return pkd.sure(None) if a == "exercise" else 2 * s[1] > s[0]


class LoadedCoin(Gambler):
    """The house takes another coin for high stakes."""

    def noise(self, s: Any, a: Any) -> Any:
        return a > 2


class CrookedDealer(Blackjack):
    """The dealer plays from another deck."""

    def noise(self, s: Any, a: Any) -> Any:
        z = super().noise(s, a)
        return z if isinstance(z, pkd.Known) else ("dealer" if s[2] else "player")


def cases() -> dict[str, tuple[Any, Any, Any]]:
    """name -> (nature's model, its law, the model with a wrong phi_Z)."""
    models = {name: problem.model() for name, (problem, _) in SHIPPED.items()}
    laws = {name: problem.law() for name, (problem, _) in SHIPPED.items()}
    coarse = {
        "inventory": merged(models["inventory"], lambda z: "any day"),
        "battery": merged(models["battery"], lambda z: z[0]),
        "kuhn": merged(models["kuhn"], lambda z: z[1], ("pass", "bet", "J", "Q", "K")),
        "late_actions": pkd.LateActions(
            MergedBase(models["late_actions"].base, lambda z: z[0]), TRAVEL, first_action=1
        ),
        "missing_observations": pkd.Missing(
            MergedBase(models["missing_observations"].base, lambda z: z[1]), 0.4, longest=2
        ),
        "wind": merged(models["wind"], lambda z: "everywhere"),
        "pricing": merged(models["pricing"], lambda z: "any price"),
        "maintenance": merged(models["maintenance"], lambda z: ("wear", z[1] // 2), range(7)),
    }
    even = dict.fromkeys(range(1, 11), 0.1)
    fine = {
        "admission": (
            PayingForService(servers=3, free=0.2, horizon=5),
            {True: {1: 0.1, 8: 0.9}, False: {1: 0.9, 8: 0.1}},
        ),
        "option": (
            Momentum(horizon=6),
            {True: {"up": 0.9, "down": 0.1}, False: {"up": 0.4, "down": 0.6}},
        ),
        "gambler": (
            LoadedCoin(goal=8, capital=3, horizon=5),
            {True: {"heads": 0.1, "tails": 0.9}, False: {"heads": 0.7, "tails": 0.3}},
        ),
        "blackjack": (CrookedDealer(), {"player": even, "dealer": {1: 0.5, 9: 0.5}}),
    }
    found = {name: (models[name], laws[name], wrong) for name, wrong in coarse.items()}
    return found | {name: (model, law, models[name]) for name, (model, law) in fine.items()}


CASES = cases()


def scattered(model: Any) -> Callable[[int, Any, Any], Any]:
    """A fixed policy that takes all actions about equally often."""

    def act(h: int, x: Any, y: Any) -> Any:
        choices = list(model.actions(x, y))
        return choices[zlib.crc32(repr((h, x, y)).encode()) % len(choices)]

    return act


@pytest.mark.parametrize("name", CASES)
def test_the_table_of_the_true_mdp_shows_a_wrong_feature(name: str) -> None:
    nature, law, wrong = CASES[name]
    with pytest.raises(
        pkd.ModelError, match=r"is not sufficient: x' = .* has probability .* but .* after"
    ):
        pkd.check_model(wrong, truth=truth_of((nature, law)))


@pytest.mark.parametrize("name", CASES)
def test_data_show_a_wrong_feature(name: str) -> None:
    nature, law, wrong = CASES[name]
    episodes = pkd.simulate((nature, law), scattered(nature), 1000, seed=1)
    assert not pkd.check_samples(wrong, episodes).ok


@pytest.mark.parametrize("name", SHIPPED)
def test_data_do_not_blame_the_shipped_features(name: str) -> None:
    problem, _ = SHIPPED[name]
    episodes = pkd.simulate(
        (problem.model(), problem.law()), scattered(problem.model()), 1000, seed=2
    )
    report = pkd.check_samples(problem.model(), episodes)
    assert report.ok, str(report)
