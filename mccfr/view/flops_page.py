"""Writes a betting line on all flops as one HTML file, with sorting, texture filters and plots.

The file contains styles, scripts and data, and works offline.  Texts from files or names are escaped.  Scripts insert
texts as text, never as markup, and load nothing.
"""

import json
from collections.abc import Mapping
from html import escape
from importlib.resources import files
from pathlib import Path

from mccfr.evaluation.flop_values import FlopReport
from mccfr.runs.results.flop_tables import PageWriter, Table
from storage import durable
from storage.atomic_outputs import contains, output

_GENERATOR = '<meta name="generator" content="mccfr report">'
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'"
_is_report = contains(_GENERATOR.encode(), 1000)
"""Returns whether a file is an earlier report, which may be replaced."""


def _static(name: str) -> str:
    """Return styles or scripts of the bundle."""
    return files("mccfr.view").joinpath("static", name).read_text("utf-8")


def _write(out: Path, title: str, report: FlopReport, tables: Mapping[str, Table]) -> None:
    data = {"actions": report.actions, "player": report.player, "pot": report.pot, **tables}
    text = json.dumps(data, separators=(",", ":")).replace("<", "\\u003c")
    line = report.line or "where it begins"
    page = f"""<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8">{_GENERATOR}
<meta http-equiv="Content-Security-Policy" content="{_POLICY}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(title)} on flops</title><style>{_static("flops.css")}</style></head><body>
<h1>{escape(title)} on flops</h1><p class="quiet">{escape(line)}, {report.pot:g} chips in the pot; EV counts the pot</p>
<main id="report"></main>
<script type="application/json" id="data">{text}</script>
<script>{_static("flops.js")}</script></body></html>
"""
    with output(out, _is_report) as temporary:
        durable.write_file(temporary, page.encode())


FLOPS_PAGE = PageWriter(_is_report, _write)
"""Writer of the HTML page for `report_flops`."""
