"""One player's seat at a table, played by a policy: cards and actions in, legal actions out.

A seat remembers where in the policy's tree the hand is.  A bet that the tree has not is taken for one that it has, by
`mccfr.games.translation`, drawn once when it is seen and kept for the rest of the hand, so that later streets follow
from one reading; what the seat did itself is known and never drawn again.
"""

from random import Random

import numpy as np
import numpy.typing as npt

from mccfr.cards.deck import WholeDeck
from mccfr.games.betting import BettingState
from mccfr.games.reading import Reading
from mccfr.games.translation import Translation, actions_of
from mccfr.policy import Policy


class Seat:
    """A policy at one seat of a heads-up no-limit game, hand after hand.

    Positions are those of the policy's game: in hold'em 0 is the big blind, 1 the button.

    Attributes:
        line:    the real betting of this hand
        state:   the real state of the betting; no `BettingState` where nobody acts any more
        reading: where in the tree the hand is taken to be
    """

    def __init__(self, policy: Policy, *, seed: int = 0, purify: bool = False, threshold: float = 0.0) -> None:
        """Sit down.

        seed       of what is drawn: bets that the tree has not, and actions
        purify     always the likeliest action, the first of several
        threshold  actions played with less probability than this are never played

        Raises `ValueError` for a policy whose game is no no-limit poker, and a threshold outside of 0 to 1.
        """
        if not 0 <= threshold <= 1:
            raise ValueError(f"threshold = {threshold}: it must be between 0 and 1")
        self.policy, self.purify, self.threshold = policy, purify, threshold
        if policy.game.real_rules is None:
            raise ValueError(f"{policy.game.name} has no other bets than its tree: this is for whole no-limit hold'em")
        self.translation = Translation(policy.game.tree, policy.game.real_rules)
        self._seed, self._hands = seed, 0
        self.position, self._hand, self._board = 0, "", ""
        self._begin()

    def _begin(self) -> None:
        self.line, self._slash = "", False
        self.state: BettingState | int
        self.state, readings = self.translation.start()
        self.reading = readings[0]
        self._bucket: int | None = None
        self._range: npt.NDArray[np.int32] | None = None
        self._random = Random(f"{self._seed} {self._hands}")

    def deal(self, position: int, hand: str, number: int | None = None) -> None:
        """Begin a hand.

        position  of the seat
        hand      its hole cards, such as "AsKd"
        number    of the hand: with the seed it names the stream of what is drawn; None: one more than the last

        Raises `ValueError` for another position, or cards that are no hand.
        """
        if position not in (0, 1):
            raise ValueError(f"position = {position}: it must be 0 or 1")
        self.policy.game.cards.hand_bucket(0, position, hand, None)
        self._hands = self._hands + 1 if number is None else number
        self.position, self._hand, self._board = position, hand, ""
        self._begin()

    def board(self, cards: str) -> None:
        """The whole board as it lies now, such as "Qs7h2d"; `ValueError` where it does not go on from the last one."""
        if not cards.startswith(self._board):
            raise ValueError(f"the board {cards!r} does not begin with {self._board!r}, which lies already")
        self._board, self._bucket, self._range = cards, None, None

    @property
    def to_act(self) -> int | None:
        """Position of the player to act; None where the betting is over."""
        return self.state.player if isinstance(self.state, BettingState) else None

    def see(self, action: str) -> None:
        """Somebody has acted: `c`, `f` or `rN`, N chips over the whole hand.

        An own action that `choose` has not chosen is read like another's.  Raises `ValueError` where it is not legal.
        """
        state = self.state
        if not isinstance(state, BettingState):
            raise ValueError(f"{action!r} after {self.line!r}: the betting is over")
        self._note(action, self.translation.apply(state, action, f"after {self.line!r}"))
        self.reading = self._drawn(self.translation.outcomes(self.reading, state, action))

    def see_line(self, line: str) -> None:
        """The whole line of the hand as it stands now, of which what is new is seen.

        Raises `ValueError` where it does not go on from what was seen, or is not legal.
        """
        known, seen = line.replace("/", ""), self.line.replace("/", "")
        if not known.startswith(seen):
            raise ValueError(f"the line {line!r} does not go on from {self.line!r}")
        for action in actions_of(known[len(seen) :]):
            self.see(action)

    def _note(self, action: str, after: BettingState | int) -> None:
        before = self.state
        assert isinstance(before, BettingState)
        changed = isinstance(after, BettingState) and after.street != before.street
        self.line += action + "/" * changed
        self.state = after
        if changed:
            self._bucket = self._range = None

    def _drawn(self, found: list[Reading]) -> Reading:
        if len(found) == 1:
            return found[0]
        draw = self._random.random()
        for reading in found[:-1]:
            draw -= reading.probability
            if draw < 0:
                return reading
        return found[-1]

    def choose(self, seed: int | None = None) -> str:
        """The seat's action, legal in the real game; it is taken as done.

        seed  of this choice alone; None: the hand's own stream

        Raises `ValueError` where it is not the seat's turn, or the board of the street has not been told.
        """
        state = self.state
        if not isinstance(state, BettingState) or state.player != self.position:
            raise ValueError(f"after {self.line!r} it is not the turn of position {self.position}")
        node = self.reading.node
        if not self.translation.decides(self.reading):
            action = "c"
            after = self.translation.outcomes(self.reading, state, "c")[0]
        else:
            chosen = self._sampled(self.strategy(), self._random if seed is None else Random(seed))
            action = self.translation.real_action(node, chosen, state)
            after = self.translation.done(self.reading, chosen, action)
        self._note(action, self.translation.apply(state, action))
        self.reading = after
        return action

    def strategy(self) -> npt.NDArray[np.float64]:
        """[A] what the seat plays with its hand at `reading.node`, in the order of the node's children."""
        node = self.reading.node
        if self._bucket is None:
            street = int(self.policy.game.tree.arrays.block[node]) // 2
            self._bucket = self.policy.game.cards.hand_bucket(street, self.position, self._hand, self._board or None)
        played = self.policy.probabilities(node, self._bucket)
        if self.threshold > 0 and played.max() >= self.threshold:
            played = np.where(played < self.threshold, 0, played)
            played /= played.sum()
        return played

    def range_strategy(self) -> npt.NDArray[np.float64]:
        """[1326, A] what every combination would play at `reading.node`, as it is written; 0 where it hits the board.

        Raises `ValueError` where the board of the street has not been told.
        """
        node, cards = self.reading.node, self.policy.game.cards
        assert isinstance(cards, WholeDeck)
        if self._range is None:
            street = int(self.policy.game.tree.arrays.block[node]) // 2
            self._range = cards.street_buckets(street, cards.read_board(street, self._board))
        return self.policy.range_probabilities(node, self._range)

    def _sampled(self, played: npt.NDArray[np.float64], random: Random) -> int:
        if self.purify:
            return int(played.argmax())
        draw, last = random.random(), 0
        for action, share in enumerate(played.tolist()):
            if share > 0:
                draw, last = draw - share, action
                if draw < 0:
                    return action
        return last
