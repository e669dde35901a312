"""Runs whose tables have cells of 16 bits: the same after a stop; checked, measured, exported; what is refused."""

import json

import numpy as np
import pytest
import zarr
from commands import call
from sessions import assert_same_tables, content, go, make

from mccfr.config.file import config_from
from mccfr.policy import Policy
from mccfr.runs.session.plan import evaluation_bytes, make_plan, planned_layout
from mccfr.solvers.configured import configured_game
from mccfr.tables.narrow import narrowed, numbers
from mccfr.tables.strategy import row_starts

LEDUC = {"name": "leduc", "merge_suits": True}
INT16 = {"regret_dtype": "int16", "sum_dtype": "int16"}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    made = make(tmp_path_factory.mktemp("narrow") / "run", game=LEDUC, tables=INT16, evaluation={"at_end": True})
    go(made, iterations=700)
    go(made, iterations=3000)
    return made


def test_a_run_stopped_and_one_in_a_piece_have_the_same_tables(run, tmp_path):
    whole = make(tmp_path / "whole", game=LEDUC, tables=INT16, evaluation={})
    go(whole, iterations=3000)
    assert_same_tables(run, whole)
    tables, _ = content(run)
    assert {table.dtype.name for name, table in tables.items() if "scale" not in name} == {"int16"}
    assert all(table.dtype == np.uint8 for name, table in tables.items() if "scale" in name)


def test_a_run_is_verified_measured_shown_and_exported(run, tmp_path, capsys):
    directory = run.directory
    assert call(capsys, "verify", directory).status == 0
    found = json.loads(call(capsys, "status", directory, "--json").out)
    assert found["saturated_cells"] == 0 and found["lost_updates"] is None
    assert "saturated    0 of the tables' 16-bit cells" in call(capsys, "status", directory).out
    chips = json.loads(call(capsys, "evaluate", directory, "--method", "exact", "--json").out)["exploitability_chips"]
    assert chips == found["last_evaluation"]["exploitability_chips"] < 0.5
    assert call(capsys, "export", directory, tmp_path / "policy", "--quantise", "uint16").status == 0
    measured = json.loads(call(capsys, "evaluate", tmp_path / "policy", "--method", "exact", "--json").out)
    assert measured["exploitability_chips"] == pytest.approx(chips, abs=1e-3)
    assert call(capsys, "report", directory, tmp_path / "page.html").status == 0
    assert "saturated 16-bit cells" in (tmp_path / "page.html").read_text("utf-8")


def test_a_plain_reader_makes_the_average_of_cells_and_scales(run, tmp_path, capsys):
    """What docs/configuration.md says of cells and scales, done by hand, is the policy's strategy."""
    assert call(capsys, "export", run.directory, tmp_path / "raw", "--format", "zarr").status == 0
    assert call(capsys, "export", run.directory, tmp_path / "policy", "--quantise", "uint16").status == 0
    group, policy = zarr.open_group(tmp_path / "raw", mode="r"), Policy.open(tmp_path / "policy")
    cells = group["strategy_sum/street1/player0"][:]
    scale = group["strategy_sum_scale/street1/player0"][:]
    starts = row_starts(policy.game, 2)
    first, stop = starts[3], starts[4]
    sums = cells[:, first:stop] * 2.0 ** (scale[:, 3:4].astype(float) - 128)
    seen = sums.sum(axis=1) > 0
    shares = sums[seen] / sums[seen].sum(axis=1, keepdims=True)
    assert policy.strategy().probability[2][seen, first:stop] == pytest.approx(shares, abs=1 / 65535)
    weight = policy.strategy().weight[2][seen, 3]
    assert weight == pytest.approx(sums[seen].sum(axis=1), rel=1e-6)


def test_cells_nearest_to_numbers_mean_them_and_rows_of_their_own_stay_as_they_are():
    random, starts = np.random.default_rng(4), np.array([0, 3, 5, 10])
    values = random.normal(size=(50, 10)) * 2.0 ** random.integers(-20, 40, (50, 1))
    values[7, 3:5] = 0
    padded = np.concatenate([values, np.zeros((50, 6))], axis=1)
    cells, scales = narrowed(padded, starts)
    meant = numbers(cells, scales, starts).astype(np.float64)
    largest = np.repeat(np.maximum.reduceat(np.abs(values), starts[:-1], axis=1), np.diff(starts), axis=1)
    assert (np.abs(meant[:, :10] - values) <= largest * 2.0**-15).all() and not meant[:, 10:].any()
    again, same = narrowed(meant, starts)
    assert (again == cells).all() and (same == scales).all()


def test_the_plan_counts_bytes_of_cells_and_scales(tmp_path):
    document = {"game": LEDUC, "tables": INT16, "run": {"iterations": 10}}
    narrow = config_from(document, "test")
    wide = config_from(document | {"tables": {}}, "test")
    game = configured_game(wide, tmp_path)
    rows = int((game.buckets * game.tree.row_count).sum())
    sizes = [make_plan(config, tmp_path)["checkpoint_bytes"] for config in (wide, narrow)]
    assert 2 * (sizes[1] - 2 * rows) == sizes[0]
    layouts = [planned_layout(config, game) for config in (wide, narrow)]
    more = evaluation_bytes(narrow, game, layouts[1]) - evaluation_bytes(wide, game, layouts[0])
    assert more == 2 * sum(spec.nbytes for spec in layouts[1].specs if spec.name.startswith("strategy_sum/"))


def test_games_that_cannot_be_packed_are_refused(tmp_path):
    config = config_from({"game": {"name": "goofspiel", "cards": 3}, "tables": {"sum_dtype": "int16"}}, "test")
    with pytest.raises(ValueError, match=r"tables\.sum_dtype = 'int16' is for betting trees"):
        planned_layout(config, configured_game(config, tmp_path))


@pytest.mark.slow
@pytest.mark.parametrize("form", ["zarr", "hdf5"])
def test_two_workers(form, tmp_path):
    """Two processes share the tables."""
    tables = {**INT16, "format": form}
    made = make(tmp_path / "run", game=LEDUC, tables=tables, evaluation={"at_end": True}, workers=2)
    go(made, nodes=2_000_000)
    last = next(made.backwards("evaluations.jsonl"))
    assert last["exploitability_chips"] < 0.6
