"""Equal figures of one spot in page, `mccfr spot`, `query --json`, report, UPI and Python.

Shows:

* Page, command, report, UPI and Python state equal figures for a spot
  (test_all_views_state_equal_figures, planted: test_a_wrong_weight_is_caught)
"""

import json
import shlex
from pathlib import Path

import numpy as np
import pytest
from commands import call
from upi_client import Client

import mccfr
from abstraction.cards import parse_cards
from mccfr.evaluation import decision_values
from mccfr.evaluation.flop_values import Flops
from mccfr.runs.results.flop_tables import tables_of
from mccfr.runs.results.solved_flops import solved_flops, typed_spot
from mccfr.view import open_spots
from mccfr.view.expected_values import ExpectedValues

BOARD, POT = "QsJh2h", 40
SPOT = shlex.split("--oop AA,QJs:0.5 --ip KK,T9s --pot 40 --stack 20 --bets allin --raises '' --workers 0")
PYTHON = {"oop": "AA,QJs:0.5", "ip": "KK,T9s", "pot": 40, "stack": 20, "bets": "allin", "raises": ""}
PYTHON |= {"to": "0.1%", "run": "run", "workers": 0}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Yield the run of a solved flop; its folder is the working directory."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("views"))
        mccfr.spot(board=BOARD, **PYTHON)
        yield Path("run")


def by_spot(capsys):
    found = json.loads(call(capsys, "spot", BOARD, *SPOT, "--to", "0.1%", "--run", "run", "--json").out)
    return of_answer(found)


def by_python(_):
    return of_answer(mccfr.spot(board=BOARD, **PYTHON))


def of_answer(found):
    """Return the figures in the answer of `mccfr spot`."""
    frequency, taken = ([one[key] for one in found["actions"]] for key in ("frequency", "ev_chips"))
    names = [one["action"] for one in found["actions"]]
    return {"ev": found["ev_chips"], "equity": found["equity"], "names": names, "frequency": frequency, "taken": taken}


def by_page(_):
    spots = open_spots(Path("run"))
    values, there, equity = ExpectedValues(spots).values(), spots.spot(), spots.equity()
    assert values["exact"] and there["pot_chips"] == POT and spots.game()["unit_chips"] == 1
    names = [one["action"] for one in there["actions"]]
    figures = {"ev": values["mean"], "equity": equity["mean"], "names": names}
    return figures | {"frequency": there["frequencies"], "taken": values["taken"]}


def by_query(capsys):
    found = json.loads(call(capsys, "query", "run", "", "--ev", "--json").out)
    assert found["pot_chips"] == POT and found["ev_chips_within"] == [0, 0]
    frequency, taken = ([one[key] for one in found["actions"]] for key in ("frequency", "ev_chips"))
    names = [one["action"] for one in found["actions"]]
    return {"ev": found["ev_chips"], "names": names, "frequency": frequency, "taken": taken}


def by_upi(_):
    client = Client()
    client.ask(f"load_tree {Path('run').resolve()}")
    assert client.ask("show_effective_stack") == "20"
    assert client.ask("go").startswith("ERROR: this tree of a run or policy")

    def of(command, node, player):
        each, weight = (
            np.array(row.split(), float) for row in client.ask(f"{command} {player} {node}").split("\n")[:2]
        )
        known = ~np.isnan(each) & (weight > 0)
        return float(each[known] @ weight[known] / weight[known].sum()), weight

    figures = {
        key: [of(name, "r:0", player)[0] for player in ("OOP", "IP")]
        for key, name in (("ev", "calc_ev"), ("equity", "calc_eq_node"))
    }
    weight = of("calc_ev", "r:0", "OOP")[1]
    rows = [np.array(row.split(), float) for row in client.ask("show_strategy r:0").split("\n")]
    nodes = [node for node in client.ask("show_children r:0").split() if node.startswith("r:0:")]
    children = zip(nodes, rows, strict=True)
    found = {node: (float(weight @ row / weight.sum()), of("calc_ev", node, "OOP")[0]) for node, row in children}
    frequency, taken = zip(found["r:0:c"], found["r:0:b20"], strict=True)
    return figures | {"names": ["c", "b20"], "frequency": frequency, "taken": taken}


def by_report(_):
    """Return the figures of a report, which solves the flop itself to the same exploitability."""
    flop = Flops(np.array([sorted(parse_cards(BOARD))], np.int8), np.ones(1))
    game = typed_spot(Path("run"))
    (row,) = tables_of(solved_flops(game, flop, 0.001)[0])["flops"]
    both = {key: [row[f"{key}_{position}"] for position in ("oop", "ip")] for key in ("ev", "equity")}
    return both | {"names": ["c", "b20"], "frequency": [row["c"], row["b20"]]}


@pytest.mark.parametrize("view", [by_spot, by_page, by_query, by_upi, by_report])
def test_all_views_state_equal_figures(run, capsys, view):
    """Figures agree to the stated digits; those of a report, a separate solve, to 0.2 % of the pot.

    The EVs of both players sum to the pot in chips, so all views have one unit.
    """
    expected, found = by_python(capsys), view(capsys)
    tolerance = 2e-3 * POT if view is by_report else 2e-4
    apart = {key: float(np.abs(np.subtract(found[key], expected[key])).max()) for key in found if key != "names"}
    assert found["names"] == expected["names"] == ["c", "b20"] and apart.keys() >= {"ev", "frequency"}
    assert max(apart.values()) < tolerance
    shares = zip(expected["frequency"], expected["taken"], strict=True)
    assert sum(share * ev for share, ev in shares) == pytest.approx(expected["ev"][0], abs=1e-4)
    assert sum(found["ev"]) == pytest.approx(POT, abs=1e-3) and run.is_dir()


def test_a_wrong_weight_is_caught(run, capsys, monkeypatch):
    """The planted error gives all hands the same weight in means."""
    expected, right = by_python(capsys), decision_values.range_mean
    monkeypatch.setattr(decision_values, "range_mean", lambda values, weight: right(values, (weight > 0) * 1.0))
    found = by_page(capsys)
    assert np.abs(np.subtract(found["ev"], expected["ev"])).max() > 0.01 and run.is_dir()
