"""The command line: exit status, error messages, JSON output, the steps from solve to query."""

import errno
import resource
from contextlib import contextmanager
from pathlib import Path

import pytest
from commands import answer, call, refusal
from small_games import small_recipe

from abstraction import build
from storage import free_space


@pytest.fixture
def kuhn(tmp_path):
    """A config in an otherwise empty directory."""
    path = tmp_path / "kuhn.toml"
    path.write_text('[game]\nname = "kuhn"\n[run]\nworkers = 0\niterations = 2000\n')
    return path


def refused(capsys, tmp_path, *arguments):
    """The one sentence of a refusal; nothing may have been created."""
    before = sorted(tmp_path.rglob("*"))
    err = refusal(capsys, *arguments)
    assert sorted(tmp_path.rglob("*")) == before
    return err


def test_checkpoints_verify_by_themselves_and_evaluate_points_to_their_run(capsys, tmp_path, kuhn):
    run = tmp_path / "run"
    call(capsys, "solve", kuhn, "--run", run)
    checkpoint = run / "checkpoints" / "000001"
    assert call(capsys, "verify", checkpoint)[0] == 0
    assert "give its run's directory and --checkpoint 1" in refusal(capsys, "evaluate", checkpoint)
    (checkpoint / "state.json").write_text("{}")
    code, out, _ = call(capsys, "verify", checkpoint)
    assert code == 1 and "state.json" in out


def test_another_config_in_the_same_directory_is_refused(capsys, tmp_path, kuhn):
    run = tmp_path / "run"
    call(capsys, "solve", kuhn, "--run", run)
    err = refused(capsys, tmp_path, "solve", kuhn, "--run", run, "--set", "solver.seed=1")
    assert "solver.seed = 0 there and 1 here" in err


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('[game]\nname = "kuhn"\nx = 1\n', "unknown key 'x' in game"),
        ('[game]\nname = "holdem-subgame"\nfile = "absent.txt"\n', "absent.txt"),
        ('[game]\nname = "poker"\n', "blinds or antes"),
    ],
)
def test_bad_configs_exit_2_and_touch_nothing(capsys, tmp_path, text, expected):
    path = tmp_path / "bad.toml"
    path.write_text(text)
    assert expected in refused(capsys, tmp_path, "solve", path, "--run", tmp_path / "run")
    assert expected in refused(capsys, tmp_path, "plan", path)


def test_a_full_live_dir_exits_2_with_both_numbers(capsys, tmp_path, kuhn, monkeypatch):
    monkeypatch.setattr(free_space, "free_bytes", lambda *_: 1234)
    (tmp_path / "live").mkdir()
    settings = ["--set", f"tables.live_dir={tmp_path / 'live'}"]
    assert "1,234 bytes free" in refused(capsys, tmp_path, "solve", kuhn, "--run", tmp_path / "run", *settings)
    settings = ["--set", f"tables.live_dir={tmp_path / 'absent'}"]
    assert "not a directory" in refused(capsys, tmp_path, "solve", kuhn, "--run", tmp_path / "run", *settings)


COUNTS = {  # nodes, decisions, infosets
    "kuhn": (9, 4, 12),
    "leduc": (85, 36, 936),
    "goofspiel": (26931, 12531, 8052),
    "matrix": (7, 3, 2),
    "poker": (377, 144, 3648),
    "akq": (5, 2, 6),
    "clairvoyance": (13, 6, 9),
    "flop-holdem": (162, 64, 72061704),
}


def test_games_tells_of_one_game(capsys):
    code, out, _ = call(capsys, "games", "leduc")
    assert code == 0 and out.startswith("leduc  ") and "    ranks = (none)\n" in out and "kuhn" not in out
    assert [game["name"] for game in answer(capsys, "games", "leduc")] == ["leduc"]
    assert [game["required"] for name in ("matrix", "holdem-subgame") for game in answer(capsys, "games", name)] == [
        ["payoffs"],
        [],
    ]
    assert "    locks = (none)\n" in call(capsys, "games", "holdem").out
    assert "    payoffs = (required)\n" in call(capsys, "games", "matrix").out
    told = refusal(capsys, "games", "ledcu")
    assert "game 'ledcu' is not one of: kuhn, leduc" in told and told.endswith("did you mean 'leduc'?\n")


