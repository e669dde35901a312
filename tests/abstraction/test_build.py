"""Building abstractions: stages, restarts, buckets of isomorphic hands, bad recipes.

Whole builds go over all 134,459 river boards and take a minute: `slow`.  The fast tests build preflop and flop.
"""

import json
import os
import random
import signal
import subprocess
import sys
import time
from functools import cache
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest

from abstraction import build
from abstraction.boards import BOARD_COUNTS, board_classes, used_slots
from abstraction.buckets import Abstraction, verify_abstraction
from abstraction.build import Builder, unused
from abstraction.recipe import STREETS, Recipe, StreetRecipe, load_recipe, stage_document
from storage.checkpoint import checkpoint_path, list_checkpoints

ROOT = Path(__file__).resolve().parents[2]
SMALL = StreetRecipe(features="histogram", buckets=12, sample=2_000, iterations=4)
PERCENTILES = StreetRecipe(features="ehs", buckets=10)


def recipe(**parts):
    return Recipe(**{"flop": SMALL, "turn": PERCENTILES, "river": PERCENTILES, **parts})


@pytest.fixture(scope="module", autouse=True)
def one_pass_over_the_rivers():
    """The builds of this file share the 357 MB of river strengths, which they only read."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(build, "river_strengths", cache(build.river_strengths))
        yield


@pytest.fixture(scope="module")
def flop(tmp_path_factory):
    """Preflop and flop of a small recipe, built with one thread."""
    out = tmp_path_factory.mktemp("abstraction")
    assert Builder(recipe(), out).build(STREETS[:2]) == ["preflop", "flop"]
    return out


def stage(out, street):
    root = out / street
    (number,) = list_checkpoints(root)
    return checkpoint_path(root, number)


def stage_bytes(out, street):
    """Every file of a stage by name."""
    path = stage(out, street)
    return {str(file.relative_to(path)): file.read_bytes() for file in sorted(path.rglob("*")) if file.is_file()}


def table(out, street):
    from storage.checkpoint import open_checkpoint

    return open_checkpoint(stage(out, street)).read("bucket")


def test_every_used_slot_has_a_bucket_and_every_bucket_a_hand(flop):
    preflop, rows = table(flop, "preflop"), table(flop, "flop")
    assert preflop.shape == (1, 1326) and len(np.unique(preflop)) == 169
    used = used_slots(board_classes(3).boards)
    assert rows.shape == (BOARD_COUNTS[3], 1326)
    assert np.array_equal(rows != unused(rows.dtype), used)
    assert np.array_equal(np.unique(rows[used]), np.arange(12))


def test_the_number_of_workers_changes_nothing(flop, tmp_path):
    Builder(recipe(), tmp_path, workers=2).build(STREETS[:2])
    for street in STREETS[:2]:
        assert stage_bytes(tmp_path, street) == stage_bytes(flop, street)


def test_isomorphic_hands_share_a_bucket(flop):
    """Suits renamed and cards reordered, on flops with few and many symmetries."""
    rows = table(flop, "flop")
    found = _flop_lookup(rows)
    generator = random.Random(5)
    for _ in range(200):
        cards = generator.sample(range(52), 5)
        expected = found(cards[:2], cards[2:])
        for suits in permutations(range(4)):
            renamed = [card // 4 * 4 + suits[card % 4] for card in cards]
            hand, board = renamed[:2], renamed[2:]
            generator.shuffle(hand)
            generator.shuffle(board)
            assert found(hand, board) == expected


def _flop_lookup(rows):
    from abstraction.boards import board_tables, locate_board
    from abstraction.cards import combo_index

    def find(hand, board):
        index, permutation = locate_board(board)
        return int(rows[index, board_tables().hole_permutation[permutation, combo_index(*hand)]])

    return find


def test_stronger_hands_are_in_higher_buckets(flop):
    found = _flop_lookup(table(flop, "flop"))
    from abstraction.cards import parse_cards

    board = parse_cards("As7h2d")
    weak, middling, strong = (found(parse_cards(hand), board) for hand in ("4c3c", "KdQc", "AhAc"))
    assert weak < middling < strong


def test_building_again_does_only_what_has_changed(flop, tmp_path):
    Builder(recipe(), tmp_path).build(STREETS[:2])
    assert Builder(recipe(), tmp_path).build(STREETS[:2]) == []
    changed = recipe(flop=StreetRecipe(features="ehs", buckets=15))
    assert Builder(changed, tmp_path).build(STREETS[:2]) == ["flop"]
    rows = table(tmp_path, "flop")
    assert np.array_equal(np.unique(rows), [*range(15), unused(rows.dtype)])
    assert len(list_checkpoints(tmp_path / "flop")) == 1
    (path,) = [file for file in stage(tmp_path, "flop").rglob("c/*") if file.is_file()][:1] or [None]
    if path is not None:
        path.write_bytes(path.read_bytes()[:-1] + b"x")
        assert Builder(changed, tmp_path).build(STREETS[:2]) == ["flop"]  # a damaged stage is built again


def test_percentile_buckets_hold_about_the_same_number_of_hands(tmp_path):
    Builder(recipe(flop=StreetRecipe(features="ehs2", buckets=20)), tmp_path).build(("flop",))
    rows, multiplicity = table(tmp_path, "flop"), board_classes(3).multiplicity
    used = rows != unused(rows.dtype)
    hands = np.bincount(rows[used], np.broadcast_to(multiplicity[:, None], rows.shape)[used])
    assert hands.sum() == 22_100 * 1176
    assert hands.max() < 1.05 * hands.min()


def test_more_buckets_than_distinct_points_are_refused(tmp_path):
    with pytest.raises(ValueError, match="flop: k is 2000000, but there are"):
        Builder(recipe(flop=StreetRecipe(features="ehs", buckets=2_000_000, sample=2_000_000)), tmp_path).build(
            ("flop",)
        )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[flop]\nfeatures = 'histogram'\n", "missing required field turn"),
        ("sed = 1\n", "unknown field sed"),
        (
            "flop = {features = 'ochs'}\nturn = {features = 'ehs'}\nriver = {features = 'ehs'}\n",
            "flop.features = 'ochs'",
        ),
        (
            "flop = {features = 'ehs', buckets = 0}\nturn = {features = 'ehs'}\nriver = {features = 'ehs'}\n",
            "flop.buckets = 0 is not allowed",
        ),
    ],
)
def test_bad_recipes_are_refused_in_one_sentence(tmp_path, text, message):
    path = tmp_path / "recipe.toml"
    path.write_text(text)
    with pytest.raises(ValueError, match=r"recipe\.toml") as caught:
        load_recipe(path)
    assert message in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize("path", sorted((ROOT / "runs/abstractions").glob("*.toml")), ids=lambda path: path.name)
def test_shipped_recipes_load(path):
    loaded = load_recipe(path)
    assert [stage_document(loaded, street)["street"] for street in STREETS] == list(STREETS)


@pytest.mark.slow
def test_killed_at_random_moments_ends_with_the_same_bytes(tmp_path):
    """All four streets, kill -9 ten times: the bytes of an undisturbed build, and every hand finds its bucket."""
    path = tmp_path / "recipe.toml"
    path.write_text(
        "[flop]\nfeatures = 'histogram'\nbuckets = 12\nsample = 2000\niterations = 4\n"
        "[turn]\nfeatures = 'ehs'\nbuckets = 10\n[river]\nfeatures = 'ehs'\nbuckets = 10\n"
    )
    command = [sys.executable, "-m", "mccfr", "abstraction", "build", str(path), "--out"]
    generator = random.Random(3)
    for _ in range(10):
        process = subprocess.Popen([*command, str(tmp_path / "killed")], cwd=ROOT, stderr=subprocess.DEVNULL)
        time.sleep(generator.uniform(1, 12))
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    subprocess.run([*command, str(tmp_path / "killed")], cwd=ROOT, check=True, stderr=subprocess.DEVNULL)
    subprocess.run(
        [*command, str(tmp_path / "whole"), "--workers", "1"], cwd=ROOT, check=True, stderr=subprocess.DEVNULL
    )
    for street in STREETS:
        killed, whole = (stage_bytes(tmp_path / name, street) for name in ("killed", "whole"))
        assert killed == whole
    assert verify_abstraction(tmp_path / "killed") == []
    built = Abstraction(tmp_path / "killed")
    assert built.bucket_of_text("AsKd", "Qs7h2d3c4c")["street"] == "river"
    assert json.dumps(built.info())
    with pytest.raises(ValueError, match="hold a card twice"):
        built.bucket_of_text("AsKd", "As7h2d")
