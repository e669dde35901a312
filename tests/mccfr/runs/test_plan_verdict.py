"""Verdicts of plans: impossible runs, runs that fit with remarks, and advice.

Shows:

* Plans find runs that cannot work, and their advice removes the reason
  (test_checkpoints_that_take_longer_than_their_interval_are_found, test_too_few_nodes_are_found,
  test_a_deadline_that_is_too_short_is_found)
* A plan names the reason of each of nineteen impossible runs (test_impossible_runs_are_named)
"""

import re
import shutil
from pathlib import Path

import pytest
from commands import answer, call, refusal
from manifests import flip

from mccfr.config.toml_files import load_config
from mccfr.runs.session.plan_verdict import FITS, FITS_BUT, verdict
from storage import free_space

LEDUC = '[game]\nname = "leduc"\nranks = 12\n[run]\nworkers = 0\n'


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write_config():
    Path("leduc.toml").write_text(LEDUC)
    return "leduc.toml"


def overrides(settings):
    return [part for each in settings for part in ("--set", each)]


def plan_verdict(capsys, *settings, options=()):
    """Return the exit status and first output line of a plan of Leduc with other keys."""
    ended = call(capsys, "plan", write_config(), "--speed", 3e7, *overrides(settings), *options)
    return ended.status, ended.out.splitlines()[0]


def plan_figures(capsys, *settings, options=()):
    """Return the plan of Leduc with other keys."""
    return answer(capsys, "plan", write_config(), "--speed", 3e7, *overrides(settings), *options)


def test_a_run_without_a_limit_fits_with_a_remark(capsys):
    assert plan_verdict(capsys) == (0, "fits, but the run has no limit: it trains until it is stopped")


def test_checkpoints_that_take_longer_than_their_interval_are_found(capsys):
    status, first = plan_verdict(capsys, "run.nodes=1e12", "run.checkpoint_seconds=1e-3")
    assert status == 1 and first.startswith("cannot work: a checkpoint of ")
    proposed = re.search(r"set (run\.checkpoint_seconds) = (\d+)$", first)
    assert plan_verdict(capsys, "run.nodes=1e12", f"{proposed[1]}={proposed[2]}") == (0, "fits")
    # A shorter run ends within the proposed interval, and would write no checkpoint.
    assert "make the tables smaller" in plan_verdict(capsys, "run.nodes=1e6", "run.checkpoint_seconds=1e-3")[1]


def test_uncompressed_checkpoints_are_proposed_where_they_are_fast_enough(capsys):
    plan = plan_figures(capsys, "run.nodes=1e6")
    between = (plan["checkpoint_seconds"] + plan["plain_checkpoint_seconds"]) / 2
    keys = "run.nodes=1e6", f"run.checkpoint_seconds={between}"
    status, first = plan_verdict(capsys, *keys)
    assert status == 1 and first.endswith('set tables.checkpoint_compression = "none"')
    assert plan_verdict(capsys, *keys, "tables.checkpoint_compression='none'") == (0, "fits")


def test_too_few_nodes_are_found(capsys):
    status, first = plan_verdict(capsys, "run.nodes=60")
    assert status == 1 and "visited 0.0" in first
    nodes = float(re.search(r"([\d.e+]+) nodes, which take", first)[1])
    assert plan_verdict(capsys, f"run.nodes={nodes * 1.05}") == (0, "fits")
    status, first = plan_verdict(capsys, f"run.nodes={nodes / 20}")
    assert status == 0 and first.startswith("fits, but an infoset is visited")


def test_a_deadline_is_planned(capsys):
    plan = plan_figures(capsys, "run.seconds=30")
    assert plan["seconds"] == pytest.approx(30) and plan["visits_per_infoset_per_street"] is not None
    both = plan_figures(capsys, "run.seconds=30", "run.nodes=3e7")
    assert both["seconds"] == pytest.approx(1)
    assert both["iterations"] == pytest.approx(plan["iterations"] / 30)


