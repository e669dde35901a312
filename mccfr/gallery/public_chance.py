"""Public chance sampling.

Source: Johanson, Bard, Lanctot, Gibson & Bowling, "Efficient Nash Equilibrium Approximation through Monte Carlo
Counterfactual Regret Minimization", AAMAS 2012, section 5.1.

One board is sampled, and the public tree is traversed with all hands at once.  Reach and values are vectors [H].
"""

from dataclasses import replace

import numpy as np

from mccfr.gallery.history_game import TRAITS, HistoryGame, Row
from mccfr.games.game import Game
from mccfr.tables.table_layout import TableLayout, TableSet, table_name
from mccfr.trees.compiled import TERMINAL


class PublicChanceSampling(HistoryGame):
    """Public chance sampling: an iteration samples one board and traverses it with all hands."""

    traits = replace(TRAITS, over_histories=False)

    def layout(self, game: Game) -> TableLayout:
        """Return the names and shapes of the tables as a `TableLayout`.

        Raises `ValueError` for a game that does not list all its hands and boards.
        """
        if game.cards.boards is None:
            raise ValueError(f"{type(self).__name__} needs hands and boards that are listed, and {game.name} has none")
        return super().layout(game)

    def begin(self, game: Game, tables: TableSet) -> None:
        """Store the game and the tables; compute which pairs of hands share no card."""
        self.game, self.cards, self.tables, self.tree = game, game.listed_cards(), tables, game.tree.arrays
        masks = self.cards.hand_masks()
        self.disjoint = (masks[:, None] & masks[None, :]) == 0

    def iterate(self, t: int) -> None:
        """Sample a board and run one traversal for each player, which updates its tables."""
        cards = self.cards
        self.boards = [int(self.rng.integers(len(cards.board_cards[-1])))]  # of each street, last one first
        for parent in reversed(cards.board_parent[1:]):
            self.boards.append(int(parent[self.boards[-1]]))
        strength = cards.strength[self.boards[0]]
        self.meets = self.disjoint & (strength >= 0)[:, None] & (strength >= 0)[None, :]
        self.wins = self.meets * np.sign(strength[:, None].astype(int) - strength[None, :])
        self.live = np.flatnonzero(strength >= 0)
        for i in (0, 1):
            self.walk(0, i, *cards.reach[[i, 1 - i]])

    def walk(self, node: int, i: int, own: Row, others: Row) -> Row:
        """Return the value [H] of each hand of player i at a node, and update i's tables below it.

        Values are chips, summed over the opponent's hands weighted by their reach.  `own` and `others` [H] are the
        reach of the hands of player i and of the opponent.
        """
        self.nodes += 1
        tree, children = self.tree, self.game.tree.children(node)
        if tree.kind[node] == TERMINAL:
            sign = 1 if i == 0 else -1
            return sign * tree.fixed[node] * (self.meets @ others) + tree.showdown[node] * (self.wins @ others)
        block, player, slot = int(tree.block[node]), int(tree.player[node]), int(tree.slot[node])
        street, columns = block // 2, np.arange(slot, slot + len(children))
        bucket = self.cards.bucket[street][player, self.boards[-1 - street]][self.live]
        R, S = (self.tables[table_name(kind, block)] for kind in self.keeps)
        positive = np.maximum(R[bucket[:, None], columns], 0)
        total = positive.sum(axis=1, keepdims=True)
        sigma = np.zeros((len(own), len(children)))
        sigma[self.live] = np.where(total > 0, positive / np.where(total > 0, total, 1), 1 / len(children))
        if player != i:
            return np.sum([self.walk(c, i, own, others * sigma[:, a]) for a, c in enumerate(children)], axis=0)
        v = np.stack([self.walk(c, i, own * sigma[:, a], others) for a, c in enumerate(children)], axis=1)
        value, dealt = (sigma * v).sum(axis=1), self.cards.reach[i][:, None]
        np.add.at(R, (bucket[:, None], columns), (dealt * (v - value[:, None]))[self.live])
        np.add.at(S, (bucket[:, None], columns), (own[:, None] * sigma)[self.live])
        return value
