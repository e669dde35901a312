"""Interface between the coordinator and the transport that carries its orders.

An engine makes the ranks train an interval, and write and read the rows of their strata. If a rank is lost, it ends the
session. The training logic is in `mccfr.cluster.rank_pool` and `mccfr.cluster.trainer`, never in an engine.
"""

from collections.abc import Sequence
from math import inf
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from mccfr.cluster.messages import Order, RankAnswer


class Place(NamedTuple):
    """Location of a rank.

    machine       number of its machine, from 0
    memory_bytes  memory of the machine for all its ranks, in bytes
    """

    machine: int
    host: str
    pid: int
    memory_bytes: float = inf


def keepers(places: Sequence[Place]) -> list[int | None]:
    """Return the machine whose second copies each rank keeps; None except for a machine's first rank."""
    machines = [place.machine for place in places]
    return [machine if machine not in machines[:rank] else None for rank, machine in enumerate(machines)]


class Engine(Protocol):
    """Carries orders to the training ranks, and their answers back.

    places      locations of the ranks, by number from 0
    sent_bytes, received_bytes  traffic to and from the ranks so far
    """

    places: Sequence[Place]
    sent_bytes: int
    received_bytes: int

    def run(self, order: Order) -> None:
        """Make all ranks train an interval; `answer` returns the results."""

    def answer(self, rank: int) -> RankAnswer | None:
        """Return a rank's new answer, once; None until it has arrived. Does not wait."""

    def write(self, order: Order) -> npt.NDArray[np.int64]:
        """Make all ranks write the rows of their strata; return the versions [N, 5].

        Raises as `Trainer.write`.
        """

    def obey(self, order: Order) -> list[str]:
        """Make all ranks carry out another order about files; results and errors as `Trainer.obey`."""

    def close(self) -> None:
        """Make the idle ranks end."""
