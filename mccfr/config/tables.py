"""Run configuration as frozen structs.  One default for each key, in one place, here; `config_file` reads them."""

from collections.abc import Sequence
from typing import ClassVar, Literal

import msgspec

Check = tuple[str, bool, str]
"""A key, whether its value is good, and what is allowed."""


class _Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A TOML table: unknown keys are errors."""


class GameConfig(_Table, frozen=True, tag_field="name"):
    """A `[game]` table: `name` chooses which of the following it is (`GAMES` lists them)."""

    file_keys: ClassVar[tuple[str, ...]] = ()
    """Keys that name files the game is made from, relative to the configuration: a run keeps copies of them."""


class KuhnGame(GameConfig, frozen=True, tag="kuhn"):
    """Kuhn poker: three cards, ante 1, one bet of 1."""


class LeducGame(GameConfig, frozen=True, tag="leduc"):
    """Leduc poker: one hole card, one board card, two rounds; a raise is a call plus one of the round's sizes."""

    ranks: int = 3
    suits: int = 2
    raises: int = 2  # bets and raises in a round, at most
    bets: Sequence[Sequence[float]] = ((2.0,), (4.0,))  # sizes of a raise in chips, for each of the two rounds
    ante: float = 1.0
    merge_suits: bool = False  # True: hands alike but for a renaming of suits share an infoset (288 instead of 936)


class GoofspielGame(GameConfig, frozen=True, tag="goofspiel"):
    """Goofspiel: prizes in known order, equal bids split the prize, payoff = difference of the totals."""

    cards: int = 5
    order: Literal["ascending", "descending"] = "ascending"
    reveal: Literal["bids", "result"] = "bids"  # what both see after a round: the bids, or only who won


class MatrixGame(GameConfig, frozen=True, tag="matrix"):
    """A two-player zero-sum matrix game; both move at once."""

    payoffs: Sequence[Sequence[float]]  # payoff of the row player (player 0), one list for each row


class PlayerMenu(_Table, frozen=True):
    """Bet sizes of one player on one street: `[game.menu.STREET.button]`.  An absent key is the street's."""

    first: Sequence[str] | None = None  # the street's first bet
    later: Sequence[str] | None = None  # raises
    sizes: Sequence[Sequence[str]] | None = None  # by bets so far on the street, instead of first and later
    max_bets: int | None = None
    allin_threshold: float | None = None


class StreetMenu(_Table, frozen=True):
    """Bet sizes on one street: `[game.menu.STREET]`.  An absent key is the menu's."""

    first: Sequence[str] | None = None
    later: Sequence[str] | None = None
    sizes: Sequence[Sequence[str]] | None = None
    max_bets: int | None = None
    allin_threshold: float | None = None
    big_blind: PlayerMenu | None = None  # position 0: first to act after the flop
    button: PlayerMenu | None = None


class Menu(_Table, frozen=True):
    """Action abstraction `[game.menu]`: which amounts may be raised to; mccfr/games/menu.py says how sizes are read."""

    first: Sequence[str] = ("0.5p", "1p", "allin")  # sizes of a street's first bet; preflop of the first raise
    later: Sequence[str] = ("1p", "allin")  # sizes of raises after it
    sizes: Sequence[Sequence[str]] | None = None  # instead: a list for no bet so far, one bet, ...; the last goes on
    max_bets: int | None = None  # bets on a street that are not all-in, the big blind counted; None: any number
    allin_threshold: float | None = None  # a size above this share of the stack becomes all-in; None: none does
    limp: bool = True  # False: the button may not just call as its first action before the flop
    preflop: StreetMenu | None = None
    flop: StreetMenu | None = None
    turn: StreetMenu | None = None
    river: StreetMenu | None = None


class PokerGame(GameConfig, frozen=True, tag="poker"):
    """Small poker with the betting rules of the ACPC dealer: any deck; limit, or no-limit with all sizes or a menu."""

    ranks: int = 3
    suits: int = 2
    hole_cards: Literal[1, 2] = 1
    board_cards: Sequence[int] = (0, 1)  # cards dealt to the board on each street
    blinds: Sequence[float] = ()  # by seat: [2, 1] = seat 0 posts 2; this or antes
    antes: Sequence[float] = ()
    stack: float = 5.0
    limit: bool = False
    raise_sizes: Sequence[float] = ()  # limit only: size of a raise on each street
    max_raises: Sequence[int] = ()  # raises on each street, at most; limit needs it, no-limit without: any number
    menu: Menu | None = None  # no-limit: bet sizes; None: every whole amount
    first_player: Sequence[int] = ()  # seat (1 or 2) that acts first on each street; default 1 everywhere
    merge_suits: bool = False


