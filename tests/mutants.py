"""Planted errors: production modules with a piece of their source text replaced.

`mutant` compiles the changed module beside the original, for tests that call it themselves.  `fails_with` runs tests in
another process in which every import gives the changed module.  Both follow the real code: when the text that they
replace is gone, they raise `ValueError`.
"""

import inspect
import os
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType
from typing import NamedTuple
from unittest.mock import patch

from places import ROOT

from abstraction.kernels import jit

_UNCACHED = {name: jit.decorator(name, cached=False) for name in jit.OPTIONS}


def mutant(original: ModuleType, *edits: tuple[str, str], using: Mapping[str, ModuleType] | None = None) -> ModuleType:
    """Return a copy of a module in which each edit's old text is replaced by its new text.

    `using` gives other mutants to import in place of modules, by dotted name. Kernels are compiled as in production but
    never cached on disk. Raises `ValueError` if a text does not occur exactly once.
    """
    source = edited(original.__name__, inspect.getsource(original), edits)
    module = ModuleType(f"mutant_of_{original.__name__.replace('.', '_')}")
    with (
        patch.multiple(jit, **_UNCACHED),
        patch.dict(sys.modules, {**(using or {}), module.__name__: module}),  # dataclasses look their module up
    ):
        exec(compile(source, f"<{module.__name__}>", "exec"), module.__dict__)
    return module


def edited(name: str, source: str, edits: Iterable[tuple[str, str]]) -> str:
    """Return a module's source with each edit applied; `ValueError` unless a text occurs exactly once."""
    for old, new in edits:
        if source.count(old) != 1:
            raise ValueError(f"{name} holds this text {source.count(old)} times, not once:\n{old}")
        source = source.replace(old, new)
    return source


def source_file(name: str) -> Path:
    """Return the file of one of the project's modules."""
    return ROOT.joinpath(*name.split(".")).with_suffix(".py")


class Defect(NamedTuple):
    """A change of a module, and the tests that must fail with it.

    module  the module, by its dotted name
    old     text that occurs in it exactly once
    new     the text in its place
    what    the defect in a sentence
    test    a file of tests or a node id, relative to `tests/`; one test of it at least must fail
    """

    module: str
    old: str
    new: str
    what: str
    test: str


_PASSED, _FAILED = 0, 1  # pytest's exit codes; others are for tests that could not be run


def fails_with(name: str, edits: Iterable[tuple[str, str]], tests: Iterable[str]) -> bool:
    """Return True if one of the tests fails with the edited module.

    Tests are files below `tests/`, or node ids in them.  Processes that they start get the changed module as well.
    Raises `RuntimeError`, with pytest's output, for tests that cannot be run.
    """
    source = edited(name, source_file(name).read_text(encoding="utf-8"), edits)
    with TemporaryDirectory() as folder:
        changed = Path(folder, "changed.py")
        changed.write_text(source, encoding="utf-8")
        environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST_")}
        environment |= {
            "PYTHONPATH": str(ROOT / "tests" / "planting"),
            "PLANTED_MODULE": name,
            "PLANTED_SOURCE": str(changed),
        }
        options = ["-x", "-q", "-n", "0", "-p", "no:cacheprovider"]
        found = subprocess.run(
            [sys.executable, "-m", "pytest", *options, *(f"tests/{test}" for test in tests)],
            cwd=ROOT,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
    if found.returncode not in (_PASSED, _FAILED):
        raise RuntimeError(f"{name}: pytest ended with {found.returncode}:\n{found.stdout}{found.stderr}")
    return found.returncode == _FAILED
