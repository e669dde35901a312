"""`mccfr spot`: strategies and EVs of spots with two ranges."""

import json
import re
import shlex
import tomllib
from pathlib import Path

import numpy as np
import pytest
from commands import call
from refusals import refusals

import mccfr
from abstraction.cards import parse_cards
from abstraction.hand_evaluator import strength
from mccfr.runs.reporter import Silent
from mccfr.runs.session import spot_run as session
from mccfr.runs.session.spot_run import SpotOptions, start_spot
from mccfr.runs.session.start import Terms
from mccfr.trees.betting_lines import all_lines

RIVER = [
    *("QsJh2h7c3d", "--oop", "TT+,AQs+", "--ip", "77+,ATs+,KQs,87s"),
    *("--pot", "180", "--stack", "910", "--workers", "0"),
]
"""Arguments of a river spot that is solved in a second."""


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def ask(capsys, *arguments, code=0):
    ended = call(capsys, "spot", *arguments)
    assert ended.status == code, ended.err
    return ended


def answer(capsys, *arguments):
    return json.loads(ask(capsys, *arguments, "--json").out)


def test_a_spot_is_solved_to_a_share_of_the_pot_and_continues_from_there(capsys):
    found = answer(capsys, *RIVER, "--to", "1%", "--run", "there")
    assert found["exploitability_chips"] <= 1.8 and found["exploitability_pot"] <= 0.01
    assert found["board"] == "QsJh2h7c3d" and found["pot_chips"] == 180 and found["run"] == "there"
    assert sum(found["ev_chips"]) == pytest.approx(180, abs=1e-4) and sum(found["equity"]) == pytest.approx(1)
    again = answer(capsys, *RIVER, "--to", "1%", "--run", "there")
    assert {**again, "seconds": 0} == {**found, "seconds": 0}
    closer = answer(capsys, *RIVER, "--to", "0.1%", "--run", "there")
    assert closer["iterations"] > found["iterations"] and closer["exploitability_pot"] <= 0.001
    checked = mccfr.evaluate("there", "exact")
    assert checked.exploitability_chips == pytest.approx(closer["exploitability_chips"], abs=1e-5)
    assert checked.value_chips + 90 == pytest.approx(closer["ev_chips"][0], abs=1e-4)


def test_the_answer_is_the_strategy_that_reached_the_target(capsys):
    """Workers pause while a strategy is evaluated that may be the answer; else they would train past it."""
    for number, to in enumerate(("30%", "0.3%")):
        found = answer(capsys, *RIVER, "--to", to, "--workers", "2", "--run", str(number))
        measured = json.loads(Path(str(number), "evaluations.jsonl").read_text().splitlines()[-1])
        assert found["reached"] and found["exploitability_pot"] <= float(to[:-1]) / 100
        assert measured["iterations"] == found["iterations"]
        assert measured["exploitability_chips"] == pytest.approx(found["exploitability_chips"], rel=1e-4)


@pytest.mark.parametrize(
    ("limit", "advice"), [(["--set", "run.iterations=30"], "run.iterations"), (["--time", "0.01s"], "longer --time")]
)
def test_a_missed_target_is_reported_with_status_3(capsys, limit, advice):
    ended = ask(capsys, *RIVER, "--to", "0.0001%", *limit, code=3)
    assert "--to 0.0001% was not reached" in ended.err and advice in ended.err and "QsJh2h7c3d, 180" in ended.out


