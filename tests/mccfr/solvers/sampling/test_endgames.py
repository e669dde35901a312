"""External sampling on river endgames: exploitability is in a measured range for each discount.

The public ranges are means of an independent implementation over three to fourteen seeds.
It also uses one deal for both traversals. The ranges of our own endgame were measured with this project over eight
seeds. The tests allow 15 % around a range.
"""

from functools import cache

import pytest
from places import ENDGAMES, RUNS

from mccfr.config.game_tables import HoldemSubgame
from mccfr.config.run_tables import Config
from mccfr.config.solver_tables import ExternalSamplingConfig
from mccfr.config.toml_files import config_from
from mccfr.evaluation.exact import evaluate_exact
from mccfr.games.registry import build_game
from mccfr.runs.directory.run import EVALUATIONS, create_run
from mccfr.runs.reporter import Silent
from mccfr.runs.session.training_session import train
from mccfr.solvers.registry import algorithm_of
from mccfr.tables.strategy import average_strategy
from mccfr.tables.table_layout import make_layout, private_tables

SUBGAME_3, RIVER = ENDGAMES / "subgame3.txt", RUNS / "games/river.txt"
SEED = 1
POINTS = (10_000_000, 32_000_000, 56_000_000)
NO_LIMIT = 2**62

# Lowest and highest mean over seeds, in mbb/g: at 10^7, 3.2·10^7 and 5.6·10^7 nodes.
PUBLIC = {
    "none": ((1074, 1131), (439, 445), (266, 276)),
    "linear": ((1074, 1131), (248, 259), (126, 130)),
    "initial": ((1074, 1131), (193, 199), (129, 132)),
}
OWN = {
    "none": ((1143, 1174), (396, 406), (229, 237)),
    "linear": ((1143, 1174), (202, 211), (86, 88)),
    "initial": ((1143, 1174), (131, 137), (76, 78)),
}


@cache
def endgame(path):
    """Return the game of a file."""
    return build_game(HoldemSubgame(file=str(path)), RUNS)


def curve(path, discount):
    """Return exploitability in mbb/g at the first iteration that reaches each number of nodes in POINTS."""
    game = endgame(path)
    tables = private_tables(make_layout(game))
    options = ExternalSamplingConfig(discount=discount, seed=SEED)
    solver = algorithm_of(Config(game=HoldemSubgame(file=str(path)), solver=options)).solver(game, tables)
    nodes, found = 0, []
    for point in POINTS:
        while nodes < point:
            nodes += solver.run(nodes, point - nodes, NO_LIMIT)[1]
        found.append(evaluate_exact(game, average_strategy(game, tables)).exploitability_mbb)
    return found


def assert_in_bands(found, bands):
    for point, value, (low, high) in zip(POINTS, found, bands, strict=True):
        assert 0.85 * low < value < 1.15 * high, f"{value:.1f} mbb/g at {point:,} nodes; expected {low} to {high}"


@pytest.mark.parametrize("discount", OWN)
@pytest.mark.parametrize(("path", "bands"), [(SUBGAME_3, PUBLIC), (RIVER, OWN)], ids=["published", "own"])
def test_exploitability_on_endgames_is_in_the_expected_range(path, bands, discount):
    if not path.exists():
        pytest.skip("the Libratus endgames are not on this machine")
    assert_in_bands(curve(path, discount), bands[discount])


def test_exploitability_with_two_workers_is_in_the_same_range(tmp_path):
    """Two processes that add to one table without locks converge per node like one worker."""
    document = {
        "game": {"name": "holdem-subgame", "file": str(RIVER)},
        "solver": {"discount": "linear", "seed": SEED},
        "run": {"workers": 2, "nodes": POINTS[-1]},
        "evaluation": {"at_nodes": POINTS, "every_checkpoint": False},
    }
    config = config_from(document, "the test")
    run = create_run(config, RUNS, tmp_path / "run")
    train(run, endgame(RIVER), Silent())
    found = [record["exploitability_mbb"] for record in run.read(EVALUATIONS)][: len(POINTS)]
    assert_in_bands(found, OWN["linear"])
