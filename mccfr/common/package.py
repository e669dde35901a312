"""Version and search path of this project; checks that `abstraction` and `storage` are its packages."""

import os
from importlib.util import find_spec
from pathlib import Path

VERSION = "0.2.0"
_HOME = Path(__file__).resolve().parents[2]  # directory that holds the packages
PACKAGES = ("abstraction", "storage")


def search_path() -> str:
    """Return the PYTHONPATH with which a child process imports these packages, not others of their names."""
    return os.pathsep.join(filter(None, [str(_HOME), os.environ.get("PYTHONPATH")]))


def check_packages() -> None:
    """Raise `ImportError` if one of the two packages is missing or hidden by another of its name.

    It imports nothing.  Without the check the import fails later, at a module that the other package lacks.
    """
    for name in PACKAGES:
        try:
            spec = find_spec(name)
        except ValueError:  # a module of that name without a spec is in sys.modules
            spec = None
        origin = spec.origin if spec is not None else None
        folder = None if origin is None else Path(origin).resolve().parent
        if folder != _HOME / name:
            where = "no package" if folder is None else f"the package in {folder}"
            raise ImportError(
                f"mccfr needs its own package {name!r} in {_HOME} and finds {where}: rename or move the other package, "
                "or start Python in another directory",
                name=name,
            )
