"""Memory mappings of table regions: many arrays of one dtype as one contiguous flat array.

A kernel takes one flat array per dtype and element offsets into it, whatever the number of tables.  To get there, a
range of addresses is reserved first and each region's pages are then mapped at their place inside it.
"""

import contextlib
import ctypes
import errno
import math
import mmap
import os
import weakref
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from storage.durable import naming
from storage.schema import ArraySpec

HUGE_PAGE_BYTES = 2 << 20

_MAP_FIXED = 0x10
_MAP_NORESERVE = 0x4000
_MADV_POPULATE_READ = 22
_MADV_POPULATE_WRITE = 23
_MADV_COLLAPSE = 25

_libc = ctypes.CDLL(None, use_errno=True)
_libc.mmap.restype = ctypes.c_void_p
_libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
_libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
_libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
_libc.madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
_MAP_FAILED = ctypes.c_void_p(-1).value


class Region(msgspec.Struct, frozen=True):
    """Where the raw row-major cells of one array lie in a file.

    Fields:
        name:         the array's name
        path:         absolute path of the file
        offset_bytes: first byte of the cells in the file, a multiple of the page size
        length_bytes: bytes of the cells
        shape:        lengths of the axes
        dtype:        NumPy's name of the dtype
    """

    name: str
    path: str
    offset_bytes: int
    length_bytes: int
    shape: tuple[int, ...]
    dtype: str


def regions_to_json(regions: Iterable[Region]) -> list[dict[str, Any]]:
    """Return regions as plain lists and dictionaries that `json.dumps` takes, for worker processes."""
    return msgspec.json.decode(msgspec.json.encode(list(regions)))


def regions_from_json(data: Any) -> tuple[Region, ...]:
    """Return the regions that `regions_to_json` turned into plain data.

    Raises:
        ValueError: a field is missing or of the wrong type.
    """
    return tuple(msgspec.convert(data, list[Region]))


class _Pages:
    """Owner of a mapped address range: NumPy arrays over it keep it, and it is unmapped when the last of them goes."""

    def __init__(self, reserved: int, reserved_bytes: int) -> None:
        self.unmap = weakref.finalize(self, _libc.munmap, reserved, reserved_bytes)
        self.unmap.atexit = False  # at exit arrays may still be in use; the kernel unmaps

    def array(self, start: int, length: int, dtype: np.dtype[Any], writable: bool) -> np.ndarray:
        """Array [length] of `dtype` at the address `start`, with this object as its base."""
        self.__array_interface__ = {
            "version": 3,
            "data": (start, not writable),
            "shape": (length,),
            "typestr": dtype.str,
        }
        return np.asarray(self)


class Mapping:
    """Regions of one dtype, mapped into one contiguous range.

    Attributes:
        flat:    [M] of the regions' dtype, from the first cell of the first region to the last cell of the last.
                 Between regions lies private zero memory or the end of a file's last page: harmless to read, not to be
                 written.
        offsets: {name: element offset of the array's first cell in `flat`}
    """

    def __init__(self, flat: np.ndarray, offsets: dict[str, int], shapes: dict[str, tuple[int, ...]]) -> None:
        self._flat: np.ndarray | None = flat
        self._shapes = shapes
        self.offsets = offsets

    @property
    def flat(self) -> np.ndarray:
        """The whole range as a one-dimensional array; ValueError after `close`."""
        if self._flat is None:
            raise ValueError("this mapping is closed")
        return self._flat

    def view(self, name: str) -> np.ndarray:
        """Return the array `name` in its shape, sharing memory with `flat`; KeyError for an unknown name."""
        shape, start = self._shapes[name], self.offsets[name]
        return self.flat[start : start + math.prod(shape)].reshape(shape)

    def close(self) -> None:
        """Let go of the memory.

        The pages are unmapped when the last array over them (`flat`, views, slices) is dropped, never under one that
        is still in use: drop your own arrays to free the memory.
        """
        self._flat = None


