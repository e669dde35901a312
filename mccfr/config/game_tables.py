"""The `[game]` table of each game, as frozen structs with the defaults of all keys."""

from collections.abc import Mapping, Sequence
from typing import Annotated, ClassVar, Literal

import msgspec

from mccfr.config.table_base import Above0, Check, Table
from mccfr.config.value_limits import share_of, share_problem

Players = Annotated[int, msgspec.Meta(ge=2, le=5)]


class GameConfig(Table, frozen=True, tag_field="name"):
    """Base class of `[game]` tables; the key `name` selects the subclass, such as `LeducGame`."""

    file_keys: ClassVar[tuple[str, ...]] = ()
    """Keys that name files, relative to the configuration; a run keeps copies of the files."""


class OpaqueGame(GameConfig, frozen=True, tag="opaque"):
    """Stand-in for the `[game]` table of a user's own game that was not imported.

    named  its name in the configuration, `module:object`
    """

    named: str = ""


class KuhnGame(GameConfig, frozen=True, tag="kuhn"):
    """Kuhn poker: one card more than players, ante 1, one bet of 1."""

    players: Players = 2


class LeducGame(GameConfig, frozen=True, tag="leduc"):
    """Leduc poker: one hole card, one board card, two rounds; a raise adds one of the round's sizes."""

    players: Players = 2
    ranks: int | None = None  # None: one more than players
    suits: int = 2
    raises: int = 2  # most bets and raises in a round
    bets: Sequence[Sequence[float]] = ((2.0,), (4.0,))  # sizes of a raise in chips, for each of the two rounds
    merge_suits: bool = False  # True: isomorphic hands share an infoset (288 instead of 936)


class GoofspielGame(GameConfig, frozen=True, tag="goofspiel"):
    """Goofspiel: prizes in ascending order, equal bids split the prize, payoff = difference of the totals."""

    cards: int = 5
    reveal: Literal["bids", "result"] = "bids"  # shown after a round: both bids, or only the winner


class MatrixGame(GameConfig, frozen=True, tag="matrix"):
    """A two-player zero-sum matrix game with simultaneous moves."""

    payoffs: Sequence[Sequence[float]]  # payoffs of player 0, the row player, one list for each row


class PlayerMenu(Table, frozen=True):
    """Bet sizes that the game allows one player on one street, table `[game.menu.flop.button]` or others.

    Keys that are not set have the values of the street.
    """

    first: Sequence[str] | None = None  # sizes of a street's first bet; preflop, of the first raise
    later: Sequence[str] | None = None  # sizes of later raises
    sizes: Sequence[Sequence[str]] | None = None  # instead: sizes after no bet, one bet, ...; the last also later
    max_bets: int | None = None  # most bets on a street that are not all-in, the big blind included; None: any number
    allin_threshold: str | float | None = None  # "67%": sizes above this share of the stack become all-in; None: none
    allin_spr: float | None = None  # sizes that leave at most this stack-to-pot ratio after a call become all-in
    donk: Sequence[str] | None = None  # first bet into the last bettor of the street before; None: as any first bet


class StreetMenu(PlayerMenu, frozen=True):
    """Bet sizes that the game allows on one street, table `[game.menu.STREET]`.

    Keys that are not set have the values of `[game.menu]`, for all streets. Each position can have bet sizes of its
    own.
    """

    small_blind: PlayerMenu | None = None  # with three and more seats; with two the button has the small blind
    big_blind: PlayerMenu | None = None
    under_the_gun: PlayerMenu | None = None  # with six seats
    hijack: PlayerMenu | None = None  # with five and six seats
    cutoff: PlayerMenu | None = None  # with four and more seats
    button: PlayerMenu | None = None


class Menu(PlayerMenu, frozen=True):
    """Action abstraction `[game.menu]`: texts of the bet sizes to offer, such as "0.5p" (half the pot).

    mccfr/games/menu.py lists all units in which sizes may be given.
    """

    first: Sequence[str] = ("0.5p", "1p", "allin")
    later: Sequence[str] = ("1p", "allin")
    add: Sequence[str] = ()  # lines ending in a bet that the sizes lack, such as "b300c/b400"
    remove: Sequence[str] = ()  # lines whose last bet is left out
    limp: bool | Literal["small_blind"] = True  # False: no call of the big blind; or only by the small blind
    preflop: StreetMenu | None = None
    flop: StreetMenu | None = None
    turn: StreetMenu | None = None
    river: StreetMenu | None = None


