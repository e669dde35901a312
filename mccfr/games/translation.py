"""Action translation: maps lines of real betting to decisions of a tree with few bet sizes, and back.

A bet of size x that the tree lacks is mapped at random to the next smaller size A or the next larger size B. By the
pseudo-harmonic mapping, A has the probability

    (B - x)(1 + A) / ((B - A)(1 + x))

A size is the raise beyond the call, divided by the pot after the call. Real bets use the real pot, tree bets the
tree's. A bet smaller than every size is mapped to the smallest: a bet stays a bet.

Ganzfried & Sandholm 2013, "Action translation in extensive-form games with large action spaces", section 4.

Cases that the mapping leaves open:

* An all-in is mapped to the tree's all-in if there is one. A bet larger than every size is mapped to the largest one.
* **If the tree has no raise**, a bet is mapped to a check or call. If the opponent is to act after the check, the
  opponent's strategy after a check applies: its check calls the bet, and a fold is not possible. If the check ends the
  street, the tree is already on the next street or over. Then the bet is called, which leads to the node after the
  check (`LineReading.closed`).
* **Other stakes than the tree's** (`with_stakes`): sizes are shares of the pot, so only the all-in differs. It is
  mapped to the tree's if the stacks, in big blinds, differ at most by a factor of two, and else by its size.
* **The tree's hand is over while chips remain**: a smaller bet was mapped to the tree's all-in and called. The player
  then checks and calls to the end, as the stack is already committed.
* **A limp** that the tree lacks is mapped to the smallest raise. The big blind's fold to it becomes a check, and its
  hand is over in the tree. It then checks, and folds to a bet.
* A tree action becomes a real action as follows. Raises keep their share of the pot, rounded to whole chips in games
  with whole chips, within the legal bounds. The tree's all-in is all-in. If no raise is legal, a raise becomes a call;
  without a bet to call, a fold becomes a check.

With three and more players (`SeatTranslation`) the player to act may differ between tree and table:

* **A call that the tree lacks** is a fold in the tree. The player plays on at the table only: it checks, and folds to a
  bet. Its chips are dead money, and its bets are not in the tree.
* **If all others have folded in the tree**, but not at the table, the last such fold becomes the smallest raise.
* **If a player is to act in the tree only**, it folds there if it has folded at the table. Else it checks or calls.
* **A bet of a player who has folded in the tree**: a player folds to it with the hands that check or call in the tree.
* **If the tree has no raise**, a bet is a check or call there. If that ends the street in the tree, the bet is called.
"""

import re
from collections.abc import Sequence
from copy import copy
from math import floor

import numpy as np

from mccfr.games.betting import (
    BettingRules,
    BettingState,
    after_fold,
    amount_text,
    called,
    fold_value,
    following,
    may_call,
    raise_bounds,
    raised,
)
from mccfr.games.game import Game
from mccfr.games.identity_translation import IdentityTranslation
from mccfr.games.line_lookup import NOWHERE, OVER, LineReading, followed
from mccfr.games.menu import MenuGame
from mccfr.trees.compiled import DECISION, CompiledTree

_TOKEN = re.compile(r"r([0-9]+(?:\.[0-9]+)?)|[cf/]")
_AS_DEEP = 2
"""Largest factor between two stacks whose all-ins are mapped to each other."""
_SAME_SHARE = 1e-9
"""Tolerance within which two sizes are equal, because they come from float64 sums of chips."""


def actions_of(line: str) -> list[str]:
    """Split a line into its actions, without the / between streets; `ValueError` for another character."""
    actions, position = [], 0
    while position < len(line):
        match = _TOKEN.match(line, position)
        if match is None:
            raise ValueError(
                f"line {line!r}, character {position + 1}: {line[position]!r} is not an action; write c, f or bN, "
                "and / between streets"
            )
        actions.append(match[0])
        position = match.end()
    return [action for action in actions if action != "/"]


def apply_action(rules: BettingRules, state: BettingState, action: str, where: str = "") -> BettingState | int:
    """Return the betting state after an action `c`, `f` or `rN`; `OVER` (-1) if betting ends.

    Raises `ValueError` if the action is illegal; `where` is text with which its message begins.
    """
    prefix = f"{where}: " if where else ""
    if action == "f":
        if not state.facing:
            raise ValueError(f"{prefix}there is nothing to fold to: check with c")
        after = following(rules, after_fold(state))
        return OVER if after is None else after
    if action == "c":
        if not may_call(rules, state):
            raise ValueError(f"{prefix}a limp is not possible in this game")
        after = called(rules, state)
        return OVER if after is None else after
    target, bounds = float(action[1:]), raise_bounds(rules, state)
    if bounds is None:
        raise ValueError(f"{prefix}no raise is possible: the other players are all-in, or the bet was no full raise")
    if not bounds[0] <= target <= bounds[1]:
        low, high = (amount_text(bound) for bound in bounds)
        raise ValueError(f"{prefix}{action} is not possible: a raise must be to {low} to {high} chips in the hand")
    return raised(rules, state, target)


