"""Parses hand ranges such as "AA,AKs:0.5,QQ+,A5s-A2s,AsAh".

Each item is a set of combinations with one weight:

    AA  AKs  AKo  AK     a pair; suited, offsuit and all combinations of two ranks
    AsAh                 one combination
    TT+  A2s+  KTo+      pairs up to aces; the lower card up to one below the higher
    TT-77  A5s-A2s       a run of pairs; a run of lower cards with the same higher card
    76s-54s              a run in which both cards decrease together
    item:0.5             weight of the item, 0 to 1; without it 1

A combination may be named twice only with the same weight.
"""

import re
from collections.abc import Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray

from abstraction.cards import COMBO_COUNT, RANKS, combo_index, combo_table, combo_text, parse_cards

_CLASS = re.compile(f"([{RANKS}])([{RANKS}])([so]?)")
_NUMBER = re.compile(r"(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?")
_SIDE = len(RANKS)
_ALLOWED = "allowed are AA, AK, AKs, AKo, AsAh, TT+, KTo+, TT-77, A5s-A2s and 76s-54s, each with :weight or without"

# A hand class: higher rank, lower rank, and "s", "o" or "" (both, and pairs).
_HandClass = tuple[int, int, str]


@cache
def _members(hand: _HandClass) -> tuple[int, ...]:
    """Return the combinations of a class."""
    high, low, suited = hand
    return tuple(
        combo_index(4 * high + i, 4 * low + j)
        for i in range(4)
        for j in range(4)
        if (i > j if high == low else suited == "" or (i == j) == (suited == "s"))
    )


def _parse_class(text: str) -> _HandClass | None:
    """Return the class that a text such as "AKs" names, or None."""
    match = _CLASS.fullmatch(text)
    if match is None:
        return None
    first, second = RANKS.index(match[1]), RANKS.index(match[2])
    if first == second and match[3]:
        return None
    return max(first, second), min(first, second), match[3]


def _better(hand: _HandClass) -> list[_HandClass]:
    """Return the classes of an item with "+": the class itself and those above it."""
    high, low, suited = hand
    if high == low:
        return [(rank, rank, suited) for rank in range(high, len(RANKS))]
    return [(high, rank, suited) for rank in range(low, high)]


def _between(first: _HandClass, last: _HandClass) -> list[_HandClass] | None:
    """Return the classes from one to the other, in either order, or None if they do not bound a run."""
    (high, low, suited), (other_high, other_low, other_suited) = max(first, last), min(first, last)
    if suited != other_suited or (high == low) != (other_high == other_low):
        return None
    if high == other_high:
        return [(high, rank, suited) for rank in range(other_low, low + 1)]
    if high - low == other_high - other_low:
        return [(high - step, low - step, suited) for step in range(high - other_high + 1)]
    return None


def _item_combos(text: str) -> list[int] | None:
    """Return the combinations that an item without its weight names, or None if it is not an item."""
    if re.fullmatch(f"(?:[{RANKS}][cdhs]){{2}}", text):
        return [combo_index(*parse_cards(text))]
    classes: list[_HandClass] | None = None
    if "-" in text:
        first, last = (_parse_class(part) for part in text.split("-", 1))
        classes = _between(first, last) if first and last else None
    elif text.endswith("+"):
        lowest = _parse_class(text[:-1])
        classes = _better(lowest) if lowest else None
    else:
        single = _parse_class(text)
        classes = [single] if single else None
    return None if classes is None else [combo for hand in classes for combo in _members(hand)]


def parse_range(text: str) -> NDArray[np.float64]:
    """Return the weight of every combination in a range text, [1326] float64 in 0..1.

    Spaces around items are ignored, and the empty text is the empty range.  Raises `ValueError` that quotes the item if
    it is invalid, its weight is not in 0..1, or an earlier item gives a combination another weight.
    """
    weights = np.zeros(COMBO_COUNT)
    named = np.zeros(COMBO_COUNT, np.bool_)
    for item in text.split(",") if text.strip() else []:
        hands, colon, number = (part.strip() for part in item.partition(":"))
        try:
            combos = _item_combos(hands)
        except ValueError as error:  # the same card twice
            raise ValueError(f"range item {item.strip()!r}: {error}") from None
        if combos is None:
            raise ValueError(f"range item {item.strip()!r} is not known: {_ALLOWED}")
        weight = float(number) if _NUMBER.fullmatch(number) else (-1.0 if colon else 1.0)
        if not 0 <= weight <= 1:
            raise ValueError(f"range item {item.strip()!r} has the weight {number!r}: a number from 0 to 1 is needed")
        changed = [combo for combo in combos if named[combo] and weights[combo] != weight]
        if changed:
            raise ValueError(
                f"range item {item.strip()!r} gives {combo_text(changed[0])} the weight {weight!r}, but an earlier "
                f"item gives it {float(weights[changed[0]])!r}: name each hand once, or with one weight"
            )
        weights[combos] = weight
        named[combos] = True
    return weights


def read_range(given: str | Sequence[float]) -> NDArray[np.float64]:
    """Return the weight of every combination, [1326] float64 in 0..1, of a range text or of numbers.

    169 numbers are hand classes by rows: AA AKs .. A2s, AKo KK KQs .. 22.  1,326 numbers are combinations
    (`abstraction.cards`).  In a text, spaces or commas separate numbers.  Raises `ValueError` as `parse_range`, and for
    another count of numbers.
    """
    numbers = given if not isinstance(given, str) else given.replace(",", " ").split()
    if isinstance(given, str) and not (len(numbers) > 1 and all(_NUMBER.fullmatch(str(each)) for each in numbers)):
        return parse_range(given)
    weights = np.array([float(each) for each in numbers])
    if len(weights) not in (_SIDE**2, COMBO_COUNT):
        raise ValueError(f"{len(weights)} numbers are no range: {_SIDE**2} classes or {COMBO_COUNT:,} combinations are")
    bad = np.flatnonzero(~((weights >= 0) & (weights <= 1)))
    if len(bad):
        raise ValueError(f"number {int(bad[0]) + 1} is {weights[bad[0]]:g}: a weight from 0 to 1 is needed")
    if len(weights) == COMBO_COUNT:
        return weights
    return weights[class_of(combo_table())]


def class_names() -> list[str]:
    """Return the hand classes of the usual 13 x 13 grid, row by row: AA AKs .. A2s, AKo KK .. 22."""
    names = []
    for row, column in np.ndindex(_SIDE, _SIDE):
        high, low = RANKS[_SIDE - 1 - min(row, column)], RANKS[_SIDE - 1 - max(row, column)]
        names.append(high + low + ("" if row == column else "s" if row < column else "o"))
    return names


def class_of(hand_cards: NDArray[np.integer]) -> NDArray[np.int64]:
    """Return the index in `class_names` of the class of each hand, [H], from its two cards [H, 2]."""
    rank = _SIDE - 1 - np.asarray(hand_cards, np.int64) // 4
    suited = hand_cards[:, 0] % 4 == hand_cards[:, 1] % 4
    high, low = rank.min(axis=1), rank.max(axis=1)
    return np.where(suited, high * _SIDE + low, low * _SIDE + high)


def hand_class_names(hand_cards: NDArray[np.integer]) -> list[str]:
    """Return the name of the class of each hand, H, from its two cards [H, 2]."""
    names = class_names()
    return [names[number] for number in class_of(hand_cards).tolist()]
