"""The Python interface: games, solvers in this process, runs in directories, evaluations and policies.

Nothing is done here that commands do not do by the same functions: games come from the catalogue, algorithms from the
registry, runs from `mccfr.runs.start`.  `import mccfr` offers what is public; docs/api.md describes it.
"""

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from mccfr.config.examples import find_file, own_copy
from mccfr.config.file import config_from, ignored_keys, load_document, override, to_document
from mccfr.config.tables import AUTO, AbstractionConfig, Config, GameConfig
from mccfr.evaluation.methods import load_method, told
from mccfr.evaluation.side import Side
from mccfr.games.game import Game
from mccfr.policy import Policy, StrategySource, write_policy
from mccfr.policy.query import query
from mccfr.runs import report, rundir
from mccfr.runs.conclude import limited, train_and_export
from mccfr.runs.results import Target, evaluate_found, export_run, open_target, opponent
from mccfr.runs.start import prepare_run, start_run
from mccfr.runs.status import run_status
from mccfr.solvers.configured import configured_game, form_for
from mccfr.solvers.registry import algorithm_of
from mccfr.solvers.solver import Share
from mccfr.tables.layout import private_tables
from mccfr.tables.strategy import Strategy
from storage.space import available_memory_bytes

Pathlike = str | os.PathLike[str]

_TOLD_SECONDS = 1.0
_MEMORY_SHARE = 0.8
_LIMITS = ("nodes", "iterations", "seconds", "workers")


@dataclass(frozen=True)
class ConfiguredGame(Game):
    """A game and what it was made from: its `[game]` table, and what made its buckets."""

    table: GameConfig | None = None
    origin: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class Progress:
    """How far a solver is; its text says so in a line.

    iterations, nodes_touched, seconds  of the solver so far; seconds are those of training
    share_done                          of what `run` was asked for, 0 to 1
    """

    iterations: int
    nodes_touched: int
    seconds: float
    share_done: float

    def __str__(self) -> str:
        speed = self.nodes_touched / self.seconds if self.seconds else 0.0
        return (
            f"{self.iterations:,} iterations, {self.nodes_touched:,} nodes, {speed / 1e6:.1f} M nodes/s, "
            f"{self.share_done:.0%}"
        )


@dataclass(frozen=True)
class Evaluation:
    """What a strategy is worth.  Fields are those of `mccfr evaluate --json`; None where a method has none of it.

    method, bound         which method, and what it gives: "exact", "lower", "upper" or "estimate"
    value_chips           what player 0 wins on average; played against another strategy: what the one measured wins
    exploitability_chips  mean over both players of what a best response gains
    exploitability_mbb    the same in thousandths of a big blind
    best_response_chips   what each player gets by a best response
    ci95_chips            95 % interval of `value_chips`
    against, boards, seed the opponent, the boards sampled and their seed
    seconds               wall time, without that of compiling
    iterations, nodes_touched, checkpoint   of what was evaluated
    record                all fields, those of a user's method included
    """

    method: str
    bound: str
    value_chips: float
    exploitability_chips: float | None
    exploitability_mbb: float | None
    best_response_chips: tuple[float, float] | None
    ci95_chips: tuple[float, float] | None
    against: str | None
    boards: int | None
    seed: int | None
    seconds: float
    iterations: int | None
    nodes_touched: int | None
    checkpoint: int | None
    record: Mapping[str, Any]

    def __str__(self) -> str:
        return told(self.record, f"{self.seconds:.3g} s")


def _evaluation(record: Mapping[str, Any]) -> Evaluation:
    found: dict[str, Any] = {field.name: record.get(field.name) for field in fields(Evaluation)}
    for key in ("best_response_chips", "ci95_chips"):
        found[key] = None if found[key] is None else tuple(found[key])
    return Evaluation(**{**found, "record": dict(record)})


# --- games and solvers in this process ---


