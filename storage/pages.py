"""Huge pages: memory of this process's own that asks for them, and what the system gives.

A look-up in a table far larger than the caches first has to find where its page lies; pages of 2 MiB instead of 4 KiB
are found without another look into memory.  Linux gives them to a process's own memory on request where
`transparent_hugepage/enabled` is `madvise`, the usual setting, and to shared memory by a setting of its own,
`shmem_enabled`, which usually is `never`: then the request is refused without a word.  (Documentation of the kernel,
"Transparent Hugepage Support".)
"""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from storage.mapping import map_anonymous

_SMAPS = Path("/proc/self/smaps")
SETTINGS = Path("/sys/kernel/mm/transparent_hugepage")
_ON_REQUEST = {"own": ("always", "madvise"), "shared": ("always", "within_size", "advise", "force")}
_HUGE_KINDS = ("AnonHugePages:", "ShmemPmdMapped:", "FilePmdMapped:")


class PageSettings(NamedTuple):
    """What the system says of huge pages, in its own words; None where it says nothing.

    own     for memory of a process's own
    shared  for shared memory
    """

    own: str | None
    shared: str | None

    def given(self, *, shared: bool) -> bool:
        """Whether a request for huge pages is answered."""
        return (self.shared in _ON_REQUEST["shared"]) if shared else (self.own in _ON_REQUEST["own"])


def page_settings() -> PageSettings:
    """The system's settings."""
    return PageSettings(_chosen("enabled"), _chosen("shmem_enabled"))


def _chosen(name: str) -> str | None:
    """The one in brackets of the words that a file of settings lists."""
    try:
        found = re.search(r"\[(\w+)\]", (SETTINGS / name).read_text())
    except OSError:
        return None
    return found[1] if found else None


def huge_zeros(cells: int, dtype: npt.DTypeLike) -> npt.NDArray[np.generic]:
    """[cells] zeros in memory of this process's own, all of it there at once, in huge pages where the system gives any.

    Raises `OSError` where there is too little memory.
    """
    return map_anonymous(cells, np.dtype(dtype))


def huge_bytes(arrays: Iterable[npt.NDArray[np.generic]]) -> int:
    """Bytes that lie in huge pages, of this process's mappings that hold the arrays: 0 where the system does not say.

    Mappings are counted whole, so that what lies beside the arrays in the same ones counts too.
    """
    spans = [(array.__array_interface__["data"][0], array.nbytes) for array in arrays if array.nbytes]
    total, counts = 0, False
    try:
        lines = _SMAPS.read_text().splitlines()
    except OSError:
        return 0
    for line in lines:
        head = line.split(maxsplit=1)[0]
        if "-" in head and not head.endswith(":"):
            first, end = (int(part, 16) for part in head.split("-"))
            counts = any(start < end and first < start + length for start, length in spans)
        elif counts and head in _HUGE_KINDS:
            total += 1024 * int(line.split()[1])
    return total
