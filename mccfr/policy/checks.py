"""Validates the content of a policy directory when it is opened.

Checksums detect damage but not wrong content.  The checks here compare all numbers that index other arrays with the
sizes of these arrays.  The functions `check_...` raise `ValueError` with the file's name and the problem.
"""

from collections.abc import Mapping
from math import comb, isfinite
from typing import Annotated, Any, Literal

import msgspec
import numpy as np
import numpy.typing as npt

from abstraction.boards import BOARD_COUNTS
from abstraction.cards import CARD_COUNT, COMBO_COUNT
from mccfr.cards.card_lists import ListedCards, joint_weight
from mccfr.cards.deals import NO_BUCKET
from mccfr.games.betting import MOST_SEATS
from mccfr.policy.policy_deck import holds_card
from mccfr.policy.policy_layout import impossible
from mccfr.policy.quantise import TOTALS
from mccfr.policy.row_checksums import ROW_CHECKSUMS_FILE, RowChecksumFields
from mccfr.trees.compiled import CHANCE, DECISION, NO_PARENT, NO_PLAYER, NO_SLOT, TERMINAL, CompiledTree, Pots
from storage.compressed_rows import PackedRows
from storage.threads import ordered

_PROBABILITY_TOLERANCE = 1e-6  # of the sum over the outcomes of a chance node
_PIECE_CELLS = 1 << 22  # cells of a table that one thread checks at a time
_PIECE_BOARDS = 1 << 8  # boards of a bucket table at a time, so that the rows of 1,326 buckets stay in the cache
_BOARDS_AT_ONCE = 8 * _PIECE_BOARDS
_Count = Annotated[int, msgspec.Meta(ge=0, lt=2**40)]


class BlockFields(msgspec.Struct, frozen=True):
    """An entry of `blocks` in meta.json: the two tables of one street and player (numbers from 0).

    buckets              length of the first axis of both tables
    rows                 length of the second axis of the weights: one row for each decision
    slots                length of the second axis of the probabilities: one slot for each action of each row
    probability, weight  file names of the two tables; None if the block has no rows
    """

    street: int
    player: int
    buckets: Annotated[int, msgspec.Meta(ge=1, lt=2**31)]
    rows: _Count
    slots: _Count
    probability: str | None
    weight: str | None


class Quantisation(msgspec.Struct, frozen=True):
    """`quantisation` in meta.json: dtype of the stored probabilities, and their integer sum in an infoset.

    A probability is the stored integer divided by `total`.
    """

    dtype: Literal["uint8", "uint16"]
    total: int


class BucketTable(msgspec.Struct, frozen=True):
    """An entry of `bucket_tables` in meta.json: a street's table of hands' buckets.

    impossible  number that marks impossible hands in the table, such as those that share a card with the board
    """

    file: str
    dtype: Literal["uint8", "uint16", "uint32"]
    impossible: int


class StreetOrigin(msgspec.Struct, frozen=True):
    """Origin of one street's card abstraction, an entry of `abstraction.streets` in meta.json.

    content_hash  SHA-256 (hexadecimal) of shape, dtype and cells of the street's bucket arrays
    buckets       number of buckets
    recipe        settings with which the buckets were built, by name
    """

    content_hash: str
    buckets: _Count
    recipe: dict[str, Any]


class Origin(msgspec.Struct, frozen=True):
    """`abstraction` in meta.json: hash of the whole card abstraction, and origin of each street.

    streets  {street: its entry}
    """

    content_hash: str
    streets: dict[str, StreetOrigin]


class RakeFields(msgspec.Struct, frozen=True):
    """`rake` in meta.json: the share of a pot (between 0 and 1), and the most chips taken (None: no cap)."""

    share: Annotated[float, msgspec.Meta(gt=0, lt=1)]
    cap: Annotated[float, msgspec.Meta(gt=0)] | None


class Provenance(msgspec.Struct, frozen=True):
    """`provenance` in meta.json: number of the exported checkpoint, and training done until then.

    nodes_touched  tree nodes visited by all traversals since the run began
    iterations     iterations done since the run began

    The fields are None if the policy is not from a run.
    """

    nodes_touched: _Count | None = None
    iterations: _Count | None = None
    checkpoint: _Count | None = None


