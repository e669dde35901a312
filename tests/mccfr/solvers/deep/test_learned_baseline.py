"""Outcome sampling with baselines: unbiased by enumeration, what a learned one learns, and when it is asked.

Shows:

* Outcome sampling with any baseline has the expectation of every history, by enumeration; planted: not divided, not
  taken off, not corrected for at the opponent's, weights without exploration
  (test_any_baseline_changes_no_expectation, test_a_biased_baseline_is_caught)
* Its paths are drawn as they say; a learned baseline serves on no deal that it has learnt (planted too), and takes
  variance out (test_paths_are_drawn_as_they_say, test_no_baseline_serves_on_a_deal_that_it_has_learnt,
  test_a_learned_baseline_takes_variance_out)
"""

from functools import cache
from itertools import pairwise

import deep
import numpy as np
import pytest
from mutants import mutant

from mccfr.cards.deals import new_deals
from mccfr.config.games import GoofspielGame, KuhnGame, LeducGame
from mccfr.config.solvers import DeepCfrConfig
from mccfr.games.catalogue import build_game
from mccfr.solvers.deep import outcome_paths, single_deep_cfr, traversals
from mccfr.solvers.deep.every_deal import every_deal
from mccfr.solvers.deep.infosets import list_infosets
from mccfr.solvers.deep.learned_baseline import LearnedBaseline
from mccfr.solvers.deep.outcome_paths import Paths, draw_paths, new_paths, value_paths
from mccfr.solvers.deep.traversals import new_samples, new_work
from mccfr.trees.compiled import TERMINAL

GAMES = {"kuhn": KuhnGame(), "leduc": LeducGame(merge_suits=True)}
EPSILON = 0.5


@cache
def game_of(name):
    return build_game(GAMES[name], None, None)


@cache
def strategies(name):
    """[I, A] random strategies of both players."""
    infosets = list_infosets(game_of(name))
    shares = np.random.default_rng(5).uniform(size=(len(infosets), infosets.width)) * infosets.legal
    return shares / shares.sum(axis=1, keepdims=True)


def taken(infosets, sigma, infoset, action, acts):
    """Probability with which outcome sampling takes an action."""
    share = sigma[infoset, action]
    return EPSILON / infosets.actions[infoset] + (1 - EPSILON) * share if acts else share


@cache
def every_path(name, traverser):
    """Paths of every deal and history, the probability [K] of drawing each, and deals with weights."""
    game, sigma = game_of(name), strategies(name)
    infosets, tree, arrays = list_infosets(game), game.tree, game.tree.arrays
    deals, weights = every_deal(game)
    columns, stops, worth, drawn = [[] for _ in range(6)], [], [], []
    ends = [node for node in range(len(arrays.kind)) if arrays.kind[node] == TERMINAL]
    for deal, weight in enumerate(weights.tolist()):
        buckets = deals.bucket[deal]
        for end in ends:
            path, explored, likely = tree.path(end), 1.0, weight
            for node, below in pairwise(path):
                infoset, acts = deep.infoset_of(infosets, tree, node, buckets), arrays.player[node] == traverser
                action = below - int(arrays.first[node])
                chance = taken(infosets, sigma, infoset, action, acts)
                row = (node, infoset, int(buckets[int(arrays.block[node]) ^ 1]), action, chance, explored)
                for column, value in zip(columns, row, strict=True):
                    column.append(value)
                explored *= chance if acts else 1.0
                likely *= chance
            stops.append(len(columns[0]))
            worth.append(float(arrays.fixed[end] + arrays.showdown[end] * deals.result[deal]))
            drawn.append(likely)
    whole, real = [np.array(column, np.int64) for column in columns[:4]], [np.array(column) for column in columns[4:]]
    return Paths(*whole, *real, np.array(stops, np.int64), np.array(worth)), np.array(drawn), (deals, weights)


def any_baseline(name, paths):
    """[l, A] chips by decision, hand and hand."""
    infosets = list_infosets(game_of(name))
    table = np.random.default_rng(6).normal(size=(len(infosets), int(paths.bucket.max()) + 1, infosets.width)) * 3
    return table[paths.infoset, paths.bucket] * infosets.legal[paths.infoset]


