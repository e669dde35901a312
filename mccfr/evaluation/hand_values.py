"""EVs of every hand below a decision when both players follow one strategy.

Full boards are dealt one after the other. On each, both ranges are walked through the betting as vectors, so a board
is exact in the private cards. A hand's EV is the ratio of two sums over boards: chips times the weight of possible
opposing hands, and that weight. It is exact if all possible boards are walked, as from the turn on, and an estimate
otherwise. The sampling is the public chance sampling of Johanson, Bard, Lanctot, Gibson & Bowling 2012, for fixed
strategies.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from abstraction.cards import CARD_COUNT
from mccfr.cards.card_index import Board, IndexedCards
from mccfr.cards.card_lists import ListedCards
from mccfr.cards.deals import NO_BUCKET
from mccfr.common.intervals import ratio95
from mccfr.common.rng import EVALUATION, new_stream, uniform
from mccfr.games.subgame import nodes_below, subtree
from mccfr.policy.strategy_profile import Behaviour
from mccfr.solvers.public.best_response import Walk
from mccfr.solvers.public.public_tree import PublicTree, public_tree
from mccfr.solvers.public.range_sums import make_ranges
from mccfr.solvers.public.street_arrays import FOLLOW
from mccfr.trees.compiled import DECISION
from mccfr.trees.street_trees import AT_DECISION, street_members, street_trees

Floats = npt.NDArray[np.float64]
_STREAM = 2
"""Worker number of the random stream for boards; other evaluations use 0, matches use 1."""
_LEAST_REACH = 1e-12  # of the largest weight: smaller weights are rounding errors of a true 0


class Below:
    """The subtree below a decision, to be evaluated for hands on boards. H hands, A actions.

    node           the decision, in the source's tree
    street         its street
    player         to act there
    cards_to_come  number of board cards dealt after it
    """

    def __init__(self, source: Behaviour, dealing: IndexedCards, node: int) -> None:
        """Take the source, the `dealing` of its cards, and a node; `ValueError` if the node is not a decision."""
        tree = source.game.tree
        if not 0 <= node < len(tree.parent) or tree.arrays.kind[node] != DECISION:
            raise ValueError(f"node {node} is not one of the tree's decisions")
        self.node, self.street = node, int(tree.arrays.block[node]) // 2
        self._source, self._dealing, self._nodes = source, dealing, nodes_below(tree, node)
        self._game = replace(source.game, tree=subtree(tree, node), real_rules=None)
        self._alike: PublicTree | None = None
        trees = street_trees(self._game.tree)
        self.player = int(tree.arrays.player[node])
        cards = source.game.cards
        self.cards_to_come = cards.cards_on(cards.streets - 1) - cards.cards_on(self.street)
        self._actions, self._child = int(trees.actions[0]), int(trees.child[0])

    def values(self, cards: ListedCards, players: Sequence[int] = (0, 1)) -> tuple[Floats, Floats, Floats]:
        """Return counterfactual values of the strategy, for cards from `on_board` or `listed`.

        The results are below; entries of players not in `players` are 0.

        * [2, H] chips of the whole hand at the decision, times the weight of the opposing hands
        * [A, H] the same for the player to act after each action
        * [2, H] the weight of the opposing hands
        """
        walk, public, hands = *self._walk(cards), self._dealing.hand_count
        value, action, weight = np.zeros((2, hands)), np.zeros((self._actions, hands)), np.zeros((2, hands))
        for player in players:
            walk.values(player)
            value[player] = walk.root.by_hand.value[0, FOLLOW]
            opponent_reach = self._dealing.disjoint_weight(public.reach[1 - player])
            weight[player] = np.where(public.reach[player] > 0, np.maximum(opponent_reach, 0), 0)
            if player == self.player:
                action = self._after(walk, public, player, self._child, self._actions)
        return value, action, weight

    def by_decision(self, cards: ListedCards) -> Iterator[tuple[int, int, Floats]]:
        """Yield (node, player, [A, H] as in `values`) for each decision of the street; one walk per player.

        Values are weighted by the opponent's reach at each decision, starting from the range at the first decision.
        """
        walk, public = self._walk(cards)
        for player in range(2):
            walk.values(player)
            for node, actor, child, actions in self._decisions:
                if actor == player:
                    yield node, player, self._after(walk, public, player, child, actions)

    @cached_property
    def _decisions(self) -> list[tuple[int, int, int, int]]:
        """(node, player, first child, number of actions) of the street's decisions."""
        trees, member = street_trees(self._game.tree), street_members(self._game.tree)
        members = np.flatnonzero(trees.kind[: trees.first[1]] == AT_DECISION)
        columns = self._nodes[member[members]], trees.player[members], trees.child[members], trees.actions[members]
        return list(zip(*(column.tolist() for column in columns), strict=True))

    def _walk(self, cards: ListedCards) -> tuple[Walk, PublicTree]:
        tables, cards = self._tables(cards)
        public = self._public(cards)
        return Walk(public, tables), public

    def _after(self, walk: Walk, public: PublicTree, player: int, child: int, actions: int) -> Floats:
        """Return [A, H] the walk's values at the children of a decision of the street; `child` is the first."""
        action_values, top = np.zeros((actions, self._dealing.hand_count)), int(walk.root.member_first[0]) + child
        own = public.ranges.hand[slice(*public.ranges.first[player, :2])]
        action_values[:, own] = walk.root.value[FOLLOW, top : top + actions, : len(own)]
        return action_values

    def _public(self, cards: ListedCards) -> PublicTree:
        """Return the public tree with these cards; single-board trees share everything but the ranges."""
        if any(len(boards) > 1 for boards in cards.board_cards):
            return public_tree(replace(self._game, cards=cards))
        if self._alike is None:
            self._alike = public_tree(replace(self._game, cards=cards))
        ranges = make_ranges(cards, self._alike.copies.times > 0)
        return self._alike._replace(ranges=ranges, reach=np.array(cards.reach, np.float64, order="C"))

    def on_board(self, full: Sequence[int], reach: Floats) -> ListedCards:
        """Return one full board of the full deck, from the decision's street on.

        reach  [2, H] weights of both players' hands at the decision; hands that share a card with the board count as 0
        """
        dealing, deck = self._dealing, self._source.game.cards
        last = deck.streets - 1
        live = dealing.live(last, tuple(full))
        boards = dealing.path(last, full)[self.street :]
        bucket_rows = [dealing.bucket_row(street, 0, board) for street, board in enumerate(boards, self.street)]
        return ListedCards(
            dealing.hand_cards,
            [""] * dealing.hand_count,
            np.where(live, reach, 0.0),
            [np.array([board], np.int16) for board in boards],
            [np.zeros(1, np.int32) for _ in boards],
            np.where(live, dealing.strengths(tuple(full)), -1).astype(np.int32)[None],
            [np.tile(np.where(live, rows, NO_BUCKET), (2, 1))[:, None].astype(np.int32) for rows in bucket_rows],
            np.asarray(deck.buckets)[self.street :],
        )

    def listed(self, board: Board, reach: Floats) -> ListedCards:
        """Return all boards after `board` (its number) in a game that lists them; `reach` as in `on_board`."""
        later = self._source.game.cards.after(self.street, board).from_street(self.street)
        return replace(later, reach=np.where(later.reach > 0, reach, 0.0))

    def _tables(self, cards: ListedCards) -> tuple[list[Floats], ListedCards]:
        """Return the strategy's tables [slots, buckets] by block, and the cards with buckets renumbered.

        Only buckets that some hand has on these boards are read.
        """
        tree, tables, buckets = self._game.tree, list[Floats](), list[Any]()
        for street, rows in enumerate(cards.bucket):
            numbered = np.full_like(rows, NO_BUCKET)
            for player in range(2):
                live = (rows[player] >= 0) & (cards.reach[player] > 0)
                occurring = np.unique(rows[player][live])
                numbered[player][live] = np.searchsorted(occurring, rows[player][live])
                block = 2 * street + player
                table = np.zeros((int(tree.row_slots[block]), max(1, len(occurring))))
                for node in np.flatnonzero(tree.arrays.block == block).tolist() if len(occurring) else ():
                    probabilities = self._source.rows(int(self._nodes[node]), occurring)[0]
                    slot = int(tree.arrays.slot[node])
                    table[slot : slot + probabilities.shape[1]] = probabilities.T
                tables.append(table)
            buckets.append(numbered)
        counts = np.array([[max(1, int(rows[player].max()) + 1) for player in range(2)] for rows in buckets], np.int64)
        return tables, replace(cards, bucket=buckets, buckets=counts)


