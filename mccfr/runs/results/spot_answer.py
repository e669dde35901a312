"""Computes results of a solved spot: both players' first actions, EV and equity by hand class.

A spot is the rest of a hand with given board, ranges, pot and stacks. Player 0 is out of position (oop), player 1 in
position (ip). There are H = 1,326 hands; those that share a card with the board have weight 0.
"""

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from abstraction.range_notation import class_names, class_of
from mccfr.cards.card_index import IndexedCards
from mccfr.games.game import Game
from mccfr.play.expected_value import action_means, hand_ev, range_mean, realisation
from mccfr.play.showdown_values import all_run_outs, equity, opponent_weight
from mccfr.policy.strategy_profile import Profile
from mccfr.runs.directory.run import Run
from mccfr.runs.results.targets import Reference, open_target
from mccfr.solvers.public.best_response import hand_values
from mccfr.tables.strategy import Strategy
from mccfr.trees.betting_lines import chips_after, line_text
from mccfr.trees.compiled import DECISION
from mccfr.trees.street_amounts import street_action, tree_start

_DIGITS = 6
_ROUNDING = 1e-6  # relative error of an exploitability in float32

Floats = npt.NDArray[np.float64]


def spot_answer(run: Run, threads: int) -> dict[str, Any]:
    """Return the results of a solved spot, as `mccfr spot --json` prints them; see docs/files.md.

    run      the spot's run; its newest checkpoint is used
    threads  number of threads

    `mccfr.play.expected_value` defines EVs and their means.
    """
    target = open_target(Reference(run.directory))
    game, profile = target.game, Profile(target.game, target.strategy)
    dealing, half = game.table_cards(), game.pot_chips / 2
    after = int(game.tree.arrays.first[0]) + _labels(game, 0).index("c")
    nodes = [node for node in (0, after) if game.tree.arrays.kind[node] == DECISION]
    value, action, gains = hand_values(game, target.strategy, threads, nodes)
    reach = dealing.reach.astype(np.float64)
    opponents = np.stack([_opponents(dealing, reach, player) for player in range(2)])
    run_outs = all_run_outs(dealing, 0, dealing.read_board(0, ""))
    equities = np.stack([equity(dealing, run_outs, reach[1 - player], opponents[player]) for player in range(2)])
    ev = hand_ev(value, opponents, half)
    weight, oop_played = reach * opponents, _played(profile, dealing, 0, 0)
    shares, evs = ([_mean(weight[player], each[player]) for player in range(2)] for each in (equities, ev))
    exploitability, goal = sum(gains) / 2 / game.pot_chips, run.config.run.goal
    answer: dict[str, Any] = {
        "board": run.config.game.board,  # type: ignore[attr-defined]
        "pot_chips": game.pot_chips,
        "big_blind_chips": game.big_blind_chips,
        "equity": shares,
        "ev_chips": evs,
        "eqr": [_rounded(realisation(*pair, game.pot_chips)) for pair in zip(evs, shares, strict=True)],
        "gain_chips": [round(gain, _DIGITS) for gain in gains],
        "unlocked_gain_chips": _unlocked(game, target.strategy, threads),
        "exploitability_chips": round(sum(gains) / 2, _DIGITS),
        "exploitability_pot": round(exploitability, _DIGITS + 2),
        "to_pot": goal,
        "reached": goal is None or exploitability <= goal * (1 + _ROUNDING),
        "iterations": target.counts["iterations"],
        "actions": _actions(game, 0, weight[0], oop_played, hand_ev(action[0], opponents[0], half)),
        "ip_actions": [],
        "classes": {"oop": _classes(dealing, game.pot_chips, weight[0], equities[0], ev[0], (oop_played, weight[0]))},
    }
    ip_played = np.zeros((0, dealing.hand_count)), weight[1]
    if after in nodes:
        after_check = np.stack([reach[0] * oop_played[_labels(game, 0).index("c")], reach[1]])
        ip_opponents = _opponents(dealing, after_check, 1)
        ip_played = _played(profile, dealing, after, 1), after_check[1] * ip_opponents
        ip_ev = hand_ev(action[1], ip_opponents, half)
        answer["ip_actions"] = _actions(game, after, ip_played[1], ip_played[0], ip_ev)
    answer["classes"]["ip"] = _classes(dealing, game.pot_chips, weight[1], equities[1], ev[1], ip_played)
    return answer


