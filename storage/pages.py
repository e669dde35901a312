"""Huge pages of shared memory: whether the system gives any, and how many.

A look-up in a table far larger than the caches first has to find where its page lies; pages of 2 MiB instead of 4 KiB
are found without another look into memory.  Linux gives them to shared memory on request by a setting of its own,
`shmem_enabled`, which usually is `never`; since version 6.1 memory that is there is moved into huge pages on request
whatever that setting says, unless it is `deny` (MADV_COLLAPSE).  Where a request is refused nothing is said.
(Documentation of the kernel, "Transparent Hugepage Support"; madvise(2).)
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
    """Whether shared memory gets huge pages here and now: one is asked for."""
    memory = os.memfd_create("mccfr-page")
    try:
        os.posix_fallocate(memory, 0, HUGE_PAGE_BYTES)
        page = Region("page", f"/proc/self/fd/{memory}", 0, HUGE_PAGE_BYTES, (HUGE_PAGE_BYTES,), "uint8")
        return huge_bytes([map_regions([page], writable=True, populate=True).flat]) > 0
    finally:
        os.close(memory)


def huge_bytes(arrays: Iterable[npt.NDArray[np.generic]]) -> int:
    """Bytes that lie in huge pages, of this process's mappings that hold the arrays: 0 where the system does not say.

    Mappings are counted whole, so that what lies beside the arrays in the same ones counts too.
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
            total += sum(1024 * int(told[1]) for told in _HUGE.finditer(text, head.end(), stop))
    return total
