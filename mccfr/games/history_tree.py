"""Converts small poker games to trees of histories: the public betting tree combined with all deals.

Chance deals player 0's hand, then player 1's, then the board of each street. Outcomes of a chance node are merged if no
player can distinguish them: equal buckets of both players on this and all later boards, and equal results. Nothing else
is merged and nothing is approximated, so values and best responses are exact.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from mccfr.cards.card_lists import ListedCards
from mccfr.cards.deals import NO_BUCKET, card_masks
from mccfr.cards.no_cards import NO_CARDS
from mccfr.games.game import Game
from mccfr.trees.betting_lines import all_lines
from mccfr.trees.compiled import TERMINAL
from mccfr.trees.history_compiler import MAX_HISTORIES, Chance, Decision, Expansion, build_history_tree

MAX_DEALS = 2_000_000
"""Most deals (two hands and a board), before merging, of a game to expand."""

_ROOT_LEVEL, _PAIR_LEVEL = 0, 2
"""Levels of a deal: 0 nothing, 1 player 0's hand, 2 both hands, 3 + s a board of street s."""


class _Deal(NamedTuple):
    """The cards dealt so far: indices of both hands and of the last board; -1: not dealt yet.

    level  number of dealing steps: 1 after player 0's hand, 2 after both hands, 3 + s after the board of street s
    """

    level: int
    hand_0: int = -1
    hand_1: int = -1
    board: int = -1


class _Dealer:
    """Enumerates a card game's deals and numbers classes of deals that no player can tell apart."""

    def __init__(self, cards: ListedCards) -> None:
        self.cards, self.last_level = cards, _PAIR_LEVEL + cards.streets
        self.hand_mask = cards.hand_masks()
        self.board_mask = [card_masks(board) for board in cards.board_cards]
        self.below = [
            [np.flatnonzero(parent == above) for above in range(int(parent.max()) + 1)] for parent in cards.board_parent
        ]
        disjoint = (self.hand_mask[:, None] & self.hand_mask[None, :]) == 0
        self.weight_1 = disjoint * cards.reach[1][None, :]
        self.weight_0 = cards.reach[0] * self.weight_1.sum(axis=1)
        self.names = cards.card_texts
        self.ids: dict[Any, int] = {}
        self.known: dict[_Deal, int] = {}

    def children(self, deal: _Deal) -> list[tuple[_Deal, float]]:
        """Return a list of (deal, probability), one for each hand or board that can be dealt next.

        deal  the cards dealt so far
        """
        level = deal.level + 1
        if level <= _PAIR_LEVEL:
            weight = self.weight_0 if level == 1 else self.weight_1[deal.hand_0]
            hands = np.flatnonzero(weight > 0).tolist()
            deals = [_Deal(1, hand) if level == 1 else _Deal(2, deal.hand_0, hand) for hand in hands]
            return list(zip(deals, (weight[hands] / weight[hands].sum()).tolist(), strict=True))
        street = level - _PAIR_LEVEL - 1
        boards = self.below[street][max(deal.board, 0)]
        dead = self.hand_mask[deal.hand_0] | self.hand_mask[deal.hand_1]
        boards = boards[(self.board_mask[street][boards] & dead) == 0].tolist()
        return [(deal._replace(level=level, board=board), 1 / len(boards)) for board in boards]

    def buckets(self, deal: _Deal) -> tuple[int, int]:
        """Return (player 0's bucket, player 1's) on the board of `deal`; -1 before the first board."""
        if deal.level <= _PAIR_LEVEL:
            return NO_BUCKET, NO_BUCKET
        bucket = self.cards.bucket[deal.level - _PAIR_LEVEL - 1]
        return int(bucket[0, deal.board, deal.hand_0]), int(bucket[1, deal.board, deal.hand_1])

    def result(self, deal: _Deal) -> int:
        """Return player 0's showdown result: 1 win, 0 tie, -1 loss; 0 if `deal` has no full board."""
        if deal.level < self.last_level:
            return 0
        strength = self.cards.strength[deal.board]
        return int(np.sign(int(strength[deal.hand_0]) - int(strength[deal.hand_1])))

    def merged(self, deal: _Deal) -> list[tuple[_Deal, float]]:
        """Return a list of (deal, probability): the classes of deals that can follow `deal`.

        No player can tell the deals of a class apart. The result has the first deal of each class, and the total
        probability of the class. It is [] if `deal` has a full board.
        """
        classes: dict[int, tuple[_Deal, float]] = {}
        for child, probability in self.children(deal) if deal.level < self.last_level else []:
            deal_class = self.class_of(child)
            first, total = classes.get(deal_class, (child, 0.0))
            classes[deal_class] = first, total + probability
        return list(classes.values())

    def class_of(self, deal: _Deal) -> int:
        """Return the number of a deal's class.

        Deals that no player can distinguish, now or later, are one class.
        """
        if deal not in self.known:
            later: Counter[tuple[int, float]] = Counter()
            if deal.level < self.last_level:
                later.update((self.class_of(child), round(share, 12)) for child, share in self.children(deal))
            key = (deal.level, self.buckets(deal), self.result(deal), frozenset(later.items()))
            self.known[deal] = self.ids.setdefault(key, len(self.ids))
        return self.known[deal]

    def label(self, deal: _Deal) -> str:
        """Return the label of the last chance event of `deal`: a hand, or the new cards of a street."""
        if deal.level <= _PAIR_LEVEL:
            return self.cards.hand_names[deal.hand_0 if deal.level == 1 else deal.hand_1]
        street = deal.level - _PAIR_LEVEL - 1
        before = self.cards.board_cards[street - 1].shape[1] if street else 0
        return "".join(self.names[int(card)] for card in self.cards.board_cards[street][deal.board][before:])

    def shown(self, deal: _Deal, player: int) -> str:
        """Return the text of a player's hand and of the board, such as "Ks Qh"; the deal has a board."""
        board = self.cards.board_cards[deal.level - _PAIR_LEVEL - 1][deal.board]
        hand = self.cards.hand_names[deal.hand_1 if player else deal.hand_0]
        return f"{hand} {''.join(self.names[int(card)] for card in board)}".rstrip()


