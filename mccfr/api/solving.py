"""Games, and solvers that work on them in this process."""

import os
import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from mccfr.api.records import Pathlike, Progress, plain
from mccfr.arguments import checked
from mccfr.config import outside
from mccfr.config.file import config_from, ignored_keys, to_document
from mccfr.config.games import GameConfig
from mccfr.config.tables import AbstractionConfig, Config
from mccfr.games.game import Game
from mccfr.policy import Policy, Profile, write_policy
from mccfr.policy.query import query
from mccfr.policy.replacing import RUN_ID, replaceable
from mccfr.policy.write import policy_provenance
from mccfr.solvers.configured import configured_game, form_for
from mccfr.solvers.registry import algorithm_of, user_code
from mccfr.solvers.rules import RegretRule, regret_rule
from mccfr.solvers.solver import Algorithm, Share
from mccfr.solvers.variants import Variant
from mccfr.solvers.warm_start import begin_sampled
from mccfr.tables.layout import private_tables
from mccfr.tables.strategy import Strategy
from mccfr.user_code import UserCodeError
from storage.space import available_memory_bytes

_REPORT_SECONDS = 1.0
_MEMORY_SHARE = 0.8
_MOST = 2**62


@dataclass(frozen=True, repr=False)
class ConfiguredGame(Game):
    """A game and what it was made from: its `[game]` table, and what made its buckets."""

    table: GameConfig | None = None
    origin: Mapping[str, Any] | None = None


@checked
def game(name: str | Callable[..., Game], *, abstraction: Pathlike | None = None, **keys: Any) -> Game:
    """Any game of a configuration: `name` and `keys` are those of its `[game]` table.

    name         of a game, `module:function`, or a function that makes one; its parameters are then the keys
    abstraction  directory of the card buckets it is played on
    keys         tables in it are dictionaries: `menu={"first": ["1p"], "flop": {"max_bets": 2}}`; files are relative to
                 the current directory

    Raises `ValueError` of one sentence for a name, key or value that is not allowed.
    """
    document: dict[str, Any] = {"game": {"name": outside.given(outside.GAMES, name), **plain(keys)}}
    if abstraction is not None:
        document["abstraction"] = {"path": os.fspath(abstraction)}
    config = config_from(document, "mccfr.game", ())
    made = configured_game(config, Path())
    parts = {field.name: getattr(made, field.name) for field in fields(Game)}
    return ConfiguredGame(**parts, table=config.game, origin=_origin(config.abstraction))


_game = game  # where an argument has this name


def _origin(buckets: AbstractionConfig | None) -> Mapping[str, Any] | None:
    if buckets is None:
        return None
    from abstraction.buckets import Abstraction

    return Abstraction(Path(buckets.path)).origin()


@checked
def solver(
    game: str | Game | Callable[..., Game],
    algorithm: str | type[Algorithm] = "external-sampling",
    *,
    threads: int = 1,
    regret_dtype: str = "float32",
    sum_dtype: str = "auto",
    **options: Any,
) -> "Solver":
    """Any algorithm on a game, in this process and in its memory.

    game                     a `Game`, or what `mccfr.game` makes one of: a name or a function
    algorithm                "external-sampling", "outcome-sampling", "public-chance-sampling", "cfr", `module:Class`,
                             the name of an entry point, or a class of one's own
    threads                  of an iteration, for full-width algorithms
    regret_dtype, sum_dtype  as in `[tables]`: of the sampling algorithms
    options                  the keys of its `[solver]` table: `seed=3`, `discount="dcfr"`, `variant="dcfr"`; `variant`
                             may be a `Variant`, or a regret rule alone

    Raises `ValueError` of one sentence for an option that is not allowed, for a game that the algorithm does not suit,
    and for tables that need more memory than there is.
    """
    if not isinstance(options.get("variant", ""), str):
        options["variant"] = outside.given(outside.VARIANTS, _as_variant(options["variant"]))
    algorithm = outside.given(outside.ALGORITHMS, algorithm)
    document = {
        "game": {"name": "kuhn"},  # whatever game it is, the options are the same
        "solver": {"algorithm": algorithm, **plain(options)},
        "tables": {"regret_dtype": regret_dtype, "sum_dtype": sum_dtype},
    }
    config = config_from(document, "mccfr.solver", ())
    if ignored := ignored_keys(document):
        raise ValueError(f"mccfr.solver: {ignored[0]!r} says nothing to the algorithm {algorithm!r}: leave it out")
    if threads < 1:
        raise ValueError(f"mccfr.solver: threads = {threads} is not allowed: it must be at least 1")
    if threads > 1 and not algorithm_of(config).traits.one_process:
        raise ValueError(
            f"mccfr.solver: threads = {threads}, and {algorithm!r} shares its work among processes: give mccfr.solve "
            "so many workers"
        )
    made = game if isinstance(game, Game) else _game(game)
    table = made.table if isinstance(made, ConfiguredGame) else None
    return Solver(made, msgspec.structs.replace(config, game=table or GameConfig()), threads)


