"""Re-solving at a table of three players, once two of them are left.

Shows:

* A river re-solved at a table of three is the spot of `mccfr spot --policy`
  (planted: test_a_resolved_river_equals_the_spot_of_its_line)
"""

from dataclasses import replace

import numpy as np
import pytest
from acpc import contender_of, program, solved_again
from mutants import mutant
from random_policy import policy
from refusals import refused

from mccfr.config.game_tables import HoldemGame, HoldemSubgame, Menu
from mccfr.games.holdem_subgame import holdem_subgame
from mccfr.games.subgame import nodes_below
from mccfr.matches.seat_match import SeatMatch
from mccfr.play import two_left as two_left_module
from mccfr.play.policy_seat import Seat
from mccfr.play.resolving import Effort, observer_ranges, resolving_table
from mccfr.play.resolving.observer_ranges import NoRangeError
from mccfr.play.resolving.real_endgame import MENU as RIVER_MENU
from mccfr.play.resolving.resolving_seat import ResolvingSeat, ResolvingSpec
from mccfr.play.resolving.resolving_spot import Spot
from mccfr.play.resolving.resolving_table import EFFORT, VARIANT, Settings
from mccfr.play.resolving.solve import resolve
from mccfr.play.two_left import two_left
from mccfr.runs.results.line_spot import spot_behind
from mccfr.trees.compiled import DECISION

MENU, CARDS = Menu(first=("1p",), later=("1p",), max_bets=3), "Kc7d2s9hTd"
THREE = policy(MENU, 10_000.0, 3)
TWO_SEE_A_FLOP = policy(MENU, 10_000.0, 3, flop_players=2)
UNSAFE = Settings("river", "unsafe")
QUICK = Settings("river", "resolving", Effort(iterations=4), turn_menu=Menu(first=("1p",), later=("1p",), max_bets=1))
LINE = "r350cc/cr1400fc/cc/"
"""The button's 350 chips are in the pot of the two blinds."""


def at(line, position=0, settings=UNSAFE, source=THREE, seat=ResolvingSeat):
    """Return a seat at a table of three after a line."""
    found = seat(source, settings)
    found.deal(position, "AsKd", 1)
    for street, part in enumerate(line.split("/")):
        found.board(CARDS[: (0, 6, 8, 10)[street]])
        found.see_line(found.line + part)
    return found


def spot_of_line():
    """Return the river spot as `mccfr spot` builds it, its actions, and its first strategy [A, 1326]."""
    keys, _ = spot_behind(THREE, HoldemGame(seats=3, stack=10_000, menu=MENU), "b350cc/cb1050fc/cc/", CARDS)
    game = holdem_subgame(HoldemSubgame(**keys, menu=RIVER_MENU), None, merge_suits=False)
    spot = Spot(game, 0, 0)
    found = resolve(spot, 0, spot.weights, None, "unsafe", EFFORT["river"], variant=VARIANT)
    bucket, count = game.cards.listed().bucket[0][0, 0], int(game.tree.arrays.count[0])
    labels = [game.tree.label[child] for child in game.tree.children(0)]
    return keys, labels, np.where(bucket >= 0, found.tables[0][:count, bucket], 0)


@pytest.mark.parametrize("planted", [False, True])
def test_a_resolved_river_equals_the_spot_of_its_line(monkeypatch, planted):
    """The planted error leaves the button's chips out of the pot."""
    if planted:
        edit = "state.put_in[first] - state.put_in[second] + sum(rules.dead)) / 2"
        wrong = mutant(two_left_module, (f"dead = (sum(state.put_in) - {edit}", "dead = 0.0"))
        monkeypatch.setattr(resolving_table, "two_left", wrong.two_left)
    here, (keys, labels, played) = at(LINE).public_state(), spot_of_line()
    own = here.ranges / here.ranges.max(axis=1, keepdims=True)
    expected = np.array([keys["ranges"]["oop"], keys["ranges"]["ip"]])
    assert own == pytest.approx(expected / expected.max(axis=1, keepdims=True))
    held = here.ranges[0] > 0
    same = here.actions == labels and here.played()[:, held] == pytest.approx(played[:, held], abs=1e-4)
    assert bool(same) != planted
    assert (sum(here.state.put_in) == keys["pot"] == 3_150) != planted


def test_bets_of_the_solution_are_converted_to_bets_at_the_table():
    """The solution's bets count the button's chips; at the table they are the small blind's own."""
    seat = at(LINE)
    here = seat.public_state()
    assert here.actions == ["c", "r3150", "r4725", "r10175"]
    actions = [here.table_action(seat.state, number) for number in range(4)]
    assert actions == ["c", "r2975", "r4550", "r10000"]
    assert [here.own_action(action) for action in actions] == here.actions
    seat.see("r4550")
    other = seat.public_state()
    assert other.state.put_in == (4_725, 1_575) and other.state.player == 1
    seat.see("r10000")
    assert seat.choose() in ("c", "f")


