"""A game without cards: rock, paper and scissors, where rock against scissors is worth `stones` chips."""

from mccfr import Game
from mccfr.cards.no_cards import NO_CARDS
from mccfr.trees.history_compiler import Decision, build_history_tree

HANDS = ("rock", "paper", "scissors")


def rock_paper(stones: float = 1.0) -> Game:
    """Return the game.  Both choose at once: the second player does not see the first choice."""

    def expand(history):
        """Return what follows a history; a number is a payoff to player 0."""
        if len(history) == 2:
            mine, other = history
            won = (mine - other + 1) % 3 - 1
            return won * (stones if {mine, other} == {0, 2} else 1.0)
        return Decision(len(history), "", HANDS, [(*history, hand) for hand in range(3)])

    return Game("rock-paper", build_history_tree((), expand), NO_CARDS)
