"""Common parts of hand formats: splits files, and checks hands by the rules of their own stakes.

A format returns a `HandRecord`: what the file says, in the file's own units. `checked_hand` converts it to whole
chips (cents, or a finer part if the file has one), so that amounts are compared exactly.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from decimal import Decimal
from itertools import pairwise
from typing import NamedTuple

from mccfr.config.game_tables import HoldemGame, Menu
from mccfr.games.betting import MAX_CHIPS, BettingRules, BettingState, amount_text, raise_bounds
from mccfr.games.full_betting import real_rules
from mccfr.games.holdem_betting import BIG_BLIND, holdem_rules
from mccfr.games.translation import apply_action
from mccfr.matches.acpc import BettingResult, TableError, cards_text, follow_actions, quoted, read_cards, won_chips
from mccfr.matches.acpc_log import LoggedHand

Lines = Iterable[tuple[int, str]]
ROLES = ("big blind", "button")
"""Default names of players by position."""
_STREETS = (0, 3, 4, 5)
MOST = Decimal(10) ** 12
"""Largest amount of a file."""
_CENTS = 2  # least decimal places of money
_FINEST = 8  # most decimal places of an amount
_LEAST_LEFT = 0.8  # of a pot, after a rake that the file does not tell
_SAME = 1e-6  # tolerance between chips, in big blinds


class Posted(NamedTuple):
    """Stacks, blinds and dead money. Pairs are by position: the big blind's, then the button's.

    blinds    the small and the big one
    dead      antes and dead blinds: in the pot, and part of no bet
    straddle  of the button, in place of the small blind; 0 if none
    """

    stacks: tuple[Decimal, Decimal]
    blinds: tuple[Decimal, Decimal]
    dead: tuple[Decimal, Decimal] = (Decimal(0), Decimal(0))
    straddle: Decimal = Decimal(0)


class Result(NamedTuple):
    """Pot, rake and chips collected (by position) as the file states them; None if it does not."""

    pot: Decimal | None = None
    rake: Decimal | None = None
    collected: tuple[Decimal, Decimal] | None = None


class HandRecord(NamedTuple):
    """A hand as its file states it, in the file's own units. Pairs are by position, big blind first.

    moves   (position, kind, amount). Kinds: "f" fold, "c" check or call, "to" bet or raise to an amount on the street,
            "add" put in an amount more
    holes   "" if not shown
    number  of the hand at its site
    """

    names: tuple[str, str]
    posted: Posted
    moves: Sequence[tuple[int, str, Decimal]]
    holes: tuple[str, str]
    board: str
    number: int = 0
    currency: str = ""
    tournament: bool = False
    result: Result = Result()


class Stakes(NamedTuple):
    """Stacks, blinds and currency of a hand, in whole chips.

    rules       of the betting. Dead money counts as if each player had put in half of it, and the stack is the smaller
                one: costs of decisions are the same, and `offset` corrects the chips won
    big_blind   in chips
    unit        chips in one unit of the currency: 100 for cents
    currency    its sign; "" for chips
    tournament  chips are not money
    offset      chips to add to those that position 0 wins by the rules
    """

    rules: BettingRules
    big_blind: float
    unit: int = 1
    currency: str = ""
    tournament: bool = False
    offset: float = 0.0

    @property
    def depth(self) -> float:
        """Effective stack in big blinds."""
        return self.rules.stack / self.big_blind

    def text(self) -> str:
        """Return everything that a review depends on as text."""
        rules = self.rules
        return f"{rules.put_in} {rules.put_in_before} {rules.stack} {self.big_blind} {self.unit} {self.currency}"


class CheckedHand(NamedTuple):
    """A legal, finished hand in whole chips of its own stakes."""

    hand: LoggedHand
    stakes: Stakes


class HandFormat(NamedTuple):
    """Functions that recognise, split and parse files of one hand format.

    name    for messages
    begins  returns whether a file's first line that is no comment may be of this format
    pieces  splits a file's lines into (number of the first line, text) of each hand
    read    parses a hand's text; the game has the stakes that a format lacks. `ValueError` gives the reason if it is
            invalid
    """

    name: str
    begins: Callable[[str], bool]
    pieces: Callable[[Lines], Iterator[tuple[int, str]]]
    read: Callable[[str, HoldemGame], CheckedHand]


def stakes_of(game: HoldemGame) -> Stakes:
    """Return the stakes of a game with equal stacks."""
    return Stakes(real_rules(game), float(game.blinds[1]))


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


def checked_hand(record: HandRecord) -> CheckedHand:
    """Return a hand in whole chips, checked by the rules of its own stakes.

    Raises `TableError` for an illegal or unfinished hand, and if pot, rake or winner differ from what the file tells.
    """
    unit = _unit(record)
    stakes = _stakes(record, unit)
    actions = _actions(record, stakes.rules, unit)
    collected, won = record.result.collected, None
    played = follow_actions(stakes.rules, actions)
    if collected is not None and actions and isinstance(played.state, int):
        pot = _check_pot(record, played, unit)
        if collected[0] > 0 and collected[1] > 0 and played.actions[-1] != "f":
            won = 0.0
        elif sum(collected):
            won = pot / 2 * unit * (1 if collected[0] else -1)
    hand = finished_hand(
        stakes.rules, actions, record.holes, record.board, number=record.number, names=record.names, won=won
    )
    return CheckedHand(hand, stakes)


def _unit(record: HandRecord) -> int:
    """Return the number of chips in one unit of the file, so that all amounts are whole chips."""
    posted = record.posted
    moved = (move[2] for move in record.moves)
    amounts = [*posted.stacks, *posted.blinds, *posted.dead, posted.straddle, *moved]
    if any(not 0 <= amount <= MOST for amount in amounts):
        raise TableError("an amount is below 0 or above 10^12: such hands are not read")
    places = max(-int(amount.normalize().as_tuple().exponent) for amount in amounts)
    unit: int = 10 ** max(0, min(places, _FINEST), _CENTS if record.currency else 0)
    if places > _FINEST or max(amounts) * unit > MAX_CHIPS:
        raise TableError(
            f"amounts have {places} decimal places and up to {max(amounts):g}: too many digits to be exact"
        )
    return 2 * unit if sum(posted.dead) * unit % 2 else unit


def _stakes(record: HandRecord, unit: int) -> Stakes:
    """Return the stakes of a record; `TableError` if they are impossible or leave no decision."""
    posted = record.posted
    small, big = (float(blind * unit) for blind in posted.blinds)
    ante = float(sum(posted.dead) * unit / 2)
    behind = [float((stack - dead) * unit) for stack, dead in zip(posted.stacks, posted.dead, strict=True)]
    if not 0 < small <= big or min(posted.stacks) <= 0:
        raise TableError("blinds or stacks are impossible: give amounts above 0, and the small blind first")
    first = big if posted.straddle else small
    if min(behind) <= first:
        raise TableError("antes and blinds put a player all-in before anybody acts: there is no decision to review")
    rules = holdem_rules(min(behind) + ante, (small, big), ante, Menu())
    if posted.straddle:
        straddle = min(ante + float(posted.straddle * unit), rules.stack)
        order = BIG_BLIND, *rules.first_player[1:]
        rules = replace(rules, put_in=(rules.put_in[BIG_BLIND], straddle), first_player=order)
    offset = ante - float(posted.dead[BIG_BLIND] * unit)
    return Stakes(rules, big, unit, record.currency, record.tournament, offset)


def _actions(record: HandRecord, rules: BettingRules, unit: int) -> list[str]:
    """Return the actions of a record as `c`, `f` and `rN`, N chips over the whole hand.

    A raise beyond the other player's stack is one to that stack. A raise of a player who is put all-in by it for less
    than a call, or against an all-in, is a call.
    """
    state: BettingState | int = rules.start()
    actions = list[str]()
    for position, kind, amount in record.moves:
        if isinstance(state, int):
            raise TableError(f"the betting goes on after its end, {quoted(''.join(actions))}")
        if position != state.player:
            raise TableError(
                f"after the betting {quoted(''.join(actions))} it is not the turn of {record.names[position]}"
            )
        action = kind
        if kind not in ("f", "c"):
            before = state.put_in_before if kind == "to" else state.put_in[state.player]
            target = min(before + float(amount * unit), rules.stack)
            is_call = target <= state.to_call or raise_bounds(rules, state) is None
            action = "c" if is_call else f"r{amount_text(target)}"
        state = apply_action(rules, state, action, f"after the betting {quoted(''.join(actions))}")
        actions.append(action)
    return actions


def _check_pot(record: HandRecord, played: BettingResult, unit: int) -> float:
    """Compare the file's pot, rake and winnings with the rules; return the pot in the file's units.

    Files count an uncalled bet in or not, and a pot before or after the rake. Raises `TableError` for other figures.
    """
    stated, last = record.result, played.states[-1]
    collected = float(sum(stated.collected or ()))
    folds = played.actions[-1] == "f"
    pot = 2 * (min(last.put_in) if folds else last.to_call) / unit
    pots, rake = (pot, sum(last.put_in) / unit) if folds else (pot,), float(stated.rake or 0)

    def differs(chips: float) -> bool:
        return all(abs(chips - each) > _SAME * float(record.posted.blinds[1]) for each in pots)

    ours = f"the pot by betting and blinds is {pot:.10g}"
    if stated.pot is not None and differs(float(stated.pot)) and differs(float(stated.pot) + rake):
        raise TableError(f"the pot is {stated.pot} in the file, and {ours}")
    if differs(collected + rake) and (stated.rake is not None or not _LEAST_LEFT * pot < collected < max(pots)):
        raise TableError(f"{collected:.10g} and a rake of {rake:.10g} were taken from the pot in the file, and {ours}")
    return pot


def finished_hand(
    rules: BettingRules,
    actions: Sequence[str],
    holes: tuple[str, ...],
    board: str,
    *,
    number: int = 0,
    names: Sequence[str] = (),
    won: float | None = None,
) -> LoggedHand:
    """Check that a hand is legal, finished and has valid cards; return it as a logged hand.

    holes  by position, "" if not shown
    won    by position 0 as in the file, or None

    Raises `TableError`.
    """
    played = follow_actions(rules, actions)
    if not actions or isinstance(played.state, BettingState):
        raise TableError(f"the hand is cut off: it is not over after the betting {quoted(played.text)}")
    last = played.states[-1].street
    needed = _STREETS[last] if played.actions[-1] == "f" else _STREETS[-1]
    if len(board) != 2 * needed and not (played.actions[-1] == "f" and len(board) > 2 * needed):
        raise TableError(f"the board {quoted(board)} is not that of the betting {quoted(played.text)}")
    board = board[: 2 * needed]  # match files may have the full board even after a fold
    cards_of_streets = (board[2 * first : 2 * stop] for first, stop in pairwise(_STREETS))
    streets = tuple(cards for cards in cards_of_streets if cards)
    read_cards(cards_text(holes, streets))
    by_position = won_chips(rules, played, holes, streets)
    chips = None if by_position is None else by_position[0]
    if won is not None and chips is not None and abs(won - chips) > _SAME * rules.minimum_bet:
        raise TableError(f"{won:g} chips were won by the big blind there, and by cards and betting {chips:g}")
    chips = won if chips is None else chips
    one, other = (*names, *ROLES[len(names) :]) if len(names) in (0, 2) else ROLES
    chips_by_position = None if chips is None else (chips, -chips)
    return LoggedHand(number, played.text, holes, streets, chips_by_position, (one, other))
