"""Crash states after each step of a commit, also with steps left out or in a wrong order.

Shows:

* A power failure at any moment loses no acknowledged checkpoint (test_every_crash_state_has_a_sound_checkpoint)
"""

import json
import shutil
from pathlib import Path

import crash_states
import numpy as np
import pytest
from places import journal_lines

from storage import checkpoint, checkpoint_writer, durable
from storage.checksums import new_sum
from storage.manifest import content_hash
from storage.schema import ArraySpec

SPECS = (
    ArraySpec("regret/street0", (5, 3), "float32", ("bucket", "slot")),
    ArraySpec("sum", (4,), "float64", ("slot",)),
)


def tables(number):
    generator = np.random.default_rng(number)
    return {spec.name: generator.random(spec.shape).astype(spec.dtype) for spec in SPECS}


def commit(run, number, layout):
    state, identity = {"number": number}, {"run": "crash"}
    options = {"format": "hdf5" if layout == "hdf5" else "zarr", "whole": layout == "whole", "keep": 1}
    options["journal"] = run / "journal.jsonl"
    return checkpoint_writer.commit(run / "checkpoints", number, SPECS, tables(number), state, identity, **options)


BROKEN = "a broken checkpoint has a final name"
NONE_LEFT = "no sound checkpoint is left"
WRONG_DATA = "a checkpoint that verifies has wrong data"
NOT_DURABLE = "commit has returned, but checkpoint 2 may be lost"
FALSE_JOURNAL = "the journal lists a checkpoint that does not exist"
FALSE_MANIFEST = "an undamaged manifest is beside a damaged file"


def record(run, layout, plant=lambda: None):
    """Commit checkpoints 1 and 2; return (disk after checkpoint 1, operations of checkpoint 2).

    plant  function that plants an error before the second commit
    """
    run.mkdir()
    commit(run, 1, layout)
    before = crash_states.load(run)
    plant()
    with durable.recording() as operations:
        commit(run, 2, layout)
    return before, operations


def findings(before, run, operations, scratch, wanted=frozenset(["nothing stops the search"])):
    """Return (problems in all crash states after each prefix of operations, number of different states).

    The longest prefix is first; the search ends when it has found all problems in `wanted`.
    """
    seen, found = {}, set()
    for length in range(len(operations), -1, -1):
        for state in crash_states.states_after(before, run, operations[:length]):
            if found >= wanted:
                return found, len(seen)
            visible = frozenset(item for item in state.items() if "/.tmp-" not in item[0])
            if visible not in seen:
                shutil.rmtree(scratch, ignore_errors=True)
                crash_states.write(state, scratch)
                seen[visible] = newest_number(scratch, found)
            if length == len(operations) and seen[visible] != 2:
                found.add(NOT_DURABLE)
            check_manifests(state, found)
    return found, len(seen)


def newest_number(run, found):
    """Return the number of the checkpoint to resume from; add problems to `found`."""
    root = run / "checkpoints"
    if any(checkpoint.verify(checkpoint.checkpoint_path(root, number)) for number in checkpoint.list_checkpoints(root)):
        found.add(BROKEN)
    newest, _ = checkpoint.newest_valid(root, {"run": "crash"})
    if newest is None:
        found.add(NONE_LEFT)
        return None
    right = newest.state == {"number": newest.number}
    for name, expected in tables(newest.number).items():
        right = right and np.array_equal(newest.read(name), expected)
    if not right:
        found.add(WRONG_DATA)
    if any(json.loads(line)["checkpoint"] > newest.number for line in journal_lines(run / "journal.jsonl")):
        found.add(FALSE_JOURNAL)
    return newest.number


def sum_of(content, kind):
    total = new_sum(kind)
    total.update(content)
    return total.found()


def check_manifests(state, found):
    """Add a problem to `found` if a file differs from an undamaged manifest, also under a temporary name.

    Files may still be missing there.
    """
    for path, data in state.items():
        folder, _, name = path.rpartition("/")
        if name != "manifest.json" or not data or data[-1:] != b"\n" or "/.tmp-drop-" in path:
            continue
        manifest = json.loads(data)
        stated = manifest.pop("content_hash")
        if stated != content_hash(manifest):
            continue
        for file, entry in manifest["files"].items():
            content = state.get(f"{folder}/{file}")
            if content is not None and any(
                sum_of(content, kind) != entry[kind] for kind in entry if kind != "length_bytes"
            ):
                found.add(FALSE_MANIFEST)


