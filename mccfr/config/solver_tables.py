"""The `[solver]` table of each algorithm, as frozen structs with the defaults of all keys."""

from collections.abc import Sequence
from typing import Annotated, Literal

from msgspec import Meta

from mccfr.config.table_base import Above0, Check, Natural, Positive, Table


class SolverConfig(Table, frozen=True, tag_field="algorithm"):
    """Base class of `[solver]` tables; the key `algorithm` selects the subclass (see `OPTIONS`)."""

    seed: Natural = 0

    @property
    def opponents(self) -> tuple[str, str] | None:
        """(key, value) of the key that names a card abstraction of the opponents (CFR-BR), or None.

        The value is the abstraction's directory, or a TOML file (recipe) that describes it.
        """
        return None


class OpaqueSolver(SolverConfig, frozen=True, tag="opaque"):
    """Stand-in for a `[solver]` table with a user's own algorithm or variant that was not imported.

    named  the key `algorithm` in the configuration: `module:object`, or "cfr" with a user's variant
    """

    named: str = ""


class InPeriodsConfig(SolverConfig, frozen=True):
    """Keys of algorithms that weight or discount regrets and strategy sums by period.

    A period is a stretch of training of `period_nodes` nodes touched.
    """

    period_nodes: Positive | None = None  # nodes of a period over all workers; None: the algorithm's default


class SampledConfig(InPeriodsConfig, frozen=True):
    """Keys of the sampling algorithms: how regrets and strategy sums are discounted or weighted.

    After `discount_until_nodes` nodes touched, the weights stay constant, and nothing is discounted any more.
    """

    discount: Literal["none", "linear", "initial", "dcfr"] = "linear"
    discount_until_nodes: Natural | None = None  # None: discounting never ends

    def checks(self) -> list[Check]:
        """Return (key, True if valid, allowed values as text) for each rule on the table's keys."""
        return self.unused(self.discount == "none", "with solver.discount = 'none'", "discount_until_nodes")


class ExternalSamplingConfig(SampledConfig, frozen=True, tag="external-sampling"):
    """External sampling: all actions of the traverser, one sampled action of the opponent and of chance."""

    negative_regret_pruning: bool = False  # on 95 % of the traversals, skip actions of very negative regret
    prune_after_nodes: Natural = 100_000_000  # pruning begins after this many nodes
    # In big blinds, in chips outside of hold'em; times the weight of the period:
    prune_below_bb: Above0 = 3_000.0  # skip actions whose regret is below minus this
    floor_bb: float = 3_100.0  # regrets are kept above minus this

    def checks(self) -> list[Check]:
        """Return (key, True if valid, allowed values as text) for each rule on the table's keys."""
        below, where = self.prune_below_bb, "without solver.negative_regret_pruning = true"
        return [
            *super().checks(),
            *self.unused(not self.negative_regret_pruning, where, "prune_after_nodes", "prune_below_bb", "floor_bb"),
            ("floor_bb", self.floor_bb > below, f"above solver.prune_below_bb = {below:g}"),
        ]


class OutcomeSamplingConfig(SampledConfig, frozen=True, tag="outcome-sampling"):
    """Outcome sampling: each traversal samples a single path."""

    epsilon: Annotated[float, Meta(gt=0, le=1)] = 0.6  # share of uniform exploration (Lanctot et al. 2009)


class PublicChanceConfig(SampledConfig, frozen=True, tag="public-chance-sampling"):
    """Public chance sampling: an iteration traverses the tree on one random board with all hands.

    Discount "none" is CFR+: regrets are floored at 0, and strategy sums in period n have the weight n squared.
    """

    def checks(self) -> list[Check]:
        """Return [], no checks: `discount_until_nodes` has an effect with discount "none" too.

        It limits the weights of strategy sums. In the base class it must not be set then.
        """
        return []


