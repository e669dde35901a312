"""Takes the documentation's pictures of the page of `mccfr view` in a browser.

python tools/pictures.py [POLICY] [--review FILE] [--out FOLDER]

It solves the turn of docs/spot.md in the page.  With a two-player policy it also shows decisions and a drill, with
--review a review.  With a policy of three to six seats it shows charts by position and a table instead.  It needs
Chromium and the extras "test" and "plot".  Each step prints its seconds.
"""

import io
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlencode

import click
from PIL import Image
from playwright.sync_api import Page, sync_playwright

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))
from browser import program  # noqa: E402

_WIDTH, _HEIGHT = 1400, 880
_COLOURS = 256  # of a picture's palette, which makes the file three times smaller
_PATIENCE_MILLISECONDS = 300_000
_DECISIONS = 10
_SEATS_SEED = 1  # of a hand at a table of six in which the user, in the big blind, calls a raise
_TURN = {
    "board": "Kc7d2s5h",
    "oop": "22+,A2s+,KTs+,KJo+,QTs+,JTs",
    "ip": "99-22,A2s+,K9s+,KQo,QTs+,T9s,98s",
    "pot": "60",
    "stack": "170",
    "bets": "33%,75%/75%",
    "raises": "60%",
}
"""The spot of docs/spot.md, by fields of the form."""


@contextmanager
def viewing(policy: Path | None, review: Path | None) -> Iterator[str]:
    """Serve the page from a temporary folder; yield its address."""
    more = [] if review is None else ["--review", str(review.resolve())]
    shown = [] if policy is None else [str(policy.resolve())]
    command = [sys.executable, "-m", "mccfr", "view", *shown, "--port", "0", "--no-browser", *more]
    with tempfile.TemporaryDirectory() as folder:
        server = subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, text=True)
        try:
            assert server.stderr is not None
            yield next(found[0] for line in server.stderr if (found := re.search(r"http://\S+/", line)))
        finally:
            server.terminate()
            server.wait()


