"""The only module that imports numba: every kernel module takes `njit` and `intrinsic` from here.

A kernel is a function that numba compiles.  Its cache on disk (`abstraction.kernels.kernel_files`) is configured here
before any kernel is declared.

numba is imported, and kernels are declared to it, when a kernel is first called.  Import and declarations take longer
than many commands, and most processes call few kernels or none.
"""

import gc
import os
import threading
from collections.abc import Callable
from functools import cache, cached_property, partial
from importlib import import_module
from pathlib import Path
from typing import Any

from abstraction.kernels.branch_pruning import prune_by_type
from abstraction.kernels.kernel_files import KernelFiles, choose_directory
from abstraction.kernels.numba_settings import KNOWN_VERSIONS, part_compiler, processor_features
from abstraction.kernels.struct_references import PLAIN_TYPES, by_reference, kernel_argument
from storage.deferred_signals import signals_deferred

_GARBAGE_AFTER = 50_000  # compiling creates many lasting objects; collecting garbage after 700 takes 7 % of its time


@cache
def _numba() -> Any:
    """Import numba on the first call, set it up with this version's kernel cache, and return the package."""
    directory = str(choose_directory())
    os.environ["NUMBA_CACHE_DIR"] = directory
    import numba

    numba.config.CACHE_DIR = directory
    if numba.config.CPU_NAME is None and numba.config.CPU_FEATURES is None:
        numba.config.CPU_FEATURES = processor_features()
    prune_by_type()  # with every version: kernels are written for it
    if numba.__version__.startswith(KNOWN_VERSIONS):
        Part.compiler = part_compiler()
    for watch in _watches:
        _listen(*watch)
    return numba


def kernel_directory() -> Path:
    """Return the directory on disk with the compiled code of this version of the program."""
    return Path(_numba().config.CACHE_DIR)


Hearer = Callable[[Any], None]
_watches: list[tuple[Hearer, Hearer]] = []


def watch_compiling(on_start: Hearer, on_end: Hearer) -> None:
    """Call `on_start` when a kernel's compilation begins and `on_end` when it ends, from now on.

    Both get numba's event object, which names the kernel.
    """
    _watches.append((on_start, on_end))
    if _numba.cache_info().currsize:  # else `_numba` does it on import
        _listen(on_start, on_end)


def _listen(on_start: Hearer, on_end: Hearer) -> None:
    event = import_module("numba.core.event")
    heard = {"on_start": staticmethod(on_start), "on_end": staticmethod(on_end)}
    event.register("numba:compile", type("StallWatch", (event.Listener,), heard)())


class _Module:
    """A numba module that is imported when an attribute of it is first read."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        _numba()
        return getattr(import_module(self._name), name)


types: Any = _Module("numba.core.types")
event: Any = _Module("numba.core.event")
errors: Any = _Module("numba.core.errors")


def _known(value: Any) -> Any:
    """Return the numba type of `value`, an intrinsic or numba function that kernels call."""
    return import_module("numba.core.registry").cpu_target.typing_context.resolve_value_type(value)


class _Function:
    """A numba function, found by its name, that kernels can call but Python cannot."""

    def __init__(self, name: str) -> None:
        self._name = name

    @property
    def _numba_type_(self) -> Any:
        return _known(getattr(_numba(), self._name))


carray = _Function("carray")

_declaring = threading.RLock()
_intrinsics: list["intrinsic"] = []


class intrinsic:  # noqa: N801 - a decorator
    """Decorate a function that emits LLVM code, so that kernels can call it as a numba intrinsic.

    It is declared to numba when a kernel is first compiled.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self.__doc__, self._function = function.__doc__, function
        _intrinsics.append(self)

    @cached_property
    def declared(self) -> Any:
        """Return the function as numba's intrinsic, declared on the first access."""
        return import_module("numba.core.extending").intrinsic(self._function)

    @property
    def _numba_type_(self) -> Any:
        return _known(self.declared)


def _declare_intrinsics() -> None:
    for each in _intrinsics:
        each.declared  # noqa: B018 - the access declares it


def _compile_in_turn(compile_now: Callable[[Any], Any], cached: KernelFiles, signature: Any) -> Any:
    """Compile a kernel (a function for numba) for argument types; then release its lock file.

    compile_now  numba's function that compiles the kernel for a signature
    cached       cache of the kernel, which locks the file if code must be compiled; it is released also after an error
    signature    types of the arguments

    Signals of the operating system are handled only afterwards: numba cannot use a function again whose compilation an
    exception has interrupted.
    """
    # The lock is taken so that no other thread's lock ends with it.
    with signals_deferred(), import_module("numba.core.compiler_lock").global_compiler_lock:
        looked_for_after = gc.get_threshold()
        gc.set_threshold(_GARBAGE_AFTER, *looked_for_after[1:])
        try:
            return compile_now(signature)
        finally:
            gc.set_threshold(*looked_for_after)
            cached.end_turn()


