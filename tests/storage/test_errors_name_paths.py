"""System errors name the file, also if the failed call has only a descriptor.

Shows:

* A folder that cannot be listed is an error, and none of its files is left out
  (test_a_folder_that_cannot_be_read_is_an_error)
* Failed writes, allocations, truncations, syncs, mappings and locks name their file (test_a_failed_call_names_its_file)
"""

import errno
import os
from pathlib import Path

import numpy as np
import pytest
from failing import fails
from refusals import refused
from small_checkpoints import ROWS, block_store, commit, write_block

from mccfr.matches.hand_files import hand_files
from storage import durable, hdf5_format, live_tables, mapping, run_lock
from storage.checkpoint import open_checkpoint
from storage.damage import UnreadableError, UnsyncedError
from storage.plain_arrays import write_arrays


def tables(folder, form, **options):
    with live_tables.create_live([ROWS], format=form, live_dir=folder, link=folder / "live", **options) as live:
        mapping.map_regions(live.regions, writable=True, populate=True)


def checkpoint(folder, form):
    commit(folder / "all", 1, format=form)


def block(folder, form):
    with block_store(folder, form) as store:
        write_block(store, 0, 1)


def arrays(folder, form):
    options = {"axes": {ROWS.name: ROWS.axes}, "description": {}, "replaceable": lambda _: True}
    write_arrays(folder / "out", {ROWS.name: np.ones((4, 3), np.float32)}, form, **options)


def journal(folder, form):
    (folder / "journal.jsonl").write_bytes(b"torn")
    durable.append_line(folder / "journal.jsonl", "{}")


def locked(folder, form):
    with run_lock.RunLock(folder / "run.lock"):
        pass


WRITERS = {
    tables: ("posix_fallocate", "pwrite", "fsync", "flock", "_mmap"),
    checkpoint: ("fsync",),
    block: ("posix_fallocate", "pwrite", "fsync"),
    arrays: ("fsync",),
    journal: ("fsync", "complete_lines_length"),
    locked: ("ftruncate", "pwrite", "flock", "fstat"),
}


def test_a_folder_that_cannot_be_read_is_an_error(tmp_path, monkeypatch):
    """`os.walk` and `rglob` omit such a folder silently.

    Syncing it raises `UnsyncedError`, because the command line reports a folder's `PermissionError` as bad input.
    """
    inner, listed = tmp_path / "outer" / "inner", os.scandir
    inner.mkdir(parents=True)
    (inner / "hand.log").write_text("")

    def failing(path, *_):
        return fails(errno.EACCES)(path) if Path(path) == inner else listed(path)

    monkeypatch.setattr(os, "scandir", failing)
    for lists in (durable.adopt_tree, hand_files):
        refused(f"{inner}", lists, tmp_path / "outer", error=OSError)
    monkeypatch.setattr(os, "open", failing)
    refused(f"is not synced to the disk; run the command again.*{inner}", durable.fsync_dir, inner, error=UnsyncedError)
    monkeypatch.setattr(os, "open", fails(errno.ESTALE))
    refused(f"Stale file handle.*is not synced.*again.*{inner}", durable.fsync_dir, inner, error=UnsyncedError)


def test_a_folder_that_cannot_be_examined_is_unreadable(tmp_path, monkeypatch):
    """The error is no `PermissionError`, which the command line would report as bad input."""

    monkeypatch.setattr(Path, "stat", fails(errno.EACCES))
    for makes in (durable.make_dirs, lambda path: durable.making_dirs(path).__enter__()):
        refused(f"{tmp_path}/a: Permission denied: nothing was changed", makes, tmp_path / "a", error=UnreadableError)


def test_a_failed_stat_inside_hdf5_is_not_damage(tmp_path, monkeypatch):
    """h5py's message names no system error, so the file is examined to find it."""
    checkpoint(tmp_path, "hdf5")
    found, stat = open_checkpoint(tmp_path / "all/000001"), Path.stat
    opened, failed = hdf5_format.h5py.File, []

    def failing(path, mode):
        if not failed:
            failed.append(path)
            raise OSError("Unable to synchronously open file (can't retrieve stat info for file)")
        return opened(path, mode)

    def stale(path, **how):
        return fails(errno.ESTALE)(path) if failed and path.name == "tables.h5" else stat(path, **how)

    monkeypatch.setattr(hdf5_format.h5py, "File", failing)
    with monkeypatch.context() as patch, pytest.raises(UnreadableError, match="Stale file handle"):
        patch.setattr(Path, "stat", stale)
        found.read("cells")
    failed.clear()
    assert found.read("cells").tolist() == [1] * 6


@pytest.mark.parametrize("form", ["zarr", "hdf5"])
@pytest.mark.parametrize(("writer", "call"), [(writer, call) for writer, calls in WRITERS.items() for call in calls])
def test_a_failed_call_names_its_file(tmp_path, monkeypatch, writer, call, form):
    """Fail each call in turn, until a writer has succeeded because it makes fewer calls."""
    found = []
    for at in range(1, 30):
        folder, count = tmp_path / str(at), [0]
        folder.mkdir()
        with monkeypatch.context() as patch:
            place = {"flock": run_lock.fcntl, "_mmap": mapping, "complete_lines_length": durable}.get(call, os)
            done = getattr(place, call)

            def failing(*arguments, count=count, done=done, at=at):
                count[0] += 1
                if count[0] == at:
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                return done(*arguments)

            patch.setattr(place, call, failing)
            try:
                writer(folder, form)
            except OSError as error:
                found.append(error)
                assert error.filename is not None, (at, error)
                name = Path(error.filename)
                assert name.is_relative_to(folder), (at, error)
                assert not any(part.startswith(durable.TEMPORARY_PREFIX) for part in name.parts), (at, error)
        if count[0] < at:
            assert found or form == "hdf5"
            return
    raise AssertionError("the writer makes more than 29 calls")
