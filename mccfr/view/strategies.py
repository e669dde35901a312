"""Loads the strategies that the web page shows.

They are policies (exported strategies), checkpoints of a run, and solved spots (games that begin on a given board).
"""

import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mccfr.config.game_tables import HoldemSubgame
from mccfr.evaluation.compatible_games import check_same_game
from mccfr.policy import is_policy
from mccfr.runs.directory.run import CHECKPOINTS, is_run, open_run, open_to_look
from mccfr.runs.results.checkpoints import find_checkpoint
from mccfr.runs.results.line_spot import game_config, starting_stack
from mccfr.runs.results.targets import Reference, open_source
from mccfr.view.expected_values import ExpectedValues
from mccfr.view.labels import details
from mccfr.view.page_table import PageTable
from mccfr.view.resolve_request import MOST_SOLVES, Solving
from mccfr.view.saved_ranges import preset_ranges, saved_ranges
from mccfr.view.solved_spots import find_spot, spot_fields
from mccfr.view.spot_requests import SpotRequests
from mccfr.view.spot_view import Spots
from storage.checkpoint import list_checkpoints
from storage.directory_lock import read_unchanged

if TYPE_CHECKING:
    from mccfr.view.review_page import Reviews

_KEPT = 2  # strategies in memory besides the first, because checkpoints may be large


class LoadedStrategy:
    """An open strategy with the objects that answer the web page's requests about it.

    spots    answers queries for ranges and frequencies after a betting line
    values   computes EVs
    solving  re-solves decisions
    playing  plays hands of the user against the strategy
    """

    def __init__(self, spots: Spots, solve_slots: threading.Semaphore) -> None:
        """Create the objects; `solve_slots` limits how many solves run at the same time in the server."""
        self.spots = spots
        self.values, self.solving, self.playing = ExpectedValues(spots), Solving(spots, solve_slots), PageTable(spots)


class StrategyList:
    """The strategies that the web page can show, opened on first use; several threads may call it.

    Strategies given at the start have numbers from 0. Spots (games that begin on a given board) that the page has
    solved have the names of their run directories.
    """

    def __init__(self, books: Sequence[tuple[str, Callable[[], Spots]]], review: Path | None = None) -> None:
        """Open the first strategy; the others are opened on first use.

        books   (name, function that opens the strategy) of each strategy; may be empty
        review  file of `mccfr review --keep`: played hands whose decisions the first strategy has judged; None: no file

        Raises the errors of the first function and of reading the review.
        """
        self.names = [name for name, _ in books]
        self._books, self._lock = books, threading.Lock()
        self._places = threading.Semaphore(MOST_SOLVES)
        self._first = LoadedStrategy(books[0][1](), self._places) if books else None
        self.reviews: Reviews | None = None
        if review is not None and self._first is not None:
            from mccfr.view import review_page  # its imports take a tenth of the time until the page appears

            self.reviews = review_page.Reviews(review, self._first.spots)
        self._others: OrderedDict[int | str, LoadedStrategy] = OrderedDict()
        self._solved: dict[str, tuple[Path, Mapping[str, str]]] = {}
        self.desk = SpotRequests(self._places, self._show)

    def shown(self, of: int | str) -> LoadedStrategy:
        """Return a strategy by its number, or the strategy of a solved spot by the name of its run directory.

        Raises `ValueError` for an unknown number or name, and for a number whose strategy has another game than the
        first. Card buckets of the two games may differ; bet sizes only if both games know the rules of all legal bets.
        """
        if isinstance(of, int) and not 0 <= of < len(self.names):
            there = f"strategies 0 to {len(self.names) - 1}" if self.names else "no strategies: type a spot"
            raise ValueError(f"of = {of}: there are {there}")
        if of == 0 and self._first is not None:
            return self._first
        with self._lock:
            if of not in self._others:
                spots = open_spots(self._find(of)[0]) if isinstance(of, str) else self._books[of][1]()
                if self._first is not None and isinstance(of, int):
                    check_same_game(self._first.spots.source.game, spots.source.game)
                self._others[of] = LoadedStrategy(spots, self._places)
                if len(self._others) > _KEPT:
                    self._others.popitem(last=False)
            self._others.move_to_end(of)
            return self._others[of]

    def _show(self, run: Path, fields: Mapping[str, str]) -> str:
        """Add the run of a spot that was just solved, with the spot form's `fields`; return the run's name."""
        with self._lock:
            self._solved[run.name] = run, fields
            self._others.pop(run.name, None)  # of an earlier solution with more exploitability
        return run.name

    def _find(self, name: str) -> tuple[Path, Mapping[str, str]]:
        """Return (run directory, {field: text} of the spot form) of a solved spot.

        Raises `ValueError` if no run directory of a solved spot is named `name`.
        """
        if name not in self._solved:
            directory = find_spot(name)
            self._solved[name] = directory, spot_fields(open_to_look(directory))
        return self._solved[name]

    def about(self, of: int | str) -> dict[str, Any]:
        """Return which strategies the page can compare with the shown strategy `of`.

        strategies  (number, name) of each strategy. If `of` is a solved spot: (name, name) of each solved spot that
                    was solved or opened since the server's start, `of` first
        of          number or name of the shown strategy
        asked       texts of the spot form's fields with which a solved spot was solved; None for other strategies
        reviewed    True if a review of the first strategy was given; False for a solved spot
        """
        if isinstance(of, int):
            strategies = list(enumerate(self.names))
            return {"strategies": strategies, "of": of, "asked": None, "reviewed": self.reviews is not None}
        names = sorted(self._solved, key=lambda name: name != of)
        return {"strategies": [(name, name) for name in names], "of": of, "asked": self._find(of)[1], "reviewed": False}

    def reviewed(self, **which: str) -> dict[str, Any]:
        """Return the decisions of played hands with the highest EV loss; `ValueError` without a review's file.

        which  optional `street` and `player` whose decisions to return
        """
        if self.reviews is None:
            raise ValueError("no review is shown: begin with mccfr view POLICY --review FILE")
        return self.reviews.decisions(**which)

    def presets(self, of: int | str) -> dict[str, Any]:
        """Return ranges to choose from in the spot form: `saved` by the user, and `presets`.

        saved    {name: range text}
        presets  `name` and `text` of ranges of preflop actions of strategy `of` (`preset_ranges`); [] if there is none
        """
        shown = of != 0 or self._first is not None
        return {"saved": saved_ranges(), "presets": preset_ranges(self.shown(of).spots) if shown else []}

    def solve_typed(self, of: int | str = 0, line: str = "", **fields: str) -> dict[str, Any]:
        """Start to solve a spot, a game that begins on a given board; return the progress as JSON.

        fields  {name: text} of the page's spot form
        line    line of strategy `of` to the start of a street, from which ranges, pot and stack are taken; "": the form
                has them

        Raises `ValueError` for invalid fields. Also for a line of a strategy that is neither a policy nor a run's
        newest checkpoint. Raises `BusyError` while a spot is solved, or if the server runs as many solves as it allows.
        """
        if not line:
            return self.desk.start(fields)
        policy = self.shown(of).spots.path
        if policy is None:
            raise ValueError("only lines of a policy, or of a run's newest checkpoint, are solved as spots")
        return self.desk.start(fields, policy, of, line)


