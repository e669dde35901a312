"""Common parts of hand formats: splits files, and checks hands by rules, stacks and blinds.

A format returns a `HandRecord`: the file's facts, in the file's own units. `checked_hand` converts it to whole chips
(cents, or a finer part if the file has one), so that amounts are compared exactly.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from decimal import Decimal
from itertools import pairwise
from typing import NamedTuple

from mccfr.config.game_tables import HoldemGame, Menu
from mccfr.games.betting import (
    MAX_CHIPS,
    MOST_SEATS,
    BettingRules,
    BettingState,
    after_last,
    amount_text,
    pots_of,
    raise_bounds,
)
from mccfr.games.full_betting import real_rules
from mccfr.games.holdem_betting import BIG_BLIND, BUTTON, holdem_rules, position_names
from mccfr.games.posting import posted
from mccfr.games.translation import apply_action
from mccfr.matches.acpc import BettingResult, TableError, cards_text, follow_actions, quoted, read_cards, won_chips
from mccfr.matches.acpc_log import LoggedHand

Lines = Iterable[tuple[int, str]]
_STREETS = (0, 3, 4, 5)
MOST = Decimal(10) ** 12
"""Largest amount of a file."""
_CENTS = 2  # least decimal places of money
_FINEST = 8  # most decimal places of an amount
_LEAST_LEFT = 0.8  # of a pot, after a rake that the file does not tell
_SAME = 1e-6  # tolerance between chips, in big blinds


class Posted(NamedTuple):
    """Stacks, blinds and dead money of P players, by seat number.

    Of two players, seat 0 is the big blind and 1 the button. Of more, 0 is the small and 1 the big blind. Amounts are
    in the file's units, such as dollars.

    stacks  [P] before antes and blinds
    blinds  (small blind, big blind)
    dead    [P] antes and dead blinds: in the pot, and part of no bet
    live    [P] bets posted instead of or above a blind: a straddle, or a blind posted by a player who joins the game; 0
            if none
    """

    stacks: Sequence[Decimal]
    blinds: tuple[Decimal, Decimal]
    dead: Sequence[Decimal]
    live: Sequence[Decimal]


class Result(NamedTuple):
    """Pot, rake, and amounts that each seat collected, in the file's units; None: not stated."""

    pot: Decimal | None = None
    rake: Decimal | None = None
    collected: Sequence[Decimal] | None = None


class HandRecord(NamedTuple):
    """A hand as its file states it, in the file's own units; P players.

    Seats count from 0 as in `Posted`: of two players, 0 is the big blind. Of more, 0 is the small blind.

    names       [P] names of the players by seat
    posted      stacks, blinds and dead money
    moves       (seat, kind, amount) of each action after the blinds, in order. Kinds: "f" fold; "c" check or call;
                "to" bet or raise, the amount is the player's total on the street; "add" bet or raise, the amount is
                what the player adds. For "f" and "c" the amount is 0
    holes       [P] hole cards by seat, such as "AsKd"; "" if not shown
    board       all board cards in order of dealing, such as "Qs7h2d5c"; "" if none
    number      number of the hand at its site; 0 if unknown
    currency    sign of the currency, such as "$"; "" for chips
    tournament  True if chips are not money
    result      pot, rake and amounts collected, as far as the file states them
    """

    names: tuple[str, ...]
    posted: Posted
    moves: Sequence[tuple[int, str, Decimal]]
    holes: tuple[str, ...]
    board: str
    number: int = 0
    currency: str = ""
    tournament: bool = False
    result: Result = Result()


class Stakes(NamedTuple):
    """Stacks, blinds and currency of a hand, in whole chips.

    rules       betting rules. For two players, each counts as having put in half of the dead money, and both have the
                smaller stack. This leaves the chips that a decision gains or loses as they are; `offset` corrects the
                chips won
    big_blind   in chips
    effective   effective stack in chips: the second largest of the players who put chips in by choice, or of all if
                fewer than two did
    unit        chips in one unit of the currency: 100 for cents
    currency    sign of the currency, such as "$"; "" for chips
    tournament  True if chips are not money
    offset      chips to add to those that seat 0 (the big blind of two) wins by `rules`, and to subtract from those of
                seat 1
    """

    rules: BettingRules
    big_blind: float
    effective: float
    unit: int = 1
    currency: str = ""
    tournament: bool = False
    offset: float = 0.0

    @property
    def depth(self) -> float:
        """Effective stack in big blinds."""
        return self.effective / self.big_blind

    @property
    def seats(self) -> int:
        """Number of players."""
        return len(self.rules.put_in)

    def text(self) -> str:
        """Return stacks, chips posted, unit and currency as one text, to compare hands."""
        rules = self.rules
        chips = f"{rules.put_in} {rules.put_in_before} {rules.stack} {tuple(rules.stacks)} {tuple(rules.dead)}"
        return f"{chips} {self.big_blind} {self.unit} {self.currency}"


