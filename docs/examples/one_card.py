"""A game: one-card poker, Kuhn poker (Kuhn 1950) with a deck of any length."""

from mccfr import Game
from mccfr.cards.small_deck_cards import small_deck
from mccfr.games.betting import BettingRules
from mccfr.games.betting_tree import build_tree


def one_card(ranks: int = 3, bet: float = 1.0, ante: float = 1.0) -> Game:
    """Return the game; the defaults give Kuhn poker.  The arguments are keys of the table [game]."""
    if bet <= 0:
        raise ValueError(f"game.bet = {bet} is not allowed: it must be above 0")

    def raise_targets(state):
        """Return the allowed amounts of a raise, in chips of the whole hand: one, or none after a bet."""
        return [state.to_call + bet] if state.bets == 0 else []

    rules = BettingRules((ante, ante), (0,), raise_targets, raise_text="b")
    cards = small_deck(ranks, suits=1, hole_cards=1, board_cards=[0])
    return Game("one-card", build_tree(rules), cards, pot_chips=2 * ante)
