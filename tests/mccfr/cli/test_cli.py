"""The command line: exit status, error messages, JSON output, the steps from solve to query."""

import errno
import json
import os
import resource
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import click
import h5py
import pytest
import zarr
from commands import answer, call, command, refusal, refusing
from places import RUNS
from refusals import refusals
from small_games import small_recipe

from abstraction import build
from mccfr.cli import progress_display as progress_module
from mccfr.cli.progress_display import PlainReporter
from mccfr.cli.shared_options import Duration
from mccfr.config.toml_files import config_from
from mccfr.runs.directory.run import LOCK, lock, open_run
from mccfr.runs.directory.run_status import run_list, run_status
from mccfr.runs.reporter import EVALUATING, TRAINING
from storage import free_space
from storage.run_lock import RunLock


@pytest.fixture
def kuhn(tmp_path):
    """A config in an otherwise empty directory."""
    path = tmp_path / "kuhn.toml"
    path.write_text('[game]\nname = "kuhn"\n[run]\nworkers = 0\niterations = 2000\n')
    return path


def refused(capsys, tmp_path, *arguments):
    """Return the one sentence of a refusal; check that no file was created."""
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


def test_games_describes_one_game(capsys):
    code, out, _ = call(capsys, "games", "leduc")
    assert code == 0 and out.startswith("leduc  ") and "    ranks = (none)\n" in out and "kuhn" not in out
    assert [game["name"] for game in answer(capsys, "games", "leduc")] == ["leduc"]
    required = [game["required"] for name in ("matrix", "holdem-subgame") for game in answer(capsys, "games", name)]
    assert required == [["payoffs"], []]
    assert "    locks = (none)\n" in call(capsys, "games", "holdem").out
    assert "    payoffs = (required)\n" in call(capsys, "games", "matrix").out
    message = refusal(capsys, "games", "ledcu")
    assert "game 'ledcu' is not one of: kuhn, leduc" in message and message.endswith("did you mean 'leduc'?\n")


def test_games_prints_the_counts_of_its_examples(capsys):
    found = {game["name"]: game["counts"] for game in answer(capsys, "games") if game["counts"]}
    keys = ("nodes", "decision_nodes", "infosets")
    assert {name: tuple(counts[key] for key in keys) for name, counts in found.items()} == COUNTS


def test_paths_that_are_no_runs(capsys, tmp_path):
    out = tmp_path / "out"
    for verb, *more in (["status"], ["resume"], ["evaluate"], ["verify"], ["export", out], ["query", ""]):
        assert str(tmp_path / "absent") in refused(capsys, tmp_path, verb, tmp_path / "absent", *more)


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
def test_a_failed_write_names_its_output(capsys, tmp_path, kuhn, form):
    run, out = tmp_path / "run", tmp_path / "out"
    call(capsys, "solve", kuhn, "--run", run)
    for arguments in (("export", run, out, "--format", form), ("solve", kuhn, "--run", out), ("init", out)):
        with files_of_at_most(10):
            code, _, err = call(capsys, *arguments)
        assert code == 1 and err.count("\n") == 1 and str(tmp_path) in err and "out" in err, err
        assert [path.name for path in out.rglob("*") if path.is_file()] == []


@pytest.mark.parametrize(("error", "status"), [(KeyboardInterrupt(), 130), (EOFError(), 1)])
def test_the_end_of_the_input_is_not_handled_as_a_signal(capsys, monkeypatch, error, status):
    """click raises one exception for both. A scheduler restarts commands that end with status 75."""

    def fail(name):
        raise error

    monkeypatch.setattr("mccfr.games.registry.catalogue", fail)
    ended = call(capsys, "games")
    assert ended.status == status and ("the input ended too soon" in ended.err) is (status == 1)


@pytest.mark.parametrize("is_examined", [True, False])
def test_a_permission_error_is_bad_input_only_outside_of_an_artefact(tmp_path, capsys, monkeypatch, is_examined):
    """Test an abstraction without a finished street, also if its files cannot be examined."""
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
    """A command that trains first looks for a run at the path."""
    stat = Path.stat

    def failing(path, **how):
        if path == tmp_path:
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return stat(path, **how)

    monkeypatch.setattr(Path, "stat", failing)
    ended = call(capsys, "cluster", "local", tmp_path)
    message = f"mccfr: {tmp_path}: Permission denied: nothing was changed; run the command again\n"
    assert (ended.status, ended.err) == (1, message)