def test_too_little_disk_or_memory_has_the_message_of_solve(capsys, monkeypatch):
    real = free_space.free_bytes
    monkeypatch.setattr(free_space, "free_bytes", lambda path: real(path) if "shm" in str(path) else 5)
    status, first = plan_verdict(capsys, "run.nodes=1e8")
    message = first.removeprefix("cannot work: ")
    assert status == 1 and "5 bytes free" in message
    assert message in refusal(capsys, "solve", "leduc.toml", "--set", "run.nodes=1e8")
    monkeypatch.setattr(free_space, "free_bytes", real)
    monkeypatch.setattr(free_space, "available_memory_bytes", lambda *_: 1000)
    status, first = plan_verdict(capsys, "run.nodes=1e8")
    assert status == 1 and first.removeprefix("cannot work: ") in refusal(capsys, "solve", "leduc.toml")


def test_too_little_memory_for_a_copy_of_the_tables_is_a_remark(capsys):
    plan = plan_figures(capsys, "run.nodes=1e8", "run.workers=1")
    config = load_config(Path("leduc.toml"), ("run.nodes=1e8",))
    assert verdict(config, plan, []) == {"verdict": FITS, "reasons": []}
    found = verdict(config, plan | {"memory_available_bytes": plan["memory_bytes"] - 1}, [])
    assert found["verdict"] == FITS_BUT and found["reasons"][0].startswith("checkpoints and evaluations need")


@pytest.mark.parametrize("strata", [[], ["run.strata=6", "run.interval=16"]], ids=["tables shared", "strata"])
def test_a_deadline_that_is_too_short_is_found(capsys, strata):
    """Runs with the proposed workers, machines or nodes end in time; with one worker less they do not."""
    keys = ["run.nodes=1e10", "run.checkpoint_seconds=1e4", *strata]

    def within(*options):
        return plan_verdict(capsys, *keys, options=("--budget", "3min", *options))

    status, first = within("--workers", 1)
    assert status == 1 and re.match(r"cannot work: the run takes [567] min", first)
    of = r", or (\d) machines of 1" if strata else "()"
    workers, machines, nodes = re.search(rf"take (\d) workers{of}, or set run.nodes = ([\d.e+]+)$", first).groups()
    assert within("--workers", workers)[0] == 0 and within("--workers", int(workers) - 1)[0] == 1
    assert not strata or within("--workers", 1, "--machines", machines)[0] == 0
    if strata:  # with such short intervals, barriers take longer than training
        keys[-1] = "run.interval=1"
        assert "machines" not in within("--workers", 1)[1] and within("--workers", 1, "--machines", 6)[0] == 1
        keys[-1] = "run.interval=16"
    keys[0] = f"run.nodes={nodes}"
    assert within("--workers", 1)[0] == 0


def test_the_budget_is_the_limit_of_a_run_without_a_limit(capsys):
    plan = plan_figures(capsys, options=("--budget", "1h"))
    assert plan["seconds"] == pytest.approx(3600, rel=0.01) and plan["verdict"] == FITS
    assert plan["visits_tenth_percentile"] <= plan["visits_median"]


