"""Output paths of users: commands overwrite their own outputs only and leave other files unchanged."""

import os
import shutil
from pathlib import Path

import pytest
from acpc import free_port
from commands import call, refusal
from failing import failing
from places import RUNS
from sessions import make, trained

from abstraction.build import Builder
from abstraction.recipe import load_recipe
from mccfr.experiments.experiment_runs import check_out
from storage.atomic_outputs import begins_with, check_output, output

DEALER = ("dealer", "--with", "always-call", "--with", "odd-size", "--names", "A,B", "--hands", 4)
BOT = ("bot", "acpc", "always-call", "127.0.0.1")


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    finished = trained(make(tmp_path_factory.mktemp("run") / "run", {"algorithm": "cfr"}, "kuhn"), iterations=3)
    return finished.directory


def writers(run, path):
    """Return command lines that write to a path, by name."""
    return {
        "dealer --log": (*DEALER, "--log", path),
        "dealer --phhs": (*DEALER, "--phhs", path),
        "bot --log": (*BOT, free_port(), "--patience", "0s", "--log", path),
        "evaluate --keep": ("evaluate", run, "--method", "lbr", "--hands", 100, "--workers", 1, "--keep", path),
        "match --keep": ("match", run, "always-call", "--hands", 200, "--keep", path),
        "review --keep": ("review", run, "--policy", run, "--keep", path),
        "export": ("export", run, path, "--replace"),
        "export csv": ("export", run, path, "--format", "csv", "--replace"),
        "export zarr": ("export", run, path, "--format", "zarr", "--replace"),
        "export openspiel": ("export", run, path, "--format", "openspiel", "--replace"),
        "export hdf5": ("export", run, path, "--format", "hdf5", "--replace"),
    }


def text_file(path):
    path.write_text("letter")


def binary(path):
    path.write_bytes(bytes(range(256)) * 9 + b"\n\x00\xff")


def directory(path):
    path.mkdir()
    (path / "letter").write_text("letter")


def link(path):
    text_file(path.with_name("beside"))
    path.symlink_to("beside")


def dangling(path):
    path.symlink_to("nothing")


def pipe(path):
    os.mkfifo(path)


KINDS = (text_file, binary, directory, link, dangling, pipe)


def state(folder):
    """Return the modes, inodes, times of change, bytes and link targets in a folder."""
    found = {}
    for path in sorted(folder.rglob("*")):
        facts = path.lstat()
        held = path.read_bytes() if path.is_file() and not path.is_symlink() else None
        found[path] = facts.st_mode, facts.st_ino, facts.st_mtime_ns, held, path.is_symlink() and path.readlink()
    return found


@pytest.mark.parametrize("name", writers(Path(), Path()))
def test_files_that_no_command_wrote_are_refused_and_stay_unchanged(capsys, run, tmp_path, name):
    for kind in KINDS:
        folder = tmp_path / kind.__name__
        folder.mkdir()
        path = folder / "mine"
        kind(path)
        before = state(folder)
        ended = call(capsys, *writers(run, path)[name])
        assert ended.status == 2 and str(path) in ended.err.splitlines()[-1], (kind.__name__, ended)
        assert "another name" in ended.err and state(folder) == before, kind.__name__


@pytest.mark.parametrize("name", sorted(writers(Path(), Path())))
def test_a_failing_command_leaves_no_files_of_its_own(capsys, run, tmp_path, name):
    for at in (1, 2, 3, 5):
        path = tmp_path / "new" / "mine" if name.startswith("export") else tmp_path / "mine"
        with failing(at):
            ended = call(capsys, *writers(run, path)[name])
        if ended.status == 0:  # nothing had failed
            break
        assert list(tmp_path.iterdir()) == [], (at, ended)


def test_an_abstraction_that_cannot_be_built_leaves_no_folder(capsys, tmp_path, monkeypatch):
    monkeypatch.setattr("abstraction.build.available_memory_bytes", lambda: 0)
    ended = call(capsys, "abstraction", "build", RUNS / "abstractions" / "standard.toml", "--out", tmp_path / "a" / "b")
    assert ended.status and "memory" in ended.err, ended
    assert list(tmp_path.iterdir()) == []


