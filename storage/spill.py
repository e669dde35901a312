"""Large arrays outside of this process's own memory: in a temporary file without a name, gone with its last user."""

import mmap
import os
import tempfile

import numpy as np
import numpy.typing as npt


def spilled(shape: tuple[int, ...], dtype: npt.DTypeLike) -> np.ndarray:
    """An array of zeros in a file of the directory for temporary files (`TMPDIR`), which only its mapping keeps.

    Its pages belong to the file: the system writes them back and drops them when memory is short.

    Raises `OSError` where that directory has no room for it.
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
