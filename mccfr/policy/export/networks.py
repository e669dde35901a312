"""Writes and reads networks of Deep CFR as a directory of flat arrays, for any program.

    networks.json      manifest: game, form of the networks, meaning of inputs, length and CRC-32C of each file
    networks.npy       [T, P] float32 parameters of T networks, player 0's first, padded with 0
    weights.npy        [T] float64    weight of each network in its player's average
    players.npy        [T] int64      player of each network
    iterations.npy     [T] int64      iteration in which it was fitted; 0: uniform play, all parameters 0

For games with listed infosets, by player, ordered by street and bucket (I infosets, F inputs, A actions at most):

    inputs_player0.npy   [I, F] float32  inputs of the network; absent if they are a one-hot code of the infoset
    actions_player0.npy  [I] int64       number of actions, which are the first outputs
    parents_player0.npy  [I] int64       infoset · A + action of the player's last decision before; -1: none

For games whose cards are dealt from the whole deck, by node of the betting tree.  N nodes, B inputs:

    bets.npy  [N, B] float32  inputs that describe the betting, which follow those of the cards
    tree.npy  [N, 5] int64    parent (-1: none), player (-1: no player acts), street, first child, number of children
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal

import msgspec
import numpy as np
import numpy.typing as npt

from mccfr.config.plugins import NamedCode, sources, user_code_names
from mccfr.config.solver_tables import DeepCfrConfig
from mccfr.config.toml_files import config_from
from mccfr.games.game import Game
from mccfr.games.registry import build_game, game_files
from mccfr.policy.checks import Provenance
from mccfr.policy.overwrite import provenance_of
from mccfr.solvers.deep.infosets import NO_CELL, list_infosets
from mccfr.solvers.deep.network_inputs import VERSION, column_names
from mccfr.solvers.deep.network_strategy import Networks
from mccfr.solvers.deep.sampled_cards import view
from mccfr.solvers.deep.sampled_cards_cfr import make_card_network, samples_cards
from mccfr.solvers.deep.training_state import make_network
from storage import durable
from storage.atomic_outputs import output
from storage.damage import DamagedError, reading
from storage.directory_lock import read_directory
from storage.json_files import parse_json, typed
from storage.manifest import canonical_json, read_manifest, write_manifest
from storage.manifest_files import file_entries, file_problems, listed_files
from storage.npy import npy_pieces, read_npy

MANIFEST, FORMAT, FORMAT_VERSION = "networks.json", "mccfr-networks", 2


class _FeatureFields(msgspec.Struct, frozen=True):
    version: int


class _NetworkFields(msgspec.Struct, frozen=True):
    """The fields of networks.json that are needed to read networks."""

    game: dict[str, Any]
    solver: dict[str, Any]
    outputs: Literal["probabilities", "advantages"]
    features: _FeatureFields
    provenance: Provenance
    files: dict[str, Any]
    code_sha256: dict[str, str] = {}


_PARTS = ("parameters", "weight", "iteration")


def networks_provenance(path: Path) -> Mapping[str, Any] | None:
    """Return the provenance of a directory of networks: the run and checkpoint that they are from.

    A directory in any version of the format has one. Returns None if the path holds no directory of networks. Raises
    `UnreadableError` if the system cannot read its manifest.
    """
    return provenance_of(path, MANIFEST, FORMAT)


def is_networks(path: Path) -> bool:
    """Return whether a directory's manifest declares networks, of any version of the format."""
    return networks_provenance(path) is not None


