"""`verify`: which kind of artefact a path holds, and everything that is wrong with it."""

from pathlib import Path

from abstraction.buckets import Abstraction, is_abstraction, verify_abstraction
from mccfr.policy import is_policy, verify_policy
from mccfr.policy.export.networks import is_networks, verify_networks
from mccfr.runs.directory import records
from mccfr.runs.directory.run import CHECKPOINTS, JOURNAL, is_run, open_run
from mccfr.runs.directory.state import state_problem
from mccfr.runs.reporter import Reporter, Silent
from storage import checkpoint as checkpoints
from storage.blocks import block_problems


def problems_of(path: Path, reporter: Reporter | None = None, abstraction: Path | None = None) -> list[str]:
    """Check every byte of a run, checkpoint, policy, networks or abstraction: a sentence a problem, [] if it is sound.

    reporter     told which checkpoint of a run is read
    abstraction  where the run's card abstraction lies now, if it was moved

    Raises `ValueError` where the path holds none of these, and for an abstraction beside anything but a run.
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
        return _problems_of_checkpoint(path, reporter, {})
    if is_run(path):
        return _problems_of_run(path, reporter, abstraction)
    if is_abstraction(path):
        return verify_abstraction(path) or _report_stages(path, reporter)
    raise ValueError(
        f"{path} is neither a run, a checkpoint, a policy, networks nor an abstraction: give what mccfr has made"
    )


def _report_stages(path: Path, reporter: Reporter) -> list[str]:
    """Say what cannot be seen of a sound abstraction; no problems."""
    for stage in Abstraction(path).stages.values():
        if stage.unseen is not None:
            reporter.message(stage.unseen)
    return []


def _problems_of_checkpoint(path: Path, reporter: Reporter, known: dict[str, list[str]]) -> list[str]:
    """Of its bytes and those of the blocks that it names, and of its state if a run wrote it.

    reporter  what cannot be seen of it
    known  as of `block_problems`

    An abstraction's stages are checkpoints too.
    """
    problems = checkpoints.verify(path)
    if problems:
        return problems
    found = checkpoints.open_checkpoint(path)
    if found.unseen is not None:
        reporter.message(found.unseen)
    problem = state_problem(found.state) if "run_identity" in found.identity else None
    return [f"{path.name}: {problem}"] if problem else block_problems(found, known)


def _problems_of_run(path: Path, reporter: Reporter, abstraction: Path | None) -> list[str]:
    try:
        run = open_run(path, abstraction, opaque=True)
    except (OSError, ValueError) as error:
        return [str(error)]
    if run.is_opaque:
        reporter.message(f"{path} names code of a user's, which is not run here: its config.toml was not compared")
    if run.unseen is not None:
        reporter.message(run.unseen)
    problems, blocks = list[str](), dict[str, list[str]]()  # several checkpoints may name the same ones
    root = run.path(CHECKPOINTS)
    numbers = checkpoints.list_checkpoints(root)
    noted = {record["checkpoint"]: record["manifest"] for record in run.read(JOURNAL) if "manifest" in record}
    for place, number in enumerate(numbers, 1):
        reporter.phase(f"reading checkpoint {number}, {place} of {len(numbers)}", (place - 1) / len(numbers))
        directory = checkpoints.checkpoint_path(root, number)
        found = _problems_of_checkpoint(directory, reporter, blocks)
        if not found and noted.get(number, "") not in ("", checkpoints.open_checkpoint(directory).content_hash):
            found = [f"{directory.name}: it is another checkpoint than the one that {JOURNAL} notes"]
        problems += found
    for name in records.JOURNALS:
        problems += records.problems(run.path(name))
    return problems
