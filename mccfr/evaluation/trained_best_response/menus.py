"""Betting tree for training a responder whose bets differ from the policy's.

The responder has its own betting tree; the policy translates its bets at random, as at a table
(`mccfr.evaluation.joint_tree`). The responder does not see the translation, so nodes that differ only in it share
one row.

Samplers do not support such random translations. Each is therefore a decision of the policy after the bet, whose row
has the translation probabilities for all hands. The result is an ordinary betting tree in which one player's
strategy is fixed.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from mccfr.config.game_tables import Menu
from mccfr.evaluation.compatible_games import same_tree
from mccfr.evaluation.joint_tree import JointTree, joint_tree
from mccfr.games.betting import BettingRules, build_tree
from mccfr.games.game import Game
from mccfr.games.menu import STREET_NAMES, MenuGame, check_opening, menu_targets
from mccfr.trees.compiled import DECISION, NO_PARENT, NO_PLAYER, NO_SLOT, TERMINAL, CompiledTree, TreeArrays

Floats = npt.NDArray[np.float64]


class AgainstPolicy(NamedTuple):
    """A betting tree in which one player's rows are a policy's.

    tree   the policy's blocks have its own rows, followed by rows of translations
    drawn  for each block of the policy, the probabilities in its translation rows, in order
    """

    tree: CompiledTree
    drawn: Mapping[int, Floats]


def with_menu(game: Game, menu: Menu) -> Game:
    """Return the same game with the bets of another menu in its tree.

    Raises `ValueError` for a game whose tree contains all bets, and for a menu that does not suit it.
    """
    rules = game.real_rules
    if rules is None:
        raise ValueError(
            f"a responder's menu is for no-limit games with [game.menu], and {game.name} has every bet in its tree: "
            "leave --responder-menu out"
        )
    if rules.streets > len(STREET_NAMES):
        raise ValueError(f"a menu is for at most {len(STREET_NAMES)} streets, and {game.name} has {rules.streets}")
    blind = rules.minimum_bet if max(rules.put_in) > rules.put_in_before else None
    amounts = (rules.stack, rules.minimum_bet, rules.put_in_before, *rules.put_in)
    whole = all(float(amount).is_integer() for amount in amounts)
    known = MenuGame(rules.stack, blind, streets=rules.streets, whole_chips=whole)
    offered: BettingRules = replace(rules, raise_targets=menu_targets(menu, known), limp=menu.limp)
    check_opening(menu, offered)
    return replace(game, tree=build_tree(offered))


def against_policy(own: Game, policy: Game, seat: int) -> AgainstPolicy:
    """Return the tree of a responder of `own` in a seat against a policy of `policy`.

    Raises `ValueError` for a too large joint tree (`joint_tree`).
    """
    if same_tree(own, policy):
        return AgainstPolicy(own.tree, {})
    return _drawn(joint_tree((own, policy) if seat == 0 else (policy, own)), 1 - seat)


class _Numbering(NamedTuple):
    """Maps nodes of a joint tree to the new tree. N old nodes, M new ones, D translation nodes.

    If one action has several translations, a translation node takes their place among the decision's children. The
    translations follow after all children of the decision.

    place     [N] new number of each node
    first     [N] new number of a decision's first child; 0 elsewhere
    actions   [N] number of actions of a decision
    draws     [D] new number of each translation node
    lead      [D] its first translation, an old node
    readings  [D] number of its translations
    nodes     M
    """

    place: npt.NDArray[np.int64]
    first: npt.NDArray[np.int64]
    actions: npt.NDArray[np.int64]
    draws: npt.NDArray[np.int64]
    lead: npt.NDArray[np.int64]
    readings: npt.NDArray[np.int64]
    nodes: int


def _numbered(meeting: JointTree) -> _Numbering:
    parent, action = meeting.tree.parent, meeting.action
    child = np.arange(1, len(parent))  # siblings are adjacent, and so are the translations of one action
    new_family = np.diff(parent, prepend=NO_PARENT)[1:] != 0
    new_family[:1] = True
    new_group = new_family | (np.diff(action, prepend=-1)[1:] != 0)
    family, group = np.cumsum(new_family) - 1, np.cumsum(new_group) - 1
    families = int(family[-1]) + 1 if len(family) else 0
    size = np.bincount(group)
    shared = size[group] > 1  # one of several translations
    actions = np.bincount(family[new_group], minlength=families)
    room = actions + np.bincount(family[shared], minlength=families)
    start = 1 + np.cumsum(room) - room
    first_group = group[new_family]
    in_family = start[family] + group - first_group[family]  # new number of the action's node
    before = np.cumsum(shared) - shared
    below = start[family] + actions[family] + before - before[new_family][family]
    place = np.zeros(len(parent), np.int64)
    place[child] = np.where(shared, below, in_family)
    above = parent[child][new_family]
    first, count = np.zeros(len(parent), np.int64), np.zeros(len(parent), np.int64)
    first[above], count[above] = start, actions
    leads = new_group & shared
    return _Numbering(place, first, count, in_family[leads], child[leads], size[group[leads]], 1 + int(room.sum()))


def _drawn(meeting: JointTree, fixed: int) -> AgainstPolicy:
    """Return a joint tree with its translations as decisions of player `fixed`."""
    old, parent, numbers = meeting.tree.arrays, meeting.tree.parent, _numbered(meeting)
    decides = old.kind == DECISION
    place, draws, lead = numbers.place, numbers.draws, numbers.lead
    block = 2 * (old.block[parent[lead]] // 2) + fixed
    slots, rows = meeting.tree.row_slots.copy(), meeting.tree.row_count.copy()
    draw_slot, draw_row = np.zeros(len(draws), np.int64), np.zeros(len(draws), np.int64)
    drawn: dict[int, Floats] = {}
    known: dict[tuple[int, bytes], tuple[int, int]] = {}  # equal probabilities share one row
    each_draw = zip(lead.tolist(), numbers.readings.tolist(), block.tolist(), strict=True)
    for number, (node, count, each) in enumerate(each_draw):
        shares = meeting.factor[node : node + count]
        key = (each, shares.tobytes())
        if key not in known:
            known[key] = int(slots[each]), int(rows[each])
            drawn[each] = np.append(drawn.get(each, np.zeros(0)), shares)
            slots[each] += count
            rows[each] += 1
        draw_slot[number], draw_row[number] = known[key]

    def column(values: npt.NDArray[Any], fill: float, of_draws: npt.ArrayLike) -> npt.NDArray[Any]:
        found = np.full(numbers.nodes, fill, values.dtype)
        found[place], found[draws] = values, of_draws
        return found

    new_parent = np.full(numbers.nodes, NO_PARENT, np.int32)
    new_parent[place[1:]] = place[parent[1:]]
    new_parent[draws] = place[parent[lead]]
    under = np.repeat(draws, numbers.readings)
    starts = np.repeat(lead + numbers.readings - np.cumsum(numbers.readings), numbers.readings)
    new_parent[place[starts + np.arange(len(under))]] = under
    arrays = TreeArrays(
        kind=column(old.kind, TERMINAL, DECISION),
        player=column(old.player, NO_PLAYER, fixed),
        block=column(old.block, -1, block),
        count=column(np.where(decides, numbers.actions, 0).astype(np.int32), 0, numbers.readings),
        first=column(np.where(decides, numbers.first, -1).astype(np.int32), -1, place[lead]),
        slot=column(old.slot, NO_SLOT, draw_slot),
        row=column(old.row, NO_SLOT, draw_row),
        fixed=column(old.fixed, 0, 0),
        showdown=column(old.showdown, 0, 0),
        probability=np.ones(numbers.nodes),
        touched=column(old.touched, 1, 0),
    )
    tree = CompiledTree(arrays, new_parent, [""] * numbers.nodes, meeting.tree.streets, slots, rows)
    return AgainstPolicy(tree, drawn)
