"""Writes hand files: PHH, or PokerStars' text format if the name ends with `.stars.txt`."""

import os
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

import tomli_w

from mccfr.common.arguments import checked, require
from mccfr.config.game_tables import HoldemGame
from mccfr.config.toml_files import config_from
from mccfr.games.betting import BettingRules
from mccfr.games.game import Game
from mccfr.matches.hand_files.pokerstars_hands import TABLE, hands_text
from mccfr.matches.phh_format import Hand, phh
from storage import durable
from storage.atomic_outputs import begins_with, check_output, contains, output

PHHS, STARS = ".phhs", ".stars.txt"
_HEAD = b"# mccfr hands\n"


def is_hands(path: Path) -> bool:
    """Return True if `path` is a hand file that this program wrote, so that it may be overwritten."""
    return begins_with(_HEAD)(path) or contains(TABLE.encode(), 256)(path)


def check_hands_output(path: Path, game: HoldemGame) -> None:
    """Raise an error unless hands of a game may be written to a file.

    Raises `ValueError` for PokerStars' text with more than two players, and `FileExistsError` if something else than a
    hand file of this program is there.
    """
    if path.name.endswith(STARS) and game.seats > 2:
        raise ValueError(
            f"{path}: PokerStars' text is written of two players only, and the game has {game.seats}: give a name that "
            f"ends in {PHHS}"
        )
    check_output(path, is_hands)


@checked
def write_hands(path: str | os.PathLike[str], hands: Sequence[Hand], game: str | Game | HoldemGame) -> None:
    """Write hands to a file; replaces an earlier file in one step.

    A name that ends with `.stars.txt` gives PokerStars' text, any other one a PHH file with hands numbered from 1.

    game  no-limit hold'em with the stacks and blinds of the hands: its name "holdem", a `Game`, or a `[game]` table

    Raises `ValueError` for another game, PokerStars' text of more than two players, illegal betting or a board that is
    too short. Raises `FileExistsError` if something else than a hand file of this program is there.
    """
    path, table = Path(path), _table(game)
    check_hands_output(path, table)
    for number, hand in enumerate(hands, 1):
        require(hand, Hand, f"mccfr.matches.write_hands: hand {number} of hands")
    if path.name.endswith(STARS):
        parts = [hands_text(hands, table, datetime.now()).encode()]
    else:
        parts = [_HEAD, tomli_w.dumps({str(number): phh(hand, table) for number, hand in enumerate(hands, 1)}).encode()]
    with output(path, is_hands) as temporary:
        durable.write_file(temporary, parts)


def _table(game: str | Game | HoldemGame) -> HoldemGame:
    """Convert the game's name, `Game` or `[game]` table to the `[game]` table of no-limit hold'em.

    Raises `ValueError` if it is another game.
    """
    if isinstance(game, str):
        game = config_from({"game": {"name": game}}, "mccfr.matches.write_hands").game  # type: ignore[assignment]
    if isinstance(game, Game) and game.is_holdem and game.real_rules is not None:
        return _table_of(game.real_rules)
    if not isinstance(game, HoldemGame):
        raise ValueError(f"mccfr.matches.write_hands: game = {game!r} is not no-limit hold'em: give the game 'holdem'")
    return game


def _table_of(rules: BettingRules) -> HoldemGame:
    """Return the stacks, blinds and antes of betting rules, as a `[game]` table.

    The seats' antes are taken to be equal, except that of the big blind, which may be larger.
    """
    seats = len(rules.put_in)
    small, big, *_ = reversed(rules.put_in) if seats == 2 else rules.put_in
    before, dead = rules.put_in_before, rules.dead or [0.0] * seats
    stacks = [rules.stack_of(seat) + dead[seat] for seat in range(seats)]
    return HoldemGame(
        seats=seats,
        stack=max(stacks),
        stacks=tuple(stacks) if len({*stacks}) > 1 else (),
        blinds=(small - before, big - before),
        ante=before or min(dead),
        big_blind_ante=dead[1] - min(dead),
    )
