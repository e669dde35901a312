"""Runs clean-up code so that its failures neither hide an earlier error nor discard finished work."""

import contextlib
import logging
from collections.abc import Callable, Iterator

from storage.durable import error_text
from storage.open_directory import shown


@contextlib.contextmanager
def closed_after(close: Callable[[], object]) -> Iterator[None]:
    """Call `close` at the end of a `with` block, also if the block raises.

    If the block raised, its error is raised, and errors of `close` are not; an `OSError` of `close` is logged.
    """
    try:
        yield
    except BaseException:
        with contextlib.suppress(Exception), failure_logged("after an error, cleaning up failed too"):
            close()
        raise
    close()


@contextlib.contextmanager
def failure_logged(task: str) -> Iterator[None]:
    """Log an `OSError` in a `with` block as a warning instead of raising it.

    task  beginning of the warning, such as "old checkpoints were not removed"
    """
    try:
        yield
    except OSError as error:
        logging.getLogger("mccfr.cleanup").warning("mccfr: %s: %s", shown(task), shown(error_text(error)))