def game(name: str | Callable[..., Game], *, abstraction: Pathlike | None = None, **keys: Any) -> Game:
    """Any game of a configuration: `name` and `keys` are those of its `[game]` table.

    name         of a game, `module:function`, or a function that makes one; its parameters are then the keys
    abstraction  directory of the card buckets it is played on
    keys         tables in it are dictionaries: `menu={"first": ["1p"], "flop": {"max_bets": 2}}`; files are relative to
                 the current directory

    Raises `ValueError` of one sentence for a name, key or value that is not allowed.
    """
    if not isinstance(name, str):
        name = f"{name.__module__}:{name.__qualname__}"
    document: dict[str, Any] = {"game": {"name": name, **_plain(keys)}}
    if abstraction is not None:
        document["abstraction"] = {"path": os.fspath(abstraction)}
    config = config_from(document, "mccfr.game")
    made = configured_game(config, Path())
    parts = {field.name: getattr(made, field.name) for field in fields(Game)}
    return ConfiguredGame(**parts, table=config.game, origin=_origin(config.abstraction))


def _origin(buckets: AbstractionConfig | None) -> Mapping[str, Any] | None:
    if buckets is None:
        return None
    from abstraction.buckets import Abstraction

    return Abstraction(Path(buckets.path)).origin()


def _plain(value: Any) -> Any:
    """Keys as TOML would have them: paths as text."""
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return os.fspath(value) if isinstance(value, os.PathLike) else value


def solver(
    game: Game,
    algorithm: str = "external-sampling",
    *,
    threads: int = 1,
    regret_dtype: str = "float32",
    sum_dtype: str = "auto",
    **options: Any,
) -> "Solver":
    """Any algorithm on a game, in this process and in its memory.

    algorithm                "external-sampling", "outcome-sampling", "public-chance-sampling", "cfr", `module:Class` or
                             the name of an entry point
    threads                  of an iteration, for full-width algorithms
    regret_dtype, sum_dtype  as in `[tables]`: of the sampling algorithms
    options                  the keys of its `[solver]` table: `seed=3`, `discount="dcfr"`, `variant="dcfr"`

    Raises `ValueError` of one sentence for an option that is not allowed, for a game that the algorithm does not suit,
    and for tables that need more memory than there is.
    """
    document = {
        "game": {"name": "kuhn"},  # whatever game it is, the options are the same
        "solver": {"algorithm": algorithm, **_plain(options)},
        "tables": {"regret_dtype": regret_dtype, "sum_dtype": sum_dtype},
    }
    config = config_from(document, "mccfr.solver")
    if ignored := ignored_keys(document):
        raise ValueError(f"mccfr.solver: {ignored[0]!r} says nothing to the algorithm {algorithm!r}: leave it out")
    if threads < 1:
        raise ValueError(f"mccfr.solver: threads = {threads} is not allowed: it must be at least 1")
    if threads > 1 and algorithm_of(config).processes(2) != 1:
        raise ValueError(
            f"mccfr.solver: threads = {threads}, and {algorithm!r} shares its work among processes: give mccfr.solve "
            "so many workers"
        )
    table = game.table if isinstance(game, ConfiguredGame) else None
    return Solver(game, msgspec.structs.replace(config, game=table or GameConfig()), threads)


