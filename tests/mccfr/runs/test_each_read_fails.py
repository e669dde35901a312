"""Each read of a command fails once: the command exits with 1 or prints the right answer.

A preloaded library (`failing_reads.c`) counts the reading system calls below a run or policy, also those of zarr and
HDF5: open, read, stat, listing, mapping. In each trial one call fails with ESTALE, EIO, EACCES or EMFILE: once, three
times or always. After each trial the test checks that:

* each file of a checkpoint, policy and configuration has its bytes, and the command wrote no traceback
* an output with status 0 equals the output without failures
* a run that was trained has the tables of the run without failures, so training did not restart at 0

`in_this_process` replaces the server of `view` and the processes of `cluster`. `test_each_step_fails` tests writes.

Runs are stored in Zarr, in HDF5, and in blocks (out of core). In the fast suite one call of each of
some cases fails. In the slow suite `MOST` calls of each command fail, or all if there are fewer: 12,000 of 45,000.
"""

import errno
import os
import re
from itertools import product

import pytest
import tomli_w
from acpc import dealer, plan
from failing_reads import ERRORS, TIMES, Case, Swept, Trial, compiled, described, sweep
from machines import stratified_run, train_alone
from policies import write_random
from sessions import EXTERNAL, NO_EVALUATION, go, make
from stratified import LEDUC_12

from abstraction.build import Builder
from abstraction.recipe import load_recipe
from mccfr.config.game_tables import KuhnGame
from mccfr.experiments.definition import load_experiment
from mccfr.experiments.experiment_runs import run_experiment
from mccfr.experiments.result_table import publish
from mccfr.runs.reporter import Silent

SOLVER = {"algorithm": "cfr", "variant": "cfr+"}
BLOCKS = {"strata": 6, "blocks": 4, "cycle_iterations": 20}
FORMS = ("zarr", "hdf5", "blocks")
MOST = 300
"""The number of calls of a command that the slow tests let fail."""
RESUME = ["resume", "{}/run", "--iterations", "80"]
ON_RUNS = {
    "verify": ["verify", "{}/run"],
    "status": ["status", "{}/run", "--json"],
    "query": ["query", "{}/run", ""],
    "tensorboard": ["tensorboard", "{}/run", "{}/curves"],
    "evaluate": ["evaluate", "{}/run", "--json"],
    "export": ["export", "{}/run", "{}/exported"],
    "exploit": ["exploit", "{}/run", "{}/answer"],
    "play": ["play", "{}/run", "--hands", "1", "--seed", "1"],
    "match": ["match", "{}/run", "always-call", "--hands", "200"],
    "resume": RESUME,
}
FAST = ("verify", "query", "export", "resume")
"""Commands on Zarr runs in the fast suite."""
LOCK = Case("resume, lock of blocks", ["resume", "{}/blocks", *RESUME[2:]], "blocks/run.lock", False, "blocks")
EXACT = ("verify", "query", "evaluate")
"""Commands with the same output each time."""
ON_POLICIES = [
    Case("verify a policy", ["verify", "{}/policy"], "policy"),
    Case("query a policy", ["query", "{}/policy", ""], "policy"),
    Case("exploit a policy", ["exploit", "{}/policy", "{}/answer"], "policy", exact=False),
    Case("play a policy", ["play", "{}/policy", "--hands", "1", "--seed", "1"], "policy", exact=False),
    Case("match of policies", ["match", "{}/policy", "{}/policy", "--hands", "200"], "policy", exact=False),
]
BUILD = ["abstraction", "build", "{}/cards/recipe.toml", "--out"]
OTHERS = [
    Case("plan", ["plan", "{}/cards/run.toml"], "cards", exact=False),
    Case("solve with buckets", ["solve", "{}/cards/run.toml", "--run", "{}/cards/run"], "cards", False, "cards/run"),
    Case("abstraction info", ["abstraction", "info", "{}/cards/built"], "cards"),
    Case("abstraction bucket", ["abstraction", "bucket", "{}/cards/built", "--hand", "JcQc"], "cards"),
    Case("verify an abstraction", ["verify", "{}/cards/built"], "cards"),
    Case("abstraction build", [*BUILD, "{}/cards/half"], "cards", False, "cards/half"),
    Case("abstraction build again", [*BUILD, "{}/cards/built"], "cards", False, "cards/built"),
    Case("compare", ["compare", "{}/compare/two.toml", "{}/compare/out"], "compare", False, "compare/out/runs/b-0"),
    Case("view a run", ["view", "{}/zarr", "--no-browser"], "zarr"),
    Case("view a policy", ["view", "{}/policy", "--no-browser", "--against", "{}/policy"], "policy"),
    Case("review", ["review", "{}/hands", "--policy", "x", "--boards", "4", "--keep", "{}/hands/kept"], "hands", False),
    Case("plan of machines", ["plan", "{}/strata/config.toml", "--machines", "2"], "strata", False),
    Case("cluster local", ["cluster", "local", "{}/strata", "--iterations", "80"], "strata", False, "strata"),
    Case("cluster status", ["cluster", "status", "{}/strata"], "strata"),
]
"""Commands on configurations, abstractions, experiments, hands and runs of several machines."""
SOME = [case for case in OTHERS if case.name == "abstraction build"]
"""Cases of `OTHERS` in the fast suite."""
ONE = "zarr/checkpoints/000003/"
FILES = [f"{ONE}manifest.json", f"{ONE}tables.zarr/regret/street0/player0/c", "zarr/checkpoints", "zarr/journal.jsonl"]
OF_FILES = [Case(f"resume, {file}", ["resume", "{}/zarr", *RESUME[2:]], file, False, "zarr") for file in FILES]


