"""Purified and thresholded strategies in evaluations, exports and play.

Shows:

* Purified and thresholded strategies are the same in evaluations, exports and play
  (test_evaluation_export_and_play_use_the_same_strategy,
  test_a_match_plays_purified_and_thresholded_strategies)
* If several actions are most likely, purification takes a fold last
  (test_purification_takes_an_equally_likely_fold_last)
"""

import numpy as np
import pytest
from commands import call, refusal
from policies import document, write_random
from refusals import refused
from small_games import game_of
from strategies import partly_reached_strategy, random_strategy

from mccfr.config.game_tables import LeducGame
from mccfr.matches.match import Contender, Match
from mccfr.play.policy_seat import PolicySpec, Seat
from mccfr.policy import Policy, Profile, write_policy
from mccfr.tables.purification import simpler_rows, simplified

MANNERS = [{"purify": True}, {"threshold": 0.25}, {"purify": True, "threshold": 0.25}]


def naive_row(row, labels, purify=False, threshold=0.0):
    """Return a row after thresholding and purification."""
    above = [share if share >= threshold else 0.0 for share in row]
    row = [share / sum(above) for share in above] if sum(above) else list(row)
    if not purify:
        return row
    likeliest = [action for action, share in enumerate(row) if share == max(row)]
    chosen = next((action for action in likeliest if labels[action] != "f"), likeliest[0])
    return [float(action == chosen) for action in range(len(row))]


@pytest.mark.parametrize("manner", MANNERS, ids=str)
def test_evaluation_export_and_play_use_the_same_strategy(tmp_path, manner):
    """Rows that were never reached are also compared: purification takes the first non-fold."""
    policy = Policy.open(write_random(tmp_path / "policy", LeducGame()))
    game, tree = policy.game, policy.game.tree
    found = simplified(game, policy.strategy(), **manner)
    write_policy(tmp_path / "exported", game, document(LeducGame()), found, provenance={"checkpoint": 0})
    seat, profile, exported = Seat(policy, **manner), Profile(game, found), Policy.open(tmp_path / "exported")
    changed = never = 0
    for node in tree.decisions.tolist():
        buckets = np.arange(int(game.buckets[int(tree.arrays.block[node])]))
        labels, plain = [tree.label[child] for child in tree.children(node)], policy.rows(node, buckets)[0]
        wanted = np.array([naive_row(row, labels, **manner) for row in plain])
        assert np.allclose(profile.rows(node, buckets)[0], wanted, atol=1e-15)
        assert np.allclose(seat.played(node, buckets), wanted, atol=1e-15)
        assert np.allclose(exported.rows(node, buckets)[0], wanted, atol=1e-4)
        changed += int((np.abs(wanted - plain) > 1e-9).any(axis=1).sum())
        never += sum(labels[0] == "f" and policy.weight(node, bucket) == 0 for bucket in buckets)
    assert changed > 100 and never > 10


def test_purification_takes_an_equally_likely_fold_last():
    """Check rows with and without a fold as first action; an impossible hand keeps zeros."""
    rows = np.array([[0.4, 0.4, 0.2], [0.5, 0.25, 0.25], [0.2, 0.4, 0.4], [1 / 3] * 3, [0, 0, 0]])
    for folds, wanted in ((True, [1, 0, 1, 1]), (False, [0, 0, 1, 0])):
        both = simpler_rows(np.tile(rows, 2), np.array([0, 3, 6]), np.array([folds, False]), True, 0)
        assert both[:4, :3].argmax(axis=1).tolist() == wanted
        assert both[:4, 3:].argmax(axis=1).tolist() == [0, 0, 1, 0]
        assert both.sum(axis=1).tolist() == [2, 2, 2, 2, 0]


@pytest.mark.parametrize("manner", MANNERS, ids=str)
def test_a_match_plays_purified_and_thresholded_strategies(manner):
    """A match with options has the same results, hand by hand, as one of the simplified strategy.

    The results of the unchanged strategy differ.
    """
    game = game_of("leduc")
    a, b = random_strategy(game, 1), random_strategy(game, 2)

    def pairs(*strategies_and_manners):
        players = [
            Contender("policy", PolicySpec(Profile(game, strategy), **options), Profile(game, plain))
            for plain, (strategy, options) in zip((a, b), strategies_and_manners, strict=True)
        ]
        table = Match(players, 3)
        return np.array([table.play(unit) for unit in range(25)])

    by_options, by_strategy = pairs((a, manner), (b, {})), pairs((simplified(game, a, **manner), {}), (b, {}))
    assert np.allclose(by_options, by_strategy, atol=1e-9)
    assert not np.allclose(by_options, pairs((a, {}), (b, {})), atol=1e-9)


def test_without_options_the_strategy_does_not_change():
    game = game_of("kuhn")
    strategy = partly_reached_strategy(game)
    assert simplified(game, strategy) is strategy
    refused("threshold = 2: it must be between 0 and 1", simplified, game, strategy, threshold=2)


def test_a_policy_can_be_exported_purified_or_with_values(capsys, tmp_path):
    (tmp_path / "kuhn.toml").write_text('[game]\nname = "kuhn"\n')
    solve = "solve", tmp_path / "kuhn.toml", "--run", tmp_path / "kuhn", "--iterations", 500, "--workers", 0
    assert call(capsys, *solve).status == 0
    assert call(capsys, "export", tmp_path / "kuhn", tmp_path / "pure", "--purify").status == 0
    pure = Policy.open(tmp_path / "pure")
    assert pure.meta["provenance"]["purify"] is True
    assert all(np.isin(table, (0, 1)).all() for table in pure.strategy().probability)
    assert call(capsys, "export", tmp_path / "kuhn", tmp_path / "valued", "--values").status == 0
    valued = Policy.open(tmp_path / "valued")
    assert valued.meta["values"]["bound"] == "exact" and valued.values(0, 1).shape == (3,)
    for form in ("csv", "zarr"):
        message = refusal(capsys, "export", tmp_path / "kuhn", tmp_path / "rows", "--format", form, "--values")
        assert f"{form} has no place for values: export a policy" in message
    message = refusal(capsys, "export", tmp_path / "kuhn", tmp_path / "tables", "--format", "zarr", "--purify")
    assert "zarr holds the run's tables as they are" in message
