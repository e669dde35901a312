"""Imports users' modules out of the bytes that were hashed, and knows which files were imported from a folder.

A module's source is read once: what is compiled is what was compared with the user's list (`mccfr.config.code_list`) or
is written to it.  Compiled files of `__pycache__` are not used.
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
"""Packages of this program: what is in them may always be imported, from where the program is."""

_UNLISTED = "not in your list of code: give the directory with --code DIR"
_real = cache(os.path.realpath)


class NotListedError(ImportError):
    """A file that the user's list of code does not have."""


@dataclass
class Watched:
    """Files whose modules are imported out of the bytes that were hashed.

    root     the absolute path of a folder, or of an installed package's own directory or file
    free     any file may be imported, not only those that are listed
    listed   {absolute path: content} of what the user's list has, until it is imported
    run      {absolute path: SHA-256} of further files that have been imported
    added    {module: called after each further file that was imported}
    strange  a file that was imported and is no Python source, which no list can have
    """

    root: str
    free: bool = False
    listed: dict[str, bytes] = field(default_factory=dict)
    run: dict[str, str] = field(default_factory=dict)
    added: dict[str, Callable[[], None]] = field(default_factory=dict)
    strange: str | None = None

    def read(self, path: str) -> bytes:
        """The content of a module's file, which is about to be run; `NotListedError` for one that may not be."""
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
        """Return whether a top-level module is one of those that are listed: no other of its name takes its place."""
        return any(str(Path(self.root, file)) in self.listed for file in (f"{name}.py", f"{name}/__init__.py"))

    def with_imported(self) -> dict[str, str]:
        """`run`, and the files of modules that were imported in another way before."""
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
    """Runs a module's source as `Watched.read` gives it."""

    def __init__(self, name: str, path: str, read: Callable[[], bytes]) -> None:
        super().__init__(name, path)
        self._read = read

    def get_code(self, fullname: str) -> CodeType:
        """Compile the source; no compiled file is read or written."""
        code: CodeType = self.source_to_code(self._read(), self.path)
        return code


class Importer(MetaPathFinder):
    """Finds modules as Python does, then in the folders of configurations; loads those of watched files."""

    def __init__(self) -> None:
        self.searched: list[str] = []
        self._watched: dict[str, Watched] = {}

    def watch(self, folder: str, top: str, listed: Mapping[str, bytes] | None) -> Watched:
        """Watch the folder of a top-level module; without a list any of its files may be imported from now on."""
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
        """As `importlib.abc.MetaPathFinder.find_spec`."""
        others = [getattr(finder, "find_spec", None) for finder in sys.meta_path if finder is not self]
        found = (find(fullname, path, target) for find in others if find is not None)
        beside = [] if path is not None else [root for root in self.searched if self._watched[root].has(fullname)]
        spec = PathFinder.find_spec(fullname, beside) or next((spec for spec in found if spec is not None), None)
        if spec is None and path is None:
            spec = PathFinder.find_spec(fullname, self.searched)
        return None if spec is None else self.guarded(spec)

    def guarded(self, spec: ModuleSpec) -> ModuleSpec:
        """The spec with a loader that runs what was hashed, if its file is watched."""
        if spec.origin is None or not spec.has_location:
            return spec
        watched, path = self.watched_of(spec.origin, spec.name)
        if watched is None:
            return spec
        if type(spec.loader) is not SourceFileLoader:  # compiled: it cannot be run out of bytes that were compared
            if not watched.free:
                raise NotListedError(f"{path} is no Python source, and {_UNLISTED}")
            watched.strange = path
            return spec
        loader = _Loader(spec.name, spec.origin, partial(watched.read, path))
        places = spec.submodule_search_locations
        found = spec_from_file_location(spec.name, spec.origin, loader=loader, submodule_search_locations=places)
        assert found is not None
        return found

    def watched_of(self, file: str, name: str) -> tuple[Watched | None, str]:
        """What watches a module's file, and the file's path there.

        None: nothing, as for files of an installation that lies in a watched folder.
        """
        real = _real(file)
        for path in (str(Path(file).absolute()), real):
            roots = [root for root in self._watched if is_below(path, root)]
            if roots and name.partition(".")[0] not in OURS:
                root = max(roots, key=len)
                apart = any(is_below(real, place) and not is_below(root, place) for place in _installed())
                return (None if apart else self._watched[root]), path
        return None, file


importer = Importer()
"""The only one of a process."""


def is_below(path: str, root: str) -> bool:
    """Return whether a path is `root` or lies in it."""
    return path == root or path.startswith(root.rstrip(os.sep) + os.sep)


@cache
def _installed() -> frozenset[str]:
    """Where Python's own modules and installed packages lie."""
    paths = sysconfig.get_paths()
    own = [paths[name] for name in ("stdlib", "platstdlib", "purelib", "platlib")]
    return frozenset(map(_real, (*own, *site.getsitepackages(), site.getusersitepackages())))


def _root(folder: str, top: str) -> str:
    """What is watched for a top-level module: its folder, or itself alone where that is one of installed packages."""
    if folder not in _installed():
        return folder
    package = Path(folder, top)
    return str(package) if package.is_dir() else f"{package}.py"
