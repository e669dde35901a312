"""Messages by MPI: process (rank) 0 sends orders, all others train and answer, as int64 arrays.

Waiting inside MPI would occupy a processor, so requests are polled with short sleeps. A rank that dies ends the job, by
MPI's rule, and the launcher starts the remaining ranks again (`mccfr.cluster.launch`).
"""

import json
import os
import re
import socket
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from mccfr.cluster.messages import COMMAND, QUIT, RUN, WRITE, Order, RankAnswer, RankLocation
from mccfr.cluster.trainer import Trainer
from mccfr.games.game import Game
from mccfr.runs.session.shared_deck import shared_bytes
from mccfr.solvers.solver import Algorithm
from storage.damage import DamagedError, UnreadableError

_SHORTEST_NAP_SECONDS, _LONGEST_NAP_SECONDS, _NAP_SHARE = 0.0001, 0.005, 0.02
_TEXT_BYTES = 1 << 14
_SHARED = re.compile(r"(/dev/shm/mpich_shm_\w+)$", re.MULTILINE)  # removed files end in "(deleted)"
_MOST_NAMES = 200  # restored names that fit in a text message
_ORDER, _ANSWER, _VERSIONS, _TEXT = range(4)  # tags


def is_inside_mpi() -> bool:
    """Return whether an MPI launcher (or srun) started this process."""
    return any(name in os.environ for name in ("PMI_RANK", "PMIX_RANK", "PMI_FD"))


class World:
    """The MPI processes of a run, seen from this one: its number (rank), their count, and messages.

    rank  number of this process; 0 leads, the others train
    size  number of processes
    mpi   the module `mpi4py.MPI`
    comm  its communicator of all processes
    """

    def __init__(self) -> None:
        """Initialise MPI and join the other processes; `ValueError` if MPI is not installed."""
        try:
            import mpi4py
        except ImportError:
            raise ValueError(NO_MPI) from None
        mpi4py.rc.initialize = mpi4py.rc.finalize = False
        from mpi4py import MPI

        MPI.Init_thread(MPI.THREAD_SERIALIZED)  # a thread writes checkpoints while the main thread waits
        self.mpi, self.comm = MPI, MPI.COMM_WORLD
        self.rank, self.size = self.comm.rank, self.comm.size
        self._unname_memory()

    def _unname_memory(self) -> None:
        """Unlink the shared-memory file of this host's ranks, once all have mapped it.

        MPICH unlinks it only at the end, so every killed job would leave megabytes in /dev/shm.
        """
        host = self.comm.Split_type(self.mpi.COMM_TYPE_SHARED)
        self.wait([host.Ibarrier()])
        if not host.rank:
            for path in shared_by_mpich(Path("/proc/self/maps").read_text()):
                path.unlink(missing_ok=True)
        host.Free()

    def leave(self) -> None:
        """End the use of MPI (finalise it); all processes must call this."""
        self.mpi.Finalize()

    def wait(self, requests: Iterable[Any]) -> None:
        """Wait until all MPI requests, such as sends and receives, are done, with short sleeps."""
        for request in requests:
            began = time.monotonic()
            while not request.Test():
                waited = time.monotonic() - began
                time.sleep(min(_LONGEST_NAP_SECONDS, max(_SHORTEST_NAP_SECONDS, _NAP_SHARE * waited)))

    def send_text(self, rank: int, value: Mapping[str, Any]) -> None:
        """Send a small dictionary to process number `rank` as JSON; `ValueError` above 16 KiB."""
        text = json.dumps(value).encode()
        if len(text) > _TEXT_BYTES:
            raise ValueError(f"a message to a rank has {len(text):,} bytes of {_TEXT_BYTES:,}: use shorter paths")
        self.wait([self.comm.Isend(np.frombuffer(text.ljust(_TEXT_BYTES), np.uint8), rank, _TEXT)])

    def receive_text(self, rank: int) -> dict[str, Any]:
        """Wait for a dictionary that process number `rank` sends by `send_text`, and return it."""
        text = np.empty(_TEXT_BYTES, np.uint8)
        self.wait([self.comm.Irecv(text, rank, _TEXT)])
        return json.loads(text.tobytes())

    def share_buckets(self, game: Game, algorithm: Algorithm) -> Game:
        """Return the game with its bucket tables in memory that all processes of a host share.

        All MPI processes must call it. It returns `game` itself if there are no tables to share, or if `algorithm`
        does not use them.
        """
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


def shared_by_mpich(maps: str) -> list[Path]:
    """Return the shared-memory files of MPICH that `maps`, the text of `/proc/PID/maps`, lists."""
    return [Path(name) for name in dict.fromkeys(_SHARED.findall(maps))]


def abort_all_ranks(status: int = 1) -> None:
    """Kill all MPI processes of the run, this one too; do nothing outside of MPI.

    This process is outside of MPI before it creates a `World`, and after `World.leave`.

    status  exit status for the launcher
    """
    if "mpi4py.MPI" in sys.modules:
        from mpi4py import MPI

        if MPI.Is_initialized() and not MPI.Is_finalized():
            MPI.COMM_WORLD.Abort(status)


NO_MPI = "several machines need MPI, which is not installed: tools/bootstrap cluster, or pip install '.[cluster]'"


def host_name() -> str:
    """Return this machine's name for messages."""
    return socket.gethostname()


