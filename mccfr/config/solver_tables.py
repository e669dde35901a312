"""The `[solver]` table of each algorithm, as frozen structs with the defaults of all keys."""

from collections.abc import Sequence
from typing import Literal

from mccfr.config.table_base import Check, Table


class SolverConfig(Table, frozen=True, tag_field="algorithm"):
    """A `[solver]` table; `algorithm` selects one of the following structs (see `OPTIONS`)."""

    seed: int = 0

    @property
    def opponents(self) -> tuple[str, str] | None:
        """Key and value (directory or recipe) of a separate abstraction for opponents, or None."""
        return None

    def checks(self) -> list[Check]:
        """Return the check of the seed."""
        return [("seed", 0 <= self.seed < 2**63, "0 to 2**63 - 1")]


class OpaqueSolver(SolverConfig, frozen=True, tag="opaque"):
    """An algorithm of user code that was not imported; `named` is its name in the configuration."""

    named: str = ""


class InPeriodsConfig(SolverConfig, frozen=True):
    """Keys of the algorithms that discount accumulated values by period."""

    period_nodes: int | None = None  # nodes of a period over all workers; None: the algorithm's default

    def checks(self) -> list[Check]:
        """Return the checks of the keys."""
        period = self.period_nodes
        return [*super().checks(), ("period_nodes", period is None or period >= 1, "at least 1")]


class SampledConfig(InPeriodsConfig, frozen=True):
    """Discounting of the sampling algorithms, driven by nodes touched."""

    discount: Literal["none", "linear", "initial", "dcfr"] = "linear"
    discount_until_nodes: int | None = None  # None: discounting never ends

    def checks(self) -> list[Check]:
        """Return the checks of the keys."""
        until = self.discount_until_nodes
        return [
            *super().checks(),
            ("discount_until_nodes", until is None or until >= 0, "at least 0"),
        ]


class ExternalSamplingConfig(SampledConfig, frozen=True, tag="external-sampling"):
    """External sampling: all actions of the traverser, one sampled action of the opponent and of chance."""

    negative_regret_pruning: bool = False  # on 95 % of the traversals, skip actions of very negative regret
    prune_after_nodes: int = 100_000_000  # pruning begins after this many nodes
    prune_below_chips: float = 300_000.0  # skip actions whose regret is below minus this, times the weight
    floor_chips: float = 310_000.0  # regrets are kept above minus this, times the weight

    def checks(self) -> list[Check]:
        """Return the checks of the keys."""
        below = self.prune_below_chips
        return [
            *super().checks(),
            ("prune_after_nodes", self.prune_after_nodes >= 0, "at least 0"),
            ("prune_below_chips", below > 0, "above 0"),
            ("floor_chips", self.floor_chips > below, f"above solver.prune_below_chips = {below:g}"),
        ]


class OutcomeSamplingConfig(SampledConfig, frozen=True, tag="outcome-sampling"):
    """Outcome sampling: one path of each traversal."""

    epsilon: float = 0.6  # share of uniform exploration (Lanctot et al. 2009)

    def checks(self) -> list[Check]:
        """Return the checks of the keys."""
        return [*super().checks(), ("epsilon", 0 < self.epsilon <= 1, "above 0 and at most 1")]


class PublicChanceConfig(SampledConfig, frozen=True, tag="public-chance-sampling"):
    """Public chance sampling: one board, all hands; discount "none" is CFR+ with quadratic weights."""


