"""Action abstraction for no-limit poker: the amounts that a player may raise to (`[game.menu]`).

A configuration table has either `first` (sizes of the street's first bet) and `later` (of raises), or `sizes`. Entry k
of `sizes` lists the sizes allowed after k bets on the street; the last entry also applies to later bets. An empty list
allows no bet. A blind does not count as a bet here: the first raise over it is a first bet. Each key is looked up first
for the player on the street (`[game.menu.flop.button]`), then for the street (`[game.menu.flop]`), then in
`[game.menu]`.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from math import floor, inf
from typing import NamedTuple, TypedDict

from mccfr.config.game_tables import Menu, PlayerMenu, StreetMenu
from mccfr.config.value_limits import share_of, share_problem, shown
from mccfr.games.betting import (
    MAX_CHIPS,
    BettingRules,
    BettingState,
    after_fold,
    following,
    may_call,
    may_raise,
)
from mccfr.trees.street_amounts import LineStart, refuse_whole_amounts, whole_line

STREET_NAMES = ("preflop", "flop", "turn", "river")
PLAYER_NAMES = ("big_blind", "button")
"""Two players by position; position 0 of an endgame acts first, as the big blind does on the flop."""
SEAT_NAMES = ("small_blind", "big_blind", "under_the_gun", "hijack", "cutoff", "button")
"""Six players by position."""

_SIZE = re.compile(r"(\d+(?:\.\d+)?)(p|%|x|bb|e|chips)?|e")
_ALL_IN = "allin"
_LARGE = 10  # from here on, a number without unit is hardly a multiple
_Table = Menu | StreetMenu | PlayerMenu


class Size(NamedTuple):
    """A parsed bet size of the configuration: `0.5p`, half the pot, is Size(0.5, "p")."""

    number: float  # inf for all-in
    unit: str  # "p", "x", "bb", "e", "chips" or "allin"

    def target(self, state: BettingState, game: "MenuGame", stack: float) -> float:
        """Return the amount that this size raises to, over the whole hand, before the limits of the rules.

        * `0.5p`: the call plus this share of the pot after the call
        * `3x`: to this multiple of the last bet; preflop the blind counts as a bet
        * `2.5bb`: to this number of big blinds
        * `300chips`: to this number of chips
        * `3e`: geometric sizing: the share of the pot that, bet and called three times, puts in the `stack`
        * `e`: the same with one bet on each of the remaining streets

        `stack` is the amount of an all-in. `x`, `bb` and chips count the amount put in on this street only. `e` assumes
        that one player calls.
        """
        level = state.to_call
        match self.unit:
            case "p":
                return level + self.number * 2 * game.half_pot(state)
            case "e":
                half = game.half_pot(state)
                others = level - half  # negative if the pot has chips of players who do not call
                bets = self.number or game.streets - state.street
                return others + half * ((stack - others) / half) ** (1 / bets)
            case "x":
                return state.put_in_before + self.number * (level - state.put_in_before)
            case "bb":
                return state.put_in_before + self.number * (game.big_blind or 0.0)
        return state.put_in_before + self.number


class MenuGame(NamedTuple):
    """Properties of a game on which the bet sizes of its menu (`[game.menu]`) depend.

    stack         chips of each player in the whole hand, or the most if they differ
    big_blind     chips; None without blinds: then sizes in bb are invalid, and limping is impossible
    first_street  street with which the tree begins: 0 preflop .. 3 river
    streets       number of streets of the tree
    players       names in configuration keys, such as button, by seat number
    whole_chips   True if amounts raised to are rounded to whole chips
    stacks        chips by seat number, if they differ
    dead          dead chips in the pot: antes that are no bets, not counted among the players' chips put in
    """

    stack: float
    big_blind: float | None
    first_street: int = 0
    streets: int = len(STREET_NAMES)
    players: tuple[str, ...] = PLAYER_NAMES
    whole_chips: bool = False
    stacks: tuple[float, ...] = ()
    dead: float = 0.0

    @property
    def first_with_bet(self) -> int | None:
        """Number of the street on which a blind is the first bet (0, preflop), or None.

        It is None without blinds, and if the tree begins after the preflop.
        """
        return 0 if self.first_street == 0 and self.big_blind is not None else None

    def half_pot(self, state: BettingState) -> float:
        """Return half of the chips that the pot has after the player to act has called."""
        if len(state.put_in) == 2:
            return state.to_call
        return (sum(state.with_put_in(state.to_call)) + self.dead) / 2

    def all_in(self, state: BettingState) -> float:
        """Return the largest useful amount to raise to, over the whole hand.

        It is all chips of the player, or the most that another can call. It is never below the least legal raise, even
        if no other player can call all of it.
        """
        if not self.stacks:
            return self.stack
        own, (_, folded, _) = self.stacks[state.player], state.seats
        others = [chips for seat, chips in enumerate(self.stacks) if seat != state.player and not folded >> seat & 1]
        return min(own, max(state.lowest_raise, *others))


class _Plan(NamedTuple):
    """The bet sizes and limits of `[game.menu]` for one player on one street."""

    sizes: Sequence[Sequence[Size]]  # by number of bets so far; the last list also applies to later bets
    limit: float  # most bets that are not all-in
    threshold: float | None  # share of the stack above which a size becomes all-in
    spr: float | None  # stack-to-pot ratio after a call, at or below which a size becomes all-in
    donk: Sequence[Size] | None  # donk bets: first bets into the street before's last bettor; None: `sizes`

    def becomes_all_in(self, target: float, half_pot: float, stack: float) -> bool:
        """Return True if the menu (`[game.menu]`) replaces a raise by an all-in.

        target    chips to which the player would raise, over the whole hand
        half_pot  half the pot, in chips, after a call of the raise
        stack     chips to which an all-in raises
        """
        above_threshold = self.threshold is not None and target / stack > self.threshold
        return above_threshold or (self.spr is not None and stack - target <= self.spr * 2 * half_pot)


def parse_size(text: str, key: str) -> Size:
    """Parse a bet size such as "50%", "3x" or "allin" to a `Size`.

    key  configuration key of the size, named in messages

    Raises `ValueError` if it is invalid or not above zero. For a number without unit the message lists its possible
    meanings.
    """
    text = re.sub(r"\s", "", text).lower()
    if text == _ALL_IN:
        return Size(inf, _ALL_IN)
    match = _SIZE.fullmatch(text)
    if match and match[0] == "e":
        return Size(0.0, "e")
    if not match or float(match[1]) <= 0:
        raise ValueError(
            f"{key}: bet size {shown(text)} is not allowed: it must be a number above 0 with %, p, x, bb, chips or e "
            "behind it, or 'e' or 'allin'"
        )
    if match[2] is None:
        number = float(match[1])
        ratio = f"{number:g}% of the pot" if number >= _LARGE else f"{100 * number:g}% of the pot"
        other = f"{number:g}x the last bet" if 1 < number < _LARGE else f"{number:g}bb"
        raise ValueError(
            f"{key}: bet size {shown(text)} has no unit, and can mean {ratio}, {other} or {number:g}chips: write "
            "the one that you mean"
        )
    if match[2] == "%":
        return Size(float(match[1]) / 100, "p")
    if float(match[1]) > MAX_CHIPS:
        raise ValueError(f"{key}: bet size {shown(text)} is not allowed: numbers are at most {MAX_CHIPS:g}")
    return Size(float(match[1]), match[2])


def menu_targets(menu: Menu, game: MenuGame) -> Callable[[BettingState], Sequence[float]]:
    """Return the function that lists the amounts that a `[game.menu]` allows to raise to.

    The function takes a betting state, and returns chips over the whole hand, ascending (`BettingRules.raise_targets`).
    An amount is at least a minimum raise. With `whole_chips`, the part put in on this street is rounded to whole chips.
    An amount becomes all-in if it exceeds `allin_threshold` times the stack, or leaves at most `allin_spr` pots behind
    after a call. If neither key is given, amounts at or above the stack are dropped. At most `max_bets` bets on a
    street are not all-in; a big blind counts as one.

    Raises `ValueError`, with one sentence, for a menu that is invalid on these streets.
    """
    _check(menu, game)
    streets = range(game.first_street, game.first_street + game.streets)
    plans = [[_plan(menu, street, name) for name in game.players] for street in streets]
    blind_bets = int(game.first_with_bet == 0)
    whole_chips = game.whole_chips

    def targets(state: BettingState) -> Sequence[float]:
        plan = plans[state.street][state.player]
        within = state.bets + (blind_bets if state.street == 0 else 0) < plan.limit
        lowest, stack = state.lowest_raise, game.all_in(state)
        others = state.to_call - game.half_pot(state)
        amounts = set()
        donks = plan.donk is not None and state.called_bet and not state.acted and state.bets == 0
        for size in plan.donk or () if donks else plan.sizes[min(state.bets, len(plan.sizes) - 1)]:
            if size.unit == _ALL_IN:
                amounts.add(stack)
            elif within:
                target, before = size.target(state, game, stack), state.put_in_before
                target = max(before + floor(target - before + 0.5) if whole_chips else target, lowest)
                if plan.becomes_all_in(target, target - others, stack):
                    amounts.add(stack)
                elif target < stack or plan.threshold is not None:
                    amounts.add(target)
        return sorted(amounts)

    return targets


class LineEdits(TypedDict):
    """The fields `added` and `removed` of `BettingRules`: amounts to raise to, by betting line.

    Both map a line, without / between streets, to amounts in chips over the whole hand.
    """

    added: Mapping[str, Sequence[float]]
    removed: Mapping[str, Sequence[float]]


def line_edits(menu: Menu, start: LineStart) -> LineEdits:
    """Convert the keys `add` and `remove` of `[game.menu]` to {line before the bet: amounts}.

    The keys list betting lines that end in a bet, such as cb300, with amounts put in on the street. The result's
    amounts are chips over the whole hand.

    start  chips put in when the lines begin

    Raises `ValueError` unless lines end in a bet.
    """
    return {"added": _amounts(menu.add, "add", start), "removed": _amounts(menu.remove, "remove", start)}


def _amounts(lines: Sequence[str], key: str, start: LineStart) -> dict[str, list[float]]:
    """Split betting lines that end in a bet into {actions before the bet: amounts of the bet}.

    lines  such as cb300, with chips put in on the street
    key    "add" or "remove", for messages
    start  chips put in when the lines begin

    In the result amounts are chips over the whole hand, and lines have no "/". Raises `ValueError` unless lines end in
    a bet, and for `r` amounts with two meanings.
    """
    amounts: dict[str, list[float]] = {}
    for line in lines:
        try:
            refuse_whole_amounts(line, start)
        except ValueError as error:
            raise ValueError(f"game.menu.{key}: {error}") from None
        whole = whole_line(line.replace("/", ""), start)
        match = re.fullmatch(r"((?:[cf]|r\d+(?:\.\d+)?)*)r(\d+(?:\.\d+)?)", whole)
        if match is None:
            raise ValueError(f"game.menu.{key}: {shown(line)} is not allowed: a line ends in a bet, as 'cb300'")
        amounts.setdefault(match[1], []).append(float(match[2]))
    return amounts


def check_opening(menu: Menu, rules: BettingRules, players: Sequence[str] = PLAYER_NAMES) -> None:
    """Raise `ValueError` if `[game.menu]` leaves a player who faces the blind only a fold.

    rules    betting rules of the game, made from `menu`
    players  names of the players by seat number, for the message
    """
    state: BettingState | None = rules.start()
    while state is not None and state.facing and menu.limp is not True:
        if not may_call(rules, state) and not (may_raise(rules, state) and rules.raise_targets(state)):
            name = players[state.player].replace("_", " ")
            raise ValueError(
                f"game.menu.limp = {menu.limp!r} is not allowed: the {name} could only fold, because its menu before "
                f"the flop has no raise within max_bets and below game.stack = {rules.stack_of(state.player):g}; offer "
                "such a size, or 'allin'"
            )
        state = following(rules, after_fold(state))


def _tables(menu: Menu, street: int, player: str) -> list[tuple[str, _Table]]:
    """Return (key, table) of the menu's tables for a player on a street, most specific first.

    Such keys are "game.menu.flop.button", "game.menu.flop" and "game.menu"; tables that are not given are left out.

    street  0 preflop .. 3 river
    player  name of the player in configuration keys, such as "button"
    """
    name = STREET_NAMES[street]
    own = getattr(menu, name)
    players = own and getattr(own, player)
    tables = [(f"game.menu.{name}.{player}", players), (f"game.menu.{name}", own), ("game.menu", menu)]
    return [(key, table) for key, table in tables if table is not None]


def _bet_sizes(menu: Menu, street: int, player: str) -> list[tuple[str, Sequence[str]]]:
    """Return the bet sizes of a player on a street: a list of (configuration key, texts of sizes).

    Entry k applies after k bets on the street; the last entry also applies to later bets. Arguments as in `_tables`.
    """
    first: list[tuple[str, Sequence[str]]] = []
    later: list[tuple[str, Sequence[str]]] = []
    for key, table in _tables(menu, street, player):
        by_bets = [(f"{key}.sizes[{bets}]", sizes) for bets, sizes in enumerate(table.sizes or ())]
        if not first and (by_bets or table.first is not None):
            first = by_bets[:1] or [(f"{key}.first", table.first or ())]
        if not later and (by_bets or table.later is not None):
            later = by_bets[1:] or by_bets or [(f"{key}.later", table.later or ())]
    return first + later


def _plan(menu: Menu, street: int, player: str) -> _Plan:
    """Return the parsed sizes and limits of a player on a street; arguments as in `_tables`."""
    tables = [table for _, table in _tables(menu, street, player)]
    limit = next((table.max_bets for table in tables if table.max_bets is not None), inf)
    threshold = next((share_of(table.allin_threshold) for table in tables if table.allin_threshold is not None), None)
    spr = next((table.allin_spr for table in tables if table.allin_spr is not None), None)
    donk = next((table.donk for table in tables if table.donk is not None), None)
    sizes = [[parse_size(text, key) for text in texts] for key, texts in _bet_sizes(menu, street, player)]
    return _Plan(sizes, limit, threshold, spr, None if donk is None else [parse_size(text, "donk") for text in donk])


def _check(menu: Menu, game: MenuGame) -> None:
    """Raise `ValueError` if `[game.menu]` has invalid values, or keys that do not suit the game."""
    for key, table in _all_tables(menu):
        _check_table(key, table)
        if game.big_blind is None:
            _check_without_blinds(key, table)
    if game.first_street > 0 and not menu.limp:
        raise ValueError("game.menu.limp = False is not allowed in an endgame, which has no limps: leave it out")
    if menu.limp not in (True, False) and len(game.players) == 2:
        raise ValueError(
            f"game.menu.limp = {menu.limp!r} is for three and more seats: with two the button has the small blind, so "
            "write true or false"
        )
    streets = range(game.first_street, game.first_street + game.streets)
    for key, _ in _all_tables(menu):
        if key.rpartition(".")[2] in {*SEAT_NAMES} - {*game.players}:
            raise ValueError(
                f"{key} is not allowed: the game has no player of this position ({', '.join(game.players)}); leave "
                "it out"
            )
    for street, name in enumerate(STREET_NAMES):
        if getattr(menu, name) is not None and street not in streets:
            raise ValueError(f"game.menu.{name} is not allowed in a game without this street: leave it out")
    for key, table in [(key, table) for player in game.players for key, table in _tables(menu, streets[0], player)]:
        if table.donk is not None and (len(streets) == 1 or table is not menu):
            raise ValueError(f"{key}.donk has no effect on the game's first street, before which no player bets")
    for street in streets:
        for player in game.players if street != game.first_with_bet else ():
            key, texts = _bet_sizes(menu, street, player)[0]
            for text in texts:
                if parse_size(text, key).unit == "x":
                    raise ValueError(
                        f"{key}: bet size {text!r} is not allowed for the first bet of the {STREET_NAMES[street]}: "
                        "there is no last bet to multiply, so give p, bb or chips there"
                    )


def _check_without_blinds(key: str, table: _Table) -> None:
    """Raise `ValueError` if a menu table of a game without blinds has keys that need a blind.

    Bet sizes in big blinds need one too.

    key  configuration key of the table, such as game.menu.flop
    """
    sizes = [*(table.first or ()), *(table.later or ()), *(text for texts in table.sizes or () for text in texts)]
    blinds = [text for text in sizes if parse_size(text, key).unit == "bb"]
    problem = f"{key}: bet size {blinds[0]!r}" if blinds else ""
    if type(table) is PlayerMenu:
        problem = f"the table {key}, which names a player by a blind,"
    if isinstance(table, Menu) and not table.limp:
        problem = f"{key}.limp = False"
    if problem:
        raise ValueError(f"{problem} is not allowed with game.antes, a game without blinds: leave it out")


def _all_tables(menu: Menu) -> Iterator[tuple[str, _Table]]:
    """Yield (key, table) of all tables of `[game.menu]`, also for players not in the game."""
    tables = (
        entry for street in range(len(STREET_NAMES)) for player in SEAT_NAMES for entry in _tables(menu, street, player)
    )
    yield from dict(tables).items()


def _check_table(key: str, table: _Table) -> None:
    """Raise `ValueError` for invalid values in one table of `[game.menu]`; `key` is its configuration key."""
    plain = type(table)()  # a written-out default counts as not given: saved configurations contain defaults
    set_keys = [n for n in ("first", "later") if tuple(getattr(table, n) or ()) != tuple(getattr(plain, n) or ())]
    if table.sizes is not None and set_keys:
        raise ValueError(
            f"{key}.sizes and {key}.{set_keys[0]} are both given: sizes stands in place of first and later, so drop one"
        )
    if table.sizes is not None and not table.sizes:
        raise ValueError(f"{key}.sizes = [] is not allowed: it needs at least one list, for the first bet of a street")
    for name, texts in (("first", table.first), ("later", table.later), ("donk", table.donk)):
        for text in texts or ():
            parse_size(text, f"{key}.{name}")
    for bets, texts in enumerate(table.sizes or ()):
        for text in texts:
            parse_size(text, f"{key}.sizes[{bets}]")
    if table.allin_spr is not None and not 0 <= table.allin_spr < inf:
        raise ValueError(f"{key}.allin_spr = {table.allin_spr} is not allowed: it must be at least 0")
    if table.max_bets is not None and table.max_bets < 0:
        raise ValueError(f"{key}.max_bets = {table.max_bets} is not allowed: it must be at least 0")
    if table.allin_threshold is not None:
        problem = share_problem(table.allin_threshold)
        if problem or not 0 < share_of(table.allin_threshold) <= 1:
            raise ValueError(
                f"{key}.allin_threshold = {table.allin_threshold!r} is not allowed: it must be "
                f"{problem or 'above 0% and at most 100%'}"
            )
