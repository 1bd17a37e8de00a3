"""Kuhn poker: the value of the game against an equilibrium opponent, and best responses.

OpenSpiel gives the best response against any other opponent.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import pkd
from pkd_examples.kuhn import CARDS, Kuhn, kuhn, opponent_law


@pytest.mark.parametrize(
    ("seat", "bluff", "call", "value"),
    [(1, 1 / 3, 1 / 3, -1 / 18), (2, 0.0, 1 / 3, 1 / 18), (2, 0.2, 0.2 + 1 / 3, 1 / 18)],
)
def test_against_an_equilibrium_nothing_beats_the_value_of_the_game(
    seat: int, bluff: float, call: float, value: float
) -> None:
    problem = kuhn(seat=seat, bluff=bluff, call=call)
    assert pkd.plan(problem.model(), problem.law()).value == pytest.approx(value, abs=1e-12)


def test_an_opponent_who_always_folds_loses_its_ante_every_time() -> None:
    model = Kuhn(seat=1)
    assert pkd.plan(model, opponent_law(model, lambda card, moves: 0.0)).value == pytest.approx(1.0)


@pytest.mark.parametrize(("seat", "seed"), list(itertools.product((1, 2), range(4))))
def test_the_plan_is_worth_as_much_as_the_best_response_of_open_spiel(seat: int, seed: int) -> None:
    pyspiel = pytest.importorskip(
        "pyspiel", reason="open_spiel gives the external answer; it has no wheel for every platform"
    )
    from open_spiel.python import policy
    from open_spiel.python.algorithms import best_response

    rng = np.random.default_rng(seed)
    bets = {(card, moves): rng.uniform() for card in CARDS for moves in ("", "p", "b", "pb")}
    game = pyspiel.load_game("kuhn_poker")
    opponent = policy.TabularPolicy(game)
    for (card, moves), bet in bets.items():
        if len(moves) % 2 != seat - 1:
            row = opponent.policy_for_key(f"{CARDS.index(card)}{moves}")
            row[:] = 1 - bet, bet
    model = Kuhn(seat=seat)
    found = pkd.plan(model, opponent_law(model, lambda card, moves: bets[card, moves])).value
    assert found == pytest.approx(
        best_response.BestResponsePolicy(game, seat - 1, opponent).value(game.new_initial_state()),
        abs=1e-12,
    )
