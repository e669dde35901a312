"""CFR-BR: against CFR-BR over histories, by hand of the real game, what its responder gets, resuming, bad input.

Shows:

* CFR-BR is that over histories where nothing is bucketed, and adds up over the hands of a bucket; its responder is
  exact (test_without_buckets_it_is_cfr_br_over_histories, test_a_bucket_s_regrets_are_the_sum_of_those_of_its_hands,
  test_the_responder_gets_what_an_exact_best_response_gets)
* A responder of CFR-BR who knows buckets alone, and one who remembers an older response, are caught
  (test_a_responder_who_knows_buckets_alone_gets_less, test_tables_and_the_iteration_are_the_whole_state)
"""

from dataclasses import replace

import numpy as np
import pytest
from refusals import refused
from same import assert_same_arrays
from small_games import DeckOfClasses

from mccfr.config.file import config_from
from mccfr.config.games import MatrixGame
from mccfr.evaluation.exact import evaluate_exact
from mccfr.games.catalogue import build_game
from mccfr.games.expanded import expand
from mccfr.games.game import Game
from mccfr.solvers.histories.history_cfr import HistoryCfr
from mccfr.solvers.public.cfr_br import CfrBr
from mccfr.solvers.public.vector_cfr import VectorCfr
from mccfr.solvers.registry import algorithm_of
from mccfr.solvers.solver import Share, WorkerState
from mccfr.solvers.variants import variant
from mccfr.tables.layout import private_tables, table_name
from mccfr.tables.strategy import row_starts

CFR = variant("cfr")


def test_without_buckets_it_is_cfr_br_over_histories(leduc):
    """One iteration from random regrets, so that no action is unreached: rows are updated alike, up to a factor."""
    expanded, rng = expand(leduc), np.random.default_rng(1)
    solver = CfrBr(leduc, CFR)
    for name, table in solver.tables.items():
        table[:] = rng.random(table.shape) if name.startswith("regret") else 0
    before = {name: table.copy() for name, table in solver.tables.items()}
    solver.iterate(1)
    for learner in range(2):
        twin = HistoryCfr(expanded.game, CFR, best_response=f"player-{1 - learner}")
        names = [table_name("regret", block) for block in range(4)]
        for player in range(2):
            twin.tables[table_name("regret", player)][:] = joined(expanded, [before[name] for name in names], player)
        start = twin.tables[table_name("regret", learner)].copy()
        twin.iterate(1)
        theirs = (twin.tables[table_name("regret", learner)] - start)[:, 0]
        changes = [solver.tables[name] - before[name] for name in names]
        mine, street = (
            joined(expanded, changes, learner)[:, 0],
            np.repeat([0, 1], [c.size for c in changes[learner::2]]),
        )
        for here in range(2):
            large = np.abs(theirs * (street == here)).argmax()
            factor = mine[large] / theirs[large]
            assert factor > 0 and np.allclose(mine[street == here], factor * theirs[street == here], atol=1e-12)


def joined(expanded, tables, player):
    """A player's tables [slot, bucket] as those of the expanded game: end to end."""
    return np.concatenate([tables[b].T[expanded.dealt[b]].ravel() for b in range(player, 4, 2)])[:, None]


def current(solver):
    """The strategy that the next iteration begins with."""
    reader = VectorCfr(solver.game, solver.variant, "float64", tables=solver.tables, iteration=solver.iteration)
    return reader.current_strategy()


@pytest.mark.parametrize("iterations", [0, 7])
def test_the_responder_gets_what_an_exact_best_response_gets(coarse, iterations):
    solver = CfrBr(coarse, CFR)
    solver.iterate(iterations)
    expected = evaluate_exact(coarse, current(solver)).best_response_chips
    solver.iterate(1)
    assert solver.response_chips[::-1] == pytest.approx(expected, abs=1e-12)


def test_a_responder_who_knows_buckets_alone_gets_less(coarse):
    """The planted error: nobody's cards are known."""
    right, blind = CfrBr(coarse, CFR), CfrBr(replace(coarse, known_cards=None), CFR)
    for solver in (right, blind):
        solver.iterate(20)
    assert evaluate_exact(coarse, current(right)).best_response_chips != pytest.approx(
        blind.response_chips[::-1], abs=0.01
    )
    solved = [evaluate_exact(coarse, solver.average_strategy()).exploitability_chips for solver in (right, blind)]
    assert solved[0] < solved[1]


