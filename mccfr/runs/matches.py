"""From two names - policies, runs, programs - to a match."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from abstraction.compiling import working_seconds
from mccfr.config.file import config_from, to_document
from mccfr.config.tables import HoldemGame
from mccfr.evaluation.match import Contender, Figure, Match, match
from mccfr.evaluation.side import Side
from mccfr.evaluation.telling import tell_step
from mccfr.evaluation.units import Effort
from mccfr.play.hands import Hand, write_hands
from mccfr.play.programs import known_programs, program_named
from mccfr.play.resolving.table import settings_of
from mccfr.policy import Policy, StrategySource, is_policy
from mccfr.runs.phases import naming_phases, naming_steps
from mccfr.runs.report import Reporter, Silent
from mccfr.runs.results import open_target
from mccfr.runs.rundir import is_run, open_run

PLAYING = "playing"
_RESOLVE = " --resolve "


def play_match(
    names: tuple[str, str],
    hands: int = 2_000,
    seed: int = 0,
    *,
    effort: Effort = Effort(),  # noqa: B008  (frozen)
    log: Path | None = None,
    reporter: Reporter | None = None,
) -> dict[str, Any]:
    """What `mccfr match --json` says of a match.

    names  policies, runs or programs; the first one's winnings are told
    log    file for the hands as they were played, no-limit hold'em only

    Raises `ValueError` for a name of none of these, two programs, games that are not the same, too few hands.
    """
    with naming_phases(reporter or Silent()) as told:
        found = []
        for name in names:
            told.phase(f"reading {name}")
            found.append(_contender(name))
        contenders = tuple(contender for contender, _ in found)
        table = next((document for _, document in found if document is not None), None)
        config = None if log is None else _log_game(log, table)
        began = working_seconds()
        told.phase(PLAYING)
        with naming_steps(told):
            result = match(contenders, hands, seed, lambda done, total: tell_step("pair of hands", done, total), effort)
        if log is not None and config is not None:
            told.phase(f"writing {log}")
            write_hands(log, _played_hands(Match(contenders, seed), result.hands // 2), config)
    big_blind = next(contender.policy.game.big_blind_chips for contender in contenders if contender.policy is not None)
    record: dict[str, Any] = {"a": names[0], "b": names[1], "hands": result.hands}
    for title, figure in (("", result.chips), ("allin_", result.allin), ("aivat_", result.aivat)):
        record |= _told(title, figure, big_blind)
    return record | {"seed": seed, "seconds": round(working_seconds() - began, 6)}


def _told(title: str, figure: Figure, big_blind: float | None) -> dict[str, Any]:
    scale = None if not big_blind else 1000 / big_blind
    return {
        f"{title}mean_mbb": None if scale is None else figure.mean_chips * scale,
        f"{title}ci95_mbb": None if scale is None else [chips * scale for chips in figure.ci95_chips],
        f"{title}mean_chips": figure.mean_chips,
        f"{title}ci95_chips": list(figure.ci95_chips),
    }


def _contender(name: str) -> tuple[Contender, Mapping[str, Any] | None]:
    """Who plays under a name, and the `[game]` table of a policy or run.

    Behind a policy may stand how its hands are solved again: "hunl-quick-policy --resolve river".
    """
    plain, given, settings = name.partition(_RESOLVE)
    if given:
        blueprint, table = _contender(plain)
        if blueprint.policy is None:
            raise ValueError(f"{name}: {plain} is a program; only hands of a policy or a run are solved again")
        return replace(blueprint, name=name, resolve=settings_of(settings)), table
    path = Path(name)
    if is_policy(path):
        policy = Policy.open(path)
        return Contender(name, policy, Side(policy.game, policy.strategy())), policy.meta["game"]
    if is_run(path):
        found = open_target(path)
        table = to_document(open_run(path).config)["game"]
        return Contender(name, StrategySource(found.game, found.strategy), Side(found.game, found.strategy)), table
    program = program_named(name, (Path(),))
    if program is None:
        raise ValueError(f"{name} is neither a policy, nor a run, nor one of the programs {known_programs(name)}")
    return Contender(name, program=program), None


def _log_game(log: Path, table: Mapping[str, Any] | None) -> HoldemGame:
    """The game of hands that are to be written; `ValueError` where it is another than the format knows."""
    if table is not None and table.get("name") == "holdem":
        game = config_from({"game": dict(table)}, "the policy").game
        assert isinstance(game, HoldemGame)
        return game
    name = "two programs" if table is None else table.get("name")
    raise ValueError(f"{log}: hands are written of whole no-limit hold'em only, and this is {name}: leave --log out")


def _played_hands(table: Match, pairs: int) -> list[Hand]:
    """All hands of a match, played again: they follow from their numbers."""
    found = []
    for number in range(2 * pairs):
        deal, played = table.hand(number // 2, number % 2)
        texts = [table.dealing.hand_text(hand) for hand in deal.hands]
        last = table.dealing.streets - 1
        found.append(Hand(played.line, (texts[0], texts[1]), table.dealing.board_text(last, deal.boards[last])))
    return found
