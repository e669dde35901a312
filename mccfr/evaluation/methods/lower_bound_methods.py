"""The methods `lbr` and `sampled-br`: lower bounds on exploitability from responding strategies."""

from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import msgspec

from mccfr.evaluation.methods.method import Count, EvaluationLine, Record
from mccfr.evaluation.methods.option_structs import BOARDS, FROM, RESOLVE, MethodOptions, Option, SampledOptions
from mccfr.evaluation.methods.sampled_methods import (
    SAMPLING,
    OverDeals,
    all_boards,
    exploitability_text,
    in_mbb,
    street_number,
)

if TYPE_CHECKING:  # kernels are imported when something is measured
    from mccfr.evaluation.samples import LowerBound
    from mccfr.games.game import Game
    from mccfr.policy.strategy_profile import Profile


class LowerBoundLine(EvaluationLine):
    """Fields of one result of a lower bound method: a JSON line of evaluations.jsonl.

    Its result is in expectation a lower bound on exploitability. `best_response_chips` are the responder's chips as
    player 0 and as player 1; `units` is the number of boards or deals.
    """

    ci95_chips: tuple[float, float]
    exploitability_chips: float
    exploitability_mbb: float | None
    ci95_mbb: tuple[float, float] | None
    best_response_chips: tuple[float, float]
    units: Count


class LowerBoundMethod(OverDeals):
    """Base class of methods whose result is in expectation a lower bound on exploitability."""

    bound: ClassVar[str] = "lower"
    reads_rows: ClassVar[bool] = True
    line: ClassVar[type[EvaluationLine]] = LowerBoundLine

    def short(self, record: Record) -> str:
        """Return a result's bound and responder in a few words, for a progress bar.

        record  {name: value} of the result
        """
        return f"exploitability at least {exploitability_text(record)} ({self.responder(record)})"

    def responder(self, record: Record) -> str:
        """Return a short name of the responder of a result: here the name of the method.

        record  {name: value} of the result, for subclasses
        """
        return self.name


def lower_bound(game: "Game", bound: "LowerBound", resolve: str | None = None) -> dict[str, Any]:
    """Return {name: value} of the result of a lower bound method, in chips and in mbb/g.

    game     the game; without a big blind, values in mbb/g are None
    bound    the bound in chips
    resolve  the method's option of re-solving by the evaluated policy; None without re-solving
    """
    chips, interval = bound.value_chips, bound.ci95_chips
    record: dict[str, Any] = {
        "value_chips": chips,
        "ci95_chips": list(interval),
        "exploitability_chips": chips,
        "exploitability_mbb": in_mbb(game, chips),
        "ci95_mbb": None if game.big_blind_chips is None else [in_mbb(game, end) for end in interval],
        "best_response_chips": list(bound.best_response_chips),
        "units": bound.samples,
    }
    if bound.gain_chips is not None:
        gain, ends = bound.gain_chips
        record |= {"gain_chips": gain, "gain_ci95_chips": list(ends), "resolve": resolve}
    return record


def lower_bound_text(record: Record, took: str, responder: str) -> str:
    """Return the result of a lower bound method as one line of text for the user.

    record     {name: value} of the result
    took       number of deals or boards and the duration, as text
    responder  name of the responder
    """
    (low, high), unit = (record["ci95_mbb"], "mbb/g") if record["ci95_mbb"] else (record["ci95_chips"], "chips")
    value = record["exploitability_mbb"] if record["ci95_mbb"] else record["exploitability_chips"]
    error = f" (95 %: {low:.5g} to {high:.5g}; " if low < high else " ("
    if value < 0:
        return f"no bound on exploitability: {responder} wins {value:.5g} {unit}{error}{took})"
    return f"exploitability at least {value:.5g} {unit}: what {responder} wins{error}{took})"


def resolving_text(record: Record) -> str:
    """Return text on the chips that the policy gains by re-solving; "" without re-solving.

    record  {name: value} of the result
    """
    if record.get("resolve") is None:
        return ""
    low, high = record["gain_ci95_chips"]
    gain = f"{record['gain_chips']:+.4g} chips a hand (95 %: {low:+.4g} to {high:+.4g})"
    return f"; solving again from the {record['resolve']} on gains {gain}"


# --- lbr ---

SETTING = Option("lbr: actions of the responder; default: 2.", metavar="1|2|3|4|fcpa", key=True)
HANDS = Option("lbr: deals, each played in both seats; default: 10000, with --resolve 100.", least=0, key=True)


class LocalBestResponseOptions(SampledOptions, frozen=True):
    """Options of `lbr`: the responder's actions, deals to draw, and re-solving by the policy."""

    setting: Annotated[str, SETTING] = "2"
    hands: Annotated[int | None, HANDS] = None
    resolve: Annotated[str | None, RESOLVE] = None


class LocalBestResponseLine(LowerBoundLine):
    """Fields of one result of the method `lbr`: a JSON line of the file evaluations.jsonl.

    `setting` names the responder's actions. `hands` is the number of deals, with re-solving of boards; None: every deal
    was played.
    """

    setting: str
    hands: Count | None


