"""What the coordinator needs of whatever carries its orders, and the engine `none`: all ranks in one process.

An engine places strata, runs an interval, hands over what the ranks have done, and ends the session where one is lost.
What comes of a run is decided above it (`mccfr.cluster.pool`) and below (`mccfr.cluster.trainer`), never by an engine.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from mccfr.cluster.messages import PLACE, RUN, Answer, Order
from mccfr.cluster.trainer import Trainer
from mccfr.games.game import Game
from mccfr.runs.rundir import Run

Pieces = Callable[[int], list[npt.NDArray[np.uint8]]]
"""The bytes of a stratum's rows, table by table: views of where they are, or where they shall be."""


class Place(NamedTuple):
    """Where a rank trains."""

    machine: int
    host: str
    pid: int


class Engine(Protocol):
    """Carries orders to the ranks that train, and what they answer back.

    places      of the ranks, by their numbers from 0
    sent_bytes  to them, and received_bytes from them, so far
    """

    places: Sequence[Place]
    sent_bytes: int
    received_bytes: int

    def run(self, order: Order) -> None:
        """Give all ranks an interval to train; `answer` says what came of it."""

    def answer(self, rank: int) -> Answer | None:
        """A rank's newest answer, once; None until it is there.  Returns at once."""

    def collect(self, order: Order, into: Pieces) -> None:
        """Fill the rows of all strata with what their owners have."""

    def place(self, order: Order, out: Pieces) -> None:
        """Give the rows of strata that are moved to those who own them now."""

    def close(self) -> None:
        """Let the ranks end, when they rest."""


class OneProcess:
    """`engine = "none"`: the ranks are objects of this process, and train one after the other."""

    def __init__(self, run: Run, game: Game, machines: int, workers: int) -> None:
        self._trainers = [Trainer(run, game, rank) for rank in range(machines * workers)]
        self.places: Sequence[Place] = [Place(rank // workers, "here", 0) for rank in range(machines * workers)]
        self.sent_bytes = self.received_bytes = 0
        self._answers: dict[int, Answer] = {}

    def run(self, order: Order) -> None:
        """As `Engine`."""
        assert order.head[0] == RUN
        for trainer in self._trainers:
            self._tell(trainer, order)
            trainer.train()
            self._answers[trainer.rank] = trainer.answer

    def answer(self, rank: int) -> Answer | None:
        """As `Engine`."""
        found = self._answers.pop(rank, None)
        if found is not None:
            self.received_bytes += found.cells.nbytes
        return found

    def collect(self, order: Order, into: Pieces) -> None:
        """As `Engine`."""
        for trainer in self._trainers:
            self._tell(trainer, order)
            for stratum in trainer.strata():
                self.received_bytes += _copy(trainer.pieces(stratum), into(stratum))

    def place(self, order: Order, out: Pieces) -> None:
        """As `Engine`."""
        assert order.head[0] == PLACE
        for trainer in self._trainers:
            self._tell(trainer, order)
            for stratum in trainer.strata(moved=True):
                self.sent_bytes += _copy(out(stratum), trainer.pieces(stratum))

    def _tell(self, trainer: Trainer, order: Order) -> None:
        trainer.order.cells[:] = order.cells
        self.sent_bytes += order.cells.nbytes

    def close(self) -> None:
        """As `Engine`."""
        self._answers.clear()


def _copy(source: Sequence[npt.NDArray[Any]], target: Sequence[npt.NDArray[Any]]) -> int:
    """Copy arrays, and count their bytes."""
    for here, there in zip(source, target, strict=True):
        there[...] = here
    return sum(array.nbytes for array in source)
