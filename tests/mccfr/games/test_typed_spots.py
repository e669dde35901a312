"""Spots typed by users: boards, ranges, stacks, bet sizes in other tools' notation."""

import numpy as np
from endgame_files import write_endgame
from places import RUNS
from refusals import refusals

from abstraction.cards import combo_index, combo_text, parse_cards
from abstraction.range_notation import parse_range, read_range
from mccfr.config.toml_files import config_from, load_config
from mccfr.games.holdem_subgame import dropped_text, spot_endgame
from mccfr.games.libratus import Endgame
from mccfr.games.registry import build_game
from mccfr.runs.directory.identity import identity_document
from mccfr.trees.betting_lines import all_lines

SPOT = {
    "name": "holdem-subgame",
    "board": "QsJh2h7c3d",
    "ranges": {"oop": "AA,KK:0.5", "ip": "QQ,AKs"},
    "pot": 180,
    "effective_stack": 910,
}


def config(**keys):
    return config_from({"game": {**SPOT, **keys}}, "test")


def game(tmp_path, **keys):
    return build_game(config(**keys).game, tmp_path)


def lines(built):
    return set(all_lines(built.tree))


def menu(**keys):
    return {"first": [], "later": [], "allin_spr": 0.0, **keys}


def test_a_typed_spot_equals_the_spot_of_a_file(tmp_path):
    """Compare ranges, tree and payoffs with those of a file, whose stack counts the whole hand."""
    reach = np.stack([parse_range("AA,KK:0.5"), parse_range("QQ,AKs")])
    board = parse_cards(SPOT["board"])
    reach[:, [combo_index(card, other) for card in board for other in range(52) if other != card]] = 0
    write_endgame(tmp_path / "spot.txt", Endgame(3, board, 180, reach))
    sizes = {"first": ["94chips", "allin"], "later": ["allin"]}
    document = {"game": {"name": "holdem-subgame", "file": "spot.txt", "stack": 1000, "big_blind": 1, "menu": sizes}}
    filed = build_game(config_from(document, "test").game, tmp_path)
    typed = game(tmp_path, menu=sizes)
    assert all_lines(typed.tree) == all_lines(filed.tree) and "r184" in lines(typed)
    np.testing.assert_array_equal(typed.cards.reach, filed.cards.reach)
    np.testing.assert_array_equal(typed.tree.arrays.fixed, filed.tree.arrays.fixed)
    assert (typed.pot_chips, typed.big_blind_chips) == (180, 1)


def test_a_typed_spot_allows_bets_below_the_big_blind_of_files(tmp_path):
    """With the big blind of files, 100 chips, a bet of 94 chips would become a bet of 100."""
    bet = menu(first=["52%"])
    assert "r184" in lines(game(tmp_path, menu=bet))
    assert "r190" in lines(game(tmp_path, menu=bet, big_blind=100))


def test_hands_on_the_board_are_dropped_and_counted():
    spot = config(ranges={"oop": "QQ,AA", "ip": "7c7d,AKs"})
    endgame, dropped = spot_endgame(spot.game)
    assert dropped == {"oop": 3, "ip": 1}
    assert (endgame.reach > 0).sum(axis=1).tolist() == [9, 4]
    message = dropped_text(dropped, endgame.board)
    assert message == "hands that the board QsJh2h7c3d blocks are dropped: 3 of oop, 1 of ip"
    assert dropped_text({"oop": 0, "ip": 0}, endgame.board) is None


def test_ranges_are_texts_files_classes_and_combinations(tmp_path):
    text = "AA:0.5,AKs,T9o:0.25"
    whole = parse_range(text)
    classes = np.zeros((13, 13))
    classes[0, 0], classes[0, 1], classes[5, 4] = 0.5, 1, 0.25
    numbers = " ".join(map(str, classes.ravel().tolist()))
    for given in (text, numbers, classes.ravel().tolist(), whole.tolist(), ",".join(map(str, whole.tolist()))):
        np.testing.assert_array_equal(read_range(given), whole)
    (tmp_path / "range.txt").write_text(text.replace(",", ",\n"))
    (tmp_path / "run.toml").write_text(
        '[game]\nname = "holdem-subgame"\nboard = "QsJh2h7c3d"\npot = 10\neffective_stack = 20\n'
        'ranges = {oop = "@range.txt", ip = "QQ"}\n'
    )
    loaded = load_config(tmp_path / "run.toml")
    np.testing.assert_array_equal(read_range(loaded.game.ranges["oop"]), whole)
    assert not loaded.game.ranges["oop"].startswith("@")  # a run keeps the content of the file


