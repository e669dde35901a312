"""Random spots reach their target exploitability or state the exploitability that they reached.

Shows:

* 220 spots with rake, locks and various sizes reach their targets or state their exploitability
  (test_a_random_spot_reaches_its_target_or_states_its_exploitability,
  test_220_random_spots_reach_targets_or_state_their_exploitability)
* A restricted Nash response to locked rows has the value of the linear program
  (test_restricted_nash_with_locked_rows_has_the_value_of_the_linear_program)
"""

import json
from dataclasses import replace

import numpy as np
import pytest
from commands import call
from linear_program import restricted_value
from test_exploitative_responses import locked_cells

import mccfr
from mccfr.policy import Policy
from mccfr.runs.reporter import Silent
from mccfr.runs.session.spot_run import SpotOptions, start_spot
from mccfr.runs.session.start import Terms
from mccfr.trees.betting_lines import all_lines

ITEMS = (
    *("AA", "KK", "QQ-TT", "99", "55", "22", "AKs", "AQo", "ATs-A8s", "A5s", "KQs", "KJo", "QJs", "JTs", "T9s", "98o"),
    *("87s", "76s", "65s", "54s", "K2s", "72o"),
)
SIZES = ("", "50%", "1p", "33%,1p", "allin", "e", "2.5bb", "150%")
LOCKS = (("", "c {}%"), ("c", "c {}%"), ("", "b 0"), ("oop:*", "b 0"), ("ip:*", "c 100%"), ("ip:c*", "c {}%"))
KINDS = ("river", "raked river", "turn", "raked turn", "small flop")


def spot_arguments(number, locked=False):
    """Return random arguments of `mccfr spot` by number: board, ranges, chips, sizes, rake, locks."""
    rng = np.random.default_rng([59, number, locked])
    kind = KINDS[number % 5] if number % 20 == 4 or number % 5 != 4 else "river"
    cards = 5 if "river" in kind else 4 if "turn" in kind else 3
    deck = [rank + suit for rank in "23456789TJQKA" for suit in "cdhs"]
    board = "".join(rng.permutation(deck)[:cards])
    few = cards < 5
    ranges = [",".join(rng.permutation(ITEMS)[: rng.integers(5, 8 if few else 16)]) for _ in range(2)]
    ranges = [",".join(f"{item}:{rng.choice([0.25, 0.5, 1])}" for item in each.split(",")) for each in ranges]
    pot, stack = (float(chips) for chips in rng.integers((4, 1), (200, 600)))
    sizes = (
        [str(rng.choice(("", "1p", "allin") if few else SIZES)) for _ in range(2)] if not locked else ["1p", "allin"]
    )
    words = [board, "--oop", ranges[0], "--ip", ranges[1], "--pot", pot, "--stack", stack]
    words += ["--bets", sizes[0], "--raises", sizes[1], "--to", f"{rng.choice([5, 1, 0.5] if few else [1, 0.3, 0.1])}%"]
    if "raked" in kind:
        words += ["--rake", f"{rng.choice([1, 5, 30])}%", *(["--rake-cap", 3] if rng.random() < 0.5 else [])]
    if locked:
        line, actions = LOCKS[rng.integers(len(LOCKS))]
        words += ["--lock", f"{line}={actions.format(rng.integers(0, 101))}"]
    return [*words, "--workers", 0, "--run", "run"]


def check(capsys, words):
    """Solve a spot; check its status and message against the target, and its exact exploitability."""
    status, out, err = call(capsys, "spot", *words, "--json")
    assert status in (0, 3), (words, err)
    found, to = json.loads(out), float(words[words.index("--to") + 1][:-1]) / 100
    assert found["reached"] == (status == 0) == (found["exploitability_pot"] <= to), (words, found)
    assert (f"was not reached: {found['exploitability_pot']:.3%} of the pot" in err) == (status == 3), err
    checked = mccfr.evaluate("run", "exact").exploitability_chips
    assert checked == pytest.approx(found["exploitability_chips"], abs=1e-5 * found["pot_chips"]), words
    return status


@pytest.mark.parametrize(("number", "locked"), [(0, False), (1, False), (2, False), (5, True)])
def test_a_random_spot_reaches_its_target_or_states_its_exploitability(number, locked, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    check(capsys, spot_arguments(number, locked))


@pytest.mark.slow
@pytest.mark.parametrize(("first", "locked"), [*((first, False) for first in range(0, 200, 20)), (0, True)])
def test_220_random_spots_reach_targets_or_state_their_exploitability(first, locked, tmp_path, monkeypatch, capsys):
    unreached = 0
    for number in range(first, first + 20):
        (tmp_path / str(number)).mkdir()
        monkeypatch.chdir(tmp_path / str(number))
        unreached += check(capsys, spot_arguments(number, locked)) == 3
    assert unreached <= 2


@pytest.mark.parametrize("board", ["Qs Jh Th", "qs,jh,10h"])
def test_bet_sizes_do_not_depend_on_how_the_board_is_written(board, tmp_path):
    """Sizes by street depend on the number of board cards, not on spaces, commas or `10`."""
    game = {"ranges": {"oop": "AA", "ip": "KK"}, "pot": 100, "effective_stack": 400}
    given = SpotOptions("75%/33%", "", 0.003, 0)
    trees = [
        start_spot(game | {"board": text}, replace(given, directory=tmp_path / str(number)), Terms(Silent())).game.tree
        for number, text in enumerate(("QsJhTh", board))
    ]
    assert all_lines(trees[0]) == all_lines(trees[1]) and "r125" in all_lines(trees[0])


EXAMPLE = (
    *("As8s7d4h2c", "--oop", "AhAd,8h8d:0.5,KsQs,JsTs:0.7,9h6h:0.4,5c3c", "--pot", 10, "--stack", 17),
    *("--ip", "AcKc,8c7c:0.6,QhQd,JhJd:0.8,9c6c:0.3,5h3h,Ts9s:0.9", "--bets", "50%,allin", "--raises", "allin"),
    *("--lock", "c=c 20%; b5 50%", "--to", "30%", "--workers", 0),
)


def test_restricted_nash_with_locked_rows_has_the_value_of_the_linear_program(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert call(capsys, "spot", *EXAMPLE, "--run", "run").status == 0
    mccfr.Run("run").export("policy")
    for player in range(2):
        given = "exploit", "policy", f"answer-{player}", "--player", player, "--share", "50%", "--to", "0.01%"
        status, out, err = call(capsys, *given, "--json")
        assert status == 0, err
        (answer,), policy = json.loads(out)["answers"], Policy.open("policy")
        game = replace(policy.game, cards=policy.game.cards.listed())
        expected = restricted_value(game, player, policy.strategy(), locked_cells(game), 0.5)
        paid = (answer["wins_chips"] + answer["worst_chips"]) / 2 - game.offset_chips * (1 - 2 * player)
        assert paid == pytest.approx(expected, abs=5e-3) and answer["reached"]
