"""Saves and restores the state of a running clustering on disk."""

import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from abstraction.clustering.kmeans import Arrays, StateSaver
from storage import durable
from storage.checkpoint import newest_valid, next_number
from storage.checkpoint_writer import commit, sweep
from storage.schema import ArraySpec

SECONDS = 30.0
"""Interval between two saved states.  A state of 4 million points takes about a second to write."""


class FileStateSaver(StateSaver):
    """Saves the newest state of a clustering in a directory, so that a later build resumes it.

    root      the directory
    identity  JSON that determines the clustering: settings, and the buckets of other streets that it needs.  A saved
              state with another identity is ignored
    seconds   least interval between two saved states
    """

    def __init__(self, root: Path, identity: dict[str, Any], seconds: float = SECONDS) -> None:
        self._root, self._identity, self._seconds = root, identity, seconds
        self._last = time.monotonic()
        self._phase, self._arrays = self._read()

    def _read(self) -> tuple[str, Arrays]:
        sweep(self._root)
        checkpoint, _ = newest_valid(self._root)
        if checkpoint is None or checkpoint.identity != self._identity:
            return "", {}
        return str(checkpoint.state.get("phase")), {spec.name: checkpoint.read(spec.name) for spec in checkpoint.specs}

    def resume(self, phase: str) -> Mapping[str, NDArray[Any]] | None:
        """Return {name: array} of the state that an interrupted build saved, if it was in `phase`.

        Else return None.  A phase is a part of the algorithm: "lloyd", or "groups", "buckets" and "flat" of a
        clustering in two levels.
        """
        return self._arrays if self._phase == phase else None

    def save(self, phase: str, arrays: Callable[[], Arrays]) -> None:
        """Save the arrays of a phase if enough seconds have passed; only then call `arrays`.

        The seconds count from the last save, or from the creation of this object.
        """
        if time.monotonic() - self._last < self._seconds:
            return
        cells = {name: np.ascontiguousarray(array) for name, array in arrays().items()}
        specs = [
            ArraySpec(name, array.shape, array.dtype.name, tuple(f"axis{i}" for i in range(array.ndim)))
            for name, array in cells.items()
        ]
        number = next_number(self._root)
        commit(self._root, number, specs, cells, {"phase": phase}, self._identity, format="zarr", keep=1)
        self._last = time.monotonic()

    def discard(self) -> None:
        """Remove all saved states; errors of the file system are ignored."""
        self._phase, self._arrays = "", {}
        durable.discard(self._root)
        with suppress(OSError):
            durable.fsync_dir(self._root.parent)
