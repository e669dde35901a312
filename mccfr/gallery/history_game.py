"""Base classes of the gallery's algorithms: histories h, infosets I with their table rows, iterations."""

import time
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, TypeVar

import msgspec
import numpy as np
import numpy.typing as npt

from mccfr.common.user_code import calling
from mccfr.config.solver_tables import SolverConfig
from mccfr.games.game import Game
from mccfr.solvers.solver import Algorithm, Traits
from mccfr.solvers.solver import Share as RunShare
from mccfr.tables.table_layout import TableLayout, TableSet, make_layout, table_name
from mccfr.trees.compiled import CHANCE, DECISION, TERMINAL, CompiledTree
from storage.schema import ArraySpec

Row = npt.NDArray[np.float64]
"""[A] one number for each action of an infoset."""
Drawn = TypeVar("Drawn")

# ranges of options
Share = Annotated[float, msgspec.Meta(gt=0, le=1)]
Count = Annotated[int, msgspec.Meta(ge=1)]


class Infoset:
    """An information set.  Its rows [A] are views of the algorithm's tables: change them in place.

    player        player to act, 0 to P-1
    actions       indices of its actions, range(A)
    regret        R(I, a), cumulative regret
    strategy_sum  S(I, a), from which the average strategy is computed
    histories     all histories (tree nodes) in the infoset
    above         (J, b): infoset J and action b of its player's previous decision; None if there is none
    """

    sigma: Row  # set by an algorithm: the current strategy
    gained: Row  # set by an algorithm: what an iteration adds to the regrets
    reach: float  # set by an algorithm: the player's own reach
    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Row:
            """Return the infoset's row [A] of a table in `HistoryGame.keeps`, such as "regret"."""

        def __setattr__(self, name: str, value: Any) -> None: ...

    def __init__(self, player: int, actions: int, above: "tuple[Infoset, int] | None") -> None:
        self.player, self.actions, self.above = player, range(actions), above
        self.histories: list[History] = []


class History:
    """A history: a node of the game tree, including cards.

    terminal, chance  True for a terminal, True for a chance node; a decision if both are False
    children          next histories, by action or outcome
    probability       at a chance node: [outcomes] probability of each outcome
    payoff            [P] each player's chips at a terminal
    player, infoset   at a decision: the player who acts, and the infoset
    last              for each player, (I, a) of its previous decision and action; None if there is none
    dealt             product of the chance probabilities on the path to this history
    node              number of the node in the compiled tree
    """

    infoset: Infoset
    last: tuple[Any, ...]
    dealt = 1.0

    def __init__(self, tree: CompiledTree, node: int, payoff: Sequence[float]) -> None:
        arrays = tree.arrays
        self.node, self.player = node, int(arrays.player[node])
        self.terminal, self.chance = arrays.kind[node] == TERMINAL, arrays.kind[node] == CHANCE
        self.probability: Row = arrays.probability[list(tree.children(node))]
        self.payoff, self.last = payoff, (None,) * tree.players
        self.children: list[History] = []


class Seed(SolverConfig, frozen=True, tag="seed"):
    """Options of an algorithm that has only the random `seed`: its `[solver]` table."""


TRAITS = Traits(over_histories=True, one_process=True)
"""Cards are in the tree, and one process runs without locks, because the code should stay readable."""
DRAWS_NOTHING = replace(TRAITS, seeded=False)
"""Traits of an algorithm whose result does not depend on the seed."""


class HistoryGame(Algorithm):
    """Base class of the gallery's algorithms; a subclass implements `iterate`.

    root, infosets  the game's first history; all its infosets, in order of tree nodes
    given           the algorithm's options, from the `[solver]` table of the configuration
    rng             generator seeded by seed and iteration number, so that resuming needs no saved state
    nodes           number of histories visited so far in the current call of `Iterations.run`
    """

    options: ClassVar[type[SolverConfig]] = Seed
    keeps: ClassVar[Sequence[str]] = ("regret", "strategy_sum")
    """Names of the tables with a row for each infoset; all rows start at 0."""
    keeps_by_history: ClassVar[Sequence[str]] = ()
    """Names of further tables with one number for each player and history."""
    root: History
    infosets: list[Infoset]
    given: Any
    rng: np.random.Generator
    nodes = 0

    traits = TRAITS

    @abstractmethod
    def iterate(self, t: int) -> None:
        """Run iteration t, counted from 1."""

    def begin(self, game: Game, tables: TableSet) -> None:
        """Set `root`, `infosets` and `given`, before the first iteration in a process."""
        self.given, self.root, self.infosets = self.config.solver, *histories(game, tables, self.keeps)

    def layout(self, game: Game) -> TableLayout:
        """Return the names and shapes of the algorithm's float64 tables as a `TableLayout`."""
        made = make_layout(game, regret_dtype="float64", sum_dtype="float64")
        rows = [spec for spec in made.specs if spec.name.startswith("regret")]
        more = [
            ArraySpec(f"{kind}/{spec.name.partition('/')[2]}", spec.shape, "float64", spec.axes)
            for kind in self.keeps[2:]
            for spec in rows
        ]
        for kind in self.keeps_by_history:
            shape = 1, len(game.tree.arrays.kind)
            more += [ArraySpec(table_name(kind, i), shape, "float64", ("bucket", "node")) for i in (0, 1)]
        return TableLayout((*made.specs, *more), made.width)

    def solver(self, game: Game, tables: TableSet, share: RunShare | None = None) -> "Iterations":
        """Return the solver that runs this algorithm and changes `tables` in place.

        share  this process's part of a run, with the state (counts of iterations and nodes) to continue from; None: a
               new run
        """
        return Iterations(type(self)(self.config), game, tables, share or RunShare())

    def play(self, strategy: Callable[[Infoset], Row]) -> None:
        """Set each infoset's `sigma` [A] to `strategy(I)` and `reach` to its player's own reach."""
        for I in self.infosets:
            I.sigma = strategy(I)
            I.reach = 1.0 if I.above is None else I.above[0].reach * float(I.above[0].sigma[I.above[1]])

    def draw(self, items: Sequence[Drawn], shares: Row) -> Drawn:
        """Draw one of the items at random, with probabilities proportional to `shares`."""
        ends = np.cumsum(shares)
        return items[int(np.searchsorted(ends, self.rng.random() * ends[-1], side="right"))]


