import math
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import refused

from storage import schema
from storage.schema import ArraySpec


def spec(name="a", shape=(2, 3), dtype="float32", axes=("x", "y"), fill=0):
    return ArraySpec(name, shape, dtype, axes, fill)


def test_bytes_and_json_round_trip():
    specs = (spec("regret/street0/player1"), ArraySpec("words", (4,), "uint64", ("word",), 2**64 - 1))
    assert [one.nbytes for one in specs] == [24, 32]
    assert schema.specs_from_json(schema.specs_to_json(specs)) == specs
    assert schema.specs_to_json(specs)[0]["shape"] == [2, 3]


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"name": "../a"}, "'..'"),
        ({"name": "/a"}, "''"),
        ({"name": "a//b"}, "''"),
        ({"name": "a b"}, "'a b'"),
        ({"name": "a\n"}, "not allowed"),
        ({"name": "a/zarr.json"}, "zarr.json"),
        ({"dtype": "complex64"}, "complex64"),
        ({"dtype": "object"}, "object"),
        ({"shape": (0, 3)}, "(0, 3)"),
        ({"shape": (), "axes": ()}, "at least one axis"),
        ({"axes": ("x",)}, "1 axis names"),
        ({"fill": 0.1}, "fill"),
        ({"dtype": "uint8", "fill": 256}, "256"),
    ],
)
def test_bad_specs_are_refused_with_the_value_in_the_message(change, word):
    assert word in refused(r".", spec, **change)


def test_specs_are_checked_against_each_other():
    refused("more than once: a", schema.validate_specs, [spec("a"), spec("a")])
    refused("cannot also be the folder", schema.validate_specs, [spec("a/b/c"), spec("a/b")])
    refused("at least one", schema.validate_specs, [])
    refused("shape", schema.specs_from_json, [{"name": "a", "shape": "2", "dtype": "int32", "axes": ["x"]}])


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
    modules = ["schema", "durable", "manifest", "lock", "mapping", "space", "formats", "live", "checkpoint"]
    program = "import sys\n" + "".join(f"import storage.{name}\n" for name in modules)
    program += "assert not {'zarr', 'h5py', 'numcodecs'} & set(sys.modules), sorted(sys.modules)"
    subprocess.run([sys.executable, "-c", program], check=True)