class AkqGame(GameConfig, frozen=True, tag="akq"):
    """Half-street AKQ game: three cards, the first player bets or checks, the second may only answer a bet."""

    pot: float = 2.0
    bet: float = 1.0


class ClairvoyanceGame(GameConfig, frozen=True, tag="clairvoyance"):
    """The bettor knows whether he holds the nuts; the same pot fraction may be bet on each of n streets."""

    streets: int = 1
    bet: float = 1.0  # fraction of the pot
    probability: float = 0.5  # that the bettor holds the nuts
    pot: float = 1.0


class HoldemSubgame(GameConfig, frozen=True, tag="holdem-subgame"):
    """A no-limit hold'em endgame from a file in the LibratusEndgames format (turn or river)."""

    file_keys: ClassVar[tuple[str, ...]] = ("file",)

    file: str
    stack: float = 20000.0  # chips of each player in the whole hand, what is in the pot included
    big_blind: float = 100.0
    menu: Menu = Menu()  # the discounting paper's sizes, any number of bets


class HoldemGame(GameConfig, frozen=True, tag="holdem"):
    """Full heads-up no-limit hold'em: four streets, 52 cards; `[abstraction]` says which hands share a bucket."""

    stack: float = 20000.0  # chips of each player
    blinds: Sequence[float] = (50.0, 100.0)  # small (the button's) and big
    ante: float = 0.0  # of each player
    menu: Menu = Menu()


class FlopHoldemGame(GameConfig, frozen=True, tag="flop-holdem"):
    """Hold'em with one size of bet that ends after the flop (Deep CFR papers); lossless without `[abstraction]`."""

    blinds: Sequence[float] = (50.0, 100.0)  # small (the button's) and big
    bet: float | Literal["pot"] = 100.0  # size of every bet and raise; "pot": what lies there once it is called
    limp: bool = True  # False: the button may not just call as his first action before the flop
    max_raises: int | Sequence[int] = 3  # bets and raises on a street, at most, besides the blinds; or one for each
    board_cards: Literal[3, 5] = 3  # cards of the flop; 5: a whole board at once


class OpenSpielGame(GameConfig, frozen=True, tag="openspiel"):
    """A game imported from OpenSpiel: two players, zero sum, turn-based, perfect recall."""

    game: str
    max_histories: int = 2_000_000


GAMES: dict[str, type[GameConfig]] = {
    str(kind.__struct_config__.tag): kind
    for kind in (
        KuhnGame,
        LeducGame,
        GoofspielGame,
        MatrixGame,
        PokerGame,
        AkqGame,
        ClairvoyanceGame,
        HoldemSubgame,
        HoldemGame,
        FlopHoldemGame,
        OpenSpielGame,
    )
}
"""The `[game]` table of each game of the package; `mccfr.config.made` has those of users' games."""


class AbstractionConfig(_Table, frozen=True):
    """Card buckets that a game is solved on; without the table, every hand is on its own."""

    path: str  # an abstraction's directory, relative to the config
    recipe: str | None = None  # built into `path` if there is none yet; relative to the config


class SolverConfig(_Table, frozen=True, tag_field="algorithm"):
    """A `[solver]` table: `algorithm` chooses which of the following it is (`OPTIONS` lists them)."""

    averages_snapshots: ClassVar[bool] = False
    """Whether `tables.strategy_sums = "preflop"` is possible: sums on the first street only."""
    trains_narrow: ClassVar[bool] = False
    """Whether tables may have cells of 16 bits."""
    trains_strata: ClassVar[bool] = False
    """Whether `run.strata` is possible: deals are drawn for one share of the boards at a time."""

    seed: int = 0

    def checks(self) -> list[Check]:
        """What types cannot express."""
        return [("seed", 0 <= self.seed < 2**63, "0 to 2**63 - 1")]


