"""The `[game]` table of each game, as frozen structs: one default for each key, in one place, here."""

from collections.abc import Mapping, Sequence
from typing import ClassVar, Literal

from mccfr.config.table import Check, Table


class GameConfig(Table, frozen=True, tag_field="name"):
    """A `[game]` table: `name` chooses which of the following it is (`GAMES` lists them)."""

    file_keys: ClassVar[tuple[str, ...]] = ()
    """Keys that name files the game is made from, relative to the configuration: a run keeps copies of them."""


class OpaqueGame(GameConfig, frozen=True, tag="opaque"):
    """A game that is made by code which was not imported; `named`: by what the configuration says."""

    named: str = ""


class KuhnGame(GameConfig, frozen=True, tag="kuhn"):
    """Kuhn poker: three cards, ante 1, one bet of 1."""


class LeducGame(GameConfig, frozen=True, tag="leduc"):
    """Leduc poker: one hole card, one board card, two rounds; a raise is a call plus one of the round's sizes."""

    ranks: int = 3
    suits: int = 2
    raises: int = 2  # bets and raises in a round, at most
    bets: Sequence[Sequence[float]] = ((2.0,), (4.0,))  # sizes of a raise in chips, for each of the two rounds
    merge_suits: bool = False  # True: hands alike but for a renaming of suits share an infoset (288 instead of 936)


class GoofspielGame(GameConfig, frozen=True, tag="goofspiel"):
    """Goofspiel: prizes in known order, equal bids split the prize, payoff = difference of the totals."""

    cards: int = 5
    order: Literal["ascending", "descending"] = "ascending"
    reveal: Literal["bids", "result"] = "bids"  # what both see after a round: the bids, or only who won


class MatrixGame(GameConfig, frozen=True, tag="matrix"):
    """A two-player zero-sum matrix game; both move at once."""

    payoffs: Sequence[Sequence[float]]  # payoff of the row player (player 0), one list for each row


class PlayerMenu(Table, frozen=True):
    """Bet sizes of one player on one street: `[game.menu.STREET.button]`.  An absent key is the street's."""

    first: Sequence[str] | None = None  # sizes of a street's first bet; preflop of the first raise
    later: Sequence[str] | None = None  # sizes of raises after it
    sizes: Sequence[Sequence[str]] | None = None  # instead: a list for no bet so far, one bet, ...; the last goes on
    max_bets: int | None = None  # bets on a street that are not all-in, the big blind counted; None: any number
    allin_threshold: float | None = None  # a size above this share of the stack becomes all-in; None: none does
    allin_spr: float | None = None  # what leaves so many pots behind, or fewer, once it is called becomes all-in
    donk: Sequence[str] | None = None  # first bet into who bet last on the street before; None: as any first bet


class StreetMenu(PlayerMenu, frozen=True):
    """Bet sizes on one street: `[game.menu.STREET]`.  An absent key is the menu's."""

    big_blind: PlayerMenu | None = None  # position 0: first to act after the flop
    button: PlayerMenu | None = None


class Menu(PlayerMenu, frozen=True):
    """Action abstraction `[game.menu]`: which amounts may be raised to; mccfr/games/menu.py says how sizes are read."""

    first: Sequence[str] = ("0.5p", "1p", "allin")
    later: Sequence[str] = ("1p", "allin")
    add: Sequence[str] = ()  # lines that end in a bet which the sizes do not have, as "r300c/r700"
    remove: Sequence[str] = ()  # lines whose last bet is not offered
    limp: bool = True  # False: the button may not just call as its first action before the flop
    preflop: StreetMenu | None = None
    flop: StreetMenu | None = None
    turn: StreetMenu | None = None
    river: StreetMenu | None = None


class PokerGame(GameConfig, frozen=True, tag="poker"):
    """Small poker with the betting rules of the ACPC dealer: any deck; limit, or no-limit with all sizes or a menu."""

    ranks: int = 3
    suits: int = 2
    hole_cards: Literal[1, 2] = 1
    board_cards: Sequence[int] = (0, 1)  # cards dealt to the board on each street
    blinds: Sequence[float] = ()  # by seat: [2, 1] = seat 0 posts 2; this or antes
    antes: Sequence[float] = ()
    stack: float = 5.0
    limit: bool = False
    raise_sizes: Sequence[float] = ()  # limit only: size of a raise on each street
    max_raises: Sequence[int] = ()  # raises on each street, at most; limit needs it, no-limit without: any number
    menu: Menu | None = None  # no-limit: bet sizes; None: every whole amount
    first_player: Sequence[int] = ()  # seat (1 or 2) that acts first on each street; default 1 everywhere
    merge_suits: bool = False


