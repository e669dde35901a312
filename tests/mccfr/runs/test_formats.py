"""What older versions wrote loads for ever: it is sound, evaluates as it did, goes on as it would have then.

But for outcome sampling, which plays deals in groups since format 1: its run goes on as one of today would from there.
`tests/data/README.md` says what is in the archives.

Shows:

* What older versions wrote still loads and goes on (test_formats, test_policy_format2)
"""

import shutil
from pathlib import Path

import pytest
from archives import unpack
from same import assert_same_arrays
from sessions import Listener, trained

from abstraction.buckets import Abstraction
from mccfr.config.file import config_from, load_config
from mccfr.runs.directory.run import MANIFEST, open_run
from mccfr.runs.directory.verification import problems_of
from mccfr.runs.reporter import Silent
from mccfr.runs.results.checkpoints import find_checkpoint, read_tables
from mccfr.runs.results.evaluating import evaluate_target
from mccfr.runs.session.session import train
from mccfr.runs.session.start import Terms, start_run
from mccfr.solvers.public.vector_cfr import VectorCfr
from mccfr.solvers.variants import variant
from storage.manifest import read_manifest

WRITTEN = {
    "format1/runs/kuhn-external": 0.0560576890850902,  # of dcfr with stamps: read, and refused (test_former)
    "format1/runs/kuhn-cfr": 0.002694483610490666,  # lcfr+ with squared weights
    "format1/runs/leduc-outcome": 1.0694916030348094,
    "format1/runs/leduc-public-chance": 0.10805606637922495,
    "format1/policies/kuhn": 0.055910547225426155,
    "format1/policies/leduc": 0.10805443063887527,
    "runs3/linear": 0.7341923201332163,
    "runs3/dcfr": 1.871195390576756,
    "runs3/strata": 0.8514709383338617,
    "unbound/leduc-zarr": 1.5582545452956311,
    "unbound/leduc-hdf5": 1.5582545452956311,
    "unbound/leduc-turns": 0.8216815632745325,
    "unbound/networks": 0.15114804685829464,
    "unbound/policy": 0.08227858342882587,
    "unbound/bucketed": 0.08227967710696336,
    "bound/leduc-zarr": 1.5582545452956311,
    "bound/leduc-hdf5": 1.5582545452956311,
    "bound/leduc-turns": 0.8534530164170799,
    "bound/bucketed": 0.08227967710696336,
    "bound/bucketed-policy": 0.08227858342882587,
}
"""Exploitability in chips, as the version that wrote them found it."""
UNSEEN = {
    "format1/runs/kuhn-external": 2,
    "format1/runs/kuhn-cfr": 1,
    "format1/runs/leduc-public-chance": 1,
    "unbound/leduc-zarr": 2,
    "unbound/leduc-turns": 1,
    "unbound/bucketed": 3,
}
"""How often `verify` says that it cannot tell chunks apart: of checkpoints, and of an abstraction's hash."""
LATER = {
    "format1/runs/kuhn-cfr": ({"iterations": 100}, 0.0011118059419162885),
    "format1/runs/leduc-outcome": ({"nodes": 100_000, "workers": 1}, 0.7635568487763265),
    "format1/runs/leduc-public-chance": ({"iterations": 400}, 0.06522769689810361),
    "runs3/linear": ({"nodes": 60_000}, 0.3306141015262937),
    "runs3/dcfr": ({"nodes": 60_000}, 1.1027458282405305),
    "runs3/strata": ({"nodes": 60_000}, 0.4011254553319109),
}
"""Limits of a further session of the version that wrote them, and what they came to by it."""


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    folder = tmp_path_factory.mktemp("written")
    for name in {path.partition("/")[0] for path in WRITTEN}:
        unpack(name, folder)
    return folder


@pytest.mark.parametrize("name", WRITTEN)
def test_it_is_sound_and_read_as_it_was(written, name):
    abstraction, heard = written / name.partition("/")[0] / "abstraction", Listener()
    given = abstraction if name.endswith("/bucketed") else None
    assert problems_of(written / name, heard, given) == []
    assert len(heard.told) == UNSEEN.get(name, 0), heard.told
    found = evaluate_target(written / name, "exact", abstraction=given)["exploitability_chips"]
    rounding = 1e-6 if name.endswith("networks") else 1e-9  # matrix products of float32 depend on the processor
    assert found == pytest.approx(WRITTEN[name], rel=rounding)


@pytest.mark.parametrize("name", LATER)
def test_it_goes_on_as_it_would_have(written, tmp_path, name):
    limits, later = LATER[name]
    shutil.copytree(written / name, tmp_path / "run")
    trained(open_run(tmp_path / "run"), **({"nodes": None, "iterations": None, "workers": 0} | limits))
    assert evaluate_target(tmp_path / "run", "exact")["exploitability_chips"] == pytest.approx(later, rel=1e-9)
    assert problems_of(tmp_path / "run") == []


def test_an_abstraction_answers(written):
    path = written / "format1/abstraction"
    assert problems_of(path) == []
    assert Abstraction(path).bucket_of_text("AsKd", "Qs7h2d")["bucket"] == 2


# --- lcfr+ of format 1, whose averaging power was 2 ---


@pytest.fixture
def old(tmp_path):
    """Kuhn after 10 iterations of it."""
    return unpack("runs1", tmp_path) / "full-width"


def new_config(name):
    document = {"game": {"name": "kuhn"}, "solver": {"algorithm": "cfr", "variant": name}}
    settings = {"run": {"workers": 0, "iterations": 20}, "evaluation": {"every_checkpoint": False}}
    return config_from({**document, **settings}, "test")


def assert_tables(run, iterations):
    """The newest checkpoint holds what so many iterations leave behind, bit for bit."""
    cfr = VectorCfr(run.build_game(), variant("lcfr+quadratic"), "float64")
    cfr.iterate(iterations)
    assert_same_arrays(read_tables(find_checkpoint(run, None)), cfr.tables)


def test_a_run_of_version_1_keeps_its_averaging_power(old):
    run = open_run(old)
    assert run.config.solver.variant == "lcfr+quadratic"
    assert_tables(run, 10)
    trained(run, iterations=20)
    assert_tables(open_run(old), 20)
    assert evaluate_target(old, "exact")["iterations"] == 20
    assert load_config(old / "config.toml").solver.variant == "lcfr+"  # the file stays what version 1 wrote
    assert read_manifest(old / MANIFEST, "mccfr-run", 1)["identity"] == run.identity["run_identity"]


def test_a_run_of_version_1_goes_on_by_solve_under_its_new_name_only(old):
    run, game = start_run(new_config("lcfr+quadratic"), Path(), old, Terms(Silent()))
    train(run, game, Silent())
    assert_tables(open_run(old), 20)
    with pytest.raises(ValueError, match=r"solver\.variant = 'lcfr\+quadratic' there and 'lcfr\+' here"):
        start_run(new_config("lcfr+"), Path(), old, Terms(Silent()))
