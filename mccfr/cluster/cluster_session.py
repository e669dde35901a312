"""Sessions on several machines: finds the ranks, checks that they agree, and starts their work.

Every rank calls `take_part`. Rank 0 creates or opens the run and gets its outcome; the others train until rank 0 ends
them.
"""

import os
import signal
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

from mccfr.cluster.assignment import shared_out
from mccfr.cluster.capacity import check_cluster, memory_of_machines, ranks_problem
from mccfr.cluster.compatibility import disagreement, facts_of, new_token, shared_directory
from mccfr.cluster.messages import RankLocation, copy_machines
from mccfr.cluster.mpi import MpiEngine, World, host_name, serve
from mccfr.cluster.rank_pool import on_engine, restore_copies
from mccfr.cluster.trainer import Trainer, new_order
from mccfr.common.signals import take
from mccfr.config.plugins import grant, permissions
from mccfr.games.game import Game
from mccfr.runs.directory.run import Run, open_run
from mccfr.runs.reporter import Reporter
from mccfr.runs.session.errors import AbandonedError
from mccfr.runs.session.train_and_export import train_and_export
from mccfr.runs.session.training_session import Outcome
from storage.damage import UnreadableError
from storage.durable import error_text
from storage.free_space import available_memory_bytes
from storage.open_directory import OpenDirectory, errors_shown, shown

Ended = tuple[Run, Outcome, Path | None]
"""The run, its outcome, and the path of the export."""


def rank_locations(hosts: Sequence[str], workers: int) -> list[RankLocation]:
    """Return the location of each rank.

    Ranks on one host are grouped into machines of `workers` ranks, in order.
    """
    places: list[RankLocation] = []
    counted: dict[str, int] = {}
    numbers: dict[tuple[str, int], int] = {}
    for host in hosts:
        part = counted.get(host, 0) // max(1, workers)
        counted[host] = counted.get(host, 0) + 1
        places.append(RankLocation(numbers.setdefault((host, part), len(numbers)), host, 0))
    return places


def take_part(
    world: World, prepare: Callable[[], tuple[Run, Game]], reporter: Reporter, *, force: bool = False
) -> Ended | None:
    """Do this rank's part of a session; return None on training ranks.

    prepare  creates or opens the run; called by rank 0 only
    force    do not check memory

    On rank 0, raises as `prepare` and `train`, and `ValueError` if machines do not agree.
    """
    if world.rank:
        _train(world)
        return None
    if world.size < 2:
        raise ValueError("one rank only coordinates: start at least two ranks")
    try:
        run, game = prepare()
    except BaseException:
        _tell_all(world, {"go": False})
        raise
    with OpenDirectory(run.directory) as held, errors_shown():
        return run, *_coordinate(world, replace(run, directory=held.path), game, reporter, force=force)


def _coordinate(world: World, run: Run, game: Game, reporter: Reporter, *, force: bool) -> tuple[Outcome, Path | None]:
    """Do the part of rank 0 for a run whose directory it holds open; raises as `take_part`."""
    try:
        ranks = _agreed(world, run, game, force=force)
    except BaseException:
        _tell_all(world, {"go": False})
        raise
    for rank, machine in enumerate(copy_machines(ranks)):
        world.send_text(1 + rank, {"go": True, "keeps_for": machine})
    game = world.share_buckets(game, run.algorithm)
    found = [world.receive_text(rank) for rank in range(1, world.size)]
    order = new_order(run, game)
    engine = MpiEngine(world, ranks, len(order.owner), len(order.first))
    lacking = [answer for answer in found if "problem" in answer]
    _tell_all(world, {"go": not lacking})
    _refuse(lacking)
    try:
        restore_copies(run, game, engine, reporter)
        return train_and_export(run, game, reporter, force=force, pools=on_engine(engine))
    except AbandonedError:
        raise
    except BaseException:
        engine.close()
        raise


def _refuse(lacking: Sequence[Mapping[str, Any]]) -> None:
    """Raise `RuntimeError` for the first answer with a system error, else `ValueError` for the first."""
    for answer in sorted(lacking, key=lambda answer: not answer["system"]):
        kind = RuntimeError if answer["system"] else ValueError
        raise kind(f"{answer['host']} cannot take part: {answer['problem']}")


