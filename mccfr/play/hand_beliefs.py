"""Ranges of a player who follows a policy: for each hand, the probability of its actions so far.

At a table, the player maps a bet outside the policy's tree to one inside by a hidden random draw. Here all nodes to
which it may be mapped are followed, with their probabilities.
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
"""Node of the policy's tree and second node: `node` and `closed` of a `LineReading`."""


class AnyHand:
    """Range of a player that ignores its cards: its actions change no weight, so it records nothing."""

    def see(self, state: Any, action: str) -> None:
        """Ignore the opponent's action."""


class ObservedRange:
    """The range of a policy's player after its actions, for an opponent who knows the policy.

    reach  {(node, closed): [H]} for each node of the policy's tree to which the actions so far may be mapped. The array
           has, for each hand, the probability of this mapping and of the player's actions. Node and `closed` are those
           of a `LineReading`; `closed` matters only if the tree has no decision at this point
    """

    def __init__(self, seat: Seat, position: int) -> None:
        """Start at the beginning of a hand of poker, where all hole cards have weight 1.

        seat      gives the policy, its options of play, the betting rules and the cards
        position  number of the observed player at the table, from 0
        """
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

        state  betting state at the table, at which the policy's player is to act
        board  board of the state's street; or a list of n boards: `reach` and the result then have n · H entries, board
               by board
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
        """Record that the player has taken `action`, a key of the last result of `choices`."""
        self.reach = {translation: reach for translation, reach in self._after[action].items() if reach.any()}

    def having_chosen(self, actions: Iterable[str]) -> "ObservedRange":
        """Return a copy of the range, given only that the player has taken one of `actions`.

        actions  keys of the last result of `choices`
        """
        later = copy(self)
        later._after = {"": {}}
        for action in actions:
            for (node, closed), reach in self._after.get(action, {}).items():
                later._add("", LineReading(node, 1.0, closed), reach)
        later.chose("")
        return later

    def see(self, state: Any, action: str) -> None:
        """Record an action of another player: multiply `reach` by the probability of each mapping of it.

        state   betting state at the table before the action
        action  the action: `c`, `f`, or `rN` with N chips put in over the whole hand
        """
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
