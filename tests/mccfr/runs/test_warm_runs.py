"""Runs that begin with what they have sampled first.

Shows:

* CFR-BR begins with what it has sampled first, where that is asked for (test_nodes_are_sampled_first)
"""

import os
import signal

from refusals import refused
from same import assert_same_arrays
from sessions import NO_EVALUATION, Listener, content, go, make

import mccfr
from mccfr.runs.directory.run import open_run
from mccfr.runs.session.failures import AbandonedError
from mccfr.solvers.warm_start import WARM_BOARDS, begin_warm

LEDUC = {"name": "leduc", "merge_suits": True}


def test_nodes_are_sampled_first(tmp_path):
    options = {"algorithm": "cfr-br", "trunk": "own", "seed": 3}
    begun = mccfr.solver(mccfr.game(**LEDUC), **options, warm_start=20_000)
    cold, first = mccfr.solver(mccfr.game(**LEDUC), **options), mccfr.solver(mccfr.game(**LEDUC), seed=3)
    first.run(nodes=20_000)
    begin_warm(cold.game, None, cold.tables, first.strategy(), WARM_BOARDS)
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
