"""`tools/bench view`: time until the page of `mccfr view` appears, and time of the EVs after a flop."""

import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import rich_click as click
from playwright.sync_api import Page, sync_playwright

from mccfr.view import open_spots
from mccfr.view.expected_values import ExpectedValues

ROOT = Path(__file__).resolve().parent.parent
sys.path.append(str(ROOT / "tests"))
from browser import program  # noqa: E402

_SHOWN = "() => document.body?.dataset.ready"


@click.command()
@click.argument("policy", type=click.Path(exists=True, path_type=Path))
@click.option("--line", default="b300c/", show_default=True, help="Line of the EVs.")
@click.option("--board", default="Kc7d2s", show_default=True)
@click.option("--rounds", type=click.IntRange(1), default=5, show_default=True)
def view(policy: Path, line: str, board: str, rounds: int) -> None:
    """Measure the page of POLICY: first paint after the command, and the EVs of a decision.

    The first paint is measured from the start of `mccfr view` until an open browser shows the first decision. For EVs
    it prints seconds, processor seconds (more than the seconds on several cores) and half-widths of the intervals.
    """
    size = sum(path.stat().st_size for path in policy.rglob("*") if path.is_file())
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program(), args=["--no-sandbox"])
        for _ in range(rounds):
            page = browser.new_page(bypass_csp=True)
            seconds, processor = _first_paint(policy, page)
            click.echo(f"first paint of {size / 1e6:.0f} MB: {seconds:.2f} s, {processor:.2f} processor seconds")
            page.close()
        browser.close()
    spots = open_spots(policy)
    unit, player = spots.money.unit, spots.spot(line, board)["player"]
    for _ in range(rounds):
        values, began, used = ExpectedValues(spots), time.perf_counter(), time.process_time()
        found = values.values(line, board)
        seconds, processor = time.perf_counter() - began, time.process_time() - used
        hands = np.array(found["hands_within"][player], float) / unit
        click.echo(
            f"EV of {line} {board} over {found['boards']} boards: {seconds:.2f} s, {processor:.2f} processor seconds; "
            f"95 % within {np.nanmedian(hands):.3f} for the median hand, {np.nanquantile(hands, 0.9):.3f} for nine of "
            f"ten, {found['mean_within'][player] / unit:.3f} for the range, in big blinds"
        )


def _first_paint(policy: Path, page: Page) -> tuple[float, float]:
    """Return seconds from the command to the first decision shown, and the server's processor seconds."""
    command = [sys.executable, "-m", "mccfr", "view", str(policy.resolve()), "--port", "0", "--no-browser"]
    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        server = subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, text=True)
        try:
            assert server.stderr is not None
            url = next(found[0] for text in server.stderr if (found := re.search(r"http://\S+/", text)))
            page.goto(url)
            page.wait_for_function(_SHOWN)
            seconds = time.perf_counter() - began
            fields = Path(f"/proc/{server.pid}/stat").read_text().rpartition(")")[2].split()
            return seconds, sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")
        finally:
            server.terminate()
            server.wait()
