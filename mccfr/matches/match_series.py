"""Plays matches between two policies, runs or programs given by name."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from abstraction.kernels.compiling import working_seconds
from mccfr.config.game_tables import HoldemGame
from mccfr.evaluation.evaluation_progress import report_step
from mccfr.evaluation.samples import Effort
from mccfr.matches.hand_files.writing import is_hands, write_hands
from mccfr.matches.match import Figure, Match, match
from mccfr.matches.phh_format import Hand
from mccfr.matches.players import AS_WRITTEN, OpenedPlayer, PlayManner, holdem_of, open_player, table_names
from mccfr.matches.preregistration import Declaration, Declare, declared_text
from mccfr.runs.phases import naming_phases, naming_steps
from mccfr.runs.reporter import Reporter, Silent
from storage.atomic_outputs import check_output

PLAYING = "playing"


def play_match(
    names: tuple[str, str],
    hands: int = 2_000,
    seed: int = 0,
    *,
    manners: tuple[PlayManner, PlayManner] = (AS_WRITTEN, AS_WRITTEN),
    effort: Effort = Effort(),  # noqa: B008  (frozen)
    log: Path | None = None,
    reporter: Reporter | None = None,
    declare: Declare | None = None,
) -> dict[str, Any]:
    """Play a match and return the record of `mccfr match --json`.

    names    policies, runs or programs; results are the first one's
    manners  manner of play of each, if it is a policy or run
    log      file for the hands, no-limit hold'em only
    declare  a declaration, in place of a seed

    Raises `ValueError` for an unknown name, two programs, different games, or too few hands.
    """
    with naming_phases(reporter or Silent()) as phases:
        found = []
        for name, manner in zip(names, manners, strict=True):
            phases.phase(f"reading {name}")
            found.append(open_player(name, manner))
        if declare is None:
            return play_opened(found, hands, seed, effort=effort, log=log, reporter=phases)
        if effort.seconds is not None:
            raise ValueError("what is declared says how much is played: leave --budget out, and give --hands")
        players = [one.contender.fingerprint() for one in found]
        what = {"command": "match", "names": list(names), "players": players, "hands": hands}
        declaration = Declaration(declare, what, ("chips", "allin", "aivat"))
        phases.message(f"declared {declaration.digest}")
        with declaration.ended():
            record = play_opened(found, hands, declaration.seed, effort=effort, log=log, reporter=phases)
        return record | declaration.judged({key or "chips": _interval(record, key) for key in ("", "allin", "aivat")})


def play_opened(
    found: Sequence[OpenedPlayer],
    hands: int = 2_000,
    seed: int = 0,
    *,
    effort: Effort = Effort(),  # noqa: B008  (frozen)
    log: Path | None = None,
    reporter: Reporter | None = None,
) -> dict[str, Any]:
    """Play a match of opened players; as `play_match`."""
    with naming_phases(reporter or Silent()) as phases:
        contenders = [opened.contender for opened in found]
        table = next((opened.table for opened in found if opened.table is not None), None)
        config = None
        if log is not None:
            config = _log_game(log, table)
            check_output(log, is_hands)
        began = working_seconds()
        phases.phase(PLAYING)
        with naming_steps(phases):
            result = match(
                contenders, hands, seed, lambda done, total: report_step("pair of hands", done, total), effort
            )
        if log is not None and config is not None:
            phases.phase(f"writing {log}")
            write_hands(log, _played_hands(Match(contenders, seed), result.hands // 2), config)
    big_blind = next(each.spec.game.big_blind_chips for each in contenders if each.spec.game is not None)
    record: dict[str, Any] = {"a": contenders[0].name, "b": contenders[1].name, "hands": result.hands}
    for title, figure in (("", result.chips), ("allin_", result.allin), ("aivat_", result.aivat)):
        record |= _figure_fields(title, figure, big_blind)
    return record | {"seed": seed, "seconds": round(working_seconds() - began, 6)}


def _interval(record: Mapping[str, Any], title: str) -> tuple[float, tuple[float, float]]:
    """Return a figure of a record with its interval, in mbb/g, or in chips if there is no big blind."""
    key = f"{title}_" if title else ""
    unit = "chips" if record[f"{key}mean_mbb"] is None else "mbb"
    low, high = record[f"{key}ci95_{unit}"]
    return record[f"{key}mean_{unit}"], (low, high)


def _figure_fields(title: str, figure: Figure, big_blind: float | None) -> dict[str, Any]:
    scale = None if not big_blind else 1000 / big_blind
    return {
        f"{title}mean_mbb": None if scale is None else figure.mean_chips * scale,
        f"{title}ci95_mbb": None if scale is None else [chips * scale for chips in figure.ci95_chips],
        f"{title}mean_chips": figure.mean_chips,
        f"{title}ci95_chips": list(figure.ci95_chips),
    }


def match_text(record: Mapping[str, Any]) -> str:
    """Return a match as text for people: players, number of hands, and the three figures."""
    found = [f"{record['a']} against {record['b']}, {record['hands']:,} hands, {record['seconds']:.3g} s"]
    for title, key in (("chips", ""), ("all-ins by their mean", "allin_"), ("AIVAT", "aivat_")):
        found.append(f"{title:22} {_figure(record, key)}")
    return "\n".join(found) + declared_text(record)


def _figure(record: Mapping[str, Any], key: str) -> str:
    """Return a figure as text for people, in mbb/g, or in chips if there is no big blind."""
    unit, name = ("chips", "chips") if record[f"{key}mean_mbb"] is None else ("mbb", "mbb/g")
    low, high = record[f"{key}ci95_{unit}"]
    return f"{record[f'{key}mean_{unit}']:+.5g} {name} (95 %: {low:+.5g} to {high:+.5g})"


def _log_game(log: Path, table: Mapping[str, Any] | None) -> HoldemGame:
    """Return the game of hands to be logged; raises `ValueError` for games that the format lacks."""
    game = holdem_of(table)
    if game is not None:
        return game
    name = "two programs" if table is None else table.get("name")
    raise ValueError(f"{log}: hands are written of whole no-limit hold'em only, and this is {name}: leave --log out")


def _played_hands(table: Match, pairs: int) -> list[Hand]:
    """Return all hands of a match by replaying them; each is determined by its number."""
    found, names = [], table_names(table.names)
    for number in range(2 * pairs):
        deal, played = table.hand(number // 2, number % 2)
        texts = [table.dealing.hand_text(hand) for hand in deal.hands]
        last = table.dealing.streets - 1
        board = table.dealing.board_text(last, deal.boards[last])
        found.append(Hand(played.line, (texts[0], texts[1]), board, names if number % 2 == 0 else names[::-1]))
    return found
