"""The responder's game: the finest sensible card abstraction or a given one, and its bets."""

from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from abstraction.buckets import Abstraction, is_abstraction
from mccfr.cards.suit_symmetry import lossless
from mccfr.config.examples import find_file
from mccfr.config.game_tables import FlopHoldemGame, Menu
from mccfr.config.toml_files import load_config
from mccfr.evaluation.trained_best_response.menus import with_menu
from mccfr.games.bucketed import bucketed
from mccfr.games.game import Game
from mccfr.games.holdem import deck_on, flop_holdem


class ResponderGame(NamedTuple):
    """The policy's game with the responder's buckets and bets.

    description  as text for users
    origin       content hashes of a given abstraction, by street; empty otherwise
    """

    game: Game
    description: str
    origin: dict[str, str]


def knowledge(game: Game, abstraction: Path | None, menu: Path | None = None) -> ResponderGame:
    """Return the responder's game against a policy of `game`.

    abstraction  directory of a built one, or the recipe beside it; None: every hand for listed boards and for
                 hold'em that ends on the flop, otherwise the policy's own buckets
    menu         configuration, or the name of a shipped one, whose `[game.menu]` gives the bets; None: the policy's

    Raises `ValueError` for an invalid abstraction, and for a game that the abstraction or menu does not suit.
    """
    known = _of_cards(game, abstraction)
    if menu is None:
        return known
    config = load_config(find_file(menu))
    bets = getattr(config.game, "menu", None)
    if not isinstance(bets, Menu):
        raise ValueError(f"{menu} has no [game.menu], and no bets for a responder therefore: name one with a menu")
    return known._replace(game=with_menu(known.game, bets), description=f"{known.description} and the bets of {menu}")


def _of_cards(game: Game, abstraction: Path | None) -> ResponderGame:
    cards = game.cards
    if abstraction is None:
        if cards.boards is not None:
            return ResponderGame(replace(game, cards=lossless(cards.listed())), "every hand", {})
        if cards.can_list:
            deck = flop_holdem(FlopHoldemGame(), None, Path()).cards
            return ResponderGame(replace(game, cards=deck), "every hand", {})
        return ResponderGame(game, "the policy's buckets", {})
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
    if cards.drawn is None:
        found = bucketed(replace(game, cards=lossless(cards.listed())), built)
    else:
        found = replace(game, cards=deck_on(tuple(cards.drawn), directory))
    return ResponderGame(found, f"the buckets of {directory}", built.content_hashes())