class AkqGame(GameConfig, frozen=True, tag="akq"):
    """Half-street AKQ game: three cards, the first player bets or checks, the second may only answer a bet."""


class ClairvoyanceGame(GameConfig, frozen=True, tag="clairvoyance"):
    """The bettor knows whether he holds the nuts; the same pot fraction may be bet on each of n streets."""

    streets: int = 1
    bet: float = 1.0  # fraction of the pot
    probability: float = 0.5  # that the bettor holds the nuts


class SpotRanges(Table, frozen=True):
    """What both players may hold: a text such as "QQ+,AKs:0.5", "@FILE", or 169 or 1,326 numbers."""

    oop: str | Sequence[float]  # out of position, so first to act
    ip: str | Sequence[float]


class HoldemTable(GameConfig, frozen=True):
    """What hold'em games with bets of a menu have in common."""

    locks: Mapping[str, str] | None = None  # by line: what is played there and not learnt (mccfr/games/locks.py)


class HoldemSubgame(HoldemTable, frozen=True, tag="holdem-subgame"):
    """A no-limit hold'em spot after the flop: board, ranges, pot, stacks; or a file in the LibratusEndgames format."""

    file_keys: ClassVar[tuple[str, ...]] = ("file",)

    file: str | None = None
    stack: float | None = None  # with file: chips of each player in the whole hand, half the pot included; None: 20000
    board: str | None = None  # "QsJh2h": three to five cards
    ranges: SpotRanges | None = None
    pot: float | None = None  # chips, half of them from each player
    effective_stack: float | None = None  # chips that each player has behind
    big_blind: float | None = None  # chips; the least bet; None: 1, with a file 100
    rake: float = 0.0  # share of the pot that its winner does not get
    rake_cap: float | None = None  # chips; the most that is taken of a pot; None: any number
    menu: Menu = Menu()  # the discounting paper's sizes, any number of bets

    def checks(self) -> list[Check]:
        """As `Table.checks`."""
        spot = ("board", "ranges", "pot", "effective_stack")
        typed = any(getattr(self, key) is not None for key in spot)
        known, behind = self.file is not None, "left out beside game.board: effective_stack counts chips behind"
        return [
            ("file", not (known and typed), "left out where game.board, ranges, pot or effective_stack is given"),
            ("stack", self.stack is None or not typed, behind),
            *((key, known or getattr(self, key) is not None, "given, or game.file in place of a spot") for key in spot),
            *((key, (getattr(self, key) or 1) > 0, "above 0") for key in ("pot", "effective_stack", "big_blind")),
            *((key, getattr(self, key) != 0, "above 0") for key in ("pot", "effective_stack", "big_blind")),
            ("rake", 0 <= self.rake < 1, "at least 0, and below 1"),
            ("rake_cap", self.rake_cap is None or self.rake_cap > 0, "above 0"),
            ("rake_cap", self.rake_cap is None or self.rake > 0, "left out without game.rake, which it limits"),
        ]


class HoldemGame(HoldemTable, frozen=True, tag="holdem"):
    """Full heads-up no-limit hold'em: four streets, 52 cards; `[abstraction]` says which hands share a bucket."""

    stack: float = 20000.0  # chips of each player
    blinds: Sequence[float] = (50.0, 100.0)  # small (the button's) and big
    ante: float = 0.0  # of each player
    menu: Menu = Menu()


class LimitHoldemGame(GameConfig, frozen=True, tag="limit-holdem"):
    """Heads-up limit hold'em: four bets a street, small ones before and on the flop; on an `[abstraction]`."""

    blinds: Sequence[float] = (5.0, 10.0)  # small (the button's) and big, which is the small bet


class FlopHoldemGame(GameConfig, frozen=True, tag="flop-holdem"):
    """Hold'em of blinds 50 and 100 that ends after the flop (Deep CFR papers); lossless without `[abstraction]`."""

    bet: float | Literal["pot"] = 100.0  # size of every bet and raise; "pot": what lies there once it is called
    limp: bool = True  # False: the button may not just call as his first action before the flop
    max_raises: int | Sequence[int] = 3  # bets and raises on a street, at most, besides the blinds; or one for each
    board_cards: Literal[3, 5] = 3  # cards of the flop; 5: a whole board at once


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
"""The `[game]` table of each game of the package; `mccfr.config.made` has those of users' games."""
