"""Checkpoints: writing, reading, verification, damage and retention.

Shows:

* Damaged checkpoints and policies are never loaded (test_every_flipped_bit_is_reported_and_never_read,
  test_policy_damage)
"""

import json
import random
import shutil
import tracemalloc

import h5py
import numpy as np
import pytest
import zarr
from manifests import forge
from places import journal_lines
from refusals import refusals, refused

from storage import checkpoint, checkpoint_writer, durable, hdf5_format, zarr_format
from storage.free_space import tree_bytes
from storage.schema import ALLOWED_DTYPES, ArraySpec
from storage.table_formats import NotFiniteError, compressed_share, raw_bytes

SPECS = (
    ArraySpec("regret/street0/player1", (7, 3), "float32", ("bucket", "slot")),
    ArraySpec("words", (4,), "uint64", ("word",)),
    ArraySpec("empty", (50,), "int32", ("x",)),
)
STATE = {"words": [2**64 - 1, 0, -(2**63)], "share": 0.1, "tiny": 5e-324, "text": "é", "none": None, "flag": True}
IDENTITY = {"config": "abc", "seed": 3}
BOTH = pytest.mark.parametrize("layout", ["zarr", "hdf5"])


def tables(number=1):
    return {
        "regret/street0/player1": np.linspace(-number, number, 21, dtype=np.float32).reshape(7, 3),
        "words": np.array([2**64 - number, 1, 2, 3], np.uint64),
        "empty": np.zeros(50, np.int32),
    }


def commit(root, number, layout="zarr", keep=3, **changes):
    arguments = {"specs": SPECS, "arrays": tables(number), "state": STATE, "identity": IDENTITY, **changes}
    return checkpoint_writer.commit(root, number, format=layout, keep=keep, **arguments)


@pytest.fixture
def small_chunks(monkeypatch):
    for module in (zarr_format, hdf5_format):
        monkeypatch.setattr(module, "CHECKPOINT_CHUNK_BYTES", 40)


@BOTH
def test_a_committed_checkpoint_is_read_back_unchanged(tmp_path, small_chunks, layout):
    path = commit(tmp_path / "all", 12, layout, parents={"config": "00ff"})
    assert path == tmp_path / "all/000012"
    found = checkpoint.open_checkpoint(path)
    assert (found.number, found.state, found.identity, found.specs) == (12, STATE, IDENTITY, SPECS)
    assert found.parents == {"config": "00ff"}
    assert type(found.state["words"][0]) is int
    for name, expected in tables(12).items():
        out = np.full_like(expected, 9)
        found.read_into(name, out)
        assert found.read(name).dtype == expected.dtype
        assert np.array_equal(found.read(name), expected) and np.array_equal(out, expected)
    refused("`out` has shape", found.read_into, "words", np.zeros(5, np.uint64))
    refused("has no array 'other'; it has regret", found.read, "other", error=KeyError)
    assert checkpoint.verify(path) == []


@BOTH
def test_zarr_and_h5py_read_tables_of_every_dtype(tmp_path, layout):
    specs = [ArraySpec(name, (3, 2), name, ("a", "b")) for name in ALLOWED_DTYPES]
    arrays = {name: np.arange(6).reshape(3, 2).astype(name) for name in ALLOWED_DTYPES}
    path = commit(tmp_path / "all", 1, layout, specs=specs, arrays=arrays)
    opened = zarr.open(str(path / "tables.zarr"), mode="r") if layout == "zarr" else h5py.File(path / "tables.h5", "r")
    for name, expected in arrays.items():
        assert opened[name].dtype == name
        assert np.array_equal(opened[name][...], expected)
    if layout == "hdf5":
        words = opened["int32"]
        assert words.dims[1].label == "b"
        assert (words.fletcher32, words.compression, words.compression_opts) == (True, "gzip", 1)
        opened.close()
    else:
        assert opened["int32"].metadata.dimension_names == ("a", "b")
        assert [type(codec).__name__ for codec in opened["int32"].compressors] == ["ZstdCodec", "Crc32cCodec"]


