"""Games, algorithms, variants and evaluation methods of users: what a configuration names from outside of the package.

A name with a colon, `module:object`, is imported when a configuration that holds it is read; any other name that the
package does not know itself is looked for among the entry points of installed packages.  Nothing else is ever imported
by its name: not what a policy, a checkpoint or a journal holds.

A module is looked for beside the configuration first, then where Python looks (`sys.path`).  It is imported once a
process, so two modules of one name cannot meet in it.

What an artefact names - a run, networks - was written by whoever made it, and is not imported for being named: only
from a directory that the user gives with --code (`allow`), or where the user's list of code has exactly this content
(`mccfr.config.code_list`).  What the user's own commands run is added to the list.
"""

import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from hashlib import sha256
from importlib import import_module
from importlib.machinery import ModuleSpec, PathFinder
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec, module_from_spec
from pathlib import Path
from typing import Any, NamedTuple, TypeGuard

from mccfr.config import code_list
from mccfr.config.code_import import OURS, Watched, importer
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

_REFERENCE = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*")
_OBJECTS: dict[tuple[str, str], Any] = {}  # what has been loaded, by group and name
_HERE = "here:"  # names of what only this process has begin so
_ALLOWED: list[Path] = []  # directories that the user has named for code of artefacts


class Permitted(NamedTuple):
    """Where a module may be imported from.

    folder  in which it is found, absolute
    listed  {absolute path: content} of the only files that may be imported from there; None: any
    """

    folder: str
    listed: Mapping[str, bytes] | None = None


_GRANTED: dict[str, Permitted] = {}  # by module, as the coordinator of this worker says
_IMPORTED: dict[str, Permitted] = {}  # by module


@dataclass(frozen=True)
class Source:
    """Where something from outside comes from: its name in the configuration, and the file that defines it."""

    name: str
    file: Path

    @property
    def sha256(self) -> str:
        """Of the file's content."""
        with reading(self.file):
            return sha256(self.file.read_bytes()).hexdigest()


@dataclass(frozen=True)
class Kept:
    """What an artefact says of the code that it names, none of which is a permission.

    where   the artefact, for errors
    sha256  {name: hash of the file that defined it}, by which it is found in the user's list of code
    """

    where: Path
    sha256: Mapping[str, str] = field(default_factory=dict)

    def permitted(self, name: str) -> Permitted:
        """Where the module of a name may be imported from; `ValueError` where it may not."""
        module = name.partition(":")[0]
        if module in _GRANTED:
            return _GRANTED[module]
        for folder in _ALLOWED:
            if _file_in(folder, module) is not None:
                return Permitted(str(folder))
        why = None
        for entry in code_list.find(module, str(self.sha256.get(name, ""))):
            try:
                return Permitted(entry.folder, entry.content())
            except ValueError as error:
                why = str(error)
        why = why or code_list.problem() or "it is not in your list of code"
        raise ValueError(
            f"{self.where} names code of a user's, {shown(name)}, which is not run for being named ({why}): if you "
            "trust it, give the directory of its module with --code DIR"
        )


def allow(folders: Iterable[Path]) -> None:
    """Let modules that artefacts name be imported from these directories."""
    _ALLOWED[:] = [folder.resolve() for folder in folders]


def permissions() -> dict[str, Any]:
    """What this process has imported, in JSON for `grant`: {module: [folder, {file: SHA-256} or None for any file]}."""
    return {
        module: [folder, None if listed is None else code_list.hashes(listed, folder)]
        for module, (folder, listed) in _IMPORTED.items()
    }


def grant(permitted: Mapping[str, Any]) -> None:
    """Let a process do what its coordinator's `permissions` say; `ValueError` where a listed file has changed since."""
    for module, (folder, files) in permitted.items():
        listed = None if files is None else code_list.CodeEntry(module, folder, files).content()
        _GRANTED[module] = Permitted(folder, listed)


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
    return name.partition(":")[0].partition(".")[0] in OURS


def is_reference(name: object) -> TypeGuard[str]:
    """Whether a name is meant as `module:object`."""
    return isinstance(name, str) and ":" in name


def load_named(document: Mapping[str, Any], beside: Sequence[Path] | None = None, kept: Kept | None = None) -> None:
    """Import what a configuration's document names as `module:object`; `ValueError` of one sentence where that fails.

    beside  of the user's own document: directories in which modules are looked for before Python's own places
    kept    of an artefact's document: what it says of its code

    Of a document with neither nothing is imported but what is this program's.
    """
    for table, key, group, name in _named(document):
        if not is_reference(name):
            continue
        if _is_ours(name):
            load(group, name, f"{table}.{key}")
        elif beside is not None:
            load(group, name, f"{table}.{key}", beside)
        elif kept is not None and not is_loaded(group, name):
            permitted = kept.permitted(name)
            load(group, name, f"{table}.{key}", [Path(permitted.folder)], permitted.listed)


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


def load(
    group: str, name: str, key: str, beside: Sequence[Path] = (), listed: Mapping[str, bytes] | None = None
) -> Any:
    """The object that `module:object` names, imported if it is not yet.

    key     who names it, for errors
    beside  directories in which its module is looked for first
    listed  {absolute path: content} of the only files that may be imported from its folder; None: any file may be, and
            what is imported is added to the user's list of code
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
        spec = _spec_beside(top, places, where)
        folder = None if _is_ours(name) else _folder_of(top, spec)
        watched = None if folder is None else importer.watch(folder, top, listed)
        if spec is not None and spec.origin is not None and top not in sys.modules:
            _execute(importer.guarded(spec))
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
    if watched is not None and folder is not None:
        _IMPORTED[module] = Permitted(folder, listed)
        if listed is None:
            _remember(module, folder, watched)
    _OBJECTS[group, name] = getattr(found, attribute)
    return _OBJECTS[group, name]


def _remember(module: str, folder: str, watched: Watched) -> None:
    """Add a module that was imported to the user's list, now and with what it imports later."""

    def write() -> None:
        file = getattr(sys.modules[module], "__file__", None) or ""
        files = {os.path.relpath(path, folder): digest for path, digest in watched.with_imported().items()}
        main = watched.run.get(importer.watched_of(file, module)[1])
        if main is not None and watched.strange is None:
            code_list.add(code_list.CodeEntry(module, folder, files), main)

    write()
    watched.added[module] = write


def _spec_beside(top: str, places: Sequence[Path], where: str) -> ModuleSpec | None:
    """How a top-level module is imported from the first of some directories that has it; None: as any other.

    `ValueError` where another module of its name is imported already.
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


def _folder_of(top: str, spec: ModuleSpec | None) -> str | None:
    """The absolute path of the folder in which a top-level module is found; None for a part of Python itself."""
    if spec is None:
        spec = sys.modules[top].__spec__ if top in sys.modules else find_spec(top)
    if spec is None:
        return None
    found = next(iter(spec.submodule_search_locations or ()), spec.origin if spec.has_location else None)
    return None if found is None else str(Path(found).parent.resolve())


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
    file = getattr(sys.modules.get(module), "__file__", None)
    if file is None or module == "__main__":
        raise ValueError(
            f"{key} = {name!r}: a run needs it in a module of its own, which workers can import: write one"
        )
    return Source(name, Path(file).resolve())


def _module_of(group: str, name: str) -> str:
    """The module that an entry point's object is in."""
    return next(point.module for point in _points(group) if point.name == name)
