"""Reviews of played hands: cost of each decision, unbiased estimates, input files and reports.

Shows:

* From the turn on, the cost of a decision equals enumeration of all rivers
  (test_costs_from_the_turn_on_equal_enumeration_of_all_rivers)
* On earlier streets, the estimated cost is unbiased (test_cross_validated_costs_are_unbiased,
  test_flop_and_preflop_estimates_agree_with_the_exact_cost)
* A bet outside of the tree costs what its translation costs, or its street is solved again
  (test_an_off_tree_preflop_raise_costs_as_much_as_its_translation,
  test_a_street_with_an_off_tree_bet_is_re_solved)
* Costs add up, and a stopped review continues (test_a_reviews_costs_add_up_and_it_resumes)
* After the flop, with two of several players left, a decision's cost counts the whole pot
  (test_before_two_of_three_are_left_decisions_have_only_frequencies, planted:
  test_the_chips_of_folded_players_are_in_the_pot)
"""

import json
from pathlib import Path

import numpy as np
import pytest
import tomli_w
from acpc import dealer, opened, plan
from commands import answer, call
from random_policy import policy

from abstraction.cards import combo_index, parse_cards
from mccfr.config.game_tables import HoldemGame, Menu
from mccfr.evaluation.decision_values import decision_values
from mccfr.evaluation.hand_values import Below
from mccfr.games.translation import actions_of
from mccfr.matches.acpc import follow_actions
from mccfr.matches.hand_files.format_base import CheckedHand, finished_hand, stakes_of
from mccfr.matches.phh_format import Hand, phh
from mccfr.matches.review import action_costs as costs_module
from mccfr.matches.review import hand_review
from mccfr.matches.review import review_files as results
from mccfr.matches.review.action_costs import DecisionCosts, _cross_validated
from mccfr.matches.review.hand_review import IGNORED, IN_TREE, MAPPED, NO_COST, SOLVED, Reviewer
from mccfr.matches.review.review_text import shown_cost
from mccfr.play.line_ranges import RangesOfLine
from mccfr.play.resolving import Effort, solved_street
from mccfr.play.resolving.solved_street import SolvedStreet
from mccfr.play.two_left import two_left
from mccfr.trees.betting_lines import find_node
from mccfr.trees.street_amounts import street_action, street_line, tree_start, whole_line

GAME = HoldemGame()
MENU = Menu(first=("1p",), later=("allin",), max_bets=2)
SOURCE = policy(MENU)
DEALING = SOURCE.game.cards.at_table()
THREE = policy(MENU, seats=3)
TURN = ("r300c/cc/cr900f", ("As7s", "KhQd"), "Qs7h2d3c")
RIVER = ("r300c/cc/cc/r900c", ("As7s", "KhQd"), "Qs7h2d3c9s")


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """Solve with few iterations: no test depends on the exact costs of re-solved streets."""
    monkeypatch.setattr(solved_street, "FLOP", Effort(2))
    monkeypatch.setattr(solved_street, "EFFORT", dict.fromkeys(solved_street.EFFORT, Effort(4)))


@pytest.fixture(scope="module")
def reviewer():
    return Reviewer(SOURCE.side(), SOURCE, 8)


def hand(line, holes, board, names=("Ada", "Bob"), game=GAME):
    stakes = stakes_of(game)
    return CheckedHand(finished_hand(stakes.rules, actions_of(line), holes, board, names=names), stakes)


def hand_of_three(line, holes, board):
    """Return a hand of SB, BB and BTN."""
    return hand(line, holes, board, ("Sam", "Bob", "Ada"), HoldemGame(seats=3))


def exact(line, board, cards, player):
    """Return [A] the costs of a decision's actions by a loop over all boards."""
    node, known = find_node(SOURCE.game.tree, line), tuple(parse_cards(board))
    ranges = RangesOfLine(SOURCE)
    reach = ranges.reach(ranges.follow(line, board))
    reach[player] = DEALING.live(0, known)
    found = decision_values(SOURCE, DEALING, (node, known), reach, (0, 0)).actions
    return (found.max(axis=0) - found)[:, combo_index(*parse_cards(cards))]