class SampledConfig(SolverConfig, frozen=True):
    """Discounting of the algorithms that sample, driven by nodes touched."""

    discount: Literal["none", "linear", "initial", "dcfr"] = "linear"
    period_nodes: int | None = None  # over all workers; None: the algorithm's own choice
    discount_until_nodes: int | None = None  # None: discounting never ends
    # Powers of "dcfr" for positive regrets, negative regrets and strategy sums; the paper's recommendation:
    alpha: float = 1.5
    beta: float = 0.0
    gamma: float = 2.0

    def checks(self) -> list[Check]:
        """As `SolverConfig.checks`."""
        period, until = self.period_nodes, self.discount_until_nodes
        return [
            *super().checks(),
            ("period_nodes", period is None or period >= 1, "at least 1"),
            ("discount_until_nodes", until is None or until >= 0, "at least 0"),
            ("alpha", self.alpha == self.alpha, "a number"),
            ("beta", self.beta == self.beta, "a number"),
            ("gamma", self.gamma >= 0, "at least 0"),
        ]


class SampledActionsConfig(SampledConfig, frozen=True):
    """Of the algorithms that sample actions."""


class BaselinesConfig(SampledActionsConfig, frozen=True):
    """Of those that can estimate the values of actions that are not sampled."""

    baseline_rate: float = 0.0  # share by which baselines move towards sampled values; 0: none are kept

    def checks(self) -> list[Check]:
        """As `SolverConfig.checks`."""
        return [*super().checks(), ("baseline_rate", 0 <= self.baseline_rate <= 1, "0 to 1")]


class ExternalSamplingConfig(BaselinesConfig, frozen=True, tag="external-sampling"):
    """External sampling: all actions of the traverser, one of the opponent and of chance."""

    averages_snapshots: ClassVar[bool] = True
    trains_narrow: ClassVar[bool] = True
    trains_strata: ClassVar[bool] = True

    negative_regret_pruning: bool = False  # skip hopeless actions on 95 % of the traversals
    prune_after_nodes: int = 100_000_000  # pruning begins here
    prune_below_chips: float = 300_000.0  # actions with a regret below minus this, times the weight, are skipped
    floor_chips: float = 310_000.0  # and no regret falls below minus this, times the weight

    def checks(self) -> list[Check]:
        """As `SolverConfig.checks`."""
        below = self.prune_below_chips
        return [
            *super().checks(),
            (
                "baseline_rate",
                not (self.baseline_rate and self.negative_regret_pruning),
                "0 with solver.negative_regret_pruning, for what is skipped has no value to learn",
            ),
            ("prune_after_nodes", self.prune_after_nodes >= 0, "at least 0"),
            ("prune_below_chips", below > 0, "above 0"),
            ("floor_chips", self.floor_chips > below, f"above solver.prune_below_chips = {below:g}"),
        ]


class OutcomeSamplingConfig(BaselinesConfig, frozen=True, tag="outcome-sampling"):
    """Outcome sampling: one path."""

    averages_snapshots: ClassVar[bool] = True
    trains_narrow: ClassVar[bool] = True
    trains_strata: ClassVar[bool] = True

    epsilon: float = 0.6  # share of uniform exploration (Lanctot et al. 2009)

    def checks(self) -> list[Check]:
        """As `SolverConfig.checks`."""
        return [*super().checks(), ("epsilon", 0 < self.epsilon <= 1, "above 0 and at most 1")]


class AverageStrategyConfig(SampledActionsConfig, frozen=True, tag="average-strategy-sampling"):
    """Average strategy sampling: of the traverser's actions those that his average strategy plays, others seldom.

    An action is walked with probability max(epsilon, (bonus + threshold·s) / (bonus + the row's sum of s)), s its
    strategy sum in units of the present weight.  Names and defaults are the paper's, whose letters are tau and beta.
    """

    epsilon: float = 0.05
    threshold: float = 1000.0
    bonus: float = 1_000_000.0

    def checks(self) -> list[Check]:
        """As `SolverConfig.checks`."""
        return [
            *super().checks(),
            ("epsilon", 0 < self.epsilon <= 1, "above 0 and at most 1"),
            ("threshold", 0 <= self.threshold < float("inf"), "at least 0 and finite"),
            ("bonus", 0 < self.bonus < float("inf"), "above 0 and finite"),
        ]


