"""Tables in blocks on a disk: rows of the first axis, block by block, each written whole as a version of its own.

A version is a checkpoint of a block's rows (`storage.checkpoint`), `ROOT/blocks/0003/000017`: whole or not there,
fsynced, each array in one run of raw cells with a checksum (`storage.contiguous`), so that it moves at the speed of the
disk.  It never changes: what is written of a block later is another version.  The
checkpoints in `ROOT/checkpoints` name the versions that belong to them, with the hash of each one's manifest, so that a
checkpoint of tables of any size is a list.  A version goes once a newer one is written, if no checkpoint on the disk
names it and none that is being written will; whoever removes one looks there, whatever has come of the last commit.

A block without a version holds zeros.
"""

from collections.abc import Collection, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from threading import Lock
from typing import Any

import msgspec
import numpy as np

from storage import checkpoint as checkpoints
from storage import checkpoint_writer, durable
from storage.checkpoint import Checkpoint
from storage.damage import DamagedError
from storage.json_files import read_json
from storage.lock import RunLock
from storage.schema import ArraySpec, specs_from_json, specs_to_json, validate_specs

BLOCKS = "blocks"
"""The directory of all versions, and the field of a checkpoint's state that says what they are parts of."""

CHECKPOINTS, SET_ASIDE = "checkpoints", "set-aside"
"""The directories beside it, of the checkpoints that name versions, and of those that were put aside."""
_EVERY_VERSION = 2**62


class Partition(msgspec.Struct, frozen=True):
    """How arrays are cut into blocks along their first axes.

    Fields:
        arrays: the whole arrays
        first:  {name: [blocks+1] row at which each block begins, and the number of rows}
    """

    arrays: tuple[ArraySpec, ...]
    first: dict[str, list[int]]

    @property
    def blocks(self) -> int:
        """Number of blocks."""
        return len(next(iter(self.first.values()))) - 1

    def parts(self, block: int) -> tuple[ArraySpec, ...]:
        """What a block holds of each array; nothing of those that it has no row of."""
        rows = ((spec, self.first[spec.name][block], self.first[spec.name][block + 1]) for spec in self.arrays)
        return tuple(_with_rows(spec, end - first) for spec, first, end in rows if end > first)

    def nbytes(self, block: int) -> int:
        """Bytes of a block's cells."""
        return sum(spec.nbytes for spec in self.parts(block))

    def to_json(self) -> dict[str, Any]:
        """As plain data for a checkpoint's state."""
        return {"arrays": specs_to_json(self.arrays), "first": self.first}


def _with_rows(spec: ArraySpec, rows: int) -> ArraySpec:
    return msgspec.structs.replace(spec, shape=(rows, *spec.shape[1:]))


def partition_from_json(data: Any) -> Partition:
    """What `to_json` has turned into plain data; `ValueError` where that is not what it is."""
    if not isinstance(data, dict):
        raise ValueError("the blocks of a checkpoint's state are no object")
    arrays = specs_from_json(data.get("arrays"))
    first = msgspec.convert(data.get("first"), dict[str, list[int]])
    if set(first) != {spec.name for spec in arrays} or len({len(rows) for rows in first.values()}) != 1:
        raise ValueError("the blocks of a checkpoint's state do not belong to its arrays")
    for spec in arrays:
        rows = first[spec.name]
        if rows[0] != 0 or rows[-1] != spec.shape[0] or rows != sorted(rows):
            raise ValueError(f"the blocks of array {spec.name!r} do not cover its {spec.shape[0]} rows")
    return Partition(arrays, first)


def version_identity(identity: Mapping[str, Any]) -> dict[str, Any]:
    """Return the identity of versions that checkpoints of the given identity name."""
    return {"blocks_of": identity.get("run_identity")}


def block_name(block: int, version: int) -> str:
    """How a checkpoint names a version: its path, relative to ROOT."""
    return f"{BLOCKS}/{block:04d}/{version:06d}"


