"""Imports users' modules from the bytes that were hashed, and records the imported files.

A module's source is read once: the bytes compiled are those that were hashed. Hashes of modules that the user has run
are kept in a folder, the user's list of code (`mccfr.config.code_list`). Compiled files in `__pycache__` are not used.
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
    """Raised for the import of a file that this user has not run before, and that needs permission.

    Hashes of files that the user has run are kept on disk, the user's list of code.
    """


@dataclass
class Watched:
    """Modules below one path, which the `Importer` executes from the very bytes that were hashed.

    root     absolute path of a folder, or of an installed package's own directory or file
    free     True if any file below `root` may be imported; False: only those in `listed`
    listed   {absolute path: content} of files that the user has run before and that are not imported yet
    run      {absolute path: SHA-256} of the imported files that were not in `listed`; `with_imported` adds all others
    added    {module: function that is called after each further file is imported}
    strange  path of an imported file that is no Python source, such as compiled code; None: no such file
    """

    root: str
    free: bool = False
    listed: dict[str, bytes] = field(default_factory=dict)
    run: dict[str, str] = field(default_factory=dict)
    added: dict[str, Callable[[], None]] = field(default_factory=dict)
    strange: str | None = None

    def read(self, path: str) -> bytes:
        """Return the bytes of a module's source file, which are then executed.

        path  absolute path of the file

        The hash of a file that is not in `listed` is noted in `run`. Raises `NotListedError` unless `free` is True or
        `listed` has the file.
        """
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
        """Return True if `listed` has the file of top-level module `name`, directly below `root`.

        If so, this file is preferred to another module of the same name on `sys.path`.
        """
        return any(str(Path(self.root, file)) in self.listed for file in (f"{name}.py", f"{name}/__init__.py"))

    def with_imported(self) -> dict[str, str]:
        """Add the hashes of all other imported files below `root` to `run`; return it.

        The result is {absolute path: SHA-256}.
        """
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
    """Executes a module from the bytes that were hashed: those that the function `read` returns."""

    def __init__(self, name: str, path: str, read: Callable[[], bytes]) -> None:
        super().__init__(name, path)
        self._read = read

    def get_code(self, fullname: str) -> CodeType:
        """Return the compiled source of the module; no files of compiled code are read or written."""
        code: CodeType = self.source_to_code(self._read(), self.path)
        return code


class Importer(MetaPathFinder):
    """Finds modules as Python does, then in folders of configurations (a `sys.meta_path` finder).

    Below the paths given to `watch`, it executes modules from the bytes that were hashed.
    """

    def __init__(self) -> None:
        self.searched: list[str] = []
        self._watched: dict[str, Watched] = {}

    def watch(self, folder: str, top: str, listed: Mapping[str, bytes] | None) -> Watched:
        """From now on import the modules of a folder from hashed bytes; return the record of them.

        folder  absolute path
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
        """Return a module's spec, as Python's import asks for it; None if no module is found.

        If the module lies below a path given to `watch`, its loader executes the bytes that were hashed.
        """
        others = [getattr(finder, "find_spec", None) for finder in sys.meta_path if finder is not self]
        other_specs = (find(fullname, path, target) for find in others if find is not None)
        beside = [] if path is not None else [root for root in self.searched if self._watched[root].has(fullname)]
        spec = PathFinder.find_spec(fullname, beside) or next((spec for spec in other_specs if spec is not None), None)
        if spec is None and path is None:
            spec = PathFinder.find_spec(fullname, self.searched)
        return None if spec is None else self.guarded(spec)

    def guarded(self, spec: ModuleSpec) -> ModuleSpec:
        """Return a module's spec; below a path given to `watch`, with a loader that executes the hashed bytes.

        spec  spec that Python's own search found

        Raises `NotListedError` for a file below such a path that is no Python source, unless any file there may be
        imported.
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
        """Return (record (`Watched`) of the folder that contains a module's file, path of the file).

        The first is None if no folder given to `watch` contains the file. It is also None for modules of this program,
        and for installed packages inside such a folder. The second is an absolute path below the folder; `file` itself
        if there is no folder, and for this program.

        file  path of the module's file
        name  name of the module
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
    """Return the path below which files are imported from hashed bytes, for a top-level module.

    It is the folder in which the module lies; for an installed package, the package's own directory or file.
    """
    if folder not in _installed():
        return folder
    package = Path(folder, top)
    return str(package) if package.is_dir() else f"{package}.py"