@dataclass(frozen=True)
class ExpandedGame:
    """A card game expanded to a tree of histories, with the way back to the original infosets.

    game      the expanded game, whose tree contains the deals as chance nodes
    original  the game with cards beside its betting tree
    rows      for each player [infosets, 2] int64: each infoset of `game` as (decision, bucket) in the original game
    """

    game: Game
    original: Game
    rows: tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]


def expand(game: Game, *, max_histories: int = MAX_HISTORIES) -> ExpandedGame:
    """Expand a card game to a tree with its deals; infosets are named by hand, board and line.

    The named hand is the first of its bucket. Raises `ValueError` for a game that does not list its hands and boards,
    and above MAX_DEALS (2 million) deals or `max_histories` histories.
    """
    if not game.cards.dealt:
        raise ValueError(f"{game.name} has every history in its tree already: there are no cards to expand")
    cards = game.listed_cards()
    deals = int((cards.reach[0] > 0).sum()) * int((cards.reach[1] > 0).sum()) * len(cards.board_cards[-1])
    if deals > MAX_DEALS:
        raise ValueError(
            f"{game.name} has up to {deals:,} deals of two hands and a board; at most {MAX_DEALS:,} can be expanded: "
            "keep the cards outside of the tree"
        )
    rows, expansion = _expansion(game, _Dealer(cards))
    tree = build_history_tree((0, _Deal(_ROOT_LEVEL)), expansion, max_histories=max_histories, name=game.name)
    expanded = Game(
        f"{game.name} with cards", tree, NO_CARDS, game.offset_chips, game.big_blind_chips, pot_chips=game.pot_chips
    )
    first, second = (np.array(list(own.values()), np.int64).reshape(-1, 2) for own in rows)
    return ExpandedGame(expanded, game, (first, second))


def _expansion(
    game: Game, dealer: _Dealer
) -> tuple[tuple[dict[str, tuple[int, int]], ...], Callable[[tuple[int, _Deal]], Expansion]]:
    """Return the players' infosets, which are still empty, and the function that expands a history.

    The infosets are {name: (node, bucket)} for each player; the function fills them. It takes a history, (node of the
    public tree, deal), and returns the decision, chance node or payoff there.
    """
    tree, line, rows = game.tree, all_lines(game.tree), (dict[str, tuple[int, int]](), dict[str, tuple[int, int]]())
    ends = tree.arrays.kind == TERMINAL
    shows = ends & (tree.arrays.showdown != 0)
    needed = np.where(shows, dealer.last_level, _PAIR_LEVEL + 1 + tree.street).tolist()
    sizes = [board.shape[1] for board in dealer.cards.board_cards]
    by_chance = [True, True, len(dealer.cards.board_cards[0]) > 1, *(more > less for less, more in pairwise(sizes))]
    is_terminal, block = ends.tolist(), tree.arrays.block.tolist()
    fixed, showdown = tree.arrays.fixed.tolist(), tree.arrays.showdown.tolist()
    hands: dict[tuple[int, int], str] = {}
    merged, buckets, result = cache(dealer.merged), cache(dealer.buckets), cache(dealer.result)

    def expansion(history: tuple[int, _Deal]) -> Expansion:
        node, deal = history
        while deal.level < needed[node]:
            outcomes = merged(deal)
            if by_chance[deal.level]:
                labels = [dealer.label(below) for below, _ in outcomes]
                return Chance(labels, [share for _, share in outcomes], [(node, below) for below, _ in outcomes])
            deal = outcomes[0][0]
        if is_terminal[node]:
            return float(fixed[node] + showdown[node] * result(deal))
        player = block[node] % 2
        bucket = buckets(deal)[player]
        hand = hands.get((block[node], bucket)) or hands.setdefault((block[node], bucket), dealer.shown(deal, player))
        name = f"{hand} {line[node]}".rstrip()
        rows[player].setdefault(name, (node, bucket))
        children = tree.children(node)
        return Decision(player, name, [tree.label[child] for child in children], [(child, deal) for child in children])

    return rows, expansion
