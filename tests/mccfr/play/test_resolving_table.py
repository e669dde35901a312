"""Hands of no-limit hold'em with subgames re-solved during play.

Shows:

* The strategy of a re-solved subgame follows from the public state only
  (test_the_resolved_strategy_follows_from_the_public_state)
* Local best response with all hands at once equals one hand at a time
  (test_all_hands_at_once_equal_one_hand_at_a_time; planted: test_hands_that_the_board_excludes_are_caught)
* The test detects ranges not updated and translations drawn twice (planted:
  test_an_own_range_that_is_not_updated_is_caught, test_a_translation_drawn_again_is_caught)
"""

import math
from dataclasses import replace
from functools import cache
from types import SimpleNamespace

import numpy as np
import pytest
from mutants import mutant
from random_policy import MENU, policy
from refusals import refused
from small_games import game_of
from strategies import tabulate

from abstraction.cards import card_mask, combo_masks, parse_cards
from mccfr.common.rng import EVALUATION, new_stream
from mccfr.config.game_tables import Menu
from mccfr.evaluation import resolved_best_response
from mccfr.evaluation.local_best_response import resolved_policy
from mccfr.evaluation.local_best_response.hand import PolicyRows, Responder, all_of_them
from mccfr.evaluation.local_best_response.lbr_evaluation import _ResolvedSamples
from mccfr.evaluation.local_best_response.responder_deals import DeckBoard, DeckHand, DeckTable
from mccfr.evaluation.local_best_response.settings import ResponderBetting, streets_that_look
from mccfr.evaluation.sampled_best_response import sampled_best_response
from mccfr.games.betting import raise_bounds
from mccfr.games.line_lookup import OVER
from mccfr.games.subgame import nodes_below
from mccfr.games.translation import real_betting
from mccfr.matches.players import PlayManner, open_player
from mccfr.play import hand_beliefs
from mccfr.play.policy_seat import Seat
from mccfr.play.resolving import Effort, observer_ranges, resolving_table
from mccfr.play.resolving.real_endgame import endgame
from mccfr.play.resolving.resolving_seat import ResolvedRange, ResolvingSeat
from mccfr.play.resolving.resolving_table import PublicState, Resolver, Settings, settings_of
from mccfr.play.two_left import two_left
from mccfr.policy.strategy_profile import Profile
from mccfr.tables.strategy import Strategy, uniform_strategy
from mccfr.trees.compiled import DECISION

SMALL = Settings("river", "maxmargin", Effort(iterations=4), Menu(first=("1p",), later=("allin",), max_bets=1))
CARDS = "Kc7d2s9hTd"
ODD_LINE = (("", "r300", "c"), (CARDS[:6], "c", "r471", "c"), (CARDS[:8], "c", "c"), (CARDS, "c"))
"""Boards and actions; the bet of 471 is in no tree."""


def on_the_river(seat):
    """Return a seat of position 0 after a hand up to the opponent's turn on the river."""
    seat.deal(0, "AsKd", 1)
    for cards, *actions in ODD_LINE:
        seat.board(cards)
        for action in actions:
            seat.see(action)
    return seat


def river(seed=0, resolving=ResolvingSeat):
    return on_the_river(resolving(policy(), SMALL, seed=seed)).public_state()


def test_the_resolved_strategy_follows_from_the_public_state():
    """The strategy depends neither on earlier random draws of the seat nor on when it is computed."""
    first, second = river(0), river(7)
    live = first.ranges[1] > 0
    assert np.array_equal(first.played(), second.played()) and np.array_equal(first.ranges, second.ranges)
    assert first.played()[:, live].sum(axis=0) == pytest.approx(1) and (first.played()[:, ~live] >= 0).all()
    seat = on_the_river(ResolvingSeat(policy(), SMALL))
    *line, (state, _, board) = seat._acted
    root = seat.resolver.begin(0, line, state, board)
    arrays, own = root._game.tree.arrays, root.ranges[0] > 0
    bucket, slot = root._game.cards.listed().bucket[0][0, 0][own], int(arrays.slot[0])
    rows = root._strategy.probability[int(arrays.block[0])][bucket, slot : slot + len(root.actions)]
    assert np.ptp(rows[bucket == 0]) > 0 and np.array_equal(root.played()[:, own], rows.T)
    assert seat.public_state() is seat.public_state(), "the solution is kept"
    seat.see("r1200")
    legal, here = raise_bounds(seat.resolver.rules, seat.state), seat.public_state()
    raises = [float(action[1:]) for action in here.actions if action[0] == "r"]
    assert all(legal[0] <= amount <= legal[1] for amount in raises)
    assert seat.choose() in here.actions


