"""Common parts of hand formats: splitting a file into hands, scaling and validation."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from mccfr.config.game_tables import HoldemGame
from mccfr.games.betting import BettingRules, BettingState, amount_text
from mccfr.games.full_betting import real_rules
from mccfr.matches.acpc import TableError, cards_text, follow_actions, game_text, quoted, read_cards, won_chips
from mccfr.matches.acpc_log import LoggedHand

Lines = Iterable[tuple[int, str]]
ROLES = ("big blind", "button")
"""Default names of players by position."""
_STREETS = (0, 3, 4, 5)
_SAME = 1e-6  # tolerance between chips, in big blinds


class HandFormat(NamedTuple):
    """A hand format.

    name    for messages
    begins  returns whether a file's first line that is no comment may be of this format
    pieces  splits a file's lines into (number of the first line, text) of each hand
    read    parses a hand's text, in chips of a game; `ValueError` gives the reason if it is invalid
    """

    name: str
    begins: Callable[[str], bool]
    pieces: Callable[[Lines], Iterator[tuple[int, str]]]
    read: Callable[[str, HoldemGame], LoggedHand]


class Stakes(NamedTuple):
    """Stacks, blinds and ante of a hand, in its own chips."""

    stacks: Sequence[float]
    blinds: tuple[float, float]
    ante: float = 0.0


def each_line(lines: Lines, comments: tuple[str, ...] = ()) -> Iterator[tuple[int, str]]:
    """Yield each line as a hand, without empty lines and comments."""
    for number, line in lines:
        if line.strip() and not line.startswith(comments or ("\0",)):
            yield number, line


def begun_by(lines: Lines, begins: Callable[[str], bool]) -> Iterator[tuple[int, str]]:
    """Yield the text of each hand, from a line that begins one up to the next such line."""
    first, kept = 1, list[str]()
    for number, line in lines:
        if begins(line) and any(text.strip() for text in kept):
            yield first, "\n".join(kept)
            kept = []
        if not kept:
            first = number
        kept.append(line)
    if any(text.strip() for text in kept):
        yield first, "\n".join(kept)


def scale_to(game: HoldemGame, stakes: Stakes) -> float:
    """Return the factor from a hand's chips to those of `game`; `TableError` for other stakes."""
    if len(stakes.stacks) != 2:
        raise TableError(f"a hand of {len(stakes.stacks)} players: hands of two are reviewed")
    small, big = stakes.blinds
    if not (0 < small <= big and min(stakes.stacks) > big and 0 <= stakes.ante < big):
        raise TableError("blinds and stacks of the hand cannot be: the small blind comes first, and stacks are larger")
    scale = game.blinds[1] / big
    found = HoldemGame(
        stack=min(stakes.stacks) * scale, blinds=(small * scale, game.blinds[1]), ante=stakes.ante * scale
    )
    wanted = game.stack, game.blinds[0], game.ante
    if any(
        abs(one - other) > _SAME * game.blinds[1]
        for one, other in zip((found.stack, found.blinds[0], found.ante), wanted, strict=True)
    ):
        told = f"a hand of {game_text(found)}, counted in big blinds of {amount_text(game.blinds[1])}"
        raise TableError(f"{told}, and the policy is for {game_text(game)}: take a policy for the hand's")
    return scale


def finished_hand(
    game: HoldemGame,
    actions: Sequence[str],
    holes: tuple[str, str],
    board: str,
    *,
    number: int = 0,
    names: Sequence[str] = (),
    won: float | None = None,
) -> LoggedHand:
    """Return a validated hand: legal and finished by the rules of `game`, with valid cards and board.

    holes  by position, "" if not shown
    won    by position 0 as in the file, or None

    Raises `TableError`.
    """
    rules: BettingRules = real_rules(game)
    found = follow_actions(rules, actions)
    if not actions or isinstance(found.state, BettingState):
        raise TableError(f"the hand is not over after the betting {quoted(found.text)}")
    last = found.states[-1].street
    needed = _STREETS[last] if found.actions[-1] == "f" else _STREETS[-1]
    if len(board) != 2 * needed and not (found.actions[-1] == "f" and len(board) > 2 * needed):
        raise TableError(f"the board {quoted(board)} is not that of the betting {quoted(found.text)}")
    board = board[: 2 * needed]  # match files may have the full board even after a fold
    dealt = (board[2 * first : 2 * stop] for first, stop in pairwise(_STREETS))
    streets = tuple(cards for cards in dealt if cards)
    read_cards(cards_text(holes, streets))
    chips = won_chips(found, holes, streets)
    if won is not None and chips is not None and abs(won - chips) > _SAME * game.blinds[1]:
        raise TableError(f"{won:g} chips were won by the big blind there, and by cards and betting {chips:g}")
    chips = won if chips is None else chips
    one, other = (*names, *ROLES[len(names) :]) if len(names) in (0, 2) else ROLES
    both = None if chips is None else (chips, -chips)
    return LoggedHand(number, found.text, holes, streets, both, (one, other))
