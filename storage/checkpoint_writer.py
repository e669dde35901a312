"""Writes checkpoints atomically and durably.

`commit` writes under a temporary name, the manifest last, and fsyncs every file and directory. Then `output` renames
the directory, and fsyncs its parent. From the rename on the checkpoint is valid. A crash therefore never leaves an
incomplete directory under a final name. Only afterwards `commit` removes older checkpoints.
"""

import json
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from storage import contiguous_arrays, durable
from storage.atomic_outputs import output
from storage.checkpoint import (
    CELLS,
    FORMAT,
    FORMAT_VERSION,
    MANIFEST,
    STATE,
    WHOLE_VERSION,
    checkpoint_path,
    list_checkpoints,
    list_entries,
    list_notes,
    next_number,
    note_path,
)
from storage.checksums import CRC32C, XXH3, Checksum
from storage.contiguous_arrays import FileCells
from storage.directory_lock import drop_unread
from storage.manifest import exact_json, write_manifest
from storage.manifest_files import file_entries
from storage.run_lock import RunLock
from storage.schema import ArraySpec, specs_to_json, validate_specs
from storage.table_formats import table_format

Files = dict[str, tuple[int, Checksum]]  # {name relative to the checkpoint: (length in bytes, checksum)}


def commit(
    root: Path,
    number: int,
    specs: Iterable[ArraySpec],
    arrays: Mapping[str, np.ndarray],
    state: dict[str, Any],
    identity: dict[str, Any],
    *,
    format: str,  # noqa: A002 - the name of the config's key
    keep: int,
    journal: Path | None = None,
    parents: Mapping[str, str] | None = None,
    spared: Collection[int] = (),
    compressed: bool = True,
    whole: bool = False,
    background: bool = False,
    notes: Mapping[str, Any] | None = None,
    lock: RunLock | None = None,
) -> Path:
    """Write a checkpoint durably and return its directory; the arrays must not change meanwhile.

    Args:
        root:       directory of the checkpoints; created if absent, but its parent must exist
        number:     number of the checkpoint; at least `next_number(root)`
        specs, arrays: the schema, and {name: array} with its shapes and dtypes
        state:      JSON of the run's state, such as counters and random states; must read back exactly
        identity:   JSON that identifies the run; a run resumes only from checkpoints with its own
        format:     `zarr` or `hdf5`
        keep:       number of newest checkpoints to keep, at least 1; those noted as damaged stay and do not count
        journal:    file that gets a JSON line with the number, the manifest's hash and the time; None: no file
        parents:    {path: hash of its manifest} of other directories on which it depends, such as blocks of rows
        spared:     numbers of older checkpoints to keep in addition
        compressed, whole: compressed=False: chunks of raw cells. whole=True: contiguous raw cells without chunks
        background: compress and write at low priority
        notes:      JSON for readers of the tables: attributes of the Zarr group or HDF5 file
        lock:       the run's lock; each step (writing, the journal line, removing older ones) first checks it

    Raises:
        ValueError: arrays unlike the schema, state or identity not exact in JSON, keep < 1, or an unknown format.
        FileExistsError: the number is taken or lower than an existing one.
        NotFiniteError: a cell is NaN or infinite; the message names it.
        OSError: the disk is full or fails; older checkpoints are untouched.
        LostDirectoryError: the locked directory was removed, or the file of `lock` was removed or replaced.
    """
    root, specs = Path(root), validate_specs(specs)
    _check_arrays(specs, arrays)
    final = _free_path(root, number, keep)
    state_text = exact_json(state, "the state of a checkpoint")
    fields = {"number": number, "table_format": format, "identity": identity, "parents": dict(parents or {})}
    fields["arrays"] = specs_to_json(specs)
    exact_json(fields, "the identity of a checkpoint")
    options = {"background": background, "notes": notes or {}} | ({} if whole else {"compressed": compressed})
    write = partial(_write_arrays, table_format(format), specs, arrays, options, whole)
    _check(lock)
    durable.ensure_dir(root)
    content_hash = _write_and_rename(final, write, state_text, fields)
    _note(journal, number, content_hash, lock)
    _check(lock)
    drop_older(root, keep, spared)
    return final