class RobustSamplingConfig(SampledActionsConfig, frozen=True, tag="robust-sampling"):
    """Robust sampling: some of the traverser's actions, drawn evenly."""

    most_actions: int = 2  # k of the paper: so many at each decision; all where there are no more

    def checks(self) -> list[Check]:
        """As `SolverConfig.checks`."""
        return [*super().checks(), ("most_actions", self.most_actions >= 1, "at least 1")]


class TargetedSamplingConfig(SampledActionsConfig, frozen=True, tag="targeted-sampling"):
    """Targeted CFR: all actions of the traverser on the streets that a traversal is for, one on the others."""

    full_share: float = 0.2  # of the traversals, which are for all streets; these alone add to strategy sums
    targets: Sequence[Sequence[int]] = ()  # streets (from 0) that another may be for; none: the later half of them
    target_shares: Sequence[float] = ()  # of each of `targets`, in proportion; none: equal ones
    close_chips: float = 0.0  # all actions also where the two highest regrets differ by less, times the weight

    def checks(self) -> list[Check]:
        """As `SolverConfig.checks`; the game's streets are looked at when a solver is made."""
        targets, shares = self.targets, self.target_shares
        return [
            *super().checks(),
            ("full_share", 0 < self.full_share <= 1, "above 0 and at most 1"),
            ("targets", all(t and min(t) >= 0 for t in targets), "lists of streets, from 0 on"),
            (
                "target_shares",
                len(shares) in (0, len(targets)) and all(0 < share < float("inf") for share in shares),
                "a number above 0 for each of solver.targets",
            ),
            ("close_chips", 0 <= self.close_chips < float("inf"), "at least 0 and finite"),
        ]


class PublicChanceConfig(SampledConfig, frozen=True, tag="public-chance-sampling"):
    """Public chance sampling: one board, all hands."""

    floored_regrets: bool = True  # with discount "none": as CFR+, sums weighted by n^gamma
    skip_below: float = 0.0  # lines of less reach than this share are skipped at random

    def checks(self) -> list[Check]:
        """As `SolverConfig.checks`."""
        return [*super().checks(), ("skip_below", 0 <= self.skip_below < 1, "at least 0 and below 1")]


class FullWidthConfig(SolverConfig, frozen=True, tag="cfr"):
    """Full-width CFR.  In `variant`'s place its parts may be given, and parts beside it override it."""

    variant: str | None = None  # a preset, such as "dcfr", or a user's; None: made of the parts that follow
    regret_minimiser: Literal["regret-matching", "regret-matching-plus", "normal-hedge", "predictive"] | None = None
    optimistic: bool | None = None
    alpha: float | None = None
    beta: float | None = None
    averaging_power: float | None = None
    schedule: Literal[15, 30] | None = None  # first averaging power of the variants on a schedule; None: theirs
    horizon: int | None = None  # iterations that such a variant plans for; None: run.iterations when the run is made
    updates: Literal["alternating", "simultaneous"] = "alternating"
    dtype: Literal["float32", "float64"] = "float64"
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


class CfrBrConfig(SolverConfig, frozen=True, tag="cfr-br"):
    """CFR-BR: each player learns on his buckets against a best response that knows its real cards."""

    variant: str = "cfr"  # regret update and averaging of the player who learns: a preset without a schedule


