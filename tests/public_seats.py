"""Games of three and more players as public betting trees, with the cards dealt outside of the tree.

Buckets are numbered as in the listed game of `mccfr.games.seat_histories`, so strategies can be compared.
"""

import numpy as np

from abstraction.small_deck_hands import DeckListing
from mccfr.cards.base import Cards
from mccfr.games.betting import BettingRules
from mccfr.games.betting_tree import build_tree
from mccfr.games.game import Game
from mccfr.games.seat_histories import seat_game
from mccfr.tables.strategy import Strategy
from mccfr.trees.betting_lines import all_lines


class SmallDealer:
    """Draws one card for each player and one for the board, uniformly (a `mccfr.cards.base.Dealer`)."""

    def __init__(self, deck, players, seed, worker):
        self.deck, self.players, self.key = deck, players, seed << 32 | worker
        self.numbers = [deck.numbers(street, merge_suits=False) for street in range(deck.streets)]
        self.hand, self.board = np.argsort(deck.hands[:, 0]), np.argsort(deck.boards[-1][:, 0])

    def draw(self, first, count, deals):
        players, steps = self.players, -(-self.deck.cards // 4)  # a step of the generator gives four numbers
        numbers = np.random.Generator(np.random.Philox(key=self.key).advance(first * steps)).random((count, 4 * steps))
        cards = np.argsort(numbers[:, : self.deck.cards], axis=1)
        hands, board = self.hand[cards[:, :players]], self.board[cards[:, players]]
        for street, of_hands in enumerate(self.numbers):
            on = board if self.deck.cards_on(street) else np.zeros(count, np.int64)
            deals.bucket[:count, players * street : players * (street + 1)] = of_hands[on[:, None], hands]
        deals.strength[:count] = self.deck.strength[board[:, None], hands]


class SmallCards(Cards):
    """Cards of a small deck for three and more players."""

    source = "a small deck"

    def __init__(self, deck, players):
        self.deck, self.players = deck, players
        numbers = [deck.numbers(street, merge_suits=False) for street in range(deck.streets)]
        self.buckets = np.array([[each.max() + 1] * players for each in numbers], np.int64)

    def cards_on(self, street):
        return self.deck.cards_on(street)

    def dealer(self, seed, worker):
        return SmallDealer(self.deck, self.players, seed, worker)

    def bucket_pairs(self, street, player):
        raise NotImplementedError

    def bucket_texts(self, street, player):
        raise NotImplementedError


def public_and_listed(rules, ranks, suits=2):
    """Return the game of `rules` as a public betting tree, and as a tree of all histories.

    The players have one card each; the last street of `rules` deals one card to the board.
    """
    deck, players = DeckListing(ranks, suits, 1, rules.board_cards), len(rules.put_in)
    public = Game("small poker", build_tree(rules), SmallCards(deck, players), pot_chips=float(sum(rules.put_in)))
    return public, seat_game("small poker", rules, deck, merge_suits=False)


def on_listed(public, listed, strategy):
    """Return a strategy of the public game as one of the listed game."""
    tree, players = public.tree, public.tree.players
    nodes = {line: node for node, line in enumerate(all_lines(tree)) if tree.arrays.count[node]}
    found, weights = [], []
    for player, names in enumerate(listed.tree.infoset_names):
        cells, row = [], 0
        while row < len(names):  # rows are listed by line, and by bucket within a line
            _, *words = names[row].split(" ")
            node = nodes[words[-1] if words else ""]
            block, slot, actions = (int(getattr(tree.arrays, name)[node]) for name in ("block", "slot", "count"))
            assert block % players == player
            shares = strategy.probability[block][:, slot : slot + actions]
            cells.append(shares.reshape(-1))
            row += len(shares)
        found.append(np.concatenate(cells)[None])
        weights.append(np.ones((1, len(names))))
    return Strategy(tuple(found), tuple(weights))


def _leduc_targets(state):
    return [state.to_call + (2, 4)[state.street]] if state.bets < 2 else []


def _short_targets(state):
    """A raise of one chip, and all-in."""
    stack = STACKS[state.player]
    return sorted({min(state.to_call + 1, stack), stack}) if state.bets < 2 else []


STACKS = (2, 4, 3)
LEDUC = BettingRules((1, 1, 1), (0, 0), _leduc_targets, board_cards=(0, 1))
"""Leduc poker of three players; its deck has four ranks."""
UNEVEN = BettingRules((1, 1, 1), (2, 0), _short_targets, stack=4, minimum_bet=1, board_cards=(0, 1), stacks=STACKS)
"""No-limit poker of three players with so few chips that there are side pots."""