class MpiEngine:
    """Sends the orders of process 0 (coordinator) to the training processes; receives answers.

    Created with the number of strata, and of cells in the first street's tables, which determine the message sizes.

    locations                   machine, host and process id of each training process: item r is MPI process 1 + r
    sent_bytes, received_bytes  bytes of orders sent, and of answers received so far
    """

    def __init__(self, world: World, locations: Sequence[RankLocation], strata: int, first_cells: int) -> None:
        self._world, self.locations = world, locations
        self.sent_bytes = self.received_bytes = 0
        self._answers = [RankAnswer(strata, first_cells) for _ in locations]
        self._quit = Order(strata, first_cells)
        self._sending: list[Any] = []
        self._receiving: dict[int, Any] = {}
        self._closed = False

    def run(self, order: Order) -> None:
        """Send all training processes an order to train an interval; do not wait for their answers.

        An interval is the training between two exchanges of the first street's tables.
        """
        assert order.head[COMMAND] == RUN
        self._tell(order)
        for rank, answer in enumerate(self._answers):
            self._receiving[rank] = self._world.comm.Irecv(answer.cells, 1 + rank, _ANSWER)

    def answer(self, rank: int) -> RankAnswer | None:
        """Return a training process's answer to `run` if it has arrived, else None; does not wait.

        rank  number of the training process, from 0

        Once an answer is returned, call this again only after the next `run`.
        """
        pending = sum(not request.Test() for request in self._sending)  # tests each, so that all make progress
        if pending or not self._receiving[rank].Test():
            return None
        answer = self._answers[rank]
        self.received_bytes += answer.cells.nbytes
        return answer

    def write(self, order: Order) -> npt.NDArray[np.int64]:
        """Make all training processes save the table rows that they train.

        Returns [N, 5] int64: for each of N strata (groups of flops) the number and hash of the version that was
        written. Raises `OSError` if a process's disk fails or is full, and `RuntimeError` for a cell that is NaN or
        infinite.
        """
        assert order.head[COMMAND] == WRITE
        answers = self._reports_on(order)
        versions, own_versions = np.zeros_like(order.versions), np.zeros_like(order.versions)
        for rank in range(len(self.locations)):  # of all ranks: the next order must find no pending message
            self._world.wait([self._world.comm.Irecv(own_versions, 1 + rank, _VERSIONS)])
            self.received_bytes += own_versions.nbytes
            versions += own_versions
        _raise_first(answers)
        return versions

    def obey(self, order: Order) -> list[str]:
        """Make all training processes read, copy or restore files; return names of restored files.

        order  its command is READ, COPY or RESTORE

        Each process reports 200 names at most. Raises `OSError` if a file is damaged, missing or unreadable, or a disk
        is full. Raises `RuntimeError` if a checkpoint or its rows do not fit the run.
        """
        answers = self._reports_on(order)
        _raise_first(answers)
        return [name for answer in answers for name in answer["restored"]]

    def _reports_on(self, order: Order) -> list[dict[str, Any]]:
        """Send an order to write, read, copy or restore files; return each training process's report.

        A report is a dictionary with `restored`, the names of restored files, or `problem`, the text of an error.
        """
        self._tell(order)
        self._world.wait(self._sending)
        return [self._world.receive_text(1 + rank) for rank in range(len(self.locations))]

    def _tell(self, order: Order) -> None:
        self._world.wait(self._sending)
        self._sending = [self._world.comm.Isend(order.cells, 1 + rank, _ORDER) for rank in range(len(self.locations))]
        self.sent_bytes += order.cells.nbytes * len(self.locations)

    def close(self) -> None:
        """Order all training processes to end; a second call does nothing."""
        if not self._closed:
            self._closed = True
            self._quit.head[COMMAND] = QUIT
            self._tell(self._quit)
            self._world.wait(self._sending)


def serve(world: World, trainer: Trainer) -> None:
    """Do what process 0 (the coordinator) orders, until it orders to end (QUIT).

    trainer  trains, and reads and writes files, for this training process
    """
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
            _handle_files(world, trainer, command)


def _handle_files(world: World, trainer: Trainer, command: int) -> None:
    """Write, read, copy or restore files as ordered, and report to process 0 (the coordinator).

    trainer  does the work, and has received the order
    command  the order's kind: WRITE, READ, COPY or RESTORE
    """
    versions, report = np.zeros_like(trainer.order.versions), dict[str, Any](restored=[])
    try:
        if command == WRITE:
            versions = trainer.write()
        else:
            report["restored"] = trainer.obey()[:_MOST_NAMES]
    except OSError as error:
        report = {"host": host_name(), "problem": _one_line(error), "errno": error.errno, "file": error.filename}
        if isinstance(error, UnreadableError):
            report |= {"problem": f"{error.filename}: {_one_line(error.cause)}", "unreadable": True}
    except (RuntimeError, ValueError) as error:
        report = {"host": host_name(), "problem": str(error)}
    world.send_text(0, report)
    if command == WRITE:
        world.wait([world.comm.Isend(versions, 0, _VERSIONS)])


def _one_line(error: OSError) -> str:
    return " ".join((error.strerror or str(error)).split())


def _raise_first(reports: Sequence[Mapping[str, Any]]) -> None:
    """Raise the first error in the training processes' reports, or nothing if there is none.

    reports  a dictionary from each process; `problem` is the text of its error, if any

    The error is `OSError` (also `DamagedError`, `UnreadableError`) if the process could not use a file, else
    `RuntimeError`.
    """
    for report in reports:
        if "problem" not in report:
            continue
        text = f"{report['host']}: {report['problem']}"
        if "errno" not in report:
            raise RuntimeError(text)
        if report["errno"] is None:
            raise DamagedError(text)
        if report.get("unreadable"):
            raise UnreadableError(OSError(report["errno"], text))
        raise OSError(report["errno"], text, report["file"])
