"""Errors of functions that users write: one sentence with the function, the place and the exception."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from traceback import extract_tb
from typing import Any

_PACKAGES = ("mccfr", "abstraction", "storage")


class UserCodeError(ValueError):
    """What a user's function does or returns is refused; an exception that it raised is the cause of this one."""

    @property
    def has_traceback(self) -> bool:
        """Return whether the user's function raised an exception, whose traceback tells more."""
        return self.__cause__ is not None


def function_name(function: Any) -> str:
    """The name of a function or class as `module:name`; functions inside of others are `module:outer.inner`."""
    while isinstance(function, partial):
        function = function.func
    if not hasattr(function, "__qualname__"):
        function = type(function)
    return f"{function.__module__}:{function.__qualname__}".replace(".<locals>", "")


def is_foreign(function: Any) -> bool:
    """Return whether a function is defined outside of this project's packages."""
    return function_name(function).partition(":")[0].partition(".")[0] not in _PACKAGES


def user_error(function: Callable[..., Any], error: Exception, where: str = "") -> UserCodeError:
    """The sentence for an exception of a user's function, to be raised from `error`.

    where  at which point of its work, such as " after the history 'h t'"
    """
    if isinstance(error, UserCodeError):
        return error
    frames = extract_tb(error.__traceback__)
    line = f" ({Path(frames[-1].filename).name}, line {frames[-1].lineno})" if frames else ""
    text = " ".join(str(error).split())
    told = f"{type(error).__name__}: {text}" if text else type(error).__name__
    return UserCodeError(f"{function_name(function)} raised {told}{where}{line}")


@contextmanager
def calling(function: Any, where: str = "") -> Iterator[None]:
    """Raise `UserCodeError` in place of an exception of a user's function, called inside; those of our own pass.

    where  as `user_error` has it
    """
    try:
        yield
    except Exception as error:
        if not is_foreign(function):
            raise
        raise user_error(function, error, where) from error
