"""Failed reads are not treated as damage; damaged checkpoints stay with their blocks.

* System errors while a checkpoint is searched, verified or read are raised with the file's name. No checkpoint is
  skipped because of one (test_a_system_error_is_raised_and_names_the_file)
* A missing chunk is never read as zeros (test_a_chunk_removed_between_check_and_read_is_damage)
* Damaged checkpoints, and those set aside, are not removed, nor are their blocks
  (test_a_damaged_checkpoint_stays_with_its_blocks, test_a_checkpoint_set_aside_keeps_its_blocks)
"""

import errno
import io
import os
import shutil

import pytest
from failing import fails
from refusals import refused
from small_checkpoints import CELLS, block_store, commit, commit_with_blocks, write_block

from storage import block_tables, checkpoint, mirror, set_aside
from storage.block_tables import list_versions
from storage.damage import DamagedError, UnreadableError

FORMS = {"zarr": {"format": "zarr"}, "hdf5": {"format": "hdf5"}, "whole": {"format": "hdf5", "whole": True}}
FILES = {"zarr": "tables.zarr/cells/c/0", "hdf5": "tables.h5", "whole": "tables.h5"}
ERRORS = (errno.ESTALE, errno.EIO, errno.EACCES, errno.EMFILE)


@pytest.fixture
def unreadable(monkeypatch):
    """Return `unreadable(name, number)`: opening a file whose path ends so fails with this errno."""
    found = {}

    def fail(path):
        for name, number in found.items():
            if str(path).endswith(name):
                fails(number)(path)

    def patch(module, name):
        opens = getattr(module, name)
        monkeypatch.setattr(module, name, lambda path, *given, **named: (fail(path), opens(path, *given, **named))[1])

    patch(io, "open")
    patch(os, "open")
    return found.__setitem__


@pytest.mark.parametrize("number", ERRORS, ids=map(errno.errorcode.get, ERRORS))
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("file", ["000003/manifest.json", "manifest.json", "000003/state.json", None])
def test_a_system_error_is_raised_and_names_the_file(tmp_path, unreadable, form, number, file):
    for each in (1, 2, 3):
        commit(tmp_path / "all", each, **FORMS[form])
    sound = checkpoint.open_checkpoint(tmp_path / "all/000003")
    name = file or FILES[form]
    unreadable(name, number)
    looks = [lambda: checkpoint.newest_valid(tmp_path / "all"), lambda: checkpoint.verify(tmp_path / "all/000003")]
    looks.append((lambda: sound.read("cells")) if file is None else lambda: checkpoint.open_checkpoint(sound.path))
    for look in looks:
        with pytest.raises(UnreadableError, match=f"{name}: .*nothing was changed; run the command again") as caught:
            look()
        assert caught.value.errno == number and os.strerror(number) in str(caught.value)
    assert checkpoint.list_checkpoints(tmp_path / "all") == [1, 2, 3]


def test_a_chunk_removed_between_check_and_read_is_damage(tmp_path):
    found = checkpoint.open_checkpoint(commit(tmp_path / "all", 1))
    found._check_files(found.files)
    chunk = found.path / FILES["zarr"]
    with found._opened(CELLS) as array:
        chunk.unlink()
        refused("c/0 is missing", lambda: array[:], error=DamagedError)
    found.path.joinpath("manifest.json").unlink()
    refused("manifest.json is missing", checkpoint.open_checkpoint, found.path, error=DamagedError)
    shutil.rmtree(found.path)
    refused("No such file", checkpoint.open_checkpoint, found.path, error=FileNotFoundError)


def test_a_directory_in_the_place_of_a_file_is_damage(tmp_path):
    path = commit(tmp_path / "all", 1)
    (path / "manifest.json").unlink()
    (path / "manifest.json").mkdir()
    refused("is a directory", checkpoint.open_checkpoint, path, error=DamagedError)


@pytest.fixture
def store(tmp_path):
    with block_store(tmp_path / "run") as blocks:
        yield blocks


def commit_blocks(store, number, **options):
    for block in (0, 1):
        write_block(store, block, number)
    path = commit_with_blocks(store, number, **options)
    store.settle()
    return path


def test_a_damaged_checkpoint_stays_with_its_blocks(store):
    commit_blocks(store, 1)
    damaged = commit_blocks(store, 2)
    before = list_versions(store.root)
    (damaged / "manifest.json").write_bytes(b"?")
    assert block_tables.versions_of_checkpoints(store.root) is None, "without a note its versions are unknown"
    set_aside.note_damage(store.root, 2, ["000002: damaged"])
    for number in (3, 4, 5):
        commit_blocks(store, number, keep=1)
    assert checkpoint.list_checkpoints(store.root / "checkpoints") == [2, 5]
    assert set(list_versions(store.root)) == {*before, "blocks/0000/000005", "blocks/0001/000005"}
    set_aside.note_sound(store.root, 2)  # as if it had been restored from a copy
    commit_blocks(store, 6, keep=1)
    assert checkpoint.list_checkpoints(store.root / "checkpoints") == [6]
    shutil.rmtree(store.root / "checkpoints/000006")
    set_aside.note_damage(store.root, 6, [])
    set_aside.note_sound(store.root, 1)
    assert list((store.root / "checkpoints").iterdir()) == [], "a note without its checkpoint is removed"


def test_a_checkpoint_set_aside_keeps_its_blocks(store):
    commit_blocks(store, 1)
    kept, before = commit_blocks(store, 2), list_versions(store.root)
    where = set_aside.set_aside(store.root, 2, "it cannot be read")
    assert where == store.root / "set-aside/000002" and not kept.exists()
    for number in (2, 3):
        commit_blocks(store, number, keep=1)
    assert set(before[1::2]) < set(list_versions(store.root)) and len(list_versions(store.root)) == 4
    shutil.copytree(where, store.root / "checkpoints/000009")
    found = block_tables.open_with_blocks(store.root / "checkpoints/000009")
    assert block_tables.block_problems(found, {}) == []
    assert set_aside.set_aside(store.root, 3, "again").name == "000003"


def test_an_unreadable_copy_is_not_overwritten(tmp_path, unreadable):
    (tmp_path / "run").mkdir()
    for number in (1, 2):
        commit(tmp_path / "run/checkpoints", number)
        mirror.copy_checkpoint(tmp_path / "run", tmp_path / "copy", number, set())
    unreadable("copy/checkpoints/000002/manifest.json", errno.EIO)
    refused("copy.*Input/output", mirror.copy_checkpoint, tmp_path / "run", tmp_path / "copy", 2, set(), error=OSError)
    shutil.rmtree(tmp_path / "run/checkpoints/000002")
    refused("copy.*Input/output", mirror.restore, tmp_path / "run", tmp_path / "copy", error=OSError)
    assert checkpoint.list_checkpoints(tmp_path / "copy/checkpoints") == [1, 2]
