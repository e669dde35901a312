"""The cache on disk of kernels, which numba compiles: its directory, look-up, and locks.

Locks make one process compile a kernel while others wait.

numba's own cache does not notice edits of helpers or constants in *other* modules.  The cache directory is therefore
named by a hash of all modules that import `abstraction.kernels.jit` and of the project's modules that they import.
`NUMBA_CACHE_DIR` in the environment only sets the parent directory.  Clones and installed copies of the same sources
share compiled kernels.

Cached kernels are code, so a directory that other users own or may write is not used
(`abstraction.kernels.kernel_store`).
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
_VERSION = re.compile(r"[0-9a-f]{16}")  # a result of `kernel_source_hash`
_KEEP = 4  # directories of other versions that are kept, the newest ones
_COUNTS = b"NRT_"  # prefix of reference-counting functions
_LOCKS = "locks"  # folder of lock files in the cache directory
_PATIENCE_SECONDS = 60.0  # wait for a compiler without processor time (stopped, or on another machine)
_LOOK_SECONDS = 0.02
_PID_DIGITS = 20


def _sources(root: Path) -> dict[str, str]:
    """Return {dotted name: source text} of every module of the project.

    root  directory that contains the project's packages
    """
    sources = {}
    for package in _PACKAGES:
        for folder, _, files in os.walk(root / package):  # twice as fast as rglob, and every process runs it
            within = os.path.relpath(folder, root).replace(os.sep, ".")
            for file in files:
                if file.endswith(".py"):
                    name = within if file == "__init__.py" else f"{within}.{file[:-3]}"
                    sources[name] = Path(folder, file).read_bytes().decode()  # half the time of read_text
    return sources


def _imports(text: str, sources: dict[str, str]) -> set[str]:
    """Return the dotted names of the project modules that a module's top-level imports name.

    text     source of the module
    sources  {dotted name: source} of all modules of the project
    """
    names: set[str] = set()
    for module, imported in _IMPORT.findall("\n" + text):
        candidates = [module, *(f"{module}.{name.strip(' ()')}" for name in imported.split(","))]
        names.update(name for name in candidates if name in sources)
    return names


def kernel_source_hash(root: Path) -> str:
    """Return 16 hex digits that identify the kernels.

    root  directory that contains the project's packages

    The digits are from the SHA-256 of all kernel sources, the versions of numba and Python, and NUMBA_OPT.
    """
    from importlib.metadata import version

    sources = _sources(root)
    members: set[str] = set()
    todo = [name for name, text in sources.items() if "abstraction.kernels.jit" in _imports(text, sources)]
    while todo:
        name = todo.pop()
        if name not in members:
            members.add(name)
            todo.extend(_imports(sources[name], sources))
    optimised = os.environ.get("NUMBA_OPT", "")  # numba's cache ignores this setting
    digest = hashlib.sha256(f"{version('numba')} {sys.version} {optimised}".encode())
    for name in sorted(members):
        digest.update(name.encode() + b"\0" + sources[name].encode() + b"\0")
    return digest.hexdigest()[:16]


def choose_directory() -> Path:
    """Return this version's cache directory; keep the newest four of other versions, remove the rest.

    The directory is created if it is missing.  Its parent is NUMBA_CACHE_DIR, or mccfr/kernels in the user's cache
    directory.  It is not used if it cannot be made or other users could write in it.  Then a directory of the user in
    the temporary directory takes its place.  If that cannot be used either, the result is a directory for this process
    alone.
    """
    home = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    base = Path(os.environ.get("NUMBA_CACHE_DIR") or Path(home) / "mccfr" / "kernels")
    if _VERSION.fullmatch(base.name):  # set by the parent process
        base = base.parent
    version = kernel_source_hash(_ROOT)
    if (ours := _usable(base / version)) is not None:
        return ours
    user_directory = Path(tempfile.gettempdir(), f"mccfr-kernels-{os.geteuid()}")
    return (None if user_directory.is_symlink() else _usable(user_directory / version)) or _private()


def _usable(version: Path) -> Path | None:
    """Return `version`, the directory for compiled code of this version, or None if it is unusable.

    It is made if missing.  It cannot be used if making it fails or other users could write in it.  Its parent holds
    the directories of other versions, too; of these all but the newest four are removed.
    """
    try:
        for folder in reversed([version, *(parent for parent in version.parents if not parent.exists())]):
            folder.mkdir(mode=0o700, exist_ok=True)
    except OSError:  # a read-only home
        return None
    if (why := distrusted(version)) is not None:
        say_once(
            "distrusted",
            f"{why}, so compiled kernels are not kept there but in the temporary directory: name a directory of your "
            "own in NUMBA_CACHE_DIR",
        )
        return None
    others = sorted(
        (d for d in version.parent.iterdir() if d.is_dir() and d != version), key=lambda d: d.stat().st_mtime
    )
    for old in others[:-_KEEP]:
        if _VERSION.fullmatch(old.name):
            shutil.rmtree(old, ignore_errors=True)
    return version


def _private() -> Path:
    """Return a directory for this process and its child processes, removed at exit."""
    directory, owner = Path(tempfile.mkdtemp(prefix="mccfr-kernels-")), os.getpid()

    def remove() -> None:
        if os.getpid() == owner:  # not in a forked process
            shutil.rmtree(directory, ignore_errors=True)

    atexit.register(remove)
    return directory


@cache
def _numba_cache() -> Any:
    """Return a subclass of numba's cache class, with a folder named after each kernel's package.

    numba's own class names the folder by the path of the source and checks each source's time stamp.  The project's
    cache directory has a hash of all sources in its name instead.
    """
    caching: Any = import_module("numba.core.caching")

    class Locator(caching.UserProvidedCacheLocator):
        """Gives numba a kernel's cache folder, and a stamp that changes when its source is edited.

        The project's kernels have an empty stamp, because the folder's path contains a hash of their sources.
        """

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
        """Converts numba's compiled functions to and from the data that are pickled into files."""

        _locator_classes = (Locator, *caching.CompileResultCacheImpl._locator_classes)

        def rebuild(self, target: Any, stored: tuple[Any, ...]) -> Any:
            # Cached code may count references. numba compiles its reference-counting functions once in a process, when
            # a kernel first needs them; without them the loaded code would call a null address.
            _, _, code = stored[0]
            if any(_COUNTS in part for part in (code if isinstance(code, tuple) else (code,))):
                import_module("numba.core.runtime").rtsys.initialize(target)
            return super().rebuild(target, stored)

    class Cache(caching.FunctionCache):
        """Looks up and stores compiled kernels, in files with checksums, not in numba's format."""

        _impl_class = Files

        def __init__(self, function: Any) -> None:
            super().__init__(function)
            stamp = self._impl.locator.get_source_stamp()
            self._cache_file = KernelStore(Path(self._cache_path), self._impl.filename_base, stamp)

    return Cache


