"""Values in a policy: what each bucket wins where a street begins, when both players play the policy from there on.

    values_root_street1.npy       [R] int32: decisions of the tree that begin the street, ascending
    value_street1_player0.npy     [buckets, R] float32: chips of the whole hand that a hand of the bucket wins there

`values` of meta.json names them street by street.  A value is the mean over the bucket's hands and over boards, weighed
by the deal and by what the other player may hold there; times the weight of the other's hands that a hand meets it is
its counterfactual value.  It is one of play by the policy, not of a best response: re-solving with it as alternatives
is an estimate, and not safe.  NaN stands where the other player never comes, or no board was drawn that shows the
bucket.
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
    """Values of a street for one player: `nodes` [R] that begin it, `value` [buckets, R] chips."""

    street: int
    player: int
    nodes: npt.NDArray[np.integer]
    value: npt.NDArray[np.floating]


class PolicyValues(NamedTuple):
    """Values of all streets, player after player, and how they were found.

    boards  that were drawn; None: all were walked, and values are exact
    seed    of drawn boards
    """

    streets: Sequence[StreetValues]
    boards: int | None = None
    seed: int = 0

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """What the files hold, by their names."""
        found: dict[str, npt.NDArray[Any]] = {}
        for one in self.streets:
            found[_root_file(one.street)] = np.asarray(one.nodes, np.int32)
            found[_value_file(one.street, one.player)] = np.asarray(one.value, np.float32)
        return found

    def fields(self) -> dict[str, Any]:
        """`values` of meta.json."""
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
    """Return whether a file of a policy holds values, or where they are."""
    return name.startswith(("values_root_street", "value_street"))


def find_values(
    path: Path,
    meta: Mapping[str, Any],
    arrays: Mapping[str, npt.NDArray[Any]],
    tree: CompiledTree,
    node: int,
    player: int,
) -> Values:
    """[buckets] float32: what a player's buckets win at a decision that begins a street.

    path    of the policy, for messages
    meta    the policy's `meta.json`, whose files have been compared with it
    arrays  {file: array} of the files with values

    Raises `ValueError` for a policy without values, a node that begins no street, and files that do not fit.
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
    raise ValueError(f"node {node} begins no street: values are kept where streets begin")


def _root_file(street: int) -> str:
    return f"values_root_street{street}.npy"


def _value_file(street: int, player: int) -> str:
    return f"value_street{street}_player{player}.npy"
