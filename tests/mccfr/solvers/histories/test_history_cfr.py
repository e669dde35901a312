"""Full-width CFR over histories: against the gallery's and the vector solver's; known orderings."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from expansion import original_strategy
from refusals import refused
from same import assert_same_arrays

from mccfr.config.game_tables import GoofspielGame, KuhnGame, LeducGame, MatrixGame
from mccfr.config.solver_tables import FullWidthConfig
from mccfr.config.toml_files import config_from
from mccfr.gallery.cfr import Cfr, strategy, update
from mccfr.gallery.cfr_br import CfrBestResponse
from mccfr.gallery.history_game import below
from mccfr.games.goofspiel import goofspiel
from mccfr.games.history_tree import expand
from mccfr.games.matrix import matrix
from mccfr.games.poker import kuhn, leduc
from mccfr.solvers.full_width import make_full_width, table_specs
from mccfr.solvers.histories.history_cfr import BEST_RESPONSES, HistoryCfr
from mccfr.solvers.histories.history_values import best_response_value, expected_value
from mccfr.solvers.public.vector_cfr import VectorCfr
from mccfr.solvers.variants import PRESETS, variant
from mccfr.tables.table_layout import private_tables, table_name
from mccfr.trees.compiled import TERMINAL

LEDUC = expand(leduc(LeducGame(merge_suits=True))).game
GAMES = {
    "kuhn": expand(kuhn(KuhnGame())).game,
    "goofspiel": goofspiel(GoofspielGame(cards=3, reveal="result")),
    "goofspiel-4": goofspiel(GoofspielGame(cards=4)),
    "matrix": matrix(MatrixGame(payoffs=[[1, 0.9], [-0.7, 1]])),
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


def exploitability(game, strategy):
    return sum(best_response_value(game, strategy, player) for player in range(2)) / 2


class Twin(CfrBestResponse):
    """CFR with best responses, history by history: of one player, or at infosets that their player does not reach."""

    best_response, reached = "none", 0

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
        step, responder = made.step(t), self.best_response[len("player-") :]
        if self.best_response.startswith("player"):
            self.begin_iteration(step)
            self.respond([(self.root, 1.0)], int(responder))
            self.play(lambda infoset: infoset.sigma)
            self.walk(self.root, 1 - int(responder), 1.0, 1.0)
            for infoset in self.infosets:
                update(infoset, step)
            return
        for players in ((0,), (1,)) if made.alternating else ((0, 1),):
            self.begin_iteration(step)
            self.reached += len({h for i in players for h, others in self.others(i).items() if others > 0})
            sigma = [infoset.sigma for infoset in self.infosets]
            for i in players:
                if self.best_response == "zero-reach":
                    self.respond_out_of_reach(i)
                self.walk(self.root, i, 1.0, 1.0)
                for infoset, own in zip(self.infosets, sigma, strict=True):
                    infoset.sigma = own
            for infoset in self.infosets:
                if infoset.player in players:
                    update(infoset, step)


def slow(game, made, kind, best_response="none"):
    """An algorithm of the gallery, about to begin."""
    found = kind(config_from({"game": {"name": "kuhn"}}, "a test"))
    found.rows, found.best_response = private_tables(found.layout(game)), best_response
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
@pytest.mark.parametrize("best_response", BEST_RESPONSES[1:])
@pytest.mark.parametrize("name", ["dcfr", "cfr+", "optimistic-lcfr"])
def test_best_responses_equal_the_twin(name, best_response, partial):
    own, made = without_ties(GAMES["goofspiel"]), variant(name)
    cfr = HistoryCfr(own, made, best_response=best_response, partial_pruning=partial)
    twin = slow(own, made, Twin, best_response)
    compare(cfr, twin, 8)
    plain = HistoryCfr(own, made)
    plain.iterate(8)
    key = table_name("regret", 0)
    assert not np.allclose(plain.tables[key], cfr.tables[key])
    if best_response.startswith("player"):
        twin.begin_iteration(made.step(9))
        twin.respond([(twin.root, 1.0)], int(best_response[-1]))
        found = cfr.current_strategy().probability
        for infoset in twin.infosets:
            slot = own.tree.arrays.slot[infoset.histories[0].node]
            np.testing.assert_allclose(found[infoset.player][0, slot : slot + len(infoset.actions)], infoset.sigma)


@pytest.mark.parametrize("updates", ["alternating", "simultaneous"])
def test_zero_reach_best_responses_in_both_orders(updates):
    game, made = without_ties(GAMES["kuhn"]), variant("cfr", updates=updates)
    compare(HistoryCfr(game, made, best_response="zero-reach"), slow(game, made, Twin, "zero-reach"), 12)


@pytest.mark.parametrize("updates", ["alternating", "simultaneous"])
@pytest.mark.parametrize("name", PRESETS)
def test_every_variant_equals_the_vector_solver(name, updates):
    game = leduc(LeducGame())
    made, expanded = planned(name, updates=updates), expand(game)
    histories, vectors = HistoryCfr(expanded.game, made), VectorCfr(game, made, "float64")
    histories.iterate(8)
    vectors.iterate(8)
    for mine, theirs in zip(
        original_strategy(expanded, histories.average_strategy()).probability,
        vectors.average_strategy().probability,
        strict=True,
    ):
        np.testing.assert_allclose(mine, theirs, atol=1e-9)


def after(game, iterations, name, **options):
    cfr = HistoryCfr(game, variant(name), **options)
    cfr.iterate(iterations)
    return exploitability(game, cfr.average_strategy())


def test_orderings_on_small_goofspiel():
    """The discounting paper has five cards, and river endgames: docs/measured/figures.md."""
    game = goofspiel(GoofspielGame(cards=4))
    found = {name: after(game, 1000, name) for name in ("cfr", "cfr+", "lcfr", "dcfr")}
    assert found["lcfr"] > found["cfr"]
    assert found["dcfr"] < 1.3 * found["cfr+"]
    assert found["cfr+"] < 0.01


@pytest.mark.parametrize("name", ["cfr", "cfr+", "dcfr", "pcfr+"])
def test_matrix_game_of_the_discounting_paper(name):
    """Optimum by hand: each player makes the other indifferent; its value is 1.63 / 1.8."""
    game = GAMES["matrix"]
    cfr = HistoryCfr(game, variant(name))
    cfr.iterate(4000)
    strategy = cfr.average_strategy()
    within = 0.02 if name == "cfr" else 0.002
    assert expected_value(game, strategy) == pytest.approx(1.63 / 1.8, abs=within)
    assert strategy.probability[0][0] == pytest.approx([1.7 / 1.8, 0.1 / 1.8], abs=within)
    assert strategy.probability[1][0] == pytest.approx([0.1 / 1.8, 1.7 / 1.8], abs=within)


@pytest.mark.parametrize(("name", "iterations"), [("lcfr", 970), ("cfr", 471_405), ("cfr+", 471_405)])
def test_example_of_a_large_loss(name, iterations):
    """Payoffs 0, 1, -1,000,000 (discounting paper, section 3): LCFR plays the second action alone from t = 972 on."""
    cfr = HistoryCfr(matrix(MatrixGame(payoffs=[[0], [1], [-1_000_000]])), variant(name))
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


@pytest.mark.parametrize("game", ["goofspiel-4", "leduc"])
def test_a_best_responder_responds_and_both_averages_converge(game):
    for player in range(2):
        cfr = HistoryCfr(GAMES[game], variant("cfr"), best_response=f"player-{player}", partial_pruning=True)
        for _ in range(6):
            cfr.iterate(100)
            strategy = cfr.current_strategy()
            won = (1 - 2 * player) * expected_value(cfr.game, strategy)
            assert won == pytest.approx(best_response_value(cfr.game, strategy, player), abs=1e-12)
        assert exploitability(cfr.game, cfr.average_strategy()) < 0.12
        assert not np.any(cfr.tables[table_name("regret", player)])


def test_zero_reach_best_responses_need_fewer_iterations():
    """And touch more nodes in each: pruning paper, appendix A, CFR on Leduc."""
    made = variant("cfr", updates="simultaneous")
    plain, responding = (
        HistoryCfr(LEDUC, made, partial_pruning=True, best_response=kind) for kind in ("none", "zero-reach")
    )
    for cfr in (plain, responding):
        cfr.iterate(1000)
    found = [exploitability(LEDUC, cfr.average_strategy()) for cfr in (plain, responding)]
    assert found[1] < 0.75 * found[0]
    assert responding.nodes_touched > 1.2 * plain.nodes_touched


# --- state, refusals ---


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("best_response", BEST_RESPONSES)
def test_tables_and_the_iteration_are_the_whole_state(best_response, dtype):
    game, made = GAMES["goofspiel-4"], variant("optimistic-dcfr")
    whole, first = (HistoryCfr(game, made, dtype, best_response=best_response) for _ in range(2))
    whole.iterate(40)
    first.iterate(17)
    first.average_strategy()
    first.current_strategy()
    copies = {key: table.copy() for key, table in first.tables.items()}
    second = HistoryCfr(
        game, made, dtype, best_response=best_response, tables=copies, iteration=17, nodes_touched=first.nodes_touched
    )
    second.iterate(23)
    assert second.nodes_touched == whole.nodes_touched and second.iteration == 40
    for key, table in whole.tables.items():
        assert table.dtype == dtype
        assert np.array_equal(table, copies[key]), key


def test_float32_is_near_float64():
    found = [after(LEDUC, 100, "cfr+"), after(LEDUC, 100, "cfr+", dtype="float32")]
    assert found[1] == pytest.approx(found[0], rel=1e-2)
    assert found[1] != found[0]


def test_configured_best_responses():
    config = FullWidthConfig(variant="cfr", best_response="player-1", pruning="partial")
    game = GAMES["kuhn"]
    tables = {spec.name: np.zeros(spec.shape, spec.dtype) for spec in table_specs(game, config)}
    cfr = make_full_width(game, config, tables)
    assert isinstance(cfr, HistoryCfr) and cfr.responder == 1 and cfr.prune and not cfr.zero_reach
    for other, message in (
        (FullWidthConfig(best_response="zero-reach", pruning="regret-based"), "responses of its own"),
        (FullWidthConfig(best_response="player-0", updates="simultaneous"), "solver.best_response = 'p"),
    ):
        refused(message, table_specs, game, other)
    with pytest.raises(ValueError, match="goes over histories, and kuhn deals cards beside its tree"):
        table_specs(kuhn(KuhnGame()), FullWidthConfig(best_response="zero-reach"))
