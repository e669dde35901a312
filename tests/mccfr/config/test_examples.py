"""Examples: found by name, copied with their files, never written over users' files."""

from pathlib import Path

import pytest
from commands import call, refusal
from places import RUNS
from refusals import refusals, refused

import mccfr
from mccfr.config import examples
from mccfr.config.examples import EXAMPLES, EXPERIMENTS, copy_of_example, example_files, find_file


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def test_every_file_of_the_examples_is_shipped():
    """Compare copied examples with git's files below runs/, without the output of runs."""
    folders = (RUNS, *(RUNS / name for name in ("abstractions", "experiments", "games")))
    kinds = {path.suffix for path in example_files()}  # a user may have added other files
    there = {path.relative_to(RUNS) for folder in folders for path in folder.glob("*.*") if path.suffix in kinds}
    assert set(example_files()) == there and kinds >= {".toml", ".txt"}


def test_names_are_searched_in_the_current_folder_before_the_examples(tmp_path):
    assert find_file(Path("kuhn")) == EXAMPLES / "kuhn.toml"
    assert find_file(Path("leduc-discounts"), EXPERIMENTS) == EXAMPLES / "experiments" / "leduc-discounts.toml"
    assert find_file(Path("quick"), examples.RECIPES) == EXAMPLES / "abstractions" / "quick.toml"
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "kuhn.toml").write_text("mine")
    assert find_file(Path("kuhn")) == Path("runs/kuhn.toml")
    (tmp_path / "kuhn").write_text("a file of that very name")
    assert find_file(Path("kuhn")) == Path("kuhn")


test_unknown_names_are_refused_with_suggestions = refusals(
    (r"^hunl-quik: no such file, and no example of that name; did you mean 'hunl-quick'\?", Path("hunl-quik")),
    ("^zzz: no such file, and no example of that name; there are deep-5-fhp", Path("zzz")),
    (r"^runs/leduk.toml: no such file; did you mean 'leduc'\?", Path("runs/leduk.toml")),
    ("^zzz.toml: no such file; mccfr init copies the examples to runs/", Path("zzz.toml")),
    call=find_file,
)


@pytest.mark.parametrize(
    ("name", "folder", "copied"),
    [
        ("kuhn", "", ["kuhn.toml"]),
        ("subgame", "", ["games/river.txt", "subgame.toml"]),
        ("hunl-quick", "", ["abstractions/quick.toml", "hunl-quick.toml"]),
        ("leduc-discounts", EXPERIMENTS, ["experiments/leduc-discounts.toml", "leduc.toml"]),
        ("endgame-variants", EXPERIMENTS, ["experiments/endgame-variants.toml", "games/river.txt"]),
    ],
)
def test_an_example_is_copied_with_the_files_that_it_names(tmp_path, name, folder, copied):
    with copy_of_example(find_file(Path(name), folder)) as (path, new):
        pass
    there = sorted(str(path.relative_to("runs")) for path in Path("runs").rglob("*") if path.is_file())
    assert new and path == Path("runs") / folder / f"{name}.toml" and there == copied
    assert all((Path("runs") / file).read_bytes() == (EXAMPLES / file).read_bytes() for file in copied)
    with copy_of_example(find_file(Path(name), folder)) as again:
        assert again == (path, False)


def leaving_no_file(line, capsys):
    message = refusal(capsys, *line.split())
    assert not list(Path().iterdir())
    raise ValueError(message.strip())


test_refused_commands_leave_no_files = refusals(
    ("unknown key 'x' in the top level", "solve kuhn --set x.y=1"),
    ("runs/nope: no such file; give a recipe", "solve hunl-quick --set abstraction.recipe=nope"),
    ("a deck of 400 ranks and 2 suits", "solve leduc --set game.ranks=400"),
    ("compare.x = 1: expected str, got int", "compare leduc-discounts out --set compare.x=1"),
    ("run.nodes = -1 is not allowed: it must be at least 0", "plan hunl-quick --machines 2 --set run.nodes=-1"),
    call=leaving_no_file,
)


def test_files_of_users_are_not_overwritten():
    Path("runs/abstractions").mkdir(parents=True)
    Path("runs/abstractions/quick.toml").write_text("seed = 7\n")
    opens = copy_of_example(find_file(Path("hunl-quick"))).__enter__
    refused(r"runs/abstractions/quick\.toml exists and is not the example", opens, error=FileExistsError)
    assert not Path("runs/hunl-quick.toml").exists()
    with pytest.raises(FileExistsError):
        examples.copy_examples(Path("runs"), example_files())
    assert [path.name for path in Path("runs").rglob("*") if path.is_file()] == ["quick.toml"]


def test_init_copies_all_examples_once(capsys):
    code, _, err = call(capsys, "init", "mine")
    assert code == 0 and f"mine: {len(example_files())} files; next: mccfr solve mine/leduc.toml" in err
    assert {path.relative_to("mine") for path in Path("mine").rglob("*") if path.is_file()} == set(example_files())
    assert "mine: 0 files" in call(capsys, "init", "mine").err


def test_plan_reads_an_example_in_place_and_solve_copies_it(capsys):
    assert call(capsys, "plan", "hunl-quick", "--speed", 3e7)[0] == 0
    assert not list(Path().iterdir())
    code, _, err = call(capsys, "solve", "kuhn", "--workers", "0", "--iterations", "100")
    assert code == 0 and "mccfr: copied the example to runs/kuhn.toml" in err
    assert Path("runs/kuhn/checkpoints/000001").is_dir()


def test_python_accepts_names_of_examples_and_solve_of_a_run_names_resume(capsys):
    run = mccfr.solve("kuhn", iterations=100, workers=0)
    assert run.directory == Path("runs/kuhn") and Path("runs/kuhn.toml").is_file()
    refused(r"did you mean 'kuhn'\?", mccfr.solve, "kunh")
    message = refusal(capsys, "solve", "runs/kuhn")
    assert message == "mccfr: runs/kuhn is a run already: continue it with mccfr resume runs/kuhn\n"
