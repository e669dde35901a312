"""Builds the public betting tree that the rules of a game for two to six players generate."""

from array import array
from collections.abc import Sequence
from dataclasses import replace
from math import inf, isfinite
from numbers import Real
from operator import lt

import numpy as np

from mccfr.common.user_code import UserCodeError, function_name, is_foreign, user_error
from mccfr.games.betting import (
    MAX_CHIPS,
    MOST_SEATS,
    BettingRules,
    BettingState,
    after_call,
    after_fold,
    amount_text,
    fold_value,
    following,
    may_call,
    may_raise,
    pots_of,
    raised,
)
from mccfr.trees.compiled import DECISION, NO_PARENT, CompiledTree, Pots, blank_arrays, numbered_rows
from mccfr.trees.street_amounts import street_action, street_line

MAX_NODES = 10_000_000
"""Most nodes of a betting tree.

A node of two players takes about 300 bytes during compilation: 3 GB. runs/hunl-large.toml has 298,498 nodes.
"""
MAX_BETS = 1_000
"""Most bets on one street; a game that never ends reaches it.

Two streets of so many bets have three million nodes.
"""
MAX_BLOCKS = 127
"""Most blocks, one for each street and player: they are numbered in int8."""


class _Builder:
    """Builds the arrays of a betting tree (`CompiledTree`), one decision at a time, depth-first.

    The nodes after a decision's actions get consecutive numbers, before all nodes below them.
    """

    def __init__(self, rules: BettingRules) -> None:
        self.rules = rules
        self.start = rules.line_start
        self.label = [""]
        # for each decision, in order of expansion: node, block, number of actions, touched nodes
        self.node, self.block, self.count, self.touched = array("i"), array("b"), array("i"), array("b")
        self.players = len(rules.put_in)
        self.put_in = [array("d") for _ in range(self.players)]  # by player, at each decision
        # for each terminal: node, touched nodes, payoffs (two players) or number of pots, chips of the players
        self.leaf, self.leaf_touched, self.leaf_pots = array("i"), array("b"), array("i")
        self.fixed, self.showdown = array("d"), array("d")
        self.leaf_put_in = [array("d") for _ in range(self.players)]
        self.pot_chips, self.contenders = array("d"), array("b")
        self.raise_label: dict[float, str] = {}
        self.has_edits = bool(rules.added or rules.removed)
        self.foreign = is_foreign(rules.raise_targets)
        self.above = [NO_PARENT]  # parent of each node, recorded if lines are edited or appear in errors
        self.applied: set[tuple[str, str, float]] = set()  # edits already applied
        streets = range(rules.streets)
        self.run_out = [any(rules.deals_board(later) for later in streets[street + 1 :]) for street in streets]

    def add(self, label: str) -> int:
        self.label.append(label)
        return len(self.label) - 1

    def label_of_raise(self, target: float) -> str:
        label = self.raise_label.get(target)
        if label is None:
            label = self.raise_label[target] = self.rules.raise_text.format(amount_text(target))
        return label

    def line(self, node: int) -> str:
        """Return the actions that lead to a node as text such as "cr300", without / for streets."""
        path = [node]
        while (above := self.above[path[-1]]) != NO_PARENT:
            path.append(above)
        return "".join(self.label[each] for each in reversed(path))

    def targets(self, node: int, state: BettingState) -> Sequence[float]:
        """Return the amounts, in chips over the whole hand, that the player to act may raise to.

        If the game is user-defined, they come from a function of the user and are checked. An error is a
        `UserCodeError` that names the actions so far.

        node   number of the decision in the tree
        state  the betting there
        """
        if not self.foreign:
            return self.rules.raise_targets(state)
        function, where = self.rules.raise_targets, f" after the line {self.line(node)!r}"
        try:
            raises = list(function(state))
            numbers = all(isinstance(target, Real) and isfinite(target) for target in raises)
        except Exception as error:
            raise user_error(function, error, where) from error
        stack = min(self.rules.stack, MAX_CHIPS)
        if not numbers or not all(map(lt, (state.to_call, *raises), (*raises, inf))) or max(raises, default=0) > stack:
            raise UserCodeError(
                f"{function_name(function)}{where} returned {raises}; amounts to raise to are needed, ascending, above "
                f"{amount_text(state.to_call)} and at most {stack:g} chips"
            )
        if len({self.label_of_raise(target) for target in raises} | {"f", "c"}) != len(raises) + 2:
            raise UserCodeError(
                f"{function_name(function)}{where} returned {raises}, which raise_text = {self.rules.raise_text!r} "
                "writes alike: write {} where the amount stands"
            )
        return raises

    def edited(self, node: int, state: BettingState, targets: Sequence[float]) -> Sequence[float]:
        """Return the raise amounts at a decision, after additions and removals by the user.

        The rules give amounts to add and remove by betting line (`rules.added`, `rules.removed`). All amounts are chips
        put in over the whole hand.

        targets  raise amounts before the changes

        Raises `ValueError` if an added amount is illegal or in `targets`, or a removed one is not a raise there.
        """
        rules, line = self.rules, self.line(node)
        for amounts, edit in ((rules.added, "add"), (rules.removed, "remove")):
            for amount in amounts.get(line, ()):
                self.applied.add((edit, line, amount))
                if edit == "add" and not (amount == rules.stack or state.lowest_raise <= amount < rules.stack):
                    raise ValueError(
                        f"game.menu.add: {self.street_bet(line, amount)} is not a bet after the line "
                        f"{street_line(line, self.start)!r}: bets there are "
                        f"{self.street_bet(line, state.lowest_raise)} to {self.street_bet(line, rules.stack)}"
                    )
                if edit == "add" and amount in targets:
                    raise ValueError(
                        f"game.menu.add: {self.street_bet(line, amount)} after the line "
                        f"{street_line(line, self.start)!r} is in the tree already: leave it out"
                    )
        offered, removed = set(targets) | set(rules.added.get(line, ())), set(rules.removed.get(line, ()))
        if absent := sorted(removed - offered):
            bets = ", ".join(self.street_bet(line, amount) for amount in sorted(offered)) or "none"
            raise ValueError(
                f"game.menu.remove: {self.street_bet(line, absent[0])} is not a bet after the line "
                f"{street_line(line, self.start)!r}: bets there are {bets}"
            )
        return sorted(offered - removed)

    def check_edits(self) -> None:
        """Raise `ValueError` if the user adds or removes a bet at a decision that does not exist.

        The tree must have a decision after the line of each bet in `rules.added` and `rules.removed`, and a raise must
        be legal there.
        """
        for amounts, edit in ((self.rules.added, "add"), (self.rules.removed, "remove")):
            for line, listed in amounts.items():
                for amount in listed:
                    if (edit, line, amount) not in self.applied:
                        before = street_line(line, self.start)
                        raise ValueError(
                            f"game.menu.{edit}: {before + self.street_bet(line, amount)!r} is not a line of the tree: "
                            f"{before!r} leads to no such bet"
                        )

    def street_bet(self, line: str, amount: float) -> str:
        """Return a raise after a line as text with the chips put in on the street, such as b75.

        amount  chips put in over the whole hand after the raise
        """
        return street_action(line, f"r{amount_text(amount)}", self.start)

    def expand(self, node: int, state: BettingState) -> list[tuple[int, BettingState]]:
        """Record a decision: the node `node` with state `state`; add nodes for its actions.

        Returns a list of (node, state) of the children that are decisions. Raises `ValueError` if the tree becomes too
        large, and for invalid amounts to raise to.
        """
        rules = self.rules
        first = len(self.label)
        children: list[tuple[int, BettingState]] = []
        if state.facing:
            folded = after_fold(state)
            self.follow(children, "f", folded, following(rules, folded))
        if may_call(rules, state):
            matched = after_call(rules, state)
            self.follow(children, "c", matched, following(rules, matched, closes=rules.check_closes))
        raises = may_raise(rules, state)
        targets = self.targets(node, state) if raises else ()
        if self.has_edits:
            targets = self.edited(node, state, targets) if raises else ()
        self.check_size(state, targets)
        for target in targets:
            children.append((self.add(self.label_of_raise(target)), raised(rules, state, target)))
        self.node.append(node)
        self.block.append(self.players * state.street + state.player)
        self.count.append(len(self.label) - first)
        self.touched.append(1 + state.dealt)
        if self.has_edits or self.foreign:
            self.above.extend([node] * (len(self.label) - first))
        for chips, amount in zip(self.put_in, state.put_in, strict=True):
            chips.append(amount)
        return children

    def follow(
        self, children: list[tuple[int, BettingState]], label: str, acted: BettingState, after: BettingState | None
    ) -> None:
        """Add the node after a fold or call: a decision, or a terminal with its payoffs.

        children  list of (node, state) of the decisions so far, to which a decision is appended
        label     the action, "f" or "c"
        acted     state after the action
        after     state of the next decision, or None if the hand ends
        """
        node = self.add(label)
        if after is not None:
            children.append((node, after))
            return
        shows = acted.seats.folded.bit_count() < self.players - 1
        self.leaf.append(node)
        self.leaf_touched.append(1 + (shows and self.run_out[acted.street]))
        for chips, amount in zip(self.leaf_put_in, acted.put_in, strict=True):
            chips.append(amount)
        if self.players == 2:
            self.fixed.append(0.0 if shows else fold_value(acted))
            self.showdown.append(acted.to_call if shows else 0.0)
            return
        pots = pots_of(self.rules, acted)
        self.leaf_pots.append(len(pots))
        self.pot_chips.extend(pot.chips for pot in pots)
        self.contenders.extend(pot.contenders for pot in pots)

    def check_size(self, state: BettingState, targets: Sequence[float]) -> None:
        """Raise `ValueError` if a decision's raises are invalid or make the tree too large.

        targets  amounts to raise to, in chips over the whole hand
        """
        advice = "lower raises, max_raises or game.menu's max_bets, or offer fewer sizes"
        nodes = len(self.label) + len(targets)
        if nodes > MAX_NODES:
            raise ValueError(f"the betting tree has at least {nodes:,} nodes; {MAX_NODES:,} are allowed: {advice}")
        if len(targets) and state.bets >= MAX_BETS:
            raise ValueError(
                f"the betting tree has at least {state.bets + 1:,} bets on one street, and so {nodes:,} nodes or more; "
                f"{MAX_BETS:,} bets are allowed: {advice}"
            )
        if len(targets) and not state.to_call < targets[0] <= targets[-1] <= MAX_CHIPS:
            raise ValueError(
                f"a raise from {state.to_call:g} to {targets[0]:g} .. {targets[-1]:g} chips is not allowed: it must "
                f"differ in float64 from the chips put in before, and stay below {MAX_CHIPS:g} chips: change the bet "
                "sizes"
            )

    def compiled(self) -> CompiledTree:
        """Return the tree of the decisions and terminals that were recorded.

        The decisions of one player on one street have table rows, in the order in which they were recorded.
        """
        nodes, players, streets = len(self.label), self.players, self.rules.streets
        decision, block, count = np.array(self.node), np.array(self.block), np.array(self.count)
        rows = numbered_rows(block, count, players * streets)
        arrays, put_in = blank_arrays(nodes), np.zeros((nodes, players))
        columns = {
            **{"kind": DECISION, "player": block % players, "block": block, "count": count, "touched": self.touched},
            **{"first": 1 + np.cumsum(count) - count, "slot": rows.slot, "row": rows.row},
        }
        for name, values in columns.items():
            getattr(arrays, name)[decision] = values
        arrays.touched[self.leaf] = self.leaf_touched
        put_in[decision], put_in[self.leaf] = np.transpose(self.put_in), np.transpose(self.leaf_put_in)
        pots = None
        if players == 2:
            arrays.fixed[self.leaf], arrays.showdown[self.leaf] = self.fixed, self.showdown
        else:
            pots = self.pots(nodes)
        parent = np.concatenate([[NO_PARENT], np.repeat(decision, count)]).astype(np.int32)
        return CompiledTree(
            arrays, parent, self.label, streets, rows.row_slots, rows.row_count, put_in=put_in, pots=pots
        )

    def pots(self, nodes: int) -> Pots:
        """Return `Pots`: arrays of all terminals' main and side pots, for three and more players.

        It has each pot's chips after rake and the players who can win it, and the first pot of each node.

        nodes  number of nodes of the tree
        """
        first = np.zeros(nodes + 1, np.int32)
        first[1:][self.leaf] = self.leaf_pots
        dead = np.array(self.rules.dead or [0.0] * self.players, np.float64)
        return Pots(np.cumsum(first, dtype=np.int32), np.array(self.pot_chips), np.array(self.contenders), dead)


