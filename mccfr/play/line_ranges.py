"""Computes the players' ranges after a betting line on a board, by Bayes' rule.

A line may contain bets outside the tree. Then all tree nodes to which it may be mapped are followed, with their
probabilities.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from mccfr.cards.card_index import Board
from mccfr.games.line_lookup import NOWHERE, LineReading, mapped_action
from mccfr.games.line_text import converted_line
from mccfr.games.translation import SeatTranslation, Translation, actions_of, real_betting
from mccfr.play.player import State
from mccfr.policy.strategy_profile import Behaviour

Weights = npt.NDArray[np.float64]


@dataclass(frozen=True)
class WeightedReading:
    """Probability and ranges at one tree node to which a betting line may be mapped.

    probability  probability that the line is mapped to this node
    weight       [P, H] this probability times the reach of each of the P players, by hand. Reach is the hand's weight
                 in the deal times the probability of the player's actions
    """

    probability: float
    weight: Weights


@dataclass(frozen=True)
class FollowedLine:
    """A betting line that was followed on a board.

    line    the line with `/` between streets and amounts in chips put in over the whole hand
    state   betting state after the line, with a player to act
    boards  boards of the first street to that of `state`; None if cards are missing
    places  {(node, closed): probability and ranges} of all tree nodes to which the line may be mapped. The keys are
            fields of a `LineReading`; `closed` matters only if the tree has no decision. Without `boards` the ranges
            ignore the players' actions
    acted   (line before the action, betting state before it, action) of each action
    """

    line: str
    state: State
    boards: list[Board] | None
    places: Mapping[tuple[int, int], WeightedReading]
    acted: list[tuple[str, State, str]]


class RangesOfLine:
    """Follows a betting line at the table through a strategy's tree and computes each player's range.

    A range is a weight for each hand: the hand's weight in the deal times the probability of the player's actions. A
    bet outside the tree may be mapped to several tree nodes, each with a probability; ranges are then means over these
    nodes. Call `follow`, then `reach`.

    betting  action translation between the table's betting and the tree (`real_betting`)
    dealing  the game's numbered hands and its boards, as `IndexedCards`
    """

    def __init__(self, source: Behaviour) -> None:
        """Take `source`, a game with the strategies of all players.

        Raises `ValueError` for a game without cards, or with cards as chance nodes of its tree.
        """
        self._source, self._game = source, source.game
        self.betting, self.dealing = real_betting(source.game), source.game.table_cards()

    def follow(self, line: str, board: str) -> FollowedLine:
        """Follow a line on a board; return a `FollowedLine` with its tree nodes and the ranges.

        line   betting line that ends at a decision: typed, such as "b300c/", or in the tree's form, such as "r300c/"
        board  all board cards of the line's street, such as "Qs7h2d"; with those of an earlier street only, the
               result's `boards` are None

        Raises `ValueError` for an invalid line or board; the message says which are allowed. Also, with three and more
        players, for a call that the tree lacks, since its player then has no range.
        """
        line = converted_line(self._game, line.strip())
        state, readings = self.betting.read(line)
        if isinstance(state, int):
            raise ValueError(f"line {line!r}: the hand is over here, so no player acts; give a line to a decision")
        tree = self._game.tree
        if isinstance(self.betting, Translation):
            actions = actions_of(line)
        else:
            actions = [tree.label[node] for node in tree.path(readings[0].node)[1:]]
        boards = self._boards(state.street, board)
        state_here: Any = self.betting.start()[0]
        translations = {(0, NOWHERE): WeightedReading(1.0, self.dealing.reach.astype(np.float64))}
        done, acted = "", list[tuple[str, State, str]]()
        for action in actions:
            acted.append((done, state_here, action))
            board_of_street = None if boards is None else boards[state_here.street]
            translations = self._after_action(translations, state_here, action, board_of_street)
            after: Any = self.betting.apply(state_here, action)
            done += action + "/" * (after.street != state_here.street)
            state_here = after
        return FollowedLine(done, state_here, boards, translations, acted)

    def reach(self, followed: FollowedLine) -> Weights:
        """Return [P, H] each player's reach by hand after a line, which was followed on a board.

        Reach is the hand's weight in the deal times the probability of the player's actions. It is divided by the
        largest weight that the deal gives to a hand of the player, so the likeliest hand begins with 1. It is 0 for
        hands that share a card with the board. Cards of folded players are ignored.
        """
        assert followed.boards is not None
        total: Weights = np.sum([translation.weight for translation in followed.places.values()], axis=0)
        largest = np.maximum(self.dealing.reach.max(axis=1, keepdims=True), 1e-300)
        return np.asarray(total / largest * self.dealing.live(followed.state.street, followed.boards[-1]))

    def lacking(self, street: int, text: str) -> int:
        """Return how many cards have to be added to `text` for a whole board of `street`.

        street  number of the street, from 0
        text    board of an earlier street, or ""; the result is 0 if it is neither
        """
        cards = self._game.cards
        for earlier in range(street - 1, -1, -1):
            try:
                self.dealing.read_board(earlier, text)
            except ValueError:
                continue
            return cards.cards_on(street) - cards.cards_on(earlier)
        return 0 if text else cards.cards_on(street)

    def _after_action(
        self, translations: Mapping[tuple[int, int], WeightedReading], state: Any, action: str, board: Board | None
    ) -> dict[tuple[int, int], WeightedReading]:
        """Apply an action at all tree nodes to which a line may be mapped; update the ranges.

        Returns {(node, closed): probability and ranges} after the action. The range of the player who acted is
        multiplied by the strategy's probability of the action.

        translations  the same before the action
        state         betting state before the action
        board         board of the state's street; None: ranges stay unchanged
        """
        moved: dict[tuple[int, int], WeightedReading] = {}
        buckets = None if board is None else self.dealing.bucket_row(state.street, state.player, board)
        for (node, closed), translation in translations.items():
            reading = self.betting.at(LineReading(node, 1.0, closed), state)
            decides = self.betting.decides(reading)
            rows = None if buckets is None or not decides else self._source.rows(reading.node, buckets)[0]
            for outcome in self.betting.outcomes(reading, state, action):
                weight = translation.weight * outcome.probability
                column = mapped_action(self._game.tree, reading.node, action, outcome) if decides else None
                self._check_call(reading, state, action, column)
                if rows is not None and column is not None:
                    weight[state.player] *= rows[:, column]
                key, probability = (outcome.node, outcome.closed), translation.probability * outcome.probability
                if key in moved:
                    probability, weight = probability + moved[key].probability, weight + moved[key].weight
                moved[key] = WeightedReading(probability, weight)
        return moved

    def _check_call(self, reading: LineReading, state: Any, action: str, column: int | None) -> None:
        """Raise `ValueError` if `action` is a call that the tree lacks; only with three and more players.

        reading  tree node before the action
        state    betting state before the action
        column   index of the tree's action to which it is mapped; None if there is none
        """
        betting = self.betting
        if action == "c" and isinstance(betting, SeatTranslation) and betting.lacks(reading, state, action, column):
            raise ValueError("the line has a call that the tree lacks, so the player has no range: choose another line")

    def _boards(self, street: int, text: str) -> list[Board] | None:
        """Return the board of each street up to `street`; None if cards are missing in `text`.

        text  board cards, such as "Qs7h2d"
        """
        try:
            last = self.dealing.read_board(street, text)
        except ValueError:
            if self.lacking(street, text):
                return None
            raise
        return list(self.dealing.path(street, last))
