"""EVs of actions, hands and ranges at decisions: consistency, and coverage of their intervals.

Shows:

* EVs of actions, hands and ranges agree with each other (test_evs_of_actions_hands_and_ranges_agree, planted:
  test_planted_errors_make_evs_disagree)
* Equilibria mix actions of equal EV
  (test_an_equilibrium_mixes_actions_of_equal_ev)
* Intervals of EVs from sampled boards cover the exact EVs
  (test_intervals_of_hands_cover_exact_values, test_intervals_cover_known_means,
  planted: test_intervals_from_plain_residuals_cover_too_little)
"""

from functools import partial

import numpy as np
import pytest
from policies import write_random
from random_policy import policy

import mccfr
from abstraction.cards import CARD_COUNT, card_text, parse_cards
from mccfr.config.toml_files import config_from
from mccfr.evaluation import decision_values as module
from mccfr.evaluation.decision_values import decision_values
from mccfr.games.translation import Translation
from mccfr.play.preflop_equity import preflop_won
from mccfr.play.resolving import Effort
from mccfr.play.resolving.solved_street import SolvedSpot
from mccfr.trees.betting_lines import find_node, line_text
from mccfr.trees.compiled import DECISION
from mccfr.trees.street_amounts import street_line
from mccfr.view import Spots, open_spots
from mccfr.view.expected_values import ExpectedValues
from mccfr.view.resolve_request import Solving, _Job

DECISIONS = 24  # of each kind
SPOT = {
    "name": "holdem-subgame",
    "board": "QsJh2h7c",
    "ranges": {"oop": "TT+,AQs+,JTs:0.5", "ip": "77+,ATs+,KQs,87s"},
    "pot": 60,
    "effective_stack": 90,
    "menu": {"first": ["0.5p", "1p"], "later": ["1p", "allin"]},
}


@pytest.fixture(scope="module")
def spots(tmp_path_factory):
    """A blueprint and a typed spot, both with random strategies."""
    typed = write_random(tmp_path_factory.mktemp("values") / "spot", config_from({"game": SPOT}, "test").game)
    return Spots(policy(), "random"), open_spots(typed)


