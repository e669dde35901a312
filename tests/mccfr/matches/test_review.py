"""Reviews of played hands: cost of each decision, unbiased estimates, input files and reports.

Shows:

* From the turn on, the cost of a decision equals enumeration of all rivers
  (test_costs_from_the_turn_on_are_those_of_all_rivers)
* On earlier streets, the estimated cost is unbiased (test_estimates_do_not_lean_towards_a_cost,
  test_estimates_of_a_flop_and_before_it_hold_the_exact_cost)
* A bet outside of the tree costs the mean over its translations, weighted by their probabilities
  (test_another_bet_costs_what_it_is_taken_for)
* The costs of a review add up, and a stopped review continues (test_a_review_adds_up_and_goes_on)
"""

import json

import numpy as np
import pytest
from acpc import dealer, plan
from commands import answer, call
from random_policy import policy

from abstraction.cards import combo_index, parse_cards
from mccfr.config.game_tables import HoldemGame, Menu
from mccfr.evaluation.hand_values import Below, HandValues
from mccfr.games.translation import actions_of
from mccfr.matches.hand_files.format_base import finished_hand
from mccfr.matches.match import Contender
from mccfr.matches.players import OpenedPlayer
from mccfr.matches.review import action_costs as costs_module
from mccfr.matches.review import review_files as results
from mccfr.matches.review.action_costs import DecisionCosts, _crossed
from mccfr.matches.review.hand_review import Reviewer
from mccfr.play.line_ranges import RangesOfLine
from mccfr.play.policy_seat import PolicySpec
from mccfr.play.resolving import Effort, resolving_table
from mccfr.policy.strategy_profile import Profile
from mccfr.tables.strategy import uniform_strategy
from mccfr.trees.betting_lines import find_node

MENU = Menu(first=("1p",), later=("allin",), max_bets=2)
SOURCE = policy(MENU)
DEALING = SOURCE.game.cards.at_table()
TURN = ("r300c/cc/cr900f", ("As7s", "KhQd"), "Qs7h2d3c")
RIVER = ("r300c/cc/cc/r900c", ("As7s", "KhQd"), "Qs7h2d3c9s")


@pytest.fixture(scope="module")
def reviewer():
    return Reviewer(Profile(SOURCE.game, uniform_strategy(SOURCE.game)), SOURCE, 8)


def hand(line, holes, board, names=("Ada", "Bob")):
    return finished_hand(HoldemGame(), actions_of(line), holes, board, names=names)


def exact(line, board, cards, player):
    """[A] costs by walking every board, one after the other."""
    node, known = find_node(SOURCE.game.tree, line), tuple(parse_cards(board))
    ranges = RangesOfLine(SOURCE)
    reach = ranges.reach(ranges.follow(line, board))
    reach[player] = DEALING.live(0, known)
    found = HandValues(Below(SOURCE, DEALING, node), DEALING, known, reach)
    while not found.complete:
        found.walk()
    return found.costs()[:, combo_index(*parse_cards(cards))]


@pytest.mark.parametrize(("line", "holes", "board"), [TURN, RIVER])
def test_costs_from_the_turn_on_are_those_of_all_rivers(reviewer, line, holes, board):
    found, checked = reviewer.review(hand(line, holes, board), 0), 0
    for row in found.decisions:
        if len(row.board) < 8:
            continue
        costs = exact(row.line, row.board, row.hand, row.position)
        labels = [
            SOURCE.game.tree.label[child] for child in SOURCE.game.tree.children(find_node(SOURCE.game.tree, row.line))
        ]
        assert row.verdict.cost_chips == pytest.approx(costs[labels.index(row.action)], abs=1e-6)
        assert row.verdict.best == labels[int(costs.argmin())] and row.verdict.ci95_chips is None
        checked += 1
    assert checked > 1 and found.unknown == 0 and found.pot == "raised"


def test_estimates_do_not_lean_towards_a_cost(monkeypatch):
    """Three actions of one worth, on eight boards; with the best of all boards in place of halves it is a third of the
    noise."""
    rng, found = np.random.default_rng(1), []
    for _ in range(2_000):
        found.append(_crossed(rng.normal(size=(8, 3)), np.ones(8)).cost[0])
    error = np.std(found) / np.sqrt(len(found))
    assert abs(np.mean(found)) < 4 * error < 0.1
    leaning = [(each := rng.normal(size=(8, 3)).mean(axis=0)).max() - each[0] for _ in range(2_000)]
    assert np.mean(leaning) > 8 * error
    assert _crossed(np.ones((4, 2)), np.zeros(4)) is None


def test_estimates_of_a_flop_and_before_it_hold_the_exact_cost(monkeypatch):
    """A flop against all its turns and rivers; before it, hands that differ in suits are one, with a policy that heeds
    ranks alone."""
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
    values = HandValues(Below(SOURCE, DEALING, top), DEALING, (), np.ones((2, 1326)), seed=3)
    for _ in range(40):
        values.walk()
    near = values.costs()[:, combo_index(*parse_cards("AsKs"))]
    assert (np.abs(one.cost - near) <= 3 * (one.ci95[:, 1] - one.ci95[:, 0]) + 30).all()


def test_one_walk_values_every_line_before_the_flop(monkeypatch):
    """As a walk for each line does, and none is walked again; with a range that is not the policy's it is."""
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


