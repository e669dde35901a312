"""CFR-BR on sampled boards: against a naive iteration and plain sampling, with planted errors.

Shows:

* An iteration of CFR-BR on sampled boards equals a naive iteration, hand by hand
  (test_an_iteration_equals_the_naive_iteration)
* The test detects opponents in the player's buckets, old responses and exchanged tables
  (test_opponent_hands_in_the_players_buckets_are_caught, test_a_response_reused_on_another_board_is_caught,
  test_exchanged_tables_of_the_seats_are_caught)
* On coarse buckets, CFR-BR is less exploitable than plain sampling
  (test_cfr_br_is_less_exploitable_than_plain_sampling)
"""

import numpy as np
import pytest
from small_games import deck_game

from mccfr.config.toml_files import config_from
from mccfr.evaluation.exact import evaluate_exact
from mccfr.solvers.public.public_chance.public_chance_sampling import PublicChanceSampling, new_tables
from mccfr.solvers.public.public_chance.sampled_board_responses import (
    OPTIONS,
    TRUNK,
    RespondedSampling,
    responding_specs,
)
from mccfr.solvers.registry import algorithm_of
from mccfr.solvers.solver import Share, WorkerState
from mccfr.solvers.warm_start import begin_warm
from mccfr.tables.strategy import row_starts
from mccfr.tables.table_layout import TableSet, private_tables, table_name
from mccfr.trees.compiled import TERMINAL


class Naive:
    """One iteration on a board in float64, as the module describes it, with vectors over all hands.

    blind  plant an error: on the last street all opponent hands of a bucket choose the same response
    """

    def __init__(self, sampler, learner, *, blind=False):
        self.game, self.blind, self.learner, self.other = sampler.game, blind, learner, 1 - learner
        self.tree, self.cards = self.game.tree.arrays, self.game.cards
        self.known = sampler._trunk if sampler._trunk else self.cards
        self.tables = {name: table.astype(float) for name, table in sampler.tables.items()}
        self.board = [sampler._source.number(sampler.state.iterations)]
        for parent in reversed(self.cards.board_parent[1:]):
            self.board.insert(0, int(parent[self.board[0]]))
        self.strength, masks = self.cards.strength[self.board[-1]].astype(int), self.cards.hand_masks()
        self.live = self.strength >= 0
        self.meets = ((masks[:, None] & masks[None, :]) == 0) & self.live[:, None] & self.live[None, :]
        self.wins = self.meets * np.sign(self.strength[:, None] - self.strength[None, :])
        self.noted = {}

    def run(self, weight):
        for walker in (self.other, self.learner):
            reach = self.cards.reach * self.live
            self.walk(0, walker, weight, reach[1 - walker])

    def rows(self, node, player):
        """Return the name of a node's regret table, the node's slots, and each hand's bucket."""
        block, slot = int(self.tree.block[node]), int(self.tree.slot[node])
        street = block // 2
        cards, kind = (self.cards, "regret") if player == self.learner else (self.known, TRUNK)
        slots = np.arange(slot, slot + int(self.tree.count[node]))
        return table_name(kind, block), slots, cards.bucket[street][player, self.board[street]]

    def sigma(self, node, player):
        name, slots, bucket = self.rows(node, player)
        positive = np.maximum(self.tables[name][np.ix_(slots, np.maximum(bucket, 0))], 0)
        total = positive.sum(axis=0)
        return np.where(total > 0, positive / np.where(total > 0, total, 1), 1 / len(slots)) * self.live

    def responds(self, node):
        return self.tree.player[node] == self.other and self.tree.block[node] // 2 == len(self.board) - 1

    def walk(self, node, walker, weight, reach):
        """Return [hands] values of the traverser's hands against the other player's range."""
        tree, children = self.tree, self.game.tree.children(node)
        if tree.kind[node] == TERMINAL:
            sign = 1 if walker == 0 else -1
            return sign * tree.fixed[node] * (self.meets @ reach) + tree.showdown[node] * (self.wins @ reach)
        player = int(tree.player[node])
        if player != walker:
            if self.responds(node):
                chosen = self.noted.get(node, np.zeros(len(reach), int))
                sigma = (chosen == np.arange(len(children))[:, None]) * 1.0
            else:
                sigma = self.sigma(node, player)
            if player == self.learner:
                name, slots, bucket = self.rows(node, player)
                sums = self.tables[name.replace("regret", "strategy_sum")]
                for a, slot in enumerate(slots):
                    np.add.at(sums[slot], bucket[self.live], (weight * reach * sigma[a])[self.live])
            parts = [self.walk(c, walker, weight, reach * sigma[a]) for a, c in enumerate(children)]
            return np.sum(parts, axis=0)
        values = np.array([self.walk(c, walker, weight, reach) for c in children])
        if self.responds(node):
            if reach.any():
                self.noted[node] = self.best(node, values)
                return np.take_along_axis(values, self.noted[node][None], axis=0)[0]
            return values[0]
        name, slots, bucket = self.rows(node, player)
        mean = (self.sigma(node, player) * values).sum(axis=0)
        for a, slot in enumerate(slots):
            gain = weight * self.cards.reach[walker] * (values[a] - mean)
            np.add.at(self.tables[name][slot], bucket[self.live], gain[self.live])
        return mean

    def best(self, node, values):
        if not self.blind:
            return values.argmax(axis=0)
        bucket = self.cards.bucket[-1][self.other, self.board[-1]]
        joint = np.stack([np.bincount(np.maximum(bucket, 0), v * self.live) for v in values])
        return joint.argmax(axis=0)[np.maximum(bucket, 0)]


