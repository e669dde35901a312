"""Games, algorithms, variants and evaluation methods of users: what a configuration names from outside of the package.

A name with a colon, `module:object`, is imported when a configuration that holds it is read; any other name that the
package does not know itself is looked for among the entry points of installed packages.  Nothing else is ever imported
by its name: not what a policy, a checkpoint or a journal holds.

A module is looked for beside the configuration first, then where Python looks (`sys.path`).  It is imported once a
process, so two modules of one name cannot meet in it.

What an artefact names - a run, networks - was written by whoever made it, and is not imported for being named: only
from a file that the run knew, as it was then (`Kept`), or from a directory that the user gives with --code (`allow`).
"""

import logging
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from hashlib import sha256
from importlib import import_module
from importlib.machinery import ModuleSpec, PathFinder
from importlib.metadata import EntryPoint, entry_points
from importlib.util import module_from_spec
from pathlib import Path
from typing import Any, TypeGuard

from mccfr.config.limits import shown
from storage.damage import reading

GAMES, ALGORITHMS, VARIANTS, METHODS = "mccfr.games", "mccfr.algorithms", "mccfr.variants", "mccfr.methods"
PROGRAMS = "mccfr.programs"
"""Groups of entry points."""
NAMED = {
    ("game", "name"): GAMES,
    ("solver", "algorithm"): ALGORITHMS,
    ("solver", "variant"): VARIANTS,
    ("evaluation", "method"): METHODS,
}
"""Where a configuration names something that may come from outside, by table and key."""

PACKAGES = ("mccfr", "abstraction", "storage")
"""Ours: what is in them may always be imported, from where this program is."""

_REFERENCE = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*")
_OBJECTS: dict[tuple[str, str], Any] = {}  # what has been loaded, by group and name
_HERE = "here:"  # names of what only this process has begin so
_ALLOWED: list[Path] = []  # directories that the user has named for code of artefacts


@dataclass(frozen=True)
class Source:
    """Where something from outside comes from.

    name    as the configuration has it
    file    that defines it
    folder  in which its module is found: beside which a configuration would find it
    """

    name: str
    file: Path
    folder: Path

    @property
    def sha256(self) -> str:
        """Of the file's content."""
        with reading(self.file):
            return sha256(self.file.read_bytes()).hexdigest()


@dataclass(frozen=True)
class Kept:
    """What an artefact may have imported.

    where    the artefact, for errors
    folders  directories in which its modules were found when it was made
    sha256   {name: hash of the file that defined it}
    """

    where: Path
    folders: Sequence[Path] = ()
    sha256: Mapping[str, str] = field(default_factory=dict)

    def place_of(self, name: str) -> Path:
        """The directory that a module is to be imported from.

        Raises `ValueError` where it is in none that the user has named, nor as it was in one that the artefact knew.
        """
        module = name.partition(":")[0]
        for folder in _ALLOWED:
            if _file_in(folder, module) is not None:
                return folder
        files = [(folder, file) for folder in self.folders if (file := _file_in(folder, module)) is not None]
        for folder, file in files:
            if folder.is_absolute() and self.sha256.get(name) == sha256(file.read_bytes()).hexdigest():
                logging.getLogger("mccfr.code").warning("mccfr: running %s, which %s names", file, self.where)
                return folder
        changed = f" ({files[0][1]} has changed since {self.where} was made)" if files else ""
        raise ValueError(
            f"{self.where} names code of a user's, {shown(name)}, which is not run for being named{changed}: give the "
            "directory of its module with --code DIR"
        )


def allow(folders: Iterable[Path]) -> None:
    """Let modules that artefacts name be imported from these directories, and from no others."""
    _ALLOWED[:] = [folder.resolve() for folder in folders]


def allowed() -> list[Path]:
    """What `allow` was told."""
    return list(_ALLOWED)


def _file_in(folder: Path, module: str) -> Path | None:
    """The file of a module below a directory."""
    stem = folder.joinpath(*module.split("."))
    found = (stem / "__init__.py", stem.with_name(f"{stem.name}.py"))
    return next((file for file in found if file.is_file()), None)


def guests(document: Mapping[str, Any]) -> list[tuple[str, str]]:
    """(table, key) of what a document names from outside of our packages."""
    return [
        (table, key)
        for table, key, group, name in _named(document)
        if (is_reference(name) and not _is_ours(name)) or name in installed(group)
    ]


def _named(document: Mapping[str, Any]) -> Iterator[tuple[str, str, str, str]]:
    """Table, key, group and text of all that a document names."""
    for (table, key), group in NAMED.items():
        inside = document.get(table)
        name = inside.get(key) if isinstance(inside, Mapping) else None
        if isinstance(name, str):
            yield table, key, group, name


def _is_ours(name: str) -> bool:
    return name.partition(":")[0].partition(".")[0] in PACKAGES


def is_reference(name: object) -> TypeGuard[str]:
    """Whether a name is meant as `module:object`."""
    return isinstance(name, str) and ":" in name


def load_named(document: Mapping[str, Any], beside: Sequence[Path] = (), kept: Kept | None = None) -> None:
    """Import what a configuration's document names as `module:object`; `ValueError` of one sentence where that fails.

    beside  directories in which modules are looked for before Python's own places
    kept    of an artefact's document: what may be imported for it; None: the document is the user's own
    """
    for table, key, group, name in _named(document):
        if not is_reference(name):
            continue
        if _is_ours(name):
            load(group, name, f"{table}.{key}")
        elif kept is None:
            load(group, name, f"{table}.{key}", beside)
        elif not is_loaded(group, name):
            load(group, name, f"{table}.{key}", [kept.place_of(name)])


