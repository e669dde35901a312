"""Versions of blocks: removed only if no checkpoint, present or in progress, names them."""

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
    with block_store(tmp_path / "run", run=1) as made:
        yield made


def write(store, value):
    for block in (0, 1):
        write_block(store, block, value)


def commit(store, number, **options):
    commit_with_blocks(store, number, identity={"run": 1}, **options)


def removed(store):
    """Wait for removals in progress."""
    while store._removing:
        store._removing.pop().result()


def problems(root):
    found = map(block_tables.open_with_blocks, sorted((root / "checkpoints").glob("0?????")))
    return [problem for each in found for problem in block_problems(each, {})]


def versions(store):
    return sorted(path.relative_to(store.root / "blocks").as_posix() for path in store.root.glob("blocks/*/*"))


@pytest.mark.parametrize("settles", [True, False], ids=["settled", "the commit's last step had failed"])
def test_what_a_checkpoint_names_stays_whether_or_not_anybody_settles(store, settles):
    write(store, 1)
    commit(store, 1)
    if settles:
        store.settle()
    write(store, 2)
    write(store, 3)
    removed(store)
    assert problems(store.root) == []
    assert versions(store) == ["0000/000001", "0000/000003", "0001/000001", "0001/000003"]
    commit(store, 2, keep=1)
    store.settle()
    assert versions(store) == ["0000/000003", "0001/000003"] and problems(store.root) == []


def test_what_is_promised_to_a_checkpoint_stays_until_it_is_there_or_another_is_begun(store):
    write(store, 1)
    store.names()
    write(store, 2)
    removed(store)
    assert len(versions(store)) == 4  # the first ones are promised, to a checkpoint that does not come
    store.names()
    removed(store)
    assert versions(store) == ["0000/000002", "0001/000002"]


@pytest.mark.parametrize("error", [OSError(errno.EIO, "Input/output error"), ValueError("format_version 4")])
def test_where_a_checkpoint_cannot_be_read_nothing_goes(store, monkeypatch, error):
    write(store, 1)
    commit(store, 1)
    store.settle()
    with monkeypatch.context() as broken:
        opened = checkpoint.open_checkpoint

        def fail(path, *kind):
            if path.parent.name == "checkpoints":
                raise error
            return opened(path, *kind)

        broken.setattr(checkpoint, "open_checkpoint", fail)
        write(store, 2)
        store.settle()
        block_tables.drop_unnamed(store.root)
    assert problems(store.root) == [] and len(versions(store)) == 4
    block_tables.drop_unnamed(store.root)
    assert problems(store.root) == [] and len(versions(store)) == 2


def test_copies_keep_what_a_damaged_checkpoint_names(store, tmp_path):
    """A damaged checkpoint's note lists the versions that exist beside it, its copy those that are lost too."""
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
def copied(store, tmp_path):
    """The place where a checkpoint of the store and its versions lie once more."""
    write(store, 1)
    commit(store, 1)
    mirror.copy_checkpoint(store.root, tmp_path / "copies", 1, {0, 1})
    return tmp_path / "copies"


def test_a_copy_is_on_the_disk_before_it_has_its_name(store, tmp_path):
    write(store, 1)
    commit(store, 1)
    place = tmp_path / "copies"
    with durable.recording() as operations:
        mirror.copy_checkpoint(store.root, place, 1, {0, 1})
    assert crash_states.unsynced(operations, set(store.root.rglob("*"))) == []
    renamed = [str(operation.target.relative_to(place)) for operation in operations if operation.kind == "rename"]
    assert renamed == ["blocks/0000/000001", "blocks/0001/000001", "checkpoints/000001"], "what names others is last"


def test_a_damaged_file_is_not_copied(store, copied):
    write(store, 2)
    commit(store, 2)
    cells = next((store.root / "blocks/0001/000002").rglob("c/*/*"))
    cells.write_bytes(bytes(cells.stat().st_size))
    refused("is not what the manifest states", mirror.copy_checkpoint, store.root, copied, 2, {0, 1}, error=OSError)
    assert checkpoint.list_checkpoints(copied / "checkpoints") == [1]
    assert checkpoint.list_checkpoints(copied / "blocks/0001") == [1]


def test_a_damaged_copy_is_not_put_back(store, copied):
    for root in (store.root, copied):
        (root / "blocks/0000/000001/state.json").write_text("{}")
    (store.root / "blocks/0001/000001/state.json").unlink()
    assert mirror.restore(store.root, copied) == ["blocks/0001/000001"]
    assert checkpoint.verify(store.root / "blocks/0001/000001") == []
    assert checkpoint.verify(store.root / "blocks/0000/000001") != []


def test_another_version_than_a_checkpoint_names_is_not_read(store):
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


def test_what_a_killed_run_has_half_written_of_a_version_goes(store):
    write(store, 1)
    (store.root / "blocks/0001/.tmp-000002-0123abcd").mkdir()
    commit(store, 1)
    store.go_on(checkpoint.open_checkpoint(store.root / "checkpoints/000001"))
    assert versions(store) == ["0000/000001", "0001/000001"]


def test_blocks_of_other_rows_are_not_gone_on_from(store):
    write(store, 1)
    commit(store, 1)
    found = checkpoint.open_checkpoint(store.root / "checkpoints/000001")
    other = BlockStore(store.root, Partition((ROWS,), {ROWS.name: [0, 1, 4]}), {"run": 1}, format="zarr")
    refused("holds other blocks than this run has", other.go_on, found)
    other.close()


test_blocks_that_are_none = refusals(
    ("do not cover its 4 rows", {ROWS.name: [0, 2, 3]}),
    ("do not cover its 4 rows", {ROWS.name: [1, 2, 4]}),
    ("do not cover its 4 rows", {ROWS.name: [0, 5, 4]}),
    ("do not belong to its arrays", {"other": [0, 4]}),
    call=lambda first: block_tables.partition_from_json(PARTITION.to_json() | {"first": first}),
)
