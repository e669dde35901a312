"""Finds and copies the package's examples: configurations of runs and experiments, and recipes.

A recipe describes how to compute the buckets of hands. In a clone `mccfr/examples` is a link to `runs/`; an installed
package holds copies. Files such as card abstractions are built beside the configuration, and the program must not
write to the package. So it copies an example to `runs/` under the current directory before the example runs.
"""

import tomllib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from mccfr.config.value_limits import did_you_mean
from storage import durable
from storage.damage import reading

EXAMPLES = Path(__file__).parents[1] / "examples"
HERE = Path("runs")
"""Directory to which examples are copied and which is searched first; relative to the current one."""

CONFIGS, EXPERIMENTS, RECIPES = "", "experiments", "abstractions"
"""Kinds of examples, by their folder."""
_FOLDERS = {CONFIGS: "*.toml", EXPERIMENTS: "*.toml", RECIPES: "*.toml", "games": "*.txt"}
_NAMING = (("game", "file"), ("abstraction", "recipe"), ("solver", "trunk"), ("compare", "base"))
"""(table, key) of keys whose values can be file names."""


def example_files(folder: str | None = None) -> list[Path]:
    """Return the sorted paths of all files of the examples, or of one folder, relative to `EXAMPLES`.

    folder  folder below `EXAMPLES`, such as RECIPES; None: all folders
    """
    folders = _FOLDERS if folder is None else (folder,)
    return [path.relative_to(EXAMPLES) for name in folders for path in sorted((EXAMPLES / name).glob(_FOLDERS[name]))]


@reading()
def find_file(name: Path, folder: str = CONFIGS) -> Path:
    """Return the file that `name` names: a path, or the name of a file in `runs/` or of an example.

    folder  kind of example: CONFIGS (of runs), EXPERIMENTS or RECIPES (descriptions of buckets)

    Raises `ValueError`, with the closest name, if there is no such file.  Raises `UnreadableError` if the system cannot
    read a directory.
    """
    if name.exists():
        return name
    names = [path.stem for path in example_files(folder)]
    if name.name != str(name) or name.suffix:  # a path, not a name
        near = did_you_mean(name.stem, [*names, *(path.stem for path in name.parent.glob(f"*{name.suffix}"))])
        raise ValueError(f"{name}: no such file{near or '; mccfr init copies the examples to runs/'}")
    for root in (HERE, EXAMPLES):
        path = root / folder / f"{name}.toml"
        if path.is_file():
            return path
    near = did_you_mean(name, names)
    raise ValueError(
        f"{name}: no such file, and no example of that name{near}" + ("" if near else f"; there are {', '.join(names)}")
    )


@contextmanager
def copy_of_example(path: Path) -> Iterator[tuple[Path, bool]]:
    """Within the context, yield a file's path; if it is an example, first copy it to `runs/`.

    path  file as returned by `find_file`

    Yields (path of the file or of its copy, True if a file was copied). An example is copied with all files that it
    refers to, except those that are there already. If the `with` block raises an error, the new copies are removed, and
    folders that then are empty. Raises `FileExistsError` if files of the same names but other content exist.
    """
    copies: list[Path] = []
    if EXAMPLES in path.parents:
        name = path.relative_to(EXAMPLES)
        copies, path = copy_examples(HERE, list(dict.fromkeys(_with_named(name)))), HERE / name
    try:
        yield path, bool(copies)
    except (ValueError, MemoryError, OSError, KeyboardInterrupt):
        for copy in copies:
            with suppress(OSError):
                copy.unlink(missing_ok=True)
        for folder in sorted(
            {folder for copy in copies for folder in copy.parents if HERE in (folder, *folder.parents)}
        )[::-1]:
            with suppress(OSError):  # other files are in it
                folder.rmdir()
        raise


def _with_named(name: Path) -> Iterator[Path]:
    """Yield the path of an example file and those of files to which its keys refer, at any depth.

    name  path of the example; like all yielded paths, relative to `EXAMPLES`
    """
    yield name
    if name.suffix != ".toml":
        return
    document: dict[str, Any] = tomllib.loads((EXAMPLES / name).read_text(encoding="utf-8"))
    for table, key in _NAMING:
        named = document.get(table, {}).get(key)
        if named is not None and Path(named).suffix:
            below = EXAMPLES.resolve()
            yield from _with_named((below / name.parent / named).resolve().relative_to(below))


def copy_examples(directory: Path, names: list[Path]) -> list[Path]:
    """Copy files of the examples to `directory` durably; return the paths of the copies that were missing.

    names  paths of the files, relative to `EXAMPLES`; each copy has the same path relative to `directory`

    Raises `FileExistsError`, before copying, if a file of the same name has different content.
    """
    missing = []
    for name in names:
        target = directory / name
        if not target.exists():
            missing.append(name)
        elif not target.is_file() or target.read_bytes() != (EXAMPLES / name).read_bytes():
            raise FileExistsError(f"{target} exists and is not the example of that name: move it away, or rename it")
    for name in missing:
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        durable.replace_file(directory / name, (EXAMPLES / name).read_bytes())
    return [directory / name for name in missing]
