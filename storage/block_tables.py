"""Stores tables in blocks of rows; each write creates a new immutable version of a block.

A block is a range of consecutive rows of each table, read and written by itself. ROOT is the run directory.

A version, `ROOT/blocks/0003/000017`, is a checkpoint of a block's rows (`storage.checkpoint`). It is written atomically
and fsynced. Each array is contiguous raw cells with a checksum (`storage.contiguous_arrays`), so it is read and
written at disk speed. A block without a version holds zeros.

Checkpoints in `ROOT/checkpoints` name the versions that have their rows, with the hash of each version's manifest. The
writer removes an old version after a newer one is written, unless a checkpoint on disk or one being written names it.
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
from storage.run_lock import RunLock
from storage.schema import ArraySpec, specs_from_json, specs_to_json, validate_specs

BLOCKS = "blocks"
"""Directory of all versions, and the key of a checkpoint's state that holds the `Partition`."""

CHECKPOINTS, SET_ASIDE = "checkpoints", "set-aside"
"""Directories beside `blocks`: checkpoints that name versions, and checkpoints that the user set aside."""
_EVERY_VERSION = 2**62


class Partition(msgspec.Struct, frozen=True):
    """Division of arrays into blocks of consecutive rows along their first axes.

    Fields:
        arrays: schema of the whole arrays
        first:  {name: [blocks+1] first row of each block, then the number of rows}
    """

    arrays: tuple[ArraySpec, ...]
    first: dict[str, list[int]]

    @property
    def blocks(self) -> int:
        """Number of blocks."""
        return len(next(iter(self.first.values()))) - 1

    def parts(self, block: int) -> tuple[ArraySpec, ...]:
        """Return the schemas of a block's arrays: those of the whole arrays, with the block's number of rows.

        block  index of the block, from 0

        Arrays without rows in the block are left out.
        """
        rows = ((spec, self.first[spec.name][block], self.first[spec.name][block + 1]) for spec in self.arrays)
        return tuple(_with_rows(spec, end - first) for spec, first, end in rows if end > first)

    def nbytes(self, block: int) -> int:
        """Return the size in bytes of the cells of all arrays in a block (index from 0)."""
        return sum(spec.nbytes for spec in self.parts(block))

    def to_json(self) -> dict[str, Any]:
        """Return the partition as dictionaries and lists, to store as JSON in a checkpoint's state."""
        return {"arrays": specs_to_json(self.arrays), "first": self.first}


def _with_rows(spec: ArraySpec, rows: int) -> ArraySpec:
    return msgspec.structs.replace(spec, shape=(rows, *spec.shape[1:]))


def partition_from_json(data: Any) -> Partition:
    """Return the partition that `Partition.to_json` converted; raises `ValueError` for other data."""
    if not isinstance(data, dict):
        raise ValueError("the blocks of a checkpoint's state are not a JSON object")
    arrays = specs_from_json(data.get("arrays"))
    first = msgspec.convert(data.get("first"), dict[str, list[int]])
    if set(first) != {spec.name for spec in arrays} or len({len(rows) for rows in first.values()}) != 1:
        raise ValueError("the blocks of a checkpoint's state do not belong to its arrays")
    for spec in arrays:
        rows = first[spec.name]
        if rows[:1] != [0] or rows[-1:] != [spec.shape[0]] or rows != sorted(rows):
            raise ValueError(f"the blocks of array {spec.name!r} do not cover its {spec.shape[0]} rows")
    return Partition(arrays, first)


def version_identity(identity: Mapping[str, Any]) -> dict[str, Any]:
    """Return {"blocks_of": ID}, which each stored block contains to show to which run it belongs.

    identity  fields that identify the run in its checkpoints; `run_identity` is the ID (None if absent)
    """
    return {"blocks_of": identity.get("run_identity")}


def block_name(block: int, version: int) -> str:
    """Return the name of a version of a block, such as "blocks/0003/000017".

    A version is the directory with one block's rows as written at one time; its name is its path in the run directory.
    """
    return f"{BLOCKS}/{block:04d}/{version:06d}"


