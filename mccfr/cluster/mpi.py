"""The engine `mpi`: rank 0 coordinates, all others train; orders and rows pass as raw cells, never as pickles.

Nobody waits inside of MPI, whose waiting takes a whole processor: requests are tested between naps.  A rank that dies
ends the job, by MPI's own rule; whoever has started it starts what is left again (`mccfr.cluster.launch`).
"""

import json
import os
import socket
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from mccfr.cluster.engine import Pieces, Place
from mccfr.cluster.messages import COLLECT, COMMAND, PLACE, QUIT, RUN, Answer, Order
from mccfr.cluster.trainer import Trainer
from mccfr.games.game import Game
from mccfr.runs.shared_deck import shared_bytes
from mccfr.solvers.solver import Algorithm

_SHORTEST_NAP_SECONDS, _LONGEST_NAP_SECONDS, _NAP_SHARE = 0.0001, 0.005, 0.02
_PIECE_BYTES = 64 << 20  # of one message: MPI counts in 32 bits
_TEXT_BYTES = 1 << 14
_ORDER, _ANSWER, _ROWS, _TEXT = range(4)  # tags


def is_inside_mpi() -> bool:
    """Whether this process was started by a launcher of MPI, srun included."""
    return any(name in os.environ for name in ("PMI_RANK", "PMIX_RANK", "PMI_FD"))


class World:
    """All ranks of the job, and how they talk."""

    def __init__(self) -> None:
        """Join the job; `ValueError` where MPI is not installed."""
        try:
            import mpi4py
        except ImportError:
            raise ValueError(NO_MPI) from None
        mpi4py.rc.initialize = mpi4py.rc.finalize = False
        from mpi4py import MPI

        MPI.Init_thread(MPI.THREAD_FUNNELED)
        self.mpi, self.comm = MPI, MPI.COMM_WORLD
        self.rank, self.size = self.comm.rank, self.comm.size

    def leave(self, *, abort: int | None = None) -> None:
        """End with all others, who must do so too; with a status, end all of them at once."""
        if abort is not None:
            self.comm.Abort(abort)
        self.mpi.Finalize()

    def wait(self, requests: Iterable[Any]) -> None:
        """Until all requests are done, in naps."""
        for request in requests:
            began = time.monotonic()
            while not request.Test():
                waited = time.monotonic() - began
                time.sleep(min(_LONGEST_NAP_SECONDS, max(_SHORTEST_NAP_SECONDS, _NAP_SHARE * waited)))

    def send_text(self, rank: int, value: Mapping[str, Any]) -> None:
        """Send a rank a small object as JSON."""
        text = json.dumps(value).encode()
        if len(text) > _TEXT_BYTES:
            raise ValueError(f"a message of {len(text):,} bytes to rank {rank}: at most {_TEXT_BYTES:,} are allowed")
        self.wait([self.comm.Isend(np.frombuffer(text.ljust(_TEXT_BYTES), np.uint8), rank, _TEXT)])

    def receive_text(self, rank: int) -> dict[str, Any]:
        """What a rank has sent by `send_text`."""
        text = np.empty(_TEXT_BYTES, np.uint8)
        self.wait([self.comm.Irecv(text, rank, _TEXT)])
        return json.loads(text.tobytes())

    def share_buckets(self, game: Game, algorithm: Algorithm) -> Game:
        """The game with its bucket tables once in the memory of each host; all ranks must call it."""
        size = shared_bytes(game, algorithm)
        if not size:
            return game
        host = self.comm.Split_type(self.mpi.COMM_TYPE_SHARED)
        window = self.mpi.Win.Allocate_shared(0 if host.rank else size, 1, comm=host)  # type: ignore[arg-type]
        memory = np.frombuffer(window.Shared_query(0)[0], np.uint8)[:size]  # type: ignore[call-overload]
        if not host.rank:
            game = replace(game, cards=game.cards.in_memory(memory, fill=True))
        self.wait([host.Ibarrier()])
        return replace(game, cards=game.cards.in_memory(memory, fill=False)) if host.rank else game

    def pass_rows(self, pieces: Iterable[npt.NDArray[np.uint8]], rank: int, *, receive: bool) -> int:
        """Send rows to a rank, or receive them into where they shall be; returns their bytes."""
        call, count = (self.comm.Irecv if receive else self.comm.Isend), 0
        for part in _parts(pieces):
            self.wait([call(part, rank, _ROWS)])
            count += part.nbytes
        return count