class CheckedHand(NamedTuple):
    """A hand of a file that is legal and finished, with its amounts converted to whole chips.

    hand    betting, cards and net chips won, which leave `stakes.offset` out
    stakes  stacks, blinds and currency of this hand
    """

    hand: LoggedHand
    stakes: Stakes


class HandFormat(NamedTuple):
    """Functions that recognise, split and parse files of one hand format.

    name    of the format, for messages
    begins  returns whether a file's first line that is no comment may be of this format
    pieces  splits a file's lines into (number of the first line, text) of each hand
    read    parses a hand's text to a `CheckedHand`; takes also a list of games, whose stacks and blinds are used if
            the format states none. Raises `ValueError` with the reason if the hand is invalid
    """

    name: str
    begins: Callable[[str], bool]
    pieces: Callable[[Lines], Iterator[tuple[int, str]]]
    read: Callable[[str, Sequence[HoldemGame]], CheckedHand]


def no_policy(players: int) -> str:
    """Return the message for a hand that is not reviewed, since no policy has as many players."""
    return f"a hand of {players} players: no policy that is given has as many"


def stakes_of(game: HoldemGame) -> Stakes:
    """Return the stacks, blinds and rules (`Stakes`) of a game, without rake."""
    rules = replace(real_rules(game), rake=0)
    return Stakes(rules, float(game.blinds[1]), rules.effective_stack)


def each_line(lines: Lines, comments: tuple[str, ...] = ()) -> Iterator[tuple[int, str]]:
    """Yield (number, text) of each line that is a hand of its own; skip empty lines and comments.

    comments  beginnings of lines that are skipped
    """
    for number, line in lines:
        if line.strip() and not line.startswith(comments or ("\0",)):
            yield number, line


def begun_by(lines: Lines, begins: Callable[[str], bool]) -> Iterator[tuple[int, str]]:
    """Yield (number of the first line, text) of each hand, which ends where the next one begins.

    begins  returns True for a line that begins a hand
    """
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
    """Convert a file's hand to whole chips, and check it by the rules with its stacks and blinds.

    Raises `ValueError` for an illegal or unfinished hand, and if pot, rake or winner differ from those in the file.
    """
    if len(record.names) > MOST_SEATS:
        raise TableError(f"a hand of {len(record.names)} players: the rules know two to {MOST_SEATS}")
    unit = _unit(record)
    stakes = _stakes(record, unit)
    actions = _actions(record, stakes.rules, unit)
    played, won, within = follow_actions(stakes.rules, actions), None, 0.0
    if sum(record.result.collected or ()) and actions and isinstance(played.state, int):
        end = after_last(stakes.rules, played.states[-1], played.actions[-1])
        won, within = _won_by_file(record, end, stakes.rules, unit)
    hand = finished_hand(
        stakes.rules,
        actions,
        record.holes,
        record.board,
        number=record.number,
        names=record.names,
        won=won,
        within=within,
    )
    return CheckedHand(hand, stakes._replace(effective=_effective_stack(stakes.rules, played)))


def _unit(record: HandRecord) -> int:
    """Return the number of chips to which one unit of the file's currency is converted.

    It is a power of ten that makes all amounts whole; with a currency at least 100 (cents). It is doubled if the dead
    money of two players would be an odd number of chips. The rules give each player half of it.

    Raises `TableError` for an amount below 0 or above 10^12, and for amounts with too many digits to be exact.
    """
    post = record.posted
    moved = (move[2] for move in record.moves)
    amounts = [*post.stacks, *post.blinds, *post.dead, *post.live, *moved]
    if any(not 0 <= amount <= MOST for amount in amounts):
        raise TableError("an amount is below 0 or above 10^12: such hands are not read")
    places = max(-int(amount.normalize().as_tuple().exponent) for amount in amounts)
    unit: int = 10 ** max(0, min(places, _FINEST), _CENTS if record.currency else 0)
    if places > _FINEST or max(amounts) * unit > MAX_CHIPS:
        raise TableError(
            f"amounts have {places} decimal places and up to {max(amounts):g}: too many digits to be exact"
        )
    return 2 * unit if len(post.dead) == 2 and sum(post.dead) * unit % 2 else unit


