"""Runs that begin with a policy: the same after a stop, whatever becomes of the policy; what is refused.

Shows:

* A run with a warm start goes on bit by bit after a stop, whatever becomes of the policy
  (test_a_run_stopped_and_one_in_a_piece_have_the_same_bits)
* CFR-BR begins with what it has sampled first, where that is asked for (test_nodes_in_its_place_are_sampled_first)
"""

import os
import shutil
import signal

import pytest
from commands import refusal
from refusals import refused
from same import assert_same_arrays
from sessions import EXTERNAL, NO_EVALUATION, Listener, assert_same, content, go, make, trained

import mccfr
from mccfr.config.file import config_from
from mccfr.runs.directory.identity import check_same_run
from mccfr.runs.directory.run import open_run
from mccfr.runs.session.failures import AbandonedError
from mccfr.runs.session.start import Start, Terms, rehearse
from mccfr.solvers.warm_start import WARM_BOARDS, begin_warm_boards

LEDUC = {"name": "leduc", "merge_suits": True}


@pytest.fixture(scope="module")
def policy(tmp_path_factory):
    """Of Leduc after 3,000 iterations."""
    path = tmp_path_factory.mktemp("warm") / "policy"
    solver = mccfr.solver(mccfr.game("leduc", merge_suits=True), seed=3)
    solver.run(iterations=3000)
    solver.save(path)
    return path


def warm(path, policy, **solver):
    return make(path, {**EXTERNAL, "warm_start": str(policy), **solver}, LEDUC, evaluation=NO_EVALUATION)


def test_a_run_stopped_and_one_in_a_piece_have_the_same_bits(policy, tmp_path):
    """The stopped one goes on when the policy has gone, and is the run of that policy still."""
    copied = shutil.copytree(policy, tmp_path / "policy")
    whole, stopped = warm(tmp_path / "whole", policy), warm(tmp_path / "stopped", copied)
    go(whole, iterations=1500)
    go(stopped, iterations=400)
    shutil.rmtree(copied)
    stopped = open_run(stopped.directory)
    go(stopped, iterations=1500)
    assert_same(whole, stopped)
    check_same_run(stopped, whole.config, whole.directory)
    cold = trained(make(tmp_path / "cold", EXTERNAL, LEDUC, evaluation=NO_EVALUATION), iterations=1500)
    assert cold.manifest["identity"] != whole.manifest["identity"] == stopped.manifest["identity"]
    assert any((table != content(cold)[0][name]).any() for name, table in content(whole)[0].items())


def test_in_this_process_it_is_the_same(policy, tmp_path):
    run = warm(tmp_path / "run", policy)
    go(run, iterations=500)
    solver = mccfr.solver(mccfr.game(**LEDUC), **EXTERNAL, warm_start=str(policy))
    solver.run(iterations=500)
    assert_same_arrays(content(run)[0], solver.tables)


def test_nodes_in_its_place_are_sampled_first(tmp_path):
    options = {"algorithm": "cfr-br", "trunk": "own", "seed": 3}
    begun = mccfr.solver(mccfr.game(**LEDUC), **options, warm_start=20_000)
    cold, first = mccfr.solver(mccfr.game(**LEDUC), **options), mccfr.solver(mccfr.game(**LEDUC), seed=3)
    first.run(nodes=20_000)
    begin_warm_boards(cold.game, None, cold.tables, first.game, first.strategy(), WARM_BOARDS)
    assert_same_arrays(begun.tables, cold.tables)
    run = make(tmp_path / "run", {**options, "warm_start": 20_000}, LEDUC, evaluation=NO_EVALUATION)
    go(run, iterations=5)
    begun.run(iterations=5)
    assert_same_arrays(content(open_run(run.directory))[0], begun.tables)


class Signalled(Listener):
    """Sends a signal when half of the sampling is done."""

    def phase(self, text, share=None):
        self.told.append(text)
        if share is not None and share >= 0.5:
            os.kill(os.getpid(), signal.SIGTERM)


def test_a_signal_ends_the_sampling_at_once(tmp_path):
    solver = {"algorithm": "cfr-br", "trunk": "own", "warm_start": 2_000_000}
    run, reporter = make(tmp_path / "run", solver, LEDUC, evaluation=NO_EVALUATION), Signalled()
    refused("stopped by signal 15 before anything was trained", go, run, reporter, iterations=5, error=AbandonedError)
    told = [text for text in reporter.told if text.startswith("filling the tables, ")]
    assert told[0].endswith(" 0%") and 50 <= int(told[-1].split()[-1][:-1]) <= 70  # in batches of 200,000 nodes


def test_another_policy_in_its_place_is_refused_until_there_is_a_checkpoint(policy, tmp_path):
    copied = shutil.copytree(policy, tmp_path / "policy")
    run = warm(tmp_path / "run", copied)
    solver = mccfr.solver(mccfr.game("leduc", merge_suits=True), seed=4)
    solver.run(iterations=10)
    solver.save(copied, replace=True)
    refused("another policy than when the run was made", go, run, iterations=10)


@pytest.mark.parametrize(
    ("game", "sentence"),
    [
        ({"name": "kuhn"}, "the game is 'kuhn' for the first and 'leduc' for the second"),
        ({**LEDUC, "bets": [[2], [6]]}, "the line to node"),
        ({"name": "goofspiel", "cards": 3}, "goofspiel keeps its chance in it"),
    ],
)
def test_another_game_is_refused_in_a_sentence(game, sentence, policy, tmp_path):
    document = {"game": game, "solver": {"warm_start": str(policy)}}
    start = Start(config_from(document, "test"), tmp_path, tmp_path / "run", Terms(None))
    assert sentence in refused(r"solver\.warm_start", rehearse, start)


def test_no_policy_and_what_does_not_go_with_one_are_refused(policy, tmp_path, capsys):
    config = tmp_path / "run.toml"
    config.write_text(f'[game]\nname = "leduc"\n[solver]\nwarm_start = "{tmp_path}"\n[run]\niterations = 10\n')
    told = refusal(capsys, "solve", config, "--run", tmp_path / "run")
    assert "is no policy" in told and not (tmp_path / "run").exists()
    document = {"game": LEDUC, "solver": {"warm_start": str(policy)}, "run": {"strata": 2}}
    start = Start(config_from(document, "test"), tmp_path, tmp_path / "run", Terms(None))
    refused(r"run\.strata = .*solver\.warm_start", rehearse, start)
    document = {"game": LEDUC, "solver": {"warm_iterations": 0}}
    refused(r"solver\.warm_iterations = 0 is not allowed", config_from, document, "test")
    document = {"game": LEDUC, "solver": {"algorithm": "cfr-br", "warm_start": 0}}
    refused(
        r"solver\.warm_start = 0 is not allowed: it must be a policy's directory, or at least 1 node",
        config_from,
        document,
        "test",
    )
