"""Reviews of hands of three and four players with actions that the policy's tree lacks.

Shows:

* A review goes on after a call that the tree lacks, as a seat of the policy does (planted:
  test_reviews_have_the_frequencies_of_a_seat_in_the_same_hand)
"""

from decimal import Decimal
from random import Random

import pytest
from mutants import mutant
from random_policy import policy

from mccfr.config.game_tables import HoldemGame, Menu
from mccfr.games.translation import actions_of, real_betting
from mccfr.matches.acpc import follow_actions
from mccfr.matches.hand_files.format_base import CheckedHand, HandRecord, Posted, checked_hand, finished_hand, stakes_of
from mccfr.matches.review import hand_review
from mccfr.matches.review.hand_review import IGNORED, IN_TREE, LACKING, MAPPED, NO_COST, SOLVED
from mccfr.play.policy_seat import Seat
from mccfr.play.resolving import Effort, solved_street
from mccfr.trees.street_amounts import whole_line

SOURCE = policy(Menu(first=("1p",), later=("1p",), max_bets=3), seats=3, flop_players=2)
FOUR = policy(Menu(first=("1p",), later=("1p",), max_bets=2), seats=4, flop_players=2)
NAMES, HOLES, BOARD = ("Sam", "Bob", "Ada"), ("As7s", "KhQd", "QhJh"), "Qs7h2d3c9s"
STAKES = stakes_of(HoldemGame(seats=3))


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """Solve with few iterations: these tests compare no costs."""
    monkeypatch.setattr(solved_street, "FLOP", Effort(1))
    monkeypatch.setattr(solved_street, "EFFORT", dict.fromkeys(solved_street.EFFORT, Effort(2)))


def review(line, module=hand_review):
    """Return the review of a hand of SB, BB and BTN."""
    by = module.Reviewer(SOURCE.side(), SOURCE, 8)
    actions = actions_of(line)
    state = follow_actions(STAKES.rules, actions).states[-1]
    board = BOARD if state.street == 3 else BOARD[: (0, 6, 8)[state.street]]
    return by.review(CheckedHand(finished_hand(STAKES.rules, actions, HOLES, board, names=NAMES), STAKES), 0)


def verdicts(found):
    """Return the player, street and kind of verdict of each decision."""
    return [(row.player, row.street, row.verdict.how) for row in found.decisions]


def test_a_caller_outside_of_the_tree_has_no_range():
    """The tree has a raise in place of the small blind's cold call; no street is re-solved against it."""
    found = review("r350cf/cc/cc/cc")
    assert verdicts(found) == [
        ("Ada", 0, IN_TREE),
        ("Sam", 0, LACKING),
        ("Bob", 0, MAPPED),
        *((name, street, MAPPED) for street in (1, 2, 3) for name in ("Sam", "Ada")),
    ]
    lacking = "the policy's tree has no call 3 BB of SB after 'b350', so SB has no range"
    assert [row.verdict.note for row in found.decisions] == [NO_COST, *[f"{NO_COST}; {lacking}"] * 2, *[lacking] * 6]
    called, flop = found.decisions[1].verdict, found.decisions[3].verdict
    assert (called.did, called.probability) == ("call 3 BB", 0) and "call 3 BB" not in called.frequencies
    assert (flop.tree_line, flop.taken_for, flop.cost_chips) == ("b350b1150fc/", "c after 'b350b1150fc/'", None)
    assert (found.ended, found.unknown) == ("", 0)


def test_a_caller_who_folds_leaves_two_ranges():
    """The tree lacks the small blind's call. Once the small blind has folded, its chips are in the pot."""
    found = review("r350cc/ccr700fc/cr2000f")
    assert verdicts(found)[3:] == [
        ("Bob", 1, MAPPED),
        ("Ada", 1, MAPPED),
        ("Bob", 1, SOLVED),
        *[(name, 2, SOLVED) for name in ("Bob", "Ada", "Bob")],
    ]
    assert found.unknown == 2  # the small blind's check and fold
    assert {row.verdict.note for row in found.decisions if row.verdict.how == SOLVED} == {IGNORED}
    assert found.decisions[-1].verdict.cost_chips >= 0


def test_a_caller_of_a_reraise_has_no_range():
    """The big blind, who calls the button's flop bet outside of the tree, has none either."""
    found = review("r350r1150cc/ccr3000fc/cc/cc")
    first = "the policy's tree has no call 18.5 BB of BB after 'b350b1150cc/ccb1850f', so BB has no range"
    second = "the policy's tree has no call 8 BB of BTN after 'b350b1150c', so BTN has no range"
    assert {row.verdict.note for row in found.decisions if row.street > 1} == {f"{first}; {second}"}
    assert SOLVED not in {row.verdict.how for row in found.decisions} and not found.ended


