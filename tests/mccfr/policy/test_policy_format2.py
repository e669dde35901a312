"""Policy format: street, chips and line of nodes, impossible hands, row checksums.

Shows:

* Programs can read a policy without this package or the game's rules
  (test_every_node_has_street_chips_and_line_without_any_rules,
  test_the_documented_reader_finds_the_probabilities_of_query)
"""

import itertools
import json
import shutil
import zlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from manifests import flip
from places import RUNS
from policies import sign, write_random
from refusals import refused
from small_games import BLINDS, TURN

from abstraction.boards import board_classes, canonical_boards, used_slots
from abstraction.buckets import Abstraction
from mccfr.config.game_tables import FlopHoldemGame, GoofspielGame, KuhnGame, LeducGame
from mccfr.games.registry import build_game
from mccfr.policy import Policy, row_checksums, verify_policy
from mccfr.policy.policy_layout import bucket_dtype
from mccfr.trees.betting_lines import line_text
from mccfr.trees.compiled import CHANCE, DECISION, TERMINAL
from storage.compressed_rows import pack_rows
from storage.damage import DamagedError
from storage.json_files import read_json


def load(out, name):
    return np.load(out / f"{name}.npy")


FLOP = FlopHoldemGame(max_raises=1)


# Nodes ----------------------------------------------------------------------------------------------------------------


def chips_by_rules(labels, parent, player, start):
    """Return the chips put in at each node from the labels alone.

    A call matches the opponent, rN raises to N, and a fold adds nothing.
    """
    put_in = [list(start)]
    for node in range(1, len(labels)):
        chips, actor = list(put_in[parent[node]]), player[parent[node]]
        if labels[node] == "c":
            chips[actor] = max(chips)
        elif labels[node] == "b":
            chips[actor] = max(chips) + 1
        elif labels[node] != "f":
            chips[actor] = float(labels[node][1:])
        put_in.append(chips)
    return put_in


@pytest.mark.parametrize(
    ("config", "start"),
    [(KuhnGame(), (1, 1)), (LeducGame(), (1, 1)), (BLINDS, (2, 1)), (TURN, (900, 900))],
    ids=["kuhn", "leduc", "blinds", "turn"],
)
def test_every_node_has_street_chips_and_line_without_any_rules(tmp_path, config, start):
    out = write_random(tmp_path / "policy", config)
    labels, lines = (json.loads((out / f"tree_{name}.json").read_text()) for name in ("label", "line"))
    parent, player, block = (load(out, f"tree_{name}").tolist() for name in ("parent", "player", "block"))
    assert load(out, "tree_put_in").tolist() == chips_by_rules(labels, parent, player, start)
    tree = Policy.open(out).game.tree
    assert lines == [line_text(tree, node) for node in range(len(lines))]
    for node, street in enumerate(load(out, "tree_street").tolist()):
        above = parent[node]
        assert street == (block[node] if tree.arrays.kind[node] == DECISION else block[above]) // 2


def test_games_of_histories_have_no_chips(tmp_path):
    out = write_random(tmp_path / "policy", GoofspielGame(cards=3))
    assert not (out / "tree_put_in.npy").exists() and not load(out, "tree_street").any()
    kind, parent = load(out, "tree_kind"), load(out, "tree_parent")
    lines = json.loads((out / "tree_line.json").read_text())
    labels = json.loads((out / "tree_label.json").read_text())
    assert all(lines[node].split() == [*lines[parent[node]].split(), labels[node]] for node in range(1, len(kind)))
    assert set(kind.tolist()) <= {DECISION, TERMINAL, CHANCE}


# Bucket tables --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("buckets", "dtype"), [(1, "uint8"), (255, "uint8"), (256, "uint16"), (65535, "uint16"), (65536, "uint32")]
)
def test_bucket_tables_have_the_narrowest_type_with_a_free_mark(buckets, dtype):
    assert bucket_dtype(buckets) == dtype
    assert buckets - 1 < np.iinfo(dtype).max