class HandValues:
    """Accumulates the EVs at one decision board by board. H hands, A actions.

    listed  number of boards to walk for an exact result; None: too many, boards are drawn
    """

    def __init__(self, below: Below, dealing: IndexedCards, board: Board, reach: Floats, seed: int = 0) -> None:
        """Prepare the accumulation; no board is walked yet.

        below  the decision; `dealing` deals its source's cards
        board  at the decision: its cards, or its number in a game that lists boards
        reach  [2, H] weights of both players' hands there
        seed   of drawn boards
        """
        self._below, self._board, self._reach, self._seed = below, board, reach, seed
        self._drawn = 0
        self.listed: int | None = 1  # one walk takes all boards of a game that lists them
        if isinstance(board, tuple):
            self._drawn = below.cards_to_come
            self.listed = None if self._drawn > 1 else CARD_COUNT - len(board) if self._drawn else 1
        self._totals: tuple[Floats, Floats, Floats] | None = None
        self._boards: list[tuple[float, float, float]] = []
        self._drawn_values: list[npt.NDArray[np.float32]] = []  # per drawn board [A + 1, H]: action values, weight

    @property
    def boards(self) -> int:
        """Number of boards walked so far."""
        return len(self._boards)

    @property
    def complete(self) -> bool:
        """All possible boards have been walked, so the values are exact."""
        return self.boards == self.listed

    def walk(self) -> None:
        """Walk one more board; `ValueError` if all have been walked."""
        if self.complete:
            raise ValueError(f"all {self.boards} boards have been walked")
        if isinstance(self._board, tuple):
            cards = self._below.on_board(self._run_out(self._board), self._reach)
        else:
            cards = self._below.listed(self._board, self._reach)
        new = self._below.values(cards)
        own = cards.reach
        value, action, weight = new
        if self.listed is None:
            self._drawn_values.append(np.vstack([action, weight[self._below.player]]).astype(np.float32))
        self._boards.append((float(own[0] @ value[0]), float(own[1] @ value[1]), float(own[0] @ weight[0])))
        if self._totals is None:
            self._totals = new
        else:
            for total, more in zip(self._totals, new, strict=True):
                np.add(total, more, out=total)

    def _run_out(self, board: tuple[int, ...]) -> tuple[int, ...]:
        """Return the next full board."""
        remaining = [card for card in range(CARD_COUNT) if card not in board]
        if self.listed is not None:
            return (*board, *remaining[self.boards : self.boards + self._drawn])
        return (*board, *_drawn(self._seed, self.boards, remaining, self._drawn))

    def hands(self) -> Floats:
        """Return [2, H] each hand's EV in chips of the whole hand; NaN if no opposing hand is possible."""
        value, _, weight = self._gathered()
        return _ratio(value, weight)

    def actions(self) -> Floats:
        """Return [A, H] EVs of the player to act after each action."""
        _, action, weight = self._gathered()
        return _ratio(action, weight[self._below.player])

    def costs(self) -> Floats:
        """Return [A, H] chips by which each action's EV is below the best one's; NaN without opposing hands."""
        values = self.actions()
        return np.asarray(values.max(axis=0) - values)

    def cost95(self, action: int, hand: int) -> tuple[float, float] | None:
        """Return the 95 % interval of one entry of `costs`, relative to the best action on the boards so far.

        Return None with fewer than two drawn boards, and for listed boards until all are walked, since their order
        is not random.
        """
        costs = self.costs()[:, hand]
        if self.complete:
            return float(costs[action]), float(costs[action])
        if len(self._drawn_values) < 2 or np.isnan(costs).any():
            return None
        each = np.array([board[:, hand] for board in self._drawn_values], np.float64)
        return ratio95(each[:, costs.argmin()] - each[:, action], each[:, -1])[1]

    def mean(self, player: int) -> tuple[float, tuple[float, float]] | None:
        """Return the EV of a player's range in chips per hand and its 95 % interval.

        Return None if the ranges are incompatible. After one drawn board of several the interval is infinite.
        """
        each = np.array(self._boards)
        if not each.size or not each[:, 2].sum() > 0:
            return None
        if self.boards == 1 and not self.complete:
            return float(each[0, player] / each[0, 2]), (-np.inf, np.inf)
        return ratio95(each[:, player], each[:, 2], self.listed)

    def _gathered(self) -> tuple[Floats, Floats, Floats]:
        if self._totals is None:
            raise ValueError("no board has been walked yet")
        return self._totals


