"""Writes named arrays for other programs, as compressed, checksummed Zarr groups or HDF5 files."""

import importlib
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from storage import durable
from storage.atomic_outputs import SCRATCH, begins_with, output
from storage.damage import DamagedError, decoding, reading
from storage.json_files import parse_json, read_json
from storage.schema import ArraySpec, validate_specs
from storage.table_formats import table_format

_HDF5_SIGNATURE = b"\x89HDF\r\n\x1a\n"
_ATTRIBUTE = "description"


def write_arrays(
    path: Path,
    arrays: Mapping[str, np.ndarray],
    format: str,  # noqa: A002 - the name of the config's key
    *,
    axes: Mapping[str, tuple[str, ...]],
    description: Mapping[str, Any],
    replaceable: Callable[[Path], bool],
) -> None:
    """Write named arrays as a Zarr group or an HDF5 file, atomically.

    Args:
        path:        the group's directory or the file
        arrays:      {name: array}; a name is a relative path; dtypes are integers (not int8) and floats up to 64 bits
        format:      `zarr` or `hdf5`
        axes:        {name of the array: names of its axes}
        description: JSON for the attribute `description` of the group or file
        replaceable: function of a path: returns True if an existing file or group may be replaced, which is atomic

    Raises:
        ValueError: an unknown format, or a name, shape or dtype that is not allowed.
        FileExistsError: `path` exists and may not be replaced.
        NotFiniteError: a cell is NaN or infinite.
    """
    layout = table_format(format)
    specs = validate_specs(ArraySpec(name, array.shape, array.dtype.name, axes[name]) for name, array in arrays.items())
    notes = {_ATTRIBUTE: json.dumps(description, sort_keys=True)}
    with output(path, replaceable) as temporary:
        scratch = temporary.with_name(temporary.name + SCRATCH)
        durable.make_dir(scratch)
        try:
            layout.write_tables(scratch, specs, arrays, notes=notes)
            durable.rename(scratch / layout.TABLES, temporary)
        finally:
            durable.discard(scratch)


def read_description(path: Path, format: str) -> dict[str, Any] | None:  # noqa: A002 - the name of the config's key
    """Return the description that `write_arrays` stored in a Zarr group or HDF5 file.

    format  `zarr` or `hdf5`

    Returns None if there is no file, no such description, or the file is damaged. Raises `UnreadableError` if the
    system cannot read the file.
    """
    try:
        with reading(path), decoding(path, str(path)):
            description = parse_json(_attribute(path, format), path)
    except (DamagedError, FileNotFoundError, NotADirectoryError, ValueError):
        return None
    return description if isinstance(description, dict) else None


def _attribute(path: Path, format: str) -> str | bytes:  # noqa: A002 - the name of the config's key
    """Return the text of the attribute `description` of a Zarr group or HDF5 file; "" if there is none.

    Raises `OSError` or `ValueError` for a damaged file.
    """
    text = None
    if format == "zarr":
        content = read_json(path / "zarr.json")
        attributes = content.get("attributes") if isinstance(content, dict) else None
        text = attributes.get(_ATTRIBUTE) if isinstance(attributes, dict) else None
    elif begins_with(_HDF5_SIGNATURE)(path):  # other files would get h5py's own error
        with importlib.import_module("h5py").File(path, "r") as opened:
            text = opened.attrs.get(_ATTRIBUTE)
    return text if isinstance(text, str | bytes) else ""
