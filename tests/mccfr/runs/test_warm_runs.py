"""Runs with `warm_start`: they start from a sampled strategy or from another run's tables.

Shows:

* With `warm_start` CFR-BR begins with the sampled strategy
  (test_cfr_br_with_warm_start_begins_with_the_sampled_strategy)
* A run warm-started from other buckets first plays the same strategy (test_a_run_continues_from_another_run,
  test_finer_buckets_begin_with_the_strategy_of_the_coarse)
"""

import os
import shutil
import signal

import numpy as np
import pytest
from msgspec.structs import replace
from refusals import refused
from same import assert_same_arrays
from sessions import NO_EVALUATION, PhaseListener, assert_same, content, go, make, new_run
from small_games import small_recipe

import mccfr
from abstraction.build import Builder
from mccfr.runs.directory.identity import identity_document
from mccfr.runs.directory.run import open_run
from mccfr.runs.directory.run_status import run_status
from mccfr.runs.reporter import Silent
from mccfr.runs.session.initial_tables import begin_from_run, check_warm_start
from mccfr.runs.session.start import build_abstractions
from mccfr.solvers.game_from_config import configured_game
from mccfr.solvers.warm_start import WARM_BOARDS, begin_warm
from mccfr.tables.table_layout import private_tables

LEDUC = {"name": "leduc", "merge_suits": True}
POKER = {
    **{"name": "poker", "ranks": 3, "suits": 2, "hole_cards": 1, "board_cards": [0, 1], "merge_suits": True},
    **{"stack": 9, "blinds": [2, 1], "first_player": [2, 1], "menu": {"first": ["1p"], "later": []}},
}


def test_cfr_br_with_warm_start_begins_with_the_sampled_strategy(tmp_path):
    options = {"algorithm": "cfr-br", "trunk": "own", "seed": 3}
    begun = mccfr.solver(mccfr.game(**LEDUC), **options, warm_start=20_000)
    cold, first = mccfr.solver(mccfr.game(**LEDUC), **options), mccfr.solver(mccfr.game(**LEDUC), seed=3)
    first.run(nodes=20_000)
    begin_warm(cold.game, None, cold.tables, first.strategy(), WARM_BOARDS)
    assert_same_arrays(begun.tables, cold.tables)
    run = make(tmp_path / "run", {**options, "warm_start": 20_000}, LEDUC, evaluation=NO_EVALUATION)
    go(run, iterations=5)
    begun.run(iterations=5)
    assert_same_arrays(content(open_run(run.directory))[0], begun.tables)


class Signalled(PhaseListener):
    """Sends a signal when half of the sampling is done."""

    def phase(self, text, share=None):
        super().phase(text, share)
        if share is not None and share >= 0.5:
            os.kill(os.getpid(), signal.SIGTERM)


def test_a_signal_ends_the_sampling_at_once(tmp_path):
    solver = {"algorithm": "cfr-br", "trunk": "own", "warm_start": 2_000_000}
    run, reporter = make(tmp_path / "run", solver, LEDUC, evaluation=NO_EVALUATION), Signalled()
    outcome = go(run, reporter, iterations=5)
    assert (outcome.signal, outcome.checkpoint, run_status(run)["state"]) == (signal.SIGTERM, None, "stopped")
    texts = [text for text in reporter.told if text.startswith("filling the tables, ")]
    assert texts[0].endswith(" 0%") and 50 <= int(texts[-1].split()[-1][:-1]) <= 70  # in batches of 200,000 nodes


def build(folder, buckets, start, name, **solver):
    """Build buckets, and create a run of poker on them that begins with the tables of the run `start`."""
    recipe = small_recipe(folder / f"{buckets}.toml", ranks=3, buckets=buckets)
    Builder(recipe, folder / f"b{buckets}").build()
    solver = {"algorithm": "cfr-br", "seed": 3, "period_nodes": 50, "warm_start": start, **solver}
    run = {"workers": 0, "iterations": 10**6}
    cards = {"abstraction": {"path": f"b{buckets}"}}
    document = {"game": POKER, **cards, "solver": solver, "run": run, "evaluation": NO_EVALUATION}
    return new_run(folder / name, document)


