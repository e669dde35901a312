"""Parses hand ranges in the notations of poker programs, such as "AA,AKs:0.5,QQ+,A5s-A2s,AsAh".

An item is a set of combinations with one weight.  Commas, semicolons, blanks and line breaks separate items:

    AA  AKs  AKo  AK     a pair; suited, offsuit and all combinations of two ranks; also AxKx, AxKy and AxAy
    AsAh  A♠K♥  10s9s    one combination; a suit is a letter or a symbol, and 10 is T
    TT+  A2s+  KTo+      pairs up to aces; the lower card up to one below the higher; Axs is A2s+
    TT-  A5s-            pairs down to deuces; the lower card down to 2
    TT-77  A5s-A2s       a run of pairs; a run of lower cards with the same higher card
    76s-54s              a run in which both cards decrease together
    20%  5%-20%          best hands by equity against a random hand, as many whole classes as the share holds
    random  any two  *   every combination
    item:0.5  item:50%   weight of the item, without it 1 (PioSOLVER, GTO Wizard); item@50 is 50 %
    [50]AA,KK[/50]       weight in per cent of several items (GTO+, Flopzilla); 40%(AA,KK) and 0.4(AA,KK) (eval7)

Case does not matter.  A combination may be named twice only with the same weight.  A text with two meanings is refused.
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray

from abstraction.cards import COMBO_COUNT, RANKS, combo_index, combo_table, combo_text, parse_cards, plain_suits

_LETTERS = RANKS.lower()
_CLASS = f"([{_LETTERS}])([{_LETTERS}])([so]?)"
_ITEM = re.compile(f"({_CLASS})(?:([+-])|-({_CLASS}))?")
_NUMBER = re.compile(r"(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?")
_TOP = re.compile(r"(?:(\d+\.?\d*|\.\d+)%?-)?(\d+\.?\d*|\.\d+)%")
_TAG = re.compile(r"\[(/?)([\d.]*)(%?)\]")
_GROUP = re.compile(r"([\d.]+)(%?)\(([^()]*)\)")
_EVERY = ("random", "any", "all", "atc", "*", "**", "xx", "xxxx")
_SIDE = len(RANKS)
_ALLOWED = (
    "allowed are AA, AK, AKs, AKo, AsAh, TT+, KTo+, TT-77, A5s-A2s, 76s-54s and 20%, each with :weight or without"
)
_BY_EQUITY = """
AA KK QQ JJ TT 99 88 AKs 77 AQs AJs AKo ATs AQo AJo KQs 66 A9s ATo KJs A8s KTs KQo A7s A9o KJo 55 QJs K9s A5s A6s A8o
KTo QTs A4s A7o K8s A3s QJo K9o A5o A6o Q9s K7s JTs A2s QTo 44 A4o K6s K8o Q8s A3o K5s J9s Q9o JTo K7o A2o K4s Q7s K6o
K3s T9s J8s 33 Q6s Q8o K5o J9o K2s Q5s T8s K4o J7s Q4s Q7o T9o J8o K3o Q6o Q3s 98s T7s J6s K2o 22 Q2s Q5o J5s T8o J7o
Q4o 97s J4s T6s J3s Q3o 98o 87s T7o J6o 96s J2s Q2o T5s J5o T4s 97o 86s J4o T6o 95s T3s 76s J3o 87o T2s 85s 96o J2o T5o
94s 75s T4o 93s 86o 65s 84s 95o T3o 92s 76o 74s T2o 54s 85o 64s 83s 94o 75o 82s 73s 93o 65o 53s 63s 84o 92o 43s 74o 72s
54o 64o 52s 62s 83o 42s 82o 73o 53o 63o 32s 43o 72o 52o 62o 42o 32o
"""
"""Hand classes by exact all-in equity against one random hand, the best first."""

# A hand class: higher rank, lower rank, and "s", "o" or "" (both, and pairs).
_HandClass = tuple[int, int, str]


@cache
def _members(hand: _HandClass) -> tuple[int, ...]:
    """Return the combination numbers, 0 to 1,325, of a hand class such as (12, 11, "s"), AKs."""
    high, low, suited = hand
    return tuple(
        combo_index(4 * high + i, 4 * low + j)
        for i in range(4)
        for j in range(4)
        if (i > j if high == low else suited == "" or (i == j) == (suited == "s"))
    )


def _hand_class(first: str, second: str, suited: str) -> _HandClass | None:
    """Return the hand class (higher rank, lower rank, suited) of two rank letters in lower case.

    `suited` is "s", "o" or "" (both).  Ranks are 0 to 12.  The result is None for a pair with "s" or "o".
    """
    ranks = _LETTERS.index(first), _LETTERS.index(second)
    return None if first == second and suited else (max(ranks), min(ranks), suited)


def _onward(hand: _HandClass, sign: str) -> list[_HandClass]:
    """Return the hand classes of an item such as "TT+" or "A5s-".

    hand  the item's own class: (higher rank, lower rank, suited), such as (12, 3, "s") for A5s
    sign  "+" or "-": adds the higher or lower pairs, or the classes with a higher or lower second card

    Raises `ValueError` for connectors such as 76s, whose items with a sign have two meanings in different programs.
    """
    high, low, suited = hand
    if high == low:
        return [(rank, rank, suited) for rank in (range(high, _SIDE) if sign == "+" else range(high + 1))]
    if high - low == 1 and (high < _SIDE - 1 if sign == "+" else low > 0):
        name, lowest = (f"{RANKS[high]}{RANKS[rank]}{suited}" for rank in (low, 0))
        kicker, both = (name, f"{name}-AK{suited}") if sign == "+" else (f"{name}-{lowest}", f"{name}-32{suited}")
        raise ValueError(
            f"it can mean {kicker}, if only the lower card moves, or {both}, if both move (postflop-solver): write the "
            "one that you mean"
        )
    return [(high, rank, suited) for rank in (range(low, high) if sign == "+" else range(low + 1))]


def _between(first: _HandClass, last: _HandClass) -> list[_HandClass] | None:
    """Return the hand classes from `first` to `last`, such as A2s to A5s; None if they form no run.

    A class is (higher rank, lower rank, suited).  A run changes only the lower card, or both cards of a hand (also of a
    pair) by equal steps.  `first` and `last` are included and may come in either order.
    """
    (high, low, suited), (other_high, other_low, other_suited) = max(first, last), min(first, last)
    if suited != other_suited or (high == low) != (other_high == other_low):
        return None
    if high == other_high:
        return [(high, rank, suited) for rank in range(other_low, low + 1)]
    if high - low == other_high - other_low:
        return [(high - step, low - step, suited) for step in range(high - other_high + 1)]
    return None


def _top(share: float) -> list[_HandClass]:
    """Return the best hand classes by equity against a random hand, as many as fit in `share`.

    `share` is a fraction, 0 to 1, of the 1,326 combinations.  The first class that does not fit ends the list.
    """
    classes, remaining = list[_HandClass](), share * COMBO_COUNT
    for name in _BY_EQUITY.split():
        hand = _hand_class(name[0].lower(), name[1].lower(), name[2:])
        remaining -= len(_members(hand)) if hand else 0
        if hand is None or remaining < -1e-9:
            break
        classes.append(hand)
    return classes


_TWO_MEANINGS = {
    f"([{_LETTERS}])[cdhs]": "half of one combination, which is written without a blank, or all hands with this card",
    "(a)x": "A2+ without the pair of aces, or A2+,AA",
    f"([{_LETTERS}])x([so]?)": "the hands whose higher card is {0} ({0}2{1}+), or all hands with {0}",
    r"([2-9])(?!\1)([2-9])": "two ranks, of which the higher is written first ({1}{0}), or the best {0}{1}% of hands",
    r"(\d*\.?\d+|\d+\.)": "the weight of the item before it, as in AKs:0.5, or the best {0}% of hands",
}
"""Items in lower case with two meanings, as regular expressions, and the meanings."""


def _refuse_two_meanings(name: str) -> None:
    """Raise `ValueError` with both meanings of an item that has two, such as "ax" or "0.5".

    `name` is the item in lower case, without its weight.
    """
    if re.fullmatch("[2-9]{2}", name) and name[0] >= name[1]:  # two ranks, the higher first
        return
    for pattern, meanings in _TWO_MEANINGS.items():
        if match := re.fullmatch(pattern, name):
            first, *suited = match.groups()
            raise ValueError(f"it can mean {meanings.format(first.upper(), *suited)}: write the one that you mean")


def _item_combos(text: str) -> Sequence[int] | None:
    """Return the combination numbers, 0 to 1,325, that an item of a range text names.

    The item, such as "A5s-A2s", has no weight.  The result is None if the text is not an item.  Raises `ValueError` for
    an item with two meanings, the same card twice, or invalid shares of the best hands.
    """
    name = text.lower()
    if name in _EVERY:
        return range(COMBO_COUNT)
    if top := _TOP.fullmatch(name):
        best, without = float(top[2]), float(top[1] or 0)
        if not without < best <= 100:
            raise ValueError("shares of the best hands go from 0% to 100%, the smaller first")
        classes: list[_HandClass] | None = [hand for hand in _top(best / 100) if hand not in _top(without / 100)]
    else:
        name = re.sub("10(?=[so+-]|[cdhs1-9tjqka]|$)", "t", name)
        if re.fullmatch(f"(?:[{_LETTERS}][cdhs]){{2}}", name):
            return [combo_index(*parse_cards(name))]
        name = re.sub(f"([{_LETTERS}])([w-z])([{_LETTERS}])([w-z])", _suited_or_not, name)
        name = re.sub("^ax([so])$", r"a2\1+", name)
        _refuse_two_meanings(name)
        match = _ITEM.fullmatch(name)
        first = match and _hand_class(*match.group(2, 3, 4))
        last = _hand_class(*match.group(7, 8, 9)) if match and match[6] else None
        if match is None or first is None or (match[6] and last is None):
            return None
        classes = _between(first, last) if last else _onward(first, match[5]) if match[5] else [first]
    return None if classes is None else [combo for hand in classes for combo in _members(hand)]


def _suited_or_not(match: re.Match[str]) -> str:
    """Return the hand class, as text, of an item with suit variables: AxKx is AKs, AxKy is AKo.

    match  the item, whose groups 1 and 3 are its ranks and 2 and 4 its suit variables; AxAy is AA
    """
    suited = "s" if match[2] == match[4] else "" if match[1] == match[3] else "o"
    return f"{match[1]}{match[3]}{suited}"


def _plain(text: str) -> str:
    """Return a range text in which equal notations are spelled in one way, for `_items` to split.

    Suits become letters, dashes "-", "any two" "random" and 40%(AA) [40%]AA[/]; "top" and blanks inside of items are
    removed.  Raises `ValueError` if a blank gives the text two meanings.
    """
    text = plain_suits(unicodedata.normalize("NFKC", text))
    text = re.sub("[\u2010-\u2015\u2212]", "-", text)
    text = re.sub(r"(?i)\bany ?(two|2)( cards)?\b", "random", re.sub(r"(?i)\btop\s*(?=[\d.])", "", text))
    text = re.sub(r"\s+-\s*(?=\w)", "-", re.sub(r"\s+(?=[+%:@])|(?<=[:@])\s+", "", text))
    if run := re.search(r"(\w+)-\s+(\w+)", text):
        raise ValueError(
            f"range items {run[0]!r} can mean the run {run[1]}-{run[2]}, or {run[1]}- and {run[2]}: write one"
        )
    if blank := re.search(r"[^\s,;|\])]+\s+[\d.]+%(?=[\s,;|]|$)|(?<![\d.:@])[\d.]+%\s+[^\s,;|\[]+", text):
        raise ValueError(
            f"range items {blank[0]!r}: the share can be a weight, as in AKs:50%, or the best hands, as in AKs,50%: "
            "write the one that you mean"
        )
    return _GROUP.sub(lambda group: f"[{float(group[1]) * (1 if group[2] else 100):.12g}%]{group[3]}[/]", text)


def _items(text: str) -> Iterator[tuple[str, str, float]]:
    """Yield (item, hands, weight) for each item of a range text, such as ("AKs:0.5", "AKs", 0.5).

    The weight is 0 to 1: the item's own, that of the brackets around it, or 1.  Raises `ValueError` for invalid weights
    or brackets.
    """
    plain, tag = _plain(text), None
    parts = _TAG.split(plain)
    bare = [
        float(number)
        for end, number, sign in zip(parts[1::4], parts[2::4], parts[3::4], strict=True)
        if number and not end and not sign
    ]
    if bare and max(bare) <= 1:
        raise ValueError(f"[{bare[0]:g}] can mean {bare[0]:g}% or {bare[0]:.0%}: write per cent, as [50%]AA[/50%]")
    for i, part in enumerate(parts[::4]):
        if i:
            end, number = parts[4 * i - 3], parts[4 * i - 2]
            if bool(end) == (tag is None) or not (end or number):
                raise ValueError("the weights in brackets do not match: each [50] needs one [/50] behind its hands")
            tag = None if end else float(number) / 100
            if tag is not None and tag > 1:
                raise ValueError(f"the weight {100 * tag:g}% in brackets is more than 100%")
        for item in filter(None, re.split(r"[\s,;|]+", part)):
            hands, sign, number = re.fullmatch(r"([^:@]*)([:@]?)(.*)", item).groups()  # type: ignore[union-attr]
            if sign and tag is not None:
                raise ValueError(f"range item {item!r} has two weights: one in brackets and its own")
            yield item, hands, _weight(item, sign, number) if sign else 1.0 if tag is None else tag
    if tag is not None:
        raise ValueError("the weights in brackets do not match: each [50] needs one [/50] behind its hands")


def _weight(item: str, sign: str, text: str) -> float:
    """Return the weight 0 to 1 that `text` states: after ":" 0.5 or 50%, after "@" 50 or 50%.

    `sign` is ":" or "@", and `item` the whole item, for messages.  Raises `ValueError` for another text.
    """
    number, percent = text.removesuffix("%"), text.endswith("%")
    weight = float(number) if _NUMBER.fullmatch(number) else -1.0
    if sign == "@" and not percent and 0 < weight <= 1:
        raise ValueError(f"range item {item!r} can mean {weight:g}% or {weight:.0%}: write it with %")
    weight = weight / 100 if percent or sign == "@" else weight
    if not 0 <= weight <= 1:
        raise ValueError(
            f"range item {item!r} has the weight {text!r}: a number from 0 to 1 is needed, or one from 0% to 100%"
        )
    return weight


def parse_range(text: str) -> NDArray[np.float64]:
    """Return the weight of every combination in a range text, [1326] float64 in 0..1.

    Combinations have the numbers of `abstraction.cards`.  The empty text is the empty range.

    Raises `ValueError` that quotes the item if it is invalid or has two meanings, or if its weight is not in 0..1.
    Raises it also if an earlier item gives a combination another weight.
    """
    weights = np.zeros(COMBO_COUNT)
    named = np.zeros(COMBO_COUNT, np.bool_)
    for item, hands, weight in _items(text):
        try:
            combos = _item_combos(hands)
        except ValueError as error:  # the same card twice, or two meanings
            raise ValueError(f"range item {item!r}: {error}") from None
        if combos is None:
            raise ValueError(f"range item {item!r} is not known: {_ALLOWED}")
        changed = [combo for combo in combos if named[combo] and weights[combo] != weight]
        if changed:
            raise ValueError(
                f"range item {item!r} gives {combo_text(changed[0])} the weight {weight!r}, but an earlier "
                f"item gives it {float(weights[changed[0]])!r}: name each hand once, or with one weight"
            )
        weights[combos] = weight
        named[combos] = True
    return weights


def read_range(range_: str | Sequence[float]) -> NDArray[np.float64]:
    """Return the weight of every combination in a range, [1326] float64 in 0..1.

    range_  a text such as "TT+,AKs:0.5", 169 or 1,326 weights, or a text with these numbers

    169 numbers are hand classes by rows: AA AKs .. A2s, AKo KK KQs .. 22.  1,326 numbers are combinations by number:
    2c2d, 2c2h, ....  In a text, spaces or commas separate numbers.  Raises `ValueError` for an invalid item, a weight
    outside 0..1, and another count of numbers.
    """
    numbers = range_ if not isinstance(range_, str) else re.split(r"[\s,;]+", range_.strip("\ufeff \t\r\n"))
    if isinstance(range_, str) and not (len(numbers) > 1 and all(_NUMBER.fullmatch(str(each)) for each in numbers)):
        return parse_range(range_)
    weights = np.array([float(each) for each in numbers])
    if len(weights) not in (_SIDE**2, COMBO_COUNT):
        raise ValueError(
            f"{len(weights)} numbers are not a range: give {_SIDE**2}, one a hand class, or {COMBO_COUNT:,}, one a "
            "combination"
        )
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
    """Return the index in `class_names` of the class of each hand, [H], from its two cards 0..51, [H, 2]."""
    rank = _SIDE - 1 - np.asarray(hand_cards, np.int64) // 4
    suited = hand_cards[:, 0] % 4 == hand_cards[:, 1] % 4
    high, low = rank.min(axis=1), rank.max(axis=1)
    return np.where(suited, high * _SIDE + low, low * _SIDE + high)


def hand_class_names(hand_cards: NDArray[np.integer]) -> list[str]:
    """Return the name of the class, such as "AKs", of each of H hands, from their cards 0..51, [H, 2]."""
    names = class_names()
    return [names[number] for number in class_of(hand_cards).tolist()]
