"""Maps arrays in files into memory: many arrays of one dtype as one contiguous flat array.

The compiled CFR code takes one flat array per dtype, and the offset of each table in it. The mapping reserves an
address range and then maps the pages of each array's file at their offset in it.
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
    """Place of an array's raw row-major cells in a file that processes map into memory.

    Fields:
        name:         the array's name
        path:         absolute path of the file
        offset_bytes: offset of the first cell in the file, a multiple of the page size
        length_bytes: size of the cells in bytes
        shape:        lengths of the axes
        dtype:        NumPy's name of the dtype, such as "float32"
    """

    name: str
    path: str
    offset_bytes: int
    length_bytes: int
    shape: tuple[int, ...]
    dtype: str


def regions_to_json(regions: Iterable[Region]) -> list[dict[str, Any]]:
    """Return regions (places of arrays in files) as lists and dictionaries for `json.dumps`."""
    return msgspec.json.decode(msgspec.json.encode(list(regions)))


def regions_from_json(data: Any) -> tuple[Region, ...]:
    """Return the regions (places of arrays in files) that `regions_to_json` turned into plain data.

    Raises:
        ValueError: a field is missing or of the wrong type.
    """
    return tuple(msgspec.convert(data, list[Region]))


class _Pages:
    """Owner of a mapped address range; the range is unmapped once no NumPy array over it is left."""

    def __init__(self, reserved: int, reserved_bytes: int) -> None:
        self.unmap = weakref.finalize(self, _libc.munmap, reserved, reserved_bytes)
        self.unmap.atexit = False  # arrays may still be in use at exit; the kernel unmaps

    def array(self, start: int, length: int, dtype: np.dtype[Any], writable: bool) -> np.ndarray:
        """Return an array [length] of `dtype` at the address `start`, with this object as its base."""
        self.__array_interface__ = {
            "version": 3,
            "data": (start, not writable),
            "shape": (length,),
            "typestr": dtype.str,
        }
        return np.asarray(self)


class Mapping:
    """Arrays of one dtype from files, mapped into one contiguous range of memory by `map_regions`.

    Attributes:
        flat:    [M] of the regions' dtype, from the first cell of the first region to the last cell of the last. Gaps
                 between regions are private zero memory or the end of a file's last page: readable, not to be written
        offsets: {name: element offset of the array's first cell in `flat`}
    """

    def __init__(self, flat: np.ndarray, offsets: dict[str, int], shapes: dict[str, tuple[int, ...]]) -> None:
        self._flat: np.ndarray | None = flat
        self._shapes = shapes
        self.offsets = offsets

    @property
    def flat(self) -> np.ndarray:
        """The whole range as a one-dimensional array; raises `ValueError` after `close`."""
        if self._flat is None:
            raise ValueError("this mapping is closed")
        return self._flat

    def view(self, name: str) -> np.ndarray:
        """Return the array `name` in its shape, sharing memory with `flat`; `KeyError` for an unknown name."""
        shape, start = self._shapes[name], self.offsets[name]
        return self.flat[start : start + math.prod(shape)].reshape(shape)

    def close(self) -> None:
        """Drop this object's reference to the mapped memory.

        The pages are unmapped when the last array over them (`flat`, views, slices) is dropped.
        """
        self._flat = None


def map_regions(regions: Iterable[Region], *, writable: bool, populate: bool) -> Mapping:
    """Map arrays in files, all of one dtype, in the given order into one contiguous address range.

    An array of 2 MiB or more begins at a multiple of 2 MiB if its file offset is one too, others at a page. Huge pages
    are requested. File sizes are checked first; a file that is too short raises and is never extended.

    Args:
        regions:  places of the arrays in files, at least one; all of one dtype, with unique names
        writable: map for reading and writing, shared with all processes that map the file; otherwise read-only
        populate: fill the page table now, so that training has no page faults

    Raises:
        ValueError: no regions, several dtypes, a repeated name, an offset inside a page, or a length unlike the shape.
        FileNotFoundError: a file does not exist.
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
    """Open the file of a region (the place of an array in it); return the file descriptor.

    Raises `OSError` if the file is too short.
    """
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
    """Choose the offset of each array's pages in one address range; return (offsets, size of the range).

    Both are in bytes.

    regions  places of the arrays in files
    """
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
        if position > end:  # the gap after the previous region: zeros
            _check(_libc.mprotect(base + end, position - end, protection), "mprotect")
        length = _round_up(region.length_bytes, mmap.PAGESIZE)
        _mmap(base + position, length, protection, mmap.MAP_SHARED | _MAP_FIXED, descriptor, region.offset_bytes)
        if length >= HUGE_PAGE_BYTES:
            # Ignored if it fails: kernels without huge pages for shared memory return EINVAL.
            _libc.madvise(base + position, length, mmap.MADV_HUGEPAGE)
        if populate:
            _populate(base + position, length, writable)
        if populate and writable and length >= HUGE_PAGE_BYTES:
            # Linux 6.1 and later: moves the pages into huge pages even if settings forbid the advice above.
            _libc.madvise(base + position, length, _MADV_COLLAPSE)
        end = position + length
    last = positions[-1] + regions[-1].length_bytes
    flat = pages.array(base, last // dtype.itemsize, dtype, writable)
    offsets = {region.name: at // dtype.itemsize for region, at in zip(regions, positions, strict=True)}
    return Mapping(flat, offsets, {region.name: tuple(region.shape) for region in regions})


def map_anonymous(cells: int, dtype: np.dtype[Any]) -> np.ndarray:
    """Return an array [cells] of zeros in private memory of this process, with all pages allocated now.

    Raises `OSError` if there is too little memory.
    """
    mapped = map_reserved(cells, dtype)
    populate(mapped)
    return mapped


def map_reserved(cells: int, dtype: npt.DTypeLike) -> np.ndarray:
    """Return an array [cells] of zeros in private memory, allocated page by page on the first write.

    The array may be many times larger than memory. It begins at a multiple of 2 MiB, and huge pages are requested for
    large ones. The memory is freed with the last array over it. Raises `OSError` if address space is limited.
    """
    dtype = np.dtype(dtype)
    used = _round_up(max(1, cells * dtype.itemsize), mmap.PAGESIZE)
    reserved_bytes = used + HUGE_PAGE_BYTES  # room to begin at a multiple of 2 MiB
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _MAP_NORESERVE
    reserved = _mmap(None, reserved_bytes, mmap.PROT_READ | mmap.PROT_WRITE, flags, -1, 0)
    base = _round_up(reserved, HUGE_PAGE_BYTES)
    if used >= 2 * HUGE_PAGE_BYTES:
        _libc.madvise(base, used, mmap.MADV_HUGEPAGE)  # may fail, as above
    return _Pages(reserved, reserved_bytes).array(base, cells, dtype, writable=True)


def give_back(array: np.ndarray) -> None:
    """Set contiguous cells of a `map_reserved` array to zero, and free the pages that they fill.

    The next write to a freed page allocates it again.
    """
    array[...] = 0
    first = _round_up(array.ctypes.data, mmap.PAGESIZE)
    length = (array.ctypes.data + array.nbytes) // mmap.PAGESIZE * mmap.PAGESIZE - first
    if length > 0:
        _check(_libc.madvise(first, length, mmap.MADV_DONTNEED), "giving memory back")


def populate(array: np.ndarray) -> None:
    """Allocate the pages of a `map_reserved` array for writing; raises `OSError` if memory is exhausted."""
    if array.nbytes:
        _populate(array.ctypes.data, _round_up(array.nbytes, mmap.PAGESIZE), writable=True)


def _mmap(address: int | None, length: int, protection: int, flags: int, descriptor: int, offset: int) -> int:
    result = _libc.mmap(address, length, protection, flags, descriptor, offset)
    if result == _MAP_FAILED:
        number = ctypes.get_errno()
        raise OSError(number, f"mapping {length} bytes of memory failed: {os.strerror(number)}")
    return int(result)


def _check(result: int, operation: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{operation} failed: {os.strerror(number)}")


def _populate(address: int, length: int, writable: bool) -> None:
    advice = _MADV_POPULATE_WRITE if writable else _MADV_POPULATE_READ
    if _libc.madvise(address, length, advice) == 0:
        return
    if ctypes.get_errno() != errno.EINVAL:
        _check(-1, f"populating {length} bytes of the tables")
    # Kernels before 5.14. Reading a byte per page suffices in shared memory. Writing it back could undo the update of a
    # running worker.
    touched = (ctypes.c_ubyte * length).from_address(address)
    np.asarray(touched)[:: mmap.PAGESIZE].sum()


class ControlBlock:
    """Some int64 cells shared between processes, such as the commands and counters of a run's workers.

    One process calls `create_cells`, the others call `map_cells` with the same path and shape.

    Attributes:
        path:  the file, for `map_cells` in other processes
        cells: int64 array of this shape. One cell is read or written atomically, several together are not
    """

    def __init__(self, path: Path, mapping: Mapping, anonymous: int | None = None) -> None:
        self.path = path
        self._mapping = mapping
        self.cells = mapping.view("cells")
        self._let_go = weakref.finalize(self, os.close, anonymous) if anonymous is not None else None

    def close(self) -> None:
        """Drop the reference to the cells, which are unmapped with the last array over them.

        A file stays for other processes; anonymous memory is freed.
        """
        del self.cells
        self._mapping.close()
        if self._let_go is not None:
            self._let_go()


def create_cells(path: Path, shape: Sequence[int]) -> ControlBlock:
    """Create a file of int64 cells, all 0, and map it into memory to share it with other processes.

    path   the file; should be in the directory of the tables on which the run trains, which is removed with them
    shape  shape of the cells

    If the file system has no room, as in a container's `/dev/shm`, the memory is anonymous and the file a link to it.

    Raises:
        FileExistsError: the file already exists.
        ValueError: the shape has a length below 1.
    """
    region, anonymous = _cells_region(path, shape), None
    try:
        _allocate(path, region.length_bytes)
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        anonymous = anonymous_file(path, region.length_bytes)
    return ControlBlock(Path(path), map_regions([region], writable=True, populate=True), anonymous)


def anonymous_file(path: Path, length: int) -> int:
    """Allocate `length` bytes of anonymous shared memory, link `path` to it, and return its descriptor.

    The link works while this process has the descriptor open. Raises `OSError` if there is too little memory.
    """
    descriptor = os.memfd_create(f"mccfr-{path.name}")
    try:
        allocate(descriptor, 0, length)
        path.symlink_to(f"/proc/{os.getpid()}/fd/{descriptor}")
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def allocate(descriptor: int, offset: int, length: int) -> None:
    """Allocate a range of bytes of an open file in memory or on disk, in huge pages where possible.

    offset, length  first byte and size of the range in bytes; a file that ends before the range's end is extended

    Raises `OSError` if there is no room.
    """
    first, end = _round_up(offset, HUGE_PAGE_BYTES), (offset + length) // HUGE_PAGE_BYTES * HUGE_PAGE_BYTES
    if end > first:
        os.ftruncate(descriptor, max(os.fstat(descriptor).st_size, offset + length))
        _allocate_huge_pages(descriptor, first, end - first)
    os.posix_fallocate(descriptor, offset, length)


def _allocate_huge_pages(descriptor: int, offset: int, length: int) -> None:
    """Allocate a range of whole huge pages of a file up to the first that the system refuses.

    Only the first of the 512 small pages of a huge page is filled before the system merges them. To fill all of them
    takes 3 to 15 times as long.

    descriptor      the open file
    offset, length  the range in bytes, multiples of 2 MiB
    """
    reserved_bytes = length + HUGE_PAGE_BYTES
    reserved = _mmap(None, reserved_bytes, 0, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _MAP_NORESERVE, -1, 0)
    try:
        base = _round_up(reserved, HUGE_PAGE_BYTES)
        _mmap(base, length, mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_SHARED | _MAP_FIXED, descriptor, offset)
        for page in range(base, base + length, HUGE_PAGE_BYTES):
            if _libc.madvise(page, mmap.PAGESIZE, _MADV_POPULATE_WRITE):
                break
            if _libc.madvise(page, HUGE_PAGE_BYTES, _MADV_COLLAPSE):
                break
    finally:
        _libc.munmap(reserved, reserved_bytes)


def _allocate(path: Path, length: int) -> None:
    """Create a file of `length` zero bytes, and allocate its space on the disk or in memory.

    Raises `FileExistsError` if it exists. Raises an `OSError` that names the folder if there is no room; the file is
    then removed.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
    try:
        allocate(descriptor, 0, length)
    except OSError as error:
        with contextlib.suppress(OSError):
            Path(path).unlink()
        advice = f"no room for {length:,} bytes in {Path(path).parent}: free some, or name another tables.live_dir"
        raise OSError(error.errno, f"{advice} ({error.strerror})") from None
    finally:
        os.close(descriptor)


def create_regions(path: Path, specs: Iterable[ArraySpec]) -> tuple[Region, ...]:
    """Create one file of zeros for several arrays; return the place of each array in it.

    specs  schemas of the arrays, in their order in the file; each array begins at a page

    Raises:
        FileExistsError: the file already exists.
        OSError: the disk is full.
    """
    regions, end = [], 0
    for spec in specs:
        regions.append(Region(spec.name, str(path), end, spec.nbytes, spec.shape, spec.dtype))
        end += _round_up(spec.nbytes, mmap.PAGESIZE)
    _allocate(path, end)
    return tuple(regions)


def map_cells(path: Path, shape: Sequence[int]) -> ControlBlock:
    """Map int64 cells that `create_cells` has created in another process, for reading and writing.

    path, shape  the file, and the shape of the cells

    Raises:
        OSError: the file does not exist or has another size than the shape requires.
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
