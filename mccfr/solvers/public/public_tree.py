"""Builds the public tree of a game with listed cards, for walks over all of its boards.

The betting is cut into street trees (`street_trees`), each the betting of one street after one betting line of earlier
streets.  A street tree is walked once for each board of its street.  Of boards that differ only by a renaming of suits
one is walked (`board_copies`).  Hands are listed for the walked boards (`range_sums`): a player's hands with positive
reach that share no card with the board.
"""

from itertools import pairwise
from math import comb
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from abstraction.kernels.jit import by_reference
from mccfr.cards.card_lists import ListedCards, joint_weight
from mccfr.cards.suit_symmetry import BoardCopies, Strategies, board_copies
from mccfr.games.game import Game
from mccfr.solvers.public.range_sums import Ranges, make_ranges
from mccfr.solvers.public.terminals.balances import Balances, make_balances, no_balances
from mccfr.solvers.public.terminals.range_values import RUN_OUTS
from mccfr.trees.compiled import CompiledTree
from mccfr.trees.street_trees import AT_DECISION, AT_EXIT, AT_SHOWDOWN, StreetTrees, street_members, street_trees

_BOARD_CHUNKS = 4  # parts of an exit's boards that threads share; constant, so that sums are always added in one order
_LEAST_ROOM = 1 << 18  # cells, 1 MB


class PublicBoards(NamedTuple):
    """The boards that follow each board: S streets, T boards of all streets.

    Boards are numbered from 0, street by street.  Ranges are (first, end) in this numbering; `end` is not included.

    weight  [S] float64   probability of each board of street s that fits two disjoint hands, given these and the board
                          before (none for s = 0).  It is 1 if the street deals no cards by chance.  If only some boards
                          are listed, it is 1 / (their share of all boards · number of all boards that fit)
    below   [T, 2] int64  boards of the next street that continue a board; (0, 0) for boards of the last street
    last    [T, 2] int64  boards of the last street that continue a board; for a last-street board only itself
    root    [2] int64     boards of the first street
    """

    weight: npt.NDArray[np.float64]
    below: npt.NDArray[np.int64]
    last: npt.NDArray[np.int64]
    root: npt.NDArray[np.int64]


class LockedRows(NamedTuple):
    """Rows whose strategy is fixed by locks: C actions of such decisions, K hands or buckets.

    share    [C, K] float  probabilities in the walk's dtype, -1 for actions that are not fixed; `MemberRows.lock` has
                           the index of each decision's first row here
    by_hand  bool          True: K counts hands; False: buckets
    """

    share: npt.NDArray[np.floating]
    by_hand: bool


@by_reference
class PublicTree(NamedTuple):
    """All kernel inputs of a walk except strategies: H hands, K tasks, E columns of all boards.

    A column is a cell of a range on a board: a hand, or hands that share a bucket.  A member is a street tree's node.

    trees         StreetTrees   betting
    ranges        Ranges        hands by board
    reach         [2, H] float  weights of the players' hands at the root, in the dtype of the walk
    row_weight    [2, E] float  weights of a column in its row's strategy sums and in its regrets; [2, 0] unless hands
                                share columns (`merged_rows`)
    boards        PublicBoards  boards below each board
    tasks         [K, 3] int64  work below the first street for threads. Either an exit (a member that leads to the next
                                street) with first and end of some boards below, counted from the first of them. Or, for
                                run-outs (all-ins before the last street): first member, first and end of the members
                                that contain them
    copies        BoardCopies   walked boards and the boards that they stand for
    joint_weight  float         product of both players' reach, summed over pairs of disjoint hands; expected values are
                                divided by it
    locks         LockedRows    rows with a fixed strategy; None: there are none, and kernels have no code for them
    balances      Balances      precomputed results of run-outs between hands, for some boards; `with_balances` fills
                                them
    """

    trees: StreetTrees
    ranges: Ranges
    reach: npt.NDArray[np.floating]
    row_weight: npt.NDArray[np.floating]
    boards: PublicBoards
    tasks: npt.NDArray[np.int64]
    copies: BoardCopies
    joint_weight: float
    locks: LockedRows | None
    balances: Balances

    @property
    def streets(self) -> int:
        """Return the number of streets of the game."""
        return len(self.boards.weight)


