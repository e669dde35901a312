"""Writes policies for OpenSpiel, as a JSON file with action probabilities by information state string.

OpenSpiel's game and ours are traversed together.  The keys are the strings of OpenSpiel's states, and all legal actions
and payoffs are compared.  The file:

    {"format": "openspiel-policy", "format_version": 1,
     "game": "leduc_poker()",            argument of pyspiel.load_game
     "payoff_scale": 1.0,                chips per unit of OpenSpiel's payoffs
     "provenance": {...},
     "policy": {information state string: {action id: probability}}}

To load it, set `policy.policy_for_key(string)[int(action)] = probability` for every entry of a `TabularPolicy` of
`open_spiel.python.policy`; or give
`pyspiel.TabularPolicy({string: [(int(action), probability), ...]})` to `pyspiel.nash_conv(game, policy, True)`.
Exploitability in chips is payoff_scale · nash_conv / 2.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from mccfr.config.game_tables import GAMES, GoofspielGame, KuhnGame, LeducGame, OpenSpielGame, PokerGame
from mccfr.policy.export.openspiel_walk import OpenSpielWalk
from mccfr.policy.overwrite import provenance_in
from mccfr.policy.strategy_profile import Behaviour
from storage import durable
from storage.atomic_outputs import begins_with, output
from storage.damage import reading

FORMAT, FORMAT_VERSION = "openspiel-policy", 1
_FOLD, _CALL, _RAISE = 0, 1, 2
_HEAD_BYTES = 1 << 16
_FIRST_BYTES = json.dumps({"format": FORMAT})[:-1].encode()


@dataclass(frozen=True)
class OpenSpielForm:
    """Holds how OpenSpiel represents a game of ours: its name there, action ids and unit of payoffs."""

    game: str  # argument of pyspiel.load_game
    action: Callable[[str, bool], int]  # action id of a label; the flag is True if the player faces a bet
    payoff_scale: float = 1.0  # chips per unit of OpenSpiel's payoffs


def translation(document: Mapping[str, Any]) -> OpenSpielForm:
    """Return how OpenSpiel represents the game of a configuration's `[game]` table.

    Raises `ValueError` if OpenSpiel has no such game.
    """
    kind = GAMES.get(document["name"])
    match None if kind is None else msgspec.convert(document, kind):
        case KuhnGame():
            return OpenSpielForm("kuhn_poker()", lambda label, faced: int(label == "b" or (label == "c" and faced)))
        case LeducGame() as config if _is_standard_leduc(config):
            return OpenSpielForm("leduc_poker()", _limit_action)
        case PokerGame() as config:
            return _universal_poker(config)
        case GoofspielGame() as config:
            return _goofspiel(config)
        case OpenSpielGame() as config:
            return OpenSpielForm(config.game, lambda label, _: int(label))
    raise ValueError(
        f"OpenSpiel has no game like {document['name']!r} with these parameters; the format openspiel serves kuhn, "
        "leduc (3 ranks, 2 suits, 2 raises, bets 2 and 4), poker, goofspiel and openspiel: take policy or csv"
    )


def _is_standard_leduc(config: LeducGame) -> bool:
    sizes = [list(bets) for bets in config.bets]
    return (config.ranks or 3, config.suits, config.raises, sizes) == (3, 2, 2, [[2], [4]])


def _limit_action(label: str, _: bool) -> int:
    return {"f": _FOLD, "c": _CALL}.get(label, _RAISE)


def _no_limit_action(label: str, _: bool) -> int:
    return {"f": _FOLD, "c": _CALL}[label] if label in "fc" else int(label[1:])


def _universal_poker(config: PokerGame) -> OpenSpielForm:
    posted = list(config.blinds or config.antes)
    streets = len(config.board_cards)
    stacks = list(config.stack) if isinstance(config.stack, Sequence) else [config.stack] * 2
    amounts = [*posted, *stacks, *config.raise_sizes]
    if any(amount != int(amount) for amount in amounts):
        raise ValueError(f"OpenSpiel's poker knows whole chips only; this game has {amounts}")
    lists = {
        "blind": posted,
        "firstPlayer": config.first_player or [1] * streets,
        "numBoardCards": config.board_cards,
        "stack": stacks,
        "raiseSize": config.raise_sizes,
        "maxRaises": config.max_raises,
    }
    parameters: dict[str, object] = {
        "betting": "limit" if config.raise_sizes else "nolimit",
        # OpenSpiel's "fullgame" has no raises in limit betting; "fcpa" has one, of the fixed size.
        "bettingAbstraction": "fcpa" if config.raise_sizes else "fullgame",
        "numHoleCards": config.hole_cards,
        "numPlayers": 2,
        "numRanks": config.ranks,
        "numRounds": streets,
        "numSuits": config.suits,
    }
    for name, values in lists.items():
        if values:
            # OpenSpiel needs text and reads a single number as an integer; it ignores surplus numbers.
            parameters[name] = " ".join(str(int(value)) for value in (list(values) * 2 if len(values) == 1 else values))
    text = ",".join(f"{name}={value}" for name, value in sorted(parameters.items()))
    return OpenSpielForm(f"universal_poker({text})", _limit_action if config.raise_sizes else _no_limit_action)


def _goofspiel(config: GoofspielGame) -> OpenSpielForm:
    hidden = config.reveal == "result"
    inner = (
        f"goofspiel(imp_info={hidden},num_cards={config.cards},points_order=ascending,returns_type=point_difference)"
    )
    # OpenSpiel pays the difference from the mean of both totals, half of the difference between them.
    return OpenSpielForm(f"turn_based_simultaneous_game(game={inner})", lambda label, _: int(label) - 1, 2.0)


def write_openspiel(
    out: Path,
    game_document: Mapping[str, Any],
    source: Behaviour,
    provenance: Mapping[str, Any],
    replaceable: Callable[[Path], bool],
) -> None:
    """Write a policy that OpenSpiel can load: JSON with action probabilities by information state string.

    game_document  the `[game]` table of the run's configuration
    source         the strategy and its game
    provenance     JSON with the origin of the strategy
    replaceable    takes a path at which something exists, and returns whether it may be replaced

    Raises `ValueError` if open_spiel is missing, or if OpenSpiel has no such game or a different one.  Raises it too if
    OpenSpiel merges infosets whose strategies differ.  Raises `FileExistsError` if `out` may not be replaced.
    """
    try:
        import pyspiel
    except ImportError:
        raise ValueError(
            "export format 'openspiel' needs open_spiel: run tools/bootstrap openspiel in the clone"
        ) from None
    chosen = translation(game_document)
    walk = OpenSpielWalk(source, pyspiel.load_game(chosen.game), chosen.action, chosen.payoff_scale)
    document = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "game": chosen.game,
        "payoff_scale": chosen.payoff_scale,
        "provenance": provenance,
        "policy": walk.policy(),
    }
    with output(out, replaceable) as temporary:
        durable.write_file(temporary, json.dumps(document, allow_nan=False).encode() + b"\n")


def openspiel_provenance(path: Path) -> Mapping[str, Any] | None:
    """Return the provenance of an OpenSpiel export; None for another file.

    Only the first 64 KiB of the file are read. The result is {} if they do not contain the whole provenance.
    """
    if not begins_with(_FIRST_BYTES)(path):
        return None
    with reading(path), path.open("rb") as file:
        head = file.read(_HEAD_BYTES)
    _, _, rest = head.decode(errors="replace").partition('"provenance": ')
    try:
        return provenance_in({"provenance": json.JSONDecoder().raw_decode(rest)[0]})
    except (ValueError, RecursionError):
        return {}
