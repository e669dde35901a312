"""PioSOLVER's protocol over spots: lines, nodes, ranges and values against other computations.

Shows:

* A tree of `mccfr upi` has the added lines and no others (test_add_line_with_all_lines_of_a_tree_builds_that_tree)
* Its values equal those of `mccfr spot` (test_a_spot_has_the_values_of_the_spot_command)
* The EVs of its nodes are means over the nodes that follow (test_values_of_nodes_are_means_over_the_nodes_that_follow)
"""

import json
import re

import numpy as np
import pytest
from commands import call
from upi_client import Client, spot

from abstraction.range_notation import parse_range
from mccfr.config.spot_table import spot_menu
from mccfr.upi.background_solver import SpotProblem
from mccfr.upi.tree_lines import bets, read_amounts

RIVER, TURN = "QsJh2h7c3d", "QsJh2h7c"
LINES = "90 270 910", "0 90 270 910", "0 180"
SOLVE = "set_accuracy 0.5", "go", "wait_for_solver"


@pytest.fixture(scope="module")
def river():
    client = spot(RIVER, *LINES)
    client.ask(*SOLVE)
    return client


@pytest.fixture(scope="module")
def turn():
    client = spot(TURN, "20 60", "0 0 20", oop="AA,KQs,JTs", ip="QQ,AJs,T9s:0.5", pot=40, stack=100)
    client.ask("go 30 steps", "wait_for_solver")
    return client


def grid(board, lines, **keys):
    game = {"board": board, "ranges": {"oop": "AA", "ip": "KK"}, "pot": 40, "effective_stack": 230, "big_blind": 1}
    menu = {"first": [], "later": [], "add": bets(map(read_amounts, lines), 20)}
    return SpotProblem({**game, **keys, "menu": menu}, 1).tree


def as_amounts(line):
    """Return a line of a tree, such as r:0:c:b12:c, in the form of add_line."""
    found, level = [], 0
    for action in line.split(":")[2:]:
        level = int(action[1:]) if action.startswith("b") else level
        found.append(level)
    return " ".join(map(str, found))