test_invalid_spot_configurations_are_refused = refusals(
    ("game.file = 'x.txt' is not allowed: it must be left out", {"file": "x.txt"}),
    ("game.stack = 1000.*effective_stack counts chips behind", {"stack": 1000}),
    ("game.stack = 20000.*effective_stack counts chips behind", {"stack": 20000}),
    ("game.pot = None", {"pot": None}),
    ("game.pot = 0.*above 0", {"pot": 0}),
    ("game.effective_stack = -5.*above 0", {"effective_stack": -5}),
    ("game.big_blind = 0.*above 0", {"big_blind": 0}),
    ("it must be the ranges of oop and ip", {"ranges": {"oop": "AA"}}),
    ("game.ranges.oop = '@nowhere': nowhere cannot be read", {"ranges": {"oop": "@nowhere", "ip": "AA"}}),
    ("flop.oop and big_blind are the same position", {"menu": {"flop": {"oop": {}, "big_blind": {}}}}),
    ("game.menu.flop.ip is for two seats", {"seats": 3, "menu": {"flop": {"ip": {}}}}),
    call=lambda keys: config(**keys),
)


test_impossible_spots_are_refused = refusals(
    ("game.board = 'QsJh' is not allowed: it must be three to five different cards", {"board": "QsJh"}),
    ("game.board = 'QsJhJh'", {"board": "QsJhJh"}),
    ("game.ranges.oop: range item 'AB' is not known", {"ranges": {"oop": "AB", "ip": "AA"}}),
    ("game.ranges.oop has no hand that the board QsJh2h7c3d leaves", {"ranges": {"oop": "QsJh", "ip": "AA"}}),
    ("game.ranges.oop: 170 numbers are not a range", {"ranges": {"oop": [0.5] * 170, "ip": "AA"}}),
    ("game.ranges.oop: number 1 is 2: a weight from 0 to 1", {"ranges": {"oop": [2.0] * 169, "ip": "AA"}}),
    ("allows no deal", {"ranges": {"oop": "AsAh", "ip": "AsAd"}}),
    ("game.menu.add: 'c' is not allowed: a line ends in a bet", {"menu": {"add": ["c"]}}),
    ("b5 is not a bet after the line ''.* b10 to b910", {"menu": {"add": ["b5"]}, "big_blind": 10}),
    ("game.menu.add: b90 after the line 'c' is in the tree already", {"menu": {"add": ["cb90"]}}),
    ("game.menu.remove: 'cccb300' is not a line of the tree", {"menu": {"remove": ["cccb300"]}}),
    ("game.menu.remove: b33 is not a bet after the line ''", {"menu": {"remove": ["b33"]}}),
    (r"game.menu.add: line 'r95'.*this street \(b95\) or over the whole hand \(b5\)", {"menu": {"add": ["r95"]}}),
    call=lambda keys, tmp_path: game(tmp_path, **keys),
)


def test_geometric_sizes_put_in_the_stack_on_the_last_street(tmp_path):
    """Pot 2, three streets, 26 behind: each bet is the pot (1 + 2x)^3 = 27, so 2, 6 and 18 chips."""
    built = game(tmp_path, board="QsJh2h", pot=2, effective_stack=26, menu=menu(first=["e"]))
    assert "r3c/r9c/r27" in lines(built) and not any("r4" in line for line in lines(built))
    twice = game(
        tmp_path, board="QsJh2h7c", pot=20, effective_stack=80, menu=menu(first=["2e"], river={"first": ["e"]})
    )
    assert "r30c/r90" in lines(twice)
    once = game(tmp_path, pot=20, effective_stack=80, menu=menu(first=["1e"]))
    assert {"r90"} == {line for line in lines(once) if line.startswith("r") and len(line) == 3}


def test_bets_that_leave_little_of_the_pot_behind_are_all_in(tmp_path):
    sizes = {"first": ["1p"], "later": []}
    for share, first in ((None, "r150"), (0.0, "r150"), (0.16, "r150"), (0.17, "r200")):
        built = game(tmp_path, pot=100, effective_stack=150, menu={**sizes, "allin_spr": share})
        assert [line for line in lines(built) if line.startswith("r") and len(line) == 4] == [first]
    short = menu(first=["1p"])
    assert "r90" in lines(game(tmp_path, pot=100, effective_stack=40, menu=short))
    assert "r90" not in lines(game(tmp_path, pot=100, effective_stack=40, menu={**short, "allin_spr": None}))


