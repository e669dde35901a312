"""Starts runs: makes the run directory and the game of a configuration, for all callers.

Every decision that affects training is made here, so that each caller gets the same tables, bit for bit:

* checks before anything is written
* the default length of discount periods, and the recipe (settings file) of an abstraction
* the layout of the tables, and the check of memory and disk
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from msgspec import structs

from abstraction.buckets import is_abstraction, verify_abstraction
from mccfr.config.run_tables import Config
from mccfr.config.table_base import fields_of, first_refused
from mccfr.config.toml_files import config_checks, converted, override, parse_override, to_document
from mccfr.config.value_limits import limit_problems
from mccfr.games.game import Game
from mccfr.games.registry import build_game
from mccfr.runs.directory import run as rundir
from mccfr.runs.directory.identity import check_same_run, identity_document
from mccfr.runs.directory.run import Run
from mccfr.runs.phases import naming_stages
from mccfr.runs.reporter import Reporter
from mccfr.runs.results.checkpoint_evaluator import check_evaluation
from mccfr.runs.results.export_place import check_export
from mccfr.runs.session.initial_tables import check_warm_start
from mccfr.runs.session.pools import training_problem
from mccfr.runs.session.run_plan import Room, builders, planned_layout, space_problem
from mccfr.solvers.game_from_config import configured_game, opponents_buckets, stratified, with_opponents
from mccfr.solvers.registry import algorithm_of
from mccfr.tables.table_layout import TableLayout
from storage.live_tables import sweep_live


@dataclass(frozen=True)
class Terms:
    """Permissions of a run that starts or continues, and the receiver of its messages.

    reporter  receives messages on unusual settings, on the progress of building an abstraction, and on removed shared
              memory that dead processes left behind
    force     continue although memory or disk are too small
    replace   allow the export at the end of training to replace the export of another run
    room      function that returns a sentence if memory or disk are too small for a run, else None
    """

    reporter: Reporter
    force: bool = False
    replace: bool = False
    room: Room = space_problem


@dataclass(frozen=True)
class Start:
    """A configuration to train, with its game and other values, each computed when first used.

    config     the configuration; its files are relative to `base`
    directory  directory of the run, existing or not
    terms      the caller's permissions, and the receiver of messages
    made       the compiled game of `config`; None: compile it when needed
    """

    config: Config
    base: Path
    directory: Path
    terms: Terms
    made: Game | None = None

    @cached_property
    def foreseen(self) -> Game:
        """The compiled game as known before its abstraction is built; the buckets of hands may be missing."""
        wanted = self.config.abstraction
        if self.made is not None or wanted is None:
            return self.game
        known = build_game(self.config.game, self.base, wanted)
        known = with_opponents(known, self.config, self.base)
        return stratified(known, self.config) if known.cards.shared_bytes else known

    @cached_property
    def game(self) -> Game:
        """The compiled game with its buckets; the files of its abstraction must exist."""
        return self.made or configured_game(self.config, self.base)

    @cached_property
    def completed(self) -> Config:
        """The configuration with values that depend on the game filled in, such as discount periods.

        Raises `ValueError` if no run of the configuration is possible with the game.
        """
        return algorithm_of(self.config).completed(self.foreseen)

    @property
    def knows_sizes(self) -> bool:
        """True if the table sizes are known before the abstraction is built."""
        wanted = None if self.made else self.config.abstraction
        return wanted is None or bool(self.foreseen.cards.shared_bytes)


def check_start(start: Start) -> None:
    """Check all of a run but memory and disk, as far as possible before anything is built or written.

    Raises `ValueError` or `OSError` in these cases:

    * an invalid game, algorithm, tables or evaluations
    * a new run whose export would replace something else, or which cannot start from `solver.warm_start`
    * a new run whose game is not compiled yet, with an unusable abstraction: one built by another recipe (settings
      file) than configured, or a damaged one without a recipe to rebuild it
    """
    if (problem := training_problem(start.config)) is not None:
        raise ValueError(problem)
    config, game = start.completed, start.foreseen
    check_evaluation(config, game)
    if not rundir.is_run(start.directory):
        check_warm_start(config, start.base)
        check_export(config, game, start.directory, replace=start.terms.replace)
        if start.made is None:
            for builder in builders(start.config, start.base):
                builder.check()
            check_given_abstractions(start.config, start.base)


def rehearse(start: Start) -> str | None:
    """Check settings, files, memory and disk of a run before anything is built or written.

    Memory and disk are checked if the run is new and its table sizes are known.

    Returns a sentence on missing memory or disk that `start.terms.force` accepts, or None. Raises `ValueError` for too
    little memory or disk. Raises `ValueError` or `OSError` for invalid settings, an export path that is taken, and an
    unusable abstraction.
    """
    check_start(start)
    if not start.knows_sizes or rundir.is_run(start.directory):
        return None
    config, game = start.completed, start.foreseen
    return _check_space(config, game, planned_layout(config, game), start.directory, start.terms)


def start_run(
    config: Config,
    base: Path,
    directory: Path,
    terms: Terms,
    *,
    game: Game | None = None,
) -> tuple[Run, Game]:
    """Create the run of a configuration, or open it if it exists; return the run and its game.

    Nothing is trained yet.

    config     the configuration; its limits and evaluations replace those of an existing run
    base       directory that the configuration's files are relative to
    directory  directory of the run, existing or not
    terms      the caller's permissions, and the receiver of messages
    game       the compiled game of `config`; None: compile it

    Raises `ValueError` for invalid settings, too little memory or disk, and if `directory` contains another run. Raises
    `FileExistsError` if other files occupy a path that is needed. Raises `MemoryError` if memory is too small to build
    the abstraction. Raises `BlockingIOError` if another process creates the run or builds the abstraction.
    """
    start = Start(config, base, directory, terms, game)
    if rundir.is_run(directory):
        return prepare_run(reopen_run(start.completed, base, directory), terms, start.game)
    return _created(start)


def _created(start: Start) -> tuple[Run, Game]:
    """Create a new run after all checks, with its abstraction built; return the run and its game."""
    lack = rehearse(start)
    if start.made is None:
        build_abstractions(start.config, start.base, start.terms.reporter)
    config, game = start.completed, start.game
    if game is not start.foreseen:  # the abstraction takes disk space, and sizes may now be known
        lack = _check_space(config, game, planned_layout(config, game), start.directory, start.terms)
    run = rundir.create_run(config, start.base, start.directory)
    _report_unusual(run.config, game, lack, start.terms.reporter)
    return replace(run, replace=start.terms.replace), game


def reopen_run(config: Config, base: Path, directory: Path) -> Run:
    """Open the run in `directory` with those settings of `config` that may change within a run.

    These are limits, evaluations, export, and the tables `[tables]` and `[cluster]`. The length of a discount period
    must be set in `config`. Raises `ValueError` if `config` describes another run, or `directory` is not a run.
    Raises `DamagedError` if it is damaged, and `UnreadableError` if the system cannot read it.
    """
    run = rundir.open_run(directory)
    check_same_run(run.directory, run.manifest, config, base)
    return rundir.with_settings(
        run,
        run=config.run,
        evaluation=config.evaluation,
        export=config.export,
        tables=config.tables,
        cluster=config.cluster,
    )


def changed_run(run: Run, overrides: Sequence[str]) -> Run:
    """Return an opened run with `--set` overrides of keys that may change within a run.

    These are the keys outside of the run's identity, such as limits and evaluations.

    overrides  "table.key=value"

    Raises `ValueError` naming the key for an invalid value, and for a key that may not change within a run.
    """
    config = run.config
    for text in overrides:
        path, value = parse_override(text)
        table, _, _ = path.partition(".")
        if table not in _CHANGEABLE:
            raise ValueError(f"--set {text}: {table} may not change within a run: start a new run with mccfr solve")
        document = to_document(config)
        override(document, path, value, f"--set {text}")
        kind = next(field.type for field in fields_of(Config) if field.encode_name == table)
        config = structs.replace(config, **{table: converted(document[table], table, kind)})
        if identity_document(config, run.directory) != run.manifest["identity_document"]:
            raise ValueError(f"--set {text}: {path} may not change within a run: start a new run with mccfr solve")
    if problem := next(limit_problems(config), None) or first_refused(config, config_checks(config)):
        raise ValueError(problem)
    return replace(run, config=config)


_CHANGEABLE = ("cluster", "evaluation", "export", "run", "tables")
"""Tables that have keys outside of a run's identity."""


