"""Prints the test files that took most processor time, and the share of compilation, after a run.

Processor time includes the processes that a test has waited for. The import of a module counts for its file. Workers of
pytest-xdist report their sums when they end.
"""

import os
from collections import Counter

import pytest

from abstraction.kernels.jit import event

SLOWEST = 10


def processor_seconds() -> float:
    """Return the user and system time of this process and of its ended children."""
    return sum(os.times()[:4])


class ProcessorTime:
    """Adds up the processor time between reports, by test file."""

    def __init__(self) -> None:
        self.before, self.compiling = processor_seconds(), _Compiling()
        self.by_file: Counter[str] = Counter()
        self.compiled: Counter[str] = Counter()
        event.register("numba:compile", self.compiling)

    def _stamp(self, report: pytest.TestReport | pytest.CollectReport) -> None:
        now = processor_seconds()
        report.processor = [now - self.before, self.compiling.taken()]
        self.before = now

    @pytest.hookimpl(wrapper=True)
    def pytest_make_collect_report(self):
        report = yield
        self._stamp(report)
        return report

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self):
        report = yield
        self._stamp(report)
        return report

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        self._add(report)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if not hasattr(report, "node"):  # else a worker made the report, and sends its sums at the end
            self._add(report)

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if hasattr(session.config, "workeroutput"):
            session.config.workeroutput["processor"] = [dict(self.by_file), dict(self.compiled)]

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node) -> None:
        for sums, found in zip(
            (self.by_file, self.compiled), getattr(node, "workeroutput", {}).get("processor", ()), strict=False
        ):
            sums.update(found)

    def _add(self, report: pytest.TestReport | pytest.CollectReport) -> None:
        name = report.nodeid.split("::")[0]
        spent, compiling = getattr(report, "processor", (0.0, 0.0))  # xdist creates reports without it
        self.by_file[name] += spent
        self.compiled[name] += compiling

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        total, compiling = sum(self.by_file.values()), sum(self.compiled.values())
        terminalreporter.section(f"{total:.0f} s of processor time, {compiling:.0f} s of them compiling", sep="=")
        self.by_file.pop("", None)  # the start of the test run, which belongs to no file
        for name, seconds in self.by_file.most_common(SLOWEST):
            terminalreporter.write_line(f"{seconds:6.1f} s ({self.compiled[name]:5.1f} compiling)  {name}")


class _Compiling(event.Listener):
    """Processor time of this process's thread while numba compiles in it."""

    def __init__(self) -> None:
        self.depth, self.began, self.spent = 0, 0.0, 0.0

    def on_start(self, _: object) -> None:
        if self.depth == 0:
            self.began = processor_seconds()
        self.depth += 1

    def on_end(self, _: object) -> None:
        self.depth -= 1
        if self.depth == 0:
            self.spent += processor_seconds() - self.began

    def taken(self) -> float:
        """Seconds since the last call."""
        spent, self.spent = self.spent, 0.0
        return spent
