"""Parses node locks: `[game.locks]` maps a betting line to a fixed strategy at its decision.

    "cb94" = "f 40%; c 60%"        probabilities of actions, for every hand
    "cb94" = "c AA,KK:0.5; f QQ"   ranges: the probability of each hand in a range; other hands are free
    "ip:*/*" = "b 0"               the player in position never bets after the first street; other actions are free

An action that is not named gets the remaining probability if it is the only one. Amounts are the chips put in on the
street. In a pattern `*` matches any text, and decisions without the named actions are skipped.
"""

import re
from collections.abc import Mapping
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from abstraction.cards import COMBO_COUNT
from abstraction.range_notation import read_range
from mccfr.cards.base import Cards
from mccfr.cards.full_deck import WholeDeck
from mccfr.config.value_limits import share_of, shown
from mccfr.games.game import Game
from mccfr.games.line_text import line_start
from mccfr.trees.betting_lines import all_lines, find_decision, line_text
from mccfr.trees.compiled import CompiledTree, Locks
from mccfr.trees.street_amounts import (
    LineStart,
    check_line,
    refuse_whole_amounts,
    street_action,
    street_line,
    tree_start,
    whole_line,
)

_FREE = -1.0
_SHARE = re.compile(r"[\d.]+\s*%?")
_ACTION = re.compile(r"(f|c|[rb]\d+(?:\.\d+)?|[rb])\s+(\S.*)")
_NEAR = 1e-9  # tolerance of a sum of probabilities above or below 1
_BUCKETS = re.compile(r"#(\d+)(?:-#?(\d+))?(?::(\d+\.?\d*|\.\d+))?")
_POSITIONS = {"oop": 0, "ip": 1, "big_blind": 0, "button": 1}

Floats = npt.NDArray[np.float64]


class LockRanges:
    """Parses the ranges of node locks (fixed strategies) to weights of K hands or K buckets.

    Hands are the 1,326 of hold'em, and their weights hold on every board. Buckets are those of one player on one
    street, numbered from 0; the argument `block` is 2·street + player. Ranges of buckets are written "#3,#5-#7:0.5";
    preflop, also as ranges of hands.
    """

    def __init__(self, cards: Cards | None = None) -> None:
        """Take the cards whose buckets are locked; None: lock hands of hold'em instead of buckets."""
        self._cards = cards

    @property
    def by_hand(self) -> bool:
        """True if ranges give weights of hands, for all boards; False if weights of buckets."""
        return self._cards is None

    def count(self, block: int) -> int:
        """Return K, the number of weights of a range: 1,326 hands if `by_hand`, else the buckets of `block`.

        block  2·street + player; used only for buckets
        """
        return COMBO_COUNT if self._cards is None else int(self._cards.buckets[divmod(block, 2)])

    def weights(self, text: str, block: int) -> Floats:
        """Return the weights [K], 0 to 1, of hands or buckets in a range text such as "AA,KK:0.5".

        block  2·street + player; used only for buckets

        Raises `ValueError` if the text is invalid.
        """
        if self._cards is None:
            return read_range(text)
        size = self.count(block)
        if not text.startswith("#"):
            return self._of_hands(self._cards, text, block)
        table = np.zeros(size)
        for item in map(str.strip, text.split(",")):
            match = _BUCKETS.fullmatch(item)
            if match is None or not int(match[1]) <= int(match[2] or match[1]) < size or float(match[3] or 1) > 1:
                raise ValueError(f"{item!r} is not a bucket from #0 to #{size - 1}, or a range such as #3-#5:0.5")
            table[int(match[1]) : int(match[2] or match[1]) + 1] = float(match[3] or 1)
        return table

    def _of_hands(self, cards: Cards, text: str, block: int) -> Floats:
        """Return the weights [K] of preflop buckets for a range text of hands, such as "AA,KK:0.5".

        Raises `ValueError` for an invalid text, on streets with board cards, and for cards other than the full deck.
        Raises it too if hands of one bucket have different weights.
        """
        street, player = divmod(block, 2)
        if cards.cards_on(street) or not isinstance(cards, WholeDeck):
            raise ValueError(
                f"{text!r} is not a probability; after the first street write buckets, such as #3,#5-#7:0.5"
            )
        weights, bucket = read_range(text), cards.bucket_row(0, player, ())
        least, most = np.full(self.count(block), np.inf), np.zeros(self.count(block))
        np.minimum.at(least, bucket, weights)
        np.maximum.at(most, bucket, weights)
        if np.any((least < most) & np.isfinite(least)):
            raise ValueError(f"{text!r} gives hands of one bucket different weights")
        return most