def prepare_run(run: Run, terms: Terms, game: Game | None = None) -> tuple[Run, Game]:
    """Check that an opened run can continue; return the run and its game.

    Memory and disk are not checked while another process works on the run.

    terms  the caller's permissions, and the receiver of messages
    game   the run's compiled game; None: compile it

    Raises `ValueError` for unsuitable settings, and for too little memory or disk unless `terms.force`. Raises
    `FileExistsError` if its export would replace something else.
    """
    if (problem := training_problem(run.config)) is not None:
        raise ValueError(problem)
    run, game = replace(run, replace=terms.replace), game or run.build_game()
    check_evaluation(run.config, game)
    check_export(run.config, game, run.directory, run.run_id, replace=run.replace)
    lack = None
    if not rundir.is_locked(run):  # a running run has its tables already
        lack = _check_space(run.config, game, run.layout(game), run.directory, terms)
    _report_unusual(run.config, game, lack, terms.reporter)
    return run, game


def build_abstractions(config: Config, base: Path, reporter: Reporter) -> None:
    """Build the missing abstractions for which a configuration names recipes (settings files).

    base      directory that the configuration's files are relative to
    reporter  receives the progress

    Raises `ValueError` for a recipe that cannot be built, and `FileExistsError` if other files or buckets occupy
    its path. Raises `MemoryError` if memory is too small, and `BlockingIOError` while another process builds there.
    """
    with naming_stages(reporter) as progress:
        for builder in builders(config, base, progress):
            builder.build()


