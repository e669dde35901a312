"""Turns exceptions of users' functions into one sentence with function, place and exception."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from traceback import extract_tb
from typing import Any

_PACKAGES = ("mccfr", "abstraction", "storage")


class UserCodeError(ValueError):
    """A user's function raised an exception (the cause of this one) or returned an invalid value."""

    @property
    def has_traceback(self) -> bool:
        """Return whether the user's function raised an exception, so that there is a traceback to show."""
        return self.__cause__ is not None


def function_name(function: Any) -> str:
    """Return the name of a function or class as `module:name`, or `module:outer.inner` if nested.

    For a `functools.partial` it is the name of the inner function, for other objects that of their class.
    """
    while isinstance(function, partial):
        function = function.func
    if not hasattr(function, "__qualname__"):
        function = type(function)
    return f"{function.__module__}:{function.__qualname__}".replace(".<locals>", "")


def is_foreign(function: Any) -> bool:
    """Return whether a function is defined outside of this project's packages."""
    return function_name(function).partition(":")[0].partition(".")[0] not in _PACKAGES


def user_error(function: Callable[..., Any], error: Exception, where: str = "") -> UserCodeError:
    """Return the `UserCodeError` for an exception of a user's function; the caller raises it from `error`.

    An `error` that is a `UserCodeError` already is returned unchanged.

    where  end of the message, which says where it happened, such as " after the history 'h t'" (a sequence of actions)
    """
    if isinstance(error, UserCodeError):
        return error
    frames = extract_tb(error.__traceback__)
    line = f" ({Path(frames[-1].filename).name}, line {frames[-1].lineno})" if frames else ""
    text = " ".join(str(error).split())
    described = f"{type(error).__name__}: {text}" if text else type(error).__name__
    return UserCodeError(f"{function_name(function)} raised {described}{where}{line}")


@contextmanager
def calling(function: Any, where: str = "") -> Iterator[None]:
    """Within the context, replace exceptions of a user's function by `UserCodeError`.

    Exceptions are not replaced if the function is defined in this project.

    function  the function that the `with` block calls
    where     end of the message, which says where it happened, such as " in iteration 3"
    """
    try:
        yield
    except Exception as error:
        if not is_foreign(function):
            raise
        raise user_error(function, error, where) from error