def open_spots(
    target: Path, checkpoint: int | None = None, abstraction: Path | None = None, *, newest: bool = False
) -> Spots:
    """Open a policy (exported strategy), or a run's checkpoint (None: the newest), for the web page.

    abstraction  directory of a run's card abstraction, if it was moved
    newest       True if `checkpoint` is the run's newest: the page can then solve spots after its lines, unless
                 `abstraction` is given

    Raises `ValueError` for a path that is neither run nor policy, and if `abstraction` differs from the run's. Also if
    `checkpoint` or `abstraction` is given for a policy, and for a game that deals cards inside of its tree.
    """
    reference = Reference(target, checkpoint, abstraction)
    # Look-ups verify the pieces that they read.
    source, config = read_unchanged(target, lambda: (open_source(reference, check=False), game_config(target)))
    origin = getattr(source, "meta", {}).get("provenance", {})
    path = target if (newest or checkpoint is None) and abstraction is None else None
    stack = starting_stack(config) if isinstance(config, HoldemSubgame) else None
    return Spots(source, target.resolve().name, details(source.game, origin), path, stack)


def open_strategies(
    target: Path | None,
    checkpoint: int | None = None,
    abstraction: Path | None = None,
    *,
    against: Path | None = None,
    against_checkpoint: int | None = None,
    against_abstraction: Path | None = None,
    review: Path | None = None,
) -> StrategyList:
    """Return the strategies to show: the target, one to compare, and the run's other checkpoints.

    target                            policy or run; None: no strategy, and the page shows only spots that it solves
    checkpoint, against_checkpoint    number of a run's checkpoint; None: the newest
    against                           policy or run to compare; None: no comparison
    abstraction, against_abstraction  directory of a run's card abstraction, if it was moved
    review                            file of `mccfr review --keep` with hands reviewed by `target`

    Checkpoints are listed newest first.  Raises `ValueError` or `OSError` for a target or review that cannot be opened.
    Raises `ValueError` if the games of `target` and `against` differ.  Card buckets may differ, and bet sizes if both
    games know the rules of all legal bets.  Raises `ValueError` if `target` is None and `checkpoint`, `against` or
    `review` is given.
    """

    def book(path: Path, number: int | None, where: Path | None) -> tuple[str, Callable[[], Spots]]:
        named = "" if number is None else f", checkpoint {number}"
        return path.resolve().name + named, lambda: open_spots(path, number, where)

    if target is None:
        if against is not None or checkpoint is not None or review is not None:
            raise ValueError("nothing is shown: give a policy or a run")
        return StrategyList([])
    books, held = [book(target, checkpoint, abstraction)], None
    if against is not None:
        books.append(book(against, against_checkpoint, against_abstraction))
    if is_run(target) and not is_policy(target):
        run = open_run(target, abstraction, opaque=True)
        held = find_checkpoint(run, checkpoint)  # keeps a session from deleting it before it is read
        chosen, newest = held.number, checkpoint is None
        name = book(target, chosen, abstraction)[0]
        books[0] = name, lambda: open_spots(target, chosen, abstraction, newest=newest)
        numbers = list_checkpoints(run.path(CHECKPOINTS))
        books += [book(target, number, abstraction) for number in reversed(numbers) if number != chosen]
    found = StrategyList(books, review)
    del held
    if against is not None:
        found.shown(1)  # raises its errors at once
    return found
