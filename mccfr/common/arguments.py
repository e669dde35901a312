"""Checks arguments of the Python interface against their annotations."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from functools import cache, wraps
from inspect import Parameter, signature
from numbers import Integral, Real
from types import NoneType, UnionType
from typing import Any, ParamSpec, TypeVar, Union, get_args, get_origin, get_type_hints

_WORDS: dict[Any, str] = {
    **{str: "text", int: "a whole number", float: "a number", bool: "True or False", NoneType: "None"},
    **{os.PathLike: "a path", Callable: "a function", Mapping: "a dictionary with texts as keys", Sequence: "a list"},
}
_MOST_SHOWN = 80  # characters of a value in a message

P = ParamSpec("P")
R = TypeVar("R")


def checked(function: Callable[P, R]) -> Callable[P, R]:
    """Decorate a function: check the types of its arguments by their annotations at each call.

    The decorated function raises `TypeError` for an argument of another type, for a missing one and for an unknown
    one.  It raises `ValueError` for text or a path with a null character.
    """
    called = signature(function)
    name = "mccfr." + function.__qualname__.removesuffix(".__init__")
    own = [each for each in called.parameters.values() if each.name != "self"]
    kinds = cache(lambda: get_type_hints(function))  # annotations may name what is imported later

    @wraps(function)
    def check(*arguments: P.args, **named: P.kwargs) -> R:
        try:
            bound = called.bind(*arguments, **named).arguments
        except TypeError as error:
            raise TypeError(f"{name}: {error}; it takes {', '.join(map(_written, own))}") from None
        for each in own:
            if each.name in bound and each.kind is not Parameter.VAR_KEYWORD:
                require(bound[each.name], kinds()[each.name], f"{name}: {each.name}")
        return function(*arguments, **named)

    return check


def check_fields(instance: object, kind: type[Any]) -> None:
    """Raise `TypeError` if the value of a field of a dataclass has a type that its annotation forbids.

    kind  the dataclass; `instance` may be of a class derived from it, whose own fields are not checked

    Raises `ValueError` for text or a path with a null character.
    """
    kinds = get_type_hints(kind)
    for each in fields(kind):
        require(getattr(instance, each.name), kinds[each.name], f"mccfr.{kind.__name__}: {each.name}")


def require(value: object, kind: Any, where: str) -> None:
    """Raise `TypeError` unless a value has an annotated type.

    Items of lists and values of dictionaries are not checked; keys of a `Mapping` must be texts.  An integer is
    accepted as a float; True and False are no numbers.  An array is accepted as a `Sequence`.

    kind   the type, such as `int | None`
    where  name of the value, with which the message begins

    Raises `ValueError` for text or a path with a null character, which the operating system does not take.
    """
    if not _is_of(value, kind):
        shown = " ".join(repr(value).split())
        shown = shown if len(shown) <= _MOST_SHOWN else f"{shown[:_MOST_SHOWN]}..."
        raise TypeError(f"{where} = {shown} is not allowed: give {' or '.join(dict.fromkeys(_words(kind)))}")
    if isinstance(value, str | os.PathLike) and "\0" in str(value):
        raise ValueError(f"{where} = {str(value)!r} is not allowed: it has a null character")


def _written(parameter: Parameter) -> str:
    """Return a parameter's form in a call, for messages: `seed=` if it is given by name only."""
    if parameter.kind is Parameter.VAR_KEYWORD:
        return f"other {parameter.name}="
    return parameter.name + "=" * (parameter.kind is Parameter.KEYWORD_ONLY)


def _parts(kind: Any) -> tuple[Any, tuple[Any, ...]]:
    """Return (origin, type arguments) of a type: (list, (int,)) for list[int].

    For a union the result is (Union, its member types).
    """
    origin = get_origin(kind) or kind
    return (Union if origin is UnionType else origin), get_args(kind)


def _is_of(value: object, kind: Any) -> bool:
    """Return whether a value is of the type `kind`; items of lists and values of mappings are not checked.

    Arrays and other objects with `tolist` count as sequences.  True and False are no numbers.
    """
    origin, inside = _parts(kind)
    if origin is Any or isinstance(origin, TypeVar):
        return True
    if origin is Union:
        return any(_is_of(value, part) for part in inside)
    if origin is type:
        base = inside[0] if inside else object
        return isinstance(value, type) and (not isinstance(base, type) or issubclass(value, base))
    if origin is Sequence:
        return (isinstance(value, Sequence) or hasattr(value, "tolist")) and not isinstance(value, str | bytes)
    if origin is Mapping:
        return isinstance(value, Mapping) and all(isinstance(key, str) for key in value)
    if origin in (int, float):
        return isinstance(value, Integral if origin is int else Real) and not isinstance(value, bool)
    if origin is Callable:
        return callable(value)
    return isinstance(value, origin)


def _words(kind: Any) -> list[str]:
    """Return descriptions of the values that a type allows, such as "a whole number", for messages."""
    origin, inside = _parts(kind)
    if origin is Union:
        return [word for part in inside for word in _words(part)]
    if origin is type:
        return [f"a class derived from {inside[0].__name__}"]
    if origin in _WORDS:
        return [_WORDS[origin]]
    return [f"{'an' if origin.__name__[0] in 'AEIOU' else 'a'} {origin.__name__}"]
