"""Games, and solvers that train on them in this process."""

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

from mccfr.api.api_types import Pathlike, Progress, toml_value
from mccfr.common.arguments import checked
from mccfr.common.package import VERSION
from mccfr.common.user_code import UserCodeError
from mccfr.config import plugins
from mccfr.config.game_tables import GameConfig
from mccfr.config.run_tables import AbstractionConfig, Config
from mccfr.config.toml_files import config_from, to_document
from mccfr.games.game import Game
from mccfr.policy import Policy, Profile, write_policy
from mccfr.policy.origin import plain_table
from mccfr.policy.overwrite import RUN_ID, replaceable
from mccfr.policy.query import query
from mccfr.policy.writer import policy_provenance
from mccfr.solvers.game_from_config import configured_game, form_for
from mccfr.solvers.registry import algorithm_of, user_code
from mccfr.solvers.solver import Algorithm, Share
from mccfr.solvers.user_regret_rules import RegretRule, regret_rule
from mccfr.solvers.variants import Variant
from mccfr.solvers.warm_start import begin_sampled
from mccfr.tables.strategy import Strategy
from mccfr.tables.table_layout import private_tables
from storage.free_space import available_memory_bytes

_REPORT_SECONDS = 1.0
_MEMORY_SHARE = 0.8
_MOST = 2**62


@dataclass(frozen=True, repr=False)
class ConfiguredGame(Game):
    """A game with its settings, which strategies saved from it store; created by `mccfr.game`.

    table   the settings, keys of a configuration's `[game]` table
    origin  content hashes and settings of its card abstraction; None: no abstraction
    """

    table: GameConfig | None = None
    origin: Mapping[str, Any] | None = None


@checked
def game(name: str | Callable[..., Game], *, abstraction: Pathlike | None = None, **keys: Any) -> Game:
    """Return the game that a configuration's `[game]` table with these keys describes.

    name         name of a game; or a function that returns a `Game` and has the keys as parameters, or its name
                 `module:function`
    abstraction  directory of the card abstraction
    keys         keys of the table; nested tables are dictionaries: `menu={"first": ["1p"], "flop": {"max_bets": 2}}`.
                 Files are relative to the current directory

    Raises `ValueError` for an invalid name, key or value.
    """
    document: dict[str, Any] = {"game": {"name": plugins.name_of_object(plugins.GAMES, name), **toml_value(keys)}}
    if abstraction is not None:
        document["abstraction"] = {"path": os.fspath(abstraction)}
    config = config_from(document, "mccfr.game", ())
    compiled = configured_game(config, Path())
    parts = {field.name: getattr(compiled, field.name) for field in fields(Game)}
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
    """Return a solver of any algorithm on a game, in this process and its memory.

    game                     a `Game`; or the name of a game, or a function that returns one, for `mccfr.game`
    algorithm                "external-sampling", "outcome-sampling", "public-chance-sampling", "cfr", `module:Class`,
                             or a class derived from `Algorithm`
    threads                  number of threads, for full-width and deep CFR
    regret_dtype, sum_dtype  "float32" or "float64": types of regrets and strategy sums, for sampling algorithms;
                             `sum_dtype` may be "auto"
    options                  keys of the `[solver]` table: `seed=3`, `discount="dcfr"`, `variant="dcfr"`; `variant` may
                             be a `Variant` or a regret rule

    Raises `ValueError` for an invalid option, a game that does not suit the algorithm, and too little memory.
    """
    if not isinstance(options.get("variant", ""), str):
        options["variant"] = plugins.name_of_object(plugins.VARIANTS, _as_variant(options["variant"]))
    algorithm = plugins.name_of_object(plugins.ALGORITHMS, algorithm)
    document = {
        "game": {"name": "kuhn"},  # the options do not depend on the game
        "solver": {"algorithm": algorithm, **toml_value(options)},
        "tables": {"regret_dtype": regret_dtype, "sum_dtype": sum_dtype},
    }
    config = config_from(document, "mccfr.solver", ())
    if threads < 1:
        raise ValueError(f"mccfr.solver: threads = {threads} is not allowed: it must be at least 1")
    if threads > 1 and not algorithm_of(config).traits.one_process:
        raise ValueError(
            f"mccfr.solver: threads = {threads}, and {algorithm!r} shares its work among processes: give mccfr.solve "
            "so many workers"
        )
    compiled = game if isinstance(game, Game) else _game(game)
    table = compiled.table if isinstance(compiled, ConfiguredGame) else None
    return Solver(compiled, msgspec.structs.replace(config, game=table or GameConfig()), threads)


def _as_variant(rule: Variant | RegretRule | Callable[..., Any]) -> Variant:
    """Return a CFR variant unchanged; wrap a regret rule or function as a variant that uses it.

    A regret rule computes an infoset's strategy from its regrets, in place of regret matching.
    """
    if isinstance(rule, Variant):
        return rule
    return Variant(rule if isinstance(rule, RegretRule) else regret_rule(rule))


