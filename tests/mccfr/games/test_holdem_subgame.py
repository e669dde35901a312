"""Hold'em endgames from files: trees, cards, buckets that share rows, evaluation in the full game."""

from pathlib import Path

import numpy as np
import pytest
from commands import command
from places import ENDGAMES, RUNS
from small_games import Labels

from abstraction.cards import card_mask, combo_index, combo_masks, parse_cards
from abstraction.hand_evaluator import strength
from abstraction.strength import hand_strength
from mccfr.api.evaluating import evaluate_target
from mccfr.cards.card_lists import deal_arrays
from mccfr.config.game_tables import HoldemSubgame, KuhnGame, Menu
from mccfr.config.toml_files import config_from
from mccfr.evaluation.exact import evaluate_exact
from mccfr.games.bucketed import bucketed
from mccfr.games.holdem_subgame import holdem_subgame
from mccfr.games.libratus import read_endgame
from mccfr.games.registry import build_game, game_files
from mccfr.runs.directory.run import identity_document
from mccfr.tables.strategy import uniform_strategy

GAMES = RUNS / "games"


def subgame(name: str, base: Path = GAMES, **settings):
    return holdem_subgame(HoldemSubgame(file=name, **settings), base)


@pytest.mark.parametrize(
    ("path", "nodes", "decisions", "infosets"),
    [
        (ENDGAMES / "subgame1.txt", 801, [32, 256], [4_888_512, 5_697_360]),
        (ENDGAMES / "subgame2.txt", 209, [16, 64], [1_265_400, 599_400]),
        (ENDGAMES / "subgame3.txt", 93, [32], [16_528, 16_944]),
        (ENDGAMES / "subgame4.txt", 57, [20], [7_050, 9_820]),
        (GAMES / "river.txt", 93, [32], [7_360, 8_080]),
        (GAMES / "turn.txt", 457, [24, 144], [275_892, 339_048]),
    ],
)
def test_counts_of_endgames(path, nodes, decisions, infosets):
    if not path.exists():
        pytest.skip("the Libratus endgames are not on this machine")
    counts = subgame(str(path)).counts()
    assert (counts["nodes"], counts["chance_nodes"], counts["decision_nodes"]) == (nodes, 0, sum(decisions))
    assert (counts["decision_nodes_per_street"], sum(counts["actions_per_street"])) == (decisions, nodes - 1)
    assert (counts["infosets_per_player"], counts["infosets"]) == (infosets, sum(infosets))


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


def test_bet_sizes_and_payoffs_of_a_river():
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


def test_a_turn_starts_out_of_position_and_deals_the_river_after_an_all_in():
    tree = subgame("turn.txt").tree
    assert tree.arrays.player[0] == 0
    river = next(n for n in tree.decisions if tree.arrays.block[n] // 2 == 1)
    assert tree.arrays.player[river] == 0
    assert tree.arrays.touched[river] == 2
    deepest = tree.children(tree.children(0)[-1])[1]
    assert (tree.label[deepest], tree.arrays.showdown[deepest], tree.arrays.touched[deepest]) == ("c", 20_000, 2)


def test_the_endgame_file_is_an_input_of_the_run():
    config = HoldemSubgame(file="games/river.txt")
    assert game_files(config, RUNS) == {"file": GAMES / "river.txt"}
    assert game_files(KuhnGame(), RUNS) == {}
    assert build_game(config, RUNS).name == "holdem-subgame"


RIVER = HoldemSubgame(file="games/river.txt")


def test_one_bucket_for_each_slot_is_the_lossless_game():
    game = build_game(RIVER, RUNS)
    same = bucketed(game, Labels(np.arange(1326)))
    assert same.infosets.tolist() == game.infosets.tolist()
    assert evaluate_exact(same, uniform_strategy(same)).exploitability_mbb == pytest.approx(
        evaluate_exact(game, uniform_strategy(game)).exploitability_mbb, rel=1e-12
    )


@pytest.mark.parametrize("file", ["games/river.txt", "games/turn.txt"])
def test_hands_of_a_bucket_share_an_infoset_and_no_bucket_is_empty(file):
    game = build_game(HoldemSubgame(file=file), RUNS)
    shared = bucketed(game, Labels(np.arange(1326) % 40))
    for lossless, numbers, counts in zip(game.cards.bucket, shared.cards.bucket, shared.cards.buckets, strict=True):
        assert np.array_equal(lossless < 0, numbers < 0)
        for player in range(2):
            live = numbers[player][numbers[player] >= 0]
            assert np.array_equal(np.unique(live), np.arange(counts[player]))
            assert counts[player] <= 40
    # Boards share rows too. Uniform play does not depend on buckets, so its exploitability is equal.
    assert evaluate_exact(shared, uniform_strategy(shared)).exploitability_mbb == pytest.approx(
        evaluate_exact(game, uniform_strategy(game)).exploitability_mbb, rel=1e-9
    )


def solved(tmp_path, abstraction):
    config = tmp_path / "endgame.toml"
    config.write_text(
        f'[game]\nname = "holdem-subgame"\nfile = "{RUNS / "games/river.txt"}"\n'
        f'[abstraction]\npath = "{abstraction}"\n[run]\nworkers = 0\nnodes = 3_000_000\n'
    )
    return command("solve", config, "--run", tmp_path / "run")


def test_a_run_on_buckets_is_evaluated_in_the_full_game_and_refuses_other_buckets(tmp_path, slot_abstractions, capsys):
    assert solved(tmp_path, slot_abstractions[0]) == 0
    record = evaluate_target(tmp_path / "run", "exact", None)
    uniform = build_game(RIVER, RUNS)
    worst = evaluate_exact(uniform, uniform_strategy(uniform)).exploitability_mbb
    # Ten buckets of arbitrary hands: much better than uniform play, far from the endgame's equilibrium.
    assert 1_000 < record["exploitability_mbb"] < worst / 3
    assert solved(tmp_path, slot_abstractions[1]) == 2
    assert "abstraction.river" in capsys.readouterr().err
    document = {"game": {"name": "holdem-subgame", "file": "games/river.txt"}}
    plain = identity_document(config_from(document, "test"), RUNS)
    assert "abstraction" not in plain


def test_strength_command_agrees_with_the_function(capsys):
    assert command("abstraction", "strength", "--hand", "AsKd", "--board", "Qs7h2d", "--json") == 0
    assert str(hand_strength("AsKd", "Qs7h2d")["wins2_sum"]) in capsys.readouterr().out
    assert command("abstraction", "strength", "--hand", "AsAs") == 2