def _tell_all(world: World, value: Mapping[str, Any]) -> None:
    for rank in range(1, world.size):
        world.send_text(rank, value)


def _agreed(world: World, run: Run, game: Game, *, force: bool) -> list[RankLocation]:
    """Return the locations of the training ranks after checking that all agree; else raises `ValueError`.

    force  do not check the memory of the machines
    """
    check_cluster(run.config, -(-(world.size - 1) // max(1, run.config.run.workers)))
    token = new_token(run)
    _tell_all(world, {"go": True, "run": str(run.directory.resolve()), "token": token, **_elsewhere(run)})
    facts = [facts_of(run), *(world.receive_text(rank) for rank in range(1, world.size))]
    _refuse([fact for fact in facts if "problem" in fact])
    problem = disagreement(facts)
    if problem is not None:
        raise ValueError(problem)
    places = rank_locations([fact["host"] for fact in facts[1:]], run.config.run.workers)
    check_cluster(run.config, len({place.machine for place in places}))
    if not force:
        places = with_memory(places, [fact["memory_bytes"] for fact in facts[1:]])
        check_machine_memory(run, game, places)
    return [place._replace(pid=fact["pid"]) for place, fact in zip(places, facts[1:], strict=True)]


def with_memory(locations: Sequence[RankLocation], memory_bytes: Sequence[int]) -> list[RankLocation]:
    """Return the places with their machines' memory, given the available bytes of each rank's host.

    A host's memory is divided equally among its machines.
    """
    on_host = Counter(host for _, host in {(place.machine, place.host) for place in locations})
    parts = (available / on_host[place.host] for place, available in zip(locations, memory_bytes, strict=True))
    return [place._replace(memory_bytes=part) for place, part in zip(locations, parts, strict=True)]


def check_machine_memory(run: Run, game: Game, locations: Sequence[RankLocation]) -> None:
    """Raise `ValueError` if no placement of the strata fits in the memory of the machines."""
    assert game.strata is not None
    memory = memory_of_machines(run.config, game, run.layout(game), locations)
    owner = shared_out(game.strata.shares, [1.0] * len(locations), memory)
    problem = ranks_problem(run.config, game, run.layout(game), locations, owner)
    if problem is not None:
        raise ValueError(f"{problem}; or use --force")


def _elsewhere(run: Run) -> dict[str, Any]:
    """Return paths and permissions that ranks need besides the run directory."""
    path, code = run.abstraction_path, permissions()
    return {"code": code} if path is None else {"code": code, "abstraction": str(path.resolve())}


def _train(world: World) -> None:
    """Do the part of a training rank: check agreement, create tables, carry out orders. Ignores signals."""
    take(signal.SIG_IGN)
    message = world.receive_text(0)
    if not message["go"]:
        return
    with ExitStack() as stack:
        run = None
        try:
            directory = shared_directory(Path(message["run"]), message["token"])
            stack.callback(directory.close)
            grant(message["code"])
            run = open_run(directory.path, Path(message["abstraction"]) if "abstraction" in message else None)
            world.send_text(0, {**facts_of(run), "pid": os.getpid(), "memory_bytes": available_memory_bytes()})
        except (ValueError, OSError) as error:
            world.send_text(0, _problem(error))
        _train_strata(world, run)


def _train_strata(world: World, run: Run | None) -> None:
    """Carry out the coordinator's orders for a run, if it needs this rank; None: the run was not opened."""
    message = world.receive_text(0)
    if not message["go"] or run is None:
        return
    game, trainer = run.build_game(), None
    game = world.share_buckets(game, run.algorithm)
    try:
        trainer = Trainer(run, game, world.rank - 1, message["keeps_for"])
        world.send_text(0, {"host": host_name()})
    except (MemoryError, ValueError, OSError) as error:
        world.send_text(0, _problem(error))
    if world.receive_text(0)["go"] and trainer is not None:
        serve(world, trainer)


def _problem(error: Exception) -> dict[str, Any]:
    """Return a rank's answer for an error; `system`: True if the operating system could not read a file."""
    read = isinstance(error, UnreadableError)
    text = str(error) if read else error_text(error)
    return {"host": host_name(), "problem": " ".join(shown(text).split()) or type(error).__name__, "system": read}
