"""What a long clustering keeps of itself on its way, so that it can go on where it stood."""

from collections.abc import Callable, Mapping
from typing import Any

from numpy.typing import NDArray

Arrays = Mapping[str, NDArray[Any]]


class Keeper:
    """Keeps nothing: for clusterings that are short, or need not survive the process."""

    def resume(self, phase: str) -> Arrays | None:
        """What was kept last, if it was kept in this phase."""
        return None

    def keep(self, phase: str, arrays: Callable[[], Arrays]) -> None:
        """Offer the state of a phase, which replaces what was kept before; `arrays` is only called if it is wanted."""


NOTHING = Keeper()
