"""Defects planted in durable code and estimators, and the tests that must fail with each.

Defects of `storage` are here, those of `abstraction`, `mccfr.runs` and `mccfr.policy` in `planted_in_runs`. Examples
are a missing sync, a swapped order and a skipped check. `planted_by_seed` has others, drawn from mechanical changes.
Defects of evaluations, re-solving and experiments are in `planted_in_estimators`. `test_planted_defects.py` runs all.
"""

from mutants import Defect
from planted_by_seed import DRAWN
from planted_in_estimators import IN_ESTIMATORS
from planted_in_runs import IN_RUNS

DURABLE = "storage/test_durable.py"
JOURNALS = f"{DURABLE}::test_a_journal_is_written_anew_after_an_fsync_that_failed"
STEPS = f"{DURABLE}::test_what_changes_a_file_or_makes_a_folder_waits_for_the_disk"
SYNCS = f"{DURABLE}::test_a_sync_reaches_the_system_when_all_of_the_content_has"
CHECKPOINTS = "storage/test_checkpoint.py"
CRASHES = "storage/test_crash_states.py::test_every_crash_state_has_a_sound_checkpoint[zarr]"
OUTPUTS, BLOCKS, LISTING = (
    "storage/test_atomic_outputs.py",
    "storage/test_block_tables.py",
    "storage/test_manifest_files.py",
)
NAMED = "storage/test_errors_name_paths.py::test_a_folder_that_cannot_be_read_is_an_error"
LOCKS, LEFT = "storage/test_run_lock.py", "storage/test_live_sweep.py"

