"""CFR-BR: each player learns on his buckets against an opponent who knows his real cards and responds best.

Johanson, Bard, Burch & Bowling, "Finding Optimal Abstract Strategies in Extensive-Form Games" (AAAI 2012), section 3:
one player runs CFR in the abstraction, the other plays a best response in the real game to the strategy of that very
iteration.  Whatever such an opponent gets on average, a best response to the average strategy gets no more; so while
CFR between two abstracted players goes to strategies that exploit each other's blindness, and may be exploited more
the finer the buckets are, this goes to the least exploitable strategy that the buckets can say.

Here both players learn in one run, each against a responder of his own, as two runs of the paper would.  In turn for
player 0 and player 1: his current strategy is frozen, one walk of the public tree finds a best response and notes the
action of every hand on every board, another gives his regrets against it.  Exact, without sampling; where nobody
arrives any action is a best response, and the first is taken.  The responder's cards are `Game.known_cards`: each
player's own walk has his buckets and the other's cards.  Nodes touched are those of four walks.

With perfect recall in the real game the responder has one; buckets may forget.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from abstraction.kernels.parallel import kernel_array
from mccfr.cards.listed import ListedCards
from mccfr.config.solvers import CfrBrConfig
from mccfr.config.table import first_refused
from mccfr.config.tables import Config
from mccfr.games.game import Game
from mccfr.solvers.iterating import IterationSolver
from mccfr.solvers.minimisers import Step, Tables
from mccfr.solvers.public.public_chance.algorithm import PublicChanceSolver, known_state
from mccfr.solvers.public.public_chance.responding import OPTIONS, RespondedSampling, responding_specs
from mccfr.solvers.public.public_tree import PublicTree, public_tree
from mccfr.solvers.public.public_walk import Scope, step_rows, train, value
from mccfr.solvers.public.street_arrays import (
    FOLLOW,
    RESPOND,
    StreetScratch,
    Views,
    new_scratch,
    no_tables,
    street_tables,
)
from mccfr.solvers.public.vector_cfr import absorb, freeze, nodes_of_traversal, table_specs
from mccfr.solvers.public.walk_threads import alone
from mccfr.solvers.solver import Algorithm, Share, Solver, Traits
from mccfr.solvers.variants import Variant, variant
from mccfr.tables.discount import Schedule
from mccfr.tables.layout import TableLayout, TableSet, table_name
from mccfr.tables.strategy import Strategy, average_strategy, row_starts

_DTYPE = "float64"
Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class _Learner:
    """What a learning player needs.  B blocks.

    public       the tree with his buckets and the responder's cards
    root, below  room for walks that train: of the first street, and of the others
    twice        the same two for the responder's walk, which has two values
    noted        B × [slot, row] the responder's best response
    nodes        touched by one walk
    """

    public: PublicTree
    root: StreetScratch
    below: StreetScratch
    twice: tuple[StreetScratch, StreetScratch]
    noted: list[Array]
    nodes: int


class CfrBr:
    """CFR-BR on a game with listed cards.

    tables          by name, [slot, bucket] float64 as `vector_cfr.table_specs` says; changed in place
    iteration       iterations done: with the tables, the whole state
    response_chips  [2] what each player's responder got from him in the last iteration: from his strategy before it
    """

    def __init__(
        self,
        game: Game,
        variant: Variant,
        tables: Mapping[str, npt.NDArray[Any]] | None = None,
        iteration: int = 0,
    ) -> None:
        """Prepare a game; `tables` are those of a run that goes on after `iteration`, allocated if None.

        Raises `ValueError` for a game whose cards are not listed, and tables that do not fit.
        """
        listed = listed_cards(game)
        self._specs = table_specs(game, variant, _DTYPE)
        if tables is None:
            tables = {spec.name: np.zeros(spec.shape, _DTYPE) for spec in self._specs}
        self.game, self.variant, self.iteration = game, variant, iteration
        self.tables = {
            spec.name: kernel_array(tables[spec.name], spec.shape, _DTYPE, spec.name) for spec in self._specs
        }
        self.response_chips = np.zeros(2)
        blocks = range(2 * game.tree.streets)
        self._starts = [row_starts(game, block) for block in blocks]
        self._frozen = [np.zeros_like(table) for table in self._by_block("regret")]
        self._regrets = [np.zeros_like(table) for table in self._frozen]
        self._sums = [np.zeros_like(table) for table in self._frozen]
        known = game.known_cards.listed() if game.known_cards is not None else listed
        self._sides = [_side(game, _mixed(listed, known, player), player) for player in range(2)]

    def _by_block(self, kind: str) -> list[Array]:
        """Tables of a kind by block; a table of one cell where a player never acts on a street."""
        return [self.tables.get(table_name(kind, block), np.zeros((1, 1))) for block in range(len(self._starts))]

    @property
    def nodes_touched(self) -> int:
        """Public nodes touched so far."""
        return 2 * sum(side.nodes for side in self._sides) * self.iteration

    def average_strategy(self) -> Strategy:
        """The average strategy of the iterations so far; uniform where a row was never reached."""
        return average_strategy(self.game, TableSet(self.tables, self._specs))

    def iterate(self, count: int = 1) -> None:
        """Run iterations; the tables are changed in place.  0 compiles the kernels, and changes nothing."""
        if not count:
            self._respond(0)
            self._train(self.variant.step(1), 0)
            for tables in (self._regrets, self._sums):
                for table in tables:
                    table.fill(0)
        for _ in range(count):
            step = self.variant.step(self.iteration + 1)
            for player in range(2):
                self._freeze(step, player)
                self.response_chips[player] = self._respond(player)
                self._train(step, player)
                self._absorb(step, player)
            self.iteration += 1

    def _respond(self, player: int) -> float:
        """Note a best response to a player's frozen strategy; what it gets, in chips a deal."""
        side, responder = self._sides[player], 1 - player
        for table, starts in zip(side.noted[responder::2], self._starts[responder::2], strict=True):
            table.fill(0)
            table[starts[:-1]] = 1  # the first action of every row, for those where nobody arrives
        noted = street_tables(side.noted, responder)
        mine = street_tables(self._frozen, player)
        nothing = no_tables(np.float64)
        views = [Views(noted, noted, nothing), Views(nothing, mine, nothing)]
        root, below = side.twice
        root.by_hand.value.fill(0)
        both, scope = tuple(views[::-1] if responder else views), _scope(side.public, responder)
        value(side.public, both, scope, root, below, alone(side.public))
        return float(root.by_hand.value[0, RESPOND] @ side.public.reach[responder]) / side.public.joint_weight

    def _train(self, step: Step, player: int) -> None:
        """Collect a player's increments against what is noted."""
        side = self._sides[player]
        regrets, frozen, sums = (street_tables(of, player) for of in (self._regrets, self._frozen, self._sums))
        mine = Views(regrets, frozen, sums)
        noted = street_tables(side.noted, 1 - player)
        views = (mine, Views(noted, noted, noted))
        side.root.by_hand.value[FOLLOW].fill(0)
        train(
            side.public,
            views[::-1] if player else views,
            step_rows([step], self.iteration + 1),
            _scope(side.public, player),
            side.root,
            side.below,
            alone(side.public),
        )

    def _block_tables(self, block: int) -> Tables:
        basis = "predicted_regret" if self.variant.optimistic else "regret"
        return Tables(*(self._by_block(kind)[block] for kind in ("regret", basis, "strategy_sum")))

    def _freeze(self, step: Step, player: int) -> None:
        """Fill the tables of a player's current strategy."""
        for block in range(player, len(self._starts), 2):
            freeze(step, self._block_tables(block), self._starts[block], self._frozen[block])

    def _absorb(self, step: Step, player: int) -> None:
        """Update a player's tables by his increments, and clear those."""
        for block in range(player, len(self._starts), 2):
            increments = (self._regrets[block], self._sums[block])
            ones = np.ones(increments[0].shape[1])
            absorb(step, self._block_tables(block), self._starts[block], increments, ones)
            for table in increments:
                table.fill(0)