def _check_rules(rules: BettingRules) -> None:
    """Raise `UserCodeError` for invalid user-defined rules; raise amounts are checked later."""
    streets = rules.streets
    problem = None
    players = len(rules.put_in)
    amounts = all(isinstance(each, Real) and 0 <= each < inf for each in rules.put_in)
    if not 2 <= players <= MOST_SEATS or not amounts:
        problem = f"put_in = {rules.put_in!r} is not allowed; two to six finite amounts of at least 0 are needed"
    elif not streets or any(player not in range(players) for player in rules.first_player):
        problem = (
            f"first_player = {rules.first_player!r} is not allowed; a player from 0 to {players - 1} is needed for "
            "each street"
        )
    elif rules.board_cards and len(rules.board_cards) != streets:
        problem = (
            f"board_cards = {rules.board_cards!r} is not allowed; a number is needed for each of {streets} streets"
        )
    elif not rules.stack >= max(rules.put_in):
        problem = f"stack = {rules.stack!r} is not allowed; it must be at least what is put in, {max(rules.put_in)}"
    elif not 0 <= rules.minimum_bet < inf:
        problem = f"minimum_bet = {rules.minimum_bet!r} is not allowed; a finite amount of at least 0 is needed"
    if problem is not None:
        raise UserCodeError(f"the betting rules of {function_name(rules.raise_targets)}: {problem}")


