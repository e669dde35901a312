"""What somebody may have meant who wrote a name that is none."""

from collections.abc import Iterable
from difflib import get_close_matches


def did_you_mean(given: object, known: Iterable[str]) -> str:
    """The end of a message about an unknown name: "; did you mean 'linear'?", or nothing where no name is near."""
    names = {name.lower(): name for name in known}
    near = get_close_matches(str(given).lower(), names, n=1)
    return f"; did you mean {names[near[0]]!r}?" if near else ""
