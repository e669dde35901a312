"""Card abstractions of runs: builds do not replace them silently, and `verify` reads every file."""

import pytest
from commands import call
from manifests import flip, forge
from refusals import refused
from sessions import new_run
from small_games import small_recipe

from abstraction.buckets import Abstraction
from abstraction.build import Builder
from abstraction.recipe import load_recipe
from mccfr.runs.directory.run import open_run
from mccfr.runs.directory.verification import problems_of

RECIPE = "deck = {{ranks = 3, suits = 2, board_cards = [0, 1]}}\nflop = {{features = 'ehs', buckets = {buckets}}}\n"


@pytest.fixture
def folder(tmp_path, monkeypatch, capsys):
    """Change to a directory with a recipe, its abstraction, and a run on it in the folder `runs`."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "small.toml").write_text(RECIPE.format(buckets=3))
    assert call(capsys, "abstraction", "build", "small.toml").status == 0
    document = {"game": {"name": "leduc"}, "abstraction": {"path": str(tmp_path / "small")}, "run": {"workers": 0}}
    (tmp_path / "runs").mkdir()
    new_run(tmp_path / "runs/trained", document)
    return tmp_path


def test_buckets_of_another_recipe_are_replaced_only_with_replace(folder, capsys):
    before = (folder / "small/flop/000000/manifest.json").read_bytes()
    (folder / "small.toml").write_text(RECIPE.format(buckets=2))
    ended = call(capsys, "abstraction", "build", "small.toml")
    assert ended.status == 2
    assert (
        "small holds buckets of another recipe (flop.buckets = 3 there and 2 here), on which runs/trained was trained: "
        "choose another directory with --out, or replace them with --replace" in ended.err
    )
    assert (folder / "small/flop/000000/manifest.json").read_bytes() == before
    ended = call(capsys, "abstraction", "build", "small.toml", "--replace")
    assert ended.status == 0 and "runs/trained was trained: replacing them" in ended.err
    assert call(capsys, "abstraction", "build", "small.toml").err.endswith("all streets were built\n")
    assert "runs/trained was trained on" in call(capsys, "verify", "runs/trained").out


def test_verify_of_a_run_reads_every_file_of_its_abstraction(folder, capsys):
    assert call(capsys, "verify", "runs/trained").status == 0
    for file in sorted(path for path in (folder / "small").glob("*/0*/**/*") if path.is_file()):
        held = file.read_bytes()
        flip(file)
        ended = call(capsys, "verify", "runs/trained")
        assert ended.status == 1 and str(folder / "small") in ended.out + ended.err, file
        file.write_bytes(held)
    assert call(capsys, "verify", "runs/trained").status == 0


def test_verify_reads_the_checkpoints_of_a_run_without_its_abstraction(folder, capsys):
    assert call(capsys, "resume", "runs/trained", "--set", "run.iterations=20").status == 0
    (folder / "small").rename(folder / "moved")
    lacks = problems_of(folder / "runs/trained")
    assert len(lacks) == 1 and "small" in lacks[0] and "is not an abstraction" in lacks[0]
    flip(next((folder / "runs/trained/checkpoints").glob("0*/tables.zarr/regret/**/c/0/0")))
    found = problems_of(folder / "runs/trained")
    assert found[0] == lacks[0] and "regret" in found[1] and len(found) == 2
    assert call(capsys, "verify", "runs/trained").status == 1


def test_equal_abstractions_are_interchangeable_and_others_are_refused(folder, tmp_path):
    """A run opens with another build of the same bucket tables, and refuses different tables."""
    for name, buckets in (("same", 3), ("other", 2)):
        (tmp_path / f"{name}.toml").write_text(RECIPE.format(buckets=buckets))
        Builder(load_recipe(tmp_path / f"{name}.toml"), tmp_path / name).build()
    own, same, other = (Abstraction(folder / name).content_hashes() for name in ("small", "same", "other"))
    assert own == same and own["flop"] != other["flop"] and own["preflop"] == other["preflop"]
    assert open_run(folder / "runs/trained", folder / "same").abstraction_path == folder / "same"
    refused(r"is the abstraction \w+, and .* was trained on \w+", open_run, folder / "runs/trained", folder / "other")


def test_a_stage_whose_table_differs_from_its_state_file_is_reported_as_damaged(tmp_path):
    Builder(small_recipe(tmp_path / "small.toml"), tmp_path / "built").build()
    assert problems_of(tmp_path / "built") == []
    stage = tmp_path / "built/flop/000000"
    state = (stage / "state.json").read_text()
    first = Abstraction(tmp_path / "built").stages["flop"].state["cells"]["bucket"]
    (stage / "state.json").write_text(state.replace(first, first[::-1]))
    forge(stage)
    assert "holds other cells than state.json states" in problems_of(tmp_path / "built")[0]
    refused("holds other cells", Abstraction(tmp_path / "built").table, "flop")
