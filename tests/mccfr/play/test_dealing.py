"""Dealing and showdowns: deals, run-outs and showdown values, against enumeration of hand pairs."""

import numpy as np
import pytest
from naive import listed_deals
from random_policy import policy
from refusals import refusals
from small_games import GAMES, game_of

from mccfr.cards import full_deck as module
from mccfr.cards.full_deck_deals import draw_cards
from mccfr.common.rng import DEALS
from mccfr.config.game_tables import GoofspielGame
from mccfr.games.registry import build_game
from mccfr.play.showdown_values import run_outs, showdown_results, win_minus_lose

RNG = np.random.default_rng


def compatible_pairs(dealing):
    return (dealing.hand_masks()[:, None] & dealing.hand_masks()[None, :]) == 0


@pytest.mark.parametrize("name", GAMES)
def test_compatible_weights_and_showdowns_equal_enumeration_of_pairs(name):
    """Compare linear-time sums with matrices over hand pairs; a hand excludes boards with its cards."""
    dealing, rng = game_of(name).cards.at_table(), RNG(0)
    weight, meet = rng.random(dealing.hand_count) * (rng.random(dealing.hand_count) < 0.7), compatible_pairs(dealing)
    assert np.allclose(dealing.disjoint_weight(weight), meet @ weight, rtol=0, atol=1e-10 * weight.sum())
    for street in range(-1, dealing.streets):
        deal = dealing.deal(1, street + 1)
        board = deal.boards[street] if street >= 0 else None
        if street >= 0:
            weight = np.where(dealing.live(street, board), weight, 0)
        full, _ = dealing.full_boards(street, board, (), 10**9, rng)
        assert deal.boards[-1] in full
        total, count = np.zeros(meet.shape), np.zeros(meet.shape)
        for last in full:
            strength, live = dealing.strengths(last).astype(int), dealing.live(dealing.streets - 1, last)
            both = live[:, None] & live[None, :]
            total += both * np.sign(strength[:, None] - strength[None, :])
            count += both
        expected = (meet * total / np.maximum(count, 1)) @ weight
        live = dealing.reach[0] > 0 if street < 0 else dealing.live(street, board)
        found = win_minus_lose(dealing, run_outs(dealing, street, board, (), 10**9, rng), weight)
        assert np.allclose(found[live], expected[live], rtol=0, atol=1e-9 * weight.sum())


def test_few_run_outs_are_exact_and_sampled_run_outs_are_unbiased():
    dealing, rng = policy().game.cards.at_table(), RNG(1)
    deal = dealing.deal(5, 0)
    hands, one = deal.hands, np.zeros(1326)
    one[hands[1]] = 1
    taken = dealing.hand_cards[hands[1]].tolist()
    turn = win_minus_lose(dealing, run_outs(dealing, 2, deal.boards[2], taken, 64, rng), one)[hands[0]]
    assert turn == pytest.approx(showdown_results(dealing, hands, 2, deal.boards[2], 64, rng).mean(), abs=1e-12)
    flop = showdown_results(dealing, hands, 1, deal.boards[1], 10**4, rng)
    assert len(flop) == 990
    drawn = [
        win_minus_lose(dealing, run_outs(dealing, 1, deal.boards[1], taken, 64, rng), one)[hands[0]] for _ in range(60)
    ]
    assert abs(np.mean(drawn) - flop.mean()) < 4 * np.std(drawn) / 60**0.5
    everything = np.where(dealing.live(1, deal.boards[1]), 1.0, 0)
    ranges = [win_minus_lose(dealing, run_outs(dealing, 1, deal.boards[1], (), 64, rng), everything) for _ in range(60)]
    assert abs(np.sum(ranges, axis=1).mean()) < 1e-9, "what one hand wins another loses"


@pytest.mark.parametrize("name", ["leduc", "turn", "clairvoyance"])
def test_deals_have_the_games_distribution(name):
    dealing = game_of(name).cards.at_table()
    if name == "turn":
        deals = [dealing.deal(2, number) for number in range(300)]
        assert all(dealing.live(1, deal.boards[1])[list(deal.hands)].all() for deal in deals)
        assert all(dealing.reach[player, deal.hands[player]] > 0 for deal in deals for player in range(2))
        return
    expected = dict(listed_deals(dealing))
    assert sum(expected.values()) == pytest.approx(1)
    found = dict.fromkeys(expected, 0)
    for number in range(3_000):
        found[dealing.deal(2, number)] += 1
    chi2 = sum((found[deal] - 3_000 * chance) ** 2 / (3_000 * chance) for deal, chance in expected.items())
    freedom = len(expected) - 1
    assert chi2 < freedom + 5 * (2 * max(freedom, 1)) ** 0.5


def training_deals(count):
    """Return the nine cards of each of the first training deals."""
    cards = np.empty((count, 9), np.int8)
    draw_cards(np.uint64(7), np.uint64(0), DEALS, np.int64(0), np.int64(count), np.zeros(4, np.uint64), cards)
    return {tuple(deal) for deal in cards.tolist()}


def played_deals(dealing, count):
    found = set()
    for number in range(count):
        deal = dealing.deal(7, number)
        found.add((*deal.hands, deal.boards[-1]))
    return found


def test_no_deal_of_training_is_played(monkeypatch):
    """Both use one seed; the planted error deals from the training stream and is noticed."""
    dealing, trained = policy().game.cards.at_table(), training_deals(300)
    boards = {cards[4:] for cards in trained}
    ours = played_deals(dealing, 300)
    assert len(ours) == 300 and not {board for *_, board in ours} & boards
    monkeypatch.setattr(module, "EVALUATION", DEALS)
    monkeypatch.setattr(module, "DEALT", 0)
    assert {board for *_, board in played_deals(dealing, 300)} == boards


CARDS = build_game(GoofspielGame(cards=3), None).cards
test_games_without_dealt_cards_are_refused = refusals(("a table needs cards dealt outside of the tree", CARDS.at_table))
