"""From a policy to what an opponent wins who was trained against it."""

import hashlib
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mccfr.evaluation.steps import report_step
from mccfr.evaluation.trained_best_response.knowledge import Knowledge, knowledge
from mccfr.evaluation.trained_best_response.scoring import Chosen, ChosenResponder, Won
from mccfr.evaluation.trained_best_response.training import WAYS, Training
from mccfr.evaluation.units import Effort, StoppedError, play_units, units_in
from mccfr.intervals import ratio95
from mccfr.policy.profile import Profile
from mccfr.rng import CHOICE, EVALUATION
from mccfr.signals import signals_noted
from mccfr.solvers.responder import EXTERNAL, PUBLIC, SAMPLERS, learnt_strategy
from mccfr.tables.layout import table_name
from storage import checkpoint as checkpoints
from storage import checkpoint_writer, durable
from storage.damage import DamagedError
from storage.lock import RunLock
from storage.outputs import check_output
from storage.schema import ArraySpec

MOMENTS = (1 / 8, 1 / 4, 1 / 2, 1.0)
"""Of the training, at which a responder may be the one that is chosen."""
DEFAULT_BOARDS = 1000
_CHOICE_SHARE = 1 / 4  # boards to choose by, of those to score on
# Where no number of nodes is given: of external sampling, and boards of public chance sampling.
_VISITS, _LEAST_NODES, _MOST_NODES = 1000, 4_000_000, 1_000_000_000
_ROUNDS, _LEAST_TRAINED, _MOST_TRAINED = 4, 5_000, 30_000
_TRAINING_SHARE, _SCORING_SHARE = 0.6, 0.25  # of a time that is given; the rest is for choosing
_TRIED_SHARE, _TRIED_SECONDS = 0.05, 2.0
_TRIED_NODES = 10_000
_SAVED_SECONDS, _LOCK = 300.0, "lock"
_GB = 1e9


@dataclass(frozen=True)
class TrainedBestResponse:
    """What the responder wins.

    value_chips          chips a hand, the mean over both seats: a lower bound on exploitability, in expectation
    ci95_chips           95 % interval for it by Student's t, from how boards differ; of no width where every board was
                         played
    best_response_chips  to each player, player 0's with the game's `offset_chips`, player 1's less it
    boards               boards that it is scored on, each from both seats
    nodes                touched in training, by both seats
    chosen_nodes         [2] touched by the responder of each seat that was chosen
    chosen_ways          [2] how it plays by its regrets, one of WAYS
    knows                what it remembers of its cards, in words
    """

    value_chips: float
    ci95_chips: tuple[float, float]
    best_response_chips: tuple[float, float]
    boards: int
    nodes: int
    chosen_nodes: tuple[int, ...]
    chosen_ways: tuple[str, ...]
    knows: str


def trained_best_response(
    policy: Profile,
    abstraction: Path | None = None,
    menu: Path | None = None,
    nodes: int | None = None,
    boards: int | None = None,
    seed: int = 0,
    sampler: str = PUBLIC,
    effort: Effort = Effort(),  # noqa: B008  (frozen)
    progress: Callable[[str, int, int], None] = report_step,
) -> TrainedBestResponse:
    """Train a responder of each seat against a policy, choose its checkpoint, and score it.

    abstraction  of the responder's cards: as `knowledge` has it
    menu         configuration whose `[game.menu]` has the responder's bets; None: those of the policy's tree
    nodes        to touch in training, by both seats; None: some visits to every infoset, or as `effort` has time for
    boards       to score on, at least 2, and never more than are listed; a quarter as many to choose by
    sampler      one of `mccfr.solvers.responder.SAMPLERS`, which he is trained by
    progress     called with what is counted, how many are done and of how many

    Raises `ValueError` for a game without cards beside its tree, an abstraction that is none, a menu that does not suit
    the game or meets the policy's tree at too many places, too few boards, and tables that do not fit into memory; and
    as `play_units`.
    """
    if not policy.game.cards.dealt:
        raise ValueError(f"{policy.game.name} deals no cards beside its tree: use the method exact")
    if boards is not None and boards < 2:
        raise ValueError(f"boards = {boards}: at least 2 are needed, for an interval")
    if sampler not in SAMPLERS:
        raise ValueError(f"sampler = {sampler!r} is not allowed: it must be one of {', '.join(SAMPLERS)}")
    known = knowledge(policy.game, abstraction, menu)
    search = ResponderSearch(policy, known, nodes, boards, seed, sampler, effort, progress)
    with ExitStack() as stack:
        search.open(stack)
        search.train()
    return search.score()


