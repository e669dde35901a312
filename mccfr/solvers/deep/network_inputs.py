"""Network inputs of an infoset: its cards and the betting so far, or a one-hot vector of the infoset.

There is one group of card columns for the hand, and one for the board cards that each street deals, if any.  A group
has a column for each rank, each suit and each card, which counts the group's cards of that kind.  So a product with a
matrix is the sum of three embeddings over the group.  The inputs of a bucket are those of its first hand on the first
board that has it.

Bets have two columns for the first, second, ... last possible action of each street.  They hold whether the action has
happened (1 or 0), and its chips as a share of the pot before it.  The last column is the pot as a share of the largest
pot at a decision.

Games without names of cards (`card_texts`) have one-hot vectors: one column for each infoset.
"""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from mccfr.cards.card_lists import ListedCards
from mccfr.cards.deals import NO_BUCKET
from mccfr.games.game import Game
from mccfr.solvers.deep.infosets import Infosets
from mccfr.trees.betting_lines import put_in_chips

VERSION = 1
"""Version of the meaning of the columns."""


@dataclass(frozen=True)
class NetworkFeatures:
    """Network inputs of a player's infosets: I infosets, F columns.

    values  [I, F] float32; None: one-hot vectors, with one column for each infoset
    groups  number of columns of each group of cards: the hand, then the board cards that each street deals, if any
    bets    number of betting columns, which follow those of the cards
    """

    values: npt.NDArray[np.float32] | None
    groups: tuple[int, ...]
    bets: int


def features(game: Game, infosets: Infosets, player: int) -> NetworkFeatures:
    """Return the network inputs of a player's infosets (`NetworkFeatures`).

    They are one-hot vectors if the game has no list of boards or no names of cards.
    """
    cards = game.cards
    if cards.boards is None or not cards.card_texts:
        return NetworkFeatures(None, (), 0)
    lines, pieces = bet_columns(game), []
    groups: tuple[int, ...] = ()
    for block in range(player, 2 * game.tree.streets, 2):
        card_values, groups = _cards(game.listed_cards(), block // 2, player)
        rows = game.tree.decisions[game.tree.arrays.block[game.tree.decisions] == block]
        rows = rows[np.argsort(game.tree.arrays.row[rows])]
        if not len(rows):
            continue
        wide = np.broadcast_to(card_values[:, None], (len(card_values), len(rows), card_values.shape[1]))
        line = np.broadcast_to(lines[rows][None], (len(card_values), len(rows), lines.shape[1]))
        pieces.append(np.concatenate([wide, line], axis=2).reshape(len(card_values) * len(rows), -1))
    return NetworkFeatures(np.concatenate(pieces).astype(np.float32), groups, lines.shape[1])


def column_names(game: Game) -> list[str]:
    """Return a list of texts that describe the network's input columns in order; [] for one-hot vectors."""
    cards = game.cards
    ordered = list if cards.boards is None else sorted
    every = ordered(cards.card_texts.values())
    ranks, suits = (ordered(dict.fromkeys(part(name) for name in every)) for part in (_rank, _suit))
    if not every:
        return []
    board_counts = [0, *(cards.cards_on(street) for street in range(game.tree.streets))]
    groups = ["hand", *(f"board of street {k}" for k, (a, b) in enumerate(pairwise(board_counts)) if b > a)]
    kinds = [*(f"rank {name}" for name in ranks), *(f"suit {name}" for name in suits), *(f"card {n}" for n in every)]
    names = [f"{group}, {kind}" for group in groups for kind in kinds]
    for street, most in enumerate(_steps(game)[1]):
        for number in range(most):
            action = f"street {street}, action {number + 1}"
            names += [f"{action}: has happened", f"{action}: its chips as a share of the pot before"]
    return [*names, "pot as a share of the largest"]


def _cards(cards: ListedCards, street: int, player: int) -> tuple[npt.NDArray[np.float32], tuple[int, ...]]:
    """Return ([buckets, columns] card inputs of a player on a street, number of columns of each group).

    A group is the hand, or the board cards that one street deals.  Buckets that no hand has get 0.
    """
    names = cards.card_texts
    ranks, suits = (sorted({part(name) for name in names.values()}) for part in (_rank, _suit))
    every = sorted(names)
    width = len(ranks) + len(suits) + len(every)
    kinds = {
        card: [ranks.index(_rank(name)), len(ranks) + suits.index(_suit(name)), len(ranks) + len(suits) + position]
        for position, (card, name) in enumerate((card, names[card]) for card in every)
    }
    ends = [board.shape[1] for board in cards.board_cards]
    spans = [(start, stop) for start, stop in zip([0, *ends], ends, strict=False) if stop > start]
    bucket = np.where(cards.reach[player] > 0, cards.bucket[street][player], NO_BUCKET)
    numbers_used, first = np.unique(bucket, return_index=True)
    values = np.zeros((int(cards.buckets[street, player]), width * (1 + len(spans))), np.float32)
    for number, position in zip(numbers_used.tolist(), first.tolist(), strict=True):
        if number == NO_BUCKET:
            continue
        board, hand = divmod(position, bucket.shape[1])
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
    """Return ({decision node: list of actions before it}, [streets] most such actions on each street).

    An action is (street, index among the actions of that street, its chips as a share of the pot before it).
    """
    tree, decisions = game.tree, game.tree.decisions.tolist()
    street = {node: int(tree.arrays.block[node]) // 2 for node in decisions}
    pots = _pots(game)
    steps_of_node: dict[int, list[tuple[int, int, float]]] = {}
    most = [0] * tree.streets
    for node in decisions:
        places, steps = [0] * tree.streets, []
        for above, below in pairwise(tree.path(node)):
            node_street = street[above]
            steps.append((node_street, places[node_street], (pots[below] - pots[above]) / max(pots[above], 1e-9)))
            places[node_street] += 1
            most[node_street] = max(most[node_street], places[node_street])
        steps_of_node[node] = steps
    return steps_of_node, most


def _pots(game: Game) -> dict[int, float]:
    """Return {decision node: chips in the pot there}."""
    return {node: float(sum(put_in_chips(game.tree, node))) for node in game.tree.decisions.tolist()}


def bet_columns(game: Game) -> npt.NDArray[np.float32]:
    """Return [N, columns] float32 betting inputs of each tree node: earlier actions, and the pot.

    For each action that a street can have there are two columns: 1 if it has happened, and its chips as a share of the
    pot before it.  The last column is the pot as a share of the largest pot at a decision.  Nodes that are no decisions
    have 0 in all columns.
    """
    (steps_of_node, most), pots = _steps(game), _pots(game)
    largest = max(pots.values())
    first = np.concatenate([[0], np.cumsum(most)])
    values = np.zeros((len(game.tree.arrays.kind), 2 * int(first[-1]) + 1), np.float32)
    for node, steps in steps_of_node.items():
        for step_street, position, share in steps:
            values[node, 2 * (int(first[step_street]) + position)] = 1
            values[node, 2 * (int(first[step_street]) + position) + 1] = share
        values[node, -1] = pots[node] / largest
    return values
