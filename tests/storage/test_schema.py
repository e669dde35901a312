"""Array schemas: JSON, invalid specs, chunk shapes, light imports."""

import math
import subprocess
import sys

from hypothesis import given
from hypothesis import strategies as st
from refusals import refusals

from storage import schema
from storage.schema import ArraySpec


def spec(name="a", shape=(2, 3), dtype="float32", axes=("x", "y"), fill=0):
    return ArraySpec(name, shape, dtype, axes, fill)


def test_bytes_and_json_round_trip():
    specs = (spec("regret/street0/player1"), ArraySpec("words", (4,), "uint64", ("word",), 2**64 - 1))
    assert [one.nbytes for one in specs] == [24, 32]
    assert schema.specs_from_json(schema.specs_to_json(specs)) == specs
    assert schema.specs_to_json(specs)[0]["shape"] == [2, 3]


test_bad_specs = refusals(
    ("'..'", {"name": "../a"}),
    ("''", {"name": "/a"}),
    ("''", {"name": "a//b"}),
    ("'a b'", {"name": "a b"}),
    ("not allowed", {"name": "a\n"}),
    ("zarr.json", {"name": "a/zarr.json"}),
    ("complex64", {"dtype": "complex64"}),
    ("object", {"dtype": "object"}),
    ("(0, 3)", {"shape": (0, 3)}),
    ("at least one axis", {"shape": (), "axes": ()}),
    ("1 axis names", {"axes": ("x",)}),
    ("fill", {"fill": 0.1}),
    ("256", {"dtype": "uint8", "fill": 256}),
    call=lambda change: spec(**change),
)


test_bad_lists_of_specs = refusals(
    ("more than once: a", schema.validate_specs, [spec("a"), spec("a")]),
    ("cannot also be the folder", schema.validate_specs, [spec("a/b/c"), spec("a/b")]),
    ("at least one", schema.validate_specs, []),
    ("shape", schema.specs_from_json, [{"name": "a", "shape": "2", "dtype": "int32", "axes": ["x"]}]),
)


@given(st.lists(st.integers(1, 40), min_size=1, max_size=4), st.integers(1, 4000))
def test_chunks_are_contiguous_and_as_large_as_the_target_allows(shape, target):
    chunk = schema.split_at_chunks(shape, 4, target)
    assert all(1 <= width <= length for width, length in zip(chunk, shape, strict=True))
    assert 4 * math.prod(chunk) <= max(target, 4)
    # Contiguous in row-major order: ones, then the axis that is split, then whole axes.
    split = next(axis for axis in range(len(shape)) if chunk[axis + 1 :] == tuple(shape[axis + 1 :]))
    assert chunk[:split] == (1,) * split
    if chunk[split] < shape[split]:
        assert 4 * (chunk[split] + 1) * math.prod(shape[split + 1 :]) > target
    elif split > 0:
        assert 8 * math.prod(shape[split:]) > target


def test_light_modules_do_not_load_zarr_or_h5py():
    modules = "schema durable manifest run_lock mapping free_space table_formats live_tables checkpoint"
    program = "import sys\n" + "".join(f"import storage.{name}\n" for name in modules.split())
    program += "assert not {'zarr', 'h5py', 'numcodecs'} & set(sys.modules), sorted(sys.modules)"
    subprocess.run([sys.executable, "-c", program], check=True)
