"""Loads user-defined games, algorithms, variants and evaluation methods named in a configuration.

A name `module:object` is imported when a configuration with it is read. Other names unknown to the package are looked
up among the entry points of installed packages. Nothing else is imported by name, whether from a policy, a checkpoint
or a journal.

A module is searched beside the configuration first, then on `sys.path`. It is imported once a process, so a process
cannot use two modules of one name.

Names in an artefact (a run, networks) come from its author, who need not be trusted. Such a module is imported only
from a directory that the user gives with --code (`allow`) or in the environment variable `MCCFR_CODE`.
"""

import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from importlib import import_module
from importlib.machinery import ModuleSpec, PathFinder
from importlib.metadata import EntryPoint, entry_points
from importlib.util import module_from_spec
from pathlib import Path
from typing import Any, TypeGuard

from mccfr.config.value_limits import shown
from storage.damage import reading

OURS = ("mccfr", "abstraction", "storage")
"""Packages of this program, which may always be imported, from where the program is installed."""
ENVIRONMENT = "MCCFR_CODE"
"""Environment variable with further directories for --code, separated as those of PATH."""
GAMES, ALGORITHMS, VARIANTS, METHODS = "mccfr.games", "mccfr.algorithms", "mccfr.variants", "mccfr.methods"
PROGRAMS = "mccfr.programs"
"""Groups of entry points."""
NAMED = {
    ("game", "name"): GAMES,
    ("solver", "algorithm"): ALGORITHMS,
    ("solver", "variant"): VARIANTS,
    ("evaluation", "method"): METHODS,
}
"""Tables and keys of a configuration that can name user code, with their entry point group."""

_REFERENCE = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*")
_OBJECTS: dict[tuple[str, str], Any] = {}  # loaded objects, by group and name
_HERE = "here:"  # prefix of names of objects that only this process has
_ALLOWED: list[Path] = []  # directories that the user permits for code of artefacts


_FOLDERS: dict[str, str] = {}  # absolute path of the folder of each imported or permitted module


@dataclass(frozen=True)
class Source:
    """Origin of a user's object: its name in the configuration, and the file that defines it."""

    name: str
    file: Path

    @property
    def sha256(self) -> str:
        """SHA-256 of the file's content."""
        with reading(self.file):
            return sha256(self.file.read_bytes()).hexdigest()


def allow(folders: Iterable[Path]) -> None:
    """Permit imports, from these directories, of modules that artefacts name."""
    _ALLOWED[:] = [folder.resolve() for folder in folders]


def permissions() -> dict[str, str]:
    """Return the folder of each module that this process has imported, for `grant` in its workers."""
    return dict(_FOLDERS)


def grant(permitted: Mapping[str, str]) -> None:
    """Permit imports from the folders that the coordinator's `permissions` returned."""
    _FOLDERS.update(permitted)


def _permitted(artefact: Path, name: str) -> Path:
    """Return the folder from which the module of a name may be imported; `ValueError` if there is none."""
    module = name.partition(":")[0]
    if module in _FOLDERS:
        return Path(_FOLDERS[module])
    for folder in (*_ALLOWED, *map(Path, filter(None, os.environ.get(ENVIRONMENT, "").split(os.pathsep)))):
        if _file_in(folder, module) is not None:
            return folder
    raise ValueError(
        f"{artefact} names code of a user's, {shown(name)}, which is not run for being named: if you trust it, give "
        f"the directory of its module with --code DIR or in the environment variable {ENVIRONMENT}"
    )


def _file_in(folder: Path, module: str) -> Path | None:
    """Return the file of a module below a directory, or None."""
    stem = folder.joinpath(*module.split("."))
    found = (stem / "__init__.py", stem.with_name(f"{stem.name}.py"))
    return next((file for file in found if file.is_file()), None)