def public_tree(
    game: Game, strategies: Strategies | None = None, *, merge: bool = False, some: bool = False
) -> PublicTree:
    """Return the public tree of a game with listed cards; the weights of hands (`reach`) are float64.

    strategies  None, or action probabilities [buckets, slots] by block (street and player), if walks use only these.
                Then boards on which they are equal after a renaming of suits are walked once, even if buckets differ;
                not in games with locks (fixed strategies)
    merge       whether hands of a board that share a bucket share a column: one cell of ranges and values
    some        whether the listed boards may be a part of those the deck allows; `joint_weight` is then 1

    Raises `ValueError` for a game whose cards are chance nodes of its tree, or cannot be listed.  Also raises it for a
    hand that can be dealt but has no bucket, and for boards out of order.  Also raises it if chance is not uniform:
    hands of unequal numbers of cards, two hands of the same two cards, or missing boards unless `some`.
    """
    if not game.cards.dealt:
        raise ValueError(
            f"the game {game.name} has chance nodes in its tree: vector evaluation needs cards outside of it"
        )
    cards = game.listed_cards()
    trees, locks = _locked(_betting(game), game.tree)
    weight = board_weights(cards, some=some)
    start = np.concatenate([[0], np.cumsum([len(boards) for boards in cards.board_cards])])
    child, last = _board_ranges(cards, start)
    _check_hands(cards)
    # Locks may differ between boards on which the strategies play alike.
    copies = board_copies(cards, strategies if game.tree.locks is None else None)
    return PublicTree(
        trees,
        make_ranges(cards, copies.times > 0, merge=merge),
        np.array(cards.reach, np.float64, order="C"),
        np.zeros((2, 0)),
        PublicBoards(weight, child, last, start[:2].astype(np.int64)),
        _tasks(trees, int(np.diff(child[0])[0])),
        copies,
        1.0 if some else joint_weight(cards),
        locks,
        no_balances(int(start[-1])),
    )


def with_betting(public: PublicTree, game: Game) -> PublicTree:
    """Return the public tree of another game with the same hands and boards, but other betting and ranges.

    game  the other game; the hands of positive weight must be those of `public`'s game

    Locks (fixed strategies) and hands that share a column are not supported.  `joint_weight` and `copies` stay those of
    `public`.
    """
    return public._replace(
        trees=(trees := _betting(game)),
        reach=np.array(game.listed_cards().reach, np.float64, order="C"),
        tasks=_tasks(trees, int(np.diff(public.boards.below[0])[0])),
    )


def _betting(game: Game) -> StreetTrees:
    """Return the street trees of a game (the betting of single streets), with each pot's rake in `chips`."""
    trees = street_trees(game.tree)
    if game.rake is not None:
        trees.chips[:, 1] = game.rake.of(2 * np.abs(trees.chips[:, 0]))
    return trees


