"""Building card abstractions: stages, restarts, buckets of isomorphic hands, invalid recipes.

A build of four streets has all 134,459 river boards and takes a minute, so its test is `slow`.  The fast tests build
preflop and flop.  Tests of hands build all flops; tests of restarts and workers build 120 flops.

Shows:

* Clustering gives the same bytes for any number of workers and after kills
  (test_the_number_of_workers_does_not_change_the_files,
  test_a_build_killed_at_random_moments_ends_with_the_same_bytes)
"""

import json
import os
import random
import signal
import subprocess
import sys
import time
from itertools import permutations

import numpy as np
import pytest
from places import ROOT, RUNS
from refusals import refusals, refused
from small_games import refuse_recipe

from abstraction import street_features
from abstraction.boards import BOARD_COUNTS, board_classes, board_tables, locate_board, used_slots
from abstraction.buckets import Abstraction, unused, verify_abstraction
from abstraction.build import Builder
from abstraction.cards import combo_index
from abstraction.clustering import kmeans
from abstraction.recipe import STREETS, Recipe, StreetRecipe, load_recipe, stage_document
from storage.checkpoint import checkpoint_path, list_checkpoints, open_checkpoint

SMALL = StreetRecipe(features="histogram", buckets=12, sample=2_000, iterations=4)
PERCENTILES = StreetRecipe(features="ehs", buckets=10)


def recipe(**parts):
    return Recipe(**{"flop": SMALL, "turn": PERCENTILES, "river": PERCENTILES, **parts})


pytestmark = pytest.mark.usefixtures("shared_descriptions")


@pytest.fixture(scope="module")
def flop(tmp_path_factory, shared_descriptions):
    """Build preflop and flop of a small recipe with one thread: all boards, buckets by strength."""
    out = tmp_path_factory.mktemp("abstraction")
    assert Builder(recipe(flop=StreetRecipe(features="ehs2", buckets=20)), out).build(STREETS[:2]) == [
        "preflop",
        "flop",
    ]
    return out


@pytest.fixture
def few_boards(monkeypatch):
    """Restrict the flops to the first 120 canonical ones."""
    monkeypatch.setattr(street_features, "BOARD_COUNTS", {**BOARD_COUNTS, 3: 120})


@pytest.fixture(scope="module")
def few_flops(tmp_path_factory, shared_descriptions):
    """Build preflop and 120 flops, clustered by histograms."""
    out = tmp_path_factory.mktemp("few")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(street_features, "BOARD_COUNTS", {**BOARD_COUNTS, 3: 120})
        assert Builder(recipe(), out).build(STREETS[:2]) == ["preflop", "flop"]
    return out


def stage(out, street):
    root = out / street
    (number,) = list_checkpoints(root)
    return checkpoint_path(root, number)


def stage_bytes(out, street):
    """Return {name: bytes} of all files of a stage."""
    path = stage(out, street)
    return {str(file.relative_to(path)): file.read_bytes() for file in sorted(path.rglob("*")) if file.is_file()}


def table(out, street):
    return open_checkpoint(stage(out, street)).read("bucket")


@pytest.mark.parametrize(("built", "count", "buckets"), [("flop", BOARD_COUNTS[3], 20), ("few_flops", 120, 12)])
def test_every_used_slot_has_a_bucket_and_every_bucket_a_hand(built, count, buckets, request):
    out = request.getfixturevalue(built)
    preflop, rows = table(out, "preflop"), table(out, "flop")
    assert preflop.shape == (1, 1326) and len(np.unique(preflop)) == 169
    used = used_slots(board_classes(3).boards[:count])
    assert rows.shape == (count, 1326)
    assert np.array_equal(rows != unused(rows.dtype), used)
    assert np.array_equal(np.unique(rows[used]), np.arange(buckets))


def test_the_number_of_workers_does_not_change_the_files(few_flops, few_boards, tmp_path):
    Builder(recipe(), tmp_path, workers=2).build(STREETS[:2])
    for street in STREETS[:2]:
        assert stage_bytes(tmp_path, street) == stage_bytes(few_flops, street)


