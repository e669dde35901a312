"""Checkpoints: immutable directories that are either whole or not there.

A checkpoint is `ROOT/000123/` with `manifest.json`, `state.json` and `tables.zarr/` or `tables.h5`.  It is written
under a temporary name, every file and directory fsynced, the manifest last, and then renamed: at no moment does a crash
leave a directory of a final name whose content is not on the disk, and older checkpoints go only after that.  The
manifest lists every file with its length and a checksum of all its bytes, because a missing Zarr chunk would otherwise
read as zeros, and another's as its own.
"""

import json
import re
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from storage import contiguous, durable
from storage.checksums import CRC32C, XXH3, Checksum
from storage.contiguous import FileCells
from storage.formats import (
    NotFiniteError,
    TableFormat,
    blocks,
    check_finite,
    table_format,
)
from storage.json_files import read_json
from storage.listing import file_entries, file_problem, file_problems, listed_files
from storage.manifest import canonical_json, exact_json, read_manifest, write_manifest
from storage.outputs import output
from storage.schema import ArraySpec, specs_from_json, specs_to_json, validate_specs

FORMAT = "checkpoint"
FORMAT_VERSION = 3
"""Of checkpoints whose arrays are in chunks: their files are listed with XXH3-128."""
_WHOLE_VERSION = 2
"""Of checkpoints whose arrays are whole (`storage.contiguous`), listed with CRC-32C."""
_UNBOUND_VERSION = 1
"""In chunks, and listed with CRC-32C: of a Zarr chunk, which ends with its own, that says nothing but its length."""

_MANIFEST = "manifest.json"
_STATE = "state.json"
_CELLS = "cells"
Files = dict[str, tuple[int, Checksum]]  # {name relative to the checkpoint: (length in bytes, checksum)}
_NUMBER = re.compile(r"[0-9]{6,}")


def checkpoint_path(root: Path, number: int) -> Path:
    """Return the directory of checkpoint `number`."""
    return Path(root) / f"{number:06d}"


def list_checkpoints(root: Path) -> list[int]:
    """Return the numbers of the checkpoints in `root`, ascending, without a look inside; [] where there is no root."""
    root = Path(root)
    if not root.is_dir():
        return []
    names = [entry.name for entry in root.iterdir() if entry.is_dir() and _NUMBER.fullmatch(entry.name)]
    return sorted(int(name) for name in names if f"{int(name):06d}" == name)


def next_number(root: Path) -> int:
    """Return the lowest number that a new checkpoint in `root` can have: one more than the highest, or 0."""
    return max(list_checkpoints(root), default=-1) + 1


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
) -> Path:
    """Write a checkpoint and return its directory.

    It survives a crash from then on.  Nothing may write the arrays meanwhile; they are read a few chunks at a time.

    Args:
        root:       directory of the checkpoints, made if absent
        number:     of the checkpoint; at least `next_number(root)`
        specs:      the schema
        arrays:     {name: array} with the shape and dtype of the schema
        state:      JSON that reads back exactly: counters, random words (integers up to 2**64 - 1), positions
        identity:   JSON that says which run this is; `newest_valid` compares it
        format:     `zarr` or `hdf5`
        keep:       how many checkpoints stay, at least 1
        journal:    gets one line per checkpoint
        parents:    {name: content hash} of what the checkpoint was made from
        spared:     numbers of older checkpoints that stay whatever `keep` says
        compressed: False: raw cells, for disks faster than the compression
        whole:      each array in one run of raw cells, which is written and read at the speed of the disk
        background: compress and write at a low priority, so that others go on
        notes:      JSON for people who open the tables with other programs: attributes of their group, or HDF5 file

    Raises:
        ValueError: arrays do not fit the schema, state or identity are not exact in JSON, keep < 1, unknown format.
        FileExistsError: the number is taken or lies below one that is.
        NotFiniteError: a cell is NaN or infinite; the message names it; otherwise as OSError.
        OSError: the disk is full or fails; the temporary directory is removed and older checkpoints are untouched.
    """
    root, specs = Path(root), validate_specs(specs)
    _check_arrays(specs, arrays)
    final = _free_path(root, number, keep)
    state_text = exact_json(state, "the state of a checkpoint")
    fields = {"number": number, "table_format": format, "identity": identity, "parents": dict(parents or {})}
    fields |= {"arrays": specs_to_json(specs)}
    exact_json(fields, "the identity of a checkpoint")
    write = _table_writer(format, whole, compressed)
    write = partial(write, specs=specs, arrays=arrays, background=background, notes=notes or {})
    content_hash = _write_and_rename(final, write, state_text, fields)
    if journal is not None:
        line = json.dumps({"checkpoint": number, "manifest": content_hash, "unix_seconds": time.time()})
        durable.append_line(journal, line)
    drop_older(root, keep, spared)
    return final


