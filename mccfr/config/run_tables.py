"""A run's configuration as frozen structs with the defaults of all keys.

`mccfr.config.toml_files` reads them from TOML. Tables of games are in `mccfr.config.game_tables`, those of algorithms
in `mccfr.config.solver_tables`.
"""

from collections.abc import Sequence
from math import inf
from typing import Literal

import msgspec

from mccfr.config import plugins
from mccfr.config.game_tables import GameConfig
from mccfr.config.memory_sizes import bytes_of
from mccfr.config.solver_tables import ExternalSamplingConfig, SolverConfig
from mccfr.config.spelling import did_you_mean
from mccfr.config.table_base import Check, Table


class AbstractionConfig(Table, frozen=True):
    """Card abstraction of a game; without this table, hands are not merged."""

    path: str  # directory of the abstraction, relative to the configuration
    recipe: str | None = None  # builds `path` if it does not exist; relative to the configuration


class TablesConfig(Table, frozen=True):
    """Storage of regrets and strategy sums."""

    format: Literal["zarr", "hdf5"] = "zarr"
    live_dir: str = "auto"  # "auto": /dev/shm if it is large enough, else anonymous shared memory
    regret_dtype: Literal["float32", "float64"] = "float32"
    sum_dtype: Literal["auto", "float32", "float64"] = "auto"
    checkpoint_compression: Literal["auto", "none"] = "auto"  # auto: zstd in Zarr, gzip in HDF5; none: uncompressed
    memory_budget: str | None = None  # "16GB": memory for tables, strata are trained out of core; None: all in memory

    def checks(self) -> list[Check]:
        """Return the checks of the keys."""
        unfit = _size_problem(self.memory_budget)
        return [
            ("live_dir", bool(self.live_dir), '"auto" or a directory'),
            ("memory_budget", unfit is None, unfit or ""),
        ]


def _size_problem(text: str | None) -> str | None:
    """Return what a memory size must look like if the text is invalid, otherwise None."""
    try:
        bytes_of(text or "1B")
    except ValueError as error:
        return str(error)
    return None


CYCLE_ITERATIONS = 1_000_000
"""Default iterations of a cycle of blocks.

In hold'em, reading and writing a cycle of this length takes no longer than its training.
"""


class RunSettings(Table, frozen=True):
    """Workers, limits and checkpoints of a run.

    `nodes` and `iterations` are totals of the run; `seconds` is the training time of each session. `strata`,
    `interval`, `blocks` and `cycle_iterations` are part of a run's identity.
    """

    workers: int = 1  # processes; 0: train in this process (strata: in one worker process)
    strata: int | None = None  # groups of second-street boards that are trained separately; None: no strata
    interval: float = 2.0  # with strata: visits between barriers, in ∛visits of the first street's most visited row
    blocks: int | None = None  # with tables.memory_budget: groups of strata in memory together; None: one each
    cycle_iterations: int | None = None  # with tables.memory_budget: of all blocks together; None: CYCLE_ITERATIONS
    nodes: int | None = None
    iterations: int | None = None
    seconds: float | None = None
    exploitability_pot: float | None = None  # stop when an evaluation finds at most this share of the pot at the root
    checkpoint_seconds: float = 600.0
    checkpoint_nodes: int | None = None
    keep_checkpoints: int = 3

    def checks(self) -> list[Check]:
        """Return the checks of the keys."""
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
"""Built-in values of `evaluation.method`; `auto` is the first method that suits the game."""


