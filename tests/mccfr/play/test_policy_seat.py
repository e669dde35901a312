"""A policy's seat: legal actions after any bet, one translation each hand, PokerKit output.

Shows:

* A seat never acts illegally, in any game of the poker family
  (test_actions_are_legal_and_the_tree_agrees_on_player_and_street, test_seats_play_every_game_of_the_poker_family)
* PokerKit reads the written hands and pays the same chips (test_sessions_are_legal_and_pokerkit_pays_the_same)
"""

import multiprocessing
import pickle
import shutil
from collections import Counter

import numpy as np
import pytest
from policies import write_random
from random_policy import policy
from refusals import refused
from small_games import TOY

from abstraction.cards import combo_masks, parse_cards
from mccfr.cards.deals import card_masks
from mccfr.config.game_tables import FlopHoldemGame, HoldemGame, KuhnGame, LeducGame, Menu
from mccfr.games.line_lookup import NOWHERE
from mccfr.games.translation import pseudo_harmonic
from mccfr.matches.phh_format import Hand, phh
from mccfr.matches.programs import PROGRAMS
from mccfr.play.policy_seat import Seat
from mccfr.play.resolving.resolving_seat import SETTINGS, ResolvingSeat
from mccfr.play.table import play_hand
from mccfr.policy import Policy
from mccfr.trees.betting_lines import find_node, line_text
from mccfr.trees.compiled import DECISION


class CheckedSeat(Seat):
    """A seat that checks at its decisions that player and street of the tree are those of the table."""

    def _chosen(self, state, random):
        arrays, node = self.policy.game.tree.arrays, self.reading.node
        if node != NOWHERE and arrays.kind[node] == DECISION:
            assert divmod(int(arrays.block[node]), 2) == (state.street, state.player)
        return super()._chosen(state, random)


def lines_of(name, hands, seed=1, stack=20_000.0):
    """Return the lines of hands against a program; `play_hand` raises for an illegal action."""
    seat = CheckedSeat(policy(stack=stack), seed=seed)
    other, found = PROGRAMS[name](seat.betting, seed=2), []
    for number in hands:
        players = (seat, other) if number % 2 == 0 else (other, seat)
        found.append(play_hand(players, seat.betting, seat.dealing, seat.dealing.deal(5, number), number).line)
    return found


@pytest.mark.parametrize("name", ["always-call", "always-all-in", "min-raise", "odd-size", "random"])
@pytest.mark.parametrize("stack", [20_000.0, 1_500.0])
def test_actions_are_legal_and_the_tree_agrees_on_player_and_street(name, stack):
    assert len(set(lines_of(name, range(60), stack=stack))) > 5


def test_play_follows_from_seed_and_hand_number():
    hands = [[lines_of("random", [7], seed) for _ in range(2)] for seed in range(5)]
    assert all(one == other for one, other in hands)
    assert len({tuple(one) for one, _ in hands}) > 1


def test_a_hand_that_folds_to_a_limp_checks_and_then_folds():
    """A new seat that rereads its own check folds with the strategy's share among fold and call."""
    limpless, given_up = policy(menu=Menu(first=("1p",), later=("1p",), limp=False)), Counter()
    for number in range(400):
        for rereads in (False, True):
            seat = Seat(limpless, seed=3)
            seat.deal(0, "KsTs", number)
            seat.see("c")
            fold, call = seat.strategy()[:2]
            if not rereads and seat.choose() != "c":
                continue
            seat.board("Qs7h2d")
            seat.see_line("cc/")
            folded = limpless.game.tree.label[seat.reading.node] == "f"
            given_up[rereads] += folded
            given_up["checks"] += not rereads
            if folded:
                assert seat.choose() == "c"
                seat.see("r300")
                assert seat.choose() == "f"
    share = fold / (fold + call)
    assert 0.2 < share < 0.8
    assert given_up[False] / given_up["checks"] == pytest.approx(share, abs=0.12)
    assert given_up[True] / 400 == pytest.approx(share, abs=0.1)


def test_a_bet_is_translated_once_per_hand():
    """Later actions keep the reading; over many hands readings have the mapping's frequencies."""
    found, seat = Counter(), Seat(policy(), seed=5)
    for number in range(1_000):
        seat.deal(1, "AsKd", number)
        seat.see("r200")
        seat.see("c")
        seat.board("Qs7h2d")
        seat.see("r500")  # 3/4 of the pot: read as a bet of 1/2 or of the whole pot
        found[line_text(policy().game.tree, seat.reading.node)] += 1
        node = seat.reading.node
        seat.see("c")
        assert line_text(policy().game.tree, seat.reading.node).startswith(line_text(policy().game.tree, node))
    share = found["r200c/r400"] / 1_000
    assert found.total() == 1_000 and set(found) == {"r200c/r400", "r200c/r600"}
    assert abs(share - pseudo_harmonic(0.5, 1, 0.75)) < 4 * 0.5 / 1_000**0.5