def test_another_bet_costs_what_it_is_taken_for(reviewer):
    """Map 450 into 600 between a check and the pot; the river follows the likelier reading."""
    line, holes, board = "r300c/cc/cc/r750c", *RIVER[1:]
    rows = [row for row in reviewer.review(hand(line, holes, board), 0).decisions if row.street == 3]
    bet, call = rows
    costs = exact("r300c/cc/cc/", board, holes[0], 0)
    assert bet.verdict.taken_for.startswith("c (") and "r900 (" in bet.verdict.taken_for
    share = float(bet.verdict.taken_for.split("r900 (")[1].split("%")[0]) / 100
    mixed = (1 - share) * costs[0] + share * costs[1]
    assert bet.verdict.cost_chips == pytest.approx(mixed, abs=0.006 * abs(costs[1] - costs[0]) + 1e-6)
    assert call.verdict.taken_for.endswith("after 'r300c/cc/cc/r900'")
    answered = exact("r300c/cc/cc/r900", board, holes[1], 1)  # in the tree's chips, and 750 lie where it has 900
    assert call.verdict.cost_chips == pytest.approx(answered[1] * 750 / 900, abs=1e-6) and answered[1] > 0


@pytest.mark.parametrize(("street", "line"), [("river", "r300c/cc/cc/r900f"), ("turn", "r300c/cc/r900f")])
def test_a_hand_that_is_solved_again_has_costs_against_the_solution(monkeypatch, street, line):
    """The nuts that fold to a bet give away what calling wins; the policy does not matter there."""
    monkeypatch.setattr(resolving_table, "EFFORT", dict.fromkeys(resolving_table.EFFORT, Effort(4)))
    solving = Reviewer(Profile(SOURCE.game, uniform_strategy(SOURCE.game)), SOURCE, 8, street)
    found = solving.review(hand(line, ("As7s", "KsJs"), "QsTs9s3c2d"), 0)
    last = found.decisions[-1].verdict
    assert last.resolved and last.ci95_chips is None and last.cost_chips > 800
    assert not any(row.verdict.resolved for row in found.decisions if row.street < line.count("/"))


def test_what_the_tree_holds_for_over_is_known_where_hands_are_solved_again(reviewer):
    """Map 19,000 of 20,000 to all-in; the decisions about the rest still have a cost."""
    solving = Reviewer(Profile(SOURCE.game, uniform_strategy(SOURCE.game)), SOURCE, 8, "river")
    called = hand("r300r19000c/cc/cc/cr20000f", ("As7s", "KsJs"), "QsTs9s3c2d")
    assert reviewer.review(called, 0).unknown - solving.review(called, 0).unknown == 3
    assert solving.review(called, 0).decisions[-1].verdict.cost_chips > 10_000


@pytest.fixture
def holdem(monkeypatch, tmp_path):
    """`holdem` is the name of the random policy."""
    side, table = Profile(SOURCE.game, uniform_strategy(SOURCE.game)), {"name": "holdem"}
    table["menu"] = {"first": list(MENU.first), "later": list(MENU.later)}
    opened = OpenedPlayer(Contender("holdem", PolicySpec(SOURCE), side), table)
    monkeypatch.setattr(results, "open_player", lambda name, **_: opened)
    monkeypatch.chdir(tmp_path)


def test_a_review_adds_up_and_goes_on(holdem, capsys, tmp_path, monkeypatch):
    at = dealer(plan(hands=6), ("random", "min-raise"))
    played = [at.play(number).text() for number in range(6)]
    six = "STATE:0:fffr225ff:TsTc|QdAs|5h2h|7s6d|8s9s|Qh7h:-50|-100|0|0|0|150:P|W|G|B|E|L"
    (tmp_path / "match.log").write_text("\n".join([six, *played, six]))
    arguments = ("review", "match.log", "--policy", "holdem", "--boards", 4, "--keep", "kept")
    monkeypatch.setattr(costs_module, "PREFLOP_TIMES", 1)
    whole = answer(capsys, *arguments)
    assert (whole["hands"], whole["refused"]) == (6, 2)
    assert whole["reasons"] == {"a hand of 6 players: hands of two are reviewed": 2}
    assert set(whole["players"]) == {"Ada", "Bob"}
    for own in whole["players"].values():
        assert own["hands"] == 6 and own["won_mbb"] is not None and own["aivat_mbb"] is not None
        for kinds in own["by"].values():
            assert sum(part["cost_mbb"] for part in kinds.values()) == pytest.approx(own["cost_mbb"])
            assert sum(part["decisions"] for part in kinds.values()) == own["decisions"]
    assert whole["players"]["Ada"]["won_mbb"] == -whole["players"]["Bob"]["won_mbb"]
    worst = [row["cost_chips"] for row in whole["worst"]]
    assert whole["worst"][0]["link"].startswith(f"#line={whole['worst'][0]['line']}")
    assert worst == sorted(worst, reverse=True) and worst[0] > 0
    lines = (tmp_path / "kept").read_text().splitlines()
    assert len(lines) == 7 and json.loads(lines[1])[1]["where"] == "match.log, line 2"
    (tmp_path / "kept").write_text("\n".join(lines[:4]) + "\n" + lines[4][:50])
    monkeypatch.setattr(Reviewer, "_without_luck", lambda *_: None)
    again = answer(capsys, *arguments)
    assert again["players"]["Ada"]["cost_mbb"] == whole["players"]["Ada"]["cost_mbb"]
    assert again["players"]["Ada"]["aivat_mbb"] is None  # three were reviewed anew, and three are as they were kept
    text = call(capsys, *arguments[:-2], "--top", 1)
    assert "passed over" in text.err and "Ada, 6 hands" in text.out
    assert "another review" in call(capsys, *arguments[:4], "--boards", 5, "--keep", "kept").err
    (tmp_path / "six.log").write_text(six)
    assert "none of 1 hands can be reviewed" in call(capsys, "review", "six.log", "--policy", "holdem").err
