"""The page of keys has every key of a configuration and of a recipe, and no other."""

import re

import msgspec
from places import ROOT

from abstraction import recipe
from mccfr.config import games, solvers, tables

TEXT = (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8")
NOT_WRITTEN = {"named"}
"""Of objects from outside: no key of a file."""


def keys() -> set[str]:
    """Every key of every table but of those that only runs of former versions have."""
    found = set()
    for module in (games, solvers, tables, recipe):
        for struct in vars(module).values():
            if isinstance(struct, type) and issubclass(struct, msgspec.Struct) and not getattr(struct, "former", None):
                found |= {field.encode_name for field in msgspec.structs.fields(struct)}
    return found - NOT_WRITTEN


def test_every_key_is_on_the_page():
    shown = set(re.findall(r"`\[*[\w.]*?\.?(\w+)[`\]]", TEXT))
    assert len(keys()) > 100
    assert sorted(keys() - shown) == []


def test_every_key_of_the_page_is_one():
    first_cells = re.findall(r"^\| (`.*?) \|", TEXT, re.MULTILINE)
    shown = {key for cell in first_cells for key in re.findall(r"`(\w+)`", cell)}
    sizes = {"300", "allin"}  # of a menu's table of sizes
    assert len(shown) > 100
    assert sorted(shown - keys() - sizes - {"algorithm", "name", "3x", "3e", "e"}) == []
