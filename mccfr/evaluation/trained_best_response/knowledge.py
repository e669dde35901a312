"""What a responder remembers of his cards: the finest that is sensible, or an abstraction that is named."""

from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from abstraction.buckets import Abstraction, is_abstraction
from mccfr.cards.listed import ListedCards
from mccfr.cards.symmetry import lossless
from mccfr.config.tables import FlopHoldemGame
from mccfr.games.bucketed import bucketed
from mccfr.games.game import Game
from mccfr.games.holdem import deck_on, flop_holdem


class Knowledge(NamedTuple):
    """A game as the responder remembers its cards.

    words   what that is, for people
    origin  content hashes of the abstraction, by street; empty where it is none that is named
    """

    game: Game
    words: str
    origin: dict[str, str]


def knowledge(game: Game, abstraction: Path | None) -> Knowledge:
    """The responder's game against a policy of `game`.

    abstraction  directory of a built one, or the recipe that lies beside it; None: every hand where boards are listed
                 and in hold'em that ends on the flop, else the policy's own buckets
    Raises `ValueError` for what is no abstraction, and for a game that it does not suit.
    """
    cards = game.cards
    if abstraction is None:
        if isinstance(cards, ListedCards):
            return Knowledge(replace(game, cards=lossless(cards)), "every hand", {})
        if cards.can_list:
            deck = flop_holdem(FlopHoldemGame(), None, Path()).cards
            return Knowledge(replace(game, cards=deck), "every hand", {})
        return Knowledge(game, "the policy's buckets", {})
    if not game.is_holdem:
        raise ValueError(
            f"a responder's abstraction is for hold'em games, and this is {game.name}, where he knows every hand: "
            "leave --responder-abstraction out"
        )
    directory = abstraction.with_suffix("") if abstraction.is_file() else abstraction
    if not is_abstraction(directory):
        build = f"mccfr abstraction build {abstraction if abstraction.is_file() else 'RECIPE'} --out {directory}"
        raise ValueError(f"{directory} is not an abstraction: build it with {build}")
    built = Abstraction(directory)
    if isinstance(cards, ListedCards):
        found = bucketed(replace(game, cards=lossless(cards)), built)
    else:
        assert cards.drawn is not None
        found = replace(game, cards=deck_on(tuple(cards.drawn), directory))
    return Knowledge(found, f"the buckets of {directory}", built.content_hashes())
