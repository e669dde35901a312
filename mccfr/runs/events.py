"""Computes when a run must stop, checkpoint or evaluate, from counts of nodes and iterations."""

from dataclasses import dataclass

from mccfr.config.run_tables import EvaluationConfig, RunSettings

NO_EVENT = 2**62


@dataclass(frozen=True)
class Totals:
    """Nodes touched and iterations of a run, summed over all workers since the run began."""

    nodes: int = 0
    iterations: int = 0


@dataclass(frozen=True)
class Events:
    """Schedule of a run: limits, checkpoints and evaluations at counts of nodes or iterations.

    settings  table `[run]` of the configuration, with the limits and `checkpoint_nodes`
    points    table `[evaluation]`, with the counts at which to evaluate
    """

    settings: RunSettings
    points: EvaluationConfig

    def next_stop(self, totals: Totals) -> Totals:
        """Return the next counts of nodes and of iterations at which the workers must pause.

        They pause for a limit, a checkpoint or an evaluation, at counts above `totals`. A count is `NO_EVENT` if there
        is none.

        totals  counts now
        """
        nodes = [self.settings.nodes, *self.points.at_nodes]
        if every := self.settings.checkpoint_nodes:
            nodes.append((totals.nodes // every + 1) * every)
        iterations = [self.settings.iterations, *self.points.at_iterations]
        return Totals(
            min((n for n in nodes if n is not None and n > totals.nodes), default=NO_EVENT),
            min((n for n in iterations if n is not None and n > totals.iterations), default=NO_EVENT),
        )

    def limit_reached(self, totals: Totals) -> bool:
        """Return whether the run has reached its limit of nodes or iterations."""
        nodes, iterations = self.settings.nodes, self.settings.iterations
        return (nodes is not None and totals.nodes >= nodes) or (
            iterations is not None and totals.iterations >= iterations
        )

    def evaluation_between(self, seen: Totals | None, now: Totals) -> bool:
        """Return whether an evaluation point lies in (seen, now]: above `seen`, and at most `now`.

        It is a count of nodes or iterations at which the configuration asks for an evaluation.

        seen  counts up to which evaluations are done; None: none is done, and a point at 0 counts too
        now   counts now
        """
        low = seen or Totals(-1, -1)
        return any(low.nodes < point <= now.nodes for point in self.points.at_nodes) or any(
            low.iterations < point <= now.iterations for point in self.points.at_iterations
        )

    def checkpoint_between(self, seen: Totals | None, now: Totals) -> bool:
        """Return whether a checkpoint is due: a multiple of `checkpoint_nodes` lies in (seen, now].

        It is False if the configuration does not set `checkpoint_nodes`.

        seen  counts up to which checkpoints are written, excluded; None: 0 nodes
        now   counts now, included
        """
        every = self.settings.checkpoint_nodes
        return every is not None and (seen or Totals()).nodes // every < now.nodes // every
