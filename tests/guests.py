"""Imports user code from a folder for the length of a test."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from mccfr.config import plugin_tables, plugins
from mccfr.config.code_import import importer


@contextmanager
def guests_from(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Make modules of a folder importable; after the test, remove them from the import state."""
    with forgetting(folder, monkeypatch):
        monkeypatch.syspath_prepend(folder)
        yield


def forget(*modules: str) -> None:
    """Remove user modules and the records of their imports, as in a new process."""
    for name in modules:
        sys.modules.pop(name, None)
    for known in (plugins._OBJECTS, plugins._IMPORTED, importer._watched, importer.searched):
        known.clear()


@contextmanager
def forgetting(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """After the test, remove the modules that it imported from a folder."""
    before = set(sys.modules)
    monkeypatch.setattr(plugins, "_OBJECTS", {})
    monkeypatch.setattr(plugins, "_IMPORTED", {})
    monkeypatch.setattr(importer, "_watched", {})
    monkeypatch.setattr(importer, "searched", [])
    monkeypatch.setattr(plugin_tables, "_MADE", {})
    yield
    for name in set(sys.modules) - before:
        if str(getattr(sys.modules[name], "__file__", None)).startswith(str(folder)):
            del sys.modules[name]