def _free_path(root: Path, number: int, keep: int) -> Path:
    """Where a checkpoint goes; `FileExistsError` for a number that is taken or lies below one that is."""
    if keep < 1:
        raise ValueError(f"keep is {keep}; at least 1 checkpoint must stay")
    lowest = next_number(root)
    if number < lowest:
        raise FileExistsError(
            f"checkpoint {number} cannot be written into {root}: numbers ascend, the next is {lowest} or more"
        )
    return checkpoint_path(root, number)


def _table_writer(name: str, whole: bool, compressed: bool) -> Callable[..., tuple[Files, dict[str, Any]]]:
    """What writes tables in a format, in chunks or each in one run of cells."""
    layout = table_format(name)
    return partial(_write_whole, layout) if whole else partial(_write_chunks, layout, compressed=compressed)


def _write_chunks(layout: TableFormat, directory: Path, **options: Any) -> tuple[Files, dict[str, Any]]:
    """Write tables in chunks; (their files, no field of the manifest)."""
    return layout.write_tables(directory, **options), {}


def _write_whole(layout: TableFormat, directory: Path, **options: Any) -> tuple[Files, dict[str, Any]]:
    """Write whole tables; (their files, the field of the manifest that says where cells are)."""
    files, cells = contiguous.write_tables(layout, directory, **options)
    return files, {_CELLS: msgspec.to_builtins(cells)}


def _write_and_rename(
    final: Path, write_tables: Callable[[Path], tuple[Files, dict[str, Any]]], state: bytes, fields: dict[str, Any]
) -> str:
    """Write a checkpoint under a temporary name, all of it durable, then rename it; return its content hash."""
    with output(final, lambda _: False) as temporary:
        durable.make_dir(temporary)
        tables, more = write_tables(temporary)
        version, kind = (_WHOLE_VERSION, CRC32C) if more else (FORMAT_VERSION, XXH3)
        files = file_entries({**tables, _STATE: durable.write_file(temporary / _STATE, state, kind)}, kind)
        content_hash = write_manifest(temporary / _MANIFEST, FORMAT, version, {**fields, **more, "files": files})
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
    """Remove all but the newest `keep` checkpoints and those whose numbers are `spared`."""
    durable.drop_trees(checkpoint_path(root, n) for n in list_checkpoints(root)[:-keep] if n not in spared)


def sweep(root: Path) -> list[Path]:
    """Remove the temporary leftovers of killed runs in `root`; for the holder of the run lock, at start-up.

    Returns:
        What was removed.
    """
    root, removed = Path(root), []
    for path in sorted(root.glob(f"{durable.TEMPORARY_PREFIX}*")) if root.is_dir() else []:
        if path.is_dir() and not path.is_symlink():
            durable.remove_tree(path)
        else:
            durable.remove_file(path)
        removed.append(path)
    if removed:
        durable.fsync_dir(root)
    return removed


