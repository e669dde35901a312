"""Full-deck hold'em: no-limit and limit with a card abstraction, and one that ends on the flop."""

from collections.abc import Sequence
from dataclasses import replace
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from abstraction.boards import preflop_classes
from abstraction.buckets import Abstraction, is_abstraction, is_built
from abstraction.recall_buckets import Histories, Table
from abstraction.recipe import LOSSLESS_BUCKETS, PERCENTILES, bucket_count, load_recipe, remembers
from mccfr.cards.full_deck import STREET_NAMES, WholeDeck
from mccfr.config.game_tables import FlopHoldemGame, HoldemGame, LimitHoldemGame
from mccfr.config.run_tables import AbstractionConfig
from mccfr.games.betting_tree import build_tree
from mccfr.games.full_betting import real_rules
from mccfr.games.game import Game
from mccfr.games.holdem_betting import configured_rules, flop_holdem_rules, limit_holdem_rules
from mccfr.games.locks import LockRanges, read_locks

_UNBUCKETED = (
    "game.name = {!r} needs an [abstraction]: path and recipe, as in runs/hunl-quick.toml; without one there would be "
    "2,428,287,420 river hands at every decision"
)


def holdem(config: HoldemGame, abstraction: AbstractionConfig | None, base: Path) -> Game:
    """Build the game no-limit hold'em, with the bet sizes in `config` and an abstraction's buckets.

    With two players, player 0 is the big blind; with more, the small blind.

    config       the `[game]` table of the configuration
    abstraction  paths of the card abstraction
    base         directory to which these paths are relative

    Raises `ValueError` for invalid chips, bet sizes or node locks (fixed strategies). Raises it also if the paths lead
    to no hold'em abstraction or recipe, and without an abstraction, since the lossless game is too large.
    """
    if abstraction is None:
        raise ValueError(_UNBUCKETED.format("holdem"))
    _check_chips({"stack": (config.stack,), "blinds": config.blinds}, {"ante": (config.ante,)})
    rules = configured_rules(config)
    deck, tree = _deck((0, 3, 1, 1), abstraction, base, config.seats), build_tree(rules)
    return Game(
        "holdem",
        replace(tree, locks=read_locks(config.locks or {}, tree, LockRanges(deck), rules.line_start)),
        deck,
        big_blind_chips=float(config.blinds[1]),
        pot_chips=float(sum(rules.put_in) + sum(rules.dead)),
        real_rules=real_rules(config),
    )


def limit_holdem(config: LimitHoldemGame, abstraction: AbstractionConfig | None, base: Path) -> Game:
    """Build heads-up limit hold'em with an abstraction's buckets.

    config       the `[game]` table of the configuration
    abstraction  paths of the card abstraction
    base         directory to which these paths are relative

    Raises `ValueError` for invalid blinds, without an abstraction, and if the paths lead to no hold'em abstraction or
    recipe.
    """
    if abstraction is None:
        raise ValueError(_UNBUCKETED.format(config.__struct_config__.tag))
    _check_chips({"blinds": config.blinds}, {})
    rules, deck = limit_holdem_rules(config.blinds), _deck((0, 3, 1, 1), abstraction, base)
    tree, pot = build_tree(rules), float(sum(rules.put_in))
    return Game("limit-holdem", tree, deck, big_blind_chips=float(config.blinds[1]), pot_chips=pot)


_FLOP_BLINDS = 50.0, 100.0


def flop_holdem(config: FlopHoldemGame, abstraction: AbstractionConfig | None, base: Path) -> Game:
    """Build hold'em that ends after the flop betting, with one bet size.

    config       the `[game]` table of the configuration
    abstraction  paths of the card abstraction; None: infosets are lossless
    base         directory to which these paths are relative

    Raises `ValueError` for invalid chips or numbers of raises, and if the paths lead to no hold'em abstraction or
    recipe.
    """
    _check_chips({} if config.bet == "pot" else {"bet": (config.bet,)}, {})
    rules = flop_holdem_rules(_FLOP_BLINDS, config.bet, _raises(config), config.board_cards, limp=config.limp)
    second_street_cards = config.board_cards
    deck = (
        _lossless_deck(second_street_cards)
        if abstraction is None
        else _deck((0, second_street_cards), abstraction, base)
    )
    return Game(
        "flop-holdem",
        build_tree(rules),
        deck,
        big_blind_chips=_FLOP_BLINDS[1],
        pot_chips=float(sum(rules.put_in)),
    )


def _raises(config: FlopHoldemGame) -> tuple[int, int]:
    """Return the largest numbers of bets and raises that are allowed: (preflop, flop).

    Raises `ValueError` if those in the `[game]` table, `config`, are invalid.
    """
    limits = [config.max_raises] * 2 if isinstance(config.max_raises, int) else list(config.max_raises)
    if len(limits) != 2 or min(limits) < 0 or max(limits) < 1:
        raise ValueError(
            f"game.max_raises = {config.max_raises} is not allowed: it must be at least 1, or a list of two numbers, "
            "before the flop and on it, of which one may be 0"
        )
    preflop, flop = limits
    if not config.limp and not preflop:
        raise ValueError(
            "game.limp = False is not allowed where game.max_raises has no raise before the flop: the button could "
            "only fold"
        )
    return preflop, flop