def sampler(game, trunk, iterations=0):
    """Return a solver with random regrets, half of them not positive, after `iterations` iterations.

    A player then does not reach many nodes.
    """
    run, rng = RespondedSampling(game, None, trunk, seed=4), np.random.default_rng(2)
    for name, table in run.tables.items():
        if "regret" in name:
            table[:] = rng.choice([-1, 0, 1, 2], table.shape)
    run.run(iterations)
    return run


def difference_after_iteration(run, *, blind=False, plant=lambda run: None):
    """Return the largest difference of tables from the naive iteration after one iteration."""
    weight, furthest = run.options.weights(run.state.nodes)[0], 0.0
    naive = [Naive(run, learner, blind=blind) for learner in range(2)]
    for one in naive:
        one.run(weight)
    plant(run)
    run.run(1)
    for name, table in run.tables.items():
        player = int(name[-1])
        twin = naive[1 - player if name.startswith(TRUNK) else player].tables[name]
        furthest = max(furthest, float(np.abs(twin - table).max()))
    return furthest


@pytest.fixture(params=["own", "lossless"])
def run(request, coarse, leduc):
    return sampler(coarse, leduc if request.param == "lossless" else None, 5)


def test_an_iteration_equals_the_naive_iteration(run):
    for _ in range(3):
        assert difference_after_iteration(run) < 1e-3


def test_opponent_hands_in_the_players_buckets_are_caught(run):
    assert difference_after_iteration(run, blind=True) > 0.1


def test_a_response_reused_on_another_board_is_caught(coarse):
    def plant(run):
        for response in run._responses:
            response.found[:] = response.walk[0] + 1

    found = []
    for _ in range(2):
        run = sampler(coarse, None, 5)
        for name, table in run.tables.items():
            if name.startswith("regret"):  # player 0 always folds to a raise, so many nodes are not reached
                table[:] = 0
                table[0] = 1
        found.append(difference_after_iteration(run, plant=plant if found else lambda run: None))
    assert found[0] < 1e-3 and found[1] > 0.1


def test_exchanged_tables_of_the_seats_are_caught(coarse):
    """The planted error trains each opponent in the tables of the other seat's player."""

    def plant(run):
        run._of_learner = [run._kernel_tables] * 2

    assert difference_after_iteration(sampler(coarse, None, 5), plant=plant) > 0.1


