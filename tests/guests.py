"""Imports user code from a folder for the length of a test."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from mccfr.config import plugin_tables, plugins


@contextmanager
def guests_from(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Make modules of a folder importable, and forget them afterwards."""
    with forgetting(folder, monkeypatch):
        monkeypatch.syspath_prepend(folder)
        yield


def forget(*modules: str) -> None:
    """Have modules of users unknown as in another process."""
    for name in modules:
        sys.modules.pop(name, None)
    plugins._OBJECTS.clear()
    plugins._FOLDERS.clear()


@contextmanager
def forgetting(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Forget the modules imported from a folder, and the permissions, after the test."""
    before = set(sys.modules)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(plugins, "_OBJECTS", {})
    monkeypatch.setattr(plugins, "_FOLDERS", {})
    monkeypatch.setattr(plugin_tables, "_MADE", {})
    yield
    plugins.allow(())
    for name in set(sys.modules) - before:
        if str(getattr(sys.modules[name], "__file__", None)).startswith(str(folder)):
            del sys.modules[name]
