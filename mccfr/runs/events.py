"""At which counts of nodes and iterations a run does something: limits, checkpoints, evaluations; pure functions."""

from dataclasses import dataclass

from mccfr.config.tables import EvaluationConfig, RunSettings

NO_EVENT = 2**62


@dataclass(frozen=True)
class Totals:
    """Counts of a run over all workers and sessions."""

    nodes: int = 0
    iterations: int = 0


@dataclass(frozen=True)
class Events:
    """The points of a run's settings that are counted in nodes and iterations."""

    settings: RunSettings
    points: EvaluationConfig

    def next_stop(self, totals: Totals) -> Totals:
        """The next counts at which the workers must rest."""
        nodes = [self.settings.nodes, *self.points.at_nodes]
        if every := self.settings.checkpoint_nodes:
            nodes.append((totals.nodes // every + 1) * every)
        iterations = [self.settings.iterations, *self.points.at_iterations]
        return Totals(
            min((n for n in nodes if n is not None and n > totals.nodes), default=NO_EVENT),
            min((n for n in iterations if n is not None and n > totals.iterations), default=NO_EVENT),
        )

    def limit_reached(self, totals: Totals) -> bool:
        """Whether the run has all the nodes or iterations it asked for."""
        nodes, iterations = self.settings.nodes, self.settings.iterations
        return (nodes is not None and totals.nodes >= nodes) or (
            iterations is not None and totals.iterations >= iterations
        )

    def evaluation_between(self, seen: Totals | None, now: Totals) -> bool:
        """Whether an evaluation point lies above `seen` (None: the very start, so 0 counts) and at or below `now`."""
        low = seen or Totals(-1, -1)
        return any(low.nodes < point <= now.nodes for point in self.points.at_nodes) or any(
            low.iterations < point <= now.iterations for point in self.points.at_iterations
        )

    def checkpoint_between(self, seen: Totals | None, now: Totals) -> bool:
        """Whether a multiple of `checkpoint_nodes` lies above `seen` and at or below `now`."""
        every = self.settings.checkpoint_nodes
        return every is not None and (seen or Totals()).nodes // every < now.nodes // every