class Checkpoint:
    """An open checkpoint: its manifest and state are read and checked, its arrays when they are asked for.

    Attributes:
        path, number, identity, parents, specs, state: as given to `commit`
        format:       `zarr` or `hdf5`
        content_hash: of the manifest, and so of everything
    """

    def __init__(self, path: Path, manifest: dict[str, Any]) -> None:
        self.path = path
        try:
            self.number: int = manifest["number"]
            self.identity: dict[str, Any] = manifest["identity"]
            self.parents: dict[str, str] = manifest["parents"]
            self.format: str = manifest["table_format"]
            self.content_hash: str = manifest["content_hash"]
            self.specs = specs_from_json(manifest["arrays"])
            self.files = listed_files(manifest["files"])
            self._cells = msgspec.convert(manifest.get(_CELLS, {}), dict[str, FileCells])
            self._layout = table_format(self.format)
            self._version = manifest["format_version"]
            for value, kind in ((self.number, int), (self.identity, dict), (self.parents, dict)):
                if type(value) is not kind:
                    raise TypeError(f"{value!r} is not of the kind {kind.__name__}")
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"{path / _MANIFEST} is intact but not a checkpoint's: {error!r}") from error
        self._checked: set[str] = set()
        self._check_files([_STATE])
        self.state: dict[str, Any] = read_json(path / _STATE)
        if not isinstance(self.state, dict):
            raise ValueError(f"{path / _STATE} holds a {type(self.state).__name__}; an object is needed")

    @property
    def unseen(self) -> str | None:
        """What no check of its files can see, in one sentence; None where there is nothing."""
        if self._version != _UNBOUND_VERSION or self.format != "zarr":
            return None
        return (
            f"{self.path} is of format version {_UNBOUND_VERSION}, whose manifest cannot tell a chunk of a table from "
            f"another of equal length: what is written today, in version {FORMAT_VERSION}, can"
        )

    def _check_files(self, names: Iterable[str]) -> None:
        for name in names:
            if name in self._checked:
                continue
            problem = self.file_problem(name)
            if problem:
                raise OSError(f"checkpoint {self.path}: {problem}")
            self._checked.add(name)

    def file_problem(self, name: str) -> str | None:
        """Compare one file with the manifest, every byte of it; a sentence about what is wrong, or None."""
        if name not in self.files:
            return f"{name} is not in the manifest"
        return file_problem(self.path, name, self.files[name])

    def spec(self, name: str) -> ArraySpec:
        """Return the schema of one array; KeyError for an unknown name."""
        for spec in self.specs:
            if spec.name == name:
                return spec
        raise KeyError(f"checkpoint {self.path} has no array {name!r}; it has {', '.join(s.name for s in self.specs)}")

    def read(self, name: str) -> np.ndarray:
        """Return one array in its shape and dtype.

        Raises:
            KeyError: there is no such array.
            OSError: a file of it is damaged or missing.
            ValueError: its files state another shape or dtype than the manifest; nothing has been allocated then.
        """
        return self._read(self.spec(name), None)

    def read_into(self, name: str, out: np.ndarray) -> None:
        """Read one array, block by block, into `out` [shape of the array, its dtype], which is changed in place.

        Raises as `read`, and ValueError where `out` does not fit; after an OSError part of `out` may have been written.
        """
        spec = self.spec(name)
        if out.shape != spec.shape or out.dtype != spec.numpy_dtype:
            raise ValueError(
                f"array {name!r} has shape {spec.shape} of {spec.dtype}; `out` has shape {out.shape} of {out.dtype}"
            )
        self._read(spec, out)

    def _read(self, spec: ArraySpec, out: np.ndarray | None) -> np.ndarray:
        if spec.name in self._cells:
            return self._read_whole(spec, out)
        names = list(self.files)
        self._check_files(self._layout.files_of(spec, names))
        with self._opened(spec) as array:
            if out is None:
                out = np.empty(spec.shape, spec.numpy_dtype)
            for block in blocks(spec.shape, array.chunks):
                out[block] = array[block]
        return out

    def read_rows(self, name: str, first: int, out: np.ndarray) -> None:
        """Read rows of one array, from `first` on, into `out` [rows, ...], which is changed in place.

        Only the pieces that hold them are read, and only their own checksums compared: for a checkpoint that is known
        to be sound.  Raises `KeyError` and `OSError` as `read`.
        """
        with self._opened(self.spec(name)) as array:
            step = max(1, array.chunks[0])
            for begin in range(first, first + len(out), step):
                end = min(begin + step, first + len(out))
                out[begin - first : end - first] = array[begin:end]

    @contextmanager
    def _opened(self, spec: ArraySpec) -> Iterator[Any]:
        """One array for reading by slices; `OSError` for whatever a library says of bad data."""
        with self._layout.open_array(self.path, spec, list(self.files)) as array:
            try:
                yield array
            except (RuntimeError, LookupError, TypeError) as error:  # libraries have many words for bad data
                raise OSError(f"checkpoint {self.path}: array {spec.name!r} cannot be read: {error!r}") from error

    def _read_whole(self, spec: ArraySpec, out: np.ndarray | None) -> np.ndarray:
        cells = self._checked_cells(spec)
        found = np.empty(spec.shape, spec.numpy_dtype) if out is None or not out.flags.c_contiguous else out
        if not contiguous.read_array(self.path, cells, found):
            raise OSError(f"checkpoint {self.path}: {contiguous.other_cells(spec, cells)}")
        if out is None or found is out:
            return found
        out[...] = found
        return out

    def _checked_cells(self, spec: ArraySpec) -> FileCells:
        """Where a whole array lies, once its file is long enough for it.

        Raises `OSError` for a file that is not as it should be, `ValueError` where the manifest disagrees with itself.
        """
        cells = self._cells[spec.name]
        problem = f"{cells.file} is not in the manifest"
        if cells.file in self.files:
            problem = file_problem(self.path, cells.file, self.files[cells.file], content=False) or ""
        if problem:
            raise OSError(f"checkpoint {self.path}: {problem}")
        end = cells.offset_bytes + spec.nbytes
        if not 0 <= cells.offset_bytes < end <= self.files[cells.file].length_bytes:
            raise ValueError(
                f"checkpoint {self.path}: the manifest states {spec.shape} of {spec.dtype} for array {spec.name!r}, "
                f"from byte {cells.offset_bytes} of {cells.file}, which has {self.files[cells.file].length_bytes}"
            )
        return cells

    def file_problems(self) -> list[str]:
        """What is wrong with the files, every byte of them read once, and with the cells of whole arrays; sentences."""
        whole: dict[str, list[ArraySpec]] = {}
        for spec in self.specs:
            if spec.name in self._cells:
                whole.setdefault(self._cells[spec.name].file, []).append(spec)
        problems = file_problems(self.path, self.files, whole)
        for name, specs in whole.items():
            if name in self.files and not file_problem(self.path, name, self.files[name], content=False):
                problems += self._whole_problems(name, specs)
        return problems

    def _whole_problems(self, name: str, specs: Sequence[ArraySpec]) -> list[str]:
        """As `file_problems`, of the file of some whole arrays."""
        try:
            places = [(spec, self._checked_cells(spec)) for spec in specs]
            places.sort(key=lambda place: place[1].offset_bytes)
            return contiguous.file_problems(self.path / name, self.files[name].checksum, places)
        except (OSError, ValueError) as error:
            return [str(error)]

    def array_problem(self, spec: ArraySpec) -> str | None:
        """Decode every cell of an array, and see that it is finite; a sentence about what is wrong, or None."""
        if spec.name in self._cells:
            return None  # `file_problems` has looked
        try:
            with self._layout.open_array(self.path, spec, list(self.files)) as array:
                for block in blocks(spec.shape, array.chunks):
                    check_finite(spec, array[block], [edge.start for edge in block])
        except NotFiniteError as error:
            return str(error)
        except Exception as error:  # whatever a library says about a file it cannot read is the finding
            return f"array {spec.name!r} cannot be read: {error}"
        return None


