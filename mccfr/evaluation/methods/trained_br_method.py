"""The method `trained-br`: chips won by an opponent trained against the strategy."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from mccfr.evaluation.methods.method import Count, EvaluationLine, Record
from mccfr.evaluation.methods.option_structs import BOARDS, MethodOptions, Option, SampledOptions
from mccfr.evaluation.methods.sampled_methods import LowerBoundLine, LowerBoundMethod, lower_bound, lower_bound_text

if TYPE_CHECKING:  # kernels are imported when something is measured
    from mccfr.policy.strategy_profile import Profile


ABSTRACTION = Option(
    "trained-br: the responder's abstraction, built or a recipe; default: every hand as its own bucket if the game "
    "lists its boards, else the policy's.",
    metavar="DIR",
)
MENU = Option(
    "trained-br: configuration with the responder's bet sizes in game.menu; default: the bets of the policy's tree.",
    metavar="CONFIG",
)
NODES = Option("trained-br: nodes to touch in training; default: by the game's size.")
SAMPLER = Option("trained-br: public-chance-sampling (default) or external-sampling.", metavar="NAME")


class TrainedBestResponseOptions(SampledOptions, frozen=True):
    """Options of `trained-br`: the responder's game, its training and its scoring."""

    responder_abstraction: Annotated[Path | None, ABSTRACTION] = None
    responder_menu: Annotated[Path | None, MENU] = None
    nodes: Annotated[int | None, NODES] = None
    sampler: Annotated[str, SAMPLER] = "public-chance-sampling"
    boards: Annotated[int | None, BOARDS] = None


class TrainedBestResponseLine(LowerBoundLine):
    """Record of the method `trained-br`."""

    boards: Count
    responder: str
    responder_nodes: Count


class TrainedBestResponseMethod(LowerBoundMethod):
    """Chips per hand of an opponent trained against the strategy: a lower bound on exploitability."""

    name: ClassVar[str] = "trained-br"
    line: ClassVar[type[EvaluationLine]] = TrainedBestResponseLine
    options: ClassVar[type[MethodOptions]] = TrainedBestResponseOptions

    def find(self, side: "Profile", against: "Profile | None", options: TrainedBestResponseOptions) -> dict[str, Any]:
        """Train and score the responder, and return the record's fields."""
        from mccfr.evaluation.trained_best_response import trained_best_response

        place, bets = (
            None if given is None else Path(given) for given in (options.responder_abstraction, options.responder_menu)
        )
        found = trained_best_response(
            side, place, bets, options.nodes, options.boards, options.seed, options.sampler, options.effort
        )
        return {
            **lower_bound(side.game, found.value_chips, found.ci95_chips),
            "best_response_chips": list(found.best_response_chips),
            "boards": found.boards,
            "units": found.boards,
            "responder": found.knows,
            "responder_nodes": found.nodes,
            "chosen_nodes": list(found.chosen_nodes),
            "chosen_ways": list(found.chosen_ways),
        }

    def text(self, record: Record, took: str) -> str:
        """Return the record as one line of text."""
        what = f"a responder with {record['responder']}, trained for {record['responder_nodes']:,} nodes,"
        return lower_bound_text(record, f"{record['boards']:,} boards, {took}", what)