class PokerGame(GameConfig, frozen=True, tag="poker"):
    """Poker on a small deck with the ACPC dealer's rules: limit, or no-limit with all bet sizes or a menu.

    The key `menu` lists the bet sizes that are allowed. With more than two seats, a pot of whole chips is shared in
    whole chips.
    """

    ranks: int = 3
    suits: int = 2
    hole_cards: Literal[1, 2] = 1
    board_cards: Sequence[int] = (0, 1)  # cards dealt to the board on each street
    blinds: Sequence[float] = ()  # by seat: [2, 1] = seat 0 posts 2; two seats have either blinds or antes
    antes: Sequence[float] = ()  # beside blinds: of all seats, or of one seat for all, which is no bet
    stack: float | Sequence[float] = 5.0  # chips of each seat, or by seat
    raise_sizes: Sequence[float] = ()  # limit: size of a raise on each street; none: no-limit
    max_raises: Sequence[int] = ()  # most raises on each street; required for limit; no-limit without it: any number
    menu: Menu | None = None  # no-limit: bet sizes; None: every whole amount
    first_player: Sequence[int] = ()  # seat (from 1 on) to act first on each street; default 1 everywhere
    merge_suits: bool = False


class AkqGame(GameConfig, frozen=True, tag="akq"):
    """Half-street AKQ game: three cards; the first player bets or checks, the second answers a bet."""


class ClairvoyanceGame(GameConfig, frozen=True, tag="clairvoyance"):
    """Clairvoyance: the bettor knows who wins and may bet a fixed fraction of the pot on each street."""

    streets: int = 1
    bet: float = 1.0  # fraction of the pot
    probability: float = 0.5  # probability that the bettor holds the nuts


class HoldemTable(GameConfig, frozen=True):
    """Keys shared by the no-limit hold'em games, which allow a chosen set of bet sizes only."""

    locks: Mapping[str, str] | None = None  # node locks: fixed strategies by line (mccfr/games/locks.py)


class HoldemSubgame(HoldemTable, frozen=True, tag="holdem-subgame"):
    """A postflop no-limit hold'em spot: its board, ranges, pot and stacks.

    A spot is a game that begins on a given board, with the hands (ranges) that both players can have there. Instead of
    these keys, `file` may name an endgame in the format of the LibratusEndgames data.
    """

    file_keys: ClassVar[tuple[str, ...]] = ("file",)

    file: str | None = None
    stack: float | None = None  # with file: chips of each player in the whole hand, half the pot included; None: 20000
    board: str | None = None  # "QsJh2h": three to five cards
    ranges: Mapping[str, str | Sequence[float]] | None = None
    """Ranges out of and in position: texts such as "QQ+,AKs:0.5", "@FILE", or 169 or 1,326 numbers."""
    pot: Above0 | None = None  # chips, half of them from each player
    effective_stack: Above0 | None = None  # chips that each player has left to bet
    big_blind: Above0 | None = None  # chips; the minimum bet; None: 1, with a file 100
    rake: str | float = "0%"  # share of the pot taken from its winner
    rake_cap: Above0 | None = None  # chips; the most taken from one pot; None: unlimited
    menu: Menu = Menu()  # sizes of the discounting paper, any number of bets

    def checks(self) -> list[Check]:
        """Return (key, True if valid, allowed values as text) for each rule on the keys.

        Either `file` must be given, or board, ranges, pot and effective_stack.
        """
        spot = ("board", "ranges", "pot", "effective_stack")
        typed = any(getattr(self, key) is not None for key in spot)
        unfit = share_problem(self.rake, 0, 1)
        from_file = self.file is not None
        reason = "left out beside game.board: effective_stack counts chips behind"
        return [
            ("file", not (from_file and typed), "left out where game.board, ranges, pot or effective_stack is given"),
            ("stack", self.stack is None or not typed, reason),
            *((key, from_file or getattr(self, key) is not None, "given, or game.file instead") for key in spot),
            ("ranges", self.ranges is None or {*self.ranges} == {"oop", "ip"}, "the ranges of oop and ip"),
            ("rake", unfit is None, unfit or ""),
            (
                "rake_cap",
                self.rake_cap is None or unfit is not None or share_of(self.rake) > 0,
                "left out without game.rake, which it limits",
            ),
        ]