RECIPE = """
flop = {features = "histogram", buckets = 300}
turn = {features = "histogram", buckets = 300}
river = {features = "ochs", buckets = 300}
"""
NARROW = """
game = {name = "holdem", menu = {first = ['allin'], later = [], max_bets = 1}}
abstraction = {path = "buckets", recipe = "recipe.toml"}
solver = {negative_regret_pruning = false}
"""
STRATA = "--set", "run.strata=2"
ONCE = ("run.nodes=1e8",)
IMPOSSIBLE = [
    ("leduc", ("run.nodes=1e12", "run.checkpoint_seconds=1e-3"), (), 1, "a checkpoint of .* takes .* to write"),
    ("leduc", ("run.nodes=60",), (), 1, "an infoset is visited 0.0"),
    ("leduc", ("run.nodes=1e12",), ("--budget", "1h"), 1, "the run takes .* --budget is 1 h"),
    ("narrow", ("run.nodes=1e9",), ("--budget", "1s"), 1, "--budget is 1 s: build the abstraction before"),
    ("leduc", ONCE, ("--machines", 2), 2, "run.strata is not set"),
    ("leduc", (*ONCE, "run.strata=3"), ("--machines", 2, "--workers", 2), 2, "4 training processes, more than"),
    ("leduc", (*ONCE, "run.strata=4", "tables.memory_budget='50kB'"), (), 2, "two of the largest of 4 blocks"),
    ("leduc", (*ONCE, "run.strata=4", "tables.memory_budget='1MB'", "run.cycle_iterations=5"), (), 2, "at least"),
    ("leduc", ("solver.algorithm='cfr'", "run.strata=2"), (), 2, "draws no deals of one stratum"),
    ("leduc", ("run.strata=3", "solver.discount='dcfr'"), (), 2, "solver.discount = 'dcfr' is not .* 'none', "),
    ("leduc", ("run.strata=4", "run.blocks=2"), (), 2, "run.blocks = 2 is not .* unless tables.memory_budget is set"),
    ("leduc", ("tables.memory_budget='1MB'",), (), 2, "memory_budget = '1MB' is not .* unless run.strata shares the"),
    ("leduc", ("run.strata=1", "tables.memory_budget='1MB'"), (), 2, "run.strata = 1 is not .* at least 2 with"),
    ("leduc", ("export.out='leduc.toml'",), (), 2, "leduc.toml"),
    ("leduc", ("evaluation.hands=200",), (), 2, "evaluation.hands has no effect"),
    ("narrow", ("run.strata=8", "export.quantise='uint8'"), (), 2, "a policy cannot hold strata on the turn"),
    ("leduc", ("run.nodes=1e12", "run.strata=2000"), (), 2, "run.strata = 2000"),
    ("kuhn", ("run.strata=2",), (), 2, "run.strata needs a game of several streets"),
    ("narrow", ("evaluation.method=['exact']",), (), 2, "exact"),
]


@pytest.mark.parametrize(("game", "keys", "options", "status", "reason"), IMPOSSIBLE)
def test_impossible_runs_are_named(capsys, game, keys, options, status, reason):
    """With status 1 the plan prints its figures too; with status 2 `solve` refuses with the same message."""
    Path("recipe.toml").write_text(RECIPE)
    Path("narrow.toml").write_text(NARROW)
    Path("kuhn.toml").write_text('game.name = "kuhn"\n')
    write_config()
    arguments = [f"{game}.toml", *overrides(keys)]
    ended = call(capsys, "plan", *arguments, "--speed", 3e7, *options)
    assert ended.status == status
    message = ended.err if status == 2 else ended.out.splitlines()[0].removeprefix("cannot work: ")
    assert re.search(reason, message), message
    if status == 2 and not options:
        assert refusal(capsys, "solve", *arguments) == message
        if game == "leduc" and "tables.memory_budget" not in str(keys):
            assert refusal(capsys, "plan", *arguments[:1], "--machines", 2, *STRATA, *arguments[1:]) == message
    assert not Path("runs").exists() and not Path("buckets").exists()


def test_wrong_or_damaged_buckets_are_refused_with_the_message_of_solve(capsys, slot_abstractions):
    config = NARROW.replace('"buckets"', f'"{slot_abstractions[0]}"')
    Path("recipe.toml").write_text(RECIPE)
    Path("holdem.toml").write_text(config)
    error = refusal(capsys, "solve", "holdem.toml")
    assert "holds buckets of another recipe" in error and "mccfr abstraction build RECIPE --out DIR --replace" in error
    assert refusal(capsys, "plan", "holdem.toml", "--speed", 3e7) == error
    shutil.copytree(slot_abstractions[0], "damaged")
    chunk = max(Path("damaged/flop").rglob("*"), key=lambda path: path.is_file() and path.stat().st_size)
    flip(chunk, -1)
    Path("holdem.toml").write_text(NARROW.replace('"buckets", recipe = "recipe.toml"', '"damaged"'))
    error = refusal(capsys, "solve", "holdem.toml")
    assert "build the abstraction again" in error
    assert refusal(capsys, "plan", "holdem.toml", "--speed", 3e7) == error
