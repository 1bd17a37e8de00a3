"""Blackjack with an unknown deck: the hands are book-keeping (s), nature shows the next card.

The rules are those of Gymnasium's Blackjack-v1, which offers a simulator but no transition table.
Cards come from an endless deck, so one feature, "deck", covers every draw: the deal, the player's
hits and the dealer's cards. The dealer's hidden card is drawn when the player sticks, which changes
no probability. Dealing and the dealer's play need no action: they are CHANCE states and take no
time.

>>> model = blackjack().model()
>>> model.land(((12, False, 2), (10, False, 1), False), "hit", 9)
(0.0, ((21, False, 3), (10, False, 1), False))
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs

import pkd
from pkd_examples.options import check_options, flag, options_of, weigh
from pkd_examples.problem import Problem, choose

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# (sum with aces as 1, can an ace count as 11, number of cards; 3 stands for more)
Hand = tuple[int, bool, int]
EMPTY: Hand = (0, False, 0)
NATURAL: Hand = (11, True, 2)


def score(hand: Hand) -> int:
    """The sum, with an ace as 11 where that does not exceed 21; 0 for a bust hand."""
    total, ace, _ = hand
    return 0 if total > 21 else total + 10 if ace else total


@attrs.frozen(kw_only=True)
class Blackjack(pkd.NoiseMDP):
    """s: (player's hand, dealer's hand, has the player stuck?). A win pays 1, a loss -1."""

    natural: bool = flag(False)  # a winning natural pays 1.5
    sab: bool = flag(False)  # a natural beats every other 21
    horizon: int = attrs.field(default=20, init=False)  # from two aces to 21: 20 decisions at most
    __attrs_post_init__ = check_options

    def initial(self) -> Any:
        return EMPTY, EMPTY, False

    def choices(self, s: Any) -> Any:
        player, dealer, stuck = s
        if player[2] < 2 or dealer[2] < 1:
            return pkd.CHANCE
        if stuck:
            return pkd.CHANCE if 0 < score(dealer) < 17 else pkd.END
        return ("stick", "hit") if score(player) else pkd.END

    def noise(self, s: Any, a: Any) -> Any:
        return pkd.sure(None) if a == "stick" else "deck"

    def outcomes(self, z: Any) -> range:
        return range(1, 11)

    def land(self, s: Any, a: Any, w: Any) -> tuple[float, Any]:
        player, dealer, stuck = s
        if a == "stick":
            # Only the score matters now, and whether it is a natural.
            shown = player if player == NATURAL else (score(player), False, 3)
            return 0.0, (shown, dealer, True)
        if stuck or (player[2] >= 2 and dealer[2] < 1):
            return 0.0, (player, _add(dealer, w), stuck)
        return 0.0, (_add(player, w), dealer, stuck)

    def ending(self, s: Any) -> float:
        player, dealer, _ = s
        win = float(score(player) > score(dealer)) - float(score(player) < score(dealer))
        if self.sab and player == NATURAL and dealer != NATURAL:
            return 1.0
        return 1.5 if self.natural and not self.sab and player == NATURAL and win > 0 else win

    def y_label(self, y: Any) -> str:
        return (
            f"{_describe(y[0])} against {_describe(y[1])}{', stuck' if y[2] else ''}"
            if isinstance(y, tuple)
            else super().y_label(y)
        )


@options_of(Blackjack)
def blackjack(
    *,
    deck: tuple[float, ...] = (1, 1, 1, 1, 1, 1, 1, 1, 1, 4),
    log: str | None = None,
    **options: Any,
) -> Problem[Blackjack]:
    """Blackjack; `deck`: the weights of the cards 1 (ace) to 10 (ten and court cards).

    The other options are the fields of `Blackjack`. `log`: a CSV file of (z, x') = (deck, card).
    """
    law = {"deck": weigh("deck", range(1, 11), deck)}
    return Problem("blackjack", Blackjack(**options), law, picture).fit(log)


def _add(hand: Hand, card: int) -> Hand:
    total, ace, cards = hand
    return total + card, (ace or card == 1) and total + card <= 11, min(cards + 1, 3)


def _describe(hand: Hand) -> str:
    return f"{'soft' if hand[1] else 'hard'} {score(hand) or 'bust'} of {hand[2]}"


def picture(problem: Problem[Blackjack], plan: pkd.Plan, ax: Axes) -> Axes:
    """The basic strategy chart: hit or stick, by the player's sum and the dealer's card.

    Hard sums are below, soft ones above.
    """
    rows = [((total, False, 2), str(total)) for total in range(5, 20)] + [((2, True, 2), "A,A")]
    rows += [((1 + card, True, 2), f"A,{card}") for card in range(2, 11)]
    cards = [*range(2, 11), 1]
    chart = [
        [choose(plan, 1, None, (hand, (card, card == 1, 1), False)) == "hit" for card in cards]
        for hand, _ in rows
    ]
    ax.imshow(chart, origin="lower", aspect="auto", cmap="Blues", vmin=0, vmax=1.6)
    for i, row in enumerate(chart):
        for j, hit in enumerate(row):
            ax.text(j, i, "H" if hit else "S", ha="center", va="center", fontsize="x-small")
    ax.set_xticks(range(10), ["A" if card == 1 else str(card) for card in cards])
    ax.set_yticks(range(len(rows)), [label for _, label in rows])
    ax.set(
        xlabel="dealer shows", ylabel="player holds", title="Hit (H) or stick (S) with two cards"
    )
    return ax
