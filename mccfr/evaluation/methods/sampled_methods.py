"""Common parts of methods: units of results, names of streets, and a base for games with cards."""

from typing import TYPE_CHECKING, Any

from mccfr.evaluation.methods.method import Method, Record

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
    """Return whether the options ask for all boards of a game that lists them.

    They do so with no time budget, and with no number of boards or at least that of the list.
    """
    listed = game.cards.boards
    return listed is not None and options.budget_seconds is None and (options.boards or listed) >= listed


def folding_mbb(game: "Game") -> float | None:
    """Return the mbb/g that an always-folding strategy loses, the mean over both seats.

    None for games without big blinds, or without `Game.real_rules` (rules of all legal bets, where the tree has only
    some).
    """
    return None if game.real_rules is None else in_mbb(game, sum(game.real_rules.put_in) / 2)


def exploitability_text(record: Record, digits: int = 4) -> str:
    """Return a record's exploitability as text: share of the pot if known, else mbb/g or chips.

    digits  significant digits of chips and mbb/g
    """
    if "exploitability_pot" in record:
        return f"{record['exploitability_pot']:.3%} of the pot"
    mbb = record["exploitability_mbb"]
    return f"{record['exploitability_chips']:.{digits}g} chips" if mbb is None else f"{mbb:.{digits}g} mbb/g"


SAMPLING = frozenset(("seed", "workers", "keep"))
"""Options without effect where all boards or deals are evaluated."""


class OverDeals(Method):
    """Base class of methods for games that deal cards outside of their betting tree."""

    def problem(self, game: "Game") -> str | None:
        """Return why a game that deals no cards outside of its tree cannot be measured, or None."""
        return None if game.cards.dealt else f"{game.name} deals no cards outside of its tree: use the method exact"