class BlockStore:
    """Reads and writes the blocks of a run's tables; thread-safe, for one writing process.

    A block is a range of consecutive rows of each table. Each write of a block creates a new directory, a version.

    Attributes:
        partition: division of the arrays into blocks
        versions:  {block: (newest version, hash of its manifest)}; a block without a version is absent and holds zeros
        moved:     bytes of cells written and read by this object
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
        """Open the store; nothing is read yet.

        root       run directory
        partition  division of the tables into blocks
        identity   fields that identify the run in its checkpoints
        format     `zarr` or `hdf5`
        lock       the run's lock; writing and removing raise `LostDirectoryError` if it is lost
        """
        self._held = lock
        self.root, self.partition, self.versions = root, partition, dict[int, tuple[int, str]]()
        self.moved = 0
        self._identity, self._format = version_identity(identity), format
        self._promised: set[str] = set()  # named for a checkpoint that may be half written
        self._lock = Lock()
        # Removing a file of gigabytes takes as long as writing hundreds of megabytes, so a thread does it.
        self._remover = ThreadPoolExecutor(1, "removed blocks")
        self._removing: list[Future[None]] = []

    def go_on(self, checkpoint: Checkpoint | None) -> None:
        """Continue from the block versions that a checkpoint names; remove versions that none names.

        A block version is a directory with a range of the tables' rows at one time. Without a checkpoint all blocks
        hold zeros.

        Raises `ValueError` if the checkpoint divides the tables into other blocks.
        """
        self.versions = {}
        if checkpoint is not None:
            if partition_from_json(checkpoint.state.get(BLOCKS)) != self.partition:
                raise ValueError(f"{checkpoint.path} holds other blocks than this run has")
            for name, content_hash in versions_of_checkpoint(checkpoint).items():
                _, block, version = name.split("/")
                self.versions[int(block)] = (int(version), content_hash)
        sweep_blocks(self.root)
        self.settle()

    def names(self) -> dict[str, str]:
        """Return {name: hash of the manifest} of each block's newest version, such as "blocks/0003/000017".

        A version is a directory with one block's rows at one time. Store the result as `parents` of a new checkpoint,
        which then includes these rows. This object keeps the versions at least until the next `settle` or `names`.
        """
        with self._lock:
            content_hashes = {
                block_name(block, version): stated for block, (version, stated) in sorted(self.versions.items())
            }
            before, self._promised = self._promised, set(content_hashes)
            for name in sorted(before - self._promised):  # of a checkpoint that was not committed
                self._removing.append(self._remover.submit(self._drop, name))
        return content_hashes

    def state(self) -> dict[str, Any]:
        """Return {"blocks": JSON with the tables' schemas and the blocks' first rows}.

        A block is a range of consecutive rows of each table. Store the result in the state of each checkpoint; `go_on`
        compares it with the blocks of the run.
        """
        return {BLOCKS: self.partition.to_json()}

    def write(self, block: int, arrays: Mapping[str, np.ndarray]) -> None:
        """Write a new version of a block durably, and remove the previous one in a thread.

        The previous one stays if a checkpoint on disk names it. It also stays until `settle` if the newest result of
        `names` has it, for a checkpoint that is being written.

        block   index of the block, from 0
        arrays  {name: the block's rows of the array}; must not change during the call

        Raises `OSError` if the disk is full or fails, `NotFiniteError` for a NaN or infinite cell, and
        `LostDirectoryError` if the run lock is lost. Earlier versions are then kept.
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
            lock=self._held,
        )
        with self._lock:
            before = self.versions.get(block)
            self.versions[block] = (number, checkpoints.open_checkpoint(folder / f"{number:06d}").content_hash)
            self.moved += self.partition.nbytes(block)
            if before is not None and block_name(block, before[0]) not in self._promised:
                self._removing.append(self._remover.submit(self._drop, block_name(block, before[0])))

    def read(self, block: int, arrays: Mapping[str, np.ndarray]) -> None:
        """Fill the cells of a block from its newest version, in place; with zeros if it has no version.

        block   index of the block, from 0
        arrays  {name: the block's rows of the array}, which are overwritten

        Raises `DamagedError` for a version that is damaged or missing, and `UnreadableError` if the system cannot read
        it. The cells are then undefined.
        """
        version = self.versions.get(block)
        if version is None:
            for cells in arrays.values():
                cells[...] = 0
            return
        stored = _open_version(self.root, block_name(block, version[0]), version[1], self._identity)
        for name, cells in arrays.items():
            stored.read_into(name, cells)
        with self._lock:
            self.moved += self.partition.nbytes(block)

    def settle(self) -> None:
        """Remove block versions that no checkpoint on disk names, except the newest of each block.

        A block version is a directory with a range of the tables' rows at one time.

        Call it after a checkpoint with the result of `names` is written. It removes nothing if a checkpoint of the run
        cannot be read.
        """
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
        """Remove a directory with one block's rows, unless a checkpoint on disk names it or cannot be read.

        name  path of the directory in the run directory, such as "blocks/0003/000017"
        """
        self._check()
        named = versions_of_checkpoints(self.root)
        if named is not None and name not in named and (self.root / name).exists():
            durable.drop_trees([self.root / name])

    def close(self) -> None:
        """Wait until the thread of this object has removed the outdated versions that were submitted to it.

        A version is a directory with one block's rows at one time. The next `go_on` removes those that remain.
        """
        self._remover.shutdown(wait=True)