@pytest.mark.parametrize("layout", ["zarr", "hdf5", "whole"])
def test_every_crash_state_has_a_sound_checkpoint(tmp_path, layout):
    before, operations = record(tmp_path / "run", layout)
    found, states = findings(before, tmp_path / "run", operations, tmp_path / "scratch")
    assert found == set()
    assert states >= 5
    assert checkpoint.list_checkpoints(tmp_path / "run/checkpoints") == [2]
    kinds = [operation.kind for operation in operations]
    assert kinds.count("rename") == 2  # checkpoint 2 gets its name, checkpoint 1 a temporary one
    assert kinds.index("remove_file") > kinds.index("append")


def without_file_fsync(monkeypatch, run):
    monkeypatch.setattr(durable, "fsync_file", lambda path, file: None)


def without_directory_fsync(skipped):
    """Plant a commit that does not sync the directories for which skipped(path, run) is true."""

    def plant(monkeypatch, run):
        real = durable.fsync_dir
        monkeypatch.setattr(durable, "fsync_dir", lambda path: skipped(path, run) or real(path))

    return plant


def before_the_rename(does):
    """Plant a commit that calls does(run) before it renames checkpoint 2."""

    def plant(monkeypatch, run):
        real = durable.rename

        def rename(source, target):
            if target.name == "000002":
                does(run)
            real(source, target)

        monkeypatch.setattr(durable, "rename", rename)

    return plant


dropping_before_the_rename = before_the_rename(lambda run: durable.remove_tree(run / "checkpoints/000001"))
journal_before_the_rename = before_the_rename(
    lambda run: durable.append_line(run / "journal.jsonl", json.dumps({"checkpoint": 2}))
)


def dropping_in_place(monkeypatch, run):
    def drop_older(root, keep, spared):
        durable.remove_tree(root / "000001")

    monkeypatch.setattr(checkpoint_writer, "drop_older", drop_older)


def manifest_first(operations):
    of_manifest = [operation for operation in operations if operation.path.name == "manifest.json"]
    of_manifest = [operation for operation in of_manifest if operation.kind in ("write_file", "fsync_file")]
    others = [operation for operation in operations if operation not in of_manifest]
    assert len(of_manifest) == 2
    assert others[0].kind == "make_dir"
    return [others[0], *of_manifest, *others[1:]]


def under_its_final_name(operations):
    """Return the operations with final names instead of temporary ones, and without the rename."""
    temporary, final = next((o.path, o.target) for o in operations if o.kind == "rename")

    def moved(path: Path) -> Path:
        return final / path.relative_to(temporary) if path.is_relative_to(temporary) else path

    kept = [operation for operation in operations if operation.target != final]
    return [
        durable.Operation(operation.kind, moved(operation.path), operation.data, operation.target) for operation in kept
    ]


@pytest.mark.parametrize(
    ("plant", "expected"),
    [
        (without_file_fsync, {FALSE_MANIFEST, BROKEN, NONE_LEFT, NOT_DURABLE}),
        (without_directory_fsync(lambda path, run: True), {BROKEN, NONE_LEFT, NOT_DURABLE}),
        (without_directory_fsync(lambda path, run: path.name[:5] == ".tmp-"), {BROKEN, NONE_LEFT, NOT_DURABLE}),
        (without_directory_fsync(lambda path, run: path.name == "tables.zarr"), {BROKEN, NONE_LEFT, NOT_DURABLE}),
        (without_directory_fsync(lambda path, run: path.parent == run), {NONE_LEFT, NOT_DURABLE, FALSE_JOURNAL}),
        (dropping_before_the_rename, {BROKEN, NONE_LEFT}),
        (dropping_in_place, {BROKEN}),
        (journal_before_the_rename, {FALSE_JOURNAL}),
    ],
)
def test_a_planted_error_is_found(tmp_path, monkeypatch, plant, expected):
    run = tmp_path / "run"
    before, operations = record(run, "zarr", plant=lambda: plant(monkeypatch, run))
    found, _ = findings(before, run, operations, tmp_path / "scratch", expected)
    assert found >= expected


@pytest.mark.parametrize(
    ("reorder", "expected"), [(manifest_first, {FALSE_MANIFEST}), (under_its_final_name, {BROKEN})]
)
def test_a_wrong_order_of_operations_is_found(tmp_path, reorder, expected):
    before, operations = record(tmp_path / "run", "zarr")
    found, _ = findings(before, tmp_path / "run", reorder(operations), tmp_path / "scratch", expected)
    assert found >= expected