def test_a_bet_outside_of_the_endgame_is_solved_again():
    before = river()
    after = before.after("r777")
    assert isinstance(after, PublicState) and after.state.put_in == (471, 777)
    assert after.actions[:2] == ["f", "c"] and after.after("c") == OVER
    assert np.array_equal(after.ranges[0], before.ranges[0]), "the opponent's bet keeps our range"


@pytest.mark.parametrize("method", ["maxmargin", "resolving", "unsafe"])
@pytest.mark.parametrize("street", ["river", "turn"])
def test_a_hand_is_resolved_after_own_bets_outside_of_the_tree(street, method):
    """Own bets outside of the tree, before and on the re-solved street, are read like the opponent's.

    So a seat can continue after a restart, or after another program.
    """
    settings = replace(SMALL, street=street, method=method, turn_menu=SMALL.menu)
    seat = ResolvingSeat(policy(), settings)
    seat.deal(1, "AsKd", 1)  # the button: its raise to 230, bet of 333 and, on the last street, its bet of 777 are odd
    streets = (("", "r230", "c"), (CARDS[:6], "c", "r563", "c"), (CARDS[:8], "c", "c"), (CARDS, "c"))
    for cards, *actions in streets[: 4 if street == "river" else 3]:
        seat.board(cards)
        for action in actions if cards != CARDS[:8] or street == "river" else ["c"]:
            seat.see(action)
    here = seat.public_state()
    assert here.ranges.any(axis=1).all() and 0 < (here.ranges[1] > 0).sum() < 1326
    assert np.ptp(here.ranges[1][here.ranges[1] > 0]) > 0, "own bets change the own range"
    seat.see("r1340")
    seat.see("r2800")
    assert seat.choose() in ("f", "c", "r20000")


def on_the_flop(played=None, before=ODD_LINE[0][1:], **settings):
    """Return a seat of position 0 that acts first on the flop."""
    flop = replace(SMALL, street="flop", effort=Effort(iterations=1), turn_menu=SMALL.menu, **settings)
    seat = ResolvingSeat(played or policy(), flop)
    seat.deal(0, "AsKd", 1)
    for action in before:
        seat.see(action)
    seat.board(CARDS[:6])
    return seat


def test_a_flop_solution_continues_on_the_turn_and_after_other_bets():
    """Ranges follow the solution from the flop to the turn and after a bet outside of its game."""
    seat = on_the_flop()
    here = seat.public_state()
    live = here.ranges[0] > 0
    assert here.played()[:, live].sum(axis=0) == pytest.approx(1) and here.actions[0] == "c"
    checked = here.after("c")
    assert np.array_equal(checked.ranges[0], here.ranges[0] * here.played()[0])
    odd = checked.after("r777")
    assert odd.state.put_in == (300, 777) and odd.actions[:2] == ["f", "c"]
    assert np.array_equal(odd.ranges[0], checked.ranges[0]), "the opponent's bet keeps our range"
    turn = checked.after("c", tuple(parse_cards(CARDS[:8])))
    assert turn.state.street == 2 and turn.played().shape == (len(turn.actions), 1326)
    dealt = (combo_masks() & np.uint64(card_mask(parse_cards(CARDS[:8])))) == 0
    assert np.array_equal(turn.ranges[0], checked.ranges[0] * dealt)