def test_own_outputs_and_empty_files_are_replaced(capsys, run, tmp_path):
    path = tmp_path / "mine"
    path.touch()
    for _ in range(2):
        assert call(capsys, *DEALER, "--phhs", path).status == 0
        assert path.stat().st_size > 100
    assert [entry.name for entry in tmp_path.iterdir()] == ["mine"]


def test_devices_are_not_written_to(capsys):
    """Standard output and error are links. A command that renames its output would replace /dev/null."""
    for name in ("/dev/null", "/dev/stdout", "/dev/stderr"):
        before = Path(name).lstat().st_ino, Path(name).lstat().st_mode
        for option in ("--log", "--phhs"):
            assert f"{name} is a link, a device or a pipe" in refusal(capsys, *DEALER, option, name)
        assert (Path(name).lstat().st_ino, Path(name).lstat().st_mode) == before


def test_a_bot_without_a_server_leaves_a_users_file_unchanged(capsys, tmp_path):
    """Refuse logs and hand histories before any hand is played."""
    for name in ("letter", "letter.phhs"):
        path = tmp_path / name
        path.write_text("letter")
        message = refusal(capsys, *BOT, free_port(), "--patience", "0s", "--log", path)
        assert "not an earlier output" in message and path.read_text() == "letter"


def test_an_output_does_not_replace_an_output_of_another_kind(capsys, tmp_path):
    """A log does not replace a file of hands, nor a file of hands a log."""
    assert call(capsys, *DEALER, "--log", tmp_path / "log", "--phhs", tmp_path / "hands").status == 0
    before = state(tmp_path)
    assert call(capsys, *DEALER, "--log", tmp_path / "hands").status == 2
    assert call(capsys, *DEALER, "--phhs", tmp_path / "log").status == 2
    assert state(tmp_path) == before
    for path in ("log", "hands"):
        with pytest.raises(FileExistsError):
            check_output(tmp_path / path, begins_with(b"mccfr units"))


def test_a_path_for_both_log_and_hands_is_refused_and_keeps_the_log(capsys, tmp_path):
    path = tmp_path / "both"
    assert call(capsys, *DEALER, "--log", path, "--phhs", path).status == 2
    assert path.read_text().count("\nSTATE:") == 4


# --- directories ---


def test_tensorboard_events_replace_only_events(capsys, run, tmp_path):
    out = tmp_path / "curves"
    assert call(capsys, "tensorboard", run, out).status == 0
    mine = next(out.rglob("events.out.*"))
    mine.write_bytes(b"letter")
    assert "not an earlier output" in refusal(capsys, "tensorboard", run, out) and mine.read_bytes() == b"letter"


def test_an_abstraction_is_not_built_into_a_folder_of_something_else(tmp_path):
    (tmp_path / "letter").write_text("letter")
    before = state(tmp_path)
    with pytest.raises(FileExistsError, match="not an earlier output"):
        Builder(load_recipe(RUNS / "abstractions/quick.toml"), tmp_path).build()
    assert state(tmp_path) == before


def test_an_experiment_replaces_only_an_experiment(run, tmp_path):
    """A folder named runs is not enough, nor is a file with the name of an output."""
    out = tmp_path / "out"
    check_out(out)
    shutil.copytree(run, out / "runs/first-1")
    check_out(out)
    (out / "plot.png").write_bytes(b"mine")
    with pytest.raises(FileExistsError):
        check_out(out)
    (out / "table.csv").write_text("variant,seed,point,iterations\n")
    check_out(out)
    (out / "runs/kuhn.toml").write_text("[game]\n")
    with pytest.raises(FileExistsError):
        check_out(out)


def test_an_empty_file_or_folder_is_replaced_by_the_other_kind(tmp_path):
    (tmp_path / "file").touch()
    (tmp_path / "folder").mkdir()
    with output(tmp_path / "file", lambda _: False) as temporary:
        temporary.mkdir()
    with output(tmp_path / "folder", lambda _: False) as temporary:
        temporary.write_text("x")
    assert (tmp_path / "file").is_dir() and (tmp_path / "folder").read_text() == "x"