def trunk_game(solver: CfrBrConfig, game: Game) -> Game | None:
    """The game on the buckets that opponents have before the last street; None: on those of the players.

    Raises `ValueError` for a game without cards, and for buckets that there are not.
    """
    if not game.cards.dealt:
        raise ValueError(f"solver.algorithm = 'cfr-br' needs a game with cards, and {game.name} has none")
    if solver.trunk == "own":
        return None
    if solver.trunk == "lossless":
        if game.cards.boards is None:
            raise ValueError(
                f"solver.trunk = 'lossless': the hands of {game.name} are too many; name an abstraction that is finer "
                "than the players', or take 'own'"
            )
        return None if game.known_cards is None else replace(game, cards=game.known_cards)
    if game.trunk_cards is None:
        raise ValueError(f"solver.trunk = {solver.trunk!r}: the game comes without its buckets, trunk_cards")
    return replace(game, cards=game.trunk_cards)


def listed_cards(game: Game) -> ListedCards:
    """The cards of a game that CFR-BR can go over; `ValueError` for others."""
    if game.cards.boards is None:
        what = "has no cards beside its tree" if not game.cards.dealt else "draws its boards from the deck"
        raise ValueError(
            f"solver.algorithm = 'cfr-br' goes over every hand on every board, and {game.name} {what}: take a game "
            "with listed cards, such as runs/twin-20.toml or an endgame"
        )
    return game.cards.listed()