def check_given_abstractions(config: Config, base: Path) -> None:
    """Raise `ValueError` if an abstraction that the configuration has no recipe for is damaged.

    A recipe is a TOML file of settings from which an abstraction is built; without it the abstraction cannot be
    rebuilt. All bytes of its files are checked.

    base  directory that the configuration's files are relative to
    """
    for table in filter(None, (config.abstraction, opponents_buckets(config, base))):
        path = base / table.path
        if table.recipe is None and is_abstraction(path):
            for problem in verify_abstraction(path):
                raise ValueError(f"{path}: {problem}: build the abstraction again")


def _check_space(config: Config, game: Game, layout: TableLayout, directory: Path, terms: Terms) -> str | None:
    """Raise `ValueError` for too little memory or disk; with `terms.force` return the sentence.

    Before the check, shared memory that dead processes left behind is removed. Returns None if memory and disk suffice.

    layout     layout of the run's tables
    directory  directory of the run, existing or not
    terms      the caller's permissions, such as `force`: continue although memory or disk are too small
    """
    for removed in sweep_live(config.tables.live_dir):
        terms.reporter.message(f"removed the live tables of a process that died: {removed}")
    problem = terms.room(config, game, layout, directory)
    if problem is not None and not terms.force:
        raise ValueError(f"{problem}; or use --force")
    return problem


def _report_unusual(config: Config, game: Game, lack: str | None, reporter: Reporter) -> None:
    """Tell the reporter about missing memory or disk that `force` accepts, and algorithm warnings.

    lack  sentence on the missing memory or disk; None: they suffice
    """
    if lack is not None:
        reporter.message(f"going on, as --force says, although {lack}")
    for sentence in algorithm_of(config).warnings():
        reporter.message(sentence)
