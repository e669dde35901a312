"""Imports one module from another file: `mutants.fails_with` puts this folder first on the path.

Python imports `sitecustomize` at its start, so the processes of tests have the changed module too.
"""

import os
import sys
from importlib.machinery import SourceFileLoader

_MODULE, _SOURCE = os.environ["PLANTED_MODULE"], os.environ["PLANTED_SOURCE"]


class _Loader(SourceFileLoader):
    """Compiles the changed text under the module's own file name, past the cache of compiled files."""

    def get_code(self, fullname):
        with open(_SOURCE, encoding="utf-8") as file:  # noqa: PTH123 - pathlib would slow every start down
            return compile(file.read(), self.path, "exec")


class _Finder:
    """Finds the one module, where the other finders do."""

    @staticmethod
    def find_spec(name, path, target=None):
        if name != _MODULE:
            return None
        others = (finder.find_spec(name, path, target) for finder in sys.meta_path if finder is not _Finder)
        spec = next(found for found in others if found is not None)
        spec.loader = _Loader(name, spec.origin)
        return spec


sys.meta_path.insert(0, _Finder)
