"""What methods share that deal cards beside the tree, and those whose figure is a lower bound."""

from typing import TYPE_CHECKING, Any, ClassVar

from mccfr.evaluation.methods.method import Count, EvaluationLine, Method, Record

if TYPE_CHECKING:
    from mccfr.games.game import Game


def street_number(game: "Game", name: str | int) -> int:
    """A street by its name in hold'em, by its number elsewhere; `ValueError` naming those there are."""
    names = [str(game.street_name(street)) for street in range(game.tree.streets)]
    if str(name) not in names:
        raise ValueError(f"{game.name} has no street {str(name)!r}: it has {', '.join(names)}")
    return names.index(str(name))


def in_mbb(game: "Game", chips: float) -> float | None:
    """Thousandths of a big blind a game; None for games without one."""
    return None if game.big_blind_chips is None else 1000 * chips / game.big_blind_chips


def folding_mbb(game: "Game") -> float | None:
    """What a strategy loses that always folds, where it may: its antes and blinds; None for other games."""
    return None if game.real_rules is None else in_mbb(game, sum(game.real_rules.put_in) / 2)


def exploitability_text(record: Record) -> str:
    """Exploitability in a few figures: as a share of the pot where that is asked for, else by the big blind if any."""
    if "exploitability_pot" in record:
        return f"{record['exploitability_pot']:.3%} of the pot"
    mbb = record["exploitability_mbb"]
    return f"{record['exploitability_chips']:.4g} chips" if mbb is None else f"{mbb:.4g} mbb/g"


class OverDeals(Method):
    """A method that deals cards beside the tree, as not every game does."""

    def problem(self, game: "Game") -> str | None:
        """As `Method.problem`."""
        return None if game.cards.dealt else f"{game.name} deals no cards beside its tree: use the method exact"


class LowerBoundLine(EvaluationLine):
    """A line of a method whose figure is a lower bound on exploitability, in expectation."""

    ci95_chips: tuple[float, float]
    exploitability_chips: float
    exploitability_mbb: float | None
    ci95_mbb: tuple[float, float] | None
    best_response_chips: tuple[float, float]
    units: Count


class LowerBoundMethod(OverDeals):
    """A method whose figure is a lower bound on exploitability, in expectation."""

    bound: ClassVar[str] = "lower"
    reads_rows: ClassVar[bool] = True
    line: ClassVar[type[EvaluationLine]] = LowerBoundLine

    def short(self, record: Record) -> str:
        """As `Method.short`."""
        return f"exploitability at least {exploitability_text(record)} ({self.responder(record)})"

    def responder(self, record: Record) -> str:
        """Who wins so much, in a few words."""
        return self.name


def lower_bound(game: "Game", chips: float, interval: tuple[float, float]) -> dict[str, Any]:
    """The fields of a record that say how much is won."""
    return {
        "value_chips": chips,
        "ci95_chips": list(interval),
        "exploitability_chips": chips,
        "exploitability_mbb": in_mbb(game, chips),
        "ci95_mbb": None if game.big_blind_chips is None else [in_mbb(game, end) for end in interval],
    }


def lower_bound_text(record: Record, took: str, what: str) -> str:
    """A record of such a method as one line for people; `what` names what wins so much."""
    (low, high), unit = (record["ci95_mbb"], "mbb/g") if record["ci95_mbb"] else (record["ci95_chips"], "chips")
    value = record["exploitability_mbb"] if record["ci95_mbb"] else record["exploitability_chips"]
    error = f" (95 %: {low:.5g} to {high:.5g}; " if low < high else " ("
    if value < 0:
        return f"no bound on exploitability: {what} wins {value:.5g} {unit}{error}{took})"
    return f"exploitability at least {value:.5g} {unit}: what {what} wins{error}{took})"


def resolving_gain(gain: tuple[float, tuple[float, float]] | None, resolve: str | None) -> dict[str, Any]:
    """The fields of a record that say what solving again gains; none where nothing is."""
    if gain is None:
        return {}
    return {"gain_chips": gain[0], "gain_ci95_chips": list(gain[1]), "resolve": resolve}


def resolving_text(record: Record) -> str:
    """These, behind a line for people."""
    if record.get("resolve") is None:
        return ""
    low, high = record["gain_ci95_chips"]
    gain = f"{record['gain_chips']:+.4g} chips a hand (95 %: {low:+.4g} to {high:+.4g})"
    return f"; solving again from the {record['resolve']} on gains {gain}"
