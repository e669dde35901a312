"""Policies on disk: quantisation, round trips, damage, and refused input."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from places import ROOT, RUNS
from policies import document
from refusals import refusals, refused
from strategies import partly_reached_strategy, tabulate

from mccfr.config.game_tables import GoofspielGame, HoldemSubgame, KuhnGame, LeducGame
from mccfr.evaluation.exact import evaluate_exact
from mccfr.games.registry import build_game
from mccfr.policy import Policy, Profile, verify_policy, write_policy
from mccfr.policy import writer as policy_writing
from mccfr.policy.policy_layout import FORMAT_VERSION
from mccfr.policy.quantise import TOTALS, quantise
from mccfr.tables.strategy import BlockRows, Strategy, row_starts, uniform_strategy
from storage.damage import DamagedError
from storage.manifest import read_manifest, write_manifest


@pytest.fixture(scope="module")
def leduc():
    game = build_game(LeducGame(), ROOT)
    return game, partly_reached_strategy(game)


def write(out, game_and_strategy, config=None, **settings):
    game, strategy = game_and_strategy
    settings.setdefault("provenance", {"checkpoint": 3})
    write_policy(out, game, document(config or LeducGame()), strategy, **settings)
    return out


# Quantisation ---------------------------------------------------------------------------------------------------------


def largest_remainders(row, total):
    """Return a row quantised by Hamilton's method in exact fractions; ties go to the first."""
    whole = sum(map(Fraction, row))
    shares = [Fraction(p) / whole * total for p in row]
    out = [int(share) for share in shares]
    for chosen in sorted(range(len(row)), key=lambda i: out[i] - shares[i])[: total - sum(out)]:
        out[chosen] += 1
    return out


@settings(max_examples=200, deadline=None)
@given(st.lists(st.integers(0, 1000), min_size=1, max_size=9).filter(any), st.sampled_from(["uint8", "uint16"]))
def test_quantisation_uses_largest_remainders(sums, dtype):
    row = np.array(sums) / sum(sums)
    found = quantise(row[None, :], np.array([0, len(sums)]), dtype)[0].astype(int)
    total = TOTALS[dtype]
    assert found.sum() == total
    assert np.all(found[row == 0] == 0)
    assert np.abs(found / total - row).max() < 1 / total
    exact = [s * total for s in sums]
    if len({share % sum(sums) for share in exact}) == len(sums):  # without ties the result is unique
        assert found.tolist() == largest_remainders(sums, total)


@pytest.mark.parametrize("row", [[1.0], [0, 0, 1], [1e-300, 1 - 1e-16], [1 / 3] * 3, [0.1] * 10, [1 - 2**-53, 2**-53]])
@pytest.mark.parametrize("dtype", ["uint8", "uint16"])
def test_extreme_rows_keep_their_sum(row, dtype):
    found = quantise(np.array([row]), np.array([0, len(row)]), dtype)
    assert int(found.sum(dtype=int)) == TOTALS[dtype]
    assert np.abs(found / TOTALS[dtype] - row).max() < 1 / TOTALS[dtype]


test_rows_that_are_no_probabilities_are_refused = refusals(
    *(
        ("every row must sum to 1", quantise, np.array([row], float), np.array([0, 2]), "uint16")
        for row in ([0.5, 0.4], [-0.1, 1.1], [np.nan, 1], [np.inf, 0], [0, 0])
    )
)


def test_rows_without_weight_are_exactly_uniform():
    shares = quantise(np.full((1, 5), [0.5, 0.5, 1 / 3, 1 / 3, 1 / 3]), np.array([0, 2, 5]), "uint8")
    assert shares.tolist() == [[128, 127, 85, 85, 85]]
    found = BlockRows(shares, np.zeros((1, 2), np.float32)).probabilities(np.array([0, 2, 5]))
    assert found.tolist() == [[0.5, 0.5, 1 / 3, 1 / 3, 1 / 3]]


# Round trips ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["uint8", "uint16"])
def test_policy_reads_back_within_the_error_of_its_quantisation(leduc, tmp_path, dtype):
    game, strategy = leduc
    policy = Policy.open(write(tmp_path / "policy", leduc, quantise=dtype))
    assert verify_policy(policy.path) == []
    again = policy.strategy()
    for block in range(4):
        given, found = strategy.probability[block], again.probability[block]
        assert np.abs(given - found).max() < 1 / TOTALS[dtype]
        assert np.all(found[given == 0] == 0)
        assert np.allclose(np.add.reduceat(found, row_starts(game, block)[:-1], axis=1), 1, atol=1e-12)
        assert np.array_equal(again.weight[block] == 0, strategy.weight[block] == 0)
        assert (strategy.weight[block] == 0).any()
        assert np.allclose(again.weight[block], strategy.weight[block], rtol=1e-7)


