"""Writes a betting line on all flops as one HTML file, with sorting, texture filters and plots."""

import json
from collections.abc import Mapping
from html import escape
from pathlib import Path

from mccfr.evaluation.flop_values import FlopReport
from mccfr.report.document import GENERATOR, POLICY, is_report
from mccfr.report.page_assets import script, style
from mccfr.runs.results.flop_tables import PageWriter, Table
from storage import durable
from storage.atomic_outputs import output


def _write(out: Path, title: str, found: FlopReport, tables: Mapping[str, Table]) -> None:
    data = {"actions": found.actions, "player": found.player, "pot": found.pot, **tables}
    text = json.dumps(data, separators=(",", ":")).replace("<", "\\u003c")
    line = found.line or "where it begins"
    page = f"""<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8">{GENERATOR}
<meta http-equiv="Content-Security-Policy" content="{POLICY}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(title)} on flops</title><style>{style()}</style></head><body>
<h1>{escape(title)} on flops</h1><p class="quiet">{escape(line)}, {found.pot:g} chips in the pot; EV counts the pot</p>
<p id="filters"></p><p id="mean"></p><div id="plot"></div><p id="legend" class="quiet"></p>
<h2>Flops</h2><div id="flops"></div><h2>Textures</h2><div id="textures"></div>
<div class="row"><h2>Classes of hands</h2><span id="positions" class="tabs"></span></div>
<div id="grid" class="grid"></div>
<script type="application/json" id="data">{text}</script><script>{script("flops.js")}</script></body></html>
"""
    with output(out, is_report) as temporary:
        durable.write_file(temporary, page.encode())


FLOPS_PAGE = PageWriter(is_report, _write)
"""Writer of the HTML page for `report_flops`."""