def given(group: str, thing: Any) -> str:
    """The name of something that is handed over in Python, as a configuration would have it; a text is one already.

    What its module has under its own name is `module:object`, which runs find too; all else, such as what the cell of a
    notebook has made, gets a name that only this process knows.
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
    """The object that `module:object` names, imported if it is not yet; `key` is who names it, for errors."""
    if name.startswith(_HERE) and (group, name) in _OBJECTS:
        return _OBJECTS[group, name]
    where = f"{key} = {shown(name)}"
    if not _REFERENCE.fullmatch(name) or len(name) > 4 * 255:
        raise ValueError(f"{where} is not the name of a module and of something in it: write module:object")
    module, _, attribute = name.partition(":")
    places = [place.resolve() for place in beside]
    spec = _spec_beside(module.partition(".")[0], places, where)
    try:
        if spec is not None:
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
    except Exception as error:  # whatever the module's own code raises
        raise ValueError(f"{where}: importing {module} failed: {type(error).__name__}: {error}") from error
    if not hasattr(found, attribute):
        raise ValueError(f"{where}: {found.__file__ or module} has no {attribute!r}")
    _OBJECTS[group, name] = getattr(found, attribute)
    return _OBJECTS[group, name]


def _spec_beside(top: str, places: Sequence[Path], where: str) -> ModuleSpec | None:
    """How a top-level module is imported from the first of some directories that has it; None: as any other.

    The directories join `sys.path` at its end, for what the module itself imports from beside it: there they hide
    nothing.  `ValueError` where another module of its name is imported already.
    """
    spec = PathFinder.find_spec(top, [str(place) for place in places])
    if spec is None:
        return None
    sys.path.extend(str(place) for place in places if str(place) not in sys.path)
    if spec.origin is None:  # a package without __init__.py: nothing to be executed, and found at the end of the path
        return None
    if top not in sys.modules:
        return spec
    file = getattr(sys.modules[top], "__file__", None)
    if file is None or Path(file).resolve() != Path(spec.origin).resolve():
        raise ValueError(
            f"{where}: {spec.origin} cannot be imported beside {file or 'a part of Python'}, which has the same name: "
            "rename it"
        )
    return None


def _execute(spec: ModuleSpec) -> None:
    """Import a module by its spec."""
    sys.modules[spec.name] = module = module_from_spec(spec)
    assert spec.loader is not None
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[spec.name]
        raise


def find(group: str, name: str) -> Any:
    """What a name stands for: loaded already, or the entry point of an installed package; None where it is neither.

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
    except Exception as error:  # whatever the package's own code raises
        raise ValueError(
            f"{name!r}, an entry point {group} of {_package(points[0])}, cannot be loaded: {type(error).__name__}: "
            f"{error}"
        ) from error
    return _OBJECTS[group, name]


def is_loaded(group: str, name: str) -> bool:
    """Whether `find` has it without importing anything."""
    return (group, name) in _OBJECTS


def loaded(group: str) -> list[str]:
    """The names of what has been loaded."""
    return [name for known, name in _OBJECTS if known == group]


def installed(group: str) -> list[str]:
    """The names of installed packages' entry points, none of which is loaded for it."""
    return sorted({point.name for point in _points(group)})


def _points(group: str) -> Iterable[EntryPoint]:
    """The entry points of a group; looked for again once a place where modules are found is another, or has changed."""
    return _points_in(group, tuple(map(_state, sys.path)))


@cache
def _points_in(group: str, _: tuple[tuple[str, int, int], ...]) -> tuple[EntryPoint, ...]:
    """Of packages as they are now: the file of each is read for it, which takes longer than all else about a config."""
    return tuple(entry_points(group=group))


def _state(place: str) -> tuple[str, int, int]:
    """A place on the path, the number of its folder and when that was changed last."""
    try:
        status = Path(place).stat()
    except OSError:
        return place, 0, 0
    return place, status.st_ino, status.st_mtime_ns


def _package(point: EntryPoint) -> str:
    return "an unknown package" if point.dist is None else point.dist.name


def sources(document: Mapping[str, Any]) -> dict[tuple[str, str], Source]:
    """Where a configuration gets from what it names from outside, by table and key; what is the package's is left out.

    Raises `ValueError` for something that no file defines, such as the cell of a notebook: no other process finds it.
    """
    return {
        (table, key): _source(group, name, f"{table}.{key}")
        for table, key, group, name in _named(document)
        if (group, name) in _OBJECTS
    }


def _source(group: str, name: str, key: str) -> Source:
    module = name.partition(":")[0] if is_reference(name) else str(_module_of(group, name))
    top = sys.modules.get(module.partition(".")[0])
    file = getattr(sys.modules.get(module), "__file__", None)
    if file is None or module == "__main__":
        raise ValueError(
            f"{key} = {name!r}: a run needs it in a module of its own, which workers can import: write one"
        )
    found_as = next(iter(getattr(top, "__path__", [file])))  # a package's directory, or the module itself
    return Source(name, Path(file).resolve(), Path(found_as).resolve().parent)


def _module_of(group: str, name: str) -> str:
    """The module that an entry point's object is in."""
    return next(point.module for point in _points(group) if point.name == name)
