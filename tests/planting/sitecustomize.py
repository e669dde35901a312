"""Imports one module from a changed source; `mutants.fails_with` puts this folder on the path.

Python imports `sitecustomize` when it starts, so child processes of tests import the changed module too.
"""

import os
import sys
from importlib.machinery import SourceFileLoader

_MODULE, _SOURCE = os.environ["PLANTED_MODULE"], os.environ["PLANTED_SOURCE"]


class _Loader(SourceFileLoader):
    """Compiles the changed source under the module's own file name, without the cache of compiled files."""

    def get_code(self, fullname):
        with open(_SOURCE, encoding="utf-8") as file:  # noqa: PTH123 - importing pathlib would slow each start
            return compile(file.read(), self.path, "exec")


class _Finder:
    """Finds the changed module; the other finders state its place."""

    @staticmethod
    def find_spec(name, path, target=None):
        if name != _MODULE:
            return None
        others = (finder.find_spec(name, path, target) for finder in sys.meta_path if finder is not _Finder)
        spec = next(found for found in others if found is not None)
        spec.loader = _Loader(name, spec.origin)
        return spec


sys.meta_path.insert(0, _Finder)