@pytest.mark.parametrize("trunk", ["own", "lossless"])
def test_a_run_continues_from_another_run(tmp_path, trunk):
    one = build(tmp_path, 2, None, "one", trunk=trunk)
    go(one, iterations=40)
    other = build(tmp_path, 2, "one", "other", trunk=trunk)
    for run in (one, other):
        go(run, iterations=60)
    assert_same(one, other)


def test_finer_buckets_begin_with_the_strategy_of_the_coarse(tmp_path):
    """Regrets and strategy sums keep their totals, also if the runs have different discounting periods."""
    coarse = build(tmp_path, 2, None, "coarse")
    go(coarse, iterations=40)
    fine = build(tmp_path, 3, "coarse", "fine", period_nodes=100)
    tables = private_tables(fine.layout(fine.build_game()))
    state = begin_from_run(fine, fine.build_game(), tables)
    assert state["iterations"] == 40 and state["workers"][0]["rng"][0] == state["nodes_touched"] // 100
    tables_of_coarse, _ = content(coarse)
    games = [run.build_game() for run in (coarse, fine)]
    held = [list(game.cards.range_buckets()) for game in games]
    for name, table in tables.items():
        street, player = int(name.split("/")[1][-1]), int(name[-1])
        block = 2 * street + player
        assert np.allclose(table.sum(axis=1), tables_of_coarse[name].sum(axis=1), rtol=1e-5)
        own, theirs = held[1][block][0], held[0][block][0]
        for bucket in np.unique(own):
            (of,) = np.unique(theirs[own == bucket])  # each of three fine buckets lies in one of two coarse ones
            share = (own[theirs == of] == bucket).mean()
            assert np.allclose(table[:, bucket], share * tables_of_coarse[name][:, of], rtol=1e-5)


def test_the_recipe_of_a_trunk_is_built(tmp_path):
    """A run that names the recipe has the identity of a run that names the directory."""
    run = build(tmp_path, 2, None, "one")
    small_recipe(tmp_path / "3.toml", ranks=3, buckets=3)
    configs = [replace(run.config, solver=replace(run.config.solver, trunk=name)) for name in ("3.toml", "3", "no")]
    refused("is not built yet: build it with mccfr abstraction build", configured_game, configs[0], tmp_path)
    refused("'no' is not an abstraction: name", configured_game, configs[2], tmp_path)
    build_abstractions(configs[0], tmp_path, Silent())
    for config in configs[:2]:
        assert configured_game(config, tmp_path).opponent_cards.buckets[-1].max() == 3
    identities = [identity_document(config, tmp_path) for config in configs[:2]]
    assert identities[0] == identities[1]


def test_an_unsuitable_warm_start_is_refused(tmp_path):
    build(tmp_path, 2, None, "untrained")
    for start, words in (("nowhere", "is no run: solve it first"), ("untrained", "has no checkpoint yet")):
        run = build(tmp_path, 2, start, f"from-{start}")
        refused(words, go, run, iterations=5)
        refused(words, check_warm_start, run.config, run.directory)
    named = {"algorithm": "cfr-br", "warm_start": "run"}
    refused("only a run directory can begin with another run", mccfr.solver, mccfr.game(**LEDUC), **named)
    kuhn = make(tmp_path / "kuhn", {}, {"name": "kuhn"}, evaluation=NO_EVALUATION)
    go(kuhn, iterations=5)
    refused("is a run of another [game], or not by 'cfr-br'", go, build(tmp_path, 2, "kuhn", "from-kuhn"), iterations=5)
    shutil.copytree(kuhn.path("checkpoints"), tmp_path / "untrained/checkpoints")
    refused("belongs to another run", go, build(tmp_path, 2, "untrained", "from-strange"), iterations=5)