@pytest.mark.parametrize(("line", "holes", "board"), [TURN, RIVER])
def test_costs_from_the_turn_on_equal_enumeration_of_all_rivers(reviewer, line, holes, board):
    found, checked = reviewer.review(hand(line, holes, board), 0), 0
    for row in found.decisions:
        if len(row.board) < 8:
            continue
        tree = SOURCE.game.tree
        inside = whole_line(row.verdict.tree_line, tree_start(tree))
        costs = exact(inside, row.board, row.hand, row.position)
        assert row.line == street_line(inside, tree_start(tree))
        labels = [
            street_action(inside, tree.label[child], tree_start(tree))
            for child in tree.children(find_node(tree, inside))
        ]
        assert row.verdict.cost_chips == pytest.approx(costs[labels.index(row.action)], abs=1e-6)
        assert (row.verdict.best == row.verdict.did) == (row.action == labels[int(costs.argmin())])
        assert row.verdict.how == IN_TREE and row.verdict.ci95_chips is None and row.verdict.cost_chips >= 0
        checked += 1
    assert checked > 1 and found.unknown == 0 and found.pot == "raised"
    assert {row.verdict.note for row in found.decisions} == {""}


def test_cross_validated_costs_are_unbiased():
    """Three actions have equal values on eight boards, up to noise.

    Without cross-validation (the best mean over all boards), the cost is biased by a third of the noise."""
    rng, found = np.random.default_rng(1), []
    for _ in range(2_000):
        found.append(_cross_validated(rng.normal(size=(8, 3)), np.ones(8)).cost[0])
    error = np.std(found) / np.sqrt(len(found))
    assert abs(np.mean(found)) < 4 * error < 0.1
    leaning = [(each := rng.normal(size=(8, 3)).mean(axis=0)).max() - each[0] for _ in range(2_000)]
    assert np.mean(leaning) > 8 * error
    assert _cross_validated(np.ones((4, 2)), np.zeros(4)) is None


