"""The only list of evaluation methods, and what each answers for itself: where it can be used, what it finds, how that
is told.  `register` adds one.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import msgspec

from mccfr.config.suggest import did_you_mean
from mccfr.config.tables import AUTO, METHODS
from mccfr.evaluation.telling import tell_step

if TYPE_CHECKING:  # kernels are imported when something is measured
    from mccfr.evaluation.head_to_head import Side
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
    """A way to measure a strategy.

    name   in `[evaluation]`, `evaluate --method` and records
    bound  what the figure is of the truth: "exact", "lower" or "estimate"
    meets  whether it is played against another strategy
    reads_rows  whether it reads strategies row by row where they lie; else they are made whole in memory
    line   what a line of evaluations.jsonl must hold
    """

    name: ClassVar[str]
    bound: ClassVar[str]
    meets: ClassVar[bool] = False
    reads_rows: ClassVar[bool] = False
    line: ClassVar[type[EvaluationLine]]

    @abstractmethod
    def problem(self, game: "Game") -> str | None:
        """Why a game cannot be measured by it, and what to use instead; None where it can."""

    def listing_bytes(self, game: "Game") -> int:
        """Memory that it needs besides the strategies."""
        return 0

    @abstractmethod
    def find(self, side: "Side", against: "Side | None", *, boards: int, seed: int) -> dict[str, Any]:
        """What it finds, by the fields of a record; `against` is there where it `meets` another strategy."""

    @abstractmethod
    def told(self, record: Record, took: str) -> str:
        """A record as one line for people; `took` is the time."""

    @abstractmethod
    def short(self, record: Record) -> str:
        """The same in a few words, for a progress bar."""


class ExactLine(EvaluationLine):
    """A line of the method exact."""

    exploitability_chips: float
    exploitability_mbb: float | None
    best_response_chips: tuple[float, float]


class Exact(Method):
    """Value and exploitability, over all deals."""

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

    def find(self, side: "Side", against: "Side | None", *, boards: int, seed: int) -> dict[str, Any]:
        """As `Method.find`."""
        from mccfr.evaluation.exact import evaluate_exact
        from mccfr.tables.strategy import Strategy

        assert isinstance(side.strategy, Strategy)
        found = evaluate_exact(side.game, side.strategy)
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


class HeadToHeadLine(EvaluationLine):
    """A line of the method head-to-head."""

    ci95_chips: tuple[float, float] | None
    against: str
    boards: _Count
    exploitability_chips: None
    exploitability_mbb: None


class HeadToHead(Method):
    """Chips a hand won from another strategy, as the mean over both seats, on sampled boards."""

    name: ClassVar[str] = "head-to-head"
    bound: ClassVar[str] = "estimate"
    meets: ClassVar[bool] = True
    reads_rows: ClassVar[bool] = True
    line: ClassVar[type[EvaluationLine]] = HeadToHeadLine

    def problem(self, game: "Game") -> str | None:
        """As `Method.problem`."""
        return None if game.cards.dealt else f"{game.name} deals no cards beside its tree: use the method exact"

    def find(self, side: "Side", against: "Side | None", *, boards: int, seed: int) -> dict[str, Any]:
        """As `Method.find`."""
        from mccfr.evaluation.head_to_head import head_to_head

        assert against is not None
        found = head_to_head(side, against, boards=boards, seed=seed, progress=partial(tell_step, "board"))
        return {
            "value_chips": found.mean_chips,
            "ci95_chips": list(found.ci95_chips),
            "boards": found.boards,
            "seed": seed,
        }

    def told(self, record: Record, took: str) -> str:
        """As `Method.told`."""
        low, high = record["ci95_chips"]
        return (
            f"{record['value_chips']:+.4g} chips a hand against {record['against']} (95 %: {low:+.4g} to "
            f"{high:+.4g}; {record['boards']:,} boards, {took})"
        )

    def short(self, record: Record) -> str:
        """As `Method.short`."""
        return f"{record['value_chips']:+.4g} chips against {record['against']}"


_METHODS: dict[str, Method] = {method.name: method for method in (Exact(), HeadToHead())}
_NOTHING = dict.fromkeys(
    (
        "value_chips",
        "exploitability_chips",
        "exploitability_mbb",
        "best_response_chips",
        "ci95_chips",
        "from",
        "against",
        "boards",
        "hands",
        "seed",
    )
)


def register(method: Method) -> None:
    """Add a method; `ValueError` where its name is taken by another."""
    if type(_METHODS.get(method.name, method)) is not type(method):
        raise ValueError(f"there is an evaluation method {method.name!r} already: choose another name")
    _METHODS[method.name] = method
    if method.name not in METHODS:
        METHODS.append(method.name)


def method_named(name: str) -> Method:
    """The method of a name; `ValueError` for an unknown one."""
    if name not in _METHODS:
        raise ValueError(
            f"evaluation method {name!r} is not one of: {', '.join(_METHODS)}{did_you_mean(name, _METHODS)}"
        )
    return _METHODS[name]


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


def line_kinds() -> dict[str, type[EvaluationLine]]:
    """What a line of evaluations.jsonl must hold, by its method."""
    return {name: method.line for name, method in _METHODS.items()}


def measure(
    name: str,
    side: "Side",
    against: "Side | None" = None,
    opponent: str | None = None,
    *,
    boards: int = 1000,
    seed: int = 0,
) -> dict[str, Any]:
    """One evaluation as a record: the fields of `evaluate --json`, and of a line of evaluations.jsonl but for counts.

    against, opponent  the strategy that `side` is played against and its name, for methods that `meet` one
    Raises `ValueError` as `check_method`.
    """
    from abstraction.compiling import working_seconds

    method, began = check_method(side.game, name), working_seconds()
    found = method.find(side, against, boards=boards, seed=seed)
    head = {"method": method.name, "bound": method.bound, **_NOTHING}
    if method.meets:
        head["against"] = opponent
    return head | found | {"seconds": round(working_seconds() - began, 6)}
