"""Large arrays in unnamed temporary files, freed when the last mapping is closed."""

import mmap
import os
import tempfile

import numpy as np
import numpy.typing as npt


def spilled(shape: tuple[int, ...], dtype: npt.DTypeLike) -> np.ndarray:
    """Return an array of zeros, mapped from an unnamed file in the directory for temporary files.

    The system can write its pages back to the file and drop them when memory is short.

    Raises `OSError` if that directory has no room.
    """
    length = int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize
    if length == 0:
        return np.zeros(shape, dtype)
    with tempfile.TemporaryFile(prefix="mccfr-") as file:
        try:
            os.posix_fallocate(file.fileno(), 0, length)
        except OSError as error:
            folder = tempfile.gettempdir()
            raise OSError(
                error.errno, f"{folder} has no room for {length:,} bytes: set TMPDIR to a directory that has ({error})"
            ) from None
        return np.frombuffer(mmap.mmap(file.fileno(), length), dtype).reshape(shape)
