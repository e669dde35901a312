"""Checks error messages: of single calls, or of tables with one test for each row."""

import inspect
import re
from collections.abc import Callable

import pytest


def refused(words: str, call: Callable, /, *arguments: object, error: type[Exception] = ValueError, **named: object):
    """Check that a call fails with a one-sentence message that matches a regular expression."""
    with pytest.raises(error) as caught:
        call(*arguments, **named)
    message = str(caught.value)
    assert "\n" not in message and (words in message or re.search(words, message)), message
    return message


def refusals(*rows: tuple, call: Callable | None = None, error: type[Exception] = ValueError) -> Callable[..., None]:
    """Return a test of rows (words, call, arguments); missing arguments are fixtures.

    call  function of all rows, if the rows have none
    """

    @pytest.mark.parametrize("row", rows, ids=[row[0] for row in rows])
    def test(row: tuple, request: pytest.FixtureRequest) -> None:
        words, *given = row
        function = call or given.pop(0)
        lacking = list(inspect.signature(function).parameters.values())[len(given) :]
        fixtures = [it.name for it in lacking if it.default is it.empty and it.kind is it.POSITIONAL_OR_KEYWORD]
        refused(words, function, *given, **{name: request.getfixturevalue(name) for name in fixtures}, error=error)

    return test