def test_donk_bets_have_sizes_of_their_own(tmp_path):
    """Offer a quarter of the pot, and no half, to the first player after the opponent bet the flop.

    After checks, and for the second player, the size is a half.
    """
    sizes = menu(first=["50%"], turn={"oop": {"donk": ["25%"]}}, river={"donk": []})
    found = lines(game(tmp_path, board="QsJh2h", pot=20, effective_stack=400, menu=sizes))
    assert "cr20c/r30" in found and "cr20c/r40" not in found
    assert "cr20c/cr40" in found
    assert "cc/r20" in found and "r20c/r40" in found  # no flop bet; an own flop bet
    assert "cc/cr20c/cr40" in found and "cc/cr20c/r40" not in found


def test_single_lines_are_added_and_removed(tmp_path):
    plain = menu(first=["50%"], turn={"first": ["50%", "100%"]})
    spot = {"board": "QsJh2h7c", "pot": 20, "effective_stack": 400}
    before = lines(game(tmp_path, **spot, menu=plain))
    edits = {"add": ["cb23", "cb10c/b5"], "remove": ["b20c/b30", "cb20"]}
    after = lines(game(tmp_path, **spot, menu={**plain, **edits}))
    assert {"cr33", "cr33f", "cr33c/", "cr20c/r25"} <= after
    assert not {line for line in after if line.startswith(("r30c/r60", "cr30"))} and "cr30" in before
    kept = {line for line in before if not line.startswith(("r30c/r60", "cr30"))}
    assert kept <= after
    assert all(line.startswith(("cr33", "cr20c/r25")) for line in after - before)


def test_each_player_has_own_bet_sizes(tmp_path):
    sizes = menu(first=["50%"], river={"oop": {"first": ["33%"]}, "button": {"first": ["75%"]}})
    found = lines(game(tmp_path, pot=100, effective_stack=400, menu=sizes))
    assert "r83" in found and "cr125" in found and "r100" not in found


def test_bets_are_whole_chips_if_pot_and_stacks_are_also_with_odd_pots(tmp_path):
    sizes = menu(first=["33%"])
    assert "r150.5" in lines(game(tmp_path, pot=181, effective_stack=910, menu=sizes))  # a bet of 60 over 90.5
    assert any(line.startswith("r4.56") for line in lines(game(tmp_path, pot=5.5, effective_stack=97.5, menu=sizes)))


def test_the_identity_of_a_game_from_a_file_is_the_files_content():
    short = config_from({"game": {"name": "holdem-subgame", "file": "river.txt"}}, "test")
    document = identity_document(short, RUNS / "games")
    assert set(document["game"]) == {"name", "files_sha256"}


def test_isomorphic_hands_share_an_infoset_unless_a_lock_distinguishes_them(tmp_path):
    """Merge two flushless hands on a turn where clubs and diamonds are isomorphic.

    A lock of one of them alone keeps them separate.
    """
    spot = {"board": "QsJh2h7h", "ranges": {"oop": "AA,ATs", "ip": "QQ,AKs"}, "menu": menu(first=["1p"])}
    clubs, diamonds = (combo_index(*parse_cards(hand)) for hand in ("AcTc", "AdTd"))

    def buckets(**locks):
        built = game(tmp_path, **spot, locks=locks)
        np.testing.assert_array_equal((built.cards.reach > 0).sum(axis=1), [10, 7])
        return built.cards.bucket[0][0, 0]

    for locks in ({}, {"": "c ATs:0.5"}):
        assert buckets(**locks)[clubs] == buckets(**locks)[diamonds]
    apart = buckets(**{"": "c AcTc:0.5; b180 AcTc:0.5"})
    assert apart[clubs] != apart[diamonds]


def test_a_range_may_be_a_long_text():
    """Accept ranges longer than other texts of a configuration: 1,326 numbers, or all hands by name."""
    weights = np.linspace(0, 1, 1326).round(4)
    named = ",".join(f"{combo_text(hand)}:{one}" for hand, one in enumerate(weights))
    for text in (" ".join(map(str, weights)), named):
        given = config(ranges={"oop": text, "ip": "AA"}).game.ranges["oop"]
        np.testing.assert_array_equal(read_range(given), weights)