def _unlocked(game: Game, strategy: Strategy, threads: int) -> list[float] | None:
    """Return [2] each player's gain, in chips per hand, from a best response that ignores locks.

    Locks fix a player's action probabilities at some decisions; this best response may change them. Returns None for a
    spot without locks.
    """
    if game.tree.locks is None:
        return None
    gains = hand_values(replace(game, tree=replace(game.tree, locks=None)), strategy, threads)[2]
    return [round(gain, _DIGITS) for gain in gains]


def _labels(game: Game, node: int) -> list[str]:
    return [game.tree.label[child] for child in game.tree.children(node)]


def _opponents(dealing: IndexedCards, reach: Floats, player: int) -> Floats:
    """Return [H], for each of a player's hands, the weight of opposing hands without its cards.

    It is 0 for hands outside of the player's range.

    dealing  the H hands and their cards
    reach    [2, H] weight of each player's hands
    """
    return np.where(reach[player] > 0, opponent_weight(dealing, reach[1 - player]), 0.0)


def _mean(weight: Floats, values: Floats) -> float | None:
    """Return the weighted mean of the known values, rounded to six decimals; None if none is known.

    weight  [H] weight of each hand
    values  [H] number of each hand, such as its equity or EV; it is known if it is not NaN and its weight is above 0
    """
    return _rounded(range_mean(values, weight))


def _rounded(number: float | None) -> float | None:
    return None if number is None else round(number, _DIGITS)


def _played(profile: Profile, dealing: IndexedCards, node: int, player: int) -> Floats:
    """Return [A, H] the probability of each action with each hand, at a first-street decision.

    node    tree node of the decision
    player  the player who acts there
    """
    buckets = dealing.bucket_row(0, player, dealing.read_board(0, ""))
    return profile.rows(node, buckets)[0].T


def _actions(game: Game, node: int, weight: Floats, played: Floats, ev: Floats) -> list[dict[str, Any]]:
    """Return a dict for each action of a decision, with its frequency and the EV of its hands.

    The frequency is the weighted mean probability of the action, from 0 to 1. The EV is a mean in chips; each hand
    counts with its weight times the probability of the action.

    node    tree node of the decision
    weight  [H] each hand's reach times the total weight of the opposing hands that share no card with it
    played  [A, H] probability of each action with each hand
    ev      [A, H] EV of each action with each hand, in chips
    """
    figures = action_means(ev, played, weight)
    return [
        {
            "action": street_action(line_text(game.tree, node), action, tree_start(game.tree)),
            "bet_chips": chips - game.pot_chips / 2 if action.startswith("r") else None,
            "frequency": _rounded(share),
            "ev_chips": _rounded(worth),
        }
        for action, chips, (share, worth) in zip(
            _labels(game, node), chips_after(game.tree, node), figures, strict=True
        )
    ]


def _classes(
    dealing: IndexedCards,
    pot: float,
    weight: Floats,
    equity: Floats,
    ev: Floats,
    played: tuple[Floats, Floats],
) -> list[dict[str, Any]]:
    """Return a dict for each hand class, such as "AKs", of a player's range, the highest EV first.

    Share is the class's weight over the weight of the range. Equity is a share of the pot, and frequencies are the
    probabilities of actions; both are from 0 to 1. Classes outside of the range are left out.

    pot     chips in the pot where the spot begins
    weight  [H] each hand's reach times the weight of the opposing hands that it does not block
    equity  [H] share of the pot at a showdown
    ev      [H] EV in chips where the spot begins
    played  a pair: [A, H] action probabilities at the player's first decision, and [H] the hands' weights there
    """
    class_of_hand, total, rows = class_of(dealing.hand_cards), max(float(weight.sum()), 1e-300), []
    for number, name in enumerate(class_names()):
        class_weight = np.where(class_of_hand == number, weight, 0.0)
        share = _mean(class_weight, equity)
        worth = _mean(class_weight, ev)
        if share is None or worth is None:
            continue
        rows.append(
            {
                "class": name,
                "share": round(float(class_weight.sum()) / total, _DIGITS),
                "equity": share,
                "ev_chips": worth,
                "eqr": _rounded(realisation(worth, share, pot)),
                "frequencies": [_mean(np.where(class_of_hand == number, played[1], 0.0), row) for row in played[0]],
            }
        )
    return sorted(rows, key=lambda row: -row["ev_chips"])
