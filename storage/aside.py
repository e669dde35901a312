"""Checkpoints that a run keeps and does not go on from: damaged ones, and those that the user has put aside.

A damaged checkpoint stays where it is.  A note beside it, `checkpoints/000123.note`, says what is wrong with it:
retention removes no checkpoint that has one.  A checkpoint that the user puts aside moves to `set-aside/000123`, with a
note too.  A note lists the versions of blocks that the checkpoint names, or all that there were where its manifest
cannot say so, and those versions stay as well (`storage.blocks.versions_named`).
"""

import json
from collections.abc import Sequence
from pathlib import Path

from storage import durable
from storage.blocks import BLOCKS, CHECKPOINTS, SET_ASIDE, list_versions, named_by
from storage.checkpoint import checkpoint_path, list_checkpoints, list_notes, note_path, open_checkpoint


def note_damage(run: Path, number: int, problems: Sequence[str]) -> None:
    """Note durably what is wrong with checkpoint `number` of a run; nothing where there is a note."""
    path = checkpoint_path(run / CHECKPOINTS, number)
    if not note_path(path).exists():
        durable.replace_file(note_path(path), _note(run, path, problems))


def note_sound(run: Path, number: int) -> None:
    """Remove the note of checkpoint `number`, and those of checkpoints that are gone."""
    root = run / CHECKPOINTS
    there = {note_path(checkpoint_path(root, each)) for each in list_checkpoints(root) if each != number}
    stale = [path for path in list_notes(root) if path not in there]
    for path in stale:
        durable.remove_file(path)
    if stale:
        durable.fsync_dir(root)


def set_aside(run: Path, number: int, why: str) -> Path:
    """Move checkpoint `number` of a run to `set-aside/`, durably, and return its new path; nothing of it is read."""
    path = checkpoint_path(run / CHECKPOINTS, number)
    durable.make_dirs(run / SET_ASIDE)
    target, tries = run / SET_ASIDE / path.name, 1
    while target.exists():
        target, tries = target.with_name(f"{path.name}-{tries}"), tries + 1
    durable.replace_file(note_path(target), _note(run, path, [why]))  # before the move: its blocks are never unnamed
    durable.rename(path, target)
    durable.fsync_dir(target.parent)
    durable.fsync_dir(path.parent)
    return target


def _note(run: Path, path: Path, problems: Sequence[str]) -> bytes:
    try:
        named = sorted(named_by(open_checkpoint(path)))
    except (OSError, ValueError):
        named = list_versions(run)
    return json.dumps({"problems": list(problems), BLOCKS: named}, indent=1).encode()