def is_checkpoint(path: Path) -> bool:
    """Return whether a directory has the place and the files of a checkpoint, sound or not."""
    return _NUMBER.fullmatch(Path(path).name) is not None and any(
        (Path(path) / name).exists() for name in (_STATE, _MANIFEST)
    )


def open_checkpoint(path: Path, kind: type[Checkpoint] = Checkpoint) -> Checkpoint:
    """Open a checkpoint's directory and check its manifest and state; the tables are checked when they are read.

    `kind`: the class of what is returned.

    Raises:
        FileNotFoundError: there is no manifest.
        OSError: the manifest or the state is damaged, or one of them or the directory is a symbolic link.
        ValueError: another format or format version, with both in the message; an intact manifest that is none, or a
            state that is no JSON object.
    """
    path = Path(path)
    if path.is_symlink():
        raise OSError(f"checkpoint {path} is a symbolic link, which no part of a checkpoint may be")
    return kind(path, read_manifest(path / _MANIFEST, FORMAT, FORMAT_VERSION, older=[_UNBOUND_VERSION, _WHOLE_VERSION]))


def verify(path: Path) -> list[str]:
    """Check every byte of a checkpoint and decode every array.

    Returns:
        One sentence for each thing that is wrong: a manifest that is damaged or of another version, files that are
        missing, extra, links, of another length or checksum, arrays that cannot be read, differ from the schema or
        hold cells that are NaN or infinite.  Empty for a sound checkpoint.
    """
    path = Path(path)
    try:
        checkpoint = open_checkpoint(path)
    except (OSError, ValueError) as error:
        return [f"{path.name}: {error}"]
    problems = []
    if _NUMBER.fullmatch(path.name) and path.name != f"{checkpoint.number:06d}":
        problems.append(f"the directory is named {path.name} and the manifest states number {checkpoint.number}")
    problems.extend(checkpoint.file_problems())
    problems.extend(_extra_entries(path, checkpoint.files))
    if not problems:
        problems.extend(filter(None, map(checkpoint.array_problem, checkpoint.specs)))
    return [f"{path.name}: {problem}" for problem in problems]