@BOTH
def test_the_compressed_size_is_estimated_before_writing(tmp_path, layout):
    """The estimate is exact for a table of one chunk; it samples two chunks of a table of four.

    Half of the cells are zero, as in tables that training has not visited.
    """
    rows = {"one": 1000, "four": 60_000}
    specs = [ArraySpec(name, (count, 64), "float32", ("a", "b")) for name, count in rows.items()]
    random = np.random.default_rng(0)
    arrays = {spec.name: np.zeros(spec.shape, np.float32) for spec in specs}
    for array in arrays.values():
        array[:, ::2] = random.normal(size=(len(array), 32))
    for some, tolerance in ((specs[:1], 0.0), (specs, 0.01)):
        names = {spec.name: arrays[spec.name] for spec in some}
        path = commit(tmp_path / f"{len(some)}", 1, layout, specs=some, arrays=names)
        if layout == "zarr":
            stored = sum(file.stat().st_size for file in (path / "tables.zarr").glob("*/c/**/*") if file.is_file())
        else:
            with h5py.File(path / "tables.h5") as file:
                stored = sum(file[name].id.get_storage_size() for name in names)
        share = compressed_share(some, names, layout)
        assert share == pytest.approx(stored / sum(spec.nbytes for spec in some), rel=tolerance) and 0.4 < share < 0.7


@pytest.mark.parametrize("compressed", [True, False])
def test_chunks_equal_those_that_zarr_writes(tmp_path, small_chunks, compressed):
    """Compare chunks byte for byte, padding included, so that every Zarr reader can read them."""
    path = commit(tmp_path / "all", 3, "zarr", compressed=compressed)
    shutil.copytree(path / "tables.zarr", tmp_path / "copy")
    opened = zarr.open(str(tmp_path / "copy"), mode="r+")
    chunks = [file for file in (tmp_path / "copy").rglob("*") if file.is_file() and file.name != "zarr.json"]
    for file in chunks:
        file.unlink()
    for name, array in tables(3).items():
        opened[name].set_basic_selection(..., array)
    stored = [file for file in chunks if file.exists()]  # zarr does not write chunks of zeros
    assert len(stored) >= 4
    for file in stored:
        assert file.read_bytes() == (path / "tables.zarr" / file.relative_to(tmp_path / "copy")).read_bytes()


