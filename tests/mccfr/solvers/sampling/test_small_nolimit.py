"""The hold'em kernel on a small no-limit game: two hole cards, two streets.

Three ranks in four suits, blinds 1 and 2, eight chips each, one board card, every whole amount a raise. Hands alike but
for suits are one; flushes do not exist, so that nothing is lost. Exploitability is exact.
"""

from harness import Trainer

from mccfr.config.game_tables import PokerGame
from mccfr.evaluation.exact import evaluate_exact
from mccfr.games.poker import poker
from mccfr.tables.linear_discounting import Schedule
from mccfr.tables.strategy import uniform_strategy
from mccfr.trees.compiled import can_pack


def test_lossless_training_is_below_one_per_cent_of_the_pot():
    rules = {"blinds": (2, 1), "stack": 8, "first_player": (2, 1)}
    game = poker(PokerGame(ranks=3, suits=4, hole_cards=2, board_cards=(0, 1), merge_suits=True, **rules))
    assert can_pack(game.tree)
    trained = Trainer(game, schedule=Schedule("linear", 1_000_000)).train(300_000)
    learnt, uniform = (
        evaluate_exact(game, strategy).exploitability_chips / game.pot_chips
        for strategy in (trained.strategy, uniform_strategy(game))
    )
    assert learnt < 0.01 < uniform / 50
