"""Turns the situation after a betting line of a strategy into a spot that is solved on its own.

A spot has a board, two ranges, a pot, stacks and bet sizes. Its ranges follow from the strategy by Bayes' rule.
"""

from collections.abc import Mapping
from math import isfinite
from pathlib import Path
from typing import Any

import msgspec

from abstraction.cards import plain_text
from mccfr.config.game_tables import GameConfig, HoldemGame, HoldemSubgame
from mccfr.config.spot_table import STREETS
from mccfr.config.toml_files import config_from
from mccfr.config.value_limits import share_text
from mccfr.games.betting import BettingState
from mccfr.games.game import Rake
from mccfr.games.holdem_betting import seat_names
from mccfr.games.holdem_subgame import FILE_STACK
from mccfr.games.line_text import line_start, typed_line
from mccfr.games.menu import PLAYER_NAMES, SEAT_NAMES
from mccfr.play.line_ranges import RangesOfLine
from mccfr.policy import Behaviour, Policy, is_policy
from mccfr.policy.export.networks import is_networks, read_networks
from mccfr.runs.directory.run import is_run, open_run
from mccfr.runs.results.targets import Reference, open_source
from mccfr.trees.street_amounts import street_line
from storage.directory_lock import read_unchanged

TYPED = ("oop", "ip", "pot", "stack")
"""Keys of a typed spot besides its board."""


def requested_spot(
    board: str | None, typed: Mapping[str, Any], policy: Path | None, line: str | None
) -> tuple[dict[str, Any], dict[str, Any] | None]:
    """Return the `[game]` keys of the spot that a user asks for, and its bet menu (`[game.menu]`).

    The user gives either the spot's values, or a policy with a betting line. In the second case ranges, pot and stacks
    come from the policy, and so does the menu of bet sizes; otherwise the menu is None.

    board   cards where the spot begins, such as "AsKd2c"; None if absent
    typed   {"oop", "ip", "pot", "stack": value}: the ranges out of and in position; the pot and the stack that each
            player has left, in chips; each None if absent
    policy  path of a policy, run or exported networks; None if absent
    line    betting line in the policy up to the spot, such as "b300c/"; None if absent

    Raises `ValueError` if both or neither are given, and if no spot can begin after the line.
    """
    typed_names = [name for name in TYPED if typed[name] is not None]
    if policy is None and line is None:
        missing = [name for name in ("board", *TYPED) if (board if name == "board" else typed[name]) is None]
        if missing:
            raise ValueError(f"{missing[0]} is missing: give board, oop, ip, pot and stack, or policy, line and board")
        ranges = {"oop": typed["oop"], "ip": typed["ip"]}
        return {"board": board, "ranges": ranges, "pot": typed["pot"], "effective_stack": typed["stack"]}, None
    if policy is None or line is None or board is None:
        raise ValueError("policy, line and board go together: they say which spot of the policy is meant")
    if typed_names:
        raise ValueError(f"{typed_names[0]} is given beside policy, whose line says it: leave it out")
    return line_spot(policy, line, board)


