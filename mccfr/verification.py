"""`verify`: which kind of artefact a path holds, and everything that is wrong with it."""

from pathlib import Path

from abstraction.buckets import is_abstraction, verify_abstraction
from mccfr.policy import is_policy, verify_policy
from mccfr.training import records
from mccfr.training.rundir import CHECKPOINTS, is_run, open_run
from storage import checkpoint as checkpoints


def problems_of(path: Path) -> list[str]:
    """Check every byte of a run, checkpoint, policy or abstraction; one sentence a problem, [] for a sound artefact.

    Raises `ValueError` where the path holds none of these.
    """
    if is_policy(path):
        return verify_policy(path)
    if checkpoints.is_checkpoint(path):
        return checkpoints.verify(path)
    if is_run(path):
        return _problems_of_run(path)
    if is_abstraction(path):
        return verify_abstraction(path)
    raise ValueError(
        f"{path} is neither a run, a checkpoint, a policy nor an abstraction: give a directory that mccfr has made"
    )


def _problems_of_run(path: Path) -> list[str]:
    try:
        run = open_run(path)
    except (OSError, ValueError) as error:
        return [str(error)]
    problems = []
    root = run.path(CHECKPOINTS)
    for number in checkpoints.list_checkpoints(root):
        directory = checkpoints.checkpoint_path(root, number)
        problems += checkpoints.verify(directory)
    for name in records.JOURNALS:
        problems += records.problems(run.path(name))
    return problems
