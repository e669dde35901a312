"""Sets the number of threads of numpy's matrix products, which changes their last bits."""

import ctypes
from functools import cache
from pathlib import Path

import numpy as np

_SET = ("scipy_openblas_set_num_threads64_", "openblas_set_num_threads64_", "openblas_set_num_threads")


@cache
def one_thread() -> bool:
    """Make this process compute matrix products in one thread; return False for an unknown library."""
    root = Path(np.__file__).parent
    for path in sorted([*root.parent.glob("numpy.libs/*openblas*"), *root.glob(".dylibs/*openblas*")]):
        library = ctypes.CDLL(str(path))
        for name in _SET:
            if hasattr(library, name):
                getattr(library, name)(1)
                return True
    return False
