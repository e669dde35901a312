import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from places import ROOT, RUNS
from refusals import refused

from abstraction.cards import COMBO_COUNT, cards_text, combo_index, combo_masks, combo_table, parse_cards
from mccfr.games.libratus import Endgame, read_endgame, write_endgame

DATA = ROOT / ".." / "shared" / "data" / "libratus_endgames"
OURS = {"river": RUNS / "games" / "river.txt", "turn": RUNS / "games" / "turn.txt"}


def joint_weight(reach):
    masks = combo_masks()
    return reach[0] @ ((masks[:, None] & masks[None, :]) == 0) @ reach[1]


def same(first, second):
    return (first.street, first.board, first.pot_chips) == (
        second.street,
        second.board,
        second.pot_chips,
    ) and np.array_equal(first.reach, second.reach)


def random_endgame(street, seed, pot_chips):
    random_state = np.random.default_rng(seed)
    board = tuple(random_state.permutation(52)[: street + 2].tolist())
    reach = random_state.random((2, COMBO_COUNT)) ** random_state.integers(1, 40)
    reach *= random_state.random((2, COMBO_COUNT)) < 0.7
    reach[:, np.isin(combo_table(), board).any(axis=1)] = 0
    return Endgame(street, board, pot_chips, reach)


@settings(max_examples=25, deadline=None)
@given(
    street=st.integers(1, 3),
    seed=st.integers(0, 2**32 - 1),
    pot_chips=st.integers(1, 40_000) | st.floats(1e-3, 1e6),
)
def test_write_then_read_gives_the_same_endgame(tmp_path_factory, street, seed, pot_chips):
    path = tmp_path_factory.mktemp("endgame") / "endgame.txt"
    endgame = random_endgame(street, seed, pot_chips)
    write_endgame(path, endgame)
    again = read_endgame(path)
    assert same(again, endgame)
    assert again.round == street + 1
    assert isinstance(again.pot_chips, int) == float(pot_chips).is_integer()


def test_hands_follow_the_order_of_the_format(tmp_path):
    order = ["2s2h", "2s2d", "2s2c", "2s3s", "2s3h", "AdAc"]
    places = [0, 1, 2, 3, 4, 1325]
    numbers = ["0.0"] * 2652
    for place, value in zip(places, range(1, 7), strict=True):
        numbers[place], numbers[1326 + place] = str(value), str(10 * value)
    path = tmp_path / "order.txt"
    path.write_text("-round 4\n-board 7s8h9cTdJs\n-pot 100\n-reach " + " ".join(numbers) + "\n")
    reach = read_endgame(path).reach
    for hand, value in zip(order, range(1, 7), strict=True):
        assert reach[:, combo_index(*parse_cards(hand))].tolist() == [value, 10 * value]
    assert reach.sum() == 21 * 11


def lines_of(endgame, tmp_path):
    path = tmp_path / "good.txt"
    write_endgame(path, endgame)
    return path.read_text().splitlines()


def test_windows_line_ends_java_exponents_blank_lines_and_any_order(tmp_path):
    endgame = random_endgame(3, 1, 500)
    round_line, board, pot, reach = lines_of(endgame, tmp_path)
    java = " ".join(number.replace("e-", "E-") for number in reach.split(" "))
    assert "E-" in java
    path = tmp_path / "java.txt"
    path.write_bytes("\r\n".join([java + " ", "", pot, " " + board, round_line.replace(" ", "\t"), ""]).encode())
    assert same(read_endgame(path), endgame)