class Solver:
    """An algorithm at work on a game; `mccfr.solver` makes one.

    game  the game as it is solved: with its cards in the tree, where the algorithm goes over histories
    """

    def __init__(self, game: Game, config: Config, threads: int = 1) -> None:
        """`config` is made and checked by `mccfr.solver`."""
        self.game = form_for(game, config)
        self._origin = game.origin if isinstance(game, ConfiguredGame) else None
        self._config = algorithm_of(config).completed(self.game)
        self._algorithm = algorithm_of(self._config)
        layout = self._algorithm.layout(self.game)
        available = available_memory_bytes()
        if layout.nbytes > _MEMORY_SHARE * available:
            raise ValueError(
                f"the tables need {layout.nbytes:,} bytes, more than {_MEMORY_SHARE:.0%} of the {available:,} bytes of "
                "memory that are available: make the game or its abstraction smaller"
            )
        self._tables = private_tables(layout)
        self._solver = self._algorithm.solver(self.game, self._tables, Share(workers=threads))

    @property
    def tables(self) -> Mapping[str, npt.NDArray[np.generic]]:
        """The tables by name, as docs/interface.md says; they change while it runs."""
        return self._tables

    @property
    def iterations(self) -> int:
        """Iterations so far."""
        return self._solver.state.iterations

    @property
    def nodes_touched(self) -> int:
        """Nodes touched so far."""
        return self._solver.state.nodes

    @property
    def seconds(self) -> float:
        """Training time so far."""
        return self._solver.busy_seconds

    def run(
        self,
        *,
        iterations: int | None = None,
        nodes: int | None = None,
        seconds: float | None = None,
        progress: Callable[[Progress], object] | None = None,
    ) -> None:
        """Go on for so many more iterations, nodes or seconds of training, whichever is over first.

        progress  called about once a second and at the end, with a `Progress`; `print` will do

        What is learnt does not depend on how a run is cut into steps.  Raises `ValueError` where no limit is given.
        """
        limits = {"iterations": iterations, "nodes": nodes, "seconds": seconds}
        if all(limit is None for limit in limits.values()):
            raise ValueError("Solver.run needs a limit: iterations, nodes or seconds")
        for key, limit in limits.items():
            if limit is not None and not 0 <= limit < float("inf"):
                raise ValueError(f"{key} = {limit} is not allowed: it must be at least 0 and finite")
        start, told_at = self._counts(), time.monotonic()
        self._solver.warm_up()
        while (share := self._share(start, limits)) < 1:
            if progress is not None and time.monotonic() - told_at >= _TOLD_SECONDS:
                told_at = time.monotonic()
                progress(Progress(*self._counts(), share))
            left = [
                _MOST if limits[key] is None else int(limits[key] or 0) - (now - before)
                for key, now, before in zip(("iterations", "nodes"), self._counts(), start, strict=False)
            ]
            self._solver.run(self.nodes_touched, int(left[1]), int(left[0]))
        if progress is not None:
            progress(Progress(*self._counts(), 1.0))

    def _counts(self) -> tuple[int, int, float]:
        return self.iterations, self.nodes_touched, self.seconds

    def _share(self, start: tuple[int, int, float], limits: Mapping[str, float | None]) -> float:
        """How much is done of the nearest limit."""
        done = [now - before for now, before in zip(self._counts(), start, strict=True)]
        shares = [
            1.0 if limit == 0 else part / limit
            for part, limit in zip(done, limits.values(), strict=True)
            if limit is not None
        ]
        return max(shares)

    def strategy(self) -> Strategy:
        """The average strategy so far, as arrays."""
        return self._algorithm.average(self.game, self._tables, self.nodes_touched, self.iterations)

    def query(self, line: str, hand: str | None = None, board: str | None = None) -> dict[str, Any]:
        """The average strategy at one decision, as `mccfr query --json` gives it."""
        return query(StrategySource(self.game, self.strategy()), line, hand, board)

    def save(self, out: Pathlike, *, quantise: str = "uint16") -> Policy:
        """Write the average strategy as a policy directory, which replaces an earlier one at `out`, and open it.

        Raises `FileExistsError` where something else is at `out`, `OSError` where the disk fails.
        """
        table, path = self._config.game, Path(out)
        named = {"name": self.game.name} if type(table) is GameConfig else to_document(self._config)["game"]
        provenance = {
            "run_identity": None,
            "checkpoint": None,
            "solver": _finite(to_document(self._config)["solver"]),
            "nodes_touched": self.nodes_touched,
            "iterations": self.iterations,
        }
        write_policy(
            path,
            self.game,
            named,
            self.strategy(),
            quantise=quantise,
            provenance=provenance,
            abstraction=self._origin,
        )
        return Policy.open(path)


_MOST = 2**62


def _finite(table: Mapping[str, Any]) -> dict[str, Any]:
    """A table as JSON can say it: infinities as text."""
    return {
        key: str(value) if isinstance(value, float) and abs(value) == float("inf") else value
        for key, value in table.items()
    }


# --- runs in directories ---


