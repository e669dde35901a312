"""A policy as a player at a table: receives cards and actions, returns legal actions.

The player follows the hand in the policy's tree. A bet outside the tree is mapped to one in the tree at random
(`mccfr.games.translation`). The mapping is drawn once and kept for the rest of the hand. The player chooses an action
of the tree; a raise keeps its share of the pot at the table.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from random import Random
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from mccfr.cards.card_index import IndexedCards
from mccfr.common.arguments import check_fields, checked
from mccfr.games.game import Game
from mccfr.games.line_lookup import LineReading
from mccfr.games.posting import with_stacks
from mccfr.games.translation import Translation, real_betting
from mccfr.play.player import Betting, Player, PlayerSpec, State
from mccfr.policy.query import HandReader
from mccfr.policy.strategy_profile import Behaviour
from mccfr.tables.purification import FOLD, check_threshold, simpler_rows


@dataclass(frozen=True)
class PolicySpec(PlayerSpec):
    """Creates players that play a policy (`Seat`), for matches, bots and tables.

    policy     the strategy to play, with its game
    purify     True: always play the likeliest action
    threshold  actions with a lower probability, 0 to 1, are not played, unless all are less likely
    """

    policy: Behaviour
    purify: bool = False
    threshold: float = 0.0

    def __post_init__(self) -> None:
        check_fields(self, PolicySpec)
        check_threshold(self.threshold)

    @property
    def game(self) -> Game:
        """The policy's game."""
        return self.policy.game

    def player(self, betting: Betting, *, seed: int = 0) -> Player:
        """Return a new player that plays the policy (`Seat`).

        betting  ignored: the player uses the betting rules of the policy's game
        seed     seed of random actions, and of the random mapping of bets outside the tree

        Raises `ValueError` for a game without cards, or with cards as chance nodes of its tree.
        """
        del betting
        return Seat(self.policy, seed=seed, purify=self.purify, threshold=self.threshold)

    def fingerprint(self) -> str:
        """Return purification and threshold as text; "" if neither is used."""
        return "purified" * self.purify + f" above {self.threshold!r}" * (self.threshold > 0)


