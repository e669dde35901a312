"""Hold'em rules and menus of three to six seats, without trees.

Shows:

* Positions act in poker's order, and menus follow their names (test_positions_act_in_order,
  test_a_menu_follows_the_positions)
* Sizes are shares of the real pot (test_sizes_of_the_real_pot)
* `flop_players` limits the players who act on the flop (test_players_on_the_flop)
"""

from math import inf

import pytest
from msgspec import structs
from refusals import refusals

from mccfr.config.game_tables import HoldemGame, Menu, PlayerMenu, StreetMenu
from mccfr.config.toml_files import config_from
from mccfr.games.betting import after_fold, called, following, may_call, may_raise, raised
from mccfr.games.full_betting import real_rules
from mccfr.games.holdem_betting import configured_rules, holdem_rules, seat_names

POT = Menu(first=("1p",), later=("1p",), max_bets=3)


def ring(seats=3, **keys):
    menu = {"menu": POT} | keys
    return configured_rules(HoldemGame(seats=seats, **menu))


def played(rules, line):
    """Return the state after the actions of a line: f, c, rN."""
    state = rules.start()
    for action in line.split():
        if action == "f":
            state = following(rules, after_fold(state))
        else:
            state = called(rules, state) if action == "c" else raised(rules, state, float(action[1:]))
    return state


def decisions(rules):
    """Yield all decisions and the number of actions of each."""
    todo = [rules.start()]
    while todo:
        state = todo.pop()
        raises = rules.raise_targets(state) if may_raise(rules, state) else ()
        children = [raised(rules, state, target) for target in raises]
        children += [following(rules, after_fold(state))] if state.facing else []
        children += [called(rules, state)] if may_call(rules, state) else []
        yield state, len(children)
        todo += [child for child in children if child is not None]


@pytest.mark.parametrize("seats", range(3, 7))
def test_positions_act_in_order(seats):
    rules, names = ring(seats), seat_names(seats)
    assert names[:2] == ("small_blind", "big_blind") and names[-1] == "button"
    assert rules.put_in == (50, 100) + (0,) * (seats - 2)
    order, state = list[str](), rules.start()
    while state.street == 0:
        order.append(names[state.player])
        state = called(rules, state)
    assert order == [*names[2:], "small_blind", "big_blind"]
    assert played(rules, "c " * seats).player == 0
    assert played(rules, "c " * (seats - 2) + "f c").player == 1


def test_names_of_six_seats():
    assert seat_names(6)[2:] == ("under_the_gun", "hijack", "cutoff", "button")
    assert seat_names(5)[2:] == ("hijack", "cutoff", "button") and seat_names(4)[2:] == ("cutoff", "button")
    assert seat_names(2) == ("big_blind", "button")


def test_two_seats_have_the_rules_of_two():
    config = HoldemGame(stack=1000, ante=7, menu=POT)
    two, same = configured_rules(config), holdem_rules(1000, (50, 100), 7, POT)
    assert structs.asdict(config)["seats"] == 2
    assert (two.put_in, two.first_player, two.stack) == (same.put_in, same.first_player, same.stack)


def test_a_menu_follows_the_positions():
    own = {"button": PlayerMenu(first=("2bb",)), "small_blind": PlayerMenu(first=("3bb",))}
    rules = ring(4, menu=Menu(first=("2.5bb",), preflop=StreetMenu(**own)))
    assert rules.raise_targets(rules.start()) == [250]
    assert rules.raise_targets(played(rules, "f")) == [200]
    assert rules.raise_targets(played(rules, "f f")) == [300]
    assert rules.raise_targets(played(rules, "f f c")) == [250]


def test_sizes_of_the_real_pot():
    rules = ring(4)
    assert rules.raise_targets(rules.start()) == [100 + 250]  # a pot of 150, and a call of 100
    assert rules.raise_targets(played(rules, "c f")) == [100 + 300]
    assert rules.raise_targets(played(rules, "r300 f f")) == [300 + 650]
    assert rules.raise_targets(played(rules, "c c c c")) == [100 + 400]
    assert rules.raise_targets(played(rules, "r300 f c c")) == [300 + 900]
    assert ring(4, ante=10).raise_targets(ring(4, ante=10).start()) == [110 + 290]
    dead = ring(4, big_blind_ante=40)
    assert dead.put_in == (50, 100, 0, 0) and dead.dead == (0, 40, 0, 0)
    assert dead.raise_targets(dead.start()) == [100 + 290]


def test_geometric_bets_put_in_the_stack_with_one_caller():
    menu = Menu(first=("e",), later=("e",), allin_threshold="99%", preflop=StreetMenu(first=("1p",)))
    rules = ring(3, stack=5000, menu=menu)
    state, shares, target = played(rules, "c c c"), [], 0.0
    while state is not None:
        (target,) = rules.raise_targets(state)
        shares.append((target - state.to_call) / sum(state.put_in))
        state = called(rules, raised(rules, state, target))
        if len(shares) == 1:
            state = following(rules, after_fold(state))
    assert target == 5000 and shares == pytest.approx([shares[0]] * 3, rel=3e-3)


