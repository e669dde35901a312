"""What is refused, and in which words: calls one by one, or a table of them that is a test a row."""

import inspect
from collections.abc import Callable

import pytest


def refused(words: str, call: Callable, /, *arguments: object, error: type[Exception] = ValueError, **named: object):
    """Check that a call is refused by one sentence with these words, a regular expression: the sentence."""
    with pytest.raises(error, match=words) as caught:
        call(*arguments, **named)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def refusals(rows: dict[str, Callable], error: type[Exception] = ValueError) -> Callable[..., None]:
    """A test of a table, words to the call that they refuse; what a call takes are fixtures, by name."""

    @pytest.mark.parametrize("words", rows)
    def test(words: str, request: pytest.FixtureRequest) -> None:
        fixtures = inspect.signature(rows[words]).parameters
        refused(words, rows[words], *map(request.getfixturevalue, fixtures), error=error)

    return test