def lines(of, rng, least_cards):
    """Yield the line and board of random decisions at which both players can hold a hand."""
    tree, cards = of.source.game.tree, of.source.game.cards
    nodes = np.flatnonzero(tree.arrays.kind == DECISION)
    first = "" if least_cards else "QsJh2h7c"
    while True:
        node = int(rng.choice(nodes))
        count = cards.cards_on(int(tree.arrays.block[node]) // 2)
        if count < least_cards:
            continue
        left = [card for card in rng.permutation(CARD_COUNT).tolist() if card_text(card) not in first]
        board = first + "".join(map(card_text, left))[: 2 * count - len(first)]
        line = street_line(line_text(tree, node), of.start)
        if of.decision(line, board).reach.any(axis=1).all():
            yield line, board


def disagreement(values, there, scale):
    """Return the largest difference between EVs that must agree, as a share of the pot.

    `values` is the page's JSON of EVs, `there` the spot's; rounding is at most 1e-4 chips a figure.
    """
    ev, actions = (np.array(values[key], float) for key in ("hands", "actions"))
    played, shares = np.array(there["hands"]["probabilities"]), np.array(there["hands"]["shares"])
    player = there["player"]
    known = ~np.isnan(actions).any(axis=1)
    found = [np.abs((played * actions).sum(axis=1) - ev[player])[known].max(initial=0)]
    for one in range(2):
        held = ~np.isnan(ev[one]) & (shares[one] > 0)
        if values["mean"][one] is not None:
            found.append(abs(shares[one][held] @ ev[one][held] / shares[one][held].sum() - values["mean"][one]))
    if values["mean"][player] is not None:
        pairs = zip(there["frequencies"], values["taken"], strict=True)
        found.append(abs(sum(share * one for share, one in pairs if one is not None) - values["mean"][player]))
    return max(found) / scale


def of_line(spots, line, board):
    """Return the page's JSON at a line: the EVs and the decision."""
    return ExpectedValues(spots).values(line, board), spots.spot(line, board)


def solved_again(spots, line, board):
    """Return the same for a spot that is solved from the current ranges, as the page does it."""
    job, at = _Job(line, board, 4), spots.decision(line, board)
    Solving(spots)._stage(job, at, "river", 4)
    found, there = job.result, spots.spot(line, board)
    played, values = np.array(found["hands"]["probabilities"]), np.array(found["values"], float)
    own = (played * values).sum(axis=1)
    ev = np.full((2, len(own)), np.nan)
    ev[there["player"]] = own
    shares = np.array(there["hands"]["shares"])[there["player"]]
    held = ~np.isnan(own) & (shares > 0)
    mean = [None, None]
    mean[there["player"]] = float(shares[held] @ own[held] / shares[held].sum())
    hands = {"probabilities": found["hands"]["probabilities"], "shares": there["hands"]["shares"]}
    return (
        {"hands": ev, "actions": found["values"], "taken": found["taken"], "mean": mean},
        {"hands": hands, "player": there["player"], "frequencies": found["frequencies"]},
    )


def largest(spots, kind, count=DECISIONS, seed=1):
    """Return the largest disagreement over random decisions of a kind."""
    blueprint, typed = spots
    of, least, show = {
        "blueprint": (blueprint, 4, of_line),
        "typed spot": (typed, 0, of_line),
        "solved again": (blueprint, 5, solved_again),
    }[kind]
    some, found = lines(of, np.random.default_rng(seed), least), []
    for _ in range(count):
        line, board = next(some)
        values, there = show(of, line, board)
        found.append(disagreement(values, there, there.get("pot_chips") or of.spot(line, board)["pot_chips"]))
    return max(found)


def mixed(of):
    """Return how many hand classes mix actions of equal and of different EV at a spot's first decision."""
    found = ExpectedValues(of).values()["mixed"]
    return found.count("equal"), found.count("different")


def test_an_equilibrium_mixes_actions_of_equal_ev(spots, tmp_path):
    game = mccfr.game(**{**SPOT, "board": "QsJh2h7c4d"})
    solver = mccfr.solver(game, "cfr", variant="dcfr")
    solver.run(iterations=3_000)
    equal, different = mixed(open_spots(solver.save(tmp_path / "solved").path))
    assert equal > 2 and different == 0
    equal, different = mixed(spots[1])  # random probabilities
    assert different > 2 and equal == 0


@pytest.mark.parametrize("kind", ["blueprint", "typed spot", "solved again"])
def test_evs_of_actions_hands_and_ranges_agree(spots, kind):
    found = largest(spots, kind)
    print(f"{kind}: {DECISIONS} decisions, largest disagreement {found:.1e} of the pot")
    assert found < 1e-4  # rounding of the JSON


def test_evs_from_sampled_boards_agree(spots, monkeypatch):
    """Check decisions whose EVs come from sampled boards: one on the flop and one before it."""
    monkeypatch.setattr(module, "_WORK", 0)
    for line, board in (("b200c/cb400b1600", "Kc7d2s"), ("b300b900b2700", "")):
        values, there = of_line(spots[0], line, board)
        assert disagreement(values, there, there["pot_chips"]) < 1e-4 and not values["exact"]
        assert np.array(values["hands_within"][there["player"]], float).max() > 0


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("_mean", lambda values, errors, weight, of: of(values, errors, (weight > 0) * 1.0)),  # own reach left out
        ("action_means", None),
        ("hand_ev", lambda won, met, put_in, of: of(won, met, 1.01 * put_in) if won.ndim > 1 else of(won, met, put_in)),
    ],
)
def test_planted_errors_make_evs_disagree(spots, monkeypatch, name, wrong):
    """Plant a wrong weight of hands, a wrong weight of an action's hands, and wrong chips put in."""
    right = getattr(module, name)
    if wrong is None:
        monkeypatch.setattr(module.DecisionValues, "action_means", of_whole_range(module._mean))
    else:
        monkeypatch.setattr(module, name, partial(wrong, of=right))
    assert largest(spots, "typed spot", 6) > 1e-3


def of_whole_range(mean):
    """Return a wrong `action_means`: the EV of each action if the whole range took it."""

    def means(self):
        own = self.weight[self.player]
        return [
            (None, mean(self.actions[number], self.action_errors[:, number], own))
            for number in range(len(self.actions))
        ]

    return means


