"""Endgames on card buckets: shared rows, real-game evaluation, the abstraction in a run's identity."""

import numpy as np
import pytest
from commands import command
from places import RUNS
from small_games import Labels

from abstraction.strength import hand_strength
from mccfr.api.evaluating import evaluate_target
from mccfr.config.game_tables import HoldemSubgame
from mccfr.config.toml_files import config_from
from mccfr.evaluation.exact import evaluate_exact
from mccfr.games.bucketed import bucketed
from mccfr.games.registry import build_game
from mccfr.runs.directory.run import identity_document
from mccfr.tables.strategy import uniform_strategy

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
    # Rows are shared across boards too; uniform play is the same play, and so is its value.
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


def test_a_run_on_buckets_is_measured_in_the_real_game_and_on_others_is_another(tmp_path, slot_abstractions, capsys):
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