def _ratio(value: Floats, weight: Floats) -> Floats:
    """Return values divided by weights; NaN where the weight is 0."""
    nonzero = weight > _LEAST_REACH * np.maximum(weight.max(initial=0), 1e-300)
    return np.where(nonzero, value / np.where(nonzero, weight, 1), np.nan)


class StreetStartValues(NamedTuple):
    """EVs of buckets at the decisions that begin a street. R decisions, B buckets of a player.

    street, player  of the buckets
    nodes           [R] decisions that begin the street, ascending
    value           [B, R] mean chips of the whole hand over the bucket's hands and boards, both players following
                    the strategy. Weighted by the deal and the opponent's reach; NaN where the opponent's reach is 0
    """

    street: int
    player: int
    nodes: npt.NDArray[np.int32]
    value: Floats


def root_values(
    source: Behaviour,
    boards: int = 100,
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> tuple[list[StreetStartValues], bool]:
    """Return the values at the starts of all streets for both players, and a flag that they are exact.

    boards    full boards drawn in full-deck hold'em; listed boards are all walked, with exact values
    progress  called with the number of boards done and the total

    Values are counterfactual: the player's own reach is left out. Raises `ValueError` for a game without cards
    beside its tree, and for fewer than one board.
    """
    if boards < 1:
        raise ValueError(f"boards = {boards}: at least 1 is needed")
    dealing, cards = source.game.cards.at_table(), source.game.cards
    roots = _roots(source, dealing)
    sums = {
        (root.node, player): np.zeros((2, int(cards.buckets[root.street][player])))
        for root in roots
        for player in range(2)
    }
    listed, last = cards.boards is not None, dealing.streets - 1
    dealt = range(boards if cards.boards is None else cards.boards)
    walked: set[tuple[int, Any]] = set()
    for number in dealt:
        board = number if listed else _drawn(seed, number, list(range(CARD_COUNT)), cards.cards_on(last))
        path = dealing.path(last, board)
        reach = reaches(source, dealing, path)
        for root in roots:
            if listed and (root.node, path[root.street]) in walked:
                continue  # all boards after this one have been walked already
            walked.add((root.node, path[root.street]))
            for player in range(2):
                _add_root(sums[root.node, player], root, dealing, path, player, reach[root.node])
        if progress is not None:
            progress(number + 1, len(dealt))
    results = []
    for street in range(dealing.streets):
        own = [root.node for root in roots if root.street == street]
        for player in range(2):
            columns = [_ratio(*sums[node, player]) for node in own]
            value = np.stack(columns, axis=1) if columns else np.zeros((int(cards.buckets[street][player]), 0))
            results.append(StreetStartValues(street, player, np.array(own, np.int32), value))
    return results, listed


def _roots(source: Behaviour, dealing: IndexedCards) -> list[Below]:
    """Return the decisions that begin a street."""
    tree = source.game.tree
    decides = np.flatnonzero(tree.arrays.kind == DECISION).tolist()
    street = tree.arrays.block // 2
    begins = [node for node in decides if node == 0 or street[node] != street[tree.parent[node]]]
    return [Below(source, dealing, node) for node in begins]


def _drawn(seed: int, number: int, remaining: list[int], count: int) -> tuple[int, ...]:
    """Draw `count` of the cards `remaining` with the stream of board `number` of a seed."""
    stream = new_stream(seed, _STREAM, EVALUATION, number)
    for position in range(count):
        other = position + int(uniform(stream) * (len(remaining) - position))
        remaining[position], remaining[other] = remaining[other], remaining[position]
    return tuple(remaining[:count])


def reaches(source: Behaviour, dealing: IndexedCards, path: Sequence[Board]) -> dict[int, Floats]:
    """Return for each decision [2, H] deal weights times each player's reach.

    path  boards of the first streets; decisions of later ones are left out
    """
    tree, reach_of = source.game.tree, {0: dealing.reach.astype(np.float64)}
    buckets = {
        (street, player): dealing.bucket_row(street, player, board)
        for street, board in enumerate(path)
        for player in range(2)
    }
    decides = (tree.arrays.kind == DECISION) & (tree.arrays.block < 2 * len(path))
    for node in np.flatnonzero(decides).tolist():
        street, player = divmod(int(tree.arrays.block[node]), 2)
        rows = source.rows(node, buckets[street, player])[0]
        for column, child in enumerate(tree.children(node)):
            if tree.arrays.kind[child] == DECISION:
                reach_of[child] = reach_of[node].copy()
                reach_of[child][player] *= rows[:, column]
    return reach_of


def _add_root(
    sums: Floats, root: Below, dealing: IndexedCards, path: Sequence[Board], player: int, reach: Floats
) -> None:
    """Add to sums [2, B] the weighted chips of a player's buckets at a root, and the weights."""
    weight = reach.copy()
    weight[player] = dealing.reach[player]
    last, board = path[-1], path[root.street]
    cards = root.on_board(last, weight) if isinstance(last, tuple) else root.listed(board, weight)
    value, _, opponent_reach = root.values(cards, (player,))
    bucket = dealing.bucket_row(root.street, player, board)
    live = (bucket >= 0) & (cards.reach[player] > 0)
    for row, by_hand in enumerate((value[player], opponent_reach[player])):
        sums[row] += np.bincount(bucket[live], (cards.reach[player] * by_hand)[live], sums.shape[1])
