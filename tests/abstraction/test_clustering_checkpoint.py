"""Saved states of a clustering, and finished stages, after a build."""

import numpy as np
from refusals import refused
from small_games import small_recipe

from abstraction.buckets import verify_abstraction
from abstraction.build import Builder
from abstraction.clustering_checkpoint import FileStateSaver
from abstraction.recipe import DeckRecipe, Recipe, StreetRecipe
from mccfr.config.toml_files import config_from
from mccfr.runs.session.start import check_given_abstractions
from storage import durable
from storage.run_lock import RunLock

DECK = {"ranks": 4, "suits": 2, "hole_cards": 1, "board_cards": [0, 1]}
CENTRES = {"centres": np.arange(6, dtype=np.float32).reshape(3, 2)}


def save_state(root, identity="one", phase="lloyd", seconds=0.0):
    FileStateSaver(root, {"stage": identity}, seconds).save(phase, lambda: CENTRES)


def test_a_state_is_resumed_only_in_its_own_stage_and_phase(tmp_path):
    save_state(tmp_path / "kept")
    again = FileStateSaver(tmp_path / "kept", {"stage": "one"})
    assert np.array_equal(again.resume("lloyd")["centres"], CENTRES["centres"])
    assert again.resume("groups") is None
    assert FileStateSaver(tmp_path / "kept", {"stage": "two"}).resume("lloyd") is None


def test_a_state_is_saved_after_the_interval_and_replaces_the_last_one(tmp_path):
    save_state(tmp_path / "kept", seconds=1000.0)
    assert not (tmp_path / "kept").exists()
    save_state(tmp_path / "kept")
    save_state(tmp_path / "kept", phase="groups")
    assert [path.name for path in (tmp_path / "kept").iterdir()] == ["000001"]


def test_a_discarded_state_is_removed_from_the_disk(tmp_path):
    save_state(tmp_path / "kept")
    saver = FileStateSaver(tmp_path / "kept", {"stage": "one"})
    with durable.recording() as operations:
        saver.discard()
    assert not (tmp_path / "kept").exists() and saver.resume("lloyd") is None
    assert (operations[-1].kind, operations[-1].path) == ("fsync_dir", tmp_path)
    saver.discard()  # discarding twice is no error


def nested(preflop):
    """Return a recipe of a small deck with `preflop` preflop buckets and six flop buckets nested in them."""
    streets = {"preflop": preflop, "flop": 6}
    parts = {
        name: StreetRecipe(features="ehs", buckets=count, nested=name == "flop") for name, count in streets.items()
    }
    return Recipe(deck=DeckRecipe(**DECK), **parts)


def test_a_stage_is_built_again_if_the_street_before_has_changed(tmp_path):
    assert Builder(nested(2), tmp_path / "built").build() == ["preflop", "flop"]
    assert Builder(nested(2), tmp_path / "built").build() == []
    assert Builder(nested(3), tmp_path / "built").build(replace=True) == ["preflop", "flop"]
    assert not list((tmp_path / "built").glob("unfinished-*"))


def test_a_directory_locked_by_another_build_is_refused(tmp_path):
    Builder(nested(2), tmp_path).build()
    with RunLock(tmp_path / "build.lock"):
        refused("build.lock is locked by process", Builder(nested(2), tmp_path).build, error=BlockingIOError)


def test_a_finished_clustering_leaves_no_saved_state(tmp_path):
    recipe = small_recipe(tmp_path / "small.toml", 6, 'features = "ochs"\nclusters = 2')
    progress = []

    def look(part, _):
        progress.append((part, (tmp_path / "built/unfinished-flop").exists()))

    Builder(recipe, tmp_path / "built", progress=look, save_seconds=0).build()
    assert ("flop of built (2 of 2), quality", True) in progress and not progress[-1][1]
    assert verify_abstraction(tmp_path / "built") == []


def test_a_clustering_in_two_levels_reports_its_progress(tmp_path):
    recipe, seen = small_recipe(tmp_path / "small.toml", 6, 'features = "ochs"\nclusters = 2\nlevels = 2', 4), []
    Builder(recipe, tmp_path / "built", progress=lambda *state: seen.append(state)).build()
    shares = [share for part, share in seen if part == "flop of built (2 of 2), clustering"]
    assert shares[0] == 0 and shares[-1] == 1 and shares == sorted(shares)
    assert any(0 < share < 1 for share in shares)


def test_a_run_verifies_its_abstraction_before_it_begins(tmp_path):
    Builder(nested(2), tmp_path / "built").build()
    cells = next((tmp_path / "built/flop").rglob("bucket/c/0/0"))
    cells.write_bytes(bytes(cells.stat().st_size))
    config = config_from(
        {"game": {"name": "poker", **DECK, "antes": [1, 1], "stack": 2}, "abstraction": {"path": "built"}}, "test"
    )
    refused("bucket/c/0/0 has checksum", check_given_abstractions, config, tmp_path)
