"""Results of a solved spot: the first actions of both players, and the EV and equity of hands."""

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
from mccfr.trees.betting_lines import line_text, to_chips
from mccfr.trees.compiled import DECISION
from mccfr.trees.street_amounts import street_action, tree_start

_DIGITS = 6
_ROUNDING = 1e-6  # relative error of an exploitability in float32

Floats = npt.NDArray[np.float64]


def spot_answer(run: Run, threads: int) -> dict[str, Any]:
    """Return the results of the newest checkpoint of a spot's run; docs/files.md lists the fields.

    `mccfr.play.expected_value` defines EVs and their means.
    """
    found = open_target(Reference(run.directory))
    game, profile = found.game, Profile(found.game, found.strategy)
    dealing, half = game.cards.at_table(), game.pot_chips / 2
    after = int(game.tree.arrays.first[0]) + _labels(game, 0).index("c")
    nodes = [node for node in (0, after) if game.tree.arrays.kind[node] == DECISION]
    value, action, gains = hand_values(game, found.strategy, threads, nodes)
    reach = dealing.reach.astype(np.float64)
    opponents = np.stack([_opponents(dealing, reach, player) for player in range(2)])
    every = all_run_outs(dealing, 0, dealing.read_board(0, ""))
    shown = np.stack([equity(dealing, every, reach[1 - player], opponents[player]) for player in range(2)])
    ev = hand_ev(value, opponents, half)
    weight, played = reach * opponents, _played(profile, dealing, 0, 0)
    shares, worth = ([_mean(weight[player], each[player]) for player in range(2)] for each in (shown, ev))
    off, goal = sum(gains) / 2 / game.pot_chips, run.config.run.goal
    answer: dict[str, Any] = {
        "board": run.config.game.board,  # type: ignore[attr-defined]
        "pot_chips": game.pot_chips,
        "big_blind_chips": game.big_blind_chips,
        "equity": shares,
        "ev_chips": worth,
        "eqr": [_rounded(realisation(*pair, game.pot_chips)) for pair in zip(worth, shares, strict=True)],
        "gain_chips": [round(gain, _DIGITS) for gain in gains],
        "unlocked_gain_chips": _unlocked(game, found.strategy, threads),
        "exploitability_chips": round(sum(gains) / 2, _DIGITS),
        "exploitability_pot": round(off, _DIGITS + 2),
        "to_pot": goal,
        "reached": goal is None or off <= goal * (1 + _ROUNDING),
        "iterations": found.counts["iterations"],
        "actions": _actions(game, 0, weight[0], played, hand_ev(action[0], opponents[0], half)),
        "ip_actions": [],
        "classes": {"oop": _classes(dealing, game.pot_chips, weight[0], shown[0], ev[0], (played, weight[0]))},
    }
    answered = np.zeros((0, dealing.hand_count)), weight[1]
    if after in nodes:
        left = np.stack([reach[0] * played[_labels(game, 0).index("c")], reach[1]])
        checked = _opponents(dealing, left, 1)
        answered = _played(profile, dealing, after, 1), left[1] * checked
        after_check = hand_ev(action[1], checked, half)
        answer["ip_actions"] = _actions(game, after, answered[1], answered[0], after_check)
    answer["classes"]["ip"] = _classes(dealing, game.pot_chips, weight[1], shown[1], ev[1], answered)
    return answer


def _unlocked(game: Game, strategy: Strategy, threads: int) -> list[float] | None:
    """Return each player's best-response gain without locks; None if the tree has no locks."""
    if game.tree.locks is None:
        return None
    gains = hand_values(replace(game, tree=replace(game.tree, locks=None)), strategy, threads)[2]
    return [round(gain, _DIGITS) for gain in gains]


def _labels(game: Game, node: int) -> list[str]:
    return [game.tree.label[child] for child in game.tree.children(node)]


def _opponents(dealing: IndexedCards, reach: Floats, player: int) -> Floats:
    """Return the weight [H] of the opponent's hands that each hand of a player's range can meet."""
    return np.where(reach[player] > 0, opponent_weight(dealing, reach[1 - player]), 0.0)


def _mean(weight: Floats, values: Floats) -> float | None:
    """Return the weighted mean of the known values, rounded; None if there are none."""
    return _rounded(range_mean(values, weight))


def _rounded(number: float | None) -> float | None:
    return None if number is None else round(number, _DIGITS)


def _played(profile: Profile, dealing: IndexedCards, node: int, player: int) -> Floats:
    """Return the probability [A, H] of each action at a decision of the first street."""
    buckets = dealing.bucket_row(0, player, dealing.read_board(0, ""))
    return profile.rows(node, buckets)[0].T


def _actions(game: Game, node: int, weight: Floats, played: Floats, ev: Floats) -> list[dict[str, Any]]:
    """Return each action of a decision with its frequency and the EV of the hands that take it."""
    figures = action_means(ev, played, weight)
    return [
        {
            "action": street_action(line_text(game.tree, node), action, tree_start(game.tree)),
            "bet_chips": chips - game.pot_chips / 2 if action.startswith("r") else None,
            "frequency": _rounded(share),
            "ev_chips": _rounded(worth),
        }
        for action, chips, (share, worth) in zip(_labels(game, node), to_chips(game.tree, node), figures, strict=True)
    ]


def _classes(
    dealing: IndexedCards,
    pot: float,
    weight: Floats,
    equity: Floats,
    ev: Floats,
    played: tuple[Floats, Floats],
) -> list[dict[str, Any]]:
    """Return the hand classes of a range, the highest EV first: share, equity, EV and frequencies.

    weight, equity, ev  [H] where the spot begins
    played              [A, H] probabilities at the player's first decision, and [H] the hands' weights there
    """
    own, total, found = class_of(dealing.hand_cards), max(float(weight.sum()), 1e-300), []
    for number, name in enumerate(class_names()):
        here = np.where(own == number, weight, 0.0)
        share = _mean(here, equity)
        worth = _mean(here, ev)
        if share is None or worth is None:
            continue
        found.append(
            {
                "class": name,
                "share": round(float(here.sum()) / total, _DIGITS),
                "equity": share,
                "ev_chips": worth,
                "eqr": _rounded(realisation(worth, share, pot)),
                "frequencies": [_mean(np.where(own == number, played[1], 0.0), row) for row in played[0]],
            }
        )
    return sorted(found, key=lambda one: -one["ev_chips"])