@pytest.mark.parametrize("board", [TURN, RIVER])
def test_add_line_with_all_lines_of_a_tree_builds_that_tree(board):
    """List the lines of a tree of bet sizes, and build the same nodes from them, and no others."""
    sizes = {**spot_menu("30%,60%", "40%", len(board) // 2 - 2), "allin_spr": 0.5}
    game = {"board": board, "ranges": {"oop": "AA", "ip": "KK"}, "pot": 40, "effective_stack": 230, "menu": sizes}
    whole = SpotProblem(game, 1).tree.lines()
    assert len(whole) > 40
    lines = [as_amounts(line) for line in whole if not line.endswith("f") and line != "r"]
    assert sorted(grid(board, lines).lines()) == sorted(whole)
    fewer = [line for line in lines if not line.startswith("24")]
    assert sorted(grid(board, fewer).lines()) == sorted(line for line in whole if not line.startswith("r:0:b24"))


def test_a_spot_has_the_values_of_the_spot_command(river, capsys, tmp_path, monkeypatch):
    """Solve the same tree by `mccfr spot`: equal equities, and EVs within both exploitabilities."""
    monkeypatch.chdir(tmp_path)
    given = [RIVER, "--oop", "TT+,AQs+", "--ip", "77+,ATs+,KQs,87s", "--pot", "180", "--stack", "910", "--workers", "0"]
    lines = [f"--add-line={line}" for line in bets(map(read_amounts, LINES), 90)]
    found = json.loads(call(capsys, "spot", *given, *lines, "--bets", "", "--raises", "", "--to", "0.3%", "--json").out)
    stats = dict(line.split(": ") for line in river.ask("calc_results").split("\n"))
    assert float(stats["Exploitable for"]) <= 0.5
    for player, name in enumerate(("OOP", "IP")):
        assert float(stats[f"EV {name}"]) == pytest.approx(found["ev_chips"][player], abs=1.5)
        assert float(stats[f"{name}'s MES"]) >= float(stats[f"EV {name}"])
        value, weights = (np.array(row) for row in river.numbers(f"calc_ev {name} r:0"))
        assert np.nansum(value * weights) / weights.sum() == pytest.approx(float(stats[f"EV {name}"]), abs=1e-3)
        assert river.numbers(f"calc_eq_node {name} r:0")[2] == [pytest.approx(found["equity"][player], abs=1e-6)]


def test_a_solve_prints_its_progress():
    client = spot(RIVER, "90")
    client.ask("go 20 steps")
    client.conversation.answer("wait_for_solver")
    assert client.all_answers().count("SOLVER: started") == 1
    block = r"^SOLVER:\nrunning time: .*\nEV OOP: .*\nEV IP: .*\nOOP's MES: .*\nIP's MES: .*\nExploitable for: "
    stats = re.findall(block, client.all_answers(), re.M)
    assert len(stats) == 6 and client.all_answers().endswith("SOLVER: stopped (20 iterations)\nwait_for_solver ok!\n")


def test_nodes_have_six_lines(river):
    six = "r:0:b90:b270", "OOP_DEC", "Qs Jh 2h 7c 3d", "90 270 180", "3 children", "flags:"
    assert river.ask("show_node r:0:b90:b270") == "\n".join(six)
    children = river.ask("show_children r:0:b90").split("\n\n")
    assert [child.split("\n")[:3] for child in children] == [
        ["child 0:", "r:0:b90:f", "END_NODE"],
        ["child 1:", "r:0:b90:c", "END_NODE"],
        ["child 2:", "r:0:b90:b270", "OOP_DEC"],
    ]
    assert river.ask("show_children r").split("\n")[1] == "r:0"


def test_values_of_nodes_are_means_over_the_nodes_that_follow(turn):
    """Check that EVs and frequencies of nodes add up over actions and cards; a fold gives the pot."""

    def worth(name, player):
        value, weights = (np.array(row) for row in turn.numbers(f"calc_ev {('OOP', 'IP')[player]} {name}"))
        return float(np.nansum(value * weights)), float(weights.sum())

    def chance(name):
        return float(turn.ask(f"calc_global_freq {name}"))

    def below(name):
        return re.findall(r"^child \d+:\n(\S+)$", turn.ask(f"show_children {name}"), re.M)

    for name in ("r:0", "r:0:b20", "r:0:c:c:2c"):
        assert sum(map(chance, below(name))) == pytest.approx(chance(name))
        for player in range(2):
            following = [worth(child, player) for child in below(name)]
            assert sum(value for value, _ in following) == pytest.approx(worth(name, player)[0], rel=1e-5)
    cards = below("r:0:c:c")
    assert len(cards) == 48 and sum(map(chance, cards)) == pytest.approx(chance("r:0:c:c"))
    for player in range(2):
        mean = sum(worth(card, player)[0] for card in cards) / 44
        assert mean == pytest.approx(worth("r:0:c:c", player)[0], rel=1e-5)
    folded = worth("r:0:b20:f", 0), worth("r:0:b20:f", 1)
    assert [value / weights for value, weights in folded] == pytest.approx([40, 0], abs=1e-6)
    assert sum(value / weights for value, weights in (worth("r:0", 0), worth("r:0", 1))) == pytest.approx(40)


def test_ranges_after_an_action_follow_from_the_strategy(turn):
    """Multiply a player's range by the strategy after each action; hands that hold a card are 0."""
    before, played = turn.numbers("show_range OOP r:0")[0], turn.numbers("show_strategy r:0")
    after = np.array(turn.numbers("show_range OOP r:0:b20")[0])
    assert after == pytest.approx(np.array(before) * played[1], abs=1e-7)
    assert sum(np.array(played)[:, np.array(before) > 0]) == pytest.approx(1)
    names = turn.ask("show_hand_order").split()
    assert len(names) == 1326 and names[:3] == ["2d2c", "2h2c", "2h2d"]
    river = turn.numbers("show_range OOP r:0:c:c:As")[0]
    assert not any(weight for name, weight in zip(names, river, strict=True) if "As" in name) and any(river)
    assert turn.numbers("show_range IP")[0] == pytest.approx(parse_range("QQ,AJs,T9s:0.5"))


def test_a_locked_node_is_fixed_and_other_nodes_respond_to_it(tmp_path):
    """A strategy that is set counts until the next solve. Nearly every hand bets if all hands fold."""
    client = spot(RIVER, *LINES)
    folds = "set_strategy r:0:b90 " + " ".join(["1"] * 1326 + ["0"] * 2652)
    assert client.ask(*SOLVE, folds).endswith("set_strategy ok!")
    assert client.ask("calc_global_freq r:0:b90:c") == "0"
    value, weights = client.numbers("calc_ev IP r:0:b90")
    assert np.nansum(np.multiply(value, weights)) == pytest.approx(0, abs=1e-6)
    client.ask("go 1 steps", "wait_for_solver")
    assert float(client.ask("calc_global_freq r:0:b90:c")) > 0
    client = spot(RIVER, *LINES)
    client.ask(folds, "lock_node r:0:b90", "set_accuracy 0.2", "go", "wait_for_solver")
    stats = dict(line.split(": ") for line in client.ask("calc_results").split("\n"))
    assert float(stats["EV OOP"]) == pytest.approx(180, abs=0.5) and float(stats["Exploitable for"]) <= 0.2
    assert client.ask("calc_global_freq r:0:b90:c") == "0" and float(client.ask("calc_global_freq r:0:b90")) > 0.8
    path, other = tmp_path / "locked.cfr", Client()
    client.ask(f"dump_tree {path}")
    other.ask("set_threads 1", f"load_tree {path}", "go 5 steps", "wait_for_solver")
    assert other.ask("calc_global_freq r:0:b90:c") == "0"
    assert other.ask("unlock_node r:0:b90", "go 50 steps", "wait_for_solver").endswith("ok!")
    assert float(other.ask("calc_global_freq r:0:b90:c")) > 0


def test_a_lock_holds_on_one_board_only():
    """Lock a node after a river card: nodes after other cards, also isomorphic ones, stay free."""
    client = spot(TURN, "20 60", "0 0 20", oop="AA,KQs,JTs", ip="QQ,AJs,T9s:0.5", pot=40, stack=100)
    bets = " ".join(["0"] * 1326 + ["1"] * 1326)
    client.ask(f"set_strategy r:0:c:c:2d {bets}", "lock_node r:0:c:c:2d", "go 20 steps", "wait_for_solver")
    for card, always in (("2d", True), ("2c", False), ("3d", False)):
        chances = [float(client.ask(f"calc_global_freq r:0:c:c:{card}{action}")) for action in ("", ":b20")]
        assert (chances[0] == pytest.approx(chances[1], rel=1e-6)) == always


def test_a_saved_tree_continues_with_the_same_strategy(tmp_path):
    path = tmp_path / "tree.cfr"
    one, other = spot(RIVER, *LINES), Client()
    one.ask("go 15 steps", "wait_for_solver", f'dump_tree "{path}" no_rivers')
    assert other.ask("set_threads 1", f'load_tree "{path}"') == "load_tree ok!"
    assert other.ask("show_strategy r:0") == one.ask("show_strategy r:0")
    for client in (one, other):
        client.ask("go 15 steps", "wait_for_solver")
    assert other.ask("show_strategy r:0") == one.ask("show_strategy r:0")
    whole = path.read_bytes()
    middle = len(whole) // 2
    for damaged in (whole[:-40], whole[:middle] + bytes([whole[middle] ^ 1]) + whole[middle + 1 :], b"x"):
        path.write_bytes(damaged)
        assert re.match("ERROR: .*tree.cfr is damaged, or no tree", other.ask(f"load_tree {path}"))


def test_both_evs_sum_to_the_pot_less_rake():
    """Both EVs sum to the pot less the rake, at most the cap; values of hands are after rake."""
    short = []
    for rake in ("0 0", "0.05 1000", "0.05 4"):
        client = spot(RIVER, *LINES)
        client.ask(f"set_rake {rake}", "build_tree", "set_accuracy 1", "go", "wait_for_solver")
        stats = dict(line.split(": ") for line in client.ask("calc_results").split("\n"))
        short.append(180 - float(stats["EV OOP"]) - float(stats["EV IP"]))
        ev, weights = (np.array(line.split(), float) for line in client.ask("calc_ev OOP r:0").split("\n"))
        assert np.nansum(ev * weights) / weights[~np.isnan(ev)].sum() == pytest.approx(float(stats["EV OOP"]), abs=2e-3)
    assert short[0] == pytest.approx(0, abs=0.01) and short[1] > 9 and 3.5 < short[2] <= 4.001


def test_scripts_are_run_line_by_line(tmp_path):
    script = tmp_path / "script.txt"
    script.write_text("#Board#Qs Jh\nset_board QsJh2h\n\nset_eff_stack 10\nfoo\nset_pot 0 0 10\n")
    assert Client().ask(f"load_script {script}").startswith(f"ERROR: {script}, line 5: 'foo' is not a command")


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("foo", "'foo' is not a command"),
        ("set_range BB AA", "'BB' is no position"),
        ("set_range OOP AB", "range item 'AB' is not known"),
        ("set_pot 10 0 20", "before any bet"),
        ("set_pot x", "set_pot takes the chips"),
        ("set_accuracy 1 bb", "'bb' is no unit"),
        ("add_line 0 20 10", "falls to 10"),
        ("add_line x", "is not a list of amounts"),
        ("remove_line 7", "no line that was added"),
        ("show_node r:0:b17", "'b17' does not follow r:0, where there is c, b90"),
        ("show_node x", "does not begin with r:0"),
        ("show_node r:0:c:c:c", "nothing: the hand is over"),
        ("show_strategy r:0:c:c", "no player acts at r:0:c:c"),
        ("set_strategy r:0 1 2", "set_strategy takes 2652 numbers"),
        ("calc_ev OOP", "calc_ev takes OOP or IP, and a node"),
        ("load_tree nowhere", "nowhere: No such file"),
        ("go 3 hours", "'hours' is no unit"),
        ("go x", "go takes a number"),
        ("go 2.5 steps", "2.5 is no whole number of steps"),
        ("set_rake 2 1", "set_rake takes a share below 1"),
        ("set_rake 0.05 0", "set_rake takes a share below 1"),
        ("set_threads 0.5", "set_threads takes a whole number up to 1024"),
        ("set_threads 2000", "set_threads takes a whole number up to 1024"),
    ],
)
def test_invalid_requests_give_an_error_of_one_sentence(river, line, sentence):
    message = river.ask(line)
    assert message.startswith("ERROR: ") and sentence in message and "\n" not in message


def test_a_tree_needs_ranges_a_board_a_pot_and_a_stack():
    client = Client()
    assert client.ask("build_tree") == "ERROR: there is no range of OOP: set_range OOP comes first"
    assert client.ask("set_range OOP AA", "set_range IP AA", "build_tree").startswith("ERROR: a tree needs set_board")
    assert client.ask("show_node r:0") == "ERROR: there is no tree: build_tree or load_tree comes first"
    client.ask("set_board QsJh2h7c3d", "set_pot 0 0 10", "set_eff_stack 20", "add_line 5 6")
    assert "b6 is not a bet after the line 'b5'" in client.ask("build_tree")


def test_other_requests_are_refused_during_a_solve():
    client = spot(RIVER, *LINES)
    client.ask("set_accuracy 0", "go 60 seconds")
    assert client.ask("show_node r:0") == "ERROR: show_node: the solver is running; send stop or wait_for_solver first"
    assert client.ask("is_ready") == "is_ready ok!"
    assert client.ask("stop").endswith("SOLVER: stopped (stopped by user)\nstop ok!")