def test_purify_plays_the_likeliest_action_and_threshold_drops_rare_ones():
    plain, seat, rare = Seat(policy()), Seat(policy(), purify=True), Seat(policy(), threshold=0.3)
    for each in (plain, seat, rare):
        each.deal(1, "AsKd")
    played, children = plain.strategy(), list(seat.policy.game.tree.children(0))
    assert seat.choose() and seat.reading.node == children[int(played.argmax())]
    kept = rare.strategy()
    assert kept.sum() == pytest.approx(1) and set(np.flatnonzero(kept)) == set(np.flatnonzero(played >= 0.3))


def test_range_strategy_equals_the_strategy_of_a_hand():
    seat = Seat(policy())
    seat.deal(1, "AsKd")
    seat.see_line("r200c/c")
    seat.board("Qs7h2d")
    found = seat.range_strategy()
    assert found.shape[0] == 1326
    hits = (combo_masks() & card_masks(np.array([parse_cards("Qs7h2d")], np.int16))) != 0
    assert not found[hits].any() and found[~hits].sum(axis=1) == pytest.approx(1)
    assert np.array_equal(found[int(seat.policy.game.cards.find_hands("AsKd")[0])], seat.strategy())


def test_lines_are_followed_as_they_grow():
    seat = Seat(policy(), seed=1)
    seat.deal(1, "AsKd")
    seat.see_line("r250")
    seat.see_line("r250c/")
    assert seat.line == "r250c/" and seat.to_act == 0
    refused("does not continue", seat.see_line, "r300c/")


def test_impossible_input_is_refused():
    seat = Seat(policy())
    refused("position = 2", seat.deal, 2, "AsKd")
    refused("twice", seat.deal, 0, "AsAs")
    seat.deal(0, "AsKd")
    refused("not the turn of position 0", seat.choose)
    refused("a raise must be to 200", seat.see, "r150")
    seat.see("r300")
    seat.see("c")
    refused("give 3 board cards", seat.choose)
    seat.board("Qs7h2d")
    refused("the cards already dealt", seat.board, "Qs7h3d")
    refused("threshold = 2", Seat, policy(), threshold=2)


@pytest.mark.parametrize("config", [KuhnGame(), LeducGame(), TOY], ids=["kuhn", "leduc", "two hole cards"])
def test_seats_play_every_game_of_the_poker_family(tmp_path, config):
    """Play policies from files against random actions; each choice has positive probability."""
    seat = Seat(Policy.open(write_random(tmp_path / "policy", config)), seed=1)
    other, lines = PROGRAMS["random"](seat.betting, seed=2), set()
    for number in range(100):
        deal = seat.dealing.deal(3, number)
        seat.deal(0, seat.dealing.hand_text(deal.hands[0]), number)
        other.deal(1, seat.dealing.hand_text(deal.hands[1]), number)
        while seat.to_act is not None:
            street = seat.state.street
            seat.board(seat.dealing.board_text(street, deal.boards[street]))
            if seat.to_act == 1:
                seat.see(other.choose())
                continue
            played, row = seat.strategy(), seat.range_strategy()[deal.hands[0]]
            labels = seat.betting.actions(seat.state)
            action = seat.choose()
            other.see(action)
            assert np.array_equal(played, row) and played[labels.index(action)] > 0
        assert seat.line == other.line and find_node(seat.policy.game.tree, seat.line)
        lines.add(seat.line)
    assert len(lines) >= 2


def test_purify_and_threshold_are_the_same_for_ranges_and_hands():
    for options in ({"purify": True}, {"threshold": 0.3}):
        seat = Seat(policy(), **options)
        seat.deal(1, "AsKd")
        rows = seat.played(0, np.arange(-1, 5, dtype=np.int32))
        seat._bucket = 2
        expected = seat.strategy()
        assert not rows[0].any() and np.allclose(rows[1:].sum(axis=1), 1)
        assert np.array_equal(rows[3], np.eye(len(expected))[expected.argmax()] if seat.purify else expected)


# --- hands as text ---


def test_phh_text_of_a_hand():
    hand = Hand("r300c/cr700f", ("TdAs", "AcKc"), "2c8c3h")
    assert phh(hand, HoldemGame())["actions"] == [
        *("d dh p1 TdAs", "d dh p2 AcKc", "p2 cbr 300", "p1 cc", "d db 2c8c3h", "p1 cc", "p2 cbr 400", "p1 f")
    ]
    run_out = phh(Hand("r20000c", ("TdAs", "AcKc"), "2c8c3h4d5s"), HoldemGame())["actions"]
    assert run_out[-5:] == ["p1 sm TdAs", "p2 sm AcKc", "d db 2c8c3h", "d db 4d", "d db 5s"]
    refused("needs a board of 3 cards", phh, Hand("r300c/c", ("TdAs", "AcKc"), ""), HoldemGame())


