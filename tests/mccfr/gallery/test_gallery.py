"""Gallery algorithms: they solve Kuhn and Leduc, resume to the same bits and are unbiased.

Shows:

* Every algorithm of the gallery solves Kuhn and Leduc (test_every_gallery_algorithm_solves_kuhn_and_leduc)
* With three players external sampling needs its average at every other player's traversal
  (planted: test_averaging_at_one_opponents_traversal_stays_exploitable_with_three_players)
* Sampled regrets are unbiased
  (test_increments_of_sampled_traversals_are_unbiased; planted:
  test_increments_not_divided_by_the_sampling_probability_are_caught)
"""

from types import SimpleNamespace

import numpy as np
import pytest
from places import ROOT
from refusals import refused
from sessions import assert_same, go, new_run

import mccfr
from mccfr.config.toml_files import config_from
from mccfr.gallery import history_game
from mccfr.gallery.cfr import Cfr
from mccfr.games.history_tree import expand
from mccfr.solvers.registry import find_algorithm
from mccfr.tables.table_layout import private_tables

ALGORITHMS = {
    "cfr:Cfr": ({"variant": "dcfr"}, (60, 0.006), (30, 0.25)),
    "cfr_br:CfrBestResponse": ({"variant": "dcfr"}, (60, 0.02), (20, 0.5)),
    "deep:DeepCfr": ({"traversals": 50}, (40, 0.04), (30, 0.6)),
    "external:ExternalSampling": ({}, (2000, 0.03), (2000, 0.6)),
    "outcome:OutcomeSampling": ({}, (3000, 0.05), (2500, 1.5)),
    "pruning:RegretBasedPruning": ({}, (300, 0.016), (60, 0.25)),
    "public_chance:PublicChanceSampling": ({}, (300, 0.01), (150, 0.3)),
}
"""Options of each algorithm; for Kuhn and Leduc: iterations, and an upper bound on exploitability in chips.

Uniform play has an exploitability of 0.46 chips in Kuhn and 2.37 chips in Leduc.
"""
GAMES = {"kuhn": {}, "leduc": {"merge_suits": True}}


def full_name(name):
    return f"mccfr.gallery.{name}"


def test_every_gallery_file_is_tested_and_has_at_most_105_lines():
    files = {path.stem: path for path in (ROOT / "mccfr" / "gallery").glob("*.py")}
    del files["__init__"], files["history_game"]
    assert sorted(files) == sorted(name.partition(":")[0] for name in ALGORITHMS)
    lines = {name: len(path.read_text(encoding="utf-8").splitlines()) for name, path in files.items()}
    assert max(lines.values()) <= 105, lines


@pytest.mark.parametrize("game", GAMES)
@pytest.mark.parametrize("name", ALGORITHMS)
def test_every_gallery_algorithm_solves_kuhn_and_leduc(name, game):
    options, *bounds = ALGORITHMS[name]
    iterations, chips = bounds[game == "leduc"]
    solver = mccfr.solver(mccfr.game(game, **GAMES[game]), full_name(name), **options)
    solver.run(iterations=iterations)
    found = mccfr.evaluate(solver)
    assert found.exploitability_chips < chips
    if game == "kuhn":
        assert found.value_chips == pytest.approx(-1 / 18, abs=3 * chips)


def test_averaging_at_one_opponents_traversal_stays_exploitable_with_three_players():
    """Compare exploitability: 0.10 and 0.16 chips here, 0.04 and 0.12 chips after 8,000 iterations."""
    game, found = mccfr.game("leduc", players=3, ranks=4, suits=1, raises=1), []
    for name in ("ExternalSampling", "AverageAtOneTraversal"):
        solver = mccfr.solver(game, full_name(f"external:{name}"))
        solver.run(iterations=3_000)
        found.append(mccfr.evaluate(solver).exploitability_chips)
    assert found[0] < 0.12 and found[1] > 0.14, found


def test_pruning_visits_fewer_nodes_at_the_exploitability_of_cfr():
    """Compare with CFR on Kuhn: the values assumed for pruned actions change no positive regret."""
    found = {}
    for name, options in (("pruning:RegretBasedPruning", {}), ("cfr:Cfr", {"updates": "simultaneous"})):
        solver = mccfr.solver(mccfr.game("kuhn"), full_name(name), **options)
        solver.run(iterations=100)
        found[name] = mccfr.evaluate(solver).exploitability_chips, solver.nodes_touched
    (pruned, fewer), (plain, nodes) = found.values()
    assert pruned == pytest.approx(plain, rel=1e-9)
    assert fewer < 0.7 * nodes