class Solver:
    """A CFR algorithm that trains on a game in this process; `mccfr.solver` creates it.

    game  the game in the form that the algorithm needs: for some, cards become chance nodes of the game tree
    """

    def __init__(self, game: Game, config: Config, threads: int = 1) -> None:
        """Allocate the tables and prepare the training.

        game     the game to train on, which need not be that of the `[game]` table of `config`
        config   configuration of the solver, checked by `mccfr.solver`
        threads  number of threads

        Raises `ValueError` if the algorithm does not suit the game, or memory is too small.
        """
        self.game = form_for(game, config)
        self._origin = game.origin if isinstance(game, ConfiguredGame) else None
        self._id = secrets.token_hex(16)
        if (problem := algorithm_of(config).problem()) is not None:
            raise ValueError(problem)
        if isinstance(start := getattr(config.solver, "warm_start", None), str):
            raise ValueError(
                f"solver.warm_start = {start!r}: only a run directory can begin with another run: give nodes, or use "
                "mccfr.solve"
            )
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
        """Return {name: array} of the tables, such as regrets; training changes them in place.

        docs/files.md lists the arrays.
        """
        return self._tables

    @property
    def iterations(self) -> int:
        """Return the number of iterations so far."""
        return self._solver.state.iterations

    @property
    def nodes_touched(self) -> int:
        """Return how many nodes of the game tree training has visited so far, each visit counted."""
        return self._solver.state.nodes

    @property
    def seconds(self) -> float:
        """Return the training time so far in seconds."""
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
        """Train for further iterations, nodes or seconds of training, up to the first limit.

        progress  called about once a second and at the end with a `Progress`; `print` is sufficient

        The result does not depend on how training is divided into calls.  Raises `ValueError` without a limit, and for
        a negative or infinite one.
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
                progress(self._progress(share))
            left = [
                _MOST if limits[key] is None else int(limits[key] or 0) - (now - before)
                for key, now, before in zip(("iterations", "nodes"), self._counts(), start, strict=False)
            ]
            self._solver.run(self.nodes_touched, int(left[1]), int(left[0]))
        if progress is not None:
            progress(self._progress(1.0))

    def _counts(self) -> tuple[int, int, float]:
        return self.iterations, self.nodes_touched, self.seconds

    def _progress(self, share: float) -> Progress:
        speed = self.nodes_touched / self.seconds if self.seconds else 0.0
        return Progress(*self._counts(), speed, share)

    def _share(self, start: tuple[int, int, float], limits: Mapping[str, float | None]) -> float:
        """Return the share of the nearest limit that is done since `start`; 1 or more: a limit is reached.

        start   iterations, nodes touched and seconds before this call of `run`
        limits  {name: limit of this call}, in the same order; None for no limit
        """
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
        """Return the average strategy so far: the probability of each action in each infoset.

        Raises `UserCodeError` if a user's regret rule has produced values that are not numbers.
        """
        try:
            return self._algorithm.averages.strategy(self.game, self._tables, self.nodes_touched, self.iterations)
        except ValueError as error:
            if (code := user_code(self._config)) is None:
                raise
            raise UserCodeError(
                f"{error}, after {self.iterations:,} iterations of {code}: it must return finite numbers"
            ) from None

    @checked
    def query(self, line: str, hand: str | None = None, board: str | None = None) -> dict[str, Any]:
        """Return the average strategy at one decision: the dictionary that `mccfr query --json` prints.

        line   letters of the actions up to the decision, such as "cb" (check, bet); "" for the first decision
        hand   hole cards of the player to act; None: all hands
        board  board cards; None for none

        Raises `ValueError` for an invalid line, hand or board.
        """
        return query(Profile(self.game, self.strategy()), line, hand, board)

    @checked
    def save(self, out: Pathlike, *, quantise: str = "uint16", replace: bool = False) -> Policy:
        """Write the average strategy to the directory `out`, open it and return it as a `Policy`.

        It replaces an earlier policy (saved strategy) of this solver at `out`; with `replace`, any policy.  `quantise`
        is "uint8" or "uint16", the type of the stored probabilities.  Raises `FileExistsError` if something else is at
        `out`, `OSError` if the disk fails.
        """
        table, path = self._config.game, Path(out)
        game_table = {"name": self.game.name} if type(table) is GameConfig else to_document(self._config)["game"]
        provenance = {
            RUN_ID: self._id,
            "run_identity": None,
            "checkpoint": None,
            "solver": plain_table(to_document(self._config)["solver"]),
            "program": f"mccfr {VERSION}",
            "nodes_touched": self.nodes_touched,
            "iterations": self.iterations,
        }
        write_policy(
            path,
            self.game,
            game_table,
            self.strategy(),
            quantise=quantise,
            provenance=provenance,
            abstraction=self._origin,
            replaceable=replaceable(policy_provenance, self._id, replace=replace),
        )
        return Policy.open(path)