class EvaluationConfig(Table, frozen=True):
    """Evaluations during a run: when, and by which method.

    `exact` computes exploitability; for full hold'em, from as many flops as `budget_seconds` allows. `head-to-head`
    plays against the strategy of the first checkpoint kept by `keep`, or before there is one, against the uniform
    strategy. `auto` is the first method that suits the game. Several methods are applied at each point, in their order.
    """

    method: str | Sequence[str] = AUTO  # one of METHODS, a user's, or a list of METHODS
    at_nodes: Sequence[int] = ()
    at_iterations: Sequence[int] = ()
    every_checkpoint: bool = True
    at_end: bool = True
    keep: bool = False  # checkpoint at at_nodes and at_iterations, and never delete those checkpoints
    boards: int | None = None  # number of sampled boards; None: the method's default, 1000 for head-to-head
    from_street: str | None = msgspec.field(default=None, name="from")  # sampled-br, self-consistency: first street
    setting: str | None = None  # lbr: actions of the responder, 1, 2, 3, 4 or fcpa
    hands: int | None = None  # lbr: number of sampled deals
    budget_seconds: float | None = None  # time for sampling at each point, instead of a number of boards
    seed: int = 0  # of the samples

    def checks(self) -> list[Check]:
        """Return the checks of the keys."""
        known = [*METHODS, *plugins.installed(plugins.METHODS)]
        if isinstance(self.method, str):
            there = self.method in METHODS or plugins.find(plugins.METHODS, self.method) is not None
            allowed = f"one of {', '.join(map(repr, known))}, or module:object{did_you_mean(self.method, known)}"
        else:
            there, allowed = 0 < len(self.method) == sum(name in METHODS for name in self.method), f"some of {METHODS}"
        return [
            ("at_nodes", all(n >= 0 for n in self.at_nodes), "at least 0"),
            ("at_iterations", all(n >= 0 for n in self.at_iterations), "at least 0"),
            ("method", there, allowed),
            ("boards", _at_least(self.boards, 2), "at least 2"),
            ("hands", _at_least(self.hands, 100), "at least 100"),
            ("budget_seconds", self.budget_seconds is None or 0 < self.budget_seconds < inf, "above 0"),
            ("seed", 0 <= self.seed < 2**63, "0 to 2**63 - 1"),
        ]

    @property
    def chosen(self) -> Sequence[str]:
        """Names of the evaluation methods."""
        return (self.method,) if isinstance(self.method, str) else self.method


class ExportConfig(Table, frozen=True):
    """A policy written at the end of a run."""

    out: str | None = None  # relative to the current directory; None: beside the run, with its name
    format: Literal["policy", "zarr", "hdf5", "csv", "parquet", "openspiel"] = "policy"
    quantise: Literal["uint8", "uint16"] = "uint16"


class ClusterConfig(Table, frozen=True):
    """Settings of a run in strata on several machines (`mccfr cluster`), not part of a run's identity."""

    machines: Sequence[int] = (1, 1024)  # least and most machines that a session begins with
    network: str = "lo"  # network interface between machines; lo: this machine alone, without listening
    ports: Sequence[int] = (47000, 47999)  # first and last port that machines listen on
    # Directory on each machine's own disk for a copy of another machine's data; "{machine}" becomes its number.
    directory: str | None = None

    def checks(self) -> list[Check]:
        """Return the checks of the keys."""
        name = bool(self.network) and not set(self.network) & set(", /")
        return [
            ("machines", _is_range(self.machines, 1, 1024), "[least, most], from 1 to 1024"),
            ("ports", _is_range(self.ports, 1024, 65535), "[first, last], from 1024 to 65535"),
            ("network", name, "the name of an interface"),
        ]


def _is_range(numbers: Sequence[int], least: int, most: int) -> bool:
    return len(numbers) == 2 and least <= numbers[0] <= numbers[1] <= most


class Config(Table, frozen=True):
    """The configuration of one run, as in its TOML file."""

    game: GameConfig  # struct selected by `name`
    abstraction: AbstractionConfig | None = None
    solver: SolverConfig = ExternalSamplingConfig()  # struct selected by `algorithm`
    tables: TablesConfig = TablesConfig()
    run: RunSettings = RunSettings()
    evaluation: EvaluationConfig = EvaluationConfig()
    export: ExportConfig | None = None
    cluster: ClusterConfig = ClusterConfig()