def test_a_fold_to_a_bet_outside_of_the_tree_is_a_check_in_the_tree():
    """The small blind's bet is not in the tree, where the big blind is first to act and may check."""
    found = review("r350cc/r700ff")
    folds, tree = found.decisions[3].verdict, found.decisions[2].verdict
    assert (folds.how, folds.did, folds.taken_for) == (MAPPED, "fold", "c after 'b350fc/'")
    assert tree.probability > 0 and folds.probability == folds.frequencies["fold"] and "check" not in folds.frequencies
    called = review("r350cc/r700cf/cr2000f").decisions[3].verdict
    assert (called.how, called.did, called.probability) == (LACKING, "call 3.5 BB", 0)


def lines_of_calls(count):
    """Yield random lines: bets have the tree's sizes, calls and folds may be outside of the tree."""
    random, betting = Random(5), real_betting(SOURCE.game)
    for _ in range(count):
        (state, (reading,)), line = betting.start(), ""
        while not isinstance(state, int):
            here = betting.at(reading, state)
            draw, raises = random.random(), betting.real_actions(here, state)[-1]
            action = "c" if draw < 0.6 else "f" if draw < 0.75 and state.facing else raises
            reading = max(betting.outcomes(here, state, action), key=lambda one: one.probability)
            after = betting.apply(state, action)
            line += action + "/" * (not isinstance(after, int) and after.street != state.street)
            state = after
        yield line


def count_differences(module, lines):
    """Return the numbers of judged decisions, and of those whose frequencies differ from a seat's."""
    judged, wrong = 0, 0
    for line in lines:
        for row in review(line, module).decisions:
            if row.verdict.how == SOLVED:
                continue
            seat, known = Seat(SOURCE), whole_line(row.line, STAKES.rules.line_start)
            seat.deal(row.position, row.hand)
            for street, part in enumerate(known.split("/")):
                seat.board(BOARD[: (0, 6, 8, 10)[street]])
                seat.see_line(seat.line + part)
            real = seat.betting.real_actions(seat.betting.at(seat.reading, seat.state), seat.state)
            shares = dict.fromkeys(real, 0.0)
            for action, share in zip(real, seat.strategy(), strict=True):
                shares[action] += share
            judged += 1
            wrong += list(row.verdict.frequencies.values()) != pytest.approx(list(shares.values()))
    return judged, wrong


def test_reviews_have_the_frequencies_of_a_seat_in_the_same_hand(monkeypatch):
    """Compare random lines.

    One planted review leaves the tree at a call that the tree lacks, the other one continues with the caller."""
    monkeypatch.setattr(hand_review._HandReview, "_solved", lambda self, places: [None] * len(places))
    lines = list(lines_of_calls(40))
    judged, wrong = count_differences(hand_review, lines)
    assert judged > 200 and not wrong
    stays = "reading = LineReading(NOWHERE, 1.0) if tree.players == 2 else reading"
    left = mutant(hand_review, (stays, "reading = LineReading(NOWHERE, 1.0)"))
    onward = mutant(hand_review, ("betting.at(reading, state), None", "reading, None"))
    for planted in (left, onward):
        monkeypatch.setattr(planted._HandReview, "_solved", lambda self, places: [None] * len(places))
        assert count_differences(planted, lines)[0] < judged


def straddle_review(seats, moves):
    """Return the review of a hand in which the button straddles, so that the small blind acts first."""
    source, none = SOURCE if seats == 3 else FOUR, [Decimal(0)] * seats
    posted = Posted([Decimal(20_000)] * seats, (Decimal(50), Decimal(100)), none, [*none[1:], Decimal(200)])
    actions = [(player, kind, Decimal(0)) for player, kind in moves]
    record = HandRecord(NAMES + ("Eve",) * (seats - 3), posted, actions, (*HOLES, *[""] * (seats - 3)), BOARD)
    by = hand_review.Reviewer(source.side(), source, 8)
    return by.review(checked_hand(record), 0)


def test_a_straddle_of_the_first_player_is_a_raise():
    """With three players the button is first to act. Its straddle tells nothing of its cards.

    Its check after the straddle is no action of the tree."""
    found = straddle_review(3, [(0, "f"), (1, "c"), (2, "c"), *[(1, "c"), (2, "c")] * 3])
    folds, calls = (row.verdict for row in found.decisions[:2])
    assert (folds.how, folds.did, folds.tree_line, folds.taken_for) == (MAPPED, "fold", "b350", "f after 'b350'")
    assert (calls.how, calls.did, calls.tree_line, found.ended) == (MAPPED, "call 1 BB", "b350f", "")
    assert found.unknown == 1 and verdicts(found)[2:] == [(name, 1 + k, SOLVED) for k in range(3) for name in NAMES[1:]]


def test_a_straddle_of_another_player_ends_the_review():
    found = straddle_review(4, [(0, "f"), (1, "f"), (2, "f")])
    assert (found.decisions, found.unknown) == ([], 3) and found.won_chips == (-50, -100, 0, 150)
    assert found.ended == "the policy has no straddle of BTN: the review ends there"
