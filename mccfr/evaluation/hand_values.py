"""EVs of every hand below a decision when both players follow one strategy.

On each board both ranges are walked through the betting as vectors, so a board is exact in the private cards. A hand's
EV is the ratio of two sums over boards: chips times the weight of possible opposing hands, and that weight. It is exact
if all possible boards are walked, and an estimate otherwise (`mccfr.evaluation.decision_values`). The sampling is the
public chance sampling of Johanson, Bard, Lanctot, Gibson & Bowling 2012, for fixed strategies.
"""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from abstraction.cards import CARD_COUNT
from mccfr.cards.card_index import Board, IndexedCards
from mccfr.cards.card_lists import ListedCards
from mccfr.cards.deals import NO_BUCKET
from mccfr.common.rng import EVALUATION, new_stream, uniform
from mccfr.games.subgame import nodes_below, subtree
from mccfr.play.showdown_values import RunOuts, win_minus_lose
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
    """Computes EVs of hands at a decision by walks of the subtree below it. H hands, A actions.

    node           the decision, in the source's tree
    street         its street
    player         to act there
    cards_to_come  number of board cards dealt after it
    nodes          number of nodes of the subtree
    """

    def __init__(self, source: Behaviour, dealing: IndexedCards, node: int, threads: int = 1) -> None:
        """Take a decision `node` of the strategy `source`; `ValueError` if the node is no decision.

        dealing  the source's cards with numbered hands
        threads  number of threads; results do not depend on it
        """
        tree = source.game.tree
        if not 0 <= node < len(tree.parent) or tree.arrays.kind[node] != DECISION:
            raise ValueError(f"node {node} is not one of the tree's decisions")
        self.node, self.street = node, int(tree.arrays.block[node]) // 2
        self._source, self._dealing, self._nodes = source, dealing, nodes_below(tree, node)
        self._threads, self.nodes = threads, len(self._nodes)
        self._game = replace(source.game, tree=subtree(tree, node), real_rules=None)
        self._alike: PublicTree | None = None
        trees = street_trees(self._game.tree)
        self.player = int(tree.arrays.player[node])
        cards = source.game.cards
        self.cards_to_come = cards.cards_on(cards.streets - 1) - cards.cards_on(self.street)
        self._actions, self._child = int(trees.actions[0]), int(trees.child[0])

    def values(self, cards: ListedCards, players: Sequence[int] = (0, 1)) -> tuple[Floats, Floats, Floats]:
        """Return counterfactual values of the strategy, for cards from `on_board` or `listed`.

        There are three results. Entries of players not in `players` are 0. Chips are the player's winnings over the
        whole hand, chips put in before the decision included.

        * [2, H] chips at the decision by player and hand, times the weight of the opposing hands
        * [A, H] the same after each action of the player to act, for that player
        * [2, H] the weight of the opposing hands that share no card with each hand
        """
        value, action, public = self._values(*self._walk(cards), players)
        weight = np.zeros_like(value)
        for player in players:
            opponent_reach = self._dealing.disjoint_weight(public.reach[1 - player])
            weight[player] = np.where(public.reach[player] > 0, np.maximum(opponent_reach, 0), 0)
        return value, action, weight

    def of_samples(self, cards: ListedCards, size: int) -> Iterator[tuple[Floats, Floats, Floats, Floats]]:
        """Yield four arrays for each sample: `size` consecutive boards of cards from `on_boards`.

        Each is a sum over the sample's boards, all on the same scale.

        * [2, H] chips of the whole hand at the decision, times the weight of the opposing hands
        * [A, H] the same after each action of the player to act, for that player
        * [2, H] the weight of the opposing hands that share no card with each hand
        * [2, H] the opposing weight that each hand beats minus the weight that it loses to, at showdowns
        """
        tables, cards = self._tables(cards)

        def sample(first: int) -> tuple[Floats, Floats, Floats, Floats]:
            part = _boards_from(cards, first, size)
            public = public_tree(replace(self._game, cards=part), some=True)
            value, action, _ = self._values(Walk(public, tables, follow=False), public, (0, 1))
            each, weight = float(np.prod(public.boards.weight[1:])), np.zeros_like(value)
            for strength in part.strength:
                live = strength >= 0
                for player in range(2):
                    opponent_weight = self._dealing.disjoint_weight(np.where(live, part.reach[1 - player], 0.0))
                    weight[player] += each * np.where(
                        live & (part.reach[player] > 0), np.maximum(opponent_weight, 0), 0.0
                    )
            shown = RunOuts.of(part.strength, each * size)
            won = [win_minus_lose(self._dealing, shown, part.reach[1 - player]) for player in range(2)]
            return value, action, weight, np.where(part.reach > 0, np.stack(won), 0.0)

        with ThreadPoolExecutor(self._threads) as pool:
            yield from pool.map(sample, range(0, len(cards.strength), size))

    def of_street(self, cards: ListedCards) -> tuple[Floats, Floats]:
        """Return the part of the counterfactual values from hands that end without later board cards.

        Lines and all-in showdowns with later board cards count as 0. Values are [2, H] at the decision for both
        players, and [A, H] after each action of the player to act.

        cards  of `on_boards`; the result does not depend on the boards
        """
        tables, cards = self._tables(cards)
        public = public_tree(replace(self._game, cards=cards), some=True)
        first = np.arange(public.streets) == 0
        public = public._replace(boards=public.boards._replace(weight=np.where(first, public.boards.weight, 0.0)))
        value, action, _ = self._values(Walk(public, tables, self._threads, follow=False), public, (0, 1))
        return value, action

    def _values(self, walk: Walk, public: PublicTree, players: Sequence[int]) -> tuple[Floats, Floats, PublicTree]:
        """Return counterfactual values [2, H] at the decision, [A, H] after it, and `public`.

        public   the public tree that `walk` walks, returned unchanged
        players  players to compute values for; those of other players are 0
        """
        hands = self._dealing.hand_count
        value, action = np.zeros((2, hands)), np.zeros((self._actions, hands))
        for player in players:
            walk.values(player, public.streets)
            value[player] = walk.root.by_hand.value[0, FOLLOW]
            if player == self.player:
                action = self._after(walk, public, player, self._child, self._actions)
        return value, action, public

    def by_decision(self, cards: ListedCards) -> Iterator[tuple[int, int, Floats]]:
        """Yield (node, player, [A, H] counterfactual action values) for this street's decisions.

        Values are chips of the whole hand times the opponent's reach at the decision. That reach begins with the
        range of `cards` at the subtree's root.
        """
        walk, public = self._walk(cards)
        for player in range(2):
            walk.values(player, public.streets)
            for node, actor, child, actions in self._decisions:
                if actor == player:
                    yield node, player, self._after(walk, public, player, child, actions)

    @cached_property
    def _decisions(self) -> list[tuple[int, int, int, int]]:
        """(node, player, first child, number of actions) of this street's decisions.

        The first child is counted from the root of the subtree.
        """
        trees, member = street_trees(self._game.tree), street_members(self._game.tree)
        here = np.flatnonzero(trees.kind[: trees.first[1]] == AT_DECISION)
        columns = self._nodes[member[here]], trees.player[here], trees.child[here], trees.actions[here]
        return list(zip(*(column.tolist() for column in columns), strict=True))

    def _walk(self, cards: ListedCards) -> tuple[Walk, PublicTree]:
        tables, cards = self._tables(cards)
        public = self._public(cards)
        return Walk(public, tables, self._threads, follow=False), public

    def _after(self, walk: Walk, public: PublicTree, player: int, child: int, actions: int) -> Floats:
        """Return [A, H] counterfactual values in chips after each action of a decision.

        walk    has computed the values of `player`, who acts at the decision
        child   node after the first action, counted from the root of the subtree
        """
        action_values, top = np.zeros((actions, self._dealing.hand_count)), int(walk.root.member_first[0]) + child
        own = public.ranges.hand[slice(*public.ranges.first[player, :2])]
        action_values[:, own] = walk.root.value[FOLLOW, top : top + actions, : len(own)]
        return action_values

    def _public(self, cards: ListedCards) -> PublicTree:
        """Return the public tree with these cards; for one board, a cached one with new ranges."""
        if any(len(boards) > 1 for boards in cards.board_cards):
            return public_tree(replace(self._game, cards=cards))
        if self._alike is None:
            self._alike = public_tree(replace(self._game, cards=cards))
        ranges = make_ranges(cards, self._alike.copies.times > 0)
        return self._alike._replace(ranges=ranges, reach=np.array(cards.reach, np.float64, order="C"))

    def on_board(self, full: Sequence[int], reach: Floats) -> ListedCards:
        """Return the listed cards with one full board of the full deck, from the decision's street on.

        reach  [2, H] weights of both players' hands at the decision; hands that share a card with the board count as 0
        """
        dealing, deck = self._dealing, self._source.game.cards
        last = deck.streets - 1
        live = dealing.live(last, tuple(full))
        boards = dealing.path(last, full)[self.street :]
        bucket_rows = [dealing.bucket_row(street, 0, known) for street, known in enumerate(boards, self.street)]
        return ListedCards(
            dealing.hand_cards,
            [""] * dealing.hand_count,
            np.where(live, reach, 0.0),
            [np.array([known], np.int16) for known in boards],
            [np.zeros(1, np.int32) for _ in boards],
            np.where(live, dealing.strengths(tuple(full)), -1).astype(np.int32)[None],
            [np.tile(np.where(live, rows, NO_BUCKET), (2, 1))[:, None].astype(np.int32) for rows in bucket_rows],
            np.asarray(deck.buckets)[self.street :],
        )

    def on_boards(self, board: Sequence[int], full: Sequence[Sequence[int]], reach: Floats) -> ListedCards:
        """Return the listed cards with some full boards after `board` of the full deck, for `of_samples`.

        full   full boards; no two of them have the same cards on the next street
        reach  [2, H] weights of both players' hands at the decision
        """
        dealing, deck, count = self._dealing, self._source.game.cards, len(full)
        boards = [np.array([board], np.int16)]
        boards += [
            np.array([each[: deck.cards_on(street)] for each in full], np.int16)
            for street in range(self.street + 1, deck.streets)
        ]
        rows = [
            np.array([dealing.bucket_row(street, 0, tuple(known)) for known in some.tolist()], np.int32)
            for street, some in enumerate(boards, self.street)
        ]
        return ListedCards(
            dealing.hand_cards,
            [""] * dealing.hand_count,
            np.where(dealing.live(self.street, tuple(board)), reach, 0.0),
            boards,
            _parents(count, len(boards)),
            np.array([dealing.strengths(tuple(each)) for each in full], np.int32),
            [np.stack([row, row]) for row in rows],
            np.asarray(deck.buckets)[self.street :],
        )

    def listed(self, board: Board, reach: Floats) -> ListedCards:
        """Return the cards with all boards after `board` (its number), if the game lists them.

        reach  [2, H] weights of both players' hands at the decision
        """
        known = self._source.game.cards.after(self.street, board).from_street(self.street)
        return replace(known, reach=np.where(known.reach > 0, reach, 0.0))

    def _tables(self, cards: ListedCards) -> tuple[list[Floats], ListedCards]:
        """Return the strategy's tables [slots, buckets], and the cards with buckets renumbered.

        There is one table for each street and player; a slot is one action of a decision. Only buckets that some hand
        of the range has on these boards are read, and numbered from 0.
        """
        tree, tables, buckets = self._game.tree, list[Floats](), list[Any]()
        for street, rows in enumerate(cards.bucket):
            numbered = np.full_like(rows, NO_BUCKET)
            for player in range(2):
                in_range = (rows[player] >= 0) & (cards.reach[player] > 0)
                known = np.unique(rows[player][in_range])
                numbered[player][in_range] = np.searchsorted(known, rows[player][in_range])
                block = 2 * street + player
                table = np.zeros((int(tree.row_slots[block]), max(1, len(known))))
                for node in np.flatnonzero(tree.arrays.block == block).tolist() if len(known) else ():
                    probability = self._source.rows(int(self._nodes[node]), known)[0]
                    slot = int(tree.arrays.slot[node])
                    table[slot : slot + probability.shape[1]] = probability.T
                tables.append(table)
            buckets.append(numbered)
        counts = np.array([[max(1, int(rows[player].max()) + 1) for player in range(2)] for rows in buckets], np.int64)
        return tables, replace(cards, bucket=buckets, buckets=counts)


