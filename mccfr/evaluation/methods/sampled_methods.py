"""Base classes of methods that need cards beside the tree, and of methods that give lower bounds."""

from typing import TYPE_CHECKING, Any, ClassVar

from mccfr.evaluation.methods.method import Count, EvaluationLine, Method, Record

if TYPE_CHECKING:
    from mccfr.games.game import Game


def street_number(game: "Game", name: str | int) -> int:
    """Return the number of a street given by name in hold'em or by number; `ValueError` lists valid names."""
    names = [str(game.street_name(street)) for street in range(game.tree.streets)]
    if str(name) not in names:
        raise ValueError(f"{game.name} has no street {str(name)!r}: it has {', '.join(names)}")
    return names.index(str(name))


def in_mbb(game: "Game", chips: float) -> float | None:
    """Return chips in milli big blinds; None for games without big blinds."""
    return None if game.big_blind_chips is None else 1000 * chips / game.big_blind_chips


def all_boards(game: "Game", options: Any) -> bool:
    """Return whether the options ask for all boards of a game that lists them."""
    listed = game.cards.boards
    return listed is not None and options.budget_seconds is None and (options.boards or listed) >= listed


def folding_mbb(game: "Game") -> float | None:
    """Return the mbb per game that an always-folding strategy loses; None for games without real rules."""
    return None if game.real_rules is None else in_mbb(game, sum(game.real_rules.put_in) / 2)


def exploitability_text(record: Record) -> str:
    """Return exploitability as short text: percent of the pot if recorded so, else mbb/g, else chips."""
    if "exploitability_pot" in record:
        return f"{record['exploitability_pot']:.3%} of the pot"
    mbb = record["exploitability_mbb"]
    return f"{record['exploitability_chips']:.4g} chips" if mbb is None else f"{mbb:.4g} mbb/g"


SAMPLING = frozenset(("seed", "workers", "keep"))
"""Options without effect where all boards or deals are evaluated."""


class OverDeals(Method):
    """A method for games that deal cards beside their tree."""

    def problem(self, game: "Game") -> str | None:
        """Return a problem for games without such cards, or None."""
        return None if game.cards.dealt else f"{game.name} deals no cards beside its tree: use the method exact"


class LowerBoundLine(EvaluationLine):
    """Record of a method whose result is in expectation a lower bound on exploitability."""

    ci95_chips: tuple[float, float]
    exploitability_chips: float
    exploitability_mbb: float | None
    ci95_mbb: tuple[float, float] | None
    best_response_chips: tuple[float, float]
    units: Count


class LowerBoundMethod(OverDeals):
    """A method whose result is in expectation a lower bound on exploitability."""

    bound: ClassVar[str] = "lower"
    reads_rows: ClassVar[bool] = True
    line: ClassVar[type[EvaluationLine]] = LowerBoundLine

    def short(self, record: Record) -> str:
        """Return the bound and its responder as a short text."""
        return f"exploitability at least {exploitability_text(record)} ({self.responder(record)})"

    def responder(self, record: Record) -> str:
        """Return a short name of the responder."""
        return self.name


def lower_bound(game: "Game", chips: float, interval: tuple[float, float]) -> dict[str, Any]:
    """Return the record's fields for a bound in chips and its interval."""
    return {
        "value_chips": chips,
        "ci95_chips": list(interval),
        "exploitability_chips": chips,
        "exploitability_mbb": in_mbb(game, chips),
        "ci95_mbb": None if game.big_blind_chips is None else [in_mbb(game, end) for end in interval],
    }


def lower_bound_text(record: Record, took: str, what: str) -> str:
    """Return a lower bound's record as one line of text; `what` names the responder."""
    (low, high), unit = (record["ci95_mbb"], "mbb/g") if record["ci95_mbb"] else (record["ci95_chips"], "chips")
    value = record["exploitability_mbb"] if record["ci95_mbb"] else record["exploitability_chips"]
    error = f" (95 %: {low:.5g} to {high:.5g}; " if low < high else " ("
    if value < 0:
        return f"no bound on exploitability: {what} wins {value:.5g} {unit}{error}{took})"
    return f"exploitability at least {value:.5g} {unit}: what {what} wins{error}{took})"


def resolving_gain(gain: tuple[float, tuple[float, float]] | None, resolve: str | None) -> dict[str, Any]:
    """Return the record's fields for the gain of re-solving; empty without re-solving."""
    if gain is None:
        return {}
    return {"gain_chips": gain[0], "gain_ci95_chips": list(gain[1]), "resolve": resolve}


def resolving_text(record: Record) -> str:
    """Return the gain of re-solving as text to append to a line; "" without re-solving."""
    if record.get("resolve") is None:
        return ""
    low, high = record["gain_ci95_chips"]
    gain = f"{record['gain_chips']:+.4g} chips a hand (95 %: {low:+.4g} to {high:+.4g})"
    return f"; solving again from the {record['resolve']} on gains {gain}"