def map_regions(regions: Iterable[Region], *, writable: bool, populate: bool) -> Mapping:
    """Map regions of one dtype, in the given order, into one contiguous range of addresses.

    A region of 2 MiB or more whose file offset allows it begins at a multiple of 2 MiB, every other one at a page.
    Huge pages are asked for.  File sizes are checked first: a file that is too short is refused, never extended.

    Args:
        regions:  at least one; all of one dtype, names unique
        writable: map for reading and writing, shared with every other process that maps the file; else read-only
        populate: bring every page into this process's page table now, so that training meets no page faults

    Raises:
        ValueError: regions that do not fit together, do not begin at a page, or disagree with their shape.
        FileNotFoundError: a file is not there.
        OSError: a file is shorter than its region, or the system refuses the mapping.
    """
    regions = tuple(regions)
    dtype = _check_regions(regions)
    descriptors: list[int] = []
    try:
        for region in regions:
            descriptors.append(_open_checked(region, writable))
        with naming(Path(regions[0].path)):
            return _map_descriptors(regions, descriptors, dtype, writable, populate)
    finally:
        for descriptor in descriptors:
            os.close(descriptor)


def _check_regions(regions: Sequence[Region]) -> np.dtype[Any]:
    if not regions:
        raise ValueError("a mapping needs at least one region")
    dtypes = sorted({region.dtype for region in regions})
    if len(dtypes) > 1:
        raise ValueError(f"the regions of one mapping must have one dtype; given: {', '.join(dtypes)}")
    if len({region.name for region in regions}) < len(regions):
        raise ValueError("the regions of one mapping must have different names")
    dtype = np.dtype(dtypes[0]).newbyteorder("<")
    for region in regions:
        if region.offset_bytes < 0 or region.offset_bytes % mmap.PAGESIZE:
            raise ValueError(f"region {region.name!r}: offset {region.offset_bytes} is not a multiple of the page size")
        expected = math.prod(region.shape) * dtype.itemsize
        if region.length_bytes != expected or expected < 1:
            raise ValueError(
                f"region {region.name!r}: {region.length_bytes} bytes for shape {region.shape} of {region.dtype}, "
                f"which takes {expected} (at least 1)"
            )
    return dtype


def _open_checked(region: Region, writable: bool) -> int:
    """Open the region's file and refuse it where it is too short."""
    descriptor = os.open(region.path, (os.O_RDWR if writable else os.O_RDONLY) | os.O_CLOEXEC)
    size, needed = os.fstat(descriptor).st_size, region.offset_bytes + region.length_bytes
    if size < needed:
        os.close(descriptor)
        raise OSError(
            errno.EINVAL, f"{region.path} is truncated: {size} bytes, and array {region.name!r} ends at byte {needed}"
        )
    return descriptor


