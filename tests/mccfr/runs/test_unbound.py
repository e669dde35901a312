"""What was written while manifests could not tell chunks apart loads and goes on; `verify` says what it cannot see.

`tests/data/formats/unbound.tar.xz`: runs of format version 2 with checkpoints of versions 1 (zarr, hdf5) and 2 (whole
blocks, out of core), an abstraction of a small deck with a run on it, a policy and networks.
"""

import shutil

import msgspec
import pytest
from archives import unpack
from manifests import forge
from refusals import refused
from sessions import Listener
from small_games import small_recipe
from swapping import swaps

from abstraction.buckets import Abstraction
from abstraction.build import Builder
from mccfr.runs.directory import run as rundir
from mccfr.runs.directory.verification import problems_of
from mccfr.runs.reporter import Silent
from mccfr.runs.session.session import train
from mccfr.runs.session.start import Terms, prepare_run
from storage.checkpoint import open_checkpoint


@pytest.fixture(scope="module")
def unbound(tmp_path_factory):
    return unpack("unbound", tmp_path_factory.mktemp("unbound"))


def test_verify_says_what_it_cannot_see_of_a_swapped_chunk(unbound):
    """A chunk of another checkpoint passes: nothing can be done about what was not written down, but to say so."""
    root, heard, found = unbound / "leduc-zarr/checkpoints", Listener(), 0
    for name in swaps(root / "000002/tables.zarr", root / "000001/tables.zarr"):
        found += 1
        assert problems_of(root / "000002", heard) == [], name
    assert found and all("cannot tell a chunk of a table from another" in text for text in heard.told)


@pytest.mark.parametrize("name", ["bucketed", "leduc-zarr", "leduc-hdf5", "leduc-turns"])
def test_it_goes_on_and_binds_from_then_on(unbound, tmp_path, name):
    shutil.copytree(unbound / name, tmp_path / name)
    place = unbound / "abstraction" if name == "bucketed" else None
    run, heard = rundir.open_run(tmp_path / name, place), Listener()
    more = {"nodes": None, "iterations": 2_000_000} if name == "leduc-turns" else {"nodes": 40_000}
    run = rundir.with_settings(run, run=msgspec.structs.replace(run.config.run, **more), export=None)
    _, game = prepare_run(run, Terms(heard))
    assert sum("by a hash of an older version" in text for text in heard.told) == (name == "bucketed")
    number = train(run, game, Silent()).checkpoint
    assert problems_of(tmp_path / name, abstraction=place) == []
    assert open_checkpoint(tmp_path / name / f"checkpoints/{number:06d}").unseen is None


def test_an_abstraction_is_its_cells_whoever_has_built_it(unbound, tmp_path):
    """Old and new stages of one recipe have other manifests, and are the same abstraction; with other cells another."""
    old, places = Abstraction(unbound / "abstraction"), []
    for buckets in (3, 2):
        places.append(tmp_path / str(buckets))
        Builder(small_recipe(tmp_path / "small.toml", buckets=buckets), places[-1]).build()
    same, other = map(Abstraction, places)
    assert same.content_hashes() == old.content_hashes()
    assert same.manifest_hashes() != old.manifest_hashes()
    assert same.content_hashes()["flop"] != other.content_hashes()["flop"]
    assert same.content_hashes()["preflop"] == other.content_hashes()["preflop"]
    heard = Listener()
    assert problems_of(unbound / "abstraction", heard) == problems_of(places[0], heard) == []
    assert len(heard.told) == 2 and all("cannot tell a chunk" in text for text in heard.told)  # of the old one's stages
    with pytest.raises(ValueError, match=r"is the abstraction \w+, and .* was trained on \w+"):
        rundir.open_run(unbound / "bucketed", places[0])  # the old hash cannot be had of other manifests


def test_a_stage_that_states_other_cells_is_damaged(tmp_path):
    Builder(small_recipe(tmp_path / "small.toml"), tmp_path / "built").build()
    assert problems_of(tmp_path / "built") == []
    stage = tmp_path / "built/flop/000000"
    state = (stage / "state.json").read_text()
    first = Abstraction(tmp_path / "built").stages["flop"].state["cells"]["bucket"]
    (stage / "state.json").write_text(state.replace(first, first[::-1]))
    forge(stage)
    assert "holds other cells than state.json states" in problems_of(tmp_path / "built")[0]
    refused("holds other cells", Abstraction(tmp_path / "built").table, "flop")
