"""The programs of docs/policies.md for readers that have neither this package nor a reader of .npy files."""

import re

import numpy as np
import pytest
from places import ROOT

from storage.npy import npy_pieces


def documented(function):
    """What the block of docs/policies.md that defines a function defines."""
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs/policies.md").read_text(), re.DOTALL)
    names = {}
    source = next(block for block in blocks if f"def {function}(" in block)
    exec(source.partition("\nprint(")[0], names)
    return names[function]


@pytest.mark.parametrize("dtype", ["u1", "u2", "u4", "i1", "i2", "i4", "i8", "f4", "f8"])
def test_a_cell_is_read_with_nothing_but_bytes(tmp_path, dtype):
    cells = np.random.default_rng(1).integers(0, 256, (7, 24 // np.dtype(dtype).itemsize * 8), np.uint8)
    array = cells.view(dtype) if dtype[0] != "f" else (cells[:, :5] / 7).astype(dtype)
    (tmp_path / "x.npy").write_bytes(b"".join(npy_pieces(array)))
    cell = documented("cell")
    for row, column in np.ndindex(array.shape):
        assert cell(tmp_path / "x.npy", row, column) == array[row, column]