@pytest.mark.parametrize("name", ALGORITHMS)
def test_a_resumed_run_has_the_bits_of_an_uninterrupted_run(name, tmp_path):
    document = {
        "game": {"name": "kuhn"},
        "solver": {"algorithm": full_name(name)},
        "run": {"workers": 0, "iterations": 20},
        "evaluation": {"at_end": False},
    }
    whole, parts = (new_run(tmp_path / place, document) for place in ("whole", "parts"))
    go(whole)
    for stop in (3, 20):
        go(parts, iterations=stop)
    assert_same(whole, parts)


def test_options_are_checked():
    def solved(name, game="kuhn", **options):
        mccfr.solver(mccfr.game(game), full_name(name), **options).run(iterations=1)

    for name, options, message in (
        ("outcome:OutcomeSampling", {"epsilon": 0}, "epsilon = 0 is not allowed: it must be above 0"),
        ("deep:DeepCfr", {"traversals": 0}, "traversals = 0 is not allowed: it must be at least 1"),
        ("cfr:Cfr", {"variant": "nope"}, "variant = 'nope'"),
    ):
        refused(message, solved, name, **options)
    refused("needs hands and boards that are listed", solved, "public_chance:PublicChanceSampling", game="goofspiel")


# --- mean increments of single traversals ---


class Walks:
    """Traversals for player 0 of Kuhn; each starts from the same random positive regrets."""

    def __init__(self, algorithm_class, **options):
        self.algorithm = algorithm_class(config_from({"game": {"name": "kuhn"}}, "a test"))
        self.game = expand(mccfr.game("kuhn")).game
        self.tables = private_tables(self.algorithm.layout(self.game))
        rng = np.random.default_rng(5)
        for table in self.tables.values():
            table[:] = rng.exponential(size=table.shape)
        self.algorithm.begin(self.game, self.tables)
        self.algorithm.given = SimpleNamespace(**options)
        self.start = {name: table.copy() for name, table in self.tables.items()}

    def changes(self, seed, reach):
        """Return one traversal's changes of regrets and strategy sums; `reach` is the argument at the root."""
        for name, table in self.tables.items():
            table[:] = self.start[name]
        self.algorithm.rng = np.random.default_rng(seed)
        self.algorithm.walk(self.algorithm.root, 0, reach)
        return [self.tables[name] - self.start[name] for name in (REGRETS, SUMS)]


REGRETS, SUMS = "regret/street0/player0", "strategy_sum/street0/player1"


def exact():
    """Return the expected increments of a traversal for player 0: its regrets and player 1's sums."""
    walks = Walks(Cfr)
    algorithm, regrets, sums = walks.algorithm, *(np.zeros_like(walks.tables[name]) for name in (REGRETS, SUMS))
    algorithm.play(lambda I: history_game.regret_matching(I.regret))
    for I in algorithm.infosets:
        I.gained = np.zeros(len(I.actions))
    algorithm.walk(algorithm.root, 0, 1.0, 1.0)
    arrays = walks.game.tree.arrays
    for I in algorithm.infosets:
        slot = arrays.slot[I.histories[0].node]
        if I.player == 0:
            regrets[0, slot : slot + len(I.actions)] = I.gained
        else:
            sums[0, slot : slot + len(I.actions)] = I.reach * sum(h.dealt for h in I.histories) * I.sigma
    return regrets, sums


def scores(name, walks, count=2000):
    """Return the largest deviations from exact mean changes in standard errors: [regrets, sums]."""
    reach = np.ones(2) if name.startswith("external") else 1.0
    found = [walks.changes(seed, reach) for seed in range(count)]
    deviations = []
    for kind, wanted in enumerate(exact()):
        changes = np.stack([change[kind] for change in found])
        error = changes.std(axis=0) / np.sqrt(count)
        some = error > 0
        assert np.allclose(changes.mean(axis=0)[~some], wanted[~some], atol=1e-9)
        deviations.append((np.abs(changes.mean(axis=0) - wanted)[some] / error[some]).max())
    return deviations


SAMPLED = {"external:ExternalSampling": {}, "outcome:OutcomeSampling": {"epsilon": 0.6}}


@pytest.mark.parametrize("name", SAMPLED)
def test_increments_of_sampled_traversals_are_unbiased(name):
    algorithm_class = algorithm_class_of(name)
    assert max(scores(name, Walks(algorithm_class, **SAMPLED[name]))) < 5


def test_increments_not_divided_by_the_sampling_probability_are_caught():
    name = "outcome:OutcomeSampling"

    class Wrong(algorithm_class_of(name)):
        def walk(self, h, i, q):
            return super().walk(h, i, 1.0)

    assert max(scores(name, Walks(Wrong, **SAMPLED[name]))) > 15


def algorithm_class_of(name):
    """Return the algorithm class of a gallery name."""
    mccfr.solver(mccfr.game("kuhn"), full_name(name))
    return find_algorithm(full_name(name))
