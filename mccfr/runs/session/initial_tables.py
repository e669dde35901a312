"""Warm start: initialises a run from another run's tables under a different card abstraction.

Only the algorithm cfr-br does so, if `solver.warm_start` names the directory of the other run. With few buckets, each
bucket learns from every sampled board; with many, each learns from few boards. Starting many buckets from the tables of
few makes them less exploitable after the same number of boards (docs/measured/evaluation.md). The counts of boards and
nodes continue, because all weights depend on them.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mccfr.config.run_tables import Config
from mccfr.config.solver_tables import CfrBrConfig
from mccfr.games.game import Game
from mccfr.runs.directory.identity import game_document
from mccfr.runs.directory.run import Run, is_run, open_run
from mccfr.runs.results.checkpoints import find_checkpoint
from mccfr.solvers.public.cfr_br_algorithm import trunk_game
from mccfr.solvers.public.public_chance.sampled_board_responses import TRUNK
from mccfr.solvers.warm_start import share_out
from mccfr.tables.table_layout import TableSet, private_tables
from storage.checkpoint import Checkpoint


def check_warm_start(config: Config, base: Path) -> None:
    """Raise `ValueError` if `solver.warm_start` names a directory from which this run cannot start.

    It must be a cfr-br run of the same `[game]` with a checkpoint.

    base  directory that the configuration's files are relative to
    """
    _opened(config, base)


def begin_from_run(run: Run, game: Game, tables: TableSet) -> Mapping[str, Any] | None:
    """Fill a new run's tables from the newest checkpoint of the run that `solver.warm_start` names.

    tables  tables of `run`, filled in place; a bucket gets the mean of the other run's buckets, weighted by the hands
            that it has in common with each

    Returns the checkpoint's state, or None if no run is named. The state has the other run's numbers of iterations and
    nodes, in all and by worker; the new run counts on from them. A worker's number of discounts done so far is
    limited to the number of periods that the new run's schedule has had by then.

    Raises `ValueError` if the named directory holds no run, or one of another `[game]` or algorithm, or one without a
    checkpoint.
    """
    opened = _opened(run.config, run.directory)
    if opened is None:
        return None
    source, checkpoint = opened
    source_game = source.build_game()
    source_tables = private_tables(source.layout(source_game))
    for name, table in source_tables.items():
        checkpoint.read_into(name, table)
    share_out(("regret", "strategy_sum"), (game, tables), (source_game, source_tables))
    share_out((TRUNK,), (_trunk(run, game), tables), (_trunk(source, source_game), source_tables))
    ends = run.algorithm.schedule.ends(checkpoint.state["nodes_touched"])  # the other run's periods may be longer
    workers = [
        {**state, "rng": [min(words[0], ends), *words[1:]] if (words := state["rng"]) else []}  # as in `known_state`
        for state in checkpoint.state["workers"]
    ]
    return {**checkpoint.state, "workers": workers}


def _trunk(run: Run, game: Game) -> Game:
    """Return the game with the buckets by which cfr-br stores the regrets of opponents.

    These regrets are for all streets but the last (the trunk); on the last, opponents play best responses with their
    real cards. Returns `game` itself if opponents use the players' buckets.
    """
    assert isinstance(run.config.solver, CfrBrConfig)
    return trunk_game(run.config.solver, game) or game


def _opened(config: Config, base: Path) -> tuple[Run, Checkpoint] | None:
    """Return the run that `solver.warm_start` names and its newest checkpoint; None: it names no run.

    `solver.warm_start` may also be unset or a number of nodes.

    base  directory that the configuration's files are relative to

    Raises `ValueError` if the named directory holds no run, or one of another `[game]` or algorithm, or one without a
    checkpoint.
    """
    start = config.solver.warm_start if isinstance(config.solver, CfrBrConfig) else None
    if not isinstance(start, str):
        return None
    directory = (base / start).resolve()
    key = f"solver.warm_start = {str(directory)!r}"
    if not is_run(directory):
        raise ValueError(f"{key} is no run: solve it first, or give nodes of external sampling, such as 2e9")
    source = open_run(directory)
    game = source.manifest["identity_document"]["game"]
    if not isinstance(source.config.solver, CfrBrConfig) or game != game_document(config, base):
        raise ValueError(f"{key} is a run of another [game], or not by 'cfr-br': name one of the same bets")
    return source, find_checkpoint(source, None)
