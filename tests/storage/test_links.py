"""Checkpoints with tables behind links: nothing is read from them."""

import h5py
import numpy as np
import pytest
from manifests import forge
from refusals import refused

from storage import checkpoint, checkpoint_writer
from storage.schema import ArraySpec

SPECS = (
    ArraySpec("regret/street0/player1", (7, 3), "float32", ("bucket", "slot")),
    ArraySpec("words", (4,), "uint64", ("word",)),
)
NAME, OTHER = "regret/street0/player1", np.full((7, 3), 99, np.float32)


def commit(root, layout):
    arrays = {NAME: np.ones((7, 3), np.float32), "words": np.arange(4, dtype=np.uint64)}
    return checkpoint_writer.commit(root, 1, SPECS, arrays, {"a": 1}, {"run": 1}, format=layout, keep=3)


def external_link(file, other):
    del file[NAME]
    file[NAME] = h5py.ExternalLink(str(other), "data")


def external_folder(file, other):
    del file["regret/street0"]
    file["regret/street0"] = h5py.ExternalLink(str(other), "folder")


def soft_link(file, other):
    file.create_dataset("elsewhere", data=OTHER, chunks=OTHER.shape)
    del file[NAME]
    file[NAME] = h5py.SoftLink("/elsewhere")


def soft_folder(file, other):
    file.move("regret/street0", "elsewhere")
    file["regret/street0"] = h5py.SoftLink("/elsewhere")


def no_link(file, other):
    del file[NAME]


def folder(file, other):
    del file[NAME]
    file.create_group(NAME)


def contiguous(file, other):
    del file[NAME]
    file[NAME] = OTHER


def raw_files(file, other):
    del file[NAME]
    file.create_dataset(NAME, (7, 3), "<f4", external=[(str(other.with_suffix(".raw")), 0, OTHER.nbytes)])


def virtual(file, other):
    layout = h5py.VirtualLayout((7, 3), "<f4")
    layout[:] = h5py.VirtualSource(str(other), "data", (7, 3))
    del file[NAME]
    file.create_virtual_dataset(NAME, layout)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (external_link, "regret/street0/player1.* is not a hard link"),
        (external_folder, "regret/street0.* is not a hard link"),
        (soft_link, "regret/street0/player1.* is not a hard link"),
        (soft_folder, "regret/street0.* is not a hard link"),
        (no_link, "has no array 'regret/street0/player1'"),
        (folder, "has no array 'regret/street0/player1'"),
        (contiguous, "is not stored in chunks"),
        (raw_files, "is not stored in chunks"),
        (virtual, "is not stored in chunks"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_hdf5_links_and_other_layouts_are_refused(tmp_path, change, words):
    other = tmp_path / "other.h5"
    OTHER.tofile(other.with_suffix(".raw"))
    with h5py.File(other, "w") as file:
        for name in ("data", "folder/player1"):
            file.create_dataset(name, data=OTHER, chunks=OTHER.shape)
    path = commit(tmp_path / "all", "hdf5")
    with h5py.File(path / "tables.h5", "r+") as file:
        change(file, other)
    forge(path)
    said = checkpoint.verify(path)
    assert len(said) == 1
    refused(words, checkpoint.open_checkpoint(path).read, NAME, error=OSError)
    assert said[0].startswith(f"000001: array {NAME!r} cannot be read: ")
    assert np.array_equal(checkpoint.open_checkpoint(path).read("words"), np.arange(4))


@pytest.mark.parametrize("name", ["", "/regret", *(f"/{NAME}{inner}" for inner in ("", "/c", "/c/0/0", "/zarr.json"))])
def test_zarr_folders_and_files_that_are_links_are_refused(tmp_path, name):
    path, name = commit(tmp_path / "all", "zarr"), f"tables.zarr{name}"
    (path / name).rename(tmp_path / "elsewhere")
    (path / name).symlink_to(tmp_path / "elsewhere")
    said = checkpoint.verify(path)
    assert any(f"{name} is a symbolic link" in problem for problem in said), said
    refused(f"{name} is a symbolic link", checkpoint.open_checkpoint(path).read, NAME, error=OSError)
    assert checkpoint.newest_valid(path.parent)[0] is None


@pytest.mark.parametrize("name", ["manifest.json", "state.json", "."])
def test_a_manifest_a_state_and_a_checkpoint_that_are_links_are_refused(tmp_path, name):
    path = commit(tmp_path / "all", "zarr")
    (path / name).rename(tmp_path / "elsewhere") if name != "." else path.rename(tmp_path / "elsewhere")
    (path / name if name != "." else path).symlink_to(tmp_path / "elsewhere")
    assert "is a symbolic link" in checkpoint.verify(path)[0]
    refused("is a symbolic link", checkpoint.open_checkpoint, path, error=OSError)
    found, problems = checkpoint.newest_valid(path.parent)
    assert found is None
    assert "is a symbolic link" in problems[0]


def test_a_link_that_no_manifest_lists_is_named(tmp_path):
    path = commit(tmp_path / "all", "zarr")
    (path / "tables.zarr/more").symlink_to(tmp_path)
    assert checkpoint.verify(path) == ["000001: tables.zarr/more is not in the manifest"]
