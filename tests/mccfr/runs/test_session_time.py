"""Progress reports of a session: time limit, share done, time left, phases."""

import sys
import time
from itertools import groupby
from types import SimpleNamespace

import pytest
import sessions
from sessions import NO_EVALUATION, PhaseListener

from abstraction.kernels import compiling
from mccfr.cli import progress_display as progress_module
from mccfr.cli.progress_display import PlainReporter, progress_text, reporter
from mccfr.config.run_tables import RunSettings
from mccfr.evaluation import exact as exact_module
from mccfr.runs.directory.run import EVALUATIONS
from mccfr.runs.reporter import COMPILING, EVALUATING, TRAINING, SessionProgress, compiling_text
from mccfr.runs.results.checkpoints import find_checkpoint
from mccfr.runs.session import checkpointing as saving_module
from mccfr.runs.session.session_progress import Meter
from mccfr.solvers.sampling.external.external_algorithm import ExternalSampling
from mccfr.tables.linear_discounting import Schedule


class Recorder(PhaseListener):
    """A reporter that records phases and progress in one list."""

    def message(self, text):
        pass

    def progress(self, progress):
        self.told.append(progress)

    @property
    def phases(self):
        return [text for text in self.told if isinstance(text, str)]

    @property
    def ticks(self):
        """Return (phase, progress) of every tick."""
        found, phase = [], None
        for entry in self.told:
            if isinstance(entry, str):
                phase = entry
            else:
                found.append((phase, entry))
        return found


def make(path, evaluation, **settings):
    """Create a run directory of Leduc."""
    solver = {"discount": "none", "seed": 5}
    return sessions.make(path, solver, evaluation=NO_EVALUATION | evaluation, **settings)


def go(run, **settings):
    """Train one session; return its reporter and its wall-clock seconds."""
    reporter, began = Recorder(), time.monotonic()
    sessions.go(run, reporter, **settings)
    return reporter, time.monotonic() - began


@pytest.fixture
def slow_evaluation(monkeypatch):
    """Make every evaluation take 0.4 s longer."""
    evaluate = saving_module.Evaluator.evaluate

    def slow(*arguments):
        time.sleep(0.4)
        return evaluate(*arguments)

    monkeypatch.setattr(saving_module.Evaluator, "evaluate", slow)


@pytest.mark.parametrize("workers", [0, 1])
def test_the_time_limit_counts_training_only(tmp_path, slow_evaluation, workers):
    """A session trains for its seconds even if evaluations take longer than training."""
    run = make(tmp_path / "run", {"at_nodes": list(range(2 * 10**6, 10**9, 2 * 10**6))}, workers=workers)
    _, wall = go(run, seconds=1.2)
    evaluations = len(run.read(EVALUATIONS))
    assert evaluations > 3
    trained = find_checkpoint(run, None).state["training_seconds"]
    assert 0.4 < trained < 1.6  # on a busy machine a worker resumes late
    assert wall > trained + 0.3 * evaluations


def compile_for(seconds):
    """Simulate the first call of a kernel."""
    compiling._watch.on_start(None)
    time.sleep(seconds)
    compiling._watch.on_end(None)


@pytest.mark.parametrize("workers", [0, 1])
def test_phases_are_reported_in_order(tmp_path, monkeypatch, workers):
    run = make(tmp_path / "run", {"at_nodes": [200_000], "at_end": True}, workers=workers)
    reporter, _ = go(run, nodes=400_000)
    starting = "loading kernels" if workers == 0 else "starting 1 worker"
    phases = (phase for phase in reporter.phases if not phase.startswith(COMPILING))
    begins = ["looking for checkpoints", "making the tables", starting, TRAINING]
    # During the first evaluation, workers may rest or train: repeated phases count once.
    found = [phase for phase, _ in groupby(phases)]
    assert found == [*begins, EVALUATING, TRAINING, "writing checkpoint 1", EVALUATING]
    for number, entry in enumerate(reporter.told):
        if entry == "writing checkpoint 1":
            last = next(t for t in reversed(reporter.told[:number]) if isinstance(t, SessionProgress))
            assert last.seconds_left is None and last.share_done == 1.0  # the display while no worker trains