def test_errors_say_what_and_where(tmp_path):
    endgame = replace(random_endgame(3, 2, 500), board=parse_cards("KdJh8s5c2h"))
    on_board = np.isin(combo_table(), endgame.board).any(axis=1)
    reach = np.where(on_board, 0.0, 0.5)[None].repeat(2, axis=0)
    round_line, board, pot, reach_line = lines_of(replace(endgame, reach=reach), tmp_path)
    numbers = reach_line.split(" ")[1:]

    def bad(*lines, because):
        path = tmp_path / "bad.txt"
        path.write_text("\n".join(lines), encoding="utf-8")
        refused(f"^{re.escape(str(path))}[^\n]*{re.escape(because)}[^\n]*$", read_endgame, path)

    def entry(place, value):
        changed = numbers.copy()
        changed[place] = value
        return round_line, board, pot, "-reach " + " ".join(changed)

    bad(board, pot, reach_line, because="the key -round is missing")
    bad(round_line, board, pot, because="the key -reach is missing")
    bad(because="the key -round is missing")
    bad(round_line, "-stack 5", board, pot, reach_line, because=", line 2: '-stack' is not a key")
    bad(round_line, "pot 5", board, pot, reach_line, because=", line 2: 'pot' is not a key")
    bad(round_line, board, pot, board, reach_line, because=", line 4: the key -board occurs a second time")
    bad("-röund 4", board, pot, reach_line, because="byte 3 is not ASCII")
    bad("-round 5", board, pot, reach_line, because="-round is '5': 2 (flop), 3 (turn) and 4 (river)")
    bad("-round", board, pot, reach_line, because="-round is ''")
    bad("-round 3", board, pot, reach_line, because="-board KdJh8s5c2h has 5 cards: -round 3 needs 4")
    bad(round_line, "-board KdJh8s5c", pot, reach_line, because="has 4 cards: -round 4 needs 5")
    bad(round_line, "-board KdJh8s5cKd", pot, reach_line, because="-board: 'KdJh8s5cKd' holds the card Kd twice")
    bad(round_line, "-board KdJh8s5c2x", pot, reach_line, because="-board: '2x' in 'KdJh8s5c2x' is not a card")
    for bad_pot in ("0", "-500", "NaN", "1e999", "", "500 600", "1_000"):
        bad(round_line, board, f"-pot {bad_pot}", reach_line, because=f"-pot is {bad_pot!r}: a finite number")
    bad(round_line, board, pot, "-reach " + " ".join(numbers[:-3]), because="-reach has 2649 numbers: 2652 are")
    bad(round_line, board, pot, reach_line + " 0.0", because="-reach has 2653 numbers: 2652 are needed")
    bad(*entry(4, "-0.5"), because="-reach entry 5 (player 0, hand 2s3h) is -0.5: a finite number of at least 0")
    for bad_number in ("NaN", "Infinity", "-inf", "1e999", "0,5", "0x1p3", "1_0", "abc"):
        bad(*entry(2651, bad_number), because=f"-reach entry 2652 (player 1, hand AdAc) is {bad_number!r}: a finite")
    bad(*entry(1326, "0.1"), because="-reach entry 1327 (player 1, hand 2s2h) is 0.1, but the hand shares a card")
    for player, name in ((0, "player 0"), (1, "player 1")):
        nothing = numbers.copy()
        nothing[1326 * player : 1326 * player + 1326] = ["0"] * 1326
        bad(round_line, board, pot, "-reach " + " ".join(nothing), because=f"-reach is 0 for every hand of {name}")
    blocked = ["0"] * 2652
    blocked[2] = blocked[1326 + 3] = "1"
    bad(round_line, board, pot, "-reach " + " ".join(blocked), because="-reach leaves no deal")
    bad(round_line, board, pot, "-reach" + " 1e300" * 2652, because="shares a card with the board")
    for extreme in ("1e300", "1e-300"):
        changed = [number.replace("0.5", extreme) for number in numbers]
        bad(round_line, board, pot, "-reach " + " ".join(changed), because="-reach is too large or too small")
    bad("x" * (1 << 21), because="larger than 1048576 bytes")


def test_write_refuses_what_read_would_refuse(tmp_path):
    good = random_endgame(3, 3, 500)
    hit = good.reach.copy()
    hit[1, combo_index(good.board[0], good.board[1])] = 1
    path = tmp_path / "bad.txt"
    for bad, message in (
        (replace(good, street=0), "-round is 1"),
        (replace(good, board=good.board[:4]), "has 4 cards"),
        (replace(good, board=(*good.board[:4], good.board[0])), "holds a card twice"),
        (replace(good, pot_chips=-2), "-pot is -2"),
        (replace(good, reach=hit), "shares a card with the board"),
        (replace(good, reach=-good.reach), "a finite number of at least 0 is needed"),
        (replace(good, reach=good.reach[:, :5]), r"the shape \(2, 5\)"),
    ):
        refused(message, write_endgame, path, bad)
    assert not path.exists()


@pytest.mark.parametrize(
    ("number", "street", "board", "pot_chips", "hands", "weight"),
    [
        (1, 2, "7s9h9cTc", 500, [828, 965], 206_884.76279),
        (2, 2, "Ts6hAh7c", 4780, [855, 405], 1_204.788015),
        (3, 3, "4s8hTc9h2s", 500, [1033, 1059], 84_774.98136),
        (4, 3, "JsKs5cQs7d", 3750, [705, 982], 594.664682),
    ],
)
def test_the_four_published_endgames(number, street, board, pot_chips, hands, weight):
    path = DATA / f"subgame{number}.txt"
    if not path.exists():
        pytest.skip("the LibratusEndgames files are not part of the repository; the examples are not here")
    endgame = read_endgame(path)
    assert (endgame.street, cards_text(endgame.board), endgame.pot_chips) == (street, board, pot_chips)
    assert (endgame.reach > 0).sum(axis=1).tolist() == hands
    assert joint_weight(endgame.reach) == pytest.approx(weight, rel=1e-9, abs=1e-5)


@pytest.mark.parametrize(
    ("name", "street", "board", "pot_chips", "hands", "weight"),
    [
        ("river", 3, "KdJh8s5c2h", 600, [460, 505], 51_563.973008),
        ("turn", 2, "Qd9c6c3h", 1800, [83, 102], 1_931.269584),
    ],
)
def test_our_own_endgames(name, street, board, pot_chips, hands, weight):
    endgame = read_endgame(OURS[name])
    assert (endgame.street, cards_text(endgame.board), endgame.pot_chips) == (street, board, pot_chips)
    assert (endgame.reach > 0).sum(axis=1).tolist() == hands
    assert joint_weight(endgame.reach) == pytest.approx(weight, rel=1e-9)
    assert OURS[name].stat().st_size < 30_000