def test_solving_a_flop_begins_with_the_policy():
    """The strategy before solving is the policy's on all streets, with the bets of its tree."""
    seat = on_the_flop(policy(SMALL.menu), "cc")
    here, tree = seat.public_state(), seat.policy.game.tree
    spot, twins = here._spot, nodes_below(tree, seat.betting.read("cc/")[1][0].node)
    state, line = seat.state, seat._acted
    left = two_left(seat.betting.rules, state)
    found = observer_ranges.HandObserver(seat, here.position, line, left).buckets_in(spot, state)
    arrays, buckets = spot.game.tree.arrays, [spot.own_buckets(block).tolist() for block in range(6)]
    for node in np.flatnonzero(arrays.kind == DECISION).tolist():
        block, slot = int(arrays.block[node]), int(arrays.slot[node])
        for place, bucket in list(enumerate(buckets[block]))[:200]:
            row = seat.policy.probabilities(int(twins[node]), bucket)
            assert found[block][slot : slot + len(row), place] == pytest.approx(row)


@cache
def whole_side():
    """Return a policy with all of its rows in tables."""
    game = policy().game
    return Profile(game, tabulate(game, policy().row))


def ranges_follow(module):
    """Return by player True if the range follows the solution after an own action."""
    found = module.Resolver(Seat(policy()), SMALL)
    seat = on_the_river(ResolvingSeat(policy(), SMALL))
    line, start = seat._acted[:-1], seat._acted[-1]
    here = found.begin(0, line, start[0], start[2])
    kept = []
    for player, action in enumerate(("c", here.actions[-1])):
        after, played = here.after(action), here.played()[here.actions.index(action)]
        kept.append(np.allclose(after.ranges[player], here.ranges[player] * played) and played.std() > 0)
        here = after
    return kept


def test_an_own_range_that_is_not_updated_is_caught():
    """Plant the error for both ranges, and for the opponent's range only."""
    narrowed = "ranges[self.state.player] *= self.played()[self.actions.index(action)]"
    assert ranges_follow(resolving_table) == [True, True]
    assert not ranges_follow(mutant(resolving_table, (narrowed, "pass")))[0]
    ours_alone = mutant(resolving_table, (narrowed, f"if self.state.player == self.position: {narrowed}"))
    assert ranges_follow(ours_alone) == [True, False]


def test_aivats_range_of_a_seat_follows_from_its_solutions():
    """Compare AIVAT's range of a seat with the public state's range times its strategy, without solving."""
    found = on_the_river(ResolvingSeat(policy(), SMALL))
    known, state = ResolvedRange(found, 0), found.betting.start()[0]
    for cards, *actions in ODD_LINE:
        board = tuple(parse_cards(cards))
        for action in actions:
            if state.player == 0:
                known.choices(state, board)
                known.chose(action)
            else:
                known.see(state, action)
            state = found.betting.apply(state, action)
    found.see("r1500")
    known.see(state, "r1500")
    here = found.public_state()
    found.resolver.solved = None
    choices = known.choices(found.state, board)
    live = found.dealing.live(3, board)
    for action, row in zip(here.actions, here.played(), strict=True):
        assert choices[action][live] == pytest.approx((here.ranges[0] * row)[live], rel=1e-9)


CHECKED_TO = (("", "r300", "c"), (CARDS[:6], "c"))
"""The player to act may close the flop's betting with a check; a bet to 400 is read as a check or half-pot bet."""


def assumed_range(position, *actions):
    """Return an assumed range before and after the last action, and the policy [H, A] at its node."""
    seat = Seat(policy())
    state, theirs = seat.betting.start()[0], observer_ranges.AssumedRange(seat, position)
    for cards, *done in (*CHECKED_TO, (CARDS[:6], *actions)):
        for action in done:
            before = theirs.reach
            if state.player == position:
                theirs.took(state, action, tuple(parse_cards(cards)))
            else:
                theirs.see(state, action)
            state = seat.betting.apply(state, action)
    node = max(node for node, _ in before)
    return before, theirs.reach, seat.played(node, theirs._buckets_on(node, tuple(parse_cards(cards))))