class BlockStore:
    """The versions of a run's blocks, of which one process writes new ones; from several threads if it likes.

    Attributes:
        partition: what the blocks are
        versions:  {block: (its newest version, the hash of that one's manifest)}; none where a block holds zeros
        moved:     bytes of cells written and read so far by this object
    """

    def __init__(
        self,
        root: Path,
        partition: Partition,
        identity: dict[str, Any],
        *,
        format: str,  # noqa: A002 - the name of the config's key
        lock: RunLock | None = None,
    ) -> None:
        """
        identity  of the checkpoints that name the versions
        lock      checked before a version is written or removed (`RunLock.check`)
        """
        self._held = lock
        self.root, self.partition, self.versions = root, partition, dict[int, tuple[int, str]]()
        self.moved = 0
        self._identity, self._format = version_identity(identity), format
        self._promised: set[str] = set()  # to a checkpoint that may be on its way to the disk
        self._lock = Lock()
        # Removing a file of gigabytes takes as long as writing some hundred megabytes: nothing waits for that.
        self._remover = ThreadPoolExecutor(1, "removed blocks")
        self._removing: list[Future[None]] = []

    def go_on(self, checkpoint: Checkpoint | None) -> None:
        """Take the versions that a checkpoint names (None: zeros), and remove those that none does.

        Raises `ValueError` where the checkpoint is of other blocks.
        """
        self.versions = {}
        if checkpoint is not None:
            if partition_from_json(checkpoint.state.get(BLOCKS)) != self.partition:
                raise ValueError(f"{checkpoint.path} holds other blocks than this run has")
            for name, content_hash in named_by(checkpoint).items():
                _, block, version = name.split("/")
                self.versions[int(block)] = (int(version), content_hash)
        sweep_blocks(self.root)
        self.settle()

    def names(self) -> dict[str, str]:
        """{name: hash of the manifest} of the newest versions, for a checkpoint to name: they stay until `settle`."""
        with self._lock:
            found = {block_name(block, version): stated for block, (version, stated) in sorted(self.versions.items())}
            before, self._promised = self._promised, set(found)
            for name in sorted(before - self._promised):  # of a checkpoint that did not come to the disk
                self._removing.append(self._remover.submit(self._drop, name))
        return found

    def state(self) -> dict[str, Any]:
        """What a checkpoint's state must say for its blocks to be read."""
        return {BLOCKS: self.partition.to_json()}

    def write(self, block: int, arrays: Mapping[str, np.ndarray], *, background: bool = False) -> None:
        """Write a new version of a block, durably; the one before goes unless a checkpoint names it, or will.

        arrays      {name: cells of the block}, which nobody changes meanwhile
        background  give way to whoever else wants the processors

        Raises as `checkpoint_writer.commit`: the earlier versions stay then.
        """
        folder = self.root / BLOCKS / f"{block:04d}"
        self._check()
        durable.ensure_dir(folder.parent)
        number = max(1, checkpoints.next_number(folder))
        checkpoint_writer.commit(
            folder,
            number,
            self.partition.parts(block),
            arrays,
            {"block": block},
            self._identity,
            format=self._format,
            keep=_EVERY_VERSION,
            whole=True,
            background=background,
            lock=self._held,
        )
        with self._lock:
            before = self.versions.get(block)
            self.versions[block] = (number, checkpoints.open_checkpoint(folder / f"{number:06d}").content_hash)
            self.moved += self.partition.nbytes(block)
            if before is not None and block_name(block, before[0]) not in self._promised:
                self._removing.append(self._remover.submit(self._drop, block_name(block, before[0])))

    def read(self, block: int, arrays: Mapping[str, np.ndarray]) -> None:
        """Fill the cells of a block from its newest version.

        Raises `DamagedError` for a version that is damaged or gone, `UnreadableError` where the system cannot read it:
        nothing can be said of the cells then.
        """
        found = self.versions.get(block)
        if found is None:
            for cells in arrays.values():
                cells[...] = 0
            return
        stored = _open_version(self.root, block_name(block, found[0]), found[1], self._identity)
        for name, cells in arrays.items():
            stored.read_into(name, cells)
        with self._lock:
            self.moved += self.partition.nbytes(block)

    def settle(self) -> None:
        """The checkpoint that was given `names` is on the disk: remove what none there names, nor the next one will."""
        with self._lock:
            while self._removing:
                self._removing.pop().result()
            self._check()
            newest = {block_name(block, version) for block, (version, _) in self.versions.items()}
            _keep_only(self.root, newest)
            self._promised.clear()

    def _check(self) -> None:
        if self._held is not None:
            self._held.check()

    def _drop(self, name: str) -> None:
        """Remove a version unless a checkpoint on the disk names it."""
        self._check()
        named = versions_named(self.root)
        if named is not None and name not in named and (self.root / name).exists():
            durable.drop_trees([self.root / name])

    def close(self) -> None:
        """Wait for what is being removed, whatever comes of it: the next `go_on` removes what is left."""
        self._remover.shutdown(wait=True)


def sweep_blocks(root: Path) -> None:
    """Remove what killed runs have left half written of versions; for the holder of the run lock, at start-up."""
    for path in checkpoints.list_entries(root / BLOCKS):
        checkpoint_writer.sweep(path)


def drop_unnamed(root: Path) -> None:
    """Remove the versions that no checkpoint of a run names, and what was half written of others."""
    sweep_blocks(root)
    _keep_only(root, ())


