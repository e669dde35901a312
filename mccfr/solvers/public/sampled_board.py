"""One full board with all hands that share no card with it.

Public chance sampling and head-to-head evaluation work on such boards.

A hand is listed only if it is compatible with the *whole* board, on every street.  Then each pair of hands meets on the
same share of all boards.  The effect is one constant factor on every street, 44 of 48 rivers for a turn endgame.
Listing hands by the board of their own street would weight streets differently.

Source: Johanson, Bard, Lanctot, Gibson & Bowling 2012, "Efficient Nash equilibrium approximation through Monte Carlo
counterfactual regret minimization".
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from abstraction.kernels.jit import njit
from mccfr.cards.base import BoardHands, Cards
from mccfr.common.rng import DEALS, below, seed_stream
from mccfr.games.game import Game

_KEPT_BOARDS = 128


class ByStrength(NamedTuple):
    """Both players' hands on a full board in order of strength: n hands, C cards in the deck.

    order     [2, n] int32     index of each hand in `SampledBoard.hand`
    strength  [2, n] int32     showdown order, ascending; higher wins
    card      [2, n, 2] int16  cards of each hand; C for a missing card
    same      [2, n] int32     index in the other player's order of the hand with the same two cards; else the number of
                               the other player's hands
    cards     [1] int64        C
    """

    order: npt.NDArray[np.int32]
    strength: npt.NDArray[np.int32]
    card: npt.NDArray[np.int16]
    same: npt.NDArray[np.int32]
    cards: npt.NDArray[np.int64]


class SampledBoard(NamedTuple):
    """A full board with both players' hands: S streets, n hands of the player with more, F a float dtype.

    Vectors over hands have the order of `hand`; `showdown` has its own order.

    count     [2] int64        hands of each player
    hand      [2, n] int32     numbers of the hands in the game, ascending or in order of strength
    weight    [2, n] F         the players' own weights of their hands (ranges at the root of the game)
    rows      [S, 2] int64     number of different buckets on each street
    bucket    [S, 2, n] int32  these buckets, ascending if hands share some, else in the order of the hands
    local     [S, 2, n] int32  index of each hand's bucket among them
    direct    [S, 2] int8      0: some hands share a bucket; 1: each hand has its own bucket; 2: these are also
                               consecutive and in order
    showdown  ByStrength       hands by strength
    """

    count: npt.NDArray[np.int64]  # type: ignore[assignment]  # hides the tuple's own method
    hand: npt.NDArray[np.int32]
    weight: npt.NDArray[np.floating]
    rows: npt.NDArray[np.int64]
    bucket: npt.NDArray[np.int32]
    local: npt.NDArray[np.int32]
    direct: npt.NDArray[np.int8]
    showdown: ByStrength


# --- construction of boards ---


def from_cards(cards: Cards, board: Any, dtype: npt.DTypeLike = np.float64, *, ordered: bool = False) -> SampledBoard:
    """Return a SampledBoard: a full board with both players' hands on it.

    board    index of a listed board, or its cards in order of dealing
    dtype    float dtype of the hands' weights
    ordered  whether hands are in order of strength; else ascending by number

    Raises `ValueError` for an invalid board, for a hand without a bucket, for games without cards, and for three and
    more players.
    """
    hands = cards.board_hands(board)
    return of_hands(by_strength(hands) if ordered else hands, cards.deck_size, dtype)


def of_hands(hands_on: BoardHands, cards: int, dtype: npt.DTypeLike) -> SampledBoard:
    """Return a SampledBoard from the hands on it; its vectors over hands have their order.

    hands_on  BoardHands: hands, weights, buckets, strengths and cards
    cards     number of cards in the deck
    dtype     float dtype of the hands' weights
    """
    lists, weight, bucket, strength, hand_cards = hands_on
    streets, most = len(bucket), max(1, *map(len, lists))
    board = SampledBoard(
        np.array([len(hands) for hands in lists], np.int64),
        np.zeros((2, most), np.int32),
        np.zeros((2, most), dtype),
        np.zeros((streets, 2), np.int64),
        np.zeros((streets, 2, most), np.int32),
        np.zeros((streets, 2, most), np.int32),
        np.zeros((streets, 2), np.int8),
        ByStrength(
            np.zeros((2, most), np.int32),
            np.zeros((2, most), np.int32),
            np.zeros((2, most, 2), np.int16),
            np.zeros((2, most), np.int32),
            np.array([cards], np.int64),
        ),
    )
    ranked = board.showdown
    place = np.full((2, len(hand_cards)), -1)  # of each hand, in order of strength
    alike = np.array_equal(lists[0], lists[1])  # the players then have one order
    for player, hands in enumerate(lists):
        n = len(hands)
        order = ranked.order[0, :n] if player and alike else np.argsort(strength[hands], kind="stable")
        board.hand[player, :n], board.weight[player, :n], ranked.order[player, :n] = hands, weight[player], order
        ranked.strength[player, :n] = strength[hands[order]]
        held = hand_cards[hands[order]]
        ranked.card[player, :n] = np.where(held < 0, cards, held)
        place[player, hands[order]] = np.arange(n)
        _number_rows(board, player, bucket[:, player, hands])
    for player, hands in enumerate(lists):
        n, other = len(hands), 1 - player
        listed = hands[ranked.order[player, :n]]
        shared = (place[other, listed] >= 0) & (hand_cards[listed] >= 0).all(axis=1)
        ranked.same[player, :n] = np.where(shared, place[other, listed], len(lists[other]))
    return board


def _number_rows(board: SampledBoard, player: int, bucket: npt.NDArray[np.int32]) -> None:
    """Find the different buckets of a player's hands on each street, and store them in the board.

    The board's `rows` gets their number, `bucket` the buckets, `local` the index of each hand's bucket among them, and
    `direct` whether hands share buckets.

    bucket  [S, n] int32 bucket of each of the player's n hands on each street
    """
    numbers = board.rows[:, player], board.bucket[:, player], board.local[:, player], board.direct[:, player]
    here = np.ascontiguousarray(bucket)
    _unique_rows(here, np.sort(here, axis=1), *numbers)


@njit
def _unique_rows(bucket, ordered, rows, found, local, direct):
    """Find the different buckets of a player's hands on each street, and each hand's index among them.

    This does the work of `numpy.unique`, whose calls take longer.

    bucket                      [S, n] int32 bucket of each hand on each street
    ordered                     [S, n] int32 the same, ascending on each street
    rows, found, local, direct  results [S], [S, n], [S, n], [S]: number of different buckets; these buckets; index of
                                each hand's bucket among them; 0 if hands share a bucket, 2 if buckets are consecutive
                                and in order, else 1
    """
    for street in range(bucket.shape[0]):
        here, known, count, in_order = bucket[street], found[street], 0, True
        for k in range(here.shape[0]):
            in_order &= here[k] == ordered[street, k]
            if count == 0 or ordered[street, k] != known[count - 1]:
                known[count] = ordered[street, k]
                count += 1
        rows[street], direct[street] = count, count == here.shape[0]
        if direct[street]:
            direct[street] += in_order and count > 0 and known[count - 1] - known[0] == count - 1
            for k in range(count):
                known[k], local[street, k] = here[k], k
            continue
        for k in range(here.shape[0]):
            low, high = 0, count - 1
            while low < high:
                middle = (low + high) // 2
                if known[middle] < here[k]:
                    low = middle + 1
                else:
                    high = middle
            local[street, k] = low


def both_buckets(first: SampledBoard, second: SampledBoard) -> SampledBoard:
    """Return a board with player 0's buckets from `first` and player 1's from `second`.

    first, second  SampledBoards: the same board in two games that differ only in their buckets; all else is taken from
                   `first`
    """
    parts = ("rows", "bucket", "local", "direct")
    mixed: dict[str, Any] = {
        name: np.stack([getattr(first, name)[:, 0], getattr(second, name)[:, 1]], axis=1) for name in parts
    }
    return first._replace(**mixed)


def rebucketed(board: SampledBoard, player: int, bucket: npt.NDArray[np.int32]) -> SampledBoard:
    """Return a copy of the board with other buckets for one player's hands.

    player  player whose buckets change
    bucket  [S, 2, H] int32 buckets of all H hands of the game on each street, by player; those of the other player are
            not read
    """
    parts: dict[str, Any] = {name: getattr(board, name).copy() for name in ("rows", "bucket", "local", "direct")}
    found = board._replace(**parts)
    _number_rows(found, player, bucket[:, player, board.hand[player, : board.count[player]]])
    return found


def by_strength(hands: BoardHands) -> BoardHands:
    """Return the hands on a board, each player's in order of strength, weakest first.

    So vectors over them need no reordering at showdowns.  The lists `live` (numbers of the hands) and `weight` of
    BoardHands are reordered; the arrays for all hands of the game are not.
    """
    orders = [np.argsort(hands.strength[live], kind="stable") for live in hands.live]
    live = [each[order] for each, order in zip(hands.live, orders, strict=True)]
    return hands._replace(live=live, weight=[each[order] for each, order in zip(hands.weight, orders, strict=True)])


class BoardSource:
    """Draws a full board at random for each iteration of a sampling algorithm or evaluation.

    An iteration's board depends only on the constructor's seed, worker and purpose, and on the iteration's number.

    If the game lists its boards, they are drawn in rounds; each round is a fresh random order of all of them.  A single
    draw is uniform, and no board waits longer than two rounds.  Otherwise boards are dealt from the deck.
    """

    def __init__(
        self,
        game: Game,
        dtype: npt.DTypeLike,
        seed: int,
        worker: int = 0,
        purpose: int = DEALS,
        *,
        ordered: bool = False,
    ) -> None:
        """Prepare the boards of a game.

        dtype                  float dtype of the hands' weights
        seed, worker, purpose  numbers that select the random stream; `purpose` is a constant of `mccfr.common.rng`,
                               such as DEALS
        ordered                whether hands are in order of strength; else ascending by number

        Raises `ValueError` for a game that deals no cards outside its tree.
        """
        if not game.cards.dealt:
            raise ValueError(
                f"the game {game.name} has chance nodes in its tree: sampled boards need cards outside of it"
            )
        self._cards, self._dtype, self._ordered = game.cards, np.dtype(dtype), ordered
        self._stream = np.uint64(seed), np.uint64(worker), np.uint64(purpose)
        self._state = np.zeros(4, np.uint64)
        self.listed = game.cards.boards
        self._round, self._boards = -1, np.zeros(0, np.int64)
        self._kept: dict[int, SampledBoard] = {}

    def number(self, iteration: int) -> int:
        """Return the index of the listed board that an iteration draws."""
        assert self.listed is not None
        if iteration // self.listed != self._round:
            self._round = iteration // self.listed
            self._boards = np.arange(self.listed)
            seed_stream(self._state, *self._stream, np.uint64(self._round))
            _shuffle(self._state, self._boards, self.listed)
        return int(self._boards[iteration % self.listed])

    def drawn(self, iteration: int) -> Any:
        """Return an iteration's board: the index of a listed board, or its list of cards if none are listed."""
        if self.listed is not None:
            return self.number(iteration)
        deck = np.arange(self._cards.deck_size)
        seed_stream(self._state, *self._stream, np.uint64(iteration))
        count = self._cards.cards_on(self._cards.streets - 1)
        _shuffle(self._state, deck, count)
        return deck[:count].tolist()

    def board(self, iteration: int) -> SampledBoard:
        """Return the SampledBoard of an iteration: its board with both players' hands on it.

        The first 128 different listed boards are kept; the same object is returned when such a board is drawn again.
        """
        drawn = self.drawn(iteration)
        if self.listed is None:
            return self._made(drawn)
        found = self._kept.get(drawn)
        if found is None:
            found = self._made(drawn)
            if len(self._kept) < _KEPT_BOARDS:
                self._kept[drawn] = found
        return found

    def _made(self, board: Any) -> SampledBoard:
        return from_cards(self._cards, board, self._dtype, ordered=self._ordered)


@njit
def _shuffle(state, items, count):
    """Move `count` random items, drawn without replacement, to the front, in place (Fisher & Yates).

    state  [4] uint64 of the random generator, advanced in place
    items  [.] int64, at least `count` of them
    """
    for i in range(count):
        j = i + below(state, items.shape[0] - i)
        items[i], items[j] = items[j], items[i]
