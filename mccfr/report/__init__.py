"""Reports: a run's or policy's strategy as one HTML file, with ranges, lines, convergence and facts."""

from mccfr.report.document import write_report

__all__ = ["write_report"]