class Run:
    """A run directory, as `mccfr solve` makes it; opened by its path."""

    def __init__(self, directory: Pathlike) -> None:
        """Raises `ValueError` or `OSError` of one sentence where there is no run, or a damaged one."""
        self.directory = Path(directory)
        rundir.open_run(self.directory)

    def __repr__(self) -> str:
        return f"mccfr.Run({str(self.directory)!r})"

    def status(self) -> dict[str, Any]:
        """How far it is: the fields of `mccfr status --json`."""
        return run_status(rundir.open_run(self.directory))

    def evaluations(self) -> list[Evaluation]:
        """Every evaluation of the run, in order."""
        return [_evaluation(record) for record in rundir.open_run(self.directory).read(rundir.EVALUATIONS)]

    def export(
        self,
        out: Pathlike,
        *,
        format: str = "policy",  # noqa: A002 - the name of the command's option
        quantise: str = "uint16",
        checkpoint: int | None = None,
    ) -> Path:
        """Write the average strategy of a checkpoint (None: the newest), or its tables, as `mccfr export` does."""
        opened = rundir.open_run(self.directory)
        return export_run(opened, opened.build_game(), Path(out), format, quantise, checkpoint)


def solve(
    config: Pathlike | Mapping[str, Any],
    run: Pathlike | None = None,
    *,
    nodes: int | None = None,
    iterations: int | None = None,
    seconds: float | None = None,
    workers: int | None = None,
    overrides: Mapping[str, Any] | None = None,
    force: bool = False,
    progress: Callable[[object], object] | None = None,
) -> Run:
    """Start the run that a configuration describes, or continue it where it stands, as `mccfr solve` does.

    config                      a TOML file, the name of an example (which is copied to runs/ first), or tables as a
                                dictionary (files that they name are then relative to the current directory)
    run                         run directory; None: runs/NAME for NAME.toml
    nodes, iterations, seconds  limits as on the command line: totals of the run, but for the seconds of training
    workers                     processes; 0: in this one
    overrides                   keys to change: `{"solver.seed": 3}`
    force                       although memory or disk are too small
    progress                    told what there is to tell, a text at a time; `print` will do

    Returns when a limit is reached.  Ctrl-C stops it with a checkpoint and then raises `KeyboardInterrupt`, SIGTERM and
    SIGUSR1 `SystemExit(75)`; `mccfr.resume` goes on.  Raises as the commands do: `ValueError` and `OSError` of one
    sentence, `RuntimeError` where a worker died.
    """
    _require_main_thread()
    if isinstance(config, Mapping):
        if run is None:
            raise ValueError("mccfr.solve: tables in a dictionary have no name: say where the run is to be, run=...")
        document, source, base = _plain(config), "mccfr.solve", Path()
    else:
        path, _ = own_copy(find_file(Path(config)))
        document, source, base = load_document(path), str(path), path.parent
        run = Path("runs") / path.stem if run is None else run
    for key, value in (overrides or {}).items():
        if "." not in key:
            raise ValueError(f"mccfr.solve: overrides = {key!r}: table.key is needed, such as 'solver.seed'")
        override(document, key, _plain(value), f"overrides = {key!r}")
    settings = config_from(document, source, (base,))
    limits = dict(zip(_LIMITS, (nodes, iterations, seconds, workers), strict=True))
    settings = msgspec.structs.replace(settings, run=limited(settings.run, limits))
    teller = _Teller(progress)
    opened, made = start_run(
        settings, base, Path(run), teller, force=force, stages=teller.stages, ignored=ignored_keys(document)
    )
    return _trained(opened, made, teller, force)


def resume(
    run: "Pathlike | Run",
    *,
    nodes: int | None = None,
    iterations: int | None = None,
    seconds: float | None = None,
    workers: int | None = None,
    force: bool = False,
    progress: Callable[[object], object] | None = None,
) -> Run:
    """Continue a run from its newest sound checkpoint, as `mccfr resume` does; arguments and errors as of `solve`."""
    _require_main_thread()
    opened = rundir.open_run(_path(run))
    limits = dict(zip(_LIMITS, (nodes, iterations, seconds, workers), strict=True))
    opened = rundir.with_settings(opened, run=limited(opened.config.run, limits))
    teller = _Teller(progress)
    return _trained(opened, prepare_run(opened, teller, force=force), teller, force)


def _path(run: "Pathlike | Run") -> Path:
    return run.directory if isinstance(run, Run) else Path(run)


def _require_main_thread() -> None:
    if threading.current_thread() is not threading.main_thread():
        raise ValueError("a run heeds signals, which Python gives to the main thread alone: start it from there")


