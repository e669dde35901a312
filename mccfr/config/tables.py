"""A run's configuration as frozen structs: one default for each key, in one place; `mccfr.config.file` reads them.

Games' tables are in `mccfr.config.games`, algorithms' in `mccfr.config.solvers`.
"""

from collections.abc import Sequence
from math import inf
from typing import Literal

import msgspec

from mccfr.config import outside
from mccfr.config.games import GameConfig
from mccfr.config.sizes import bytes_of
from mccfr.config.solvers import ExternalSamplingConfig, SolverConfig
from mccfr.config.suggest import did_you_mean
from mccfr.config.table import Check, Table


class AbstractionConfig(Table, frozen=True):
    """Card buckets that a game is solved on; without the table, every hand is on its own."""

    path: str  # an abstraction's directory, relative to the config
    recipe: str | None = None  # built into `path` if there is none yet; relative to the config


class TablesConfig(Table, frozen=True):
    """Where and how the tables live."""

    format: Literal["zarr", "hdf5"] = "zarr"
    live_dir: str = "auto"  # "auto": /dev/shm where it is large enough, else anonymous shared memory
    regret_dtype: Literal["float32", "float64"] = "float32"
    sum_dtype: Literal["auto", "float32", "float64"] = "auto"
    checkpoint_compression: Literal["auto", "none"] = "auto"  # auto: zstd in Zarr, gzip in HDF5; none: raw cells
    resident: str | None = None  # "16GB": strata in turn, so much of the tables in memory; None: all, all at once

    def checks(self) -> list[Check]:
        """As `Table.checks`."""
        unfit = _size_problem(self.resident)
        return [
            ("live_dir", bool(self.live_dir), '"auto" or a directory'),
            ("resident", unfit is None, unfit or ""),
        ]


def _size_problem(text: str | None) -> str | None:
    """What a text must be that is to name an amount of memory; None where it does."""
    try:
        bytes_of(text or "1B")
    except ValueError as error:
        return str(error)
    return None


CYCLE_ITERATIONS = 1_000_000
"""Iterations of a cycle of blocks: a cycle of hold'em reads and writes some GB at this length as fast as it trains."""


class RunSettings(Table, frozen=True):
    """Limits and checkpoints; `strata` with `interval`, `blocks`, `cycle_iterations` are a run's identity.

    `nodes` and `iterations` are totals of the run; `seconds` is the training time of each session.
    """

    workers: int = 1  # processes; 0: in this one
    strata: int | None = None  # shares of the boards of the second street that are trained apart; None: not shared out
    interval: float = 2.0  # with strata: visits between barriers of the first street's most visited row, per cube root
    blocks: int | None = None  # with tables.resident: groups of strata that are trained in turn; None: each stratum one
    cycle_iterations: int | None = None  # with tables.resident: of all blocks' turns; None: CYCLE_ITERATIONS
    nodes: int | None = None
    iterations: int | None = None
    seconds: float | None = None
    exploitability_pot: float | None = None  # share of the pot at the root: stop when an evaluation finds no more
    checkpoint_seconds: float = 600.0
    checkpoint_nodes: int | None = None
    keep_checkpoints: int = 3

    def checks(self) -> list[Check]:
        """As `Table.checks`."""
        strata, blocks = self.strata, self.blocks
        least = {"nodes": 0, "iterations": 0, "checkpoint_nodes": 1, "keep_checkpoints": 1, "cycle_iterations": 1}
        return [
            ("workers", 0 <= self.workers <= 1024, "0 (in this process) to 1024"),
            ("strata", strata is None or strata >= 1, "at least 1"),
            ("interval", 0 < self.interval < inf, "above 0"),
            ("blocks", blocks is None or 2 <= blocks <= (strata or blocks), f"from 2 to {strata}, the strata"),
            *((key, _at_least(getattr(self, key), bound), f"at least {bound}") for key, bound in least.items()),
            ("seconds", _at_least(self.seconds, 0) and self.seconds != inf, "at least 0"),
            ("exploitability_pot", 0 < (self.exploitability_pot or 1) < inf, "above 0"),
            ("exploitability_pot", self.exploitability_pot != 0, "above 0"),
            ("checkpoint_seconds", self.checkpoint_seconds > 0, "above 0"),
        ]


def _at_least(value: float | None, bound: int) -> bool:
    return value is None or value >= bound


AUTO = "auto"
METHODS = (
    AUTO,
    "exact",
    "head-to-head",
    "sampled-br",
    "lbr",
    "trained-br",
    "self-consistency",
    "abstract",
    "bounds",
)
"""Of `[evaluation]`, besides those of users.  `auto` is the first that suits the game."""


