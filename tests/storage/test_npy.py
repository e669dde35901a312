"""npy files: equal to numpy's, also mapped; damaged and hostile headers."""

import random

import numpy as np
import pytest
from refusals import refusals

from storage import durable
from storage.npy import npy_pieces, read_npy

ARRAYS = [
    np.arange(12, dtype=np.float64).reshape(3, 4),
    np.arange(5, dtype=np.int8),
    np.zeros((3, 0), np.uint16),
    np.arange(24, dtype=np.int16).reshape(2, 3, 4),
]


@pytest.mark.parametrize("mapped", [False, True])
@pytest.mark.parametrize("array", ARRAYS, ids=lambda array: str(array.shape))
def test_arrays_read_back_as_numpy_reads_them(tmp_path, array, mapped):
    path = tmp_path / "a.npy"
    durable.write_file(path, npy_pieces(array))
    found = read_npy(path, mapped=mapped)
    assert found.dtype == array.dtype
    assert np.array_equal(found, array)
    assert np.array_equal(np.load(path), array)
    assert type(found) is np.ndarray
    if not mapped:
        assert found.flags.writeable


def test_any_damage_of_a_header_is_one_error_that_names_the_file(tmp_path):
    path, rng = tmp_path / "a.npy", random.Random(3)
    durable.write_file(path, npy_pieces(ARRAYS[0]))
    data = path.read_bytes()
    head, cells = data[:128], data[128:]
    same = 0
    for _ in range(1500):
        bit = rng.randrange(8 * len(head))
        changed = bytearray(head)
        changed[bit // 8] ^= 1 << bit % 8
        path.write_bytes(bytes(changed) + cells)
        try:
            read = read_npy(path)
        except OSError as error:
            assert str(path) in str(error)
        else:
            same += 1  # such as '<f8' read as '<i8', or (3, 4) as (2, 6): only a checksum detects it
            assert read.nbytes == ARRAYS[0].nbytes
    assert same < 100


def read_header(header, tmp_path):
    path = tmp_path / "a.npy"
    text = header.encode()
    text += b" " * (-(10 + len(text) + 1) % 64) + b"\n"
    path.write_bytes(b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + b"\0" * 96)
    read_npy(path)


HEADERS = (
    "{'descr': '<f8', 'fortran_order': False, 'shape': (100000000, 116000), }",  # 93 GB in a file of 200 bytes
    "{'descr': '|O', 'fortran_order': False, 'shape': (3,), }",
    "{'descr': '<f8', 'fortran_order': True, 'shape': (3, 4), }",
    "{'descr': '>f8', 'fortran_order': False, 'shape': (3, 4), }",
    "{'descr': '<f8', 'fortran_order': False, 'shape': (-3, -4), }",
    "{'descr': '<f8', 'fortran_order': False, 'shape': (3, 4), 'more': " + "[" * 20000,
    "__import__('os')",
    "{'descr': '<f8', 'fortran_order': False, 'shape': (" + "1, " * 70 + "), }",
    "(((",
)
test_headers_that_no_export_writes = refusals(*(("a.npy has", read_header, text) for text in HEADERS), error=OSError)
