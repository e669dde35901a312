"""Checkpoints: immutable directories that are either whole or not there.

A checkpoint is `ROOT/000123/` with `manifest.json`, `state.json` and `tables.zarr/` or `tables.h5`, as
`storage.checkpoint_writer` writes it.  The manifest lists every file with its length and a checksum of all its bytes,
because a missing Zarr chunk would otherwise read as zeros, and another's as its own.
"""

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, NoReturn

import msgspec
import numpy as np

from storage import contiguous
from storage.contiguous import FileCells
from storage.damage import DamagedError, UnreadableError, reading
from storage.directory_lock import ReadLock
from storage.formats import (
    NotFiniteError,
    blocks,
    check_finite,
    table_format,
)
from storage.json_files import read_json
from storage.listing import file_problem, file_problems, listed_files
from storage.manifest import canonical_json, read_manifest
from storage.schema import ArraySpec, specs_from_json

FORMAT = "checkpoint"
FORMAT_VERSION = 3
"""Of checkpoints whose arrays are in chunks: their files are listed with XXH3-128."""
WHOLE_VERSION = 2
"""Of checkpoints whose arrays are whole (`storage.contiguous`), listed with CRC-32C."""

MANIFEST = "manifest.json"
STATE = "state.json"
CELLS = "cells"
_NOTE = ".note"
_NUMBER = re.compile(r"[0-9]{6,}")


def checkpoint_path(root: Path, number: int) -> Path:
    """Return the directory of checkpoint `number`."""
    return Path(root) / f"{number:06d}"


def list_checkpoints(root: Path) -> list[int]:
    """Return the numbers of the checkpoints in `root`, ascending, without a look inside; [] where there is no root.

    Raises `UnreadableError` where the system cannot list them.
    """
    try:
        with reading(Path(root)), os.scandir(root) as entries:
            names = [entry.name for entry in entries if _NUMBER.fullmatch(entry.name) and entry.is_dir()]
    except (FileNotFoundError, NotADirectoryError):
        return []
    return sorted(int(name) for name in names if f"{int(name):06d}" == name)


def note_path(path: Path) -> Path:
    """Return the note beside a checkpoint that says why no run goes on from it (`storage.aside`)."""
    return path.with_name(f"{path.name}{_NOTE}")


def list_notes(root: Path) -> list[Path]:
    """Return the notes in `root`, by name; [] where there is no root."""
    return list_entries(root, f"*{_NOTE}")


def list_entries(root: Path, pattern: str = "*") -> list[Path]:
    """Return what lies in `root` under names that match a pattern, by name; [] where there is no root.

    Raises `UnreadableError` where the system cannot list them.
    """
    try:
        with reading(root):
            return sorted(path for path in root.iterdir() if fnmatchcase(path.name, pattern))
    except (FileNotFoundError, NotADirectoryError):
        return []


def next_number(root: Path) -> int:
    """Return the lowest number that a new checkpoint in `root` can have: one more than the highest, or 0."""
    return max(list_checkpoints(root), default=-1) + 1


class Checkpoint:
    """An open checkpoint: its manifest and state are read and checked, its arrays when they are asked for.

    Attributes:
        path, number, identity, parents, specs, state: as given to `checkpoint_writer.commit`
        format:       `zarr` or `hdf5`
        content_hash: of the manifest, and so of everything
        lock:         what keeps its directory on the disk (`storage.locked_checkpoints`); None: nothing does
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
            DamagedError: a file of it is damaged or missing.
            UnreadableError: the system cannot read a file of it.
            ValueError: its files state another shape or dtype than the manifest; nothing has been allocated then.
        """
        return self._read(self.spec(name), None)

    def read_into(self, name: str, out: np.ndarray) -> None:
        """Read one array, block by block, into `out` [shape of the array, its dtype], which is changed in place.

        Raises as `read`, and ValueError where `out` does not fit; after another error part of `out` may be written.
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
        """One array for reading by slices; `DamagedError` for whatever a library says of bad data."""
        with _inside(self.path), self._layout.open_array(self.path, spec, list(self.files)) as array:
            yield array

    def _read_whole(self, spec: ArraySpec, out: np.ndarray | None) -> np.ndarray:
        cells = self._checked_cells(spec)
        found = np.empty(spec.shape, spec.numpy_dtype) if out is None or not out.flags.c_contiguous else out
        with _inside(self.path):
            sound = contiguous.read_array(self.path, cells, found)
        if not sound:
            raise DamagedError(f"checkpoint {self.path}: {contiguous.other_cells(spec, cells)}")
        if out is None or found is out:
            return found
        out[...] = found
        return out

    def _checked_cells(self, spec: ArraySpec) -> FileCells:
        """Where a whole array lies, once its file is long enough for it.

        Raises `DamagedError` for a file that is not as stated, `ValueError` where the manifest contradicts itself.
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
        """Return what is wrong with the file of some whole arrays; raises as `verify`."""
        try:
            places = [(spec, self._checked_cells(spec)) for spec in specs]
            places.sort(key=lambda place: place[1].offset_bytes)
            return contiguous.file_problems(self.path / name, self.files[name].checksum, places)
        except (DamagedError, ValueError) as error:
            return [str(error)]

    def array_problem(self, spec: ArraySpec) -> str | None:
        """Decode every cell of an array, and see that it is finite; a sentence about what is wrong, or None.

        Raises as `verify`.
        """
        if spec.name in self._cells:
            return None  # `file_problems` has looked
        try:
            with self._opened(spec) as array:
                for block in blocks(spec.shape, array.chunks):
                    check_finite(spec, array[block], [edge.start for edge in block])
        except NotFiniteError as error:
            return str(error)
        except (UnreadableError, FileNotFoundError, MemoryError):
            raise
        except Exception as error:  # whatever a library says about a file it cannot read is the finding
            return f"array {spec.name!r} cannot be read: {error}"
        return None


