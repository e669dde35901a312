"""Round-robin tournament: each policy, run or program plays each other one, on the same deals."""

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from abstraction.kernels.compiling import working_seconds
from mccfr.common.intervals import ratio95
from mccfr.evaluation.samples import Effort
from mccfr.matches.match import figure_fields
from mccfr.matches.match_series import play_opened
from mccfr.matches.players import AS_WRITTEN, OpenedPlayer, PlayManner, is_policy_name, open_player
from mccfr.runs.phases import naming_phases
from mccfr.runs.reporter import Reporter, Silent
from storage import durable
from storage.manifest import content_hash

_AIVAT = 2
"""Column of the AIVAT-corrected chips among the figures of a pair of hands."""


def play_round_robin(
    names: Sequence[str],
    hands: int = 2_000,
    seed: int = 0,
    *,
    manner: PlayManner = AS_WRITTEN,
    workers: int = 1,
    keep: Path | None = None,
    reporter: Reporter | None = None,
) -> dict[str, Any]:
    """Play a round-robin tournament and return the dict that `mccfr rank --json` prints.

    names    policies, runs, and at most one program
    hands    number of hands of each match, rounded up to an even number
    seed     of the deals and the players
    manner   how the policies and runs play, such as always the likeliest action
    workers  number of processes
    keep     folder where each match saves its finished deals; the same call resumes from it

    All matches use the same deals, each in both seats. A player's mean winnings from all others on a deal are one
    sample, and its interval is over these samples.

    Raises `ValueError` for fewer than two names, a repeated or unknown name, or two programs. Also for different games,
    games of more than two players or with rake, or too few hands.
    """
    if len(names) < 2 or len(set(names)) < len(names):
        raise ValueError(f"{', '.join(names)}: at least two names are needed, each of them once")
    began, matches, won = working_seconds(), list[dict[str, Any]](), dict[tuple[str, str], npt.NDArray[np.float64]]()
    with naming_phases(reporter or Silent()) as phases:
        opened = list[OpenedPlayer]()
        for name in names:
            phases.phase(f"reading {name}")
            opened.append(open_player(name, manner if is_policy_name(name) else AS_WRITTEN))
        game = next((each.contender.spec.game for each in opened if each.contender.spec.game is not None), None)
        if game is not None and game.tree.players > 2:
            raise ValueError(
                f"a tournament has matches of two players, and {game.name} has {game.tree.players}: mccfr match plays "
                "with one name for each seat"
            )
        programs = [each.contender.name for each in opened if each.contender.spec.game is None]
        if len(programs) > 1:
            raise ValueError(f"{' and '.join(programs)} are programs, which name no game to meet in: give one at most")
        with nullcontext() if keep is None else durable.making_dirs(keep):
            for a, b in combinations(opened, 2):
                pair, seen = (a.contender.name, b.contender.name), list[npt.NDArray[np.float64]]()
                file = None if keep is None else keep / f"{content_hash(list(pair))[:16]}.units"
                phases.message(f"{pair[0]} against {pair[1]}")
                effort = Effort(workers, keep=file, note=seen.append)
                matches.append(play_opened((a, b), hands, seed, effort=effort, reporter=phases))
                won[pair] = seen[0][:, _AIVAT]
                won[pair[::-1]] = -won[pair]
    assert game is not None
    players = [
        _standing(name, [won[name, other] for other in names if other != name], game.big_blind_chips) for name in names
    ]
    players.sort(key=lambda player: -player["mean_chips"])
    spent = round(working_seconds() - began, 6)
    return {"players": players, "matches": matches, "hands": matches[0]["hands"], "seed": seed, "seconds": spent}


def _standing(name: str, won: Sequence[npt.NDArray[np.float64]], big_blind: float | None) -> dict[str, Any]:
    """Return a dict of a player's name, mean winnings per hand, and their 95 % interval.

    won        for each opponent [n]: the player's chips per hand on each of the n deals, corrected by AIVAT
    big_blind  in chips, for the winnings in mbb; None: the game has none
    """
    units = np.mean(won, axis=0)
    mean, interval = ratio95(units, np.ones(len(units)))
    return {"name": name, **figure_fields(mean, interval, big_blind)}


def round_robin_text(record: Mapping[str, Any]) -> str:
    """Return a tournament's table as text: mean winnings from all opponents, and from each.

    Each player has a line, the best one first. Winnings are in mbb per hand, or in chips if the game has no big blind,
    and corrected by AIVAT.

    record  the tournament as a dict, as `play_round_robin` returns it
    """
    players, names = record["players"], [player["name"] for player in record["players"]]
    unit = "chips" if players[0]["mean_mbb"] is None else "mbb"
    cells = {}
    for played in record["matches"]:
        (low, high), mean = played[f"aivat_ci95_{unit}"], played[f"aivat_mean_{unit}"]
        for pair, sign in (((played["a"], played["b"]), 1), ((played["b"], played["a"]), -1)):
            cells[pair] = f"{sign * mean:+.4g} ± {(high - low) / 2:.3g}"
    head = ["", "mbb/g" if unit == "mbb" else "chips", "95 %", *(f"from {k}" for k in range(1, len(names) + 1))]
    lines = [head]
    for place, player in enumerate(players, 1):
        low, high = player[f"ci95_{unit}"]
        own = [f"{place} {player['name']}", f"{player[f'mean_{unit}']:+.4g}", f"{low:+.4g} to {high:+.4g}"]
        lines.append(own + [cells.get((player["name"], other), "") for other in names])
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    texts = ["  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip() for line in lines]
    return "\n".join([*texts, f"{record['hands']:,} hands a match, AIVAT, the same deals in all"])