@pytest.mark.parametrize("check", [True, False])
def test_look_ups_agree_with_the_whole_strategy(leduc, tmp_path, check):
    """Look up single rows, and rows of many buckets at once."""
    policy = Policy.open(write(tmp_path / "policy", leduc), check=check)
    whole = Profile(policy.game, policy.strategy())
    for node in policy.game.tree.decisions.tolist():
        buckets = np.arange(-1, int(policy.game.buckets[policy.game.tree.arrays.block[node]]))
        found, weight = policy.rows(node, buckets)
        assert not found[0].any() and weight[0] == 0
        for bucket in buckets[1:].tolist():
            expected = whole.probabilities(node, bucket)
            assert np.array_equal(policy.probabilities(node, bucket), expected)
            assert np.array_equal(found[bucket + 1], expected)
            assert policy.weight(node, bucket) == weight[bucket + 1] == whole.weight(node, bucket)
    for node, bucket in ((-1, 0), (10**6, 0), (int(np.flatnonzero(policy.game.tree.arrays.kind)[0]), 0)):
        refused("not one of the tree's decisions", policy.probabilities, node, bucket)
    for bucket in (-1, 6):
        refused("buckets 0 to 5", policy.probabilities, 0, bucket)
    refused("has buckets 0 to 5", policy.rows, 0, np.array([0, 6]))


@pytest.mark.parametrize(
    "config",
    [KuhnGame(), LeducGame(merge_suits=True), HoldemSubgame(file="games/turn.txt"), GoofspielGame(cards=3)],
    ids=lambda config: type(config).__name__,
)
def test_game_is_rebuilt_from_the_directory_alone(tmp_path, config):
    game = build_game(config, RUNS)
    strategy = partly_reached_strategy(game, 1)
    policy = Policy.open(write(tmp_path / "policy", (game, strategy), config))
    found = policy.game
    for name, array in game.tree.arrays._asdict().items():
        again = getattr(found.tree.arrays, name)
        assert np.array_equal(again, array)
        assert again.dtype == array.dtype
        assert again.flags.writeable  # read-only arrays would compile every kernel a second time
    assert list(found.tree.label) == list(game.tree.label)
    assert np.array_equal(found.tree.parent, game.tree.parent)
    assert (found.name, found.pot_chips, found.big_blind_chips, found.offset_chips) == (
        game.name,
        game.pot_chips,
        game.big_blind_chips,
        game.offset_chips,
    )
    assert found.counts() == game.counts()
    assert found.tree.infoset_names == (None if game.tree.infoset_names is None else tuple(game.tree.infoset_names))
    if config != HoldemSubgame(file="games/turn.txt"):
        exact, quantised = (evaluate_exact(g, s) for g, s in ((game, strategy), (found, policy.strategy())))
        assert quantised.exploitability_chips == pytest.approx(exact.exploitability_chips, abs=1e-3)
    else:
        for street in range(2):
            assert np.array_equal(found.cards.bucket[street], game.cards.bucket[street])
            assert np.array_equal(found.cards.board_cards[street], game.cards.board_cards[street])
        assert np.array_equal(found.cards.strength, game.cards.strength)
        assert np.array_equal(found.cards.reach, game.cards.reach)


def test_metadata_states_the_origin_of_the_policy(leduc, tmp_path):
    origin = {"content_hash": "cd", "streets": {"river": {"content_hash": "e", "buckets": 9, "recipe": {"seed": 1}}}}
    out = write(tmp_path / "policy", leduc, provenance={"checkpoint": 7, "run": {"hash": "ab"}}, abstraction=origin)
    meta = read_manifest(out / "meta.json", "policy", FORMAT_VERSION)
    assert meta["provenance"] == {"checkpoint": 7, "run": {"hash": "ab"}}
    assert meta["abstraction"] == origin
    assert [table["impossible"] for table in meta["bucket_tables"]] == [255, 255]
    assert meta["game"]["bets"] == [[2], [4]]
    assert meta["quantisation"]["dtype"] == "uint16"
    assert set(meta["files"]) == {path.name for path in out.iterdir()} - {"meta.json"}


def test_extreme_weights_stay_positive_and_finite(leduc, tmp_path):
    game, strategy = leduc
    weight = [w.copy() for w in strategy.weight]
    weight[0][:2, 0] = 1e-300, 1e300
    found = Policy.open(write(tmp_path / "p", (game, Strategy(strategy.probability, tuple(weight))))).strategy()
    assert 0 < found.weight[0][0, 0] < 1e-30
    assert 1e38 < found.weight[0][1, 0] < np.inf


# Damage ---------------------------------------------------------------------------------------------------------------


