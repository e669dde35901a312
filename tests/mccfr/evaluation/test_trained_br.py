"""Trained best response: close to the exact one and below it, scored on separate boards.

Shows:

* A trained response comes within 3 % of the exact best response and is never above it
  (test_it_comes_close_to_the_best_response_and_never_above, test_no_seed_is_above_the_exact_figure)
* Training the response does not change the policy (test_the_policy_stands_still)
* Separate boards for training, selection and scoring give an unbiased score; the test detects shared ones
  (test_what_was_chosen_on_one_stream_and_scored_on_another_is_not_flattered,
  test_a_planted_choice_on_the_boards_of_the_score_is_caught, test_planted_training_boards_in_the_score_are_caught)
* A stopped evaluation continues to the same figure for any number of processes
  (test_processes_and_stops_change_nothing)
"""

import itertools
import os
import signal
from contextlib import ExitStack
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from commands import command, refusal
from places import RUNS
from refusals import refused
from small_games import game_of
from strategies import random_strategy

from mccfr.common.rng import EVALUATION
from mccfr.config.game_tables import GoofspielGame, PokerGame
from mccfr.config.toml_files import load_config
from mccfr.evaluation import methods
from mccfr.evaluation.evaluation_progress import steps_reported
from mccfr.evaluation.exact import evaluate_exact
from mccfr.evaluation.methods import check_method, measure
from mccfr.evaluation.samples import Effort, StoppedError
from mccfr.evaluation.trained_best_response import trained_best_response
from mccfr.evaluation.trained_best_response import trained_br_evaluation as module
from mccfr.evaluation.trained_best_response.scoring import ResponderScores
from mccfr.evaluation.trained_best_response.trained_br_evaluation import ResponderSearch, responder_game
from mccfr.evaluation.trained_best_response.training import Training
from mccfr.games.registry import build_game
from mccfr.policy.strategy_profile import Profile
from mccfr.runs.directory import journal_records
from mccfr.solvers.public.sampled_board import BoardSource
from mccfr.solvers.responder import EXTERNAL, PUBLIC, SAMPLERS, STREAMS, best, learnt_strategy

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
    return Profile(game, random_strategy(game, seed))


# --- below the exact figure, and close to it ---


@pytest.mark.parametrize(
    ("name", "sampler"),
    [*((name, PUBLIC) for name in ("kuhn", "leduc", "blind", "wide", "clairvoyance")), ("blind", EXTERNAL)],
)
def test_it_comes_close_to_the_best_response_and_never_above(name, sampler):
    side = side_of(name)
    exact = evaluate_exact(side.game, side.strategy)
    found = [trained_best_response(side, nodes=nodes, seed=1, sampler=sampler) for nodes in (1_000, 500_000)]
    for each in found:
        assert each.value_chips <= exact.exploitability_chips + 1e-9
        for seat in range(2):
            assert each.best_response_chips[seat] <= exact.best_response_chips[seat] + 1e-9
        assert each.ci95_chips == (each.value_chips, each.value_chips)  # every board was played
    assert found[1].value_chips >= 0.97 * exact.exploitability_chips
    assert sum(found[1].best_response_chips) / 2 == pytest.approx(found[1].value_chips)


def test_no_seed_is_above_the_exact_figure():
    for seed in range(6):
        side = side_of(("leduc", "blind")[seed % 2], seed)
        exact = evaluate_exact(side.game, side.strategy).exploitability_chips
        assert trained_best_response(side, nodes=20_000, seed=seed).value_chips <= exact + 1e-9


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_the_policy_stands_still(sampler):
    """Compare the policy's rows bit by bit after training; it plays by its own buckets."""
    side = side_of("blind")
    training = Training(responder_game(side.game, None).game, side, 3, sampler)
    training.train(5_000, 1, lambda: False)
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
    game = responder_game(side.game, None).game
    training = Training(game, side, 99, PUBLIC)
    training.train(50_000, 1, lambda: False)
    return learnt_strategy(game, training.learnt("the largest regret"))


def luck(seeds, *, nodes, planted=None):
    """Return [seeds, 2] the excess of each seat's figure over the chosen responder's gain on all boards.

    Two boards are played. The value of these boards to another responder, beyond that of all boards, is subtracted; its
    mean is 0.
    """
    side, found = side_of("blind"), []
    known = responder_game(side.game, None)
    for seed in range(seeds):
        trial = ResponderSearch(side, known, nodes, 2, seed, PUBLIC, Effort())
        with ExitStack() as stack, pytest.MonkeyPatch.context() as patch:
            if planted is not None:
                planted(patch, known.game, seed)
            trial.open(stack)
            trial.train()
            learnt = learnt_strategy(known.game, trial._chosen.learnt)
            both = [Profile(known.game, each) for each in (learnt, another())]
            units = ResponderScores(both, side, seed, EVALUATION)
            scored = sum(units.play(board) for board in range(2))
            assert trial.score().best_response_chips == pytest.approx(scored[:2] / scored[-1])
        units = ResponderScores(both, side, seed, EVALUATION)
        truth = sum(units.play(board) for board in range(units.most))
        above = scored[:-1] / scored[-1] - truth[:-1] / truth[-1]
        found.append(above[:2] - above[2:])
    return np.array(found)