class MetaFields(msgspec.Struct, frozen=True):
    """The fields of meta.json that are needed to read a policy.

    `pot_chips` is the pot at the tree's root. Reports add `offset_chips` to player 0's value (`Game`).
    """

    name: str
    big_blind_chips: float | None
    pot_chips: float
    offset_chips: float
    streets: Annotated[int, msgspec.Meta(ge=1, le=63)]  # blocks are numbered in int8
    blocks: list[BlockFields]
    quantisation: Quantisation
    provenance: Provenance
    game: dict[str, Any]
    bucket_tables: list[BucketTable]
    row_checksums: RowChecksumFields
    board_cards: list[int] | None = None
    abstraction: Origin | None = None
    rake: RakeFields | None = None

    @property
    def tables(self) -> set[str]:
        """Return the names of the files of probabilities and weights."""
        names = (name for block in self.blocks for name in (block.probability, block.weight))
        return {name for name in names if name is not None}


def check_meta(meta: Mapping[str, Any]) -> MetaFields:
    """Validate the document of a meta.json and return its fields.

    Raises `ValueError` if a field is missing, of another type or out of range.
    """
    try:
        fields = msgspec.convert(dict(meta), MetaFields)
    except msgspec.ValidationError as error:
        raise ValueError(f"meta.json: {str(error).replace('`', '')}") from None
    _check_tables(fields)
    for value in (fields.pot_chips, fields.offset_chips, fields.big_blind_chips or 1.0):
        _require(isfinite(value), "meta.json", f"states {value} chips")
    _require(fields.pot_chips > 0, "meta.json", f"states a pot of {fields.pot_chips} chips")
    quantised = fields.quantisation
    known = TOTALS[quantised.dtype] == quantised.total
    _require(known, "meta.json", f"has a quantisation of {quantised.dtype} with the total {quantised.total}")
    players = len(fields.blocks) // fields.streets
    whole = len(fields.blocks) == players * fields.streets and 2 <= players <= MOST_SEATS
    _require(whole, "meta.json", f"has {len(fields.blocks)} blocks")
    for number, block in enumerate(fields.blocks):
        placed = (block.street, block.player) == divmod(number, players)
        _require(placed, "meta.json", f"has block {number} out of order")
        named = (block.probability is not None, block.weight is not None, block.slots > 0)
        _require(set(named) == {block.rows > 0}, "meta.json", f"has rows without tables, or tables without, in {block}")
    return fields


def _check_tables(fields: MetaFields) -> None:
    """Check meta.json's fields on bucket tables, row checksums and the abstraction.

    The number that marks impossible hands must be the largest of a table's dtype. Raises `ValueError`.
    """
    found, checksums = fields.bucket_tables, fields.row_checksums
    _require(checksums.file == ROW_CHECKSUMS_FILE, "meta.json", f"names the row checksums {checksums.file}")
    _require(len(found) in (0, fields.streets), "meta.json", f"has {len(found)} bucket_tables")
    for table in found:
        mark = impossible(np.dtype(table.dtype))
        _require(table.impossible == mark, "meta.json", f"marks impossible hands in {table.file} by {table.impossible}")
    if fields.abstraction is not None and fields.board_cards:
        made = {origin.buckets for origin in fields.abstraction.streets.values()}
        _require(
            {block.buckets for block in fields.blocks} <= made, "meta.json", "has other buckets than its abstraction"
        )


def _require(holds: Any, file: str, problem: str) -> None:
    if not holds:
        raise ValueError(f"{file} {problem}")


def _require_all(holds: npt.NDArray[np.bool_], file: str, problem: str) -> None:
    """Raise `ValueError` with the first index at which `holds` is False, if there is one.

    holds    result of a check for each entry of an array
    file     name of the array's file, with which the message begins
    problem  predicate of the message, such as "has an unknown kind"
    """
    if not holds.all():
        place = tuple(int(i) for i in np.argwhere(~holds)[0])
        raise ValueError(f"{file} {problem} at {place[0] if len(place) == 1 else place}")


