"""Hands and boards as people write them, in any of the games with cards: `AsKh`, `Qs7h2d`, `K`, `Kc`, `nuts`.

Names of cards come from the card model itself.  Where a deck has suits, a rank alone stands for any of its cards; it is
accepted as long as all that it may mean is one infoset.
"""

from collections.abc import Iterable, Sequence
from itertools import permutations, product

import numpy as np
import numpy.typing as npt

from mccfr.deal import NO_BUCKET, CardModel, card_masks
from mccfr.games.game import Game
from mccfr.games.holdem_deck import STREET_NAMES, HoldemDeck

_SHOWN = 8  # examples in a message


def street_name(game: Game, street: int) -> str | int:
    """A street's name where there is one: "turn" in a hold'em game; elsewhere its number in the tree, from 0."""
    if isinstance(game.cards, HoldemDeck):
        return STREET_NAMES[game.cards.cards_on(street)]
    if game.cards is None or not game.name.startswith("holdem"):
        return street
    return STREET_NAMES[game.cards.board_cards[street].shape[1]]


def card_names(cards: CardModel) -> dict[int, str]:
    """Text of every card that occurs in a hand, by its number; empty where hands have no cards."""
    names = {}
    for hand, text in zip(cards.hand_cards.tolist(), cards.hand_names, strict=True):
        held = [card for card in reversed(hand) if card >= 0]
        for place, card in enumerate(held):
            width = len(text) // len(held)
            names[card] = text[place * width : (place + 1) * width]
    return names


def board_text(cards: CardModel, street: int, board: int, names: dict[int, str]) -> str:
    """A board as text, in order of dealing."""
    return "".join(names[int(card)] for card in cards.board_cards[street][board])


def _read_cards(text: str, names: dict[int, str], what: str) -> list[list[int]]:
    """What each card of a text may be; `ValueError` naming the part that is no card, and what is one."""
    by_name = {name: [card] for card, name in names.items()}
    by_rank: dict[str, list[int]] = {}
    for card, name in sorted(names.items()):
        by_rank.setdefault(name[0], []).append(card)
    width, place, found = max(map(len, by_name)), 0, []
    while place < len(text):
        token = text[place : place + width]
        if token not in by_name and text[place] in by_rank:
            token = text[place]
        if token not in by_name and token not in by_rank:
            ranks, suits = "".join(by_rank), "".join(sorted({name[1:] for name in by_name}))
            allowed = f"a card is a rank of {ranks}" + (f" and a suit of {suits}" if suits else "")
            raise ValueError(f"{what} {text!r}: {text[place : place + width]!r} is not a card here; {allowed}")
        found.append(by_name.get(token) or by_rank[token])
        place += len(token)
    exact = [options[0] for options in found if len(options) == 1]
    if len(set(exact)) != len(exact):
        raise ValueError(f"{what} {text!r} holds a card twice: each card may be named once")
    return found


def _matches(rows: npt.NDArray[np.int16], options: Sequence[Sequence[int]]) -> npt.NDArray[np.bool_]:
    """[B] whether the cards of each row, in some order, are among the options, one for each."""
    fitting = np.zeros(len(rows), bool)
    for order in permutations(range(len(options))):
        columns = [np.isin(rows[:, column], options[option]) for column, option in enumerate(order)]
        fitting |= np.logical_and.reduce(columns) if columns else True
    return fitting


def find_hands(cards: CardModel, text: str) -> npt.NDArray[np.int64]:
    """Indices of the hands that a text may mean, at least one; `ValueError` where it means none."""
    names = card_names(cards)
    if not names:
        if text not in cards.hand_names:
            raise ValueError(f"hand {text!r}: expected one of {', '.join(cards.hand_names)}")
        return np.array([list(cards.hand_names).index(text)])
    needed = int((cards.hand_cards[0] >= 0).sum())
    options = _read_cards(text, names, "hand")
    if len(options) != needed:
        raise ValueError(f"hand {text!r} has {len(options)} cards: a hand has {needed} here, such as {_example(cards)}")
    return np.flatnonzero(_matches(cards.hand_cards[:, :needed], options))


def _example(cards: CardModel) -> str:
    return cards.hand_names[int(np.argmax(cards.reach.max(axis=0)))]