@pytest.mark.parametrize(("spr", "target"), [(0.054, 900), (0.055, 1000)])
def test_a_bet_that_leaves_few_chips_behind_becomes_all_in(spr, target):
    """A raise to 900 and a call make a pot of 1,850 with the small blind's 50, and leave 100 behind."""
    rules = ring(3, stack=1000, menu=Menu(first=("9bb",), allin_spr=spr))
    assert rules.raise_targets(rules.start()) == [target]


def test_an_all_in_is_at_most_what_an_opponent_can_call():
    menu = Menu(first=("allin",), later=("allin",))
    rules = ring(3, stacks=[600, 2000, 9000], menu=menu)
    assert rules.raise_targets(rules.start()) == [2000]
    assert rules.raise_targets(played(rules, "f")) == [600]
    assert not may_raise(rules, played(rules, "r2000 f"))
    short = ring(3, stacks=[250, 9000, 9000], menu=menu)
    assert short.raise_targets(played(short, "f r200")) == [300]  # the minimum raise, of which only 250 can be called


@pytest.mark.parametrize("most", [2, 3])
def test_players_on_the_flop(most):
    menu = Menu(first=("2bb", "allin"), later=("allin",), max_bets=3)
    rules = ring(5, stack=1000, menu=menu, flop_players=most)
    live = {True: set(), False: set()}
    for state, actions in decisions(rules):
        able = sum(chips < 1000 and not state.seats.folded >> seat & 1 for seat, chips in enumerate(state.put_in))
        live[state.street == 0].add(able)
        assert actions >= 2
    assert max(live[False]) == most and max(live[True]) == 5


def test_limps():
    menus = {limp: Menu(first=("2bb",), limp=limp) for limp in (True, False, "small_blind")}
    first, small = {}, {}
    for limp, menu in menus.items():
        rules = ring(3, menu=menu)
        first[limp], small[limp] = may_call(rules, rules.start()), may_call(rules, played(rules, "f"))
        assert may_call(rules, played(rules, "r200")) and may_call(
            real_rules(HoldemGame(seats=3, menu=menu)), rules.start()
        )
    assert first == {True: True, False: False, "small_blind": False}
    assert small == {True: True, False: False, "small_blind": True}


def test_the_full_game_has_no_limit_of_players():
    config = HoldemGame(seats=4, flop_players=2, menu=POT)
    assert not may_call(configured_rules(config), played(configured_rules(config), "r300"))
    assert may_call(real_rules(config), played(configured_rules(config), "r300"))


def test_flop_players_reserves_a_place_for_the_big_blind():
    rules = ring(4, flop_players=2)
    assert not may_call(rules, played(rules, "r300")) and may_call(rules, played(rules, "r300 f f"))
    assert may_call(rules, played(rules, "r300 r1000 f f"))  # the big blind has folded
    three = ring(4, flop_players=3)
    assert may_call(three, played(three, "r300")) and not may_call(three, played(three, "r300 c"))
    assert may_call(three, played(three, "r300 c f"))


def test_rake_and_chips():
    rules = ring(3, rake="5%", rake_cap=300)
    assert (rules.rake, rules.rake_cap, rules.chip) == (0.05, 300, 1)
    assert (ring(3).rake, ring(3).rake_cap) == (0, inf)
    assert ring(3, blinds=[0.5, 1], stack=50).chip == 0


ROWS = {
    r"seats .*2": {"seats": 1},
    r"seats .*6": {"seats": 7},
    "stacks .*one amount for each of 3 seats": {"stacks": [9, 9]},
    "stacks .*smaller stack": {"seats": 2, "stacks": [900, 900]},
    "stack = .*game.stacks": {"stacks": [900, 900, 900], "stack": 800},
    "stacks.*above 0": {"stacks": [900, 0, 900]},
    "big_blind_ante .*two seats": {"seats": 2, "big_blind_ante": 1},
    "rake .*two seats": {"seats": 2, "rake": "1%"},
    "flop_players .*two seats": {"seats": 2, "flop_players": 2},
    "ante = .*big_blind_ante": {"big_blind_ante": 10, "ante": 1},
    "rake = .*per cent": {"rake": 0.3},
    "rake_cap .*without game.rake": {"rake_cap": 3},
    "flop_players = 3 .*2 to 2": {"flop_players": 3},
    "flop_players.*at least 2": {"flop_players": 1},
    "locks .*three": {"locks": {"": "f 100%"}},
}
BUILT = {
    "raise the stacks": {"stack": 100},
    "game.stacks: two players need more": {"stacks": [9000, 50, 100]},
    "game.menu.preflop.cutoff is not allowed": {"menu": {"preflop": {"cutoff": {"first": ["1p"]}}}},
    "game.menu.flop.small_blind is not allowed": {"seats": 2, "menu": {"flop": {"small_blind": {"first": ["1p"]}}}},
    "the small blind could only fold": {
        "menu": {"limp": False, "preflop": {"small_blind": {"first": []}, "button": {"first": ["2bb"]}}}
    },
    "the button could only fold": {"menu": {"limp": False, "first": []}},
    "limp = 'small_blind' is for three": {"seats": 2, "menu": {"limp": "small_blind"}},
}


def configured(**keys):
    return config_from({"game": {"name": "holdem", "seats": 3, **keys}}, "run.toml").game


test_an_invalid_key_is_refused = refusals(*ROWS.items(), call=lambda keys: configured(**keys))
test_invalid_rules_are_refused = refusals(*BUILT.items(), call=lambda keys: configured_rules(configured(**keys)))
