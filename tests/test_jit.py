"""The door to numba: parts of kernels are no functions of Python's."""

import pytest

from abstraction.jit import njit, part_njit


@part_njit
def following(number):
    return number + 1


@njit
def after(number):
    return following(number)


def test_a_part_of_kernels_is_not_called_from_python():
    """numba would jump to where nothing is: before a kernel has compiled it, and after."""
    for _ in range(2):
        with pytest.raises(TypeError, match=r"test_jit.following is a part of kernels"):
            following(1)
        assert after(1) == 2
