"""Writes a report on many flops as an HTML file, with sorting, filters and plots.

The report has the strategy's frequencies and EVs on each flop, after one betting line.  The file contains styles,
scripts and data, and works offline.  Texts from files or names are escaped.  Scripts insert texts as text, never as
markup, and load nothing.
"""

import json
from collections.abc import Mapping
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

from mccfr.evaluation.flop_values import FlopReport
from mccfr.runs.results.flop_tables import PageWriter, Table
from storage import durable
from storage.atomic_outputs import contains, output

_GENERATOR = '<meta name="generator" content="mccfr report">'
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'"
_is_report = contains(_GENERATOR.encode(), 1000)
"""Returns whether a file is an earlier report, which may be replaced."""


def _static(name: str) -> str:
    """Return the text of a bundled style or script file, such as flops.css."""
    return files("mccfr.view").joinpath("static", name).read_text("utf-8")


def _write(out: Path, title: str, report: FlopReport, tables: Mapping[str, Table]) -> None:
    """Write the HTML page of a report to `out`.

    title   name of the strategy, for the heading
    tables  {name of the table: its rows}

    Raises `FileExistsError` if `out` exists, is not empty and is no earlier report.
    """
    unit, name = report.unit, "chips" if report.unit == 1 else "big blinds"
    names = [_named(action, unit) for action in report.actions]
    shown = {table: [_in_units(row, unit) for row in rows] for table, rows in tables.items()}
    data = {"actions": report.actions, "names": names, "player": report.player, "pot": report.pot / unit, **shown}
    text = json.dumps(data, separators=(",", ":")).replace("<", "\\u003c")
    line, pot = report.line or "where it begins", f"{report.pot / unit:g} {name} in the pot"
    page = f"""<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8">{_GENERATOR}
<meta http-equiv="Content-Security-Policy" content="{_POLICY}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(title)} on flops</title><style>{_static("flops.css")}</style></head><body>
<h1>{escape(title)} on flops</h1><p class="quiet">{escape(line)}, {pot}; bets and EV in {name}, folding has EV 0</p>
<main id="report"></main>
<script type="application/json" id="data">{text}</script>
<script>{_static("flops.js")}</script></body></html>
"""
    with output(out, _is_report) as temporary:
        durable.write_file(temporary, page.encode())


def _named(action: str, unit: float) -> str:
    """Return an action in words, such as "to 3" for `r300`: a raise to 3 units of 100 chips.

    unit  chips of one unit: those of a big blind, or 1
    """
    return {"f": "fold", "c": "check or call"}.get(action) or f"to {float(action[1:]) / unit:g}"


def _in_units(row: Mapping[str, Any], unit: float) -> dict[str, Any]:
    """Return {column: value} of a table row, with all EVs converted from chips to units of `unit` chips."""
    return {key: value / unit if value is not None and key.startswith("ev") else value for key, value in row.items()}


FLOPS_PAGE = PageWriter(_is_report, _write)
"""Writer of the HTML page for `report_flops`."""
