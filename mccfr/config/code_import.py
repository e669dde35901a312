"""Imports users' modules from the bytes that were hashed, and records the imported files.

A module's source is read once: the bytes compiled are those compared with, or added to, the user's list of code
(`mccfr.config.code_list`). Compiled files in `__pycache__` are not used.
"""

import os
import site
import sys
import sysconfig
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache, partial
from hashlib import sha256
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from importlib.util import spec_from_file_location
from pathlib import Path
from types import CodeType
from typing import Any

OURS = ("mccfr", "abstraction", "storage")
"""Packages of this program, which may always be imported, from where the program is installed."""

_UNLISTED = "not in your list of code: give the directory with --code DIR"
_real = cache(os.path.realpath)


class NotListedError(ImportError):
    """Raised for a file that is missing from the user's list of code: files that the user has run before."""


@dataclass
class Watched:
    """Files below one path, whose modules the `Importer` executes from the bytes that were hashed.

    root     absolute path of a folder, or of an installed package's own directory or file
    free     True if any file may be imported; False: only listed ones
    listed   {absolute path: content} of files in the user's list of code that are not imported yet
    run      {absolute path: SHA-256} of files imported without being listed; `with_imported` adds all others
    added    {module: function called after each further imported file}
    strange  an imported file that is no Python source, so that it cannot be listed; None: no such file
    """

    root: str
    free: bool = False
    listed: dict[str, bytes] = field(default_factory=dict)
    run: dict[str, str] = field(default_factory=dict)
    added: dict[str, Callable[[], None]] = field(default_factory=dict)
    strange: str | None = None

    def read(self, path: str) -> bytes:
        """Return the content of a module's file for execution; `NotListedError` if it may not be imported."""
        if path in self.listed:
            return self.listed.pop(path)
        if not self.free:
            raise NotListedError(f"{path} is {_UNLISTED}")
        content = Path(path).read_bytes()
        self.run[path] = sha256(content).hexdigest()
        for call in list(self.added.values()):
            call()
        return content

    def has(self, name: str) -> bool:
        """Return True if `listed` has the file of the top-level module `name`.

        The module is then searched below `root` first.
        """
        return any(str(Path(self.root, file)) in self.listed for file in (f"{name}.py", f"{name}/__init__.py"))

    def with_imported(self) -> dict[str, str]:
        """Return `run`, extended in place by all other files below the root that were imported."""
        for name, module in list(sys.modules.items()):
            file = getattr(module, "__file__", None)
            if name == "__main__" or not isinstance(file, str):
                continue
            watched, path = importer.watched_of(file, name)
            if watched is not self or path in self.run:
                continue
            try:
                self.run[path] = sha256(Path(path).read_bytes()).hexdigest()
            except OSError:
                self.strange = path
            if not path.endswith(".py"):
                self.strange = path
        return self.run


class _Loader(SourceFileLoader):
    """Executes a module from the bytes that were hashed, which `read` returns."""

    def __init__(self, name: str, path: str, read: Callable[[], bytes]) -> None:
        super().__init__(name, path)
        self._read = read

    def get_code(self, fullname: str) -> CodeType:
        """Compile the source; compiled files are neither read nor written."""
        code: CodeType = self.source_to_code(self._read(), self.path)
        return code


class Importer(MetaPathFinder):
    """Finds modules as Python does, then in configurations' folders; loads watched files from their bytes."""

    def __init__(self) -> None:
        self.searched: list[str] = []
        self._watched: dict[str, Watched] = {}

    def watch(self, folder: str, top: str, listed: Mapping[str, bytes] | None) -> Watched:
        """Import modules of this folder from hashed bytes from now on; return its `Watched`.

        top     name of the top-level module; of an installed one, only its own directory or file is watched
        listed  {absolute path: content} of the files that may be imported; None: any file
        """
        if self not in sys.meta_path:
            sys.meta_path.insert(0, self)
        root = _root(folder, top)
        watched = self._watched.setdefault(root, Watched(root))
        watched.free |= listed is None
        watched.listed = {**watched.listed, **listed} if listed is not None else {}
        if root == folder and root not in self.searched:
            self.searched.append(root)
        return watched

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """Return a module's spec (`importlib.abc.MetaPathFinder.find_spec`), guarded if its file is watched."""
        others = [getattr(finder, "find_spec", None) for finder in sys.meta_path if finder is not self]
        other_specs = (find(fullname, path, target) for find in others if find is not None)
        beside = [] if path is not None else [root for root in self.searched if self._watched[root].has(fullname)]
        spec = PathFinder.find_spec(fullname, beside) or next((spec for spec in other_specs if spec is not None), None)
        if spec is None and path is None:
            spec = PathFinder.find_spec(fullname, self.searched)
        return None if spec is None else self.guarded(spec)

    def guarded(self, spec: ModuleSpec) -> ModuleSpec:
        """Return the spec, with a loader that executes the hashed bytes if its file is watched.

        Raises `NotListedError` for a watched file that is no Python source, unless any file may be imported.
        """
        if spec.origin is None or not spec.has_location:
            return spec
        watched, path = self.watched_of(spec.origin, spec.name)
        if watched is None:
            return spec
        if type(spec.loader) is not SourceFileLoader:  # compiled: its bytes cannot be compared with a list
            if not watched.free:
                raise NotListedError(f"{path} is no Python source, and {_UNLISTED}")
            watched.strange = path
            return spec
        loader = _Loader(spec.name, spec.origin, partial(watched.read, path))
        places = spec.submodule_search_locations
        guarded_spec = spec_from_file_location(spec.name, spec.origin, loader=loader, submodule_search_locations=places)
        assert guarded_spec is not None
        return guarded_spec

    def watched_of(self, file: str, name: str) -> tuple[Watched | None, str]:
        """Return the `Watched` of a module's file, and an absolute path of the file below its root.

        The first is None for unwatched files, for this program's, and for installed packages inside a watched folder.
        Without a root the second is `file`.
        """
        real = _real(file)
        for path in (str(Path(file).absolute()), real):
            roots = [root for root in self._watched if is_below(path, root)]
            if roots and name.partition(".")[0] not in OURS:
                root = max(roots, key=len)
                apart = any(is_below(real, folder) and not is_below(root, folder) for folder in _installed())
                return (None if apart else self._watched[root]), path
        return None, file


importer = Importer()
"""The single importer of the process."""


def is_below(path: str, root: str) -> bool:
    """Return True if a path is `root` or lies below it."""
    return path == root or path.startswith(root.rstrip(os.sep) + os.sep)


@cache
def _installed() -> frozenset[str]:
    """Return the directories of Python's own modules and of installed packages."""
    paths = sysconfig.get_paths()
    own = [paths[name] for name in ("stdlib", "platstdlib", "purelib", "platlib")]
    return frozenset(map(_real, (*own, *site.getsitepackages(), site.getusersitepackages())))


def _root(folder: str, top: str) -> str:
    """Return the path to watch for a top-level module: its folder, or the module itself if installed."""
    if folder not in _installed():
        return folder
    package = Path(folder, top)
    return str(package) if package.is_dir() else f"{package}.py"
