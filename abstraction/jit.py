"""The one door to numba: every kernel module takes `njit` (and `intrinsic`) from here.

Numba's on-disk cache does not notice edits to helpers or constants in *other* modules, so a changed helper would go
on running in its old form.  The cache directory is therefore named after a hash of every module that kernels are made
of: the modules that import this one, and whatever of the project those import in turn.  It is set here, before any
kernel is declared, and nowhere else.  `NUMBA_CACHE_DIR` in the environment moves the place, not the rule.
"""

import hashlib
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

_PACKAGES = ("abstraction", "mccfr", "storage")
_IMPORT = re.compile(r"^(?:from|import) +((?:abstraction|mccfr|storage)[\w.]*)(?: +import +([^\n#]+))?", re.MULTILINE)
_KEEP = 4  # directories of other versions left beside ours, newest first


def _sources(root: Path) -> dict[str, str]:
    """Text of every module of the project, by dotted name."""
    found = {}
    for package in _PACKAGES:
        for path in sorted((root / package).rglob("*.py")):
            parts = path.relative_to(root).with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path.read_text(encoding="utf-8")
    return found


def _imports(text: str, known: dict[str, str]) -> set[str]:
    """Project modules that a module's top-level imports name."""
    names: set[str] = set()
    for module, imported in _IMPORT.findall(text):
        candidates = [module, *(f"{module}.{name.strip(' ()')}" for name in imported.split(","))]
        names.update(name for name in candidates if name in known)
    return names


def kernel_source_hash(root: Path) -> str:
    """First 16 hex digits of the SHA-256 over all modules that kernels are made of, and numba's version."""
    from importlib.metadata import version

    sources = _sources(root)
    members: set[str] = set()
    todo = [name for name, text in sources.items() if "abstraction.jit" in _imports(text, sources)]
    while todo:
        name = todo.pop()
        if name not in members:
            members.add(name)
            todo.extend(_imports(sources[name], sources))
    digest = hashlib.sha256(f"{version('numba')} {sys.version}".encode())
    for name in sorted(members):
        digest.update(name.encode() + b"\0" + sources[name].encode() + b"\0")
    return digest.hexdigest()[:16]


def _choose_cache() -> Path:
    """Make (or find) this version's cache directory and drop the oldest of the others."""
    home = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    base = Path(os.environ.get("NUMBA_CACHE_DIR") or Path(home) / "mccfr" / "kernels")
    ours = base / kernel_source_hash(Path(__file__).resolve().parent.parent)
    try:
        ours.mkdir(parents=True, exist_ok=True)
    except OSError:  # a read-only home: compile afresh in each session rather than fail
        return Path(tempfile.mkdtemp(prefix="mccfr-kernels-"))
    others = sorted((d for d in base.iterdir() if d.is_dir() and d != ours), key=lambda d: d.stat().st_mtime)
    for old in others[:-_KEEP]:
        if re.fullmatch(r"[0-9a-f]{16}", old.name):
            shutil.rmtree(old, ignore_errors=True)
    return ours


_CACHE = _choose_cache()
os.environ["NUMBA_CACHE_DIR"] = str(_CACHE)

import numba  # noqa: E402
from numba import carray  # noqa: E402
from numba.core import event, types  # noqa: E402
from numba.core.errors import NumbaError  # noqa: E402
from numba.extending import intrinsic  # noqa: E402

numba.config.CACHE_DIR = str(_CACHE)

# Wrappers for calls from C, which nobody makes, are left out everywhere: they cost time of compiling.
_KERNEL = {"cache": True, "error_model": "numpy", "fastmath": False, "no_cfunc_wrapper": True}
OPTIONS = {
    "njit": _KERNEL | {"_nrt": False},
    "nogil_njit": _KERNEL | {"_nrt": False, "nogil": True},
    "part_njit": _KERNEL | {"_nrt": False, "no_cpython_wrapper": True},
    "allocating_njit": _KERNEL,
    "nogil_allocating_njit": _KERNEL | {"nogil": True},
}
"""What numba is told by each of the decorators below."""

njit = numba.njit(**OPTIONS["njit"])
"""Compile a kernel: cached on disk, IEEE arithmetic, division by zero gives inf instead of an exception.

It makes no array and returns none, so that references need not be counted: where tuples of arrays are handed on, that
is a good part of the code, and of the time of compiling it.  A kernel that does make one is refused by numba.
"""

nogil_njit = numba.njit(**OPTIONS["nogil_njit"])
"""As `njit`, and other threads run meanwhile: for kernels that work on a range of boards or points of their own."""


def part_njit(function: Callable[..., Any]) -> Any:
    """A part of kernels: as `njit`, but callable from kernels only, which saves the code that takes Python's arguments.

    A call from Python is a `TypeError`.  (numba by itself would call what is not there, and end the process: so what is
    compiled is kept from the table that calls from Python look into.)
    """
    part = numba.njit(**OPTIONS["part_njit"])(function)

    def refuse(*arguments: Any, **named: Any) -> None:
        raise TypeError(f"{function.__module__}.{function.__name__} is a part of kernels: call it from a kernel")

    def add_overload(compiled: Any) -> None:
        part.overloads[tuple(compiled.signature.args)] = compiled

    part.add_overload, part._compile_for_args = add_overload, refuse
    return part


allocating_njit = numba.njit(**OPTIONS["allocating_njit"])
"""As `njit`, for a kernel that makes arrays, or takes them from one that does."""

nogil_allocating_njit = numba.njit(**OPTIONS["nogil_allocating_njit"])
"""As `nogil_njit`, for a kernel that makes arrays, or takes them from one that does."""

inline_njit = numba.njit(inline="always")
"""A small helper that is compiled into each kernel that calls it (never called on its own in a hot loop)."""


uncached_njit = numba.njit(**(OPTIONS["allocating_njit"] | {"cache": False}))
"""As `allocating_njit`, for a function of a user's: numba would not notice that what it calls has changed."""


def c_function(result: Any, *arguments: Any) -> Any:
    """Compile a function so that kernels can call it by its address, uncached; types as `types` has them."""
    return numba.cfunc(result(*arguments), error_model="numpy")


__all__ = [
    "OPTIONS",
    "NumbaError",
    "allocating_njit",
    "c_function",
    "carray",
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
]
