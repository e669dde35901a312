"""What the coordinator needs of whatever carries its orders.

An engine runs an interval, has the ranks write and read the rows of their strata, and ends the session where one is
lost.  What comes of a run is decided above it (`mccfr.cluster.pool`) and below (`mccfr.cluster.trainer`), never by an
engine.
"""

from collections.abc import Sequence
from math import inf
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from mccfr.cluster.messages import Order, RankAnswer


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

    def answer(self, rank: int) -> RankAnswer | None:
        """A rank's newest answer, once; None until it is there.  Returns at once."""

    def write(self, order: Order) -> npt.NDArray[np.int64]:
        """Have all ranks write the rows of their strata; [N, 5] the versions.  Raises as `Trainer.write`."""

    def obey(self, order: Order) -> list[str]:
        """Have all ranks carry out another order about files.  Returns and raises as `Trainer.obey`, of all ranks."""

    def close(self) -> None:
        """Let the ranks end, when they rest."""
