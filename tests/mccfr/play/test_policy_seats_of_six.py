"""Seats of policies at tables of three and six players: legal play, translation, stacks, chips.

Shows:

* In games of three to six, seats act legally, and tree and table agree whose turn it is
  (test_no_action_is_illegal_and_the_chips_add_up)
* Calls that the tree lacks do not end its hand (planted: test_the_last_players_call_is_read_as_a_raise)
"""

from copy import copy
from random import Random

import numpy as np
import pytest
from random_policy import policy
from refusals import refused

from mccfr.config.game_tables import Menu, StreetMenu
from mccfr.games.betting import after_last, pots_of
from mccfr.games.line_lookup import NOWHERE
from mccfr.games.translation import SeatTranslation, Translation, real_betting
from mccfr.matches.programs import PROGRAMS
from mccfr.play.line_ranges import RangesOfLine
from mccfr.play.policy_seat import Seat
from mccfr.play.table import play_hand, shown_down, won_chips
from mccfr.trees.betting_lines import line_text
from mccfr.trees.compiled import DECISION

THREE = Menu(first=("1p",), later=("1p", "allin"), max_bets=3, limp="small_blind")


def three(**keys):
    return policy(THREE, 5_000.0, 3, flop_players=2, rake="5%", rake_cap=60, **keys)


def six():
    return policy(Menu(first=("1p",), later=("allin",), max_bets=2, limp=False), 2_000.0, 6, flop_players=2)


class CheckedSeat(Seat):
    """A seat that checks that player and street of the tree are those of the table."""

    def _chosen(self, state, random):
        here = self.betting.at(self.reading, state)
        if here.node != NOWHERE:
            block = int(self.policy.game.tree.arrays.block[here.node])
            assert divmod(block, self.betting.players) == (state.street, state.player)
        return super()._chosen(state, random)


def hands(source, name, count, seat=CheckedSeat, **options):
    """Yield (deal, hand) with the policy in each seat in turn and a program in all other seats."""
    betting, dealing = real_betting(source.game), source.game.cards
    own = seat(source, seed=1, **options)
    others = [PROGRAMS[name](betting, seed=2 + number) for number in range(betting.players - 1)]
    for number in range(count):
        place, deal = number % betting.players, dealing.deal(5, number)
        players = [*others[:place], own, *others[place:]]
        yield deal, play_hand(players, betting, dealing, deal, number)


@pytest.mark.parametrize("name", ["always-call", "always-all-in", "min-raise", "odd-size", "random"])
@pytest.mark.parametrize("source", [three, six], ids=["three", "six"])
def test_no_action_is_illegal_and_the_chips_add_up(name, source):
    game, lines = source().game, set()
    for deal, played in hands(source(), name, 60):
        won = won_chips(game, game.cards, deal, played)
        end = after_last(game.real_rules, played.states[-1], played.actions[-1])
        paid = sum(end.put_in) - sum(pot.chips for pot in pots_of(game.real_rules, end))
        assert sum(won) == pytest.approx(-paid) and (game.real_rules.rake > 0) >= (paid > 0)
        folded = set(range(len(won))) - set(end.left)
        assert all(won[player] == -end.put_in[player] for player in folded)
        assert shown_down(played) == (tuple(end.left) if len(end.left) > 1 else ())
        lines.add(played.line)
    assert len(lines) > 5


def test_lines_in_the_tree_are_read_as_themselves():
    game, random = three().game, Random(3)
    betting, tree = real_betting(game), game.tree
    assert isinstance(betting, SeatTranslation)
    for _ in range(300):
        state, (reading,) = betting.start()
        while not isinstance(state, int):
            assert betting.at(reading, state) == reading
            labels = [tree.label[child] for child in tree.children(reading.node)]
            assert betting.real_actions(reading, state) == labels
            number = random.randrange(len(labels))
            (after,) = betting.outcomes(reading, state, labels[number])
            assert after.node == betting.child(reading.node, number) == betting.done(reading, number, "c").node
            state, reading = betting.apply(state, labels[number]), after
        assert tree.arrays.kind[reading.node] != DECISION


def seen(line, position=1, boards=("", "Qs7h2d"), seat=Seat, **options):
    """Return a seat of three after a line, and the tree's line of its decision, or None without one."""
    own = seat(three(), seed=1)
    own.deal(position, "AhKd", **options)
    for street, part in enumerate(line.split("/")):
        own.board(boards[street])
        own.see_line(own.line + part)
    here = own.betting.at(own.reading, own.state)
    return own, None if here.node == NOWHERE else line_text(own.policy.game.tree, here.node)


