"""Applies a card abstraction to a game that lists its hands and boards.

Such a game has a small deck, or begins postflop with a given board and ranges.
"""

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from abstraction.boards import STREET_CARDS
from abstraction.buckets import Abstraction
from abstraction.recipe import STREETS, Recipe
from abstraction.small_deck_hands import same_listing
from mccfr.cards.card_lists import ListedCards
from mccfr.cards.deals import NO_BUCKET
from mccfr.games.game import Game

_STREET_OF = {cards: street for street, cards in STREET_CARDS.items()}


def bucketed(game: Game, abstraction: Abstraction) -> Game:
    """Return `game` with an abstraction's buckets in place of its lossless ones.

    Cards, payoffs and best responses stay the same; only the players' information is coarser. Buckets without a
    possible hand are left out, so bucket numbers differ from the abstraction's. Raises `ValueError` if the abstraction
    is for another deck, or if the game does not list its hands and boards, such as whole-deck hold'em.
    """
    cards = _matching(game, abstraction)
    bucket, counts = [], []
    for street, (boards, lossless) in enumerate(zip(cards.board_cards, cards.bucket, strict=True)):
        shared = abstraction.table(STREETS[street]) if abstraction.listing else _labels(boards, abstraction)
        numbers = np.full_like(lossless, NO_BUCKET)
        for player in range(2):
            live = lossless[player] != NO_BUCKET
            numbers[player][live] = np.unique(shared[live], return_inverse=True)[1]
        bucket.append(numbers)
        counts.append(numbers.max(axis=(1, 2)) + 1)
    model: ListedCards = replace(cards, bucket=bucket, buckets=np.array(counts, np.int64))
    return replace(game, cards=model, known_cards=cards)


def with_planned_buckets(game: Game, recipe: Recipe) -> Game:
    """Return `game` with about as many buckets as an abstraction that is not built yet.

    recipe  settings from which the abstraction will be built

    Hands are put into buckets without regard to strength, so the game is only good for counting infosets and bytes.
    Raises `ValueError` for a game that does not list its hands and boards, or if the settings lack a street of the
    game.
    """
    if not game.cards.dealt or game.cards.board_cards_by_street is not None:
        raise ValueError(
            f"game.name = {game.name!r} has neither a small deck nor an endgame, so it takes no abstraction"
        )
    cards, bucket, counts = game.listed_cards(), [], []
    for street, (boards, lossless) in enumerate(zip(cards.board_cards, cards.bucket, strict=True)):
        part = recipe.part(STREETS[street] if recipe.deck is not None else _STREET_OF[boards.shape[1]])
        infosets = lossless.max(axis=(1, 2)) + 1
        most = infosets if part.buckets is None else np.minimum(infosets, part.buckets)
        bucket.append(np.where(lossless == NO_BUCKET, NO_BUCKET, lossless % most[:, None, None]))
        counts.append(most)
    model: ListedCards = replace(cards, bucket=bucket, buckets=np.array(counts, np.int64))
    return replace(game, cards=model, known_cards=cards)


def _matching(game: Game, abstraction: Abstraction) -> ListedCards:
    """Return a game's cards as `ListedCards`, if the abstraction fits them.

    `ListedCards` has arrays of all hands and boards.

    Raises `ValueError` if the abstraction is for another deck, or if the game does not list its cards.
    """
    if abstraction.listing is None:
        if game.cards.board_cards_by_street is not None or not game.is_holdem:
            raise ValueError(
                f"{abstraction.path} is for hold'em games, and game.name = {game.name!r}: take a recipe with the "
                "game's [deck], or leave [abstraction] out"
            )
        return game.listed_cards()
    if not game.cards.dealt or game.cards.board_cards_by_street is not None:
        raise ValueError(f"{abstraction.path} is for a small deck, and game.name = {game.name!r} has none")
    cards = game.listed_cards()
    if not same_listing(abstraction.listing, cards.hand_cards, cards.board_cards):
        deck = abstraction.listing
        raise ValueError(
            f"{abstraction.path} is for a deck of {deck.ranks} ranks and {deck.suits} suits, hole_cards = "
            f"{deck.hole_cards}, board_cards = {list(deck.board_cards)}, and the game has other cards: give the recipe "
            "the game's [deck]"
        )
    return cards


def _labels(boards: npt.NDArray[np.int16], abstraction: Abstraction) -> npt.NDArray[np.int64]:
    """Return [B, 1326] the abstraction's bucket of each hold'em hand on each of B boards."""
    return np.array([abstraction.row(board) for board in boards.tolist()], np.int64)