@pytest.mark.parametrize("compressed", [True, False])
def test_h5py_reads_our_chunks_and_computes_the_same_fletcher32(tmp_path, small_chunks, compressed):
    path = commit(tmp_path / "all", 3, "hdf5", compressed=compressed)
    with h5py.File(path / "tables.h5") as file, h5py.File(tmp_path / "other.h5", "w") as other:
        for name, array in tables(3).items():
            assert np.array_equal(file[name][...], array)
            assert (file[name].compression, file[name].fletcher32) == (("gzip", True) if compressed else (None, False))
        for size in (0, 1, 2, 7, 4096, 100_001):  # odd lengths too
            data = np.random.default_rng(size).integers(0, 256, max(1, size), np.uint8)
            data[: size // 2] = 255 if size % 3 else 0
            dataset = other.create_dataset(str(size), data=data, chunks=data.shape, fletcher32=True)
            stored = dataset.id.read_direct_chunk((0,))[1]
            assert hdf5_format.fletcher32(data.tobytes()) == int.from_bytes(stored[-4:], "little")


@pytest.mark.parametrize("compressed", [True, False])
@BOTH
def test_every_flipped_bit_is_reported_and_never_read(tmp_path, small_chunks, layout, compressed):
    path = commit(tmp_path / "all", 1, layout, compressed=compressed)
    files = sorted(file for file in path.rglob("*") if file.is_file())
    assert len(files) > 10 or layout == "hdf5"
    generator = random.Random(5)
    for _ in range(100):
        file = generator.choice(files)
        data = file.read_bytes()
        flipped = bytearray(data)
        bit = generator.randrange(8 * len(data))
        flipped[bit // 8] ^= 1 << bit % 8
        file.write_bytes(flipped)
        assert checkpoint.verify(path), (file, bit)
        try:
            opened = checkpoint.open_checkpoint(path)
            for name, expected in tables(1).items():
                assert np.array_equal(opened.read(name), expected), (file, bit)
        except OSError:
            pass  # a refusal is correct too
        file.write_bytes(data)
    assert checkpoint.verify(path) == []


def test_missing_extra_and_truncated_files_are_reported_by_name(tmp_path, small_chunks):
    path = commit(tmp_path / "all", 1)
    chunk = path / "tables.zarr/empty/c/3"  # all zeros: zarr reads a missing chunk as zeros
    data = chunk.read_bytes()
    chunk.unlink()
    assert checkpoint.verify(path) == ["000001: tables.zarr/empty/c/3 is missing"]
    refused("c/3 is missing", checkpoint.open_checkpoint(path).read, "empty", error=OSError)
    assert np.array_equal(checkpoint.open_checkpoint(path).read("words"), tables(1)["words"])
    chunk.write_bytes(data[:-1])
    assert f"has {len(data) - 1} bytes; the manifest states {len(data)}" in checkpoint.verify(path)[0]
    chunk.write_bytes(data)
    (path / "tables.zarr/empty/c/30").write_bytes(data)
    (path / "more").mkdir()
    assert sorted(checkpoint.verify(path)) == [
        "000001: more is not in the manifest",
        "000001: tables.zarr/empty/c/30 is not in the manifest",
    ]
    (path / "more").rmdir()
    (path / "tables.zarr/empty/c/30").unlink()
    shutil.copytree(path, tmp_path / "all/000009")
    assert "the manifest states number 1" in checkpoint.verify(tmp_path / "all/000009")[0]
    (path / "manifest.json").unlink()
    assert "manifest.json" in checkpoint.verify(path)[0]


@BOTH
def test_a_manifest_that_disagrees_with_its_arrays_is_refused_before_anything_is_allocated(tmp_path, layout):
    path = commit(tmp_path / "all", 1, layout)

    def huge(content):
        content["arrays"][1]["shape"] = [2**50]

    forge(path, huge)
    assert "has shape (4,) of uint64; the manifest states (1125899906842624,)" in checkpoint.verify(path)[0]
    refused("the manifest states", checkpoint.open_checkpoint(path).read, "words")

    def escape(content):
        content["arrays"][1]["shape"] = [4]
        content["files"]["../secret"] = content["files"]["state.json"]

    forge(path, escape)
    refused(r"\.\.", checkpoint.open_checkpoint, path)
    forge(path, lambda content: content.pop("files"))
    refused("not a checkpoint's", checkpoint.open_checkpoint, path)


def test_a_chunk_missing_from_files_and_manifest_alike_is_not_read_as_zeros(tmp_path, small_chunks):
    path = commit(tmp_path / "all", 1)
    shutil.rmtree(path / "tables.zarr/words/c")
    forge(path, lambda content: content["files"].pop("tables.zarr/words/c/0"))
    assert "chunk" in checkpoint.verify(path)[0]
    refused("chunk", checkpoint.open_checkpoint(path).read, "words", error=OSError)


def test_an_hdf5_file_without_stored_chunks_is_not_read_as_zeros(tmp_path):
    path = commit(tmp_path / "all", 1, "hdf5")
    with h5py.File(path / "tables.h5", "a") as file:
        del file["empty"]
        file.create_dataset("empty", (50,), "<i4", chunks=(50,), compression="gzip")
    forge(path)
    assert "0 stored bytes of array 'empty' cannot hold 200" in checkpoint.verify(path)[0]


@BOTH
def test_arrays_that_would_decode_to_more_than_their_file_can_hold_are_not_decoded(tmp_path, layout):
    """Manifest and file both state 93 GB in a file of a few kilobytes, in one chunk or in thousands."""
    cells = 93 * 10**9 // 8
    for number, chunk in ((1, cells), (2, 1 << 20)):
        path = commit(tmp_path / "all", number, layout)
        if layout == "hdf5":
            with h5py.File(path / "tables.h5", "a") as file:
                del file["words"]
                file.create_dataset("words", (cells,), "<u8", chunks=(min(chunk, 1 << 28),), compression="gzip")
        else:
            metadata = path / "tables.zarr/words/zarr.json"
            content = json.loads(metadata.read_text())
            content["shape"], content["chunk_grid"]["configuration"]["chunk_shape"] = [cells], [chunk]
            metadata.write_text(json.dumps(content))

        def state_shape(content, path=path):
            content["arrays"][1]["shape"] = [cells]

        forge(path, state_shape)
        problem = checkpoint.verify(path)[0]
        assert "'words' cannot be read" in problem
        with pytest.raises(OSError, match=r"bytes; at most 67,108,864|cannot hold 93000000000|chunks are needed"):
            checkpoint.open_checkpoint(path).read("words")


@pytest.mark.parametrize("text", ["{}", "[]", '{"shape": 3}', "[" * 60_000, '{"a":' * 60_000 + "1" + "}" * 60_000])
def test_invalid_array_metadata_is_reported_as_an_error(tmp_path, text):
    path = commit(tmp_path / "all", 1)
    (path / "tables.zarr/words/zarr.json").write_text(text)
    forge(path)
    assert "'words' cannot be read" in checkpoint.verify(path)[0]
    refused("holds no array that can be read", checkpoint.open_checkpoint(path).read, "words", error=OSError)


def test_a_state_of_another_checkpoint_is_refused(tmp_path):
    path = commit(tmp_path / "all", 1)
    (path / "state.json").write_text('{"of": "another checkpoint"}')
    refused("state.json", checkpoint.open_checkpoint, path, error=OSError)


def open_with_state(text, tmp_path):
    path = commit(tmp_path / "all", 1)
    (path / "state.json").write_text(text)
    forge(path)
    assert "state.json" in checkpoint.verify(path)[0]
    checkpoint.open_checkpoint(path)


test_a_state_that_is_not_a_json_object = refusals(
    *(("state.json", text) for text in ("[]", "3", "null", '"x"', "[" * 60_000, '{"a":' * 60_000 + "1" + "}" * 60_000)),
    call=open_with_state,
)


def test_only_the_newest_checkpoints_are_kept_and_the_journal_has_a_line_for_each(tmp_path):
    root = tmp_path / "all"
    assert checkpoint.list_checkpoints(root) == []
    assert checkpoint.next_number(root) == 0
    for number in (1, 2, 5, 9):
        commit(root, number, keep=2, journal=tmp_path / "journal.jsonl")
    assert checkpoint.list_checkpoints(root) == [5, 9]
    assert sorted(entry.name for entry in root.iterdir()) == ["000005", "000009"]
    assert checkpoint.next_number(root) == 10
    lines = [json.loads(line) for line in journal_lines(tmp_path / "journal.jsonl")]
    assert [line["checkpoint"] for line in lines] == [1, 2, 5, 9]
    assert lines[-1]["manifest"] == checkpoint.open_checkpoint(root / "000009").content_hash
    for number in (9, 7):
        refused("the next is 10", commit, root, number, error=FileExistsError)
    refused("keep is 0", commit, root, 10, keep=0)


def test_the_newest_sound_checkpoint_is_found_and_damage_is_reported(tmp_path):
    root = tmp_path / "all"
    assert checkpoint.newest_valid(root) == (None, [])
    for number in (1, 2, 3):
        commit(root, number)
    (root / "000003/manifest.json").write_bytes(b"\0" * 100)
    (root / "000002/tables.zarr/words/c/0").unlink()
    found, problems = checkpoint.newest_valid(root, IDENTITY)
    assert found.number == 1 and "000003" in problems[0] and "damaged" in problems[0]
    assert problems[1:] == ["000002: tables.zarr/words/c/0 is missing"]
    (root / "000001/state.json").unlink()
    found, problems = checkpoint.newest_valid(root, IDENTITY)
    assert found is None and "state.json is missing" in problems[2]


def test_another_identity_and_another_format_version_are_refused_with_both_values(tmp_path, monkeypatch):
    root = tmp_path / "all"
    commit(root, 1)
    message = refused(r"seed is 3 there and 4 here", checkpoint.newest_valid, root, {**IDENTITY, "seed": 4})
    assert "config" not in message.split("run:")[1]
    monkeypatch.setattr(checkpoint_writer, "FORMAT_VERSION", 4)
    commit(root, 2)
    monkeypatch.undo()
    for refuse in (lambda: checkpoint.newest_valid(root), lambda: checkpoint.open_checkpoint(root / "000002")):
        refused(r"format_version 4 .* format_version 2, 3", refuse)
    assert "format_version 4" in checkpoint.verify(root / "000002")[0]


def test_sweep_removes_temporary_files_and_nothing_else(tmp_path):
    root = tmp_path / "all"
    assert checkpoint_writer.sweep(root) == []
    commit(root, 1)
    (root / ".tmp-000002-abc/tables.zarr").mkdir(parents=True)
    (root / ".tmp-000002-abc/tables.zarr/zarr.json").write_text("{}")
    (root / ".tmp-file").write_text("")
    (root / ".tmp-link").symlink_to(root / "000001")
    with durable.recording() as operations:
        assert [path.name for path in checkpoint_writer.sweep(root)] == [".tmp-000002-abc", ".tmp-file", ".tmp-link"]
    assert (operations[-1].kind, operations[-1].path) == ("fsync_dir", root)
    assert [path.name for path in root.iterdir()] == ["000001"]
    assert checkpoint.verify(root / "000001") == []


def commit_invalid(changes, tmp_path):
    try:
        commit(tmp_path / "all", 1, **changes)
    finally:
        assert not (tmp_path / "all").exists()


test_invalid_input_writes_nothing = refusals(
    ("more", {"arrays": {**tables(), "more": np.zeros(1)}}),
    ("words", {"arrays": {name: array for name, array in tables().items() if name != "words"}}),
    (r"\(5,\)", {"arrays": {**tables(), "words": np.zeros(5, np.uint64)}}),
    ("int64", {"arrays": {**tables(), "words": np.zeros(4, np.int64)}}),
    ("state", {"state": {"x": float("nan")}}),
    ("state", {"state": {"x": np.uint64(1)}}),
    ("identity", {"identity": {1: 2}}),
    ("zarr, hdf5", {"layout": "sqlite"}),
    call=commit_invalid,
)


@BOTH
def test_writing_and_reading_take_little_memory(tmp_path, layout):
    specs = [ArraySpec("large", (1 << 22, 5), "float32", ("row", "column"))]  # 80 MiB
    arrays = {"large": np.zeros((1 << 22, 5), np.float32)}
    arrays["large"][::1000] = 1
    commit(tmp_path / "warm", 1, layout)  # the libraries allocate memory at their first use
    tracemalloc.start()
    path = commit(tmp_path / "all", 1, layout, specs=specs, arrays=arrays)
    assert checkpoint.verify(path) == []
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 60 << 20
    out = np.empty_like(arrays["large"])
    checkpoint.open_checkpoint(path).read_into("large", out)
    assert np.array_equal(out, arrays["large"])


@BOTH
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_cell_that_is_not_finite_is_named_and_nothing_is_written(tmp_path, layout, bad):
    spec = ArraySpec("sums", (700, 2000), "float32", ("bucket", "slot"))  # two chunks
    array = np.full(spec.shape, 3e38, "float32")  # finite, although its sum is not
    arguments = {"specs": [spec], "arrays": {"sums": array}}
    assert checkpoint.verify(commit(tmp_path, 1, layout, **arguments)) == []
    array[600:602, 1234] = bad, -bad
    words = f"array 'sums' holds {bad} at bucket 600, slot 1234"
    refused(words, commit, tmp_path, 2, layout, **arguments, error=NotFiniteError)
    assert [path.name for path in tmp_path.iterdir()] == ["000001"]


@BOTH
def test_uncompressed_checkpoints_take_whole_chunks_of_disk(tmp_path, layout):
    spec = ArraySpec("sums", (2, 600_000), "float64", ("bucket", "slot"))
    arrays = {"sums": np.ones(spec.shape)}
    path = commit(tmp_path, 1, layout, specs=[spec], arrays=arrays, compressed=False)
    assert raw_bytes(spec) == 4 * 2**22 > 1.7 * spec.nbytes
    assert tree_bytes(path) == pytest.approx(raw_bytes(spec), rel=0.01)


@BOTH
def test_verify_names_cells_that_are_not_finite(tmp_path, monkeypatch, layout):
    monkeypatch.setattr("storage.table_formats.check_finite", lambda *_: None)
    array = np.zeros((3, 4))
    array[2, 1] = -np.inf
    spec = ArraySpec("sums", array.shape, "float64", ("bucket", "slot"))
    path = commit(tmp_path, 1, layout, specs=[spec], arrays={"sums": array})
    assert checkpoint.verify(path) == ["000001: array 'sums' holds -inf at bucket 2, slot 1"]
    assert checkpoint.newest_valid(tmp_path)[0] is None