def test_frequencies_and_values_of_actions_and_classes_agree_with_those_of_the_range(capsys):
    found = answer(capsys, *RIVER, "--bets", "0.5p,1p", "--to", "0.3%")
    assert [one["action"] for one in found["actions"]] == ["c", "b90", "b180"]
    assert [one["bet_chips"] for one in found["actions"]] == [None, 90, 180]
    for key in ("actions", "ip_actions"):
        assert sum(one["frequency"] for one in found[key]) == pytest.approx(1, abs=1e-4)
    mixed = sum(one["frequency"] * one["ev_chips"] for one in found["actions"] if one["ev_chips"] is not None)
    assert mixed == pytest.approx(found["ev_chips"][0], abs=1e-3)
    answered = sum(one["frequency"] * one["ev_chips"] for one in found["ip_actions"] if one["ev_chips"] is not None)
    assert answered + found["actions"][0]["ev_chips"] == pytest.approx(180, abs=1e-3)  # after a check EVs sum to 180
    for player, name in enumerate(("oop", "ip")):
        classes = found["classes"][name]
        assert sum(one["share"] for one in classes) == pytest.approx(1, abs=1e-4)
        for key in ("equity", "ev_chips"):
            mean = sum(one["share"] * one[key] for one in classes)
            assert mean == pytest.approx(found[key][player], abs=1e-3)
    assert {one["class"] for one in found["classes"]["oop"]} == {"AA", "KK", "QQ", "JJ", "TT", "AKs", "AQs"}


def test_sizes_beyond_the_stack_are_all_in():
    game = {"board": "QsJh2h7c3d", "ranges": {"oop": "AA", "ip": "KK"}, "pot": 180, "effective_stack": 910}
    built = start_spot(game, SpotOptions("0.52p", "0.45p", 0.003, 0), Terms(Silent())).game
    raised = [line for line in all_lines(built.tree) if line.startswith("cr184r350r665r")]
    assert raised == ["cr184r350r665r1000", "cr184r350r665r1000f", "cr184r350r665r1000c"]


@pytest.mark.parametrize(("board", "equity"), [("QsJh2h7c3d", 1.0), ("AsKdKh7c3d", 0.0)])
def test_without_bets_the_ev_is_the_equity_times_the_pot(capsys, board, equity):
    given = [board, "--oop", "QQ", "--ip", "KK:0.5" if equity == 0 else "99", "--pot", "100", "--stack", "50"]
    found = answer(capsys, *given, "--bets", "", "--raises", "", "--workers", "0")
    assert found["equity"] == [equity, 1 - equity]
    assert found["ev_chips"] == pytest.approx([100 * equity, 100 * (1 - equity)])
    assert found["eqr"][0 if equity else 1] == pytest.approx(1)


@pytest.mark.parametrize(("cap", "folded", "called"), [(None, 10, 30), (20, 10, 20)])
def test_the_winner_of_a_spot_pays_the_rake(capsys, cap, folded, called):
    """Bet the pot with quads or a bluff into aces: a bluff equals a check, and a call equals a fold."""
    given = ["8d8c,7d6d", "--ip", "AhAd", "--pot", "100", "--stack", "100", "--bets", "1p", "--workers", "0"]
    limit = [] if cap is None else ["--rake-cap", str(cap)]
    found = answer(capsys, "Ks8s8h3d2c", "--oop", *given, "--rake", "10%", *limit, "--to", "0.02%")
    calls = (100 - folded) / (200 - folded)
    bluffs = 100 / (200 - called)
    worth = ((1 - calls) * (100 - folded) + calls * (200 - called)) / 2
    bet = found["actions"][1]
    assert bet["frequency"] == pytest.approx((1 + bluffs) / 2, abs=0.01)
    assert found["ev_chips"][0] == pytest.approx(worth, abs=0.1)
    checks = (1 - bluffs) / 2
    assert found["ev_chips"][1] == pytest.approx(checks * (100 - folded), abs=0.2)
    assert sum(found["gain_chips"]) / 2 == pytest.approx(found["exploitability_chips"], abs=1e-5)
    mccfr.Run(found["run"]).export("policy")
    for whole, near in ((found["run"], 1e-5), ("policy", 0.2)):  # a policy rounds probabilities to 255ths
        checked = mccfr.evaluate(whole, "exact")
        assert checked.value_chips + 50 == pytest.approx(found["ev_chips"][0], abs=near)
        assert checked.exploitability_chips == pytest.approx(found["exploitability_chips"], abs=2 * near)