def with_balances(public: PublicTree, game: Game) -> PublicTree:
    """Return the tree with precomputed results of run-outs (all-ins before the last street).

    A board's results are a matrix: for each pair of hands, the last-street boards won minus those lost.  All matrices
    together have at most an eighth as many cells as the game's strategy (of both players), or `_LEAST_ROOM` cells if
    that is more.  A street without room for its matrices gets none, nor does a board on which they save no work.

    Returns `public` itself if it has results already, or has no run-outs.
    """
    trees, cards = public.trees, game.listed_cards()
    street_of = np.repeat(trees.street, np.diff(trees.first))
    streets = np.unique(street_of[(trees.kind == AT_SHOWDOWN) & (street_of + 1 < public.streets)]).tolist()
    if len(public.balances.cells) or not streets:
        return public
    room = max(_LEAST_ROOM, int(game.tree.row_slots @ game.buckets) // 8)
    return public._replace(balances=make_balances(cards, public.ranges, public.boards.last, streets, room))


def _locked(trees: StreetTrees, tree: CompiledTree) -> tuple[StreetTrees, LockedRows | None]:
    """Return street trees with `rows.lock` set, and the fixed probabilities as LockedRows.

    Without locks (decisions with a fixed strategy) the trees are unchanged, and the second result is None.  `rows.lock`
    is each decision's first row in `LockedRows.share`, or -1 for a decision without locks.
    """
    if tree.locks is None:
        return trees, None
    lock, tables, first = np.full(len(trees.kind), -1, np.int32), dict[int, tuple[int, npt.NDArray[np.float64]]](), 0
    node_of = street_members(tree)
    for member in np.flatnonzero(trees.kind == AT_DECISION).tolist():
        table = tree.locks.shares.get(int(node_of[member]))
        if table is None:
            continue
        if id(table) not in tables:
            tables[id(table)] = first, table
            first += len(table)
        lock[member] = tables[id(table)][0]
    widest = max(table.shape[1] for _, table in tables.values())
    padded = [np.pad(table, ((0, 0), (0, widest - table.shape[1])), constant_values=-1) for _, table in tables.values()]
    shares = np.ascontiguousarray(np.concatenate(padded))  # for another order kernels would be compiled once more
    return trees._replace(rows=trees.rows._replace(lock=lock)), LockedRows(shares, tree.locks.by_hand)


def _tasks(trees: StreetTrees, boards: int) -> npt.NDArray[np.int64]:
    """Return [K, 3] tasks: the parts into which threads divide the walk below the first street.

    A member is a node of the first street's tree.  There are two kinds of tasks:

    * (member, first, end): a member that leads to the next street, on the boards first to end-1 of those that follow
    * (first, first, end): the members first to end-1, for the run-outs (all-ins) among them

    boards  number of boards that follow each board of the first street

    There are none (K = 0) in a game of one street.
    """
    if trees.most.shape[1] == 1:
        return np.zeros((0, 3), np.int64)
    kind, tasks = trees.kind[: trees.first[1]], []
    for member in np.flatnonzero(kind == AT_EXIT).tolist():
        cuts = np.linspace(0, boards, min(_BOARD_CHUNKS, boards) + 1).astype(int).tolist()
        tasks += [(member, first, stop) for first, stop in pairwise(cuts)]
    showdowns = np.flatnonzero(kind == AT_SHOWDOWN)
    for members in np.split(showdowns, range(RUN_OUTS, len(showdowns), RUN_OUTS)):
        tasks += [(members[0], members[0], members[-1] + 1)] if len(members) else []
    return np.array(tasks, np.int64).reshape(-1, 3)


def _check_hands(cards: ListedCards) -> None:
    two = np.sort(cards.hand_cards[(cards.hand_cards >= 0).all(axis=1)].astype(np.int64), axis=1)
    if len(np.unique((two[:, 0] << 32) + two[:, 1])) != len(two):
        raise ValueError("two hands of the game are the same two cards: list each pair of cards once")


def _board_ranges(
    cards: ListedCards, start: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return two [T, 2] (first, end) of the boards below each board: on the next street, on the last.

    T counts the boards of all streets, numbered street by street.

    start  [S+1] number of the first board of each of S streets, and T

    Raises `ValueError` if the boards of a street are not in the order of the boards that they continue.
    """
    total, last_street = int(start[-1]), cards.streets - 1
    child, last = np.zeros((total, 2), np.int64), np.zeros((total, 2), np.int64)
    own = np.arange(start[last_street], total)
    last[start[last_street] :] = np.stack([own, own + 1], axis=1)
    for street in range(last_street, 0, -1):
        parent, above = cards.board_parent[street], np.arange(len(cards.board_cards[street - 1]))
        if np.any(np.diff(parent) < 0):
            raise ValueError(f"boards of street {street} are not in the order of those of the street before")
        ranges = np.stack([np.searchsorted(parent, above), np.searchsorted(parent, above, side="right")], axis=1)
        here = slice(start[street - 1], start[street])
        child[here] = start[street] + ranges
        last[here] = np.stack([last[child[here, 0], 0], last[child[here, 1] - 1, 1]], axis=1)
    return child, last


def board_weights(cards: ListedCards, *, some: bool = False) -> npt.NDArray[np.float64]:
    """Return [S] by street the probability of each board, given the board before and two disjoint hands.

    It is the same for all boards of a street that are compatible with the hands, and 1 for a board known in advance.

    some  whether the listed boards may be a part of those the deck allows

    Raises `ValueError` for hands of unequal numbers of cards, and for missing boards unless `some`.  Also raises it for
    a street without new cards that has more or fewer boards than the street before.
    """
    live = (cards.reach > 0).any(axis=0)
    held = np.unique((cards.hand_cards[live] >= 0).sum(axis=1))
    if len(held) != 1:
        raise ValueError(f"hands hold {held.tolist()} cards: all hands of a game must hold equally many")
    deck = len(np.unique(cards.hand_cards[cards.hand_cards >= 0]))
    known, weight = 0, np.ones(cards.streets)
    given = True
    for street, boards in enumerate(cards.board_cards):
        dealt = boards.shape[1] - known
        parents = 1 if street == 0 else len(cards.board_cards[street - 1])
        given = given and len(boards) == 1  # the known board of a subgame is not dealt by chance
        if not given and dealt:
            below = np.bincount(cards.board_parent[street], minlength=parents)
            if np.any(below != comb(deck - known, dealt)) and not some:
                raise ValueError(
                    f"street {street} has {below.min()} to {below.max()} boards below one board: all "
                    f"{comb(deck - known, dealt)} ways to deal {dealt} of {deck - known} cards are needed"
                )
            share = below.mean() / comb(deck - known, dealt)
            weight[street] = 1 / (share * comb(deck - known - 2 * int(held[0]), dealt))
        elif len(boards) != parents:
            raise ValueError(f"street {street} has {len(boards)} boards although none of its cards is dealt by chance")
        known = boards.shape[1]
    return weight