def versions_named(root: Path, among: Collection[int] | None = None) -> set[str] | None:
    """The versions that the checkpoints of a run (or those of some numbers) name, those set aside included.

    Of a checkpoint with a note (`storage.aside`) those that the note lists.  None where that cannot be told, because a
    checkpoint cannot be read now, is damaged and has no note, or is of another program's version: then nothing may be
    removed.
    """
    found = set[str]()
    try:
        folder = root / CHECKPOINTS
        for number in checkpoints.list_checkpoints(folder):
            if among is None or number in among:
                found.update(_named_by_one(checkpoints.checkpoint_path(folder, number)))
        for note in checkpoints.list_notes(root / SET_ASIDE):
            found.update(read_json(note)[BLOCKS])
    except (OSError, ValueError, LookupError, TypeError):
        return None
    return found


def _named_by_one(path: Path) -> Collection[str]:
    """The versions that a checkpoint or the note beside it names; none where retention has just removed it."""
    try:
        listed: list[str] = read_json(checkpoints.note_path(path))[BLOCKS]
        return listed
    except FileNotFoundError:
        pass
    try:
        return named_by(checkpoints.open_checkpoint(path))
    except FileNotFoundError:
        return ()


def _keep_only(root: Path, kept: Collection[str]) -> None:
    """Remove all versions but some and those that checkpoints name."""
    named = versions_named(root)
    if named is None:
        return
    for name in list_versions(root):
        if name not in named and name not in kept:
            durable.drop_trees([root / name])


def list_versions(root: Path) -> list[str]:
    """The names of all versions of a run, sound or not."""
    return [
        f"{BLOCKS}/{block.name}/{version:06d}"
        for block in checkpoints.list_entries(root / BLOCKS)
        for version in checkpoints.list_checkpoints(block)
    ]


def named_by(checkpoint: Checkpoint) -> dict[str, str]:
    """{name: hash of the manifest} of the versions that a checkpoint names."""
    return {name: found for name, found in checkpoint.parents.items() if name.startswith(f"{BLOCKS}/")}


def _open_named(checkpoint: Checkpoint, name: str) -> Checkpoint:
    """Open a version that a checkpoint names; raises as `_open_version`."""
    root = checkpoint.path.parent.parent
    return _open_version(root, name, checkpoint.parents[name], version_identity(checkpoint.identity))


def _open_version(root: Path, name: str, content_hash: str, identity: Mapping[str, Any]) -> Checkpoint:
    """Open a version; `DamagedError` where it is damaged, gone, another run's, or not what a checkpoint names."""
    try:
        found = checkpoints.open_checkpoint(root / name)
    except FileNotFoundError:
        raise DamagedError(f"{root / name} is gone, and a checkpoint names it") from None
    except ValueError as error:
        raise DamagedError(str(error)) from error
    if (foreign := checkpoints.identity_problem(found, identity)) is not None:
        raise DamagedError(f"{root / name}: {foreign}")
    if found.content_hash != content_hash:
        raise DamagedError(f"{root / name} is another version than the one that its checkpoint names")
    return found


def block_problems(checkpoint: Checkpoint, known: dict[str, list[str]]) -> list[str]:
    """What is wrong with the versions that a checkpoint names, every byte of them read; a sentence for each thing.

    known  {name: what is wrong with it} of versions that have been read, for other checkpoints; those read are added
    """
    root, problems = checkpoint.path.parent.parent, []
    for name in named_by(checkpoint):
        if name not in known:
            known[name] = checkpoints.verify(root / name)
        problems += [f"{name}: {problem}" for problem in known[name]]
        if not known[name]:
            try:
                _open_named(checkpoint, name)
            except DamagedError as error:
                problems.append(f"{name}: {error}")
    return [f"{checkpoint.path.name}: {problem}" for problem in problems]


class WholeCheckpoint(Checkpoint):
    """A checkpoint with the arrays of its blocks as if they were its own."""

    def __init__(self, path: Path, manifest: dict[str, Any]) -> None:
        super().__init__(path, manifest)
        self._own = self.specs
        try:
            self._partition = partition_from_json(self.state[BLOCKS])
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from error
        self.specs = validate_specs((*self._own, *self._partition.arrays))

    def _read(self, spec: ArraySpec, out: np.ndarray | None) -> np.ndarray:
        if spec in self._own:
            return super()._read(spec, out)
        cells = np.empty(spec.shape, spec.numpy_dtype) if out is None else out
        names = {int(name.split("/")[1]): name for name in named_by(self)}
        rows = self._partition.first[spec.name]
        for block, (first, end) in enumerate(pairwise(rows)):
            if block not in names:
                cells[first:end] = 0
            elif end > first:
                _open_named(self, names[block]).read_into(spec.name, cells[first:end])
        return cells


def open_whole(path: Path) -> Checkpoint:
    """Open a checkpoint as `checkpoint.open_checkpoint` does; what it holds in blocks is read as its own."""
    found = checkpoints.open_checkpoint(path)
    if BLOCKS not in found.state:
        return found
    return checkpoints.open_checkpoint(path, WholeCheckpoint)