class _Part(NamedTuple):
    """One part of a node lock (a fixed strategy at a decision), such as "c 60%" or "f QQ".

    named     indices of the actions; several only for "b", any bet
    shares    [K] probabilities by hand or bucket
    is_range  True if the part is a range, which does not lock hands or buckets of weight 0
    """

    named: tuple[int, ...]
    shares: Floats
    is_range: bool


def read_locks(
    texts: Mapping[str, str], tree: CompiledTree, hands: LockRanges, start: LineStart | None = None
) -> Locks | None:
    """Parse the node locks (fixed strategies) of a betting tree to `Locks`; None if there are none.

    texts  {line or pattern: actions with probabilities or ranges}, the `[game.locks]` table
    hands  parser of the ranges
    start  chips that each player has put in at the root; None: derived from the tree, which cannot tell antes from
           blinds

    Raises `ValueError`, naming the lock, for an unknown line or action, an invalid sum of probabilities, or a hand that
    is locked twice.
    """
    shares_of: dict[int, Floats] = {}
    start = start or tree_start(tree)
    lines = [street_line(line, start) for line in all_lines(tree)] if any("*" in line for line in texts) else []
    for line, text in texts.items():
        try:
            computed: dict[tuple[object, ...], Floats] = {}
            for node in _nodes(tree, line, lines, start):
                parts = _parts(tree, node, text, start, pattern="*" in line)
                key = (int(tree.arrays.block[node]), int(tree.arrays.count[node]), *parts)
                if parts and key not in computed:
                    computed[key] = _shares(
                        _street_labels(tree, node, start), int(tree.arrays.block[node]), parts, hands
                    )
                if parts:
                    shares_of[node] = _both(shares_of.get(node), computed[key])
            if not computed:
                raise ValueError("the tree has no decision with these actions there")
        except ValueError as error:
            raise ValueError(f"game.locks: {shown(line)} = {shown(text)}: {error}") from None
    return Locks(shares_of, hands.by_hand) if shares_of else None


def with_stated_locks(game: Game, document: Any) -> Game:
    """Return the game of a stored policy together with its node locks (fixed strategies).

    game      game of the policy, still without locks
    document  the policy's `[game]` table; its key `locks` holds the locks as text, which is parsed

    Raises `ValueError` if the locks are invalid.
    """
    texts = document.get("locks") if isinstance(document, Mapping) else None
    if not texts:
        return game
    if not isinstance(texts, Mapping) or not all(isinstance(text, str) for text in texts.values()):
        raise ValueError("game.locks must map each line to a text")
    hands = LockRanges(None if game.name == "holdem-subgame" else game.cards)
    return replace(game, tree=replace(game.tree, locks=read_locks(texts, game.tree, hands, line_start(game))))


def _nodes(tree: CompiledTree, line: str, lines: list[str], start: LineStart) -> list[int]:
    """Return the numbers of the decisions that a betting line or a pattern names.

    lines  betting line of each node of the tree, needed for patterns only
    start  chips that each player has put in at the root

    Raises `ValueError` for an invalid line.
    """
    position, colon, line_part = line.strip().rpartition(":")
    if colon and position not in _POSITIONS:
        raise ValueError(f"the position {position!r} is not allowed: write {', '.join(_POSITIONS)}, or no position")
    players = [_POSITIONS[position]] if colon else [0, 1]
    if "*" in line_part:
        nodes = [node for node in tree.decisions.tolist() if fnmatchcase(lines[node], line_part)]
        return [node for node in nodes if int(tree.arrays.player[node]) in players]
    refuse_whole_amounts(line_part, start)
    whole = whole_line(line_part, start)
    check_line(tree, whole, start)
    node = find_decision(tree, whole)
    if int(tree.arrays.player[node]) not in players:
        raise ValueError("the other player acts there")
    return [node]