def line_spot(policy: Path, line: str, board: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the `[game]` keys and the bet menu (`[game.menu]`) of the spot after a betting line.

    A spot is the rest of a hand with given board, ranges, pot and stacks. Amounts in the result are in chips.

    policy  path of a policy, run or exported networks
    line    betting line up to the start of a street: "b300c/"
    board   the board of that street: three to five cards

    Raises `ValueError` for another game than no-limit hold'em, and if no spot can begin after the line.
    """
    config, source = read_unchanged(policy, lambda: (game_config(policy), open_source(Reference(policy))))
    if not isinstance(config, HoldemGame | HoldemSubgame):
        raise ValueError(f"{policy} is not of no-limit hold'em: give a policy of holdem or holdem-subgame")
    return spot_behind(source, config, line, board)


def spot_behind(
    source: Behaviour, config: HoldemGame | HoldemSubgame, line: str, board: str
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the `[game]` keys and bet menu (`[game.menu]`) of the spot after a betting line.

    A spot is the rest of a hand with given board, ranges, pot and stacks. Amounts are in chips.

    Of three and more players, two have to be left. The others' chips are in the pot; their cards are ignored.

    source  the strategy and its game
    config  `[game]` table of the strategy
    line    betting line up to the start of a street: "b300c/"
    board   the board of that street: three to five cards

    A hand's weight is its weight in the game times the probability that the strategy plays the line with it. Raises
    `ValueError` for a line that is illegal, ends the hand or ends within a street. Also for a board of another street,
    and if no hand reaches the spot.
    """
    ranges, start = RangesOfLine(source), line_start(source.game)
    followed = ranges.follow(typed_line(source.game, line), board)
    if followed.boards is None or not source.game.cards.cards_on(followed.state.street):
        raise ValueError(
            f"line {line!r}, board {board!r}: a spot begins on a flop, turn or river, with its board: give a line that "
            "ends there, as b300c/, and all of its cards"
        )
    if followed.line and not followed.line.endswith("/"):
        before = street_line(followed.line[: followed.line.rfind("/") + 1], start)
        raise ValueError(
            f"line {line!r} ends within a street: a spot begins at the start of a street, as after {before!r}"
        )
    board = ranges.dealing.board_text(followed.state.street, followed.boards[-1])
    left = followed.state.left if isinstance(followed.state, BettingState) else [0, 1]
    if len(left) > 2:
        raise ValueError(f"line {line!r} leaves {len(left)} players: a spot is for two, so give a line to two players")
    reach = ranges.reach(followed)[left]
    for name, weights in zip(("oop", "ip"), reach, strict=True):
        if not weights.any():
            raise ValueError(f"line {line!r} on {board}: {name} never plays it: choose another line")
    invested, rules, rake = followed.state.put_in[left[0]], source.game.real_rules, source.game.rake
    seats, stack = source.game.tree.players, starting_stack(config)
    if seats > 2 and rules is not None:
        rake = Rake(rules.rake, rules.rake_cap) if rules.rake else None
        stack = min(rules.stack_of(player) for player in left)
    game = {
        "board": board,
        "ranges": {"oop": reach[0].tolist(), "ip": reach[1].tolist()},
        "pot": sum(followed.state.put_in) + sum(rules.dead if rules is not None else ()),
        "effective_stack": stack - invested,
        "big_blind": source.game.big_blind_chips,
    }
    if rake is not None:
        game |= {"rake": share_text(rake.share)} | ({"rake_cap": rake.cap} if isfinite(rake.cap) else {})
    names = seat_names(seats)
    pair = names[left[0]], names[left[1]]
    return game, _menu_behind(config, street_line(followed.line, start), len(plain_text(board)) // 2 - 2, pair)


def game_config(path: Path) -> GameConfig:
    """Return the `[game]` table of a run, policy or networks; of a user-defined game only the name.

    Raises `ValueError` if the path is none of these.
    """
    if is_run(path):
        return open_run(path).config.game
    if is_policy(path):
        document = Policy.open(path, check=False).meta["game"]
    elif is_networks(path):
        document = read_networks(path)[1]["game"]
    else:
        raise ValueError(f"{path} is neither a run directory nor an exported policy")
    return config_from({"game": document}, str(path), opaque=True).game


def starting_stack(config: HoldemGame | HoldemSubgame) -> float:
    """Return one player's chips at the start of the hand, as if all players had equal stacks.

    Chips already put into the pot are included. The number comes from the keys of `[game]`:

    * hold'em from the preflop on: `stack`. With three or more players `stacks` may give different amounts; it is not
      read. `stack` then has its default of 20,000, which may differ from every player's stack.
    * spot (a postflop situation) with its board and pot as keys: half of `pot` plus `effective_stack`. Each player has
      put in half of the pot, and `effective_stack` counts only the chips left to bet.
    * spot whose board and pot stand in a file (key `file`): `stack`, by default FILE_STACK (20,000). This key already
      counts the player's half of the pot, so nothing is added.
    """
    if isinstance(config, HoldemGame):
        return config.stack
    if config.file is None:
        return (config.pot or 0) / 2 + (config.effective_stack or 0)
    return config.stack or FILE_STACK


def _menu_behind(
    config: HoldemGame | HoldemSubgame, line: str, first: int, pair: tuple[str, str] = PLAYER_NAMES
) -> dict[str, Any]:
    """Return the part of a game's bet menu (`[game.menu]`) that applies after `line`.

    Betting lines in its keys `add` and `remove` are kept if they continue `line`, and lose that beginning.

    line   betting line up to the spot; slashes are ignored
    first  street on which the spot begins: 1 for the flop
    pair   seat names of the two players left, out of and in position, such as "button"; the menu has sizes for single
           seats under them
    """
    menu = {key: value for key, value in msgspec.to_builtins(config.menu).items() if value is not None}
    start = line.replace("/", "")
    for key in ("add", "remove"):
        lines = [added.replace("/", "") for added in menu[key]]
        menu[key] = [added[len(start) :] for added in lines if added.startswith(start) and len(added) > len(start)]
    if first == len(STREETS) - 1:
        menu.pop("donk", None)  # no player bets before a river on which the spot begins
    for street in STREETS[first:]:
        if table := menu.get(street):
            of_players = dict(zip(PLAYER_NAMES, (table.get(name) for name in pair), strict=True))
            kept = {key: value for key, value in table.items() if key not in SEAT_NAMES}
            menu[street] = kept | {name: value for name, value in of_players.items() if value is not None}
    for table in (street := menu.get(STREETS[first], {}), street.get("button"), street.get("big_blind")):
        if table:
            table.pop("donk", None)
    return {key: value for key, value in menu.items() if key not in (*STREETS[:first], "limp")}