# --- suggestions, hints, next steps, phases, lists of runs, completion ---


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """A folder with two short runs, a run whose configuration is damaged, and an empty folder."""
    folder = tmp_path_factory.mktemp("runs")
    for name, form in (("one", "zarr"), ("two", "hdf5"), ("worse", "zarr")):
        solve = "solve", RUNS / "kuhn.toml", "--run", folder / name, "--iterations", 300
        assert command(*solve, "--set", f"tables.format={form}") == 0
    (folder / "worse" / "config.toml").write_text('[game]\nname = "kuhn"\n[run]\nworkers = -1\n')
    (folder / "else").mkdir()
    return folder


TIMES = {"90": 90, "0.5s": 0.5, "7d": 604800, "5min": 300, "10m": 600, "1.5h": 5400, "2h30m": 9000, "1 h 30 min": 5400}


@pytest.mark.parametrize("text", TIMES)
def test_times_with_units_are_parsed(text):
    assert Duration().convert(text, None, None) == TIMES[text]


test_invalid_times_are_refused = refusals(
    *(
        ("is not a length of time; write 90, 90s, 5min", Duration().convert, text, None, None)
        for text in ("", "h", "5x", "-1", "1e3s", "5 min ago", "1:30", "nan")
    ),
    error=click.BadParameter,
)


test_errors_for_misspelt_keys_and_names_suggest_the_closest = refusals(
    *(
        (rf"^x: .*did you mean '{meant}'\?$", config_from, {"game": {"name": "kuhn"}, **document}, "x")
        for meant, document in (
            ("game", {"gane": {}}),
            ("kuhn", {"game": {"name": "kunh"}}),
            ("ranks", {"game": {"name": "leduc", "rank": 4}}),
            ("external-sampling", {"solver": {"algorithm": "external_sampling"}}),
            ("linear", {"solver": {"discount": "linaer"}}),
            ("simultaneous", {"solver": {"algorithm": "cfr", "updates": "simultanious"}}),
            ("iterations", {"run": {"iteration": 7}}),
            ("exact", {"evaluation": {"method": "exakt"}}),
        )
    )
)


test_usage_mistakes_are_one_sentence_that_begins_with_the_error = refusals(
    ("solve", ["sovle"]),
    ("^mccfr: No such command 'frobnicate'. See: mccfr --help", ["frobnicate"]),
    ("^mccfr: Missing argument 'CONFIG'. See: mccfr solve --help", ["solve"]),
    ("^mccfr: Invalid value for '--every': 'soon' is not a length of time; ", ["status", "x", "--every", "soon"]),
    (
        "^mccfr: Invalid value for 'PORT': 0 is not in the range 1<=x<=65535. See: mccfr bot ",
        ["bot", "acpc", "x", "y", "0"],
    ),
    ("^mccfr: No such option", ["query", "x", "", "--hnad"]),
    call=refusing,
)


def test_query_answers_alike_for_a_run_and_its_policy(capsys, runs, tmp_path):
    assert command("export", runs / "one", tmp_path / "policy") == 0
    of_run, exported = (
        answer(capsys, "query", path, "cb", "--hand", "Q") for path in (runs / "one", tmp_path / "policy")
    )
    for one, other in zip(of_run["actions"], exported["actions"], strict=True):
        assert one["action"] == other["action"] and abs(one["probability"] - other["probability"]) < 1e-4
    assert "has no checkpoint 7: give one of 1" in refusal(capsys, "query", runs / "one", "", "--checkpoint", 7)
    assert "leave --checkpoint out" in refusal(capsys, "query", tmp_path / "policy", "", "--checkpoint", 1)


def test_export_prints_its_size_and_the_next_command(capsys, runs, tmp_path):
    _, _, err = call(capsys, "export", runs / "one", tmp_path / "policy")
    size = sum(path.stat().st_size for path in (tmp_path / "policy").iterdir())
    wrote, states = err.splitlines()
    assert wrote == f'wrote {tmp_path / "policy"}, {size / 1000:.3g} kB; next: mccfr query {tmp_path / "policy"} ""'
    assert states.startswith("it states: ") and states.endswith("license of the data: not stated")
    _, _, err = call(capsys, "export", runs / "one", tmp_path / "rows.csv", "--format", "csv")
    assert err.startswith(f"wrote {tmp_path / 'rows.csv'}, ") and "next" not in err
    _, _, err = call(capsys, "export", runs / "one", tmp_path / "t.zarr", "--format", "zarr")
    assert f'next: zarr.open("{tmp_path / "t.zarr"}")' in err