class ResponderSearch:
    """One such evaluation: training and choosing in turns, then scoring."""

    def __init__(
        self,
        policy: Profile,
        known: Knowledge,
        nodes: int | None,
        boards: int | None,
        seed: int,
        sampler: str,
        effort: Effort,
        progress: Callable[[str, int, int], None],
    ) -> None:
        self._policy, self._known, self._own = policy, known, known.game
        self._seed, self._sampler, self._effort, self._progress = seed, sampler, effort, progress
        self._training, self._chosen = Training(self._own, policy, seed, sampler), Chosen()
        self._size = f"{self._training.bytes_needed / _GB:.2g} GB"
        self._progress(f"(training a responder, {self._size}) node", 0, 1)
        self._saved: _Saved | None = None
        if nodes is None and effort.seconds is None:
            nodes = self._default_nodes()
        self._nodes, self._moment = nodes, 0
        listed = self._own.cards.boards
        wanted = DEFAULT_BOARDS if boards is None else boards
        self._timed = boards is None and effort.seconds is not None
        self._boards = wanted if listed is None else min(wanted, listed)
        self._listed = listed
        # All boards where all are scored on: nothing is left to chance then.
        self._choice_boards = self._boards if self._boards == listed else max(2, int(self._boards * _CHOICE_SHARE))

    def _default_nodes(self) -> int:
        """Of external sampling some visits to every infoset; else some rounds of listed boards, or some boards."""
        if self._sampler == EXTERNAL:
            return min(max(_VISITS * int(self._own.infosets.sum()), _LEAST_NODES), _MOST_NODES)
        boards = min(max(_ROUNDS * (self._own.cards.boards or 0), _LEAST_TRAINED), _MOST_TRAINED)
        return boards * self._training.tree_nodes

    def open(self, stack: ExitStack) -> None:
        """Take over what `--keep` holds; signals are noted from here on, and heeded between batches."""
        self._stop = stack.enter_context(signals_noted(spared=1))
        if self._effort.keep is not None:
            self._saved = _Saved(self._effort.keep, self._identity(), stack)
            if (kept := self._saved.newest()) is not None:
                self._restore(kept)

    def _identity(self) -> dict[str, Any]:
        return {
            "method": "trained-br",
            "policy": self._policy.fingerprint(),
            "responder": self._known.origin or self._known.description,
            "bets": hashlib.sha256("\n".join(self._own.tree.label).encode()).hexdigest(),
            "seed": self._seed,
            "sampler": self._sampler,
            "nodes": self._nodes or 0,
            "seconds": self._effort.seconds or 0,
            "boards": self._boards,
        }

    # --- training and choosing ---

    def train(self) -> None:
        """Train to each moment, and choose there."""
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
        """Nodes that a share of the time allows, by what the first ones take, which count as well."""
        tried = min(_TRIED_SHARE * seconds, _TRIED_SECONDS)
        goal = 0
        while self._training.busy_seconds < tried:
            goal += _TRIED_NODES
            self._trained_to(goal)
        speed = self._training.nodes / self._training.busy_seconds
        return int(speed * seconds * _TRAINING_SHARE)

    def _trained_to(self, goal: int) -> bool:
        """Train towards so many nodes of each seat for a while, and save; whether they are reached."""
        until, total = time.monotonic() + _SAVED_SECONDS, self._nodes or 0
        what = f"(training a responder, {self._size}) node"
        self._training.train(
            goal,
            self._effort.workers,
            lambda: bool(self._stop) or time.monotonic() >= until,
            lambda nodes: self._progress(what, min(nodes, total), max(total, 1)),
        )
        done = min(state["nodes"] for state in self._training.states()) >= goal
        if self._stop:
            self._save()
            keep = self._effort.keep
            again = f"the same command goes on from {keep}" if keep else "give --keep FILE to go on later"
            raise StoppedError(self._stop[0], f"{self._training.nodes:,} nodes of training; {again}")
        self._save()
        return done

    def _choose(self) -> None:
        """See whether what both have learnt so far wins more than what was chosen before, on the second stream."""
        self._progress("(choosing a responder) moment", self._moment + 1, len(MOMENTS))
        learnt = {way: self._training.learnt(way) for way in WAYS}
        units = Won(
            [Profile(self._own, learnt_strategy(self._own, each)) for each in learnt.values()],
            self._policy,
            self._seed,
            CHOICE,
        )
        if self._timed and self._moment == 0:
            seconds = (1 - _TRAINING_SHARE - _SCORING_SHARE) * (self._effort.seconds or 0.0) / len(MOMENTS)
            self._choice_boards = units_in(units, seconds, self._effort.workers, least=2, most=self._choice_boards)
        found = play_units(units, self._choice_boards, Effort(self._effort.workers), what={}).sum(axis=0)
        nodes = [state["nodes"] for state in self._training.states()]
        for number, (way, each) in enumerate(learnt.items()):
            self._chosen.take(each, found[2 * number : 2 * number + 2] / found[-1], nodes, way)

    def _save(self) -> None:
        if self._saved is None or self._nodes is None:  # a number is not known yet
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
        """Be where a checkpoint was written."""
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
        """What the chosen ones win, on the third stream of boards."""
        responder = Profile(self._own, learnt_strategy(self._own, self._chosen.learnt))
        units = Won([responder], self._policy, self._seed, EVALUATION)
        boards = self._boards
        if self._timed:
            seconds = _SCORING_SHARE * (self._effort.seconds or 0.0)
            boards = units_in(units, seconds, self._effort.workers, least=2, most=self._listed)
        found = play_units(
            units,
            boards,
            Effort(self._effort.workers, keep=self._effort.keep, note=self._effort.note),
            what={"method": "trained-br", "seed": self._seed},
            sides=(responder, self._policy),
            progress=lambda done, total: self._progress("(scoring a responder) board", done, total),
        )
        weight, offset = found[:, 2], self._policy.game.offset_chips
        value, interval = ratio95(found[:, :2].mean(axis=1), weight, self._listed)
        first, second = (float(won.sum() / weight.sum()) for won in found[:, :2].T)
        return TrainedBestResponse(
            value,
            interval,
            (first + offset, second - offset),
            boards,
            self._training.nodes,
            tuple(seat.nodes for seat in self._chosen.seats),
            tuple(seat.way for seat in self._chosen.seats),
            self._known.description,
        )


class _Saved:
    """What `--keep` holds of a training: a checkpoint in a folder beside the file of scored boards."""

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
        """Remove the folder, where nothing but its lock has come into it."""
        if [entry.name for entry in self._root.iterdir()] == [_LOCK]:
            with suppress(OSError):
                (self._root / _LOCK).unlink()
                self._root.rmdir()

    def newest(self) -> checkpoints.Checkpoint | None:
        """The newest checkpoint, if there is one; `ValueError` for that of another evaluation, `OSError` for damage."""
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
        """Write a checkpoint in the place of the one before."""
        number = checkpoints.next_number(self._root)
        checkpoint_writer.commit(self._root, number, specs, arrays, state, self._identity, format="zarr", keep=1)
