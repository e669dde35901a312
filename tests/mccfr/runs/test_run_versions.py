"""Run directories of older versions go on as what they were."""

from pathlib import Path

import msgspec
import numpy as np
import pytest
from archives import unpack
from sessions import go

from mccfr.config.file import config_from, load_config
from mccfr.config.games import KuhnGame
from mccfr.games.poker import kuhn
from mccfr.runs.directory.run import MANIFEST, open_run, with_settings
from mccfr.runs.directory.verification import problems_of
from mccfr.runs.reporter import Silent
from mccfr.runs.results.checkpoints import find_checkpoint, read_tables
from mccfr.runs.results.evaluating import evaluate_target
from mccfr.runs.session.session import train
from mccfr.runs.session.start import Terms, start_run
from mccfr.solvers.public.vector_cfr import VectorCfr
from mccfr.solvers.variants import variant
from storage.manifest import read_manifest


@pytest.fixture
def old(tmp_path):
    """Kuhn after 10 iterations of version 1's `lcfr+`, whose averaging power was 2."""
    return unpack("runs1", tmp_path) / "full-width"


def new_config(name, iterations=20):
    document = {"game": {"name": "kuhn"}, "solver": {"algorithm": "cfr", "variant": name}}
    settings = {"run": {"workers": 0, "iterations": iterations}, "evaluation": {"every_checkpoint": False}}
    return config_from({**document, **settings}, "test")


def assert_tables(run, name, iterations):
    """The newest checkpoint holds what so many iterations of a variant leave behind, bit for bit."""
    cfr = VectorCfr(kuhn(KuhnGame()), variant(name), "float64")
    cfr.iterate(iterations)
    tables = read_tables(find_checkpoint(run, None))
    assert tables.keys() == cfr.tables.keys()
    for table, cells in tables.items():
        assert np.array_equal(cells, cfr.tables[table]), table


def test_a_run_of_version_1_keeps_its_averaging_power(old):
    run = open_run(old)
    assert run.config.solver.variant == "lcfr+quadratic"
    assert_tables(run, "lcfr+quadratic", 10)
    train(with_settings(run, run=msgspec.structs.replace(run.config.run, iterations=20)), run.build_game(), Silent())
    run = open_run(old)
    assert_tables(run, "lcfr+quadratic", 20)
    assert evaluate_target(old, "exact")["iterations"] == 20
    assert load_config(old / "config.toml").solver.variant == "lcfr+"  # the file stays what version 1 wrote
    assert read_manifest(old / MANIFEST, "mccfr-run", 1)["identity"] == run.identity["run_identity"]


def test_a_run_of_version_1_goes_on_by_solve_under_its_new_name_only(old):
    run, game = start_run(new_config("lcfr+quadratic"), Path(), old, Terms(Silent()))
    train(run, game, Silent())
    assert_tables(open_run(old), "lcfr+quadratic", 20)
    with pytest.raises(ValueError, match=r"solver\.variant = 'lcfr\+quadratic' there and 'lcfr\+' here"):
        start_run(new_config("lcfr+"), Path(), old, Terms(Silent()))


VERSION_3 = {
    "linear": (0.7341923201332163, 0.3306141015262937),
    "dcfr": (1.871195390576756, 1.1027458282405305),
    "strata": (0.8514709383338617, 0.4011254553319109),
}
"""Exploitability in chips as the version that wrote them found it, and of what they came to there by 60,000 nodes."""


@pytest.mark.parametrize("name", VERSION_3)
def test_runs_of_version_3_are_sound_and_go_on_as_they_would_have(tmp_path, name):
    then, later = VERSION_3[name]
    path = unpack("runs3", tmp_path) / name
    assert problems_of(path) == [] and read_manifest(path / MANIFEST, "mccfr-run", 3)
    assert evaluate_target(path, "exact")["exploitability_chips"] == pytest.approx(then, rel=1e-9)
    go(open_run(path), nodes=60_000)
    assert evaluate_target(path, "exact")["exploitability_chips"] == pytest.approx(later, rel=1e-9)
