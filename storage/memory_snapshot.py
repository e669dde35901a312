"""Copies of tables in memory, made at memory bandwidth while the writers are paused.

The memory uses huge pages and can be populated beforehand, while the writers still work. The pause then lasts only as
long as the copying. Each copy has its own memory, which is freed with the last reference to it.
"""

from collections.abc import Mapping

import numpy as np

from storage.mapping import map_reserved, populate
from storage.threads import ordered

_PIECE_BYTES = 16 << 20


class Snapshot:
    """Copies of a run's tables at one moment, to save and evaluate while training goes on.

    It is created with {name: table}, of which only shapes and dtypes are used; `take` copies the cells.

    Attributes:
        arrays: {name: copy}; undefined until `take`. Delete an entry to free its memory.
    """

    def __init__(self, arrays: Mapping[str, np.ndarray]) -> None:
        self.arrays = {
            name: map_reserved(array.size, array.dtype).reshape(array.shape) for name, array in arrays.items()
        }

    def populate(self) -> None:
        """Allocate the memory of the copies now; if the system refuses some, `take` allocates the rest."""
        for array in self.arrays.values():
            try:
                populate(array)
            except OSError:
                return

    def take(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Copy `arrays`, which must not change meanwhile, into the memory of the copies.

        arrays  {name: array} with the names and shapes of those given on creation
        """
        pieces = []
        for name, copy in self.arrays.items():
            source, target = arrays[name].reshape(-1), copy.reshape(-1)
            step = max(1, _PIECE_BYTES // source.itemsize)
            pieces += [(target[at : at + step], source[at : at + step]) for at in range(0, source.size, step)]
        size_bytes = sum(copy.nbytes for copy in self.arrays.values())
        for _ in ordered(lambda piece: np.copyto(*piece), pieces, size_bytes=size_bytes):
            pass
