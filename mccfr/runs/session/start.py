"""The one way a run begins: from a configuration to a run directory and its game, whoever asks.

Everything that decides what is trained happens here, so that every starter of a configuration trains the same bits:
checks before anything is written, the length of a period where the game sets it, the abstraction's recipe, the
layout of the tables, and the refusal of what finds no room.
"""

import dataclasses
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from abstraction.buckets import is_abstraction, verify_abstraction
from mccfr.config.tables import Config, RunSettings
from mccfr.games.catalogue import build_game
from mccfr.games.game import Game
from mccfr.runs.directory import run as rundir
from mccfr.runs.directory.run import Run
from mccfr.runs.directory.warm_start import check_warm_start
from mccfr.runs.reporter import Reporter
from mccfr.runs.results.evaluator import check_evaluation, passed_over
from mccfr.runs.results.export_place import check_export
from mccfr.runs.session.plan import planned_layout, room_problem
from mccfr.solvers.configured import configured_game, stratified
from mccfr.solvers.registry import algorithm_of
from mccfr.tables.layout import TableLayout
from storage.live import sweep_live

Room = Callable[[Config, Game, TableLayout, Path], str | None]
"""What says, as `room_problem`, what a run in a directory lacks."""
Stages = Callable[[], AbstractContextManager[Callable[[str, float], None] | None]]
"""Opened while an abstraction is built, it gives what is told the stage's name and the share of it that is done."""


def rehearse(
    config: Config,
    base: Path,
    directory: Path,
    reporter: Reporter,
    *,
    force: bool = False,
    replace: bool = False,
    game: Game | None = None,
    room: Room = room_problem,
) -> tuple[Config, Game]:
    """Check a run as far as that goes before anything is built or written.

    config     files it names are relative to `base`
    directory  where the run would lie; one that is there already is asked for room when it goes on
    reporter   told of live tables that dead processes have left, which are removed: what they take is not available
    force      although memory or disk are too small
    replace    an export of another run may be replaced at the end
    game       of `config`, where it is made already
    room       what says whether there is enough

    Returns the configuration with the length of a period written out, and the game as far as it is known without its
    abstraction.  Raises `ValueError` or `OSError` for a game, an algorithm, tables or evaluations that cannot be, an
    export that would replace something else, and for too little memory or disk.
    """
    if (problem := algorithm_of(config).problem()) is not None:
        raise ValueError(problem)
    known = game or _rehearsal(config, base)
    config = algorithm_of(config).completed(known)
    check_evaluation(config.evaluation, known)
    if not rundir.is_run(directory):
        check_warm_start(config, base, known)
        check_export(config.export, known, directory, replace=replace)
    if game is not None or config.abstraction is None or known.cards.shared_bytes:  # sizes are known
        layout = planned_layout(config, known)
        if not rundir.is_run(directory):
            _find_room(config, known, layout, directory, reporter, force, room)
    return config, known


def start_run(
    config: Config,
    base: Path,
    directory: Path,
    reporter: Reporter,
    *,
    force: bool = False,
    replace: bool = False,
    stages: Stages = nullcontext,
    game: Game | None = None,
    ignored: Sequence[str] = (),
    room: Room = room_problem,
) -> tuple[Run, Game]:
    """Make the run that `config` describes, or open it where it stands; what is left to do is to train it.

    config, base, directory, force, replace, game, room  as `rehearse`; of a run that is there, limits and evaluations
              change
    reporter  told what is unusual about the run
    stages    told how far an abstraction is that must be built
    ignored   keys of `[solver]` that were given and that the algorithm does not have (`config_file.ignored_keys`)

    Raises as `rehearse`, `find_abstraction` and `rundir.create_run`, and `ValueError` where `directory` holds another
    run.
    """
    for key in ignored:
        reporter.message(f"solver.{key} is ignored by algorithm {algorithm_of(config).name!r}")
    if game is None and config.abstraction is None:
        game = configured_game(config, base)
    if rundir.is_run(directory):
        run = reopen_run(algorithm_of(config).completed(game or _rehearsal(config, base)), base, directory)
        run = dataclasses.replace(run, replace=replace)
        return run, prepare_run(run, reporter, force=force, game=game, room=room)
    config, _ = rehearse(config, base, directory, reporter, force=force, replace=replace, game=game, room=room)
    if game is None:
        find_abstraction(config, base, stages)
        game = configured_game(config, base)
    layout = planned_layout(config, game)
    lack = _find_room(config, game, layout, directory, reporter, force, room)
    run = rundir.create_run(config, base, directory, layout)
    _tell(run.config, game, lack, reporter)
    return dataclasses.replace(run, replace=replace), game


