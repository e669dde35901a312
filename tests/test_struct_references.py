"""Named tuples of arrays reach kernels by reference, and branches on None are pruned by type.

Shows:

* Kernels read nested tuples by reference and write their arrays in place
  (test_a_kernel_reads_and_writes_through_a_reference)
* Code behind a None field is not typed, with any version of numba (test_code_behind_none_is_not_compiled)
"""

import os
import pickle
import subprocess
import sys
from typing import Any, NamedTuple

import numpy as np

from abstraction.kernels.jit import by_reference, njit
from abstraction.kernels.struct_references import kernel_argument


class Inner(NamedTuple):
    rows: tuple[Any, ...]
    scale: float


@by_reference
class Outer(NamedTuple):
    matrix: Any
    inner: Inner
    count: int
    flag: bool
    option: Any = None


@njit
def _total(outer, at):
    total = outer.inner.scale * outer.inner.rows[at][outer.count]
    for i in range(outer.matrix.shape[0]):
        for j in range(outer.matrix.shape[1]):
            total += outer.matrix[i, j] * (i + 1)
    if outer.option is not None:
        total += outer.option.shape[0]
    outer.inner.rows[at][0] = total if outer.flag else -1.0
    return total


def outer(matrix, **more):
    return Outer(matrix, Inner((np.arange(3.0), np.arange(3.0) + 10), 2.5), 2, flag=True, **more)


def test_a_kernel_reads_and_writes_through_a_reference():
    square = np.arange(6.0).reshape(2, 3)
    for matrix in (square, np.asfortranarray(square), np.arange(12.0).reshape(2, 6)[:, ::2], square[::-1, ::-1]):
        for option in (None, np.zeros(7)):
            given = outer(matrix, option=option)
            expected = 2.5 * 12 + (matrix * [[1], [2]]).sum() + (0 if option is None else 7)
            assert _total(given, 1) == expected
            assert given.inner.rows[1][0] == expected and given.inner.rows[0][0] == 0


def test_a_copy_or_pickle_has_its_own_struct():
    given = outer(np.ones((2, 2)))
    address = kernel_argument(given).address
    assert kernel_argument(given).address == address
    other = given._replace(matrix=np.zeros((2, 2)))
    assert kernel_argument(other).address != address and _total(other, 0) == 5
    assert "_struct" not in vars(pickle.loads(pickle.dumps(given)))


class Holder(NamedTuple):
    matrix: Any
    option: Any = None


def test_a_tuple_with_a_reference_may_follow_one_without():
    """A type of tuple counts as free of references only if none of its fields could get one."""
    plain, without = Inner(np.ones(2), 2.5), Holder(np.ones(2))
    assert kernel_argument(plain) is plain and kernel_argument(without) is without
    given = Holder(np.ones(2), outer(np.ones((2, 2))))
    assert kernel_argument(given).option is kernel_argument(given.option)


PROGRAM = """
from abstraction.kernels import jit
jit.KNOWN_VERSIONS = ()
import numpy as np
from test_struct_references import _total, outer
print(_total(outer(np.ones((2, 2))), 1))
"""


def test_code_behind_none_is_not_compiled(tmp_path):
    """None has no `shape`, so typing that branch would fail. The numba version is made unknown."""
    place = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path), "PYTHONPATH": os.pathsep.join(sys.path)}
    ran = subprocess.run([sys.executable, "-c", PROGRAM], env=place, check=False, capture_output=True, text=True)
    assert (ran.stdout, ran.returncode) == ("36.0\n", 0), ran.stderr
