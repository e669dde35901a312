"""The shipped hold'em configurations hunl-quick and hunl-standard, trained in full.

hunl-quick is trained with three seeds, and its strategy must be plausible poker. hunl-standard is stopped and resumed
ten times, and compared with an undisturbed run.
"""

import faulthandler
import random
import signal
import time
from itertools import combinations

import numpy as np
import pytest
from places import RUNS
from sessions import resuming, trained

from abstraction.boards import preflop_classes
from abstraction.cards import combo_index
from abstraction.strength import STRENGTH_LIMIT, preflop_strengths
from mccfr.api.evaluating import evaluate_target
from mccfr.config.toml_files import load_config
from mccfr.evaluation.samples import Effort
from mccfr.matches.match_series import play_match
from mccfr.policy.query import query
from mccfr.policy.strategy_profile import Profile
from mccfr.runs.directory.run import EVALUATIONS, JOURNAL, METRICS, create_run, open_run
from mccfr.runs.directory.run_status import run_status
from mccfr.runs.directory.verification import problems_of
from mccfr.runs.results.run_export import export_run
from mccfr.runs.results.targets import Reference, open_target

RAISE = "b300"  # the button's first raise: a bet of the pot, to 3 big blinds
NODES, FIRST = 6_000_000_000, 60_000_000
STOPS = 10

pytestmark = pytest.mark.slow


def new_run(name, directory, abstraction, *changes):
    """Create a run of a shipped configuration on built buckets, with changed keys."""
    config = load_config(RUNS / f"{name}.toml", [f'abstraction.path="{abstraction}"', *changes])
    return create_run(config, RUNS, directory)


@pytest.fixture(scope="module", params=[0, 1, 2], ids=["seed 0", "seed 1", "seed 2"])
def run(request, tmp_path_factory, built_recipe):
    """A finished run of hunl-quick."""
    directory = tmp_path_factory.mktemp("run") / "run"
    return trained(new_run("hunl-quick", directory, built_recipe("quick"), f"solver.seed={request.param}"))


@pytest.fixture(scope="module")
def source(run):
    target = open_target(Reference(run.directory))
    return Profile(target.game, target.strategy)


def shares(source, line):
    """Return {hand class: {action: probability}} at a preflop decision that every class reaches."""
    found = query(source, line)
    assert len(found["hands"]) == 169 and not found["unreached"]
    actions = [action["action"] for action in found["actions"]]
    return {hand: dict(zip(actions, row, strict=True)) for hand, row in found["hands"].items()}


def equities(source):
    """Return {hand class: equity against a random hand}."""
    counts = preflop_strengths(workers=2)
    mean = counts @ np.arange(counts.shape[1]) / counts.sum(axis=1) / STRENGTH_LIMIT
    names = source.game.cards.hand_buckets(0, None)
    assert names["AA"] == int(preflop_classes()[combo_index(51, 50)])
    return {hand: float(mean[bucket]) for hand, bucket in names.items()}


def test_the_best_hands_never_fold_to_a_raise(source):
    facing = shares(source, RAISE)
    assert all(facing[hand]["f"] < 0.005 for hand in ("AA", "KK", "AKs"))


def test_aces_raise_more_than_seven_two(source):
    first, facing = shares(source, ""), shares(source, RAISE)
    for row in (first, facing):
        aces, trash = ({**row[hand]} for hand in ("AA", "72o"))
        raises = [action for action in aces if action.startswith("r")]
        assert sum(aces[action] for action in raises) > sum(trash[action] for action in raises)


def test_the_big_blind_folds_weak_hands_to_a_raise(source):
    fold = {hand: row["f"] for hand, row in shares(source, RAISE).items()}
    assert sum(share > 0.5 for share in fold.values()) >= 20
    equity = equities(source)
    clear = [(a, b) for a, b in combinations(fold, 2) if abs(fold[a] - fold[b]) > 0.3]
    ordered = sum((fold[a] - fold[b]) * (equity[a] - equity[b]) < 0 for a, b in clear)
    assert len(clear) > 500 and ordered >= 0.8 * len(clear)


def test_the_final_strategy_beats_that_of_a_thousandth_of_the_nodes(run):
    first = run.read("evaluations.jsonl")[0]
    assert first["nodes_touched"] < 1.01 * run.config.run.nodes / 1000
    found = evaluate_target(
        run.directory, "head-to-head", against=Reference(run.directory, first["checkpoint"]), boards=2000, seed=1
    )
    assert found["ci95_chips"][0] > 0


def test_the_run_ends_at_its_limit_and_beats_its_first_kept_checkpoint(run):
    last = run.read("evaluations.jsonl")[-1]
    assert last["nodes_touched"] >= run.config.run.nodes and last["value_chips"] > 0


def test_an_exported_policy_beats_every_simple_player(run, tmp_path):
    """Play nearly 30,000 hands over the three seeds; AIVAT's intervals exclude 0."""
    policy = export_run(run, run.build_game(), tmp_path / "policy")
    for program in ("always-call", "always-all-in", "random", "min-raise", "odd-size"):
        hands = 4_000 if program == "odd-size" else 1_400
        found = play_match((str(policy), program), hands, effort=Effort(2))
        assert found["aivat_ci95_mbb"][0] > 0, (program, found)


def resume_until_stopped(run, nodes):
    """Run `mccfr resume` in a process, stop it after `nodes` nodes, and return its exit status."""
    began, process = time.time(), resuming(run)
    while process.poll() is None:
        records = run.read(METRICS)
        if records and records[-1]["nodes_touched"] >= nodes and records[-1]["unix_seconds"] > began:
            process.send_signal(signal.SIGTERM)
            break
        time.sleep(0.2)
    return process.wait()


def curve(run):
    """Return the values at the recipe's points; stopped sessions have evaluations at other counts too."""
    records = run.read(EVALUATIONS)
    return [next(r["value_chips"] for r in records if r["nodes_touched"] >= n) for n in (FIRST, NODES // 10, NODES)]


def test_stopped_and_resumed_ten_times(tmp_path, built_recipe):
    faulthandler.cancel_dump_traceback_later()  # the test takes a quarter of an hour
    points = f"evaluation.at_nodes=[{FIRST}, {NODES // 10}]"
    changes = built_recipe("standard"), f"run.nodes={NODES}", "evaluation.boards=300", points
    whole = trained(new_run("hunl-standard", tmp_path / "whole", *changes))
    parts = new_run("hunl-standard", tmp_path / "parts", *changes)
    dice = random.Random(3)
    for stop in sorted(dice.uniform(0.02, 0.9) for _ in range(STOPS)):
        assert resume_until_stopped(parts, stop * NODES) == 75
    assert resume_until_stopped(parts, 2 * NODES) == 0
    status, undisturbed = run_status(open_run(parts.directory)), run_status(open_run(whole.directory))
    assert status["state"] == "finished" and NODES <= status["nodes_touched"] < NODES + 1_000_000
    assert status["period"] == undisturbed["period"] == status["nodes_touched"] // 10_000_000 + 1
    events = [record["event"] for record in parts.read(JOURNAL) if "event" in record]
    assert events.count("stopped") == STOPS and events.count("finished") == 1
    assert problems_of(parts.directory) == []
    curves = [curve(run) for run in (whole, parts)]
    assert curves[0][1] > 0 and curves[1] == pytest.approx(curves[0], rel=0.1, abs=5)
    found = evaluate_target(parts.directory, "head-to-head", against=Reference(whole.directory), boards=300)
    assert abs(found["value_chips"]) < 0.1 * curves[0][2]
