"""The method `abstract`: exploitability inside the abstracted game."""

from typing import TYPE_CHECKING, ClassVar

from mccfr.evaluation.methods.exact_method import OverAllDeals
from mccfr.evaluation.methods.method import Record

if TYPE_CHECKING:  # kernels are imported when something is measured
    from mccfr.evaluation.abstract_game import AbstractEvaluation
    from mccfr.games.game import Game
    from mccfr.policy.strategy_profile import Profile
    from mccfr.tables.strategy import Strategy


class AbstractMethod(OverAllDeals):
    """Value and exploitability inside the abstracted game, where the responder sees only buckets."""

    name: ClassVar[str] = "abstract"

    def problem(self, game: "Game") -> str | None:
        """Return why the abstract exploitability cannot be computed, or None."""
        from mccfr.evaluation.abstract_game import abstract_problem

        return abstract_problem(game)

    def _evaluated(self, side: "Profile", strategy: "Strategy") -> "AbstractEvaluation":
        from mccfr.evaluation.abstract_game import evaluate_abstract

        return evaluate_abstract(side.game, strategy)

    def text(self, record: Record, took: str) -> str:
        """Return the record as one line of text."""
        mbb = record["exploitability_mbb"]
        size = f"{record['exploitability_chips']:.6g} chips" + ("" if mbb is None else f" = {mbb:.6g} mbb/g")
        return f"exploitability by buckets, within the abstracted game, {size} (exact there, {took})"

    def short(self, record: Record) -> str:
        """Return the figure as a short text."""
        return f"exploitability by buckets {record['exploitability_chips']:.4g} chips"