def _parts(
    tree: CompiledTree, node: int, text: str, start: LineStart, *, pattern: bool
) -> list[tuple[tuple[int, ...], str]]:
    """Split a lock's text, such as "f 40%; c AA", into (action indices, "40%" or "AA") pairs.

    node     number of the decision that is locked
    start    chips that each player has put in at the root
    pattern  True: return [] if the decision lacks an action; False: raise `ValueError`

    Raises `ValueError` for an invalid text.
    """
    labels, parts = _street_labels(tree, node, start), []
    for part in filter(None, map(str.strip, text.split(";"))):
        match = _ACTION.fullmatch(part)
        if match is None:
            raise ValueError(
                f"{part!r} is not allowed: write an action (f, c, b, b300) and its probability or range, as in 'c 60%'"
            )
        refuse_whole_amounts(match[1], start, line_text(tree, node))
        named = tuple(n for n, label in enumerate(labels) if match[1].replace("r", "b") in (label, label[0]))
        if not named and pattern:
            return []
        if not named:
            raise ValueError(f"{match[1]!r} is not an action there: the actions are {', '.join(labels)}")
        parts.append((named, match[2]))
    if not parts:
        raise ValueError("the lock is empty: write an action and its probability or range, as in 'c 60%'")
    return parts


def _street_labels(tree: CompiledTree, node: int, start: LineStart) -> list[str]:
    """Return the actions of decision `node` as texts, such as b300: a raise to 300 chips on the street.

    start  chips that each player has put in at the root
    """
    line = line_text(tree, node)
    labels = [street_action(line, tree.label[child], start) for child in tree.children(node)]
    return [label.replace("r", "b") for label in labels]


def _part(named: tuple[int, ...], text: str, block: int, hands: LockRanges) -> _Part:
    """Parse one part of a lock to a `_Part`: a probability for every hand, such as 60%, or a range.

    named  indices of the actions that the part names
    text   the probability or range
    block  2·street + player of the decision

    Raises `ValueError` if the text is invalid, or can mean both a probability and a pair of cards.
    """
    if re.fullmatch(r"([2-9])\1", text):
        raise ValueError(f"{text} can mean {text}% or the pair: write {text}% or {text}:1")
    if _SHARE.fullmatch(text) is None:
        return _Part(named, hands.weights(text, block), is_range=True)
    share = share_of(text)
    if share > 1:
        raise ValueError(f"{text!r} is more than 100%")
    return _Part(named, np.full(hands.count(block), share), is_range=False)


def _shares(labels: list[str], block: int, parts: list[tuple[tuple[int, ...], str]], hands: LockRanges) -> Floats:
    """Return [A, K] the probabilities that a lock fixes at a decision of A actions; -1: not fixed.

    K counts hands, or buckets of the decision's street and player.

    labels  [A] actions of the decision
    block   2·street + player of the decision
    parts   (action indices, text) of each part of the lock

    Raises `ValueError` for an invalid part, an action given twice, and several bets with a probability above 0. Raises
    it too if the probabilities of a hand's actions cannot sum to 1.
    """
    table, locked = np.full((len(labels), hands.count(block)), _FREE), np.zeros(hands.count(block), bool)
    for named, shares, is_range in (_part(*part, block, hands) for part in parts):
        if len(named) > 1 and np.any(shares > 0):
            bets = ", ".join(labels[n] for n in named)
            raise ValueError(f"b names several bets ({bets}), and only 0 can hold for all: name one, or write b 0")
        if any(table[n, 0] != _FREE for n in named):
            raise ValueError(f"{labels[named[0]]} is given twice")
        table[list(named)] = shares
        locked |= shares > 0 if is_range else True
    missing, total = np.flatnonzero(table[:, 0] == _FREE), np.where(table > 0, table, 0).sum(axis=0)
    if np.any(total > 1 + _NEAR):
        raise ValueError(f"the probabilities of one hand's actions sum to {total.max():g}: at most 1 is allowed")
    if len(missing) == 1:
        table[missing] = np.maximum(1 - total, 0)
    else:
        short = locked & (total < 1 - _NEAR) & ((total > 0) | (len(missing) == 0))
        if np.any(short):
            least = total[short].min()
            raise ValueError(
                f"the probabilities of one hand's actions sum to {least:g}: leave out one action, which gets the rest"
            )
        table[missing] = np.where(total > 0, 0, _FREE)
    return np.where(locked, table, _FREE)


def _both(first: Floats | None, second: Floats) -> Floats:
    """Combine two node locks of a decision: [A, K] probabilities of A actions, -1 where not locked.

    K counts hands or buckets. Raises `ValueError` if both fix the same action of a hand or bucket.
    """
    if first is None:
        return second
    if np.any((first >= 0) & (second >= 0)):
        raise ValueError("hands of this decision are locked twice")
    return np.where(second >= 0, second, first)
