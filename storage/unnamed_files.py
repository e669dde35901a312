"""Creates large arrays in temporary files without a name, which are freed with the array."""

import mmap
import os
import tempfile

import numpy as np
import numpy.typing as npt


def spilled(shape: tuple[int, ...], dtype: npt.DTypeLike) -> np.ndarray:
    """Return an array of zeros, of a shape and dtype, that is mapped from an unnamed temporary file.

    When memory is short, the system can write its pages to the file and free them.

    Raises `OSError` if the directory for temporary files (TMPDIR) has no room.
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
