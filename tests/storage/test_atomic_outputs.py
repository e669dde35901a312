"""Atomic outputs: renamed to their final path in one step after sync; other files stay unchanged."""

import os
import time

import crash_states
import pytest
from refusals import refused

from storage import durable
from storage.atomic_outputs import check_output, output

DAY = 86_400


def any_output(path):
    return True


def write(path, content=b"new", replaceable=any_output):
    """Write a directory of one file as an output."""
    with output(path, replaceable) as temporary:
        durable.make_dir(temporary)
        durable.write_file(temporary / "file", content)
        durable.fsync_dir(temporary)


def names(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize("existing", [False, True], ids=["new", "replaced"])
def test_an_output_is_on_disk_under_its_final_name_when_the_block_ends(tmp_path, existing):
    if existing:
        write(tmp_path / "out", b"old")
    before = set(tmp_path.rglob("*"))
    with durable.recording() as operations:
        write(tmp_path / "out")
    assert crash_states.unsynced(operations, before) == []
    assert (tmp_path / "out/file").read_bytes() == b"new" and names(tmp_path) == ["out"]
    kinds = [operation.kind for operation in operations]
    assert not existing or kinds[-2:] == ["remove_file", "remove_dir"], "the old output is removed last"
    assert ("exchange" in kinds) == existing and ("rename" in kinds) != existing, "an old output is exchanged"


def test_temporary_files_of_other_processes_stay_until_they_are_a_day_old(tmp_path):
    """Another process may still be writing a younger file."""
    for name, days in (("young", 0.5), ("old-file", 1.5), ("old-tree", 1.5)):
        path = tmp_path / f".tmp-out-{name:_<8}"
        if name == "old-tree":
            path.mkdir()
        else:
            path.touch()
        os.utime(path, (time.time() - days * DAY,) * 2)
    (tmp_path / ".tmp-other-01234567").touch()
    os.utime(tmp_path / ".tmp-other-01234567", (0, 0))
    write(tmp_path / "out")
    assert names(tmp_path) == [".tmp-other-01234567", ".tmp-out-young___", "out"]


def test_links_are_never_replaced(tmp_path):
    (tmp_path / "link").symlink_to("nothing")
    refused("is a link", check_output, tmp_path / "link", any_output, error=FileExistsError)


def test_a_failed_output_leaves_the_old_directory_unchanged(tmp_path):
    write(tmp_path / "out", b"old")

    def fail():
        with output(tmp_path / "out", any_output) as temporary:
            durable.make_dir(temporary)
            raise OSError("no")

    refused("no", fail, error=OSError)
    assert (tmp_path / "out/file").read_bytes() == b"old" and names(tmp_path) == ["out"]
