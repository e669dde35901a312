"""The method `trained-response`: each player's value and the gain of a response trained for it."""

from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from mccfr.evaluation.methods.method import Count, EvaluationLine, Record
from mccfr.evaluation.methods.option_structs import MethodOptions, Option, SampledOptions
from mccfr.evaluation.methods.sampled_methods import OverDeals

if TYPE_CHECKING:  # kernels are imported when something is measured
    from mccfr.games.game import Game
    from mccfr.policy.strategy_profile import Profile

NODES = Option("trained-response: nodes of training each response; default: 1e9.", least=1)
DEALS = Option("trained-response: deals to score; default: 100000.", least=512)


class TrainedResponseOptions(SampledOptions, frozen=True):
    """Options of `trained-response`: nodes touched in training each response, and scored deals."""

    response_nodes: Annotated[int, NODES] = 1_000_000_000
    deals: Annotated[int, DEALS] = 100_000


class TrainedResponseLine(EvaluationLine):
    """Fields of one result of the method `trained-response`: a JSON line of evaluations.jsonl.

    Sequences have one entry for each player. `values_chips` are chips per deal if all play the strategy.
    `gains_chips` are the chips per deal that a trained response wins more than the strategy.
    """

    values_chips: tuple[float, ...]
    values_ci95_chips: tuple[tuple[float, float], ...]
    gains_chips: tuple[float, ...]
    gains_ci95_chips: tuple[tuple[float, float], ...]
    positions: tuple[str, ...]
    big_blind_chips: float | None
    response_nodes: Count
    deals: Count


class TrainedResponseMethod(OverDeals):
    """Value of each player, and gain of a response trained for that player by MCCFR.

    It is for three and more players. The gain is in expectation a lower bound on that of a best response to the others'
    strategies.
    """

    name: ClassVar[str] = "trained-response"
    bound: ClassVar[str] = "lower"
    takes_rake: ClassVar[bool] = True
    takes_seats: ClassVar[bool] = True
    line: ClassVar[type[EvaluationLine]] = TrainedResponseLine
    options: ClassVar[type[MethodOptions]] = TrainedResponseOptions

    def problem(self, game: "Game") -> str | None:
        """Return a sentence why a game cannot be measured by this method, or None.

        Reasons are two players, and a game that has no cards or has them in its tree. Another is a tree that does not
        fit the packed arrays of the kernels, such as one with too many actions at a decision.
        """
        from mccfr.trees.compiled import MAX_PACKED_ACTIONS, can_pack

        if game.tree.players == 2:
            return f"the method {self.name} is for three and more players: use exact, or lbr in whole hold'em"
        problem = super().problem(game)
        if problem is None and not can_pack(game.tree):
            problem = f"the method {self.name} needs a game of at most {MAX_PACKED_ACTIONS} actions at a decision"
        return problem

    def find(self, side: "Profile", against: "Profile | None", options: TrainedResponseOptions) -> dict[str, Any]:
        """Train a response for each player; return {name: value} of the result.

        side     the game and the strategy to measure
        against  not used
        options  nodes of training each response, and number of deals to score

        Raises `ValueError` for too few deals, `StoppedError` if a signal stops it, and `RuntimeError` if a worker
        process dies.
        """
        from mccfr.evaluation.trained_response import trained_response

        found = trained_response(side, options.response_nodes, options.deals, options.seed, options.effort)
        gains = [gain.mean for gain in found.gains]
        return {
            "value_chips": found.values[0].mean,
            "values_chips": [value.mean for value in found.values],
            "values_ci95_chips": [[value.mean - value.within, value.mean + value.within] for value in found.values],
            "gains_chips": gains,
            "gains_ci95_chips": [[gain.mean - gain.within, gain.mean + gain.within] for gain in found.gains],
            "positions": list(side.game.roles),
            "big_blind_chips": side.game.big_blind_chips,
            "response_nodes": options.response_nodes,
            "deals": found.deals,
        }

    def text(self, record: Record, took: str) -> str:
        """Return a result as one line of text for the user, in mbb/g if the game has a big blind.

        record  {name: value} of the result
        took    duration of the evaluation, as text
        """
        big_blind = record["big_blind_chips"]
        unit, scale = ("chips a game", 1.0) if big_blind is None else ("mbb/g", 1000 / big_blind)

        def estimate(name: str, player: int) -> str:
            low, high = (f"{scale * each:.4g}" for each in record[f"{name}_ci95_chips"][player])
            return f"{scale * record[f'{name}_chips'][player]:.4g} ({low} to {high})"

        seats = (
            f"{position}: value {estimate('values', player)}, a response gains {estimate('gains', player)}"
            for player, position in enumerate(record["positions"])
        )
        short = "; one that gains nothing may need more --response-nodes" if min(record["gains_chips"]) <= 0 else ""
        return (
            f"in {unit}, with 95 % intervals: {'; '.join(seats)} (responses trained for "
            f"{record['response_nodes']:,} nodes{short}; {record['deals']:,} deals, {took})"
        )

    def short(self, record: Record) -> str:
        """Return the largest gain of a trained response, in chips, as text for a progress bar.

        record  {name: value} of the result
        """
        return f"trained responses gain at most {max(record['gains_chips']):.4g} chips a game"