# --- stacks of a hand ---


def seat_after_a_raise(stacks, to):
    """Return a seat with given stacks and the tree's line after the button's raise to `to` chips."""
    seat = Seat(policy(), seed=3)
    seat.deal(0, "AhAd", stacks=stacks)
    seat.see(f"r{to}")
    return seat, line_text(policy().game.tree, seat.reading.node)


def test_an_all_in_with_half_of_the_policys_stack_is_read_as_all_in():
    for stacks in ((10_000, 20_000), (20_000, 10_000), (10_000, 10_000)):
        seat, line = seat_after_a_raise(stacks, 10_000)
        assert line == "r20000" and seat.choose() in ("f", "c")
    assert len(seat.betting.read("r10000")[1]) == 1
    seat.deal(0, "AhAd", 1)  # the next hand has the policy's own stacks
    assert seat.betting.rules.stack == 20_000 and len(seat.betting.read("r10000")[1]) == 2


def test_own_bets_stay_within_the_shorter_stack():
    seat, amounts = Seat(policy(), seed=4), []
    for number in range(200):
        seat.deal(1, "AhAd", number, stacks=(700, 20_000))
        amounts.append(seat.choose())
    assert set(amounts) >= {"r700"} and all(action in ("f", "c") or float(action[1:]) <= 700 for action in amounts)


def test_invalid_stacks_are_refused(tmp_path):
    seat = Seat(policy())
    for stacks in ((100, 20_000), (5_000,)):
        refused("two amounts above the big blind are needed", seat.deal, 0, "AhAd", stacks=stacks)
    kuhn = Seat(Policy.open(write_random(tmp_path / "kuhn", KuhnGame())))
    refused("Seat plays kuhn with its own stacks only", kuhn.deal, 0, "K", stacks=(5, 5))
    other = ResolvingSeat(policy(), SETTINGS)
    refused("ResolvingSeat plays holdem with its own stacks only", other.deal, 0, "AhAd", stacks=(5_000, 5_000))


# --- other processes ---


@pytest.fixture(scope="module")
def deck_policy(tmp_path_factory, slot_abstractions):
    game = FlopHoldemGame(max_raises=1)
    return Policy.open(write_random(tmp_path_factory.mktemp("deck") / "policy", game, slot_abstractions[1]))


def looked_up(source):
    """Return the actions of a policy with aces at its first decision; also runs in a child process."""
    return source.query("", hand="AhAd")["actions"]


def chosen(seat):
    """Return the action that a seat takes; also runs in a child process."""
    return seat.choose()


def test_a_policy_and_a_seat_can_be_sent_to_another_process(deck_policy):
    seat = Seat(deck_policy, seed=1)
    seat.deal(1, "AhAd")
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.map(looked_up, [deck_policy]) == [looked_up(deck_policy)]
        assert pool.map(chosen, [seat]) == [seat.choose()]


def test_a_pickled_policy_refuses_another_policy_at_its_path(tmp_path):
    first = Policy.open(write_random(tmp_path / "policy", KuhnGame()))
    data = pickle.dumps(first)
    assert looked_up_kuhn(pickle.loads(data)) == looked_up_kuhn(first)
    shutil.rmtree(tmp_path / "policy")
    write_random(tmp_path / "policy", KuhnGame(), seed=1)
    refused("holds another policy now", pickle.loads, data)


def looked_up_kuhn(source):
    return source.query("", hand="K")


@pytest.mark.parametrize("stacks", [None, (3_000, 9_000)])
def test_a_pickled_seat_continues_its_hand(tmp_path, slot_abstractions, tables_read_once, stacks):
    game = HoldemGame(menu=Menu(first=("0.5p", "2p", "allin"), later=("1p", "allin")))
    source = Policy.open(write_random(tmp_path / "policy", game, slot_abstractions[1]), check=False)
    for number in range(20):
        seat = Seat(source, seed=number)
        seat.deal(0, "AhAd", stacks=stacks)
        seat.see("r330")
        other = pickle.loads(pickle.dumps(seat))
        assert (other.reading, other.line, other.state) == (seat.reading, seat.line, seat.state)
        assert other.choose() == seat.choose() and other.betting.rules.stack == seat.betting.rules.stack
        assert other.policy.path == source.path and other.betting.tree is other.policy.game.tree