def test_an_assumed_range_reads_a_small_bet_as_the_smallest_bet():
    """The bettor's range is that of the smallest bet, the caller's that of a call of this bet."""
    before, bets, rows = assumed_range(1, "r400")
    (((node, _), reach),) = before.items()
    half = policy().game.tree.children(node)[1]
    assert set(bets) == {(half, -1)} and bets[half, -1] == pytest.approx(reach * rows[:, 1])
    before, called, rows = assumed_range(0, "r400", "c")
    (found,) = called.values()
    assert found == pytest.approx(before[half, -1] * rows[:, 1])


def follows_every_reading(module):
    """Return True if our range after an odd bet is the mean over its readings."""
    seat, hands = Seat(policy()), []
    betting = seat.betting
    state, _ = betting.start()
    watched = module.HandObserver(seat, 0, [(state, "r471", ())], two_left(betting.rules, state))
    for reading in betting.outcomes(betting.start()[1][0], state, "r471"):
        hands.append(watched.ours.reach.get((reading.node, reading.closed), np.zeros(1)) == reading.probability)
    return len(hands) == 2 and all(each.all() for each in hands)


def test_a_translation_drawn_again_is_caught():
    drawn = mutant(
        hand_beliefs,
        (
            "            for reading in self._betting.outcomes(LineReading(node, 1.0, closed), state, action):\n"
            "                self._add(action, reading, reach * reading.probability)",
            "            reading = self._betting.outcomes(LineReading(node, 1.0, closed), state, action)[0]\n"
            "            self._add(action, reading, reach)",
        ),
    )
    assert follows_every_reading(observer_ranges)
    assert not follows_every_reading(mutant(observer_ranges, using={"mccfr.play.hand_beliefs": drawn}))


class Unsolved(Resolver):
    """A resolver that keeps the policy instead of solving."""

    def solved(self, position, spot, ranges, alternatives, state, method, before):
        tables = [np.ascontiguousarray(each.T) for each in before]
        for each, other in zip(tables, uniform_strategy(spot.game).probability, strict=True):
            each[:] = np.where(each.sum(axis=1, keepdims=True) > 0, each, other)
        return PublicState(self, position, spot, Strategy(tables, tables), ranges, 0, state)


def test_without_solving_local_best_response_is_that_to_the_policy():
    """Check ranges, the policy in the endgames, and the responder's walk through them."""
    side = whole_side()
    game = side.game
    samples = _ResolvedSamples(side, ResponderBetting(real_betting(game), "2"), 0, SMALL)
    samples._resolver = Unsolved(Seat(Profile(game, side.strategy)), Settings(menu=MENU))
    found = samples.play(0)
    assert found[:2] == pytest.approx(found[2:], rel=1e-9, abs=1e-9) and found.all()


def all_at_once(module, setting, monkeypatch):
    """Return chips by seat for a hand played with all hands at once, and alone; all-ins by equity."""
    monkeypatch.setattr(module.OpponentRanges, "settled", module.OpponentRanges.won)
    monkeypatch.setattr(DeckHand, "settlement", DeckHand.equity)
    side = small_side()
    lines, rows = ResponderBetting(real_betting(side.game), setting), PolicyRows(side)
    board, dealt, _ = DeckTable(side.game.cards.at_table(), 0, streets_that_look(setting)).deal(0)
    streets = [module.OpponentRanges(board, street, 0) for street in range(4)]
    for here in streets:
        here.share *= math.comb(52 - len(here.known), 2)  # number of opponent hands beside the own hand
    found = []
    for seat, hand in enumerate(dealt):
        own, begun = np.zeros(1326), DeckHand(board, hand)
        own[hand] = 1
        together = module.RangeResponder(lines, rows, seat, None, None, 1.0).play_all(streets, own)
        found.append((together, Responder(lines, rows, seat, all_of_them).play(begun, begun.prior())))
    return np.array(found).T