IN_STORAGE = (
    # --- storage.durable ---
    Defect(
        "storage.durable",
        "            _unsynced.add(path)",
        "            pass",
        "A journal whose fsync failed is synced again, which brings nothing to the disk.",
        JOURNALS,
    ),
    Defect(
        "storage.durable",
        "    if path in _unsynced:",
        "    if False:",
        "After a failed fsync the next line is appended to the file whose pages the system has dropped.",
        JOURNALS,
    ),
    Defect(
        "storage.durable",
        "    if created:",
        "    if False:",
        "The name of a new journal is not synced.",
        JOURNALS,
    ),
    Defect(
        "storage.durable",
        "        file.flush()\n",
        "",
        "A file is synced before its last bytes have reached the system.",
        SYNCS,
    ),
    Defect(
        "storage.durable",
        "os.fsync(file.fileno())",
        "pass",
        "Files are not synced.",
        SYNCS,
    ),
    Defect(
        "storage.durable",
        "os.fsync(descriptor)",
        "pass",
        "Folders are not synced.",
        SYNCS,
    ),
    Defect(
        "storage.durable",
        "    fsync_dir(path.parent)\n    return result",
        "    return result",
        "A replaced file's name is not synced.",
        STEPS,
    ),
    Defect(
        "storage.durable",
        "    fsync_dir(path.parent)\n\n\ndef make_dirs",
        "\n\ndef make_dirs",
        "The name of a new folder is not synced.",
        STEPS,
    ),
    Defect(
        "storage.durable",
        "sorted(folders, key=_depth, reverse=True)",
        "sorted(folders, key=_depth)",
        "A folder is synced before those inside it.",
        f"{DURABLE}::test_adopted_trees_are_synced_from_the_deepest_directory_up",
    ),
    Defect(
        "storage.durable",
        "        discard(temporary)\n        raise",
        "        raise",
        "A replacement that failed leaves its temporary file.",
        f"{DURABLE}::test_a_failed_replacement_leaves_the_old_content_and_nothing_else",
    ),
    Defect(
        "storage.durable",
        "if whole < file.seek(0, os.SEEK_END):",
        "if False:",
        "The next line is appended to a torn one.",
        f"{DURABLE}::test_a_torn_last_line_is_not_read_and_cut_off_before_the_next",
    ),
    # --- checkpoints and their files ---
    Defect(
        "storage.checkpoint_writer",
        "        durable.fsync_dir(temporary)",
        "        pass",
        "A checkpoint's folder is not synced before it has its name.",
        CRASHES,
    ),
    Defect(
        "storage.checkpoint_writer",
        "    content_hash = _write_and_rename(",
        "    durable.drop_trees(checkpoint_path(root, n) for n in list_checkpoints(root))\n"
        "    content_hash = _write_and_rename(",
        "Older checkpoints go before the new one is whole.",
        CRASHES,
    ),
    Defect(
        "storage.checkpoint_writer",
        "    if keep < 1:",
        "    if keep < 0:",
        "None need stay.",
        f"{CHECKPOINTS}::test_only_the_newest_are_kept_and_the_journal_has_a_line_for_each",
    ),
    Defect(
        "storage.checkpoint_writer",
        "    if removed:",
        "    if False:",
        "What is swept may be there again after a power cut.",
        f"{CHECKPOINTS}::test_temporary_leftovers_are_swept_and_nothing_else",
    ),
    Defect(
        "storage.checkpoint_writer",
        "if array.shape != spec.shape or array.dtype != spec.numpy_dtype:",
        "if array.shape != spec.shape:",
        "Cells of another dtype than the schema's are written.",
        f"{CHECKPOINTS}::test_bad_input_touches_nothing",
    ),
    Defect(
        "storage.checkpoint",
        "    problems.extend(_extra_entries(path, checkpoint.files))\n",
        "",
        "Files that no manifest lists are not named.",
        f"{CHECKPOINTS}::test_missing_extra_and_truncated_files_are_reported_by_name",
    ),
    Defect(
        "storage.checkpoint",
        'path.name != f"{checkpoint.number:06d}"',
        "False",
        "A checkpoint under another's number is sound.",
        f"{CHECKPOINTS}::test_missing_extra_and_truncated_files_are_reported_by_name",
    ),
    Defect(
        "storage.checkpoint",
        "if canonical_json(stored) == canonical_json(expected):",
        "if True:",
        "A checkpoint of another run is gone on from.",
        f"{CHECKPOINTS}::test_another_identity_and_another_format_version_are_refused_with_both_values",
    ),
    Defect(
        "storage.checkpoint",
        "        self._check_files([STATE])\n",
        "",
        "The state is read without a look at its checksum.",
        f"{CHECKPOINTS}::test_a_state_of_another_checkpoint_is_not_read",
    ),
    Defect(
        "storage.manifest",
        ' and data == exact_json({**content, _HASH: stated}, "manifest")',
        "",
        "Bits that change in the white space of a manifest are not noticed.",
        f"{DURABLE}::test_manifest_round_trip_and_every_flipped_bit",
    ),
    Defect(
        "storage.manifest",
        "if version != format_version and version not in other_versions:",
        "if version > format_version:",
        "Manifests of versions that are not read any more are read.",
        f"{DURABLE}::test_other_formats_and_versions_are_refused_with_both_values",
    ),
    Defect(
        "storage.manifest",
        "    if json.loads(text) != value:",
        "    if False:",
        "A state is written that reads back as another.",
        f"{DURABLE}::test_values_that_json_would_change",
    ),
    Defect(
        "storage.manifest_files",
        "if status.st_size != stated.length_bytes:",
        "if status.st_size < stated.length_bytes:",
        "A file that is too long is taken for sound where only lengths are compared.",
        LISTING,
    ),
    Defect(
        "storage.manifest_files",
        "        if path.is_symlink():",
        "        if False:",
        "What a manifest lists may be a link.",
        LISTING,
    ),
    Defect(
        "storage.contiguous_arrays",
        "out.nbytes) == cells.crc32c",
        "out.nbytes) >= 0",
        "Cells are read without a look at their checksum.",
        "storage/test_contiguous_arrays.py::test_damaged_cells_are_never_taken_for_sound",
    ),
    Defect(
        "storage.contiguous_arrays",
        "    if whole != stated:",
        "    if False:",
        "What lies between cells is not compared.",
        "storage/test_contiguous_arrays.py::test_a_changed_bit_beside_the_cells_is_named",
    ),
    Defect(
        "storage.journal_reader",
        "start, end = 0, durable.complete_lines_length(file)",
        "start, end = 0, file.seek(0, 2)",
        "A torn last line is read.",
        "storage/test_journal_reader.py::test_lines_from_the_end_are_those_from_the_beginning",
    ),
    # --- outputs, copies, blocks ---
    Defect(
        "storage.atomic_outputs",
        "if leftover.lstat().st_mtime < time.time() - _LEFT_SECONDS:",
        "if True:",
        "Temporaries of other processes are swept whatever their age.",
        OUTPUTS,
    ),
    Defect(
        "storage.atomic_outputs",
        "        durable.fsync_dir(path.parent)",
        "        pass",
        "An output's name is not synced.",
        OUTPUTS,
    ),
    Defect(
        "storage.atomic_outputs",
        "        check_output(path, replaceable)  # writing",
        "        pass  # writing",
        "What has taken the name while an output was written is overwritten.",
        OUTPUTS,
    ),
    Defect(
        "storage.atomic_outputs",
        "    if path.is_symlink() or (path.exists()",
        "    if (path.exists()",
        "A link is replaced.",
        OUTPUTS,
    ),
    Defect(
        "storage.atomic_outputs",
        "        durable.exchange(temporary, path)",
        "        durable.remove_tree(path), durable.rename(temporary, path)",
        "The old output goes before the new one has its name.",
        OUTPUTS,
    ),
    Defect(
        "storage.mirror",
        "            durable.fsync_dir(folder)",
        "            pass",
        "The folders of a copy are not synced before its rename.",
        BLOCKS,
    ),
    Defect(
        "storage.damage",
        "os.walk(path, topdown, _raise)",
        "os.walk(path, topdown)",
        "Files of a folder that cannot be listed are left out.",
        NAMED,
    ),
    Defect(
        "storage.durable",
        "        raise UnsyncedError(error.errno, text, str(path)) from None",
        "        raise",
        "A folder that cannot be opened for its sync is taken for bad input.",
        NAMED,
    ),
    Defect(
        "storage.mirror",
        "    _copy(root, mirror, name)  # last, so that a copied checkpoint has all its blocks\n",
        "",
        "A checkpoint is not copied, only the versions that it names.",
        BLOCKS,
    ),
    Defect(
        "storage.mirror",
        " != stated[:2]:",
        " == ():",
        "A damaged file is copied.",
        BLOCKS,
    ),
    Defect(
        "storage.mirror",
        "if not checkpoints.verify(root / name) or checkpoints.verify(mirror / name):",
        "if not checkpoints.verify(root / name):",
        "A damaged copy takes the place of what is there.",
        BLOCKS,
    ),
    Defect(
        "storage.mirror",
        "    retained = named | copied | ",
        "    retained = named | ",
        "Copies of versions go that only the copy of a damaged checkpoint names.",
        BLOCKS,
    ),
    Defect(
        "storage.block_tables",
        "if named is not None and name not in named and (self.root / name).exists():",
        "if named is not None and (self.root / name).exists():",
        "A version goes that a checkpoint names.",
        BLOCKS,
    ),
    Defect(
        "storage.block_tables",
        "    if version.content_hash != content_hash:",
        "    if False:",
        "Another version than the checkpoint names is read.",
        BLOCKS,
    ),
    Defect(
        "storage.block_tables",
        "if partition_from_json(checkpoint.state.get(BLOCKS)) != self.partition:",
        "if False:",
        "A run goes on from blocks of other rows.",
        BLOCKS,
    ),
    Defect(
        "storage.block_tables",
        "    except (OSError, ValueError, LookupError, TypeError):\n        return None",
        "    except (OSError, ValueError, LookupError, TypeError):\n        return set()",
        "Where a checkpoint cannot be read now, the versions that it names go.",
        BLOCKS,
    ),
    Defect(
        "storage.block_tables",
        "self._promised = self._promised, set(content_hashes)",
        "self._promised = self._promised, set()",
        "Versions go that are promised to a checkpoint on its way to the disk.",
        BLOCKS,
    ),
    Defect(
        "storage.block_tables",
        "if rows[0] != 0 or rows[-1] != spec.shape[0] or rows != sorted(rows):",
        "if rows[0] != 0 or rows != sorted(rows):",
        "Blocks need not cover all rows of their array.",
        BLOCKS,
    ),
    # --- locks and what dead processes leave ---
    Defect(
        "storage.run_lock",
        "os.register_at_fork(after_in_child=_abandon_all)",
        "",
        "An orphaned child keeps the lock of a killed process.",
        f"{LOCKS}::test_the_lock_is_free_after_kill_9_even_with_a_forked_child_left",
    ),
    Defect(
        "storage.run_lock",
        "return os.path.samestat(os.fstat(self._descriptor), os.stat(path, dir_fd=directory))",
        "return os.path.exists(path)",
        "A lock whose folder has moved is taken for that of the folder at its place.",
        f"{LOCKS}::test_a_lock_knows_whether_its_file_is_where_it_was",
    ),
    Defect(
        "storage.stale_live_tables",
        "(locked or time.time() - facts.st_mtime > _UNMARKED_SECONDS)",
        "True",
        "A folder that another process is making is swept.",
        f"{LEFT}::test_a_directory_that_is_being_made_is_left_alone_until_it_is_old",
    ),
    Defect(
        "storage.stale_live_tables",
        "return _start_ticks(pid) != start_ticks",
        "return True",
        "The tables of a living process are swept whose lock file is gone.",
        f"{LEFT}::test_a_directory_without_a_lock_goes_by_its_process",
    ),
)

DEFECTS = (*IN_STORAGE, *IN_RUNS, *DRAWN, *IN_ESTIMATORS)
