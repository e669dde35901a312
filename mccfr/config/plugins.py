"""Loads user-defined games, algorithms, variants and evaluation methods named in a configuration.

A name `module:object` is imported when a configuration with it is read. Nothing else is imported by name, whether from
a policy, a checkpoint or a journal (a file of finished results).

A module is searched beside the configuration first, then on `sys.path`. Each process imports it once, so a process
cannot use two modules of one name.

Names in an artefact (a run, networks) come from its author, who need not be trusted. Such a module is imported only in
two cases: from a directory that the user gives with --code (`allow`), or if this user has run exactly this content
before. Hashes of the modules that the user's own commands import are kept for that (`mccfr.config.code_list`).
"""

import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from importlib import import_module
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import find_spec, module_from_spec
from pathlib import Path
from typing import Any, NamedTuple, TypeGuard

from mccfr.config import code_list
from mccfr.config.code_import import OURS, Watched, importer
from mccfr.config.value_limits import shown
from storage.damage import reading

GAMES, ALGORITHMS, VARIANTS, METHODS = "mccfr.games", "mccfr.algorithms", "mccfr.variants", "mccfr.methods"
PROGRAMS = "mccfr.programs"
"""Kinds of user-defined objects."""
NAMED = {
    ("game", "name"): GAMES,
    ("solver", "algorithm"): ALGORITHMS,
    ("solver", "variant"): VARIANTS,
    ("evaluation", "method"): METHODS,
}
"""Tables and keys of a configuration that can name user code, with the kind of object."""

_REFERENCE = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*")
_OBJECTS: dict[tuple[str, str], Any] = {}  # loaded objects, by group and name
_HERE = "here:"  # prefix of names of objects that only this process has
_ALLOWED: list[Path] = []  # directories that the user permits for code of artefacts


class Permitted(NamedTuple):
    """Permission to import a user's module from one folder.

    folder  absolute path of the module's folder
    listed  {absolute path: content} of the only files that may be imported from there; None: any file
    """

    folder: str
    listed: Mapping[str, bytes] | None = None


_GRANTED: dict[str, Permitted] = {}  # by module, from the coordinator of this worker
_IMPORTED: dict[str, Permitted] = {}  # by module


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


@dataclass(frozen=True)
class NamedCode:
    """User code that an artefact (a run, networks) names; being named is no permission to import it.

    where   path of the artefact, for messages
    sha256  {name: SHA-256 of the file that defined it}, by which code that this user has run before is recognised
    """

    where: Path
    sha256: Mapping[str, str] = field(default_factory=dict)

    def permitted(self, name: str) -> Permitted:
        """Return the permission to import the module of a name; `ValueError` if there is none."""
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
    """Permit imports, from these directories, of modules that runs and exported networks name.

    Such artefacts can come from another person, so their code is otherwise imported only if this user has run it
    before. A further call replaces the directories of the call before.
    """
    _ALLOWED[:] = [folder.resolve() for folder in folders]


def permissions() -> dict[str, Any]:
    """Return the user modules that this process has imported, so that workers may import them too.

    The result is {module: [its folder, {file: SHA-256} or None]}. Only these files of the folder may be imported; None:
    any file. `grant` reads it in the worker.
    """
    return {
        module: [folder, None if listed is None else code_list.hashes(listed, folder)]
        for module, (folder, listed) in _IMPORTED.items()
    }


def grant(permitted: Mapping[str, Any]) -> None:
    """Permit this worker process the imports of user code that its coordinator has made.

    The coordinator is the process that gives it work.

    permitted  result of `permissions` in the coordinator: {module: [folder, {file: SHA-256} or None]}

    Raises `ValueError` if one of these files is missing or has changed.
    """
    for module, (folder, files) in permitted.items():
        listed = None if files is None else code_list.CodeEntry(module, folder, files).content()
        _GRANTED[module] = Permitted(folder, listed)


