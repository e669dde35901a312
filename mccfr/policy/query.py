"""Answers queries on a strategy: the action probabilities at the decision at the end of a line.

`query` answers for one hand or for all hands. For one hand it also gives the infoset's weight, accumulated in training;
0 means never reached. `hand_readings` maps a line with bets that the tree lacks to nodes of the
tree, with probabilities. `played` averages the strategy over these nodes.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np
import numpy.typing as npt

from mccfr.games.betting import BettingRules, BettingState
from mccfr.games.game import Game
from mccfr.games.identity_translation import IdentityTranslation
from mccfr.games.line_lookup import NOWHERE, LineReading, followed
from mccfr.games.line_text import line_start, typed_line
from mccfr.games.translation import Translation, actions_of, real_betting
from mccfr.policy.strategy_profile import Behaviour
from mccfr.solvers.locked_tables import locked_actions_of
from mccfr.trees.betting_lines import chips_after, find_decision, line_text
from mccfr.trees.compiled import CompiledTree
from mccfr.trees.street_amounts import street_action, street_line


def query(source: Behaviour, line: str, hand: str | None = None, board: str | None = None) -> dict[str, Any]:
    """Return the strategy at the decision that `line` leads to; docs/files.md lists the fields.

    source  a `Policy`, or `Profile(game, strategy)`
    line    betting line, as typed by users (`mccfr.games.line_text`): `b300c/`
    hand    one hand; None: every hand of the player's range.  Games without cards need none
    board   all board cards, or those dealt after the board with which the game begins; needed if there are several

    With a hand, each action has a `probability` and the `weight` of the infoset.  `reached` is True if that is above 0;
    else the probabilities are uniform.  Without a hand, `hands` has the probabilities of each hand in the order of
    `actions`, and `unreached` lists the hands of weight 0.

    In a game with locked strategies, `locked` lists the actions with a fixed probability; without `hand`, for each
    hand.  `street` is a name in hold'em, else a number.  Chips are None if the game has no chips.

    If the full game allows bets that are not in the tree, a line may have them.  It is then mapped to one or more nodes
    of the tree. Each entry of `readings` is such a node (for `hand` if given): its `line` and `probability`. `line` is
    None if the tree has no decision for the player.  `after_call` is then the tree's line after a call, or with three
    and more players the line at which the tree waits; else None.  The actions are legal bets of the full game, and
    their probabilities are the mean over these nodes.

    Raises `ValueError` for an invalid line, hand or board; the message names the valid ones.
    """
    game = source.game
    tree, cards, line = game.tree, game.cards, typed_line(game, line)
    try:
        node, answer = answer_head(game, line)
    except ValueError:
        if game.real_rules is None:
            raise
        return _translated(source, line, hand, board)
    street, player, actions = int(tree.arrays.block[node]) // tree.players, answer["player"], answer["actions"]
    if not cards.dealt:
        if hand or board:
            raise ValueError(f"game {game.name!r} has no cards: leave hand and board out")
        return {**answer, **_fill(actions, source, node, 0)}
    locked = None if tree.locks is None else locked_actions_of(game, node)
    if hand:
        bucket = cards.hand_bucket(street, player, hand, board)
        given = {} if locked is None else {"locked": _labels(actions, locked[bucket])}
        return {**answer, **_fill(actions, source, node, bucket), **given}
    buckets = cards.hand_buckets(street, player, board)
    if locked is not None:
        answer["locked"] = {name: _labels(actions, locked[of]) for name, of in buckets.items() if locked[of].any()}
    shares, weights = source.rows(node, np.array(list(buckets.values()), np.int64))
    return {
        **answer,
        "hands": dict(zip(buckets, shares.tolist(), strict=True)),
        "unreached": [name for name, weight in zip(buckets, weights.tolist(), strict=True) if weight == 0],
    }


def answer_head(game: Game, line: str) -> tuple[int, dict[str, Any]]:
    """Return (decision node of a line, {field: value}), with the fields that do not depend on the hand.

    The fields are those of the result of `query`.

    line  actions before the decision, with amounts over the whole hand (`r300`)

    Raises `ValueError` for a line that leads to no decision.
    """
    tree, dealt = game.tree, game.cards.dealt
    node, start = find_decision(tree, line), line_start(game)
    line = line_text(tree, node)
    street, player = divmod(int(tree.arrays.block[node]), tree.players)
    chips = [None] * int(tree.arrays.count[node]) if not dealt else [_whole(n) for n in chips_after(tree, node)]
    return node, {
        "line": street_line(line, start) if dealt else line,
        "street": game.street_name(street),
        "player": player,
        "role": game.roles[player],
        "big_blind_chips": game.big_blind_chips,
        "pot_chips": None if not dealt else _whole(_pot_chips(tree, node)),
        "actions": [
            {"action": street_action(line, tree.label[child], start) if dealt else tree.label[child], "to_chips": to}
            | ({} if tree.action_names is None else {"name": tree.action_names[child]})
            for child, to in zip(tree.children(node), chips, strict=True)
        ],
    } | ({} if dealt or tree.infoset_names is None else {"infoset": tree.infoset_names[player][tree.arrays.row[node]]})


def _translated(source: Behaviour, line: str, hand: str | None, board: str | None) -> dict[str, Any]:
    """Return the result of `query` for a legal line that the tree lacks.

    Its actions are mapped to actions of the tree, with probabilities (action translation). The arguments are those of
    `query`; amounts in `line` are over the whole hand. Raises `ValueError` for an invalid line, hand or board.
    """
    game, line = source.game, line.strip()
    translation, tree, start = real_betting(game), game.tree, line_start(game)
    assert isinstance(translation, Translation)
    rules = translation.rules
    state, readings = translation.read(line)
    if not isinstance(state, BettingState):
        raise ValueError(f"line {line!r}: the hand is over here, so no player acts; give a line to a decision")
    buckets: dict[str, int] = {}
    if hand:
        buckets = {hand: game.cards.hand_bucket(state.street, state.player, hand, board)}
    else:
        buckets = game.cards.hand_buckets(state.street, state.player, board)
    hands, weight = dict[str, dict[str, float]](), dict[str, float]()
    shown = (board or "")[: 2 * game.cards.cards_on(0)] or None
    readings_of = cache(partial(hand_readings, source, translation, tuple(actions_of(line)), state.player))
    for name, bucket in buckets.items():
        own = readings_of(game.cards.hand_bucket(0, state.player, name, shown) if state.street else bucket)
        hands[name] = played(source, translation, own, state, bucket)
        decides = [reading for each in own if translation.decides(reading := translation.at(each, state))]
        weight[name] = sum(reading.probability * source.weight(reading.node, bucket) for reading in decides)
        readings = own if hand else readings
    order = sorted({action for mean in hands.values() for action in mean}, key=_place)
    found: dict[str, dict[str, Any]] = {
        action: {"action": street_action(line, action, start), "to_chips": _whole(_to_chips(rules, state, action))}
        for action in order
    }
    answer: dict[str, Any] = {
        "line": street_line(line, start),
        "street": game.street_name(state.street),
        "player": state.player,
        "role": game.roles[state.player],
        "big_blind_chips": game.big_blind_chips,
        "pot_chips": _whole(sum(state.put_in) + sum(rules.dead)),
        "actions": [found[action] for action in order],
        "readings": [
            {
                "line": None if r.node == NOWHERE else street_line(line_text(tree, r.node), start),
                "after_call": None if r.closed == NOWHERE else street_line(line_text(tree, r.closed), start),
                "probability": r.probability,
            }
            for r in (translation.at(reading, state) for reading in readings)
        ],
    }
    if not hand:
        shares_of = {name: [mean.get(action, 0.0) for action in order] for name, mean in hands.items()}
        return {**answer, "hands": shares_of, "unreached": [name for name, total in weight.items() if total == 0]}
    for action in order:
        found[action].update(probability=hands[hand][action], weight=weight[hand])
    return {**answer, "reached": weight[hand] > 0}


@dataclass(frozen=True)
class HandReader:
    """Maps the actions of a real betting line to nodes of the tree, for one hand of one player.

    Several actions of the tree may stand for the hand's own preflop action; they are weighted by the hand's
    probabilities in the tree.  For example, in a tree without limps a real check after a limp may be the tree's call or
    its fold.  If it is the fold, the hand then folds to a later real bet.

    betting   mapping between tree and real betting
    player    the player with the hand
    strategy  returns [A] the hand's probabilities at a decision of the tree
    """

    betting: Translation | IdentityTranslation
    player: int
    strategy: Callable[[int], npt.NDArray[np.float64]]

    def outcomes(self, reading: LineReading, state: Any, action: str) -> list[LineReading]:
        """Return the tree nodes, with probabilities, that the line is mapped to after `action`.

        reading  tree node that the line before the action is mapped to; its own probability is ignored
        state    of the real betting before the action
        action   in the real betting: "f", "c" or "rN", N chips over the whole hand
        """
        here = self.betting.at(reading, state)
        if state.player == self.player and state.street == 0 and self.betting.decides(here):
            actions = self.betting.real_actions(here, state)
            same = [number for number, one in enumerate(actions) if one == action]
            shares = self.strategy(here.node)[same].tolist() if len(same) > 1 else []
            if total := sum(shares):
                pairs = [(number, share / total) for number, share in zip(same, shares, strict=True) if share]
                return [LineReading(self.betting.child(here.node, number), share) for number, share in pairs]
        return self.betting.outcomes(reading, state, action)


def hand_readings(
    source: Behaviour,
    betting: Translation | IdentityTranslation,
    actions: Sequence[str],
    player: int,
    bucket: int,
) -> list[LineReading]:
    """Return the tree nodes that a line is mapped to for a hand of `player`, likeliest first.

    The result has each node with its probability.

    source   strategy by which actions of the tree are weighted if several stand for one of the hand's preflop actions
    betting  mapping between tree and real betting
    actions  the line's actions, in the real betting
    bucket   of the hand on the first street
    """
    reader = HandReader(betting, player, lambda node: source.probabilities(node, bucket))
    state: Any
    state, readings = betting.start()
    for action in actions:
        readings = followed(reader, readings, state, action)
        state = betting.apply(state, action)
    return sorted(readings, key=lambda reading: -reading.probability)


def played(
    source: Behaviour,
    betting: Translation | IdentityTranslation,
    readings: Sequence[LineReading],
    state: Any,
    bucket: int,
) -> dict[str, float]:
    """Return {real action: probability} of a hand: its mean strategy over the tree nodes `readings`.

    A line of real betting is mapped to these nodes. The result is sorted: `f`, `c`, then raises `rN` by their N chips.

    readings  these nodes, with their probabilities
    state     of the real betting after the line
    bucket    of the hand
    """
    found: dict[str, float] = {}
    for reading in (betting.at(each, state) for each in readings):
        shares = source.probabilities(reading.node, bucket).tolist() if betting.decides(reading) else [1.0]
        for action, share in zip(betting.real_actions(reading, state), shares, strict=True):
            found[action] = found.get(action, 0.0) + reading.probability * share
    return dict(sorted(found.items(), key=lambda one: _place(one[0])))


def _place(action: str) -> tuple[bool, bool, float]:
    """Return the sort key of a real action ("f", "c" or "rN"): f, c, then raises by amount."""
    return action != "f", action != "c", float(action[1:] or 0)


def _to_chips(rules: BettingRules, state: BettingState, action: str) -> float:
    """Return the chips that the player to act will have put in over the whole hand after `action`.

    action  `f`, `c`, or `rN` with N chips put in over the whole hand
    state   of the betting before the action
    """
    if action == "f":
        return state.put_in[state.player]
    return min(state.to_call, rules.stack_of(state.player)) if action == "c" else float(action[1:])


def _fill(actions: list[dict[str, Any]], source: Behaviour, node: int, bucket: int) -> dict[str, bool]:
    """Add an infoset's `probability` and `weight` to the dict of each of its actions, in place.

    actions  the dicts, in the order of the node's children
    source   the strategy
    node     number of the infoset's decision in the tree
    bucket   bucket of the hand

    Returns {"reached": True if the weight is above 0, else False}.
    """
    weight = source.weight(node, bucket)
    for action, probability in zip(actions, source.probabilities(node, bucket).tolist(), strict=True):
        action.update(probability=probability, weight=weight)
    return {"reached": weight > 0}


def _pot_chips(tree: CompiledTree, node: int) -> float:
    """Return the chips in the pot at a decision, including antes."""
    assert tree.put_in is not None
    dead = 0.0 if tree.pots is None else float(tree.pots.dead.sum())
    return float(tree.put_in[node].sum()) + dead


def _labels(actions: Sequence[Mapping[str, Any]], chosen: npt.NDArray[np.bool_]) -> list[str]:
    return [action["action"] for action, is_one in zip(actions, chosen.tolist(), strict=True) if is_one]


def _whole(chips: float) -> int | float:
    """Return whole chips as an int, others unchanged."""
    return int(chips) if chips == int(chips) else chips
