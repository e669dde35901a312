"""What average strategies a run has, and what it takes to make them: `Averages`, which an algorithm gives."""

from typing import Any

from mccfr.games.game import Game
from mccfr.tables.layout import TableSet
from mccfr.tables.strategy import Strategy, average_strategy


class Averages:
    """The averages of a run.  This is what most algorithms have: one, each row of the strategy sums, normalised."""

    names: tuple[str, ...] = ()
    """Of the averages, where there may be several; the first is the run's strategy."""
    of_sums: bool = True
    """Whether the first is just that: whoever needs a few rows may read them where the sums lie."""
    keeps_networks: bool = False
    """Whether the run's strategy is that of networks it keeps, which `networks` gives."""

    def takes(self, table: str) -> bool:
        """Whether the averages or `figures` are made from a table of this name."""
        return table.startswith("strategy_sum")

    def strategy(self, game: Game, tables: TableSet, nodes: int, iterations: int, name: str | None = None) -> Strategy:
        """One of `names` (None: the first), of tables with sums on all streets after so many nodes and iterations.

        `ValueError` for sums no run writes, and for an average that there is not.
        """
        del nodes, iterations
        if name is not None:
            raise ValueError(f"average = {name!r}: the run has one average strategy, of its sums; leave the name out")
        return average_strategy(game, tables)

    def networks(self, game: Game, tables: TableSet, iterations: int, name: str | None = None) -> Any:
        """The networks behind one of `names` (None: the first), as a `mccfr.solvers.deep.asked.Networks`."""
        raise ValueError("the run keeps no networks: what it has learnt is a table")

    def figures(self, tables: TableSet) -> dict[str, Any]:
        """What lines of evaluations.jsonl say besides."""
        del tables
        return {}
