"""The only list of evaluation methods, and what each answers for itself: where it can be used, what it finds, how that
is told.  Methods of users are named in the configuration or on the command line, or by an entry point
(`mccfr.config.outside`).
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import msgspec

from mccfr.config import outside
from mccfr.config.suggest import did_you_mean
from mccfr.config.tables import AUTO
from mccfr.evaluation.telling import tell_step
from mccfr.evaluation.units import Effort

if TYPE_CHECKING:  # kernels are imported when something is measured
    from mccfr.evaluation.side import Side
    from mccfr.games.game import Game

_Count = Annotated[int, msgspec.Meta(ge=0)]
Record = Mapping[str, Any]


class EvaluationLine(msgspec.Struct):
    """What every line of evaluations.jsonl holds, whichever method it is of."""

    nodes_touched: _Count
    iterations: _Count
    checkpoint: _Count | None
    value_chips: float
    seconds: float


class Method(ABC):
    """A way to measure a strategy.  What it finds is its own; for the rest there is an answer that will do.

    name   in `[evaluation]`, `evaluate --method` and records; of a user's method as the configuration has it
    bound  what the figure is of the truth: "exact", "lower", "upper" or "estimate"
    meets  whether it is played against another strategy
    reads_rows  whether it reads strategies row by row where they lie; else they are made whole in memory
    line   what a line of evaluations.jsonl must hold
    takes  the options of `find`, with what holds where none is given: those of `evaluate`, `-` written `_`
    """

    name: ClassVar[str]
    bound: ClassVar[str] = "estimate"
    meets: ClassVar[bool] = False
    reads_rows: ClassVar[bool] = False
    pairs: ClassVar[bool] = False
    line: ClassVar[type[EvaluationLine]] = EvaluationLine
    takes: ClassVar[Mapping[str, Any]] = {"boards": 1000, "seed": 0}

    def problem(self, game: "Game") -> str | None:
        """Why a game cannot be measured by it, and what to use instead; None where it can."""
        return None

    def listing_bytes(self, game: "Game") -> int:
        """Memory that it needs besides the strategies."""
        return 0

    def prepared(self, game: "Game") -> Any:
        """What it makes of a game before it looks at a strategy, where that is worth keeping: for `Side.prepared`."""
        return None

    @abstractmethod
    def find(self, side: "Side", against: "Side | None", *none: Any, **options: Any) -> dict[str, Any]:
        """What it finds, by the fields of a record; `against` is there where it `meets` another strategy.

        side     `game` and `strategy` (`mccfr.tables.strategy.Strategy`); `value_chips` must be among what is found
        options  by keyword, each of those that it `takes`
        """

    def gained(self, side: "Side", units: Any, before: Any) -> dict[str, Any]:
        """What a strategy has gained over another one, by the fields of a record, for methods that tell it (`pairs`).

        units, before  [U, fields] what the units of both found (`Effort.note`), on the same units
        """
        return {}

    def told(self, record: Record, took: str) -> str:
        """A record as one line for people; `took` is the time."""
        return f"{self.short(record)} ({took})"

    def short(self, record: Record) -> str:
        """The same in a few words, for a progress bar."""
        return f"value {record['value_chips']:.6g} by {record['method']}"


class ExactLine(EvaluationLine):
    """A line of the method exact."""

    exploitability_chips: float
    exploitability_mbb: float | None
    best_response_chips: tuple[float, float]


class Exact(Method):
    """Value and exploitability, over all deals."""

    takes: ClassVar[Mapping[str, Any]] = {}
    name: ClassVar[str] = "exact"
    bound: ClassVar[str] = "exact"
    line: ClassVar[type[EvaluationLine]] = ExactLine

    def problem(self, game: "Game") -> str | None:
        """As `Method.problem`."""
        if game.cards.dealt and not game.cards.can_list:
            return f"{game.name} is too large for exact exploitability: use the method head-to-head"
        return None

    def listing_bytes(self, game: "Game") -> int:
        """As `Method.listing_bytes`."""
        return game.cards.listing_bytes

    def prepared(self, game: "Game") -> Any:
        """The public tree."""
        from mccfr.evaluation.exact import prepared_tree

        return prepared_tree(game)

    def find(self, side: "Side", against: "Side | None", *none: Any, **options: Any) -> dict[str, Any]:
        """As `Method.find`."""
        from mccfr.evaluation.exact import evaluate_exact
        from mccfr.tables.strategy import Strategy

        assert isinstance(side.strategy, Strategy)
        found = evaluate_exact(side.game, side.strategy, side.prepared)
        return {
            "value_chips": found.value_chips,
            "exploitability_chips": found.exploitability_chips,
            "exploitability_mbb": found.exploitability_mbb,
            "best_response_chips": [float(chips) for chips in found.best_response_chips],
        }

    def told(self, record: Record, took: str) -> str:
        """As `Method.told`."""
        mbb = record["exploitability_mbb"]
        size = f"{record['exploitability_chips']:.6g} chips" + ("" if mbb is None else f" = {mbb:.6g} mbb/g")
        return f"exploitability {size}, value for player 0 {record['value_chips']:.6g} chips (exact, {took})"

    def short(self, record: Record) -> str:
        """As `Method.short`."""
        mbb = record["exploitability_mbb"]
        return (
            f"exploitability {record['exploitability_chips']:.4g} chips"
            if mbb is None
            else (f"exploitability {mbb:.4g} mbb/g")
        )


class Abstract(Method):
    """Value and exploitability within the abstracted game: the responder knows his cards by their buckets alone."""

    takes: ClassVar[Mapping[str, Any]] = {}
    name: ClassVar[str] = "abstract"
    bound: ClassVar[str] = "exact"
    line: ClassVar[type[EvaluationLine]] = ExactLine

    def problem(self, game: "Game") -> str | None:
        """As `Method.problem`."""
        from mccfr.evaluation.abstract import abstract_problem

        return abstract_problem(game)

    def listing_bytes(self, game: "Game") -> int:
        """As `Method.listing_bytes`."""
        return game.cards.listing_bytes

    def find(self, side: "Side", against: "Side | None", *none: Any, **options: Any) -> dict[str, Any]:
        """As `Method.find`."""
        from mccfr.evaluation.abstract import evaluate_abstract
        from mccfr.tables.strategy import Strategy

        assert isinstance(side.strategy, Strategy)
        found = evaluate_abstract(side.game, side.strategy)
        return {
            "value_chips": found.value_chips,
            "exploitability_chips": found.exploitability_chips,
            "exploitability_mbb": in_mbb(side.game, found.exploitability_chips),
            "best_response_chips": list(found.best_response_chips),
        }

    def told(self, record: Record, took: str) -> str:
        """As `Method.told`."""
        mbb = record["exploitability_mbb"]
        size = f"{record['exploitability_chips']:.6g} chips" + ("" if mbb is None else f" = {mbb:.6g} mbb/g")
        return f"exploitability by buckets, within the abstracted game, {size} (exact there, {took})"

    def short(self, record: Record) -> str:
        """As `Method.short`."""
        return f"exploitability by buckets {record['exploitability_chips']:.4g} chips"


class HeadToHeadLine(EvaluationLine):
    """A line of the method head-to-head."""

    ci95_chips: tuple[float, float] | None
    against: str
    boards: _Count
    exploitability_chips: None
    exploitability_mbb: None
    gain_chips: float | None = None
    gain_ci95_chips: tuple[float, float] | None = None
    gain_from_nodes: _Count | None = None


class HeadToHead(Method):
    """Chips a hand won from another strategy, as the mean over both seats, on sampled boards."""

    name: ClassVar[str] = "head-to-head"
    bound: ClassVar[str] = "estimate"
    meets: ClassVar[bool] = True
    reads_rows: ClassVar[bool] = True
    pairs: ClassVar[bool] = True
    line: ClassVar[type[EvaluationLine]] = HeadToHeadLine
    takes: ClassVar[Mapping[str, Any]] = {"boards": 1000, "seed": 0, "effort": Effort()}

    def problem(self, game: "Game") -> str | None:
        """As `Method.problem`."""
        return None if game.cards.dealt else f"{game.name} deals no cards beside its tree: use the method exact"

    def find(
        self, side: "Side", against: "Side | None", *none: Any, boards: int, seed: int, effort: Effort
    ) -> dict[str, Any]:
        """As `Method.find`."""
        from mccfr.evaluation.head_to_head import head_to_head

        assert against is not None
        found = head_to_head(side, against, boards, seed, partial(tell_step, "board"), effort)
        return {
            "value_chips": found.mean_chips,
            "ci95_chips": list(found.ci95_chips),
            "boards": found.boards,
            "units": found.boards,
            "seed": seed,
        }

    def gained(self, side: "Side", units: Any, before: Any) -> dict[str, Any]:
        """As `Method.gained`: units are boards, (what the strategy wins, the board's weight)."""
        from mccfr.intervals import ratio95

        mean, interval = ratio95(units[:, 0] - before[:, 0], units[:, 1], side.game.cards.boards)
        return {"gain_chips": mean, "gain_ci95_chips": list(interval)}

    def told(self, record: Record, took: str) -> str:
        """As `Method.told`."""
        low, high = record["ci95_chips"]
        text = (
            f"{record['value_chips']:+.4g} chips a hand against {record['against']} (95 %: {low:+.4g} to "
            f"{high:+.4g}; {record['boards']:,} boards, {took})"
        )
        if record.get("gain_chips") is None:
            return text
        low, high = record["gain_ci95_chips"]
        return (
            f"{text}; {record['gain_chips']:+.4g} since {record['gain_from_nodes']:,} nodes, on the same boards "
            f"(95 %: {low:+.4g} to {high:+.4g})"
        )

    def short(self, record: Record) -> str:
        """As `Method.short`."""
        return f"{record['value_chips']:+.4g} chips against {record['against']}"


class LowerBoundLine(EvaluationLine):
    """A line of a method whose figure is a lower bound on exploitability, in expectation."""

    ci95_chips: tuple[float, float]
    exploitability_chips: float
    exploitability_mbb: float | None
    ci95_mbb: tuple[float, float] | None
    best_response_chips: tuple[float, float]
    units: _Count


def lower_bound_told(record: Record, took: str, what: str) -> str:
    """A record of such a method as one line for people; `what` names what wins so much."""
    (low, high), unit = (record["ci95_mbb"], "mbb/g") if record["ci95_mbb"] else (record["ci95_chips"], "chips")
    value = record["exploitability_mbb"] if record["ci95_mbb"] else record["exploitability_chips"]
    error = f" (95 %: {low:.5g} to {high:.5g}; " if low < high else " ("
    return f"exploitability at least {value:.5g} {unit}: what {what} wins{error}{took})"


def street_number(game: "Game", name: str | int) -> int:
    """A street by its name in hold'em, by its number elsewhere; `ValueError` naming those there are."""
    names = [str(game.street_name(street)) for street in range(game.tree.streets)]
    if str(name) not in names:
        raise ValueError(f"{game.name} has no street {str(name)!r}: it has {', '.join(names)}")
    return names.index(str(name))


def in_mbb(game: "Game", chips: float) -> float | None:
    """Thousandths of a big blind a game; None for games without one."""
    return None if game.big_blind_chips is None else 1000 * chips / game.big_blind_chips


class SampledBestResponse(Method):
    """What a player who knows his real cards wins from some street on, on sampled boards."""

    name: ClassVar[str] = "sampled-br"
    bound: ClassVar[str] = "lower"
    reads_rows: ClassVar[bool] = True
    line: ClassVar[type[EvaluationLine]] = LowerBoundLine
    takes: ClassVar[Mapping[str, Any]] = {"from_street": None, "boards": None, "seed": 0, "effort": Effort()}

    def problem(self, game: "Game") -> str | None:
        """As `Method.problem`."""
        return None if game.cards.dealt else f"{game.name} deals no cards beside its tree: use the method exact"

    def find(
        self,
        side: "Side",
        against: "Side | None",
        *none: Any,
        from_street: str | None,
        boards: int | None,
        seed: int,
        effort: Effort,
    ) -> dict[str, Any]:
        """As `Method.find`; `from_street` None: the last one."""
        from mccfr.evaluation.sampled_best_response import sampled_best_response

        game = side.game
        street = game.tree.streets - 1 if from_street is None else street_number(game, from_street)
        found = sampled_best_response(side, street, boards, seed, effort, partial(tell_step, "board"))
        low, high = found.ci95_chips
        return {
            "value_chips": found.value_chips,
            "ci95_chips": [low, high],
            "exploitability_chips": found.value_chips,
            "exploitability_mbb": in_mbb(game, found.value_chips),
            "ci95_mbb": None if game.big_blind_chips is None else [in_mbb(game, low), in_mbb(game, high)],
            "best_response_chips": list(found.best_response_chips),
            "from": game.street_name(street),
            "boards": found.boards,
            "units": found.boards,
            "seed": seed,
        }

    def told(self, record: Record, took: str) -> str:
        """As `Method.told`."""
        what = f"a best response from street {record['from']} on"
        return lower_bound_told(record, f"{record['boards']:,} boards, {took}", what)

    def short(self, record: Record) -> str:
        """As `Method.short`."""
        mbb = record["exploitability_mbb"]
        size = f"{record['exploitability_chips']:.4g} chips" if mbb is None else f"{mbb:.4g} mbb/g"
        return f"exploitability at least {size} (sampled-br from {record['from']})"


class LocalBestResponseLine(LowerBoundLine):
    """A line of the method lbr."""

    setting: str
    hands: _Count | None


class LocalBestResponse(Method):
    """Chips a hand that local best response wins, a lower bound of exploitability in expectation."""

    name: ClassVar[str] = "lbr"
    bound: ClassVar[str] = "lower"
    reads_rows: ClassVar[bool] = True
    line: ClassVar[type[EvaluationLine]] = LocalBestResponseLine
    takes: ClassVar[Mapping[str, Any]] = {"setting": "2", "hands": None, "seed": 0, "effort": Effort()}

    def problem(self, game: "Game") -> str | None:
        """As `Method.problem`."""
        return None if game.cards.dealt else f"{game.name} deals no cards beside its tree: use the method exact"

    def find(
        self,
        side: "Side",
        against: "Side | None",
        *none: Any,
        setting: str,
        hands: int | None,
        seed: int,
        effort: Effort,
    ) -> dict[str, Any]:
        """As `Method.find`."""
        from mccfr.evaluation.local_best_response import local_best_response

        game = side.game
        found = local_best_response(side, setting, hands, seed, partial(tell_step, "hand"), effort)
        low, high = found.ci95_chips
        first, second = found.seat_chips
        return {
            "value_chips": found.mean_chips,
            "ci95_chips": [low, high],
            "exploitability_chips": found.mean_chips,
            "exploitability_mbb": in_mbb(game, found.mean_chips),
            "ci95_mbb": None if game.big_blind_chips is None else [in_mbb(game, low), in_mbb(game, high)],
            "best_response_chips": [first + game.offset_chips, second - game.offset_chips],
            "setting": setting,
            "hands": found.hands,
            "units": found.units,
            "seed": seed,
        }

    def told(self, record: Record, took: str) -> str:
        """As `Method.told`."""
        deals = "every deal" if record["hands"] is None else f"{record['hands']:,} deals from both seats"
        return lower_bound_told(record, f"{deals}, {took}", f"local best response in setting {record['setting']}")

    def short(self, record: Record) -> str:
        """As `Method.short`."""
        mbb = record["exploitability_mbb"]
        size = f"{record['exploitability_chips']:.4g} chips" if mbb is None else f"{mbb:.4g} mbb/g"
        return f"exploitability at least {size} (lbr in setting {record['setting']})"


_LISTED = (Exact(), HeadToHead(), SampledBestResponse(), LocalBestResponse(), Abstract())
_METHODS: dict[str, Method] = {method.name: method for method in _LISTED}
_NOTHING = dict.fromkeys(
    (
        "value_chips",
        "exploitability_chips",
        "exploitability_mbb",
        "best_response_chips",
        "ci95_chips",
        "ci95_mbb",
        "from",
        "setting",
        "against",
        "boards",
        "hands",
        "units",
        "seed",
        "gain_chips",
        "gain_ci95_chips",
        "gain_from_nodes",
    )
)


def load_method(name: str, beside: Sequence[Path] = ()) -> None:
    """Import a method that is named as `module:Class`, outside of a configuration; `ValueError` where that fails.

    beside  directories in which the module is looked for first
    """
    if outside.is_reference(name) and not outside.is_loaded(outside.METHODS, name):
        outside.load(outside.METHODS, name, "method", beside)


def method_named(name: str) -> Method:
    """The method of a name; `ValueError` for an unknown one, or one that has not been loaded."""
    if name in _METHODS:
        return _METHODS[name]
    found = outside.find(outside.METHODS, name)
    if found is None:
        known = [*_METHODS, *outside.installed(outside.METHODS)]
        near = did_you_mean(name, known)
        raise ValueError(f"evaluation method {name!r} is not one of: {', '.join(known)}, or module:Class{near}")
    if not (isinstance(found, type) and issubclass(found, Method)):
        raise ValueError(f"evaluation method {name!r} is not derived from mccfr.evaluation.methods.Method")
    method: Method = type(found.__name__, (found,), {"name": name, "__doc__": found.__doc__})()
    return method


def method_for(game: "Game", name: str) -> Method:
    """The method of a name, whether it suits the game or not; of "auto" the first that does, if one does.

    Raises `ValueError` for an unknown one.
    """
    if name != AUTO:
        return method_named(name)
    return next((method for method in _METHODS.values() if method.problem(game) is None), method_named(Exact.name))


def check_method(game: "Game", name: str) -> Method:
    """As `method_for`; `ValueError` where a game cannot be measured by it too."""
    method = method_for(game, name)
    if (problem := method.problem(game)) is not None:
        raise ValueError(problem)
    return method


def line_kind(name: str) -> type[EvaluationLine] | None:
    """What a line of evaluations.jsonl must hold, by its method; None where there is no such method.

    A user's method that is not loaded is not imported for it: its lines hold what every line does.
    """
    if _is_at_hand(name):
        return method_named(name).line
    return EvaluationLine if outside.is_reference(name) else None


def told(record: Record, took: str) -> str:
    """A record as one line for people, whether or not its method is loaded; `took` is the time."""
    if _is_at_hand(record["method"]):
        return method_named(record["method"]).told(record, took)
    return f"value {record['value_chips']:.6g} by {record['method']} ({took})"


def method_options(method: Method, given: Mapping[str, Any]) -> dict[str, Any]:
    """Every option that a method takes, as given or as it holds where none is; raises and leaves out as `measure`."""
    given = {name: value for name, value in given.items() if value is not None}
    for name in given:
        if name not in method.takes and name not in Method.takes:
            known = ", ".join(_said(known) for known in method.takes) or "none"
            raise ValueError(f"the method {method.name} has no {_said(name)}; what it takes: {known}")
    return {name: given.get(name, default) for name, default in method.takes.items()}


def _said(option: str) -> str:
    """An option as the command line has it."""
    return "--workers, --budget or --keep" if option == "effort" else f"--{option.removesuffix('_street')}"


def _is_at_hand(name: str) -> bool:
    """Whether a method can be asked without importing anything."""
    return name in _METHODS or outside.is_loaded(outside.METHODS, name)


def measure(
    name: str,
    side: "Side",
    against: "Side | None" = None,
    opponent: str | None = None,
    **options: Any,
) -> dict[str, Any]:
    """One evaluation as a record: the fields of `evaluate --json`, and of a line of evaluations.jsonl but for counts.

    against, opponent  the strategy that `side` is played against and its name, for methods that `meet` one
    options            of the method, by what it `takes`; None: as if not given; `boards` and `seed` are left out where
                       it takes none
    Raises `ValueError` as `check_method`, and for options that the method does not take.
    """
    from abstraction.compiling import working_seconds

    method = check_method(side.game, name)
    chosen = method_options(method, options)
    began = working_seconds()
    found = method.find(side, against, **chosen)
    head = {"method": method.name, "bound": method.bound, **_NOTHING}
    if method.meets:
        head["against"] = opponent
    return head | found | {"seconds": round(working_seconds() - began, 6)}
