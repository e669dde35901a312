"""The `[solver]` table of each algorithm, as frozen structs: one default for each key, in one place, here."""

from collections.abc import Sequence
from typing import Literal

from mccfr.config.table import Check, Table


class SolverConfig(Table, frozen=True, tag_field="algorithm"):
    """A `[solver]` table: `algorithm` chooses which of the following it is (`OPTIONS` lists them)."""

    seed: int = 0

    @property
    def opponents(self) -> tuple[str, str] | None:
        """The key that names an abstraction for opponents of their own, and its directory or recipe; None: they have
        none."""
        return None

    def checks(self) -> list[Check]:
        """As `Table.checks`."""
        return [("seed", 0 <= self.seed < 2**63, "0 to 2**63 - 1")]


class OpaqueSolver(SolverConfig, frozen=True, tag="opaque"):
    """An algorithm that is code which was not imported; `named`: by what the configuration says."""

    named: str = ""


class InPeriodsConfig(SolverConfig, frozen=True):
    """Of the algorithms that discount what they have accumulated by period."""

    period_nodes: int | None = None  # over all workers; None: the algorithm's own choice

    def checks(self) -> list[Check]:
        """As `SolverConfig.checks`."""
        period = self.period_nodes
        return [*super().checks(), ("period_nodes", period is None or period >= 1, "at least 1")]


class SampledConfig(InPeriodsConfig, frozen=True):
    """Discounting of the algorithms that sample, driven by nodes touched."""

    discount: Literal["none", "linear", "initial", "dcfr"] = "linear"
    discount_until_nodes: int | None = None  # None: discounting never ends

    def checks(self) -> list[Check]:
        """As `SolverConfig.checks`."""
        until = self.discount_until_nodes
        return [
            *super().checks(),
            ("discount_until_nodes", until is None or until >= 0, "at least 0"),
        ]


class AgainstOpponentsConfig(SampledConfig, frozen=True):
    """Of the algorithms in which each player may learn against an opponent who sees more than he."""

    opponent_abstraction: str | None = None  # the opponents' directory or recipe; None: players against each other

    @property
    def opponents(self) -> tuple[str, str] | None:
        """As `SolverConfig.opponents`."""
        return None if self.opponent_abstraction is None else ("opponent_abstraction", self.opponent_abstraction)


class ExternalSamplingConfig(AgainstOpponentsConfig, frozen=True, tag="external-sampling"):
    """External sampling: all actions of the traverser, one of the opponent and of chance."""

    negative_regret_pruning: bool = False  # skip hopeless actions on 95 % of the traversals
    prune_after_nodes: int = 100_000_000  # pruning begins here
    prune_below_chips: float = 300_000.0  # actions with a regret below minus this, times the weight, are skipped
    floor_chips: float = 310_000.0  # and no regret falls below minus this, times the weight

    def checks(self) -> list[Check]:
        """As `SolverConfig.checks`."""
        below = self.prune_below_chips
        return [
            *super().checks(),
            ("prune_after_nodes", self.prune_after_nodes >= 0, "at least 0"),
            ("prune_below_chips", below > 0, "above 0"),
            ("floor_chips", self.floor_chips > below, f"above solver.prune_below_chips = {below:g}"),
        ]


class OutcomeSamplingConfig(SampledConfig, frozen=True, tag="outcome-sampling"):
    """Outcome sampling: one path."""

    epsilon: float = 0.6  # share of uniform exploration (Lanctot et al. 2009)

    def checks(self) -> list[Check]:
        """As `SolverConfig.checks`."""
        return [*super().checks(), ("epsilon", 0 < self.epsilon <= 1, "above 0 and at most 1")]


class PublicChanceConfig(AgainstOpponentsConfig, frozen=True, tag="public-chance-sampling"):
    """Public chance sampling: one board, all hands; with discount "none" as CFR+, sums weighted by n^gamma."""


class FullWidthConfig(SolverConfig, frozen=True, tag="cfr"):
    """Full-width CFR.  In `variant`'s place its parts may be given, and parts beside it override it."""

    variant: str | None = None  # a preset, such as "dcfr", or a user's; None: cfr
    alpha: float | None = None
    beta: float | None = None
    averaging_power: float | None = None
    horizon: int | None = None  # iterations that a variant on a schedule plans for; None: run.iterations at first
    updates: Literal["alternating", "simultaneous"] = "alternating"
    dtype: Literal["float32", "float64", "int16"] = "float64"
    pruning: Literal["none", "partial", "regret-based"] = "none"
    best_response: Literal["none", "player-0", "player-1", "zero-reach"] = "none"  # CFR-BR, or where own reach is 0
    prune_threshold: int = 25  # regret-based: shortest interval that is worth skipping, in iterations

    def checks(self) -> list[Check]:
        """As `SolverConfig.checks`; the variant checks its powers itself."""
        return [
            *super().checks(),
            ("horizon", self.horizon is None or self.horizon >= 1, "at least 1"),
            ("prune_threshold", self.prune_threshold >= 1, "at least 1"),
        ]


TRUNKS = ("own", "lossless")
"""What `trunk` may be beside a directory."""


class CfrBrConfig(InPeriodsConfig, frozen=True, tag="cfr-br"):
    """CFR-BR on sampled boards: each player learns on his buckets against a best response that knows its real cards.

    Opponents learn before the last street and respond best on it.
    """

    trunk: str = "own"  # the players' own buckets, those of an abstraction's directory or recipe, or "lossless"
    warm_start: int | str | None = None  # nodes of external sampling, or a run's directory; None: from zeros

    @property
    def opponents(self) -> tuple[str, str] | None:
        """As `SolverConfig.opponents`."""
        return None if self.trunk in TRUNKS else ("trunk", self.trunk)

    def checks(self) -> list[Check]:
        """As `SolverConfig.checks`."""
        return [
            *super().checks(),
            ("warm_start", not isinstance(self.warm_start, int) or self.warm_start >= 1, "at least 1"),
        ]


class DeepCfrConfig(SolverConfig, frozen=True, tag="deep-cfr"):
    """Deep CFR and Single Deep CFR: alternating linear CFR, its regrets a network's; numbers are the paper's on Leduc.

    What is fitted, and to what, is in `mccfr.solvers.deep`.
    """

    traversals: int = 1500  # of each player in an iteration
    fit: Literal["network", "table"] = "network"  # table: exact weighted means of the memory in the network's place
    network: Literal["plain", "branches"] = "plain"
    layers: int = 3  # hidden ones of the plain network
    units: int = 64
    card_units: int = 192  # of the branch of cards
    readout: Literal["last", "all"] = "last"  # hidden layers that the output sees; all: with a solved last layer
    steps: int = 750  # minibatches of a fit
    batch: int | Literal["all"] = 2048  # samples of a minibatch; all: the whole memory, merged by infosets
    learning_rate: float = 1e-3
    decay: Literal["none", "linear"] = "linear"  # of the learning rate within a fit, down to 0
    last_layer: Literal["solved", "steps"] = "solved"  # solved: after the steps, exactly for the memory; steps: by them
    memory: int = 1_000_000  # samples a player; as many of strategies for the "network" average
    averages: Sequence[Literal["sd", "network"]] = ("sd",)  # the first is the run's strategy
    strategy_steps: int = 5000
    keep_networks: int | Literal["all"] = "all"
    horizon: int | None = None  # iterations whose networks find room; None: run.iterations when the run is made

    def checks(self) -> list[Check]:
        """As `SolverConfig.checks`."""
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
"""The `[solver]` table of each algorithm of the package; `mccfr.config.made` has those of users'."""
