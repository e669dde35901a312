"""Copies of tables in memory, made at the speed of the memory bus while their writers rest.

The memory is asked for in huge pages and can be populated beforehand, while the writers still work, so that nothing
but the copying itself holds them up.  Each array has memory of its own: dropping it gives its memory back.
"""

import contextlib
import mmap
from collections.abc import Mapping

import numpy as np

from storage.mapping import HUGE_PAGE_BYTES
from storage.threads import ordered

_PIECE_BYTES = 16 << 20
_MADV_POPULATE_WRITE = 23  # Linux 5.14 and later


class Snapshot:
    """Room for copies of arrays.

    Attributes:
        arrays: {name: copy}; what they hold is undefined until `take`.  Remove one to free its memory.
    """

    def __init__(self, arrays: Mapping[str, np.ndarray]) -> None:
        self._blocks: dict[str, mmap.mmap] = {}
        self.arrays: dict[str, np.ndarray] = {}
        for name, array in arrays.items():
            block = mmap.mmap(-1, array.nbytes + HUGE_PAGE_BYTES, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
            with contextlib.suppress(OSError):  # a wish: kernels without huge pages answer EINVAL
                block.madvise(mmap.MADV_HUGEPAGE)
            address = np.frombuffer(block, np.uint8).ctypes.data
            start = -address % HUGE_PAGE_BYTES
            flat = np.frombuffer(block, array.dtype, array.size, start)
            self._blocks[name], self.arrays[name] = block, flat.reshape(array.shape)

    def populate(self) -> None:
        """Bring the pages into memory now; where the system cannot, `take` will."""
        for block in self._blocks.values():
            for start in range(0, len(block), _PIECE_BYTES):
                try:
                    block.madvise(_MADV_POPULATE_WRITE, start, min(_PIECE_BYTES, len(block) - start))
                except OSError:
                    return

    def take(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Copy the arrays, of the names and shapes given before; nothing may write them meanwhile."""
        pieces = []
        for name, copy in self.arrays.items():
            source, target = arrays[name].reshape(-1), copy.reshape(-1)
            step = max(1, _PIECE_BYTES // source.itemsize)
            pieces += [(target[at : at + step], source[at : at + step]) for at in range(0, source.size, step)]
        size_bytes = sum(copy.nbytes for copy in self.arrays.values())
        self._blocks.clear()  # the arrays hold what they need
        for _ in ordered(lambda piece: np.copyto(*piece), pieces, size_bytes=size_bytes):
            pass
