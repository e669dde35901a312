"""Implements `verify`: finds the kind of artefact at a path, and lists its problems."""

from pathlib import Path
from typing import Any

from abstraction.buckets import is_abstraction, verify_abstraction
from mccfr.policy import is_policy, verify_policy
from mccfr.policy.export.networks import is_networks, verify_networks
from mccfr.runs.directory import journal_records
from mccfr.runs.directory.run import CHECKPOINTS, JOURNAL, checkpoint_identity, is_run, open_to_look, read_run_manifest
from mccfr.runs.directory.state import state_problem
from mccfr.runs.reporter import Reporter, Silent
from mccfr.solvers.game_from_config import opponents_buckets
from storage import checkpoint as checkpoints
from storage.block_tables import block_problems
from storage.checkpoint import identity_problem
from storage.damage import DamagedError
from storage.directory_lock import ReadLock
from storage.locked_checkpoints import lock_each


def problems_of(path: Path, reporter: Reporter | None = None, abstraction: Path | None = None) -> list[str]:
    """Check every byte of a run, checkpoint, policy, directory of networks or abstraction.

    Returns a sentence for each problem. The abstractions that a run uses are checked too.

    reporter     receives progress
    abstraction  present path of the run's card abstraction, if it was moved

    Raises `ValueError` if the path is of none of these kinds, and for an abstraction that the run does not use. Raises
    `UnreadableError` if the system cannot read a file.
    """
    reporter = reporter or Silent()
    reporter.phase(f"reading {path}")
    if abstraction is not None and not is_run(path):
        raise ValueError(f"{path} is not a run directory: leave --abstraction out")
    if is_policy(path):
        return verify_policy(path)
    if is_networks(path):
        return verify_networks(path)
    if checkpoints.is_checkpoint(path):
        try:
            with ReadLock(path):
                return _problems_of_checkpoint(path, reporter, {}, _identity_around(path))
        except (DamagedError, FileNotFoundError, ValueError) as error:
            return [str(error)]
    if is_run(path):
        return _problems_of_run(path, reporter, abstraction)
    if is_abstraction(path):
        return verify_abstraction(path)
    raise ValueError(
        f"{path} is neither a run, a checkpoint, a policy, networks nor an abstraction: give what mccfr has made"
    )


def _identity_around(path: Path) -> dict[str, Any] | None:
    """Return the identity of the run in whose directory a checkpoint lies; None if in no run.

    It is {"run_identity": a hash, "game": the game's name}, which each checkpoint of the run must state.

    Raises `OSError` or `ValueError` if the run's manifest is damaged, unreadable or of another format.
    """
    run = path.absolute().parent.parent
    if path.absolute().parent.name != CHECKPOINTS or not is_run(run):
        return None
    return checkpoint_identity(read_run_manifest(run))


def _problems_of_checkpoint(
    path: Path, reporter: Reporter, checked_versions: dict[str, list[str]], identity: dict[str, Any] | None
) -> list[str]:
    """Check a checkpoint, the blocks that it names, and its state; return a sentence for each problem.

    The state has counts and random states. Blocks are parts of the tables, which runs out of core or on several
    machines store beside checkpoints. Several checkpoints may name the same stored version of a block.

    checked_versions  {name: problems} of stored blocks already checked for other checkpoints; updated in place
    identity          identity that its run requires; None: not compared, as for a stage of an abstraction's build,
                      which is a checkpoint too
    """
    problems = checkpoints.verify(path)
    if problems:
        return problems
    checkpoint = checkpoints.open_checkpoint(path)
    problem = None if identity is None else identity_problem(checkpoint, identity)
    if problem is None and "run_identity" in checkpoint.identity:
        problem = state_problem(checkpoint.state)
    return [f"{path.name}: {problem}"] if problem else block_problems(checkpoint, checked_versions)


def _problems_of_run(path: Path, reporter: Reporter, abstraction: Path | None) -> list[str]:
    try:
        run = open_to_look(path, abstraction)
    except (DamagedError, FileNotFoundError, ValueError) as error:
        if abstraction is not None and not isinstance(error, DamagedError):
            raise
        return [str(error)]
    if run.is_opaque:
        reporter.message(f"{path} names a user's code, which verify does not run: its config.toml was not compared")
    problems, blocks = [run.lacks] if run.lacks else [], dict[str, list[str]]()  # checkpoints may share blocks
    opponents = opponents_buckets(run.config, run.directory)
    for abstraction_path in (run.abstraction_path, None if opponents is None else Path(opponents.path)):
        if abstraction_path is not None and (not run.lacks or is_abstraction(abstraction_path)):
            reporter.phase(f"reading the abstraction {abstraction_path}")
            problems += [f"{abstraction_path}: {problem}" for problem in verify_abstraction(abstraction_path)]
    recorded = {record["checkpoint"]: record["manifest"] for record in run.read(JOURNAL) if "manifest" in record}
    numbers = checkpoints.list_checkpoints(run.path(CHECKPOINTS))
    for lock in lock_each(run.path(CHECKPOINTS)):
        directory, number = lock.path, int(lock.path.name)
        position = sum(other < number for other in numbers)
        reporter.phase(f"reading checkpoint {number}, {position + 1} of {len(numbers)}", position / len(numbers))
        try:
            own = _problems_of_checkpoint(directory, reporter, blocks, run.identity)
            if not own and recorded.get(number, "") not in ("", checkpoints.open_checkpoint(directory).content_hash):
                own = [f"{directory.name}: it is another checkpoint than the one that {JOURNAL} notes"]
        except (OSError, ValueError):
            if lock.is_in_place():
                raise
        else:
            problems += own if lock.is_in_place() else []  # a removed checkpoint no longer belongs to the run
    for name in journal_records.JOURNALS:
        problems += journal_records.problems(run.path(name))
    return problems