def is_checkpoint(path: Path) -> bool:
    """Return whether a directory has the place and the files of a checkpoint, sound or not."""
    with reading():
        return _NUMBER.fullmatch(Path(path).name) is not None and any(
            (Path(path) / name).exists() for name in (STATE, MANIFEST)
        )


@contextmanager
def _inside(path: Path) -> Iterator[None]:
    """Raise `DamagedError` where a file of the checkpoint `path` is missing, unless the checkpoint itself is gone."""
    try:
        yield
    except (FileNotFoundError, NotADirectoryError) as error:
        with reading(path):
            if not path.is_dir():
                raise
        raise DamagedError(f"checkpoint {path}: {error.filename or 'a file'} is missing") from None


def open_checkpoint(path: Path, kind: type[Checkpoint] = Checkpoint) -> Checkpoint:
    """Open a checkpoint's directory and check its manifest and state; the tables are checked when they are read.

    `kind`: the class of what is returned.

    Raises:
        FileNotFoundError: there is no such directory.
        DamagedError: the manifest or the state is damaged or missing, or one of them or the directory is a symbolic
            link.
        UnreadableError: the system cannot read them: nothing can be said of the checkpoint then.
        ValueError: another format or format version, with both in the message; an intact manifest that is none, or a
            state that is no JSON object.
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

    Returns:
        One sentence for each thing that is wrong: a manifest that is damaged or of another version, files that are
        missing, extra, links, of another length or checksum, arrays that cannot be read, differ from the schema or
        hold cells that are NaN or infinite.  Empty for a sound checkpoint.

    Raises `UnreadableError` where the system cannot read a file.
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
    """Entries of the directory that no manifest speaks of."""
    folders = {name[:at] for name in files for at, letter in enumerate(name) if letter == "/"}
    found = set()
    with reading(path):
        for folder, names, file_names in os.walk(path, onerror=_raise):
            found |= {Path(folder, name).relative_to(path).as_posix() for name in (*names, *file_names)}
    return [f"{name} is not in the manifest" for name in sorted(found - {MANIFEST, *files, *folders})]


def _raise(error: OSError) -> NoReturn:
    raise error


def newest_valid(
    root: Path,
    identity: dict[str, Any] | None = None,
    elsewhere: Callable[[Checkpoint], Sequence[str]] = lambda _: (),
) -> tuple[Checkpoint | None, list[str]]:
    """Return the newest checkpoint that verifies in full, and what was wrong with the newer ones.

    Args:
        root:     directory of the checkpoints
        identity: what the checkpoint's identity must be; None accepts any
        elsewhere:  what is wrong with what a checkpoint names outside of its directory

    Returns:
        (checkpoint, or None where there is no sound one; problems of those that were skipped).

    Raises:
        ValueError: the newest sound checkpoint has another identity, or a checkpoint another format version; the
            message has both values.  Going back to an older one would lose work without a word.
        UnreadableError: the system cannot read a checkpoint, which may be sound; `number` says which.
    """
    problems: list[str] = []
    for number in reversed(list_checkpoints(root)):
        path = checkpoint_path(root, number)
        try:
            checkpoint = open_checkpoint(path)
            found = verify(path)
            if not found and identity is not None and (foreign := identity_problem(checkpoint, identity)) is not None:
                raise ValueError(f"{path}: {foreign}")
            found = found or list(elsewhere(checkpoint))
        except DamagedError as error:
            found = [f"{path.name}: {error}"]
        except UnreadableError as error:
            error.number = number
            raise
        if found:
            problems.extend(found)
            continue
        return checkpoint, problems
    return None, problems


def identity_problem(checkpoint: Checkpoint, identity: Mapping[str, Any]) -> str | None:
    """Return one sentence where a checkpoint has another identity than the one given; None where it has this one."""
    there, here = checkpoint.identity, dict(identity)
    if canonical_json(there) == canonical_json(here):
        return None
    differences = [
        f"{key} is {there.get(key)!r} there and {here.get(key)!r} here"
        for key in sorted({*there, *here})
        if there.get(key) != here.get(key)
    ]
    return f"it belongs to another run: {'; '.join(differences)}; move it away"
