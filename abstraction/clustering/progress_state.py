"""The interface through which a long clustering saves its state and resumes."""

from collections.abc import Callable, Mapping
from typing import Any

from numpy.typing import NDArray

Arrays = Mapping[str, NDArray[Any]]


class StateSaver:
    """Saves nothing, for clusterings that are short or need not be resumed.  Subclasses save states."""

    def resume(self, phase: str) -> Arrays | None:
        """Return the last saved state if it belongs to this phase, else None."""
        return None

    def keep(self, phase: str, arrays: Callable[[], Arrays]) -> None:
        """Offer the state of a phase, which replaces the last saved one; `arrays` is called only to save it."""


NOTHING = StateSaver()
