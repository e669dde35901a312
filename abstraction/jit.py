"""The one door to numba: every kernel module takes `njit` (and `intrinsic`) from here.

Numba's on-disk cache does not notice edits to helpers or constants in *other* modules, so a changed helper would go
on running in its old form.  The cache directory is therefore named after a hash of every module that kernels are made
of: the modules that import this one, and whatever of the project those import in turn.  It is set here, before any
kernel is declared, and nowhere else.  `NUMBA_CACHE_DIR` in the environment moves the place, not the rule.

Where the packages lie makes no difference: clones and installed copies of the same sources share what is compiled.

Nothing is declared to numba, and numba is not imported, before a kernel is first called: to import it and to declare
all kernels takes as long as many a command, and most processes call none or a few.
"""

import contextlib
import fcntl
import gc
import hashlib
import os
import re
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from functools import cache, cached_property, partial
from importlib import import_module
from pathlib import Path
from typing import Any

_ROOT = Path(__file__).resolve().parent.parent
_PACKAGES = ("abstraction", "mccfr", "storage")
_IMPORT = re.compile(r"\n(?:from|import) +((?:abstraction|mccfr|storage)[\w.]*)(?: +import +([^\n#]+))?")
_VERSION = re.compile(r"[0-9a-f]{16}")  # what `kernel_source_hash` gives
_KEEP = 4  # directories of other versions left beside ours, newest first
_LOCKS = "locks"  # folder in the cache's directory
_PATIENCE_SECONDS = 60.0  # no kernel takes as long: who compiles it is stopped, or was forked
_LOOK_SECONDS = 0.02
_GARBAGE_AFTER = (
    50_000  # new objects, of which a compiler makes many that stay: looking after 700 takes 7 % of its time
)


def _sources(root: Path) -> dict[str, str]:
    """Text of every module of the project, by dotted name."""
    found = {}
    for package in _PACKAGES:
        for folder, _, files in os.walk(root / package):  # twice as fast as rglob, and every process does it
            within = os.path.relpath(folder, root).replace(os.sep, ".")
            for file in files:
                if file.endswith(".py"):
                    name = within if file == "__init__.py" else f"{within}.{file[:-3]}"
                    found[name] = Path(folder, file).read_bytes().decode()  # half the time of read_text
    return found


def _imports(text: str, known: dict[str, str]) -> set[str]:
    """Project modules that a module's top-level imports name."""
    names: set[str] = set()
    for module, imported in _IMPORT.findall("\n" + text):
        candidates = [module, *(f"{module}.{name.strip(' ()')}" for name in imported.split(","))]
        names.update(name for name in candidates if name in known)
    return names


def kernel_source_hash(root: Path) -> str:
    """First 16 hex digits of the SHA-256 over all that kernels are made of, numba's version and how it optimises."""
    from importlib.metadata import version

    sources = _sources(root)
    members: set[str] = set()
    todo = [name for name, text in sources.items() if "abstraction.jit" in _imports(text, sources)]
    while todo:
        name = todo.pop()
        if name not in members:
            members.add(name)
            todo.extend(_imports(sources[name], sources))
    optimised = os.environ.get("NUMBA_OPT", "")  # which numba does not look at when it looks for what is kept
    digest = hashlib.sha256(f"{version('numba')} {sys.version} {optimised}".encode())
    for name in sorted(members):
        digest.update(name.encode() + b"\0" + sources[name].encode() + b"\0")
    return digest.hexdigest()[:16]


def _choose_cache() -> Path:
    """Make (or find) this version's cache directory and drop the oldest of the others."""
    home = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    base = Path(os.environ.get("NUMBA_CACHE_DIR") or Path(home) / "mccfr" / "kernels")
    if _VERSION.fullmatch(base.name):  # chosen by the process that has started this one
        base = base.parent
    ours = base / kernel_source_hash(_ROOT)
    try:
        ours.mkdir(parents=True, exist_ok=True)
    except OSError:  # a read-only home: compile afresh in each session rather than fail
        return Path(tempfile.mkdtemp(prefix="mccfr-kernels-"))
    others = sorted((d for d in base.iterdir() if d.is_dir() and d != ours), key=lambda d: d.stat().st_mtime)
    for old in others[:-_KEEP]:
        if _VERSION.fullmatch(old.name):
            shutil.rmtree(old, ignore_errors=True)
    return ours


def _features() -> str:
    """What the processor can, and that vectors may fill its widest registers.

    For many processors with AVX-512, LLVM halves the vectors that it makes of loops.
    """
    features: str = import_module("numba.core.codegen").get_host_cpu_features()
    return f"{features},-prefer-256-bit" if "+avx512f" in features else features


@cache
def _numba() -> Any:
    """The package, with this version's cache."""
    directory = str(_choose_cache())
    os.environ["NUMBA_CACHE_DIR"] = directory
    import numba

    numba.config.CACHE_DIR = directory
    if numba.config.CPU_NAME is None and numba.config.CPU_FEATURES is None:
        numba.config.CPU_FEATURES = _features()
    if numba.__version__.startswith(_KNOWN_INSIDE):
        _compile_parts_for_kernels_alone()
    for watch in _watches:
        _listen(*watch)
    return numba


_KNOWN_INSIDE = ("0.68.",)
"""Versions of numba whose inner classes are as `_compile_parts_for_kernels_alone` takes them to be."""