class LocalBestResponseMethod(LowerBoundMethod):
    """Chips per hand that local best response wins from a strategy.

    They are in expectation a lower bound on exploitability.
    """

    name: ClassVar[str] = "lbr"
    line: ClassVar[type[EvaluationLine]] = LocalBestResponseLine
    options: ClassVar[type[MethodOptions]] = LocalBestResponseOptions

    def options_problem(self, game: "Game", options: LocalBestResponseOptions) -> str | None:
        """Return None; raise `ValueError` if `options.setting`, the responder's actions, is unknown."""
        from mccfr.evaluation.local_best_response import check_setting

        check_setting(options.setting)
        return None

    def without_effect(self, game: "Game", options: LocalBestResponseOptions) -> frozenset[str]:
        """Return names of options without effect: seed, workers and keep if every deal is played.

        Otherwise the set is empty. Every deal is played in small games, unless a number of deals, a time budget or
        re-solving is requested.
        """
        from mccfr.evaluation.local_best_response import plays_every_deal

        every = options.resolve is None and plays_every_deal(game, options.hands, options.budget_seconds)
        return SAMPLING if every else frozenset()

    def find(self, side: "Profile", against: "Profile | None", options: LocalBestResponseOptions) -> dict[str, Any]:
        """Run local best response against a strategy; return {name: value} of the result.

        side     the game and the strategy to measure
        against  not used
        options  the responder's actions, number of deals, and how the strategy re-solves

        Raises `ValueError` for an unknown setting, too few deals, and re-solving that does not suit the game. Raises
        `StoppedError` if a signal stops it, and `RuntimeError` if a worker process dies.
        """
        from mccfr.evaluation.local_best_response import local_best_response
        from mccfr.play.resolving.resolving_table import settings_of

        settings = None if options.resolve is None else settings_of(options.resolve)
        bound = local_best_response(
            side, options.setting, options.hands, options.seed, options.effort, resolve=settings
        )
        hands = None if bound.exact else bound.samples
        return {**lower_bound(side.game, bound, options.resolve), "hands": hands}

    def text(self, record: Record, took: str) -> str:
        """Return the result of an evaluation by this method as one line of text for the user.

        record  {name: value} of the result: exploitability, its 95 % interval, the method's options and others
        took    duration of the evaluation, as text
        """
        again = record.get("resolve")
        each = "deals from both seats" if again is None else "boards, from both seats with all hands"
        deals = "every deal" if record["hands"] is None else f"{record['hands']:,} {each}"
        line = lower_bound_text(record, f"{deals}, {took}", f"local best response in setting {record['setting']}")
        return line + resolving_text(record)

    def responder(self, record: Record) -> str:
        """Return the responder of a result as text, such as "lbr in setting 2"."""
        return f"lbr in setting {record['setting']}"


# --- sampled-br ---


class SampledBestResponseOptions(SampledOptions, frozen=True):
    """Options of `sampled-br`: the responder's first street, boards, and re-solving.

    The first street None is the last one of the game.
    """

    from_street: Annotated[str | None, FROM] = msgspec.field(default=None, name="from")
    boards: Annotated[int | None, BOARDS] = None
    resolve: Annotated[str | None, RESOLVE] = None


def _street_from(game: "Game", name: str | None) -> int:
    """Return the number of the street, from 0, that an option names; the last street of `game` for None.

    name  name of the street in hold'em, such as "turn", else its number as text

    Raises `ValueError` if it names no street of the game.
    """
    return game.tree.streets - 1 if name is None else street_number(game, name)


class SampledBestResponseMethod(LowerBoundMethod):
    """Chips per hand that a best response from some street on wins, on sampled boards."""

    name: ClassVar[str] = "sampled-br"
    options: ClassVar[type[MethodOptions]] = SampledBestResponseOptions

    def options_problem(self, game: "Game", options: SampledBestResponseOptions) -> str | None:
        """Return a sentence if `options.boards` is too small for a 95 % interval, else None.

        The least number depends on the game and the responder's first street (`least_boards`). None, the default number
        of boards, is allowed.

        Raises `ValueError` if `options.from_street` names no street of the game.
        """
        from mccfr.evaluation.sampled_best_response import least_boards

        boards, least = options.boards, least_boards(game, _street_from(game, options.from_street))
        if boards is None or boards >= least:
            return None
        return f"evaluation.boards = {boards}: {self.name} needs at least {least}, for an interval"

    def without_effect(self, game: "Game", options: SampledBestResponseOptions) -> frozenset[str]:
        """Return names of options without effect: seed, workers and keep if all boards are played.

        Otherwise the set is empty. All boards are played if the game lists its boards, and the options have no time
        budget and no smaller number of boards.
        """
        return SAMPLING if all_boards(game, options) else frozenset()

    def find(self, side: "Profile", against: "Profile | None", options: SampledBestResponseOptions) -> dict[str, Any]:
        """Compute a sampled best response to a strategy; return {name: value} of the result.

        side     the game and the strategy to measure
        against  not used
        options  the responder's first street, number of boards, and how the strategy re-solves

        Raises `ValueError` for an unknown street, too few boards, and re-solving that does not suit game or street.
        Raises `StoppedError` if a signal stops it, and `RuntimeError` if a worker process dies.
        """
        from mccfr.evaluation.sampled_best_response import sampled_best_response
        from mccfr.play.resolving.resolving_table import settings_of

        settings = None if options.resolve is None else settings_of(options.resolve)
        street = _street_from(side.game, options.from_street)
        bound = sampled_best_response(side, street, options.boards, options.seed, options.effort, settings)
        boards = {"from": side.game.street_name(street), "boards": bound.samples}
        return {**lower_bound(side.game, bound, options.resolve), **boards}

    def text(self, record: Record, took: str) -> str:
        """Return the result of an evaluation by this method as one line of text for the user.

        record  {name: value} of the result: exploitability, its 95 % interval, the method's options and others
        took    duration of the evaluation, as text
        """
        responder = f"a best response from street {record['from']} on"
        return lower_bound_text(record, f"{record['boards']:,} boards, {took}", responder) + resolving_text(record)

    def responder(self, record: Record) -> str:
        """Return the responder of a result as text, such as "sampled-br from turn"."""
        return f"sampled-br from {record['from']}"