class FullWidthConfig(SolverConfig, frozen=True, tag="cfr"):
    """Full-width CFR. `variant` names the kind, such as "dcfr", or one that a user has programmed.

    `alpha`, `beta` (exponents of the discounts) and `averaging_power` replace those of the variant if they are given.
    """

    variant: str | None = None  # a preset, such as "dcfr", or a user's; None: cfr
    alpha: float | None = None
    beta: float | None = None
    averaging_power: float | None = None
    horizon: Positive | None = (
        None  # iterations that a variant with a schedule plans for; None: run.iterations at the start
    )
    updates: Literal["alternating", "simultaneous"] = "alternating"
    dtype: Literal["float32", "float64", "int16"] = "float64"
    pruning: Literal["none", "partial", "regret-based"] = "none"
    best_response: Literal["none", "zero-reach"] = "none"  # zero-reach: players respond best where own reach is 0
    prune_threshold: Positive = 25  # regret-based: shortest interval worth skipping, in iterations

    def checks(self) -> list[Check]:
        """Return (key, True if valid, allowed values as text) for each rule on the table's keys."""
        by_regret = self.pruning == "regret-based"
        return [
            *self.unused(not by_regret, "without solver.pruning = 'regret-based'", "prune_threshold"),
            *self.unused(by_regret, "with solver.pruning = 'regret-based', which has float64 tables", "dtype"),
        ]


TRUNKS = ("own", "lossless")
"""Allowed values of `trunk` besides a directory or recipe."""


class CfrBrConfig(InPeriodsConfig, frozen=True, tag="cfr-br"):
    """CFR-BR on sampled boards: each player learns on buckets against a best response on real cards.

    Before the last street the opponent learns by regret minimisation, on the buckets that `trunk` names. On the last
    street it plays a best response to the player's current strategy.
    """

    trunk: str = "own"  # the players' own buckets, an abstraction's directory or recipe, or "lossless"
    warm_start: Positive | str | None = None  # nodes of external sampling, or a run's directory; None: zeros

    @property
    def opponents(self) -> tuple[str, str] | None:
        """("trunk", its value) if the value is the directory or description of a card abstraction.

        The description is a TOML file (recipe). None if the opponents' buckets are the players' own or lossless.
        """
        return None if self.trunk in TRUNKS else ("trunk", self.trunk)


class DeepCfrConfig(SolverConfig, frozen=True, tag="deep-cfr"):
    """Deep CFR and Single Deep CFR: alternating linear CFR with networks for regrets.

    The defaults are those of the paper for Leduc. `mccfr.solvers.deep` describes the networks and their targets.
    """

    traversals: Positive = 1500  # traversals of each player in an iteration
    fit: Literal["network", "table"] = "network"  # table: exact weighted means of the memory instead of a network
    network: Literal["plain", "branches"] = "plain"
    layers: Positive = 3  # hidden layers of the plain network
    units: Positive = 64
    card_units: Positive = 192  # units of the card branch
    readout: Literal["last", "all"] = "last"  # hidden layers connected to the output; all: with a solved last layer
    steps: Positive = 750  # minibatches of a fit
    batch: Positive | Literal["all"] = 2048  # samples of a minibatch; all: the whole memory, merged by infosets
    learning_rate: Above0 = 1e-3
    decay: Literal["none", "linear"] = "linear"  # of the learning rate within a fit, down to 0
    last_layer: Literal["solved", "steps"] = "solved"  # solved: exact fit after the steps; steps: gradient only
    memory: Positive = 1_000_000  # samples of each player; the "network" average stores as many strategies
    averages: Sequence[Literal["sd", "network"]] = ("sd",)  # the first is the run's strategy
    strategy_steps: Positive = 5000
    keep_networks: Positive | Literal["all"] = "all"
    horizon: Positive | None = None  # iterations for which there is space; None: run.iterations at the start

    def checks(self) -> list[Check]:
        """Return (key, True if valid, allowed values as text) for each rule on the table's keys."""
        averaged, keys = "network" in self.averages, ("layers", "units", "readout", "steps", "batch", "learning_rate")
        tables, where = self.fit == "table" and not averaged, "with solver.fit = 'table'"
        return [
            ("averages", len(set(self.averages)) == len(self.averages) > 0, "'sd', 'network' or both, each once"),
            *self.unused(self.network == "plain", "with solver.network = 'plain'", "card_units"),
            *self.unused(not averaged, "without 'network' in solver.averages", "strategy_steps"),
            *self.unused(tables, where, "network", *keys, "decay", "last_layer"),
            *self.unused(self.fit == "table", where, "horizon"),
            *self.unused(self.keep_networks != "all", "without solver.keep_networks = 'all'", "horizon"),
        ]


OPTIONS: dict[str, type[SolverConfig]] = {
    str(kind.__struct_config__.tag): kind
    for kind in (
        ExternalSamplingConfig,
        OutcomeSamplingConfig,
        PublicChanceConfig,
        FullWidthConfig,
        CfrBrConfig,
        DeepCfrConfig,
    )
}
"""The `[solver]` table of each algorithm of the package; `mccfr.config.plugin_tables` has those of users'."""
