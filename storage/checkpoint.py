"""Reads checkpoints: immutable directories with the arrays and the state of a run at one moment.

A checkpoint is `ROOT/000123/` with `manifest.json`, `state.json` and `tables.zarr/` or `tables.h5`, written by
`storage.checkpoint_writer`. The manifest lists the length and checksum of every file. Without it, a missing Zarr chunk
would read as zeros, and a swapped chunk would go unnoticed.
"""

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from storage import contiguous_arrays
from storage.contiguous_arrays import FileCells
from storage.damage import DamagedError, UnreadableError, reading, walk
from storage.directory_lock import ReadLock
from storage.json_files import read_json
from storage.manifest import canonical_json, read_manifest
from storage.manifest_files import file_problem, file_problems, listed_files
from storage.schema import ArraySpec, specs_from_json
from storage.table_formats import NotFiniteError, blocks, check_finite, table_format

FORMAT = "checkpoint"
FORMAT_VERSION = 3
"""Version of checkpoints with chunked arrays; their files are listed with XXH3-128."""
WHOLE_VERSION = 2
"""Version of checkpoints with contiguous arrays (`storage.contiguous_arrays`), listed with CRC-32C."""

MANIFEST = "manifest.json"
STATE = "state.json"
CELLS = "cells"
_NOTE = ".note"
_NUMBER = re.compile(r"[0-9]{6,}")


def checkpoint_path(root: Path, number: int) -> Path:
    """Return the directory of checkpoint `number` in `root`, such as `root/000123`."""
    return Path(root) / f"{number:06d}"


def list_checkpoints(root: Path) -> list[int]:
    """Return the numbers of the checkpoints in `root`, ascending, valid or damaged.

    [] if `root` does not exist. Raises `UnreadableError` if the system cannot list it.
    """
    try:
        with reading(Path(root)), os.scandir(root) as entries:
            names = [entry.name for entry in entries if _NUMBER.fullmatch(entry.name) and entry.is_dir()]
    except (FileNotFoundError, NotADirectoryError):
        return []
    return sorted(int(name) for name in names if f"{int(name):06d}" == name)


def note_path(path: Path) -> Path:
    """Return the path of a checkpoint's note: a file that marks it as damaged or set aside by the user.

    path  the checkpoint, such as checkpoints/000123; its note is checkpoints/000123.note
    """
    return path.with_name(f"{path.name}{_NOTE}")


def list_notes(root: Path) -> list[Path]:
    """Return the paths of the notes `NUMBER.note` in `root`, sorted by name; [] if `root` does not exist.

    A note marks a checkpoint as damaged or set aside. Raises `UnreadableError` if the system cannot list `root`.
    """
    return list_entries(root, f"*{_NOTE}")


def list_entries(root: Path, pattern: str = "*") -> list[Path]:
    """Return the sorted paths of files and folders in `root` whose names match a glob pattern.

    Returns [] if `root` does not exist.

    Raises `UnreadableError` if the system cannot list it.
    """
    try:
        with reading(root):
            return sorted(path for path in root.iterdir() if fnmatchcase(path.name, pattern))
    except (FileNotFoundError, NotADirectoryError):
        return []


def next_number(root: Path) -> int:
    """Return the lowest allowed number of a new checkpoint in `root`.

    It is the highest number of an existing checkpoint plus one; 0 if there is none.
    """
    return max(list_checkpoints(root), default=-1) + 1


