"""Full-width CFR over histories: against the gallery's and the vector solver's; known orderings."""

from dataclasses import replace
from types import SimpleNamespace

import naive
import numpy as np
import pytest
from expansion import original_strategy
from refusals import refused
from same import assert_same_arrays

from mccfr.config.file import config_from
from mccfr.config.games import GoofspielGame, KuhnGame, LeducGame, MatrixGame
from mccfr.config.solvers import FullWidthConfig
from mccfr.gallery.cfr import Cfr
from mccfr.games.expanded import expand
from mccfr.games.goofspiel import goofspiel
from mccfr.games.matrix import matrix
from mccfr.games.poker import kuhn, leduc
from mccfr.solvers.full_width import make_full_width, table_specs
from mccfr.solvers.histories.histories import best_response_value, expected_value
from mccfr.solvers.histories.history_cfr import BEST_RESPONSES, HistoryCfr
from mccfr.solvers.public.vector_cfr import VectorCfr
from mccfr.solvers.variants import PRESETS, variant
from mccfr.tables.layout import private_tables, table_name
from mccfr.trees.compiled import CHANCE, TERMINAL

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


class Twin:
    """CFR with best responses, history by history, from the definitions; regrets and sums by (player, row)."""

    def __init__(self, game, made, best_response):
        self.arrays, self.tree, self.made, self.t = game.tree.arrays, game.tree, made, 0
        self.best_response = best_response
        self.nodes = {}
        for node in game.tree.decisions.tolist():
            self.nodes.setdefault((int(self.arrays.player[node]), int(self.arrays.row[node])), []).append(node)
        empty = {infoset: np.zeros(self.arrays.count[nodes[0]]) for infoset, nodes in self.nodes.items()}
        self.regret, self.predicted, self.sums = (
            {infoset: zeros.copy() for infoset, zeros in empty.items()} for _ in range(3)
        )

    def strategy(self):
        basis = self.predicted if self.made.optimistic else self.regret
        choose = naive.normal_hedge if self.made.regret_minimiser == "normal-hedge" else naive.regret_matching
        return {
            infoset: choose(row[None])[0] if row.max() > 0 else np.full(len(row), 1 / len(row))
            for infoset, row in basis.items()
        }

    def infoset(self, node):
        return int(self.arrays.player[node]), int(self.arrays.row[node])

    def reach(self, sigma):
        """[2, N] each player's own reach, and [N] that of chance."""
        own, chance = np.ones((2, len(self.arrays.kind))), np.ones(len(self.arrays.kind))
        for node in range(len(self.arrays.kind)):
            for a, child in enumerate(self.tree.children(node)):
                own[:, child], chance[child] = own[:, node], chance[node]
                if self.arrays.kind[node] == CHANCE:
                    chance[child] *= self.arrays.probability[child]
                else:
                    own[self.arrays.player[node], child] *= sigma[self.infoset(node)][a]
        return own, chance

    def values(self, sigma):
        """[N] to player 0."""
        found = self.arrays.fixed.copy()
        for node in range(len(found) - 1, -1, -1):
            kids = self.tree.children(node)
            if self.arrays.kind[node] == CHANCE:
                found[node] = sum(self.arrays.probability[child] * found[child] for child in kids)
            elif self.arrays.kind[node] != TERMINAL:
                found[node] = sigma[self.infoset(node)] @ found[list(kids)]
        return found

    def responded(self, player, sigma, everywhere):
        """Sigma with a player's best responses, everywhere or at infosets that he does not reach."""
        own, chance = self.reach(sigma)
        made = dict(sigma)
        for infoset in sorted(self.nodes, reverse=True):  # rows are numbered from the top down
            if infoset[0] == player and (everywhere or own[player, self.nodes[infoset][0]] == 0):
                made[infoset] = np.eye(len(sigma[infoset]))[self.actions(infoset, made, own, chance).argmax()]
        return made

    def actions(self, infoset, sigma, own, chance):
        """Counterfactual values of an infoset's actions."""
        value, player = self.values(sigma), infoset[0]
        return sum(
            (1 - 2 * player) * own[1 - player, node] * chance[node] * value[list(self.tree.children(node))]
            for node in self.nodes[infoset]
        )

    def average(self, player, sigma):
        own, _ = self.reach(sigma)
        for infoset, nodes in self.nodes.items():
            if infoset[0] == player:
                self.sums[infoset] *= ((self.t - 1) / self.t) ** naive.powers(self.made, self.t)[2]
                self.sums[infoset] += own[player, nodes[0]] * sigma[infoset]

    def update(self, player, sigma):
        self.average(player, sigma)
        own, chance = self.reach(sigma)
        if self.best_response == "zero-reach":
            sigma = self.responded(player, sigma, False)
        for infoset in self.nodes:
            if infoset[0] == player:
                values = self.actions(infoset, sigma, own, chance)
                gained = values - sigma[infoset] @ values
                old = self.regret[infoset]
                self.regret[infoset] = naive.discounted(old + gained, self.made, self.t)
                predictive = self.made.regret_minimiser == "predictive"
                self.predicted[infoset] = self.regret[infoset] + gained if predictive else old + gained + gained

    def iterate(self):
        self.t += 1
        sigma = self.strategy()
        if self.best_response.startswith("player"):
            responder = int(self.best_response[-1])
            sigma = self.responded(responder, sigma, True)
            self.average(responder, sigma)
            self.update(1 - responder, sigma)
            return
        for player in range(2):
            self.update(player, self.strategy() if self.made.alternating else sigma)