def test_isomorphic_hands_share_a_bucket(flop):
    """Rename suits and reorder cards, on 200 random flops."""
    rows, generator = table(flop, "flop"), random.Random(5)

    def found(hand, board):
        index, permutation = locate_board(board)
        return int(rows[index, board_tables().hole_permutation[permutation, combo_index(*hand)]])

    for _ in range(200):
        cards = generator.sample(range(52), 5)
        expected = found(cards[:2], cards[2:])
        for suits in permutations(range(4)):
            renamed = [card // 4 * 4 + suits[card % 4] for card in cards]
            hand, board = renamed[:2], renamed[2:]
            generator.shuffle(hand)
            generator.shuffle(board)
            assert found(hand, board) == expected


def test_a_second_build_builds_only_changed_stages(few_boards, tmp_path):
    Builder(recipe(), tmp_path).build(STREETS[:2])
    assert Builder(recipe(), tmp_path).build(STREETS[:2]) == []
    changed = recipe(flop=StreetRecipe(features="ehs", buckets=15))
    message = r"holds buckets of another recipe \(flop.features = 'histogram' there and 'ehs' here\): .* --replace"
    refused(message, Builder(changed, tmp_path).build, STREETS[:2], error=FileExistsError)
    assert len(np.unique(table(tmp_path, "flop"))) == 13 and Builder(recipe(), tmp_path).build(STREETS[:2]) == []
    assert Builder(changed, tmp_path).build(STREETS[:2], replace=True) == ["flop"]
    rows = table(tmp_path, "flop")
    assert np.array_equal(np.unique(rows), [*range(15), unused(rows.dtype)])
    assert len(list_checkpoints(tmp_path / "flop")) == 1
    path = next(file for file in stage(tmp_path, "flop").rglob("*") if file.is_file() and "c" in file.parts)
    path.write_bytes(path.read_bytes()[:-1] + bytes([path.read_bytes()[-1] ^ 1]))
    assert Builder(changed, tmp_path).build(STREETS[:2]) == ["flop"]  # a damaged stage is built again


def test_percentile_buckets_hold_about_the_same_number_of_hands(flop):
    rows, multiplicity = table(flop, "flop"), board_classes(3).multiplicity
    used = rows != unused(rows.dtype)
    hands = np.bincount(rows[used], np.broadcast_to(multiplicity[:, None], rows.shape)[used])
    assert hands.sum() == 22_100 * 1176
    assert hands.max() < 1.05 * hands.min()


def too_many_buckets(few_boards, tmp_path):
    Builder(recipe(flop=StreetRecipe(features="ehs", buckets=1_000_000)), tmp_path).build(("flop",))


def short_of_memory(few_boards, tmp_path, monkeypatch):
    """Check that a lack of memory for the last street is reported before the first is built."""

    def check(builder, street):
        if street == "river":
            raise ValueError("river: memory is short")

    monkeypatch.setattr(Builder, "_check_memory", check)
    try:
        Builder(recipe(), tmp_path).build()
    finally:
        assert not list_checkpoints(tmp_path / "preflop")


def read(text, tmp_path):
    others = "turn = {features = 'ehs', buckets = 9}\nriver = {features = 'ehs', buckets = 9}\n"
    refuse_recipe(f"{text}\n{others}" if text.startswith("flop") else text, tmp_path)


test_refusals = refusals(
    ("flop: k is 1000000, but there are", too_many_buckets),
    ("river: memory is short", short_of_memory),
    ("[turn] is missing", read, "[flop]\nfeatures = 'histogram'\nbuckets = 50\n"),
    ("unknown field sed", read, "sed = 1\n"),
    ("flop.features = 'ochs'", read, "flop = {features = 'ochs', buckets = 5}"),
    ("Expected int >= 1 - at $.flop.buckets", read, "flop = {features = 'ehs', buckets = 0}"),
    ("flop.buckets is missing", read, "flop = {features = 'ehs'}"),
    ("flop.sample = 40 is below flop.buckets = 50", read, "flop = {features = 'histogram', buckets = 50, sample = 40}"),
    ("a lossless flop has 1,286,792", read, "flop = {features = 'lossless', buckets = 50}"),
    ("needs at least 60 buckets", read, "flop = {features = 'histogram', buckets = 50, public = 60}"),
    ("needs at least 169 buckets", read, "flop = {features = 'histogram', buckets = 50, nested = true}"),
    ("needs at least 6 buckets", read, "flop = {features = 'ehs', buckets = 5, public = 6}"),
    ("flop.public = 6 means nothing", read, "flop = {features = 'lossless', public = 6}"),
    ("cannot be combined", read, "flop = {features = 'histogram', buckets = 50, public = 6, levels = 2}"),
    ("cannot be combined", read, "flop = {features = 'histogram', buckets = 500, public = 6, nested = true}"),
    ("Invalid enum value 3 - at $.flop.levels", read, "flop = {features = 'histogram', buckets = 50, levels = 3}"),
)


@pytest.mark.parametrize("path", sorted((RUNS / "abstractions").glob("*.toml")), ids=lambda path: path.name)
def test_shipped_recipes_load(path):
    loaded = load_recipe(path)
    assert [stage_document(loaded, street)["street"] for street in STREETS] == list(STREETS)


class StoppedError(Exception):
    """Replaces a kill of the process."""


def interrupt_inside(out, built, share):
    """Build until a clustering has done the share `share` of its steps, then stop; each step is saved."""

    def progress(part, done):
        if part == f"flop of {out.name} (1 of 1), clustering" and done >= share:
            raise StoppedError

    with pytest.raises(StoppedError):
        Builder(built, out, progress=progress, save_seconds=0).build(("flop",))


def test_an_interrupted_clustering_resumes(few_flops, few_boards, tmp_path, monkeypatch):
    interrupt_inside(tmp_path, recipe(), 2 / 4)  # after two of four steps
    assert list_checkpoints(tmp_path / "unfinished-flop") and not list_checkpoints(tmp_path / "flop")
    monkeypatch.setattr(kmeans, "start", None)  # a clustering that begins again would fail
    Builder(recipe(), tmp_path, save_seconds=0).build(("flop",))
    assert stage_bytes(tmp_path, "flop") == stage_bytes(few_flops, "flop")
    assert not (tmp_path / "unfinished-flop").exists()


def test_the_saved_state_of_another_recipe_is_not_used(few_flops, few_boards, tmp_path):
    other = recipe(flop=StreetRecipe(features="histogram", buckets=12, sample=2_000, iterations=40))
    interrupt_inside(tmp_path, other, 3 / 40)
    Builder(recipe(), tmp_path).build(("flop",))
    assert stage_bytes(tmp_path, "flop") == stage_bytes(few_flops, "flop")


BUILD_SAVED_OFTEN = """
import sys
from pathlib import Path
from abstraction.build import Builder
from abstraction.recipe import load_recipe
Builder(load_recipe(Path(sys.argv[1])), Path(sys.argv[2]), int(sys.argv[3]), save_seconds=0.2).build()
"""


@pytest.mark.slow
def test_a_build_killed_at_random_moments_ends_with_the_same_bytes(tmp_path):
    """Kill a build of four streets ten times, and compare its files with those of an undisturbed build."""
    path = tmp_path / "recipe.toml"
    path.write_text(
        "[flop]\nfeatures = 'histogram'\nbuckets = 600\nlevels = 2\n"
        "[turn]\nfeatures = 'histogram'\nbuckets = 300\npublic = 5\n[river]\nfeatures = 'ehs'\nbuckets = 10\n"
    )
    command = [sys.executable, "-c", BUILD_SAVED_OFTEN, str(path)]
    began = time.monotonic()
    subprocess.run([*command, str(tmp_path / "whole"), "1"], cwd=ROOT, check=True)
    whole_seconds = time.monotonic() - began
    generator, kept = random.Random(3), 0
    for _ in range(10):
        process = subprocess.Popen([*command, str(tmp_path / "killed"), "2"], cwd=ROOT)
        time.sleep(generator.uniform(0.05, 0.4) * whole_seconds)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        kept += any((tmp_path / "killed").glob("unfinished-*/0*"))
    assert kept  # a clustering was interrupted at least once
    subprocess.run([*command, str(tmp_path / "killed"), "2"], cwd=ROOT, check=True)
    for street in STREETS:
        killed, whole = (stage_bytes(tmp_path / name, street) for name in ("killed", "whole"))
        assert killed == whole
    assert verify_abstraction(tmp_path / "killed") == []
    built = Abstraction(tmp_path / "killed")
    assert built.bucket_of_text("AsKd", "Qs7h2d3c4c")["street"] == "river"
    assert json.dumps(built.info())
    refused("hold a card twice", built.bucket_of_text, "AsKd", "As7h2d")
