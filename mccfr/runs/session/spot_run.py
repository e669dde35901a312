"""Creates the run that solves a spot (board, ranges, pot and stacks), and returns its results."""

import dataclasses
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from abstraction.cards import plain_text
from mccfr.config.run_tables import Config
from mccfr.config.spot_table import AUTO, STREETS, locks_of, sizes_of, spot_document
from mccfr.config.toml_files import check_overrides, config_from, override, parse_override
from mccfr.config.value_limits import share_text
from mccfr.games.game import Game
from mccfr.games.holdem_subgame import dropped_text, spot_endgame
from mccfr.runs.directory.identity import identity_document
from mccfr.runs.directory.run import Run
from mccfr.runs.results.line_spot import TYPED, requested_spot
from mccfr.runs.results.spot_answer import spot_answer
from mccfr.runs.session.run_plan import planned_layout, planned_memory, space_problem
from mccfr.runs.session.spot_sizes import TypedSizes, chosen_menu
from mccfr.runs.session.start import Terms, start_run
from mccfr.tables.table_layout import TableLayout
from storage.manifest import content_hash
from storage.threads import available_threads

_NAME_DIGITS = 6
_HALF_POT, _TO = "0.5p", 0.003
_BYTES_PER_SECOND = 1e9  # of tables that a thread walks: 0.95 s for the 1.0 GB of a two-tone flop


@dataclass(frozen=True)
class SpotOptions:
    """Options of a spot's run, besides its board, ranges, pot and stacks; `start_spot` takes them.

    bets, raises  sizes such as "50%,100%/75%" of the pot, streets separated by "/"; with "auto:N" the program chooses N
                  sizes. If both are None, the menu `own` is used, or without it half the pot for both. If only one is
                  None, it is half the pot. Exception: raises None are the text of bets, if this contains "auto:N"
    to            exploitability that ends the run, as a share of the pot; None: 0.3 %
    workers       number of threads; None: one per processor
    menu          further keys of `[game.menu]`, the bet menu, such as "donk"
    own           `[game.menu]` of the policy from whose betting line the spot comes; None: no policy
    directory     directory of the run; None: a separate one for each spot, in runs/
    overrides     further keys of the configuration, as "table.key=value"
    seconds       limit of the time to choose sizes and train together; None: no limit
    """

    bets: str | None = None
    raises: str | None = None
    to: float | None = None
    workers: int | None = None
    menu: Mapping[str, Any] | None = None
    own: Mapping[str, Any] | None = None
    directory: Path | None = None
    overrides: Sequence[str] = ()
    seconds: float | None = None


@dataclass(frozen=True)
class SpotRun:
    """The run of a spot, ready for training; after training, `answer` returns the results.

    memory_bytes          bytes of memory that the run needs, as estimated before training
    seconds_an_iteration  estimated seconds of one iteration, from the size of the tables
    began                 monotonic time at which `start_spot` was called, in seconds
    """

    run: Run
    game: Game
    memory_bytes: int
    seconds_an_iteration: float
    began: float

    def answer(self, directory: Path) -> dict[str, Any]:
        """Return the fields that `mccfr spot --json` prints, for the newest checkpoint.

        Among them are exploitability, and both players' first actions, EVs and equities by hand class. Added are the
        run's directory, planned memory in bytes and seconds since the start.

        directory  present directory of the run (`Outcome.directory`), which may have been moved during training
        """
        run = dataclasses.replace(self.run, directory=directory)
        fields = spot_answer(run, max(1, run.config.run.workers))
        seconds = round(time.monotonic() - self.began, 3)
        return {**fields, "seconds": seconds, "memory_bytes": self.memory_bytes, "run": str(directory)}


def start_typed_spot(fields: Mapping[str, Any], terms: Terms) -> SpotRun:
    """Create or open the run of a spot from the values that a user has typed; None means the default.

    fields  {name: value}. Names are board, and either oop and ip (the ranges out of and in position), pot and stack, or
            policy and line (a betting line in a policy). Others are the fields of `SpotOptions` except `menu` and
            `own`. Further names are keys of `[game]`: big_blind, rake, rake_cap, and locks as texts LINE=ACTIONS. Those
            of `[game.menu]` are allin_spr, add, remove, and donk as a text of sizes

    Raises `ValueError` for invalid, missing or contradictory values, and for too little memory or disk. Raises
    `FileExistsError` if other files are at its path, and `BlockingIOError` if another process creates it.
    """
    options = {key: value for key, value in fields.items() if value not in (None, (), [])}
    typed = {name: options.pop(name, None) for name in TYPED}
    board, policy, line = (options.pop(name, None) for name in ("board", "policy", "line"))
    game, own = requested_spot(board, typed, policy, line)
    if "donk" in options:
        options["donk"] = sizes_of(options["donk"])
    if "locks" in options:
        options["locks"] = locks_of(options["locks"])
    if "rake" in options:
        options["rake"] = share_text(options["rake"])
    game |= {key: options.pop(key) for key in ("big_blind", "rake", "rake_cap", "locks") if key in options}
    menu: dict[str, Any] = {key: options.pop(key) for key in ("allin_spr", "add", "remove", "donk") if key in options}
    return start_spot(game, SpotOptions(menu=menu, own=own, **options), terms)