def _extra_entries(path: Path, files: Iterable[str]) -> list[str]:
    """Entries of the directory that no manifest speaks of."""
    expected = {path / _MANIFEST}
    for name in files:
        file = path / name
        expected.update([file, *(folder for folder in file.parents if path in folder.parents)])
    return [f"{entry.relative_to(path)} is not in the manifest" for entry in path.rglob("*") if entry not in expected]


def newest_valid(
    root: Path,
    identity: dict[str, Any] | None = None,
    besides: Callable[[Checkpoint], Sequence[str]] = lambda _: (),
) -> tuple[Checkpoint | None, list[str]]:
    """Return the newest checkpoint that verifies in full, and what was wrong with the newer ones.

    Args:
        root:     directory of the checkpoints
        identity: what the checkpoint's identity must be; None accepts any
        besides:  what is wrong with what a checkpoint names outside of its directory

    Returns:
        (checkpoint, or None where there is no sound one; problems of those that were skipped).

    Raises:
        ValueError: the newest sound checkpoint has another identity, or a checkpoint another format version; the
            message has both values.  Going back to an older one would lose work without a word.
    """
    problems: list[str] = []
    for number in reversed(list_checkpoints(root)):
        path = checkpoint_path(root, number)
        try:
            checkpoint = open_checkpoint(path)
        except OSError as error:
            problems.append(f"{path.name}: {error}")
            continue
        found = verify(path)
        if not found and identity is not None:
            _check_identity(checkpoint, identity)
        found = found or list(besides(checkpoint))
        if found:
            problems.extend(found)
            continue
        return checkpoint, problems
    return None, problems


def _check_identity(checkpoint: Checkpoint, identity: dict[str, Any]) -> None:
    if canonical_json(checkpoint.identity) == canonical_json(identity):
        return
    keys = sorted({*checkpoint.identity, *identity})
    differences = [
        f"{key} is {checkpoint.identity.get(key)!r} there and {identity.get(key)!r} here"
        for key in keys
        if checkpoint.identity.get(key) != identity.get(key)
    ]
    raise ValueError(f"checkpoint {checkpoint.path} belongs to another run: {'; '.join(differences)}")
