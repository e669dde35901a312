"""Trains, chooses and scores a best responder to a policy."""

import time
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from abstraction.buckets import Abstraction, is_abstraction
from mccfr.cards.suit_symmetry import lossless
from mccfr.common.intervals import ratio95
from mccfr.common.rng import CHOICE, EVALUATION
from mccfr.common.signals import signals_collected
from mccfr.config.game_tables import FlopHoldemGame
from mccfr.evaluation.evaluation_progress import report_step
from mccfr.evaluation.samples import Effort, LowerBound, StoppedError, resuming, run_samples
from mccfr.evaluation.trained_best_response.scoring import Chosen, ChosenResponder, ResponderScores
from mccfr.evaluation.trained_best_response.training import WAYS, Training
from mccfr.games.bucketed import bucketed
from mccfr.games.game import Game
from mccfr.games.holdem import deck_on, flop_holdem
from mccfr.policy.strategy_profile import Profile
from mccfr.solvers.responder import EXTERNAL, PUBLIC, SAMPLERS, learnt_strategy
from mccfr.tables.table_layout import table_name
from storage import checkpoint as checkpoints
from storage import checkpoint_writer, durable
from storage.atomic_outputs import check_output
from storage.damage import DamagedError
from storage.run_lock import RunLock
from storage.schema import ArraySpec

MOMENTS = (1 / 8, 1 / 4, 1 / 2, 1.0)
"""Shares of the training after which a responder is a candidate."""
DEFAULT_BOARDS = 1000
_CHOICE_SHARE = 1 / 4  # number of boards for choosing, relative to scoring
# Default length of training: nodes of external sampling, and boards of public chance sampling.
_VISITS, _LEAST_NODES, _MOST_NODES = 1000, 4_000_000, 1_000_000_000
_ROUNDS, _LEAST_TRAINED, _MOST_TRAINED = 4, 5_000, 30_000
_TRAINING_SHARE, _SCORING_SHARE = 0.6, 0.25  # of a time budget; the rest is for choosing
_TRIED_SHARE, _TRIED_SECONDS = 0.05, 2.0
_TRIED_NODES = 10_000
_SAVED_SECONDS, _LOCK = 300.0, "lock"
_GB = 1e9


@dataclass(frozen=True)
class TrainedBestResponse(LowerBound):
    """Bound by a trained best response.

    nodes         touched in training, by both seats
    chosen_nodes  [2] nodes touched by the chosen responder of each seat
    chosen_ways   [2] its way to play by regrets, one of WAYS
    buckets       description of its buckets
    """

    nodes: int = 0
    chosen_nodes: tuple[int, ...] = ()
    chosen_ways: tuple[str, ...] = ()
    buckets: str = ""


def trained_best_response(
    policy: Profile,
    abstraction: Path | None = None,
    nodes: int | None = None,
    boards: int | None = None,
    seed: int = 0,
    sampler: str = PUBLIC,
    effort: Effort = Effort(),  # noqa: B008  (frozen)
) -> TrainedBestResponse:
    """Train a responder for each seat against a policy, choose its checkpoint, and score it.

    abstraction  of the responder's cards, as in `responder_game`
    nodes        to touch in training, by both seats; None: by the game's size, or by the time of `effort`
    boards       for scoring, at least 2 and at most all listed; a quarter as many for choosing
    sampler      one of `mccfr.solvers.responder.SAMPLERS`

    Raises `ValueError` for a game without cards beside its tree, an invalid abstraction, too few boards or too little
    memory; also raises as `run_samples`.
    """
    if not policy.game.cards.dealt:
        raise ValueError(f"{policy.game.name} deals no cards outside of its tree: use the method exact")
    if boards is not None and boards < 2:  # before the training
        raise ValueError(f"boards = {boards}: at least 2 are needed, for an interval")
    if sampler not in SAMPLERS:
        raise ValueError(f"sampler = {sampler!r} is not allowed: it must be one of {', '.join(SAMPLERS)}")
    known = responder_game(policy.game, abstraction)
    search = ResponderSearch(policy, known, nodes, boards, seed, sampler, effort)
    with ExitStack() as stack:
        search.open(stack)
        search.train()
    return search.score()


class ResponderGame(NamedTuple):
    """The policy's game with the responder's buckets.

    description  as text for users
    origin       content hashes of a given abstraction, by street; empty otherwise
    """

    game: Game
    description: str
    origin: dict[str, str]


