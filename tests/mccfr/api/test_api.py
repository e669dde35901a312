"""The Python interface: games, solvers in this process, runs, evaluations and policies.

Shows:

* A solver in Python trains the same tables as a run of the same configuration
  (test_a_solver_trains_the_same_tables_as_a_run_of_its_configuration)
* Training in several steps gives the same tables as training in one
  (test_training_in_several_steps_gives_the_same_tables)
"""

import json
import os
import signal
import subprocess
import sys

import numpy as np
import pytest
from commands import call, refusal
from places import RUNS
from refusals import refusals, refused
from same import assert_same_arrays

import mccfr
from mccfr.config.game_tables import GoofspielGame
from mccfr.config.solver_tables import OPTIONS
from mccfr.games.game import Game
from mccfr.games.goofspiel import goofspiel


def test_importing_mccfr_imports_no_heavy_package():
    program = (
        "import sys; before = set(sys.modules); import mccfr; "
        "assert {'numpy', 'numba', 'msgspec', 'mccfr.api'}.isdisjoint(sys.modules), 'heavy'; "
        "assert set(mccfr.__all__) <= set(dir(mccfr))"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)
    assert all(getattr(mccfr, name) is not None for name in mccfr.__all__)
    with pytest.raises(AttributeError, match=r"has no attribute 'slove'; it offers Evaluation, "):
        _ = mccfr.slove


@pytest.mark.parametrize("algorithm", OPTIONS)
def test_training_in_several_steps_gives_the_same_tables(algorithm):
    """Compare the bits of the tables after one call with those after three, with averages between."""
    options = {
        "cfr": {},
        "cfr-br": {"seed": 5},
        "deep-cfr": {"seed": 5, "fit": "table", "traversals": 5},
    }.get(algorithm, {"seed": 5, "period_nodes": 500})
    counts = (1, 9, 20) if algorithm == "deep-cfr" else (1, 99, 200)
    whole, cut = (mccfr.solver(mccfr.game("kuhn"), algorithm, **options) for _ in range(2))
    whole.run(iterations=sum(counts))
    for count in counts:
        cut.run(iterations=count)
        cut.strategy()
    assert (cut.iterations, cut.nodes_touched) == (sum(counts), whole.nodes_touched)
    assert cut.tables.keys() == whole.tables.keys()
    assert_same_arrays(whole.tables, cut.tables)


def test_a_solver_trains_the_same_tables_as_a_run_of_its_configuration(tmp_path):
    document = {
        "game": {"name": "leduc"},
        "solver": {"algorithm": "external-sampling", "discount": "dcfr", "period_nodes": 2000, "seed": 2},
        "run": {"workers": 0, "iterations": 400},
    }
    messages = []
    run = mccfr.solve(document, run=tmp_path / "run", progress=messages.append)
    assert any("infosets" in str(text) or "exploitability" in str(text) for text in messages)
    solver = mccfr.solver(mccfr.game("leduc"), discount="dcfr", period_nodes=2000, seed=2)
    solver.run(iterations=400)
    policy = solver.save(tmp_path / "own")
    exported = mccfr.load_policy(run.export(tmp_path / "exported"))
    for one, other in zip(policy.strategy().probability, exported.strategy().probability, strict=True):
        assert np.array_equal(one, other)
    found = [
        mccfr.evaluate(each).exploitability_chips for each in (solver, run, run.directory, policy, str(policy.path))
    ]
    assert found[0] == found[1] == found[2] and found[3] == found[4] == pytest.approx(found[0], abs=1e-3)
    assert policy.meta["game"] == exported.meta["game"] and policy.meta["provenance"]["iterations"] == 400
    run = mccfr.resume(run, iterations=500)
    assert run.status()["iterations"] == 500 and [e.iterations for e in run.evaluations()] == [400, 500]
    assert repr(mccfr.Run(run.directory)) == repr(run)
    changed = mccfr.solve(document, run=tmp_path / "other", overrides={"solver.seed": 3}, iterations=10)
    assert json.loads((changed.directory / "manifest.json").read_text())["identity_document"]["solver"]["seed"] == 3


