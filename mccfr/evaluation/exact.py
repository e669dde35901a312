"""Exact evaluation: value, best responses and exploitability of a strategy in its game."""

from dataclasses import dataclass, replace

from abstraction.kernels.compiling import working_seconds
from mccfr.games.game import Game
from mccfr.solvers.histories import histories
from mccfr.solvers.public import best_response
from mccfr.solvers.public.public_tree import PublicTree, public_tree
from mccfr.tables.strategy import Strategy
from storage.threads import available_threads


@dataclass(frozen=True)
class ExactEvaluation:
    """What a strategy is worth.

    value_chips           to player 0 when both follow it, the game's `offset_chips` included
    best_response_chips   to each player when he responds best to the other's part; player 0's with `offset_chips`,
                          player 1's less it, so that their sum is NashConv, where no rake is taken
    exploitability_chips  mean over players of what a best response gains: half of NashConv; with rake over what each
                          wins when both follow the strategy
    exploitability_mbb    the same in thousandths of a big blind a game; None for games without one
    seconds               wall time of the evaluation, without that of compiling kernels
    """

    value_chips: float
    best_response_chips: tuple[float, float]
    exploitability_chips: float
    exploitability_mbb: float | None
    seconds: float


def prepared_tree(game: Game) -> PublicTree | None:
    """The public tree of a game with cards, for whoever evaluates many strategies for it.

    None where boards are to come and what is walked depends on the strategies (`best_response.values`).
    """
    cards = game.cards
    if not cards.dealt or cards.listing_bytes:
        return None
    if any(len(boards) > 1 for boards in cards.listed().board_cards):
        return best_response.measuring_tree(game)
    return public_tree(game)


def evaluate_exact(
    game: Game, strategy: Strategy, public: PublicTree | None = None, threads: int | None = None
) -> ExactEvaluation:
    """Evaluate a strategy exactly: over a public tree for games with cards, by histories for the others.

    public   the game's, if it is made already (`prepared_tree`)
    threads  that share the work over a public tree, None: as many as there are processors; results do not depend on it
    `ValueError` for whole hold'em that goes on after the flop.
    """
    start = working_seconds()
    if game.cards.dealt:
        listed, threads = replace(game, cards=game.cards.listed()), threads or available_threads()
        value, best, taken = best_response.value_and_responses(listed, strategy, public, threads)
    else:
        (value, best), taken = _by_histories(game, strategy), 0.0
    exploitability = (best[0] + best[1] + taken) / 2
    big_blind, offset = game.big_blind_chips, game.offset_chips
    return ExactEvaluation(
        value + offset,
        (best[0] + offset, best[1] - offset),
        exploitability,
        None if big_blind is None else 1000 * exploitability / big_blind,
        working_seconds() - start,
    )


def _by_histories(game: Game, strategy: Strategy) -> tuple[float, tuple[float, float]]:
    best = [histories.best_response_value(game, strategy, player) for player in range(2)]
    return histories.expected_value(game, strategy), (best[0], best[1])
