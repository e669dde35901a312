"""The examples that the package brings: configurations, experiments, recipes, and the files that they name.

In a clone `mccfr/examples` is a link to `runs/`; an installed package holds copies of the files.  Files that are made,
such as card abstractions, lie beside the configuration that describes them, which must not be inside the package.  So
an example is copied to `runs/` under the current directory before it is run.
"""

import tomllib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from mccfr.config.suggest import did_you_mean
from storage import durable

EXAMPLES = Path(__file__).parents[1] / "examples"
HERE = Path("runs")
"""Where examples are copied to, and looked for first; relative to the current directory."""

CONFIGS, EXPERIMENTS, RECIPES = "", "experiments", "abstractions"
"""Kinds of examples, by the folder that they lie in."""
_FOLDERS = {CONFIGS: "*.toml", EXPERIMENTS: "*.toml", RECIPES: "*.toml", "games": "*.txt"}
_NAMING = (("game", "file"), ("abstraction", "recipe"), ("solver", "trunk"), ("compare", "base"))
"""Keys that name files, or may."""


def example_files(folder: str | None = None) -> list[Path]:
    """All files of the examples, or those of a folder, relative to `EXAMPLES`; the order is that of their names."""
    folders = _FOLDERS if folder is None else (folder,)
    return [path.relative_to(EXAMPLES) for name in folders for path in sorted((EXAMPLES / name).glob(_FOLDERS[name]))]


def find_file(given: Path, folder: str = CONFIGS) -> Path:
    """The file that `given` means: itself; of a name without path and suffix, `runs/NAME.toml`, or else the example.

    folder  where files of the wanted kind lie among the examples

    Raises `ValueError`, with a name that may have been meant, where there is none.
    """
    if given.exists():
        return given
    names = [path.stem for path in example_files(folder)]
    if given.name != str(given) or given.suffix:  # the path of a file, not a name
        near = did_you_mean(given.stem, [*names, *(path.stem for path in given.parent.glob(f"*{given.suffix}"))])
        raise ValueError(f"{given}: no such file{near or '; mccfr init copies the examples to runs/'}")
    for root in (HERE, EXAMPLES):
        path = root / folder / f"{given}.toml"
        if path.is_file():
            return path
    near = did_you_mean(given, names)
    raise ValueError(
        f"{given}: no such file, and no example of that name{near}"
        + ("" if near else f"; there are {', '.join(names)}")
    )


@contextmanager
def own_copy(path: Path) -> Iterator[tuple[Path, bool]]:
    """A file that `find_file` gave as one that may be run, and whether it was copied for that.

    An example is copied to `runs/` with all that it names; what was copied is taken away again where an error says that
    it is not to be run.  Raises `FileExistsError` where other files have their names there.
    """
    made: list[Path] = []
    if EXAMPLES in path.parents:
        name = path.relative_to(EXAMPLES)
        made, path = copy_examples(HERE, list(dict.fromkeys(_with_named(name)))), HERE / name
    try:
        yield path, bool(made)
    except (ValueError, MemoryError, OSError, KeyboardInterrupt):
        for copy in made:
            with suppress(OSError):
                copy.unlink(missing_ok=True)
        for folder in sorted({folder for copy in made for folder in copy.parents if HERE in (folder, *folder.parents)})[
            ::-1
        ]:
            with suppress(OSError):  # other files are in it
                folder.rmdir()
        raise


def _with_named(name: Path) -> Iterator[Path]:
    """A file of the examples, and those that it names, relative to `EXAMPLES`."""
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
    """Copy files of the examples to `directory`, durably; returns the copies that were not there already.

    Raises `FileExistsError` where a file of the name holds something else; nothing is written then.
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