def reopen_run(config: Config, base: Path, directory: Path) -> Run:
    """The run in `directory` with the limits, evaluations and export of `config`, whose period is written out.

    Raises `ValueError` where `config` describes another run, and as `rundir.open_run`.
    """
    run = rundir.open_run(directory)
    rundir.check_same_run(run, config, base)
    return rundir.with_settings(
        run,
        run=config.run,
        evaluation=config.evaluation,
        export=config.export,
        tables=config.tables,
        cluster=config.cluster,
    )


def prepare_run(
    run: Run, reporter: Reporter, *, force: bool = False, game: Game | None = None, room: Room = room_problem
) -> Game:
    """The game of a run that goes on, once it is found fit to; `force` and `room` as `rehearse`.

    Raises `ValueError` for evaluations that do not suit the game, and for too little memory or disk, unless `force`;
    `FileExistsError` where its export would replace something else.
    """
    if (problem := run.problem) is not None:
        raise ValueError(problem)
    game = game or run.build_game()
    check_evaluation(run.config.evaluation, game)
    check_export(run.config.export, game, run.directory, run.run_id, replace=run.replace)
    lack = None
    if not rundir.is_locked(run):  # a running run has its tables already
        lack = _find_room(run.config, game, run.layout(game), run.directory, reporter, force, room)
    _tell(run.config, game, lack, reporter)
    if (unseen := run.unseen) is not None:
        reporter.message(unseen)
    return game


def find_abstraction(config: Config, base: Path, stages: Stages = nullcontext) -> None:
    """Build the abstraction that the config's recipe describes, or see that the one it names is sound in every byte.

    Raises `ValueError` for a damaged abstraction without a recipe, and as `abstraction.build.Builder`.
    """
    wanted = config.abstraction
    if wanted is None:
        return
    path = base / wanted.path
    if wanted.recipe is not None:
        from abstraction.build import Builder
        from abstraction.recipe import load_recipe

        with stages() as told:
            Builder(load_recipe(base / wanted.recipe), path, max(1, config.run.workers), told).build()
    elif is_abstraction(path):
        for problem in verify_abstraction(path):
            raise ValueError(f"{path}: {problem}: build the abstraction again")


def _rehearsal(config: Config, base: Path) -> Game:
    """The game of a configuration as far as it is known before its abstraction is built."""
    if config.abstraction is None:
        return configured_game(config, base)
    known = build_game(config.game, base, config.abstraction)
    return stratified(known, config) if known.cards.shared_bytes else known


def _find_room(
    config: Config, game: Game, layout: TableLayout, directory: Path, reporter: Reporter, force: bool, room: Room
) -> str | None:
    """Raise `ValueError`, with both numbers, where the run finds too little memory or disk; with `force`, return it."""
    for removed in sweep_live(config.tables.live_dir):
        reporter.message(f"removed the live tables of a process that died: {removed}")
    problem = room(config, game, layout, directory)
    if problem is not None and not force:
        raise ValueError(f"{problem}; or use --force")
    return problem


def _tell(config: Config, game: Game, lack: str | None, reporter: Reporter) -> None:
    """Say what the run goes on in spite of, and which settings are allowed but rarely meant."""
    if lack is not None:
        reporter.message(f"going on, as --force says, although {lack}")
    for key in passed_over(config.evaluation, game):
        reporter.message(f"evaluation.{key} is ignored: no method of [evaluation] takes it on {game.name}")
    if config.run.strata is None and config.run.interval != RunSettings().interval:
        reporter.message("run.interval is ignored without run.strata")
    for sentence in algorithm_of(config).warnings():
        reporter.message(sentence)