# --- the tree ---


def check_tree(tree: CompiledTree) -> None:
    """Check that the arrays form a tree, and that its rows fill the tables of their blocks without gap.

    A block is the tables of one street and player.  A row is a decision there; nodes that the player cannot distinguish
    share it.  Raises `ValueError` with the file and the problem.
    """
    arrays, nodes = tree.arrays, len(tree.parent)
    _require(nodes > 0, "tree_kind.npy", "has no nodes")
    decision, inner = arrays.kind == DECISION, arrays.kind != TERMINAL
    _require_all(np.isin(arrays.kind, (DECISION, TERMINAL, CHANCE)), "tree_kind.npy", "has an unknown kind")
    _require_all((arrays.count > 0) == inner, "tree_count.npy", "has children of a terminal, or none of another node")
    _check_children(tree, np.flatnonzero(inner))
    players = tree.players
    acts = np.where(decision, np.isin(arrays.player, range(players)), arrays.player == NO_PLAYER)
    _require_all(acts, "tree_player.npy", "has a player out of range")
    street = arrays.block // players
    placed = (arrays.block % players == arrays.player) & (arrays.block >= 0) & (street < tree.streets)
    _require_all(np.where(decision, placed, arrays.block == -1), "tree_block.npy", "has a block out of range")
    above = tree.parent[1:]
    both = decision[1:] & decision[above]
    goes_on = np.isin(street[1:] - street[above], (0, 1)) | ~both
    _require_all(np.append(True, goes_on), "tree_block.npy", "has streets out of order")
    _require_all(np.isin(arrays.touched, (1, 2)), "tree_touched.npy", "has a number other than 1 and 2")
    for name in ("fixed", "showdown"):
        _require_all(np.isfinite(getattr(arrays, name)), f"tree_{name}.npy", "has a payoff that is not finite")
    if tree.put_in is not None:
        sound = np.isfinite(tree.put_in) & (tree.put_in >= 0)
        _require(sound.all(), "tree_put_in.npy", "has an amount of chips that is negative or not finite")
        kept = tree.put_in[1:] >= tree.put_in[above]
        _require(kept.all(), "tree_put_in.npy", "takes chips back")
    if tree.payoffs is not None:
        _require(np.isfinite(tree.payoffs).all(), "tree_payoffs.npy", "has a payoff that is not finite")
    if tree.pots is not None:
        _check_pots(tree, tree.pots)
    _check_chance(tree)
    for block in range(len(tree.row_slots)):
        _check_rows(tree, block)
    for name in ("slot", "row"):
        _require_all(decision | (getattr(arrays, name) == NO_SLOT), f"tree_{name}.npy", "has a row without a decision")


def _check_pots(tree: CompiledTree, pots: Pots) -> None:
    """Check that exactly the terminals have main and side pots, which players of the game can win.

    Raises `ValueError` otherwise, also for amounts of chips that are negative or not finite.
    """
    first, count = pots.first, np.diff(pots.first)
    _require(first[0] == 0 and first[-1] == len(pots.chips), "tree_pots_first.npy", "does not begin or end the pots")
    _require_all((count > 0) == (tree.arrays.kind == TERMINAL), "tree_pots_first.npy", "has pots beside the terminals'")
    _require((count >= 0).all(), "tree_pots_first.npy", "has pots that begin before others end")
    for name in ("chips", "dead"):
        values = getattr(pots, name)
        sound = np.isfinite(values) & (values >= 0)
        _require(sound.all(), f"tree_pots_{name}.npy", "has an amount of chips that is negative or not finite")
    among = (pots.contenders > 0) & (pots.contenders < 1 << tree.players)
    _require(among.all(), "tree_pots_contenders.npy", "has a pot without players, or with unknown ones")


