"""What the gallery stands on: a game as a tree of histories h, decisions in infosets I that have rows in the tables."""

import time
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, TypeVar

import msgspec
import numpy as np
import numpy.typing as npt

from mccfr.config.solvers import SolverConfig
from mccfr.games.game import Game
from mccfr.solvers.solver import Algorithm, Traits
from mccfr.solvers.solver import Share as RunShare
from mccfr.tables.layout import TableLayout, TableSet, make_layout, table_name
from mccfr.trees.compiled import CHANCE, DECISION, TERMINAL, CompiledTree
from mccfr.user_code import calling
from storage.schema import ArraySpec

Row = npt.NDArray[np.float64]
"""[A] a number for each action of an infoset."""
Drawn = TypeVar("Drawn")

# Of options: what is allowed.
Share = Annotated[float, msgspec.Meta(gt=0, le=1)]
Positive = Annotated[float, msgspec.Meta(gt=0)]
Count = Annotated[int, msgspec.Meta(ge=1)]


class Infoset:
    """What its player cannot tell apart.  Rows [A] are those of the tables: changed in place, they are kept.

    player        0 or 1
    actions       range(A)
    regret        R(I, a)
    strategy_sum  S(I, a), from which the average strategy is made
    histories     that it consists of
    above         (J, b): its player's last action b before it, in his infoset J; None: there is none
    """

    sigma: Row  # for algorithms to put something there: the current strategy
    gained: Row  # ... and what an iteration adds to the regrets
    reach: float  # ... and the player's own probability of arriving
    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Row:
            """Rows that an algorithm keeps besides (`Ground.keeps`)."""

        def __setattr__(self, name: str, value: Any) -> None: ...

    def __init__(self, player: int, actions: int, above: "tuple[Infoset, int] | None") -> None:
        self.player, self.actions, self.above = player, range(actions), above
        self.histories: list[History] = []


class History:
    """What has happened so far.

    terminal, chance  what is next: the end, a move of chance; else a decision
    children          what may follow, by action or outcome
    probability       of each, at a chance node
    payoff            (to player 0, to player 1), at the end
    player, infoset   of who acts
    last              each player's last action (I, a) before it; None: there is none
    dealt             probability that chance does its part
    street            how often chance has moved between decisions
    """

    infoset: Infoset
    last: tuple[Any, ...] = (None, None)
    dealt = 1.0
    street = 0

    def __init__(self, tree: CompiledTree, node: int) -> None:
        arrays = tree.arrays
        self.node, self.player = node, int(arrays.player[node])
        self.terminal, self.chance = arrays.kind[node] == TERMINAL, arrays.kind[node] == CHANCE
        self.probability: Row = arrays.probability[list(tree.children(node))]
        self.payoff = (float(arrays.fixed[node]), -float(arrays.fixed[node]))
        self.children: list[History] = []


class Seed(SolverConfig, frozen=True, tag="seed"):
    """The `[solver]` table of an algorithm without keys of its own."""


TRAITS = Traits(over_histories=True, one_process=True)
"""Papers have cards in the tree; and what is to be read has no locks."""
DRAWS_NOTHING = replace(TRAITS, seeded=False)
"""Of an algorithm whose every seed gives the same result."""


class Ground(Algorithm):
    """An algorithm of the gallery: `iterate` is all it has to say.

    Attributes of one that iterates:
        root, infosets: the game; infosets in order of first appearance, so those above come first
        given:          the options
        rng:            anew in each iteration, by seed and number alone: nothing else is to be kept for a resumed run
        nodes:          histories visited
    """

    options: ClassVar[type[SolverConfig]] = Seed
    keeps: ClassVar[Sequence[str]] = ("regret", "strategy_sum")
    """Rows of numbers that an infoset has, by the names of their tables; all begin at 0."""
    keeps_by_history: ClassVar[Sequence[str]] = ()
    """Tables besides that have, for each player, a number of each history; `by_history` finds one."""
    root: History
    infosets: list[Infoset]
    given: Any
    rng: np.random.Generator
    nodes = 0

    traits = TRAITS

    @abstractmethod
    def iterate(self, t: int) -> None:
        """Iteration t, from 1."""

    def begin(self, game: Game, tables: TableSet) -> None:
        """Before the first iteration of a session."""
        self.given, self.root, self.infosets = self.config.solver, *histories(game, tables, self.keeps)

    def layout(self, game: Game) -> TableLayout:
        """As `Algorithm.layout`, in float64."""
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
        """As `Algorithm.solver`."""
        return Iterations(type(self)(self.config), game, tables, share or RunShare())

    def play(self, strategy: Callable[[Infoset], Row]) -> None:
        """Give every infoset its current strategy, and its own reach by that."""
        for I in self.infosets:
            I.sigma = strategy(I)
            I.reach = 1.0 if I.above is None else I.above[0].reach * float(I.above[0].sigma[I.above[1]])

    def draw(self, items: Sequence[Drawn], shares: Row) -> Drawn:
        """One of some items, each with its share."""
        ends = np.cumsum(shares)
        return items[int(np.searchsorted(ends, self.rng.random() * ends[-1], side="right"))]


class Iterations:
    """The `Solver` of an algorithm of the gallery."""

    def __init__(self, algorithm: Ground, game: Game, tables: TableSet, share: RunShare) -> None:
        self._algorithm, self.state, self.busy_seconds = algorithm, share.state, 0.0
        self.state.rng = [0, 0, 0, 0]
        algorithm.begin(game, tables)

    def warm_up(self) -> None:
        """Nothing is compiled."""

    def run(self, total_nodes: int, node_limit: int, iteration_limit: int) -> tuple[int, int]:
        """As `Solver.run`."""
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
    """Actions in proportion to positive regrets; all alike where there are none."""
    positive = np.maximum(regrets, 0)
    total = positive.sum()
    return positive / total if total > 0 else np.full(len(regrets), 1 / len(regrets))


def below(top: Iterable[History], but_of: int | None = None) -> list[History]:
    """Some histories and all that follow, those above first; with `but_of` none after a decision of this player."""
    found = list(top)
    for h in found:
        found.extend(h.children if h.chance or h.player != but_of else [])
    return found


def histories(game: Game, tables: TableSet, kinds: Sequence[str]) -> tuple[History, list[Infoset]]:
    """The root of a game, and its infosets in order of first appearance with their rows of some kinds of tables."""
    arrays, made = game.tree.arrays, [History(game.tree, node) for node in range(len(game.tree.arrays.kind))]
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
            child.street = h.street + bool(child.chance and not h.chance)
            child.dealt = h.dealt * (h.probability[a] if h.chance else 1.0)
            child.last = h.last if h.chance else tuple((h.infoset, a) if p == h.player else h.last[p] for p in (0, 1))
    return made[0], list(infosets.values())


def _rows(tables: TableSet, kinds: Sequence[str], h: History, slot: int) -> Iterator[tuple[str, Any]]:
    for kind in kinds:
        yield kind, tables[table_name(kind, h.player)][0, slot : slot + len(h.children)]