def pseudo_harmonic(small: float, large: float, share: float) -> float:
    """Return the probability that a bet of size `share` is mapped to size `small` instead of `large`.

    All sizes are shares of the pot after the call.
    """
    return (large - share) * (1 + small) / ((large - small) * (1 + share))


def _whole(rules: BettingRules) -> bool:
    """Return True if the chips put in at first, the minimum bet and the largest stack are whole numbers."""
    return all(float(chips).is_integer() for chips in (*rules.put_in, rules.minimum_bet, rules.stack))


def _levels_and_pots(tree: CompiledTree, rules: BettingRules) -> tuple[list[float], list[float]]:
    """Return two lists, by tree node: chips put in by its player after a call there, and the pot then."""
    put_in, player = tree.put_in, np.maximum(tree.arrays.player, 0)
    assert put_in is not None
    level = np.maximum(put_in.max(axis=1), rules.least_call)
    if tree.players == 2:
        return level.tolist(), (2 * level).tolist()
    own = put_in[np.arange(len(put_in)), player]
    return level.tolist(), (put_in.sum(axis=1) - own + level + sum(rules.dead)).tolist()


def real_betting(game: Game) -> "Translation | IdentityTranslation":
    """Return the action translation between a game's full betting and its tree.

    If the tree has only some legal amounts, `game.real_rules` has the full betting rules. Otherwise the translation is
    an `IdentityTranslation`; `ValueError` if the game then has three and more players, or no cards outside of its tree.
    """
    if game.real_rules is not None:
        return (Translation if game.tree.players == 2 else SeatTranslation)(game.tree, game.real_rules)
    game.check_two_players("play at a table of this game")
    if not game.cards.dealt:
        raise ValueError(f"{game.name} deals no cards outside of its tree: this is for the poker family")
    return IdentityTranslation(game.tree)