def write_networks(
    out: Path,
    strategy: Networks,
    documents: Mapping[str, Any],
    provenance: Mapping[str, Any],
    replaceable: Callable[[Path], bool] = is_networks,
) -> None:
    """Write networks as a directory at `out`, complete or not at all; those of weight 0 are left out.

    documents    the `[game]` and `[solver]` tables of the run's configuration
    provenance   JSON with the origin of the networks
    replaceable  takes a path at which something exists, and returns whether it may be replaced

    Raises `FileExistsError` if `out` may not be replaced.  Raises `ValueError` for parameters that are not finite, and
    for a game whose configuration names files, as the directory cannot hold them.
    """
    game, files = strategy.game, game_files(config_from(documents, "the run's configuration").game, Path())
    if files:
        raise ValueError(
            f"{game.name} is made from files (game.{next(iter(files))}) that networks do not hold: use --tabulate"
        )
    arrays = {**_networks(strategy), **_seen(game, strategy.config)}
    if not np.isfinite(arrays["networks"]).all():
        raise ValueError("the run's networks have parameters that are not finite numbers")
    fields = {
        "code_sha256": {source.name: source.sha256 for source in sources(documents).values()},
        **{table: parse_json(canonical_json(documents[table]), table) for table in ("game", "solver")},
        "outputs": "probabilities" if strategy.shares else "advantages",
        "actions": int(game.tree.arrays.count[game.tree.decisions].max()),
        "parameters": _sizes(game, strategy.config),
        "features": {"version": VERSION, "columns": column_names(game)},
        "lines": list(game.tree.label) if samples_cards(game) else None,
        "provenance": dict(provenance),
    }
    with output(out, replaceable) as temporary:
        durable.make_dir(temporary)
        written = {
            f"{name}.npy": durable.write_file(temporary / f"{name}.npy", npy_pieces(array))
            for name, array in arrays.items()
        }
        write_manifest(temporary / MANIFEST, FORMAT, FORMAT_VERSION, {**fields, "files": file_entries(written)})
        durable.fsync_dir(temporary)


def read_networks(path: Path) -> tuple[Networks, dict[str, Any]]:
    """Return the networks of a directory, and the content of its manifest networks.json.

    Raises `FileNotFoundError` without a manifest, and `DamagedError` if another file is missing or any is damaged.
    Raises `UnreadableError` if the system cannot read a file. Raises `ValueError` for another version of the format or
    of the networks' inputs. Raises it too for arrays that do not fit the game, parameters that are not finite, and user
    code without permission.
    """
    meta, arrays = read_directory(path, _read_files)
    return _networks_of(path, meta, arrays), meta


def _networks_of(path: Path, meta: Mapping[str, Any], arrays: Mapping[str, npt.NDArray[Any]]) -> Networks:
    """Return the networks that a manifest and its arrays describe.

    path    directory of the networks, named in error messages
    meta    content of the manifest networks.json
    arrays  {file name without ending: array}

    Raises `ValueError` for another version of the networks' inputs, arrays that do not fit the game, and parameters
    that are not finite.
    """
    version = meta["features"]["version"]
    if version != VERSION:
        raise ValueError(
            f"{path} has networks of version {version} of the features; this program makes version {VERSION}: "
            "use a program of that version"
        )
    config = config_from(
        {"game": meta["game"], "solver": meta["solver"]},
        str(path / MANIFEST),
        artefact_code=NamedCode(path, meta.get("code_sha256", {})),
    )
    if not isinstance(config.solver, DeepCfrConfig):
        raise ValueError(f"{path / MANIFEST} names an algorithm that makes no networks: export them again")
    game = build_game(config.game, path, None)
    for name, array in _seen(game, config.solver).items():
        if name not in arrays or not np.array_equal(arrays[name], array):
            raise ValueError(f"{path}/{name}.npy does not describe {game.name}: the networks are of another game")
    return Networks(game, config.solver, _tables(path, arrays, _sizes(game, config.solver)), shares=_says(meta))


def _read_files(path: Path) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
    """Return (manifest, {file name without ending: array}) of a directory, after checking every byte.

    Raises `FileNotFoundError` without a manifest, and `DamagedError` if another file is missing or any is damaged.
    Raises `ValueError` for another version of the format.
    """
    meta = read_manifest(path / MANIFEST, FORMAT, FORMAT_VERSION)
    typed(meta, _NetworkFields, path / MANIFEST)
    for problem in file_problems(path, listed_files(meta["files"])):
        raise DamagedError(f"networks {path} are damaged: {problem}; export them again")
    return meta, {name.removesuffix(".npy"): read_npy(path / name) for name in meta["files"]}


def verify_networks(path: Path) -> list[str]:
    """Check every byte of a directory of networks; return a list of sentences on its problems.

    The first file that is damaged or does not fit the game ends the check, with one sentence. Otherwise the list names
    extra files. If the manifest names user code, the fit is not checked, because that would run the code.

    Raises `UnreadableError` if the system cannot read a file.
    """

    def read(inside: Path) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]], list[str]]:
        meta, arrays = _read_files(inside)
        with reading(inside):
            return meta, arrays, sorted({entry.name for entry in inside.iterdir()} - {MANIFEST, *meta["files"]})

    try:
        meta, arrays, extra = read_directory(path, read)
        if not user_code_names(meta):  # the check builds the game, and verifying must not run a user's code
            _networks_of(path, meta, arrays)
    except (DamagedError, FileNotFoundError, ValueError) as error:
        return [str(error)]
    return [f"{path}: {name} is not in {MANIFEST}" for name in extra]