RECIPE = """
deck = {ranks = 4, suits = 2, hole_cards = 2, board_cards = [0, 1, 1]}
flop = {features = "histogram", buckets = 6}
turn = {features = "ehs", buckets = 5}
"""
CARDS = {
    "game": {"name": "poker", "ranks": 4, "suits": 2, "hole_cards": 2, "board_cards": [0, 1, 1], "stack": 4}
    | {"blinds": [2, 1], "first_player": [2, 1, 1]},
    "abstraction": {"path": "built"},
    "run": {"workers": 0, "iterations": 50},
    "evaluation": NO_EVALUATION,
}
TWO = """
game.name = "kuhn"
run.workers = 0
[compare]
last = 40
points = 2
variant = [{name = "a", set = ["solver.discount=none"]}, {name = "b", set = ["solver.discount=linear"]}]
"""

_TRAINED = "/live: ", "could not be written", "continue with: mccfr resume"
AFTER_TRAINING = *_TRAINED, "/half/", "is not synced", "/.tmp-run: "
"""Texts in errors of a session, build or new run that had started: these need no advice on what to do."""


def on_runs(form, names=tuple(ON_RUNS)):
    """Yield the cases of commands on the run in a storage form."""
    for name in names:
        arguments = [argument.replace("{}/run", f"{{}}/{form}") for argument in ON_RUNS[name]]
        yield Case(f"{name}, {form}", arguments, form, name in EXACT, form if name == "resume" else None)


FEW = [*on_runs("zarr", FAST), *on_runs("hdf5", ("resume",)), *on_runs("blocks", ("verify", "resume"))]


def fixture_tree(folder, forms=FORMS, others=True):
    """Write runs with checkpoints at 20, 40 and 60 iterations, a policy, and files of other cases."""
    folder.mkdir()
    for form in forms:
        tables = {"memory_budget": "80kB"} if form == "blocks" else {"format": form}
        solver, game, more = (EXTERNAL, LEDUC_12, BLOCKS) if form == "blocks" else (SOLVER, "kuhn", {})
        run = make(folder / form, solver, game, tables, NO_EVALUATION, keep_checkpoints=9, **more)
        for iterations in (20, 40, 60):
            go(run, iterations=iterations)
    write_random(folder / "policy", KuhnGame(), None, 1)
    cards_tree(folder / "cards")
    if others:
        others_tree(folder)
    return folder


def interrupt_clustering(stage, share):
    """Interrupt a build while it clusters the flop's hands."""
    if "flop" in stage and "clustering" in stage and share > 0:
        raise InterruptedError


def cards_tree(cards):
    """Write a configuration on buckets, an abstraction, and a half-built abstraction."""
    cards.mkdir()
    (cards / "recipe.toml").write_text(RECIPE)
    (cards / "run.toml").write_text(tomli_w.dumps(CARDS))
    Builder(load_recipe(cards / "recipe.toml"), cards / "built").build()
    with pytest.raises(InterruptedError):
        Builder(load_recipe(cards / "recipe.toml"), cards / "half", 1, interrupt_clustering, 0.0).build()
    assert (cards / "half/unfinished-flop").exists()