@pytest.mark.parametrize("method", ["maxmargin", "resolving", "unsafe"])
@pytest.mark.parametrize(
    ("street", "line"), [("river", LINE), ("turn", "r350cc/cr1400fc/"), ("river", "r350cc/ccc/ccc/cr900f")]
)
def test_every_method_solves_for_both_players(street, line, method):
    settings = replace(QUICK, street=street, method=method)
    for position in (0, 1) if line.endswith("/") else (0, 1, 2):
        seat = at(line, position, settings)
        if seat.state.player in two_left(seat.betting.rules, seat.state).players and position in seat.state.left:
            here = seat.public_state()
            held = here.ranges[here.state.player] > 0
            assert here.played()[:, held].sum(axis=0) == pytest.approx(1) and here.ranges.any(axis=1).all()


def test_the_policy_plays_until_two_are_left():
    seat = at("r350cc/ccc/ccc/", settings=QUICK)
    refused("more than two are left", seat.public_state)
    assert seat.choose()[0] in "cr"
    seat = at("r350cc/ccc/ccc/r700f", 2, QUICK)
    here = seat.public_state()
    actions = [here.table_action(seat.state, number) for number in range(len(here.actions))]
    assert here.position == 1 and actions[:2] == ["f", "c"] and seat.choose() in actions


@pytest.mark.parametrize(
    ("street", "line", "planted"),
    [("river", "r350fc/cc/cc/", False), ("river", "r350fc/cc/cc/", True), ("flop", "r350fc/", False)],
)
def test_alternatives_follow_from_the_policy(street, line, planted):
    """A subgame with the bets of the policy's tree has the policy's rows.

    The planted observer confuses the player's place among the two with its position at the table.
    """
    wrong = mutant(
        observer_ranges,
        ("state_here.player == self._left.players[self.position]", "state_here.player == self.position"),
    )
    for position in (1, 2):
        seat = at(line, position, Settings(street, "unsafe", Effort(1), MENU, MENU))
        left, root, tree = two_left(seat.betting.rules, seat.state), seat.public_state(), THREE.game.tree
        observer = (wrong if planted else observer_ranges).HandObserver(seat, position, seat._acted, left)
        spot, twins = root._spot, nodes_below(tree, seat.reading.node)
        merged = street == "flop"
        tables = observer.buckets_in(spot, seat.state) if merged else observer.policy_in(spot.game, seat.state)
        arrays, player, right = spot.game.tree.arrays, observer.position, list[bool]()
        held = np.flatnonzero((root.ranges > 0).all(axis=0))
        for node in np.flatnonzero(arrays.block % 2 == player).tolist():
            depth, street_here = len(spot.game.tree.path(node)) - 1, int(arrays.block[node]) // 2
            if arrays.kind[node] != DECISION or not (merged or depth <= player):
                continue
            block, first, count = int(arrays.block[node]), int(arrays.slot[node]), int(arrays.count[node])
            if merged:
                buckets = spot.own_buckets(block)
                rows, columns = seat.played(int(twins[node]), buckets), np.arange(len(buckets))
            else:
                columns = spot.game.cards.listed().bucket[street_here][player, 0][held]
                row = seat.dealing.bucket_row(3, position, seat.dealing.read_board(3, CARDS))
                rows = seat.played(int(twins[node]), row)[held]
            right.append(np.allclose(tables[block][first : first + count, columns].T, rows))
        assert right and all(right) != planted


def test_without_a_range_the_policy_plays():
    """The small blind's cold call is not in the tree; the button goes on as the policy does."""
    line = "r350cf/cc/cc/c"
    seat, other = (at(line, 2, QUICK, TWO_SEE_A_FLOP, each) for each in (ResolvingSeat, lambda source, _: Seat(source)))
    with pytest.raises(NoRangeError, match="the policy's tree lacks"):
        seat.public_state()
    assert seat.reading == other.reading and seat.choose(seed=3) == other.choose(seed=3)


def test_bets_are_whole_chips_if_others_left_an_odd_number_of_chips():
    """The button left 351 chips: half of them is no whole number, but bets at the table are whole."""
    seat = at("r351cc/cr1400fc/cc/")
    here = seat.public_state()
    assert sum(here.state.put_in) == 351 + 2 * 1_400
    for number, label in enumerate(here.actions):
        action = here.table_action(seat.state, number)
        assert float(action[1:] or 0).is_integer() and here.own_action(action) == label


def test_two_seats_resolve_in_a_match_of_three(monkeypatch):
    """Two seats re-solve; each would refuse an illegal action of another seat."""
    solving = contender_of(THREE, spec=ResolvingSpec(THREE, QUICK))
    players = [solving, solving, program("always-call")]
    playing, seen = SeatMatch(players, seed=3), solved_again(monkeypatch)
    for sample in range(8):
        assert sum(playing.play(sample)) == pytest.approx(0)
    assert len(seen) > 4 and {left for left, _ in seen} == {2}


def test_preparing_a_seat_of_three_resolves_turn_and_river(monkeypatch):
    """Preparing plays a hand between the blinds, which re-solves on the turn and the river."""
    streets, right = [], ResolvingSeat.public_state
    monkeypatch.setattr(ResolvingSeat, "public_state", lambda seat: streets.append(seat.state.street) or right(seat))
    ResolvingSeat(TWO_SEE_A_FLOP, replace(QUICK, street="turn")).prepare()
    assert set(streets) == {2, 3}
