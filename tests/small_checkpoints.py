"""Commits checkpoints of one small array, and blocks of one small table."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from storage import checkpoint_writer
from storage.block_tables import BlockStore, Partition
from storage.schema import ArraySpec

CELLS = ArraySpec("cells", (6,), "float32", ("x",))
ROWS = ArraySpec("regret/street1/player0", (4, 3), "float32", ("bucket", "slot"))
PARTITION = Partition((ROWS,), {ROWS.name: [0, 2, 4]})


def commit(root: Path, number: int, *, keep: int = 9, state: Mapping[str, object] | None = None, **options) -> Path:
    """Commit a checkpoint whose cells all contain its number."""
    options = {"format": "zarr", "identity": {}, **options}
    cells = {CELLS.name: np.full(CELLS.shape, number, np.float32)}
    return checkpoint_writer.commit(root, number, [CELLS], cells, state or {}, keep=keep, **options)


@contextmanager
def block_store(root: Path, form: str = "zarr", **identity: object) -> Iterator[BlockStore]:
    """Yield a new store of two blocks."""
    root.mkdir(exist_ok=True)
    store = BlockStore(root, PARTITION, identity, format=form)
    try:
        store.go_on(None)
        yield store
    finally:
        store.close()


def write_block(store: BlockStore, block: int, value: float) -> None:
    """Write a version of a block whose cells are all one value."""
    store.write(block, {ROWS.name: np.full((2, 3), value, np.float32)})


def commit_with_blocks(store: BlockStore, number: int, **options: object) -> Path:
    """Commit a checkpoint that names the newest versions of the blocks."""
    return commit(store.root / "checkpoints", number, state=store.state(), parents=store.names(), **options)