def _compile_parts_for_kernels_alone() -> None:
    """Have numba make machine code of kernels only, and optimise what it compiles once, not twice.

    This reaches into numba, so it is done with versions that it was tried with; with others compiling takes longer.

    A kernel holds the code of all that it calls.  numba by itself makes machine code of parts too, which nobody runs;
    and it puts each function through most of what the module around it is put through next.
    """
    codegen = import_module("numba.core.registry").cpu_target.target_context.codegen()
    library: Any = import_module("numba.core.codegen").JITCodeLibrary
    parse = import_module("llvmlite.binding").parse_bitcode
    compiler: Any = import_module("numba.core.compiler").Compiler

    class Nowhere:
        """Where a part's environment is put: what Python's calls would find, and nobody calls a part from Python."""

        def set_env(self, name: str, environment: Any) -> None: ...

    class Library(library):
        """A function's code; `part`: of a part, of which there is no machine code."""

        part = False

        @property
        def codegen(self) -> Any:
            return Nowhere() if self.part else self._codegen

        def _optimize_functions(self, module: Any) -> None:
            module.data_layout = self._codegen._data_layout

        def _finalize_final_module(self) -> None:
            if not self.part:
                super()._finalize_final_module()
                return
            self._finalize_dynamic_globals()
            self._verify_declare_only_symbols()
            self._finalized = True

        def get_pointer_to_function(self, name: str) -> int:
            self._ensure_finalized()
            return 0 if self.part else super().get_pointer_to_function(name)

        def serialize_using_object_code(self) -> tuple[str, str, Any]:
            if not self.part:
                return super().serialize_using_object_code()
            return self.name, "part", self._get_module_for_linking().as_bitcode()

        @classmethod
        def _unserialize(cls, codegen: Any, state: tuple[str, str, Any]) -> Any:
            name, kind, bitcode = state
            if kind != "part":
                return super()._unserialize(codegen, state)
            loaded = cls(codegen, name)
            loaded.part, loaded._final_module = True, parse(bitcode)
            loaded._finalize_final_module()
            return loaded

    class PartCompiler(compiler):
        """Compiles a part."""

        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments)
            self.state.library = Library(codegen, "part")
            self.state.library.part = True

    codegen._library_class = Library
    Part.compiler = PartCompiler


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


@cache
def _cache_class() -> Any:
    """numba's cache of a kernel's files, in a folder named after the kernel's place in the packages.

    By itself numba names the folder after the path of the source, and looks whether the source is as it was; here the
    directory around it answers for all sources.
    """
    caching: Any = import_module("numba.core.caching")

    class Locator(caching.UserProvidedCacheLocator):
        """Where a kernel's files are."""

        def __init__(self, function: Any, file: str) -> None:
            super().__init__(function, file)
            folder = Path(file).resolve().parent
            within = folder.relative_to(_ROOT).parts if folder.is_relative_to(_ROOT) else ()
            self._ours = bool(within) and within[0] in _PACKAGES
            if self._ours:
                self._cache_path = str(Path(_numba().config.CACHE_DIR, ".".join(within)))

        def get_source_stamp(self) -> Any:
            return "" if self._ours else super().get_source_stamp()

    class Files(caching.CompileResultCacheImpl):
        """How a kernel is written to them."""

        _locator_classes = (Locator, *caching.CompileResultCacheImpl._locator_classes)

    class Cache(caching.FunctionCache):
        """Looks kernels up in them."""

        _impl_class = Files

    return Cache


class _Cache:
    """What is on disk of a kernel, in numba's form.

    numba by itself declares all that it can compile before it looks into a cache, which takes longer than loading the
    kernels of a run; and its compiler does so again.

    Processes that need a kernel at the same time compile it once: the others wait for what the first one keeps.
    Nobody waits in a circle, since while a kernel's turn is held only those that it calls are waited for.  By itself
    numba lets all of them compile it, and of two that keep something at the same time, one may be forgotten.
    """

    def __init__(self, kernel: "Kernel", on_disk: bool) -> None:
        self._kernel, self._on_disk, self._turn = kernel, on_disk, -1

    @cached_property
    def _files(self) -> Any:
        return _cache_class()(self._kernel.py_func)

    def load_overload(self, signature: Any, target: Any) -> Any:
        """What was compiled for a signature, or None: then numba is ready to compile it."""
        if self._kernel.targetoptions.get("_nrt", True):  # references are counted
            import_module("numba.core.runtime").rtsys.initialize(target)
        found = self._files._load_overload(signature, target) if self._on_disk else None
        if found is None and self._on_disk:
            self._take_turn()
            found = self._files._load_overload(signature, target)
        if found is None:
            for each in _intrinsics:
                each.declared  # noqa: B018 - which makes it
        return found

    def save_overload(self, signature: Any, compiled: Any) -> None:
        """Keep what was compiled for a signature."""
        if self._on_disk:
            self._files.save_overload(signature, compiled)

    def _take_turn(self) -> None:
        """Wait until no other process compiles this kernel."""
        folder = Path(_numba().config.CACHE_DIR, _LOCKS)
        until = time.monotonic() + _PATIENCE_SECONDS
        with contextlib.suppress(OSError):  # a disk without room or locks: who compiles twice loses time alone
            folder.mkdir(exist_ok=True)
            name = f"{self._kernel.__module__}.{self._kernel.__name__}"
            self._turn = os.open(folder / name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
            while time.monotonic() < until:
                try:
                    fcntl.flock(self._turn, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    time.sleep(_LOOK_SECONDS)

    def end_turn(self) -> None:
        """Let other processes compile it, or find what was kept."""
        if self._turn >= 0:
            os.close(self._turn)
            self._turn = -1


def _compile_in_turn(compile_now: Callable[[Any], Any], cached: _Cache, signature: Any) -> Any:
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
                made._cache = _Cache(self, self._cached)
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

    compiler: Any = None  # what `_compile_parts_for_kernels_alone` has made for them

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
    "kernel_source_hash",
    "njit",
    "nogil_allocating_njit",
    "nogil_njit",
    "part_njit",
    "types",
    "uncached_njit",
    "watch_compiling",
]