class Kernel:
    """A function that numba compiles for each combination of argument types, on the first call with it.

    py_func        the Python function
    targetoptions  numba's options
    cached         whether compiled code is kept on disk
    """

    def __init__(self, function: Callable[..., Any], options: dict[str, Any], *, cached: bool = True) -> None:
        self.__doc__, self.__module__, self.__name__ = function.__doc__, function.__module__, function.__name__
        self.py_func, self.targetoptions, self._cached = function, options, cached

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """Compile the function for these argument types if needed, then call it and return its result."""
        # One look-up for all: `kernel_argument` for each of four numbers makes the whole call take 1.66 times as long.
        if not named and PLAIN_TYPES.issuperset(map(type, arguments)):
            return self.dispatcher(*arguments)
        passed = {name: kernel_argument(value) for name, value in named.items()}
        return self.dispatcher(*map(kernel_argument, arguments), **passed)

    @cached_property
    def dispatcher(self) -> Any:
        """Return numba's dispatcher of the function, which compiles it when it is called.

        It is created on the first access.
        """
        with _declaring:
            if "dispatcher" not in self.__dict__:  # else another thread has declared it
                compiled = _numba().njit(**self.targetoptions, **self._compiled_by())(self.py_func)
                compiled._cache = KernelFiles(self, self._cached, _declare_intrinsics)
                compiled.compile = partial(_compile_in_turn, compiled.compile, compiled._cache)
                self.__dict__["dispatcher"] = compiled
            return self.__dict__["dispatcher"]

    def _compiled_by(self) -> dict[str, Any]:
        return {}

    @property
    def signatures(self) -> list[Any]:
        """Return the argument types for which the kernel was compiled or loaded in this process."""
        return list(self.dispatcher.signatures)

    @property
    def _numba_type_(self) -> Any:
        return self.dispatcher._numba_type_


class Part(Kernel):
    """A function whose compiled code becomes part of the kernels that call it.

    It has no machine code of its own, so Python cannot call it.
    """

    compiler: Any = None  # set by `_numba` with `part_compiler`

    def _compiled_by(self) -> dict[str, Any]:
        return {} if self.compiler is None else {"pipeline_class": self.compiler}

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """Raise `TypeError`: a call from Python would jump to machine code that does not exist."""
        raise TypeError(f"{self.__module__}.{self.__name__} is a part of kernels: call it from a kernel")


# no_cfunc_wrapper: wrappers for calls from C are never used and cost compile time
_KERNEL = {"error_model": "numpy", "fastmath": False, "no_cfunc_wrapper": True}
OPTIONS: dict[str, dict[str, Any]] = {
    "njit": _KERNEL | {"_nrt": False},
    "nogil_njit": _KERNEL | {"_nrt": False, "nogil": True},
    "part_njit": _KERNEL | {"_nrt": False, "no_cpython_wrapper": True},
    "allocating_njit": _KERNEL,
    "nogil_allocating_njit": _KERNEL | {"nogil": True},
}
"""numba's options for each decorator below."""


def decorator(name: str, *, cached: bool = True) -> Callable[[Callable[..., Any]], Kernel]:
    """Return a decorator that turns a function into a `Kernel`, which numba compiles when called.

    name    which options numba gets: "njit", "nogil_njit", "part_njit", "allocating_njit" or "nogil_allocating_njit".
            "part_njit" gives a `Part`, which only compiled functions can call
    cached  whether compiled code is kept on disk
    """
    return partial(Part if name == "part_njit" else Kernel, options=OPTIONS[name], cached=cached)


njit = decorator("njit")
"""Compile a kernel that creates and returns no arrays, cached on disk, with IEEE arithmetic.

Division by zero gives inf instead of an exception.  Without arrays to create, numba need not count references, which
saves code and compile time. numba refuses such a kernel if it creates an array.
"""

nogil_njit = decorator("nogil_njit")
"""Compile a kernel that creates and returns no arrays, and releases Python's interpreter lock (GIL).

Threads can then work on ranges of boards or points in parallel.  The kernel is cached on disk.
"""

part_njit = decorator("part_njit")
"""Compile a kernel that creates and returns no arrays and that only kernels call.

This saves machine code.  A call from Python raises `TypeError`.
"""

allocating_njit = decorator("allocating_njit")
"""Compile a kernel that creates arrays, or takes them from a kernel that does; it is cached on disk."""

nogil_allocating_njit = decorator("nogil_allocating_njit")
"""Compile a kernel that may create arrays, and releases Python's interpreter lock (GIL).

Threads can then work on ranges of boards or points in parallel.  The kernel is cached on disk.
"""

inline_njit = partial(Part, options={"inline": "always"}, cached=False)
"""Inline a small helper into each kernel that calls it; a call from Python raises `TypeError`."""

uncached_njit = decorator("allocating_njit", cached=False)
"""Compile a user's function, which may create arrays, without a cache on disk.

numba does not notice changes in the functions that it calls, so cached code could be out of date.
"""


def c_function(result: Any, *arguments: Any) -> Any:
    """Return a decorator that compiles a function which kernels call by its address; it is not cached.

    result, arguments  numba types from `types`
    """
    return _numba().cfunc(result(*arguments), error_model="numpy")


__all__ = [
    "OPTIONS",
    "Kernel",
    "allocating_njit",
    "by_reference",
    "c_function",
    "carray",
    "decorator",
    "errors",
    "event",
    "inline_njit",
    "intrinsic",
    "kernel_directory",
    "njit",
    "nogil_allocating_njit",
    "nogil_njit",
    "part_njit",
    "types",
    "uncached_njit",
    "watch_compiling",
]
