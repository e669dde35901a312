"""Starting runs: `solve` and `compare` train the same bits and refuse alike; simultaneous creation.

Shows:

* If several processes create one run at once, one succeeds and the others are refused
  (test_creating_a_run_twice_at_once_completes_the_first_and_refuses_the_second,
  test_three_simultaneous_creations_of_a_run_make_one_complete_run)
* `solve` and `compare` of one configuration give the same bits
  (test_solve_and_compare_of_one_configuration_give_the_same_bits)
"""

import shutil
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from commands import call, refusal
from places import RUNS
from refusals import refused
from sessions import assert_same_tables, content, go, make

from mccfr.runs.directory import run as rundir
from mccfr.runs.directory.run import open_run
from storage import free_space

SOLVERS = {
    "external": 'discount = "linear"\nperiod_nodes = 5_000',
    "outcome": 'algorithm = "outcome-sampling"\ndiscount = "dcfr"\nperiod_nodes = 2_000',
    "public chance": 'algorithm = "public-chance-sampling"',
    "public chance, given period": 'algorithm = "public-chance-sampling"\nperiod_nodes = 1_500',
    "full width": 'algorithm = "cfr"\nvariant = "dcfr"',
    "full width, pruned": 'algorithm = "cfr"\npruning = "partial"',
}
ABSENT = f'[abstraction]\npath = "absent"\nrecipe = "{RUNS / "abstractions/quick.toml"}"\n'
RIVER = f'[game]\nname = "holdem-subgame"\nfile = "{RUNS / "games/river.txt"}"\n'


def configurations(tmp_path, text, iterations=300):
    """Write one configuration for both commands: a file for `solve`, and one for `compare`."""
    solved, compared = tmp_path / "solve.toml", tmp_path / "compare.toml"
    solved.write_text(f"{text}[run]\nworkers = 0\niterations = {iterations}\n")
    compared.write_text(f'[compare]\nbase = "solve.toml"\nat = [{iterations}]\n')
    return solved, compared


def command_lines(solved, compared, out):
    return {"solve": ("solve", solved, "--run", out), "compare": ("compare", compared, out)}


@pytest.mark.parametrize("solver", SOLVERS.values(), ids=SOLVERS)
def test_solve_and_compare_of_one_configuration_give_the_same_bits(capsys, tmp_path, solver):
    solved, compared = configurations(tmp_path, f'[game]\nname = "leduc"\n[solver]\nseed = 0\n{solver}\n')
    assert call(capsys, "solve", solved, "--run", tmp_path / "run").status == 0
    assert call(capsys, "compare", compared, tmp_path / "out").status == 0
    one, other = (open_run(tmp_path / name) for name in ("run", "out/runs/run-0"))
    assert_same_tables(one, other)
    assert all(table.any() for table in content(one)[0].values())
    assert one.identity == other.identity


@pytest.mark.parametrize(("lack", "amount"), [("available_memory_bytes", "1.23 kB"), ("free_bytes", "1,234 bytes")])
def test_too_little_memory_or_disk_is_refused_before_anything_is_written(capsys, tmp_path, monkeypatch, lack, amount):
    solved, compared = configurations(tmp_path, '[game]\nname = "leduc"\n')
    before = sorted(tmp_path.iterdir())
    monkeypatch.setattr(free_space, lack, lambda *_: 1234)
    errors = []
    for arguments in command_lines(solved, compared, tmp_path / "made").values():
        errors.append(refusal(capsys, *arguments))
        assert amount in errors[-1] and "--force" in errors[-1]
        assert sorted(tmp_path.iterdir()) == before
    if lack == "available_memory_bytes":
        assert errors[0].removeprefix("mccfr: ") in errors[1]


def test_compare_continues_with_force_although_disk_is_short(capsys, tmp_path, monkeypatch):
    _, compared = configurations(tmp_path, '[game]\nname = "kuhn"\n', iterations=3)
    monkeypatch.setattr(free_space, "free_bytes", lambda *_: 10**6)
    settings = ("--set", "run.checkpoint_seconds=3", "--set", 'tables.live_dir="auto"')
    monkeypatch.setattr("mccfr.runs.session.run_plan.disk_bytes", lambda *_: 10**9)
    assert call(capsys, "compare", compared, tmp_path / "out", *settings).status == 2
    code, _, err = call(capsys, "compare", compared, tmp_path / "out", *settings, "--force")
    assert code == 0 and "going on, as --force says, although" in err and "1,000,000 bytes free" in err
    monkeypatch.setattr("mccfr.runs.session.run_plan.disk_bytes", lambda *_: 10**10)
    assert call(capsys, "compare", compared, tmp_path / "out").status == 0  # finished runs need no disk space