def errors(luck):
    """Standard errors by which a mean [n] is above 0."""
    return luck.mean() / (luck.std(ddof=1) / np.sqrt(len(luck)))


def one_stream(patch, *_):
    patch.setattr(module, "CHOICE", EVALUATION)


def training_boards(patch, game, seed):
    """Scored on the first boards that the player in seat 0 has learnt from."""
    own, training = BoardSource.number, BoardSource(game, np.float32, seed, STREAMS)

    def number(source, iteration):
        return own(training if source._stream[2] == EVALUATION and iteration < 2 else source, iteration)

    patch.setattr(BoardSource, "number", number)


def test_what_was_chosen_on_one_stream_and_scored_on_another_is_not_flattered():
    assert abs(errors(luck(25, nodes=9600).mean(axis=1))) < 2.5


def test_a_planted_choice_on_the_boards_of_the_score_is_caught():
    assert errors(luck(25, nodes=9600, planted=one_stream).mean(axis=1)) > 3.5


def test_planted_training_boards_in_the_score_are_caught():
    assert errors(luck(25, nodes=180, planted=training_boards)[:, 0]) > 3.5


# --- processes, stops, commands ---


def found_by(side, **options):
    """Return the result without its texts."""
    return trained_best_response(side, nodes=9_600, boards=4, seed=2, **options)


def test_a_folder_that_nothing_was_kept_in_is_removed(tmp_path):
    with ExitStack() as stack:
        module._Saved(tmp_path / "kept", {}, stack)
        assert (tmp_path / "kept.responder").is_dir()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_processes_and_stops_change_nothing(sampler, tmp_path):
    side, keep, number = side_of("blind"), tmp_path / "kept", itertools.count()
    alone = found_by(side, sampler=sampler)
    assert found_by(side, sampler=sampler, effort=Effort(workers=2)) == alone

    def stop(what, done, total):
        if next(number) == 3:
            os.kill(os.getpid(), signal.SIGTERM)

    for _ in range(2):
        with steps_reported(stop), pytest.raises(StoppedError, match=r"stopped by signal .* goes on from"):
            found_by(side, sampler=sampler, effort=Effort(keep=keep))
        number = itertools.count()
    assert found_by(side, sampler=sampler, effort=Effort(keep=keep)) == alone
    with pytest.raises(ValueError, match="holds the responder of another evaluation"):
        trained_best_response(side, nodes=5_000, boards=4, sampler=sampler, effort=Effort(keep=keep))


def test_a_time_is_kept_and_told(capsys):
    told = []
    found = measure("trained-br", side_of("leduc"), budget_seconds=0.2, boards=3)
    assert found["responder_nodes"] > 0 and found["boards"] == 3 and found["bound"] == "lower"
    assert "trained for" in methods.record_text(found, "1 s") and "trained-br" in methods.find_method(
        "trained-br"
    ).short(found)
    with steps_reported(lambda *step: told.append(step)):
        trained_best_response(side_of("kuhn"), nodes=1_000)
    phases = list(dict.fromkeys(what.split(")")[0].split(",")[0] for what, _, _ in told))
    assert phases == ["(training a responder", "(choosing a responder", "(scoring a responder"]


def test_a_run_is_measured_by_it_and_refusals_are_one_sentence(tmp_path, capsys):
    config, directory = tmp_path / "run.toml", tmp_path / "run"
    config.write_text(
        '[game]\nname = "kuhn"\n[run]\nworkers = 0\niterations = 200\n'
        '[evaluation]\nmethod = ["exact", "trained-br"]\nbudget_seconds = 0.1\n'
    )
    assert command("solve", config, "--run", directory) == 0
    exact, bound = journal_records.read(directory / "evaluations.jsonl")[-2:]
    assert bound["method"] == "trained-br" and bound["responder"] == "every hand"
    assert 0 < bound["exploitability_chips"] <= exact["exploitability_chips"] + 1e-9
    capsys.readouterr()
    for options, said in (
        (["--responder-abstraction", tmp_path], "is for hold'em games"),
        (["--sampler", "cfr"], "it must be one of public-chance-sampling, external-sampling"),
        (
            ["--setting", 2],
            "the method trained-br has no --setting; what it takes: --responder-abstraction, --nodes",
        ),
    ):
        assert said in refusal(capsys, "evaluate", directory, "--method", "trained-br", "--nodes", 1000, *options)
    with pytest.raises(ValueError, match="deals no cards outside of its tree: use the method exact"):
        check_method(build_game(GoofspielGame(cards=3), None), "trained-br")
    turn = game_of("turn")
    refused("is not an abstraction: build it with mccfr abstraction build", responder_game, turn, tmp_path)


@pytest.mark.slow
def test_the_twin_of_holdem_is_answered_almost_as_well_as_can_be():
    """Four streets, 6,840 boards, 46,925 hands that differ: sampled to be trained, chosen and scored."""
    config = load_config(RUNS / "twin-20.toml")
    side = Profile(game := build_game(config.game, RUNS), random_strategy(game, 1))
    exact = evaluate_exact(side.game, side.strategy).exploitability_chips
    found = trained_best_response(side, nodes=4_500_000, boards=400)
    assert found.ci95_chips[0] <= exact and found.value_chips >= 0.9 * exact
    assert found.ci95_chips[1] - found.ci95_chips[0] < 0.2 * exact