def _processor_time(pid: str) -> str:
    """Return a process's user and system time as text, such as "12 3", in clock ticks of Linux.

    The text is empty if there is no such process.
    """
    try:
        return " ".join(Path("/proc", pid.strip() or "0", "stat").read_text().rpartition(")")[2].split()[11:13])
    except OSError:
        return ""


class KernelFiles:
    """The cache of one kernel (a function compiled by numba), with the methods that numba calls.

    Processes that need the same kernel at the same time compile it once.  The others wait for its lock file while the
    compiling process uses processor time.  There is no deadlock: a process that holds a kernel's lock waits only for
    kernels that it calls.

    kernel   the kernel, with `py_func` (the Python function) and `targetoptions` (numba's options)
    on_disk  False keeps nothing on disk
    declare  declares the project's intrinsics to numba; called only before numba compiles, because it takes longer than
             loading compiled kernels
    """

    def __init__(self, kernel: Any, on_disk: bool, declare: Callable[[], None]) -> None:
        self._kernel, self._on_disk, self._declare, self._turn = kernel, on_disk, declare, -1

    @cached_property
    def _files(self) -> Any:
        return _numba_cache()(self._kernel.py_func)

    def load_overload(self, signature: Any, target: Any) -> Any:
        """Return the cached code for argument types, or None after preparing numba to compile it.

        signature  types of the arguments
        target     numba's target context, which states the processor

        If the kernel is kept on disk but has no code there yet, this waits for the kernel's lock file.  So one process
        compiles for all.
        """
        overload = self._files._load_overload(signature, target) if self._on_disk else None
        if overload is None and self._on_disk:
            self._take_turn()
            overload = self._files._load_overload(signature, target)
        if overload is None:
            self._declare()
        return overload

    def save_overload(self, signature: Any, compiled: Any) -> None:
        """Write the code compiled for argument types `signature` to disk, if `on_disk` is True."""
        if self._on_disk:
            self._files.save_overload(signature, compiled)

    def _take_turn(self) -> None:
        """Wait until no other process compiles the kernel, then lock the kernel's lock file.

        The waiting ends without the lock if the other process uses no processor time for 60 s, and at an error of the
        file system.  Then several processes may compile the same kernel, which costs time but does no harm.
        """
        folder = Path(import_module("numba").config.CACHE_DIR, _LOCKS)
        until, spent = time.monotonic() + _PATIENCE_SECONDS, ""
        with contextlib.suppress(OSError):  # without space or locks kernels are compiled twice
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
        """Release the kernel's lock file, so that other processes load or compile the kernel."""
        if self._turn >= 0:
            with contextlib.suppress(OSError):
                fcntl.flock(self._turn, fcntl.LOCK_UN)  # also for forked processes
            os.close(self._turn)
            self._turn = -1
