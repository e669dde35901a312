"""Computes the average strategies of a run from its tables."""

from typing import Any

from mccfr.games.game import Game
from mccfr.tables.strategy import Strategy, average_strategy
from mccfr.tables.table_layout import TableSet


class Averages:
    """The usual average strategy: the strategy sums of each row, normalised.

    Algorithms with other averages derive a class from this one.
    """

    names: tuple[str, ...] = ()
    """Names of the averages if there are several; the first is the run's strategy."""
    of_sums: bool = True
    """Whether the first average is the normalised strategy sums.

    Single rows can then be read from the tables.
    """
    keeps_networks: bool = False
    """Whether the run's strategy is given by networks, which `networks` returns."""

    def takes(self, table: str) -> bool:
        """Return whether the averages or `figures` use the table of this name."""
        return table.startswith("strategy_sum")

    def strategy(self, game: Game, tables: TableSet, nodes: int, iterations: int, name: str | None = None) -> Strategy:
        """Return one average strategy of tables after the given numbers of nodes and iterations.

        name  one of `names`; None: the first

        The tables must have strategy sums on all streets.  Raises `ValueError` for sums that no run can write and for
        an unknown name.
        """
        del nodes, iterations
        if name is not None:
            raise ValueError(f"average = {name!r}: the run has one average strategy, of its sums; leave the name out")
        return average_strategy(game, tables)

    def networks(self, game: Game, tables: TableSet, iterations: int, name: str | None = None) -> Any:
        """Return the networks of one of `names` (None: the first) as `mccfr.solvers.deep.network_strategy.Networks`."""
        raise ValueError("the run keeps no networks: what it has learnt is a table")

    def figures(self, tables: TableSet) -> dict[str, Any]:
        """Return further figures for the lines of evaluations.jsonl."""
        del tables
        return {}
