"""Hold'em endgames from files: trees, cards and refusals."""

from pathlib import Path

import numpy as np
import pytest
from places import ENDGAMES, RUNS

from abstraction.cards import card_mask, combo_index, combo_masks, parse_cards
from abstraction.hand_evaluator import strength
from mccfr.cards.card_lists import deal_arrays
from mccfr.config.game_tables import HoldemSubgame, KuhnGame, Menu
from mccfr.games.holdem_subgame import holdem_subgame
from mccfr.games.libratus import read_endgame
from mccfr.games.registry import build_game, game_files

GAMES = RUNS / "games"
needs_libratus = pytest.mark.skipif(not ENDGAMES.is_dir(), reason="the Libratus endgames are not on this machine")


def subgame(name: str, base: Path = GAMES, **settings):
    return holdem_subgame(HoldemSubgame(file=name, **settings), base)


@needs_libratus
@pytest.mark.parametrize(
    ("name", "nodes", "decisions", "infosets"),
    [
        ("subgame1.txt", 801, [32, 256], [4_888_512, 5_697_360]),
        ("subgame2.txt", 209, [16, 64], [1_265_400, 599_400]),
        ("subgame3.txt", 93, [32], [16_528, 16_944]),
        ("subgame4.txt", 57, [20], [7_050, 9_820]),
    ],
)
def test_counts_of_the_libratus_endgames(name, nodes, decisions, infosets):
    counts = subgame(name, ENDGAMES).counts()
    assert counts["nodes"] == nodes
    assert counts["decision_nodes_per_street"] == decisions
    assert counts["infosets_per_player"] == infosets


def test_counts_of_our_own_endgames():
    assert subgame("river.txt").counts() == {
        "nodes": 93,
        "chance_nodes": 0,
        "decision_nodes": 32,
        "decision_nodes_per_street": [32],
        "actions_per_street": [92],
        "infosets": 15_440,
        "infosets_per_player": [7_360, 8_080],
    }
    assert subgame("turn.txt").counts() == {
        "nodes": 457,
        "chance_nodes": 0,
        "decision_nodes": 168,
        "decision_nodes_per_street": [24, 144],
        "actions_per_street": [68, 388],
        "infosets": 614_940,
        "infosets_per_player": [275_892, 339_048],
    }


def test_cards_of_a_turn():
    game, endgame = subgame("turn.txt"), read_endgame(GAMES / "turn.txt")
    cards, board = game.cards, endgame.board
    assert cards.board_cards[0].tolist() == [list(board)]
    rivers = cards.board_cards[1][:, -1].tolist()
    assert rivers == sorted(set(range(52)) - set(board))
    assert np.array_equal(cards.reach, endgame.reach)
    assert cards.hand_names[combo_index(*parse_cards("KhAs"))] == "AsKh"
    generator = np.random.default_rng(1)
    for b in generator.choice(48, 5, replace=False):
        full = (*board, rivers[b])
        hits = (combo_masks() & np.uint64(card_mask(full))) != 0
        assert np.array_equal(cards.strength[b] == -1, hits)
        hand = generator.choice(np.flatnonzero(~hits))
        assert cards.strength[b][hand] == strength([*map(int, cards.hand_cards[hand]), *full])
        for player in range(2):
            assert np.array_equal(cards.bucket[1][player, b] >= 0, ~hits & (cards.reach[player] > 0))
    for street in range(2):
        for player in range(2):
            numbers = cards.bucket[street][player][cards.bucket[street][player] >= 0]
            assert np.array_equal(numbers, np.arange(cards.buckets[street, player]))
    assert deal_arrays(cards).children.tolist() == [1, 48]


def test_money_of_a_river():
    """Pot 600: checks win 300; half pot, pot and all-in are raises to 600, 900 and 20,000."""
    game = subgame("river.txt")
    labels = [game.tree.label[child] for child in game.tree.children(0)]
    assert labels == ["c", "r600", "r900", "r20000"]
    fold = game.tree.children(game.tree.children(0)[1])[0]
    assert game.tree.label[fold] == "f"
    assert game.tree.arrays.fixed[fold] == 300
    assert game.tree.arrays.showdown.max() == 20_000
    assert (game.big_blind_chips, game.pot_chips, game.offset_chips) == (100, 600, 0)
    short = subgame("river.txt", stack=800, menu=Menu(first=("1p",), later=("1p",)))
    assert [short.tree.label[child] for child in short.tree.children(0)] == ["c"]


def test_a_turn_acts_out_of_position_first_and_runs_out():
    tree = subgame("turn.txt").tree
    assert tree.arrays.player[0] == 0
    river = next(n for n in tree.decisions if tree.arrays.block[n] // 2 == 1)
    assert tree.arrays.player[river] == 0
    assert tree.arrays.touched[river] == 2
    deepest = tree.children(tree.children(0)[-1])[1]
    assert (tree.label[deepest], tree.arrays.showdown[deepest], tree.arrays.touched[deepest]) == ("c", 20_000, 2)


def test_the_file_is_part_of_what_a_run_depends_on():
    config = HoldemSubgame(file="games/river.txt")
    assert game_files(config, RUNS) == {"file": GAMES / "river.txt"}
    assert game_files(KuhnGame(), RUNS) == {}
    assert build_game(config, RUNS).name == "holdem-subgame"
