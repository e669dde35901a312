"""Head-to-head against exact values, and against all pairs of hands on boards of the full deck.

Shows:

* Head-to-head over all boards is exact, and intervals over sampled boards cover the exact value
  (test_all_boards_give_the_exact_value, test_intervals)
"""

import numpy as np
import pytest
from refusals import refused
from small_games import GAMES, deck_game, game_of
from strategies import combine, exact_chips, play, random_strategy

import mccfr
from abstraction.cards import hand_cards
from abstraction.hand_evaluator import strengths
from mccfr.cards.deals import card_masks
from mccfr.common.intervals import student95
from mccfr.common.rng import EVALUATION
from mccfr.evaluation import head_to_head as module
from mccfr.evaluation.evaluation_progress import steps_reported
from mccfr.evaluation.head_to_head import head_to_head
from mccfr.policy.strategy_profile import Profile
from mccfr.solvers.public.public_chance.public_chance_sampling import PublicChanceSampling
from mccfr.solvers.public.sampled_board import BoardSource
from mccfr.tables.strategy import uniform_strategy
from mccfr.trees.compiled import DECISION


@pytest.mark.parametrize("name", GAMES)
def test_all_boards_give_the_exact_value(name):
    game = game_of(name)
    a, b = random_strategy(game, 1), random_strategy(game, 2)
    found, boards = play(game, a, b, boards=200), len(game.cards.board_cards[-1])
    assert found.boards == boards
    assert found.mean_chips == pytest.approx(exact_chips((game, game), a, b), rel=1e-9)
    assert found.ci95_chips == (found.mean_chips, found.mean_chips)
    back = play(game, b, a, boards=200).mean_chips
    assert back == pytest.approx(-found.mean_chips, rel=1e-12) and found.mean_chips != 0
    assert play(game, a, a).mean_chips == 0


def test_intervals_over_sampled_boards_cover_the_exact_value():
    game = game_of("two hole cards")
    a, b = random_strategy(game, 1), random_strategy(game, 2)
    truth, scores = exact_chips((game, game), a, b), []
    for seed in range(25):
        found = play(game, a, b, boards=100, seed=seed)
        low, high = found.ci95_chips
        assert low < found.mean_chips < high and found.boards == 100
        scores.append((found.mean_chips - truth) / ((high - low) / 2 / student95(99)))
    assert 0.7 < np.sqrt(np.mean(np.square(scores))) < 1.3  # 0.5 without the correction for a finite number of boards
    assert np.max(np.abs(scores)) < 5 and abs(np.mean(scores)) < 5 / np.sqrt(len(scores))
    assert play(game, a, b, boards=100, seed=3) == play(game, a, b, boards=100, seed=3)


def test_boards_with_more_compatible_hand_pairs_weigh_more(monkeypatch):
    """Plant an error: all boards weigh the same. It is right only if ranges hold every hand."""
    monkeypatch.setattr(module, "ratio95", lambda won, weight, listed: (float((won / weight).mean()), (0.0, 0.0)))
    for name, right in (("leduc", True), ("turn", False)):
        game = game_of(name)
        a, b = random_strategy(game, 1), random_strategy(game, 2)
        found = play(game, a, b, boards=200).mean_chips
        assert (found == pytest.approx(exact_chips((game, game), a, b), rel=1e-6)) == right