class Translation:
    """Action translation for two players: maps real betting to a tree with few bet sizes, and back.

    *Real* betting is that at the table, by the rules of the full game; a *state* is its betting state, before an
    action. A *reading* (`LineReading`) is one tree node to which real betting is mapped, with the probability of the
    mapping. A real action is c, f or rN: a raise to N chips over the whole hand. Arguments `node` are numbers of nodes.
    """

    def __init__(self, tree: CompiledTree, rules: BettingRules) -> None:
        """Take the betting tree, and the rules of the full game without their `raise_targets`.

        Raises `ValueError` if the tree does not record the chips put in, or begins with other chips than `rules`.
        """
        if tree.put_in is None:
            raise ValueError("the tree does not say which chips are put in: export the policy again (format 2)")
        if tuple(tree.put_in[0].tolist()) != tuple(rules.put_in):
            raise ValueError(
                f"the tree begins with {tree.put_in[0].tolist()} chips put in, and the game with {list(rules.put_in)}"
            )
        self.tree, self._big_blind = tree, rules.minimum_bet
        self._take(rules)
        # Lists, because indexing single cells of arrays would dominate a lookup's time.
        self._decides = (tree.arrays.kind == DECISION).tolist()
        self._first, self._count = tree.arrays.first.tolist(), tree.arrays.count.tolist()
        self._block, self._parent = tree.arrays.block.tolist(), tree.parent.tolist()
        self._level, self._pot = _levels_and_pots(tree, rules)
        stacks = [rules.stack_of(player) for player in range(tree.players)]
        useful = [min(own, max(stacks[:player] + stacks[player + 1 :])) for player, own in enumerate(stacks)]
        self._useful, self._label = useful, list(tree.label)

    def _take(self, rules: BettingRules) -> None:
        """Set the rules of the real hands, whose stacks and blinds may differ from the tree's."""
        self.rules, self.whole_chips = rules, _whole(rules)
        self._amounts = MenuGame(rules.stack, None, stacks=tuple(rules.stacks), dead=float(sum(rules.dead)))

    @property
    def players(self) -> int:
        """Number of players."""
        return self.tree.players

    def with_stakes(self, rules: BettingRules) -> "Translation":
        """Return this translation for hands with the stacks and blinds of `rules` instead of the tree's."""
        copied = copy(self)
        copied._take(rules)
        return copied

    # --- from the real game to the tree ---

    def start(self) -> tuple[BettingState, list[LineReading]]:
        """Return the first betting state, and a list of one `LineReading`: the tree's root."""
        return self.rules.start(), [LineReading(0, 1.0)]

    def read(self, line: str) -> tuple[BettingState | int, list[LineReading]]:
        """Return the state after a line (or `OVER`), and its `LineReading` list, likeliest first.

        Raises `ValueError`, naming the character, for an action that is illegal in the full game.
        """
        state: BettingState | int
        state, readings = self.start()
        position, slash = 0, False
        while position < len(line):
            where = f"line {line!r}, character {position + 1}"
            match = _TOKEN.match(line, position)
            if match is None:
                raise ValueError(
                    f"{where}: {line[position]!r} is not an action; write c, f or bN, and / between streets"
                )
            position = match.end()
            if match[0] == "/":
                if not slash:
                    raise ValueError(f"{where}: the street does not change here, so '/' is wrong")
                slash = False
                continue
            if not isinstance(state, BettingState):
                raise ValueError(f"{where}: the betting is over, and the line must end")
            after = self.apply(state, match[0], where)
            readings = self.follow(readings, state, match[0])
            slash = not isinstance(after, BettingState) or after.street != state.street
            state = after
        return state, sorted(readings, key=lambda reading: -reading.probability)

    def apply(self, state: BettingState, action: str, where: str = "") -> BettingState | int:
        """Return the state after an action, or `OVER`; `ValueError`, beginning with `where`, if illegal."""
        return apply_action(self.rules, state, action, where)

    def settled(self, state: BettingState, action: str) -> tuple[float, float]:
        """Return (player 0's net chips by a final fold, net chips of a showdown's winner); one is 0."""
        return (fold_value(state), 0.0) if action == "f" else (0.0, state.to_call)

    def follow(self, readings: Sequence[LineReading], state: BettingState, action: str) -> list[LineReading]:
        """Return the tree nodes after a table's action at `readings`; equal nodes are merged."""
        return followed(self, readings, state, action)

    def at(self, reading: LineReading, state: BettingState) -> LineReading:
        """Return where the player to act decides in the tree: for two players `reading` itself."""
        del state
        return reading

    def outcomes(self, reading: LineReading, state: BettingState, action: str) -> list[LineReading]:
        """Return the tree nodes after the table's `action` at `reading`; their probabilities sum to 1."""
        node = reading.node
        if action == "c" and reading.closed != NOWHERE:
            return [LineReading(reading.closed, 1.0)]
        if not self.decides(reading):
            return [reading._replace(probability=1.0)]
        if action == "f":
            return [LineReading(self._child(node, "f"), 1.0)]
        if action == "c":
            raises = self._raises(node)
            call = self._child(node, "c")
            return [LineReading(raises[0][1] if call == NOWHERE else call, 1.0)]
        return self._bet(node, state, float(action[1:]))

    def _bet(self, node: int, state: BettingState, target: float) -> list[LineReading]:
        """Return the tree nodes (`LineReading`) after a table's raise to `target` chips at `node`."""
        raises = self._raises(node)
        if not raises:
            return [self._without_raise(node)]
        if target >= self._amounts.all_in(state) and self._is_as_deep(raises[-1][1], target):
            return [LineReading(raises[-1][1], 1.0)]
        share = self._share(state, target)
        above = next((k for k, (size, _) in enumerate(raises) if size >= share - _SAME_SHARE), len(raises))
        if above == len(raises) or above == 0:
            return [LineReading(raises[min(above, len(raises) - 1)][1], 1.0)]
        (small, lower), (large, upper) = raises[above - 1 : above + 1]
        chance = max(0.0, pseudo_harmonic(small, large, share))
        if chance < _SAME_SHARE:
            return [LineReading(upper, 1.0)]
        return [LineReading(lower, chance), LineReading(upper, 1 - chance)]

    def _without_raise(self, node: int) -> LineReading:
        """Return the tree node after a bet where the tree lacks raises: that of a check or call."""
        call = self._child(node, "c")
        closes = call != NOWHERE and self._closes(node, call) and self._decides[call]
        return LineReading(NOWHERE, 1.0, call) if closes else LineReading(call, 1.0)

    def _is_as_deep(self, child: int, target: float) -> bool:
        """Return True if the tree's raise to node `child` is all-in, of similar size to `target`.

        The two amounts, in big blinds, differ at most by a factor of two. A raise that puts all other players all-in
        counts too.
        """
        deep = target * self._big_blind, self._raised_to(child) * self.rules.minimum_bet
        return self._is_all_in(child) and max(deep) <= _AS_DEEP * min(deep)

    def _is_all_in(self, child: int) -> bool:
        """Return True if the tree's raise to node `child` is all-in, or puts all other players all-in."""
        return self._raised_to(child) >= self._useful[self._block[self._parent[child]] % self.players]

    def pot_after_call(self, state: BettingState) -> float:
        """Return the chips in the pot at the table after a call of the player to act."""
        return 2 * self._amounts.half_pot(state)

    def _share(self, state: BettingState, target: float) -> float:
        """Return the size of a raise to `target`: chips above the call as a share of the pot after the call."""
        return (target - state.to_call) / self.pot_after_call(state)

    def is_exact(self, node: int, outcome: LineReading, state: BettingState, action: str) -> bool:
        """Return True if `outcome` is `action` itself in the tree: equal size, both all-in or neither."""
        if action[0] != "r":
            return self._child(node, action) != NOWHERE
        sizes = {child: size for size, child in self._raises(node)}
        target = float(action[1:])
        same = abs(sizes.get(outcome.node, -1.0) - self._share(state, target)) < _SAME_SHARE
        return same and self._is_all_in(outcome.node) == (target >= self._amounts.all_in(state))

    def _closes(self, node: int, call: int) -> bool:
        """Return True if the check or call from `node` to node `call` ends the street in the tree."""
        return not self._decides[call] or self._block[call] // 2 != self._block[node] // 2

    def _child(self, node: int, label: str) -> int:
        """Return the child to which the action `label` leads, or NOWHERE if the tree lacks it."""
        first = self._first[node]
        for child in range(first, first + self._count[node]):
            if self._label[child] == label:
                return child
        return NOWHERE

    def _raises(self, node: int) -> list[tuple[float, int]]:
        """Return (size as a share of the pot after the call, child node) of each raise, ascending."""
        first = self._first[node]
        raises = []
        for child in range(first, first + self._count[node]):
            if self._label[child] not in ("c", "f"):
                raises.append((self._size(node, child), child))
        return raises

    def _size(self, node: int, child: int) -> float:
        return (self._raised_to(child) - self._level[node]) / self._pot[node]

    def _raised_to(self, child: int) -> float:
        """Return the chips put in, over the whole hand, by the player who acted before `child`."""
        return float(self.tree.put_in[child, self._block[self._parent[child]] % self.players])  # type: ignore[index]

    # --- from the tree to the real game ---

    def real_actions(self, reading: LineReading, state: BettingState) -> list[str]:
        """Return for each tree action at a `LineReading` the table's action, such as "r300".

        Several tree actions may become the same real action, such as sizes below the least raise. If the tree has no
        decision, there is one action: check or call, or a fold to a bet if the tree's hand ended by a fold.
        """
        node = reading.node
        if not self.decides(reading):
            return ["f" if state.facing and self.folded(node) else "c"]
        return [self.real_action(node, number, state) for number in range(self._count[node])]

    def lacks(self, reading: LineReading, state: BettingState, action: str, column: int | None) -> bool:
        """Return True if a table's action was mapped to no tree action, or to one of another kind.

        The kind (c, f, r) of a tree action is that of the table's action that plays it, such as a fold for a check.

        reading  tree node of the player's decision, as a `LineReading`
        column   index of the tree's action, from `mapped_action`; None if the tree has no decision or no action
        """
        if reading.node == NOWHERE == reading.closed or (column is None and self.decides(reading)):
            return True
        return self.real_actions(reading, state)[column or 0][0] != action[0]

    def child(self, node: int, number: int) -> int:
        """Return the child node to which action number `number` of decision `node` leads."""
        return self._first[node] + number

    def decides(self, reading: LineReading) -> bool:
        """Return True if the node of `reading` is a decision, not NOWHERE or a terminal."""
        return reading.node != NOWHERE and self._decides[reading.node]

    def folded(self, node: int) -> bool:
        """Return True if a fold leads to this node and ended the hand in the tree."""
        return node != NOWHERE and self._label[node] == "f"

    def done(self, reading: LineReading, number: int, action: str) -> LineReading:
        """Return the tree node after tree action `number`, which was played as `action`."""
        if action == "c" and reading.closed != NOWHERE:
            return LineReading(reading.closed, 1.0)
        return LineReading(self.child(reading.node, number), 1.0)

    def real_action(self, node: int, number: int, state: BettingState) -> str:
        """Return the action at the table that plays the tree's action `number` at `node`."""
        child = self._first[node] + number
        label = self._label[child]
        if label == "f":
            return "f" if state.facing else "c"
        bounds = None if label == "c" else raise_bounds(self.rules, state)
        if bounds is None:
            return "c"
        if self._is_all_in(child):
            return f"r{amount_text(min(bounds[1], self._amounts.all_in(state)))}"
        target = state.to_call + self._size(node, child) * self.pot_after_call(state)
        target = floor(target + 0.5) if self.whole_chips else target
        return f"r{amount_text(min(max(target, bounds[0]), bounds[1]))}"


