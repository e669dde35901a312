"""Reports the progress of evaluations to a callback, which can differ between threads."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

StepCallback = Callable[[str, int, int], None]
"""Called with the name of a step, such as "board", the number of finished steps and the total number."""

_callback: ContextVar[StepCallback | None] = ContextVar("steps_reported", default=None)


@contextmanager
def steps_reported(callback: StepCallback) -> Iterator[None]:
    """Within the context, call `callback` each time an evaluation in this thread finishes a step.

    callback  receives the name of the step, such as "board", the number of finished steps and the total number
    """
    token = _callback.set(callback)
    try:
        yield
    finally:
        _callback.reset(token)


def report_step(step: str, done: int, total: int) -> None:
    """Report to the callback of `steps_reported`, if any, that `done` of `total` steps are finished.

    step  text that names a step, such as "board"

    An evaluation method (`Method`) may call it at any time.
    """
    callback = _callback.get()
    if callback is not None:
        callback(step, done, total)