def test_methods_without_support_for_rake_or_locks_refuse_them(capsys):
    ask(capsys, *RIVER, "--to", "5%", "--rake", "5%", "--run", "raked")
    with pytest.raises(ValueError, match="the method lbr assumes that one player wins what the other loses"):
        mccfr.evaluate("raked", "lbr")
    for options in ("solver.algorithm=cfr-br", "solver.pruning=partial"):
        text = ask(capsys, *RIVER, "--rake", "5%", "--set", options, "--run", "other", code=2).err
        assert "game.rake = 0.05 is for solver.algorithm = 'cfr' over whole ranges" in " ".join(text.split())
    text = ask(capsys, *RIVER, "--lock", "c=c 100%", "--set", "solver.algorithm=cfr-br", "--run", "other", code=2).err
    assert "solver.algorithm = 'cfr-br' keeps no game.locks: leave one of them out" in " ".join(text.split())


def test_equity_is_that_of_all_run_outs(capsys):
    """Sixes against ace-king on a flop: each pair of hands on each of the 990 pairs of cards to come."""
    found = answer(
        capsys, "Ah7c2d", "--oop", "6c6d", "--ip", "AsKs", "--pot", "10", "--stack", "10", "--bets", "", "--raises", "",
        "--workers", "0",
    )  # fmt: skip
    sixes, other, flop = parse_cards("6c6d"), parse_cards("AsKs"), parse_cards("Ah7c2d")
    left = [card for card in range(52) if card not in (*sixes, *other, *flop)]
    won = [
        np.sign(strength([*sixes, *flop, one, two]) - strength([*other, *flop, one, two]))
        for number, one in enumerate(left)
        for two in left[:number]
    ]
    assert found["equity"][0] == pytest.approx((1 + np.mean(won)) / 2, abs=1e-6)


def test_the_text_output_and_the_messages_before_it(capsys):
    ended = ask(capsys, *RIVER, "--to", "0.5%")
    assert "hands that the board QsJh2h7c3d blocks are dropped: 7 of oop, 13 of ip" in ended.err
    assert "of memory" in ended.err and "0.50% of the pot" in ended.err
    assert re.search(r"exploitability 0\.\d{3}% of the pot, value", ended.err)
    assert "out of position, first action (EV of the hands that take it): check" in ended.out
    assert "in position, after a check (EV of the hands that take it): check" in ended.out
    assert "EQR" in ended.out and "mccfr view runs/spot-QsJh2h7c3d-" in ended.out


def test_a_spot_that_exceeds_the_memory_is_refused_with_advice(monkeypatch):
    monkeypatch.setattr(
        session, "space_problem", lambda config, *_: None if config.solver.dtype == "int16" else "memory is short"
    )
    game = {"board": "QsJh2h7c3d", "ranges": {"oop": "AA", "ip": "KK"}, "pot": 10, "effective_stack": 20}
    with pytest.raises(ValueError, match=r"fewer sizes in --bets .* narrower ranges .*solver\.dtype=int16"):
        start_spot(game, SpotOptions("1p", "1p", 0.003, 0), Terms(Silent()))


POLAR = [
    "Ks8s8h3d2c",
    *["--oop", "8d8c,7d6d", "--ip", "AhAd", "--pot", "100", "--stack", "100", "--bets", "1p", "--workers", "0"],
]
"""Quads or a bluff against aces: the bettor knows the better hand, the caller does not."""


@pytest.mark.parametrize(("calls", "bets", "worth", "free"), [(30, 1.0, 85, 35), (60, 0.5, 80, 30)])
def test_bluffs_exploit_a_locked_caller(capsys, calls, bets, worth, free):
    """Bluff always against a caller who folds too often, and never against one who calls too often."""
    found = answer(capsys, *POLAR, "--lock", f"b100=c {calls}%", "--to", "0.02%")
    assert found["actions"][1]["frequency"] == pytest.approx(bets, abs=0.01)
    assert found["ev_chips"] == pytest.approx([worth, 100 - worth], abs=0.05)
    assert found["gain_chips"][1] == pytest.approx(0, abs=0.02)
    assert found["unlocked_gain_chips"] == pytest.approx([found["gain_chips"][0], free], abs=0.2)
    checked = mccfr.evaluate(found["run"], "exact")
    assert checked.best_response_chips[0] + 50 == pytest.approx(worth, abs=0.05)


