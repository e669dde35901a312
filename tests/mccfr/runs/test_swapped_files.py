"""Files replaced by files of the same name and length from another run or output: `verify` finds all."""

import shutil

import pytest
from commands import call
from policies import write_random
from sessions import NO_EVALUATION, go, make, trained
from small_games import small_recipe
from swapping import swaps

from abstraction.build import Builder
from mccfr.config.game_tables import LeducGame
from mccfr.runs.directory.verification import problems_of
from storage import checkpoint as checkpoints

RAW = {"checkpoint_compression": "none"}
FREE = {"metrics.jsonl", "evaluations.jsonl", "trends.jsonl"}
"""Journals whose content is only displayed; `verify` need not detect their replacement."""


@pytest.fixture(scope="module")
def two_runs(tmp_path_factory):
    """Return the directories of two runs with different seeds and two checkpoints each."""
    root = tmp_path_factory.mktemp("runs")
    runs = [run_of(root / f"{seed}", seed) for seed in (1, 2)]
    for run in runs:
        for nodes in (5_000, 10_000):
            go(run, nodes=nodes)
    return [run.directory for run in runs]


def run_of(path, seed):
    return make(path, {"seed": seed, "period_nodes": 10_000}, tables=RAW, evaluation=NO_EVALUATION)


def assert_all_detected(ours, theirs, least, free=()):
    found = 0
    for name in swaps(ours, theirs):
        if name not in free:
            found += 1
            assert problems_of(ours), name
    assert problems_of(ours) == []
    assert found >= least, found


def test_verify_detects_files_of_another_run(two_runs):
    assert_all_detected(*two_runs, least=12, free=FREE)


def test_every_command_refuses_a_swapped_chunk_or_uses_the_checkpoint_before(two_runs, tmp_path, capsys):
    """The newest checkpoint has a chunk of the older one, and no command uses it."""
    run = tmp_path / "run"
    shutil.copytree(two_runs[0], run)
    chunk = "tables.zarr/strategy_sum/street0/player0/c/0/0"
    shutil.copy(run / "checkpoints/000001" / chunk, run / "checkpoints/000002" / chunk)
    ended = call(capsys, "verify", run)
    assert ended.status == 1 and f"000002: {chunk} has checksum" in ended.out
    for verb in (("evaluate", run), ("export", run, tmp_path / "out")):
        ended = call(capsys, *verb)
        assert ended.status and "has checksum" in ended.err, verb
    ended = call(capsys, "resume", run, "--nodes", 12_000, "--workers", 0)
    assert ended.status == 0 and f"damaged checkpoint passed over: 000002: {chunk}" in ended.err
    checkpoint = checkpoints.open_checkpoint(run / "checkpoints/000003")
    assert checkpoint.state["nodes_touched"] >= 12_000


def test_verify_detects_a_checkpoint_of_another_training_of_the_same_run(two_runs, tmp_path):
    """The checkpoint is valid and of the same identity, but its hash is not the one in the journal."""
    shutil.copytree(two_runs[0], tmp_path / "run")
    twin = trained(run_of(tmp_path / "twin", 1), nodes=6_000)
    shutil.rmtree(tmp_path / "run/checkpoints/000001")
    shutil.copytree(twin.path("checkpoints/000001"), tmp_path / "run/checkpoints/000001")
    assert "000001: it is another checkpoint than the one that journal.jsonl notes" in problems_of(tmp_path / "run")


@pytest.mark.parametrize("layout", ["zarr", "hdf5"])
def test_verify_detects_files_of_another_out_of_core_run(tmp_path, layout):
    game, tables = {"name": "leduc", "ranks": 4}, {"memory_budget": "26kB", "format": layout}
    settings = {"strata": 4, "blocks": 4, "cycle_iterations": 200, "iterations": 400}
    runs = [make(tmp_path / f"{n}", {"seed": n}, game, tables, NO_EVALUATION, **settings) for n in (1, 2)]
    assert_all_detected(*(trained(run).directory for run in runs), least=4, free=FREE)


def test_verify_detects_files_of_another_policy(tmp_path):
    assert_all_detected(*(write_random(tmp_path / str(seed), LeducGame(), None, seed) for seed in (1, 2)), least=5)


def test_verify_detects_files_of_another_abstraction(tmp_path):
    """`verify` compares the cells of chunks of equal length."""
    places = []
    for name, features in (("ehs", 'features = "ehs"'), ("ochs", 'features = "ochs"\nclusters = 3')):
        places.append(tmp_path / name)
        Builder(small_recipe(tmp_path / f"{name}.toml", 6, features, 4), places[-1]).build()
    assert_all_detected(*places, least=2, free={"times.jsonl", "journal.jsonl"})
