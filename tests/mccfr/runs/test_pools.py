"""Worker pools: when their memory is freed, and which figures the journal and `status` report.

Shows:

* A session frees the memory of its worker pool when it ends (test_pools)
"""

import contextlib
import gc
import weakref

from sessions import NO_EVALUATION, go, make

from mccfr.runs.directory.run import JOURNAL
from mccfr.runs.directory.run_status import run_status
from mccfr.runs.reporter import Silent
from mccfr.runs.session import training_session as run_module
from mccfr.runs.session.pools import open_pool
from storage import huge_page_counts


def test_the_memory_of_a_pool_is_freed_with_its_session(tmp_path):
    """The pool is in no reference cycle: a cycle would keep its memory until a garbage collection."""
    seen = []

    @contextlib.contextmanager
    def open_and_record(run, game, *, force=False):
        with open_pool(run, game, force=force) as pool:
            seen.append(weakref.ref(pool))
            yield pool

    run = make(tmp_path / "run", evaluation=NO_EVALUATION, workers=1, iterations=100)
    gc.disable()
    try:
        run_module.train(run, run.build_game(), Silent(), pools=open_and_record)
        assert [pool() for pool in seen] == [None]
    finally:
        gc.enable()


def test_journal_and_status_report_bytes_in_huge_pages(tmp_path, monkeypatch):
    run, seen = make(tmp_path / "run", evaluation=NO_EVALUATION, workers=1), []
    monkeypatch.setattr(huge_page_counts, "_SMAPS", tmp_path / "nowhere")

    class StatusReader(Silent):
        def progress(self, progress):
            seen.append(run_status(run))

    go(run, StatusReader(), nodes=20_000)
    assert (seen[0]["state"], seen[0]["huge_bytes"]) == ("running", 0)
    [started] = [line for line in run.read(JOURNAL) if line.get("event") == "started"]
    assert (started["huge_bytes"], started["workers"]) == (0, 1)
    assert run_status(run)["huge_bytes"] is None
