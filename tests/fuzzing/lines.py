"""Fuzzed betting lines of small games and of hold'em, with bet sizes that the tree lacks."""

from functools import cache
from pathlib import Path

import random_policy

from fuzzing import Format, damaged
from mccfr.config.game_tables import GoofspielGame, LeducGame
from mccfr.games.betting import BettingState
from mccfr.games.registry import build_game
from mccfr.games.translation import Translation, apply_action
from mccfr.policy.query import answer_head
from mccfr.trees.betting_lines import line_text

_PIECES = [*b"c f r / r300 r300.5 r1e3 cr20000c".split(), b" ", b"3 1 2", b"r" + b"9" * 30, "²".encode()]


@cache
def _game(name):
    return build_game({"leduc": LeducGame(ranks=4), "goofspiel": GoofspielGame(cards=3)}[name], Path())


@cache
def _translation():
    game = random_policy.policy().game
    return Translation(game.tree, game.real_rules)


def tree_line(rng, tree):
    """Return the line to a random node of a tree."""
    node = 0
    while tree.children(node) and rng.random() < 0.8:
        node = rng.choice(tree.children(node))
    return line_text(tree, node)


def real_line(rng, rules):
    """Return a random legal line of the full game, with bet sizes that the tree may lack."""
    state, line = rules.start(), ""
    while isinstance(state, BettingState) and rng.random() < 0.85:
        low, high = state.lowest_raise, rules.stack
        amounts = [f"r{rng.choice((low, high, rng.uniform(low, max(low, high)), int(low) * 2)):g}"]
        action = rng.choice(["c", "c", *(["f"] if state.facing else []), *amounts])
        try:
            state = apply_action(rules, state, action)
        except ValueError:
            action = ""
        line += action
    return line


def make(rng):
    """Return `GAME LINE`: a line of the tree or of the full game, mostly damaged."""
    game = rng.choice(("leduc", "goofspiel", "holdem", "holdem"))
    line = real_line(rng, _translation().rules) if game == "holdem" else tree_line(rng, _game(game).tree)
    data = line.encode()
    if rng.random() < 0.6:
        data = damaged(rng, data, _PIECES)
    elif rng.random() < 0.02:
        data = data * rng.choice((100, 5_000))
    return game.encode() + b" " + data


def read(data):
    """Look up the decision of a line, or translate a line of hold'em to decisions of the tree."""
    game, _, line = data.decode(errors="surrogateescape").partition(" ")
    if game == "holdem":
        _translation().read(line)
    else:
        answer_head(_game(game), line)


LINE = Format(make, read)