def _check_children(tree: CompiledTree, inner: npt.NDArray[np.int64]) -> None:
    """Check that children are contiguous, follow their parents, and are all nodes but the root.

    Raises `ValueError` otherwise.

    inner  nodes that have children
    """
    arrays, nodes = tree.arrays, len(tree.parent)
    leaf = np.ones(nodes, bool)
    leaf[inner] = False
    _require_all(~leaf | (arrays.first == -1), "tree_first.npy", "has children of a terminal")
    order = inner[np.argsort(arrays.first[inner], kind="stable")]
    count = arrays.count[order].astype(np.int64)
    first = 1 + np.cumsum(count) - count
    _require(int(count.sum()) == nodes - 1, "tree_count.npy", f"has {int(count.sum())} children of {nodes} nodes")
    at = np.full(nodes, -1, np.int64)
    at[order] = first
    _require_all(at == arrays.first, "tree_first.npy", "has children that overlap or leave a gap")
    parent = np.full(nodes, NO_PARENT, np.int64)
    parent[1:] = np.repeat(order, count)
    _require_all(tree.parent == parent, "tree_parent.npy", "contradicts tree_first.npy and tree_count.npy")
    _require_all(parent < np.arange(nodes), "tree_first.npy", "has a child before its parent")


def _check_chance(tree: CompiledTree) -> None:
    arrays = tree.arrays
    share, below = arrays.probability, np.zeros(len(tree.parent), bool)
    below[1:] = arrays.kind[tree.parent[1:]] == CHANCE
    right = np.where(below, (share >= 0) & (share <= 1), share == 1)
    _require_all(right, "tree_probability.npy", "has a number that is no probability, or not 1 where nothing is drawn")
    sums = np.zeros(len(share))
    np.add.at(sums, tree.parent[below], share[below])
    whole = np.abs(sums - 1) <= _PROBABILITY_TOLERANCE
    _require_all(whole | (arrays.kind != CHANCE), "tree_probability.npy", "has outcomes that do not sum to 1")


def _check_rows(tree: CompiledTree, block: int) -> None:
    """Check that a block's rows fill its slots in order and nodes of a row have equally many actions.

    Raises `ValueError` otherwise.

    block  index of the tables of one street and player. A row is a decision there; a slot is one action of a row, a
           column of the table of probabilities
    """
    arrays, rows, slots = tree.arrays, int(tree.row_count[block]), int(tree.row_slots[block])
    nodes = np.flatnonzero(arrays.block == block)
    row, slot, count = (getattr(arrays, name)[nodes].astype(np.int64) for name in ("row", "slot", "count"))
    where = f"of street {block // tree.players}, player {block % tree.players}"
    _require(not len(nodes) or (row.min() >= 0 and row.max() < rows), "tree_row.npy", f"has a row {where} out of range")
    _require(rows <= len(nodes), "meta.json", f"states {rows} rows {where}, which has {len(nodes)} decisions")
    width = np.zeros(rows, np.int64)
    width[row] = count
    _require(width.all(), "tree_row.npy", f"leaves out a row {where}")
    _require((width[row] == count).all(), "tree_count.npy", f"has nodes of one row {where} with unlike actions")
    starts = np.cumsum(width) - width
    _require((slot == starts[row]).all(), "tree_slot.npy", f"has a slot {where} out of place")
    _require(int(width.sum()) == slots, "meta.json", f"states {slots} slots {where}; its actions are {width.sum()}")


# --- cards ---


