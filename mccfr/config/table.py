"""What all tables of a configuration are, and how a key is refused."""

from collections.abc import Iterable
from functools import cache, reduce

import msgspec

Check = tuple[str, bool, str]
"""A key, whether its value is good, and what is allowed."""

fields_of = cache(msgspec.structs.fields)
"""The fields of a kind of struct; msgspec goes through its annotations anew whenever it is asked."""


class Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A TOML table: unknown keys are errors."""

    def checks(self) -> list[Check]:
        """Of its own keys, what types cannot express."""
        return []


def first_refused(table: msgspec.Struct, checks: Iterable[Check]) -> str | None:
    """What is wrong with a table by the first check that fails, in a sentence; None where none does.

    A key may be one of a table inside, as "run.strata".
    """
    for key, good, allowed in checks:
        if not good:
            value = reduce(getattr, key.split("."), table)
            return f"{key} = {value!r} is not allowed: it must be {allowed}"
    return None
