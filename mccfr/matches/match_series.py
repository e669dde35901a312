"""Plays matches between policies, runs or programs given by name."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from abstraction.kernels.compiling import working_seconds
from mccfr.config.game_tables import HoldemGame
from mccfr.evaluation.samples import Effort
from mccfr.games.game import Game
from mccfr.matches.hand_files.writing import check_hands_output, write_hands
from mccfr.matches.match import Contender, Figure, Match, MatchFigures, figure_fields, match
from mccfr.matches.phh_format import Hand
from mccfr.matches.players import AS_WRITTEN, OpenedPlayer, PlayManner, holdem_of, open_player, table_names
from mccfr.matches.seat_match import SeatFigures, SeatMatch, match_of_seats
from mccfr.runs.phases import naming_phases, naming_steps
from mccfr.runs.reporter import Reporter, Silent

PLAYING = "playing"
_FIGURES = {"chips": "", "allin": "allin_", "aivat": "aivat_"}
"""Figures of a match, and the beginnings of their names in records."""


def play_match(
    names: Sequence[str],
    hands: int = 2_000,
    seed: int = 0,
    *,
    manners: Sequence[PlayManner] | None = None,
    effort: Effort = Effort(),  # noqa: B008  (frozen)
    log: Path | None = None,
    reporter: Reporter | None = None,
) -> dict[str, Any]:
    """Play a match and return its results as the dict that `mccfr match --json` prints.

    names     policies, runs or programs, one for each player. With two, the results are those of the first one
    hands     number of hands, rounded up to whole deals; each deal is played once for each player
    seed      of the deals and the players
    manners   how each policy or run plays, such as purified; None: all play as they are stored
    effort    number of worker processes, file for finished samples (deals), and a time limit, which replaces `hands`
    log       file for the hands, no-limit hold'em only
    reporter  shows the phase and progress; None: nothing is shown

    Raises `ValueError` for an unknown name, programs only, different games, rake, or too few hands. Raises
    `StoppedError` at a signal.
    """
    with naming_phases(reporter or Silent()) as phases:
        players = []
        for name, manner in zip(names, manners or [AS_WRITTEN] * len(names), strict=True):
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
    """Play a match of opened players; return the dict that `mccfr match --json` prints.

    players   one for each seat of the game; at least one is a policy or run
    hands     number of hands, rounded up to whole deals; each deal is played once for each player
    seed      of the deals and the players
    effort    number of worker processes, file for finished samples (deals), and a time limit, which replaces `hands`
    log       file for the hands, no-limit hold'em only
    reporter  shows the phase and progress; None: nothing is shown

    Raises `ValueError` for programs only, different games, rake, or too few hands. Raises `StoppedError` at a signal.
    """
    with naming_phases(reporter or Silent()) as phases:
        contenders = [opened.contender for opened in players]
        table = next((opened.table for opened in players if opened.table is not None), None)
        config = None
        if log is not None:
            config = _log_game(log, table)
            check_hands_output(log, config)
        began = working_seconds()
        phases.phase(PLAYING)
        game = next((each.spec.game for each in contenders if each.spec.game is not None), None)
        with naming_steps(phases):
            if game is not None and max(game.tree.players, len(contenders)) > 2:
                of_seats = match_of_seats(contenders, hands, seed, effort)
                record, count = _record_of_seats(contenders, of_seats, game), of_seats.hands
            else:
                of_two = match(contenders, hands, seed, effort)
                record, count = _record_of_two(contenders, of_two), of_two.hands
        if log is not None and config is not None:
            phases.phase(f"writing {log}")
            played = (Match if config.seats == 2 else SeatMatch)(contenders, seed)
            write_hands(log, _played_hands(played, count), config)
    return record | {"seed": seed, "seconds": round(working_seconds() - began, 6)}


def _record_of_two(contenders: Sequence[Contender], result: MatchFigures) -> dict[str, Any]:
    """Return the results of a match of two as a dict for `--json`.

    They are the first player's mean chips per hand with 95 % intervals: as played, with all-ins by their mean, and
    corrected by AIVAT.
    """
    big_blind = next(each.spec.game.big_blind_chips for each in contenders if each.spec.game is not None)
    record: dict[str, Any] = {"a": contenders[0].name, "b": contenders[1].name, "hands": result.hands}
    for name, key in _FIGURES.items():
        figure: Figure = getattr(result, name)
        record |= figure_fields(figure.mean_chips, figure.ci95_chips, big_blind, key)
    return record


def _record_of_seats(contenders: Sequence[Contender], result: SeatFigures, game: Game) -> dict[str, Any]:
    """Return the results of a match of three or more players as a dict for `--json`.

    They are the first player's mean chips per hand with 95 % intervals. The field `players` has those of all players.
    """
    players = [
        {"name": each.name, **figure_fields(figure.mean_chips, figure.ci95_chips, game.big_blind_chips)}
        for each, figure in zip(contenders, result.figures, strict=True)
    ]
    first = {"a": contenders[0].name, "b": ", ".join(each.name for each in contenders[1:]), "hands": result.hands}
    figures = {key: value for key, value in players[0].items() if key != "name"}
    return {**first, **figures, "deals": len(result.deals), "players": players}


def _text_of_seats(record: Mapping[str, Any]) -> str:
    """Return a match of three and more players as text for people: a line for each player.

    The line has the player's mean in mbb per hand with its 95 % interval; in chips if the game has no big blind.

    record  the results as a dict, as `play_match` returns them
    """
    deals, seconds, players = record["deals"], record["seconds"], record["players"]
    lines = [f"{record['hands']:,} hands, {deals:,} deals in every rotation, {seconds:.3g} s"]
    unit, name = ("chips", "chips") if players[0]["mean_mbb"] is None else ("mbb", "mbb/g")
    width = max(len(player["name"]) for player in players)
    for player in players:
        mean, (low, high) = player[f"mean_{unit}"], player[f"ci95_{unit}"]
        lines.append(f"{player['name']:{width}} {mean:+.5g} {name} (95 %: {low:+.5g} to {high:+.5g})")
    return "\n".join(lines)


def match_text(record: Mapping[str, Any]) -> str:
    """Return a match as text for people: players, hands, and the means with 95 % intervals.

    record  the results as a dict, as `play_match` returns them

    Means are in mbb per hand, or in chips if the game has no big blind. With two players they are the first one's: as
    played, with all-ins by their mean, and corrected by AIVAT. With more they are each player's.
    """
    if "players" in record:
        return _text_of_seats(record)
    lines = [f"{record['a']} against {record['b']}, {record['hands']:,} hands, {record['seconds']:.3g} s"]
    for title, key in zip(("chips", "all-ins by their mean", "AIVAT"), _FIGURES.values(), strict=True):
        unit, name = ("chips", "chips") if record[f"{key}mean_mbb"] is None else ("mbb", "mbb/g")
        mean, (low, high) = record[f"{key}mean_{unit}"], record[f"{key}ci95_{unit}"]
        lines.append(f"{title:22} {mean:+.5g} {name} (95 %: {low:+.5g} to {high:+.5g})")
    return "\n".join(lines)


def _log_game(log: Path, table: Mapping[str, Any] | None) -> HoldemGame:
    """Return the game of a `[game]` table, for a hand file; `ValueError` if it is not no-limit hold'em.

    log    path of the hand file, for the message
    table  the table as a dict; None if only programs play
    """
    game = holdem_of(table)
    if game is not None:
        return game
    name = "programs only" if table is None else table.get("name", "another game")
    raise ValueError(f"{log}: hands are written of whole no-limit hold'em only, and this is {name}: leave --log out")


def _played_hands(table: Match | SeatMatch, count: int) -> list[Hand]:
    """Play the first `count` hands of a match again, and return them for a hand file.

    The seed of the match and the number of a hand determine the hand.

    table  the match
    """
    hands, names, seats = [], table_names(table.names), len(table.names)
    for number in range(count):
        deal, played = table.hand(number // seats, number % seats)
        order = [names[(position + number) % seats] for position in range(seats)]
        texts = tuple(table.dealing.hand_text(hand) for hand in deal.hands)
        last = table.dealing.streets - 1
        board = table.dealing.board_text(last, deal.boards[last])
        hands.append(Hand(played.line, texts, board, order))
    return hands
