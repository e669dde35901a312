"""Net chips of every hand at a decision when both players follow a given strategy from there on.

Chips are net winnings over the whole hand of poker. With the player's chips put in before the decision added, they are
the EV (`mccfr.play.expected_value`). On each board both ranges are walked through the betting as vectors, so a board is
exact in the private cards. A hand's mean is the ratio of two sums over boards: chips times the weight of possible
opposing hands, and that weight. It is exact if all possible boards are walked, and an estimate otherwise
(`mccfr.evaluation.decision_values`). The sampling is the public chance sampling of Johanson, Bard, Lanctot, Gibson &
Bowling 2012, for fixed strategies.
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
"""Worker number of the random stream for boards; other evaluations that draw boards use 0, 4 and 6."""
_LEAST_REACH = 1e-12  # of the largest weight: smaller weights are rounding errors of a true 0


class Below:
    """Computes net chips of all hands at one decision by walks of the subtree that begins there.

    node           the decision's number in the game's tree
    street         number of its street
    player         the player to act there, 0 or 1
    cards_to_come  number of board cards dealt after it
    nodes          number of nodes of the subtree

    In all arrays H is the number of hands in the game, and A the number of actions at the decision. A hand's index is
    its number in the game.
    """

    def __init__(self, source: Behaviour, dealing: IndexedCards, node: int, threads: int = 1) -> None:
        """Prepare the subtree at a decision; raise `ValueError` if `node` is no decision.

        source   the strategy of both players, with its game
        dealing  the game's hands and boards
        node     number of the decision in the game's tree
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
        """Return counterfactual values, when both players follow the strategy, on given boards.

        cards    boards and both players' weights of hands, from `on_board` or `listed`
        players  players to compute values for; entries of the other player are 0

        There are three results. Chips are net winnings of the player in the whole hand: chips put in before the
        decision count as lost.

        * [2, H] by player and hand: chips, times the weight of the opposing hands, as a mean over boards
        * [A, H] the same after each action of the decision, for the player who acts there
        * [2, H] by player and hand: weight of the opposing hands that share no card with the hand
        """
        value, action, public = self._values(*self._walk(cards), players)
        weight = np.zeros_like(value)
        for player in players:
            opponent_reach = self._dealing.disjoint_weight(public.reach[1 - player])
            weight[player] = np.where(public.reach[player] > 0, np.maximum(opponent_reach, 0), 0)
        return value, action, weight

    def of_samples(self, cards: ListedCards, size: int) -> Iterator[tuple[Floats, Floats, Floats, Floats]]:
        """Yield counterfactual values and showdown results for samples of `size` consecutive boards.

        cards  boards and both players' weights of hands, from `on_boards`
        size   number of boards in a sample

        A sample has four arrays, each summed over its boards, all on the same scale:

        * [2, H] by player and hand: chips of the whole hand, times the weight of the opposing hands
        * [A, H] the same after each action of the decision, for the player who acts there
        * [2, H] by player and hand: weight of the opposing hands that share no card with the hand
        * [2, H] by player and hand: weight of the opposing hands that it beats at a showdown minus of those that beat
          it
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
        """Return counterfactual values, counting only lines that end before another board card.

        Lines that go on, and all-ins before the last board card, count as 0. Values are chips times weight of the
        opposing hands: [2, H] at the decision by player, and [A, H] after each action, for the player who acts there.

        cards  boards and both players' weights of hands, from `on_boards`; the result does not depend on the later
               boards
        """
        tables, cards = self._tables(cards)
        public = public_tree(replace(self._game, cards=cards), some=True)
        first = np.arange(public.streets) == 0
        public = public._replace(boards=public.boards._replace(weight=np.where(first, public.boards.weight, 0.0)))
        value, action, _ = self._values(Walk(public, tables, self._threads, follow=False), public, (0, 1))
        return value, action

    def _values(self, walk: Walk, public: PublicTree, players: Sequence[int]) -> tuple[Floats, Floats, PublicTree]:
        """Return counterfactual values [2, H] at the decision, [A, H] after its actions, and `public`.

        Values are chips of the whole hand of poker, summed over the opposing hands with their weights.

        walk     traversal of the public tree, with the strategy
        public   the public tree that it traverses, returned unchanged
        players  players to compute values for; those of the other player are 0
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
        """Yield (node, player to act, values) for each decision of the subtree on its first street.

        The values [A, H] are counterfactual ones after each of that decision's A actions. They are chips of the whole
        hand times the opponent's reach at that decision.

        cards  boards and both players' weights of hands at the root of the subtree, with which reach begins
        """
        walk, public = self._walk(cards)
        for player in range(2):
            walk.values(player, public.streets)
            for node, actor, child, actions in self._decisions:
                if actor == player:
                    yield node, player, self._after(walk, public, player, child, actions)

    @cached_property
    def _decisions(self) -> list[tuple[int, int, int, int]]:
        """List of the subtree's decisions on its first street: (node, player, child, actions).

        node     number of the decision in the game's tree
        player   the player to act
        child    number of the node after the first action, counted from the root of the subtree
        actions  number of actions
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

        walk     traversal that has computed the values of `player`, who acts at the decision
        public   the public tree that it has traversed
        child    node after the first action, counted from the root of the subtree
        actions  number A of actions at the decision
        """
        action_values, top = np.zeros((actions, self._dealing.hand_count)), int(walk.root.member_first[0]) + child
        own = public.ranges.hand[slice(*public.ranges.first[player, :2])]
        action_values[:, own] = walk.root.value[FOLLOW, top : top + actions, : len(own)]
        return action_values

    def _public(self, cards: ListedCards) -> PublicTree:
        """Return the public tree of the subtree for given cards.

        For one board, it is made once and reused with the hands and strengths of other boards.

        cards  boards and both players' weights of hands
        """
        if any(len(boards) > 1 for boards in cards.board_cards):
            return public_tree(replace(self._game, cards=cards))
        if self._alike is None:
            self._alike = public_tree(replace(self._game, cards=cards))
        ranges = make_ranges(cards, self._alike.copies.times > 0)
        return self._alike._replace(ranges=ranges, reach=np.array(cards.reach, np.float64, order="C"))

    def on_board(self, full: Sequence[int], reach: Floats) -> ListedCards:
        """Return `ListedCards` with a single full board, from the decision's street on.

        full   card numbers of all board cards, from the full deck of 52
        reach  [2, H] weights of both players' hands at the decision; hands that share a card with the board get 0
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
        """Return `ListedCards` with several full boards that continue one board, for `of_samples`.

        board  board cards at the decision, from the full deck of 52
        full   full boards that continue it; no two of them have the same cards on the next street
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
        """Return `ListedCards` with all boards that continue a board.

        board  number of the board in the game's list for the decision's street; in full-deck hold'em its cards
        reach  [2, H] weights of both players' hands at the decision
        """
        known = self._source.game.cards.after(self.street, board).from_street(self.street)
        return replace(known, reach=np.where(known.reach > 0, reach, 0.0))

    def _tables(self, cards: ListedCards) -> tuple[list[Floats], ListedCards]:
        """Read the strategy on given boards; return its tables, and the cards with new buckets.

        There is one table [slots, buckets] of probabilities for each street and player. A slot is one action of one
        decision. Only buckets that some hand of nonzero weight has on these boards are read; they are numbered from 0.

        cards  boards and both players' weights of hands
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
    """Return for each street, as int32 array, the index of each board's board on the street before.

    All full boards share the first street's board; on later streets each one has a board of its own.

    count  number of full boards
    """
    one, each = np.zeros(1, np.int32), np.arange(count, dtype=np.int32)
    return [one, np.zeros(count, np.int32), *[each] * (streets - 2)][:streets]


def _boards_from(cards: ListedCards, first: int, count: int) -> ListedCards:
    """Return cards with only some of their full boards.

    cards  `ListedCards` made by `on_boards`
    first  index of the first full board to take
    count  number of full boards to take
    """
    some = slice(first, first + count)
    return replace(
        cards,
        board_cards=[cards.board_cards[0], *(boards[some] for boards in cards.board_cards[1:])],
        board_parent=_parents(len(cards.strength[some]), cards.streets),
        strength=cards.strength[some],
        bucket=[cards.bucket[0], *(bucket[:, some] for bucket in cards.bucket[1:])],
    )


class StreetStartValues(NamedTuple):
    """Values in net chips of one player's B buckets at the R decisions that begin a street.

    street, player  the street that begins, and the player whose buckets they are
    nodes           [R] numbers of these decisions in the tree, ascending
    value           [B, R] mean chips that the player wins in the whole hand, if both players follow the strategy. It is
                    the mean over the bucket's hands and boards, weighted by chance and the opponent's reach; NaN where
                    this weight is 0
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
    """Return the values of all buckets at decisions that begin a street; and True if they are exact.

    source    the strategies of both players, with their game
    boards    number of full boards drawn in full-deck hold'em; a game that lists its boards is walked on all of them,
              with exact values
    seed      seed of the drawn boards
    progress  called after each board with the number of boards done and the total

    There is one `StreetStartValues` for each street and player. Values are counterfactual: the player's own reach is
    left out. Raises `ValueError` for a game without cards or with the cards in its tree. Also for three and more
    players, and for fewer than one board.
    """
    if boards < 1:
        raise ValueError(f"boards = {boards}: at least 1 is needed")
    source.game.check_two_players("the table of values")
    dealing, cards = source.game.table_cards(), source.game.cards
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
    """Return a list of `Below`, one for each decision that begins a street."""
    tree = source.game.tree
    decides = np.flatnonzero(tree.arrays.kind == DECISION).tolist()
    street = tree.arrays.block // 2
    begins = [node for node in decides if node == 0 or street[node] != street[tree.parent[node]]]
    return [Below(source, dealing, node) for node in begins]