def valued(name, traverser, baseline, kernel):
    """Samples and plays of every path, how many, and what actions led to."""
    paths, infosets = every_path(name, traverser)[0], list_infosets(game_of(name))
    count = len(paths.node)
    samples, plays, ahead = new_samples(count, infosets.width), new_samples(count, infosets.width), np.zeros(count)
    tree, sigma = game_of(name).tree.arrays, strategies(name).ravel()
    found = kernel(tree, sigma, traverser, paths, baseline, samples, plays, ahead)
    return samples, plays, found, ahead


def worst_bias(name, traverser, kernel):
    """Largest difference of expected weights and weighted regrets, by infoset, from those of every history."""
    game, infosets = game_of(name), list_infosets(game_of(name))
    paths, drawn, (deals, weights) = every_path(name, traverser)
    samples, plays, (regrets, played), _ = valued(name, traverser, any_baseline(name, paths), kernel)
    acts = game.tree.arrays.player[paths.node] == traverser
    of = np.repeat(np.arange(len(drawn)), np.diff(paths.stop, prepend=0))
    assert (regrets, played) == (int(acts.sum()), int((~acts).sum()))
    mass, gain = np.zeros(len(infosets)), np.zeros((len(infosets), infosets.width))
    likely = drawn[of[acts]] * samples.weight[:regrets]  # samples of a path are in another order, by the same path
    np.add.at(mass, samples.infoset[:regrets], likely)
    np.add.at(gain, samples.infoset[:regrets], likely[:, None] * samples.value[:regrets])
    np.add.at(mass, plays.infoset[:played], drawn[of[~acts]] * plays.weight[:played])
    exact, exact_gain = np.zeros(len(infosets)), np.zeros((len(infosets), infosets.width))
    tree, sigma = game.tree.arrays, strategies(name)
    work = new_work(len(tree.kind))
    traversals.full(tree, infosets.numbering, sigma.ravel(), deals, weights, traverser, exact, exact_gain, work)
    mine = infosets.of(traverser)
    exact_gain[mine] -= (sigma[mine] * exact_gain[mine]).sum(axis=1, keepdims=True)
    return max(np.abs(mass - exact).max(), np.abs((gain - exact_gain * infosets.legal)[mine]).max())


@pytest.mark.parametrize("traverser", [0, 1])
def test_any_baseline_changes_no_expectation(traverser):
    assert worst_bias("leduc", traverser, value_paths) < 1e-12


WEIGHED = "samples.weight[taken] = infoset, 1.0"


@pytest.mark.parametrize(
    ("said", "wrong"),
    [
        ("more /= paths.chance[place]", "more *= 1.0"),
        ("more = value - sign * baseline[place, action]", "more = value"),
        ("value = sign * mean + more", "value = sign * mean"),
        (f"{WEIGHED} / paths.explored[place]", WEIGHED),
    ],
)
def test_a_biased_baseline_is_caught(said, wrong):
    """Not divided, not taken off, not corrected for at the opponent's decisions; weights without exploration."""
    assert worst_bias("kuhn", 0, mutant(outcome_paths, (said, wrong)).value_paths.py_func) > 1e-2


def test_what_is_learnt_is_the_next_decisions_value_or_the_chips_at_the_end():
    paths = every_path("leduc", 0)[0]
    baseline, sigma = any_baseline("leduc", paths), strategies("leduc")
    ahead = valued("leduc", 0, baseline, value_paths)[3]
    first = 0
    for path, stop in enumerate(paths.stop.tolist()):
        nexts = [float(sigma[paths.infoset[k]] @ baseline[k]) for k in range(first + 1, stop)]
        assert np.abs(ahead[first:stop] - [*nexts, paths.worth[path]]).max() < 1e-12
        first = stop