def _write_arrays(
    layout: Any,
    specs: Sequence[ArraySpec],
    arrays: Mapping[str, np.ndarray],
    options: dict[str, Any],
    whole: bool,
    directory: Path,
) -> tuple[Files, dict[str, FileCells]]:
    """Write the arrays to a directory, in chunks or (`whole`) contiguously.

    layout   module of the format, `storage.zarr_format` or `storage.hdf5_format`
    options  further arguments of the function that writes, such as `background` and `notes`

    Returns ({file name: (length in bytes, checksum)}, {array: its file, offset and checksum}); the second is {} for
    chunks.
    """
    if whole:
        return contiguous_arrays.write_tables(layout, directory, specs, arrays, **options)
    return layout.write_tables(directory, specs, arrays, **options), {}


def _note(journal: Path | None, number: int, content_hash: str, lock: RunLock | None) -> None:
    if journal is not None:
        _check(lock)
        line = {"checkpoint": number, "manifest": content_hash, "unix_seconds": time.time()}
        durable.append_line(journal, json.dumps(line))


def _check(lock: RunLock | None) -> None:
    if lock is not None:
        lock.check()


def _free_path(root: Path, number: int, keep: int) -> Path:
    """Return the path of the new checkpoint `number` in `root`, after checking `number` and `keep`.

    Raises `FileExistsError` if the number is not above all others, and `ValueError` if `keep` is below 1.
    """
    if keep < 1:
        raise ValueError(f"keep is {keep}; at least 1 checkpoint must stay")
    lowest = next_number(root)
    if number < lowest:
        raise FileExistsError(
            f"checkpoint {number} cannot be written into {root}: numbers ascend, the next is {lowest} or more"
        )
    return checkpoint_path(root, number)


def _write_and_rename(
    final: Path,
    write_tables: Callable[[Path], tuple[Files, dict[str, FileCells]]],
    state: bytes,
    fields: dict[str, Any],
) -> str:
    """Write a checkpoint durably under a temporary name, rename it, and return the hash of its manifest.

    `output` renames at the end of its block, and raises if the final name exists.

    final         path of the checkpoint
    write_tables  function that writes the tables to a directory. It returns {file name: (length in bytes, checksum)},
                  and {array: its file, offset and checksum}, which is {} for arrays in chunks
    state         content of `state.json`
    fields        fields of the manifest, besides those for the two results of `write_tables`
    """
    with output(final, lambda _: False, parents=False) as temporary:
        durable.make_dir(temporary)
        tables, cells = write_tables(temporary)
        version, kind = (WHOLE_VERSION, CRC32C) if cells else (FORMAT_VERSION, XXH3)
        more = {CELLS: msgspec.to_builtins(cells)} if cells else {}
        files = file_entries({**tables, STATE: durable.write_file(temporary / STATE, state, kind)}, kind)
        content_hash = write_manifest(temporary / MANIFEST, FORMAT, version, {**fields, **more, "files": files})
        durable.fsync_dir(temporary)
    return content_hash


def _check_arrays(specs: Sequence[ArraySpec], arrays: Mapping[str, np.ndarray]) -> None:
    names = {spec.name for spec in specs}
    if names != set(arrays):
        raise ValueError(f"arrays and schema differ in: {', '.join(sorted(names ^ set(arrays)))}")
    for spec in specs:
        array = arrays[spec.name]
        if array.shape != spec.shape or array.dtype != spec.numpy_dtype:
            raise ValueError(
                f"array {spec.name!r} has shape {array.shape} of {array.dtype}; the schema states {spec.shape} of "
                f"{spec.dtype}"
            )


def drop_older(root: Path, keep: int, spared: Collection[int] = ()) -> None:
    """Remove all but the newest `keep` checkpoints and those in `spared`.

    A checkpoint with a note, the file `NUMBER.note` that marks it as damaged, stays and is not counted. A checkpoint
    that a reader has locked stays until a later call.
    """
    noted = set(list_notes(root))
    sound = [n for n in list_checkpoints(root) if note_path(checkpoint_path(root, n)) not in noted]
    drop_unread(checkpoint_path(root, n) for n in sound[:-keep] if n not in spared)


def sweep(root: Path) -> list[Path]:
    """Remove temporary files and directories of killed runs in `root`; return their paths.

    The caller must hold the run lock, and calls it before it writes checkpoints.
    """
    root, removed = Path(root), []
    for path in list_entries(root, f"{durable.TEMPORARY_PREFIX}*"):
        if path.is_dir() and not path.is_symlink():
            durable.remove_tree(path)
        else:
            durable.remove_file(path)
        removed.append(path)
    if removed:
        durable.fsync_dir(root)
    return removed
