"""Versions of blocks: kept while a checkpoint names them; copied to a mirror and restored."""

import errno
import shutil

import crash_states
import numpy as np
import pytest
from refusals import refusals, refused
from small_checkpoints import PARTITION, ROWS, block_store, commit_with_blocks, write_block

from storage import block_tables, checkpoint, durable, mirror
from storage.block_tables import BlockStore, Partition, block_problems
from storage.set_aside import note_damage


@pytest.fixture
def store(tmp_path):
    with block_store(tmp_path / "run", run=1) as blocks:
        yield blocks


def write(store, value):
    for block in (0, 1):
        write_block(store, block, value)


def commit(store, number, **options):
    commit_with_blocks(store, number, identity={"run": 1}, **options)


def wait_for_removals(store):
    """Wait until the store has removed the versions that it is removing."""
    while store._removing:
        store._removing.pop().result()


def problems(root):
    found = map(block_tables.open_with_blocks, sorted((root / "checkpoints").glob("0?????")))
    return [problem for each in found for problem in block_problems(each, {})]


def versions(store):
    return sorted(path.relative_to(store.root / "blocks").as_posix() for path in store.root.glob("blocks/*/*"))


@pytest.mark.parametrize("settles", [True, False], ids=["settled", "the commit's last step had failed"])
def test_versions_named_by_a_checkpoint_stay_with_and_without_settle(store, settles):
    write(store, 1)
    commit(store, 1)
    if settles:
        store.settle()
    write(store, 2)
    write(store, 3)
    wait_for_removals(store)
    assert problems(store.root) == []
    assert versions(store) == ["0000/000001", "0000/000003", "0001/000001", "0001/000003"]
    commit(store, 2, keep=1)
    store.settle()
    assert versions(store) == ["0000/000003", "0001/000003"] and problems(store.root) == []


def test_versions_named_for_an_uncommitted_checkpoint_stay_until_the_next_names(store):
    write(store, 1)
    store.names()
    write(store, 2)
    wait_for_removals(store)
    assert len(versions(store)) == 4  # `names` keeps the first ones for a checkpoint, which is never committed
    store.names()
    wait_for_removals(store)
    assert versions(store) == ["0000/000002", "0001/000002"]


@pytest.mark.parametrize("error", [OSError(errno.EIO, "Input/output error"), ValueError("format_version 4")])
def test_no_version_is_removed_while_a_checkpoint_is_unreadable(store, monkeypatch, error):
    write(store, 1)
    commit(store, 1)
    store.settle()
    with monkeypatch.context() as broken:
        real_open = checkpoint.open_checkpoint

        def fail(path, *kind):
            if path.parent.name == "checkpoints":
                raise error
            return real_open(path, *kind)

        broken.setattr(checkpoint, "open_checkpoint", fail)
        write(store, 2)
        store.settle()
        block_tables.drop_unnamed(store.root)
    assert problems(store.root) == [] and len(versions(store)) == 4
    block_tables.drop_unnamed(store.root)
    assert problems(store.root) == [] and len(versions(store)) == 2


def test_the_mirror_keeps_versions_named_by_a_damaged_checkpoint(store, tmp_path):
    """A damaged checkpoint's note lists only versions that exist beside it.

    The checkpoint's copy in the mirror names the lost ones too.
    """
    place, first = tmp_path / "copies", store.root / "checkpoints/000001"
    for number in (1, 2):
        write(store, number)
        commit(store, number)
        store.settle()
        mirror.copy_checkpoint(store.root, place, number, {0, 1})
    for name in block_tables.versions_of_checkpoint(checkpoint.open_checkpoint(first)):
        shutil.rmtree(store.root / name)
    (first / "manifest.json").write_text("")
    note_damage(store.root, 1, ["an empty manifest"])
    write(store, 3)
    commit(store, 3)
    mirror.copy_checkpoint(store.root, place, 3, {0, 1})
    shutil.rmtree(store.root / "blocks")
    assert mirror.restore(store.root, place)
    assert checkpoint.list_checkpoints(store.root / "checkpoints") == [1, 2, 3] and problems(store.root) == []


