"""Checkpoints with links in place of tables or files: they are refused."""

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


def raw_files(file, other):
    file.create_dataset(NAME, (7, 3), "<f4", external=[(str(other.with_suffix(".raw")), 0, OTHER.nbytes)])


def virtual(file, other):
    layout = h5py.VirtualLayout((7, 3), "<f4")
    layout[:] = h5py.VirtualSource(str(other), "folder/player1", (7, 3))
    file.create_virtual_dataset(NAME, layout)


FOLDER = NAME.rpartition("/")[0]
HDF5 = {
    "external link": (NAME, lambda file, other: link_to(file, NAME, h5py.ExternalLink(other, "folder/player1"))),
    "external folder": (FOLDER, lambda file, other: link_to(file, FOLDER, h5py.ExternalLink(other, "folder"))),
    "soft link": (NAME, lambda file, _: link_to(file, NAME, h5py.SoftLink("/folder/player1"))),
    "soft folder": (FOLDER, lambda file, _: link_to(file, FOLDER, h5py.SoftLink("/folder"))),
    "nothing": (NAME, lambda *_: None),
    "folder": (NAME, lambda file, _: file.create_group(NAME)),
    "contiguous": (NAME, lambda file, _: link_to(file, NAME, OTHER)),
    "raw files": (NAME, raw_files),
    "virtual": (NAME, virtual),
}
"""{kind: (name to remove from the file, function that puts something in its place)}."""


def link_to(file, name, target):
    file[name] = target


def words_of(kind):
    """Return the regular expression of the error message for a kind of replacement."""
    if kind in ("nothing", "folder"):
        return f"has no array '{NAME}'"
    return f"{HDF5[kind][0]}.* is not a hard link" if "link" in kind or "folder" in kind else "is not stored in chunks"


@pytest.mark.parametrize("kind", HDF5)
def test_hdf5_links_and_other_layouts_are_refused(tmp_path, kind):
    other, (name, put) = tmp_path / "other.h5", HDF5[kind]
    OTHER.tofile(other.with_suffix(".raw"))
    path = commit(tmp_path / "all", "hdf5")
    for place in (other, path / "tables.h5"):
        with h5py.File(place, "a") as file:
            file.create_dataset("folder/player1", data=OTHER, chunks=OTHER.shape)
    with h5py.File(path / "tables.h5", "r+") as file:
        del file[name]
        put(file, other)
    forge(path)
    problems = checkpoint.verify(path)
    assert len(problems) == 1
    refused(words_of(kind), checkpoint.open_checkpoint(path).read, NAME, error=OSError)
    assert problems[0].startswith(f"000001: array {NAME!r} cannot be read: ")
    assert np.array_equal(checkpoint.open_checkpoint(path).read("words"), np.arange(4))


@pytest.mark.parametrize("name", ["", "/regret", *(f"/{NAME}{inner}" for inner in ("", "/c", "/c/0/0", "/zarr.json"))])
def test_zarr_folders_and_files_that_are_links_are_refused(tmp_path, name):
    path, name = commit(tmp_path / "all", "zarr"), f"tables.zarr{name}"
    (path / name).rename(tmp_path / "elsewhere")
    (path / name).symlink_to(tmp_path / "elsewhere")
    problems = checkpoint.verify(path)
    assert any(f"{name} is a symbolic link" in problem for problem in problems), problems
    refused(f"{name} is a symbolic link", checkpoint.open_checkpoint(path).read, NAME, error=OSError)
    assert checkpoint.newest_valid(path.parent)[0] is None


@pytest.mark.parametrize("name", ["manifest.json", "state.json", "."])
def test_a_manifest_a_state_and_a_checkpoint_that_are_links_are_refused(tmp_path, name):
    path = commit(tmp_path / "all", "zarr")
    linked = path if name == "." else path / name
    linked.rename(tmp_path / "elsewhere")
    linked.symlink_to(tmp_path / "elsewhere")
    assert "is a symbolic link" in checkpoint.verify(path)[0]
    refused("is a symbolic link", checkpoint.open_checkpoint, path, error=OSError)
    found, problems = checkpoint.newest_valid(path.parent)
    assert found is None and "is a symbolic link" in problems[0]


def test_a_link_that_no_manifest_lists_is_named(tmp_path):
    path = commit(tmp_path / "all", "zarr")
    (path / "tables.zarr/more").symlink_to(tmp_path)
    assert checkpoint.verify(path) == ["000001: tables.zarr/more is not in the manifest"]