def _as_variant(made: Variant | RegretRule | Callable[..., Any]) -> Variant:
    """A variant as it is, or one of a regret rule alone."""
    if isinstance(made, Variant):
        return made
    return Variant(made if isinstance(made, RegretRule) else regret_rule(made))


class Solver:
    """An algorithm at work on a game; `mccfr.solver` makes one.

    game  the game as it is solved: with its cards in the tree, where the algorithm goes over histories
    """

    def __init__(self, game: Game, config: Config, threads: int = 1) -> None:
        """`config` is made and checked by `mccfr.solver`."""
        self.game = form_for(game, config)
        self._origin = game.origin if isinstance(game, ConfiguredGame) else None
        self._id = secrets.token_hex(16)
        if (problem := algorithm_of(config).problem()) is not None:
            raise ValueError(problem)
        if isinstance(start := getattr(config.solver, "warm_start", None), str):
            raise ValueError(f"solver.warm_start = {start!r}: only runs go on from another: give nodes, or mccfr.solve")
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
        begin_sampled(self._config, self.game, self._tables)
        self._solver = self._algorithm.solver(self.game, self._tables, Share(workers=threads))

    @property
    def tables(self) -> Mapping[str, npt.NDArray[np.generic]]:
        """The tables by name, as docs/files.md says; they change while it runs."""
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

    @checked
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
        start, reported_at = self._counts(), time.monotonic()
        self._solver.warm_up()
        while (share := self._share(start, limits)) < 1:
            if progress is not None and time.monotonic() - reported_at >= _REPORT_SECONDS:
                reported_at = time.monotonic()
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

    def __repr__(self) -> str:
        done = f"{self.iterations:,} iterations, {self.nodes_touched:,} nodes"
        return f"<solver {self._algorithm.name} of {self.game.name}: {done}>"

    def strategy(self) -> Strategy:
        """The average strategy so far, as arrays; `UserCodeError` where a user's rule has made no numbers of it."""
        try:
            return self._algorithm.averages.strategy(self.game, self._tables, self.nodes_touched, self.iterations)
        except ValueError as error:
            if (code := user_code(self._config)) is None:
                raise
            raise UserCodeError(
                f"{error}, after {self.iterations:,} iterations of {code}: it must make numbers"
            ) from None

    @checked
    def query(self, line: str, hand: str | None = None, board: str | None = None) -> dict[str, Any]:
        """The average strategy at one decision, as `mccfr query --json` gives it."""
        return query(Profile(self.game, self.strategy()), line, hand, board)

    @checked
    def save(self, out: Pathlike, *, quantise: str = "uint16", replace: bool = False) -> Policy:
        """Write the average strategy as a policy directory and open it.

        It replaces an earlier policy of this solver at `out`; with `replace`, any policy.  Raises `FileExistsError`
        where something else is at `out`, `OSError` where the disk fails.
        """
        table, path = self._config.game, Path(out)
        named = {"name": self.game.name} if type(table) is GameConfig else to_document(self._config)["game"]
        provenance = {
            RUN_ID: self._id,
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
            replaceable=replaceable(policy_provenance, self._id, replace=replace),
        )
        return Policy.open(path)


def _finite(table: Mapping[str, Any]) -> dict[str, Any]:
    """A table as JSON can say it: infinities as text."""
    return {
        key: str(value) if isinstance(value, float) and abs(value) == float("inf") else value
        for key, value in table.items()
    }
