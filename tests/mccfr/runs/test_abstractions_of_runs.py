"""Abstractions that runs use: another recipe does not replace them unasked, and `verify` of a run reads all of them."""

import pytest
from commands import call
from manifests import flip
from sessions import new_run

RECIPE = "deck = {{ranks = 3, suits = 2, board_cards = [0, 1]}}\nflop = {{features = 'ehs', buckets = {buckets}}}\n"


@pytest.fixture
def folder(tmp_path, monkeypatch, capsys):
    """A current directory with a recipe, its abstraction, and a run on it in the folder of runs."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "small.toml").write_text(RECIPE.format(buckets=3))
    assert call(capsys, "abstraction", "build", "small.toml").status == 0
    document = {"game": {"name": "leduc"}, "abstraction": {"path": str(tmp_path / "small")}, "run": {"workers": 0}}
    (tmp_path / "runs").mkdir()
    new_run(tmp_path / "runs/trained", document)
    return tmp_path


def test_buckets_of_another_recipe_are_replaced_only_when_that_is_said(folder, capsys):
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
    assert call(capsys, "abstraction", "build", "small.toml").err.endswith("everything was there already\n")
    assert "runs/trained was trained on" in call(capsys, "verify", "runs/trained").out


def test_solve_does_not_replace_them_either(folder, capsys):
    (folder / "other.toml").write_text(RECIPE.format(buckets=2))
    (folder / "run.toml").write_text(
        '[game]\nname = "leduc"\n[abstraction]\npath = "small"\nrecipe = "other.toml"\n[run]\nworkers = 0\n'
    )
    ended = call(capsys, "solve", "run.toml", "--iterations", 1)
    assert ended.status == 2 and "small holds buckets of another recipe (flop.buckets = 3 there" in ended.err
    assert "mccfr abstraction build RECIPE --out DIR --replace" in ended.err and not (folder / "runs/run").exists()


def test_verify_of_a_run_reads_every_file_of_its_abstraction(folder, capsys):
    assert call(capsys, "verify", "runs/trained").status == 0
    for file in sorted(path for path in (folder / "small").glob("*/0*/**/*") if path.is_file()):
        held = file.read_bytes()
        flip(file)
        ended = call(capsys, "verify", "runs/trained")
        assert ended.status == 1 and str(folder / "small") in ended.out + ended.err, file
        file.write_bytes(held)
    assert call(capsys, "verify", "runs/trained").status == 0