@pytest.mark.parametrize("setting", ["1", "4"])
def test_all_hands_at_once_equal_one_hand_at_a_time(setting, monkeypatch):
    together, alone = all_at_once(resolved_policy, setting, monkeypatch)
    assert together == pytest.approx(alone, rel=1e-9)


def test_hands_that_the_board_excludes_are_caught(monkeypatch):
    planted = mutant(resolved_policy, ("position: weight * hands.live for", "position: weight for"))
    together, alone = all_at_once(planted, "1", monkeypatch)
    assert np.abs(together / alone - 1).max() > 0.1


def test_the_luck_correction_has_mean_0():
    """Equity on the turn is the mean of the equity on its rivers, for any two ranges."""
    table, cards = DeckTable(small_side().game.cards.at_table(), 0, set()), parse_cards(CARDS)
    turn = resolved_policy.OpponentRanges(DeckBoard(table, cards, None), 2, 0)
    own, weight = np.random.default_rng(0).random((2, 1326)) * turn.live
    found = []
    for card in set(range(52)) - set(cards[:4]):
        river = resolved_policy.OpponentRanges(DeckBoard(table, [*cards[:4], card], None), 3, 0)
        found.append(river.share * (own * river.live) @ river.won(weight * river.live))
    assert np.mean(found) == pytest.approx(turn.share * own @ turn.won(weight), rel=1e-9)


def drawn_lines(module, stakes):
    """Return each line's mean weight over many boards, and the most lines followed at once."""
    found, most = np.zeros(len(stakes)), 0
    for unit in range(2_000):
        draws = new_stream(0, 0, EVALUATION, unit)
        lines = module.RangeResponder(SimpleNamespace(), None, 0, None, draws, 50.0)._drawn(stakes, 1)
        most = max(most, len(lines))
        for number, factor in lines:
            found[number] += factor / 2_000
    return found, most


def test_weights_of_sampled_lines_are_unbiased():
    stakes = [120.0, 20.0, 3.0, 15.0, 60.0, 30.0]
    found, most = drawn_lines(resolved_policy, stakes)
    assert found == pytest.approx(np.ones(6), rel=0.1) and most <= 4  # 2 + 68 / 50
    unweighted = mutant(resolved_policy, ("max(1.0, self._step / stakes[number])", "1.0"))
    assert drawn_lines(unweighted, stakes)[0].min() < 0.1


@cache
def small_side():
    """Return a policy of one bet a street, with all of its rows in tables."""
    played = policy(SMALL.menu)
    return Profile(played.game, tabulate(played.game, played.row))


def unsolved(module, drawn=2, **settings):
    """Return the boards of a best response to a policy whose endgames are not solved."""
    side, found = small_side(), replace(SMALL, **settings)
    boards = module.ResolvedBoards(side, found, 0, drawn)
    boards._resolver = Unsolved(Seat(Profile(side.game, side.strategy)), found)
    return boards


def taken_unsolved(module):
    """Return the drop of a river best response's gain, by seat, without re-solving."""
    return unsolved(module).gained(0, list(parse_cards(CARDS)))


def test_without_solving_a_river_best_response_gains_the_same():
    """Check ranges, the policy in the endgames and the values of both players."""
    assert taken_unsolved(resolved_best_response) == pytest.approx(0, abs=1e-3)
    wrong = mutant(
        resolved_best_response, ("(player, root.reach[1 - player], spot", "(player, root.reach[player], spot")
    )
    assert (np.abs(taken_unsolved(wrong)) > 1).all()


def carried_on(self, before, ranges, state, board):
    """Return the current solution instead of solving the next street."""
    tables = [np.ascontiguousarray(table.T) for table in before.tables(self._strategy)]
    return PublicState(self._resolver, self.position, before, Strategy(tables, tables), ranges, 0, state)


def test_without_solving_a_turn_best_response_gains_the_same(monkeypatch):
    monkeypatch.setattr(PublicState, "_resolve_street", carried_on)
    boards = unsolved(resolved_best_response, 1, street="turn", turn_menu=SMALL.menu)
    assert boards.gained(0, list(parse_cards(CARDS[:8]))) == pytest.approx(0, abs=1e-3)