class PageWalk:
    """A walk through the page: each step takes a picture and prints its seconds."""

    def __init__(self, page: Page, url: str, out: Path) -> None:
        self.page, self.url, self.out, self.began = page, url, out, time.monotonic()

    def step(self, name: str, text: str, *, whole: bool = False) -> None:
        """Take the picture of a step that is done: of the window, or of the whole page."""
        self.picture(name, "html", whole=whole)
        click.echo(f"{time.monotonic() - self.began:6.1f} s  {text}")
        self.began = time.monotonic()

    def picture(self, name: str, selector: str, *, whole: bool = True) -> None:
        """Take the picture of a part of the page, or of what the window shows of the page."""
        data = self.page.locator(selector).screenshot() if whole else self.page.screenshot()
        with Image.open(io.BytesIO(data)) as image:
            image.convert("RGB").quantize(_COLOURS).save(self.out / f"{name}.png", optimize=True)

    def look(self, fragment: str) -> None:
        """Open a decision and wait until all its figures are there."""
        self.page.goto(f"{self.url}#{fragment}")
        self.page.wait_for_function("() => document.body.dataset.complete === location.hash")

    def spot(self) -> None:
        """Solve the turn, and show all lists of its first decision and its rivers."""
        self.page.goto(f"{self.url}#spot&{urlencode(_TURN)}")
        self.page.locator("#spot-told-ip", has_text="combos").wait_for()
        self.page.click("#spot-solve")
        self.page.locator("#spot-state", has_text="Solved in").wait_for()
        self.page.evaluate("scrollTo(0, 0)")  # sticky elements return to their places
        self.step("spot-form", "a spot typed and solved", whole=True)
        self.page.click("#spot-open")
        self.page.wait_for_function("() => (document.body.dataset.complete || '').includes('&of=')")
        self.step("spot", "its first decision")
        of = self.page.evaluate("location.hash").split("of=")[1]
        for name in ("Classes", "Blockers", "Equity graph"):
            self.page.click(f"#lists >> text={name}")
            self.page.locator("#list").scroll_into_view_if_needed()
            self.picture(name.lower().replace(" ", "-"), "#list")
        self.page.goto(f"{self.url}#line=cc/&board={_TURN['board']}&of={of}")
        self.page.wait_for_function("() => (document.body.dataset.complete || '').startsWith('#line=cc')")
        self.picture("next-cards", "#card-figure")
        self.step("rivers", "all rivers after two checks")

    def blueprint(self) -> None:
        """Show a blueprint: a preflop decision, all turns of a flop, a solved river, a preflop range."""
        first = self.page.locator("#actions button[data-action^=b]:enabled").first
        self.page.goto(self.url)
        first.wait_for()
        self.step("first", "first paint")
        first.click()
        self.page.wait_for_function("() => document.body.dataset.complete === location.hash")
        self.step("view", "a decision of the big blind")
        line = self.page.evaluate("location.hash").split("=")[1]
        self.look(f"line={line}c/cc/&board=Kc7d2s")
        self.step("turns", "all turns of a flop")
        self.look(f"line={line}c/cc/cc/&board=Kc7d2s4h9d")
        self.page.click("#solve")
        self.page.locator("#solve-state", has_text="Solved in").wait_for()
        self.step("solved", "a line solved again")
        self.page.goto(f"{self.url}#spot&board=QsJh2h7c3d")
        sides = self.page.locator("#spot-sides .panel")
        choice = sides.first.get_by_label("Put in a range")
        choice.locator("option[value='preset 0']").wait_for(state="attached")
        choice.select_option(value="preset 0")
        sides.first.get_by_label("Name of the range").fill("my range")
        sides.first.get_by_role("button", name="Save").click()
        saved = sides.last.get_by_label("Put in a range")
        saved.locator("option", has_text="my range").wait_for(state="attached")
        saved.select_option(label="my range")
        self.step("ranges", "a preflop range saved and used")

    def drill(self) -> None:
        """Play ten decisions of a drill, and judge each."""
        self.page.goto(f"{self.url}#play")
        self.page.locator("#train-on").check()
        choice = self.page.locator("#train-drill")
        line = choice.locator("option", has_text="c-bet in a single-raised pot").first.get_attribute("value")
        choice.select_option(value=line)
        for number in range(1, _DECISIONS + 1):
            self.page.locator("#play:not(.busy)").wait_for()
            if self.page.locator("#play-next").count():
                self.page.keyboard.press("n")
                self.page.locator("#play-next").wait_for(state="detached")
            self.page.keyboard.press("c")
            self.page.locator("#train-score", has_text=f"{number} decision").wait_for()
        self.page.wait_for_function("() => /^You[^…]*$/.test(document.getElementById('train-told').textContent)")
        self.step("play", self.page.locator("#train-score").inner_text())

    def seats(self) -> None:
        """Show charts by position, and a hand at a table of three to six seats."""
        self.page.goto(f"{self.url}#positions")
        self.page.locator(".position").first.wait_for()
        self.step("positions", "charts by position")
        self.page.goto(f"{self.url}#play")
        self.page.locator("[data-play]").first.wait_for()
        body = (
            f'{{method: "POST", headers: {{"Content-Type": "application/json"}}, body: \'{{"seed": {_SEATS_SEED}}}\'}}'
        )
        self.page.evaluate(f'fetch("/api/play/sit", {body})')
        self.page.reload()
        self.page.locator("[data-play]").first.wait_for()
        self.page.keyboard.press("c")
        self.page.locator("#middle .card:not(.back)").nth(2).wait_for()
        self.picture("six-handed", "#play")
        self.step("table", "a hand at a table")

    def review(self) -> None:
        """Show the costliest decision of a review."""
        self.page.click("#tab-review")
        self.page.locator("#review-told").wait_for()
        self.step("review", "a hand reviewed")


@click.command(help=__doc__)
@click.argument("policy", required=False, type=click.Path(exists=True, path_type=Path))
@click.option("--review", type=click.Path(exists=True, path_type=Path), help="File of mccfr review --keep.")
@click.option(
    "--out", default=ROOT / "docs" / "figures", type=click.Path(path_type=Path), help="Folder of the pictures."
)
def main(policy: Path | None, review: Path | None, out: Path) -> None:
    """Walk through the page and take the pictures."""
    out.mkdir(parents=True, exist_ok=True)
    with viewing(policy, review) as url, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program(), args=["--no-sandbox"])
        # bypass_csp: the page's Content-Security-Policy forbids to compile Playwright's waiting functions in it.
        page = browser.new_page(viewport={"width": _WIDTH, "height": _HEIGHT}, color_scheme="light", bypass_csp=True)
        page.set_default_timeout(_PATIENCE_MILLISECONDS)
        walk = PageWalk(page, url, out)
        page.goto(url)
        page.locator("#actions" if policy is not None else "#spot").wait_for()
        if page.locator("#tab-positions").count():
            walk.seats()
        else:
            walk.spot()
            if policy is not None:
                walk.blueprint()
                walk.drill()
        if review is not None:
            page.goto(url)
            walk.review()
        browser.close()


if __name__ == "__main__":
    main()
