"""The method `trained-response` for three and more players: each one's value and response's gain."""

from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from mccfr.evaluation.methods.method import Count, EvaluationLine, Record
from mccfr.evaluation.methods.option_structs import MethodOptions, Option, SampledOptions
from mccfr.evaluation.methods.sampled_methods import OverDeals, in_mbb

if TYPE_CHECKING:  # kernels are imported when something is measured
    from mccfr.games.game import Game
    from mccfr.policy.strategy_profile import Profile

NODES = Option("trained-response: nodes of training each response; default: 100000000.", least=1)
DEALS = Option("trained-response: deals to score; default: 100000.", least=512)


class TrainedResponseOptions(SampledOptions, frozen=True):
    """Options of `trained-response`."""

    response_nodes: Annotated[int, NODES] = 100_000_000
    deals: Annotated[int, DEALS] = 100_000


class TrainedResponseLine(EvaluationLine):
    """Record of the method `trained-response`; the lists are by player."""

    values_chips: tuple[float, ...]
    values_ci95_chips: tuple[tuple[float, float], ...]
    gains_chips: tuple[float, ...]
    gains_ci95_chips: tuple[tuple[float, float], ...]
    gains_mbb: tuple[float | None, ...]
    response_nodes: Count
    deals: Count


class TrainedResponseMethod(OverDeals):
    """Chips per hand that a trained response of each player gains: a lower bound on its best gain."""

    name: ClassVar[str] = "trained-response"
    bound: ClassVar[str] = "lower"
    takes_rake: ClassVar[bool] = True
    takes_seats: ClassVar[bool] = True
    line: ClassVar[type[EvaluationLine]] = TrainedResponseLine
    options: ClassVar[type[MethodOptions]] = TrainedResponseOptions

    def problem(self, game: "Game") -> str | None:
        """Return a problem for two players, and for trees that the kernel cannot walk, or None."""
        from mccfr.trees.compiled import MAX_PACKED_ACTIONS, can_pack

        if game.tree.players == 2:
            return f"the method {self.name} is for three and more players: use exact, or lbr in whole hold'em"
        problem = super().problem(game)
        if problem is None and not can_pack(game.tree):
            problem = f"the method {self.name} needs a game of at most {MAX_PACKED_ACTIONS} actions at a decision"
        return problem

    def find(self, side: "Profile", against: "Profile | None", options: TrainedResponseOptions) -> dict[str, Any]:
        """Train the responses and return the record's fields."""
        from mccfr.evaluation.trained_response import trained_response

        found = trained_response(side, options.response_nodes, options.deals, options.seed, options.effort)
        gains = [gain.mean for gain in found.gains]
        return {
            "value_chips": found.values[0].mean,
            "values_chips": [value.mean for value in found.values],
            "values_ci95_chips": [[value.mean - value.within, value.mean + value.within] for value in found.values],
            "gains_chips": gains,
            "gains_ci95_chips": [[gain.mean - gain.within, gain.mean + gain.within] for gain in found.gains],
            "gains_mbb": [in_mbb(side.game, gain) for gain in gains],
            "response_nodes": options.response_nodes,
            "deals": found.deals,
        }

    def text(self, record: Record, took: str) -> str:
        """Return the record as one line of text."""
        seats = (
            f"player {player}: value {value:.4g} ({low:.4g} to {high:.4g}), gain {gain:.4g} ({least:.4g} to {most:.4g})"
            for player, (value, (low, high), gain, (least, most)) in enumerate(
                zip(
                    record["values_chips"],
                    record["values_ci95_chips"],
                    record["gains_chips"],
                    record["gains_ci95_chips"],
                    strict=True,
                )
            )
        )
        return (
            f"in chips a hand, with 95 % intervals: {'; '.join(seats)} (responses trained for "
            f"{record['response_nodes']:,} nodes, {record['deals']:,} deals, {took})"
        )

    def short(self, record: Record) -> str:
        """Return the largest gain as a short text."""
        return f"trained responses gain at most {max(record['gains_chips']):.4g} chips a hand"