class Seat(Player):
    """A policy as a player at a table, hand after hand.

    If the policy is a `Policy`, the player can be pickled, also in the middle of a hand.

    Attributes:
        policy:  the policy
        reading: node of the policy's tree to which the actions of this hand are mapped, as a `LineReading`
    """

    takes_stacks: ClassVar[bool] = True
    """Hands may have other stacks than the policy's game."""

    @checked
    def __init__(self, policy: Behaviour, *, seed: int = 0, purify: bool = False, threshold: float = 0.0) -> None:
        """Take the policy and the options of its play.

        policy     a `Policy`, or the average strategy of a run's checkpoint
        seed       seed of random actions, and of the random mapping of bets outside the tree
        purify     True: always play the likeliest action; among equals the first that is no fold, so that infosets
                   never reached do not fold
        threshold  actions with a lower probability are not played, unless all are less likely

        Raises `ValueError` for a threshold outside 0 to 1. Also for a game without cards, or with cards as chance nodes
        of its tree.
        """
        check_threshold(threshold)
        self.policy, self.purify, self.threshold = policy, purify, threshold
        super().__init__(real_betting(policy.game), seed=seed)
        self._own_betting = self.betting
        self._stacks: Sequence[float] | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Return the attributes to pickle, without those that can be computed from the policy."""
        left_out = "dealing", "betting", "_own_betting"
        return {key: value for key, value in self.__dict__.items() if key not in left_out}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        """Restore the attributes that `__getstate__` returned, and compute the others from the policy."""
        self.__dict__.update(state)
        self._own_betting = real_betting(self.policy.game)
        self.betting = self._betting(self._stacks)

    def _betting(self, stacks: Sequence[float] | None) -> Betting:
        """Return the betting rules of a hand with the given stacks, in chips by player number.

        None, and a game whose tree has every legal bet, give the rules of the policy's game.
        """
        own = self._own_betting
        if stacks is None or not isinstance(own, Translation):
            return own
        return own.with_stakes(with_stacks(own.rules, stacks))

    def _begin(self) -> None:
        super()._begin()
        self.reading = self.readings[0]
        self._bucket: int | None = None
        self._range: npt.NDArray[np.int32] | None = None

    def deal(self, position: int, hand: str, number: int | None = None, stacks: Sequence[float] | None = None) -> None:
        """Begin a hand.

        position  the player's number in this hand; in hold'em of two 0 is the big blind and 1 the button
        hand      hole cards, such as "AsKd"
        number    number of the hand, which with the seed determines the random numbers; None: one more than the last
        stacks    chips of each player before antes and blinds, by player number, in the unit of the policy's game;
                  None: those of that game. With two players only the smaller stack can be bet

        Raises `ValueError` for an invalid position, cards or stacks, and for stacks in a game whose tree has every
        legal bet.
        """
        if stacks is not None and not (self.takes_stacks and isinstance(self._own_betting, Translation)):
            raise ValueError(f"{type(self).__name__} plays {self.policy.game.name} with its own stacks only")
        self.betting, self._stacks = self._betting(stacks), stacks
        super().deal(position, hand, number)
        if self.policy.game.cards.cards_on(0) == 0:
            self._bucket = self.policy.game.cards.hand_bucket(0, position, hand, None)

    def board(self, cards: str) -> None:
        """Set all board cards dealt so far, such as "Qs7h2d".

        Raises `ValueError` if they do not begin with the cards of the last call in this hand.
        """
        super().board(cards)
        self._bucket = self._range = None

    def _note(self, action: str, after: State | int) -> None:
        before = self.state
        super()._note(action, after)
        if isinstance(after, int) or after.street != before.street:  # type: ignore[union-attr]
            self._bucket = self._range = None

    def _seen(self, state: State, action: str) -> None:
        reader = HandReader(self.betting, self.position, lambda _: self.strategy())
        self.reading = self._drawn(reader.outcomes(self.reading, state, action))

    def _drawn(self, readings: list[LineReading]) -> LineReading:
        if len(readings) == 1:
            return readings[0]
        draw = self.random.random()
        for reading in readings[:-1]:
            draw -= reading.probability
            if draw < 0:
                return reading
        return readings[-1]

    def _chosen(self, state: Any, random: Random) -> str:
        self.reading = self.betting.at(self.reading, state)
        node = self.reading.node
        if not self.betting.decides(self.reading):
            action = self.betting.real_actions(self.reading, state)[0]
            self.reading = self.betting.outcomes(self.reading, state, action)[0]
            return action
        chosen = self._sampled(self.strategy(), random)
        action = self.betting.real_action(node, chosen, state)
        self.reading = self.betting.done(self.reading, chosen, action)
        return action

    def strategy(self) -> npt.NDArray[np.float64]:
        """Return [A] the player's action probabilities with its hand at the current decision.

        They are in the order of the tree node's children, after purification and threshold. Raises `ValueError` if the
        tree has no decision at this point of the hand.
        """
        node = self._decision()
        if self._bucket is None:
            street = int(self.policy.game.tree.arrays.block[node]) // self.betting.players
            board = self.cards[: 2 * self.policy.game.cards.cards_on(street)] or None
            self._bucket = self.policy.game.cards.hand_bucket(street, self.position, self.hand, board)
        return self._as_played(node, self.policy.probabilities(node, self._bucket)[None])[0]

    def range_strategy(self) -> npt.NDArray[np.float64]:
        """Return [H, A] the policy's action probabilities for every hand at the current decision.

        Purification and threshold are not applied. Probabilities are 0 for hands that share a card with the board.
        Raises `ValueError` if the street's board is missing, or the tree has no decision at this point of the hand.
        """
        node = self._decision()
        if self._range is None:
            street, player = divmod(int(self.policy.game.tree.arrays.block[node]), self.betting.players)
            self._range = self.dealing.bucket_row(street, player, self.dealing.read_board(street, self.cards))
        return self.policy.rows(node, self._range)[0]

    def _decision(self) -> int:
        """Return the node of the policy's tree for the decision to be taken now; `ValueError` without one."""
        here = self.betting.at(self.reading, self.state)  # type: ignore[arg-type]
        if not self.betting.decides(here):
            raise ValueError(f"after {self.line!r} the policy's tree has no decision: the seat checks, calls or folds")
        return here.node

    def played(self, node: int, buckets: npt.NDArray[np.int32]) -> npt.NDArray[np.float64]:
        """Return [H, A] action probabilities at a decision, after purification and threshold.

        node     number of the decision in the policy's tree
        buckets  [H] the bucket of each hand
        """
        return self._as_played(node, self.policy.rows(node, buckets)[0])

    @cached_property
    def dealing(self) -> IndexedCards:
        """The game's hands and boards; its hand indices are the first axis of `range_strategy`."""
        return self.policy.game.table_cards()

    def _as_played(self, node: int, rows: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Return [n, A] probabilities of a decision after purification and threshold.

        node  number of the decision in the policy's tree
        rows  [n, A] the policy's probabilities
        """
        tree = self.policy.game.tree
        folds = np.array([tree.label[tree.children(node)[0]] == FOLD])
        return simpler_rows(rows, np.array([0, rows.shape[1]]), folds, self.purify, self.threshold)

    @staticmethod
    def _sampled(played: npt.NDArray[np.float64], random: Random) -> int:
        draw, last = random.random(), 0
        for action, share in enumerate(played.tolist()):
            if share > 0:
                draw, last = draw - share, action
                if draw < 0:
                    return action
        return last
