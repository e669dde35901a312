"""A line of a policy as a spot that can be typed: ranges by Bayes, pot, stacks, and the policy's own bets behind it."""

from collections.abc import Mapping
from math import isfinite
from pathlib import Path
from typing import Any

import msgspec

from mccfr.config.file import opaque_config
from mccfr.config.games import GameConfig, HoldemGame, HoldemSubgame
from mccfr.games.holdem_subgame import FILE_STACK
from mccfr.play.line_ranges import RangesOfLine
from mccfr.policy import Behaviour, Policy, is_policy
from mccfr.policy.export.networks import is_networks, read_networks
from mccfr.runs.directory.run import is_run, open_run
from mccfr.runs.results.targets import Reference, open_source
from storage.directory_lock import read_unchanged

TYPED = ("oop", "ip", "pot", "stack")
"""What a typed spot says beside its board."""


def asked_spot(
    board: str | None, typed: Mapping[str, Any], policy: Path | None, line: str | None
) -> tuple[dict[str, Any], dict[str, Any] | None]:
    """The keys of `[game]` of a spot that is typed, or that a policy comes to; of the latter its own menu besides.

    typed  TYPED, each None where it is not said

    Raises `ValueError` where both or neither are said, and as `line_spot`.
    """
    said = [name for name in TYPED if typed[name] is not None]
    if policy is None and line is None:
        missing = [name for name in ("board", *TYPED) if (board if name == "board" else typed[name]) is None]
        if missing:
            raise ValueError(
                f"{missing[0]} is missing: a spot is board, oop, ip, pot and stack, or policy, line and board"
            )
        ranges = {"oop": typed["oop"], "ip": typed["ip"]}
        return {"board": board, "ranges": ranges, "pot": typed["pot"], "effective_stack": typed["stack"]}, None
    if policy is None or line is None or board is None:
        raise ValueError("policy, line and board go together: they say which spot of the policy is meant")
    if said:
        raise ValueError(f"{said[0]} is given beside policy, whose line says it: leave it out")
    return line_spot(policy, line, board)


def line_spot(policy: Path, line: str, board: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """`spot_behind` of a policy, a run or networks; `ValueError` for another game than no-limit hold'em."""
    config, source = read_unchanged(policy, lambda: (game_config(policy), open_source(Reference(policy))))
    if not isinstance(config, HoldemGame | HoldemSubgame):
        raise ValueError(f"{policy} is of another game: give a policy of holdem or holdem-subgame")
    return spot_behind(source, config, line, board)


def spot_behind(
    source: Behaviour, config: HoldemGame | HoldemSubgame, line: str, board: str
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Board, ranges, pot and stacks after a line, as `[game]` has them, and the menu of the game's bets there.

    config  the game that the strategy is for
    line    to where a street begins: "r300c/"
    board   that street's: three to five cards

    A range's weights are the probability that the strategy comes there with a hand, times its weight before.  Raises
    `ValueError` for a line that is illegal, over or within a street, another street's board, and where no hand comes
    there.
    """
    ranges = RangesOfLine(source)
    found = ranges.follow(line, board)
    if found.boards is None or not source.game.cards.cards_on(found.state.street):
        raise ValueError(
            f"line {line!r}, board {board!r}: a spot begins on a flop, turn or river, with its board: give a line that "
            "ends there, as r300c/, and all of its cards"
        )
    if found.line and not found.line.endswith("/"):
        before = found.line[: found.line.rfind("/") + 1]
        raise ValueError(f"line {line!r} ends within a street: a spot begins where a street does, as after {before!r}")
    board = ranges.dealing.board_text(found.state.street, found.boards[-1])
    reach = ranges.reach(found)
    for name, weights in zip(("oop", "ip"), reach, strict=True):
        if not weights.any():
            raise ValueError(f"line {line!r} on {board}: {name} never plays it with any hand, so choose another line")
    put_in = found.state.put_in[0]
    game = {
        "board": board,
        "ranges": {"oop": reach[0].tolist(), "ip": reach[1].tolist()},
        "pot": 2 * put_in,
        "effective_stack": whole_stack(config) - put_in,
        "big_blind": source.game.big_blind_chips,
    }
    if (rake := source.game.rake) is not None:
        game |= {"rake": rake.share} | ({"rake_cap": rake.cap} if isfinite(rake.cap) else {})
    return game, _menu_behind(config, found.line)


def game_config(path: Path) -> GameConfig:
    """Return the `[game]` table of what `open_source` opens, of a user's game its name alone; raises as that does."""
    if is_run(path):
        return open_run(path).config.game
    if is_policy(path):
        document = Policy.open(path, check=False).meta["game"]
    elif is_networks(path):
        document = read_networks(path)[1]["game"]
    else:
        raise ValueError(f"{path} is neither a run directory nor an exported policy")
    return opaque_config({"game": document}, str(path)).game


def whole_stack(config: HoldemGame | HoldemSubgame) -> float:
    """Chips of each player over the whole hand."""
    if isinstance(config, HoldemGame):
        return config.stack
    if config.file is None:
        return (config.pot or 0) / 2 + (config.effective_stack or 0)
    return config.stack or FILE_STACK


def _menu_behind(config: HoldemGame | HoldemSubgame, line: str) -> dict[str, Any]:
    """The menu of what the game offers behind a line; lines that it adds or takes away become shorter."""
    menu = {key: value for key, value in msgspec.to_builtins(config.menu).items() if value is not None}
    start = line.replace("/", "")
    for key in ("add", "remove"):
        whole = [each.replace("/", "") for each in menu[key]]
        menu[key] = [each[len(start) :] for each in whole if each.startswith(start) and len(each) > len(start)]
    return {key: value for key, value in menu.items() if key not in ("preflop", "limp")}