class FullWidthConfig(SolverConfig, frozen=True, tag="cfr"):
    """Full-width CFR: a preset `variant`, or its parts; parts given beside a variant override it."""

    variant: str | None = None  # a preset, such as "dcfr", or a user's; None: cfr
    alpha: float | None = None
    beta: float | None = None
    averaging_power: float | None = None
    horizon: int | None = None  # iterations that a variant with a schedule plans for; None: run.iterations at the start
    updates: Literal["alternating", "simultaneous"] = "alternating"
    dtype: Literal["float32", "float64", "int16"] = "float64"
    pruning: Literal["none", "partial", "regret-based"] = "none"
    best_response: Literal["none", "zero-reach"] = "none"  # zero-reach: players respond best where own reach is 0
    prune_threshold: int = 25  # regret-based: shortest interval worth skipping, in iterations

    def checks(self) -> list[Check]:
        """Return the checks of the keys; the variant checks its exponents itself."""
        return [
            *super().checks(),
            ("horizon", self.horizon is None or self.horizon >= 1, "at least 1"),
            ("prune_threshold", self.prune_threshold >= 1, "at least 1"),
        ]


TRUNKS = ("own", "lossless")
"""Allowed values of `trunk` besides a directory or recipe."""


class CfrBrConfig(InPeriodsConfig, frozen=True, tag="cfr-br"):
    """CFR-BR on sampled boards: each player learns on buckets against a best response on real cards.

    Opponents learn before the last street and play a best response on it.
    """

    trunk: str = "own"  # the players' own buckets, an abstraction's directory or recipe, or "lossless"
    warm_start: int | str | None = None  # nodes of external sampling, or a run's directory; None: zeros

    @property
    def opponents(self) -> tuple[str, str] | None:
        """Key and value of the opponents' abstraction, or None."""
        return None if self.trunk in TRUNKS else ("trunk", self.trunk)

    def checks(self) -> list[Check]:
        """Return the checks of the keys."""
        return [
            *super().checks(),
            ("warm_start", not isinstance(self.warm_start, int) or self.warm_start >= 1, "at least 1"),
        ]


class DeepCfrConfig(SolverConfig, frozen=True, tag="deep-cfr"):
    """Deep CFR and Single Deep CFR: alternating linear CFR with networks for regrets.

    The defaults are those of the paper for Leduc. `mccfr.solvers.deep` describes the networks and their targets.
    """

    traversals: int = 1500  # traversals of each player in an iteration
    fit: Literal["network", "table"] = "network"  # table: exact weighted means of the memory instead of a network
    network: Literal["plain", "branches"] = "plain"
    layers: int = 3  # hidden layers of the plain network
    units: int = 64
    card_units: int = 192  # units of the card branch
    readout: Literal["last", "all"] = "last"  # hidden layers connected to the output; all: with a solved last layer
    steps: int = 750  # minibatches of a fit
    batch: int | Literal["all"] = 2048  # samples of a minibatch; all: the whole memory, merged by infosets
    learning_rate: float = 1e-3
    decay: Literal["none", "linear"] = "linear"  # of the learning rate within a fit, down to 0
    last_layer: Literal["solved", "steps"] = "solved"  # solved: exact fit after the steps; steps: gradient only
    memory: int = 1_000_000  # samples of each player; the "network" average stores as many strategies
    averages: Sequence[Literal["sd", "network"]] = ("sd",)  # the first is the run's strategy
    strategy_steps: int = 5000
    keep_networks: int | Literal["all"] = "all"
    horizon: int | None = None  # iterations for whose networks space is reserved; None: run.iterations at the start

    def checks(self) -> list[Check]:
        """Return the checks of the keys."""
        fitted = ("layers", "units", "card_units", "steps", "strategy_steps")
        counted = ("traversals", "memory", *fitted)
        return [
            *super().checks(),
            *((key, getattr(self, key) >= 1, "at least 1") for key in counted),
            ("batch", self.batch == "all" or int(self.batch) >= 1, "at least 1, or 'all'"),
            ("learning_rate", self.learning_rate > 0, "above 0"),
            ("averages", len(set(self.averages)) == len(self.averages) > 0, "'sd', 'network' or both, each once"),
            ("keep_networks", self.keep_networks == "all" or int(self.keep_networks) >= 1, "at least 1, or 'all'"),
            ("horizon", self.horizon is None or self.horizon >= 1, "at least 1"),
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
