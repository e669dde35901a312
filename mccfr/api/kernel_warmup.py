"""Compiles numba kernels before commands need them, for `mccfr warmup`.

A kernel is a function that numba compiles once and stores on disk.  Its code depends on the types of arrays and not on
their sizes.  So the program does what a command would do with a game, on the smallest scale: one iteration, the fewest
hands and boards, and one hand in play.
"""

import tempfile
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from abstraction.buckets import is_abstraction
from abstraction.kernels.jit import kernel_directory
from mccfr.config.examples import find_file
from mccfr.config.run_tables import Config
from mccfr.config.toml_files import load_config
from mccfr.matches.bot_sessions import server_player
from mccfr.matches.players import PlayManner
from mccfr.play.resolving.resolving_table import settings_of
from mccfr.policy.writer import is_policy
from mccfr.runs.directory.run import is_run
from mccfr.runs.reporter import Silent
from mccfr.runs.session.run_plan import planned_layout
from mccfr.runs.session.spot_run import start_typed_spot
from mccfr.runs.session.start import Terms, start_run
from mccfr.runs.session.train_and_export import limited, train_and_export
from mccfr.solvers.game_from_config import configured_game
from mccfr.solvers.registry import algorithm_of
from mccfr.solvers.solver import Share
from mccfr.tables.table_layout import private_tables

ALL = ("kuhn", "leduc", "hunl-quick", "QsJh2h7c3d", "QsJh2h7c", "QsJh2h")
"""Targets of `mccfr warmup all`: examples, and a river, a turn and a flop."""

_BOARD_LENGTHS = (6, 8, 10)  # characters of three to five cards
_SPOT = {"oop": "TT+,AQs+,KQ", "ip": "99-22,ATs+,KJs+", "pot": 60.0, "stack": 170.0, "to": 1.0, "workers": 0}
_ONE = {"iterations": 1, "workers": 0}


def warm_up(target: str, say: Callable[[str], None] = lambda _: None) -> dict[str, Any]:
    """Compile the kernels (functions for numba) that a command needs, unless the cache has them.

    target  configuration or name of an example, for `solve`; board of three to five cards, for `spot`; policy (saved
            strategy) or run, for `bot --resolve flop`; or "all" for three examples and three boards
    say     called with a sentence if the target's card buckets are not built: only its training kernels are compiled

    Returns {"compiled", "kernels", "bytes", "directory"}: numbers of newly compiled and of all cached kernels, size and
    path of the cache. Raises `ValueError` for an unknown target, and the errors of solving or opening it.
    """
    before = len(_kernels())
    for each in ALL if target == "all" else (target,):
        with tempfile.TemporaryDirectory() as folder:
            _warm(each, Path(folder), say)
    sizes = _kernels()
    result = {"compiled": len(sizes) - before, "kernels": len(sizes), "bytes": sum(sizes)}
    return result | {"directory": str(kernel_directory())}


def _kernels() -> list[int]:
    """Return a list of the sizes in bytes of all compiled kernels in the cache on disk."""
    return [file.stat().st_size for file in kernel_directory().rglob("*.kernel")]


def _warm(target: str, folder: Path, say: Callable[[str], None]) -> None:
    """Compile the kernels for one target of `warm_up`, not "all"; `folder` is for temporary files."""
    if is_policy(Path(target)) or is_run(Path(target)):
        try:
            server_player(target, PlayManner(resolve=settings_of("flop")))
        except ValueError as error:
            raise ValueError(f"{target} cannot be prepared for `bot`: {error}; give the run's recipe instead") from None
        return
    if len(target) in _BOARD_LENGTHS and target[1::2].strip("shdc") == "" and not Path(target).exists():
        spot: Mapping[str, Any] = {"board": target, "directory": folder / "run", **_SPOT}
        started = start_typed_spot({**spot, "overrides": ("run.iterations=1",)}, Terms(Silent(), force=True))
        started.answer(train_and_export(started.run, started.game, Silent(), force=True)[0].directory)
        return
    file = find_file(Path(target))
    config = _shortest(load_config(file))
    abstraction = config.abstraction
    if abstraction is None or abstraction.recipe is None or is_abstraction(file.parent / abstraction.path):
        run, game = start_run(config, file.parent, folder / "run", Terms(Silent(), force=True))
        train_and_export(run, game, Silent(), force=True)
        return
    game = configured_game(config, file.parent)
    tables = np.zeros(game.cards.shared_bytes, np.uint8)  # kernels only need their types
    game = replace(game, cards=game.cards.in_memory(tables, fill=False))
    algorithm_of(config).solver(game, private_tables(planned_layout(config, game)), Share()).warm_up()
    say(f"{target}: its buckets are not built, so only training is prepared: evaluations and play compile when used")


def _shortest(config: Config) -> Config:
    """Return a run's configuration, changed to one iteration, one process and the least evaluation.

    That evaluation plays 100 hands or samples two boards, where the configuration states numbers.
    """
    evaluation, fewest = config.evaluation, {"hands": 100, "boards": 2}
    given = {key: least for key, least in fewest.items() if getattr(evaluation, key) is not None}
    points = {"at_nodes": (), "at_iterations": (), "keep": False}
    return msgspec.structs.replace(
        config, run=limited(config.run, _ONE), evaluation=msgspec.structs.replace(evaluation, **points, **given)
    )
