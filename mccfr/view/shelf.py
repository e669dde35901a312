"""The strategies that a page shows: one, two beside each other, or the checkpoints of a run."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from pathlib import Path

from mccfr.evaluation.same_game import check_same_game
from mccfr.policy import is_policy
from mccfr.runs.directory.run import CHECKPOINTS, NAMED_CODE, NO_CODE, is_run, open_run
from mccfr.runs.results.targets import Reference, open_source
from mccfr.view.playing import Playing
from mccfr.view.solving import MOST_SOLVES, Solving
from mccfr.view.spots import Spots
from mccfr.view.words import details
from mccfr.view.worth import Worth
from storage.checkpoint import list_checkpoints

_KEPT = 2  # strategies in memory beside the first: checkpoints of a run may be large


class Shown:
    """A strategy, and all that a page asks of it."""

    def __init__(self, spots: Spots, places: threading.Semaphore) -> None:
        self.spots = spots
        self.worth, self.solving, self.playing = Worth(spots), Solving(spots, places), Playing(spots)


class Shelf:
    """Strategies for one game by number, opened when they are first asked for; several threads may ask."""

    def __init__(self, books: Sequence[tuple[str, Callable[[], Spots]]]) -> None:
        """`books` are names and what opens them; the first is opened at once, and raises what that raises."""
        self.names = [name for name, _ in books]
        self._books, self._lock = books, threading.Lock()
        self._places = threading.Semaphore(MOST_SOLVES)
        self._first = Shown(books[0][1](), self._places)
        self._others: OrderedDict[int, Shown] = OrderedDict()

    def shown(self, number: int) -> Shown:
        """A strategy; `ValueError` for a number of none, and for one whose game is not the first one's."""
        if not 0 <= number < len(self.names):
            raise ValueError(f"of = {number}: there are strategies 0 to {len(self.names) - 1}")
        if number == 0:
            return self._first
        with self._lock:
            if number not in self._others:
                spots = self._books[number][1]()
                check_same_game(self._first.spots.source.game, spots.source.game)
                self._others[number] = Shown(spots, self._places)
                if len(self._others) > _KEPT:
                    self._others.popitem(last=False)
            self._others.move_to_end(number)
            return self._others[number]


def open_spots(target: Path, checkpoint: int | None = None, abstraction: Path | None = None) -> Spots:
    """The spots of a policy, or of a run's checkpoint (the newest without a number).

    abstraction  where a run's card abstraction lies, if it was moved

    Raises as `mccfr.runs.results.targets.open_source`, and `ValueError` for a game without cards.
    """
    # look-ups check the pieces that they touch
    source = open_source(Reference(target, checkpoint, abstraction), check=False, code=NAMED_CODE)
    origin = getattr(source, "meta", {}).get("provenance", {})
    return Spots(source, target.resolve().name, details(source.game, origin))


def open_shelf(
    target: Path,
    checkpoint: int | None = None,
    abstraction: Path | None = None,
    *,
    against: Path | None = None,
    against_checkpoint: int | None = None,
    against_abstraction: Path | None = None,
) -> Shelf:
    """A policy or a run's checkpoint, what it is compared with, and the run's other checkpoints, the newest first.

    abstraction, against_abstraction  where a run's card abstraction lies, if it was moved

    Raises as `open_spots`, and `ValueError` where the two games differ in more than their buckets and bets.
    """

    def book(path: Path, number: int | None, where: Path | None) -> tuple[str, Callable[[], Spots]]:
        named = "" if number is None else f", checkpoint {number}"
        return path.resolve().name + named, lambda: open_spots(path, number, where)

    books = [book(target, checkpoint, abstraction)]
    if against is not None:
        books.append(book(against, against_checkpoint, against_abstraction))
    if is_run(target) and not is_policy(target):
        numbers = list_checkpoints(open_run(target, abstraction, NO_CODE).path(CHECKPOINTS))
        chosen = max(numbers, default=None) if checkpoint is None else checkpoint
        books[0] = book(target, chosen, abstraction)
        books += [book(target, number, abstraction) for number in reversed(numbers) if number != chosen]
    found = Shelf(books)
    if against is not None:
        found.shown(1)  # what cannot be shown beside it is said at once
    return found