def test_flop_and_preflop_estimates_agree_with_the_exact_cost(monkeypatch):
    """Compare a flop with all its turns and rivers, and two suited hands before the flop.

    The preflop policy depends on ranks only, so hands that differ in suits have the same costs."""
    line, board, cards = "r300c/", "Qs7h2d", "As7s"
    node, known, number = find_node(SOURCE.game.tree, line), tuple(parse_cards(board)), combo_index(*parse_cards(cards))
    ranges = RangesOfLine(SOURCE)
    reach = ranges.reach(ranges.follow(line, board))
    reach[0] = 0
    reach[0, number] = 1
    below = Below(SOURCE, DEALING, node)
    _, action, weight = below.values(below.listed(known, reach), (0,))
    true = (action[:, number].max() - action[:, number]) / weight[0, number]
    found = DecisionCosts(SOURCE, DEALING, 60).costs(node, known, number, reach[1])
    assert found.boards == 60
    width = found.ci95[:, 1] - found.ci95[:, 0]
    assert (np.abs(found.cost - true) <= width).all() and width.max() > 0
    by_rank = [((DEALING.hand_cards // 4).sum(1) * (street + 1) % 5).astype(np.int32) for street in range(4)]
    monkeypatch.setattr("random_policy.ROWS", by_rank)
    monkeypatch.setattr(costs_module, "PREFLOP_TIMES", 5)
    fresh = DecisionCosts(SOURCE, DEALING, 8)
    monkeypatch.setattr(fresh, "_walk_lines", lambda: None)
    top = find_node(SOURCE.game.tree, "r300")
    one, other = (fresh.costs(top, (), combo_index(*parse_cards(cards)), np.ones(1326)) for cards in ("AsKs", "AhKh"))
    assert one.boards == 40 and one.cost.tolist() == other.cost.tolist()
    near = decision_values(SOURCE, DEALING, (top, ()), np.ones((2, 1326)), (0, 0)).actions
    near = (near.max(axis=0) - near)[:, combo_index(*parse_cards("AsKs"))]
    assert (np.abs(one.cost - near) <= 3 * (one.ci95[:, 1] - one.ci95[:, 0]) + 30).all()


def test_one_walk_values_every_line_before_the_flop(monkeypatch):
    """One walk gives the costs of a walk for each line. Only another range needs a new walk."""
    monkeypatch.setattr(costs_module, "PREFLOP_TIMES", 2)
    node, number, ranges = find_node(SOURCE.game.tree, "r300"), combo_index(*parse_cards("AsKs")), RangesOfLine(SOURCE)
    other = ranges.reach(ranges.follow("r300", ""))[1]
    whole, single = DecisionCosts(SOURCE, DEALING, 4), DecisionCosts(SOURCE, DEALING, 4)
    monkeypatch.setattr(single, "_walk_lines", lambda: None)
    found, alone = (each.costs(node, (), number, other) for each in (whole, single))
    assert found.cost == pytest.approx(alone.cost, rel=1e-9) and found.ci95 == pytest.approx(alone.ci95, rel=1e-9)
    lines = len(whole._kept)
    assert lines > 3 and len(single._kept) == 1
    assert whole.costs(node, (), number, np.ones(1326)).cost != pytest.approx(found.cost) and len(whole._kept) > lines


def test_an_off_tree_preflop_raise_costs_as_much_as_its_translation(reviewer):
    """A raise to 310 is translated to 300; the flop after it is re-solved, with 620 in the pot."""
    line, holes, board = "r310c/cc/cc/cc", *RIVER[1:]
    other, same = (reviewer.review(hand(text, holes, board), 0) for text in (line, "r300c/cc/cc/cc"))
    raised, known = other.decisions[0].verdict, same.decisions[0].verdict
    assert (raised.how, raised.taken_for, raised.did) == (MAPPED, "b300 after ''", "raise to 3.1 BB")
    assert (known.how, known.taken_for, known.tree_line) == (IN_TREE, "", "")
    assert raised.cost_chips == pytest.approx(known.cost_chips) and raised.probability == known.probability
    assert {row.verdict.how for row in other.decisions if row.street} == {SOLVED}
    assert {row.verdict.how for row in same.decisions} == {IN_TREE}


def test_a_street_with_an_off_tree_bet_is_re_solved(reviewer):
    """The river has an off-tree bet of 450 into 600; one solution judges the check, the bet and the call."""
    line, holes, board = "r300c/cc/cc/cr750c", *RIVER[1:]
    found = reviewer.review(hand(line, holes, board), 0)
    by_street = {street: {row.verdict.how for row in found.decisions if row.street == street} for street in range(4)}
    assert by_street == {0: {IN_TREE}, 1: {IN_TREE}, 2: {IN_TREE}, 3: {SOLVED}} and found.unknown == 0
    check, bet, call = (row.verdict for row in found.decisions if row.street == 3)
    assert (check.did, bet.did, call.did) == ("check", "bet 4.5 BB", "call 4.5 BB")
    for each in (check, bet, call):
        assert each.ci95_chips is None and each.cost_chips >= 0
        assert each.cost_chips == 0 or each.best != each.did


def test_a_re_solved_river_has_the_values_of_enumeration():
    """Compare values of the last decision, an all-in call, with the sum over the opponent's hands."""
    rules, board = stakes_of(HoldemGame(stack=1_000)).rules, tuple(parse_cards("Qs7h2d3c9s"))
    played = follow_actions(rules, actions_of("r300ccccccr1000c"))
    acted = [(state, action) for state, action in zip(played.states, played.actions, strict=True) if state.street == 3]
    solved = SolvedStreet(rules, acted, board, DEALING.live(3, board) * np.ones((2, 1326)), SOURCE.game.cards)
    assert solved.actions[-1] == ["f", "c"]
    bets = solved.played[1][solved.actions[1].index("r1000")] * DEALING.live(3, board)
    strength, hand = DEALING.strengths(board), combo_index(*parse_cards("KhQd"))
    apart = (DEALING.hand_masks() & DEALING.hand_masks()[hand]) == 0
    met = bets * apart
    won = (met * np.sign(strength[hand] - strength)).sum() / met.sum()
    assert solved.values[-1][:, hand] == pytest.approx([-300, 1_000 * won], abs=1e-6)
    assert np.isnan(solved.values[-1][:, combo_index(*parse_cards("QsQd"))]).all()


@pytest.mark.parametrize(("street", "line"), [("river", "r300c/cc/cc/r900f"), ("turn", "r300c/cc/r900f")])
def test_every_decision_of_a_street_can_be_re_solved(street, line):
    """Folding the nuts to a bet costs what a call wins, whatever the policy is."""
    solving = Reviewer(SOURCE.side(), SOURCE, 8, street)
    found = solving.review(hand(line, ("As7s", "KsJs"), "QsTs9s3c2d"), 0)
    last = found.decisions[-1].verdict
    assert last.how == SOLVED and last.ci95_chips is None and last.cost_chips > 800
    assert not any(row.verdict.how == SOLVED for row in found.decisions if row.street < line.count("/"))


def test_decisions_after_the_trees_all_in_are_re_solved(reviewer):
    """A raise to 19,000 of 20,000 is translated to all-in; decisions about the rest still have a cost."""
    found = reviewer.review(hand("r300r19000c/cc/cc/cr20000f", ("As7s", "KsJs"), "QsTs9s3c2d"), 0)
    assert found.decisions[-1].verdict.cost_chips > 10_000


def test_a_call_of_an_all_in_blind_stands_for_all_raises(reviewer):
    """The big blind has 0.8 big blinds, so every raise of the tree is played as a call."""
    game = HoldemGame(stack=80)
    found = reviewer.review(hand("c///", ("7s2d", "AsAd"), "QsTs9s3c2h", game=game), 0)
    (call,) = (row.verdict for row in found.decisions)
    assert call.did == call.best == "call 0.3 BB, all-in" and call.probability > 0
    assert call.ci95_chips[0] <= 0 <= call.ci95_chips[1]


def test_a_limp_that_the_tree_lacks_is_not_translated_to_a_raise():
    """The limp and the check after it have no verdict; the flop is re-solved with full ranges."""
    source = policy(Menu(first=("1p",), later=("allin",), max_bets=2, limp=False))
    by = Reviewer(source.side(), source, 8)
    found = by.review(hand("cc/cr200f", ("As7s", "KsJs"), "QsTs9s"), 0)
    assert [row.street for row in found.decisions] == [1, 1, 1] and found.unknown == 2


def test_a_hand_without_known_cards_is_not_solved(monkeypatch, reviewer):
    monkeypatch.setattr(hand_review, "SolvedStreet", None)
    found = reviewer.review(hand("r310c/cr900f", ("", ""), "Qs7h2d"), 0)
    assert (found.decisions, found.unknown, found.won_chips) == ([], 5, (-310, 310))


def test_a_fold_first_in_does_not_count_as_a_limped_pot(reviewer):
    pots = [reviewer.review(hand(line, ("As7s", "KsJs"), board), 0).pot for line, board in (("f", ""), ("cr400f", ""))]
    assert pots == ["folded first in", "raised"]


@pytest.fixture
def holdem(monkeypatch, tmp_path):
    """Let the name `holdem` open the random policy."""
    monkeypatch.setattr(results, "open_player", lambda name, **_: opened(SOURCE))
    monkeypatch.chdir(tmp_path)


def test_a_reviews_costs_add_up_and_it_resumes(holdem, capsys, tmp_path, monkeypatch):
    at = dealer(plan(hands=2), ("random", "min-raise"))
    played = [at.play(number).text() for number in range(2)]
    six = "STATE:0:fffr225ff:TsTc|QdAs|5h2h|7s6d|8s9s|Qh7h:-50|-100|0|0|0|150:P|W|G|B|E|L"
    (tmp_path / "match.log").write_text("\n".join([six, *played, six]))
    arguments = ("review", "match.log", "--policy", "holdem", "--boards", 4, "--keep", "kept")
    monkeypatch.setattr(costs_module, "PREFLOP_TIMES", 1)
    whole = answer(capsys, *arguments)
    assert (whole["hands"], whole["refused"]) == (2, 2)
    assert whole["reasons"] == {"a hand of 6 players: no policy that is given has as many": 2}
    assert set(whole["players"]) == {"Ada", "Bob"}
    for own in whole["players"].values():
        assert own["hands"] == 2 and own["won_mbb"] is not None and own["aivat_mbb"] is not None
        for kinds in own["by"].values():
            assert sum(part["cost_mbb"] for part in kinds.values()) == pytest.approx(own["cost_mbb"])
            assert sum(part["decisions"] for part in kinds.values()) == own["decisions"]
    assert whole["players"]["Ada"]["won_mbb"] == -whole["players"]["Bob"]["won_mbb"]
    ada = whole["players"]["Ada"]
    assert ada["cost"]["chips"] / 100 * 1000 / 2 == pytest.approx(ada["cost_mbb"])
    worst = [shown_cost(row) for row in whole["worst"]]
    assert worst == sorted(worst, reverse=True) and worst[0] > 0
    lines = (tmp_path / "kept").read_text().splitlines()
    assert len(lines) == 3 and json.loads(lines[1])[1]["where"] == "match.log, line 2, hand 0"
    (tmp_path / "kept").write_text("\n".join(lines[:2]) + "\n" + lines[2][:50])
    monkeypatch.setattr(hand_review._HandReview, "_without_luck", lambda *_: None)
    again = answer(capsys, *arguments)
    assert again["players"]["Ada"]["cost_mbb"] == whole["players"]["Ada"]["cost_mbb"]
    assert again["players"]["Ada"]["aivat_mbb"] is None  # one hand was reviewed anew, one read from the file
    text = call(capsys, *arguments, "--top", 1)
    assert "passed over" in text.err and "Ada, 2 hands" in text.out
    assert "another review" in call(capsys, *arguments[:4], "--boards", 5, "--keep", "kept").err
    (tmp_path / "six.log").write_text(six)
    assert "none of 1 hands can be reviewed" in call(capsys, "review", "six.log", "--policy", "holdem").err


def review_by_many(sources, hands, monkeypatch, capsys, tmp_path):
    """Review PHH hands with a folder of policies; return the output and the lines of the kept file."""
    monkeypatch.chdir(tmp_path)
    for name in sources:
        Path("many", name).mkdir(parents=True)
    monkeypatch.setattr(results, "open_player", lambda name, **_: opened(sources[Path(name).name]))
    monkeypatch.setattr(results, "is_policy", lambda path: path.name in sources)
    monkeypatch.setattr(costs_module, "PREFLOP_TIMES", 1)
    Path("a.phhs").write_text(tomli_w.dumps({str(number): hand for number, hand in enumerate(hands)}))
    printed = call(capsys, *MANY)
    return printed, [json.loads(line)[1] for line in Path("kept").read_text().splitlines()[1:]]


MANY = ("review", "a.phhs", "--policy", "many", "--boards", 4, "--keep", "kept")


def test_the_policy_of_the_nearest_depth_judges_and_a_second_is_listed(monkeypatch, capsys, tmp_path):
    """Policies for 100 and 200 big blinds review hands of 75, 120 and 200; only the second has both."""
    sources = {f"hu-{depth}": policy(MENU, 100.0 * depth) for depth in (100, 200)}
    hands = [phh(Hand("r300f", ("????", "AsAd")), HoldemGame(stack=100 * depth)) for depth in (75, 120, 200)]
    _, found = review_by_many(sources, hands, monkeypatch, capsys, tmp_path)
    assert [one["policy"] for one in found] == ["many/hu-100", "many/hu-100", "many/hu-200"]
    assert [one["distance"] for one in found] == ["stack 75 for 100", "stack 120 for 100", ""]
    others = [row["other"] for one in found for row in one["decisions"]]
    shown = [other and (other["policy"], other["distance"]) for other in others]
    assert shown == [None, ("many/hu-200", "stack 120 for 200"), None]


def test_the_depth_of_a_policy_with_stacks_is_the_second_largest_stack():
    game = HoldemGame(seats=3, stacks=(3000, 8000, 12000))
    assert results._Judge("three", game, THREE, THREE, 0, None).depth == stakes_of(game).depth == 80


def test_before_two_of_three_are_left_decisions_have_only_frequencies():
    """The button raises, both call, and one folds on the flop; from the fold on, streets are re-solved."""
    line, board = "r350cc/cr1400fc/cr3000f", "Qs7h2d3c"
    found = Reviewer(THREE.side(), THREE, 8).review(hand_of_three(line, ("As7s", "KhQd", "QhJh"), board), 0)
    shown = [(row.player, row.position, row.street, row.verdict.how, row.verdict.note) for row in found.decisions]
    assert shown == [
        ("Ada", 2, 0, IN_TREE, NO_COST),
        ("Sam", 0, 0, IN_TREE, NO_COST),
        ("Bob", 1, 0, IN_TREE, NO_COST),
        ("Sam", 0, 1, IN_TREE, NO_COST),
        ("Bob", 1, 1, IN_TREE, NO_COST),
        ("Ada", 2, 1, IN_TREE, NO_COST),
        ("Sam", 0, 1, SOLVED, IGNORED),
        ("Sam", 0, 2, SOLVED, IGNORED),
        ("Bob", 1, 2, SOLVED, IGNORED),
        ("Sam", 0, 2, SOLVED, IGNORED),
    ]
    assert (found.unknown, found.ended, found.pot, found.aivat_chips) == (0, "", "raised", None)
    assert found.won_chips == (-1400, 1750, -350)
    first, bucket = found.decisions[0].verdict, int(DEALING.find_hands("QhJh")[0])
    row = THREE.rows(0, DEALING.bucket_row(0, 0, ()))[0][bucket]
    assert list(first.frequencies) == ["fold", "call 1 BB", "raise to 3.5 BB"]
    assert list(first.frequencies.values()) == row.tolist() and first.probability == row[2]
    for row in found.decisions:
        assert sum(row.verdict.frequencies.values()) == pytest.approx(1)
        assert (row.verdict.cost_chips is None) == (row.verdict.how != SOLVED) == (row.verdict.best == "")


def test_an_off_tree_raise_of_three_players_is_translated_to_the_nearest():
    found = Reviewer(THREE.side(), THREE, 8).review(hand_of_three("r360ff", ("", "", "QhJh"), ""), 0)
    (raised,) = (row.verdict for row in found.decisions)
    assert (raised.how, raised.did, raised.taken_for) == (MAPPED, "raise to 3.6 BB", "b350 after ''")
    assert raised.probability == raised.frequencies["raise to 3.5 BB"] and found.unknown == 2


@pytest.mark.parametrize("planted", [False, True])
def test_the_chips_of_folded_players_are_in_the_pot(planted):
    """Compare the last river call with the sum over the opponent's hands.

    In the planted hand, the folded player's chips are missing."""
    rules, board = stakes_of(HoldemGame(seats=3, stack=1_000)).rules, tuple(parse_cards("Qs7h2d3c9s"))
    played = follow_actions(rules, actions_of("r300cfccccr700c"))
    acted = [(state, action) for state, action in zip(played.states, played.actions, strict=True) if state.street == 3]
    if planted:
        acted = [(state._replace(put_in=(state.put_in[0], 0.0, state.put_in[2])), action) for state, action in acted]
    left = two_left(rules, acted[0][0], [action for _, action in acted])
    solved = SolvedStreet(left.rules, left.acted, board, DEALING.live(3, board) * np.ones((2, 1326)), SOURCE.game.cards)
    bets = solved.played[0][solved.actions[0].index(left.acted[0][1])] * DEALING.live(3, board)
    strength, one = DEALING.strengths(board), combo_index(*parse_cards("KhQd"))
    apart = (DEALING.hand_masks() & DEALING.hand_masks()[one]) == 0
    met = bets * apart
    equity = 0.5 + 0.5 * (met * np.sign(strength[one] - strength)).sum() / met.sum()
    fold, call = solved.values[1][[solved.actions[1].index("f"), solved.actions[1].index("c")], one]
    gain = equity * (300 + 300 + 100 + 400 + 400) - 400
    assert left.players == (0, 2)
    assert (call - fold == pytest.approx(gain, abs=1e-6)) != planted


def test_a_raise_above_the_opponents_stack_is_reduced_to_it():
    """The button bets 7 big blinds into 6.5; the big blind has only 2 left."""
    stacks = [2_000.0, 500.0, 2_000.0]
    rules = stakes_of(HoldemGame(seats=3, stacks=stacks)).rules
    played = follow_actions(rules, actions_of("r300fccr1000c"))
    left = two_left(rules, played.states[3], played.actions[3:])
    assert (left.players, left.rules.stack) == ((1, 2), 525)
    assert [action for _, action in left.acted] == ["c", "r525", "c"]
    assert left.acted[0][0].put_in == (325, 325) and left.acted[2][0].put_in == (325, 525)


def test_the_policy_for_the_hands_number_of_players_judges(monkeypatch, capsys, tmp_path):
    """A folder with policies for two and three players; a hand of four is refused with the reason."""
    sources = {f"p-{seats}": policy(MENU, seats=seats) for seats in (2, 3)}
    hands = [
        {
            "variant": "NT",
            "antes": [0] * seats,
            "blinds_or_straddles": [50, 100] + [0] * (seats - 2),
            "starting_stacks": [20_000] * seats,
            "players": list("PQRS")[:seats],
            "actions": [f"d dh p{seats} QhJh", f"p{3 if seats > 2 else 2} cbr 350", *folds],
        }
        for seats, folds in ((2, ["p1 f"]), (3, ["p1 f", "p2 f"]), (4, ["p4 f", "p1 f", "p2 f"]))
    ]
    printed, found = review_by_many(sources, hands, monkeypatch, capsys, tmp_path)
    assert "hand of 4 players: no policy that is given has as many" in printed.err
    assert "R, BTN QhJh - -: raise to 3.5 BB" in printed.out and "1 decisions have frequencies only" in printed.out
    assert [one["policy"] for one in found] == ["many/p-2", "many/p-3"]
    assert [row["position"] for one in found for row in one["decisions"]] == ["BTN", "BTN"]
    assert found[1]["won_bb"] == [-0.5, -1, 1.5] and found[1]["decisions"][0]["cost_bb"] is None
    again = answer(capsys, *MANY)
    assert again["players"]["R"]["without_cost"] == 1 and again["players"]["R"]["decisions"] == 0
