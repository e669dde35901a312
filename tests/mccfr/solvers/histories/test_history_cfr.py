"""Full-width CFR over histories: against the gallery, known values, pruning and best responses."""

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


def variant_with_horizon(name, **parts):
    """Return a variant by name; a variant with a schedule gets a horizon of 5 iterations."""
    cfr_variant = variant(name, **parts)
    return replace(cfr_variant, horizon=5) if cfr_variant.scheduled else cfr_variant


def without_ties(game, seed=2):
    """Return the game with noise on its payoffs, so that no two actions have the same value.

    Otherwise rounding would choose between equal best responses.
    """
    arrays = game.tree.arrays
    noise = np.random.default_rng(seed).normal(size=len(arrays.kind)) * (arrays.kind == TERMINAL)
    return replace(game, tree=replace(game.tree, arrays=arrays._replace(fixed=arrays.fixed + noise)))


class Twin(Cfr):
    """Naive CFR over histories, with best responses at infosets that their player does not reach."""

    zero_reach, reached = False, 0

    def others(self, i):
        """Return {history: probability that chance and player i's opponent lead there}."""
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
        cfr_variant = self.given.variant
        step = cfr_variant.step(t)
        for players in ((0,), (1,)) if cfr_variant.alternating else ((0, 1),):
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


def gallery_solver(game, cfr_variant, kind, zero_reach=False):
    """Return an algorithm of the gallery, ready for its first iteration."""
    found = kind(config_from({"game": {"name": "kuhn"}}, "a test"))
    found.rows, found.zero_reach = private_tables(found.layout(game)), zero_reach
    found.begin(game, found.rows)
    found.given = SimpleNamespace(variant=cfr_variant, updates=cfr_variant.updates, horizon=cfr_variant.horizon)
    return found


def compare(fast, naive, iterations):
    """Run both solvers; all tables must agree after every iteration."""
    for t in range(1, iterations + 1):
        fast.iterate(1)
        naive.iterate(t)
        for key, table in fast.tables.items():
            wanted = naive.rows[key][0, : len(table)]
            np.testing.assert_allclose(table[:, 0], wanted, rtol=1e-9, atol=1e-11, err_msg=key)


@pytest.mark.parametrize("updates", ["alternating", "simultaneous"])
@pytest.mark.parametrize("name", PRESETS)
@pytest.mark.parametrize("game", ["kuhn", "goofspiel"])
def test_every_variant_equals_the_gallery(game, name, updates):
    cfr_variant = variant_with_horizon(name, updates=updates)
    compare(HistoryCfr(GAMES[game], cfr_variant), gallery_solver(GAMES[game], cfr_variant, Cfr), 6)


@pytest.mark.parametrize("partial", [False, True])
@pytest.mark.parametrize("updates", ["alternating", "simultaneous"])
@pytest.mark.parametrize("name", ["dcfr", "cfr+", "optimistic-lcfr"])
def test_best_responses_equal_the_twin(name, updates, partial):
    own, cfr_variant = without_ties(GAMES["goofspiel"]), variant(name, updates=updates)
    cfr = HistoryCfr(own, cfr_variant, zero_reach=True, partial_pruning=partial)
    compare(cfr, gallery_solver(own, cfr_variant, Twin, True), 8)
    plain = HistoryCfr(own, cfr_variant)
    plain.iterate(8)
    key = table_name("regret", 0)
    assert not np.allclose(plain.tables[key], cfr.tables[key])


@pytest.mark.parametrize("name", ["cfr", "cfr+", "dcfr", "pcfr+"])
def test_matrix_game_of_the_discounting_paper(name):
    """Compare with the optimum, in which each player makes the other indifferent; value 1.63 / 1.8."""
    game = GAMES["matrix"]
    cfr = HistoryCfr(game, variant(name))
    cfr.iterate(4000)
    strategy = cfr.average_strategy()
    within = 0.02 if name == "cfr" else 0.002
    assert evaluate_exact(game, strategy).value_chips == pytest.approx(1.63 / 1.8, abs=within)
    assert strategy.probability[0][0] == pytest.approx([1.7 / 1.8, 0.1 / 1.8], abs=within)
    assert strategy.probability[1][0] == pytest.approx([0.1 / 1.8, 1.7 / 1.8], abs=within)


@pytest.mark.parametrize(("name", "iterations"), [("lcfr", 970), ("cfr", 471_405), ("cfr+", 471_405)])
def test_large_loss_example_of_the_discounting_paper(name, iterations):
    """Check from which iteration on play is pure with payoffs 0, 1, -1,000,000 (paper, section 3)."""
    cfr = HistoryCfr(mccfr.game("matrix", payoffs=[[0], [1], [-1_000_000]]), variant(name))
    cfr.iterate(iterations)
    assert cfr.current_strategy().probability[0][0, 1] < 1
    cfr.iterate(1)
    assert cfr.current_strategy().probability[0][0, 1] == 1


# --- partial pruning and best responses out of reach ---


@pytest.mark.parametrize("updates", ["alternating", "simultaneous"])
@pytest.mark.parametrize("name", ["cfr", "cfr+", "dcfr-pruning", "nh-dcfr", "optimistic-dcfr"])
@pytest.mark.parametrize("game", ["goofspiel-4", "leduc"])
def test_partial_pruning_changes_no_bit(game, name, updates):
    cfr_variant = variant(name, updates=updates)
    whole, partial = (HistoryCfr(GAMES[game], cfr_variant, partial_pruning=prune) for prune in (False, True))
    for cfr in (whole, partial):
        cfr.iterate(100)
    assert_same_arrays(whole.tables, partial.tables)
    assert whole.nodes_touched == 100 * len(GAMES[game].tree.arrays.kind) * (2 if cfr_variant.alternating else 1)
    assert partial.nodes_touched < 0.95 * whole.nodes_touched


@pytest.mark.parametrize("updates", ["alternating", "simultaneous"])
def test_nodes_touched_are_the_nodes_that_a_traversers_opponent_reaches(updates):
    game, cfr_variant = GAMES["goofspiel"], variant("cfr", updates=updates)
    cfr, twin = HistoryCfr(game, cfr_variant, partial_pruning=True), gallery_solver(game, cfr_variant, Twin)
    compare(cfr, twin, 20)
    assert cfr.nodes_touched == twin.reached < 20 * len(game.tree.arrays.kind) * (2 if cfr_variant.alternating else 1)


def test_zero_reach_best_responses_need_fewer_iterations():
    """Each iteration touches more nodes (pruning paper, appendix A: CFR on Leduc)."""
    cfr_variant = variant("cfr", updates="simultaneous")
    plain, responding = (
        HistoryCfr(LEDUC, cfr_variant, partial_pruning=True, zero_reach=responds) for responds in (False, True)
    )
    for cfr in (plain, responding):
        cfr.iterate(1000)
    found = [evaluate_exact(LEDUC, cfr.average_strategy()).exploitability_chips for cfr in (plain, responding)]
    assert found[1] < 0.75 * found[0]
    assert responding.nodes_touched > 1.2 * plain.nodes_touched


# --- number formats ---


def test_float32_is_near_float64():
    found = []
    for dtype in ("float64", "float32"):
        cfr = HistoryCfr(LEDUC, variant("cfr+"), dtype)
        cfr.iterate(100)
        found.append(evaluate_exact(LEDUC, cfr.average_strategy()).exploitability_chips)
    assert found[1] == pytest.approx(found[0], rel=1e-2)
    assert found[1] != found[0]
