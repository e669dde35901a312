"""A run's configuration as frozen structs with the defaults of all keys.

`mccfr.config.toml_files` reads them from TOML. Tables of games are in `mccfr.config.game_tables`, those of algorithms
in `mccfr.config.solver_tables`.
"""

from collections.abc import Sequence
from typing import Annotated, Literal

from msgspec import Meta

from mccfr.config import plugins
from mccfr.config.game_tables import GameConfig
from mccfr.config.memory_sizes import bytes_of
from mccfr.config.solver_tables import ExternalSamplingConfig, SolverConfig
from mccfr.config.table_base import Above0, Check, Natural, Positive, Table
from mccfr.config.value_limits import did_you_mean, share_of, share_problem


class AbstractionConfig(Table, frozen=True):
    """Card abstraction of a game; without it, only hands equal up to names of suits can be merged."""

    path: str  # directory of the abstraction, relative to the configuration
    recipe: str | None = None  # builds `path` if it does not exist; relative to the configuration


class TablesConfig(Table, frozen=True):
    """Storage of regrets and strategy sums: file format, dtypes and memory."""

    format: Literal["zarr", "hdf5"] = "zarr"
    live_dir: Annotated[str, Meta(min_length=1)] = (
        "auto"  # "auto": /dev/shm if it is large enough, else anonymous shared memory
    )
    regret_dtype: Literal["float32", "float64"] = "float32"
    sum_dtype: Literal["auto", "float32", "float64"] = "auto"
    checkpoint_compression: Literal["auto", "none"] = "auto"  # auto: zstd in Zarr, gzip in HDF5; none: uncompressed
    memory_budget: str | None = None  # "16GB": memory for tables, strata are trained out of core; None: all in memory

    def checks(self) -> list[Check]:
        """Return (key, True if valid, allowed values as text) for each rule on the table's keys."""
        unfit = _size_problem(self.memory_budget)
        return [("memory_budget", unfit is None, unfit or "")]


def _size_problem(text: str | None) -> str | None:
    """Return a phrase that names the allowed memory sizes; None if `text` is such a size or None."""
    try:
        bytes_of(text or "1B")
    except ValueError as error:
        return str(error)
    return None


CYCLE_ITERATIONS = 1_000_000
"""Default length in iterations of a cycle, in which each block of strata is trained once.

In hold'em, reading and writing all blocks in such a cycle takes no longer than their training.
"""


class RunSettings(Table, frozen=True):
    """Workers, limits and checkpoints of a run.

    `nodes` and `iterations` are totals of the run; `seconds` is the training time of each session, from a start to a
    stop. `strata` divides training by groups of second-street boards, such as flops. `interval`, `blocks` and
    `cycle_iterations` say how these take turns. A run cannot continue with other values of these four keys.
    """

    workers: Annotated[int, Meta(ge=0, le=1024)] = 1  # processes; 0: train in this process (strata: in one worker)
    strata: Positive | None = None  # groups of second-street boards that are trained separately; None: no strata
    interval: Above0 = 2.0  # with strata: visits between barriers, in ∛visits of the first street's most visited row
    blocks: int | None = None  # with tables.memory_budget: groups of strata in memory together; None: one each
    cycle_iterations: Positive | None = (
        None  # with tables.memory_budget: of all blocks together; None: CYCLE_ITERATIONS
    )
    nodes: Natural | None = None
    iterations: Natural | None = None
    seconds: Annotated[float, Meta(ge=0)] | None = None
    exploitability_pot: str | float | None = None  # "0.3%": stop at an evaluation of at most this share of the pot
    checkpoint_seconds: Above0 = 600.0
    checkpoint_nodes: Positive | None = None
    keep_checkpoints: Positive = 3

    def checks(self) -> list[Check]:
        """Return (key, True if valid, allowed values as text) for each rule on the table's keys."""
        strata, blocks = self.strata, self.blocks
        goal = self.exploitability_pot
        unfit = None if goal is None else share_problem(goal) or (None if share_of(goal) else "above 0")
        return [
            ("blocks", blocks is None or 2 <= blocks <= (strata or blocks), f"from 2 to {strata}, the strata"),
            ("exploitability_pot", unfit is None, unfit or ""),
            *self.unused(strata is None, "without run.strata", "interval"),
        ]

    @property
    def goal(self) -> float | None:
        """Exploitability that ends the run, as a share of the pot at the root; None: no such end."""
        return None if self.exploitability_pot is None else share_of(self.exploitability_pot)