class DeepCfrConfig(SolverConfig, frozen=True, tag="deep-cfr"):
    """Deep CFR and Single Deep CFR: alternating linear CFR, its regrets a network's; numbers are the paper's on Leduc.

    What is fitted, and to what, is in `mccfr.solvers.deep`.
    """

    traversals: int = 1500  # of each player in an iteration
    sampling: Literal["external", "outcome", "full"] = "external"  # full: every history, weighed by its reach
    epsilon: float = 0.5  # outcome: the traverser's share of uniform exploration
    baseline: Literal["none", "learned"] = "none"  # outcome: what stands in for actions that are not taken
    baseline_memory: int = 200_000  # learned: newest actions taken that it is fitted to
    baseline_steps: int = 200  # of a fit, after each player's traversals
    baseline_batch: int = 512  # actions of a step
    fit: Literal["network", "table"] = "network"  # table: exact weighted means of the memory in the network's place
    fallback: Literal["argmax", "uniform"] = "argmax"  # where no advantage is positive
    network: Literal["plain", "branches"] = "plain"
    layers: int = 3  # hidden ones of the plain network
    units: int = 64
    card_units: int = 192  # of the branch of cards
    readout: Literal["last", "all"] = "last"  # hidden layers that the output sees; all: with a solved last layer
    steps: int = 750  # minibatches of a fit
    batch: int | Literal["all"] = 2048  # samples of a minibatch; all: the whole memory, merged by infosets
    learning_rate: float = 1e-3
    decay: Literal["none", "linear"] = "linear"  # of the learning rate within a fit, down to 0
    gradient_norm: float = 1.0  # longer gradients are cut to it
    last_layer: Literal["solved", "steps"] = "solved"  # solved: after the steps, exactly for the memory; steps: by them
    start: Literal["last", "scratch"] = "last"  # what a fit begins with
    memory: int = 1_000_000  # samples a player
    averages: Sequence[Literal["sd", "network"]] = ("sd",)  # the first is the run's strategy
    strategy_memory: int = 1_000_000
    strategy_steps: int = 5000
    sd_weights: Literal["exact", "paper"] = "exact"  # exact: a strategy weighs what it does in the strategy memory
    keep_networks: int | Literal["all"] = "all"
    horizon: int | None = None  # iterations whose networks find room; None: run.iterations when the run is made

    def checks(self) -> list[Check]:
        """As `SolverConfig.checks`."""
        counted = ("traversals", "layers", "units", "card_units", "steps", "memory", "strategy_memory")
        later = ("strategy_steps", "baseline_memory", "baseline_steps", "baseline_batch")
        return [
            *super().checks(),
            *((key, getattr(self, key) >= 1, "at least 1") for key in (*counted, *later)),
            ("baseline", self.baseline == "none" or self.sampling == "outcome", "'none' unless sampling = 'outcome'"),
            ("epsilon", 0 < self.epsilon <= 1, "above 0 and at most 1"),
            ("batch", self.batch == "all" or int(self.batch) >= 1, "at least 1, or 'all'"),
            ("learning_rate", self.learning_rate > 0, "above 0"),
            ("gradient_norm", self.gradient_norm > 0, "above 0"),
            ("averages", len(set(self.averages)) == len(self.averages) > 0, "'sd', 'network' or both, each once"),
            ("keep_networks", self.keep_networks == "all" or int(self.keep_networks) >= 1, "at least 1, or 'all'"),
            ("horizon", self.horizon is None or self.horizon >= 1, "at least 1"),
        ]


OPTIONS: dict[str, type[SolverConfig]] = {
    str(kind.__struct_config__.tag): kind
    for kind in (
        ExternalSamplingConfig,
        OutcomeSamplingConfig,
        AverageStrategyConfig,
        RobustSamplingConfig,
        TargetedSamplingConfig,
        PublicChanceConfig,
        FullWidthConfig,
        CfrBrConfig,
        DeepCfrConfig,
    )
}
"""The `[solver]` table of each algorithm of the package; `mccfr.config.made` has those of users'."""


class TablesConfig(_Table, frozen=True):
    """Where and how the tables live."""

    format: Literal["zarr", "hdf5"] = "zarr"
    live_dir: str = "auto"  # "auto": /dev/shm where it is large enough, else anonymous shared memory
    regret_dtype: Literal["float32", "float64", "float16", "bfloat16", "int16"] = "float32"
    sum_dtype: Literal["auto", "float32", "float64", "float16", "bfloat16", "int16"] = "auto"
    strategy_sums: Literal["all", "preflop"] = "all"  # streets that keep them; the others' average is of snapshots
    snapshot_nodes: int | None = None  # with "preflop": a checkpoint at every multiple of so many nodes stays for good
    checkpoint_compression: Literal["auto", "none"] = "auto"  # auto: zstd in Zarr, gzip in HDF5; none: raw cells
    resident: str | None = None  # "16GB": strata in turn, so much of the tables in memory; None: all, all at once


