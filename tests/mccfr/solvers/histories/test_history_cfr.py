"""Full-width CFR over histories against the gallery; known values; pruning and best responses."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from same import assert_same_arrays

import mccfr
from mccfr.config.toml_files import config_from
from mccfr.evaluation.exact import evaluate_exact
from mccfr.gallery.cfr import Cfr, strategy, update
from mccfr.gallery.history_game import below
from mccfr.games.history_tree import expand
from mccfr.solvers.histories.history_cfr import HistoryCfr
from mccfr.solvers.variants import PRESETS, variant
from mccfr.tables.table_layout import private_tables, table_name
from mccfr.trees.compiled import TERMINAL

LEDUC = expand(mccfr.game("leduc", merge_suits=True)).game
GAMES = {
    "kuhn": expand(mccfr.game("kuhn")).game,
    "goofspiel": mccfr.game("goofspiel", cards=3, reveal="result"),
    "goofspiel-4": mccfr.game("goofspiel", cards=4),
    "matrix": mccfr.game("matrix", payoffs=[[1, 0.9], [-0.7, 1]]),
    "leduc": LEDUC,
}


def planned(name, **parts):
    """A variant by its name, with a horizon that tests run past where it needs one."""
    made = variant(name, **parts)
    return replace(made, horizon=5) if made.scheduled else made


def without_ties(game, seed=2):
    """The game with noise on its payoffs: equal best responses would be chosen between by rounding."""
    arrays = game.tree.arrays
    noise = np.random.default_rng(seed).normal(size=len(arrays.kind)) * (arrays.kind == TERMINAL)
    return replace(game, tree=replace(game.tree, arrays=arrays._replace(fixed=arrays.fixed + noise)))


class Twin(Cfr):
    """CFR with best responses at infosets that their player does not reach, history by history."""

    zero_reach, reached = False, 0

    def others(self, i):
        """By history: the probability that chance and the other player than i bring it about."""
        found = {self.root: 1.0}
        for h in below([self.root]):
            free = np.ones(len(h.children))
            shares = h.probability if h.chance else free if h.terminal or h.player == i else h.infoset.sigma
            for p, child in zip(shares, h.children, strict=True):
                found[child] = found[h] * p
        return found

    def begin_iteration(self, step):
        self.play(lambda infoset: strategy(infoset, step))
        for infoset in self.infosets:
            infoset.gained = np.zeros(len(infoset.actions))

    def respond_out_of_reach(self, i):
        others = self.others(i)
        for infoset in reversed(self.infosets):
            if infoset.player == i and infoset.reach == 0:
                v = [
                    sum(others[h] * self.walk(h.children[a], i, 0.0, 0.0) for h in infoset.histories)
                    for a in infoset.actions
                ]
                infoset.sigma = np.eye(len(v))[np.argmax(v)]

    def iterate(self, t):
        made = self.given.variant
        step = made.step(t)
        for players in ((0,), (1,)) if made.alternating else ((0, 1),):
            self.begin_iteration(step)
            self.reached += len({h for i in players for h, others in self.others(i).items() if others > 0})
            sigma = [infoset.sigma for infoset in self.infosets]
            for i in players:
                if self.zero_reach:
                    self.respond_out_of_reach(i)
                self.walk(self.root, i, 1.0, 1.0)
                for infoset, own in zip(self.infosets, sigma, strict=True):
                    infoset.sigma = own
            for infoset in self.infosets:
                if infoset.player in players:
                    update(infoset, step)


def slow(game, made, kind, zero_reach=False):
    """An algorithm of the gallery, about to begin."""
    found = kind(config_from({"game": {"name": "kuhn"}}, "a test"))
    found.rows, found.zero_reach = private_tables(found.layout(game)), zero_reach
    found.begin(game, found.rows)
    found.given = SimpleNamespace(variant=made, updates=made.updates, horizon=made.horizon)
    return found


def compare(fast, slow, iterations):
    """Run both side by side; all tables must agree after every iteration."""
    for t in range(1, iterations + 1):
        fast.iterate(1)
        slow.iterate(t)
        for key, table in fast.tables.items():
            wanted = slow.rows[key][0, : len(table)]
            np.testing.assert_allclose(table[:, 0], wanted, rtol=1e-9, atol=1e-11, err_msg=key)


@pytest.mark.parametrize("updates", ["alternating", "simultaneous"])
@pytest.mark.parametrize("name", PRESETS)
@pytest.mark.parametrize("game", ["kuhn", "goofspiel"])
def test_every_variant_equals_the_gallery(game, name, updates):
    made = planned(name, updates=updates)
    compare(HistoryCfr(GAMES[game], made), slow(GAMES[game], made, Cfr), 6)


@pytest.mark.parametrize("partial", [False, True])
@pytest.mark.parametrize("updates", ["alternating", "simultaneous"])
@pytest.mark.parametrize("name", ["dcfr", "cfr+", "optimistic-lcfr"])
def test_best_responses_equal_the_twin(name, updates, partial):
    own, made = without_ties(GAMES["goofspiel"]), variant(name, updates=updates)
    cfr = HistoryCfr(own, made, zero_reach=True, partial_pruning=partial)
    compare(cfr, slow(own, made, Twin, True), 8)
    plain = HistoryCfr(own, made)
    plain.iterate(8)
    key = table_name("regret", 0)
    assert not np.allclose(plain.tables[key], cfr.tables[key])


@pytest.mark.parametrize("name", ["cfr", "cfr+", "dcfr", "pcfr+"])
def test_matrix_game_of_the_discounting_paper(name):
    """Optimum by hand: each player makes the other indifferent; its value is 1.63 / 1.8."""
    game = GAMES["matrix"]
    cfr = HistoryCfr(game, variant(name))
    cfr.iterate(4000)
    strategy = cfr.average_strategy()
    within = 0.02 if name == "cfr" else 0.002
    assert evaluate_exact(game, strategy).value_chips == pytest.approx(1.63 / 1.8, abs=within)
    assert strategy.probability[0][0] == pytest.approx([1.7 / 1.8, 0.1 / 1.8], abs=within)
    assert strategy.probability[1][0] == pytest.approx([0.1 / 1.8, 1.7 / 1.8], abs=within)


@pytest.mark.parametrize(("name", "iterations"), [("lcfr", 970), ("cfr", 471_405), ("cfr+", 471_405)])
def test_example_of_a_large_loss(name, iterations):
    """Solve payoffs 0, 1, -1,000,000 (discounting paper, section 3); LCFR is pure from t = 972 on."""
    cfr = HistoryCfr(mccfr.game("matrix", payoffs=[[0], [1], [-1_000_000]]), variant(name))
    cfr.iterate(iterations)
    assert cfr.current_strategy().probability[0][0, 1] < 1
    cfr.iterate(1)
    assert cfr.current_strategy().probability[0][0, 1] == 1


# --- partial pruning, best responses ---


@pytest.mark.parametrize("updates", ["alternating", "simultaneous"])
@pytest.mark.parametrize("name", ["cfr", "cfr+", "dcfr-pruning", "nh-dcfr", "optimistic-dcfr"])
@pytest.mark.parametrize("game", ["goofspiel-4", "leduc"])
def test_partial_pruning_changes_no_bit(game, name, updates):
    made = variant(name, updates=updates)
    whole, partial = (HistoryCfr(GAMES[game], made, partial_pruning=prune) for prune in (False, True))
    for cfr in (whole, partial):
        cfr.iterate(100)
    assert_same_arrays(whole.tables, partial.tables)
    assert whole.nodes_touched == 100 * len(GAMES[game].tree.arrays.kind) * (2 if made.alternating else 1)
    assert partial.nodes_touched < 0.95 * whole.nodes_touched


@pytest.mark.parametrize("updates", ["alternating", "simultaneous"])
def test_nodes_touched_are_those_that_an_opponent_of_a_traverser_reaches(updates):
    game, made = GAMES["goofspiel"], variant("cfr", updates=updates)
    cfr, twin = HistoryCfr(game, made, partial_pruning=True), slow(game, made, Twin)
    compare(cfr, twin, 20)
    assert cfr.nodes_touched == twin.reached < 20 * len(game.tree.arrays.kind) * (2 if made.alternating else 1)


def test_zero_reach_best_responses_need_fewer_iterations():
    """And touch more nodes in each: pruning paper, appendix A, CFR on Leduc."""
    made = variant("cfr", updates="simultaneous")
    plain, responding = (
        HistoryCfr(LEDUC, made, partial_pruning=True, zero_reach=responds) for responds in (False, True)
    )
    for cfr in (plain, responding):
        cfr.iterate(1000)
    found = [evaluate_exact(LEDUC, cfr.average_strategy()).exploitability_chips for cfr in (plain, responding)]
    assert found[1] < 0.75 * found[0]
    assert responding.nodes_touched > 1.2 * plain.nodes_touched


# --- state, refusals ---


def test_float32_is_near_float64():
    found = []
    for dtype in ("float64", "float32"):
        cfr = HistoryCfr(LEDUC, variant("cfr+"), dtype)
        cfr.iterate(100)
        found.append(evaluate_exact(LEDUC, cfr.average_strategy()).exploitability_chips)
    assert found[1] == pytest.approx(found[0], rel=1e-2)
    assert found[1] != found[0]