class Worthless(PublicState):
    """A re-solved river on which the opponent wins nothing."""

    def __init__(self, *_):
        pass

    def responses(self):
        return SimpleNamespace(value=0.0)


def taken_from_worthless_rivers(module):
    """Return the opponent's loss on a turn without bets if rivers are worth 0, over the turn's value."""
    boards = unsolved(module, street="turn", turn_menu=Menu(first=("1p",), later=("1p",), max_bets=0))
    board = list(parse_cards(CARDS[:8]))
    root = boards._reached(boards._game.cards.after(boards.street, board))[0]
    solved = boards._resolver.begin(0, *boards._line(root.node, board), tuple(board))
    less = boards._less_later(solved, root.reach[1], board, np.random.default_rng(0))
    return less / float(root.reach[1] @ solved.responses().value)


def test_sampled_rivers_represent_all_rivers_of_a_turn(monkeypatch):
    """On a turn without bets all chips are won on rivers."""
    monkeypatch.setattr(PublicState, "_resolve_street", Worthless)
    monkeypatch.setattr(resolved_best_response, "RIVERS", 100_000)
    assert taken_from_worthless_rivers(resolved_best_response) == pytest.approx(1, rel=1e-3)
    wrong = mutant(
        resolved_best_response, ("1 / (len(cards) - 4)", "1 / len(cards)"), ("RIVERS = 4", "RIVERS = 100_000")
    )
    assert taken_from_worthless_rivers(wrong) == pytest.approx(44 / 48, rel=1e-3)


class Drawn(resolved_best_response.ResolvedBoards):
    """Four decisions with known shares and known drops of the gain in chips."""

    def __init__(self):
        self._seed, self._count, self.street = 0, 2, 3
        self._game = SimpleNamespace(cards=SimpleNamespace(after=lambda *_: None))

    def _reached(self, known):
        return [resolved_best_response.Root(node, None, share) for node, share in enumerate((5.0, 1.0, 2.0, 3.0))]

    def _less(self, root, player, board, random):
        return (7.0, -2.0, 4.0, 1.0)[root.node] * (1 + player)


def test_sampled_decisions_represent_all_decisions():
    found = np.mean([Drawn().gained(unit, []) for unit in range(2_000)], axis=0)
    assert found == pytest.approx([10, 20], rel=0.05)


def test_settings_are_parsed_and_wrong_ones_refused():
    assert settings_of("river") == Settings()
    assert settings_of("flop") == Settings("flop")
    assert settings_of("flop:unsafe:9") == Settings("flop", "unsafe", Effort(iterations=9))
    assert settings_of("turn:unsafe:50") == Settings("turn", "unsafe", Effort(iterations=50))
    for text, says in (
        ("preflop", "river, turn or flop"),
        ("river:gadget", "maxmargin"),
        ("flop:depth-limited", "one of resolving, maxmargin, unsafe"),
        ("river::0", "no number of iterations"),
    ):
        refused(says, settings_of, text)
    with pytest.raises(ValueError, match="is not allowed for sampled-br, which supports turn and river"):
        resolved_best_response.ResolvedBoards(Profile(policy().game, None), Settings("flop"), 0)
    for street in (0, 2):
        refused("--from river", sampled_best_response, Profile(policy().game, None), street, resolve=SMALL)
    flop = on_the_flop().state
    refused("needs the whole game's buckets", endgame, Resolver(Seat(policy())).rules, flop, parse_cards(CARDS[:6]))
    refused("always-call is a program", open_player, "always-call --resolve river")
    refused("leave them out", PlayManner, purify=True, resolve=Settings())
    assert isinstance(PlayManner(resolve=SMALL).spec(policy()).player(None), ResolvingSeat)
    refused("whole no-limit hold'em", Resolver, Seat(Profile(game_of("leduc"), uniform_strategy(game_of("leduc")))))
