"""Base class of all configuration tables, and the check of their values."""

from collections.abc import Iterable
from functools import cache, reduce
from typing import Annotated

import msgspec

Natural = Annotated[int, msgspec.Meta(ge=0)]
Positive = Annotated[int, msgspec.Meta(ge=1)]
Above0 = Annotated[float, msgspec.Meta(gt=0)]
Check = tuple[str, bool, str]
"""A key, True if its value is valid, and a phrase for the allowed values."""

fields_of = cache(msgspec.structs.fields)
"""Return the fields of a struct type; cached, because msgspec evaluates annotations each time."""


class Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Base class of a configuration's TOML tables, as frozen structs; unknown keys are errors."""

    def checks(self) -> list[Check]:
        """Return a list of (key, True if valid, allowed values as text), one for each rule besides the types."""
        return []

    def unused(self, unused: bool, where: str, *keys: str) -> list[Check]:
        """Return a list of (key, True if valid, allowed values as text) for keys that may have no effect.

        unused  True if the keys have no effect: a key is valid if it has its default; False: all are valid
        where   case in which they have no effect, as the end of a message, such as "without run.strata"
        keys    keys of this table
        """
        usual = {field.encode_name: field.default for field in fields_of(type(self))}
        values = {key: getattr(self, key) for key in keys}
        values |= {key: tuple(value) for key, value in values.items() if isinstance(value, list)}
        return [(key, not unused or values[key] == usual[key], f"left out {where}") for key in keys]


def first_refused(table: msgspec.Struct, checks: Iterable[Check]) -> str | None:
    """Return a sentence about the first key whose value is invalid, or None if all are valid.

    table   struct that holds the values of the keys
    checks  (key, True if valid, allowed values as text) of each key; keys may be dotted, such as "run.strata"
    """
    for key, good, allowed in checks:
        if not good:
            value = reduce(getattr, key.split("."), table)
            return f"{key} = {value!r} is not allowed: it must be {allowed}"
    return None
