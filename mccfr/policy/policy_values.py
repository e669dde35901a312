"""Expected values of each bucket at the first decisions of streets, if both players follow the policy.

    values_root_street1.npy       [R] int32: decision nodes that begin the street, one for each betting line, ascending
    value_street1_player0.npy     [buckets, R] float32: chips won over the whole hand by a hand of the bucket

`values` of meta.json names the files by street.  A value is the mean over the bucket's hands and over boards, weighted
by the deal and the opponent's range.  A hand's counterfactual value is this value times the total weight of the
opponent's hands that share no card with it.  NaN: the opponent's strategy never gets here, or no sampled board has the
bucket.

The values are not those of best responses.  Re-solving with them as alternative payoffs is therefore not safe.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from mccfr.trees.compiled import CompiledTree

Values = npt.NDArray[np.float32]


class StreetValues(NamedTuple):
    """Expected values of one player's buckets on one street.

    nodes  [R] the street's first decisions, one for each betting line
    value  [buckets, R] mean of chips won over the whole hand
    """

    street: int
    player: int
    nodes: npt.NDArray[np.integer]
    value: npt.NDArray[np.floating]


class PolicyValues(NamedTuple):
    """Expected values of a policy's buckets on all streets, and how they were computed.

    streets  values of each street and player
    boards   number of sampled boards; None: all boards were enumerated, and the values are exact
    seed     of the sampled boards
    """

    streets: Sequence[StreetValues]
    boards: int | None = None
    seed: int = 0

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return {file name: array} of the policy's files with values."""
        found: dict[str, npt.NDArray[Any]] = {}
        for one in self.streets:
            found[_root_file(one.street)] = np.asarray(one.nodes, np.int32)
            found[_value_file(one.street, one.player)] = np.asarray(one.value, np.float32)
        return found

    def fields(self) -> dict[str, Any]:
        """Return the `values` field of meta.json: kind of values, number of boards, seed and file names.

        The file names are a list by street: {"roots": file of nodes, "value": [file of player 0, file of player 1]}.
        """
        streets = sorted({one.street for one in self.streets})
        return {
            "of": "the policy against itself",
            "bound": "exact" if self.boards is None else "estimate",
            "boards": self.boards,
            "seed": None if self.boards is None else self.seed,
            "streets": [
                {"roots": _root_file(street), "value": [_value_file(street, player) for player in range(2)]}
                for street in streets
            ],
        }


class _StreetFiles(msgspec.Struct, frozen=True):
    roots: str
    value: tuple[str, str]


class _ValueFields(msgspec.Struct, frozen=True):
    of: str
    bound: str
    boards: int | None
    seed: int | None
    streets: list[_StreetFiles]


def is_value_file(name: str) -> bool:
    """Return whether a policy's file `name` has expected values, or their decision nodes."""
    return name.startswith(("values_root_street", "value_street"))


def find_values(
    path: Path,
    meta: Mapping[str, Any],
    arrays: Mapping[str, npt.NDArray[Any]],
    tree: CompiledTree,
    node: int,
    player: int,
) -> Values:
    """Return a player's expected values [buckets] float32, in chips, at a node that begins a street.

    path    of the policy, for messages
    meta    the policy's `meta.json`, whose files have been checked against it
    arrays  {file name: array} of the files with values
    tree    tree of the policy's game
    node    number of the decision, the first of its street
    player  0 or 1

    NaN marks a bucket without a value. Raises `ValueError` for a policy without values, another player, and a node that
    is no street's first decision. Also for files that are missing or do not fit each other.
    """
    if player not in (0, 1):
        raise ValueError(f"player = {player}: it must be 0 or 1")
    if "values" not in meta:
        raise ValueError(f"{path} holds no values: export it with --values")
    try:
        fields = msgspec.convert(meta["values"], _ValueFields)
    except msgspec.ValidationError as error:
        raise ValueError(f"meta.json: values: {error}") from None
    street = int(tree.arrays.block[node]) // 2 if 0 <= node < len(tree.parent) else -1
    if 0 <= street < len(fields.streets):
        files = fields.streets[street]
        for name in (files.roots, files.value[player]):
            if name not in arrays:
                raise ValueError(f"meta.json does not list {name}")
        roots, value = arrays[files.roots], arrays[files.value[player]]
        if value.ndim != 2 or value.shape[1:] != roots.shape or value.dtype != np.float32:
            raise ValueError(f"{files.value[player]} does not fit {files.roots}")
        place = np.flatnonzero(roots == node)
        if len(place):
            return np.array(value[:, place[0]])
    raise ValueError(f"node {node} does not begin a street: values are stored where streets begin")


def _root_file(street: int) -> str:
    return f"values_root_street{street}.npy"


def _value_file(street: int, player: int) -> str:
    return f"value_street{street}_player{player}.npy"