def _ratio(value: Floats, weight: Floats) -> Floats:
    """Return `value / weight` by element; NaN where the weight is 0 or as small as a rounding error."""
    known = weight > _LEAST_REACH * np.maximum(weight.max(initial=0), 1e-300)
    return np.where(known, value / np.where(known, weight, 1), np.nan)


def _drawn(seed: int, number: int, left: list[int], count: int) -> tuple[int, ...]:
    """Draw `count` cards at random without replacement; return their card numbers.

    seed, number  seed of the evaluation and number of the board, which determine the draw
    left          card numbers to draw from, shuffled in place
    """
    stream = new_stream(seed, _STREAM, EVALUATION, number)
    for number_drawn in range(count):
        other = number_drawn + int(uniform(stream) * (len(left) - number_drawn))
        left[number_drawn], left[other] = left[other], left[number_drawn]
    return tuple(left[:count])


def reaches(source: Behaviour, dealing: IndexedCards, path: Sequence[Board]) -> dict[int, Floats]:
    """Return {decision node: [2, H] range weight of each hand times its player's own reach}.

    source   the strategies of both players, with their game
    dealing  the game's hands, range weights and boards
    path     one board for each street, from the first street on; decisions of streets after the last board are left out
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
    """Add one player's weighted chips, and the weights, of a board to sums by bucket.

    sums     [2, B] sums for the player's B buckets: weight times chips, then weight; changed in place
    root     subtree below a decision that begins a street
    dealing  the game's hands and boards
    path     the board of each street, from the first street on
    player   the player whose hands and buckets they are: 0 or 1
    reach    [2, H] range weight times reach at the decision; the player's own reach is left out of the sums
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
