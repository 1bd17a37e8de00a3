"""Kuhn poker against an unknown opponent: a known game, an unknown player.

Three cards, one each, an ante of one chip and one bet of one chip (Kuhn 1950). The rules and the
deal are known; the opponent's play is not. The agent sees its own card and the moves so far, so
these are the features. At the opponent's turn x' is the move, at a showdown it is the opponent's
card. The opponent's card is hidden, so both laws are mixtures over it, which `opponent_law`
computes.

>>> model = kuhn().model()
>>> model.land(("Q", "b"), None, "pass")  # we bet with a queen, the opponent folds: we win the ante
(1.0, 'over')
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import attrs

import pkd
from pkd import expect
from pkd_examples.options import check_options, options_of, whole
from pkd_examples.problem import Problem, choose

if TYPE_CHECKING:
    from matplotlib.axes import Axes

CARDS = "JQK"  # the lowest first
FOLDS, SHOWDOWNS = ("bp", "pbp"), ("pp", "bb", "pbb")
OVER = "over"


@attrs.frozen(kw_only=True)
class Kuhn(pkd.NoiseMDP):
    """s: (our card, moves so far as letters p and b), or OVER. Passing after a bet folds."""

    seat: int = whole(1, least=1, most=2)  # 1: we move first
    horizon: int = attrs.field(default=2, init=False)  # pass, then answer a bet
    __attrs_post_init__ = check_options

    def initial(self) -> Any:
        return "", ""

    def choices(self, s: Any) -> Any:
        if s == OVER:
            return pkd.END
        ours = s[0] and s[1] not in SHOWDOWNS and len(s[1]) % 2 == self.seat - 1
        return ("pass", "bet") if ours else pkd.CHANCE

    def noise(self, s: Any, a: Any) -> Any:
        if not s[0]:
            return pkd.Known(dict.fromkeys(CARDS, 1 / 3))
        return s if a is None else pkd.sure(None)

    def outcomes(self, z: Any) -> Any:
        return tuple(CARDS.replace(z[0], "")) if z[1] in SHOWDOWNS else ("pass", "bet")

    def land(self, s: Any, a: Any, w: Any) -> tuple[float, Any]:
        card, moves = s
        if not card:
            return 0.0, (w, "")
        if moves in SHOWDOWNS:
            return (2.0 if "b" in moves else 1.0) * (
                1 if CARDS.index(card) > CARDS.index(w) else -1
            ), OVER
        moves += (a or w)[0]
        if moves in FOLDS:
            return (1.0 if a is None else -1.0), OVER
        return 0.0, (card, moves)

    def y_label(self, y: Any) -> str:
        return f"{y[0] or 'no card'} {y[1]}".strip() if isinstance(y, tuple) else super().y_label(y)


@options_of(Kuhn)
def kuhn(
    *, bluff: float = 0.0, call: float = 0.8, log: str | None = None, **options: Any
) -> Problem[Kuhn]:
    """Kuhn poker against an opponent who bluffs with a jack and calls with a queen at random.

    `bluff` and `call` are the probabilities. The opponent bets a king three times as often as it
    bluffs (always, when it moves second), never bets a queen, calls with a king and folds a jack.
    bluff = call = 1/3 is the second player's equilibrium; bluff = b, call = b + 1/3 with b <= 1/3
    are those of the first. The other options are the fields of `Kuhn`. `log`: a CSV file of (z, x')
    = ((our card, moves), pass or bet or the opponent's card).
    """
    for name, p in (("bluff", bluff), ("call", call)):
        expect.require(expect.fraction(name, p, closed=True))
    model = Kuhn(**options)

    def bets(card: str, moves: str) -> float:
        if moves.endswith("b"):
            return {"J": 0.0, "Q": call, "K": 1.0}[card]
        return {"J": bluff, "Q": 0.0, "K": 1.0 if moves else min(1.0, 3 * bluff)}[card]

    return Problem("kuhn", model, opponent_law(model, bets), picture).fit(log)


def opponent_law(
    model: Kuhn, bets: Callable[[str, str], float]
) -> dict[tuple[str, str], dict[str, float]]:
    """P_eff for an opponent who bets or calls with probability bets(card, moves so far).

    The weight of a hidden card is the probability that the opponent made its moves with it. Moves
    that cannot happen get equal weights.
    """
    law: dict[tuple[str, str], dict[str, float]] = {}
    for card in CARDS:
        for moves in ("", "p", "b", "pb", *SHOWDOWNS):
            weight = {}
            for other in CARDS.replace(card, ""):
                weight[other] = 1.0
                for i in range(2 - model.seat, len(moves), 2):
                    bet = bets(other, moves[:i])
                    weight[other] *= bet if moves[i] == "b" else 1 - bet
            total = sum(weight.values())
            weight = {other: w / total if total else 1 / 2 for other, w in weight.items()}
            if moves in SHOWDOWNS:
                law[card, moves] = weight
            elif len(moves) % 2 != model.seat - 1:
                bet = sum(w * bets(other, moves) for other, w in weight.items())
                law[card, moves] = {"pass": 1 - bet, "bet": bet}
    return law


def picture(problem: Problem[Kuhn], plan: pkd.Plan, ax: Axes) -> Axes:
    """Pass or bet for each card and each situation in which we choose."""
    model = problem.model()
    situations = {
        1: [("", "first move"), ("pb", "facing a bet")],
        2: [("p", "after a pass"), ("b", "facing a bet")],
    }[model.seat]
    for i, (moves, _) in enumerate(situations):
        for j, card in enumerate(CARDS):
            action = choose(plan, 2 if moves == "pb" else 1, None, (card, moves))
            ax.text(
                j,
                i,
                action,
                ha="center",
                va="center",
                bbox={"facecolor": "lightgreen" if action == "bet" else "lightgrey"},
            )
    ax.set_xticks(range(3), CARDS)
    ax.set_yticks(range(2), [label for _, label in situations])
    ax.set(xlim=(-0.5, 2.5), ylim=(1.5, -0.5), xlabel="our card", title="What to do")
    ax.set_ylabel("situation")
    return ax
