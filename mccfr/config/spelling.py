"""Suggests the closest valid name for a misspelt one."""

from collections.abc import Iterable
from difflib import get_close_matches


def did_you_mean(given: object, known: Iterable[str]) -> str:
    """Return the end of a message, such as "; did you mean 'linear'?", or "" if no name is close."""
    names = {name.lower(): name for name in known}
    near = get_close_matches(str(given).lower(), names, n=1)
    return f"; did you mean {names[near[0]]!r}?" if near else ""
