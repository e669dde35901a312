"""Error messages of algorithms for invalid games, options and tables, before training."""

from dataclasses import replace

import numpy as np
from linear_program import solve_linear_program
from places import RUNS
from refusals import refusals
from stratified import LEDUC_12

import mccfr
from mccfr.cards.no_cards import NO_CARDS
from mccfr.config.game_tables import GoofspielGame, HoldemSubgame, KuhnGame, LeducGame, MatrixGame
from mccfr.config.toml_files import config_from
from mccfr.games.history_tree import expand
from mccfr.games.registry import build_game
from mccfr.solvers.game_from_config import configured_game
from mccfr.solvers.histories.history_cfr import HistoryCfr
from mccfr.solvers.histories.history_values import best_response_value, expected_value
from mccfr.solvers.histories.pruned_cfr import PrunedCfr, pruned_tables
from mccfr.solvers.public.public_chance.public_chance_sampling import PublicChanceSampling
from mccfr.solvers.public.sampled_board import from_cards
from mccfr.solvers.public.vector_cfr import VectorCfr, table_specs
from mccfr.solvers.registry import algorithm_of, find_algorithm
from mccfr.solvers.variants import variant
from mccfr.tables.strategy import uniform_strategy

KUHN, LEDUC, BIDS = (build_game(config, None) for config in (KuhnGame(), LeducGame(), GoofspielGame(cards=3)))
TREE, CFR, DCFR = expand(KUHN).game, variant("cfr"), variant("dcfr")
SIX_ACTIONS = build_game(MatrixGame(payoffs=[[1] * 2] * 6), None)
TABLES = {spec.name: np.zeros(spec.shape, spec.dtype) for spec in table_specs(LEDUC, DCFR)}


def turn(board):
    from_cards(build_game(HoldemSubgame(file="games/turn.txt"), RUNS).cards, board)


def kuhn_solver(**options):
    mccfr.solver(mccfr.game("kuhn"), "cfr", **options)


def without_buckets(game, **solver):
    config = config_from({"game": {"name": game}, "solver": {"algorithm": "cfr-br", **solver}}, "test")
    algorithm_of(config).layout(build_game(config.game, None))


def in_strata(game, strata):
    configured_game(config_from({"game": game, "run": {"strata": strata}}, "test"), None)


test_invalid_calls_of_history_solvers_are_refused = refusals(
    ("kuhn deals cards outside of its tree", expected_value, KUHN, uniform_strategy(KUHN)),
    ("kuhn deals cards outside of its tree", HistoryCfr, KUHN, CFR),
    ("kuhn deals cards outside of its tree", lambda: PrunedCfr(KUHN, CFR, threshold=25)),
    ("kuhn deals cards outside of its tree", solve_linear_program, KUHN),
    (r"player 0's strategy has the shape \(1, 6\)", best_response_value, BIDS, uniform_strategy(SIX_ACTIONS), 1),
    ("player = 2: it must be one of 0, 1", best_response_value, BIDS, uniform_strategy(BIDS), 2),
    ("dtype = 'float16': float32 or float64", HistoryCfr, TREE, CFR, "float16"),
    ("regret/street0/player0 is absent; float64 of the shape (12, 1)", lambda: HistoryCfr(TREE, CFR, tables={})),
    ("table regret/street0/player0 is absent", lambda: PrunedCfr(TREE, CFR, threshold=25, tables={})),
    ("prune_threshold = 0: it must be at least 1", lambda: PrunedCfr(TREE, CFR, threshold=0)),
    *(
        ("pruning = 'regret-based' is for regret-matching without discounts", pruned_tables, TREE, variant(name))
        for name in ("dcfr", "lcfr", "nh-dcfr", "pcfr+", "lcfr+")
    ),
    ("plays best responses of its own", lambda: kuhn_solver(best_response="zero-reach", pruning="regret-based")),
    (
        "variant = 'toys:long_kuhn' is a function: an mccfr.Variant is needed",
        lambda: kuhn_solver(variant="toys:long_kuhn"),
    ),
    ("'cfr'", find_algorithm, "no-such"),
)

test_invalid_calls_of_public_tree_solvers_are_refused = refusals(
    ("last_board = 48: it must be from 0 to 47", turn, 48),
    ("give the number of one", from_cards, LEDUC.cards, [0, 1, 2, 3, 4]),
    ("sampled boards need cards", PublicChanceSampling, BIDS),
    ("dtype = 'float16': one of float32, float64", VectorCfr, LEDUC, DCFR, "float16"),
    ("workers = 0", lambda: VectorCfr(LEDUC, DCFR, workers=0)),
    ("has chance nodes in its tree", VectorCfr, replace(LEDUC, cards=NO_CARDS), DCFR),
    (
        "predicted_regret/street0/player0 is missing",
        lambda: VectorCfr(LEDUC, variant("optimistic-dcfr"), tables=TABLES),
    ),
    ("float64 is needed", lambda: VectorCfr(LEDUC, DCFR, "float64", tables=TABLES)),
    ("needs a game with cards", lambda: without_buckets("goofspiel", trunk="own")),
    ("the game comes without its buckets", lambda: without_buckets("leduc", trunk="nowhere")),
    ("from 1 to 12", in_strata, LEDUC_12, 13),
    ("several streets", in_strata, {"name": "kuhn"}, 2),
    ("dealt from the tree", in_strata, {"name": "goofspiel"}, 2),
)