@pytest.mark.parametrize("own", [True, False])
def test_learners_and_opponents_regrets_have_their_own_discounts(coarse, leduc, own):
    """Compare two periods: factors of negative regrets are 1/3 for players and 1/4 for opponents.

    With a lossless trunk the factor for opponents is 0.29.
    """
    swept, by_hand = (sampler(coarse, None if own else leduc) for _ in range(2))
    for name, table in by_hand.tables.items():
        below = (1 / 4 if own else 0.5 * 2**0.5 / (2**0.5 + 1)) if name.startswith(TRUNK) else 1 / 3
        table[:] = np.where(table > 0, 0.5 * 2**1.5 / (2**1.5 + 1), below) * table
    by_hand.state.ends = 2
    for each in (swept, by_hand):
        each.run(1, total_nodes=2 * OPTIONS.schedule.period_nodes)
    assert all(np.allclose(swept.tables[name], table) for name, table in by_hand.tables.items())


def test_cfr_br_is_less_exploitable_than_plain_sampling(coarse, leduc):
    """Compare with CFR against an exact best response: 0.379 chips after 100 iterations of CFR+."""
    ours, plain = RespondedSampling(coarse, trunk=leduc), PublicChanceSampling(coarse, OPTIONS)
    for each in (ours, plain):
        each.run(2000)
    chips = [evaluate_exact(coarse, each.average_strategy()).exploitability_chips for each in (ours, plain)]
    assert chips[0] < 0.379 + 0.01 and chips[1] > 1.4 * chips[0]


def test_a_warm_start_fills_the_tables_of_players_and_opponents(coarse, leduc):
    """Rows begin with the policy's strategy; a hand of the opponent begins with its bucket's strategy."""
    run = RespondedSampling(coarse, trunk=leduc)
    run.run(50)
    policy = run.average_strategy()
    begun = TableSet(new_tables(responding_specs(coarse, leduc)), responding_specs(coarse, leduc))
    begin_warm(coarse, leduc, begun, policy, 100)
    bucket_of = np.zeros(int(leduc.buckets[0]), int)
    bucket_of[leduc.cards.bucket[0][0, 0]] = coarse.cards.bucket[0][0, 0]
    for block in range(4):
        starts, wanted = row_starts(coarse, block), policy.probability[block]
        for kind, rows in (("regret", slice(None)), (TRUNK, bucket_of)):
            cells = begun.rows(kind, block)
            if cells is None:
                assert kind == TRUNK and block >= 2
                continue
            total = np.repeat(np.add.reduceat(cells, starts[:-1], axis=1), np.diff(starts), axis=1)
            assert (total >= 0).all() and np.allclose(cells, total * wanted[rows], atol=1e-4 * total.max())
            assert (total > 0).mean() > 0.9


def test_a_resumed_run_has_the_same_bits(coarse):
    config = config_from({"game": {"name": "leduc"}, "solver": {"algorithm": "cfr-br", "trunk": "lossless"}}, "test")
    algorithm = algorithm_of(algorithm_of(config).completed(coarse))
    tables = [private_tables(algorithm.layout(coarse)) for _ in range(2)]
    for into, parts in zip(tables, ([9], [4, 5]), strict=True):
        state = WorkerState()
        for count in parts:
            end = state.iterations + count
            while state.iterations < end:
                solver = algorithm.solver(coarse, into, Share(state=state))
                solver.run(state.nodes, 2**62, end - state.iterations)
    assert all(np.array_equal(tables[0][name], tables[1][name]) for name in tables[0])


def test_with_a_full_deck_only_the_first_street_has_trunk_tables():
    def layout(**solver):
        document = {"game": {"name": "flop-holdem"}, "solver": {"algorithm": "cfr-br", **solver}}
        return algorithm_of(config_from(document, "test")).layout(deck_game())

    names = [spec.name for spec in layout().specs]
    assert {name.split("/")[1] for name in names if name.startswith(TRUNK)} == {"street0"}
    with pytest.raises(ValueError, match="lossless': the hands of"):
        layout(trunk="lossless")
