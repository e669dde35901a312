"""Head-to-head against exact values, and against all pairs of hands on boards off the whole deck."""

from functools import cache
from pathlib import Path

import numpy as np
import pytest

from abstraction.cards import hand_cards
from abstraction.evaluator import board_strengths
from mccfr.config import ClairvoyanceGame, HoldemSubgame, KuhnGame, LeducGame, Menu, PokerGame
from mccfr.deal import card_masks
from mccfr.evaluation import head_to_head as module
from mccfr.evaluation.exact import evaluate_exact
from mccfr.evaluation.head_to_head import head_to_head
from mccfr.games.betting import BettingRules, build_tree
from mccfr.games.build import build_game
from mccfr.games.game import Game
from mccfr.games.holdem_deck import HoldemDeck
from mccfr.strategy import Strategy, uniform_strategy
from mccfr.tree import DECISION
from mccfr.vector.sampled_board import BoardSource

RUNS = Path(__file__).resolve().parents[2] / "runs"
TOY = PokerGame(ranks=4, suits=3, hole_cards=2, board_cards=[0, 1, 1], antes=[1, 1], stack=4)
GAMES = {
    "kuhn": KuhnGame(),
    "leduc": LeducGame(),
    "leduc, suits merged": LeducGame(merge_suits=True),
    "clairvoyance": ClairvoyanceGame(streets=2),
    "two hole cards": TOY,
    "turn": HoldemSubgame(file="games/turn.txt", menu=Menu(first=("1p",), later=("allin",), max_bets=1)),
}


@cache
def game_of(name):
    return build_game(GAMES[name], RUNS)


def random_strategy(game, seed):
    """Far from uniform; a third of the actions are never played."""
    rng, arrays, tables = np.random.default_rng(seed), game.tree.arrays, []
    for block, (buckets, slots) in enumerate(zip(game.buckets, game.tree.row_slots, strict=True)):
        table = rng.random((int(buckets), int(slots))) * (rng.random((int(buckets), int(slots))) < 2 / 3)
        for node in game.tree.decisions[arrays.block[game.tree.decisions] == block].tolist():
            part = slice(int(arrays.slot[node]), int(arrays.slot[node] + arrays.count[node]))
            table[:, part] += table[:, part].sum(1, keepdims=True) == 0
            table[:, part] /= table[:, part].sum(1, keepdims=True)
        tables.append(table)
    return Strategy(tuple(tables), tuple(np.ones((len(table), 1)) for table in tables))


def seated(first, second):
    tables = tuple((first, second)[block % 2].probability[block] for block in range(len(first.probability)))
    return Strategy(tables, first.weight)


def exact_chips(game, a, b):
    """What `a` wins from `b` over both seats, by exact evaluation."""
    first, second = (evaluate_exact(game, seated(*pair)).value_chips for pair in ((a, b), (b, a)))
    return (first - second) / 2


@pytest.mark.parametrize("name", GAMES)
def test_all_boards_give_the_exact_value(name):
    game = game_of(name)
    a, b = random_strategy(game, 1), random_strategy(game, 2)
    found, boards = head_to_head(game, a, b, boards=200), len(game.cards.board_cards[-1])
    assert found.boards == boards
    assert found.mean_chips == pytest.approx(exact_chips(game, a, b), rel=1e-9)
    assert found.ci95_chips == (found.mean_chips, found.mean_chips)
    back = head_to_head(game, b, a, boards=200).mean_chips
    assert back == pytest.approx(-found.mean_chips, rel=1e-12) and found.mean_chips != 0
    assert head_to_head(game, a, a).mean_chips == 0


def test_sampled_boards_come_with_an_interval_that_holds():
    game = game_of("two hole cards")
    a, b = random_strategy(game, 1), random_strategy(game, 2)
    truth, scores = exact_chips(game, a, b), []
    for seed in range(25):
        found = head_to_head(game, a, b, boards=100, seed=seed)
        low, high = found.ci95_chips
        assert low < found.mean_chips < high and (found.boards, found.seed) == (100, seed)
        scores.append((found.mean_chips - truth) / ((high - low) / 2 / 1.96))
    assert 0.7 < np.sqrt(np.mean(np.square(scores))) < 1.3  # 0.5 if boards were taken to be drawn from endlessly many
    assert np.max(np.abs(scores)) < 5 and abs(np.mean(scores)) < 5 / np.sqrt(len(scores))
    assert head_to_head(game, a, b, boards=100, seed=3) == head_to_head(game, a, b, boards=100, seed=3)


