"""The method `sampled-br`: chips won by a best response on real cards from some street on."""

from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import msgspec

from mccfr.evaluation.evaluation_progress import report_step
from mccfr.evaluation.methods.method import Record
from mccfr.evaluation.methods.option_structs import BOARDS, FROM, RESOLVE, MethodOptions, SampledOptions
from mccfr.evaluation.methods.sampled_methods import (
    SAMPLING,
    LowerBoundMethod,
    all_boards,
    lower_bound,
    lower_bound_text,
    resolving_gain,
    resolving_text,
    street_number,
)

if TYPE_CHECKING:  # kernels are imported when something is measured
    from mccfr.games.game import Game
    from mccfr.policy.strategy_profile import Profile


class SampledBestResponseOptions(SampledOptions, frozen=True):
    """Options of `sampled-br`; `from_street` None: the last street."""

    from_street: Annotated[str | None, FROM] = msgspec.field(default=None, name="from")
    boards: Annotated[int | None, BOARDS] = None
    resolve: Annotated[str | None, RESOLVE] = None


def _street_from(game: "Game", name: str | None) -> int:
    """Return the number of the street from which the responder knows its cards; None: the last."""
    return game.tree.streets - 1 if name is None else street_number(game, name)


class SampledBestResponseMethod(LowerBoundMethod):
    """Chips won by a best response on real cards from some street on, on sampled boards."""

    name: ClassVar[str] = "sampled-br"
    options: ClassVar[type[MethodOptions]] = SampledBestResponseOptions

    def options_problem(self, game: "Game", options: SampledBestResponseOptions) -> str | None:
        """Return a problem for too few boards or (as `ValueError`) an unknown street, or None."""
        from mccfr.evaluation.sampled_best_response import least_boards

        boards, least = options.boards, least_boards(game, _street_from(game, options.from_street))
        if boards is None or boards >= least:
            return None
        return f"evaluation.boards = {boards}: {self.name} needs at least {least}, for an interval"

    def without_effect(self, game: "Game", options: SampledBestResponseOptions) -> frozenset[str]:
        """Return the options of samples if all boards are played."""
        return SAMPLING if all_boards(game, options) else frozenset()

    def find(self, side: "Profile", against: "Profile | None", options: SampledBestResponseOptions) -> dict[str, Any]:
        """Run the best response and return the record's fields."""
        from mccfr.evaluation.sampled_best_response import sampled_best_response
        from mccfr.play.resolving.resolving_table import settings_of

        game, settings = side.game, None if options.resolve is None else settings_of(options.resolve)
        street, progress = _street_from(game, options.from_street), partial(report_step, "board")
        found = sampled_best_response(side, street, options.boards, options.seed, options.effort, progress, settings)
        return {
            **lower_bound(game, found.value_chips, found.ci95_chips),
            "best_response_chips": list(found.best_response_chips),
            "from": game.street_name(street),
            "boards": found.boards,
            "units": found.boards,
            **resolving_gain(found.gain_chips, options.resolve),
        }

    def text(self, record: Record, took: str) -> str:
        """Return the record as one line of text."""
        what = f"a best response from street {record['from']} on"
        return lower_bound_text(record, f"{record['boards']:,} boards, {took}", what) + resolving_text(record)

    def responder(self, record: Record) -> str:
        """Return "sampled-br" with its first street."""
        return f"sampled-br from {record['from']}"