def test_status_of_a_folder_prints_a_table_of_its_runs(capsys, runs):
    code, out, err = call(capsys, "status", runs)
    lines = out.splitlines()
    assert code == 1 and err == f"mccfr: {runs}: worse cannot be read: the status above says why\n"
    assert len(lines) == 4 and lines[0].split()[:3] == ["run", "game", "algorithm"]
    assert lines[1].startswith("one ") and "finished" in lines[1] and "exploitability" in lines[1]
    assert lines[3].startswith("worse ") and "unreadable" in lines[3] and "run.workers = -1" in lines[3]
    code, out, _ = call(capsys, "status", runs, "--json")
    rows = json.loads(out)
    assert code == 1 and [row["run"] for row in rows] == ["one", "two", "worse"]
    assert rows[0]["game"] == "kuhn" and rows[0]["iterations"] == 300 and set(rows[2]) == {"run", "problem"}
    assert "is not a run directory" in refusal(capsys, "status", runs / "else")


def test_status_names_the_phase_while_a_process_works_on_the_run(runs, capsys):
    run = open_run(runs / "one")
    assert run_status(run)["phase"] is None
    with lock(run) as held:
        held.lock.note("evaluating board 120 of 1,000")
        assert run_status(run)["phase"] == "evaluating board 120 of 1,000"
        assert "state        running: evaluating board 120 of 1,000" in call(capsys, "status", runs / "one")[1]
        assert run_list(runs)[0]["phase"] == "evaluating board 120 of 1,000"
        assert "evaluating board 120 of 1,000" in call(capsys, "status", runs)[1]
    assert run_status(run)["phase"] is None


def test_watch_prints_until_no_process_works_on_the_run(runs, capsys, monkeypatch):
    run = open_run(runs / "one")
    held, steps = RunLock(run.path(LOCK)), []

    def sleep(seconds):
        steps.append(seconds)
        if len(steps) < 3:
            held.note(f"evaluating board {len(steps)} of 3")
        else:
            held.release()

    held.acquire()
    monkeypatch.setattr("mccfr.cli.status_commands.time.sleep", sleep)
    code, out, _ = call(capsys, "status", runs / "one", "--watch", "--every", "5s")
    states = [line.removeprefix("state").strip() for line in out.splitlines() if line.startswith("state")]
    assert code == 0 and steps == [5, 5, 5]
    assert states == ["running", "running: evaluating board 1 of 3", "running: evaluating board 2 of 3", "finished"]


def test_checkpoints_describe_their_axes(runs):
    group = zarr.open_group(runs / "one" / "checkpoints" / "000001" / "tables.zarr", mode="r")
    assert group.attrs["slots"] == {"street0/player0": 4, "street0/player1": 4}
    assert group.attrs["rows"] == {"street0/player0": 2, "street0/player1": 2}
    assert "one action of one decision" in group.attrs["slot"]
    assert group["regret/street0/player0"].metadata.dimension_names == ("bucket", "slot")
    with h5py.File(runs / "two" / "checkpoints" / "000001" / "tables.h5") as file:
        assert json.loads(file.attrs["slots"]) == group.attrs["slots"]
        assert file.attrs["slot"] == group.attrs["slot"]


def test_counts_of_a_phase_are_printed_every_ten_seconds_at_most(monkeypatch, capsys):
    now = [0.0]
    monkeypatch.setattr(progress_module.time, "monotonic", lambda: now[0])
    plain = PlainReporter()
    for board in range(1, 100):
        plain.phase(f"{EVALUATING} board {board} of 100", board / 100)
        now[0] += 0.25
    plain.phase(TRAINING)
    plain.close()
    assert capsys.readouterr().err.splitlines() == [f"{EVALUATING} board {n} of 100" for n in (41, 81)]


def test_completion_knows_commands():
    environment = {**os.environ, "_MCCFR_COMPLETE": "bash_complete", "COMP_WORDS": "mccfr sol", "COMP_CWORD": "1"}
    program = "import sys; sys.argv[0] = 'mccfr'; from mccfr.cli import main; main()"
    done = subprocess.run([sys.executable, "-c", program], env=environment, check=False, capture_output=True, text=True)
    assert done.stdout == "plain,solve\n"