class HoldemGame(HoldemTable, frozen=True, tag="holdem"):
    """Full no-limit hold'em for two to six seats: four streets, 52 cards, with an `[abstraction]`."""

    seats: Annotated[int, msgspec.Meta(ge=2, le=6)] = 2
    stack: float = 20000.0  # chips of each player
    stacks: Sequence[Above0] = ()  # instead of stack with three and more seats, from the small blind to the button
    blinds: Sequence[float] = (50.0, 100.0)  # small blind (of two players the button's) and big blind
    ante: float = 0.0  # of each player
    big_blind_ante: Annotated[float, msgspec.Meta(ge=0)] = 0.0  # instead: the big blind's for all, which is no bet
    rake: str | float = "0%"  # share of the pot taken from its winner, if the hand has a flop
    rake_cap: Above0 | None = None  # chips; the most taken from one hand; None: unlimited
    flop_players: Annotated[int, msgspec.Meta(ge=2)] | None = None  # most players with chips who see a flop; None: all
    menu: Menu = Menu()

    def checks(self) -> list[Check]:
        """Return (key, True if valid, allowed values as text) for each rule on the keys.

        Many rules say which keys must be left out with two seats, or with three and more.
        """
        unfit, seats = share_problem(self.rake, 0, 1), self.seats
        where = "with two seats, where it has no meaning yet"
        return [
            *self.unused(seats == 2, "with two seats, which play for the smaller stack: give it as stack", "stacks"),
            ("stacks", len(self.stacks) in (0, seats), f"one amount for each of {seats} seats"),
            *self.unused(bool(self.stacks), "where game.stacks is given", "stack"),
            *self.unused(seats == 2, where, "big_blind_ante", "rake", "rake_cap", "flop_players"),
            *self.unused(self.big_blind_ante > 0, "where game.big_blind_ante is given", "ante"),
            ("rake", unfit is None, unfit or ""),
            *self.unused(not unfit and share_of(self.rake) == 0, "without game.rake, which it limits", "rake_cap"),
            ("flop_players", (self.flop_players or 2) < seats or seats == 2, f"2 to {seats - 1} of {seats} players"),
            ("locks", seats == 2 or not self.locks, "left out with three and more seats"),
        ]


class LimitHoldemGame(GameConfig, frozen=True, tag="limit-holdem"):
    """Heads-up limit hold'em: four bets a street, small before the turn; needs `[abstraction]`."""

    blinds: Sequence[float] = (5.0, 10.0)  # small blind (the button's) and big blind, which is the small bet


class FlopHoldemGame(GameConfig, frozen=True, tag="flop-holdem"):
    """Hold'em that ends after the flop, blinds 50 and 100, lossless without an `[abstraction]`.

    Lossless means that only hands that are equal up to suits share a bucket. This is the game of the Deep CFR papers.
    """

    bet: float | Literal["pot"] = 100.0  # size of every bet and raise in chips; "pot": the pot after a call
    limp: bool = True  # False: the button's first action preflop cannot be a call
    max_raises: int | Sequence[int] = 3  # most bets and raises on a street, without blinds; or one number for each
    board_cards: Literal[3, 5] = 3  # cards of the second street; 5: the whole board at once


class OpenSpielGame(GameConfig, frozen=True, tag="openspiel"):
    """A game imported from OpenSpiel: two players, zero sum, turn-based, perfect recall."""

    game: str


GAMES: dict[str, type[GameConfig]] = {
    str(kind.__struct_config__.tag): kind
    for kind in (
        KuhnGame,
        LeducGame,
        GoofspielGame,
        MatrixGame,
        PokerGame,
        AkqGame,
        ClairvoyanceGame,
        HoldemSubgame,
        HoldemGame,
        LimitHoldemGame,
        FlopHoldemGame,
        OpenSpielGame,
    )
}
"""The `[game]` struct of each built-in game; `mccfr.config.plugin_tables` has those of users' games."""
