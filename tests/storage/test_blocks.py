"""Versions of blocks: one goes only where no checkpoint on the disk names it and none on its way there will."""

import errno
import shutil

import numpy as np
import pytest

from storage import blocks, checkpoint, checkpoint_writer, copies
from storage.blocks import BlockStore, Partition, block_problems
from storage.schema import ArraySpec

SPEC = ArraySpec("regret/street1/player0", (4, 3), "float32", ("bucket", "slot"))
PARTITION = Partition((SPEC,), {SPEC.name: [0, 2, 4]})


@pytest.fixture
def store(tmp_path):
    (tmp_path / "run").mkdir()
    made = BlockStore(tmp_path / "run", PARTITION, {"run": 1}, format="zarr")
    made.go_on(None)
    yield made
    made.close()


def write(store, value):
    for block in (0, 1):
        store.write(block, {SPEC.name: np.full((2, 3), value, np.float32)})


def commit(store, number, keep=3):
    names = store.names()
    checkpoint_writer.commit(
        store.root / "checkpoints",
        number,
        [ArraySpec("first", (1,), "float32", ("x",))],
        {"first": np.ones(1, np.float32)},
        store.state(),
        {"run": 1},
        format="zarr",
        keep=keep,
        parents=names,
    )


def removed(store):
    """Wait for what is being removed."""
    while store._removing:
        store._removing.pop().result()


def problems(root):
    numbers = checkpoint.list_checkpoints(root / "checkpoints")
    found = [blocks.open_whole(checkpoint.checkpoint_path(root / "checkpoints", number)) for number in numbers]
    return [problem for each in found for problem in block_problems(each, {})]


def versions(store):
    return sorted(path.relative_to(store.root / "blocks").as_posix() for path in store.root.glob("blocks/*/*"))


def test_what_a_checkpoint_names_stays_whether_or_not_anybody_settles(store):
    write(store, 1)
    commit(store, 1)
    write(store, 2)  # nobody has settled: the commit's last step had failed
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
        blocks.drop_unnamed(store.root)
    assert problems(store.root) == [] and len(versions(store)) == 4
    blocks.drop_unnamed(store.root)
    assert problems(store.root) == [] and len(versions(store)) == 2


def test_copies_keep_what_a_damaged_checkpoint_names(store, tmp_path):
    """They are there for it: the names that can no longer be read beside it stand in its copy."""
    place = tmp_path / "copies"
    for number in (1, 2):
        write(store, number)
        commit(store, number)
        store.settle()
        copies.copy_checkpoint(store.root, place, number, {0, 1})
    (store.root / "checkpoints/000001/manifest.json").write_text("")
    write(store, 3)
    commit(store, 3)
    copies.copy_checkpoint(store.root, place, 3, {0, 1})
    shutil.rmtree(store.root / "blocks")
    assert copies.restore(store.root, place)
    assert checkpoint.list_checkpoints(store.root / "checkpoints") == [1, 2, 3] and problems(store.root) == []