def sweep_blocks(root: Path) -> None:
    """Remove directories of blocks (ranges of the tables' rows) that a killed process has half written.

    The caller must hold the run lock.

    root  run directory
    """
    for path in checkpoints.list_entries(root / BLOCKS):
        checkpoint_writer.sweep(path)


def drop_unnamed(root: Path) -> None:
    """Remove half-written block versions, and all block versions that no checkpoint of the run names.

    A block version is a directory with a range of the tables' rows at one time. A note is the file `NUMBER.note` of a
    damaged or rejected checkpoint. It lists the versions that the checkpoint names, or all if these are unknown. If a
    note, or a checkpoint without a note, cannot be read, only half-written versions are removed.
    """
    sweep_blocks(root)
    _keep_only(root, ())


def versions_of_checkpoints(root: Path, among: Collection[int] | None = None) -> set[str] | None:
    """Return the names, such as "blocks/0003/000017", of the block versions that a run's checkpoints name.

    A block version is a directory with a range of the tables' rows at one time; several checkpoints may share it.

    among  numbers of the checkpoints to read; None: all. Those that the user set aside are always read

    The versions of a damaged or set-aside checkpoint are listed in its note, the file `NUMBER.note`. Returns None if a
    note, or a checkpoint without a note, is unreadable, damaged or of another format version. The caller must then
    remove nothing.
    """
    versions = set[str]()
    try:
        folder = root / CHECKPOINTS
        for number in checkpoints.list_checkpoints(folder):
            if among is None or number in among:
                versions.update(_named_by_one(checkpoints.checkpoint_path(folder, number)))
        for note in checkpoints.list_notes(root / SET_ASIDE):
            versions.update(read_json(note)[BLOCKS])
    except (OSError, ValueError, LookupError, TypeError):
        return None
    return versions


def _named_by_one(path: Path) -> Collection[str]:
    """Return the names, such as "blocks/0003/000017", of the block versions that a checkpoint names.

    A block version is a directory with a range of the tables' rows at one time. The names are read from the
    checkpoint's note, the file `NUMBER.note` of a damaged checkpoint, or without a note from the checkpoint. The note
    lists all versions if those of the checkpoint are unknown.

    Returns () if the checkpoint does not exist, for example because another process has removed it.
    """
    try:
        listed: list[str] = read_json(checkpoints.note_path(path))[BLOCKS]
        return listed
    except FileNotFoundError:
        pass
    try:
        return versions_of_checkpoint(checkpoints.open_checkpoint(path))
    except FileNotFoundError:
        return ()


def _keep_only(root: Path, versions: Collection[str]) -> None:
    """Remove all block versions, except those named in `versions` and those that checkpoints name.

    A block version is a directory, such as blocks/0003/000017, with a range of the tables' rows at one time.

    It removes nothing if a damaged checkpoint's note (`NUMBER.note`), or a checkpoint without a note, cannot be read.
    """
    named = versions_of_checkpoints(root)
    if named is None:
        return
    for name in list_versions(root):
        if name not in named and name not in versions:
            durable.drop_trees([root / name])


