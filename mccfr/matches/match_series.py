"""Plays matches between two policies, runs or programs given by name."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from abstraction.kernels.compiling import working_seconds
from mccfr.config.game_tables import HoldemGame
from mccfr.evaluation.samples import Effort
from mccfr.matches.hand_files.writing import is_hands, write_hands
from mccfr.matches.match import Figure, Match, figure_fields, match
from mccfr.matches.phh_format import Hand
from mccfr.matches.players import AS_WRITTEN, OpenedPlayer, PlayManner, holdem_of, open_player, table_names
from mccfr.runs.phases import naming_phases, naming_steps
from mccfr.runs.reporter import Reporter, Silent
from storage.atomic_outputs import check_output

PLAYING = "playing"
_FIGURES = {"chips": "", "allin": "allin_", "aivat": "aivat_"}
"""Figures of a match, and the beginnings of their names in records."""


def play_match(
    names: tuple[str, str],
    hands: int = 2_000,
    seed: int = 0,
    *,
    manners: tuple[PlayManner, PlayManner] = (AS_WRITTEN, AS_WRITTEN),
    effort: Effort = Effort(),  # noqa: B008  (frozen)
    log: Path | None = None,
    reporter: Reporter | None = None,
) -> dict[str, Any]:
    """Play a match and return the record of `mccfr match --json`.

    names    policies, runs or programs; results are the first one's
    manners  manner of play of each, if it is a policy or run
    log      file for the hands, no-limit hold'em only

    Raises `ValueError` for an unknown name, two programs, different games, or too few hands.
    """
    with naming_phases(reporter or Silent()) as phases:
        players = []
        for name, manner in zip(names, manners, strict=True):
            phases.phase(f"reading {name}")
            players.append(open_player(name, manner))
        return play_opened(players, hands, seed, effort=effort, log=log, reporter=phases)


def play_opened(
    players: Sequence[OpenedPlayer],
    hands: int = 2_000,
    seed: int = 0,
    *,
    effort: Effort = Effort(),  # noqa: B008  (frozen)
    log: Path | None = None,
    reporter: Reporter | None = None,
) -> dict[str, Any]:
    """Play a match of players that are already open; arguments and result as for `play_match`."""
    with naming_phases(reporter or Silent()) as phases:
        contenders = [opened.contender for opened in players]
        table = next((opened.table for opened in players if opened.table is not None), None)
        config = None
        if log is not None:
            config = _log_game(log, table)
            check_output(log, is_hands)
        began = working_seconds()
        phases.phase(PLAYING)
        with naming_steps(phases):
            result = match(contenders, hands, seed, effort)
        if log is not None and config is not None:
            phases.phase(f"writing {log}")
            write_hands(log, _played_hands(Match(contenders, seed), result.hands // 2), config)
    big_blind = next(each.spec.game.big_blind_chips for each in contenders if each.spec.game is not None)
    record: dict[str, Any] = {"a": contenders[0].name, "b": contenders[1].name, "hands": result.hands}
    for name, key in _FIGURES.items():
        figure: Figure = getattr(result, name)
        record |= figure_fields(figure.mean_chips, figure.ci95_chips, big_blind, key)
    return record | {"seed": seed, "seconds": round(working_seconds() - began, 6)}


def match_text(record: Mapping[str, Any]) -> str:
    """Return a match as text for people: players, number of hands, and the three figures."""
    lines = [f"{record['a']} against {record['b']}, {record['hands']:,} hands, {record['seconds']:.3g} s"]
    for title, key in zip(("chips", "all-ins by their mean", "AIVAT"), _FIGURES.values(), strict=True):
        unit, name = ("chips", "chips") if record[f"{key}mean_mbb"] is None else ("mbb", "mbb/g")
        mean, (low, high) = record[f"{key}mean_{unit}"], record[f"{key}ci95_{unit}"]
        lines.append(f"{title:22} {mean:+.5g} {name} (95 %: {low:+.5g} to {high:+.5g})")
    return "\n".join(lines)


def _log_game(log: Path, table: Mapping[str, Any] | None) -> HoldemGame:
    """Return the game of hands to be logged; raises `ValueError` for games that the format lacks."""
    game = holdem_of(table)
    if game is not None:
        return game
    name = "two programs" if table is None else table.get("name")
    raise ValueError(f"{log}: hands are written of whole no-limit hold'em only, and this is {name}: leave --log out")


def _played_hands(table: Match, pairs: int) -> list[Hand]:
    """Return all hands of a match by replaying them; each is determined by its number."""
    hands, names = [], table_names(table.names)
    for number in range(2 * pairs):
        deal, played = table.hand(number // 2, number % 2)
        texts = [table.dealing.hand_text(hand) for hand in deal.hands]
        last = table.dealing.streets - 1
        board = table.dealing.board_text(last, deal.boards[last])
        hands.append(Hand(played.line, (texts[0], texts[1]), board, names if number % 2 == 0 else names[::-1]))
    return hands
