"""Games that several test files use, beside Kuhn and Leduc of the harness."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
from places import RUNS
from refusals import refused

from abstraction.boards import board_tables, locate_board
from abstraction.cards import combo_masks, hand_cards
from abstraction.recipe import load_recipe
from mccfr.cards.card_lists import ListedCards
from mccfr.cards.deals import card_masks
from mccfr.cards.full_deck import WholeDeck
from mccfr.cards.no_cards import NO_CARDS
from mccfr.config.game_tables import ClairvoyanceGame, HoldemSubgame, KuhnGame, LeducGame, Menu, PokerGame
from mccfr.config.run_tables import AbstractionConfig
from mccfr.games.betting import BettingRules
from mccfr.games.betting_tree import build_tree
from mccfr.games.game import Game
from mccfr.games.holdem import _deck
from mccfr.games.perfect_recall import parent_buckets
from mccfr.games.registry import build_game
from mccfr.tables.strategy import Strategy
from mccfr.trees.compiled import DECISION, NO_PARENT, NO_SLOT, TERMINAL, CompiledTree, TreeArrays
from mccfr.trees.history_compiler import Chance, Decision, build_history_tree

BLINDS = PokerGame(blinds=(2, 1), stack=7, first_player=(2, 1))
"""Player 1 has the smaller blind and is first to act."""
TURN = HoldemSubgame(file="games/turn.txt")
"""The shipped turn endgame, pot 1,800, with the default menu."""
TOY = PokerGame(ranks=4, suits=3, hole_cards=2, board_cards=[0, 1, 1], antes=[1, 1], stack=4)
GAMES = {
    "kuhn": KuhnGame(),
    "leduc": LeducGame(),
    "leduc, suits merged": LeducGame(merge_suits=True),
    "clairvoyance": ClairvoyanceGame(streets=2),
    "two hole cards": TOY,
    "turn": HoldemSubgame(file="games/turn.txt", menu=Menu(first=("1p",), later=("allin",), max_bets=1)),
}


RECIPE = """
[deck]
ranks = {ranks}
suits = 2
hole_cards = 1
board_cards = [0, 1]
[flop]
{features}
buckets = {buckets}
"""


def small_recipe(path, ranks=4, features='features = "ehs"', buckets=3):
    """Write a recipe of buckets of a small deck to a file, and load it."""
    path.write_text(RECIPE.format(ranks=ranks, features=features, buckets=buckets))
    return load_recipe(path)


def refuse_recipe(text, tmp_path):
    """Load an invalid recipe, check that the message names the file, and raise it."""
    path = tmp_path / "recipe.toml"
    path.write_text(text)
    raise ValueError(refused(r"recipe\.toml", load_recipe, path))


@cache
def game_of(name):
    return build_game(GAMES[name], RUNS)


class Labels:
    """Replaces an abstraction; its buckets depend on the slot only."""

    listing, path = None, "an abstraction"  # None: hold'em

    def __init__(self, of_slot):
        self.of_slot = of_slot

    def row(self, board):
        return self.of_slot[board_tables().hole_permutation[locate_board(board)[1]]]


@cache
def classes_of_hands(street, count):
    cards = hand_cards(52, 2).astype(np.int64)
    return ((cards if count == 5 else cards**2).sum(1) * (street + 1) % count).astype(np.int32)


class DeckOfClasses(WholeDeck):
    """Deck whose buckets are computed from the sum of a hand's cards, differently on each street.

    With five buckets on each street hands go by the sum itself; with others, by the sum of its cards' squares.
    """

    def board_row(self, street, board):
        row = classes_of_hands(street, int(self.buckets[street, 0])).copy()
        row[(combo_masks() & card_masks(np.array([list(board)], np.int16))) != 0] = -1
        return row


def forgotten_street(game):
    """Return the first street with imperfect recall, or None."""
    blocks = range(2, 2 * game.tree.streets)
    return next((block // 2 for block in blocks if parent_buckets(game, block) is None), None)


def deck_on(board_cards, directory):
    """Return hold'em's deck with a built abstraction."""
    return _deck(board_cards, AbstractionConfig(path=str(directory)), Path())


def deck_game(board_cards=(3, 2), buckets=(5, 5)):
    """Return a game of two streets, by default of three and two cards, with one pot-sized bet on each."""
    rules = BettingRules(
        (50, 100), (1, 0), lambda state: [3 * state.to_call] if state.bets == 0 else [], board_cards=board_cards
    )
    deck = DeckOfClasses(board_cards, np.repeat(np.array(buckets)[:, None], 2, axis=1), lambda: [])
    return Game("two streets", build_tree(rules), deck)


def shared_buckets(game: Game, count: int) -> Game:
    """Return the game with its buckets merged to `count` for each street and player."""
    cards = game.cards.listed()
    bucket = [np.where(numbers < 0, numbers, numbers * 7 % count) for numbers in cards.bucket]
    return replace(game, cards=replace(cards, bucket=bucket, buckets=np.full_like(cards.buckets, count)))


def by_twos(game: Game) -> Game:
    """Return the game with each pair of buckets merged."""
    cards = game.cards.listed()
    bucket = [np.where(numbers < 0, numbers, numbers // 2) for numbers in cards.bucket]
    return replace(game, cards=replace(cards, bucket=bucket, buckets=(cards.buckets + 1) // 2))


def own_buckets(game: Game) -> Game:
    """Return the game with player 1's buckets numbered backwards, so that the maps of the players differ."""
    cards, bucket = game.cards, []
    for both, counts in zip(cards.bucket, cards.buckets, strict=True):
        backwards = np.where(both[1] >= 0, counts[1] - 1 - both[1], both[1])
        bucket.append(np.stack([both[0], backwards]).astype(np.int32))
    return replace(game, cards=replace(cards, bucket=bucket))