def test_compilation_is_a_phase_without_time_left(tmp_path, monkeypatch):
    """Kernels compile at the start and during an evaluation; neither counts as training time."""
    make_solver, exact = ExternalSampling.solver, exact_module.evaluate_exact

    def compile_solver(*arguments):
        compile_for(0.3)
        return make_solver(*arguments)

    def compiled_evaluation(*arguments):
        compile_for(0.6)
        return exact(*arguments)

    monkeypatch.setattr(ExternalSampling, "solver", compile_solver)
    monkeypatch.setattr(exact_module, "evaluate_exact", compiled_evaluation)
    run = make(tmp_path / "run", {"at_end": True})
    reporter, wall = go(run, workers=0, seconds=0.5)
    own = [phase for phase in reporter.phases if phase not in ("looking for checkpoints", "making the tables")]
    assert own[:2] == ["loading kernels", compiling_text(1)]
    assert own[-3:] == [EVALUATING, compiling_text(1), EVALUATING]
    assert all(tick.seconds_left is None for phase, tick in reporter.ticks if phase.startswith(COMPILING))
    assert wall > 1.4
    assert 0.3 < find_checkpoint(run, None).state["training_seconds"] < 0.8
    assert 0 < run.read(EVALUATIONS)[0]["seconds"] < 0.5  # less than the compilation took


def test_no_time_left_is_shown_while_workers_start(tmp_path, monkeypatch):
    monkeypatch.setattr("mccfr.runs.session.training_session._TICK_SECONDS", 0.01)  # workers start in 0.25 s
    run = make(tmp_path / "run", {}, workers=1)
    reporter, _ = go(run, nodes=200_000)
    waiting = [tick for phase, tick in reporter.ticks if phase.startswith("starting 1 worker")]
    assert len(waiting) > 3 and all(tick.seconds_left is None for tick in waiting)


def test_working_seconds_exclude_compilation():
    import numba

    kernel = numba.njit(lambda x: x * 2 + 1)
    wall, work = time.perf_counter(), compiling.working_seconds()
    assert kernel(3) == 7
    wall, work = time.perf_counter() - wall, compiling.working_seconds() - work
    assert 0 <= work < 0.5 * wall
    if not numba.config.DISABLE_JIT:
        assert kernel(4) == 9 and not compiling._watch.depth


# --- progress display ---


def progress_at(share, left):
    return SessionProgress(1_000_000, 5, 2, 3.0, 2e6, 10.0, share, left)


def test_progress_shows_the_phase_and_the_time_left():
    assert progress_text(progress_at(0.43, 10.0)).endswith("· 43%, 10 s left")
    text = progress_text(progress_at(0.43, 10.0), EVALUATING)  # workers train during the evaluation
    assert text.startswith("evaluating · 1,000,000 nodes") and text.endswith("· 43%, 10 s left")
    text = progress_text(progress_at(1.0, None), "writing checkpoint 3")
    assert text.startswith("writing checkpoint 3 · ") and text.endswith("· 100%")
    assert progress_text(progress_at(None, None)).endswith("· period 2")


def test_plain_lines_name_a_phase_that_takes_long(capsys, monkeypatch):
    """A command that compiles many kernels one after the other prints one line for all of them."""
    monkeypatch.setattr(progress_module, "_LATE_SECONDS", 0.2)
    reporter = PlainReporter()
    for _ in range(5):
        reporter.phase(EVALUATING)
        reporter.phase(TRAINING)
    for text in (EVALUATING, compiling_text(8), TRAINING, compiling_text(1), TRAINING):
        reporter.phase(text)
        time.sleep(0.5 if text != TRAINING else 0)
    reporter.phase("writing checkpoint 2")
    reporter.close()
    time.sleep(0.4)
    assert capsys.readouterr().err == f"evaluating\n{COMPILING}: about 8 s\n"


def test_the_bar_names_a_phase_at_once(monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    with reporter() as live:
        (shown,) = live._bar.tasks
        live.phase(compiling_text(8))
        assert shown.fields["text"] == "compiling kernels, once per version of the program: about 8 s"
        assert shown.total is None and live._bar.columns[-1].render(shown).plain == "0 s"
        live.phase(TRAINING)
        assert not live._bar.columns[-1].render(shown).plain
        live.progress(progress_at(0.43, 10.0))
        assert (shown.completed, shown.total) == (0.43, 1.0)
        live.progress(progress_at(1.0, None))
        live.phase("writing checkpoint 3")
        assert shown.fields["text"].startswith("writing checkpoint 3 · ") and shown.fields["text"].endswith("· 100%")


def test_time_left_of_a_spot_comes_from_the_fall_of_exploitability():
    """The estimate uses the last two measurements of which the later is lower."""
    settings = RunSettings(iterations=5_000, exploitability_pot="0.3%")
    meter = Meter(settings, Schedule(), Recorder(), None)
    pool, clock = SimpleNamespace(totals=lambda: (1_000, 100), busy_seconds=lambda: 10.0), SimpleNamespace(seconds=10.0)

    def estimate():
        found = meter.progress(pool, clock, goes_on=True)
        return found.share_done, found.seconds_left

    assert estimate() == (None, None)
    meter.measured(50, 0.012)
    meter.measured(100, 0.006)
    assert estimate() == pytest.approx((0.5, 10.0))
    meter.measured(110, 0.007)
    assert estimate() == pytest.approx((0.5, 10.0))
