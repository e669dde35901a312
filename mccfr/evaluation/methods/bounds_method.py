"""The method `bounds`: all lower bounds on exploitability of a game, one after the other."""

from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from mccfr.evaluation.evaluation_progress import report_step
from mccfr.evaluation.methods.lower_bound_methods import (
    LocalBestResponseMethod,
    LowerBoundLine,
    LowerBoundMethod,
    SampledBestResponseMethod,
)
from mccfr.evaluation.methods.measuring import measure_by
from mccfr.evaluation.methods.method import EvaluationLine, Method, Record
from mccfr.evaluation.methods.option_structs import BUDGET, SEED, WORKERS, MethodOptions
from mccfr.evaluation.methods.sampled_methods import exploitability_text, folding_mbb

if TYPE_CHECKING:
    from mccfr.games.game import Game
    from mccfr.policy.strategy_profile import Profile

_DEFAULT_SECONDS = 600.0
"""Default time budget of all bounds together, in seconds, for games whose tree has only some legal bets."""
_KEPT = ("method", "setting", "from", "exploitability_chips", "exploitability_mbb", "ci95_chips", "ci95_mbb", "seconds")


class BoundsOptions(MethodOptions, frozen=True):
    """Options of `bounds`; the time budget is for all bounds together."""

    seed: Annotated[int, SEED] = 0
    workers: Annotated[int, WORKERS] = 1
    budget_seconds: Annotated[float | None, BUDGET] = None


class BoundsLine(LowerBoundLine):
    """Fields of one result of the method `bounds`: a JSON line of the file evaluations.jsonl.

    Most fields are those of the largest bound. `bounds` has all bounds. `folding_mbb` is the loss of always folding in
    mbb/g, or None.
    """

    bounds: list[dict[str, Any]]
    folding_mbb: float | None


class BoundsMethod(LowerBoundMethod):
    """Lower bounds on exploitability from several responders; the result is the largest."""

    name: ClassVar[str] = "bounds"
    line: ClassVar[type[EvaluationLine]] = BoundsLine
    options: ClassVar[type[MethodOptions]] = BoundsOptions

    def suits(self, game: "Game") -> bool:
        """Return False: the setting `method = "auto"` of a run never selects this method."""
        return False

    def find(self, side: "Profile", against: "Profile | None", options: BoundsOptions) -> dict[str, Any]:
        """Measure all bounds; return {name: value} of the result: the largest, and a list of all.

        All bounds get equal parts of the time budget. The default is 10 minutes in all if the tree has only some of the
        legal bets (the game has `real_rules`), else no limit.

        side     the game and the strategy to measure
        against  not used
        options  seed, number of processes and time budget

        Raises `ValueError` for a game that a bound does not suit, `StoppedError` if a signal stops it, and
        `RuntimeError` if a worker process dies.
        """
        parts = list(_parts(side.game))
        shared: dict[str, Any] = {"seed": options.seed, "workers": options.workers}
        if options.budget_seconds is not None or side.game.real_rules is not None:
            shared["budget_seconds"] = (options.budget_seconds or _DEFAULT_SECONDS) / len(parts)
        records = []
        for number, (method, chosen) in enumerate(parts, 1):
            records.append(measure_by(method, side, **shared, **chosen))
            report_step("bound", number, len(parts))
        largest = max(records, key=lambda record: record["exploitability_chips"])
        fields = ("value_chips", *_KEPT[1:-1], "best_response_chips", "units")
        return {
            **{name: largest[name] for name in fields},
            "bounds": [{name: record[name] for name in _KEPT} for record in records],
            "folding_mbb": folding_mbb(side.game),
        }

    def text(self, record: Record, took: str) -> str:
        """Return the result as a text table: a line for each bound, one for folding, and one for the largest.

        record  {name: value} of the result; there is no line for folding if its `folding_mbb` is None
        took    duration of the evaluation, as text
        """
        rows = [(_responder(bound), exploitability_text(bound), _interval(bound)) for bound in record["bounds"]]
        if record["folding_mbb"] is not None:
            rows.append(("(always folding loses)", f"{record['folding_mbb']:.4g} mbb/g", ""))
        widths = [max(len(row[column]) for row in rows) for column in range(2)]
        lines = [f"{who:{widths[0]}}  {won:>{widths[1]}}  {ends}".rstrip() for who, won, ends in rows]
        return "\n".join([*lines, f"{self.short(record)}, {took}"])

    def short(self, record: Record) -> str:
        """Return the largest bound and its responder in a few words, for a progress bar.

        A bound of 0 or less is shown as "no bound".

        record  {name: value} of the result
        """
        largest = max(record["bounds"], key=lambda bound: bound["exploitability_chips"])
        prefix = f"exploitability at least {exploitability_text(record)}" if record["value_chips"] > 0 else "no bound"
        return f"{prefix}, the largest of {len(record['bounds'])}: {_responder(largest)}"


def _parts(game: "Game") -> list[tuple[Method, dict[str, Any]]]:
    """Return [(method, options as {name: value})] of the bounds to measure on a game.

    They are local best response in several settings, then sampled best responses. Each sampled best response begins at
    another street; in full-deck hold'em at one of the last two only.
    """
    settings = ["1", "2", "3", "4", "fcpa"] if game.real_rules is not None else ["1", "2"]
    whole = game.cards.boards is None  # full deck: a best response from the flop on takes a minute per board
    first = game.tree.streets - 2 if whole else 0
    streets = [game.street_name(street) for street in range(max(first, 0), game.tree.streets)]
    return [
        *[(LocalBestResponseMethod(), {"setting": setting}) for setting in settings],
        *[(SampledBestResponseMethod(), {"from_street": street}) for street in reversed(streets)],
    ]


def _responder(bound: Record) -> str:
    if bound["setting"] is not None:
        return f"lbr, setting {bound['setting']}"
    return bound["method"] + ("" if bound["from"] is None else f" from {bound['from']}")


def _interval(bound: Record) -> str:
    low, high = bound["ci95_chips"] if bound["ci95_mbb"] is None else bound["ci95_mbb"]
    return f"({low:.4g} to {high:.4g})" if low < high else ""
