"""Lists, finds and deletes the runs of solved spots in the folder runs/ for the web page.

A spot is a game of two hold'em players that begins on a given board, with ranges, pot and stacks.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mccfr.config.game_tables import HoldemSubgame, Menu
from mccfr.config.spot_table import STREETS
from mccfr.runs.directory.run import EVALUATIONS, Run, is_locked, is_run, open_to_look
from storage import durable

RUNS = Path("runs")
MOST_SPOTS = 500
"""Maximum number of listed spots, the newest."""


def solved_spots() -> list[dict[str, Any]]:
    """Return a dictionary for each solved spot in the folder runs/, newest first, at most 500.

    A spot is a game that begins on a given board, with two ranges. Runs without an evaluation are left out. The fields
    are:

    run           name of the run's directory
    asked         {field: text} of the page's form for spots, with which the spot can be solved again
    iterations    number of iterations at the last evaluation
    gap_pot       exploitability at the last evaluation, as a share of the pot
    unix_seconds  time of the last evaluation
    """
    found = []
    for run, game in _spot_runs():
        last = next(run.backwards(EVALUATIONS), None)
        if last is not None and game.pot:
            gap = round(last["exploitability_chips"] / game.pot, 8)
            written = run.path(EVALUATIONS).stat().st_mtime
            told = {"iterations": last["iterations"], "gap_pot": gap, "unix_seconds": written}
            found.append({"run": run.directory.name, "asked": spot_fields(run), **told})
    return sorted(found, key=lambda one: -one["unix_seconds"])[:MOST_SPOTS]


def _spot_runs() -> Iterator[tuple[Run, HoldemSubgame]]:
    """Yield each run in runs/ of a spot whose board is in its configuration, with its `[game]` table.

    Runs that cannot be read are skipped.
    """
    for directory in RUNS.iterdir() if RUNS.is_dir() else ():
        if is_run(directory):
            try:
                run = open_to_look(directory)
            except (ValueError, OSError):  # other commands report a damaged run
                continue
            if isinstance(game := run.config.game, HoldemSubgame) and game.board is not None:
                yield run, game


def find_spot(name: str) -> Path:
    """Return the path of the directory `name` in runs/; `ValueError` if it is no run of a solved spot."""
    found = next((run.directory for run, _ in _spot_runs() if run.directory.name == name), None)
    if found is None:
        raise ValueError(f"no solved spot in {RUNS}/ is named {name[:80]!r}")
    return found


def delete_spot(name: str) -> dict[str, Any]:
    """Delete the run of a solved spot; return the others as {"spots": result of `solved_spots`}.

    name  name of the run's directory in runs/

    Raises `ValueError` for an unknown name, and for a run on which a process works.
    """
    directory = find_spot(name)
    if is_locked(open_to_look(directory)):
        raise ValueError(f"{name} is being solved: stop it before you delete it")
    durable.drop_trees([directory])
    return {"spots": solved_spots()}


def spot_fields(run: Run) -> dict[str, str]:
    """Return {field: text} of the web page's form, with which the spot of a run can be solved again.

    A spot is a game that begins on a given board. Fields are for example `board`, `pot` and `bets`; empty ones are left
    out.
    """
    game = run.config.game
    assert isinstance(game, HoldemSubgame)
    first = STREETS[max(len(str(game.board)) // 2 - 2, 1) :]
    ranges = {side: text for side, text in (game.ranges or {}).items() if isinstance(text, str)}
    numbers = {"pot": game.pot, "stack": game.effective_stack, "rake_cap": game.rake_cap}
    locks = "\n".join(f"{line}={actions}" for line, actions in (game.locks or {}).items())
    texts = {
        "board": str(game.board),
        **ranges,
        **{name: f"{value:g}" for name, value in numbers.items() if value is not None},
        "bets": "/".join(_sizes(game.menu, street, "first") for street in first),
        "raises": "/".join(_sizes(game.menu, street, "later") for street in first),
        "rake": "" if game.rake == "0%" else str(game.rake),
        "to": str(run.config.run.exploitability_pot or ""),
        "locks": locks,
    }
    return {name: text for name, text in texts.items() if text}


def _sizes(menu: Menu, street: str, key: str) -> str:
    """Return a street's sizes as text, such as "33%,75%".

    menu  bet sizes that the game allows
    key   "first": sizes of the first bet on the street; "later": of raises
    """
    here = getattr(menu, street)
    sizes = getattr(here, key, None) if here is not None else None
    return ",".join(getattr(menu, key) if sizes is None else sizes)
