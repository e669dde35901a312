"""Value and exploitability over all deals: the method exact, and what it shares with abstract."""

from abc import abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar

from mccfr.evaluation.methods.dealt import exploitability_text, in_mbb
from mccfr.evaluation.methods.method import EvaluationLine, Method, Record
from mccfr.evaluation.methods.options import MethodOptions

if TYPE_CHECKING:  # kernels are imported when something is measured
    from mccfr.evaluation.abstract import AbstractEvaluation
    from mccfr.evaluation.exact import ExactEvaluation
    from mccfr.games.game import Game
    from mccfr.policy.profile import Profile
    from mccfr.tables.strategy import Strategy


class ExactLine(EvaluationLine):
    """A line of the method exact."""

    exploitability_chips: float
    exploitability_mbb: float | None
    best_response_chips: tuple[float, float]


class OverAllDeals(Method):
    """Value and exploitability over all deals."""

    bound: ClassVar[str] = "exact"
    line: ClassVar[type[EvaluationLine]] = ExactLine
    options: ClassVar[type[MethodOptions]] = MethodOptions

    def listing_bytes(self, game: "Game") -> int:
        """As `Method.listing_bytes`."""
        return game.cards.listing_bytes

    def find(self, side: "Profile", against: "Profile | None", options: MethodOptions) -> dict[str, Any]:
        """As `Method.find`."""
        from mccfr.tables.strategy import Strategy

        assert isinstance(side.strategy, Strategy)
        found = self._evaluated(side, side.strategy)
        return {
            "value_chips": found.value_chips,
            "exploitability_chips": found.exploitability_chips,
            "exploitability_mbb": in_mbb(side.game, found.exploitability_chips),
            "best_response_chips": [float(chips) for chips in found.best_response_chips],
        }

    @abstractmethod
    def _evaluated(self, side: "Profile", strategy: "Strategy") -> "ExactEvaluation | AbstractEvaluation":
        """What the strategy is worth."""


class ExactMethod(OverAllDeals):
    """Value and exploitability, over all deals."""

    name: ClassVar[str] = "exact"
    takes_rake: ClassVar[bool] = True

    def problem(self, game: "Game") -> str | None:
        """As `Method.problem`."""
        if game.cards.dealt and not game.cards.can_list:
            return f"{game.name} is too large for exact exploitability: use the method head-to-head"
        return None

    def in_place(self, game: "Game") -> bool:
        """As `Method.in_place`."""
        from mccfr.solvers.public.best_response import is_large

        return is_large(game)

    def prepared(self, game: "Game") -> Any:
        """The public tree."""
        from mccfr.evaluation.exact import prepared_tree

        return prepared_tree(game)

    def _evaluated(self, side: "Profile", strategy: "Strategy") -> "ExactEvaluation":
        from mccfr.evaluation.exact import evaluate_exact

        return evaluate_exact(side.game, strategy, side.prepared)

    def text(self, record: Record, took: str) -> str:
        """As `Method.text`."""
        mbb = record["exploitability_mbb"]
        size = f"{record['exploitability_chips']:.6g} chips" + ("" if mbb is None else f" = {mbb:.6g} mbb/g")
        return f"exploitability {size}, value for player 0 {record['value_chips']:.6g} chips (exact, {took})"

    def short(self, record: Record) -> str:
        """As `Method.short`."""
        return f"exploitability {exploitability_text(record)}"
