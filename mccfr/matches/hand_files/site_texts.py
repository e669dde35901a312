"""Reads hand histories of poker sites.

The sites are PokerStars, GGPoker, Full Tilt, Winamax, 888poker, PartyPoker, and Bovada with Bodog and Ignition.
The sites write the same facts line by line in much the same words, so one grammar reads all of them. Their clients
and trackers write numbers in several languages: 1,234.50 and 1.234,50 and 1 234,50 and 1'234.50.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal

from mccfr.config.game_tables import HoldemGame
from mccfr.games.betting import MOST_SEATS
from mccfr.games.holdem_betting import BIG_BLIND, BUTTON
from mccfr.matches.acpc import TableError, quoted
from mccfr.matches.hand_files.format_base import (
    CheckedHand,
    HandFormat,
    HandRecord,
    Lines,
    Posted,
    Result,
    begun_by,
    checked_hand,
)

_CHIPS = r"[$€£]?\s?(\d+(?:[ \u00a0\u202f'’.,]\d{3})*(?:[.,]\d+)?)"
_CARDS = r"\[ ?(\w{2,3}),? (\w{2,3}) ?\]"
_HEAD = re.compile(
    r"PokerStars [^#]{0,40}(?:Hand|Game) #\d|(?:Poker|Bovada|Ignition|Bodog\S*) Hand #\w|Full ?Tilt Poker Game #\d|"
    r"Winamax Poker - .*HandId: #\d|\*{3,} .*Hand History [Ff]or Game \d"
)
_NUMBER = re.compile(r"(?:#|Game )[A-Z]{0,4}(\d+)")
_DATE = re.compile(r"\d{4}/\d\d/\d\d")
_STAKES = re.compile(rf"{_CHIPS}[€£]?/{_CHIPS}(?:[€£]?/{_CHIPS})?")
_SEAT = re.compile(rf"Seat (\d+): (.{{1,80}}?) ?\( ?{_CHIPS}[^()]*\)")
_BUTTON = re.compile(r"Seat #?(\d+) is the button|button is in seat #(\d+)")
_POST = re.compile(r"posts? |antes? |ante/|ante chip|(?:small|big) blind", re.IGNORECASE)
_ACT = re.compile(r"(?:is )?(fold|check|call|bet|raise|all-?in)", re.IGNORECASE)
_TO = re.compile(rf"\bto {_CHIPS}")
_AMOUNT = re.compile(_CHIPS)
_DEALT = re.compile(rf"Dealt to (.{{1,80}}?) {_CARDS}")
_SHOWN = re.compile(rf"(?:shows?|showed|mucks?|mucked|dealt to a spot|does(?: not|n't) show) {_CARDS}", re.IGNORECASE)
_STREET = re.compile(r"\*\*\*? ?(?:Dealing )?(?:FLOP|TURN|RIVER) ?(?:\*\*|:).*\[([\w ,]+)\]", re.IGNORECASE)
_TWICE = re.compile(r"\*\*\* ?(?:FIRST|SECOND|1st|2nd)|(?:TURN|RIVER) 1 |run (?:it )?twice", re.IGNORECASE)
_WON = re.compile(rf"(?:collected|wins|ties for|Hand Result)[^\d$€£]*{_CHIPS}(?!.* for eliminating)", re.IGNORECASE)
_POT = re.compile(rf"Total pot ?\(?{_CHIPS}", re.IGNORECASE)
_RAKE = re.compile(rf"\b(?:(?:Rake|Jackpot|Bingo|Fortune|Tax) {_CHIPS}|No rake)")
_TOURNAMENT = re.compile(r"tournament|tourney|trny|buy-?in", re.IGNORECASE)
_MONEY = re.compile(r"Seat \d+: .{1,80}? ?\( ?(?:([$€£])\s?\d|[\d.,'’ \u00a0\u202f]+([$€£]))")
_ZERO = Decimal(0)


def chips_of(text: str) -> Decimal:
    """Parse an amount that is written with the separators of any language; its unit is the site's.

    The last separator begins the decimals, with two exceptions. It separates thousands if it occurs twice, or if three
    digits follow it and one to three precede it, other than a single 0. So "1,234" is above a thousand and "0.125"
    below one.
    """
    plain = re.sub(r"[^\d.,]", "", text)
    separator = max(plain.rfind("."), plain.rfind(","))
    whole, decimals = (plain, "") if separator < 0 else (plain[:separator], plain[separator + 1 :])
    twice = separator >= 0 and plain[separator] in whole
    if twice or (re.fullmatch(r"\d{1,3}", whole) and whole != "0" and re.fullmatch(r"\d{3}", decimals)):
        whole, decimals = plain, ""
    return Decimal(f"{re.sub('[.,]', '', whole) or '0'}.{decimals or '0'}")


def pieces(lines: Lines) -> Iterator[tuple[int, str]]:
    """Yield (number of the first line, text) of each hand, from one heading to the next.

    The text of a hand may be cut off in the middle of a line; the next heading then follows in the same line.
    """

    def whole() -> Iterator[tuple[int, str]]:
        for number, line in lines:
            found = _HEAD.search(line)
            start = found.start() if found and line[: found.start()].strip(" #*") else 0
            if start:
                yield number, line[:start]
            yield number, line[start:]

    for number, text in begun_by(whole(), begins):
        if any(line.strip() and not line.startswith("#") for line in text.split("\n")):
            yield number, text


def begins(line: str) -> bool:
    """Return True if a line is a heading, the first line of a hand at one of the sites."""
    return _HEAD.match(line.strip()) is not None


@dataclass
class _Lines:
    """Facts that the lines of a hand state, by player's name, with amounts in the site's units.

    live      posted blind of each player
    dead      posted antes and dead blinds (part of no bet) of each player
    straddle  straddle of each player who posted one
    small     name of the player who posted the small blind; "" if none
    moves     (name, kind, amount) of each action. Kinds: "f", "c" check or call, "to" raise to an amount on the street,
              "add" put in an amount more
    holes     shown hole cards of each player
    won       amount that each player collected from the pot
    board     all board cards
    """

    live: dict[str, Decimal] = field(default_factory=dict)
    dead: defaultdict[str, Decimal] = field(default_factory=lambda: defaultdict(Decimal))
    straddle: dict[str, Decimal] = field(default_factory=dict)
    small: str = ""
    moves: list[tuple[str, str, Decimal]] = field(default_factory=list)
    holes: dict[str, str] = field(default_factory=dict)
    won: defaultdict[str, Decimal] = field(default_factory=lambda: defaultdict(Decimal))
    board: str = ""

    def post(self, name: str, text: str, big: Decimal | None) -> None:
        """Record a posted blind, ante or straddle; if a player posts both blinds, the small one is dead money.

        A line without an amount is ignored.

        name  name of the player
        text  rest of the line after the name
        big   the big blind in the site's units; None if not known
        """
        lowered, amounts = text.lower(), [chips_of(found) for found in _AMOUNT.findall(text)]
        if not amounts:
            return
        both = len(amounts) > 1 or re.search(r"small (?:&|and|\+) big|big blind \+ dead", lowered)
        if "straddle" in lowered:
            self.straddle[name] = amounts[0]
        elif both and big is not None:
            self.live[name], self.dead[name] = big, self.dead[name] + sum(amounts) - big
        elif "dead" in lowered or "out of position" in lowered:
            self.dead[name] += amounts[0]
        elif "blind" in lowered or "all-in" in lowered:
            self.live[name] = amounts[0]
            self.small = self.small or name * ("small" in lowered)
        else:
            self.dead[name] += amounts[0]

    def act(self, name: str, verb: str, text: str) -> None:
        """Append an action to `moves`: "f", "c", "to" a total on the street, or "add" an amount.

        name  name of the player
        verb  the action in lower case, such as "bet"
        text  rest of the line after the name, with the amount of a bet or raise

        Raises `TableError` if a bet or raise has no amount.
        """
        amounts, target = _AMOUNT.findall(text), _TO.search(text)
        if verb in ("fold", "check", "call"):
            self.moves.append((name, "f" if verb == "fold" else "c", _ZERO))
        elif not amounts:
            raise TableError(f"the hand is cut off: {quoted(text)} has no amount")
        else:
            self.moves.append((name, "to" if target else "add", chips_of(target[1] if target else amounts[0])))


def read(text: str, games: Sequence[HoldemGame]) -> CheckedHand:
    """Parse the text of a site's hand to a `CheckedHand`, in whole chips.

    `games` is ignored, because the text states stacks and blinds.

    Raises `ValueError` if it is another game, cut off, illegal, or its pot or winner is wrong.
    """
    del games
    lines = [line.strip() for line in text.split("\n")]
    seats, stacks = _seats(lines)
    head = " ".join(lines[: next((n for n, line in enumerate(lines) if _SEAT.match(line)), 1)])
    _check_game(head)
    blinds = _blinds(lines)
    facts = _facts(lines, list(seats.values()), None if blinds is None else blinds[1])
    acted = {*facts.live, *facts.straddle, *facts.dead, *(move[0] for move in facts.moves)}
    playing = [name for _, name in sorted(seats.items(), key=lambda seat: int(seat[0])) if name in acted]
    playing = list(seats.values()) if len(seats) == 2 else playing
    if not 2 <= len(playing) <= MOST_SEATS:
        raise TableError(f"a hand of {len(playing)} players: the rules know two to {MOST_SEATS}")
    names = _by_position(lines, seats, playing, facts)
    small, big = (names[BUTTON], names[BIG_BLIND]) if len(names) == 2 else names[:2]
    if blinds is None:
        blinds = [facts.live.get(name, _ZERO) for name in (small, big)]
    blinds = [blinds[0], facts.straddle.get(big, blinds[1])]  # a straddle there is a larger big blind
    live = [_ZERO if name == big else facts.straddle.get(name, _ZERO) for name in names]
    if len(names) > 2:
        live[2:] = [max(chips, facts.live.get(name, _ZERO)) for chips, name in zip(live[2:], names[2:], strict=True)]
    number, money = _NUMBER.search(head), next(filter(None, map(_MONEY.match, lines)), None)
    sign = "" if money is None else money[1] or money[2]
    tournament = _TOURNAMENT.search(head) is not None or (not sign and re.search("[$€£]", head) is not None)
    pot, rakes = next(filter(None, map(_POT.search, lines)), None), [each for line in lines for each in _rakes(line)]
    posted = Posted(
        [stacks[name] for name in names], (blinds[0], blinds[1]), [facts.dead[name] for name in names], live
    )
    result = Result(
        None if pot is None else chips_of(pot[1]),
        sum(rakes, _ZERO) if rakes else None,
        [facts.won[name] for name in names] if facts.won else None,
    )
    return checked_hand(
        HandRecord(
            tuple(names),
            posted,
            [(names.index(name), kind, amount) for name, kind, amount in facts.moves],
            tuple(facts.holes.get(name, "") for name in names),
            facts.board,
            int(number[1]) if number else 0,
            "" if tournament else sign,
            tournament,
            result,
        )
    )


def _seats(lines: Sequence[str]) -> tuple[dict[str, str], dict[str, Decimal]]:
    """Return ({seat number as text: player's name}, {name: stack}) from the lines of a hand.

    Summaries repeat the seats, so the first line of each counts.
    """
    seats, stacks = dict[str, str](), dict[str, Decimal]()
    for match in map(_SEAT.match, lines):
        if match and match[1] not in seats:
            seats[match[1]], stacks[match[2]] = match[2], chips_of(match[3])
    return seats, stacks


def _blinds(lines: Sequence[str]) -> list[Decimal] | None:
    """Return [small blind, big blind] from the lines before the hole cards, such as ($0.50/$1.00).

    Returns None if no such line states them. Of three amounts, the first is an ante and left out.
    """
    for line in lines:
        if re.match(r"\*\*\* (?:HOLE|PRE-FLOP)|\*\* Dealing", line):
            return None
        match = None if line.startswith(("Seat ", "Total ")) else _STAKES.search(_DATE.sub("", line))
        if match:
            return [chips_of(each) for each in match.groups() if each][-2:]
    return None


def _check_game(head: str) -> None:
    """Raise `TableError` if a hand's heading names another game than no-limit hold'em with 52 cards."""
    short = re.search(r"6\+|short ?deck", head, re.IGNORECASE)
    if short or not re.search(r"hold ?'?em", head, re.IGNORECASE):
        raise TableError(f"{quoted(head)} is another game: no-limit hold'em with all 52 cards is reviewed")
    if re.search(r"(?<!no )(?<!no-)\blimit\b|\b[PF]L\b|\bcap\b", head, re.IGNORECASE):
        raise TableError(f"{quoted(head)} limits the bets: no-limit hold'em is reviewed")


def _facts(lines: Sequence[str], names: Sequence[str], big: Decimal | None) -> _Lines:
    """Return posts, actions, cards and winnings of the players, as the lines of a hand state them.

    lines  the lines of one hand
    names  names of the players
    big    the big blind; None if not known

    Raises `TableError` if the hand was run twice, or an amount is missing.
    """
    facts, dealt, longest = _Lines(), False, sorted(names, key=len, reverse=True)
    for line in lines:
        if _TWICE.search(line):
            raise TableError("the hand was run twice: one board is reviewed")
        if street := _STREET.match(line):
            cards = street[1].replace(",", " ").replace("10", "T").split()
            facts.board += "".join(cards)
        dealt = dealt or re.match(r"\*\*\* (?:HOLE|PRE-FLOP)|\*\* Dealing down", line) is not None
        if hole := _DEALT.match(line):
            facts.holes[hole[1]] = _pair(hole[2], hole[3])
        summary = line.startswith("Seat ")
        name = next((each for each in longest if _speaks(line, each) or (summary and f": {each} " in line)), None)
        if name is None:
            continue
        statement = line if summary else line[len(name) :].lstrip(" :")
        if shown := _SHOWN.search(statement):
            facts.holes.setdefault(name, _pair(shown[1], shown[2]))
        if summary:
            continue
        act, won = _ACT.match(statement), _WON.match(statement)
        if won:
            facts.won[name] += chips_of(won[1])
        elif (_POST.match(statement) or act) and not dealt:
            facts.post(name, statement, big)
        elif act:
            facts.act(name, act[1].lower(), statement)
    return facts


def _speaks(line: str, name: str) -> bool:
    return line.startswith(name) and line[len(name) : len(name) + 1] in (" ", ":")


def _pair(*cards: str) -> str:
    return "".join(cards).replace("10", "T")


def _rakes(line: str) -> list[Decimal]:
    return [chips_of(found[1] or "0") for found in _RAKE.finditer(line)]


def _by_position(lines: Sequence[str], seats: dict[str, str], playing: Sequence[str], facts: _Lines) -> list[str]:
    """Return the players' names in the order in which the rules number them.

    Of two players, the button comes last: the one who posted the small blind, or else sits at the button's seat. Of
    more, the player who posted the small blind comes first.

    lines    the lines of the hand
    seats    {seat number in the file, as text: name}
    playing  names of the players in the hand, in the order of seats
    facts    posts and actions of the hand

    Raises `TableError` if the lines do not tell which player that is.
    """
    if len(playing) > 2:
        if facts.small not in playing:
            raise TableError("no player has posted the small blind: such hands are not reviewed")
        first = playing.index(facts.small)
        return [*playing[first:], *playing[:first]]
    match = next(filter(None, map(_BUTTON.search, lines)), None)
    button = facts.small or ("" if match is None else seats.get(match[1] or match[2], ""))
    if button not in playing:
        raise TableError("neither player has posted the small blind or sits at the button's seat")
    return sorted(playing, key=lambda name: name == button)


FORMAT = HandFormat("hand histories of poker sites", begins, pieces, read)
