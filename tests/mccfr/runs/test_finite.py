"""NaN and infinity in tables: no checkpoint commits them, and the error names the row."""

import numpy as np
import pytest
from commands import call
from sessions import go, make

from mccfr.runs.directory.verification import problems_of
from mccfr.runs.reporter import Silent
from mccfr.runs.results.checkpoints import find_checkpoint, read_tables
from mccfr.runs.session import checkpointing as saving_module
from mccfr.runs.session.checkpointing import not_finite_text
from storage import checkpoint as checkpoints
from storage import table_formats
from storage.table_formats import NotFiniteError


def dominated(path, form="zarr"):
    """Return a run with a dominated action, whose regret falls by 2e36 in each iteration."""
    game = {"name": "matrix", "payoffs": [[1e36, 1e36], [-1e36, -1e36]]}
    return make(path, {"discount": "none"}, game, {"format": form}, {}, nodes=2_000, checkpoint_nodes=100)


@pytest.mark.parametrize("form", ["zarr", "hdf5"])
def test_infinite_regrets_end_the_run_and_the_older_checkpoint_stays(tmp_path, capsys, form):
    run = dominated(tmp_path / "run", form)
    status, _, errors = call(capsys, "resume", run.directory)
    assert status == 1
    saved = find_checkpoint(run, None)
    assert all(np.isfinite(table).all() for table in read_tables(saved).values())
    last = errors.splitlines()[-1]
    assert "array 'regret/street0/player" in last and "inf at bucket 0, slot" in last
    assert f"checkpoint {saved.number} stays" in last and "float64" in last
    assert problems_of(run.directory) == []
    assert sorted(run.path("checkpoints").iterdir())[-1].name == f"{saved.number:06d}"


def test_an_evaluation_between_checkpoints_refuses_nan(tmp_path):
    run = dominated(tmp_path / "run")
    game, layout = run.build_game(), run.layout(run.build_game())
    saver = saving_module.Saver(run, game, layout, Silent(), None)
    arrays = {spec.name: np.zeros(spec.shape, spec.dtype) for spec in layout.specs}
    arrays["strategy_sum/street0/player1"][0, 1] = np.nan
    with pytest.raises(RuntimeError, match="'strategy_sum/street0/player1' holds nan at bucket 0, slot 1"):
        saver.save(arrays, None, saving_module.Stop(False, True, False, False), background=False)


def test_a_checkpoint_with_infinite_cells_is_skipped(tmp_path, monkeypatch):
    run = dominated(tmp_path / "run")
    with monkeypatch.context() as planted:
        planted.setattr(table_formats, "check_finite", lambda *_: None)
        go(run)
    newest = find_checkpoint(run, None)
    tables = [table for name, table in read_tables(newest).items() if name.startswith("regret")]
    assert not all(np.isfinite(table).all() for table in tables)
    problems = problems_of(run.directory)
    start = f"{newest.number:06d}: array 'regret/"
    assert any(text.startswith(start) and "inf at bucket 0" in text for text in problems)
    found, passed = checkpoints.newest_valid(run.path("checkpoints"), run.identity)
    assert passed and (found is None or found.number < newest.number)


def test_the_message_names_the_checkpoint_and_the_users_code(tmp_path):
    run = make(tmp_path / "run")
    layout = run.layout(run.build_game())
    error = NotFiniteError(layout.specs[0], (3, 1), float("nan"))
    text = not_finite_text(layout, error, 4)
    assert f"'{layout.specs[0].name}'" in text and "checkpoint 4 stays" in text and "\n" not in text
    text = not_finite_text(layout, error, 4, "the regret rule mine:rule")
    assert "; the regret rule mine:rule may have caused it, or payoffs" in text