@pytest.fixture
def copy_root(store, tmp_path):
    """Return the folder of a mirror with a copy of the store's checkpoint and its block versions."""
    write(store, 1)
    commit(store, 1)
    mirror.copy_checkpoint(store.root, tmp_path / "copies", 1, {0, 1})
    return tmp_path / "copies"


def test_a_copy_is_synced_before_it_is_renamed(store, tmp_path):
    write(store, 1)
    commit(store, 1)
    place = tmp_path / "copies"
    with durable.recording() as operations:
        mirror.copy_checkpoint(store.root, place, 1, {0, 1})
    assert crash_states.unsynced(operations, set(store.root.rglob("*"))) == []
    renamed = [str(operation.target.relative_to(place)) for operation in operations if operation.kind == "rename"]
    assert renamed == ["blocks/0000/000001", "blocks/0001/000001", "checkpoints/000001"], "blocks first"


def test_a_damaged_file_is_not_copied(store, copy_root):
    write(store, 2)
    commit(store, 2)
    cells = next((store.root / "blocks/0001/000002").rglob("c/*/*"))
    cells.write_bytes(bytes(cells.stat().st_size))
    refused("is not what the manifest states", mirror.copy_checkpoint, store.root, copy_root, 2, {0, 1}, error=OSError)
    assert checkpoint.list_checkpoints(copy_root / "checkpoints") == [1]
    assert checkpoint.list_checkpoints(copy_root / "blocks/0001") == [1]


def test_a_damaged_copy_is_not_restored(store, copy_root):
    for root in (store.root, copy_root):
        (root / "blocks/0000/000001/state.json").write_text("{}")
    (store.root / "blocks/0001/000001/state.json").unlink()
    assert mirror.restore(store.root, copy_root) == ["blocks/0001/000001"]
    assert checkpoint.verify(store.root / "blocks/0001/000001") == []
    assert checkpoint.verify(store.root / "blocks/0000/000001") != []


def test_a_version_of_another_run_is_not_read(store):
    write(store, 1)
    commit(store, 1)
    commit(store, 2)
    path = store.root / "blocks/0000/000001"
    shutil.rmtree(path)
    with block_store(store.root, run=2) as other:
        write_block(other, 0, 0)
    assert checkpoint.verify(path) == []
    cells = np.empty((2, 3), np.float32)
    refused("is another version than", store.read, 0, {ROWS.name: cells}, error=OSError)
    assert len(problems(store.root)) == 2


def test_a_half_written_version_of_a_killed_run_is_removed(store):
    write(store, 1)
    (store.root / "blocks/0001/.tmp-000002-0123abcd").mkdir()
    commit(store, 1)
    store.go_on(checkpoint.open_checkpoint(store.root / "checkpoints/000001"))
    assert versions(store) == ["0000/000001", "0001/000001"]


def test_a_run_does_not_resume_from_blocks_of_other_rows(store):
    write(store, 1)
    commit(store, 1)
    found = checkpoint.open_checkpoint(store.root / "checkpoints/000001")
    other = BlockStore(store.root, Partition((ROWS,), {ROWS.name: [0, 1, 4]}), {"run": 1}, format="zarr")
    refused("holds other blocks than this run has", other.go_on, found)
    other.close()


test_invalid_partitions = refusals(
    ("do not cover its 4 rows", {ROWS.name: []}),
    ("do not cover its 4 rows", {ROWS.name: [0, 2, 3]}),
    ("do not cover its 4 rows", {ROWS.name: [1, 2, 4]}),
    ("do not cover its 4 rows", {ROWS.name: [0, 5, 4]}),
    ("do not belong to its arrays", {"other": [0, 4]}),
    call=lambda first: block_tables.partition_from_json(PARTITION.to_json() | {"first": first}),
)