def test_solvers_and_policies_are_compared_head_to_head(tmp_path):
    game = mccfr.game("kuhn")
    good, poor = mccfr.solver(game, "cfr", variant="dcfr"), mccfr.solver(game, "cfr")
    good.run(iterations=100)
    poor.run(iterations=1)
    won = mccfr.evaluate(good, "head-to-head", against=poor)
    lost = mccfr.evaluate(poor.save(tmp_path / "poor"), "head-to-head", against=good)
    assert won.value_chips > 0 and won.against == "a solver of 1 iterations"
    assert lost.value_chips == pytest.approx(-won.value_chips, abs=1e-4)
    assert mccfr.evaluate(good, "head-to-head", against="always-call").value_chips > 0
    assert mccfr.evaluate(good, against=poor).value_chips == won.value_chips
    refused("exact has no opponent", mccfr.evaluate, good, "exact", against=poor)
    refused("has no checkpoints to choose from", mccfr.evaluate, good, checkpoint=1)


def test_games_from_keys_and_from_their_python_functions(tmp_path):
    assert mccfr.game("leduc", ranks=4).counts()["infosets"] > mccfr.game("leduc").counts()["infosets"]
    river = RUNS / "games/river.txt"
    one, two = (mccfr.game("holdem-subgame", file=river, menu={"first": sizes}) for sizes in (["1p"], ["1p", "2p"]))
    assert one.counts()["infosets"] < two.counts()["infosets"]
    built = goofspiel(GoofspielGame(cards=3))
    assert type(built) is Game
    solver = mccfr.solver(built, "cfr", variant="dcfr", updates="simultaneous")
    solver.run(iterations=50)
    assert solver.save(tmp_path / "policy").meta["game"] == {"name": "goofspiel"}
    assert mccfr.evaluate(solver).exploitability_chips < 0.1
    pruned = mccfr.solver(mccfr.game("kuhn"), "cfr", pruning="partial")
    pruned.run(iterations=50)
    assert not pruned.game.cards.dealt and mccfr.evaluate(pruned).exploitability_chips < 0.1


def of_kuhn(*algorithm, **options):
    return mccfr.solver(mccfr.game("kuhn"), *algorithm, **options)


def without_room(monkeypatch):
    monkeypatch.setattr("mccfr.api.in_process_solver.available_memory_bytes", lambda: 1000)
    mccfr.solver(mccfr.game("leduc"), "cfr")


test_errors_are_one_sentence = refusals(
    ("mccfr.game: game.name = 'kuhnn' is not one of: 'kuhn', ", mccfr.game, "kuhnn"),
    ("mccfr.game: unknown key 'rank' in game; allowed: bets", lambda: mccfr.game("leduc", rank=3)),
    ("mccfr.solver: solver.algorithm = 'cfrr' is not one of", lambda: of_kuhn("cfrr")),
    ("solver.discount = 'dcfr' has no effect on solver.algorithm = 'cfr'", lambda: of_kuhn("cfr", discount="dcfr")),
    ("solver.variant = 'dcr': one of cfr, cfr", lambda: of_kuhn("cfr", variant="dcr")),
    ("threads = 2, and 'external-sampling' shares", lambda: of_kuhn(threads=2)),
    ("threads = 0 is not allowed", lambda: of_kuhn(threads=0)),
    ("needs a game with cards", lambda: mccfr.solver(mccfr.game("matrix", payoffs=[[1]]), "public-chance-sampling")),
    ("needs a limit: iterations, nodes or seconds", lambda: of_kuhn().run()),
    ("nodes = -1 is not allowed", lambda: of_kuhn().run(nodes=-1)),
    ("no-such-path is neither a run directory nor an exported policy", mccfr.evaluate, "no-such-path"),
    ("'guess' is not one of: exact", lambda: mccfr.evaluate(of_kuhn("cfr"), "guess")),
    ("give the run directory with run=", lambda: mccfr.solve({"game": {"name": "kuhn"}})),
    ("mccfr.solve: the top level needs the key 'game'", lambda: mccfr.solve({}, run="x")),
    ("table.key is needed, such as 'solver.seed'", lambda: mccfr.solve({"game": {}}, run="x", overrides={"seed": 3})),
    ("no-such-run is not a run directory", mccfr.Run, "no-such-run"),
    ("no-such-run is not a run directory", mccfr.resume, "no-such-run"),
    ("more than 80% of the 1,000 bytes of memory", without_room),
)


