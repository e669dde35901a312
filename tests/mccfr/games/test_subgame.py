"""Subgames from any decision: same strategy, same values."""

import numpy as np
import pytest
from harness import LEDUC
from naive import check_order
from places import RUNS
from refusals import refusals

from abstraction.cards import COMBO_COUNT, combo_masks, parse_cards
from mccfr.cards.card_lists import joint_weight
from mccfr.config.game_tables import FlopHoldemGame, HoldemSubgame, Menu
from mccfr.evaluation.exact import evaluate_exact
from mccfr.games.libratus import read_endgame
from mccfr.games.registry import build_game
from mccfr.games.subgame import subgame, subtree
from mccfr.tables.strategy import Strategy, row_starts
from mccfr.trees.betting_lines import find_decision, line_text, put_in_chips
from mccfr.trees.compiled import pack

GAMES = RUNS / "games"
TURN = HoldemSubgame(file="turn.txt", menu=Menu(first=["1p", "allin"], later=["allin"]))
EVERY_HAND = np.ones((2, COMBO_COUNT))


def distributions(game, seed):
    """A distribution over its actions for each line."""
    rng = np.random.default_rng(seed)
    counts = game.tree.arrays.count
    return {line_text(game.tree, node): rng.dirichlet(np.ones(counts[node])) for node in game.tree.decisions.tolist()}


def played(game, drawn, forced="", before="") -> Strategy:
    """Return the strategy that plays the distribution of each line with every hand.

    forced  actions that are played with certainty from the start of the line
    before  prefix that the lines of a subgame lack
    """
    probability, weight = [], []
    for block in range(2 * game.tree.streets):
        starts, buckets = row_starts(game, block), int(game.buckets[block])
        table = np.zeros((buckets, int(starts[-1])))
        for node in np.flatnonzero(game.tree.arrays.block == block).tolist():
            line, slot = before + line_text(game.tree, node), int(game.tree.arrays.slot[node])
            shares = drawn[line]
            labels = [game.tree.label[child] for child in game.tree.children(node)]
            if len(line) < len(forced):
                shares = np.array([label == forced[len(line)] for label in labels], float)
            table[:, slot : slot + len(shares)] = shares
        probability.append(table)
        weight.append(np.ones((buckets, len(starts) - 1)))
    return Strategy(tuple(probability), tuple(weight))


def test_from_the_root_it_is_the_game_itself():
    game, file = build_game(TURN, GAMES), read_endgame(GAMES / "turn.txt")
    found = subgame(game, 0, file.board, file.reach)
    for one, other in zip(found.tree.arrays, game.tree.arrays, strict=True):
        np.testing.assert_array_equal(one, other)
    assert list(found.tree.label) == list(game.tree.label) and found.pot_chips == game.pot_chips
    assert found.big_blind_chips == game.big_blind_chips
    assert not list(found.cards.differences(game.cards))
    for one, other in zip(found.cards.bucket, game.cards.bucket, strict=True):
        np.testing.assert_array_equal(one, other)


def test_values_of_all_rivers_make_the_value_of_the_turn():
    """Compare a turn without bets with the mean over its rivers, weighted by pairs of hands."""
    game, file = build_game(TURN, GAMES), read_endgame(GAMES / "turn.txt")
    drawn = distributions(game, 5)
    whole = evaluate_exact(game, played(game, drawn, forced="cc")).value_chips
    node, total, pairs = find_decision(game.tree, "cc/"), 0.0, 0.0
    for river in [card for card in range(52) if card not in file.board]:
        rest = subgame(game, node, [*file.board, river], file.reach)
        weight = joint_weight(rest.cards)
        total += weight * evaluate_exact(rest, played(rest, drawn, before="cc/")).value_chips
        pairs += weight
    assert total / pairs == pytest.approx(whole, rel=1e-9, abs=1e-9) and abs(whole) > 1


def test_a_part_of_the_tree_is_in_order_and_can_be_packed():
    game = build_game(TURN, GAMES)
    for node in game.tree.decisions.tolist():
        part = subtree(game.tree, node)
        check_order(part)
        pack(part)
        assert put_in_chips(part, 0) == put_in_chips(game.tree, node)
        for block in range(2 * part.streets):
            own = np.flatnonzero(part.arrays.block == block)
            assert sorted(part.arrays.row[own].tolist()) == list(range(len(own)))
            assert part.row_slots[block] == part.arrays.count[own].sum()
        lines = [line_text(part, below) for below in part.decisions.tolist()]
        assert len(set(lines)) == len(lines)


def test_whole_holdem_has_subgames_too():
    game = build_game(FlopHoldemGame(), GAMES)
    board = list(parse_cards("Qs7h2d"))
    ranges = EVERY_HAND * np.random.default_rng(1).random((2, 1))
    found = subgame(game, find_decision(game.tree, "cc/"), board, ranges)
    assert found.tree.streets == 1 and found.cards.boards == 1
    hits = (combo_masks() & np.bitwise_or.reduce(np.uint64(1) << np.array(board, np.uint64))) != 0
    assert (found.cards.reach[:, hits] == 0).all() and (found.cards.reach[:, ~hits] == ranges[:, ~hits]).all()
    assert found.cards.buckets.tolist() == [[1176, 1176]]  # 49 · 48 / 2 hands
    assert evaluate_exact(found, played(found, distributions(found, 0))).exploitability_chips > 0


TURN_GAME, BOARD = build_game(TURN, GAMES), read_endgame(GAMES / "turn.txt").board
test_refusals = refusals(
    ("leduc is not a hold'em game", subgame, LEDUC, 0, [], EVERY_HAND),
    ("before the flop", lambda: subgame(build_game(FlopHoldemGame(), GAMES), 0, [], EVERY_HAND)),
    ("is not one of the tree's decisions", subgame, TURN_GAME, len(TURN_GAME.tree.parent), BOARD, EVERY_HAND),
    ("board", subgame, TURN_GAME, 0, BOARD[:3], EVERY_HAND),
    ("board", subgame, TURN_GAME, 0, [0, 0, 1, 2], EVERY_HAND),
    ("ranges of shape", subgame, TURN_GAME, 0, BOARD, EVERY_HAND[:1]),
    ("at least 0", subgame, TURN_GAME, 0, BOARD, -EVERY_HAND),
    ("no hand that is possible on the board", subgame, TURN_GAME, 0, BOARD, 0 * EVERY_HAND),
    ("board", subgame, TURN_GAME, int(TURN_GAME.tree.decisions[-1]), BOARD, EVERY_HAND),
)