def _parents(count: int, streets: int) -> list[npt.NDArray[np.int32]]:
    """Return for each board the index of its board on the street before, one array per street.

    This is `ListedCards.board_parent` of `count` full boards that share the first street only.
    """
    one, each = np.zeros(1, np.int32), np.arange(count, dtype=np.int32)
    return [one, np.zeros(count, np.int32), *[each] * (streets - 2)][:streets]


def _boards_from(cards: ListedCards, first: int, count: int) -> ListedCards:
    """Return cards of `on_boards` with only the `count` full boards from number `first` on."""
    some = slice(first, first + count)
    return replace(
        cards,
        board_cards=[cards.board_cards[0], *(boards[some] for boards in cards.board_cards[1:])],
        board_parent=_parents(len(cards.strength[some]), cards.streets),
        strength=cards.strength[some],
        bucket=[cards.bucket[0], *(bucket[:, some] for bucket in cards.bucket[1:])],
    )


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
    """Return all buckets' EVs at decisions that begin streets, and a flag that they are exact.

    boards    full boards drawn in full-deck hold'em; listed boards are all walked, with exact values
    progress  called with the number of boards done and the total

    There is one `StreetStartValues` for each street and player. Values are counterfactual: the player's own reach is
    left out. Raises `ValueError` for a game that deals no cards outside of its tree, for three and more players, and
    for fewer than one board.
    """
    if boards < 1:
        raise ValueError(f"boards = {boards}: at least 1 is needed")
    source.game.check_two_players("the table of values")
    dealing, cards = source.game.cards.at_table(), source.game.cards
    roots = _roots(source, dealing)
    sums = {
        (root.node, player): np.zeros((2, int(cards.buckets[root.street][player])))
        for root in roots
        for player in range(2)
    }
    listed, last = cards.boards is not None, dealing.streets - 1
    dealt = range(boards if cards.boards is None else cards.boards)
    known: set[tuple[int, Any]] = set()
    for number in dealt:
        drawn = number if listed else _drawn(seed, number, list(range(CARD_COUNT)), cards.cards_on(last))
        path = dealing.path(last, drawn)
        reach = reaches(source, dealing, path)
        for root in roots:
            if listed and (root.node, path[root.street]) in known:
                continue  # all boards after this one have been walked already
            known.add((root.node, path[root.street]))
            for player in range(2):
                _add_root(sums[root.node, player], root, dealing, path, player, reach[root.node])
        if progress is not None:
            progress(number + 1, len(dealt))
    street_values = []
    for street in range(dealing.streets):
        own = [root.node for root in roots if root.street == street]
        for player in range(2):
            columns = [_ratio(*sums[node, player]) for node in own]
            value = np.stack(columns, axis=1) if columns else np.zeros((int(cards.buckets[street][player]), 0))
            street_values.append(StreetStartValues(street, player, np.array(own, np.int32), value))
    return street_values, listed