def test_a_signal_ends_the_call_with_a_checkpoint(tmp_path, monkeypatch):
    """Send Ctrl-C at the first `Progress` of a run without a limit."""
    monkeypatch.setattr("mccfr.api.api_runs.CallbackReporter._SECONDS", 0.0)
    sent = []

    def interrupt(message):
        if isinstance(message, mccfr.Progress) and not sent:
            sent.append(message)
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt, match=r"mccfr\.resume goes on"):
        mccfr.solve({"game": {"name": "kuhn"}, "run": {"workers": 0}}, run=tmp_path / "run", progress=interrupt)
    stopped = mccfr.Run(tmp_path / "run").status()
    assert stopped["state"] == "stopped"
    messages = []
    mccfr.resume(tmp_path / "run", nodes=stopped["nodes_touched"] + 100_000, progress=messages.append)
    after = next(one for one in messages if isinstance(one, mccfr.Progress))
    assert after.nodes_per_second * after.seconds == pytest.approx(after.nodes_touched - stopped["nodes_touched"])


def test_a_policy_is_exported_as_csv_parquet_or_openspiel(tmp_path, capsys):
    solver = mccfr.solver(mccfr.game("kuhn"), seed=1)
    solver.run(iterations=500)
    policy = solver.save(tmp_path / "policy")
    lines = policy.export(tmp_path / "policy.csv").read_text().splitlines()
    assert lines[0].startswith("line,street,player,hand") and len(lines) == 1 + 24
    shares = {tuple(line.split(",")[3:6:2]): float(line.split(",")[6]) for line in lines[1:] if line[0] == ","}
    actions = policy.query("", hand="K")["actions"]
    assert [shares["K", one["action"]] for one in actions] == pytest.approx([one["probability"] for one in actions])
    for form in ("parquet", "openspiel"):
        assert call(capsys, "export", tmp_path / "policy", tmp_path / form, "--format", form)[0] == 0
        assert policy.export(tmp_path / form, format=form).exists()  # its own earlier output is replaced
    message = refusal(capsys, "export", tmp_path / "policy", tmp_path / "other")
    assert "'policy' is not one of csv, parquet, openspiel" in message
    message = refusal(capsys, "export", tmp_path / "policy", tmp_path / "other", "--format", "csv", "--purify")
    assert "--purify has no effect on" in message and not (tmp_path / "other").exists()
    other = mccfr.solver(mccfr.game("kuhn"), seed=2)
    other.run(iterations=10)
    with pytest.raises(FileExistsError, match="another"):
        other.save(tmp_path / "second").export(tmp_path / "parquet", format="parquet")


def test_repr_and_dir_are_short_and_public(tmp_path):
    game = mccfr.game("kuhn")
    solver = mccfr.solver(game, seed=1)
    solver.run(iterations=10)
    assert repr(game) == "<game kuhn: 12 infosets>"
    assert repr(solver) == f"<solver external-sampling of kuhn: 10 iterations, {solver.nodes_touched:,} nodes>"
    assert repr(solver.save(tmp_path / "policy")) == f"<policy {tmp_path / 'policy'}: kuhn, 12 infosets>"
    assert dir(mccfr) == sorted([*mccfr.__all__, "play"])
