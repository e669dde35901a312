"""What is refused, and in which words: calls one by one, or a table of them that is a test a row."""

import inspect
from collections.abc import Callable

import pytest


def refused(words: str, call: Callable, /, *arguments: object, error: type[Exception] = ValueError, **named: object):
    """Check that a call is refused by one sentence with these words, a regular expression; returns it."""
    with pytest.raises(error, match=words or None) as caught:
        call(*arguments, **named)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def refusals(*rows: tuple, error: type[Exception] = ValueError) -> Callable[..., None]:
    """A test of rows (words, call, what it takes): with nothing given a call takes fixtures, as its parameters say."""

    @pytest.mark.parametrize("row", rows, ids=[row[0] for row in rows])
    def test(row: tuple, request: pytest.FixtureRequest) -> None:
        words, call, *given = row
        needed = {} if given else inspect.signature(call).parameters
        fixtures = [name for name, parameter in needed.items() if parameter.default is parameter.empty]
        refused(words, call, *given, *map(request.getfixturevalue, fixtures), error=error)

    return test
