"""Common parts of methods: units of results, names of streets, and a base for games with cards."""

from typing import TYPE_CHECKING, Any

from mccfr.evaluation.methods.method import Method, Record

if TYPE_CHECKING:
    from mccfr.games.game import Game


def street_number(game: "Game", name: str | int) -> int:
    """Return the number, from 0, of a street given by name in hold'em, such as "turn", else by number.

    Raises `ValueError`, with the valid names or numbers, if the game has no such street.
    """
    names = [str(game.street_name(street)) for street in range(game.tree.streets)]
    if str(name) not in names:
        raise ValueError(f"{game.name} has no street {str(name)!r}: it has {', '.join(names)}")
    return names.index(str(name))


def in_mbb(game: "Game", chips: float) -> float | None:
    """Convert chips to thousandths of a big blind; None in games without a big blind."""
    return None if game.big_blind_chips is None else 1000 * chips / game.big_blind_chips


def all_boards(game: "Game", options: Any) -> bool:
    """Return whether the options of a method ask for all boards of a game.

    They do so if the game lists its boards, and the options have no time budget and no smaller number of boards.
    """
    listed = game.cards.boards
    return listed is not None and options.budget_seconds is None and (options.boards or listed) >= listed


def folding_mbb(game: "Game") -> float | None:
    """Return the mbb/g that a player loses by folding every hand, the mean over both seats.

    It is half the sum of the blinds and antes. None for games without a big blind, and for games whose tree has all
    legal bets (no `Game.real_rules`).
    """
    return None if game.real_rules is None else in_mbb(game, sum(game.real_rules.put_in) / 2)


def exploitability_text(record: Record, digits: int = 4) -> str:
    """Return a result's exploitability as text: share of the pot if known, else mbb/g or chips.

    record  {name: value} of the result
    digits  significant digits of chips and mbb/g
    """
    if "exploitability_pot" in record:
        return f"{record['exploitability_pot']:.3%} of the pot"
    mbb = record["exploitability_mbb"]
    return f"{record['exploitability_chips']:.{digits}g} chips" if mbb is None else f"{mbb:.{digits}g} mbb/g"


SAMPLING = frozenset(("seed", "workers", "keep"))
"""Options without effect where all boards or deals are evaluated."""


class OverDeals(Method):
    """Base class of methods for card games whose tree is the betting only, without the cards."""

    def problem(self, game: "Game") -> str | None:
        """Return a sentence if the game cannot be measured, or None if it can.

        It cannot if it has no cards or has them in its tree.
        """
        return None if game.cards.dealt else f"{game.name} deals no cards outside of its tree: use the method exact"