def _stakes(record: HandRecord, unit: int) -> Stakes:
    """Return the stacks, blinds and rules (`Stakes`) of a hand, in chips.

    record  the hand as its file states it
    unit    chips in one unit of the file

    Raises `TableError` if they are impossible, or if antes and blinds leave no decision because a player is all-in.
    """
    small, big = (float(blind * unit) for blind in record.posted.blinds)
    two = len(record.names) == 2
    if not 0 <= small <= big or not big or (two and not small) or min(record.posted.stacks) <= 0:
        raise TableError("blinds or stacks are impossible: give amounts above 0, and the small blind first")
    try:
        rules, offset = (_rules_of_two if two else _rules_of_more)(record.posted, unit, (small, big))
    except ValueError:
        raise TableError(
            "antes and blinds put a player all-in before anybody acts: there is no decision to review"
        ) from None
    return Stakes(rules, big, rules.stack, unit, record.currency, record.tournament, offset)


def _rules_of_two(post: Posted, unit: int, blinds: tuple[float, float]) -> tuple[BettingRules, float]:
    """Return the betting rules of a hand of two players, and a correction of the chips won by them.

    The rules count dead money as put in half by each player. The correction (`Stakes.offset`) is added to the chips of
    seat 0.

    post    stacks, blinds and dead money in units of the file
    unit    chips in one unit of the file
    blinds  small and big blind in chips

    Raises `ValueError` if antes and blinds leave no decision because a player is all-in.
    """
    ante, straddle = float(sum(post.dead) * unit / 2), float(post.live[BUTTON] * unit)
    behind = [float((stack - dead) * unit) for stack, dead in zip(post.stacks, post.dead, strict=True)]
    if min(behind) <= (blinds[1] if straddle else blinds[0]):
        raise ValueError
    rules = holdem_rules(min(behind) + ante, blinds, ante, Menu())
    if straddle:
        order = BIG_BLIND, *rules.first_player[1:]
        rules = replace(rules, put_in=(rules.put_in[BIG_BLIND], min(ante + straddle, rules.stack)), first_player=order)
    return rules, ante - float(post.dead[BIG_BLIND] * unit)


def _rules_of_more(post: Posted, unit: int, blinds: tuple[float, float]) -> tuple[BettingRules, float]:
    """Return the betting rules of a hand of three or more players, and 0.0: no correction.

    Before the flop, the player after the last straddle acts first; without one, the player after the big blind.

    post    stacks, blinds and dead money in units of the file
    unit    chips in one unit of the file
    blinds  small and big blind in chips

    Raises `ValueError` if antes and blinds leave no decision.
    """
    live = [float(chips * unit) for chips in post.live]
    bets = [max(*pair) for pair in zip((*blinds, *[0.0] * (len(live) - 2)), live, strict=True)]
    last = max([1, *(seat for seat, chips in enumerate(bets) if chips > blinds[1])])
    rules = BettingRules(
        (),
        ((last + 1) % len(bets), 0, 0, 0),
        lambda state: (),
        minimum_bet=blinds[1],
        board_cards=(0, 3, 1, 1),
        chip=1.0,
    )
    rules = posted(rules, [float(chips * unit) for chips in post.stacks], bets, [float(n * unit) for n in post.dead])
    rules.start()
    return rules, 0.0


def _effective_stack(rules: BettingRules, played: BettingResult) -> float:
    """Return the second largest stack, in chips, of the players who put chips in by choice.

    Blinds, antes and checks are no choice. If fewer than two players did, it is that of all players.

    rules   the hand's betting rules
    played  its betting
    """
    acted = zip(played.states, played.actions, strict=True)
    chosen = {state.player for state, action in acted if action != "f" and (action != "c" or state.facing)}
    players = chosen if len(chosen) > 1 else range(len(rules.put_in))
    return sorted(rules.stack_of(player) for player in players)[-2]


