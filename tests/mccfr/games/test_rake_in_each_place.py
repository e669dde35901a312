"""Rake in each place where chips are won: counted, or refused in one sentence.

Aces bet 20 into 60, and kings check and call. The pot of 100 pays 5 % rake, so aces win 95; after two checks 57.
Other files test further places: `test_page_table` tests each hand of the page's table. `test_vector` and
`test_exploitative_responses` test all values with rake. `test_upi` and `test_line_spot` also have rake.

Shows:

* Winners get the pot less rake in solving, evaluation, costs, play and reports (test_rake_is_counted,
  test_hands_played_in_the_terminal_pay_rake, test_a_report_counts_rake)
* Matches, reviews, re-solving and sampled evaluations refuse rake
  (test_commands_without_rake_support_refuse_games_with_rake)
"""

import csv
import re
from pathlib import Path

import pytest
from commands import call
from refusals import refused

import mccfr
from mccfr.api.exploiting import write_answer
from mccfr.config.toml_files import config_from
from mccfr.runs.reporter import Silent
from mccfr.runs.results.targets import Reference
from mccfr.view import open_spots
from mccfr.view.expected_values import ExpectedValues
from mccfr.view.judgement import judge

SPOT = {"board": "QsJh2h7c3d", "oop": "AsAd", "ip": "KsKd", "pot": 60, "stack": 20, "rake": "5%", "workers": 0}
BETS = {"bets": "allin", "raises": "", "locks": {"b20": "c 100%", "c": "c 100%"}, "to": "0.01%", "run": "run"}
HALF, AFTER_CHECKS, AFTER_A_CALL = 30, 57, 75
"""Half the pot in chips; EV of aces in chips, pot included, after checks and after a bet and a call."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A solved river on which kings are locked to check and call, its policy, and a flop without bets."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder := tmp_path_factory.mktemp("rake"))
        spot(folder)
        mccfr.Run("run").export("policy")
        mccfr.spot(**SPOT | {"board": "QsJh2h"}, bets="", raises="", run="flop")
        (folder / "hands.phh").write_text("")
        yield folder


def spot(folder):
    return mccfr.spot(**SPOT, **BETS)["ev_chips"][0]


def exact(folder):
    return HALF + mccfr.evaluate("run", "exact").value_chips


def best_response(folder):
    found = write_answer(Reference(Path("run")), Path("out"), Silent(), players=[0], replace=True)
    return HALF + found["answers"][0]["wins_chips"]


def cost(folder):
    """Return the EV of a check plus its cost: the EV of the best action."""
    spots = open_spots(Path("run"))
    return AFTER_CHECKS + judge(spots, ExpectedValues(spots), "", SPOT["board"], "AsAd", "c")["cost_chips"]


@pytest.mark.parametrize("place", [spot, exact, best_response, cost])
def test_rake_is_counted(folder, place):
    assert place(folder) == pytest.approx(AFTER_A_CALL, abs=0.02)


def test_hands_played_in_the_terminal_pay_rake(folder, capsys, monkeypatch):
    """Check with both seats in turn: the winner gets 27 of the opponent's half, the loser pays 30."""
    monkeypatch.setattr("mccfr.cli.bot_commands.click.prompt", lambda *_, **__: "c")
    ended = call(capsys, "play", "flop", "--hands", 2, "--seed", 1)
    assert ended.status == 0
    results = re.findall(r": ([AK])\w [AK]\w against .*\| ([+-]\d\S*)", ended.out)
    assert sorted(results) == [("A", "+27"), ("K", "-30")], ended.out


def test_a_report_counts_rake(folder, capsys):
    """Without bets the winner of each pot of 60 gets 57."""
    assert call(capsys, "report", "flop", "out.csv", "--spots", "", "--flops", 2).status == 0
    rows = list(csv.DictReader(Path("out.csv").read_text().splitlines()))
    assert rows
    for row in rows:
        assert float(row["ev_oop"]) + float(row["ev_ip"]) == pytest.approx(57, abs=0.01), row


REFUSED = {
    "match run policy --hands 200": "takes rake, which matches do not pay",
    "rank run policy --hands 200": "takes rake, which matches do not pay",
    "review hands.phh --policy policy": "hands of whole no-limit hold'em are reviewed",
    "play run --resolve river": "re-solving needs a policy of whole no-limit hold'em",
    "bot acpc run 127.0.0.1 9": "servers and dealers play whole no-limit hold'em",
    "dealer --with run": "servers and dealers play whole no-limit hold'em",
    "exploit run other --share 50%": "with rake only a best response",
    "evaluate run --method head-to-head --against policy": "with rake use exact",
    **{f"evaluate run --method {name}": "with rake use exact" for name in ("lbr", "sampled-br", "bounds")},
}


@pytest.mark.parametrize("line", REFUSED)
def test_commands_without_rake_support_refuse_games_with_rake(folder, capsys, line):
    ended = call(capsys, *line.split())
    assert ended.status == 2 and REFUSED[line] in ended.err, ended


def test_games_without_rake_support_have_no_key_for_it():
    """AIVAT, dealers, bots and match logs support games without rake only."""
    for name in ("limit-holdem", "flop-holdem", "leduc", "poker"):
        refused("unknown key 'rake'", config_from, {"game": {"name": name, "rake": 0.05}}, "run.toml")
    refused("game.rake = .*seats", config_from, {"game": {"name": "holdem", "rake": "5%"}}, "run.toml")
