"""Trained best response: below the exact one and close to it, chosen and scored on cards of their own."""

from contextlib import ExitStack
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from small_games import game_of
from strategies import random_strategy

from mccfr.cards.deals import new_deals
from mccfr.config.tables import PokerGame
from mccfr.evaluation.exact import evaluate_exact
from mccfr.evaluation.side import Side
from mccfr.evaluation.trained_best_response import evaluate as module
from mccfr.evaluation.trained_best_response import trained_best_response
from mccfr.evaluation.trained_best_response.evaluate import Trial
from mccfr.evaluation.trained_best_response.knowledge import knowledge
from mccfr.evaluation.trained_best_response.scoring import Won
from mccfr.evaluation.trained_best_response.training import Training
from mccfr.evaluation.units import Effort
from mccfr.games.catalogue import build_game
from mccfr.rng import EVALUATION
from mccfr.solvers.public.sampled_board import BoardSource
from mccfr.solvers.responder import STREAMS, best

WIDE = PokerGame(antes=[1, 1], stack=5)
"""Ranks 3, suits 2, every whole bet: too many actions for packed trees."""


@cache
def blind_leduc():
    """Leduc where the policy cannot tell queens from kings, nor what lies on the board."""
    cards = game_of("leduc").cards
    coarse = [np.where(b < 0, b, np.minimum(cards.hand_cards[:, 0] // 2, 1)) for b in cards.bucket]
    return replace(game_of("leduc"), cards=replace(cards, bucket=coarse, buckets=np.full((2, 2), 2)))


def side_of(name, seed=0):
    game = {"blind": blind_leduc, "wide": lambda: build_game(WIDE, None)}.get(name, lambda: game_of(name))()
    return Side(game, random_strategy(game, seed))


# --- below the exact figure, and close to it ---


@pytest.mark.parametrize("name", ["kuhn", "leduc", "leduc, suits merged", "blind", "wide", "clairvoyance"])
def test_it_comes_close_to_the_best_response_and_never_above(name):
    side = side_of(name)
    exact = evaluate_exact(side.game, side.strategy)
    found = [trained_best_response(side, nodes=nodes, seed=1) for nodes in (1_000, 1_000_000)]
    for each in found:
        assert each.value_chips <= exact.exploitability_chips + 1e-9
        for seat in range(2):
            assert each.best_response_chips[seat] <= exact.best_response_chips[seat] + 1e-9
        assert each.ci95_chips == (each.value_chips, each.value_chips)  # every board was played
    assert found[1].value_chips >= 0.97 * exact.exploitability_chips
    assert sum(found[1].best_response_chips) / 2 == pytest.approx(found[1].value_chips)


def test_no_seed_is_above_the_exact_figure():
    for seed in range(10):
        side = side_of(("leduc", "blind")[seed % 2], seed)
        exact = evaluate_exact(side.game, side.strategy).exploitability_chips
        assert trained_best_response(side, nodes=20_000, seed=seed).value_chips <= exact + 1e-9


def test_the_policy_stands_still():
    """Its rows are what they were to the last bit, and it plays by its own buckets."""
    side = side_of("blind")
    training = Training(knowledge(side.game, None).game, side, 3)
    training.train(20_000, 1, lambda: False)
    for seat, tables in enumerate(training._tables):
        for block in range(1 - seat, 4, 2):
            rows = side.strategy.probability[block].astype(np.float32)
            assert np.array_equal(tables.rows("regret", block)[:, : rows.shape[1]], rows)
        assert all(np.any(tables.rows("regret", block)) for block in range(seat, 4, 2))


def test_what_is_best_by_regrets():
    regrets = np.array([[-1, -2, 0, 0, 3, 3], [0, 5, 1, -1, -4, 2]], np.float32)
    found = best(regrets, np.array([0, 2, 4, 5]))
    assert found.tolist() == [[1, 0, 0, 0, 1], [0, 1, 1, 0, 1]]  # nothing is known of the second row of the first


# --- streams of cards ---


@cache
def another():
    """A responder who has learnt from other deals, by which the luck of boards is judged."""
    side = side_of("blind")
    training = Training(knowledge(side.game, None).game, side, 99)
    training.train(50_000, 1, lambda: False)
    return training.learnt("the largest regret")


def luck(seeds, *, nodes, planted=None):
    """[seeds, 2] by how much the figure of each seat is above what the responder that was chosen wins on all boards.

    Two boards are played.  What they are worth to another responder, more than all boards, is taken off: its mean is 0.
    """
    side, found = side_of("blind"), []
    known = knowledge(side.game, None)
    for seed in range(seeds):
        trial = Trial(side, known, nodes, 2, seed, Effort(), lambda *_: None, 0)
        with ExitStack() as stack, pytest.MonkeyPatch.context() as patch:
            if planted is not None:
                planted(patch, known.game, seed)
            trial.open(stack)
            trial.train()
            both = [Side(known.game, each) for each in (trial._chosen.learnt, another())]
            units = Won(both, side, seed, EVALUATION)
            scored = sum(units.play(board) for board in range(2))
            assert trial.score().best_response_chips == pytest.approx(scored[:2] / scored[-1])
        units = Won(both, side, seed, EVALUATION)
        truth = sum(units.play(board) for board in range(units.listed))
        above = scored[:-1] / scored[-1] - truth[:-1] / truth[-1]
        found.append(above[:2] - above[2:])
    return np.array(found)


def errors(luck):
    """Standard errors by which a mean [n] is above 0."""
    return luck.mean() / (luck.std(ddof=1) / np.sqrt(len(luck)))


def one_stream(patch, *_):
    patch.setattr(module, "CHOICE", EVALUATION)


def training_boards(patch, game, seed):
    """Scored on the boards of the first deals that the player in seat 0 has learnt from."""
    deals = new_deals(2, 2)
    game.cards.dealer(seed, STREAMS).draw(0, 2, deals)
    boards = [int(np.argwhere(game.cards.bucket[1][0] == bucket)[0, 0]) for bucket in deals.bucket[:, 2]]
    own = BoardSource.number

    def number(source, iteration):
        evaluates = source._stream[2] == EVALUATION
        return boards[iteration] if evaluates and iteration < len(boards) else own(source, iteration)

    patch.setattr(BoardSource, "number", number)


def test_what_was_chosen_on_one_stream_and_scored_on_another_is_not_flattered():
    found = luck(80, nodes=400)
    assert abs(errors(found.mean(axis=1))) < 3.5


def test_a_planted_choice_on_the_boards_of_the_score_is_caught():
    assert errors(luck(40, nodes=400, planted=one_stream).mean(axis=1)) > 4.5


def test_planted_training_boards_in_the_score_are_caught():
    assert errors(luck(80, nodes=16, planted=training_boards)[:, 0]) > 4.5
