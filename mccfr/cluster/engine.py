"""What the coordinator needs of whatever carries its orders, and the engine `none`: all ranks in one process.

An engine runs an interval, has the ranks write and read the rows of their strata, and ends the session where one is
lost.  What comes of a run is decided above it (`mccfr.cluster.pool`) and below (`mccfr.cluster.trainer`), never by an
engine.
"""

from collections.abc import Sequence
from math import inf
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from mccfr.cluster.messages import COMMAND, RUN, WRITE, Answer, Order
from mccfr.cluster.trainer import Trainer
from mccfr.games.game import Game
from mccfr.runs.directory.run import Run


class Place(NamedTuple):
    """Where a rank trains.

    memory_bytes  that its machine has for all its ranks
    """

    machine: int
    host: str
    pid: int
    memory_bytes: float = inf


def keepers(places: Sequence[Place]) -> list[int | None]:
    """Of which machine each rank keeps the copies: the first rank of a machine of that one, the others of none."""
    machines = [place.machine for place in places]
    return [machine if machine not in machines[:rank] else None for rank, machine in enumerate(machines)]


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

    def write(self, order: Order) -> npt.NDArray[np.int64]:
        """Have all ranks write the rows of their strata; [N, 5] the versions.  Raises as `Trainer.write`."""

    def obey(self, order: Order) -> list[str]:
        """Have all ranks carry out another order about files.  Returns and raises as `Trainer.obey`, of all ranks."""

    def close(self) -> None:
        """Let the ranks end, when they rest."""


class OneProcess:
    """`engine = "none"`: the ranks are objects of this process, and train one after the other."""

    def __init__(self, run: Run, game: Game, machines: int, workers: int) -> None:
        self.places: Sequence[Place] = [Place(rank // workers, "here", 0) for rank in range(machines * workers)]
        self._trainers = [Trainer(run, game, rank, machine) for rank, machine in enumerate(keepers(self.places))]
        self.sent_bytes = self.received_bytes = 0
        self._answers: dict[int, Answer] = {}

    def run(self, order: Order) -> None:
        """As `Engine`."""
        assert order.head[COMMAND] == RUN
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

    def write(self, order: Order) -> npt.NDArray[np.int64]:
        """As `Engine`."""
        assert order.head[COMMAND] == WRITE
        found = np.zeros_like(order.versions)
        for trainer in self._trainers:
            self._tell(trainer, order)
            found += trainer.write()
        return found

    def obey(self, order: Order) -> list[str]:
        """As `Engine`."""
        found = []
        for trainer in self._trainers:
            self._tell(trainer, order)
            found += trainer.obey()
        return found

    def _tell(self, trainer: Trainer, order: Order) -> None:
        trainer.order.cells[:] = order.cells
        self.sent_bytes += order.cells.nbytes

    def close(self) -> None:
        """As `Engine`."""
        self._answers.clear()
