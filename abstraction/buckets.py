"""Reads a built abstraction: the bucket of each hand, and the statistics of the buckets.

An abstraction is a directory with a folder for each street, whose checkpoint holds the street's buckets.  HS is a
hand's equity against a random opponent hand on the river.  E[HS] and E[HS²] are the means of HS and of its square over
the cards to come.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from abstraction.boards import STREET_CARDS, board_tables, check_board, locate_board
from abstraction.cards import cards_text, combo_index, parse_cards
from abstraction.lookup import NO_BUCKET
from abstraction.recall_buckets import Table, remembered
from abstraction.recipe import STREETS
from abstraction.small_deck_hands import DeckListing
from storage.checkpoint import Checkpoint, list_checkpoints, verify
from storage.checksums import cells_checksum
from storage.damage import DamagedError
from storage.locked_checkpoints import lock_each, open_locked
from storage.manifest import content_hash

CELLS = "cells"
"""Field of a stage's state: {array: XXH3-128 of its cells}."""
HISTORY = "history"
"""Name of a stage's array that maps (bucket on the street before, percentile) to bucket, for perfect recall."""
_STREET_OF = {cards: street for street, cards in STREET_CARDS.items()}


def unused(dtype: np.dtype[Any]) -> int:
    """Return an integer dtype's largest value; in bucket tables it marks hands with a card of the board."""
    return int(np.iinfo(dtype).max)


def bucket_dtype(buckets: int) -> np.dtype[Any]:
    """Return the dtype of bucket tables: uint16 for fewer than 65,535 buckets, else uint32."""
    return np.dtype(np.uint16 if buckets < unused(np.dtype(np.uint16)) else np.uint32)


def is_abstraction(path: Path) -> bool:
    """Return whether a directory holds the buckets of at least an abstraction's first street."""
    return bool(list_checkpoints(Path(path) / STREETS[0]))


def is_built(path: Path) -> bool:
    """Return whether a directory holds the buckets of all streets of an abstraction.

    It opens each street's checkpoint, but does not check the buckets.  Raises `UnreadableError` if the operating system
    cannot read a file.
    """
    try:
        Abstraction(path)
    except ValueError:
        return False
    return True


@contextmanager
def _damage_is_bad_input() -> Iterator[None]:
    """Within a `with` block, convert errors about missing or damaged files to `ValueError`.

    They are input errors, because the user gave the path of the abstraction.
    """
    try:
        yield
    except (DamagedError, FileNotFoundError) as error:
        raise ValueError(f"{error}: build the abstraction again") from None


def _listing(stage: Checkpoint) -> DeckListing | None:
    """Return the `DeckListing` of a small deck's hands and boards, or None for hold'em's deck.

    stage  checkpoint with a street's buckets; its recipe (the settings of the build) states the deck

    Raises `ValueError` if the recipe states an invalid deck.
    """
    recipe = stage.identity.get("recipe")
    deck = recipe.get("deck") if isinstance(recipe, dict) else None
    if deck is None:
        return None
    try:
        return DeckListing(deck["ranks"], deck["suits"], deck["hole_cards"], tuple(deck["board_cards"]))
    except (KeyError, TypeError) as error:
        raise ValueError(f"{stage.path}: it states the deck {deck!r}: build the abstraction again") from error


def stated_cells(stage: Checkpoint) -> dict[str, Any]:
    """Return {array name: XXH3-128 of its cells, in hexadecimal} from a checkpoint's state.json.

    stage  checkpoint with the buckets of one street

    Raises `ValueError` if state.json has no such dictionary.
    """
    checksums = stage.state.get(CELLS)
    if not isinstance(checksums, dict):
        raise ValueError(f"{stage.path}: state.json states {checksums!r} as {CELLS}: build the abstraction again")
    return checksums