class Iterations:
    """Runs the iterations of a gallery algorithm, with the interface of the fast solvers.

    The interface is `mccfr.solvers.solver.Solver`.
    """

    def __init__(self, algorithm: HistoryGame, game: Game, tables: TableSet, share: RunShare) -> None:
        self._algorithm, self.state, self.busy_seconds = algorithm, share.state, 0.0
        self.state.rng = [0, 0, 0, 0]
        algorithm.begin(game, tables)

    def warm_up(self) -> None:
        """Do nothing, because no kernel is compiled."""

    def run(self, total_nodes: int, node_limit: int, iteration_limit: int) -> tuple[int, int]:
        """Run iterations for 0.1 seconds or up to a limit; return how many (iterations, nodes).

        `node_limit` and `iteration_limit` are limits of this call; `total_nodes` is not used.

        Raises `UserCodeError` if a user's own algorithm raises an exception.
        """
        del total_nodes
        began, algorithm, iterations = time.perf_counter(), self._algorithm, 0
        algorithm.nodes = 0
        while iterations < iteration_limit and algorithm.nodes < node_limit and time.perf_counter() < began + 0.1:
            self.state.iterations += 1
            iterations += 1
            algorithm.rng = np.random.default_rng([algorithm.config.solver.seed, self.state.iterations])
            with calling(algorithm.iterate, f" in iteration {self.state.iterations}"):
                algorithm.iterate(self.state.iterations)
        self.state.nodes += algorithm.nodes
        self.busy_seconds += time.perf_counter() - began
        return iterations, algorithm.nodes


def regret_matching(regrets: Row) -> Row:
    """Return the regret-matching strategy [A] of regrets [A]; uniform if no regret is positive."""
    positive = np.maximum(regrets, 0)
    total = positive.sum()
    return positive / total if total > 0 else np.full(len(regrets), 1 / len(regrets))


def below(top: Iterable[History], but_of: int | None = None) -> list[History]:
    """Return the histories `top` and all their descendants, parents first.

    but_of  player whose decisions are included without their descendants; None: no such player
    """
    found = list(top)
    for h in found:
        found.extend(h.children if h.chance or h.player != but_of else [])
    return found


def histories(game: Game, tables: TableSet, kinds: Sequence[str]) -> tuple[History, list[Infoset]]:
    """Return (root history, list of the infosets in order of first appearance).

    kinds  names of tables, such as "regret"; each infoset gets an attribute of that name, a view [A] of its row
    """
    arrays = game.tree.arrays
    payoffs = np.column_stack([game.tree.payoffs_of(i) for i in range(game.tree.players)]).tolist()
    made = [History(game.tree, node, payoff) for node, payoff in enumerate(payoffs)]
    infosets: dict[tuple[int, int], Infoset] = {}
    for node, h in enumerate(made):
        h.children = [made[child] for child in game.tree.children(node)]
        if arrays.kind[node] == DECISION:
            name = h.player, int(arrays.row[node])
            if name not in infosets:
                infosets[name] = Infoset(h.player, len(h.children), h.last[h.player])
                for kind, row in _rows(tables, kinds, h, int(arrays.slot[node])):
                    setattr(infosets[name], kind, row)
            h.infoset = infosets[name]
            h.infoset.histories.append(h)
        for a, child in enumerate(h.children):
            child.dealt = h.dealt * (h.probability[a] if h.chance else 1.0)
            child.last = tuple((h.infoset, a) if p == h.player else last for p, last in enumerate(h.last))
    return made[0], list(infosets.values())


def _rows(tables: TableSet, kinds: Sequence[str], h: History, slot: int) -> Iterator[tuple[str, Any]]:
    for kind in kinds:
        yield kind, tables[table_name(kind, h.player, len(h.last))][0, slot : slot + len(h.children)]