def test_solve_and_compare_report_unusual_settings(capsys, tmp_path):
    text = '[game]\nname = "kuhn"\n[solver]\nalgorithm = "cfr"\nvariant = "dcfr"\nbeta = 2.0\n'
    solved, compared = configurations(tmp_path, text, iterations=3)
    for arguments in command_lines(solved, compared, tmp_path / "out").values():
        ended = call(capsys, *arguments)
        assert ended.status == 0 and "solver.beta = 2.0 is above alpha = 1.5" in ended.err
        shutil.rmtree(tmp_path / "out")


@pytest.mark.parametrize("command", ["solve", "compare"])
def test_solve_and_compare_build_an_absent_abstraction_from_its_recipe(capsys, tmp_path, monkeypatch, command):
    """A fake builder records its arguments and stops, because a real build takes minutes."""
    builds = []

    class Builder:
        def __init__(self, recipe, out, workers, progress):
            self.given = recipe.river.buckets, out, workers, callable(progress)

        def check(self):
            pass

        def build(self):
            builds.append(self.given)
            raise ValueError("no further")

    monkeypatch.setattr("abstraction.build.Builder", Builder)
    arguments = command_lines(*configurations(tmp_path, RIVER + ABSENT), tmp_path / "out")[command]
    assert "no further" in refusal(capsys, *arguments)
    assert builds == [(builds[0][0], tmp_path / "absent", 1, True)]
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("command", ["solve", "compare"])
def test_solve_and_compare_name_the_build_command_of_an_absent_abstraction(capsys, tmp_path, command):
    files = configurations(tmp_path, RIVER + '[abstraction]\npath = "absent"\n')
    arguments = command_lines(*files, tmp_path / "out")[command]
    assert "build it with mccfr abstraction build" in refusal(capsys, *arguments)
    assert not (tmp_path / "out").exists()


# --- processes that create one run at once ---


def test_creating_a_run_twice_at_once_completes_the_first_and_refuses_the_second(tmp_path, monkeypatch):
    write, refused = rundir._write_run, []

    def write_while_another_begins(*arguments):
        monkeypatch.setattr(rundir, "_write_run", write)
        with pytest.raises(BlockingIOError, match="run is being created by another process: wait for it") as error:
            make(tmp_path / "run")
        refused.append(error)
        write(*arguments)

    monkeypatch.setattr(rundir, "_write_run", write_while_another_begins)
    run = make(tmp_path / "run")
    assert refused and [path.name for path in tmp_path.iterdir()] == ["run"]
    assert go(run, nodes=1_000).checkpoint == 1


def test_three_simultaneous_creations_of_a_run_make_one_complete_run(tmp_path):
    for attempt in range(5):
        place, ready = tmp_path / str(attempt), threading.Barrier(3)
        with ThreadPoolExecutor(3) as pool:
            found = list(pool.map(lambda _, at=place, ready=ready: error_of_creation(at, ready), range(3)))
        assert found.count(None) == 1
        assert all("run is being created by another process" in str(error) for error in found if error is not None)
        assert [path.name for path in place.iterdir()] == ["run"]
        assert go(open_run(place / "run"), nodes=100).totals.nodes >= 100


def test_a_run_that_appears_during_creation_is_reported_as_another_process(tmp_path, monkeypatch):
    """Another process completes the run right after this one has found no run."""
    make(tmp_path / "other")
    look = rundir.is_run

    def look_before_the_run_is_there(directory):
        found = look(directory)
        if (tmp_path / "other").exists():
            (tmp_path / "other").rename(tmp_path / "run")
        return found

    monkeypatch.setattr(rundir, "is_run", look_before_the_run_is_there)
    refused("run is being created by another process", make, tmp_path / "run", error=BlockingIOError)


def error_of_creation(place, ready):
    """Create a run when all threads are ready; return the error, or None if it is created."""
    ready.wait()
    try:
        make(place / "run")
    except (OSError, ValueError) as error:
        return error
    return None


def test_files_of_a_process_that_died_while_creating_a_run_are_replaced(tmp_path):
    left = tmp_path / ".tmp-run"
    (left / "inputs").mkdir(parents=True)
    (left / "inputs" / "game.txt").write_text("half a ga")
    (left / "run.lock").write_text("1\n")
    run = make(tmp_path / "run")
    assert not left.exists() and not run.path("inputs").exists()