def test_the_best_response_to_a_locked_caller_is_saved_as_a_policy(capsys):
    """Compare the best response's gain with `exact`; the policy keeps the caller's locked part."""
    mccfr.Run(answer(capsys, *POLAR, "--lock", "b100=c 30%", "--to", "5%")["run"]).export("policy")
    best = mccfr.evaluate("policy", "exact").best_response_chips
    record = json.loads(call(capsys, "exploit", "policy", "kept", "--player", 0, "--json").out)
    ((won,), wrong) = record["answers"], call(capsys, "exploit", "policy", "kept")
    assert won["wins_chips"] == pytest.approx(best[0], abs=1e-9) and won["role"] == "out of position"
    policy = mccfr.load_policy("kept")
    assert mccfr.evaluate(policy, "exact").value_chips == pytest.approx(best[0], abs=1e-9)
    assert policy.query("")["hands"] == {"7d6d": [0, 1], "8d8c": [0, 1]}
    assert policy.query("b100", hand="AhAd")["locked"] == ["f", "c"]
    assert wrong.status == 2 and "give --replace" in wrong.err
    assert call(capsys, "exploit", "policy", "kept", "--share", "50%", "--replace").status == 0
    half = call(capsys, "exploit", "kept", "again", "--share", "0%", "--to", "1%").out
    assert half.startswith("player 0 (out of position): wins") and "player 1 (in position)" in half


TURN = "--oop QQ+,AQs --ip QQ-99,ATs --pot 180 --stack 300 --bets 50%,1p/50% --raises 1p --workers 2 --to 20%"


def test_locked_rows_of_a_policy_keep_the_lock_and_other_rows_are_trained(capsys):
    """Lock a share, ranges and a pattern on every board, in reached and unreached rows."""
    locks = ["b90=c 25%; f 75%; b 0", "c=b180 QQ,AcTc:0.5; b90 AcTc:0.25", "oop:*/*=b 0"]
    found = answer(capsys, "QsJh2h7c", *TURN.split(), *(word for lock in locks for word in ("--lock", lock)))
    policy = mccfr.load_policy(mccfr.Run(found["run"]).export("policy"))
    caller = policy.query("b90")
    assert caller["hands"] and all(caller["locked"][hand] == ["f", "c", "b300"] for hand in caller["hands"])
    assert policy.query("c", hand="AcTc")["locked"] == ["c", "b90", "b180"]
    assert policy.query("c", hand="AdTd")["locked"] == []
    calls = policy.query("b90")["hands"]
    assert all(shares[:2] == pytest.approx([0.75, 0.25], abs=1e-4) for shares in calls.values())
    after = policy.query("c")["hands"]
    queens = [shares for hand, shares in after.items() if hand.count("Q") == 2]
    assert queens and all(shares == [0, 0, 1] for shares in queens)
    assert after["AcTc"] == pytest.approx([0.25, 0.25, 0.5], abs=1e-4)
    assert len({round(shares[0], 3) for hand, shares in after.items() if "Q" not in hand}) > 2
    for line in ("b90c/", "cb180c/"):
        river = policy.query(line, board="QsJh2h7cAd")["hands"]
        assert all(shares[0] == 1 for shares in river.values())


def refused_spot(spot, options, capsys):
    raise ValueError(" ".join(ask(capsys, *spot, *shlex.split(options), code=2).err.replace("│", " ").split()))


def test_chosen_sizes_are_printed_and_as_added_lines_repeat_the_run(capsys):
    chosen = ask(capsys, *RIVER, "--to", "1%", "--bets", "auto:1", "--run", "there")
    game = tomllib.loads(Path("there/config.toml").read_text())["game"]
    lines = game["menu"]["add"]
    assert game["menu"]["river"] == {"first": [], "later": []} and {"b", "cb"} <= {re.sub(r"\d", "", x) for x in lines}
    assert f"bet sizes chosen for {len(lines)} decisions: {lines[0]}" in chosen.err
    typed = [part for line in lines for part in ("--add-line", line)]
    again = ask(
        capsys, *RIVER, "--to", "1%", "--bets", "", "--raises", "", "--allin-spr", "0", *typed, "--run", "there"
    )
    assert again.out == chosen.out


