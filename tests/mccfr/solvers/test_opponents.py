"""Training against opponents with their own buckets: equal to two plain runs, less exploitable.

Shows:

* Training against opponents on finer buckets equals two plain runs with both card abstractions
  (test_groups_are_plain_runs_of_seated_players, test_boards_are_plain_runs_of_seated_players)
* The test detects an opponent in the player's buckets (test_an_opponent_in_the_player_s_buckets_is_caught)
* A run with such opponents resumes to the same bits (test_a_run_of_two_sessions_is_one)
* A player trained against finer opponents is less exploitable (test_the_player_is_exploited_for_less)
"""

from dataclasses import replace

import numpy as np
import pytest
from commands import answer, call
from refusals import refused
from sessions import assert_same, go, new_run
from small_games import small_recipe

import mccfr
from abstraction.build import Builder
from mccfr.cards.listed import ListedCards
from mccfr.config.file import config_from
from mccfr.evaluation.exact import evaluate_exact
from mccfr.runs.directory.run import open_run
from mccfr.runs.reporter import Silent
from mccfr.runs.session.plan import make_plan
from mccfr.runs.session.start import find_abstractions
from mccfr.solvers.configured import configured_game
from mccfr.solvers.opponents import OPPONENT
from mccfr.solvers.registry import algorithm_of
from mccfr.solvers.sampling.external.algorithm import GROUP
from mccfr.solvers.solver import Share, WorkerState
from mccfr.tables.layout import private_tables, table_name

EXTERNAL, PUBLIC = "external-sampling", "public-chance-sampling"


def trained(game, iterations, state=None, tables=None, **options):
    """Tables after so many iterations in all."""
    config = config_from({"game": {"name": "leduc"}, "solver": {"period_nodes": 5_000, **options}}, "test")
    algorithm = algorithm_of(algorithm_of(config).completed(game))
    tables = private_tables(algorithm.layout(game)) if tables is None else tables
    solver = algorithm.solver(game, tables, Share(state=state or WorkerState()))
    while solver.state.iterations < iterations:
        solver.run(solver.state.nodes, 2**62, iterations - solver.state.iterations)
    return algorithm, tables


@pytest.fixture(scope="module")
def both(coarse, leduc):
    return replace(coarse, opponent_cards=leduc.cards)


def apart(game, iterations, plain):
    """Blocks of either kind where the tables of a run and of plain ones, one for each learner, differ."""
    _, ours = trained(game, iterations, opponent_abstraction="fine", algorithm=plain[0])
    return {
        (learner, block, kind)
        for learner, theirs in plain[1].items()
        for block in range(4)
        for kind, other in (("regret", "regret"), ("strategy_sum", "strategy_sum"))
        if block % 2 == learner or kind == "regret"
        if not np.array_equal(
            ours[table_name(kind if block % 2 == learner else OPPONENT, block)], theirs[table_name(other, block)]
        )
    }


def plain_groups(game, groups):
    """Plain runs of both players, whose groups take turns with one stream of actions."""
    seats = game.cards.seated(game.opponent_cards), game.opponent_cards.seated(game.cards)
    state, tables = WorkerState(), [None, None]
    for group in range(groups):
        state.ends = 0
        learner = group % 2
        _, tables[learner] = trained(replace(game, cards=seats[learner]), (group + 1) * GROUP, state, tables[learner])
    return EXTERNAL, dict(enumerate(tables))


def test_groups_are_plain_runs_of_seated_players(both):
    assert apart(both, 4 * GROUP, plain_groups(both, 4)) == set()


def test_boards_are_plain_runs_of_seated_players(both):
    """Of player 1, whose opponent walks first, as in a plain run."""
    seated = replace(both, cards=both.opponent_cards.seated(both.cards))
    plain = trained(seated, 40, algorithm=PUBLIC, discount="none")[1]
    _, ours = trained(both, 40, algorithm=PUBLIC, discount="none", opponent_abstraction="fine")
    for block in range(4):
        name = table_name("regret" if block % 2 else OPPONENT, block)
        np.testing.assert_array_equal(ours[name], plain[table_name("regret", block)])


def test_an_opponent_in_the_player_s_buckets_is_caught(both, monkeypatch):
    plain = plain_groups(both, 2)
    monkeypatch.setattr(ListedCards, "seated", lambda self, other: self if other is both.opponent_cards else other)
    blind = apart(both, 2 * GROUP, plain)
    assert {(0, 1, "regret"), (1, 0, "regret")} <= blind