def pairs_value(games, strategy, board):
    """Return the chips of player 0 summed over all pairs of hands that a board leaves.

    `games` are the players' games.
    """
    game, masks = games[0], games[0].cards.hand_masks()
    hands = np.flatnonzero((masks & card_masks(np.array([board], np.int16))) == 0)
    buckets = [game.cards.board_buckets(board)[:, hands] for game in games]
    strength = strengths(np.hstack([hand_cards(52, 2)[hands], np.tile(board, (len(hands), 1))]))
    meet = (masks[hands][:, None] & masks[hands][None, :]) == 0
    result = np.sign(strength[:, None] - strength[None, :])
    arrays = game.tree.arrays

    def walk(node, reach):
        if arrays.kind[node] != DECISION:
            worth = arrays.fixed[node] + arrays.showdown[node] * result
            return float(reach[0] @ (meet * worth) @ reach[1])
        block, slot = int(arrays.block[node]), int(arrays.slot[node])
        total = 0.0
        for a, child in enumerate(game.tree.children(node)):
            share = strategy.probability[block][buckets[block % 2][block // 2], slot + a]
            total += walk(child, [r * share if p == block % 2 else r for p, r in enumerate(reach)])
        return total

    return walk(0, [np.ones(len(hands))] * 2), int(meet.sum())


@pytest.mark.parametrize(("board_cards", "buckets"), [((3, 2), (5, 5)), ((0, 3), (4, 7)), ((3, 1), (4, 7))])
def test_boards_of_the_full_deck_equal_enumeration_of_hand_pairs(board_cards, buckets):
    """Full boards of three to five cards, against equal buckets and against other bucket counts."""
    games = deck_game(board_cards), deck_game(board_cards, buckets)
    sides = [Profile(game, random_strategy(game, seed)) for seed, game in enumerate(games, 1)]
    found, won = head_to_head(*sides, boards=3, seed=8), []
    source = BoardSource(games[0], np.float64, 8, purpose=EVALUATION)
    for number in range(3):
        left = np.setdiff1d(np.arange(52), hand_cards(52, 2)[source.board(number).hand[0]])
        values = []
        for one, other in (sides, sides[::-1]):
            both = (one.game, other.game)
            values.append(pairs_value(both, combine(one.strategy, other.strategy), left.tolist()))
        won.append((values[0][0] - values[1][0]) / values[0][1] / 2)
    assert len(set(won)) == 3
    assert found.mean_chips == pytest.approx(np.mean(won), rel=1e-9)
    error = 4.302653 * np.std(won, ddof=1) / np.sqrt(3)  # Student's t for two degrees of freedom
    assert found.ci95_chips == pytest.approx((np.mean(won) - error, np.mean(won) + error), rel=1e-9)


# --- boards of an evaluation ---


def boards_played(monkeypatch, game, **options):
    """Return the hands on each board that head-to-head plays, in order."""
    seen, original = [], module.PolicyPair.play

    def note(table, board, seating):
        if seating == 0:
            seen.append((np.sort(board.hand).tobytes(), board.showdown.strength.tobytes()))
        return original(table, board, seating)

    monkeypatch.setattr(module.PolicyPair, "play", note)
    strategy = uniform_strategy(game)
    play(game, strategy, strategy, **options)
    monkeypatch.undo()
    return seen


@pytest.mark.parametrize("game", [deck_game(), game_of("turn")], ids=["whole deck", "listed"])
def test_evaluation_boards_differ_from_training_boards(monkeypatch, game):
    """Evaluation draws other boards than public chance sampling with the same seed.

    Listed boards come in another order.
    """
    measured = boards_played(monkeypatch, game, boards=12, seed=5)
    assert measured == boards_played(monkeypatch, game, boards=12, seed=5) and len(set(measured)) == 12
    training = PublicChanceSampling(game, seed=5)._source
    trained = [training.board(iteration) for iteration in range(12)]
    trained = [(np.sort(board.hand).tobytes(), board.showdown.strength.tobytes()) for board in trained]
    assert len(set(trained)) == 12
    assert sum(one == other for one, other in zip(measured, trained, strict=True)) <= 2
    if training.listed is None:
        assert not set(measured) & set(trained)
    else:
        assert measured != trained


def test_progress_is_reported_and_invalid_arguments_are_refused():
    game, steps = game_of("leduc"), []
    uniform = uniform_strategy(game)
    with steps_reported(lambda *step: steps.append(step)):
        play(game, uniform, uniform, boards=4)
    assert steps == [("board", done, 4) for done in (1, 2, 3, 4)]
    refused("boards = 1: at least 2", play, game, uniform, uniform, boards=1)
    refused(
        "use a strategy with the game that it was trained for", play, game, uniform, uniform_strategy(game_of("kuhn"))
    )
    with pytest.raises(ValueError, match="has chance nodes in its tree"):
        bids = mccfr.game("goofspiel", cards=3)
        play(bids, uniform_strategy(bids), uniform_strategy(bids))