def responder_game(game: Game, abstraction: Path | None) -> ResponderGame:
    """Return the responder's game against a policy of `game`.

    abstraction  directory of a built one, or the recipe beside it; None: every hand for listed boards and for
                 hold'em that ends on the flop, otherwise the policy's own buckets

    Raises `ValueError` for an invalid abstraction, and for a game that it does not suit.
    """
    cards = game.cards
    if abstraction is None:
        if cards.boards is not None:
            return ResponderGame(replace(game, cards=lossless(cards.listed())), "every hand", {})
        if cards.can_list:
            deck = flop_holdem(FlopHoldemGame(), None, Path()).cards
            return ResponderGame(replace(game, cards=deck), "every hand", {})
        return ResponderGame(game, "the policy's buckets", {})
    if not game.is_holdem:
        raise ValueError(
            f"a responder's abstraction is for hold'em games, and this is {game.name}, where the responder knows every "
            "hand: leave --responder-abstraction out"
        )
    directory = abstraction.with_suffix("") if abstraction.is_file() else abstraction
    if not is_abstraction(directory):
        build = f"mccfr abstraction build {abstraction if abstraction.is_file() else 'RECIPE'} --out {directory}"
        raise ValueError(f"{directory} is not an abstraction: build it with {build}")
    built = Abstraction(directory)
    if cards.board_cards_by_street is None:
        found = bucketed(replace(game, cards=lossless(cards.listed())), built)
    else:
        found = replace(game, cards=deck_on(tuple(cards.board_cards_by_street), directory))
    return ResponderGame(found, f"the buckets of {directory}", built.content_hashes())