class EvaluationConfig(Table, frozen=True):
    """When the strategy is measured while the run goes on, and how.

    `exact` computes exploitability, of whole hold'em from as many flops as `budget_seconds` allows; `head-to-head`
    plays it against the strategy of the first checkpoint kept by `keep` (until there is one: against uniform play);
    `auto` is the first of them that suits the game.  Several `methods` in place of one are used at each point, in
    their order.
    """

    method: str = AUTO  # one of METHODS, or a user's
    methods: Sequence[str] = ()  # instead of it: some of METHODS
    at_nodes: Sequence[int] = ()
    at_iterations: Sequence[int] = ()
    every_checkpoint: bool = True
    at_end: bool = True
    keep: bool = False  # checkpoint at at_nodes and at_iterations, and never drop those checkpoints
    boards: int | None = None  # that are sampled; None: as many as the method takes by itself, head-to-head 1000
    from_street: str | None = msgspec.field(default=None, name="from")  # sampled-br, self-consistency: its street
    setting: str | None = None  # lbr: what it may do, 1, 2, 3, 4 or fcpa
    hands: int | None = None  # lbr: deals that are drawn
    budget_seconds: float | None = None  # at each point, for all that is sampled, instead of numbers of boards
    seed: int = 0  # of what is sampled

    def checks(self) -> list[Check]:
        """As `Table.checks`."""
        known = [*METHODS, *outside.installed(outside.METHODS)]
        there = self.method in METHODS or outside.find(outside.METHODS, self.method) is not None
        several = set(self.methods) <= set(METHODS) and self.method == AUTO
        names, near = ", ".join(map(repr, known)), did_you_mean(self.method, known)
        ours = ", ".join(map(repr, METHODS))
        return [
            ("at_nodes", all(n >= 0 for n in self.at_nodes), "at least 0"),
            ("at_iterations", all(n >= 0 for n in self.at_iterations), "at least 0"),
            ("method", there, f"one of {names}, or module:object{near}"),
            ("methods", not self.methods or several, f"some of {ours}, with evaluation.method left out"),
            ("boards", _at_least(self.boards, 2), "at least 2"),
            ("hands", _at_least(self.hands, 100), "at least 100"),
            ("budget_seconds", self.budget_seconds is None or 0 < self.budget_seconds < inf, "above 0"),
            ("seed", 0 <= self.seed < 2**63, "0 to 2**63 - 1"),
        ]

    @property
    def chosen(self) -> Sequence[str]:
        """The names of the methods."""
        return self.methods or (self.method,)


class ExportConfig(Table, frozen=True):
    """A policy written at the end of the run."""

    out: str | None = None  # relative to the current directory; None: beside the run, named like it
    format: Literal["policy", "zarr", "hdf5", "csv", "parquet", "openspiel"] = "policy"
    quantise: Literal["uint8", "uint16"] = "uint16"
    best: str | None = None  # the checkpoint that this method of [evaluation] found least exploitable; None: the last


class ClusterConfig(Table, frozen=True):
    """Several machines for one run in strata (`mccfr cluster`); none of it is part of a run's identity."""

    machines: Sequence[int] = (1, 1024)  # least and most that a session begins with
    network: str = "lo"  # interface over which machines talk; lo: this machine alone, and nothing listens
    ports: Sequence[int] = (47000, 47999)  # first and last that machines listen on, where there are several
    # Of each machine's own disk, for a second copy of what another one has written; "{machine}" becomes its number.
    directory: str | None = None

    def checks(self) -> list[Check]:
        """As `Table.checks`."""
        name = bool(self.network) and not set(self.network) & set(", /")
        return [
            ("machines", _is_range(self.machines, 1, 1024), "[least, most], from 1 to 1024"),
            ("ports", _is_range(self.ports, 1024, 65535), "[first, last], from 1024 to 65535"),
            ("network", name, "the name of an interface"),
        ]


def _is_range(numbers: Sequence[int], least: int, most: int) -> bool:
    return len(numbers) == 2 and least <= numbers[0] <= numbers[1] <= most


class Config(Table, frozen=True):
    """One run, as its TOML file says it."""

    game: GameConfig  # which one, `config_file` finds by its name
    abstraction: AbstractionConfig | None = None
    solver: SolverConfig = ExternalSamplingConfig()  # which one, `config_file` finds by its algorithm
    tables: TablesConfig = TablesConfig()
    run: RunSettings = RunSettings()
    evaluation: EvaluationConfig = EvaluationConfig()
    export: ExportConfig | None = None
    cluster: ClusterConfig = ClusterConfig()