def test_intervals_of_hands_cover_exact_values(monkeypatch):
    """Compare sampled EVs on a flop with exact EVs over all turns and rivers; about 95 % must be covered."""
    source, board = policy(), tuple(parse_cards("Kc7d2s"))
    dealing, node = source.game.cards.at_table(), find_node(source.game.tree, "r200c/cr600r1800")
    reach = np.random.default_rng(3).random((2, dealing.hand_count)) * dealing.live(1, board)
    monkeypatch.setattr(module, "_EXACT_NODES", 10**6)
    exact = decision_values(source, dealing, (node, board), reach, (800, 2000))
    assert exact.exact and exact.boards == 2352 and not exact.hands_within.any()
    monkeypatch.setattr(module, "_EXACT_NODES", 0)
    monkeypatch.setattr(module, "_WORK", 66_000)
    covered, widths = [], []
    for seed in range(2):
        found = decision_values(source, dealing, (node, board), reach, (800, 2000), seed=seed)
        assert not found.exact
        held = ~np.isnan(exact.actions).any(axis=0)
        for one, other, within in (
            (found.actions[1:], exact.actions[1:], found.actions_within[1:]),
            (found.hands, exact.hands, found.hands_within),
        ):
            covered.append((np.abs(one - other) <= within + 1e-6)[:, held].mean())
            widths.append(np.median(within[:, held]))
        for player in range(2):
            mean, within = found.mean(player)
            assert abs(mean - exact.mean(player).mean) < 3 * within + 1e-6
    print(f"covered {np.mean(covered):.3f}, median half width {np.mean(widths):.1f} chips")
    assert 0.88 < np.mean(covered) <= 1 and np.mean(widths) > 0


def coverage(estimator, repetitions=1_000):
    """Return how often 95 % intervals from few unequal samples cover a known ratio."""
    rng, covered = np.random.default_rng(5), 0
    for _ in range(repetitions):
        weight = rng.lognormal(0, 0.5, (module.SAMPLES, 2, 1))
        won = weight * rng.standard_normal(weight.shape)
        value = won + weight * rng.standard_normal(weight.shape) + 3 * weight
        shown = np.stack([np.zeros((2, 1)), np.ones((2, 1))])  # the mean of the control variate is 0
        found, errors = estimator((value, value[:, :1], weight, won), shown, np.zeros((2, 1)), 0)
        covered += abs(found[1, 0] - 3) <= module._within(errors[:, 1])[0]
    return covered / repetitions


def test_intervals_cover_known_means():
    assert 0.94 < coverage(module._estimated) < 0.975


def test_intervals_from_plain_residuals_cover_too_little():
    """Plant an error: use deviations from the fitted ratio and factor as if both were known."""

    def estimator(sums, shown, ended, player):
        _, action, weight, won = sums
        mean, _ = module._estimated(sums, shown, ended, player)
        own, each = won[:, player], weight[:, player]
        rest, beside = (one - each * (one.sum(axis=0) / each.sum(axis=0)) for one in (action[:, 0], own))
        factor = (rest * beside).sum() / (beside**2).sum()
        errors = module.SAMPLES * (action[:, 0] - factor * own - each * mean[1]) / each.sum(axis=0)
        return mean, np.stack([errors, errors], axis=1)

    assert coverage(estimator) < 0.935


def test_ev_of_a_preflop_all_in_follows_from_equity():
    """The control variate is the result itself, so the call's EV is exact up to rounding."""
    source = policy()
    dealing, every = source.game.cards.at_table(), np.ones((2, 1326))
    found = decision_values(source, dealing, (find_node(source.game.tree, "r20000"), ()), every, (100, 20_000))
    equity = preflop_won(every[0]) / dealing.disjoint_weight(every[0])
    assert found.actions[0] == pytest.approx(0, abs=1e-6)
    assert found.actions[1] == pytest.approx(40_000 * equity - 19_900, abs=1)
    assert found.actions_within[1].max() < 1


def test_a_solved_spot_deals_only_the_hands_of_its_ranges():
    """The solved game deals the hands of both ranges and no other hands of the opponent."""
    source, board = policy(), parse_cards("Kc7d2s4h9d")
    spots = Spots(source, "random")
    at, betting = spots.decision("b200c/cc/cc/b200", "Kc7d2s4h9d"), spots.betting
    assert isinstance(betting, Translation)
    solved = SolvedSpot(betting.rules, at.state, board, at.reach, source.game.cards, effort=Effort(20))
    assert ((solved.game.cards.listed().reach > 0) == (solved.ranges > 0)).all()
    assert solved.gap_chips >= 0
    with pytest.raises(ValueError, match="never reach this decision"):
        SolvedSpot(betting.rules, at.state, board, 0 * at.reach, source.game.cards)
