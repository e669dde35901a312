"""The one door to numba: every kernel module takes `njit` (and `intrinsic`) from here.

Where compiled kernels are kept, `abstraction.kernels.kernel_files` says; it is set here, before any kernel is
declared, and nowhere else.

Nothing is declared to numba, and numba is not imported, before a kernel is first called: to import it and to declare
all kernels takes as long as many a command, and most processes call none or a few.
"""

import gc
import os
import threading
from collections.abc import Callable
from functools import cache, cached_property, partial
from importlib import import_module
from typing import Any

from abstraction.kernels.kernel_files import KernelFiles, choose_directory
from abstraction.kernels.numba_inside import KNOWN_VERSIONS, part_compiler, processor_features

_GARBAGE_AFTER = 50_000  # new objects, of which compiling makes many that stay: looking after 700 takes 7 % of its time


@cache
def _numba() -> Any:
    """The package, with this version's cache."""
    directory = str(choose_directory())
    os.environ["NUMBA_CACHE_DIR"] = directory
    import numba

    numba.config.CACHE_DIR = directory
    if numba.config.CPU_NAME is None and numba.config.CPU_FEATURES is None:
        numba.config.CPU_FEATURES = processor_features()
    if numba.__version__.startswith(KNOWN_VERSIONS):
        Part.compiler = part_compiler()
    for watch in _watches:
        _listen(*watch)
    return numba


Hearer = Callable[[Any], None]
_watches: list[tuple[Hearer, Hearer]] = []


def watch_compiling(on_start: Hearer, on_end: Hearer) -> None:
    """Have two functions called with numba's event where a kernel begins to be compiled, and where that ends."""
    _watches.append((on_start, on_end))
    if _numba.cache_info().currsize:  # else when numba is imported
        _listen(on_start, on_end)


def _listen(on_start: Hearer, on_end: Hearer) -> None:
    event = import_module("numba.core.event")
    heard = {"on_start": staticmethod(on_start), "on_end": staticmethod(on_end)}
    event.register("numba:compile", type("Watch", (event.Listener,), heard)())


class _Module:
    """A module of numba's, imported when something of it is asked for."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        _numba()
        return getattr(import_module(self._name), name)


types: Any = _Module("numba.core.types")
event: Any = _Module("numba.core.event")
errors: Any = _Module("numba.core.errors")


def _known(value: Any) -> Any:
    """The type that numba has for something of its own, in the code of a kernel that it compiles."""
    return import_module("numba.core.registry").cpu_target.typing_context.resolve_value_type(value)


class _Function:
    """A function of numba's for kernels, which Python cannot call."""

    def __init__(self, name: str) -> None:
        self._name = name

    @property
    def _numba_type_(self) -> Any:
        return _known(getattr(_numba(), self._name))


carray = _Function("carray")

_declaring = threading.RLock()
_intrinsics: list["intrinsic"] = []


class intrinsic:  # noqa: N801 - a decorator
    """numba's decorator of the same name, declared when a kernel is first compiled."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.__doc__, self._function = function.__doc__, function
        _intrinsics.append(self)

    @cached_property
    def declared(self) -> Any:
        """What numba knows."""
        return import_module("numba.core.extending").intrinsic(self._function)

    @property
    def _numba_type_(self) -> Any:
        return _known(self.declared)


def _declare_intrinsics() -> None:
    for each in _intrinsics:
        each.declared  # noqa: B018 - which makes it


def _compile_in_turn(compile_now: Callable[[Any], Any], cached: KernelFiles, signature: Any) -> Any:
    """numba's `compile`; whatever comes of it, a turn that the cache took ends with it."""
    with import_module("numba.core.compiler_lock").global_compiler_lock:  # other threads' turns do not end with it
        looked_for_after = gc.get_threshold()
        gc.set_threshold(_GARBAGE_AFTER, *looked_for_after[1:])
        try:
            return compile_now(signature)
        finally:
            gc.set_threshold(*looked_for_after)
            cached.end_turn()


