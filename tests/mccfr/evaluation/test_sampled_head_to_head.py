"""Head-to-head of networks on sampled deals, against recursions that evaluate every decision.

Shows:

* Head-to-head of average networks on deals equals a recursion that evaluates the networks at every decision
  (test_head_to_head_on_deals_equals_networks_evaluated_at_every_decision)
* Head-to-head plays no deal that was used for training (test_no_deal_of_training_is_played)
"""

from functools import cache

import numpy as np
import pytest
from deep import trained
from refusals import refusals

from mccfr.evaluation import sampled_head_to_head
from mccfr.evaluation.evaluation_progress import steps_reported
from mccfr.evaluation.sampled_head_to_head import deal_parts, head_to_head_on_deals
from mccfr.evaluation.samples import Effort
from mccfr.policy.strategy_profile import Profile
from mccfr.solvers.deep.network_strategy import Networks, average_tables, network_tables
from mccfr.solvers.deep.sampled_cards import draw_hands
from mccfr.tables.strategy import pure_strategy, uniform_strategy
from mccfr.trees.compiled import TERMINAL

DEALS, SEED = 7, 5


@cache
def both_averages():
    """Return both averages of a short run on 5-flop hold'em: of all networks, and of one network."""
    state = trained("5-flop hold'em").state
    averages = average_tables([state.fit_average(player, 3) for player in range(2)], 3)
    return (
        Networks(state.game, state.config, network_tables(state.tables)),
        Networks(state.game, state.config, averages, shares=True),
    )


def side(networks):
    return Profile(networks.game, networks.untabled())


def chips_by_recursion(first, second, hands, node=0):
    """Return player 0's chips [K], `first` against `second`, with networks evaluated at each decision."""
    game = first.game
    arrays, tree = game.tree.arrays, game.tree
    if arrays.kind[node] == TERMINAL:
        return arrays.fixed[node] + arrays.showdown[node] * hands.result
    player, worth = int(arrays.player[node]), np.zeros(len(hands))
    shares, _ = (first, second)[player].rows(node, hands.visible_cards(player, 5, 7))
    for share, child in zip(shares.T, tree.children(node), strict=True):
        worth += share * chips_by_recursion(first, second, hands, child)
    return worth


def test_head_to_head_on_deals_equals_networks_evaluated_at_every_decision(monkeypatch):
    """Play deals in groups of three, so that results do not depend on the group size."""
    monkeypatch.setattr(sampled_head_to_head, "_TOGETHER", 3)
    explicit, shares = both_averages()
    found = head_to_head_on_deals(side(explicit), side(shares), DEALS, SEED)
    assert [len(hands) for hands in deal_parts(explicit.game, DEALS, SEED)] == [3, 3, 1]
    won = [
        (chips_by_recursion(explicit, shares, hands) - chips_by_recursion(shares, explicit, hands)) / 2
        for hands in deal_parts(explicit.game, DEALS, SEED)
    ]
    values = np.concatenate(won)
    assert found.mean_chips == pytest.approx(values.mean(), abs=1e-3)
    low, high = found.ci95_chips
    assert (high - low) / 2 == pytest.approx(2.446912 * values.std(ddof=1) / np.sqrt(DEALS), rel=1e-3)
    assert np.abs(values).max() > 1


def test_no_deal_of_training_is_played():
    game = both_averages()[0].game
    played = next(iter(deal_parts(game, 20, 0))).cards.tolist()
    assert not any(cards in draw_hands(0, 0, 200, 5).cards.tolist() for cards in played)


def test_value_against_itself_is_0_and_always_folding_loses_at_most_a_blind():
    explicit, _ = both_averages()
    game, mine = explicit.game, side(explicit)
    assert head_to_head_on_deals(mine, mine, 20, 0).mean_chips == 0
    uniform = Profile(game, uniform_strategy(game))
    one, other = (head_to_head_on_deals(*sides, 20, 0).mean_chips for sides in ((mine, uniform), (uniform, mine)))
    assert one == -other != 0
    steps = []
    folds = Profile(game, pure_strategy(game, action="f"))
    with steps_reported(lambda *step: steps.append(step)):
        won = head_to_head_on_deals(folds, mine, 20, 0).mean_chips
    assert -100 <= won < 0
    assert steps == [("board", 20, 20)]


def of_flop_holdem():
    state = trained("flop hold'em").state
    return side(Networks(state.game, state.config, network_tables(state.tables)))


def of_hands():
    mine = side(both_averages()[0])
    return Profile(mine.game, mine.strategy.on_deals(next(iter(deal_parts(mine.game, 3, 0)))))


def play_against(other=None, **options):
    mine = side(both_averages()[0])
    head_to_head_on_deals(mine, other or mine, **{"boards": 4, **options})


test_refusals = refusals(
    ("at least 2", lambda: play_against(boards=1)),
    ("leave workers, budget and keep out", lambda: play_against(effort=Effort(workers=2))),
    ("only be compared in one game", lambda: play_against(of_flop_holdem())),
    ("plays all hands alike", lambda: play_against(of_hands())),
    ("cannot be made a table", lambda: both_averages()[0].untabled().blocks[0]),
    ("cannot be made a table", lambda: both_averages()[0].untabled().probability[1]),
    ("cannot be made a table", lambda: both_averages()[0].untabled().weight[3]),
)
