"""The method `lbr`: chips won by local best response."""

from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from mccfr.evaluation.evaluation_progress import report_step
from mccfr.evaluation.methods.method import Count, EvaluationLine, Record
from mccfr.evaluation.methods.option_structs import RESOLVE, MethodOptions, Option, SampledOptions
from mccfr.evaluation.methods.sampled_methods import (
    SAMPLING,
    LowerBoundLine,
    LowerBoundMethod,
    lower_bound,
    lower_bound_text,
    resolving_gain,
    resolving_text,
)

if TYPE_CHECKING:  # kernels are imported when something is measured
    from mccfr.games.game import Game
    from mccfr.policy.strategy_profile import Profile


SETTING = Option("lbr: actions of the responder; default: 2.", metavar="1|2|3|4|fcpa", key=True)
HANDS = Option("lbr: deals, each played in both seats; default: 10000, with --resolve 100.", least=0, key=True)


class LocalBestResponseOptions(SampledOptions, frozen=True):
    """Options of `lbr`."""

    setting: Annotated[str, SETTING] = "2"
    hands: Annotated[int | None, HANDS] = None
    resolve: Annotated[str | None, RESOLVE] = None


class LocalBestResponseLine(LowerBoundLine):
    """Record of the method `lbr`."""

    setting: str
    hands: Count | None


class LocalBestResponseMethod(LowerBoundMethod):
    """Chips per hand that local best response wins: in expectation a lower bound on exploitability."""

    name: ClassVar[str] = "lbr"
    line: ClassVar[type[EvaluationLine]] = LocalBestResponseLine
    options: ClassVar[type[MethodOptions]] = LocalBestResponseOptions

    def options_problem(self, game: "Game", options: LocalBestResponseOptions) -> str | None:
        """Raise `ValueError` for an unknown setting."""
        from mccfr.evaluation.local_best_response import check_setting

        check_setting(options.setting)
        return None

    def without_effect(self, game: "Game", options: LocalBestResponseOptions) -> frozenset[str]:
        """Return the options of samples if every deal is played."""
        from mccfr.evaluation.local_best_response import plays_every_deal

        every = options.resolve is None and plays_every_deal(game, options.hands, options.budget_seconds)
        return SAMPLING if every else frozenset()

    def find(self, side: "Profile", against: "Profile | None", options: LocalBestResponseOptions) -> dict[str, Any]:
        """Run local best response and return the record's fields."""
        from mccfr.evaluation.local_best_response import local_best_response
        from mccfr.play.resolving.resolving_table import settings_of

        game, settings = side.game, None if options.resolve is None else settings_of(options.resolve)
        progress = partial(report_step, "hand" if settings is None else "board")
        found = local_best_response(
            side, options.setting, options.hands, options.seed, progress, options.effort, resolve=settings
        )
        first, second = found.seat_chips
        return {
            **lower_bound(game, found.mean_chips, found.ci95_chips),
            "best_response_chips": [first + game.offset_chips, second - game.offset_chips],
            "hands": found.hands,
            "units": found.units,
            **resolving_gain(found.gain_chips, options.resolve),
        }

    def text(self, record: Record, took: str) -> str:
        """Return the record as one line of text."""
        again = record.get("resolve")
        each = "deals from both seats" if again is None else "boards, from both seats with all hands"
        deals = "every deal" if record["hands"] is None else f"{record['hands']:,} {each}"
        said = lower_bound_text(record, f"{deals}, {took}", f"local best response in setting {record['setting']}")
        return said + resolving_text(record)

    def responder(self, record: Record) -> str:
        """Return "lbr" with its setting."""
        return f"lbr in setting {record['setting']}"
