"""Cards, hole-card combinations and their numbering.

A card is 4·rank + suit, with ranks 2..A as 0..12 and suits c, d, h, s as 0..3: 2c = 0, As = 51.  A combination is a
pair of hole cards a < b with number b(b−1)/2 + a: 0 = 2c2d, 1,325 = AhAs.  Small decks number card rank·suits + suit,
and their hands by the same formula.
"""

import re
from collections.abc import Iterable
from math import isqrt

import numpy as np
from numpy.typing import NDArray

RANKS = "23456789TJQKA"
SUITS = "cdhs"
CARD_COUNT = 52
COMBO_COUNT = 1326
MAX_DECK = 1024

_ALLOWED = f"a card is a rank of {RANKS} and a suit of {SUITS}, as in As or Td"


_SUIT_SYMBOLS = {
    ord(symbol): suit for suit, symbols in zip(SUITS, ("♣♧", "♦♢", "♥♡", "♠♤"), strict=True) for symbol in symbols
}
_INVISIBLE = dict.fromkeys((0xFEFF, 0xFE0E, 0xFE0F, 0x200B, 0x200D))  # byte order mark, variants of symbols, joiners


def plain_suits(text: str) -> str:
    """Return a text with letters in place of suit symbols, and without invisible characters."""
    return text.translate(_SUIT_SYMBOLS | _INVISIBLE)


def plain_text(text: str) -> str:
    """Return cards in standard spelling, without spaces, commas and semicolons: "10h, 9♥" becomes "Th9h".

    In a text that is no list of cards, upper and lower case stay as they are.
    """
    plain = re.sub(r"[\s,;]+", "", plain_suits(text)).replace("10", "T")
    if re.fullmatch(rf"([{RANKS}][{SUITS}])+", plain, re.IGNORECASE):
        plain = "".join(letter.lower() if i % 2 else letter.upper() for i, letter in enumerate(plain))
    return plain


def parse_card(text: str) -> int:
    """Return the number of the card that a text such as "As" names; `ValueError` for any other text."""
    if len(text) != 2 or text[0] not in RANKS or text[1] not in SUITS:
        raise ValueError(f"{text!r} is not a card: {_ALLOWED}")
    return 4 * RANKS.index(text[0]) + SUITS.index(text[1])


def parse_cards(text: str) -> tuple[int, ...]:
    """Return the card numbers of a text such as "Qs7h2d", in its order; the empty text gives no cards.

    Spaces, commas and case are ignored, and 10h means Th.

    Raises `ValueError` that quotes the text if its length is odd, a rank or suit is unknown, or a card occurs twice.
    """
    text = plain_text(text)
    if len(text) % 2:
        raise ValueError(f"{text!r} is not a list of cards: it has {len(text)} characters, and each card takes two")
    cards: list[int] = []
    for start in range(0, len(text), 2):
        name = text[start : start + 2]
        try:
            card = parse_card(name)
        except ValueError:
            raise ValueError(f"{name!r} in {text!r} is not a card: {_ALLOWED}") from None
        if card in cards:
            raise ValueError(f"{text!r} holds the card {name} twice: each card may be named once")
        cards.append(card)
    return tuple(cards)


def card_text(card: int) -> str:
    """Return the two characters of a card, such as "As"; `ValueError` outside 0..51."""
    if not 0 <= card < CARD_COUNT:
        raise ValueError(f"card {card} does not exist: cards are numbered 0 (2c) to 51 (As)")
    return RANKS[card // 4] + SUITS[card % 4]


def cards_text(cards: Iterable[int]) -> str:
    """Return the joined texts of several cards: (42, 22, 1) gives "Qh7h2d"."""
    return "".join(card_text(int(card)) for card in cards)


def combo_index(a: int, b: int) -> int:
    """Return the number 0..1,325 of the combination of two cards in either order.

    Raises `ValueError` if the cards are equal or unknown.
    """
    if a == b or not (0 <= a < CARD_COUNT and 0 <= b < CARD_COUNT):
        raise ValueError(f"cards {a} and {b} make no hand: two different cards of 0..51 are needed")
    low, high = min(a, b), max(a, b)
    return high * (high - 1) // 2 + low


def combo_cards(index: int) -> tuple[int, int]:
    """Return the two cards a < b of a combination; `ValueError` outside 0..1,325."""
    if not 0 <= index < COMBO_COUNT:
        raise ValueError(f"combination {index} does not exist: they are numbered 0 to {COMBO_COUNT - 1}")
    b = (1 + isqrt(1 + 8 * index)) // 2
    return index - b * (b - 1) // 2, b


def combo_text(index: int) -> str:
    """Return the text of a combination, the higher card first: 1,325 gives "AsAh"."""
    return cards_text(reversed(combo_cards(index)))


def hand_cards(deck_size: int, hole_cards: int) -> NDArray[np.int16]:
    """Return all hands of one or two hole cards from a deck of `deck_size` cards.

    The result is [H, 2] int16 and writable: cards a < b of hand b(b−1)/2 + a, or (card, −1) for one hole card.

    Raises `ValueError` if `hole_cards` is neither 1 nor 2, or if the deck has fewer cards or more than 1,024.
    """
    if hole_cards not in (1, 2):
        raise ValueError(f"hole_cards is {hole_cards}: hands of 1 or 2 hole cards are supported")
    if not hole_cards <= deck_size <= MAX_DECK:
        raise ValueError(f"a deck of {deck_size} cards is out of range: {hole_cards} to {MAX_DECK} cards are supported")
    if hole_cards == 1:
        cards = np.arange(deck_size, dtype=np.int16)
        return np.stack([cards, np.full_like(cards, -1)], axis=1)
    higher, lower = np.tril_indices(deck_size, -1)
    return np.stack([lower, higher], axis=1).astype(np.int16)


def combo_table() -> NDArray[np.int8]:
    """Return the cards a < b of every combination, [1326, 2] int8: a new writable array in C order."""
    return np.ascontiguousarray(hand_cards(CARD_COUNT, 2).astype(np.int8))


def combo_masks() -> NDArray[np.uint64]:
    """Return the card set of every combination, [1326] uint64 with bit c set for card c."""
    table = combo_table().astype(np.uint64)
    return (np.uint64(1) << table[:, 0]) | (np.uint64(1) << table[:, 1])


def card_mask(cards: Iterable[int]) -> int:
    """Return the given cards as an integer with bit c set for card c (at most 52 bits)."""
    mask = 0
    for card in cards:
        mask |= 1 << int(card)
    return mask