def check_cards(cards: ListedCards) -> None:
    """Check the hands, boards and buckets of a game that lists its boards.

    Raises `ValueError` for an array of a wrong shape or dtype, or with numbers out of range.
    """
    hands = len(cards.hand_names)
    _require(hands > 0, "cards_hand_names.json", "has no hand")
    _shaped("cards_hand_cards.npy", cards.hand_cards, (hands, 2), np.int16)
    _in_range("cards_hand_cards.npy", cards.hand_cards, -1, CARD_COUNT)
    _shaped("cards_reach.npy", cards.reach, (2, hands), np.float64)
    weighed = np.isfinite(cards.reach) & (cards.reach >= 0)
    _require_all(weighed, "cards_reach.npy", "has a weight that is negative or not finite")
    _shaped("cards_buckets.npy", cards.buckets, (len(cards.board_cards), 2), np.int64)
    _in_range("cards_buckets.npy", cards.buckets, 1, 2**31)
    above = 1
    for street, boards in enumerate(cards.board_cards):
        known, ending = len(boards), f"street{street}.npy"
        _require(boards.ndim == 2 and boards.dtype == np.int16 and known, f"cards_board_cards_{ending}", "is no list")
        _in_range(f"cards_board_cards_{ending}", boards, 0, CARD_COUNT)
        _shaped(f"cards_board_parent_{ending}", cards.board_parent[street], (known,), np.int32)
        _in_range(f"cards_board_parent_{ending}", cards.board_parent[street], 0, above)
        _shaped(f"cards_bucket_{ending}", cards.bucket[street], (2, known, hands), np.int32)
        for player in range(2):
            number = cards.bucket[street][player]
            _in_range(f"cards_bucket_{ending}", number, NO_BUCKET, int(cards.buckets[street, player]))
        above = known
    _shaped("cards_strength.npy", cards.strength, (above, hands), np.int32)
    weight = joint_weight(cards)
    _require(isfinite(weight) and weight > 0, "cards_reach.npy", "leaves no deal, or a weight that is not finite")


def _shaped(file: str, array: npt.NDArray[Any], shape: tuple[int, ...], dtype: npt.DTypeLike) -> None:
    _require(
        array.shape == shape and array.dtype == dtype,
        file,
        f"has shape {array.shape} of {array.dtype}; {shape} of {np.dtype(dtype)} is needed",
    )


def _in_range(file: str, array: npt.NDArray[Any], low: int, stop: int) -> None:
    if array.size and (array.min() < low or array.max() >= stop):
        _require_all((array >= low) & (array < stop), file, f"has a number outside of {low} to {stop - 1}")


def check_location(file: str, location: npt.NDArray[Any], cards: int) -> npt.NDArray[np.int8]:
    """Check a location table; return the canonical boards [N, cards] in order of their index.

    Boards that differ by a suit permutation form a class; its first board by rank is canonical.  The rank of a board is
    C(c0, 1) + C(c1, 2) + ... over its cards in ascending order.

    location  [C(52, cards)] int32 by the rank of a board: index of its canonical board · 32 + suit permutation
    cards     number of cards on the board, 3 to 5

    Raises `ValueError` unless each board has a valid index and suit permutation.
    """
    index = location >> 5
    _in_range(file, index, 0, BOARD_COUNTS[cards])
    _in_range(file, location & 31, 0, 24)
    highest = np.maximum.accumulate(index)
    rank = np.flatnonzero(np.concatenate(([True], highest[1:] != highest[:-1]))[: len(highest)])
    _require(np.array_equal(index[rank], np.arange(BOARD_COUNTS[cards])), file, "has canonical boards out of order")
    boards = np.empty((len(rank), cards), np.int8)
    for place in range(cards, 0, -1):
        below = np.array([comb(card, place) for card in range(CARD_COUNT)])
        boards[:, place - 1] = card = np.searchsorted(below, rank, "right") - 1
        rank = rank - below[card]
    return boards


def check_permutations(file: str, permutation: npt.NDArray[Any]) -> None:
    """Check the table of hole cards under the 24 suit permutations; raise `ValueError` if it is invalid.

    permutation  [24, 1326] int16: the combination that each one becomes, so each row is a permutation of all
    """
    _shaped(file, permutation, (24, COMBO_COUNT), np.int16)
    every = np.arange(COMBO_COUNT)
    _require_all((np.sort(permutation, axis=1) == every).all(axis=1), file, "has a row that is no permutation")


