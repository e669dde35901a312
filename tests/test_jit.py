"""The door to numba: where compiled kernels are kept, and that parts of kernels are no functions of Python's."""

import pytest

from abstraction import jit
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


def test_processes_that_a_process_starts_find_what_it_has_compiled(tmp_path, monkeypatch):
    """The place is handed on in the environment, and is not searched for another one inside."""
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    chosen = jit._choose_cache()
    assert chosen.parent == tmp_path
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(chosen))
    assert jit._choose_cache() == chosen
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / ("0" * 16)))  # another version's
    assert jit._choose_cache() == chosen
