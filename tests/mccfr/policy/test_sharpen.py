"""Purified and thresholded strategies are those that seats with the same options play."""

import numpy as np
import pytest
from commands import call
from policies import write_random
from small_games import game_of
from strategies import partly_reached_strategy, random_strategy

from mccfr.config.tables import KuhnGame, LeducGame
from mccfr.evaluation.head_to_head import head_to_head
from mccfr.evaluation.match import Contender, Match
from mccfr.evaluation.side import Side
from mccfr.games.catalogue import build_game
from mccfr.play.seat import PolicySpec, Seat
from mccfr.policy import Policy, StrategySource
from mccfr.policy.sharpen import sharpened
from mccfr.runs.results import open_target

MANNERS = [{"purify": True}, {"threshold": 0.25}, {"purify": True, "threshold": 0.25}]


@pytest.mark.parametrize("manner", MANNERS, ids=str)
def test_every_row_is_what_a_seat_plays(tmp_path, manner):
    policy = Policy.open(write_random(tmp_path / "policy", LeducGame()))
    seat, made = (
        Seat(policy, **manner),
        StrategySource(policy.game, sharpened(policy.game, policy.strategy(), **manner)),
    )
    changed = 0
    for node in policy.game.tree.decisions.tolist():
        block = int(policy.game.tree.arrays.block[node])
        buckets = np.arange(int(policy.game.buckets[block]))
        reached = np.array([policy.weight(node, bucket) > 0 for bucket in buckets])
        found, plain = made.range_probabilities(node, buckets), policy.range_probabilities(node, buckets)
        assert np.allclose(found[reached], seat.played(node, buckets)[reached], atol=1e-15)
        assert np.allclose(found[~reached], plain[~reached], atol=1e-15), "a row that was never reached stays uniform"
        changed += int((np.abs(found - plain) > 1e-9).any(axis=1).sum())
    assert changed > 100


@pytest.mark.parametrize("manner", MANNERS, ids=str)
def test_a_match_plays_what_it_is_told_to(manner):
    """Hand for hand what the strategy that is so wins, in all three figures; and not what the plain one wins."""
    game = game_of("leduc")
    a, b = random_strategy(game, 1), random_strategy(game, 2)

    def pairs(*strategies_and_manners):
        players = [
            Contender("policy", PolicySpec(StrategySource(game, strategy), **options), Side(game, plain))
            for plain, (strategy, options) in zip((a, b), strategies_and_manners, strict=True)
        ]
        table = Match(players, 3)
        return np.array([table.play(unit) for unit in range(25)])

    told, made = pairs((a, manner), (b, {})), pairs((sharpened(game, a, **manner), {}), (b, {}))
    assert np.allclose(told, made, atol=1e-9)
    assert not np.allclose(told, pairs((a, {}), (b, {})), atol=1e-9)


def test_nothing_asked_for_is_nothing_done():
    game = game_of("kuhn")
    strategy = partly_reached_strategy(game)
    assert sharpened(game, strategy) is strategy
    with pytest.raises(ValueError, match="threshold = 2: it must be between 0 and 1"):
        sharpened(game, strategy, threshold=2)


def test_an_export_says_what_it_costs(capsys, tmp_path):
    """Head-to-head where cards are dealt, and exploitability elsewhere; nothing where nothing was asked for."""
    for name in ("kuhn", "goofspiel"):
        (tmp_path / f"{name}.toml").write_text(f'[game]\nname = "{name}"\n' + "cards = 3\n" * (name == "goofspiel"))
        solve = "solve", tmp_path / f"{name}.toml", "--run", tmp_path / name, "--iterations", 500, "--workers", 0
        assert call(capsys, *solve).status == 0
    run, game = tmp_path / "kuhn", build_game(KuhnGame(), None)
    assert "loses" not in call(capsys, "export", run, tmp_path / "plain").err
    said = call(capsys, "export", run, tmp_path / "eighth", "--quantise", "uint8").err
    exact, eighth = open_target(run), Policy.open(tmp_path / "eighth")
    lost = head_to_head(Side(game, exact.strategy), Side(game, eighth.strategy()), 10).mean_chips
    assert f"as exported it loses {lost:+.3g} chips a hand to the average as it is, exactly" in said
    assert "loses" in call(capsys, "export", run, tmp_path / "pure", "--purify").err
    pure = Policy.open(tmp_path / "pure")
    assert pure.meta["provenance"]["purify"] is True
    assert all(np.isin(table, (0, 1)).all() for table in pure.strategy().probability)
    said = call(capsys, "export", tmp_path / "goofspiel", tmp_path / "bids", "--threshold", 0.2).err
    assert "exploitability" in said and "chips as exported" in said
    assert call(capsys, "export", run, tmp_path / "valued", "--values").status == 0
    valued = Policy.open(tmp_path / "valued")
    assert valued.meta["values"]["bound"] == "exact" and valued.values(0, 1).shape == (3,)
    ended = call(capsys, "export", run, tmp_path / "rows.csv", "--format", "csv", "--values")
    assert ended.status == 2 and "csv has no place for values: export a policy" in ended.err
    ended = call(capsys, "export", run, tmp_path / "tables", "--format", "zarr", "--values")
    assert ended.status == 2 and "zarr has no place for values: export a policy" in ended.err
    ended = call(capsys, "export", run, tmp_path / "tables", "--format", "zarr", "--purify")
    assert ended.status == 2 and "zarr holds the run's tables as they are" in ended.err