@pytest.mark.parametrize(
    ("line", "position", "expected"),
    [
        ("r350cc/", 0, None),  # the small blind's call is no action of the tree
        ("r350cc/c", 1, "r350fc/"),  # so it is a fold in the tree, and two players see the flop
        ("r350cc/cc", 2, "r350fc/c"),
        ("r350cc/r500", 1, "r350fc/"),  # its bet is not in the tree
        ("r350cf/", 0, "r350r1150fc/"),  # all others have folded in the tree: the call is a raise
        ("cf", 1, "r350f"),  # a limp of the button
        ("cc", 1, "fc"),
    ],
)
def test_readings_of_calls_outside_of_the_tree(line, position, expected):
    assert seen(line, position)[1] == expected


def test_the_last_players_call_is_read_as_a_raise(monkeypatch):
    assert seen("cf")[1] == "r350f"
    monkeypatch.setattr(SeatTranslation, "_without_last_fold", lambda *_: NOWHERE)
    assert seen("cf")[1] is None


def test_hands_that_check_fold_to_a_bet_of_a_player_outside_of_the_tree(monkeypatch):
    seat, line = seen("r350cc/r500")
    labels = [seat.policy.game.tree.label[child] for child in seat.policy.game.tree.children(seat._decision())]
    actions = seat.betting.real_actions(seat.betting.at(seat.reading, seat.state), seat.state)
    assert line == "r350fc/" and labels[0] == "c" and actions[0] == "f" and actions[1][0] == "r"
    other, _ = seen("r350cc/r500r900")  # the small blind has no place in the tree
    assert other.to_act == 2
    small, _ = seen("r350cc/cr600c", 0)
    refused("the policy's tree has no decision", small.strategy)
    assert small.choose() == "f"


def test_a_fold_to_a_bet_that_is_read_as_a_check():
    """The tree has no flop bets: the bettor's range is that of a check, and a fold is no action."""
    ranges = RangesOfLine(policy(Menu(first=("1p",), later=("1p",), max_bets=2, flop=StreetMenu(max_bets=0)), seats=3))
    found, before = (ranges.follow(line, "Qs7h2d") for line in ("ccc/r300f", "ccc/"))
    assert found.state.player == 2 and np.array_equal(ranges.reach(found), ranges.reach(before))


def test_a_seat_that_is_all_in_in_the_tree_calls_to_the_end():
    seat, _ = seen("r350cr1150r3000cc/")  # the raise to 3000 is the tree's all-in; the small blind is not in the tree
    seat.see("r4000")
    assert seat.choose() == "c"


def test_a_seat_that_has_folded_follows_the_hand():
    seat, _ = seen("fr350c/", 2)
    assert seat.line == "fr350c/" and seat.to_act == 0
    refused("not the turn of position 2", seat.choose)


def test_each_hand_may_have_its_own_stacks():
    source, amounts = three(), set()
    for number in range(300):
        seat = CheckedSeat(source, seed=number)
        seat.deal(2, "AhKd", number, stacks=[600, 5_000, 400])
        assert copy(seat).betting.rules.stacks == (600, 5_000, 400)  # the copy has the stacks too
        amounts.add(seat.choose())
    assert max(float(action[1:] or 0) for action in amounts) <= 400 and len(amounts) > 1
    big = Seat(source)
    big.deal(1, "AhKd", stacks=[600, 5_000, 400])
    big.see_line("r400")
    big.see("r600")
    assert big.betting.rules.stack_of(1) == 5_000 and big.choose() in ("f", "c")
    big.deal(1, "AhKd")
    assert big.betting.rules.stack == 5_000
    refused("3 amounts above the big blind are needed", big.deal, 1, "AhKd", stacks=[600, 90, 80])
    refused("3 amounts above the big blind are needed", big.deal, 1, "AhKd", stacks=[600, 900])


def test_a_seat_plays_against_a_player_all_in_for_less_than_a_blind():
    seat = CheckedSeat(three(), seed=4)
    seat.deal(0, "AhKd", stacks=[900, 60, 800])
    seat.see("r350")
    assert seat.state.put_in == (50, 60, 350) and seat.choose() in ("f", "c", "r900", "r800")


def test_a_position_beyond_the_table_is_refused():
    refused("position = 3: it must be from 0 to 2", Seat(three()).deal, 3, "AhKd")


def test_two_players_have_their_own_translation():
    assert type(real_betting(policy().game)) is Translation
