"""Betting rules of the poker family and the public betting tree they span.

One state machine serves Kuhn, Leduc, limit and no-limit poker, the half-street games and hold'em: what differs is the
amounts put in at the start, who acts first, and which amounts a player may raise to.  Amounts are chips put in over the
whole hand, as in the ACPC protocol: `r300` raises *to* 300.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import inf

import numpy as np

from mccfr.tree import DECISION, NO_PARENT, NO_PLAYER, NO_SLOT, TERMINAL, CompiledTree, TreeArrays

MAX_NODES = 20_000_000  # a menu that spans more is a mistake, or needs a limit on bets


@dataclass(frozen=True)
class BettingState:
    """A public state: what both players see of the betting."""

    put_in: tuple[float, float]  # chips each player has put in over the whole hand
    player: int
    street: int = 0
    bets: int = 0  # bets and raises on this street (a blind is none)
    acted: bool = False  # somebody has acted on this street
    last_raise: float = 0  # size of the last bet or raise on this street, at the least the minimum bet
    dealt: bool = False  # board cards are dealt on the way into this state

    @property
    def to_call(self) -> float:
        """Chips that a check or call brings the actor up to: his own blind may be the larger one."""
        return max(self.put_in)

    def with_put_in(self, amount: float) -> tuple[float, float]:
        """`put_in` once the actor has put in `amount` chips."""
        return (amount, self.put_in[1]) if self.player == 0 else (self.put_in[0], amount)


@dataclass(frozen=True)
class BettingRules:
    """What makes one betting game differ from another."""

    put_in: tuple[float, float]  # antes and blinds, by position
    first_player: Sequence[int]  # position that acts first on each street
    raise_targets: Callable[[BettingState], Sequence[float]]  # amounts the actor may raise to, ascending
    stack: float = inf  # chips of each player in the whole hand
    minimum_bet: float = 0  # starting value of `last_raise` on each street
    board_cards: Sequence[int] = ()  # cards dealt on each street; () means none anywhere
    check_closes: bool = False  # half-street games: a check ends the street at once
    raise_text: str = "r{}"  # how a raise is written; the braces hold the amount raised to

    @property
    def streets(self) -> int:
        """Number of streets."""
        return len(self.first_player)

    def deals_board(self, street: int) -> bool:
        """Whether board cards come on this street."""
        return bool(self.board_cards) and self.board_cards[street] > 0

    def start(self) -> BettingState:
        """The first decision of a hand."""
        return BettingState(self.put_in, self.first_player[0], last_raise=self.minimum_bet)


def amount_text(amount: float) -> str:
    """Chips without a needless fraction: 300, 1.5."""
    return str(int(amount)) if amount == int(amount) else repr(float(amount))


def raised(state: BettingState, target: float) -> BettingState:
    """The state after the actor has raised to `target` chips."""
    increment = target - state.to_call
    return replace(
        state,
        put_in=state.with_put_in(target),
        player=1 - state.player,
        bets=state.bets + 1,
        acted=True,
        last_raise=max(increment, state.last_raise),
        dealt=False,
    )


def called(rules: BettingRules, state: BettingState) -> BettingState | None:
    """The decision after a check or call, or None if the hand is over (showdown, or all-in and run out)."""
    level = state.to_call
    put_in = state.with_put_in(level)
    if not (state.acted or rules.check_closes):
        return replace(state, put_in=put_in, player=1 - state.player, acted=True, dealt=False)
    street = state.street + 1
    if street == rules.streets or level >= rules.stack:
        return None
    return BettingState(
        put_in,
        rules.first_player[street],
        street,
        last_raise=rules.minimum_bet,
        dealt=rules.deals_board(street),
    )


class _Builder:
    """Grows the record lists; siblings get their numbers together, before the first one's children."""

    def __init__(self, rules: BettingRules) -> None:
        self.rules = rules
        self.records: list[list[float]] = []
        self.label: list[str] = []
        blocks = 2 * rules.streets
        self.slots, self.rows = [0] * blocks, [0] * blocks

    def add(self, parent: int, label: str) -> int:
        if len(self.records) >= MAX_NODES:
            raise ValueError(f"the betting tree has more than {MAX_NODES:,} nodes: limit the bets or offer fewer sizes")
        #                    kind     player     block count first slot     row    fixed showdown touched parent
        self.records.append([TERMINAL, NO_PLAYER, -1, 0, -1, NO_SLOT, NO_SLOT, 0.0, 0.0, 1, parent])
        self.label.append(label)
        return len(self.records) - 1

    def end_by_fold(self, node: int, state: BettingState) -> None:
        self.records[node][7] = -state.put_in[0] if state.player == 0 else state.put_in[1]

    def end_by_call(self, node: int, state: BettingState) -> None:
        rules = self.rules
        run_out = any(rules.deals_board(street) for street in range(state.street + 1, rules.streets))
        self.records[node][8:10] = [state.to_call, 1 + run_out]

    def expand(self, node: int, state: BettingState) -> list[tuple[int, BettingState]]:
        """Turn a node into the decision of `state`; its children that are decisions are returned, to be expanded."""
        rules, block = self.rules, 2 * state.street + state.player
        facing = state.put_in[state.player] < state.to_call
        after_call = called(rules, state)
        targets = rules.raise_targets(state) if state.to_call < rules.stack else ()
        first = len(self.records)
        children: list[tuple[int, BettingState]] = []
        if facing:
            self.end_by_fold(self.add(node, "f"), state)
        call = self.add(node, "c")
        if after_call is None:
            self.end_by_call(call, state)
        else:
            children.append((call, after_call))
        for target in targets:
            children.append((self.add(node, rules.raise_text.format(amount_text(target))), raised(state, target)))
        count = len(self.records) - first
        self.records[node][:7] = [DECISION, state.player, block, count, first, self.slots[block], self.rows[block]]
        self.records[node][9] = 1 + state.dealt
        self.slots[block] += count
        self.rows[block] += 1
        return children


def build_tree(rules: BettingRules) -> CompiledTree:
    """The public betting tree of `rules` (general records, siblings contiguous, depth-first order).

    Raises `ValueError` if it grows beyond MAX_NODES.
    """
    builder = _Builder(rules)
    todo = [(builder.add(NO_PARENT, ""), rules.start())]
    while todo:
        node, state = todo.pop()
        todo.extend(reversed(builder.expand(node, state)))
    columns = list(zip(*builder.records, strict=True))
    kind, player, block, count, first, slot, row, fixed, showdown, touched, parent = columns
    arrays = TreeArrays(
        np.array(kind, np.int8),
        np.array(player, np.int8),
        np.array(block, np.int8),
        np.array(count, np.int32),
        np.array(first, np.int32),
        np.array(slot, np.int32),
        np.array(row, np.int32),
        np.array(fixed, np.float64),
        np.array(showdown, np.float64),
        np.ones(len(kind), np.float64),
        np.array(touched, np.int8),
    )
    return CompiledTree(
        arrays,
        np.array(parent, np.int32),
        builder.label,
        rules.streets,
        np.array(builder.slots, np.int64),
        np.array(builder.rows, np.int64),
    )