def compare(game, made, iterations, best_response, **options):
    """Run solver and twin side by side; all tables must agree after every iteration."""
    cfr, twin = HistoryCfr(game, made, best_response=best_response, **options), Twin(game, made, best_response)
    kinds = {"regret": twin.regret, "strategy_sum": twin.sums}
    for _ in range(iterations):
        cfr.iterate(1)
        twin.iterate()
        if made.optimistic:
            kinds["predicted_regret"] = twin.predicted
        for kind, rows in kinds.items():
            for player in range(2):
                table = cfr.tables[table_name(kind, player)][:, 0]
                wanted = np.concatenate([rows[infoset] for infoset in sorted(rows) if infoset[0] == player])
                np.testing.assert_allclose(table, wanted, rtol=1e-9, atol=1e-11, err_msg=f"{kind} {player}")
    return cfr, twin


@pytest.mark.parametrize("updates", ["alternating", "simultaneous"])
@pytest.mark.parametrize("name", PRESETS)
@pytest.mark.parametrize("game", ["kuhn", "goofspiel"])
def test_every_variant_equals_the_gallery(game, name, updates):
    """All tables, after every iteration."""
    made = planned(name, updates=updates)
    fast, slow = HistoryCfr(GAMES[game], made), Cfr(config_from({"game": {"name": "kuhn"}}, "a test"))
    tables = private_tables(slow.layout(GAMES[game]))
    slow.begin(GAMES[game], tables)
    slow.given = SimpleNamespace(variant=made, updates=updates, horizon=made.horizon)
    for t in range(1, 7):
        fast.iterate(1)
        slow.iterate(t)
        for key, table in fast.tables.items():
            wanted = tables[key][0, : len(table)]
            np.testing.assert_allclose(table[:, 0], wanted, rtol=1e-9, atol=1e-11, err_msg=key)


@pytest.mark.parametrize("partial", [False, True])
@pytest.mark.parametrize("best_response", BEST_RESPONSES[1:])
@pytest.mark.parametrize("name", ["dcfr", "cfr+", "optimistic-lcfr"])
def test_best_responses_equal_the_twin(name, best_response, partial):
    own = without_ties(GAMES["goofspiel"])
    cfr, twin = compare(own, variant(name), 8, best_response, partial_pruning=partial)
    plain = HistoryCfr(own, variant(name))
    plain.iterate(8)
    key = table_name("regret", 0)
    assert not np.allclose(plain.tables[key], cfr.tables[key])
    if best_response.startswith("player"):
        sigma = twin.responded(int(best_response[-1]), twin.strategy(), True)
        wanted = np.concatenate([sigma[infoset] for infoset in sorted(sigma)])
        np.testing.assert_allclose(np.concatenate([p[0] for p in cfr.current_strategy().probability]), wanted)


@pytest.mark.parametrize("updates", ["alternating", "simultaneous"])
def test_zero_reach_best_responses_in_both_orders(updates):
    compare(without_ties(GAMES["kuhn"]), variant("cfr", updates=updates), 12, "zero-reach")


@pytest.mark.parametrize("updates", ["alternating", "simultaneous"])
@pytest.mark.parametrize("name", PRESETS)
@pytest.mark.parametrize("config", [KuhnGame(), LeducGame()])
def test_every_variant_equals_the_vector_solver(config, name, updates):
    game = kuhn(config) if isinstance(config, KuhnGame) else leduc(config)
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
    cfr, twin, nodes = HistoryCfr(game, made, partial_pruning=True), Twin(game, made, "none"), 0
    for _ in range(20):
        twin.t += 1
        frozen = twin.strategy()
        for player in range(2):
            sigma = twin.strategy() if made.alternating else frozen
            own, chance = twin.reach(sigma)
            seen = own[1 - player] * chance > 0
            if made.alternating:
                nodes += int(seen.sum())
            elif player == 0:
                nodes += int((seen | (own[0] * chance > 0)).sum())
            twin.update(player, sigma)
        cfr.iterate(1)
    assert cfr.nodes_touched == nodes < 20 * len(game.tree.arrays.kind) * (2 if made.alternating else 1)


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


def test_unfit_arguments_are_refused():
    game, made = GAMES["kuhn"], variant("cfr")
    refused("dtype = 'float16': float32 or float64", HistoryCfr, game, made, "float16")
    refused("best_response = 'both': one of none, player-0", HistoryCfr, game, made, best_response="both")
    with pytest.raises(ValueError, match="best_response = 'player-1' with updates = 'simultaneous'"):
        HistoryCfr(game, variant("cfr", updates="simultaneous"), best_response="player-1")
    refused("kuhn deals cards beside its tree", HistoryCfr, kuhn(KuhnGame()), made)
    with pytest.raises(ValueError, match=r"table regret/street0/player0 is absent; float64 of the shape \(12, 1\)"):
        HistoryCfr(game, made, tables={})


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
