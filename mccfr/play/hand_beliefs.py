"""Ranges of a seat given its actions: the probability of all its actions, for each hand.

A seat (a policy at one position of a table) translates a bet outside its tree to one inside by a hidden random draw.
Here all translations are followed, with their probabilities.
"""

from collections.abc import Iterable, Mapping
from copy import copy
from typing import Any

import numpy as np
import numpy.typing as npt

from mccfr.cards.card_index import Board
from mccfr.games.line_lookup import LineReading
from mccfr.play.policy_seat import Seat

_Translation = tuple[int, int]
"""Node and `closed` of a reading."""


class AnyHand:
    """Stands in for `ObservedRange` if a player ignores its cards: its actions then exclude no hand."""

    def see(self, state: Any, action: str) -> None:
        """Ignore the opponent's action."""


class ObservedRange:
    """The range of a seat that follows from its actions, as an opponent who knows its policy computes it.

    reach  {translation: [H]}. A translation is the place in the policy's tree to which the actions so far are mapped:
           (node, closed) of a `LineReading`, where `closed` matters only if the tree has no decision here. The array
           has, for each hand, the probability of the translation and of the seat's actions
    """

    def __init__(self, seat: Seat, position: int) -> None:
        """Start at the beginning of a hand, with the seat at `position`."""
        self._seat, self._position = seat, position
        self._betting = seat.betting
        _, readings = self._betting.start()
        self.reach: dict[_Translation, npt.NDArray[np.float64]] = {
            (reading.node, reading.closed): np.full(seat.dealing.hand_count, reading.probability)
            for reading in readings
        }
        self._buckets: tuple[tuple[int, Board | list[Board]], npt.NDArray[np.int32]] | None = None
        self._after: dict[str, dict[_Translation, npt.NDArray[np.float64]]] = {}

    def choices(self, state: Any, board: Board | list[Board]) -> Mapping[str, npt.NDArray[np.float64]]:
        """Return {action: [H]}: the probability, by hand, of all actions so far and then this action.

        Actions that no hand takes are left out.

        state  real betting state with the seat to act
        board  of `state.street`; or a list of n boards: `reach` and the result then have n · H entries, board by board
        """
        self._after = {}
        for (node, closed), reach in self.reach.items():
            reading = self._betting.at(LineReading(node, 1.0, closed), state)
            if not self._betting.decides(reading):
                action = self._betting.real_actions(reading, state)[0]
                self._add(action, self._betting.outcomes(reading, state, action)[0], reach)
                continue
            rows = self._seat.played(reading.node, self._buckets_on(reading.node, board))
            for number in range(int(self._seat.policy.game.tree.arrays.count[reading.node])):
                action = self._betting.real_action(reading.node, number, state)
                self._add(action, self._betting.done(reading, number, action), reach * rows[:, number])
        return {
            action: np.sum(list(of_translations.values()), axis=0)
            for action, of_translations in self._after.items()
            if any(reach.any() for reach in of_translations.values())
        }

    def _add(self, action: str, reading: LineReading, reach: npt.NDArray[np.float64]) -> None:
        of_action = self._after.setdefault(action, {})
        translation = reading.node, reading.closed
        of_action[translation] = of_action[translation] + reach if translation in of_action else reach

    def chose(self, action: str) -> None:
        """Record that the seat has taken `action`, a key of the last result of `choices`."""
        self.reach = {translation: reach for translation, reach in self._after[action].items() if reach.any()}

    def having_chosen(self, actions: Iterable[str]) -> "ObservedRange":
        """Return a copy of the range, given that the seat took one of `actions`, keys of the last `choices`."""
        later = copy(self)
        later._after = {"": {}}
        for action in actions:
            for (node, closed), reach in self._after.get(action, {}).items():
                later._add("", LineReading(node, 1.0, closed), reach)
        later.chose("")
        return later

    def see(self, state: Any, action: str) -> None:
        """Record an action of the opponent: multiply `reach` by the probability of each of its translations."""
        before, self._after = self.reach, {}
        for (node, closed), reach in before.items():
            for reading in self._betting.outcomes(LineReading(node, 1.0, closed), state, action):
                self._add(action, reading, reach * reading.probability)
        self.chose(action)

    def _buckets_on(self, node: int, board: Board | list[Board]) -> npt.NDArray[np.int32]:
        arrays = self._seat.policy.game.tree.arrays
        street = int(arrays.block[node]) // self._betting.players
        if self._buckets is None or self._buckets[0] != (street, board):
            boards = board if isinstance(board, list) else [board]
            rows = [self._seat.dealing.bucket_row(street, self._position, each) for each in boards]
            self._buckets = (street, board), np.concatenate(rows)
        return self._buckets[1]