@pytest.mark.parametrize(
    ("algorithm", "iterations", "bound"), [(EXTERNAL, 60_000, 0.379 + 0.05), (PUBLIC, 3_000, 0.42)]
)
def test_the_player_is_exploited_for_less(both, algorithm, iterations, bound):
    chips = []
    for options in ({}, {"opponent_abstraction": "fine"}):
        made, tables = trained(both, iterations, algorithm=algorithm, seed=1, **options)
        chips.append(evaluate_exact(both, made.averages.strategy(both, tables, 1, 1)).exploitability_chips)
    assert chips[1] < bound and chips[0] > 1.3 * chips[1]


def document(folder, **solver):
    """Of Leduc on two buckets after the board, opponents on three."""
    for name, buckets in (("own", 2), ("fine", 3)):
        if not (folder / name).exists():
            Builder(small_recipe(folder / f"{name}.toml", ranks=3, buckets=buckets), folder / name).build()
    return {
        "game": {"name": "leduc"},
        "abstraction": {"path": "own"},
        "solver": {"period_nodes": 20_000, "opponent_abstraction": "fine", **solver},
        "run": {"workers": 0, "nodes": 10**6},
        "evaluation": {"every_checkpoint": False, "at_end": False},
    }


@pytest.mark.parametrize(
    "solver", [{}, {"discount": "dcfr"}, {"algorithm": PUBLIC}], ids=["external", "dcfr", "public"]
)
def test_a_run_of_two_sessions_is_one(tmp_path, solver):
    one, two = (new_run(tmp_path / name, document(tmp_path, **solver)) for name in ("one", "two"))
    go(one, iterations=1300)
    for iterations in (700, 1300):
        go(two, iterations=iterations)
    assert_same(open_run(one.directory), open_run(two.directory))


def test_its_plan_and_its_policy_are_a_run_s(tmp_path, capsys):
    """Opponents' tables are planned for, and do not leave the run."""
    given = document(tmp_path)
    plan, apart = (make_plan(config_from(each, "test"), tmp_path) for each in (given, without_opponents(given)))
    visits = [np.array(each["visits_per_infoset_per_street"]) for each in (plan, apart)]
    assert plan["table_bytes"] > 1.5 * apart["table_bytes"] and np.allclose(visits[0], visits[1] / 2)
    run = new_run(tmp_path / "run", given)
    go(run, iterations=2_000)
    figure = answer(capsys, "evaluate", run.directory, "--method", "exact")
    assert call(capsys, "export", run.directory, tmp_path / "policy").status == 0
    exported = answer(capsys, "evaluate", tmp_path / "policy", "--method", "exact")
    assert figure["exploitability_chips"] == pytest.approx(exported["exploitability_chips"], abs=1e-4)
    assert not [path for path in (tmp_path / "policy").rglob("*") if OPPONENT in path.name]


def without_opponents(given):
    return {**given, "solver": {"period_nodes": 20_000}}


def test_a_recipe_that_opponents_name_is_built(tmp_path):
    """And the run is the one of the directory."""
    given = document(tmp_path, opponent_abstraction="finer.toml")
    small_recipe(tmp_path / "finer.toml", ranks=3)
    config = config_from(given, "test")
    refused("is not built yet: build it with mccfr abstraction build", configured_game, config, tmp_path)
    find_abstractions(config, tmp_path, Silent())
    one, other = (new_run(tmp_path / n, each) for n, each in (("one", given), ("two", document(tmp_path))))
    assert one.identity == other.identity
    assert configured_game(open_run(one.directory).config, tmp_path).opponent_cards.buckets[-1].max() == 3


def test_what_cannot_be_is_refused(tmp_path):
    given = document(tmp_path)
    for key, words in (
        ("own", "is that of the players: name a finer abstraction"),
        ("nowhere", "is no abstraction: name"),
    ):
        refused(words, new_run, tmp_path / "run", document(tmp_path, opponent_abstraction=key))
    for name in ("outcome-sampling", "cfr-br"):
        refused(
            "opponent_abstraction goes with solver.algorithm = 'ext",
            config_from,
            document(tmp_path, algorithm=name),
            "",
        )
    strata = config_from({**given, "run": {"strata": 2}}, "test")
    assert "run.strata = 2 is not allowed: it must be left out" in algorithm_of(strata).problem()
    refused("comes without its buckets", mccfr.solver, mccfr.game("leduc"), opponent_abstraction="fine")
