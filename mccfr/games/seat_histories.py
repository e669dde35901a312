"""Poker games of two to six players as full game trees, in which chance nodes deal the cards.

The possible betting does not depend on the hole cards dealt. So the nodes after one deal are expanded once, as a
template, and NumPy repeats them for every deal. The 1.8 million nodes of Leduc poker with three players take a second.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from math import comb
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from abstraction.small_deck_hands import DeckListing
from mccfr.cards.deals import card_masks
from mccfr.cards.no_cards import no_cards
from mccfr.games.betting import (
    BettingRules,
    BettingState,
    after_call,
    after_fold,
    amount_text,
    following,
    may_call,
    may_raise,
    payoffs,
    raised,
)
from mccfr.games.game import Game
from mccfr.trees.compiled import CHANCE, DECISION, NO_PARENT, NO_PLAYER, NO_SLOT, TERMINAL, CompiledTree, TreeArrays
from mccfr.trees.history_compiler import most_histories

Ints = npt.NDArray[np.integer]
Array = npt.NDArray[Any]


class _History(NamedTuple):
    """A node after the hole cards are dealt: a sequence of actions and boards.

    state   betting state at a decision, or at the end of the betting
    over    True if the betting has ended
    street  last street whose board is dealt, or -1
    board   index of the board among the boards of that street that are possible after the deal
    line    actions so far, with / between streets
    """

    state: BettingState
    over: bool = False
    street: int = -1
    board: int = 0
    line: str = ""


@dataclass
class _Template:
    """The T nodes after one deal of hole cards. Parents come first, siblings are adjacent.

    Each list has one entry per node, except `lines`. Nodes are numbered from 0 within the template.

    kind     CHANCE (a board is dealt), DECISION or TERMINAL
    parent   number of the parent
    first    number of the first child; 0 without children
    count    number of children
    label    action that leads to the node; "" for node 0 and after a board
    history  betting, board and line at the node
    lines    for each player {line of a decision: (street, number of actions)}
    """

    kind: list[int] = field(default_factory=lambda: [TERMINAL])
    parent: list[int] = field(default_factory=lambda: [NO_PARENT])
    first: list[int] = field(default_factory=lambda: [0])
    count: list[int] = field(default_factory=lambda: [0])
    label: list[str] = field(default_factory=lambda: [""])
    history: list[_History] = field(default_factory=list)
    lines: list[dict[str, tuple[int, int]]] = field(default_factory=list)


def seat_game(
    name: str, rules: BettingRules, deck: DeckListing, *, letters: str | None = None, merge_suits: bool
) -> Game:
    """Build the game of `rules` for two to six players on a small deck, as a full game tree.

    name         name of the game
    deck         all hands and boards of the deck
    letters      letters of the ranks, lowest first; None takes those of the highest ranks
    merge_suits  True: isomorphic pairs of hand and board share an infoset

    Raises `ValueError` if the deck is too small, or the tree too large (`most_histories`).
    """
    seats, hole = len(rules.put_in), deck.hole_cards
    if seats * hole + sum(deck.board_cards) > deck.cards:
        raise ValueError(
            f"{name} with {seats} players needs {seats * hole + sum(deck.board_cards)} cards, and the deck has "
            f"{deck.cards}: take more ranks or suits"
        )
    deals = 1
    for seat in range(seats):
        deals *= comb(deck.cards - seat * hole, hole)
    template = _expanded(name, rules, deck, deals)
    tree = _Tiling(rules, deck, template, merge_suits, letters).tree()
    return Game(name, tree, no_cards(seats), pot_chips=float(sum(rules.put_in)))


def _expanded(name: str, rules: BettingRules, deck: DeckListing, deals: int) -> _Template:
    """Return the nodes after one deal of hole cards; they are the same for every deal.

    deals  number of deals of the game

    Raises `ValueError` if all deals together have too many nodes.
    """
    found, allowed, seats = _Template(), most_histories(), len(rules.put_in)
    found.history.append(_History(rules.start()))
    found.lines = [{} for _ in range(seats)]
    todo = [0]
    while todo:
        node = todo.pop()
        history = found.history[node]
        state, street = history.state, history.street + 1
        shows = not history.over or state.seats.folded.bit_count() < seats - 1
        if shows and street <= (rules.streets - 1 if history.over else state.street):
            left = deck.cards - seats * deck.hole_cards - sum(deck.board_cards[:street])
            boards = comb(left, deck.board_cards[street])
            children = [history._replace(street=street, board=history.board * boards + b) for b in range(boards)]
            if deck.board_cards[street] == 0:
                found.history[node] = children[0]
                todo.append(node)
                continue
            found.kind[node], labels = CHANCE, [""] * boards
        elif history.over:
            continue
        else:
            found.kind[node] = DECISION
            labels, children = _actions(rules, history)
            found.lines[state.player].setdefault(history.line, (state.street, len(labels)))
        found.first[node], found.count[node] = len(found.kind), len(labels)
        todo.extend(reversed(range(len(found.kind), len(found.kind) + len(labels))))
        found.kind += [TERMINAL] * len(labels)
        found.parent += [node] * len(labels)
        found.first += [0] * len(labels)
        found.count += [0] * len(labels)
        found.label += labels
        found.history += children
        if len(found.kind) * deals > allowed:
            raise ValueError(
                f"{name} with {seats} players has at least {len(found.kind) * deals:,} histories; {allowed:,} are "
                "allowed: take fewer players, cards or raises"
            )
    return found


def _actions(rules: BettingRules, history: _History) -> tuple[list[str], list[_History]]:
    """Return the labels of a decision's actions, and the node after each of them.

    The order is fold, check or call, raises ascending. A node is a `_History`, a sequence of actions and boards.

    history  the decision
    """
    state, labels, children = history.state, list[str](), list[_History]()

    def add(label: str, acted: BettingState, after: BettingState | None) -> None:
        line = history.line + label + "/" * (after is not None and after.street > state.street)
        labels.append(label)
        children.append(history._replace(state=after or acted, over=after is None, line=line))

    if state.facing:
        acted = after_fold(state)
        add("f", acted, following(rules, acted))
    if may_call(rules, state):
        acted = after_call(rules, state)
        add("c", acted, following(rules, acted, closes=rules.check_closes))
    for target in rules.raise_targets(state) if may_raise(rules, state) else ():
        after = raised(rules, state, target)
        add(rules.raise_text.format(amount_text(target)), after, after)
    return labels, children


class _Tiling:
    """Builds a game tree: repeats the T nodes after one deal (the template) for D deals.

    P is the number of players, N that of the nodes of the whole tree.
    """

    def __init__(
        self, rules: BettingRules, deck: DeckListing, template: _Template, merge_suits: bool, letters: str | None
    ) -> None:
        self.rules, self.deck, self.template, self.seats = rules, deck, template, len(rules.put_in)
        self.names = deck.hand_names(letters)
        self.cards = [deck.card_name(card, letters) for card in range(deck.cards)]
        self.numbers = [deck.numbers(street, merge_suits=merge_suits) for street in range(deck.streets)]
        self.hand_masks = card_masks(deck.hands)
        self.levels = [np.zeros((1, 0), np.int64)]  # hands of the first players, [deals of so many hands, hands]
        for _ in range(self.seats):
            before = self.levels[-1]
            deal, hand = np.nonzero((self._dead(before)[:, None] & self.hand_masks) == 0)
            self.levels.append(np.column_stack([before[deal], hand]))
        self.deals = self.levels[-1]
        self.boards = self._boards()

    def _dead(self, deals: Ints) -> npt.NDArray[np.uint64]:
        """Return [D] uint64 bit masks of the hole cards of D deals; bit c stands for card c.

        deals  [D, players with a hand] hand numbers
        """
        return np.bitwise_or.reduce(self.hand_masks[deals], axis=1, initial=np.uint64(0))

    def _boards(self) -> list[Ints]:
        """Return for each street [D, boards] the numbers of the boards possible after each of D deals."""
        dead, above, found = self._dead(self.deals), np.zeros((len(self.deals), 1), np.int64), []
        for boards, parent in zip(self.deck.boards, self.deck.parents, strict=True):
            following_boards = np.argsort(parent, kind="stable").reshape(int(parent.max()) + 1, -1)[above]
            free = (card_masks(boards)[following_boards] & dead[:, None, None]) == 0
            above = following_boards[free].reshape(len(dead), -1)
            found.append(above)
        return found

    def _spread(self, dealing: Any, column: Array) -> Array:
        """Return one property of all nodes of the whole tree, such as the number of children, as [N, ...].

        dealing  the property for the chance nodes that deal the hands, which come first
        column   [D, T, ...] the property for the T template nodes after each of D deals

        After the dealing nodes come node 0 of the template for all deals, then its other nodes, deal by deal.
        """
        roots, rest = column[:, :1], column[:, 1:]
        shape = (-1, *column.shape[2:])
        return np.concatenate([np.asarray(dealing, column.dtype), roots.reshape(shape), rest.reshape(shape)])

    def tree(self) -> CompiledTree:
        """Return the whole tree: chance nodes that deal hole cards, then nodes of each deal."""
        template, deals = self.template, len(self.deals)
        sizes = [len(level) for level in self.levels]
        starts = np.cumsum([0, *sizes])
        roots, rest, nodes = int(starts[-2]), int(starts[-1]), len(template.kind) - 1
        own = (np.arange(deals) * nodes + rest - 1)[:, None]  # number of a template's node 0, if it lay before the rest

        def tiled(values: Sequence[int], dealing: Any) -> Array:
            return self._spread(dealing, np.broadcast_to(np.array(values), (deals, nodes + 1)))

        def numbered(values: Sequence[int], dealing: Any) -> Array:
            number = np.array(values) + own
            return self._spread(dealing, np.where(np.array(values) == 0, roots + np.arange(deals)[:, None], number))

        counts = [more // less for less, more in pairwise(sizes)]
        count = np.repeat(counts, sizes[:-1])
        player = [
            h.state.player if k == DECISION else NO_PLAYER for h, k in zip(template.history, template.kind, strict=True)
        ]
        row, slot, tables = self._rows()
        payoff = self._spread(np.zeros((roots, self.seats)), self._payoffs())
        parent = np.concatenate([[NO_PARENT], np.repeat(np.arange(roots), count)])
        below = numbered([0, *template.parent[1:]], parent[:roots])
        below[:rest] = parent
        probability = np.repeat(1 / count, count)
        chance = [1 / template.count[p] if p >= 0 and template.kind[p] == CHANCE else 1.0 for p in template.parent]
        chances = self._spread(np.ones(roots), np.broadcast_to(np.array(chance), (deals, nodes + 1)))
        chances[1:rest] = probability
        players = tiled(player, [NO_PLAYER] * roots).astype(np.int8)
        arrays = TreeArrays(
            kind=tiled(template.kind, [CHANCE] * roots).astype(np.int8),
            player=players,
            block=players.copy(),
            count=tiled(template.count, count).astype(np.int32),
            first=np.where(
                tiled(template.count, count) > 0,
                numbered(template.first, 1 + np.cumsum(count) - count),
                -1,
            ).astype(np.int32),
            slot=self._spread([NO_SLOT] * roots, slot).astype(np.int32),
            row=self._spread([NO_SLOT] * roots, row).astype(np.int32),
            fixed=payoff[:, 0].copy(),
            showdown=np.zeros(len(players)),
            probability=chances,
            touched=np.ones(len(players), np.int8),
        )
        row_slots, names = np.array([table[0] for table in tables], np.int64), tuple(table[1] for table in tables)
        row_count = np.array([len(rows) for rows in names], np.int64)
        label = self._labels(rest)
        return CompiledTree(arrays, below.astype(np.int32), label, 1, row_slots, row_count, names, payoffs=payoff)

    def _rows(self) -> tuple[Ints, Ints, list[tuple[int, list[str]]]]:
        """Return row and slot of each node, and (number of slots, infoset names) by player.

        Rows and slots are arrays [D, T]. A row is the index of an infoset among those of its player. A slot is the
        index of the infoset's first action in the player's table of all (infoset, action) pairs. Rows are ordered by
        betting line, then by bucket (hand and board).
        """
        shape = (len(self.deals), len(self.template.kind))
        row, slot = np.full(shape, NO_SLOT, np.int64), np.full(shape, NO_SLOT, np.int64)
        starts: list[dict[str, tuple[int, int]]] = []
        tables: list[tuple[int, list[str]]] = []
        texts = [self._bucket_texts(street) for street in range(self.deck.streets)]
        for lines in self.template.lines:
            begins, slots, names = dict[str, tuple[int, int]](), 0, list[str]()
            for line, (street, actions) in lines.items():
                begins[line] = len(names), slots
                names += [f"{text} {line}".rstrip() for text in texts[street]]
                slots += actions * len(texts[street])
            starts.append(begins)
            tables.append((slots, names))
        for node, (kind, history) in enumerate(zip(self.template.kind, self.template.history, strict=True)):
            if kind == DECISION:
                player = history.state.player
                board = self.boards[history.street][:, history.board]
                bucket = self.numbers[history.street][board, self.deals[:, player]]
                first_row, first_slot = starts[player][history.line]
                row[:, node] = first_row + bucket
                slot[:, node] = first_slot + bucket * self.template.count[node]
        return row, slot, tables

    def _bucket_texts(self, street: int) -> list[str]:
        """Return a text for each bucket of a street: its first hand and board."""
        board, hand = np.nonzero(self.numbers[street] >= 0)
        _, first = np.unique(self.numbers[street][board, hand], return_index=True)
        boards = self.deck.boards[street]
        texts = ("".join(self.cards[card] for card in boards[board[at]]) for at in first)
        return [f"{self.names[hand[at]]} {text}".rstrip() for at, text in zip(first, texts, strict=True)]

    def _payoffs(self) -> npt.NDArray[np.float64]:
        """Return [D, T, P] the net chips that each of P players wins at terminals; 0 at other nodes.

        T is the number of nodes after one deal of hole cards, D that of such deals.
        """
        template, last = self.template, self.boards[-1]
        strength = self.deck.strength[last[:, :, None], self.deals[:, None]]  # [D, boards, P]
        beaten = (strength[..., None] > strength[..., None, :]).sum(
            axis=-1
        )  # [D, boards, P] number of players that each player beats
        orders, which = np.unique(beaten.reshape(-1, self.seats), axis=0, return_inverse=True)
        which = which.reshape(last.shape)
        found: dict[Any, npt.NDArray[np.float64]] = {}
        paid = np.zeros((len(self.deals), len(template.kind), self.seats))
        for node, (kind, history) in enumerate(zip(template.kind, template.history, strict=True)):
            if kind != TERMINAL:
                continue
            state = history.state
            key = state.put_in, state.seats.folded
            if key not in found:
                found[key] = np.array([payoffs(self.rules, state, order) for order in orders.tolist()])
            folded = state.seats.folded.bit_count() == self.seats - 1
            paid[:, node] = found[key][0] if folded else found[key][which[:, history.board]]
        return paid

    def _labels(self, rest: int) -> list[str]:
        """Return [N] the label of each node of the tree: a hand, new board cards, or an action.

        rest  number of the nodes that deal hands and of the roots below them
        """
        deals, template = len(self.deals), self.template
        labels = [""] + [self.names[hand] for level in self.levels[1:] for hand in level[:, -1].tolist()]
        tiles = template.label[1:] * deals
        step = len(template.label) - 1
        for node, (parent, history) in enumerate(zip(template.parent, template.history, strict=True)):
            if parent >= 0 and template.kind[parent] == CHANCE:
                street = template.history[parent].street + 1
                cards = self.deck.boards[street][self.boards[street][:, history.board]]
                new = cards[:, cards.shape[1] - self.deck.board_cards[street] :].tolist()
                tiles[node - 1 :: step] = ["".join(self.cards[card] for card in dealt) for dealt in new]
        assert len(labels) == rest
        return labels + tiles
