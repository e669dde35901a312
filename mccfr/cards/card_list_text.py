"""Parses texts of hands and boards, of games with arrays of both: `AsKh`, `Qs7h2d`, `K`, `nuts`.

Hands without cards have a name such as `nuts`. Card names come from the list of hands. In a deck with suits a rank
alone matches all its cards; the caller accepts it if all matches belong to one infoset.
"""

from collections.abc import Iterable, Sequence
from itertools import permutations

import numpy as np
import numpy.typing as npt

from abstraction.cards import plain_text
from mccfr.cards.card_index import IndexedCards

_SHOWN = 8  # examples in a message


class NamedCards(IndexedCards):
    """Base class of `ListedCards`: numbered hands with names, and the cards of all boards.

    The functions that parse texts of hands and boards need no more.
    """

    hand_names: Sequence[str]
    """[H] text of each hand."""
    board_cards: Sequence[npt.NDArray[np.int16]]
    """For each street [B, n] cards of its boards."""


def card_names(cards: NamedCards) -> dict[int, str]:
    """Return the text of each card in a hand, by card number; empty if hands have no cards."""
    names = {}
    for hand, text in zip(cards.hand_cards.tolist(), cards.hand_names, strict=True):
        present = [card for card in reversed(hand) if card >= 0]
        for i, card in enumerate(present):
            width = len(text) // len(present)
            names[card] = text[i * width : (i + 1) * width]
    return names


def _read_cards(text: str, names: dict[int, str], noun: str) -> list[list[int]]:
    """Split a text into cards and return, for each, the list of card numbers that it can mean.

    names  text of each card by number
    noun   "hand" or "board", for errors

    A rank alone means its cards of all suits. Raises `ValueError` for a part that is no card, and for a card named
    twice.
    """
    text = plain_text(text)
    by_name = {name: [card] for card, name in names.items()}
    by_rank: dict[str, list[int]] = {}
    for card, name in sorted(names.items()):
        by_rank.setdefault(name[0], []).append(card)
    width, start, cards_read = max(map(len, by_name)), 0, []
    while start < len(text):
        token = text[start : start + width]
        if token not in by_name and text[start] in by_rank:
            token = text[start]
        if token not in by_name and token not in by_rank:
            ranks, suits = "".join(by_rank), "".join(sorted({name[1:] for name in by_name}))
            allowed = f"a card is a rank of {ranks}" + (f" and a suit of {suits}" if suits else "")
            raise ValueError(f"{noun} {text!r}: {text[start : start + width]!r} is not a card here; {allowed}")
        cards_read.append(by_name.get(token) or by_rank[token])
        start += len(token)
    exact = [options[0] for options in cards_read if len(options) == 1]
    if len(set(exact)) != len(exact):
        raise ValueError(f"{noun} {text!r} holds a card twice: each card may be named once")
    return cards_read


def _matches(rows: npt.NDArray[np.int16], options: Sequence[Sequence[int]]) -> npt.NDArray[np.bool_]:
    """Return [B] bool: True for rows whose cards, in some order, match the options one to one.

    rows     [B, n] card numbers
    options  n lists: the card numbers that are allowed for one card of a row
    """
    fitting = np.zeros(len(rows), bool)
    for order in permutations(range(len(options))):
        columns = [np.isin(rows[:, column], options[option]) for column, option in enumerate(order)]
        fitting |= np.logical_and.reduce(columns) if columns else True
    return fitting


def find_hands(cards: NamedCards, text: str) -> npt.NDArray[np.int64]:
    """Return the indices of the hands that a text matches, at least one; `ValueError` if there is none."""
    names = cards.card_texts
    if not names:
        if text not in cards.hand_names:
            raise ValueError(f"hand {text!r}: expected one of {', '.join(cards.hand_names)}")
        return np.array([list(cards.hand_names).index(text)])
    needed = int((cards.hand_cards[0] >= 0).sum())
    options = _read_cards(text, names, "hand")
    if len(options) != needed:
        raise ValueError(f"hand {text!r} has {len(options)} cards: a hand has {needed} here, such as {_example(cards)}")
    return np.flatnonzero(_matches(cards.hand_cards[:, :needed], options))


def _example(cards: NamedCards) -> str:
    """Return the text of a hand in some player's range, for an error message."""
    return cards.hand_names[int(np.argmax(cards.reach.max(axis=0)))]


def find_boards(cards: NamedCards, street: int, text: str | None) -> npt.NDArray[np.int64]:
    """Return the indices of the boards of a street that a text matches.

    Cards of one street may come in any order. If the game has a single first board, the text may omit it. None or ""
    means the only board. Raises `ValueError` for a wrong number of cards or if no board matches.
    """
    rows, names = cards.board_cards[street], cards.card_texts
    own = cards.board_cards[0].shape[1] if len(cards.board_cards[0]) == 1 else 0
    if not text:
        if len(rows) == 1:
            return np.zeros(1, np.int64)
        raise ValueError(f"no board is given: {_board_needed(cards, street, own)}")
    if not names or not rows.shape[1]:
        raise ValueError(f"board {text!r}: no board has been dealt at this point; leave it out")
    options = _read_cards(text, names, "board")
    if own and len(options) == rows.shape[1] - own:
        options = [[int(card)] for card in cards.board_cards[0][0]] + options
    if len(options) != rows.shape[1]:
        raise ValueError(f"board {text!r} has {len(options)} cards: {_board_needed(cards, street, own)}")
    fitting, start = np.ones(len(rows), bool), 0
    for earlier_street in range(street + 1):
        stop = cards.board_cards[earlier_street].shape[1]
        fitting &= _matches(rows[:, start:stop], options[start:stop])
        start = stop
    if not fitting.any():
        begins = f"; the game begins with {cards.board_text(0, 0)}" if own else ""
        raise ValueError(f"board {text!r} is not one of this game's{begins}")
    return np.flatnonzero(fitting)


def _board_needed(cards: NamedCards, street: int, own: int) -> str:
    """Return which board cards a text must name on a street, as the end of an error message.

    own  number of cards of the first street's only board; 0 if it has several boards
    """
    needed = cards.board_cards[street].shape[1]
    if own and needed > own:
        return f"{needed} are needed, or only the {needed - own} dealt after {cards.board_text(0, 0)}"
    return f"the board has {needed} card{'s' * (needed != 1)} at this point"


def meanings(cards: NamedCards, street: int, pairs: Iterable[tuple[int, int]], live: npt.NDArray[np.bool_]) -> str:
    """Return a text for an error message: up to eight pairs of hand and board that a user can mean.

    street  street of the boards
    pairs   (board index, hand index) of each pair
    live    bool for each pair: True to include it
    """
    texts = [
        f"{cards.hand_names[hand]} {cards.board_text(street, board)}".rstrip()
        for (board, hand), possible in zip(pairs, live, strict=True)
        if possible
    ]
    return ", ".join(texts[:_SHOWN]) + (", ..." if len(texts) > _SHOWN else "")