def _check_chips(above_zero: dict[str, Sequence[float]], from_zero: dict[str, Sequence[float]]) -> None:
    """Raise `ValueError` for invalid amounts of chips in the `[game]` table.

    above_zero  {key of the table: amounts}; each must be finite and above 0. "blinds" are the small, then the big blind
    from_zero   {key of the table: amounts}; each must be finite and at least 0
    """
    for key, amounts in (above_zero | from_zero).items():
        if not all(isfinite(chips) and (chips > 0 or (key in from_zero and chips == 0)) for chips in amounts):
            least = "at least 0" if key in from_zero else "above 0"
            raise ValueError(f"game.{key} = {list(amounts)} is not allowed: amounts must be finite and {least}")
        if key == "blinds" and (len(amounts) != 2 or amounts[0] > amounts[1]):
            raise ValueError(f"game.blinds = {list(amounts)} is not allowed: give the small and the big blind")


def _deck(board_cards: tuple[int, ...], abstraction: AbstractionConfig, base: Path, seats: int = 2) -> WholeDeck:
    """Return the full deck with the buckets of an abstraction, which need not be built yet.

    board_cards  number of cards dealt on each street
    abstraction  path of the abstraction, and of the recipe (file of settings) from which it is built
    base         directory to which the abstraction's paths are relative
    seats        number of players

    If the abstraction is not built, the recipe gives the numbers of buckets. The deck's functions that load the bucket
    tables then raise `ValueError`. This function raises it if neither tables nor a recipe are there, and for buckets of
    a small deck. It raises it too for percentiles, unless the game has all earlier streets.
    """
    streets = [STREET_NAMES[sum(board_cards[: street + 1])] for street in range(len(board_cards))]
    path = base / abstraction.path
    if is_abstraction(path) if abstraction.recipe is None else is_built(path):
        built = _standard(Abstraction(path))
        counts, percentiles = built.bucket_counts(), [built.percentiles(street) for street in streets]

        def load() -> list[npt.NDArray[Any]]:
            built = Abstraction(path)  # reopened, so that no second copy of the tables stays in memory
            return [built.table(street) for street in streets]

        def read_into(tables: Sequence[npt.NDArray[Any]]) -> None:
            built = Abstraction(path)
            for street, table in zip(streets, tables, strict=True):
                built.table(street, table)

        def histories() -> Sequence[Table]:
            return [built.history(street) for street in streets]

    elif abstraction.recipe is not None:
        recipe = load_recipe(base / abstraction.recipe)
        if recipe.deck is not None:
            raise ValueError(f"{base / abstraction.recipe} is for a small deck: hold'em needs a recipe without [deck]")
        counts = {street: bucket_count(recipe, street) for street in STREET_NAMES.values()}
        percentiles = [PERCENTILES if remembers(recipe, street) else None for street in streets]

        def load() -> list[npt.NDArray[Any]]:
            raise ValueError(f"{path} is not built yet: build it with mccfr abstraction build {abstraction.recipe}")

        def read_into(tables: Sequence[npt.NDArray[Any]]) -> None:
            load()

        def histories() -> Sequence[Table]:
            return load()

    else:
        raise ValueError(f"{path} is not an abstraction: build one with mccfr abstraction build, or give its recipe")
    by_player = np.repeat([[counts[street]] for street in streets], seats, axis=1)
    deck = WholeDeck(board_cards, by_player, load, read_into=read_into)
    if not any(percentiles):
        return deck
    if streets != list(STREET_NAMES.values())[: len(streets)]:
        raise ValueError(
            f"{path}: buckets of percentiles remember the street before, so the game must have every street up to the "
            f"{streets[-1]}"
        )
    in_tables = [found or counts[street] for street, found in zip(streets, percentiles, strict=True)]
    return replace(deck, histories=Histories(tuple(in_tables), histories))


def _standard(abstraction: Abstraction) -> Abstraction:
    """Return the abstraction if it is for hold'em; `ValueError` if it is for a small deck."""
    if abstraction.listing is not None:
        raise ValueError(f"{abstraction.path} is for a small deck: hold'em needs one of a recipe without [deck]")
    return abstraction


def _lossless_deck(board_cards: int) -> WholeDeck:
    """Return the full deck with one bucket for each class of suit-isomorphic hands and boards.

    board_cards  cards dealt on the second street; with five, loading the buckets takes 0.7 GB and 30 s
    """
    counts = np.repeat([[LOSSLESS_BUCKETS["preflop"]], [LOSSLESS_BUCKETS[STREET_NAMES[board_cards]]]], 2, axis=1)

    def load() -> list[npt.NDArray[Any]]:
        from abstraction.deck_models import lossless_table

        return [preflop_classes()[None].astype(np.uint16), lossless_table(board_cards)]

    return WholeDeck((0, board_cards), counts, load)