CYCLE_ITERATIONS = 1_000_000
"""Iterations of a cycle of blocks: a cycle of hold'em reads and writes some GB at this length as fast as it trains."""


class RunSettings(_Table, frozen=True):
    """Limits and checkpoints; of this `strata`, and with them `blocks` and `cycle_iterations`, are a run's identity.

    `nodes` and `iterations` are totals of the run; `seconds` is the training time of each session.
    """

    workers: int = 1  # 0: in this process
    pool: Literal["processes", "threads"] = "processes"  # what workers are; threads: of this process, in huge pages
    strata: int | None = None  # shares of the boards of the second street that are trained apart; None: not shared out
    blocks: int | None = None  # with tables.resident: groups of strata that are trained in turn; None: each stratum one
    cycle_iterations: int | None = None  # with tables.resident: of all blocks' turns; None: CYCLE_ITERATIONS
    nodes: int | None = None
    iterations: int | None = None
    seconds: float | None = None
    checkpoint_seconds: float = 600.0
    checkpoint_nodes: int | None = None
    keep_checkpoints: int = 3

    @property
    def trains_in_threads(self) -> bool:
        """Whether workers are threads of the program's own process, on tables that only it can read."""
        return self.pool == "threads" and self.workers > 0


AUTO = "auto"
METHODS = (AUTO, "exact", "head-to-head", "sampled-br", "lbr", "trained-br", "abstract")
"""Of `[evaluation]`, besides those of users.  `auto` is the first that suits the game."""


class EvaluationConfig(_Table, frozen=True):
    """When the strategy is measured while the run goes on, and how.

    `exact` computes exploitability, which whole hold'em is too large for; `head-to-head` plays it against the strategy
    of the first checkpoint kept by `keep` (until there is one: against uniform play); `auto` is the first of them that
    suits the game.  Several `methods` in place of one are used at each point, in their order.
    """

    method: str = AUTO  # one of METHODS, or a user's
    methods: Sequence[str] = ()  # instead of it: some of METHODS
    at_nodes: Sequence[int] = ()
    at_iterations: Sequence[int] = ()
    every_checkpoint: bool = True
    at_end: bool = True
    keep: bool = False  # checkpoint at at_nodes and at_iterations, and never drop those checkpoints
    boards: int | None = None  # that are sampled; None: as many as the method takes by itself, head-to-head 1000
    from_street: str | None = msgspec.field(default=None, name="from")  # sampled-br: street from which it responds
    setting: str | None = None  # lbr: what it may do, 1, 2, 3, 4 or fcpa
    hands: int | None = None  # lbr: deals that are drawn
    budget_seconds: float | None = None  # at each point, for all that is sampled, instead of numbers of boards
    seed: int = 0  # of what is sampled

    @property
    def chosen(self) -> Sequence[str]:
        """The names of the methods."""
        return self.methods or (self.method,)


class ExportConfig(_Table, frozen=True):
    """A policy written at the end of the run."""

    out: str
    format: Literal["policy", "zarr", "hdf5", "csv", "parquet", "openspiel"] = "policy"
    quantise: Literal["uint8", "uint16"] = "uint16"


class ClusterConfig(_Table, frozen=True):
    """Several machines for one run in strata (`mccfr cluster`); none of it is part of a run's identity."""

    engine: Literal["mpi", "none"] = "mpi"  # none: all machines in one process, one after the other
    machines: Sequence[int] = (1, 1024)  # least and most that a session begins with
    network: str = "lo"  # interface over which machines talk; lo: this machine alone, and nothing listens
    ports: Sequence[int] = (47000, 47999)  # first and last that machines listen on, where there are several


class Config(_Table, frozen=True):
    """One run, as its TOML file says it."""

    game: GameConfig  # which one, `config_file` finds by its name
    abstraction: AbstractionConfig | None = None
    solver: SolverConfig = ExternalSamplingConfig()  # which one, `config_file` finds by its algorithm
    tables: TablesConfig = TablesConfig()
    run: RunSettings = RunSettings()
    evaluation: EvaluationConfig = EvaluationConfig()
    export: ExportConfig | None = None
    cluster: ClusterConfig = ClusterConfig()
