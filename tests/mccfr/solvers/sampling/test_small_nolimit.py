"""The hold'em kernel on a small no-limit game: two hole cards, two streets.

Three ranks in four suits, blinds 1 and 2, eight chips each, one board card, every whole amount a raise.  Exploitability
is exact: by a best response that knows its cards, and in the abstract game by one that knows its bucket only.
"""

from dataclasses import replace
from functools import cache

import numpy as np
from harness import Trainer

from mccfr.cards.deals import NO_BUCKET
from mccfr.config.game_tables import PokerGame
from mccfr.evaluation.exact import evaluate_exact
from mccfr.games.game import Game
from mccfr.games.poker import poker
from mccfr.tables.linear_discounting import Schedule
from mccfr.tables.strategy import Strategy, uniform_strategy
from mccfr.trees.compiled import can_pack

SCHEDULE = Schedule("linear", 1_000_000)


@cache
def lossless() -> Game:
    """The game, hands alike but for suits as one: flushes do not exist, so that nothing is lost."""
    rules = {"blinds": (2, 1), "stack": 8, "first_player": (2, 1)}
    return poker(PokerGame(ranks=3, suits=4, hole_cards=2, board_cards=(0, 1), merge_suits=True, **rules))


def on_buckets() -> Game:
    """Return the game with 3 buckets before the board and 4 by strength on each board."""
    game = lossless()
    cards = game.cards
    first = np.where(cards.bucket[0] == NO_BUCKET, NO_BUCKET, cards.bucket[0] // 2)
    strength = np.where(cards.strength < 0, np.iinfo(np.int32).max, cards.strength)
    ranked = np.argsort(np.argsort(strength, axis=1, kind="stable"), axis=1) * 4 // (cards.strength[0] >= 0).sum()
    second = np.where(cards.bucket[1] == NO_BUCKET, NO_BUCKET, np.minimum(ranked, 3)[None])
    counts = np.array([[3, 3], [4, 4]], np.int64)
    return replace(game, cards=replace(cards, bucket=[first.astype(np.int32), second.astype(np.int32)], buckets=counts))


def share_of_pot(game: Game, strategy: Strategy) -> float:
    """Exploitability in the real game, where a best response sees its cards."""
    return evaluate_exact(game, strategy).exploitability_chips / game.pot_chips


def test_lossless_training_is_below_one_per_cent_of_the_pot():
    game = lossless()
    assert can_pack(game.tree)
    trained = Trainer(game, schedule=SCHEDULE).train(300_000)
    assert share_of_pot(game, trained.strategy) < 0.01 < share_of_pot(game, uniform_strategy(game)) / 50


def test_buckets_of_each_street_alone_lose_little_in_the_real_game():
    """0.036 to 0.051 of the pot over three seeds; uniform play 0.74."""
    game = on_buckets()
    trained = Trainer(game, schedule=SCHEDULE).train(1_000_000)
    assert share_of_pot(game, trained.strategy) < 0.08 < share_of_pot(game, uniform_strategy(game)) / 8