def others_tree(folder):
    """Add the files of the other cases of `OTHERS`."""
    compare, hands = (folder / name for name in ("compare", "hands"))
    for path in (compare, hands):
        path.mkdir()
    (compare / "two.toml").write_text(TWO)
    compared = load_experiment(compare / "two.toml", ["compare.last=20"])
    run_experiment(compared, compare / "out", Silent())
    publish(compared, compare / "out")
    played = dealer(plan(hands=3), ("random", "min-raise"))
    (hands / "match.log").write_text("\n".join(played.play(number).text() for number in range(3)))
    strata = stratified_run(folder / "strata", iterations=40)
    train_alone(strata, strata.build_game(), 2, Silent())


def answer(trial: Trial) -> str:
    """Return a command's output without its times."""
    return re.sub(r'"\w*seconds": [0-9.e-]+', "", trial.out)


def assert_right(case: Case, swept: Swept) -> None:
    """Check what must hold after the trials of a case."""
    assert swept.sound.status == 0 and not swept.sound.lost and swept.calls > 3, described(swept.sound)
    for trial in swept.trials:
        assert not trial.lost and "Traceback" not in trial.err, described(trial)
        if trial.status == 0:
            assert trial.digest == swept.sound.digest, described(trial)
            assert not case.exact or answer(trial) == answer(swept.sound), described(trial)
        else:
            assert trial.status == 1, described(trial)
            assert_message(trial, case)


def assert_message(trial: Trial, case: Case) -> None:
    """Check that the last line names a file, the error and, unless training had started, what to do."""
    last = trial.err.strip().split("\n")[-1]
    assert last.startswith("mccfr: ") and " /" in last and os.strerror(trial.number) in last, described(trial)
    trained = case.run is not None and any(text in last for text in AFTER_TRAINING)
    advice = ("nothing was changed; run the command again", "is not synced to the disk; run the command again")
    assert trained or any(text in last for text in advice), described(trial)


def trials(folder, forms, cases, most=MOST, others=True):
    """Run and check the trials of some cases, and return them."""
    found = sweep(compiled("failing_reads", folder), fixture_tree(folder / "before", forms, others), cases, most)
    for case in cases:
        assert_right(case, found[case.name])
    return [trial for swept in found.values() for trial in swept.trials]


def test_some_failing_reads_lose_no_data(tmp_path):
    found = trials(tmp_path, FORMS, [*FEW, LOCK, *ON_POLICIES[:2], *OF_FILES, *SOME], most=1, others=False)
    assert {(trial.times, trial.number) for trial in found} == set(product(TIMES, ERRORS))


SLOW = {form: ([form], list(on_runs(form))) for form in FORMS}
SLOW |= {"files and policies": (["zarr", "blocks"], [*ON_POLICIES, *OF_FILES, LOCK]), "others": (["zarr"], OTHERS)}


@pytest.mark.slow
@pytest.mark.parametrize("what", SLOW)
def test_failing_reads_lose_no_data(tmp_path, what):
    assert len(trials(tmp_path, *SLOW[what])) >= 1500


def test_a_wrong_result_after_a_failed_read_is_caught():
    """Plant wrong statuses, a wrong output, a lost file, and error messages without a file."""
    sound = Trial("verify, zarr", 0, 0, 0, 0, "sound", "", "", [])
    message = f"mccfr: /run/x: {os.strerror(errno.EIO)}: nothing was changed; run the command again"
    failed = Trial("verify, zarr", 1, 1, errno.EIO, 1, "", message, "", [])
    assert_right(FEW[0], Swept(sound, 9, [failed]))
    wrong = {"status": (0, 2, 75), "out": (), "err": ("mccfr: no such run", "Traceback"), "lost": (["a"],)}
    for name, values in wrong.items():
        for value in values:
            bad = Trial(**{each: getattr(failed, each) for each in Trial.__struct_fields__} | {name: value})
            with pytest.raises(AssertionError):
                assert_right(FEW[0], Swept(sound, 9, [bad]))