class Kernel:
    """A function that numba compiles, for each types of arguments when it is first called with them.

    py_func        the function
    targetoptions  what numba is told
    cached         whether what is compiled is kept on disk
    """

    def __init__(self, function: Callable[..., Any], options: dict[str, Any], *, cached: bool = True) -> None:
        self.__doc__, self.__module__, self.__name__ = function.__doc__, function.__module__, function.__name__
        self.py_func, self.targetoptions, self._cached = function, options, cached

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """Call it, compiled; arguments and result are those of the function."""
        return self.dispatcher(*arguments, **named)

    @cached_property
    def dispatcher(self) -> Any:
        """What numba makes of it, declared by now."""
        with _declaring:
            if "dispatcher" not in self.__dict__:  # else another thread has been here meanwhile
                made = _numba().njit(**self.targetoptions, **self._compiled_by())(self.py_func)
                made._cache = KernelFiles(self, self._cached, _declare_intrinsics)
                made.compile = partial(_compile_in_turn, made.compile, made._cache)
                self.__dict__["dispatcher"] = made
            return self.__dict__["dispatcher"]

    def _compiled_by(self) -> dict[str, Any]:
        return {}

    @property
    def signatures(self) -> list[Any]:
        """The types of arguments that it was compiled for, or loaded, in this process."""
        return list(self.dispatcher.signatures)

    @property
    def _numba_type_(self) -> Any:
        return self.dispatcher._numba_type_


class Part(Kernel):
    """A kernel without machine code, which Python cannot call; numba by itself would jump to where nothing is."""

    compiler: Any = None  # what `numba_inside` has made for them

    def _compiled_by(self) -> dict[str, Any]:
        return {} if self.compiler is None else {"pipeline_class": self.compiler}

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """Raise `TypeError`."""
        raise TypeError(f"{self.__module__}.{self.__name__} is a part of kernels: call it from a kernel")


# Wrappers for calls from C, which nobody makes, are left out everywhere: they cost time of compiling.
_KERNEL = {"error_model": "numpy", "fastmath": False, "no_cfunc_wrapper": True}
OPTIONS: dict[str, dict[str, Any]] = {
    "njit": _KERNEL | {"_nrt": False},
    "nogil_njit": _KERNEL | {"_nrt": False, "nogil": True},
    "part_njit": _KERNEL | {"_nrt": False, "no_cpython_wrapper": True},
    "allocating_njit": _KERNEL,
    "nogil_allocating_njit": _KERNEL | {"nogil": True},
}
"""What numba is told by each of the decorators below."""


def decorator(name: str, *, cached: bool = True) -> Callable[[Callable[..., Any]], Kernel]:
    """A decorator by its name in `OPTIONS`."""
    return partial(Part if name == "part_njit" else Kernel, options=OPTIONS[name], cached=cached)


njit = decorator("njit")
"""Compile a kernel: cached on disk, IEEE arithmetic, division by zero gives inf instead of an exception.

It makes no array and returns none, so that references need not be counted: where tuples of arrays are handed on, that
is a good part of the code, and of the time of compiling it.  A kernel that does make one is refused by numba.
"""

nogil_njit = decorator("nogil_njit")
"""As `njit`, and other threads run meanwhile: for kernels that work on a range of boards or points of their own."""

part_njit = decorator("part_njit")
"""A part of kernels: as `njit`, but callable from kernels only, which saves machine code.

A call from Python is a `TypeError`.
"""

allocating_njit = decorator("allocating_njit")
"""As `njit`, for a kernel that makes arrays, or takes them from one that does."""

nogil_allocating_njit = decorator("nogil_allocating_njit")
"""As `nogil_njit`, for a kernel that makes arrays, or takes them from one that does."""

inline_njit = partial(Part, options={"inline": "always"}, cached=False)
"""A small helper that is compiled into each kernel that calls it (never called on its own in a hot loop)."""

uncached_njit = decorator("allocating_njit", cached=False)
"""As `allocating_njit`, for a function of a user's: numba would not notice that what it calls has changed."""


def c_function(result: Any, *arguments: Any) -> Any:
    """Compile a function so that kernels can call it by its address, uncached; types as `types` has them."""
    return _numba().cfunc(result(*arguments), error_model="numpy")


__all__ = [
    "OPTIONS",
    "Kernel",
    "allocating_njit",
    "c_function",
    "carray",
    "decorator",
    "errors",
    "event",
    "inline_njit",
    "intrinsic",
    "njit",
    "nogil_allocating_njit",
    "nogil_njit",
    "part_njit",
    "types",
    "uncached_njit",
    "watch_compiling",
]
