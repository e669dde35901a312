"""What networks see of an infoset: its cards and the betting so far; a one-hot of the infoset in games without either.

*Cards.*  One group for the hand and one for the cards of each street: how many of its cards are of each rank, of each
suit, and each card itself.  So a product with a matrix is the sum of three embeddings over the unordered group.  Where
suits are merged, the first hand and board of a bucket stand for all.

*Bets.*  For every action that a street may see, in order: whether it has happened, and the chips that it put in as a
share of the pot before it.  Then the pot, as a share of the largest.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from mccfr.cards.deals import NO_BUCKET
from mccfr.cards.listed import ListedCards
from mccfr.games.game import Game
from mccfr.solvers.deep.infosets import Infosets
from mccfr.trees.lines import put_in_chips

VERSION = 1
"""Of what the columns mean."""


@dataclass(frozen=True)
class NetworkFeatures:
    """Inputs of a player's infosets.  I of them, F columns.

    values  [I, F] float32; None: a one-hot of the infoset
    groups  columns of each group of cards
    bets    columns after them
    """

    values: npt.NDArray[np.float32] | None
    groups: tuple[int, ...]
    bets: int


def features(game: Game, infosets: Infosets, player: int) -> NetworkFeatures:
    """What a network sees of a player's infosets."""
    cards = game.cards
    if cards.boards is None or not cards.card_texts:
        return NetworkFeatures(None, (), 0)
    lines, pieces = bet_columns(game), []
    groups: tuple[int, ...] = ()
    for block in range(player, 2 * game.tree.streets, 2):
        held, groups = _cards(cards.listed(), block // 2, player)
        rows = np.array([node for _, node in sorted(_row_nodes(game, block))], np.int64)
        if not len(rows):
            continue
        wide = np.broadcast_to(held[:, None], (len(held), len(rows), held.shape[1]))
        line = np.broadcast_to(lines[rows][None], (len(held), len(rows), lines.shape[1]))
        pieces.append(np.concatenate([wide, line], axis=2).reshape(len(held) * len(rows), -1))
    return NetworkFeatures(np.concatenate(pieces).astype(np.float32), groups, lines.shape[1])


def column_names(game: Game) -> list[str]:
    """What each column of a network's input says; [] where it is a one-hot of the infoset."""
    cards = game.cards
    every = list(cards.card_texts.values())
    if cards.boards is not None:
        every.sort()
    ranks, suits = (list(dict.fromkeys(part(name) for name in every)) for part in (_rank, _suit))
    if cards.boards is not None:
        ranks, suits = sorted(ranks), sorted(suits)
    if not every:
        return []
    known = [0, *(cards.cards_on(street) for street in range(game.tree.streets))]
    groups = ["hand", *(f"board of street {k}" for k, (a, b) in enumerate(pairwise(known)) if b > a)]
    kinds = [*(f"rank {name}" for name in ranks), *(f"suit {name}" for name in suits), *(f"card {n}" for n in every)]
    names = [f"{group}, {kind}" for group in groups for kind in kinds]
    for street, most in enumerate(_steps(game)[1]):
        for place in range(most):
            action = f"street {street}, action {place + 1}"
            names += [f"{action}: has happened", f"{action}: its chips as a share of the pot before"]
    return [*names, "pot as a share of the largest"]


def _row_nodes(game: Game, block: int) -> Iterator[tuple[int, int]]:
    """(row, node) of every decision of a block."""
    arrays = game.tree.arrays
    for node in game.tree.decisions.tolist():
        if arrays.block[node] == block:
            yield int(arrays.row[node]), node


def _cards(cards: ListedCards, street: int, player: int) -> tuple[npt.NDArray[np.float32], tuple[int, ...]]:
    """[buckets, columns] of a player's cards on a street, and the columns of each group."""
    names = cards.card_texts
    ranks, suits = (sorted({part(name) for name in names.values()}) for part in (_rank, _suit))
    every = sorted(names)
    width = len(ranks) + len(suits) + len(every)
    kinds = {
        card: [ranks.index(_rank(name)), len(ranks) + suits.index(_suit(name)), len(ranks) + len(suits) + place]
        for place, (card, name) in enumerate((card, names[card]) for card in every)
    }
    ends = [board.shape[1] for board in cards.board_cards]
    spans = [(start, stop) for start, stop in zip([0, *ends], ends, strict=False) if stop > start]
    bucket = np.where(cards.reach[player] > 0, cards.bucket[street][player], NO_BUCKET)
    found, first = np.unique(bucket, return_index=True)
    values = np.zeros((int(cards.buckets[street, player]), width * (1 + len(spans))), np.float32)
    for number, place in zip(found.tolist(), first.tolist(), strict=True):
        if number == NO_BUCKET:
            continue
        board, hand = divmod(place, bucket.shape[1])
        dealt = cards.board_cards[street][board].tolist()
        groups = [cards.hand_cards[hand].tolist(), *(dealt[start:stop] for start, stop in spans)]
        for at, group in enumerate(groups):
            for card in group:
                if card >= 0:
                    values[number, [at * width + column for column in kinds[card]]] += 1
    return values, (width,) * (1 + len(spans))


def _rank(name: str) -> str:
    return name[0]


def _suit(name: str) -> str:
    return name[1:]


def _steps(game: Game) -> tuple[dict[int, list[tuple[int, int, float]]], list[int]]:
    """Of each decision the actions before it: street, place on it, chips as a share of the pot; most of each street."""
    tree, decisions = game.tree, game.tree.decisions.tolist()
    street = {node: int(tree.arrays.block[node]) // 2 for node in decisions}
    pots = _pots(game)
    taken: dict[int, list[tuple[int, int, float]]] = {}
    most = [0] * tree.streets
    for node in decisions:
        places, steps = [0] * tree.streets, []
        for over, below in pairwise(tree.path(node)):
            here = street[over]
            steps.append((here, places[here], (pots[below] - pots[over]) / max(pots[over], 1e-9)))
            places[here] += 1
            most[here] = max(most[here], places[here])
        taken[node] = steps
    return taken, most


def _pots(game: Game) -> dict[int, float]:
    """Chips in the pot at each decision."""
    return {node: float(sum(put_in_chips(game.tree, node))) for node in game.tree.decisions.tolist()}


def bet_columns(game: Game) -> npt.NDArray[np.float32]:
    """[N, columns] of the betting that leads to each decision; 0 at other nodes."""
    (taken, most), pots = _steps(game), _pots(game)
    largest = max(pots.values())
    first = np.concatenate([[0], np.cumsum(most)])
    values = np.zeros((len(game.tree.arrays.kind), 2 * int(first[-1]) + 1), np.float32)
    for node, steps in taken.items():
        for here, place, share in steps:
            values[node, 2 * (int(first[here]) + place)] = 1
            values[node, 2 * (int(first[here]) + place) + 1] = share
        values[node, -1] = pots[node] / largest
    return values