@pytest.mark.parametrize("config", [KuhnGame(), LeducGame(), TURN], ids=["kuhn", "leduc", "turn"])
def test_listed_bucket_tables_mark_impossible_hands(tmp_path, config):
    out, game = write_random(tmp_path / "policy", config), build_game(config, RUNS)
    for street, stated in enumerate(read_json(out / "meta.json")["bucket_tables"]):
        table, bucket = np.load(out / stated["file"]), game.cards.bucket[street]
        assert table.dtype == stated["dtype"] == bucket_dtype(int(game.cards.buckets[street].max()))
        assert np.array_equal(table == stated["impossible"], bucket == -1)
        assert np.array_equal(table[bucket >= 0], bucket[bucket >= 0])
        assert np.array_equal(Policy.open(out).game.cards.bucket[street], bucket)


def flop_table(out):
    """Return the buckets [1755, 1326] of all canonical flops in a policy."""
    streams, starts = load(out, "deck_buckets_street1"), load(out, "board_starts_street1").tolist()
    rows = [zlib.decompress(streams[start:end]) for start, end in itertools.pairwise(starts)]
    dtype = read_json(out / "meta.json")["bucket_tables"][1]["dtype"]
    return np.frombuffer(b"".join(rows), dtype).reshape(-1, 1326)


@pytest.fixture(scope="module")
def deck_policy(tmp_path_factory, slot_abstractions):
    return write_random(tmp_path_factory.mktemp("deck") / "policy", FLOP, slot_abstractions[0])


def test_deck_bucket_tables_equal_the_abstraction_and_mark_impossible_hands(deck_policy, slot_abstractions):
    stated = read_json(deck_policy / "meta.json")["bucket_tables"][1]
    table, built = flop_table(deck_policy), Abstraction(slot_abstractions[0]).table("flop")
    used = used_slots(canonical_boards(3))
    assert (table.dtype, stated["impossible"]) == (np.uint8, 255)
    assert (table[~used] == 255).all() and np.array_equal(table[used], built[used])


@pytest.mark.parametrize("place", ["a used slot", "an unused slot"])
def test_wrong_marks_are_found(deck_policy, tmp_path, place):
    out = tmp_path / "policy"
    shutil.copytree(deck_policy, out)
    table = flop_table(out).copy()
    used = used_slots(canonical_boards(3))
    board, slot = np.argwhere(used if place == "a used slot" else ~used)[777]
    table[board, slot] = 255 if place == "a used slot" else 0
    for name, array in zip(("deck_buckets_street1", "board_starts_street1"), pack_rows(table), strict=True):
        np.save(out / f"{name}.npy", array)
    sign(out)
    wrong = "deck_buckets_street1.npy has a bucket above 9, or one of an impossible hand"
    assert wrong in verify_policy(out)[0]
    deck = Policy.open(out).game.cards
    refused(wrong, deck.load, error=DamagedError)
    flop = canonical_boards(3)[board].tolist()
    if place == "a used slot":
        refused("holds a bucket that does not exist", deck.bucket_row, 1, 0, flop, error=DamagedError)
    else:
        assert deck.bucket_row(1, 0, flop)[slot] == -1


@settings(max_examples=50, deadline=None)
@given(st.permutations(range(52)))
def test_memory_mapped_look_ups_equal_look_ups_in_memory(deck_policy, slot_abstractions, cards):
    """Compare the look-up in a policy's files with the look-up in loaded tables."""
    deck = Policy.open(deck_policy, check=False).game.cards
    for street, known in enumerate((0, 3)):
        mapped = deck.bucket_row(street, 0, cards[:known])
        assert np.array_equal(mapped, super(type(deck), deck).board_row(street, cards[:known]))


# Row checksums --------------------------------------------------------------------------------------------------------


def look_up_all(policy):
    for node in policy.game.tree.decisions.tolist():
        for bucket in range(int(policy.game.buckets[policy.game.tree.arrays.block[node]])):
            policy.probabilities(node, bucket)
            policy.weight(node, bucket)
    for street, cards in enumerate(map(policy.game.cards.cards_on, range(policy.game.cards.streets))):
        for board in board_classes(cards).boards if cards else [[]]:
            policy.game.cards.bucket_row(street, 0, [int(card) for card in board])


