"""Huge pages of shared memory: whether the system grants them, and how many are in use.

Random access to tables far larger than the caches misses the TLB; pages of 2 MiB avoid most of its page-table reads.
Linux grants them to shared memory by the setting `shmem_enabled`, which is usually `never`. Since Linux 6.1,
MADV_COLLAPSE moves memory into huge pages unless that setting is `deny`. A refused request gives no error. See the
kernel documentation, "Transparent Hugepage Support", and madvise(2).
"""

import os
import re
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import numpy.typing as npt

from storage.mapping import HUGE_PAGE_BYTES, Region, map_regions

_SMAPS = Path("/proc/self/smaps")
_HEAD = re.compile(r"^([0-9a-f]+)-([0-9a-f]+) ", re.MULTILINE)
_HUGE = re.compile(r"^(?:AnonHugePages|ShmemPmdMapped|FilePmdMapped): +(\d+) kB", re.MULTILINE)


def gives_huge_pages() -> bool:
    """Return whether this system gives huge pages to shared memory; finds out by requesting one."""
    memory = os.memfd_create("mccfr-page")
    try:
        os.posix_fallocate(memory, 0, HUGE_PAGE_BYTES)
        page = Region("page", f"/proc/self/fd/{memory}", 0, HUGE_PAGE_BYTES, (HUGE_PAGE_BYTES,), "uint8")
        return huge_bytes([map_regions([page], writable=True, populate=True).flat]) > 0
    finally:
        os.close(memory)


def huge_bytes(arrays: Iterable[npt.NDArray[np.generic]]) -> int:
    """Return how many bytes of the memory around some arrays are in huge pages; 0 if unknown.

    The memory mappings of this process that overlap the arrays count as a whole, also beyond the arrays.
    """
    spans = [(array.__array_interface__["data"][0], array.nbytes) for array in arrays if array.nbytes]
    try:
        text = _SMAPS.read_text()
    except OSError:
        return 0
    total, heads = 0, list(_HEAD.finditer(text))
    for head, stop in zip(heads, [*(head.start() for head in heads[1:]), len(text)], strict=True):
        first, end = int(head[1], 16), int(head[2], 16)
        if any(start < end and first < start + length for start, length in spans):
            total += sum(1024 * int(count[1]) for count in _HUGE.finditer(text, head.end(), stop))
    return total
