"""Finds the checkpoint from which training resumes, and moves unwanted checkpoints away."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial

from mccfr.runs.directory.run import CHECKPOINTS, Run, lock
from mccfr.runs.directory.state import open_run_checkpoint
from mccfr.runs.reporter import Reporter
from storage import set_aside
from storage.block_tables import SET_ASIDE, block_problems
from storage.checkpoint import Checkpoint, checkpoint_path, list_checkpoints, newest_valid, open_checkpoint
from storage.damage import DamagedError, UnreadableError
from storage.open_directory import shown


def newest_sound(run: Run, reporter: Reporter) -> Checkpoint | None:
    """Return the newest valid checkpoint of a run, or None if it has none.

    Call it only while this process holds the run's lock.

    Damaged checkpoints that are newer are passed over with a message. If a valid one is found, damaged ones are marked
    on disk, so that they and the files that they need are kept (`storage.set_aside`).

    Raises `RuntimeError` if all checkpoints are damaged, `UnreadableError` if one cannot be read.
    """
    root = run.path(CHECKPOINTS)
    numbers = list_checkpoints(root)
    try:
        newest, problems = newest_valid(root, run.identity, partial(block_problems, checked_versions={}))
    except UnreadableError as error:
        with advising(run, error.number):
            raise
    if numbers and newest is None:
        raise RuntimeError(
            f"{run.directory}: no checkpoint can be used ({'; '.join(problems)}): nothing was changed; restore a copy "
            f"of one, or begin again with mccfr resume {run.directory} --from-scratch, which keeps the old ones in "
            f"{SET_ASIDE}/"
        )
    for problem in problems:
        reporter.message(f"damaged checkpoint passed over: {problem}")
    if newest is None:
        return None
    for number in numbers:
        name = checkpoint_path(root, number).name
        if number > newest.number:
            set_aside.note_damage(run.directory, number, [text for text in problems if text.startswith(name)])
        elif number < newest.number:
            _note_if_damaged(run, number)
    set_aside.note_sound(run.directory, newest.number)
    return open_run_checkpoint(run, newest.number)


def _note_if_damaged(run: Run, number: int) -> None:
    """Mark an older checkpoint as damaged on disk if its manifest or state is damaged.

    Without them it is unknown which separately stored parts of the tables it needs, and whether it is kept permanently.
    """
    try:
        with advising(run, number):
            open_checkpoint(checkpoint_path(run.path(CHECKPOINTS), number))
    except (DamagedError, ValueError) as error:
        set_aside.note_damage(run.directory, number, [str(error)])


@contextmanager
def advising(run: Run, number: int | None) -> Iterator[None]:
    """Add the advice to set a checkpoint aside to an `UnreadableError` raised in the `with` block.

    number  number of the checkpoint; None: raise the error as it is
    """
    try:
        yield
    except UnreadableError as error:
        if number is None:
            raise
        path = shown(str(run.directory))
        raise error.advised(
            f"; if it never succeeds, mccfr resume {path} --set-aside {number} puts this checkpoint aside"
        ) from error


def put_aside(run: Run, numbers: Sequence[int] | None, reporter: Reporter) -> None:
    """Move checkpoints to the run's folder `set-aside/`, so that the run does not resume from them.

    The run's lock is held meanwhile. Each moved checkpoint is reported.

    numbers  numbers of the checkpoints to move; None: all

    Raises `ValueError`, before moving anything, for an unknown number, and if `numbers` lists all checkpoints. Raises
    `BlockingIOError` while another process works on the run.
    """
    root = run.path(CHECKPOINTS)
    with lock(run):
        existing = list_checkpoints(root)
        for number in numbers or ():
            if number not in existing:
                known = ", ".join(map(str, existing)) or "none"
                raise ValueError(f"{run.directory} has no checkpoint {number} to set aside; it has {known}")
        if numbers and set(existing) == set(numbers):
            raise ValueError(
                f"{run.directory} has only checkpoints {', '.join(map(str, existing))}, and one is needed to continue: "
                f"leave one, or give --from-scratch to begin again and keep the old ones in {SET_ASIDE}/"
            )
        for number in existing if numbers is None else numbers:
            target = set_aside.set_aside(run.directory, number, "put aside by the user")
            reporter.message(f"checkpoint {number} is kept in {target}, and the run does not go on from it")
