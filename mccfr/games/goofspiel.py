"""Goofspiel with prizes in known order (Brown & Sandholm 2019, "Description of Goofspiel").

In each round both players simultaneously bid a card for the next prize. The higher bid wins it, equal bids split it,
and both cards are discarded. The payoff is the difference of the prizes won, twice OpenSpiel's `point_difference`.
Simultaneous bids are compiled as player 0's bid followed by player 1's, who does not see it. The last round, with one
card each, has no decisions.
"""

from typing import NamedTuple

from mccfr.cards.no_cards import NO_CARDS
from mccfr.config.game_tables import GoofspielGame
from mccfr.games.game import Game
from mccfr.trees.history_compiler import Decision, build_history_tree

_NO_BID = 0
_MAX_CARDS = 6


class _Round(NamedTuple):
    """A history of the game tree: before a round's first bid, or between its two bids."""

    hands: tuple[tuple[int, ...], tuple[int, ...]]
    seen: tuple[str, str]  # names of the players' infosets
    lead: float  # chips of player 0 minus those of player 1 so far
    bid: int = _NO_BID  # player 0's bid in this round


def goofspiel(config: GoofspielGame) -> Game:
    """Build Goofspiel with 2 to 6 cards for each player; its value is 0.

    config  the `[game]` table: number of cards, and what a player learns of the opponent's bids (`reveal`)

    The labels of actions are the bids. Infosets are named by both players' bids of earlier rounds, player 0's
    first ("3 1 2 2" after two rounds). With `reveal = "result"` they are named by the player's own bids and their
    results ("3+ 2= 1-": won, split, lost).

    Raises `ValueError` for another number of cards; 7 cards have 48 million histories.
    """
    cards = config.cards
    if not 2 <= cards <= _MAX_CARDS:
        raise ValueError(f"game.cards = {cards}: Goofspiel takes 2 to {_MAX_CARDS} cards")
    prizes = range(1, cards + 1)
    labels = [str(card) for card in range(cards + 1)]
    shown = config.reveal == "bids"

    def lead_after(lead: float, prize: int, bid_0: int, bid_1: int) -> float:
        return lead + prize * ((bid_0 > bid_1) - (bid_0 < bid_1))

    def after_round(history: _Round, bids: tuple[int, int]) -> _Round | float:
        first, second = (
            tuple(card for card in hand if card != bid) for hand, bid in zip(history.hands, bids, strict=True)
        )
        lead = lead_after(history.lead, prizes[-1 - len(first)], *bids)
        if len(first) == 1:
            return lead_after(lead, prizes[-1], first[0], second[0])
        marks = "=" if bids[0] == bids[1] else "+-" if bids[0] > bids[1] else "-+"
        texts = (f"{bids[0]} {bids[1]}",) * 2 if shown else (f"{bids[0]}{marks[0]}", f"{bids[1]}{marks[-1]}")
        seen_0, seen_1 = (f"{seen} {text}".lstrip() for seen, text in zip(history.seen, texts, strict=True))
        return _Round((first, second), (seen_0, seen_1), lead)

    def expand(history: _Round | float) -> Decision | float:
        if not isinstance(history, _Round):
            return history
        hand_0, hand_1 = history.hands
        if history.bid == _NO_BID:
            bids = [history._replace(bid=bid) for bid in hand_0]
            return Decision(0, history.seen[0], [labels[bid] for bid in hand_0], bids)
        rounds = [after_round(history, (history.bid, bid)) for bid in hand_1]
        return Decision(1, history.seen[1], [labels[bid] for bid in hand_1], rounds)

    hand = tuple(range(1, cards + 1))
    tree = build_history_tree(_Round((hand, hand), ("", ""), 0.0), expand)
    return Game("goofspiel", tree, NO_CARDS, pot_chips=sum(prizes))