def test_boards_that_let_more_pairs_meet_weigh_more(monkeypatch):
    """A planted error: every board counts alike.  Right only where ranges hold every hand."""
    monkeypatch.setattr(module, "_ratio", lambda won, weight, listed: (float((won / weight).mean()), 0.0))
    for name, right in (("leduc", True), ("turn", False)):
        game = game_of(name)
        a, b = random_strategy(game, 1), random_strategy(game, 2)
        found = head_to_head(game, a, b, boards=200).mean_chips
        assert (found == pytest.approx(exact_chips(game, a, b), rel=1e-6)) == right


class DeckOfClasses(HoldemDeck):
    """A deck whose buckets come from the sum of a hand's cards: five a street, other ones on each."""

    def board_buckets(self, board):
        cards = hand_cards(52, 2).astype(np.int64)
        rows = np.stack([(cards.sum(1) * (street + 1)) % 5 for street in range(self.streets)]).astype(np.int32)
        rows[:, np.isin(cards, board).any(axis=1)] = -1
        return rows


def deck_game():
    """Two streets, a flop of three and then two cards; one bet of the pot on each."""
    rules = BettingRules(
        (50, 100), (1, 0), lambda state: [3 * state.to_call] if state.bets == 0 else [], board_cards=(3, 2)
    )
    return Game("two streets", build_tree(rules), DeckOfClasses((3, 2), np.full((2, 2), 5), lambda: []))


def pairs_value(game, strategy, board):
    """Chips of player 0 summed over all pairs of hands that a board leaves, pair by pair."""
    masks, buckets, strength = game.cards.hand_masks(), game.cards.board_buckets(board), board_strengths(board)
    hands = np.flatnonzero((masks & card_masks(np.array([board], np.int16))) == 0)
    meet = (masks[hands][:, None] & masks[hands][None, :]) == 0
    result = np.sign(strength[hands][:, None].astype(int) - strength[hands][None, :])
    arrays = game.tree.arrays

    def walk(node, reach):
        if arrays.kind[node] != DECISION:
            worth = arrays.fixed[node] + arrays.showdown[node] * result
            return float(reach[0] @ (meet * worth) @ reach[1])
        block, slot = int(arrays.block[node]), int(arrays.slot[node])
        total = 0.0
        for a, child in enumerate(game.tree.children(node)):
            share = strategy.probability[block][buckets[block // 2, hands], slot + a]
            total += walk(child, [r * share if p == block % 2 else r for p, r in enumerate(reach)])
        return total

    return walk(0, [np.ones(len(hands))] * 2), int(meet.sum())


def test_boards_off_the_whole_deck_are_exact_in_the_hands():
    game = deck_game()
    a, b = random_strategy(game, 1), random_strategy(game, 2)
    found, won = head_to_head(game, a, b, boards=3, seed=8), []
    source = BoardSource(game, np.float64, 8)
    for number in range(3):
        left = np.setdiff1d(np.arange(52), hand_cards(52, 2)[source.board(number).hand[0]])
        values = [pairs_value(game, seated(*pair), left.tolist()) for pair in ((a, b), (b, a))]
        won.append((values[0][0] - values[1][0]) / values[0][1] / 2)
    assert len(set(won)) == 3
    assert found.mean_chips == pytest.approx(np.mean(won), rel=1e-9)
    error = 1.96 * np.std(won, ddof=1) / np.sqrt(3)
    assert found.ci95_chips == pytest.approx((np.mean(won) - error, np.mean(won) + error), rel=1e-9)


def test_progress_is_told_and_nonsense_refused():
    game, told = game_of("leduc"), []
    uniform = uniform_strategy(game)
    head_to_head(game, uniform, uniform, boards=4, progress=lambda *counts: told.append(counts))
    assert told == [(1, 4), (2, 4), (3, 4), (4, 4)]
    with pytest.raises(ValueError, match="boards = 1: at least 2"):
        head_to_head(game, uniform, uniform, boards=1)
    with pytest.raises(ValueError, match="of the same betting tree and buckets"):
        head_to_head(game, uniform, uniform_strategy(game_of("kuhn")))
    with pytest.raises(ValueError, match="keeps its chance in the tree"):
        head_to_head(Game("goofspiel", game.tree, None), uniform, uniform)
