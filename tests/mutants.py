"""Planted errors: production modules with a piece of their source text replaced, compiled afresh beside the original.

A mutant follows the real code: when the text it replaces is gone, building it fails and the test with it.
"""

import inspect
import sys
from collections.abc import Mapping
from types import ModuleType
from unittest.mock import patch

from abstraction.kernels import jit

_UNCACHED = {name: jit.decorator(name, cached=False) for name in jit.OPTIONS}


def mutant(original: ModuleType, *edits: tuple[str, str], using: Mapping[str, ModuleType] | None = None) -> ModuleType:
    """A copy of a module with each edit's old text, which must occur exactly once, replaced by its new text.

    `using` gives other mutants to import in place of modules, by dotted name.  Kernels are compiled as in production
    but never cached on disk.  Raises `ValueError` when a text does not occur exactly once.
    """
    source = inspect.getsource(original)
    for old, new in edits:
        if source.count(old) != 1:
            raise ValueError(f"{original.__name__} holds this text {source.count(old)} times, not once:\n{old}")
        source = source.replace(old, new)
    module = ModuleType(f"mutant_of_{original.__name__.replace('.', '_')}")
    with (
        patch.multiple(jit, **_UNCACHED),
        patch.dict(sys.modules, {**(using or {}), module.__name__: module}),  # dataclasses look their module up
    ):
        exec(compile(source, f"<{module.__name__}>", "exec"), module.__dict__)
    return module
