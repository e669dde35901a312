"""Endgame files in the format of LibratusEndgames: reading, writing, error messages."""

import re
from dataclasses import replace

import numpy as np
import pytest
from endgame_files import write_endgame
from hypothesis import given, settings
from hypothesis import strategies as st
from places import ENDGAMES, RUNS
from refusals import refused

from abstraction.cards import COMBO_COUNT, cards_text, combo_index, combo_masks, combo_table, parse_cards
from mccfr.games.libratus import Endgame, read_endgame


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
    street=st.integers(1, 3), seed=st.integers(0, 2**32 - 1), pot_chips=st.integers(1, 40_000) | st.floats(1e-3, 1e6)
)
def test_write_then_read_gives_the_same_endgame(tmp_path_factory, street, seed, pot_chips):
    path = tmp_path_factory.mktemp("endgame") / "endgame.txt"
    endgame = random_endgame(street, seed, pot_chips)
    write_endgame(path, endgame)
    again = read_endgame(path)
    assert same(again, endgame)
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


def test_windows_line_ends_java_exponents_blank_lines_and_any_order_are_accepted(tmp_path):
    endgame = random_endgame(3, 1, 500)
    round_line, board, pot, reach = lines_of(endgame, tmp_path)
    java = " ".join(number.replace("e-", "E-") for number in reach.split(" "))
    assert "E-" in java
    path = tmp_path / "java.txt"
    path.write_bytes("\r\n".join([java + " ", "", pot, " " + board, round_line.replace(" ", "\t"), ""]).encode())
    assert same(read_endgame(path), endgame)


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    """The lines of a river file in which every possible hand has the reach 0.5."""
    endgame = replace(random_endgame(3, 2, 500), board=parse_cards("KdJh8s5c2h"))
    on_board = np.isin(combo_table(), endgame.board).any(axis=1)
    reach = np.where(on_board, 0.0, 0.5)[None].repeat(2, axis=0)
    lines = lines_of(replace(endgame, reach=reach), tmp_path_factory.mktemp("good"))
    return dict(zip(("round", "board", "pot", "reach"), lines, strict=True))


def without(name):
    return lambda good: [line for key, line in good.items() if key != name]


def instead(name, line):
    return lambda good: [*without(name)(good), line]


def entry(*changes):
    """Replace numbers of the reach line, given as (place, text)."""

    def lines(good):
        numbers = good["reach"].split(" ")[1:]
        for place, text in changes:
            numbers[place] = text
        return instead("reach", "-reach " + " ".join(numbers))(good)

    return lines


def scaled(text):
    return lambda good: instead("reach", good["reach"].replace("0.5", text))(good)


@pytest.mark.parametrize(
    ("lines", "because"),
    [
        (without("round"), "the key -round is missing"),
        (without("reach"), "the key -reach is missing"),
        (lambda _: [], "the key -round is missing"),
        (lambda good: ["-stack 5", *good.values()], "line 1 begins with '-stack'"),
        (lambda good: ["pot 5", *good.values()], "line 1 begins with 'pot'"),
        (lambda good: [*good.values(), good["board"]], "line 5 has the key -board a second time"),
        (instead("round", "-r\N{LATIN SMALL LETTER O WITH DIAERESIS}und 4"), "line 4 begins with"),
        (instead("round", "-round 5"), "-round is '5': 2 (flop), 3 (turn) and 4 (river)"),
        (instead("round", "-round"), "-round is ''"),
        (instead("round", "-round 3"), "-board KdJh8s5c2h has 5 cards: -round 3 needs 4"),
        (instead("board", "-board KdJh8s5c"), "has 4 cards: -round 4 needs 5"),
        (instead("board", "-board KdJh8s5cKd"), "'KdJh8s5cKd' holds the card Kd twice"),
        (instead("board", "-board KdJh8s5c2x"), "'2x' in 'KdJh8s5c2x' is not a card"),
        *((instead("pot", f"-pot {pot}"), "-pot is ") for pot in ("0", "-500", "NaN", "1e999", "", "500 600", "1_000")),
        (lambda good: [*without("reach")(good), good["reach"] + " 0.0"], "-reach has 2653 numbers: 2652 are needed"),
        (entry((4, "-0.5")), "-reach entry 5 (player 0, hand 2s3h) is -0.5: a finite number of at least 0"),
        *(
            (entry((2651, text)), "-reach entry 2652 (player 1, hand AdAc) is ")
            for text in ("NaN", "Infinity", "1e999", "0,5", "0x1p3", "1_0", "abc")
        ),
        (entry((1326, "0.1")), "-reach entry 1327 (player 1, hand 2s2h) is 0.1: the hand shares a card"),
        (entry(*((place, "0") for place in range(1326))), "-reach allows no deal"),
        (entry(*((place, "1" if place in (2, 1326 + 3) else "0") for place in range(2652))), "-reach allows no deal"),
        (scaled("1e300"), "-reach is too large or too small"),
        (scaled("1e-300"), "-reach is too large or too small"),
    ],
)
def test_errors_name_the_file_and_the_value(good, tmp_path, lines, because):
    path = tmp_path / "bad.txt"
    path.write_text("\n".join(lines(good)), encoding="utf-8")
    refused(f"^{re.escape(str(path))}[^\n]*{re.escape(because)}[^\n]*$", read_endgame, path)


@pytest.mark.parametrize(
    ("path", "street", "board", "pot_chips", "hands", "weight"),
    [
        (ENDGAMES / "subgame1.txt", 2, "7s9h9cTc", 500, [828, 965], 206_884.76279),
        (ENDGAMES / "subgame2.txt", 2, "Ts6hAh7c", 4780, [855, 405], 1_204.788015),
        (ENDGAMES / "subgame3.txt", 3, "4s8hTc9h2s", 500, [1033, 1059], 84_774.98136),
        (ENDGAMES / "subgame4.txt", 3, "JsKs5cQs7d", 3750, [705, 982], 594.664682),
        (RUNS / "games/river.txt", 3, "KdJh8s5c2h", 600, [460, 505], 51_563.973008),
        (RUNS / "games/turn.txt", 2, "Qd9c6c3h", 1800, [83, 102], 1_931.269584),
    ],
)
def test_published_and_shipped_endgames_have_known_contents(path, street, board, pot_chips, hands, weight):
    if not path.exists():
        pytest.skip("the LibratusEndgames files are not part of the repository; the examples are not here")
    endgame = read_endgame(path)
    assert (endgame.street, cards_text(endgame.board), endgame.pot_chips) == (street, board, pot_chips)
    assert (endgame.reach > 0).sum(axis=1).tolist() == hands
    assert joint_weight(endgame.reach) == pytest.approx(weight, rel=1e-9, abs=1e-5)