def test_games_prints_the_counts_of_its_examples(capsys):
    found = {game["name"]: game["counts"] for game in answer(capsys, "games") if game["counts"]}
    keys = ("nodes", "decision_nodes", "infosets")
    assert {name: tuple(counts[key] for key in keys) for name, counts in found.items()} == COUNTS


def test_paths_that_are_no_runs(capsys, tmp_path):
    out = tmp_path / "out"
    for verb, *more in (["status"], ["resume"], ["evaluate"], ["verify"], ["export", out], ["query", ""]):
        assert "no" in refused(capsys, tmp_path, verb, tmp_path / "no", *more)


@pytest.mark.parametrize("verb", ["evaluate", "status", "solve", "verify"])
def test_a_name_that_no_file_can_have_is_bad_input(capsys, tmp_path, verb):
    (tmp_path / "round").symlink_to("round")
    for path in (tmp_path / ("x" * 300), tmp_path / "round" / "run"):
        refused(capsys, tmp_path, verb, path)


@contextmanager
def files_of_at_most(length):
    """Let writes beyond a number of bytes fail without a file's name, as on a full disk."""
    _, most = before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (length, most))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("form", ["policy", "csv", "zarr", "hdf5"])
def test_a_write_that_fails_names_what_was_to_be_written(capsys, tmp_path, kuhn, form):
    run, out = tmp_path / "run", tmp_path / "out"
    call(capsys, "solve", kuhn, "--run", run)
    for arguments in (("export", run, out, "--format", form), ("solve", kuhn, "--run", out), ("init", out)):
        with files_of_at_most(10):
            code, _, err = call(capsys, *arguments)
        assert code == 1 and err.count("\n") == 1 and str(tmp_path) in err and "out" in err, err
        assert [path.name for path in out.rglob("*") if path.is_file()] == []


@pytest.mark.parametrize(("error", "status"), [(KeyboardInterrupt(), 130), (EOFError(), 1)])
def test_input_that_ends_is_no_signal(capsys, monkeypatch, error, status):
    """click has one word for both, and a scheduler puts what ends with 75 into its queue again, for ever."""

    def fail(name):
        raise error

    monkeypatch.setattr("mccfr.games.registry.catalogue", fail)
    ended = call(capsys, "games")
    assert ended.status == status and ("the input ended too soon" in ended.err) is (status == 1)


@pytest.mark.parametrize("is_examined", [True, False])
def test_a_permission_error_is_bad_input_only_outside_of_an_artefact(tmp_path, capsys, monkeypatch, is_examined):
    """Also of an abstraction that has no street yet, and where the system cannot tell."""
    out, stat = tmp_path / "cards", Path.stat
    small_recipe(tmp_path / "cards.toml")

    def failing(path, **how):
        if out in path.parents:
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return stat(path, **how)

    def refusing(*_, **__):
        (out / "journal.jsonl").touch()
        if not is_examined:
            monkeypatch.setattr(Path, "stat", failing)
        raise PermissionError(errno.EACCES, "Permission denied", str(out / "journal.jsonl"))

    monkeypatch.setattr(build, "commit", refusing)
    ended = call(capsys, "abstraction", "build", tmp_path / "cards.toml")
    assert (ended.status, ended.err.splitlines()[-1]) == (1, f"mccfr: {out}/journal.jsonl: Permission denied")
    monkeypatch.undo()

    def unwritable(path, *_, **__):
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    monkeypatch.setattr(Path, "mkdir", unwritable)
    assert call(capsys, "abstraction", "build", tmp_path / "cards.toml", "--out", tmp_path / "other").status == 2


def test_a_place_that_cannot_be_examined_is_no_bad_input(tmp_path, capsys, monkeypatch):
    """Before a command that trains begins, it looks for a run."""
    stat = Path.stat

    def failing(path, **how):
        if path == tmp_path:
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return stat(path, **how)

    monkeypatch.setattr(Path, "stat", failing)
    ended = call(capsys, "cluster", "local", tmp_path)
    told = f"mccfr: {tmp_path}: Permission denied: nothing was changed; run the command again\n"
    assert (ended.status, ended.err) == (1, told)