class Abstraction:
    """A built abstraction: gives the bucket of each hand and the statistics saved in its directory.

    A street's buckets are read and verified on first use.

    Raises `ValueError` if files are missing or damaged, and `UnreadableError` if the operating system cannot read them.
    """

    def __init__(self, path: Path) -> None:
        self.path = Path(path)
        first = self._open(STREETS[0])
        self.listing = _listing(first)
        """Hands and boards of a small deck; None for hold'em's deck."""
        streets = STREETS if self.listing is None else STREETS[: self.listing.streets]
        self.stages = {STREETS[0]: first, **{street: self._open(street) for street in streets[1:]}}
        """Checkpoint of each street."""
        self._buckets: dict[str, NDArray[Any]] = {}

    def _open(self, street: str) -> Checkpoint:
        with _damage_is_bad_input():
            stage = open_locked(self.path / street)
        if stage is None:
            raise ValueError(f"{self.path} has no buckets for the {street}: build it with mccfr abstraction build")
        return stage

    def _read(self, street: str, name: str, out: NDArray[Any] | None = None) -> NDArray[Any]:
        stage = self.stages[street]
        with _damage_is_bad_input():
            if out is None:
                out = stage.read(name)
            else:
                stage.read_into(name, out)
        if stated_cells(stage).get(name) != cells_checksum(out):
            raise ValueError(f"{stage.path}: array {name!r} holds other cells than state.json states: build it again")
        return out

    @property
    def streets(self) -> tuple[str, ...]:
        """Names of the abstraction's streets, in the order of play from "preflop" on."""
        return tuple(self.stages)

    def bucket_counts(self) -> dict[str, int]:
        """Return {street: number of buckets}."""
        return {street: self._count(street, stage) for street, stage in self.stages.items()}

    def _count(self, street: str, stage: Checkpoint) -> int:
        bucket_count = stage.state.get("buckets")
        if type(bucket_count) is not int or not 1 <= bucket_count < 2**31:
            raise ValueError(f"{stage.path}: state.json states {bucket_count!r} buckets: build the abstraction again")
        return bucket_count

    def content_hashes(self) -> dict[str, str]:
        """Return {street: hexadecimal SHA-256 of its arrays}; equal arrays give equal hashes."""
        return {street: self._content_hash(stage) for street, stage in self.stages.items()}

    def _content_hash(self, stage: Checkpoint) -> str:
        cells = stated_cells(stage)
        return content_hash({spec.name: [spec.shape, spec.dtype, cells.get(spec.name)] for spec in stage.specs})

    def check_cells(self) -> None:
        """Read all arrays of all streets; raise `ValueError` if one does not match its saved checksum."""
        for street, stage in self.stages.items():
            for spec in stage.specs:
                self._read(street, spec.name)

    def origin(self) -> dict[str, Any]:
        """Return a JSON document that identifies the buckets, to store with results that use them.

        It is {"content_hash": hash over all streets, "streets": {street: values}}.  The values are a dictionary with
        "content_hash" of the street, "buckets" (their number) and "recipe", the settings of the build.
        """
        hashes, counts = self.content_hashes(), self.bucket_counts()
        streets = {
            street: {"content_hash": hashes[street], "buckets": counts[street], "recipe": stage.identity["recipe"]}
            for street, stage in self.stages.items()
        }
        return {"content_hash": content_hash(hashes), "streets": streets}

    def table(self, street: str, out: NDArray[Any] | None = None) -> NDArray[Any]:
        """Return the bucket of each hand on each canonical board, [boards, 1326] uint16 or uint32.

        A canonical board stands for all boards that differ only by a permutation of suits.  A hand that shares a card
        with the board has the dtype's largest value.  On a street with a `history` the entries are not buckets but
        percentiles of E[HS] or E[HS²], which the history maps to buckets.  For a small deck the table is [boards,
        hands], in the order in which the attribute `listing` lists boards and hands.

        out  array to read the table into; None: a table that is kept for the next call

        Raises `ValueError` if the file is damaged, or `out` has another shape or dtype.
        """
        if out is not None:
            return self._read(street, "bucket", out)
        if street not in self._buckets:
            self._buckets[street] = self._read(street, "bucket")
        return self._buckets[street]

    def history(self, street: str) -> Table:
        """Return the map from percentiles to buckets, [buckets before, percentiles] int32, or None.

        Its row is the hand's bucket on the street before.  A percentile is a hand's entry in the street's `table`: 0 to
        `percentiles` − 1, by E[HS] or E[HS²] among all hands of the street.  None: `table` itself holds the buckets.
        """
        return None if self.percentiles(street) is None else self._read(street, HISTORY)

    def percentiles(self, street: str) -> int | None:
        """Return the number of percentiles in the street's table; None if the table holds buckets.

        Percentiles divide the street's hands by E[HS] or E[HS²]; `history` maps them to buckets.
        """
        shapes = {spec.name: spec.shape for spec in self.stages[street].specs}
        return shapes[HISTORY][1] if HISTORY in shapes else None

    def row(self, board: Sequence[int]) -> NDArray[np.int32]:
        """Return the bucket of each combination of hole cards on a hold'em board, [1326] int32.

        board  0, 3, 4 or 5 card numbers in order of dealing

        Combinations that share a card with the board have −1.
        """
        street = _STREET_OF[len(board)]
        streets = (street,) if self.percentiles(street) is None else STREETS[: STREETS.index(street) + 1]
        rows = [self._table_row(each, board[: STREET_CARDS[each]]) for each in streets]
        return remembered([self.history(each) for each in streets], rows)[-1]

    def _table_row(self, street: str, board: Sequence[int]) -> NDArray[np.int32]:
        table = self.table(street)
        if not board:
            return table[0].astype(np.int32)
        index, permutation = locate_board(board)
        buckets = table[index, board_tables().hole_permutation[permutation]]
        return np.where(buckets == unused(table.dtype), NO_BUCKET, buckets.astype(np.int64)).astype(np.int32)

    def bucket(self, hand: Sequence[int], board: Sequence[int] = ()) -> tuple[str, int]:
        """Return (name of the street, bucket) of hole cards on a board.

        hand   numbers of the hole cards, in any order
        board  numbers of the board cards, in order of dealing; their count determines the street

        A card of the full deck is 4·rank + suit (0 is 2c, 51 is As).  A card of a small deck is (number of
        suits)·rank + suit.  On a board of a small deck, cards that are dealt together must be in ascending order.

        Raises `ValueError` for a wrong number of cards, an unknown card, a card twice, or a small deck's board in
        another order.  Raises it too if the files are damaged.
        """
        if self.listing is not None:
            return self._listed_bucket(self.listing, hand, board)
        if len(hand) != 2:
            raise ValueError(f"the hand {cards_text(hand)} has {len(hand)} cards: two are needed")
        if board:
            check_board(board)
        if len({*hand, *board}) < len(hand) + len(board):
            raise ValueError(f"hand {cards_text(hand)} and board {cards_text(board)} hold a card twice")
        return _STREET_OF[len(board)], int(self.row(board)[combo_index(*hand)])

    def _listed_bucket(self, listing: DeckListing, hand: Sequence[int], board: Sequence[int]) -> tuple[str, int]:
        dealt = {listing.cards_on(street): street for street in reversed(range(listing.streets))}
        if len(hand) != listing.hole_cards or len(board) not in dealt:
            sizes = ", ".join(map(str, sorted(dealt)))
            raise ValueError(
                f"a hand of {len(hand)} cards on a board of {len(board)}: hands have {listing.hole_cards} cards, and "
                f"boards {sizes}"
            )
        street = dealt[len(board)]
        hand_cards = sorted(hand) + [-1] * (2 - len(hand))
        row = np.flatnonzero((np.sort(listing.hands, axis=1) == np.sort(hand_cards)).all(axis=1))
        board_row = np.flatnonzero((listing.boards[street] == list(board)).all(axis=1))
        if not len(row) or not len(board_row) or set(hand) & set(board):
            raise ValueError("hand and board must be cards of the deck, each once, and a flop's in ascending order")
        return STREETS[street], int(self.table(STREETS[street])[board_row[0], row[0]])

    def bucket_of_text(self, hand: str, board: str = "") -> dict[str, Any]:
        """Return a dictionary of a hand's street, its bucket, and the name of the features used.

        hand   text of the hole cards, such as "AsKd"
        board  text of the board in order of dealing, such as "Qs7h2d"

        The street's hands are put into buckets by features, such as "histogram".  The result has the keys "street",
        "bucket" and "features", as `mccfr abstraction bucket` prints them.
        """
        parse = parse_cards if self.listing is None else self.listing.parse
        street, bucket = self.bucket(parse(hand), parse(board))
        return {"street": street, "bucket": bucket, "features": self.stages[street].identity["recipe"]["features"]}

    def sizes(self, street: str) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Return each bucket's number of hands, [K] int64, and their mean equity, [K] float64.

        A hand counts once for each dealt board.  The equity is the mean of E[HS], 0 to 1.  On a street with a `history`
        both are per percentile of the table instead of per bucket.

        Raises `ValueError` if the files are damaged.
        """
        return self._read(street, "hands"), self._read(street, "equity")

    def info(self) -> dict[str, Any]:
        """Return {street: {name: value}}, each street's settings and the statistics of its buckets.

        In each street's dictionary the key "recipe" holds {name: setting} of the build.  Its other keys are results of
        the build, such as "buckets" (their number) and "equity_spread".
        """
        return {street: {"recipe": stage.identity["recipe"], **stage.state} for street, stage in self.stages.items()}


def verify_abstraction(path: Path) -> list[str]:
    """Check every byte of an abstraction; return a list with a sentence for each problem.

    path  directory of the abstraction

    Raises `UnreadableError` if the operating system cannot read a file.
    """
    problems: list[str] = []
    try:
        first = open_locked(path / STREETS[0])
        listing = None if first is None else _listing(first)
    except (DamagedError, ValueError):
        listing = None  # the loop below reports the damage
    streets = STREETS if listing is None else STREETS[: listing.streets]
    for street in streets:
        if not list_checkpoints(path / street):
            problems.append(f"{street}: not built")
        for lock in lock_each(path / street):
            stage_problems = verify(lock.path)
            if lock.is_in_place():
                problems += [f"{street}/{problem}" for problem in stage_problems]
    if not problems:
        try:
            Abstraction(path).check_cells()
        except ValueError as error:
            problems.append(str(error))
    return problems