def end_the_others() -> None:
    """End all ranks at once, this one too, where this one has joined a job and not left it."""
    if "mpi4py.MPI" in sys.modules:
        from mpi4py import MPI

        if MPI.Is_initialized() and not MPI.Is_finalized():
            MPI.COMM_WORLD.Abort(1)


NO_MPI = "several machines need MPI, which is not installed: tools/bootstrap cluster, or pip install '.[cluster]'"


def _parts(pieces: Iterable[npt.NDArray[np.uint8]]) -> Iterator[npt.NDArray[np.uint8]]:
    """Pieces cut to what one message takes."""
    for piece in pieces:
        for begin in range(0, len(piece), _PIECE_BYTES):
            yield piece[begin : begin + _PIECE_BYTES]


def host_name() -> str:
    """As machines are called in messages."""
    return socket.gethostname()


class MpiEngine:
    """The coordinator's side; as `mccfr.cluster.engine.Engine`.

    Of the world's ranks, the engine's rank r is number 1 + r.
    """

    def __init__(self, world: World, places: Sequence[Place], strata: int, first_cells: int) -> None:
        self._world, self.places = world, places
        self.sent_bytes = self.received_bytes = 0
        self._answers = [Answer(strata, first_cells) for _ in places]
        self._quit = Order(strata, first_cells)
        self._sending: list[Any] = []
        self._receiving: dict[int, Any] = {}
        self._closed = False

    def run(self, order: Order) -> None:
        """As `Engine`."""
        assert order.head[COMMAND] == RUN
        self._tell(order)
        for rank, answer in enumerate(self._answers):
            self._receiving[rank] = self._world.comm.Irecv(answer.cells, 1 + rank, _ANSWER)

    def answer(self, rank: int) -> Answer | None:
        """As `Engine`."""
        if not self._sent() or not self._receiving[rank].Test():
            return None
        found = self._answers[rank]
        self.received_bytes += found.cells.nbytes
        return found

    def _sent(self) -> bool:
        """Whether all ranks have the newest order; every request is tested, so that all go on."""
        return sum(not request.Test() for request in self._sending) == 0

    def collect(self, order: Order, into: Pieces) -> None:
        """As `Engine`."""
        assert order.head[COMMAND] == COLLECT
        self._tell(order)
        for stratum, rank in enumerate(order.owner.tolist()):
            self.received_bytes += self._world.pass_rows(into(stratum), 1 + rank, receive=True)
        self._world.wait(self._sending)

    def place(self, order: Order, out: Pieces) -> None:
        """As `Engine`."""
        assert order.head[COMMAND] == PLACE
        self._tell(order)
        for stratum in np.flatnonzero(order.moved).tolist():
            self.sent_bytes += self._world.pass_rows(out(stratum), 1 + int(order.owner[stratum]), receive=False)
        self._world.wait(self._sending)

    def _tell(self, order: Order) -> None:
        self._world.wait(self._sending)
        self._sending = [self._world.comm.Isend(order.cells, 1 + rank, _ORDER) for rank in range(len(self.places))]
        self.sent_bytes += order.cells.nbytes * len(self.places)

    def close(self) -> None:
        """As `Engine`; nothing the second time."""
        if not self._closed:
            self._closed = True
            self._quit.head[COMMAND] = QUIT
            self._tell(self._quit)
            self._world.wait(self._sending)


def serve(world: World, trainer: Trainer) -> None:
    """Obey the coordinator until it says QUIT."""
    order, comm = trainer.order, world.comm
    while True:
        world.wait([comm.Irecv(order.cells, 0, _ORDER)])
        command = int(order.head[COMMAND])
        if command == QUIT:
            return
        if command == RUN:
            trainer.train()
            world.wait([comm.Isend(trainer.answer.cells, 0, _ANSWER)])
        else:
            for stratum in trainer.strata(moved=command == PLACE):
                world.pass_rows(trainer.pieces(stratum), 0, receive=command == PLACE)