def _mixed(cards: ListedCards, known: ListedCards, player: int) -> ListedCards:
    """Cards with the buckets of a player, and the other's as he sees them."""
    own = np.arange(2) == player
    bucket = [np.where(own[:, None, None], *both) for both in zip(cards.bucket, known.bucket, strict=True)]
    return replace(cards, bucket=bucket, buckets=np.where(own, cards.buckets, known.buckets))


def _side(game: Game, cards: ListedCards, player: int) -> _Learner:
    public = public_tree(replace(game, cards=cards))
    first, later = range(1), range(1, public.streets)
    noted = [
        np.zeros((max(1, int(slots)), int(buckets)) if slots and block % 2 != player else (1, 1))
        for block, (slots, buckets) in enumerate(zip(game.tree.row_slots, cards.buckets.reshape(-1), strict=True))
    ]
    return _Learner(
        public,
        new_scratch(public, first, _DTYPE),
        new_scratch(public, later, _DTYPE),
        (new_scratch(public, first, _DTYPE, 2), new_scratch(public, later, _DTYPE, 2)),
        noted,
        nodes_of_traversal(public, cards),
    )


def _scope(public: PublicTree, player: int) -> Scope:
    """A whole traversal of a player."""
    return Scope(player, player, *public.boards.root.tolist())


_WHOLE = Traits(seeded=False, axis="iterations", one_process=True)


class CfrBestResponse(Algorithm):
    """CFR of each abstracted player against a best response that knows its cards.

    Full width, in one process; or, with `solver.trunk`, on sampled boards (`public_chance.responding`).
    """

    options = CfrBrConfig

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        assert isinstance(config.solver, CfrBrConfig)
        self._solver = config.solver

    @property
    def traits(self) -> Traits:
        """Boards that are sampled are shared out among workers, of whom the first discounts all tables."""
        return _WHOLE if self._solver.trunk is None else Traits(sweeps=True)

    @property
    def schedule(self) -> Schedule:
        """Of sampled boards."""
        return Schedule() if self._solver.trunk is None else OPTIONS.schedule

    @property
    def _variant(self) -> Variant:
        found = variant(self._solver.variant)
        if found.scheduled:
            raise ValueError(
                f"solver.variant = {self._solver.variant!r} follows a schedule, which 'cfr-br' has none of: take "
                "'cfr', 'cfr+', 'lcfr' or 'dcfr'"
            )
        return found

    def completed(self, game: Game) -> Config:
        """As `Algorithm.completed`: boards that are not listed are sampled."""
        if self._chooses(game):
            solver = msgspec.structs.replace(self._solver, trunk="own")
            if (problem := first_refused(solver, solver.checks())) is not None:
                raise ValueError(f"solver.{problem}")
            return msgspec.structs.replace(self.config, solver=solver)
        self._check(game)
        return super().completed(game)

    def _chooses(self, game: Game) -> bool:
        """Whether the trunk is left to it: boards are drawn from the deck."""
        return self._solver.trunk is None and game.cards.dealt and game.cards.boards is None

    def _check(self, game: Game) -> None:
        if self._solver.trunk is None:
            listed_cards(game)
            _ = self._variant
            if self._solver.warm_start is not None:
                raise ValueError("solver.warm_start is for sampled boards: set solver.trunk, or leave it out")
        else:
            trunk_game(self._solver, game)

    def layout(self, game: Game, wide: npt.NDArray[np.uint8] | None = None) -> TableLayout:
        """As `Algorithm.layout`: nothing is padded."""
        if self._chooses(game):
            return type(self)(self.completed(game)).layout(game, wide)
        if wide is None:
            self._check(game)
        nothing = np.zeros(2 * game.tree.streets, np.int64)
        if self._solver.trunk is not None:
            tables = self.config.tables
            sum_dtype = "float64" if tables.sum_dtype == "float64" else "float32"
            specs = responding_specs(game, trunk_game(self._solver, game) or game, tables.regret_dtype, sum_dtype)
            return TableLayout(specs, nothing)
        return TableLayout(table_specs(game, self._variant, "float64"), nothing)

    def solver(self, game: Game, tables: TableSet, share: Share | None = None) -> Solver:
        """As `Algorithm.solver`."""
        if self._chooses(game):
            return type(self)(self.completed(game)).solver(game, tables, share)
        share = share or Share()
        if self._solver.trunk is not None:
            given = trunk_game(self._solver, game), self._solver.seed, share.worker, known_state(share)
            return PublicChanceSolver(RespondedSampling(game, tables, *given), share)
        return IterationSolver(CfrBr(game, self._variant, tables, share.state.iterations), share)
