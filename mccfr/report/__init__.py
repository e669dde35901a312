"""A run's strategy as one HTML file for people: ranges, lines, the curve, the facts."""

from mccfr.report.document import write_report

__all__ = ["write_report"]
