"""Error messages for invalid games, and for games that a function does not support."""

from pathlib import Path

import numpy as np
from places import RUNS
from refusals import refusals
from small_games import Labels

from mccfr.config.game_tables import FlopHoldemGame, GoofspielGame, HoldemSubgame, KuhnGame, MatrixGame, Menu
from mccfr.games.bucketed import bucketed
from mccfr.games.goofspiel import goofspiel
from mccfr.games.holdem import flop_holdem
from mccfr.games.holdem_betting import holdem_rules
from mccfr.games.holdem_subgame import holdem_subgame
from mccfr.games.libratus import read_endgame
from mccfr.games.matrix import matrix
from mccfr.games.registry import build_game
from mccfr.games.translation import real_betting


def flop(**keys):
    flop_holdem(FlopHoldemGame(**keys), None, Path())


def subgame(**keys):
    holdem_subgame(HoldemSubgame(**{"file": "river.txt", **keys}), RUNS / "games")


test_invalid_keys_are_refused = refusals(
    ("max_raises = 0 is not allowed: it must be at least 1, or a list of two", lambda: flop(max_raises=0)),
    ("a list of two numbers, before the flop and on it", lambda: flop(max_raises=[1, 2, 3])),
    ("of which one may be 0", lambda: flop(max_raises=[3, -1])),
    ("limp = False is not allowed where game.max_raises has no", lambda: flop(max_raises=[0, 2], limp=False)),
    ("bet = .* must be finite and above 0", lambda: flop(bet=0.0)),
    ("half the pot of 600 chips is not below game.stack = 300", lambda: subgame(stack=300)),
    ("game.stack = nan", lambda: subgame(stack=float("nan"))),
    ("game.stack = inf", lambda: subgame(stack=float("inf"))),
    ("bet size '-1p'", lambda: subgame(menu=Menu(first=("-1p",)))),
    *((f"game.cards = {cards}: .* 2 to 6", goofspiel, GoofspielGame(cards=cards)) for cards in (-1, 1, 7)),
    ("game.payoffs.*at least one row", matrix, MatrixGame(payoffs=[])),
    ("game.payoffs.*at least one row", matrix, MatrixGame(payoffs=[[]])),
    ("game.payoffs.*row 1 has 1 payoffs", matrix, MatrixGame(payoffs=[[1, 2], [3]])),
    ("game.payoffs.*row 1 .*finite", matrix, MatrixGame(payoffs=[[1, 2], [3, float("nan")]])),
    ("game.payoffs.*row 0 .*finite", matrix, MatrixGame(payoffs=[[float("inf")]])),
    *(
        (rf"game\.stack = {stack} is not .* above .*, {50 + ante}, or", holdem_rules, stack, (50, 100), ante, Menu())
        for stack, ante in ((50, 0), (20, 0), (80, 30), (0, 0))
    ),
)

test_unsupported_games_are_refused = refusals(
    ("is for hold'em games", lambda: bucketed(build_game(KuhnGame(), RUNS), Labels(np.zeros(1326, int)))),
    (
        "after '': 'r300' is not possible here; legal actions: c, b",
        lambda: (found := real_betting(build_game(KuhnGame(), RUNS))).apply(found.start()[0], "r300", "after ''"),
    ),
    ("goofspiel deals no cards outside of its tree", lambda: real_betting(build_game(GoofspielGame(), RUNS))),
)
test_missing_files_are_refused = refusals(
    ("absent", lambda: subgame(file="absent.txt")),
    (r"nothing\.txt", read_endgame, RUNS / "nothing.txt"),
    error=FileNotFoundError,
)
