"""NaN and infinity in tables: never committed; the error names the row, the older checkpoint stays."""

import numpy as np
import pytest
from commands import call

from mccfr.config.toml_files import config_from
from mccfr.games.registry import build_game
from mccfr.runs.directory.run import create_run
from mccfr.runs.directory.verification import problems_of
from mccfr.runs.reporter import Silent
from mccfr.runs.results.checkpoints import find_checkpoint, read_tables
from mccfr.runs.session import checkpointing as saving_module
from mccfr.runs.session.checkpointing import not_finite_text
from mccfr.runs.session.run_plan import planned_layout
from mccfr.runs.session.training_session import train
from storage import checkpoint as checkpoints
from storage import table_formats
from storage.table_formats import NotFiniteError


def config(payoffs, **tables):
    game = {"name": "matrix", "payoffs": payoffs}
    document = {"game": game, "solver": {"discount": "none"}, "tables": tables}
    return config_from({**document, "run": {"workers": 0, "nodes": 2_000, "checkpoint_nodes": 100}}, "test")


def make(path, payoffs, **tables):
    wanted = config(payoffs, **tables)
    return create_run(wanted, path.parent, path, planned_layout(wanted, build_game(wanted.game, path.parent)))


def dominated(chips):
    """Return payoffs with a dominated row, whose regret falls by twice the payoff each time."""
    return [[chips, chips], [-chips, -chips]]


@pytest.mark.parametrize("form", ["zarr", "hdf5"])
def test_infinite_regrets_end_the_run_and_the_older_checkpoint_stays(tmp_path, capsys, form):
    run = make(tmp_path / "run", dominated(1e36), format=form)
    status, _, told = call(capsys, "resume", run.directory)
    assert status == 1
    saved = find_checkpoint(run, None)
    assert all(np.isfinite(table).all() for table in read_tables(saved).values())
    last = told.splitlines()[-1]
    assert "array 'regret/street0/player" in last and "inf at bucket 0, slot" in last
    assert f"checkpoint {saved.number} stays" in last and "float64" in last
    assert problems_of(run.directory) == []
    assert sorted(run.path("checkpoints").iterdir())[-1].name == f"{saved.number:06d}"


def test_an_evaluation_between_checkpoints_refuses_nan(tmp_path):
    run = make(tmp_path / "run", dominated(1e36))
    game, layout = run.build_game(), run.layout(run.build_game())
    saver = saving_module.Saver(run, game, layout, Silent(), None)
    arrays = {spec.name: np.zeros(spec.shape, spec.dtype) for spec in layout.specs}
    arrays["strategy_sum/street0/player1"][0, 1] = np.nan
    with pytest.raises(RuntimeError, match="'strategy_sum/street0/player1' holds nan at bucket 0, slot 1"):
        saver.save(arrays, None, saving_module.Stop(False, True, False, False), background=False)


def test_a_checkpoint_with_infinite_cells_is_skipped(tmp_path, monkeypatch):
    run = make(tmp_path / "run", dominated(1e36))
    with monkeypatch.context() as planted:
        planted.setattr(table_formats, "check_finite", lambda *_: None)
        train(run, run.build_game(), Silent())
    newest = find_checkpoint(run, None)
    tables = [table for name, table in read_tables(newest).items() if name.startswith("regret")]
    assert not all(np.isfinite(table).all() for table in tables)
    problems = problems_of(run.directory)
    start = f"{newest.number:06d}: array 'regret/"
    assert any(text.startswith(start) and "inf at bucket 0" in text for text in problems)
    found, passed = checkpoints.newest_valid(run.path("checkpoints"), run.identity)
    assert passed and (found is None or found.number < newest.number)


def test_the_message_names_the_checkpoint_and_the_users_code(tmp_path):
    wanted = config_from({"game": {"name": "leduc"}}, "test")
    layout = planned_layout(wanted, build_game(wanted.game, tmp_path))
    error = NotFiniteError(layout.specs[0], (3, 1), float("nan"))
    text = not_finite_text(layout, error, 4)
    assert f"'{layout.specs[0].name}'" in text and "checkpoint 4 stays" in text and "\n" not in text
    told = not_finite_text(layout, error, 4, "the regret rule mine:rule")
    assert "; the regret rule mine:rule may have caused it, or payoffs" in told
