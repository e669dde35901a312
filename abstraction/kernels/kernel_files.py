"""Where compiled kernels are kept on disk, and how they are found there.

Numba's on-disk cache does not notice edits to helpers or constants in *other* modules, so a changed helper would go
on running in its old form.  The cache directory is therefore named after a hash of every module that kernels are made
of: the modules that import `abstraction.kernels.jit`, and whatever of the project those import in turn.
`NUMBA_CACHE_DIR` in the environment moves the place, not the rule.

Where the packages lie makes no difference: clones and installed copies of the same sources share what is compiled.

What is kept is code: a directory that others own or may write is not used (`abstraction.kernels.kernel_store`).
"""

import atexit
import contextlib
import fcntl
import hashlib
import os
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from functools import cache, cached_property
from importlib import import_module
from pathlib import Path
from typing import Any

from abstraction.kernels.kernel_store import KernelStore, distrusted, say_once

_ROOT = Path(__file__).resolve().parents[2]
_PACKAGES = ("abstraction", "mccfr", "storage")
_IMPORT = re.compile(r"\n(?:from|import) +((?:abstraction|mccfr|storage)[\w.]*)(?: +import +([^\n#]+))?")
_VERSION = re.compile(r"[0-9a-f]{16}")  # what `kernel_source_hash` gives
_KEEP = 4  # directories of other versions left beside ours, newest first
_COUNTS = b"NRT_"  # the names of functions that count references begin so
_LOCKS = "locks"  # folder in the cache's directory
_PATIENCE_SECONDS = 60.0  # for who compiles a kernel and spends no processor time: stopped, or on another machine
_LOOK_SECONDS = 0.02
_PID_DIGITS = 20


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
    todo = [name for name, text in sources.items() if "abstraction.kernels.jit" in _imports(text, sources)]
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


def choose_directory() -> Path:
    """Make (or find) this version's cache directory and drop the oldest of the others.

    Where the one that is asked for cannot be written, or others may write to it, it is one in the temporary directory
    that belongs to the user alone; and where somebody has taken that, one for this process.
    """
    home = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    base = Path(os.environ.get("NUMBA_CACHE_DIR") or Path(home) / "mccfr" / "kernels")
    if _VERSION.fullmatch(base.name):  # chosen by the process that has started this one
        base = base.parent
    version = kernel_source_hash(_ROOT)
    if (ours := _usable(base / version)) is not None:
        return ours
    kept = Path(tempfile.gettempdir(), f"mccfr-kernels-{os.geteuid()}")
    return (None if kept.is_symlink() else _usable(kept / version)) or _private()


def _usable(ours: Path) -> Path | None:
    """The directory of a version, made where it is not there; None where it cannot be, or is not trusted."""
    try:
        for folder in reversed([ours, *(parent for parent in ours.parents if not parent.exists())]):
            folder.mkdir(mode=0o700, exist_ok=True)
    except OSError:  # a read-only home
        return None
    if (why := distrusted(ours)) is not None:
        say_once(
            "distrusted",
            f"{why}, so compiled kernels are not kept there but in the temporary directory: name a directory of your "
            "own in NUMBA_CACHE_DIR",
        )
        return None
    others = sorted((d for d in ours.parent.iterdir() if d.is_dir() and d != ours), key=lambda d: d.stat().st_mtime)
    for old in others[:-_KEEP]:
        if _VERSION.fullmatch(old.name):
            shutil.rmtree(old, ignore_errors=True)
    return ours


def _private() -> Path:
    """A directory for this process and those that it starts, gone with it."""
    directory, owner = Path(tempfile.mkdtemp(prefix="mccfr-kernels-")), os.getpid()

    def remove() -> None:
        if os.getpid() == owner:  # and not in a process forked off it
            shutil.rmtree(directory, ignore_errors=True)

    atexit.register(remove)
    return directory