def start_spot(game: Mapping[str, Any], options: SpotOptions, terms: Terms) -> SpotRun:
    """Create or open the run that solves a spot; report hands that the board removes from ranges.

    game     keys of `[game]`: at least board, ranges, pot and effective_stack (chips)
    options  bet sizes, end of the run, directory and overrides
    terms    permissions, and the receiver of messages

    Raises `ValueError` for an invalid spot, a key that is given twice, and too little memory or disk. Raises
    `FileExistsError` if other files are at its path, and `BlockingIOError` if another process creates it.
    """
    began = time.monotonic()
    cards = len(plain_text(str(game["board"]))) // 2
    _check_overrides(game, options)
    workers = available_threads() if options.workers is None else options.workers
    changes = [parse_override(text) for text in options.overrides]
    menu, seconds = {**(options.own or {}), **(options.menu or {})}, options.seconds
    if options.own is None or options.bets is not None or options.raises is not None:
        bets = _HALF_POT if options.bets is None else options.bets
        raises = (bets if AUTO in bets.lower() else _HALF_POT) if options.raises is None else options.raises
        sizes, street = TypedSizes(bets, raises, options.menu or {}), min(max(cards - 2, 1), 3)
        auto = AUTO in (bets + raises).lower()
        if auto:
            menu = chosen_menu(_changed(game, changes), sizes, street, max(1, workers), terms.reporter, seconds)
            seconds = None if seconds is None else max(0.0, seconds - (time.monotonic() - began))
        else:
            menu = sizes.filled(street)
    to = _TO if options.to is None else options.to
    document = spot_document({**game, "menu": menu}, to, workers, seconds=seconds)
    if dict(changes).get("solver.algorithm", "cfr") != "cfr":  # another algorithm has other keys
        document["solver"] = {}
    for path, value in changes:
        override(document, path, value, f"--set {path}")
    config = config_from(document, "the spot", (Path(),))
    endgame, dropped = spot_endgame(config.game)  # type: ignore[arg-type]
    if (sentence := dropped_text(dropped, endgame.board)) is not None:
        terms.reporter.message(sentence)
    mark = content_hash(identity_document(config, Path()))[:_NAME_DIGITS]
    board = re.sub(r"\W", "", str(game["board"]))
    directory = options.directory or Path("runs") / f"spot-{board}-{mark}"
    run, spot_game = start_run(config, Path(), directory, dataclasses.replace(terms, room=_room_problem))
    layout = run.layout(spot_game)
    iteration = layout.nbytes / (_BYTES_PER_SECOND * max(1, run.config.run.workers))
    return SpotRun(run, spot_game, planned_memory(run.config, spot_game, layout)["memory_bytes"], iteration, began)


def _changed(game: Mapping[str, Any], changes: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """Return `[game]` after the overrides of its keys, for the choice of bet sizes.

    changes  (key, value) of each override, such as ("game.pot", 20); other tables' keys are ignored

    Raises `ValueError` for an override of `[game.menu]`, because sizes are still to be chosen.
    """
    document: dict[str, Any] = {"game": dict(game)}
    for path, value in changes:
        if f"{path}.".startswith("game.menu."):
            raise ValueError(
                f"--set {path} beside bet sizes auto:N is not allowed: give sizes with --bets and --raises"
            )
        if path.startswith("game."):
            override(document, path, value, f"--set {path}")
    changed: dict[str, Any] = document["game"]
    return changed


def _check_overrides(game: Mapping[str, Any], options: SpotOptions) -> None:
    """Raise `ValueError` if an override sets a key that another option or `game` sets as well.

    game  keys of `[game]` of the spot
    """
    run = {"exploitability_pot": options.to, "seconds": options.seconds, "workers": options.workers}
    taken = [f"run.{key}" for key, value in run.items() if value is not None]
    taken += [f"game.{key}" for key in game] + [f"game.menu.{key}" for key in options.menu or {}]
    for key, sizes in (("first", options.bets), ("later", options.raises)):
        taken += [] if sizes is None else [f"game.menu.{street}.{key}" for street in STREETS]
    check_overrides((parse_override(text)[0] for text in options.overrides), taken)


def _room_problem(config: Config, game: Game, layout: TableLayout, directory: Path) -> str | None:
    """Return a sentence if memory or disk are too small for a spot, with advice; None if they suffice.

    directory  directory of the run, existing or not
    """
    problem = space_problem(config, game, layout, directory)
    if problem is None:
        return None
    narrow = replace(config, solver=replace(config.solver, dtype="int16"))
    fits = space_problem(narrow, game, planned_layout(narrow, game), directory) is None
    less = " (cells of 16 bits fit: --set solver.dtype=int16)" if fits else ""
    return f"{problem}; make it coarser: fewer sizes in --bets and --raises, or narrower ranges{less}"
