"""Schemas of tables: names, shapes, dtypes and axes of arrays.

An algorithm declares its tables as a list of `ArraySpec`. Live tables, checkpoints, verification and export depend only
on that list.
"""

import math
import re
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
import numpy as np

ALLOWED_DTYPES = ("float16", "float32", "float64", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")

_COMPONENT = re.compile(r"^[A-Za-z0-9_.-]+$")
_RESERVED = (".", "..", "zarr.json")  # "zarr.json" is Zarr's own metadata file


def check_relative_name(name: str) -> str:
    """Check that `name` is a relative path that cannot leave its root directory, and return it.

    Every component between slashes must match `^[A-Za-z0-9_.-]+$`, and must not be `.` or `..`.

    Raises:
        ValueError: the name could leave its root or has a forbidden character.
    """
    for component in name.split("/"):
        # fullmatch: `$` alone would accept a trailing newline.
        if not _COMPONENT.fullmatch(component) or component in (".", ".."):
            raise ValueError(
                f"name {name!r}: component {component!r} is not allowed; between slashes use letters, digits and _ . - "
                f"only, and neither '.' nor '..'"
            )
    return name


class ArraySpec(msgspec.Struct, frozen=True):
    """Schema of a named array: its shape, dtype, axis names and initial value.

    Fields:
        name:  path of plain components inside the tables, such as `regret/street0/player1`
        shape: positive lengths of the axes, at least one
        dtype: name of an integer or float dtype, such as "float32" (`ALLOWED_DTYPES`), stored little endian
        axes:  names of the axes, one for each length of `shape`
        fill:  initial value of every cell; must be exact in `dtype`

    Raises:
        ValueError: a field is invalid; the message names it.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    axes: tuple[str, ...]
    fill: int | float = 0

    def __post_init__(self) -> None:
        check_relative_name(self.name)
        for component in self.name.split("/"):
            if component in _RESERVED:
                raise ValueError(f"array name {self.name!r}: {component!r} is the name of a file of the format itself")
        if self.dtype not in ALLOWED_DTYPES:
            raise ValueError(f"array {self.name!r}: dtype {self.dtype!r} is not one of {', '.join(ALLOWED_DTYPES)}")
        if not self.shape or any(length < 1 for length in self.shape):
            raise ValueError(f"array {self.name!r}: shape {self.shape} must have at least one axis, all lengths >= 1")
        if len(self.axes) != len(self.shape):
            raise ValueError(f"array {self.name!r}: {len(self.axes)} axis names for a shape of {len(self.shape)} axes")
        self._check_fill()

    def _check_fill(self) -> None:
        if self.numpy_dtype.kind == "f":
            exact = float(self.numpy_dtype.type(self.fill)) == self.fill
        else:
            limits = np.iinfo(self.numpy_dtype)
            exact = int(self.fill) == self.fill and limits.min <= self.fill <= limits.max
        if not exact:
            raise ValueError(f"array {self.name!r}: fill {self.fill!r} is not exact in {self.dtype}")

    @property
    def numpy_dtype(self) -> np.dtype[Any]:
        """NumPy dtype, little endian."""
        return np.dtype(self.dtype).newbyteorder("<")

    @property
    def nbytes(self) -> int:
        """Size of the raw cells in bytes."""
        return math.prod(self.shape) * self.numpy_dtype.itemsize


def validate_specs(specs: Iterable[ArraySpec]) -> tuple[ArraySpec, ...]:
    """Return schemas of arrays as a tuple, after checking their names against each other.

    Raises:
        ValueError: there are none, two have one name, or the name of one is a folder of another.
    """
    checked = tuple(specs)
    if not checked:
        raise ValueError("a schema needs at least one array")
    names = [spec.name for spec in checked]
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise ValueError(f"array names must be unique; given more than once: {', '.join(repeated)}")
    all_names = set(names)
    for name in names:
        parts = name.split("/")
        for depth in range(1, len(parts)):
            folder = "/".join(parts[:depth])
            if folder in all_names:
                raise ValueError(f"array {folder!r} cannot also be the folder of array {name!r}; rename one")
    return checked


def specs_to_json(specs: Iterable[ArraySpec]) -> list[dict[str, Any]]:
    """Return schemas of arrays as plain lists and dictionaries that `json.dumps` takes."""
    return msgspec.json.decode(msgspec.json.encode(list(specs)))


def specs_from_json(data: Any) -> tuple[ArraySpec, ...]:
    """Return the schemas of arrays that `specs_to_json` turned into plain data, validated again.

    Raises:
        ValueError: a field is missing, of the wrong type or invalid.
    """
    return validate_specs(msgspec.convert(data, list[ArraySpec]))


def split_at_chunks(shape: Sequence[int], itemsize: int, target_bytes: int) -> tuple[int, ...]:
    """Return a shape of chunks into which to divide an array, each contiguous in row-major order.

    shape         shape of the array
    itemsize      bytes of a cell
    target_bytes  largest size of a chunk; only a chunk of one cell may be larger

    Trailing axes stay whole as long as they fit. The axis before them is split, and earlier axes have length 1.
    """
    chunk = [1] * len(shape)
    for axis in range(len(shape)):
        row_bytes = math.prod(shape[axis + 1 :]) * itemsize
        if row_bytes <= target_bytes or axis == len(shape) - 1:
            chunk[axis] = min(shape[axis], max(1, target_bytes // row_bytes))
            chunk[axis + 1 :] = shape[axis + 1 :]
            break
    return tuple(chunk)
