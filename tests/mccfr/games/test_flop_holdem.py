"""Hold'em that ends on the flop: lossless cards, listed boards, exact solutions."""

from pathlib import Path

import numpy as np
import pytest
from commands import answer, command
from places import RUNS
from refusals import refused

from abstraction.hand_evaluator import strength
from mccfr.config.game_tables import FlopHoldemGame
from mccfr.config.run_tables import AbstractionConfig
from mccfr.games.holdem import flop_holdem
from mccfr.runs.directory.run import open_run
from mccfr.runs.directory.verification import problems_of


def test_flop_holdem_is_lossless_without_an_abstraction():
    game = flop_holdem(FlopHoldemGame(), None, Path())
    assert game.buckets.tolist() == [169, 169, 1286792, 1286792]
    row = game.cards.bucket_row(1, 0, [0, 1, 2])
    assert len(np.unique(row[row >= 0])) < (row >= 0).sum()  # 2c 2d 2h: suits of the deck are alike
    five = flop_holdem(
        FlopHoldemGame(board_cards=5), AbstractionConfig("no", str(RUNS / "abstractions/quick.toml")), Path()
    )
    assert five.buckets.tolist() == [169, 169, 200, 200] and five.cards.board_cards == (0, 5)


def test_5_flop_holdem_needs_no_abstraction():
    """The size is that of the paper's game, and no table is made to say so."""
    paper = FlopHoldemGame(bet="pot", limp=False, max_raises=[1, 2], board_cards=5)
    game = flop_holdem(paper, None, Path())
    assert game.buckets.tolist() == [169, 169, 123156254, 123156254]
    assert game.infosets.tolist() == [169, 169, 3 * 123156254, 3 * 123156254]
    refused("boards of 5 cards are too many", game.cards.listed)


def test_listed_flops_are_those_of_the_deck():
    """Compare every listed flop's buckets and strengths with the deck's; five board cards are refused."""
    deck = flop_holdem(FlopHoldemGame(), None, Path()).cards
    cards = deck.listed()
    assert [len(boards) for boards in cards.board_cards] == [1, 22_100]
    for board in (0, 7_777, 22_099):
        known = cards.board_cards[1][board].tolist()
        assert np.array_equal(cards.bucket[1][0, board], deck.bucket_row(1, 0, known))
        for combo in (3, 500, 1325):
            hand = cards.hand_cards[combo].tolist()
            wanted = -1 if set(hand) & set(known) else strength([*hand, *known])
            assert cards.strength[board, combo] == wanted
    five = FlopHoldemGame(board_cards=5)
    whole = flop_holdem(five, AbstractionConfig("no", str(RUNS / "abstractions/quick.toml")), Path()).cards
    refused("boards of 5 cards are too many", whole.listed)


@pytest.mark.parametrize("board_cards", [3, 5])
def test_flop_holdem_runs_by_public_chance_sampling_and_head_to_head(
    tmp_path, slot_abstractions, tables_read_once, capsys, board_cards
):
    """Solve and evaluate with three and with five board cards; the result is far above uniform play."""
    config = tmp_path / "flop.toml"
    config.write_text(
        f'[game]\nname = "flop-holdem"\nmax_raises = 1\nboard_cards = {board_cards}\n'
        f'[abstraction]\npath = "{slot_abstractions[1]}"\n[run]\nworkers = 0\nnodes = 300_000\n'
        '[evaluation]\nmethod = "head-to-head"\nboards = 20\n'
        f'[solver]\nalgorithm = "public-chance-sampling"\n[export]\nout = "{tmp_path / "policy"}"\n'
    )
    assert command("solve", config, "--run", tmp_path / "run", "--iterations", 400) == 0
    assert problems_of(tmp_path / "run") == problems_of(tmp_path / "policy") == []
    last = open_run(tmp_path / "run").read("evaluations.jsonl")[-1]
    assert last["boards"] == 20 and last["ci95_chips"][0] > 0
    capsys.readouterr()
    options = ("--method", "head-to-head", "--boards", 40, "--seed", 7, "--json")
    assert answer(capsys, "evaluate", tmp_path / "policy", *options)["ci95_chips"][0] > 0
