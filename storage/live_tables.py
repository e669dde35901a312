"""Live tables: the arrays that workers train on, in shared memory, laid out as a Zarr or HDF5 file.

They are in `/dev/shm` if it is large enough, otherwise in anonymous shared memory that other processes reach through
links to `/proc/PID/fd`. Users can open them with zarr or h5py during the run.

Live tables are not reused after a crash. `remove_stale_live` removes those behind a killed run's link, and `sweep_live`
those that have no link.
"""

import errno
import os
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Self

from storage import free_space, stale_live_tables
from storage.cleanup import failure_logged
from storage.durable import naming
from storage.mapping import Region, map_regions
from storage.run_lock import RunLock
from storage.schema import ArraySpec, validate_specs
from storage.table_formats import TableFormat, table_format

MEMORY_SHARE = 0.8  # above it the system swaps, which makes training hundreds of times slower

FREE_BYTES_MARGIN = 16 << 20  # free space to leave in the tables' file system
_SHARED_MEMORY = Path("/dev/shm")
_LINKS_BYTES = 1 << 20  # for a directory that holds only links and metadata


class LiveTables:
    """The arrays on which a run trains; `close` or the end of a `with` block removes them.

    Attributes:
        directory: holds `tables.zarr` or `tables.h5`; users of the tables create further shared files in it
        link:      path of the symbolic link to `directory`, usually `live` in the run directory
        tables:    the Zarr group or HDF5 file
        specs:     schemas of the arrays
        regions:   file and offset of each array's cells, in the order of `specs`
        anonymous: True if the memory is anonymous and ends with this process
        warning:   a sentence for the user if the tables are on disk, which makes training slow; otherwise None
    """

    def __init__(self, directory: Path, link: Path, tables: str, specs: tuple[ArraySpec, ...]) -> None:
        self.directory = directory
        self.link = link
        self.tables = directory / tables
        self.specs = specs
        self.regions: tuple[Region, ...] = ()
        self.anonymous = False
        self.warning: str | None = None
        self._lock: RunLock | None = None  # on the directory: shows that the owner is alive
        self._descriptors: list[int] = []
        self._owner = os.getpid()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Remove the tables and their directory, then the link `live` in the run directory that leads to it.

        Processes that have mapped the tables keep the memory until they unmap it. Failures are logged, not raised. A
        second call does nothing, and neither does a call in a forked child.
        """
        if os.getpid() != self._owner:
            return
        with failure_logged(f"the live tables in {self.directory} were not removed"):
            stale_live_tables.remove(self.directory)
        with failure_logged(f"the link {self.link} to live tables was not removed"):
            if self.link.is_symlink() and self.link.readlink() == self.directory:
                self.link.unlink()
        while self._descriptors:
            os.close(self._descriptors.pop())
        if self._lock is not None:
            self._lock.release()


def live_bytes(specs: Iterable[ArraySpec], *, format: str) -> int:  # noqa: A002 - the name of the config's key
    """Return the bytes of memory that live tables with these schemas take in a format, `zarr` or `hdf5`.

    Raises `ValueError` for another format, and for schemas that `validate_specs` rejects.
    """
    return table_format(format).live_bytes(validate_specs(specs))


def check_free_space(
    specs: Iterable[ArraySpec],
    *,
    format: str,  # noqa: A002 - the name of the config's key
    live_dir: str | Path = "auto",
    free_bytes_margin: int = FREE_BYTES_MARGIN,
    fixed_memory_bytes: int = 0,
) -> None:
    """Raise an error if memory or disk space is too small for the tables on which a run trains.

    specs               schema of the tables
    format              `zarr` or `hdf5`
    live_dir            directory for the tables; "auto": `/dev/shm` if it has room, otherwise anonymous memory
    free_bytes_margin   bytes that must stay free in the file system besides the tables
    fixed_memory_bytes  further memory that the run needs, in bytes

    Raises `MemoryError` if tables and further memory take more than 80 % of the available memory (on a disk: more than
    all of it). Raises `OSError` if `live_dir` has too little room or is no directory, and `ValueError` for an unknown
    format.
    """
    _choose_place(live_dir, live_bytes(specs, format=format), free_bytes_margin, fixed_memory_bytes)


def create_live(
    specs: Iterable[ArraySpec],
    *,
    format: str,  # noqa: A002 - the name of the config's key
    live_dir: str | Path = "auto",
    link: Path,
    free_bytes_margin: int = FREE_BYTES_MARGIN,
    force: bool = False,
) -> LiveTables:
    """Create the arrays on which workers train (live tables), or raise and change nothing.

    Every cell has its fill value.

    Args:
        specs:             the schema
        format:            `zarr` or `hdf5`
        live_dir:          `auto`: `/dev/shm` if it has room, otherwise anonymous shared memory. Or a directory, in
                           which a new one is created; a directory on disk gives a warning
        link:              path of the symbolic link to create to the tables' directory, such as `live` in the run
                           directory
        free_bytes_margin: bytes that must stay free in the file system besides the tables
        force:             skip the checks of available memory and free space

    Raises:
        MemoryError: the tables take more than 80 % of the available memory (on a disk: more than all of it). The
            message has both numbers.
        OSError: the file system of `live_dir` has too little room (both numbers), or `live_dir` is not a directory.
        FileExistsError: `link` exists; call `remove_stale_live` first.
        ValueError: an unknown format or an invalid schema.
    """
    specs = validate_specs(specs)
    layout = table_format(format)
    needed = layout.live_bytes(specs)
    if os.path.lexists(link):
        raise FileExistsError(
            errno.EEXIST,
            f"{link} already exists: it has the tables of another run, or of a process that died: remove it",
        )
    parent, anonymous, warning = _choose_place(live_dir, needed, free_bytes_margin, force=force)
    live = LiveTables(stale_live_tables.new_directory(parent), Path(link), layout.TABLES, specs)
    live.anonymous, live.warning = anonymous, warning
    try:
        with naming(live.directory):
            _create(live, layout, specs)
    except BaseException:
        live.close()
        raise
    return live


def _create(live: LiveTables, layout: TableFormat, specs: Sequence[ArraySpec]) -> None:
    # Marker and link come before the memory, so that a kill leaves no memory that cannot be found.
    live._lock = stale_live_tables.claim(live.directory, live.link)
    live.link.symlink_to(live.directory)
    if live.anonymous:
        live.regions, live._descriptors = layout.create_live_anonymous(live.directory, specs)
    else:
        live.regions = layout.create_live(live.directory, specs)
    for spec, region in zip(specs, live.regions, strict=True):
        if spec.fill != 0:
            mapping = map_regions([region], writable=True, populate=False)
            mapping.view(spec.name)[...] = spec.fill
            mapping.close()


def _choose_place(
    live_dir: str | Path, needed: int, margin: int, other_bytes: int = 0, *, force: bool = False
) -> tuple[Path, bool, str | None]:
    """Choose a place for live tables; return (parent directory, is memory anonymous, warning).

    Live tables are the arrays on which a run trains. The warning is a sentence, or None.

    live_dir     a directory, or "auto"
    needed       bytes of the tables
    margin       bytes that must stay free in the file system
    other_bytes  further memory that the run needs
    force        skip the checks of available memory and free space

    Raises `MemoryError` or `OSError` if there is too little, and `NotADirectoryError` if `live_dir` is no directory.
    """
    if live_dir == "auto":
        _refuse_above(MEMORY_SHARE, needed, other_bytes, force)
        if _SHARED_MEMORY.is_dir() and os.access(_SHARED_MEMORY, os.W_OK | os.X_OK):
            free = free_space.free_bytes(_SHARED_MEMORY)
            if free >= needed + margin:
                return _SHARED_MEMORY, False, None
            if free >= _LINKS_BYTES:
                return _SHARED_MEMORY, True, None
        return Path(tempfile.gettempdir()), True, None
    parent = Path(live_dir).absolute()
    if not parent.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, f"live_dir {live_dir} is not a directory: create it, or use 'auto'")
    in_memory = free_space.is_in_memory(parent)
    _refuse_above(MEMORY_SHARE if in_memory else 1.0, needed, other_bytes, force)
    free = free_space.free_bytes(parent)
    if free < needed + margin and not force:
        raise OSError(
            errno.ENOSPC,
            f"the tables need {needed:,} bytes (and {margin:,} to spare) and {live_dir} has {free:,} bytes free: "
            f"choose another live_dir or make the tables smaller",
        )
    warning = (
        f"live_dir {live_dir} is not in memory: training becomes very slow as soon as the system writes the tables "
        f"back, unless its dirty-page limits (vm.dirty_bytes, vm.dirty_background_bytes) are above {needed:,} bytes"
    )
    return parent, False, None if in_memory else warning


def _refuse_above(share: float, needed: int, other_bytes: int, force: bool) -> None:
    available = free_space.available_memory_bytes()
    if needed + other_bytes > share * available and not force:
        others = f", the rest of the run {free_space.bytes_text(other_bytes)}," if other_bytes else ""
        raise MemoryError(
            f"the tables need {free_space.bytes_text(needed)}{others} and {free_space.bytes_text(available)} of memory "
            f"are available, of which a run may take {share:.0%}: make the tables smaller, free memory or use a larger "
            "machine"
        )


def remove_stale_live(link: Path) -> Path | None:
    """Remove the tables on which a killed run trained (live tables), and the link `link` to them.

    The caller must hold the run lock. The tables stay if the process that created them is alive, because the link may
    be in a copy of its run directory. The link is removed even then.

    Returns:
        The removed directory of the tables; None if they stay, or if there is no link.

    Raises:
        FileExistsError: `link` is not a symbolic link.
    """
    link = Path(link)
    if not link.is_symlink():
        if link.exists():
            raise FileExistsError(errno.EEXIST, f"{link} should be a link to live tables and is not: move it away")
        return None
    directory = link.parent / link.readlink()
    removed = stale_live_tables.remove_if_abandoned(directory)
    link.unlink()
    return directory if removed else None


def sweep_live(live_dir: str | Path = "auto") -> list[Path]:
    """Remove the tables on which dead processes of this user trained (live tables).

    It looks in `/dev/shm`, in the directory for temporary files, and in `live_dir` unless it is "auto".

    Returns the removed directories. Tables of living processes are untouched, also of those in other containers.
    """
    places = [_SHARED_MEMORY, Path(tempfile.gettempdir())]
    return stale_live_tables.sweep([*places, *([] if live_dir == "auto" else [Path(live_dir).absolute()])])