def find_boards(cards: CardModel, street: int, text: str | None) -> npt.NDArray[np.int64]:
    """Indices of the boards of a street that a text may mean.

    Cards of one street may come in any order.  Where the game begins on a board of its own, the text may leave that
    board out.  None or "" means the only board there is.  Raises `ValueError` where the number of cards is not the
    street's or no board has these cards.
    """
    rows, names = cards.board_cards[street], card_names(cards)
    own = cards.board_cards[0].shape[1] if len(cards.board_cards[0]) == 1 else 0
    if not text:
        if len(rows) == 1:
            return np.zeros(1, np.int64)
        raise ValueError(f"no board is given: {_board_needed(cards, street, own, names)}")
    if not names or not rows.shape[1]:
        raise ValueError(f"board {text!r}: no board has been dealt at this point; leave it out")
    options = _read_cards(text, names, "board")
    if own and len(options) == rows.shape[1] - own:
        options = [[int(card)] for card in cards.board_cards[0][0]] + options
    if len(options) != rows.shape[1]:
        raise ValueError(f"board {text!r} has {len(options)} cards: {_board_needed(cards, street, own, names)}")
    fitting, start = np.ones(len(rows), bool), 0
    for here in range(street + 1):
        stop = cards.board_cards[here].shape[1]
        fitting &= _matches(rows[:, start:stop], options[start:stop])
        start = stop
    if not fitting.any():
        begins = f"; the game begins with {board_text(cards, 0, 0, names)}" if own else ""
        raise ValueError(f"board {text!r} is not one of this game's{begins}")
    return np.flatnonzero(fitting)


def _board_needed(cards: CardModel, street: int, own: int, names: dict[int, str]) -> str:
    needed = cards.board_cards[street].shape[1]
    if own and needed > own:
        return f"{needed} are needed, or only the {needed - own} dealt after {board_text(cards, 0, 0, names)}"
    return f"the board has {needed} card{'s' * (needed != 1)} at this point"


def hand_bucket(cards: CardModel | HoldemDeck, street: int, player: int, hand: str, board: str | None) -> int:
    """Bucket of a hand on a board for a player.

    Raises `ValueError` where hand or board name nothing, share a card, are outside the player's range, or may mean
    several infosets.
    """
    if isinstance(cards, HoldemDeck):
        return cards.hand_bucket(street, hand, board)
    hands, boards = find_hands(cards, hand), find_boards(cards, street, board)
    disjoint = (cards.hand_masks()[hands][None, :] & card_masks(cards.board_cards[street])[boards][:, None]) == 0
    if not disjoint.any():
        raise ValueError(f"hand {hand!r} shares a card with the board")
    bucket = cards.bucket[street][player][np.ix_(boards, hands)]
    live = disjoint & (bucket != NO_BUCKET) & (cards.reach[player][hands] > 0)
    if not live.any():
        raise ValueError(
            f"hand {hand!r} is not in the range of player {player} (its reach is 0): a hand such as "
            f"{_example_of(cards, player)} is"
        )
    found = np.unique(bucket[live])
    if len(found) > 1:
        names = card_names(cards)
        meanings = _meanings(cards, street, names, product(boards, hands), live.ravel())
        raise ValueError(f"hand {hand!r}, board {board or ''!r} may mean {meanings}, which differ: give the suits")
    return int(found[0])


def _example_of(cards: CardModel, player: int) -> str:
    return cards.hand_names[int(np.argmax(cards.reach[player]))]


def _meanings(
    cards: CardModel, street: int, names: dict[int, str], pairs: Iterable[tuple[int, int]], live: npt.NDArray[np.bool_]
) -> str:
    texts = [
        f"{cards.hand_names[hand]} {board_text(cards, street, board, names)}".rstrip()
        for (board, hand), possible in zip(pairs, live, strict=True)
        if possible
    ]
    return ", ".join(texts[:_SHOWN]) + (", ..." if len(texts) > _SHOWN else "")


def hand_buckets(cards: CardModel | HoldemDeck, street: int, player: int, board: str | None) -> dict[str, int]:
    """{hand: bucket} of every hand in a player's range that the board leaves; `ValueError` as in `hand_bucket`."""
    if isinstance(cards, HoldemDeck):
        return cards.hand_buckets(street, board)
    boards = find_boards(cards, street, board)
    bucket = cards.bucket[street][player][boards]
    live = (bucket != NO_BUCKET) & (cards.reach[player] > 0)
    found = {}
    for hand in np.flatnonzero(live.any(axis=0)).tolist():
        numbers = np.unique(bucket[live[:, hand], hand])
        if len(numbers) > 1:
            raise ValueError(f"board {board!r} may mean several boards, which differ: give the suits")
        found[cards.hand_names[hand]] = int(numbers[0])
    return found
