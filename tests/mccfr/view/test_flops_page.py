"""The flop report as a page in a browser: tables, sorting, filters, plots.

Shows:

* `mccfr report --spots` writes a page that sorts, filters by texture and plots (test_the_page_sorts_filters_and_plots)
"""

import pytest
from browser import browsing, needs_browser, wait_for
from random_policy import policy
from strategies import tabulate

from mccfr.config.game_tables import Menu
from mccfr.evaluation.flop_values import flop_report, some_flops
from mccfr.policy.strategy_profile import Profile
from mccfr.runs.results.flop_tables import tables_of
from mccfr.view.flops_page import FLOPS_PAGE
from storage.atomic_outputs import check_output

ROWS = "[...document.querySelectorAll('#flops tbody tr')].map((row) => [...row.cells].map((one) => one.textContent))"
SUITS = str.maketrans("♣♦♥♠", "cdhs")


@needs_browser
def test_the_page_sorts_filters_and_plots(tmp_path):
    behaviour = policy(Menu(first=("0.5p",), later=(), max_bets=2), 1_000.0)
    source = Profile(behaviour.game, tabulate(behaviour.game, behaviour.probabilities))
    found = flop_report(source, "b200c/c", some_flops(12), 2)
    tables, out = tables_of(found), tmp_path / "flops.html"
    FLOPS_PAGE.write(out, "</script><b>random", found, tables)
    FLOPS_PAGE.write(out, "</script><b>random", found, tables)  # over an earlier one
    check_output(out, FLOPS_PAGE.ours)
    with browsing() as page:
        page.goto(out.as_uri())
        wait_for(page, "document.body && document.querySelectorAll('#grid .cell .fill').length > 100")
        shares = {row["flop"]: row["share"] for row in tables["flops"]}
        listed = [row[0].translate(SUITS) for row in page.evaluate(ROWS)]
        assert sorted(listed) == sorted(shares) and [shares[flop] for flop in listed] == sorted(shares.values())[::-1]
        page.evaluate(
            "[...document.querySelectorAll('#flops th button')].find((one) => one.textContent === 'EV oop').click()"
        )
        ev = {row["flop"]: row["ev_oop"] for row in tables["flops"]}
        listed = [row[0].translate(SUITS) for row in page.evaluate(ROWS)]
        assert [ev[flop] for flop in listed] == sorted(ev.values())[::-1]
        first = tables["flops"][[row["flop"] for row in tables["flops"]].index(listed[0])]
        told = f"{first['ev_oop'] / 100:.2f} ± {first['ev_oop_within'] / 100:.2f}"
        assert told in page.evaluate(ROWS)[0], "in big blinds"
        assert page.locator("#plot polygon").count() == len(found.actions)
        page.evaluate("choice = document.querySelector('[aria-label=suits]'), choice.value = 'rainbow'")
        page.evaluate("choice.dispatchEvent(new Event('change'))")
        rainbow = next(row for row in tables["textures"] if row["texture"] == "rainbow")
        assert len(page.evaluate(ROWS)) == sum(row["suits"] == "rainbow" for row in tables["flops"])
        told = page.locator("#mean").text_content()
        assert (
            f"{100 * rainbow['share']:.1f} % of deals" in told and f"check or call {100 * rainbow['c']:.1f} %" in told
        )
        assert f"EQR oop {rainbow['eqr_oop']:.3f}" in told
        page.set_viewport_size({"width": 390, "height": 900})
        assert page.evaluate("document.documentElement.scrollWidth <= 390")


def test_other_files_are_not_overwritten(tmp_path):
    (tmp_path / "mine.html").write_text("mine")
    with pytest.raises(FileExistsError):
        check_output(tmp_path / "mine.html", FLOPS_PAGE.ours)
