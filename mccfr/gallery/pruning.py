"""Regret-based pruning.

Source: Brown & Sandholm, "Regret-Based Pruning in Extensive-Form Games", NIPS 2015, sections 3 and 4.

An action of negative regret is neither played nor visited; its value is assumed to be the largest payoff below it.
Once its regret is positive under this assumption, it is visited again.  The value of a best response to the opponent's
play since then replaces the assumed one, and regrets below are updated to match.  Both players update at once.
"""

import numpy as np

from mccfr.gallery.history_game import DRAWS_NOTHING, History, HistoryGame, Infoset, Row, below, regret_matching
from mccfr.games.game import Game
from mccfr.tables.table_layout import TableSet, table_name


class RegretBasedPruning(HistoryGame):
    """CFR with regret-based pruning: it skips actions of negative regret and catches up later.

    Of an infoset's action, `pruned` is 1 while it is pruned, and `assumed` the sum of its assumed values meanwhile.
    `before` is the result of `reach` for each history below a pruned action when pruning began.
    """

    traits = DRAWS_NOTHING
    keeps = ("regret", "strategy_sum", "assumed", "pruned")
    keeps_by_history = ("before",)

    def begin(self, game: Game, tables: TableSet) -> None:
        """Set root, infosets and `most`: each player's largest payoff at or below each history."""
        super().begin(game, tables)
        self.before, self.most = [tables[table_name("before", i)][0] for i in (0, 1)], dict[History, Row]()
        for h in reversed(below([self.root])):
            self.most[h] = np.max([self.most[c] for c in h.children] or [np.array(h.payoff)], axis=0)

    def iterate(self, t: int) -> None:
        """Traverse for both players; end and begin pruning by the signs of regrets."""
        self.t = t
        self.play(lambda I: regret_matching(I.regret))
        for I in self.infosets:
            I.strategy_sum += I.reach * I.sigma
        for i in (0, 1):
            self.walk(self.root, i, 1.0)
        for I in self.infosets:
            for a in np.flatnonzero((I.pruned == 1) & (I.regret > 0)).tolist():
                self.settle(I, a)
        for I in self.infosets:
            I.hidden = I.above is not None and (I.above[0].hidden or I.above[0].pruned[I.above[1]])
            if not I.hidden and I.regret.max() > 0:
                for a in np.flatnonzero((I.pruned == 0) & (I.regret < 0)).tolist():
                    self.prune(I, a)

    def walk(self, h: History, i: int, others: float) -> float:
        """Return the value in chips of history h for player i, and update regrets of i's infosets.

        Pruned actions, and branches of chance and the opponent with probability 0, are skipped.  `others` is the reach
        of the opponent and chance.
        """
        self.nodes += 1
        if h.terminal:
            return h.payoff[i]
        if h.chance or h.player != i:
            shares = h.probability if h.chance else h.infoset.sigma
            return sum(p * self.walk(c, i, others * p) for p, c in zip(shares, h.children, strict=True) if p > 0)
        I = h.infoset
        pairs = zip(I.pruned, h.children, strict=True)
        v = np.array([self.most[c][i] if pruned else self.walk(c, i, others) for pruned, c in pairs])
        I.assumed += I.pruned * others * v
        I.regret += others * (v - I.sigma @ v)
        return float(I.sigma @ v)

    def prune(self, I: Infoset, a: int) -> None:
        """Begin pruning action a of infoset I; first end its player's pruning below a."""
        inside = below([h.children[a] for h in I.histories])
        for J in reversed(list(dict.fromkeys(h.infoset for h in inside if h.player == I.player))):
            for b in np.flatnonzero(J.pruned).tolist():
                self.settle(J, b)
        I.pruned[a], I.assumed[a] = 1, 0
        for h in inside:
            self.before[I.player][h.node] = self.reach(h, I.player)

    def settle(self, I: Infoset, a: int) -> None:
        """End pruning action a of infoset I: replace assumed values by a best response's."""
        I.regret[a] += self.respond(I, a) - I.assumed[a]
        I.pruned[a] = 0

    def respond(self, I: Infoset, a: int) -> float:
        """Return a best response's value to I's player after action a, summed since pruning of a began.

        The best response answers the opponent's play of these iterations.  Its regrets are added to the player's
        infosets below the action.
        """
        i, reached = I.player, below([h.children[a] for h in I.histories], but_of=I.player)
        self.nodes += len(reached)
        total = sum((self.reach(h, i) - self.before[i][h.node]) * h.payoff[i] for h in reached if h.terminal)
        for J in dict.fromkeys(h.infoset for h in reached if h.player == i):
            v = np.array([self.respond(J, b) for b in J.actions])
            J.regret += v - v.max()
            total += v.max()
        return total

    def reach(self, h: History, i: int) -> float:
        """Return the reach of history h by chance and i's opponent, summed over all iterations so far."""
        J, b = h.last[1 - i] or (None, 0)
        return h.dealt * (self.t if J is None else J.strategy_sum[b])