class ResponderSearch:
    """One evaluation: alternates training and choosing, then scores."""

    def __init__(
        self,
        policy: Profile,
        known: ResponderGame,
        nodes: int | None,
        boards: int | None,
        seed: int,
        sampler: str,
        effort: Effort,
    ) -> None:
        self._policy, self._known, self._own = policy, known, known.game
        self._seed, self._sampler, self._effort = seed, sampler, effort
        self._training, self._chosen = Training(self._own, policy, seed, sampler), Chosen()
        self._size = f"{self._training.bytes_needed / _GB:.2g} GB"
        report_step(f"(training a responder, {self._size}) node", 0, 1)
        self._saved: _Saved | None = None
        if nodes is None and effort.seconds is None:
            nodes = self._default_nodes()
        self._nodes, self._moment = nodes, 0
        listed = self._own.cards.boards
        wanted = DEFAULT_BOARDS if boards is None else boards
        self._timed = boards is None and effort.seconds is not None
        self._boards = wanted if listed is None else min(wanted, listed)
        self._listed = listed
        # If all boards are used for scoring, choosing uses all of them too and is exact.
        self._choice_boards = self._boards if self._boards == listed else max(2, int(self._boards * _CHOICE_SHARE))

    def _default_nodes(self) -> int:
        """Return the default number of nodes: visits per infoset for external sampling, else boards."""
        if self._sampler == EXTERNAL:
            return min(max(_VISITS * int(self._own.infosets.sum()), _LEAST_NODES), _MOST_NODES)
        boards = min(max(_ROUNDS * (self._own.cards.boards or 0), _LEAST_TRAINED), _MOST_TRAINED)
        return boards * self._training.tree_nodes

    def open(self, stack: ExitStack) -> None:
        """Restore the state from `--keep`; from here on signals are handled between batches."""
        self._stop = stack.enter_context(signals_collected(ignored=1))
        if self._effort.keep is not None:
            self._saved = _Saved(self._effort.keep, self._identity(), stack)
            if (kept := self._saved.newest()) is not None:
                self._restore(kept)

    def _identity(self) -> dict[str, Any]:
        return {
            "method": "trained-br",
            "policy": self._policy.fingerprint(),
            "responder": self._known.origin or self._known.description,
            "seed": self._seed,
            "sampler": self._sampler,
            "nodes": self._nodes or 0,
            "seconds": self._effort.seconds or 0,
            "boards": self._boards,
        }

    # --- training and choosing ---

    def train(self) -> None:
        """Train to each candidate checkpoint and choose there."""
        self._training.warm_up()
        if self._nodes is None:
            self._nodes = self._nodes_in(self._effort.seconds or 0.0)
        while self._moment < len(MOMENTS):
            goal = max(1, int(self._nodes * MOMENTS[self._moment]) // 2)
            while not self._trained_to(goal):
                pass
            self._choose()
            self._moment += 1
            self._save()

    def _nodes_in(self, seconds: float) -> int:
        """Return the nodes that fit the training's share of the time, from the speed of the first ones."""
        tried = min(_TRIED_SHARE * seconds, _TRIED_SECONDS)
        goal = 0
        while self._training.busy_seconds < tried:
            goal += _TRIED_NODES
            self._trained_to(goal)
        speed = self._training.nodes / self._training.busy_seconds
        return int(speed * seconds * _TRAINING_SHARE)

    def _trained_to(self, goal: int) -> bool:
        """Train for some minutes towards `goal` nodes of each seat, save, and return whether it is reached."""
        until, total = time.monotonic() + _SAVED_SECONDS, self._nodes or 0
        what = f"(training a responder, {self._size}) node"
        self._training.train(
            goal,
            self._effort.workers,
            lambda: bool(self._stop) or time.monotonic() >= until,
            lambda nodes: report_step(what, min(nodes, total), max(total, 1)),
        )
        done = min(state["nodes"] for state in self._training.states()) >= goal
        if self._stop:
            self._save()
            raise self._stopped(self._stop[0])
        self._save()
        return done

    def _stopped(self, number: int) -> StoppedError:
        return StoppedError(number, f"{self._training.nodes:,} nodes of training; {resuming(self._effort.keep)}")

    def _choose(self) -> None:
        """Replace each seat's chosen responder if the current one wins more, on the second stream."""
        learnt = {way: self._training.learnt(way) for way in WAYS}
        units = ResponderScores(
            [Profile(self._own, learnt_strategy(self._own, each)) for each in learnt.values()],
            self._policy,
            self._seed,
            CHOICE,
        )
        units.most = self._choice_boards
        seconds = None
        if self._timed and self._moment == 0:
            seconds = (1 - _TRAINING_SHARE - _SCORING_SHARE) * (self._effort.seconds or 0.0) / len(MOMENTS)
        try:
            played = run_samples(units, self._choice_boards, Effort(self._effort.workers, seconds))
        except StoppedError as stop:
            raise self._stopped(stop.number) from None
        self._choice_boards, found = len(played), played.sum(axis=0)
        nodes = [state["nodes"] for state in self._training.states()]
        for number, (way, each) in enumerate(learnt.items()):
            self._chosen.take(each, found[2 * number : 2 * number + 2] / found[-1], nodes, way)

    def _save(self) -> None:
        if self._saved is None or self._nodes is None:  # the length of the training is not known yet
            return
        arrays = self._training.arrays() | self._chosen.arrays()
        specs = [ArraySpec(name, table.shape, "float32", ("bucket", "slot")) for name, table in arrays.items()]
        state = {
            "seats": self._training.states(),
            "chosen": self._chosen.states(),
            "moment": self._moment,
            "nodes": self._nodes,
            "choice_boards": self._choice_boards,
        }
        self._saved.write(specs, arrays, state)

    def _restore(self, kept: checkpoints.Checkpoint) -> None:
        """Restore the state saved in a checkpoint."""
        for name, table in self._training.arrays().items():
            kept.read_into(name, table)
        state, names = kept.state, {spec.name for spec in kept.specs}
        self._training.go_on_from(state["seats"])
        self._moment, self._nodes, self._choice_boards = state["moment"], state["nodes"], state["choice_boards"]
        empty = self._training.learnt(next(iter(WAYS)))
        for seat, chosen in enumerate(state["chosen"]):
            cells = dict(list(enumerate(empty))[seat::2])
            for block in cells:
                if (name := table_name("chosen", block)) in names:
                    cells[block] = kept.read(name)
            self._chosen.seats.append(ChosenResponder(chosen["worth"], chosen["nodes"], chosen["way"], cells))

    # --- scoring ---

    def score(self) -> TrainedBestResponse:
        """Return the chosen responders' chips on the third stream of boards."""
        responder = Profile(self._own, learnt_strategy(self._own, self._chosen.learnt))
        units = ResponderScores([responder], self._policy, self._seed, EVALUATION)
        seconds = _SCORING_SHARE * (self._effort.seconds or 0.0) if self._timed else None
        found = run_samples(units, self._boards, replace(self._effort, seconds=seconds))
        weight, offset = found[:, 2], self._policy.game.offset_chips
        value, interval = ratio95(found[:, :2].mean(axis=1), weight, self._listed)
        first, second = (float(won.sum() / weight.sum()) for won in found[:, :2].T)
        return TrainedBestResponse(
            value,
            interval,
            (first + offset, second - offset),
            len(found),
            len(found) == self._listed,
            None,
            self._training.nodes,
            tuple(seat.nodes for seat in self._chosen.seats),
            tuple(seat.way for seat in self._chosen.seats),
            self._known.description,
        )


class _Saved:
    """Checkpoints of the training for `--keep`, in a folder beside the journal of scored boards."""

    def __init__(self, keep: Path, identity: dict[str, Any], stack: ExitStack) -> None:
        self._root = keep.with_name(f"{keep.name}.responder")
        self._identity = identity
        check_output(self._root, lambda path: (path / _LOCK).is_file())
        durable.make_dirs(self._root)
        try:
            stack.enter_context(RunLock(self._root / _LOCK))
        except BlockingIOError:
            raise ValueError(f"{keep} is in use by another evaluation: give another file to --keep") from None
        stack.callback(self._remove_unused)
        checkpoint_writer.sweep(self._root)

    def _remove_unused(self) -> None:
        """Remove the folder if it contains only its lock."""
        if [entry.name for entry in self._root.iterdir()] == [_LOCK]:
            with suppress(OSError):
                (self._root / _LOCK).unlink()
                self._root.rmdir()

    def newest(self) -> checkpoints.Checkpoint | None:
        """Return the newest checkpoint or None; `ValueError` for another evaluation's, `OSError` for damage."""
        try:
            found, problems = checkpoints.newest_valid(self._root, self._identity)
        except ValueError:
            raise ValueError(
                f"{self._root} holds the responder of another evaluation: give another file to --keep, or remove it"
            ) from None
        if problems:
            raise DamagedError(f"{self._root}: {problems[0]}: remove it, and the evaluation begins again")
        return found

    def write(self, specs: list[ArraySpec], arrays: Mapping[str, np.ndarray], state: dict[str, Any]) -> None:
        """Write a checkpoint that replaces the previous one."""
        number = checkpoints.next_number(self._root)
        checkpoint_writer.commit(self._root, number, specs, arrays, state, self._identity, format="zarr", keep=1)
