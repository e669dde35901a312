"""Starts the ranks (MPI processes) of a run on several machines, and restarts them after a loss.

One rank, the coordinator, leads the others, which train. MPI ends all ranks when one of them dies. The run then
continues from its last checkpoint with the same bits, on any number of machines. A loss costs the training since that
checkpoint, and some seconds for the restart.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from mccfr.cluster.mpi import NO_MPI
from mccfr.common.package import search_path
from mccfr.common.signals import signals_to
from mccfr.config.run_tables import ClusterConfig
from mccfr.runs.directory.run import CHECKPOINTS, Run
from storage.checkpoint import list_checkpoints
from storage.deferred_signals import signals_blocked
from storage.free_space import free_bytes
from storage.open_directory import OpenDirectory, errors_shown
from storage.threads import ordered

RANK_PROGRAM = "mccfr.cli.cluster_rank"
_MOST_LOSSES = 3  # in a row, without a new checkpoint
_TICK_SECONDS = 0.1
_END_SECONDS = 2.0  # time for ranks of this machine to end after their coordinator
_GONE_SECONDS = 10.0  # time for killed ranks to free their memory
_PROBE_SECONDS = 20
_PROBES = 8  # in parallel
_NETWORKS = Path("/sys/class/net")
_SHARED_MEMORY = Path("/dev/shm")
_RANK_BYTES = 2 << 20  # MPICH writes this per rank (1.06 MB) without checking for room


class Launch(NamedTuple):
    """Command that starts the ranks, the MPI processes of a run on several machines.

    command      words of the command line: an MPI launcher with its options
    environment  additional environment variables of the ranks
    passes_file  True: ranks inherit this process's stderr and write their messages there. The launcher gforker needs
                 it, because it stops forwarding text at the first non-ASCII character
    """

    command: list[str]
    environment: Mapping[str, str]
    passes_file: bool


def _launcher(name: str) -> str:
    """Return the path of an MPI launcher, from this Python environment or else from PATH.

    name  file name of the launcher, such as "mpiexec.hydra"

    Raises `ValueError` if the launcher or the Python package mpi4py is not installed.
    """
    beside = Path(sys.prefix) / "bin" / name
    path = str(beside) if beside.is_file() else shutil.which(name)
    if path is None or find_spec("mpi4py") is None:
        raise ValueError(NO_MPI)
    return path


def local_launch(machines: int, workers: int) -> Launch:
    """Return the launch command for machines that are simulated by processes of this machine.

    They communicate through shared memory only; no port is opened.

    machines  number of simulated machines
    workers   number of training processes of each machine; 0 counts as 1

    Raises `ValueError` if MPI is not installed, and if less shared memory (/dev/shm) is free than the processes need.
    They would die without it and leave their files behind.
    """
    ranks = 1 + machines * max(1, workers)
    if (free := free_bytes(_SHARED_MEMORY)) < (needed := ranks * _RANK_BYTES):
        raise ValueError(
            f"{_SHARED_MEMORY} has {free / 1e6:.1f} MB left and {ranks} ranks need {needed / 1e6:.1f} MB of it: "
            f"delete unused files there, or make it larger (mount -o remount,size=64m {_SHARED_MEMORY})"
        )
    return Launch(
        [_launcher("mpiexec.gforker"), "-n", str(ranks)], {"UCX_TLS": "self,sm", "UCX_NET_DEVICES": "lo"}, True
    )


def hosts_launch(hosts: Sequence[str], workers: int, settings: ClusterConfig) -> Launch:
    """Return the launch command for machines that are reached by ssh.

    hosts     names of the machines; the first is this one, on which an additional process leads the others
    workers   number of training processes of each machine; 0 counts as 1
    settings  table `[cluster]` of the run's configuration, which names the network interface

    Raises `ValueError` for a network interface that is missing or `lo`, and if MPI is not installed.
    """
    networks = sorted(path.name for path in _NETWORKS.iterdir() if path.name != "lo")
    if settings.network not in networks:
        raise ValueError(
            f"cluster.network = {settings.network!r} reaches no other machine: name the interface that the machines "
            f"share, one of {', '.join(networks)}"
        )
    workers_each = max(1, workers)
    first, last = 47_000, 47_999  # ports on which machines listen
    ranks = [f"{hosts[0]}:{1 + workers_each}", *(f"{host}:{workers_each}" for host in hosts[1:])]
    command = [_launcher("mpiexec.hydra"), "-launcher", "ssh", "-iface", settings.network, "-hosts", ",".join(ranks)]
    environment = {
        "UCX_NET_DEVICES": settings.network,
        "UCX_TCP_PORT_RANGE": f"{first}-{last}",
        "MPIEXEC_PORT_RANGE": f"{first}:{last}",
    }
    return Launch([*command, "-n", str(1 + len(hosts) * workers_each)], environment, False)


def reachable_hosts(hosts: Sequence[str]) -> list[str]:
    """Return the names of `hosts` that ssh reaches without a prompt, and the first in any case.

    The first is this machine.
    """
    answers = ordered(_is_reachable, hosts[1:], threads=_PROBES)
    return [*hosts[:1], *(host for host, reached in zip(hosts[1:], answers, strict=True) if reached)]


def _is_reachable(host: str) -> bool:
    command = ["ssh", "-o", "BatchMode=yes", "-o", f"ConnectTimeout={_PROBE_SECONDS // 2}", host, "true"]
    with suppress(OSError, subprocess.TimeoutExpired):
        return subprocess.run(command, timeout=_PROBE_SECONDS, capture_output=True, check=False).returncode == 0
    return False


def check_reachable(hosts: Sequence[str]) -> None:
    """Raise `ValueError` if ssh does not reach all hosts."""
    reached = reachable_hosts(hosts)
    unreachable = [host for host in hosts if host not in reached]
    if unreachable:
        raise ValueError(
            f"{', '.join(unreachable)} cannot be reached: 'ssh {unreachable[0]} true' must work without a prompt, for "
            "example with a key"
        )


def run_to_end(
    run: Run,
    start: Callable[[int], Launch],
    machines_left: Callable[[int], int],
    arguments: Sequence[str],
    machines: int,
    report: Callable[[str], None],
) -> int:
    """Train a run on several machines until it ends, with a restart after each loss of a machine.

    Returns the exit status of the coordinator, the process that leads the others. Ranks are the MPI processes of the
    run.

    start          function from a number of machines to the command that starts ranks on so many
    machines_left  function from the number of machines before a loss to the number that can continue
    arguments      words after `mccfr` of the command that all ranks execute
    machines       number of machines to start with
    report         receives messages, as sentences

    Raises `RuntimeError` if ranks are lost four times in a row without a new checkpoint. It is also raised if a rank is
    lost after a signal, or after the run directory was moved. Errors of `start` and `machines_left` are passed on.
    """
    losses, newest, directory, forward = 0, -1, run.directory, _Forward()
    with OpenDirectory(directory) as opened, errors_shown(), signals_to(forward.note):
        run = replace(run, directory=opened.path)
        while True:
            status = _run_job(start(machines), arguments, forward)
            if status is not None:
                return status
            if forward.signal is not None:
                raise RuntimeError(f"a rank was lost after signal {forward.signal}: resume {run.directory}")
            if opened.current_path() != directory:
                raise RuntimeError(
                    f"a rank was lost, and the run was moved to {run.directory}: continue with: mccfr cluster resume "
                    f"{run.directory}"
                )
            checkpoint = max(list_checkpoints(run.path(CHECKPOINTS)), default=0)
            losses, newest = (losses + 1, newest) if checkpoint == newest else (1, checkpoint)
            if losses > _MOST_LOSSES:
                raise RuntimeError(
                    f"a rank was lost {losses} times since checkpoint {checkpoint}: the last messages of the ranks are "
                    f"above; continue with: mccfr cluster resume {run.directory}"
                )
            machines = machines_left(machines)
            report(f"a machine was lost; remaining machines ({machines}) continue from checkpoint {checkpoint}")


class _Forward:
    """Forwards signals to the process that leads all others, or stores them until its id is known.

    signal  number of the first signal received; None: none yet
    """

    def __init__(self) -> None:
        self.signal: int | None = None
        self._pid: int | None = None
        self._waiting: list[int] = []

    def note(self, number: int) -> None:
        self.signal = self.signal or number
        self._waiting.append(number)
        self.flush()

    def found(self, pid: int | None) -> None:
        self._pid = pid
        self.flush()

    def flush(self) -> None:
        while self._pid is not None and self._waiting:
            with suppress(ProcessLookupError):
                os.kill(self._pid, self._waiting.pop(0))


def _run_job(launch: Launch, arguments: Sequence[str], forward: _Forward) -> int | None:
    """Start all MPI processes of a run, wait for their end, and return the coordinator's exit status.

    The coordinator, process 0, leads the others. Returns None if it has left no exit status, because a process died.
    Processes on this machine that outlive the launcher are killed.

    launch     command that starts them
    arguments  words after `mccfr` of the command that each process executes
    forward    receives the coordinator's process id, and sends signals to it
    """
    environment = {**os.environ, "PYTHONPATH": search_path(), **launch.environment}
    with tempfile.TemporaryDirectory(prefix="mccfr-cluster-", ignore_cleanup_errors=True) as folder:
        end_file = Path(folder) / "ended.json"
        files = [os.dup(sys.stderr.fileno())] if launch.passes_file else []
        rank_arguments = [str(end_file), str(os.getpid()), str(files[0]) if files else "-"]
        command = [*launch.command, sys.executable, "-P", "-m", RANK_PROGRAM, *rank_arguments, *arguments]
        # Ctrl-C of the terminal reaches this process, which forwards it to the coordinator alone.
        with signals_blocked() if launch.passes_file else nullcontext():
            process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, env=environment, start_new_session=True, pass_fds=files
            )
        for file in files:
            os.close(file)
        ended_at: float | None = None
        while process.poll() is None:
            notes = read_end(end_file)
            forward.found(notes.get("pid"))
            ended_at = time.monotonic() if ended_at is None and "status" in notes else ended_at
            if ended_at is not None and launch.passes_file and time.monotonic() - ended_at > _END_SECONDS:
                os.killpg(process.pid, signal.SIGKILL)  # a rank that starts MPI waits for ever for an ended one
            time.sleep(_TICK_SECONDS)
        forward.found(None)
        _kill_remaining_ranks(end_file)
        return read_end(end_file).get("status")


def _kill_remaining_ranks(end_file: Path) -> None:
    """Kill MPI processes on this machine that outlive their launcher, and so hold the run's lock.

    It waits until they have ended, at most 10 seconds; processes that are still alive then are left.

    end_file  file of `write_end`; its path is an argument of each process's command line, by which they are found
    """
    until = time.monotonic() + _GONE_SECONDS
    while (pids := _pids_with_argument(str(end_file))) and time.monotonic() < until:
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(_TICK_SECONDS)


def _pids_with_argument(argument: str) -> list[int]:
    """Return the ids of this machine's processes that have this command-line argument."""
    pids = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            if argument.encode() in path.read_bytes().split(b"\0"):
                pids.append(int(path.parent.name))
    return pids


def read_end(path: Path) -> dict[str, int]:
    """Return {"pid": id, "status": exit status} from the file of the leading process (coordinator).

    "status" is present once the coordinator has ended. {}: the file is missing or unreadable.
    """
    try:
        return json.loads(path.read_text())
    except (OSError, ValueError):
        return {}


def write_end(path: Path, **facts: int) -> None:
    """Write facts on the leading process (coordinator) to a JSON file atomically, for `read_end`.

    facts  `pid`, its process id, and at its end `status`, its exit status
    """
    temporary = path.with_suffix(".new")
    temporary.write_text(json.dumps(facts))
    temporary.rename(path)