def _actions(record: HandRecord, rules: BettingRules, unit: int) -> list[str]:
    """Return a hand's actions as `c`, `f` and `rN`, N chips over the whole hand.

    record  the hand as its file states it, with amounts on the street
    rules   the hand's betting rules
    unit    chips in one unit of the file

    A raise beyond the stack becomes one to the stack (the smaller one of two players). A raise becomes a call if it is
    to no more than the bet to call, or if no raise is legal, as against all-ins. Raises `ValueError` for other illegal
    actions.
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
            target = min(before + float(amount * unit), rules.stack_of(position))
            is_call = target <= state.to_call or raise_bounds(rules, state) is None
            action = "c" if is_call else f"r{amount_text(target)}"
        state = apply_action(rules, state, action, f"after the betting {quoted(''.join(actions))}")
        actions.append(action)
    return actions


def _won_by_file(
    record: HandRecord, end: BettingState, rules: BettingRules, unit: int
) -> tuple[tuple[float, ...], float]:
    """Compare the file's pot and rake with the rules; return (chips by player, tolerance).

    The chips are each player's net winnings, before rake. The tolerance, in chips, allows for odd chips of split pots,
    and with side pots for a rake of the main pot alone. The file's pot may include an uncalled bet or not, and may be
    before or after the rake.

    record  the hand as its file states it; its result has amounts collected, not all 0
    end     betting state after the last action
    rules   the hand's betting rules
    unit    chips in one unit of the file

    Raises `TableError` if pot or rake differ from the rules.
    """
    stated, put_in = record.result, end.put_in
    assert stated.collected is not None
    *_, second, first = sorted(put_in)
    uncalled, rake = first - second, float(stated.rake or 0)
    collected, pot = float(sum(stated.collected)), (sum(put_in) + sum(rules.dead) - uncalled) / unit
    pots = (pot, pot + uncalled / unit)

    def differs(chips: float) -> bool:
        return all(abs(chips - each) > _SAME * float(record.posted.blinds[1]) for each in pots)

    ours = f"the pot by betting and blinds is {pot:.10g}"
    if stated.pot is not None and differs(float(stated.pot)) and differs(float(stated.pot) + rake):
        raise TableError(f"the pot is {stated.pot} in the file, and {ours}")
    if differs(collected + rake) and (stated.rake is not None or not _LEAST_LEFT * pot < collected < max(pots)):
        raise TableError(f"{collected:.10g} and a rake of {rake:.10g} were taken from the pot in the file, and {ours}")
    odd_chips = 2.0 * len(put_in)
    within = odd_chips if len(pots_of(rules, end)) == 1 else odd_chips + unit * max(0.0, pot - collected)
    shares, dead = [float(each) / collected for each in stated.collected], rules.dead or [0.0] * len(put_in)
    top = put_in.index(max(put_in))
    won = [
        share * pot * unit + (seat == top) * uncalled - chips - extra
        for seat, (share, chips, extra) in enumerate(zip(shares, put_in, dead, strict=True))
    ]
    return tuple(won), within


def finished_hand(
    rules: BettingRules,
    actions: Sequence[str],
    holes: tuple[str, ...],
    board: str,
    *,
    number: int = 0,
    names: Sequence[str] = (),
    won: tuple[float, ...] | None = None,
    within: float = 0.0,
) -> LoggedHand:
    """Check that a hand is legal, finished and has valid cards; return it as a `LoggedHand`.

    rules    the hand's betting rules
    actions  `c`, `f` and `rN`, N chips over the whole hand
    holes    hole cards by seat number, "" if not shown
    board    all board cards as one text. After a fold it may have more than were dealt; these are cut off
    names    names by seat number; (): names of positions, such as "BTN"
    won      net chips by seat number as the file states them; None if it does not
    within   tolerance of `won` in chips

    Raises `TableError` if the hand is not legal or not finished, or if its cards or `won` are wrong.
    """
    played, positions = follow_actions(rules, actions), position_names(len(rules.put_in))
    if not actions or isinstance(played.state, BettingState):
        raise TableError(f"the hand is cut off: it is not over after the betting {quoted(played.text)}")
    needed = _STREETS[-1 if played.shown else played.states[-1].street]
    if len(board) != 2 * needed and not (not played.shown and len(board) > 2 * needed):
        raise TableError(f"the board {quoted(board)} is not that of the betting {quoted(played.text)}")
    board = board[: 2 * needed]  # match files may have the full board even after a fold
    cards_of_streets = (board[2 * first : 2 * stop] for first, stop in pairwise(_STREETS))
    streets = tuple(cards for cards in cards_of_streets if cards)
    read_cards(cards_text(holes, streets))
    chips = won_chips(rules, played, holes, streets)
    for name, ours, theirs in zip(positions, chips or won or (), won or chips or (), strict=False):
        if abs(ours - theirs) > within + _SAME * rules.minimum_bet:
            raise TableError(f"{theirs:g} chips were won by {name} there, and by cards and betting {ours:g}")
    names = tuple(names) if len(names) == len(positions) else positions
    return LoggedHand(number, played.text, tuple(holes), streets, chips or won, names)
