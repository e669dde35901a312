"""CFR-BR on sampled boards: against a naive iteration, planted errors, against plain sampling.

Shows:

* An iteration of CFR-BR on sampled boards equals a naive iteration, hand by hand (test_an_iteration_is_the_naive_one)
* The test detects opponents in the player's buckets, old responses and exchanged tables
  (test_an_opponent_s_hand_in_the_player_s_buckets_is_caught, test_a_response_kept_from_another_board_is_caught,
  test_tables_of_both_seats_mixed_are_caught)
* On coarse buckets, CFR-BR is less exploitable than plain sampling (test_it_comes_below_plain_sampling)
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
    """One iteration on a board in float64, as the module describes it, with vectors over the whole deck.

    blind  the planted error: on the last street the opponent's hands of one of the player's buckets respond as one
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
        """A node's table of regrets, its slots, and each hand's bucket."""
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
        """[H] what each of the walker's hands is worth against the other's range."""
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
    """From regrets of which half are 0, so that much is out of some player's reach."""
    made, rng = RespondedSampling(game, None, trunk, seed=4), np.random.default_rng(2)
    for name, table in made.tables.items():
        if "regret" in name:
            table[:] = rng.choice([-1, 0, 1, 2], table.shape)
    made.run(iterations)
    return made


def apart(run, *, blind=False, plant=lambda run: None):
    """Largest difference of one iteration's tables from the naive one's."""
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


def test_an_iteration_is_the_naive_one(run):
    for _ in range(3):
        assert apart(run) < 1e-3


def test_an_opponent_s_hand_in_the_player_s_buckets_is_caught(run):
    assert apart(run, blind=True) > 0.1


def test_a_response_kept_from_another_board_is_caught(coarse):
    def plant(run):
        for response in run._responses:
            response.found[:] = response.walk[0] + 1

    found = []
    for _ in range(2):
        run = sampler(coarse, None, 5)
        for name, table in run.tables.items():
            if name.startswith("regret"):  # player 0 always folds to a raise, so that much is not reached
                table[:] = 0
                table[0] = 1
        found.append(apart(run, plant=plant if found else lambda run: None))
    assert found[0] < 1e-3 and found[1] > 0.1


def test_tables_of_both_seats_mixed_are_caught(coarse):
    """Opponents who learn in the tables of the other seat's player."""

    def plant(run):
        run._of_learner = [run._kernel_tables] * 2

    assert apart(sampler(coarse, None, 5), plant=plant) > 0.1


@pytest.mark.parametrize("own", [True, False])
def test_regrets_fade_by_whose_they_are(coarse, leduc, own):
    """Discount learners' negative regrets to a third in two periods, opponents' to 1/4, finer ones to 0.29."""
    swept, by_hand = (sampler(coarse, None if own else leduc) for _ in range(2))
    for name, table in by_hand.tables.items():
        below = (1 / 4 if own else 0.5 * 2**0.5 / (2**0.5 + 1)) if name.startswith(TRUNK) else 1 / 3
        table[:] = np.where(table > 0, 0.5 * 2**1.5 / (2**1.5 + 1), below) * table
    by_hand.state.ends = 2
    for each in (swept, by_hand):
        each.run(1, total_nodes=2 * OPTIONS.schedule.period_nodes)
    assert all(np.allclose(swept.tables[name], table) for name, table in by_hand.tables.items())


def test_it_comes_below_plain_sampling(coarse, leduc):
    """Reach the level of CFR against a real best response: 0.379 chips after 100 iterations of cfr+."""
    ours, plain = RespondedSampling(coarse, trunk=leduc), PublicChanceSampling(coarse, OPTIONS)
    for each in (ours, plain):
        each.run(2000)
    chips = [evaluate_exact(coarse, each.average_strategy()).exploitability_chips for each in (ours, plain)]
    assert chips[0] < 0.379 + 0.01 and chips[1] > 1.4 * chips[0]


def test_players_and_opponents_begin_with_a_policy(coarse, leduc):
    """Rows are played as the policy has them; a hand of the opponent plays as its bucket."""
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


def test_a_run_goes_on_to_the_same_bits(coarse):
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


def test_boards_of_a_deck_are_sampled():
    def layout(**solver):
        document = {"game": {"name": "flop-holdem"}, "solver": {"algorithm": "cfr-br", **solver}}
        return algorithm_of(config_from(document, "test")).layout(deck_game())

    names = [spec.name for spec in layout().specs]
    assert {name.split("/")[1] for name in names if name.startswith(TRUNK)} == {"street0"}
    with pytest.raises(ValueError, match="lossless': the hands of"):
        layout(trunk="lossless")