class SeatTranslation(Translation):
    """Action translation for three and more players; their turns may differ from the tree's.

    Where the tree has no decision for the table's player to act, `LineReading.closed` is the tree's current node.
    """

    def at(self, reading: LineReading, state: BettingState) -> LineReading:
        """Return the node where the player to act decides, or NOWHERE, as a `LineReading`."""
        waiting = reading.closed if reading.node == NOWHERE else reading.node
        node, player = waiting, state.player
        while node != NOWHERE:
            if not self._decides[node]:
                node = self._without_last_fold(node, state)
                continue
            street, actor = divmod(self._block[node], self.players)
            if street == state.street and actor == player:
                return LineReading(node, reading.probability)
            if street > state.street or (street == state.street and self._folded(node) >> player & 1):
                break
            node = self._passed(node, folded=bool(state.seats.folded >> actor & 1))
        return LineReading(NOWHERE, reading.probability, waiting)

    def outcomes(self, reading: LineReading, state: BettingState, action: str) -> list[LineReading]:
        """Return the tree nodes after the table's `action` at `reading`; their probabilities sum to 1."""
        here = self.at(reading._replace(probability=1.0), state)
        node = here.node
        if node == NOWHERE:
            return [here]
        if action == "c":
            return [LineReading(self._passed(node), 1.0)]
        if action == "f":
            return [LineReading(self._passed(node, folded=True), 1.0)]
        return self._bet(node, state, float(action[1:]))

    def real_actions(self, reading: LineReading, state: BettingState) -> list[str]:
        """Return for each tree action at a `LineReading` the table's action, such as "r300".

        If the tree has no decision, there is one action: check or call, or a fold to a bet that the tree lacks. A
        player who has folded in the tree folds to every bet.
        """
        if self.decides(reading):
            return super().real_actions(reading, state)
        waiting = reading.closed
        committed = not self._decides[waiting] and self._label[waiting] != "f"  # as with two players
        calls = not self._folded(waiting) >> state.player & 1 and (committed or self._has_bet(waiting, state))
        return ["c" if calls or not state.facing else "f"]

    def real_action(self, node: int, number: int, state: BettingState) -> str:
        """Return the table's action for a tree action; a check or call folds to a bet the tree lacks."""
        checks = self._label[self.child(node, number)] == "c"
        if checks and state.facing and not self._has_bet(node, state):
            return "f"
        return super().real_action(node, number, state)

    def _without_raise(self, node: int) -> LineReading:
        return LineReading(self._passed(node), 1.0)

    def _passed(self, node: int, *, folded: bool = False) -> int:
        """Return the child after a check or call, or after a fold if there is none; `folded` prefers the fold."""
        for label in "fc" if folded else "cf":
            if (child := self._child(node, label)) != NOWHERE:
                return child
        return self._first[node]

    def _folded(self, node: int) -> int:
        """Return the players who have folded in the tree before `node`, as a set: bit i is seat i."""
        folded = 0
        while node:
            above = self._parent[node]
            if self._label[node] == "f":
                folded |= 1 << self._block[above] % self.players
            node = above
        return folded

    def _has_bet(self, node: int, state: BettingState) -> bool:
        """Return True if an opponent not folded in the tree has put in the most at the table."""
        folded, most = self._folded(node), max(state.put_in)
        return any(
            chips == most and player != state.player and not folded >> player & 1
            for player, chips in enumerate(state.put_in)
        )

    def _without_last_fold(self, node: int, state: BettingState) -> int:
        """Replace the last fold in the tree of a player who called at the table; return the new node.

        The new node follows the smallest raise instead of the fold. It is NOWHERE if the tree's hand did not end by
        folds, or if no such player exists. A big blind that checks after a limp has not called.
        """
        if self._label[node] != "f":
            return NOWHERE
        while node:
            above = self._parent[node]
            player = self._block[above] % self.players
            has_called = not state.seats.folded >> player & 1 and state.put_in[player] > self.rules.put_in[player]
            if self._label[node] == "f" and has_called and (raises := self._raises(above)):
                return raises[0][1]
            node = above
        return NOWHERE
