"""The method `head-to-head`: chips won from another strategy."""

from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from mccfr.evaluation.methods.method import Count, EvaluationLine, Record
from mccfr.evaluation.methods.option_structs import BOARDS, RESOLVE, MethodOptions, SampledOptions
from mccfr.evaluation.methods.sampled_methods import SAMPLING, OverDeals, all_boards

if TYPE_CHECKING:  # kernels are imported when something is measured
    from mccfr.games.game import Game
    from mccfr.policy.strategy_profile import Profile


class HeadToHeadOptions(SampledOptions, frozen=True):
    """Options of `head-to-head`: number of boards, and re-solving by the evaluated strategy."""

    boards: Annotated[int, BOARDS] = 1000
    resolve: Annotated[str | None, RESOLVE] = None


class HeadToHeadLine(EvaluationLine):
    """Fields of one result of the method `head-to-head`: a JSON line of evaluations.jsonl.

    `against` is the name of the second strategy. `resolve` is the street from which the first strategy re-solves, and
    how; None: it does not.
    """

    ci95_chips: tuple[float, float] | None
    against: str
    boards: Count
    exploitability_chips: None
    exploitability_mbb: None
    resolve: str | None = None


class HeadToHeadMethod(OverDeals):
    """Chips per hand won from another strategy, the mean over both seats, on sampled boards."""

    name: ClassVar[str] = "head-to-head"
    bound: ClassVar[str] = "estimate"
    meets: ClassVar[bool] = True
    reads_rows: ClassVar[bool] = True
    line: ClassVar[type[EvaluationLine]] = HeadToHeadLine
    options: ClassVar[type[MethodOptions]] = HeadToHeadOptions

    def without_effect(self, game: "Game", options: HeadToHeadOptions) -> frozenset[str]:
        """Return names of options without effect: seed, workers and keep if all boards are played.

        Otherwise the set is empty. All boards are played if the game lists its boards, and the options have no time
        budget and no smaller number of boards.
        """
        return SAMPLING if all_boards(game, options) else frozenset()

    def find(self, side: "Profile", against: "Profile | None", options: HeadToHeadOptions) -> dict[str, Any]:
        """Play two strategies against each other in both seats; return {name: value} of the result.

        side     the game and the first strategy, whose chips the result has
        against  the game and the second strategy; not None
        options  number of boards, and how the first strategy re-solves

        Raises `ValueError` for games that differ in more than card buckets and bet sizes. Raises `StoppedError` if a
        signal stops it, and `RuntimeError` if a worker process dies.
        """
        from mccfr.evaluation.head_to_head import head_to_head
        from mccfr.evaluation.resolved_head_to_head import resolved_head_to_head
        from mccfr.evaluation.sampled_head_to_head import head_to_head_on_deals, is_on_deals
        from mccfr.play.resolving.resolving_table import settings_of

        assert against is not None
        again = {}
        if options.resolve is not None:
            settings, again = settings_of(options.resolve), {"resolve": options.resolve}
            result = resolved_head_to_head(side, against, options.boards, options.seed, settings, options.effort)
        else:
            meet = head_to_head_on_deals if is_on_deals(side, against) else head_to_head
            result = meet(side, against, options.boards, options.seed, options.effort)
        return {
            "value_chips": result.mean_chips,
            "ci95_chips": list(result.ci95_chips),
            "boards": result.boards,
            "units": result.boards,
            **again,
        }

    def text(self, record: Record, took: str) -> str:
        """Return a result as one line of text for the user.

        record  {name: value} of the result
        took    duration of the evaluation, as text
        """
        low, high = record["ci95_chips"]
        text = (
            f"{record['value_chips']:+.4g} chips a hand against {record['against']} (95 %: {low:+.4g} to "
            f"{high:+.4g}; {record['boards']:,} boards, {took})"
        )
        again = record.get("resolve")
        return text if again is None else f"{text}, solving again from the {again} on"

    def short(self, record: Record) -> str:
        """Return the chips per hand of a result in a few words, for a progress bar.

        record  {name: value} of the result
        """
        return f"{record['value_chips']:+.4g} chips against {record['against']}"