def _round_up(value: int, multiple: int) -> int:
    return -(-value // multiple) * multiple


def _place(regions: Sequence[Region]) -> tuple[list[int], int]:
    """Byte position of each region from the start of the range, and the bytes of all pages together."""
    positions, end = [], 0
    for region in regions:
        huge = region.length_bytes >= HUGE_PAGE_BYTES and region.offset_bytes % HUGE_PAGE_BYTES == 0
        positions.append(_round_up(end, HUGE_PAGE_BYTES if huge else mmap.PAGESIZE))
        end = positions[-1] + _round_up(region.length_bytes, mmap.PAGESIZE)
    return positions, end


def _map_descriptors(
    regions: Sequence[Region], descriptors: Sequence[int], dtype: np.dtype[Any], writable: bool, populate: bool
) -> Mapping:
    positions, total = _place(regions)
    protection = mmap.PROT_READ | (mmap.PROT_WRITE if writable else 0)
    reserved_bytes = total + HUGE_PAGE_BYTES  # room to begin at a multiple of 2 MiB
    reserved = _mmap(None, reserved_bytes, 0, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, -1, 0)
    pages = _Pages(reserved, reserved_bytes)
    base, end = _round_up(reserved, HUGE_PAGE_BYTES), 0
    for region, descriptor, position in zip(regions, descriptors, positions, strict=True):
        if position > end:  # the gap after the region before: zeros, as anonymous memory is
            _check(_libc.mprotect(base + end, position - end, protection), "mprotect")
        length = _round_up(region.length_bytes, mmap.PAGESIZE)
        _mmap(base + position, length, protection, mmap.MAP_SHARED | _MAP_FIXED, descriptor, region.offset_bytes)
        if length >= HUGE_PAGE_BYTES:
            # A wish: kernels without huge pages for shared memory answer EINVAL.
            _libc.madvise(base + position, length, mmap.MADV_HUGEPAGE)
        if populate:
            _populate(base + position, length, writable)
        if populate and writable and length >= HUGE_PAGE_BYTES:
            # A wish, too, that Linux since 6.1 grants where settings forbid the one above: what is there is moved.
            _libc.madvise(base + position, length, _MADV_COLLAPSE)
        end = position + length
    last = positions[-1] + regions[-1].length_bytes
    flat = pages.array(base, last // dtype.itemsize, dtype, writable)
    offsets = {region.name: at // dtype.itemsize for region, at in zip(regions, positions, strict=True)}
    return Mapping(flat, offsets, {region.name: tuple(region.shape) for region in regions})


def map_anonymous(cells: int, dtype: np.dtype[Any]) -> np.ndarray:
    """[cells] zeros in memory of this process's own, from a multiple of 2 MiB on; every page is there at once.

    Huge pages are asked for; the memory goes when the last array over it does.  Raises `OSError` where there is none.
    """
    used = _round_up(max(1, cells * dtype.itemsize), HUGE_PAGE_BYTES)
    reserved_bytes = used + HUGE_PAGE_BYTES  # room to begin at a multiple of 2 MiB
    reserved = _mmap(None, reserved_bytes, 0, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, -1, 0)
    pages, base = _Pages(reserved, reserved_bytes), _round_up(reserved, HUGE_PAGE_BYTES)
    _check(_libc.mprotect(base, used, mmap.PROT_READ | mmap.PROT_WRITE), f"getting {used} bytes of memory")
    _libc.madvise(base, used, mmap.MADV_HUGEPAGE)  # a wish, as above
    _populate(base, used, writable=True)
    return pages.array(base, cells, dtype, writable=True)


def map_reserved(cells: int, dtype: npt.DTypeLike) -> np.ndarray:
    """[cells] zeros of which memory is taken page by page where they are written, and by nothing else.

    There may be many times more of them than there is memory.  Huge pages are asked for where they fill some.  Raises
    `OSError` where addresses are limited.
    """
    dtype = np.dtype(dtype)
    used = _round_up(max(1, cells * dtype.itemsize), mmap.PAGESIZE)
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _MAP_NORESERVE
    base = _mmap(None, used, mmap.PROT_READ | mmap.PROT_WRITE, flags, -1, 0)
    if used >= 2 * HUGE_PAGE_BYTES:
        _libc.madvise(base, used, mmap.MADV_HUGEPAGE)  # a wish, as above
    return _Pages(base, used).array(base, cells, dtype, writable=True)


def give_back(array: np.ndarray) -> None:
    """Set contiguous cells of `map_reserved` to zero in place, and give the system the pages that are theirs alone."""
    array[...] = 0
    first = _round_up(array.ctypes.data, mmap.PAGESIZE)
    length = (array.ctypes.data + array.nbytes) // mmap.PAGESIZE * mmap.PAGESIZE - first
    if length > 0:
        _check(_libc.madvise(first, length, mmap.MADV_DONTNEED), "giving memory back")


def populate(array: np.ndarray) -> None:
    """Bring the pages of an array of `map_reserved` into memory, to be written; `OSError` where there is none left."""
    if array.nbytes:
        _populate(array.ctypes.data, _round_up(array.nbytes, mmap.PAGESIZE), writable=True)


def _mmap(address: int | None, length: int, protection: int, flags: int, descriptor: int, offset: int) -> int:
    result = _libc.mmap(address, length, protection, flags, descriptor, offset)
    if result == _MAP_FAILED:
        number = ctypes.get_errno()
        raise OSError(number, f"mapping {length} bytes of memory failed: {os.strerror(number)}")
    return int(result)


def _check(result: int, what: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what} failed: {os.strerror(number)}")


def _populate(address: int, length: int, writable: bool) -> None:
    advice = _MADV_POPULATE_WRITE if writable else _MADV_POPULATE_READ
    if _libc.madvise(address, length, advice) == 0:
        return
    if ctypes.get_errno() != errno.EINVAL:
        _check(-1, f"populating {length} bytes of the tables")
    # Kernels before 5.14.  Reading one byte a page suffices in shared memory and, unlike writing it back, cannot undo
    # the update of a worker that is already running.
    touched = (ctypes.c_ubyte * length).from_address(address)
    np.asarray(touched)[:: mmap.PAGESIZE].sum()


class ControlBlock:
    """A few int64 cells shared between processes that map the same file.

    Attributes:
        path:  the file; give it to other processes for `map_cells`
        cells: int64 array of the given shape; one aligned cell is read and written whole, nothing else is promised
    """

    def __init__(self, path: Path, mapping: Mapping, anonymous: int | None = None) -> None:
        self.path = path
        self._mapping = mapping
        self.cells = mapping.view("cells")
        self._let_go = weakref.finalize(self, os.close, anonymous) if anonymous is not None else None

    def close(self) -> None:
        """Let go of the memory, as `Mapping.close`; a file stays for others, but what is anonymous is gone."""
        del self.cells
        self._mapping.close()
        if self._let_go is not None:
            self._let_go()


def create_cells(path: Path, shape: Sequence[int]) -> ControlBlock:
    """Create a file of int64 cells, all 0, and map it.  Put it beside the live tables: it goes when they go.

    Where there is no room, as in `/dev/shm` of a container, the memory is anonymous and the file a link to it.

    Raises:
        FileExistsError: the file is already there.
        ValueError: the shape has a length below 1.
    """
    region, anonymous = _cells_region(path, shape), None
    try:
        _allocate(path, region.length_bytes)
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        anonymous = os.memfd_create(f"mccfr-{Path(path).name}")
        os.posix_fallocate(anonymous, 0, region.length_bytes)
        Path(path).symlink_to(f"/proc/{os.getpid()}/fd/{anonymous}")
    return ControlBlock(Path(path), map_regions([region], writable=True, populate=True), anonymous)


def _allocate(path: Path, length: int) -> None:
    """Make a file of zeros; `FileExistsError`, or an `OSError` that names it where there is no room, and it is gone."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
    try:
        os.posix_fallocate(descriptor, 0, length)
    except OSError as error:
        with contextlib.suppress(OSError):
            Path(path).unlink()
        advice = f"no room for {length:,} bytes in {Path(path).parent}: free some, or name another tables.live_dir"
        raise OSError(error.errno, f"{advice} ({error.strerror})") from None
    finally:
        os.close(descriptor)


def create_regions(path: Path, specs: Iterable[ArraySpec]) -> tuple[Region, ...]:
    """Create a file of zeros with room for arrays, each from a page on, in their order; where `create_cells` is used.

    Raises:
        FileExistsError: the file is already there.
        OSError: there is no room.
    """
    regions, end = [], 0
    for spec in specs:
        regions.append(Region(spec.name, str(path), end, spec.nbytes, spec.shape, spec.dtype))
        end += _round_up(spec.nbytes, mmap.PAGESIZE)
    _allocate(path, end)
    return tuple(regions)


def map_cells(path: Path, shape: Sequence[int]) -> ControlBlock:
    """Map the cells that `create_cells` made in another process, for reading and writing.

    Raises:
        OSError: the file is not there or has another size than the shape asks for.
    """
    region = _cells_region(path, shape)
    size = Path(path).stat().st_size
    if size != region.length_bytes:
        raise OSError(
            errno.EINVAL, f"{path} has {size} bytes; cells of shape {tuple(shape)} take {region.length_bytes}"
        )
    return ControlBlock(Path(path), map_regions([region], writable=True, populate=True))


def _cells_region(path: Path, shape: Sequence[int]) -> Region:
    if not shape or min(shape) < 1:
        raise ValueError(f"cells need at least one axis and lengths >= 1; given shape {tuple(shape)}")
    return Region("cells", str(path), 0, 8 * math.prod(shape), tuple(shape), "int64")