def _trained(opened: rundir.Run, made: Game, teller: "_Teller", force: bool) -> Run:
    outcome, exported = train_and_export(opened, made, teller, force=force)
    if exported is not None:
        teller.message(f"exported to {exported}")
    if outcome.signal == signal.SIGINT:
        raise KeyboardInterrupt(f"{opened.directory} has stopped with a checkpoint: mccfr.resume goes on")
    if outcome.signal is not None:
        raise SystemExit(75)
    return Run(opened.directory)


class _Teller:
    """What a run has to tell, as texts for a function; counters once every ten seconds."""

    _SECONDS = 10.0

    def __init__(self, tell: Callable[[object], object] | None) -> None:
        self._tell = tell or (lambda text: None)
        self._at = time.monotonic()

    def message(self, text: str) -> None:
        """Pass it on."""
        self._tell(text)

    def phase(self, text: str, share: float | None = None) -> None:
        """Leave it out: what takes long is told of by counters."""

    def progress(self, progress: report.Progress) -> None:
        """Pass it on if the last one is long enough ago."""
        if time.monotonic() - self._at >= self._SECONDS:
            self._at = time.monotonic()
            share = 0.0 if progress.share_done is None else progress.share_done
            self._tell(Progress(progress.iterations, progress.nodes, progress.training_seconds, share))

    def evaluation(self, record: Mapping[str, Any]) -> None:
        """Pass it on."""
        self._tell(_evaluation(record))

    @contextmanager
    def stages(self) -> Iterator[Callable[[str, float], None]]:
        """While an abstraction is built: each stage is told of once."""
        seen: set[str] = set()

        def told(stage: str, share: float) -> None:
            if stage not in seen:
                seen.add(stage)
                self._tell(f"building the abstraction: {stage}")

        yield told


# --- what comes of them ---

Strategic = Solver | Run | Policy | str | os.PathLike[str]


def evaluate(
    target: Strategic,
    method: str = AUTO,
    *,
    against: Strategic = "uniform",
    boards: int = 1000,
    seed: int = 0,
    checkpoint: int | None = None,
) -> Evaluation:
    """What a strategy is worth: of a solver so far, of a run's checkpoint, or of a policy.

    target        a `Solver`, a `Run`, a `Policy`, or the path of one of the last two
    method        "exact", "head-to-head", "auto" (the first of them that suits the game), `module:Class` or the name of
                  an entry point
    against       whom it meets, where the method plays: "uniform", "always-call", or as `target`
    boards, seed  sampled where the method samples
    checkpoint    of a run; None: the newest

    Raises `ValueError` of one sentence where the method is unknown or does not suit the game.
    """
    load_method(method)
    found = _target(target, checkpoint)

    def other() -> tuple[Side, str]:
        if not isinstance(against, Solver | Policy):
            return opponent(found, str(_path(against))), _name(against)
        meets = _target(against)
        return Side(meets.game, meets.strategy), _name(against)

    return _evaluation(evaluate_found(found, method, other, boards=boards, seed=seed))


def _target(given: Strategic, checkpoint: int | None = None) -> Target:
    if isinstance(given, Solver):
        counts = {"nodes_touched": given.nodes_touched, "iterations": given.iterations, "checkpoint": None}
        return Target(given.game, given.strategy(), counts)
    if isinstance(given, Policy):
        origin = given.meta["provenance"]
        counts = {key: origin.get(key) for key in ("nodes_touched", "iterations", "checkpoint")}
        return Target(given.game, given.strategy(), counts)
    return open_target(_path(given), checkpoint)


def _name(given: Strategic) -> str:
    """A strategy's name in a record."""
    if isinstance(given, Solver):
        return f"a solver of {given.iterations:,} iterations"
    return str(given.path if isinstance(given, Policy) else _path(given))


def load_policy(path: Pathlike, *, check: bool = True) -> Policy:
    """Open a policy directory.

    check  True: length and checksum of every file, and the sum of every row, are compared first; False: only what a
           look-up touches is, when it does, so that opening a large policy is quick

    A policy holds its game as arrays, so that the code of a user's own game is not needed, nor imported.  Raises
    `FileNotFoundError`, `OSError` or `ValueError` of one sentence where there is no policy, or a damaged one.
    """
    return Policy.open(Path(path), check=check)