def _roots(source: Behaviour, dealing: IndexedCards) -> list[Below]:
    """Return the subtrees below all decisions that begin a street."""
    tree = source.game.tree
    decides = np.flatnonzero(tree.arrays.kind == DECISION).tolist()
    street = tree.arrays.block // 2
    begins = [node for node in decides if node == 0 or street[node] != street[tree.parent[node]]]
    return [Below(source, dealing, node) for node in begins]


def _ratio(value: Floats, weight: Floats) -> Floats:
    """Return values divided by weights; NaN where the weight is 0."""
    known = weight > _LEAST_REACH * np.maximum(weight.max(initial=0), 1e-300)
    return np.where(known, value / np.where(known, weight, 1), np.nan)


def _drawn(seed: int, number: int, left: list[int], count: int) -> tuple[int, ...]:
    """Draw `count` of the cards `left`, shuffled in place, by seed and board number."""
    stream = new_stream(seed, _STREAM, EVALUATION, number)
    for number_drawn in range(count):
        other = number_drawn + int(uniform(stream) * (len(left) - number_drawn))
        left[number_drawn], left[other] = left[other], left[number_drawn]
    return tuple(left[:count])


def reaches(source: Behaviour, dealing: IndexedCards, path: Sequence[Board]) -> dict[int, Floats]:
    """Return {decision node: [2, H] deal weight of each hand times its player's reach}.

    path  boards of the first streets, one for each; decisions of later streets are left out
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
    """Add to sums [2, B] the weighted chips of a player's B buckets, and the weights.

    root   subtree below a decision that begins a street
    path   boards by street, from the first on
    reach  [2, H] deal weights times reach at the decision; the player's own reach is not used
    """
    weight = reach.copy()
    weight[player] = dealing.reach[player]
    last, board = path[-1], path[root.street]
    cards = root.on_board(last, weight) if isinstance(last, tuple) else root.listed(board, weight)
    value, _, opponent_reach = root.values(cards, (player,))
    bucket = dealing.bucket_row(root.street, player, board)
    in_range = (bucket >= 0) & (cards.reach[player] > 0)
    for row, value_of_hand in enumerate((value[player], opponent_reach[player])):
        sums[row] += np.bincount(bucket[in_range], (cards.reach[player] * value_of_hand)[in_range], sums.shape[1])
