"""Exact evaluation: value, best responses and exploitability of a strategy in its game."""

from dataclasses import dataclass, replace

from mccfr.games.game import Game
from mccfr.solvers.histories import history_values
from mccfr.solvers.public import best_response
from mccfr.solvers.public.array_walk import is_small
from mccfr.solvers.public.public_tree import PublicTree, public_tree
from mccfr.tables.strategy import Strategy
from storage.threads import available_threads


@dataclass(frozen=True)
class ExactEvaluation:
    """Exact value, best responses and exploitability of a strategy, in chips per game.

    value_chips           chips of player 0 when all players follow the strategy
    best_response_chips   by player: chips of its best response to the others' strategies. With two players and without
                          rake their sum is NashConv
    exploitability_chips  mean gain of the players' best responses; for two players half of NashConv. With rake the gain
                          is over each player's chips when both follow the strategy
    exploitability_mbb    the same in milli big blinds per game; None for games without big blinds, and with more than
                          two players
    gains_chips           with more than two players: each player's gain of a best response to all others. Their sum is
                          NashConv, and their mean the exploitability

    With two players, player 0's chips include the game's `offset_chips`: half of a pot from neither player. It
    is subtracted from player 1's.
    """

    value_chips: float
    best_response_chips: tuple[float, ...]
    exploitability_chips: float
    exploitability_mbb: float | None = None
    gains_chips: tuple[float, ...] | None = None


def prepared_tree(game: Game) -> PublicTree | None:
    """Return a game's public tree, to evaluate many strategies with it; None if none can be reused.

    A public tree is the betting on each board, for all hands of both players at once. `evaluate_exact` takes it as its
    argument `public`, and prepares what it needs itself without it. The result is None for these games:

    * without cards, or with the cards in the betting tree
    * small enough for `mccfr.solvers.public.array_walk`
    * full-deck hold'em that ends with the flop or before it
    * with several boards, unless tables are large and there is no card abstraction: which boards can be merged then
      depends on the strategy

    Raises `ValueError` for full-deck hold'em that goes on after the flop.
    """
    cards = game.cards
    if not cards.dealt or cards.listing_bytes or is_small(game):
        return None
    if any(len(boards) > 1 for boards in game.listed_cards().board_cards):
        return best_response.measuring_tree(game)
    return public_tree(game)


def evaluate_exact(
    game: Game, strategy: Strategy, public: PublicTree | None = None, threads: int | None = None
) -> ExactEvaluation:
    """Compute a strategy's exact value, best responses and exploitability.

    strategy  the strategies of all players
    public    the game's public tree, if `prepared_tree` has made one; None: none is prepared
    threads   number of threads; None: one per processor. Results do not depend on it

    With three and more players, and in games whose tree contains all chance, it traverses all histories (action
    sequences from the root). Raises `ValueError` for full-deck hold'em that continues after the flop.
    """
    if game.tree.players > 2:
        return _of_seats(game, strategy)
    if game.cards.dealt:
        listed, threads = replace(game, cards=game.listed_cards()), threads or available_threads()
        value, best, rake_chips = best_response.value_and_responses(listed, strategy, public, threads)
    else:
        (value, best), rake_chips = _by_histories(game, strategy), 0.0
    exploitability = (best[0] + best[1] + rake_chips) / 2
    big_blind, offset = game.big_blind_chips, game.offset_chips
    return ExactEvaluation(
        value + offset,
        (best[0] + offset, best[1] - offset),
        exploitability,
        None if big_blind is None else 1000 * exploitability / big_blind,
    )


def _by_histories(game: Game, strategy: Strategy) -> tuple[float, tuple[float, float]]:
    best = [history_values.best_response_value(game, strategy, player) for player in range(2)]
    return history_values.expected_value(game, strategy), (best[0], best[1])


def _of_seats(game: Game, strategy: Strategy) -> ExactEvaluation:
    players = range(game.tree.players)
    best = tuple(history_values.best_response_value(game, strategy, player) for player in players)
    values = [history_values.expected_value(game, strategy, player) for player in players]
    gains = tuple(response - value for response, value in zip(best, values, strict=True))
    return ExactEvaluation(values[0], best, sum(gains) / len(gains), gains_chips=gains)