def list_versions(root: Path) -> list[str]:
    """Return the names `blocks/BLOCK/VERSION` of all directories with rows of tables in a run directory.

    Each has the rows of one block (a range of rows) at one time; it may be damaged.
    """
    return [
        f"{BLOCKS}/{block.name}/{version:06d}"
        for block in checkpoints.list_entries(root / BLOCKS)
        for version in checkpoints.list_checkpoints(block)
    ]


def versions_of_checkpoint(checkpoint: Checkpoint) -> dict[str, str]:
    """Return {name: hash of its manifest} of the blocks of table rows to which a checkpoint refers.

    A name is a directory, such as "blocks/0003/000017": the version of the block at the checkpoint's time.
    """
    return {name: content_hash for name, content_hash in checkpoint.parents.items() if name.startswith(f"{BLOCKS}/")}


def _open_named(checkpoint: Checkpoint, name: str) -> Checkpoint:
    """Open the directory of a block of table rows that a checkpoint names; return it as a `Checkpoint`.

    name  path of the directory in the run directory, such as "blocks/0003/000017"

    Raises `DamagedError` if it is damaged, missing or a different one.
    """
    root = checkpoint.path.parent.parent
    return _open_version(root, name, checkpoint.parents[name], version_identity(checkpoint.identity))


def _open_version(root: Path, name: str, content_hash: str, identity: Mapping[str, Any]) -> Checkpoint:
    """Open the directory of a block of table rows at one time; return it as a `Checkpoint` of these rows.

    root          run directory
    name          path of the directory in it, such as "blocks/0003/000017"
    content_hash  required hash of the directory's manifest
    identity      required fields that identify the run

    Raises `DamagedError` if it is damaged, missing, of another run, or its manifest's hash is not `content_hash`.
    """
    try:
        version = checkpoints.open_checkpoint(root / name)
    except FileNotFoundError:
        raise DamagedError(f"{root / name} is missing, and a checkpoint names it") from None
    except ValueError as error:
        raise DamagedError(str(error)) from error
    if (foreign := checkpoints.identity_problem(version, identity)) is not None:
        raise DamagedError(f"{root / name}: {foreign}")
    if version.content_hash != content_hash:
        raise DamagedError(f"{root / name} is another version than the one that its checkpoint names")
    return version


def block_problems(checkpoint: Checkpoint, checked_versions: dict[str, list[str]]) -> list[str]:
    """Check every byte of the block versions that a checkpoint names; return a sentence per problem.

    A block version is a directory with a range of the tables' rows at one time.

    checked_versions  {name: problems} of versions already checked for other checkpoints, which are not read again;
                      new results are added in place
    """
    root, problems = checkpoint.path.parent.parent, []
    for name in versions_of_checkpoint(checkpoint):
        if name not in checked_versions:
            checked_versions[name] = checkpoints.verify(root / name)
        problems += [f"{name}: {problem}" for problem in checked_versions[name]]
        if not checked_versions[name]:
            try:
                _open_named(checkpoint, name)
            except DamagedError as error:
                problems.append(f"{name}: {error}")
    return [f"{checkpoint.path.name}: {problem}" for problem in problems]


class CheckpointWithBlocks(Checkpoint):
    """A checkpoint whose `read` and `read_into` also give arrays stored outside of it, in blocks of rows."""

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
        names = {int(name.split("/")[1]): name for name in versions_of_checkpoint(self)}
        rows = self._partition.first[spec.name]
        for block, (first, end) in enumerate(pairwise(rows)):
            if block not in names:
                cells[first:end] = 0
            elif end > first:
                _open_named(self, names[block]).read_into(spec.name, cells[first:end])
        return cells


def open_with_blocks(path: Path) -> Checkpoint:
    """Open a checkpoint and check its manifest and state; arrays stored in blocks are readable too.

    Raises `FileNotFoundError` if it does not exist, `DamagedError` if manifest or state is damaged, and
    `UnreadableError` if the system cannot read them. Raises `ValueError` for another format or version.
    """
    checkpoint = checkpoints.open_checkpoint(path)
    if BLOCKS not in checkpoint.state:
        return checkpoint
    return checkpoints.open_checkpoint(path, CheckpointWithBlocks)