def test_rake_by_option_or_override_changes_the_choice_of_sizes(capsys):
    """With a rake of 45 % another size is chosen, by `--rake` and by `--set` alike."""
    small = (*RIVER, "--to", "2%", "--bets", "auto:1")
    plain = ask(capsys, *small, "--run", "plain")
    option = ask(capsys, *small, "--rake", "45%", "--run", "option")
    override = ask(capsys, *small, "--set", "game.rake=45%", "--run", "override")
    menus = [
        tomllib.loads(Path(run, "config.toml").read_text())["game"]["menu"] for run in ("plain", "option", "override")
    ]
    assert menus[1] == menus[2] != menus[0] and option.out != plain.out and override.err


test_refusals = refusals(
    ("have passed before the bet sizes were chosen, 0 decisions are done", RIVER, "--bets auto:1 --time 0.0001s"),
    ("--set game.menu.allin_spr beside bet sizes auto:N is", RIVER, "--bets auto:1 --set game.menu.allin_spr=1"),
    ("is not a share above 0%", RIVER, "--to 0"),
    ("bets = '1p/1p' has 2 streets, where the spot has 1", RIVER, "--bets 1p/1p"),
    ("xp", RIVER, "--bets xp"),
    ("--bets: 'auto:0' is not allowed: auto:N stands alone on a street, .* 1 to 10", RIVER, "--bets auto:0"),
    ("--bets: 'auto:99' is not allowed", RIVER, "--bets auto:99"),
    ("--bets: 'auto:x' is not allowed", RIVER, "--bets auto:x"),
    ("--raises: '75%,auto:1' is not allowed: auto:N stands alone", RIVER, "--raises 75%,auto:1"),
    ("add beside bet sizes auto:N is not allowed", RIVER, "--bets auto:1 --add-line b40"),
    ("lock beside bet sizes auto:N is not allowed", RIVER, "--bets auto:1 --lock 'c=c 100%'"),
    ("game.rake = '100%' is not allowed: it must be from 0% to less than 100%", RIVER, "--rake 100%"),
    ("game.rake_cap = 3.0 is not allowed: it must be left out without game.rake", RIVER, "--rake-cap 3"),
    ("lock 'b100' has no =: write a betting line, =, and the actions there", POLAR, "--lock b100"),
    ("'b110' is not possible after ''; legal actions: c, b100", POLAR, "--lock 'b110=c 100%'"),
    ("'b' is not an action there: the actions are f, c", POLAR, "--lock 'b100=b 100%'"),
    ("b names several bets (b90, b180), and only 0 can hold for all", RIVER, "--bets 50%,100% --lock 'c=b 60%'"),
    ("the probabilities of one hand's actions sum to 1.2: at most 1", POLAR, "--lock 'b100=c 60%; f 60%'"),
    ("hand's actions sum to 0.9: leave out one action", POLAR, "--lock 'b100=c 60%; f 30%'"),
    ("'call' is not allowed: write an action (f, c, b, b300) and its probability or range", POLAR, "--lock b100=call"),
    ("range item 'AX': it can mean A2+ without the pair of aces, or A2+,AA", POLAR, "--lock 'b100=c AX'"),
    (r"r150 can mean .* this street \(b150\) or over the whole hand \(b100\)", POLAR, "--lock 'r150=c 1%'"),
    ("22 can mean 22% or the pair: write 22% or 22:1", POLAR, "--lock 'b100=f 22'"),
    (r"r150 can mean chips put in on this street \(b150\) or", POLAR, "--lock '=r150 10%'"),
    ("can mean 0.6% or 60%", POLAR, "--lock 'b100=c 0.6'"),
    ("the other player acts there", POLAR, "--lock 'oop:b100=c 100%'"),
    ("the position 'bb' is not allowed: write oop, ip, big_blind, button, or no", POLAR, "--lock 'bb:b100=c 100%'"),
    ("the tree has no decision with these actions there", POLAR, "--lock '*/*=c 100%'"),
    call=refused_spot,
)