def check_history(file: str, history: npt.NDArray[Any], before: int, buckets: int) -> None:
    """Check the table that gives hands' buckets on a street with perfect recall.

    The bucket follows from the hand's bucket on the street before and a percentile of its strength, E[HS] or E[HS²].

    file     name of the table's file, for messages
    history  the table, [buckets of the street before, percentiles]; must be int32 with entries from 0 to `buckets` - 1
    before   number of buckets of the street before
    buckets  number of buckets of the street

    Raises `ValueError`.
    """
    _require(history.ndim == 2, file, f"has {history.ndim} dimensions: 2 are needed")
    _shaped(file, history, (before, history.shape[1]), np.int32)
    _in_range(file, history, 0, buckets)


def check_deck_buckets(file: str, table: PackedRows, boards: npt.NDArray[np.int8], buckets: int, mark: int) -> None:
    """Check that a street's table [canonical boards, 1326] has a bucket for exactly the possible hands.

    boards   [canonical boards, n] cards of the boards
    buckets  entries of possible hands must be below it: the number of buckets, or of percentiles with perfect recall
    mark     required entry for hands that share a card with the board

    Raises `ValueError`, or `DamagedError` if the compressed bytes of a row are damaged.
    """

    def problem(first: int) -> str | None:
        for start in range(first, min(first + _BOARDS_AT_ONCE, len(table)), _PIECE_BOARDS):
            part = table.rows(start, start + _PIECE_BOARDS)
            hits = np.zeros(part.shape, bool)
            for card in boards[start : start + _PIECE_BOARDS].T:
                hits |= holds_card()[card]
            known = part < buckets
            if not ((known ^ hits).all() and np.count_nonzero(part == mark) == np.count_nonzero(hits)):
                return f"has a bucket above {buckets - 1}, or one of an impossible hand, on a board from {start} on"
        return None

    for found in ordered(problem, range(0, len(table), _BOARDS_AT_ONCE), size_bytes=COMBO_COUNT * len(table)):
        _require(found is None, file, found or "")


# --- tables ---


def _first_bad_row(
    shares: npt.NDArray[np.uint], weight: npt.NDArray[np.float32], starts: npt.NDArray[np.int64], total: int
) -> tuple[int, int]:
    """Return (bucket, row) of the first infoset with a wrong sum or weight; (-1, -1) if none.

    shares  [buckets, slots] stored probabilities; a slot is one action of one row
    weight  [buckets, rows] weights; a row is one decision
    starts  [rows+1] first slot of each row, and the end of the last
    total   sum that the shares of an infoset must have
    """
    sound = np.add.reduceat(shares, starts[:-1], axis=1, dtype=np.uint32) == total
    sound &= (weight >= 0) & (weight < np.inf)
    if sound.all():
        return -1, -1
    bucket, row = np.argwhere(~sound)[0].tolist()
    return bucket, row


def row_problem(
    shares: npt.NDArray[np.uint], weight: npt.NDArray[np.float32], starts: npt.NDArray[np.int64], files: tuple[str, str]
) -> str | None:
    """Return a sentence on the first invalid row of a block, or None if all rows are valid.

    A row is valid if, for each bucket, its shares sum to 255 (uint8) or 65,535 (uint16), and its weight is finite and
    not negative.

    shares  [buckets, slots] stored probabilities; a slot is one action of one row
    weight  [buckets, rows] weights; a row is one decision
    starts  [rows+1] first slot of each row, and the end of the last
    files   names of the two files
    """
    total = TOTALS[shares.dtype.name]
    step = max(1, _PIECE_CELLS // max(1, shares.shape[1]))

    def bad(first: int) -> tuple[int, int]:
        return _first_bad_row(shares[first : first + step], weight[first : first + step], starts, total)

    firsts, size_bytes = range(0, len(shares), step), shares.nbytes + weight.nbytes
    for first, (bucket, row) in zip(firsts, ordered(bad, firsts, size_bytes=size_bytes), strict=True):
        if row >= 0:
            found = int(shares[first + bucket, starts[row] : starts[row + 1]].sum(dtype=np.int64))
            if found != total:
                return f"{files[0]}: row {row} of bucket {first + bucket} sums to {found}; {total} is needed"
            found_weight = float(weight[first + bucket, row])
            return f"{files[1]}: row {row} of bucket {first + bucket} has the weight {found_weight}"
    return None