AUTO = "auto"
METHODS = (
    AUTO,
    "exact",
    "head-to-head",
    "sampled-br",
    "lbr",
    "bounds",
    "trained-response",
)
"""Built-in values of `evaluation.method`; `auto` is the first method that suits the game."""


class EvaluationConfig(Table, frozen=True):
    """Evaluations during a run: when, and by which method.

    `exact` computes exploitability. `head-to-head` plays against the strategy of the first checkpoint that `keep`
    preserves; before there is one, against the uniform strategy. `auto` is the first method that suits the game.
    Several methods are applied at each evaluation, in their order.
    """

    method: str | Sequence[str] = AUTO  # one of METHODS, a user's, or a list of METHODS
    at_nodes: Sequence[Natural] = ()
    at_iterations: Sequence[Natural] = ()
    every_checkpoint: bool = True
    at_end: bool = True
    keep: bool = False  # checkpoint at at_nodes and at_iterations, and never delete those checkpoints
    boards: Annotated[int, Meta(ge=2)] | None = (
        None  # number of sampled boards; None: the method's default, 1000 for head-to-head
    )
    setting: str | None = None  # lbr: actions of the responder, 1, 2, 3, 4 or fcpa
    hands: Annotated[int, Meta(ge=100)] | None = None  # lbr: number of sampled deals

    def checks(self) -> list[Check]:
        """Return (key, True if valid, allowed values as text) for each rule on the table's keys."""
        if isinstance(self.method, str):
            good = self.method in METHODS or plugins.find(plugins.METHODS, self.method) is not None
            allowed = f"one of {', '.join(map(repr, METHODS))}, or module:object{did_you_mean(self.method, METHODS)}"
        else:
            good, allowed = 0 < len(self.method) == sum(name in METHODS for name in self.method), f"some of {METHODS}"
        unkept = not self.at_nodes and not self.at_iterations
        return [("method", good, allowed), *self.unused(unkept, "without at_nodes or at_iterations", "keep")]

    @property
    def measures(self) -> bool:
        """True if strategies are evaluated during a run."""
        return bool(self.every_checkpoint or self.at_end or self.at_nodes or self.at_iterations)

    @property
    def chosen(self) -> Sequence[str]:
        """Names of the evaluation methods, in their order, as a sequence even if there is one."""
        return (self.method,) if isinstance(self.method, str) else self.method


class ExportConfig(Table, frozen=True):
    """A policy written at the end of a run."""

    out: str | None = None  # relative to the current directory; None: beside the run, with its name
    quantise: Literal["uint8", "uint16"] = "uint16"


class ClusterConfig(Table, frozen=True):
    """Settings of a run on several machines (`mccfr cluster`), which may change while it exists."""

    machines: Sequence[int] = (1, 1024)  # least and most machines that a session begins with
    network: str = "lo"  # network interface between machines; lo: this machine alone, without listening
    # Directory on each machine's own disk for a copy of another machine's data; "{machine}" becomes its number.
    directory: str | None = None

    def checks(self) -> list[Check]:
        """Return (key, True if valid, allowed values as text) for each rule on the table's keys."""
        name, bounds = bool(self.network) and not set(self.network) & set(", /"), [1, *self.machines, 1024]
        return [
            ("machines", len(self.machines) == 2 and bounds == sorted(bounds), "[least, most], from 1 to 1024"),
            ("network", name, "the name of an interface"),
        ]


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

    def checks(self) -> list[Check]:
        """Return (key, True if valid, allowed values as text) for rules on several tables.

        Keys are dotted, such as "run.exploitability_pot".
        """
        alone = self.cluster.unused(self.run.strata is None, "without run.strata", *ClusterConfig.__struct_fields__)
        unmeasured = self.run.unused(not self.evaluation.measures, "where nothing is evaluated", "exploitability_pot")
        tables = (("cluster", alone), ("run", unmeasured))
        return [(f"{table}.{key}", good, allowed) for table, checks in tables for key, good, allowed in checks]
