"""A random policy of full hold'em with five buckets on each street."""

from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np

from abstraction.cards import combo_masks, hand_cards
from mccfr.cards.deals import card_masks
from mccfr.cards.full_deck import WholeDeck
from mccfr.config.game_tables import HoldemGame, Menu
from mccfr.games.betting_tree import build_tree
from mccfr.games.full_betting import real_rules
from mccfr.games.game import Game
from mccfr.games.holdem_betting import configured_rules
from mccfr.policy import Behaviour, Profile
from mccfr.tables.strategy import uniform_strategy

MENU = Menu(first=("0.5p", "1p", "allin"), later=("1p", "allin"))
ROWS = [(hand_cards(52, 2).astype(np.int64).sum(1) * (street + 1) % 5).astype(np.int32) for street in range(4)]


class Deck(WholeDeck):
    """Five buckets a street, by the sum of the hole cards."""

    def board_row(self, street, board):
        rows = ROWS[street].copy()
        rows[(combo_masks() & card_masks(np.array([list(board)], np.int16))) != 0] = -1
        return rows


@dataclass
class RandomPolicy(Behaviour):
    """Behaves like a `Policy`: every row is random, some actions have probability 0."""

    game: Game
    config: HoldemGame
    drawn: dict[tuple[int, int], Any] = field(default_factory=dict)

    def strategy(self):
        """Return the strategy for the policy's fingerprint."""
        return uniform_strategy(self.game)

    def side(self):
        """Return the game with uniform play, which is good enough for a heuristic."""
        return Profile(self.game, self.strategy())

    def probabilities(self, node, bucket):
        if (node, bucket) not in self.drawn:
            self.drawn[node, bucket] = self.row(node, bucket)
        return self.drawn[node, bucket]

    def rows(self, node, buckets):
        rows = [self.probabilities(node, bucket) for bucket in range(5)]
        found = np.where(buckets[:, None] < 0, 0, np.array(rows)[np.maximum(buckets, 0)])
        return found, np.where(buckets < 0, 0.0, node % 3)

    def row(self, node, bucket):
        rng = np.random.default_rng((node, bucket))
        shares = rng.random(int(self.game.tree.arrays.count[node])) ** 2
        shares[rng.random(len(shares)) < 0.2] = 0
        return shares / shares.sum() if shares.sum() else np.full(len(shares), 1 / len(shares))


@cache
def policy(menu=MENU, stack=20_000.0, seats=2, **keys):
    config = HoldemGame(stack=stack, menu=menu, seats=seats, **keys)
    deck = Deck((0, 3, 1, 1), np.full((4, seats), 5), list)
    tree = build_tree(configured_rules(config))
    return RandomPolicy(Game("holdem", tree, deck, big_blind_chips=100, real_rules=real_rules(config)), config)
