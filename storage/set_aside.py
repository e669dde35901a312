"""Marks checkpoints from which a run must not resume: damaged ones, and ones that the user rejects.

A damaged checkpoint stays in place. Its *note*, a JSON file `checkpoints/000123.note`, lists the damage. The run does
not remove checkpoints with a note when it removes old ones. A checkpoint that the user sets aside moves to
`set-aside/000123`, with a note too.

The note lists the block versions that the checkpoint names: directories with ranges of the tables' rows. The run keeps
these versions as well (`storage.block_tables.versions_of_checkpoints`). If the manifest cannot be read, the note lists
all versions that exist.
"""

import json
from collections.abc import Sequence
from pathlib import Path

from storage import durable
from storage.block_tables import BLOCKS, CHECKPOINTS, SET_ASIDE, list_versions, versions_of_checkpoint
from storage.checkpoint import checkpoint_path, list_checkpoints, list_notes, note_path, open_checkpoint


def note_damage(run: Path, number: int, problems: Sequence[str]) -> None:
    """Mark a checkpoint as damaged by a note, the file `NUMBER.note` in the checkpoint's parent directory.

    run       run directory
    number    number of the checkpoint
    problems  sentences about the damage, stored in the note

    The note is fsynced. It is JSON that also lists the parts of tables in other directories that the checkpoint needs,
    or all if these are unknown. An existing note stays as it is.
    """
    path = checkpoint_path(run / CHECKPOINTS, number)
    if not note_path(path).exists():
        durable.replace_file(note_path(path), _note(run, path, problems))


def note_sound(run: Path, number: int) -> None:
    """Remove the note that marks checkpoint `number` as damaged, and notes without a checkpoint.

    run     run directory
    number  number of a valid checkpoint
    """
    root = run / CHECKPOINTS
    existing = {note_path(checkpoint_path(root, each)) for each in list_checkpoints(root) if each != number}
    stale = [path for path in list_notes(root) if path not in existing]
    for path in stale:
        durable.remove_file(path)
    if stale:
        durable.fsync_dir(root)


def set_aside(run: Path, number: int, reason: str) -> Path:
    """Move checkpoint `number` of the run directory `run` to `set-aside/` durably; return its new path.

    The run does not resume from it any more. The checkpoint may be damaged. `reason` is one sentence, stored in a JSON
    file `NUMBER.note` beside the moved checkpoint.
    """
    path = checkpoint_path(run / CHECKPOINTS, number)
    durable.make_dirs(run / SET_ASIDE)
    target, tries = run / SET_ASIDE / path.name, 1
    while target.exists():
        target, tries = target.with_name(f"{path.name}-{tries}"), tries + 1
    durable.replace_file(note_path(target), _note(run, path, [reason]))  # first: its blocks must stay named
    durable.rename(path, target)
    durable.fsync_dir(target.parent)
    durable.fsync_dir(path.parent)
    return target


def _note(run: Path, path: Path, problems: Sequence[str]) -> bytes:
    try:
        named = sorted(versions_of_checkpoint(open_checkpoint(path)))
    except (OSError, ValueError):
        named = list_versions(run)
    return json.dumps({"problems": list(problems), BLOCKS: named}, indent=1).encode()