def test_paths_are_drawn_as_they_say():
    game, sigma, count = game_of("leduc"), strategies("leduc"), 3000
    infosets, tree, arrays = list_infosets(game), game.tree, game.tree.arrays
    deals, paths = new_deals(count, tree.streets), new_paths(count, 20)
    game.cards.dealer(1, 0).draw(0, count, deals)
    span = np.array([0, 0, count, 1, 0], np.int64)
    made, _ = draw_paths(arrays, infosets.numbering, sigma.ravel(), deals, span, EPSILON, np.zeros(4, np.uint64), paths)
    first = 0
    for deal, stop in enumerate(paths.stop[:200].tolist()):
        node, explored = 0, 1.0
        for place in range(first, stop):
            acts, buckets = arrays.player[node] == 0, deals.bucket[deal]
            infoset, action = deep.infoset_of(infosets, tree, node, buckets), int(paths.action[place])
            assert (paths.node[place], paths.infoset[place]) == (node, infoset)
            assert paths.bucket[place] == buckets[int(arrays.block[node]) ^ 1]
            assert paths.chance[place] == pytest.approx(taken(infosets, sigma, infoset, action, acts), abs=1e-15)
            assert paths.explored[place] == pytest.approx(explored, rel=1e-12)
            explored *= paths.chance[place] if acts else 1.0
            node = int(arrays.first[node]) + action
        assert arrays.kind[node] == TERMINAL
        assert paths.worth[deal] == arrays.fixed[node] + arrays.showdown[node] * deals.result[deal]
        first = stop
    rare = paths.chance[:made].copy()  # 1 / probability, of every decision, counts its actions on the mean
    assert (1 / rare).mean() == pytest.approx(infosets.actions[paths.infoset[:made]].mean(), rel=0.05)


def learning(**changed):
    small = {"sampling": "outcome", "baseline": "learned", "baseline_steps": 40, "units": 16, "layers": 2}
    return deep.options(
        **{"fit": "table", "traversals": 400, "memory": 60_000, "averages": ("sd",), **small, **changed}
    )


def asked_before_learning(module):
    """Whether every baseline is the one that there was before the traversals that ask for it, and learns after them."""
    game, config = game_of("leduc"), learning(baseline_steps=2)
    cfr, asked, clean = module.SingleDeepCfr(game, config, deep.new_tables(game, config)), [], []
    learns = cfr._baseline
    values = learns.values

    def noting(paths, count):
        asked.append(learns._parameters.tobytes())
        return values(paths, count)

    learns.values = noting
    for number in range(4):
        before = learns._parameters.tobytes()
        asked.clear()
        cfr._traverse(number % 2, 1 + number // 2)
        clean.append(set(asked) == {before} and learns._parameters.tobytes() != before)
    return all(clean)


def test_no_baseline_serves_on_a_deal_that_it_has_learnt():
    assert asked_before_learning(single_deep_cfr)
    own = "(learns.remember(learns.transitions(paths, np.zeros(count))), learns.fit(0), learns.values(paths, count))[2]"
    wrong = mutant(single_deep_cfr, ("else learns.values(paths, count)", f"else {own}"))
    assert not asked_before_learning(wrong)


def test_a_learned_baseline_takes_variance_out():
    """Mean square of regrets, as their samples weigh, over the same 400 paths."""
    game, config = game_of("leduc"), learning()
    cfr = single_deep_cfr.SingleDeepCfr(game, config, deep.new_tables(game, config))
    cfr.iterate(8)
    squares = []
    for learns in (cfr._baseline, None):
        cfr._baseline = learns
        piece = cfr._part(0, 100_000, 0, config.traversals)[0]
        squares.append(
            float((piece.samples.weight[: piece.taken, None] * piece.samples.value[: piece.taken] ** 2).sum())
        )
    assert squares[0] < 0.8 * squares[1]


def test_what_a_baseline_cannot_see_is_refused():
    with pytest.raises(ValueError, match="goofspiel has none that are named"):
        deep.new_tables(build_game(GoofspielGame(cards=3), None, None), learning())
    told = [allowed for key, good, allowed in DeepCfrConfig(baseline="learned").checks() if not good]
    assert told == ["'none' unless sampling = 'outcome'"]


@pytest.mark.parametrize(("name", "cell"), [("baseline_memory/infoset", 999), ("baseline/counter", -1)])
def test_tables_that_no_run_writes_are_refused(name, cell):
    game, config = game_of("kuhn"), learning()
    tables = deep.new_tables(game, config)
    tables["baseline/counter"][0] = 5
    LearnedBaseline(game, list_infosets(game), config, tables)
    tables[name][0] = cell
    with pytest.raises(ValueError, match=name.partition("/")[0]):
        LearnedBaseline(game, list_infosets(game), config, tables)
