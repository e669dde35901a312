"""Copies checkpoints and block versions to a mirror, a second directory, and restores them from it.

A block version has the files of one block, which is a part of the tables' rows (`storage.block_tables`). Copies are
atomic, like the originals: written under a temporary name, fsynced, checked against the manifest, and then renamed.
"""

from collections.abc import Iterator
from pathlib import Path

from storage import checkpoint as checkpoints
from storage import durable
from storage.atomic_outputs import output
from storage.block_tables import CHECKPOINTS, list_versions, versions_of_checkpoint, versions_of_checkpoints
from storage.checksums import CRC32C, Checksum
from storage.damage import DamagedError, reading, walk

_MANIFEST = "manifest.json"
_PIECE_BYTES = 4 << 20


def copy_checkpoint(root: Path, mirror: Path, number: int, blocks: set[int]) -> None:
    """Copy checkpoint `number` from `root` to `mirror`, with those parts of its tables stored in blocks.

    A block is a range of rows of the tables. Each write of a block creates a new directory, a version, to which
    checkpoints refer.

    root    run directory
    mirror  directory of the copies
    blocks  numbers of the blocks to copy; other processes may copy the others

    Then removes from `mirror` the checkpoints that `root` lacks, and the versions that no checkpoint in either names.
    Removes nothing if a checkpoint is damaged and has no note (the file `NUMBER.note`, which lists its versions).

    Raises `DamagedError` for damaged files, `UnreadableError` if the system cannot read one, and `OSError` if the disk
    is full.
    """
    name = f"{CHECKPOINTS}/{checkpoints.checkpoint_path(root / CHECKPOINTS, number).name}"
    checkpoint = checkpoints.open_checkpoint(root / name)
    for version in versions_of_checkpoint(checkpoint):
        if int(version.split("/")[1]) in blocks:
            _copy(root, mirror, version)
    _copy(root, mirror, name)  # last, so that a copied checkpoint has all its blocks
    numbers = checkpoints.list_checkpoints(root / CHECKPOINTS)
    named, copied = versions_of_checkpoints(root), versions_of_checkpoints(mirror, numbers)  # ROOT's may be damaged
    if named is None or copied is None:
        return
    retained = named | copied | {*_whole(root)}
    for name in (*_whole(mirror), *list_versions(mirror)):
        if name not in retained:
            durable.drop_trees([mirror / name])


def restore(root: Path, mirror: Path) -> list[str]:
    """Restore a run's missing or damaged checkpoints, and blocks of table rows, from its mirror.

    root    run directory
    mirror  directory with copies of its checkpoints, and of its blocks (directories with a range of table rows)

    Returns the restored paths, relative to `root`. Copies that are damaged in `mirror` are left out.

    Raises `OSError` if the disk is full, and `UnreadableError` if the system cannot read a file in `root` or
    `mirror`. An unreadable file is not replaced, because it may be valid.
    """
    restored = []
    for name in (*list_versions(mirror), *_whole(mirror)):
        if not checkpoints.verify(root / name) or checkpoints.verify(mirror / name):
            continue  # valid in ROOT, or damaged in the mirror
        if (root / name).exists():
            durable.drop_trees([root / name])
        _copy(mirror, root, name)
        restored.append(name)
    return restored


def _whole(directory: Path) -> list[str]:
    """Return the names `checkpoints/NUMBER` of all checkpoints in a run or mirror."""
    return [f"{CHECKPOINTS}/{number:06d}" for number in checkpoints.list_checkpoints(directory / CHECKPOINTS)]


def _copy(source: Path, target: Path, name: str) -> None:
    """Copy a checkpoint, or one version of a block of the tables' rows, between a run and its mirror.

    source, target  run directory and mirror, or the reverse
    name            path below these, such as "checkpoints/000123" or "blocks/0003/000017"

    Nothing is copied if `target` has a directory of this name with the same manifest. One with another manifest is
    removed first.

    Raises `DamagedError` if a file differs from the manifest.
    """
    checkpoint, final = checkpoints.open_checkpoint(source / name), target / name
    if _content_hash(final) == checkpoint.content_hash:
        return
    if final.exists():
        durable.drop_trees([final])
    with output(final, lambda _: False) as temporary:
        durable.make_dir(temporary)
        for file, stated in checkpoint.files.items():
            if _copy_file(source / name / file, temporary / file, stated.kind) != stated[:2]:
                raise DamagedError(f"{source / name}: {file} is not what the manifest states")
        _copy_file(source / name / _MANIFEST, temporary / _MANIFEST, CRC32C)
        for folder in sorted((Path(folder) for folder, _, _ in walk(temporary)), reverse=True):
            durable.fsync_dir(folder)


def _content_hash(path: Path) -> str | None:
    """Return the hash of a checkpoint's manifest; None if missing, damaged or of another format.

    Raises `UnreadableError` if the system cannot read it.
    """
    try:
        return checkpoints.open_checkpoint(path).content_hash
    except (DamagedError, FileNotFoundError, ValueError):
        return None


def _copy_file(source: Path, target: Path, kind: str) -> tuple[int, Checksum]:
    """Copy a file durably; return its length in bytes, and its checksum.

    kind  kind of the checksum: `CRC32C` or `XXH3`
    """
    durable.make_dirs(target.parent)

    def pieces() -> Iterator[bytes]:
        with reading(source), source.open("rb") as file:
            yield from iter(lambda: file.read(_PIECE_BYTES), b"")

    return durable.write_file(target, pieces(), kind)