class Checkpoint:
    """An open checkpoint: a directory with the arrays and the state of a run at one moment.

    Its manifest, a list of its files with checksums, and its state are checked on opening, arrays on reading.

    Attributes:
        path, number: the directory, and its number
        identity:     JSON that identifies the run; a run resumes only from checkpoints with its own
        parents:      {path: hash of its manifest} of other directories on which it depends, such as blocks of rows
        specs:        schema of the arrays
        state:        JSON of the run's state, such as counters and random states
        format:       `zarr` or `hdf5`
        files:        {name relative to `path`: length, checksum and its kind}, from the manifest
        content_hash: hash of the manifest, which covers all files
        lock:         lock that keeps the directory on disk (`storage.locked_checkpoints`), or None
    """

    lock: ReadLock | None = None

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
            self._cells = msgspec.convert(manifest.get(CELLS, {}), dict[str, FileCells])
            self._layout = table_format(self.format)
            for value, kind in ((self.number, int), (self.identity, dict), (self.parents, dict)):
                if type(value) is not kind:
                    raise TypeError(f"{value!r} is not of the kind {kind.__name__}")
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"{path / MANIFEST} is intact but not a checkpoint's: {error!r}") from error
        self._checked: set[str] = set()
        self._check_files([STATE])
        self.state: dict[str, Any] = read_json(path / STATE)
        if not isinstance(self.state, dict):
            raise ValueError(f"{path / STATE} holds a {type(self.state).__name__}; an object is needed")

    def _check_files(self, names: Iterable[str]) -> None:
        for name in names:
            if name in self._checked:
                continue
            problem = self.file_problem(name)
            if problem:
                raise DamagedError(f"checkpoint {self.path}: {problem}")
            self._checked.add(name)

    def file_problem(self, name: str) -> str | None:
        """Compare a file's content with the manifest; return a sentence about the difference, or None.

        name  path of the file relative to the checkpoint's directory

        Raises `UnreadableError` if the system cannot read the file.
        """
        if name not in self.files:
            return f"{name} is not in the manifest"
        return file_problem(self.path, name, self.files[name])

    def spec(self, name: str) -> ArraySpec:
        """Return the schema of an array; raises `KeyError` for an unknown name."""
        for spec in self.specs:
            if spec.name == name:
                return spec
        raise KeyError(f"checkpoint {self.path} has no array {name!r}; it has {', '.join(s.name for s in self.specs)}")

    def read(self, name: str) -> np.ndarray:
        """Return the array `name` in its shape and dtype.

        Raises:
            KeyError: the checkpoint has no such array.
            DamagedError: a file of the array is damaged or missing.
            UnreadableError: the system cannot read a file of the array.
            ValueError: the files state another shape or dtype than the manifest; raised before any allocation.
        """
        return self._read(self.spec(name), None)

    def read_into(self, name: str, out: np.ndarray) -> None:
        """Read the array `name`, chunk by chunk, into `out` [shape and dtype of the array], in place.

        Raises `KeyError` for an unknown array, and `ValueError` if `out` or a file has another shape or dtype. Raises
        `DamagedError` for a damaged or missing file, and `UnreadableError` if the system cannot read one. After these
        two, part of `out` may be written.
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
        """Read rows of the array `name`, from row `first` on, into `out` [rows, ...], in place.

        Rows count from 0; the length of `out` states how many are read. It reads only the chunks that hold these rows.
        It checks the chunks' own checksums, but not those of the manifest, so call it only for checkpoints that have
        passed `verify`. Raises `KeyError` for an unknown array, and `UnreadableError` if the system cannot read a file.
        Raises `DamagedError` for a damaged or missing file, and for arrays without chunks.
        """
        with self._opened(self.spec(name)) as array:
            step = max(1, array.chunks[0])
            for begin in range(first, first + len(out), step):
                end = min(begin + step, first + len(out))
                out[begin - first : end - first] = array[begin:end]

    @contextmanager
    def _opened(self, spec: ArraySpec) -> Iterator[Any]:
        """Open an array of the checkpoint in a `with` block, for reading by slices such as array[2:5].

        Errors of zarr or h5py about bad data become `DamagedError`.
        """
        with _inside(self.path), self._layout.open_array(self.path, spec, list(self.files)) as array:
            yield array

    def _read_whole(self, spec: ArraySpec, out: np.ndarray | None) -> np.ndarray:
        cells = self._checked_cells(spec)
        cell_values = np.empty(spec.shape, spec.numpy_dtype) if out is None or not out.flags.c_contiguous else out
        with _inside(self.path):
            sound = contiguous_arrays.read_array(self.path, cells, cell_values)
        if not sound:
            raise DamagedError(f"checkpoint {self.path}: {contiguous_arrays.wrong_cells_message(spec, cells)}")
        if out is None or cell_values is out:
            return cell_values
        out[...] = cell_values
        return out

    def _checked_cells(self, spec: ArraySpec) -> FileCells:
        """Return file and offset of an array that is stored as raw cells; check the length of the file.

        Raises `DamagedError` for a file that is missing, not in the manifest, or of another length. Raises `ValueError`
        if the manifest states cells outside of the file.
        """
        cells = self._cells[spec.name]
        problem = f"{cells.file} is not in the manifest"
        if cells.file in self.files:
            problem = file_problem(self.path, cells.file, self.files[cells.file], content=False) or ""
        if problem:
            raise DamagedError(f"checkpoint {self.path}: {problem}")
        end = cells.offset_bytes + spec.nbytes
        if not 0 <= cells.offset_bytes < end <= self.files[cells.file].length_bytes:
            raise ValueError(
                f"checkpoint {self.path}: the manifest states {spec.shape} of {spec.dtype} for array {spec.name!r}, "
                f"from byte {cells.offset_bytes} of {cells.file}, which has {self.files[cells.file].length_bytes}"
            )
        return cells

    def file_problems(self) -> list[str]:
        """Check every byte of all files; return a sentence for each problem.

        In arrays stored as raw cells without chunks, the cells are checked too, also for NaN and infinity. Raises
        `UnreadableError` if the system cannot read a file.
        """
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
        """Check every byte of a file of arrays stored as raw cells; return one sentence for each problem.

        name   the file, relative to the checkpoint's directory
        specs  schemas of the arrays in this file

        Raises `UnreadableError` if the system cannot read the file.
        """
        try:
            places = [(spec, self._checked_cells(spec)) for spec in specs]
            places.sort(key=lambda place: place[1].offset_bytes)
            return contiguous_arrays.file_problems(self.path / name, self.files[name].checksum, places)
        except (DamagedError, ValueError) as error:
            return [str(error)]

    def array_problem(self, spec: ArraySpec) -> str | None:
        """Decode all cells of an array; return a sentence on damage, NaN or infinity, or None.

        Arrays stored as raw cells without chunks give None, because `file_problems` checks them. Raises
        `UnreadableError` if the system cannot read a file.
        """
        if spec.name in self._cells:
            return None  # `file_problems` checks these
        try:
            with self._opened(spec) as array:
                for block in blocks(spec.shape, array.chunks):
                    check_finite(spec, array[block], [edge.start for edge in block])
        except NotFiniteError as error:
            return str(error)
        except (UnreadableError, FileNotFoundError, MemoryError):
            raise
        except Exception as error:  # any library error on a bad file is a problem to report
            return f"array {spec.name!r} cannot be read: {error}"
        return None


def is_checkpoint(path: Path) -> bool:
    """Return whether a path has a checkpoint's name (a number) and contains a manifest or state file.

    The name has six or more digits.
    """
    with reading():
        return _NUMBER.fullmatch(Path(path).name) is not None and any(
            (Path(path) / name).exists() for name in (STATE, MANIFEST)
        )


@contextmanager
def _inside(path: Path) -> Iterator[None]:
    """Convert errors of a `with` block about missing files of the checkpoint `path` to `DamagedError`.

    `FileNotFoundError` stays if the whole directory is gone, because a checkpoint may be removed during reading.
    """
    try:
        yield
    except (FileNotFoundError, NotADirectoryError) as error:
        with reading(path):
            if not path.is_dir():
                raise
        raise DamagedError(f"checkpoint {path}: {error.filename or 'a file'} is missing") from None


def open_checkpoint(path: Path, kind: type[Checkpoint] = Checkpoint) -> Checkpoint:
    """Open a checkpoint and check its manifest and state; arrays are checked when they are read.

    kind  class of the result: `Checkpoint` or a subclass

    Raises:
        FileNotFoundError: the directory does not exist.
        DamagedError: the manifest or state is damaged or missing, or it or the directory is a symbolic link.
        UnreadableError: the system cannot read the manifest or state; the checkpoint may be valid.
        ValueError: another format or format version (the message has both), a manifest of something else, or a state
            that is not a JSON object.
    """
    path = Path(path)
    with reading(path):
        linked = path.is_symlink()
    if linked:
        raise DamagedError(f"checkpoint {path} is a symbolic link, which no part of a checkpoint may be")
    with _inside(path):
        return kind(path, read_manifest(path / MANIFEST, FORMAT, FORMAT_VERSION, [WHOLE_VERSION]))


def verify(path: Path) -> list[str]:
    """Check every byte of a checkpoint and decode every array.

    Returns one sentence for each problem; [] for a valid checkpoint. Problems are:

    * a manifest that is damaged or of another version
    * files that are missing, extra, symbolic links, or of another length or checksum
    * arrays that cannot be read, differ from the schema, or have NaN or infinite cells

    Raises `UnreadableError` if the system cannot read a file.
    """
    path = Path(path)
    try:
        checkpoint = open_checkpoint(path)
    except (DamagedError, FileNotFoundError, ValueError) as error:
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
    """Return a sentence for each file or folder of the checkpoint `path` that the manifest does not list.

    files  names of the listed files, relative to `path`
    """
    folders = {name[:at] for name in files for at, letter in enumerate(name) if letter == "/"}
    entries = set()
    with reading(path):
        for folder, names, file_names in walk(path):
            entries |= {Path(folder, name).relative_to(path).as_posix() for name in (*names, *file_names)}
    return [f"{name} is not in the manifest" for name in sorted(entries - {MANIFEST, *files, *folders})]


def newest_valid(
    root: Path,
    identity: dict[str, Any] | None = None,
    elsewhere: Callable[[Checkpoint], Sequence[str]] = lambda _: (),
) -> tuple[Checkpoint | None, list[str]]:
    """Return the newest checkpoint that passes `verify` and `elsewhere`, and problems of the newer ones.

    Args:
        root:     directory of the checkpoints
        identity: required fields that identify the run; None accepts any
        elsewhere: function of a checkpoint. It checks files in other directories on which the checkpoint depends, and
            returns a sentence for each problem

    Returns:
        (checkpoint or None, problems of the checkpoints that were skipped).

    Raises:
        ValueError: the newest valid checkpoint has another identity, or a checkpoint has another format version. The
            message has both values. Falling back to an older checkpoint would silently lose work.
        UnreadableError: the system cannot read a checkpoint, which may be valid; the error's `number` is its number.
    """
    problems: list[str] = []
    for number in reversed(list_checkpoints(root)):
        path = checkpoint_path(root, number)
        try:
            checkpoint = open_checkpoint(path)
            faults = verify(path)
            if not faults and identity is not None and (foreign := identity_problem(checkpoint, identity)) is not None:
                raise ValueError(f"{path}: {foreign}")
            faults = faults or list(elsewhere(checkpoint))
        except DamagedError as error:
            faults = [f"{path.name}: {error}"]
        except UnreadableError as error:
            error.number = number
            raise
        if faults:
            problems.extend(faults)
            continue
        return checkpoint, problems
    return None, problems


def identity_problem(checkpoint: Checkpoint, identity: Mapping[str, Any]) -> str | None:
    """Return a sentence on how a checkpoint's identity, which names its run, differs from the given one.

    Returns None if they are equal.
    """
    stored, expected = checkpoint.identity, dict(identity)
    if canonical_json(stored) == canonical_json(expected):
        return None
    differences = [
        f"{key} is {stored.get(key)!r} there and {expected.get(key)!r} here"
        for key in sorted({*stored, *expected})
        if stored.get(key) != expected.get(key)
    ]
    return f"it belongs to another run: {'; '.join(differences)}; move it away"