def unequal(game: Game, missing: float = 0.3, seed: int = 3) -> Game:
    """Return the game with unequal ranges and missing hands; so no two values tie by symmetry."""
    generator = np.random.default_rng(seed)
    reach = 0.1 + generator.random(game.cards.reach.shape)
    reach[generator.random(reach.shape) < missing] = 0
    return replace(game, cards=replace(game.cards, reach=reach))


def few_hands(game: Game, count: int) -> Game:
    """Return the game with `count` hands of each range, weighted at random."""
    reach, generator = game.cards.reach * 0, np.random.default_rng(8)
    for player in range(2):
        kept = generator.choice(np.flatnonzero(game.cards.reach[player]), count, replace=False)
        reach[player, kept] = generator.random(count)
    return replace(game, cards=replace(game.cards, reach=reach))


def coin(infoset: Callable[[str], str]) -> Game:
    """Return a game of a coin toss (1/4, 3/4) and player 1's choice; `infoset` names each side's infoset."""

    def grow(history):
        if history == "":
            return Chance(["h", "t"], [0.25, 0.75], ["h", "t"])
        if len(history) == 1:
            return Decision(1, infoset(history), ["0", "1"], [history + "0", history + "1"])
        return {"h0": 4.0, "h1": -4.0, "t0": 0.0, "t1": 8.0}[history]

    return Game("coin", build_history_tree("", grow), NO_CARDS)


def coin_toss():
    """Return Coin Toss of Brown & Sandholm 2017, section 2, and its blueprint.

    Player 0 sees a coin. Selling wins half a chip with heads and loses half a chip with tails. If player 0 plays,
    player 1 guesses: a right guess wins a chip, a wrong one loses a chip. In the blueprint player 0 plays three
    quarters of heads and half of tails, and player 1 guesses each side with probability 1/2.
    """
    tree = CompiledTree(
        TreeArrays(
            kind=np.array([DECISION, TERMINAL, DECISION, TERMINAL, TERMINAL], np.int8),
            player=np.array([0, -1, 1, -1, -1], np.int8),
            block=np.array([0, -1, 3, -1, -1], np.int8),
            count=np.array([2, 0, 2, 0, 0], np.int32),
            first=np.array([1, -1, 3, -1, -1], np.int32),
            slot=np.array([0, NO_SLOT, 0, NO_SLOT, NO_SLOT], np.int32),
            row=np.array([0, NO_SLOT, 0, NO_SLOT, NO_SLOT], np.int32),
            fixed=np.zeros(5),
            showdown=np.array([0, 0.5, 0, -1, 1]),  # times 1 with heads, -1 with tails
            probability=np.ones(5),
            touched=np.ones(5, np.int8),
        ),
        np.array([NO_PARENT, 0, 0, 2, 2], np.int32),
        ["", "sell", "play", "heads", "tails"],
        2,
        np.array([2, 0, 0, 2]),
        np.array([1, 0, 0, 1]),
    )
    cards = ListedCards(
        np.full((3, 2), -1, np.int16),
        ["heads", "guess", "tails"],
        np.array([[0.5, 0, 0.5], [0, 1, 0]]),
        [np.zeros((1, 0), np.int16)] * 2,
        [np.zeros(1, np.int32)] * 2,
        np.array([[2, 1, 0]], np.int32),
        [np.array([[[0, -1, 1]], [[-1, 0, -1]]], np.int32)] * 2,
        np.array([[2, 1]] * 2, np.int64),
    )
    sold = np.array([[0.25, 0.75], [0.5, 0.5]])
    none = np.zeros((1, 0))
    weight = (np.ones((2, 1)), none, np.zeros((2, 0)), np.ones((1, 1)))
    blueprint = Strategy((sold, none, np.zeros((2, 0)), np.full((1, 2), 0.5)), weight)
    return Game("coin-toss", tree, cards), blueprint


DEEP = PokerGame(ranks=3, suits=2, board_cards=(0, 1), blinds=(2, 1), stack=30, first_player=(2, 1))
MENUS = {
    "pot": Menu(first=("1p",), later=("1p",), max_bets=2),
    "half or all-in": Menu(first=("0.5p", "allin"), later=("allin",), max_bets=2),
    "two sizes": Menu(first=("0.4p", "1.5p"), later=("0.75p",), max_bets=2),
    "no limp": Menu(first=("1p",), later=("1p",), max_bets=3, limp=False),
    "checks only": Menu(first=(), later=()),
    "third": Menu(first=("0.33p",), later=("allin",)),
}
"""Menus for `DEEP` and similar games."""
