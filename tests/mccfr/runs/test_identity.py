"""Identity of runs: configuration keys and game files that make two runs different."""

import shutil

import crash_states
import pytest
from places import RUNS
from refusals import refused
from sessions import make

from mccfr.config.toml_files import config_from
from mccfr.experiments.definition import merged
from mccfr.runs.directory.identity import check_same_run, identity_document
from mccfr.runs.session.start import reopen_run
from storage import durable

RIVER = {"name": "holdem-subgame", "file": "river.txt"}


def config(game=None, **tables):
    return config_from({"game": game or {"name": "leduc"}, **tables}, "test")


OTHERS = {
    "tables.regret_dtype": "float64",
    "tables.sum_dtype": "float64",
    "tables.format": "hdf5",
    "solver.seed": 7,
    "solver.discount": "none",
    "game.ranks": 4,
    "run.strata": 3,
}


@pytest.mark.parametrize("key", OTHERS)
def test_a_changed_key_makes_another_run_and_the_error_names_the_key(tmp_path, key):
    table, name = key.split(".")
    run = make(tmp_path / "run", {})
    other = config_from(merged({"game": {"name": "leduc"}}, {table: {name: OTHERS[key]}}), "test")
    check_same_run(run.directory, run.manifest, config(), tmp_path)
    for refuse in (
        lambda: check_same_run(run.directory, run.manifest, other, tmp_path),
        lambda: reopen_run(other, tmp_path, run.directory),
    ):
        assert key in refused("holds another run", refuse)


def test_limits_workers_and_evaluations_are_not_part_of_the_identity(tmp_path):
    more = {"run": {"iterations": 7, "workers": 2}, "evaluation": {"at_end": False}, "tables": {"live_dir": "/tmp"}}
    run = make(tmp_path / "run", {})
    check_same_run(run.directory, run.manifest, config(**more), tmp_path)


def test_a_game_file_is_part_of_the_identity_and_copied_durably_into_the_run(tmp_path):
    file = tmp_path / "river.txt"
    shutil.copy(RUNS / "games/river.txt", file)
    one = identity_document(config(RIVER), tmp_path)
    with durable.recording() as operations:
        run = make(tmp_path / "run", {"algorithm": "cfr"}, RIVER | {"file": str(file)})
    assert crash_states.unsynced(operations, {file}) == []
    assert run.path("inputs/river.txt").read_bytes() == file.read_bytes()
    file.write_text(file.read_text() + "\n")
    other = identity_document(config(RIVER), tmp_path)
    assert one != other and {**one["game"], "files_sha256": []} == {**other["game"], "files_sha256": []}