def guests(document: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return (table, key) of all user code that a document names."""
    return [
        (table, key)
        for table, key, group, name in _named(document)
        if (is_reference(name) and not _is_ours(name)) or name in installed(group)
    ]


def _named(document: Mapping[str, Any]) -> Iterator[tuple[str, str, str, str]]:
    """Yield table, key, group and name of all that a document names."""
    for (table, key), group in NAMED.items():
        inside = document.get(table)
        name = inside.get(key) if isinstance(inside, Mapping) else None
        if isinstance(name, str):
            yield table, key, group, name


def _is_ours(name: str) -> bool:
    return name.partition(":")[0].partition(".")[0] in OURS


def is_reference(name: object) -> TypeGuard[str]:
    """Return True if a name contains a colon, as `module:object` does."""
    return isinstance(name, str) and ":" in name


def load_named(document: Mapping[str, Any], beside: Sequence[Path] | None = None, kept: Path | None = None) -> None:
    """Import what a document names as `module:object`; `ValueError` of one sentence if that fails.

    beside  for the user's own document: directories searched for modules before `sys.path`
    kept    for an artefact's document: path of the artefact

    With neither, only modules of this program are imported.
    """
    for table, key, group, name in _named(document):
        if not is_reference(name):
            continue
        if _is_ours(name):
            load(group, name, f"{table}.{key}")
        elif beside is not None:
            load(group, name, f"{table}.{key}", beside)
        elif kept is not None and not is_loaded(group, name):
            load(group, name, f"{table}.{key}", [_permitted(kept, name)])


def given(group: str, thing: Any) -> str:
    """Return the name of an object given in Python, as a configuration would name it; texts are unchanged.

    An object that its module has under its own name is `module:object`, which other processes can import. Others, such
    as those of a notebook cell, get a name that is valid in this process only.
    """
    if isinstance(thing, str):
        return thing
    module, own = getattr(thing, "__module__", ""), getattr(thing, "__qualname__", "")
    name = f"{module}:{own}"
    if own == "" or getattr(sys.modules.get(module), own, None) is not thing:
        called = getattr(thing, "__name__", type(thing).__name__)
        name = f"{_HERE}{called if called.isidentifier() else type(thing).__name__}_{len(_OBJECTS)}"
    _OBJECTS[group, name] = thing
    return name


def load(group: str, name: str, key: str, beside: Sequence[Path] = ()) -> Any:
    """Return the object that `module:object` names, importing it if necessary.

    key     the key that names it, for errors
    beside  directories searched first for its module; they join `sys.path` at its end for the modules that it imports
    """
    if name.startswith(_HERE) and (group, name) in _OBJECTS:
        return _OBJECTS[group, name]
    where = f"{key} = {shown(name)}"
    if not _REFERENCE.fullmatch(name) or len(name) > 4 * 255:
        raise ValueError(f"{where} is not the name of a module and of something in it: write module:object")
    module, _, attribute = name.partition(":")
    places = [place.resolve() for place in beside]
    top = module.partition(".")[0]
    try:
        if not _is_ours(name):
            spec = _spec_beside(top, places, where)
            sys.path.extend(str(place) for place in places if str(place) not in sys.path)
            if spec is not None and spec.origin is not None and top not in sys.modules:
                _execute(spec)
        found = import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            raise ValueError(f"{where}: importing {module} failed: {error}") from error
        tried = "".join(f"{place}, " for place in places)
        raise ValueError(
            f"{where}: there is no module {error.name!r} in {tried}the directories of PYTHONPATH or the installed "
            "packages: put it beside the configuration, or install it"
        ) from None
    except Exception as error:  # any exception of the module's own code
        raise ValueError(f"{where}: importing {module} failed: {type(error).__name__}: {error}") from error
    if not hasattr(found, attribute):
        raise ValueError(f"{where}: {found.__file__ or module} has no {attribute!r}")
    if not _is_ours(name) and (folder := _folder_of(top)) is not None:
        _FOLDERS[module] = folder
    _OBJECTS[group, name] = getattr(found, attribute)
    return _OBJECTS[group, name]


def _spec_beside(top: str, places: Sequence[Path], where: str) -> ModuleSpec | None:
    """Return the spec of a top-level module in the first of the directories that has it, or None.

    Raises `ValueError` if a different module of its name is already imported.
    """
    spec = PathFinder.find_spec(top, [str(place) for place in places])
    if spec is None or spec.origin is None or top not in sys.modules:
        return spec
    file = getattr(sys.modules[top], "__file__", None)
    if file is None or Path(file).resolve() != Path(spec.origin).resolve():
        raise ValueError(
            f"{where}: {spec.origin} cannot be imported beside {file or 'a part of Python'}, which has the same name: "
            "rename it"
        )
    return spec


def _folder_of(top: str) -> str | None:
    """Return the absolute path of an imported top-level module's folder; None for built-in modules."""
    spec = sys.modules[top].__spec__
    if spec is None:
        return None
    found = next(iter(spec.submodule_search_locations or ()), spec.origin if spec.has_location else None)
    return None if found is None else str(Path(found).parent.resolve())


def _execute(spec: ModuleSpec) -> None:
    """Execute a module from its spec, and register it in `sys.modules`."""
    sys.modules[spec.name] = module = module_from_spec(spec)
    assert spec.loader is not None
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[spec.name]
        raise


def find(group: str, name: str) -> Any:
    """Return the object of a name: one already loaded, or an installed package's entry point; else None.

    Raises `ValueError` for an entry point that cannot be loaded.
    """
    if (group, name) in _OBJECTS or is_reference(name):
        return _OBJECTS.get((group, name))
    points = [point for point in _points(group) if point.name == name]
    if not points:
        return None
    if len(points) > 1:
        packages = ", ".join(_package(point) for point in points)
        raise ValueError(f"{name!r} is the name of an entry point {group} of several packages: {packages}: remove one")
    try:
        _OBJECTS[group, name] = points[0].load()
    except Exception as error:  # any exception of the package's own code
        raise ValueError(
            f"{name!r}, an entry point {group} of {_package(points[0])}, cannot be loaded: {type(error).__name__}: "
            f"{error}"
        ) from error
    return _OBJECTS[group, name]


def is_loaded(group: str, name: str) -> bool:
    """Return True if the object is already loaded."""
    return (group, name) in _OBJECTS


def loaded(group: str) -> list[str]:
    """Return the names of all loaded objects of a group."""
    return [name for known, name in _OBJECTS if known == group]


def installed(group: str) -> list[str]:
    """Return the names of installed packages' entry points, without loading them."""
    return sorted({point.name for point in _points(group)})


def _points(group: str) -> Iterable[EntryPoint]:
    """Return the entry points of a group."""
    return _points_in(group, tuple(sys.path))


@cache
def _points_in(group: str, _: tuple[str, ...]) -> tuple[EntryPoint, ...]:
    """Return the entry points of a group, cached, because reading every package's metadata is slow."""
    return tuple(entry_points(group=group))


def _package(point: EntryPoint) -> str:
    return "an unknown package" if point.dist is None else point.dist.name


def sources(document: Mapping[str, Any]) -> dict[tuple[str, str], Source]:
    """Return the origin of all user code that a configuration names, by table and key.

    Raises `ValueError` for an object that no file defines, as in a notebook cell: workers cannot import it.
    """
    return {
        (table, key): _source(group, name, f"{table}.{key}")
        for table, key, group, name in _named(document)
        if (group, name) in _OBJECTS
    }


def _source(group: str, name: str, key: str) -> Source:
    module = name.partition(":")[0] if is_reference(name) else str(_module_of(group, name))
    file = getattr(sys.modules.get(module), "__file__", None)
    if file is None or module == "__main__":
        raise ValueError(
            f"{key} = {name!r}: a run needs it in a module of its own, which workers can import: write one"
        )
    return Source(name, Path(file).resolve())


def _module_of(group: str, name: str) -> str:
    """Return the module of an entry point's object."""
    return next(point.module for point in _points(group) if point.name == name)