@cache
def _numba_cache() -> Any:
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
                self._cache_path = str(Path(import_module("numba").config.CACHE_DIR, ".".join(within)))

        def get_source_stamp(self) -> Any:
            return "" if self._ours else super().get_source_stamp()

    class Files(caching.CompileResultCacheImpl):
        """How a kernel is written to them."""

        _locator_classes = (Locator, *caching.CompileResultCacheImpl._locator_classes)

        def rebuild(self, target: Any, kept: tuple[Any, ...]) -> Any:
            # References may be counted in any kernel's code: numba compiles what it does with arrays once a process,
            # as the kernel wants it that comes first.  A call of an unknown function would be one to nowhere.
            _, _, code = kept[0]
            if any(_COUNTS in part for part in (code if isinstance(code, tuple) else (code,))):
                import_module("numba.core.runtime").rtsys.initialize(target)
            return super().rebuild(target, kept)

    class Cache(caching.FunctionCache):
        """Looks kernels up in them."""

        _impl_class = Files

        def __init__(self, function: Any) -> None:
            super().__init__(function)
            stamp = self._impl.locator.get_source_stamp()
            self._cache_file = KernelStore(Path(self._cache_path), self._impl.filename_base, stamp)

    return Cache


def _processor_time(pid: str) -> str:
    """What a process has spent, as Linux writes it; empty where there is none."""
    try:
        return " ".join(Path("/proc", pid.strip() or "0", "stat").read_text().rpartition(")")[2].split()[11:13])
    except OSError:
        return ""


class KernelFiles:
    """What is on disk of a kernel, in numba's form.

    numba by itself declares all that it can compile before it looks into a cache, which takes longer than loading the
    kernels of a run; and its compiler does so again.

    Processes that need a kernel at the same time compile it once: the others wait for what the first one keeps,
    as long as it spends processor time.  Nobody waits in a circle, since while a kernel's turn is held only those that
    it calls are waited for.  By itself numba lets all of them compile it, and of two that keep something at the same
    time, one may be forgotten.

    kernel   what is compiled: has `py_func` and `targetoptions`
    on_disk  False: nothing is kept
    declare  called before numba compiles, and not before it loads
    """

    def __init__(self, kernel: Any, on_disk: bool, declare: Callable[[], None]) -> None:
        self._kernel, self._on_disk, self._declare, self._turn = kernel, on_disk, declare, -1

    @cached_property
    def _files(self) -> Any:
        return _numba_cache()(self._kernel.py_func)

    def load_overload(self, signature: Any, target: Any) -> Any:
        """What was compiled for a signature, or None: then numba is ready to compile it."""
        found = self._files._load_overload(signature, target) if self._on_disk else None
        if found is None and self._on_disk:
            self._take_turn()
            found = self._files._load_overload(signature, target)
        if found is None:
            self._declare()
        return found

    def save_overload(self, signature: Any, compiled: Any) -> None:
        """Keep what was compiled for a signature."""
        if self._on_disk:
            self._files.save_overload(signature, compiled)

    def _take_turn(self) -> None:
        """Wait until no other process compiles this kernel."""
        folder = Path(import_module("numba").config.CACHE_DIR, _LOCKS)
        until, spent = time.monotonic() + _PATIENCE_SECONDS, ""
        with contextlib.suppress(OSError):  # a disk without room or locks: who compiles twice loses time alone
            folder.mkdir(exist_ok=True)
            name = f"{self._kernel.__module__}.{self._kernel.__name__}"
            self._turn = os.open(folder / name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
            while time.monotonic() < until:
                try:
                    fcntl.flock(self._turn, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    os.pwrite(self._turn, f"{os.getpid():<{_PID_DIGITS}}".encode(), 0)
                    break
                except BlockingIOError:
                    time.sleep(_LOOK_SECONDS)
                    before, spent = spent, _processor_time(os.pread(self._turn, _PID_DIGITS, 0).decode())
                    if spent != before:
                        until = time.monotonic() + _PATIENCE_SECONDS

    def end_turn(self) -> None:
        """Let other processes compile it, or find what was kept."""
        if self._turn >= 0:
            with contextlib.suppress(OSError):
                fcntl.flock(self._turn, fcntl.LOCK_UN)  # of processes forked off this one too
            os.close(self._turn)
            self._turn = -1