def build_tree(rules: BettingRules, start: BettingState | None = None) -> CompiledTree:
    """Build the public betting tree of `rules`.

    start  state at the first decision, if the tree begins in the middle of a hand; its street is 0. `rules.added` and
           `rules.removed` are then ignored, because their lines begin with the hand

    With two players the payoffs in the tree are before rake (`mccfr.games.game.Rake`). With more the pots are after it.

    Raises `ValueError` as soon as the tree exceeds MAX_NODES (10 million) nodes or MAX_BETS (1,000) bets on a street;
    for more than 127 pairs of street and player; if a raise adds nothing or exceeds MAX_CHIPS; if antes and blinds
    leave no decision; for an `added` or `removed` amount that does not fit the tree. Raises `UserCodeError` for invalid
    user-defined rules.
    """
    most = MAX_BLOCKS // len(rules.put_in)
    if rules.streets > most:
        raise ValueError(f"the game has {rules.streets:,} streets; {most} are allowed")
    if is_foreign(rules.raise_targets):
        _check_rules(rules)
    builder = _Builder(rules if start is None else replace(rules, added={}, removed={}))
    todo = [(0, start or rules.start())]
    while todo:
        node, state = todo.pop()
        todo.extend(reversed(builder.expand(node, state)))
    builder.check_edits()
    return builder.compiled()
