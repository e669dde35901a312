"""Matrix games: one simultaneous move for each player."""

from math import isfinite

from mccfr.cards.no_cards import NO_CARDS
from mccfr.config.game_tables import MatrixGame
from mccfr.games.game import Game
from mccfr.trees.history_compiler import Decision, build_history_tree, largest_payoff


def matrix(config: MatrixGame) -> Game:
    """Build a two-player zero-sum matrix game: player 0 chooses the row, player 1 the column.

    Player 1 does not see the row. The actions' labels are the numbers of rows and columns, from 0. Each player's single
    infoset has an empty name. Raises `ValueError` for payoffs that are empty, ragged or not finite.
    """
    payoffs = [list(row) for row in config.payoffs]
    if not payoffs or not payoffs[0]:
        raise ValueError(f"game.payoffs = {payoffs!r}: at least one row with at least one payoff is needed")
    for number, row in enumerate(payoffs):
        if len(row) != len(payoffs[0]):
            raise ValueError(
                f"game.payoffs: row {number} has {len(row)} payoffs and row 0 has {len(payoffs[0])}; "
                "all rows need the same number"
            )
        if not all(map(isfinite, row)):
            raise ValueError(f"game.payoffs: row {number} = {row!r}; payoffs must be finite numbers")
    rows, columns = range(len(payoffs)), range(len(payoffs[0]))

    def expand(history: tuple[int, ...]) -> Decision | float:
        if len(history) == 2:
            return float(payoffs[history[0]][history[1]])
        moves = columns if history else rows
        return Decision(len(history), "", [str(move) for move in moves], [(*history, move) for move in moves])

    tree = build_history_tree((), expand)
    return Game("matrix", tree, NO_CARDS, pot_chips=largest_payoff(tree))