def _says(meta: Mapping[str, Any]) -> bool:
    return bool(meta["outputs"] == "probabilities")


def _sizes(game: Game, config: DeepCfrConfig) -> list[int]:
    """Return the number of parameters of one network of each of the two players."""
    if samples_cards(game):
        return [make_card_network(view(game), config).size] * 2
    infosets = list_infosets(game)
    return [make_network(game, infosets, player, config)[0].size for player in range(2)]


def _networks(strategy: Networks) -> dict[str, npt.NDArray[Any]]:
    """Return {file name without ending: array}: parameters, weights, players, iterations of networks.

    Networks of weight 0 are left out; those of player 0 come first.
    """
    kept = [np.flatnonzero(strategy.tables[f"networks/player{player}/weight"]) for player in range(2)]
    found = [[strategy.tables[f"networks/player{p}/{part}"][kept[p]] for p in range(2)] for part in _PARTS]
    width = max(table.shape[1] for table in found[0])
    wide = [np.pad(table, ((0, 0), (0, width - table.shape[1]))) for table in found[0]]
    return {
        "networks": np.concatenate(wide),
        "weights": np.concatenate(found[1]),
        "players": np.repeat(np.arange(2), [len(places) for places in kept]),
        "iterations": np.concatenate(found[2]),
    }


def _seen(game: Game, config: DeepCfrConfig) -> dict[str, npt.NDArray[Any]]:
    """Return {file name without ending: array} of the arrays that describe the networks' inputs.

    For a game with listed infosets they are `inputs_playerP` (absent for a one-hot code), `actions_playerP` and
    `parents_playerP` of each player P. If cards are dealt from the whole deck, they are `bets` and `tree`. The module's
    docstring describes these files.
    """
    if samples_cards(game):
        arrays = game.tree.arrays
        street = np.maximum(arrays.block, 0) // 2
        columns = (game.tree.parent, arrays.player, street, arrays.first, arrays.count)
        return {"bets": view(game).lines, "tree": np.stack([column.astype(np.int64) for column in columns], axis=1)}
    infosets, found = list_infosets(game), dict[str, npt.NDArray[Any]]()
    for player in range(2):
        mine, inputs = infosets.of(player), make_network(game, infosets, player, config)[1]
        parent = infosets.parent[mine]
        if inputs.features is not None:
            found[f"inputs_player{player}"] = inputs.features
        found[f"actions_player{player}"] = infosets.actions[mine]
        found[f"parents_player{player}"] = np.where(parent == NO_CELL, NO_CELL, parent - mine.start * infosets.width)
    return found


def _tables(path: Path, arrays: Mapping[str, npt.NDArray[Any]], sizes: list[int]) -> dict[str, npt.NDArray[Any]]:
    """Return {name of a training run's table: table} of the networks, from the arrays of the files.

    path    directory of the networks, named in error messages
    arrays  {file name without ending: array}
    sizes   number of parameters of each player's network

    Raises `ValueError` for arrays that do not fit the game, and for parameters that are not finite.
    """
    networks, count = arrays["networks"], len(arrays["weights"])
    if networks.shape != (count, max(sizes)):
        raise ValueError(
            f"{path}/networks.npy has the shape {networks.shape}; the game's networks need {(count, max(sizes))}"
        )
    for name in ("networks", "weights"):
        if not np.isfinite(arrays[name]).all():
            raise ValueError(f"{path}/{name}.npy holds numbers that are not finite: export the run again")
    found: dict[str, npt.NDArray[Any]] = {}
    for player in range(2):
        here, at = arrays["players"] == player, f"networks/player{player}"
        if not here.any():
            raise ValueError(f"{path}/players.npy has no network of player {player}")
        found[f"counters/player{player}"] = np.zeros(3, np.int64)
        found[f"{at}/parameters"] = np.ascontiguousarray(networks[here, : sizes[player]])
        found[f"{at}/weight"], found[f"{at}/iteration"] = arrays["weights"][here], arrays["iterations"][here]
    return found