def _file_in(folder: Path, module: str) -> Path | None:
    """Return the file of a module below the directory `folder`, or None if it has none.

    module  dotted name of the module
    """
    stem = folder.joinpath(*module.split("."))
    candidates = (stem / "__init__.py", stem.with_name(f"{stem.name}.py"))
    return next((file for file in candidates if file.is_file()), None)


def user_code_names(document: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return a list of (table, key) for each key of a parsed configuration that names user code.

    Names of objects in this program's own packages do not count.
    """
    return [(table, key) for table, key, _, name in _named(document) if is_reference(name) and not _is_ours(name)]


def _named(document: Mapping[str, Any]) -> Iterator[tuple[str, str, str, str]]:
    """Yield (table, key, group, name) for each key of a configuration that can name user code.

    `group` is the kind of object that the key names, such as `GAMES`. `name` is the key's value: `module:object` for
    user code, or the name of one of this program's objects, such as "leduc".
    """
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


def load_user_code(
    document: Mapping[str, Any],
    search_directories: Sequence[Path] | None = None,
    artefact_code: NamedCode | None = None,
) -> None:
    """Import the code that a document names as `module:object`; `ValueError` of one sentence on failure.

    document            parsed configuration
    search_directories  if the user wrote the document: directories searched for modules before `sys.path`
    artefact_code       if the document comes from an artefact (a run, networks): its path and the hashes of its code.
                        Such code is imported only with the user's permission

    With neither, only modules of this program are imported.
    """
    for table, key, group, name in _named(document):
        if not is_reference(name):
            continue
        if _is_ours(name):
            load(group, name, f"{table}.{key}")
        elif search_directories is not None:
            load(group, name, f"{table}.{key}", search_directories)
        elif artefact_code is not None and not is_loaded(group, name):
            permitted = artefact_code.permitted(name)
            load(group, name, f"{table}.{key}", [Path(permitted.folder)], permitted.listed)


def name_of_object(group: str, named: Any) -> str:
    """Return the name of an object given in Python, as a configuration would name it; texts are unchanged.

    group  kind of the object, such as `GAMES`; `find` returns it by group and name

    An object that its module has under its own name is `module:object`, which other processes can import. Others, such
    as those of a notebook cell, get a name that is valid in this process only.
    """
    if isinstance(named, str):
        return named
    module, own = getattr(named, "__module__", ""), getattr(named, "__qualname__", "")
    name = f"{module}:{own}"
    if own == "" or getattr(sys.modules.get(module), own, None) is not named:
        called = getattr(named, "__name__", type(named).__name__)
        name = f"{_HERE}{called if called.isidentifier() else type(named).__name__}_{len(_OBJECTS)}"
    _OBJECTS[group, name] = named
    return name


def load(
    group: str, name: str, key: str, search_directories: Sequence[Path] = (), listed: Mapping[str, bytes] | None = None
) -> Any:
    """Return the object that `name` (`module:object`) names; import its module if necessary.

    group               kind of the object, such as `GAMES`
    key                 dotted key that names it, for errors
    search_directories  directories searched first for its module
    listed              {absolute path: content} of the only files that may be imported from its folder; None: any file
                        may be, and its hash is noted on disk as code that the user has run

    Raises `ValueError`, with one sentence, for a name of another form, a missing module or object, and if the import
    fails. Also if another module with the same top-level name is imported already.
    """
    if name.startswith(_HERE) and (group, name) in _OBJECTS:
        return _OBJECTS[group, name]
    where = f"{key} = {shown(name)}"
    if not _REFERENCE.fullmatch(name) or len(name) > 4 * 255:
        raise ValueError(f"{where} is not written as module:object")
    module, _, attribute = name.partition(":")
    places = [directory.resolve() for directory in search_directories]
    top = module.partition(".")[0]
    spec = _spec_beside(top, places, where)
    try:
        folder = None if _is_ours(name) else _folder_of(top, spec)
        watched = None if folder is None else importer.watch(folder, top, listed)
        if spec is not None and spec.origin is not None and top not in sys.modules:
            _execute(importer.guarded(spec))
        loaded_module = import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            raise ValueError(f"{where}: importing {module} failed: {error}") from error
        tried = "".join(f"{directory}, " for directory in places)
        raise ValueError(
            f"{where}: there is no module {error.name!r} in {tried}the directories of PYTHONPATH or the installed "
            "packages: put it in the directory of the configuration, or install it"
        ) from None
    except Exception as error:  # any exception of the module's own code
        raise ValueError(f"{where}: importing {module} failed: {type(error).__name__}: {error}") from error
    if not hasattr(loaded_module, attribute):
        raise ValueError(f"{where}: {loaded_module.__file__ or module} has no {attribute!r}")
    if watched is not None and folder is not None:
        _IMPORTED[module] = Permitted(folder, listed)
        if listed is None:
            _remember(module, folder, watched)
    _OBJECTS[group, name] = getattr(loaded_module, attribute)
    return _OBJECTS[group, name]


def _remember(module: str, folder: str, watched: Watched) -> None:
    """Note on disk, by hashes, that the user has run a module; do so again after each file it imports.

    module   its name
    folder   absolute path of the folder in which it lies
    watched  record of the files that were imported from there
    """

    def write() -> None:
        file = getattr(sys.modules[module], "__file__", None) or ""
        files = {os.path.relpath(path, folder): digest for path, digest in watched.with_imported().items()}
        main = watched.run.get(importer.watched_of(file, module)[1])
        if main is not None and watched.strange is None:
            code_list.add(code_list.CodeEntry(module, folder, files), main)

    write()
    watched.added[module] = write


def _spec_beside(top: str, search_directories: Sequence[Path], where: str) -> ModuleSpec | None:
    """Return the spec of a top-level module in the first of the directories that has it, or None.

    top                 name of the module
    search_directories  directories to search, in this order
    where               key and name in the configuration, with which the error begins

    Raises `ValueError` if a different module of its name is already imported.
    """
    spec = PathFinder.find_spec(top, [str(directory) for directory in search_directories])
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
    """Return the absolute path of a top-level module's folder; None for a built-in or missing module.

    spec  spec of the module if it was found beside the configuration; None: Python's own search decides
    """
    if spec is None:
        spec = sys.modules[top].__spec__ if top in sys.modules else find_spec(top)
    if spec is None:
        return None
    location = next(iter(spec.submodule_search_locations or ()), spec.origin if spec.has_location else None)
    return None if location is None else str(Path(location).parent.resolve())


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
    """Return the loaded object of a kind (`group`, such as `GAMES`) and a name; None if it is not loaded."""
    return _OBJECTS.get((group, name))


def is_loaded(group: str, name: str) -> bool:
    """Return True if the object of a kind (`group`, such as `GAMES`) and a name is already loaded."""
    return (group, name) in _OBJECTS


def loaded(group: str) -> list[str]:
    """Return the names of all loaded objects of a kind (`group`, such as `GAMES`)."""
    return [name for object_group, name in _OBJECTS if object_group == group]


def sources(document: Mapping[str, Any]) -> dict[tuple[str, str], Source]:
    """Return {(table, key): `Source`} of the loaded objects `module:object` that a configuration names.

    Raises `ValueError` for an object that no file defines, as in a notebook cell: workers cannot import it.
    """
    return {
        (table, key): _source(name, f"{table}.{key}")
        for table, key, group, name in _named(document)
        if (group, name) in _OBJECTS
    }


def _source(name: str, key: str) -> Source:
    module = name.partition(":")[0]
    file = getattr(sys.modules.get(module), "__file__", None)
    if file is None or module == "__main__":
        raise ValueError(
            f"{key} = {name!r}: a run needs it in a module that workers can import: put it in a file of its own"
        )
    return Source(name, Path(file).resolve())