def test_a_bucket_s_regrets_are_the_sum_of_those_of_its_hands(coarse, leduc):
    """One iteration on buckets, and one of the real game from the same strategies: increments add up."""
    solver = CfrBr(coarse, CFR)
    solver.iterate(5)
    before = {name: table.copy() for name, table in solver.tables.items()}
    bucket_of = []
    for street, (known, merged) in enumerate(zip(leduc.cards.bucket, coarse.cards.bucket, strict=True)):
        for player in range(2):
            of_hand = np.zeros(int(leduc.cards.buckets[street, player]), np.int64)
            live = known[player] >= 0
            of_hand[known[player][live]] = merged[player][live]
            bucket_of.append(of_hand)
    real = CfrBr(leduc, CFR)
    for name, table in real.tables.items():
        street, player = int(name.split("street")[1][0]), int(name[-1])
        table[:] = before[name][:, bucket_of[2 * street + player]]
    lifted = {name: table.copy() for name, table in real.tables.items()}
    solver.iterate(1)
    real.iterate(1)
    for name, table in solver.tables.items():
        street, player = int(name.split("street")[1][0]), int(name[-1])
        summed = np.zeros_like(table)
        np.add.at(summed.T, bucket_of[2 * street + player], (real.tables[name] - lifted[name]).T)
        if player == 0:  # player 1's responder is the same only while player 0 has not moved: he has a walk of his own
            assert np.abs(table - before[name]).max() > 0
        assert np.allclose(table - before[name], summed, atol=1e-12)


def test_it_goes_where_cfr_on_the_same_buckets_does_not(coarse):
    ours, plain = CfrBr(coarse, variant("cfr+")), VectorCfr(coarse, variant("cfr+"), "float64")
    for solver in (ours, plain):
        solver.iterate(300)
    found = [evaluate_exact(coarse, solver.average_strategy()).exploitability_chips for solver in (ours, plain)]
    assert found[0] < 0.95 * found[1]


def test_tables_and_the_iteration_are_the_whole_state(coarse):
    """What was noted of an older best response must not matter: the planted error is garbage there."""
    whole, first = CfrBr(coarse, variant("dcfr")), CfrBr(coarse, variant("dcfr"))
    whole.iterate(9)
    first.iterate(4)
    second = CfrBr(coarse, variant("dcfr"), first.tables, 4)
    for side in second._sides:
        for table in side.noted:
            table.fill(0.3)
    second.iterate(0)
    second.iterate(5)
    assert_same_arrays(whole.tables, second.tables)
    assert second.nodes_touched == whole.nodes_touched > 0


def test_a_run_of_it_goes_on(coarse):
    config = config_from({"game": {"name": "leduc"}, "solver": {"algorithm": "cfr-br", "variant": "cfr+"}}, "test")
    algorithm = algorithm_of(config)
    tables, state = private_tables(algorithm.layout(coarse)), WorkerState()
    for limit in (3, 4):
        solver = algorithm.solver(coarse, tables, Share(state=state))
        solver.warm_up()
        done = 0
        while done < limit:
            done += solver.run(0, 2**62, limit - done)[0]
    assert state.iterations == 7
    whole = CfrBr(coarse, variant("cfr+"))
    whole.iterate(7)
    starts = [row_starts(coarse, block) for block in range(4)]
    made = algorithm.averages.strategy(coarse, tables, state.nodes, state.iterations)
    for block, probability in enumerate(whole.average_strategy().probability):
        assert np.array_equal(made.probability[block], probability) and len(starts[block])


def test_games_and_schedules_that_it_cannot_take_are_refused(leduc):
    def layout(game, **solver):
        config = config_from({"game": {"name": "kuhn"}, "solver": {"algorithm": "cfr-br", **solver}}, "test")
        return algorithm_of(config).layout(game)

    matrix = build_game(MatrixGame(payoffs=((1.0, 0.0), (0.0, 1.0))), None)
    refused(r"solver\..*has no cards beside its tree", layout, matrix)
    deck = DeckOfClasses((0, 3), np.full((2, 2), 5), lambda: [])
    refused(r"solver\..*draws its boards from the deck", CfrBr, Game("holdem", leduc.tree, deck), CFR)
    refused(r"solver\..*follows a schedule", layout, leduc, variant="hs-dcfr")