def test_a_damaged_row_is_refused(leduc, tmp_path):
    out = write(tmp_path / "policy", leduc)
    path = out / "probability_street0_player0.npy"
    shares = np.load(path)
    bucket = int(np.argmax(leduc[1].weight[0][:, 0] > 0))
    shares[bucket, 0] ^= 1
    np.save(path, shares)
    refused(f"{path.name} has checksum", Policy.open, out, error=OSError)
    policy = Policy.open(out, check=False)
    for look_up in (policy.probabilities, policy.weight):
        refused(f"{path.name}: the rows from 0 on have checksum", look_up, 0, bucket, error=OSError)
    refused(f"{path.name}: the rows from 0 on have checksum", policy.strategy, error=OSError)


def test_a_wrong_row_with_matching_checksums_is_refused(leduc, tmp_path, monkeypatch):
    original = policy_writing._table_arrays

    def less(*given):
        return {name: array - (array > 9).astype(array.dtype) for name, array in original(*given).items()}

    monkeypatch.setattr(policy_writing, "_table_arrays", less)
    out = write(tmp_path / "policy", leduc)
    assert "sums to 6553" in verify_policy(out)[0]
    refused("sums to 6553", Policy.open, out, error=OSError)
    bucket = int(np.argmax(leduc[1].weight[0][:, 0] > 0))
    policy = Policy.open(out, check=False)
    refused("street 0, player 0 is damaged", policy.probabilities, 0, bucket, error=OSError)
    refused("sums to 6553", policy.strategy, error=OSError)


def test_missing_short_and_extra_files_are_named(leduc, tmp_path):
    out = write(tmp_path / "policy", leduc)
    path = out / "weight_street1_player0.npy"
    data = path.read_bytes()
    path.write_bytes(data[:-4])
    refused(f"{path.name} has {len(data) - 4} bytes; the manifest states {len(data)}", Policy.open, out, error=OSError)
    path.unlink()
    refused(f"{path.name} is missing", Policy.open, out, error=DamagedError)
    assert verify_policy(out) == [f"{out}: {path.name} is missing"]
    path.write_bytes(data)
    (out / "notes.txt").write_text("mine")
    assert verify_policy(out) == [f"{out}: notes.txt is not in meta.json"]
    refused("is not a policy", Policy.open, tmp_path, error=FileNotFoundError)


def test_another_format_version_is_refused_and_both_are_named(leduc, tmp_path):
    out = write(tmp_path / "policy", leduc)
    meta = read_manifest(out / "meta.json", "policy", FORMAT_VERSION)
    fields = {name: value for name, value in meta.items() if name not in ("format", "format_version", "content_hash")}
    write_manifest(out / "meta.json", "policy", FORMAT_VERSION - 1, fields)
    words = rf"format_version {FORMAT_VERSION - 1} .* format_version {FORMAT_VERSION}: use the version of mccfr"
    refused(words, Policy.open, out)
    del fields["blocks"]
    write_manifest(out / "meta.json", "policy", FORMAT_VERSION, fields)
    refused("not a policy that can be read", Policy.open, out)


# Output directory -----------------------------------------------------------------------------------------------------


def test_a_policy_and_an_empty_folder_are_replaced(leduc, tmp_path):
    game, _ = leduc
    out = write(tmp_path / "made" / "for it" / "policy", leduc)
    write(out, (game, uniform_strategy(game)), provenance={"checkpoint": 4})
    assert Policy.open(out).meta["provenance"] == {"checkpoint": 4}
    assert [path.name for path in out.parent.iterdir()] == ["policy"]
    (tmp_path / "empty").mkdir()
    assert verify_policy(write(tmp_path / "empty", leduc)) == []


def test_wrong_input_is_refused_before_anything_is_written(leduc, tmp_path):
    game, strategy = leduc
    kuhn = uniform_strategy(build_game(KuhnGame(), ROOT))
    negative = Strategy(strategy.probability, tuple(-1 - w for w in strategy.weight))
    skewed = tabulate(game, lambda node, bucket: [0.4] * int(game.tree.arrays.count[node]))
    merged = uniform_strategy(build_game(LeducGame(merge_suits=True), ROOT))
    for bad, text in (
        (kuhn, "has 2 tables; the game needs 4"),
        (merged, "street 0, player 0 has shapes"),
        (negative, "negative weight"),
        (skewed, "sum to 1"),
    ):
        refused(text, write, tmp_path / "p", (game, bad))
    refused("not one of uint8, uint16", write, tmp_path / "p", leduc, quantise="uint32")
    refused("provenance cannot be written", write, tmp_path / "p", leduc, provenance={"loss": float("nan")})
    assert list(tmp_path.iterdir()) == []