def test_look_ups_find_a_flipped_bit_in_any_large_table(deck_policy, tmp_path):
    out = tmp_path / "policy"
    shutil.copytree(deck_policy, out)
    large = read_json(out / "meta.json")["row_checksums"]["tables"]
    assert set(large) == {p.name for p in out.glob("*.npy") if p.name.startswith(("deck_", "probability_", "weight_"))}
    for number, name in enumerate(sorted(set(large) - {"deck_hole_permutation.npy", "deck_location_3.npy"})):
        path = out / name
        data = path.read_bytes()
        flip(path, 128 + (len(data) - 128) * (number % 5) // 5)
        policy = Policy.open(out, check=False)
        refused(f"{name}: the rows from [0-9]+ on have checksum", look_up_all, policy, error=OSError)
        path.write_bytes(data)
    look_up_all(Policy.open(out, check=False))
    flip(out / "deck_location_3.npy", 128 + 4 * 5)  # the rank of the board that is looked up below
    deck = Policy.open(out, check=False).game.cards
    refused(r"deck_location_3.npy: the rows from 0 on", deck.bucket_row, 1, 0, [0, 2, 4], error=OSError)


def test_a_look_up_verifies_only_the_piece_that_it_reads(tmp_path, monkeypatch):
    monkeypatch.setattr(row_checksums, "_PIECE_BYTES", 16)
    out = write_random(tmp_path / "policy", LeducGame(merge_suits=True))
    name = "probability_street1_player0.npy"
    rows = read_json(out / "meta.json")["row_checksums"]["tables"][name]["rows"]
    table = np.load(out / name)
    assert rows == 1 and len(table) > 2
    flip(out / name, 128 + table.itemsize * table.shape[1])  # the first cell of row 1
    policy = Policy.open(out, check=False)
    node = next(node for node in policy.game.tree.decisions.tolist() if policy.game.tree.arrays.block[node] == 2)
    policy.probabilities(node, 0)
    policy.probabilities(node, 2)
    for _ in range(2):
        refused(f"{name}: the rows from 1 on have checksum", policy.probabilities, node, 1, error=OSError)
    refused(f"{name}: the rows from 1 on have checksum", policy.strategy, error=OSError)


def test_each_piece_is_verified_once(tmp_path, monkeypatch):
    out = write_random(tmp_path / "policy", LeducGame())
    compared = []
    original = row_checksums.GuardedTable._compare
    note = lambda table, piece: (compared.append((table.file, piece)), original(table, piece))  # noqa: E731
    monkeypatch.setattr(row_checksums.GuardedTable, "_compare", note)
    for check, number in ((True, 0), (False, 8)):
        policy = Policy.open(out, check=check)
        for _ in range(2):
            for node in policy.game.tree.decisions.tolist():
                policy.probabilities(node, 0)
        assert len(compared) == len(set(compared)) == number


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("row_checksums", lambda array: array ^ 1, "are not those of its rows"),
        ("row_checksums", lambda array: array[:-1], "are not those of its rows"),
        ("row_checksums", lambda array: np.append(array, array), "checksums; 8 are needed"),
        ("row_checksums", lambda array: array[None], "is no list of uint32"),
        ("tree_street", lambda array: array + 1, "tree_street.npy contradicts"),
        ("tree_put_in", lambda array: -array, "negative or not finite"),
        ("tree_put_in", lambda array: array[::-1].copy(), "takes chips back"),
        ("tree_line", lambda lines: [*lines[:-1], "cc"], "does not hold the lines of the tree"),
    ],
)
def test_redundant_files_must_agree_with_the_tables(tmp_path, name, change, message):
    """`verify` names files with matching checksums that would mislead other programs."""
    out = write_random(tmp_path / "policy", LeducGame())
    path = next(out.glob(f"{name}.*"))
    if path.suffix == ".npy":
        np.save(path, change(np.load(path)))
    else:
        path.write_text(json.dumps(change(json.loads(path.read_text()))))
    sign(out)
    assert message in " ".join(verify_policy(out))
