"""Exported networks: the documented reader, queries, and refused files.

Shows:

* The documented reader computes the explicit average from exported networks
  (test_the_documented_reader_computes_the_explicit_average)
* Networks drawn by seed are drawn in proportion to their weights (test_a_query_gives_the_weighted_mean_of_the_networks)
* Damaged networks, and networks of other games or versions, are refused (test_networks_that_do_not_fit_are_refused)
"""

import json
from functools import cache

import deep
import numpy as np
import pytest
from manifests import forge
from places import ROOT
from refusals import refusals, refused
from swapping import swaps

from mccfr.config.game_tables import LeducGame
from mccfr.config.run_tables import Config
from mccfr.config.toml_files import to_document
from mccfr.games.registry import build_game
from mccfr.policy.export import networks as files
from mccfr.policy.network_query import query_networks
from mccfr.runs.directory.verification import problems_of
from mccfr.runs.results.targets import Reference, open_networks, open_target
from mccfr.solvers.deep.network_strategy import Networks, average_tables, network_tables

LEDUC = LeducGame(merge_suits=True)


@cache
def trained():
    """Return the record of six iterations of small networks on Leduc."""
    game = build_game(LEDUC, None, None)
    config = deep.options(units=8, layers=2, steps=20, strategy_steps=20, batch="all", horizon=6)
    return deep.record(game, config, 6, dtype="float32")


def networks_of(found):
    state = found.cfr.state
    return Networks(state.game, state.config, network_tables(state.tables))


@pytest.fixture
def exported(tmp_path):
    """Return a directory of exported networks."""
    networks = networks_of(trained())
    documents = to_document(Config(game=LEDUC, solver=networks.config))
    files.write_networks(tmp_path / "networks", networks, documents, {"checkpoint": 1})
    return tmp_path / "networks"


def test_networks_are_verified_to_the_last_byte(exported):
    assert problems_of(exported) == []
    (exported / "more.npy").write_bytes(b"")
    assert problems_of(exported) == [f"{exported}: more.npy is not in networks.json"]
    for path in exported.glob("*.npy"):
        content = path.read_bytes()
        path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]) if content else b"1")
        assert len(problems_of(exported)) == 1, path.name
        path.write_bytes(content)


def test_files_of_other_networks_are_refused(exported, tmp_path):
    networks = networks_of(trained())
    other = Networks(networks.game, networks.config, {name: 2 * table for name, table in networks.tables.items()})
    files.write_networks(tmp_path / "other", other, to_document(Config(game=LEDUC, solver=networks.config)), {})
    found = [name for name in swaps(exported, tmp_path / "other") if problems_of(exported)]
    assert len(found) >= 2 and found == list(swaps(exported, tmp_path / "other"))


@pytest.mark.parametrize("opened", [open_target, open_networks])
def test_networks_refuse_a_checkpoint_and_an_abstraction(exported, opened):
    refused("leave --checkpoint out", opened, Reference(exported, 1))
    refused("leave --abstraction out", opened, Reference(exported, None, exported))


def flat(strategy, state, player):
    """Return the probabilities [I, A] at a player's infosets."""
    infosets, shares = state.infosets, state.infosets.uniform() * 0
    for block in range(player, 4, 2):
        places = infosets.numbering
        here = slice(int(places.base[block]), int(places.base[block] + places.rows[block] * places.buckets[block]))
        shares[here][infosets.legal[here]] = strategy.probability[block].ravel()
    return shares[infosets.of(player)]


def test_the_documented_reader_computes_the_explicit_average(exported):
    names = {}
    exec((ROOT / "docs/examples/read_networks.py").read_text(encoding="utf-8"), names)
    state = trained().cfr.state
    wanted = state.average("sd", 6)
    for player in range(2):
        shares = names["average"](exported, player)
        reached = shares.sum(axis=1) > 0.5
        assert reached.mean() > 0.5
        assert np.abs(shares - flat(wanted, state, player))[reached].max() < 1e-4
    again, _ = files.read_networks(exported)
    assert [again.iteration(player, 0) for player in range(2)] == [1, 0]
    columns = json.loads((exported / files.MANIFEST).read_text())["features"]["columns"]
    assert len(columns) == np.load(exported / "inputs_player0.npy").shape[1]
    assert columns[:3] == ["hand, rank J", "hand, rank K", "hand, rank Q"]


def test_a_query_gives_the_weighted_mean_of_the_networks(exported):
    """Compare a query with the weighted mean of networks at a first decision, where reaches are 1.

    Networks drawn by seed occur in proportion to their weights.
    """
    networks, _ = files.read_networks(exported)
    answer = query_networks(networks, "", "K")
    table = networks.tables["networks/player0/weight"]
    rows, drawn = {}, np.zeros(len(table))
    for seed in range(600):
        place = networks.sampled_network(0, seed)
        drawn[place] += 1
        if place not in rows:
            rows[place] = query_networks(networks, "", "K", seed=seed)
    assert (np.abs(drawn / 600 - table / table.sum()) < 0.08).all()
    assert len(rows) == answer["networks"] == 6
    shares = [[action["probability"] for action in rows[place]["actions"]] for place in sorted(rows)]
    wanted = np.average(shares, axis=0, weights=table)
    assert np.abs(wanted - [action["probability"] for action in answer["actions"]]).max() < 1e-9
    iterations = [rows[place]["sampled_iteration"] for place in sorted(rows)]
    assert iterations == networks.tables["networks/player0/iteration"].tolist()


def test_a_network_of_the_average_strategy_is_evaluated_directly():
    state = trained().cfr.state
    tables = average_tables([state.fit_average(player, 6) for player in range(2)], 6)
    networks = Networks(state.game, state.config, tables, shares=True)
    for player in range(2):
        both = networks.strategy(), state.average("network", 6)
        found, wanted = (flat(strategy, state, player) for strategy in both)
        assert np.abs(found - wanted).max() < 1e-6


def without_number(array):
    array[0, 3] = np.nan
    return array


def read_spoilt(name, change, exported):
    """Read networks after a change of an array, or of the manifest, with matching checksums."""
    if name is None:
        forge(exported, change, files.MANIFEST)
    else:
        np.save(exported / name, change(np.load(exported / name)))
        forge(exported, name=files.MANIFEST)
    files.read_networks(exported)


test_networks_that_do_not_fit_are_refused = refusals(
    ("not finite", "networks.npy", without_number),
    ("the game's networks need", "networks.npy", lambda array: array[:, :-1]),
    ("of version 0 of the features", None, lambda content: content["features"].update(version=0)),
    ("the networks are of another game", None, lambda content: content["game"].update(ranks=4)),
    ("no network of player 1", "players.npy", lambda array: array * 0),
    call=read_spoilt,
)


def test_damage_is_reported_with_the_file(exported):
    path = exported / "weights.npy"
    path.write_bytes(path.read_bytes()[:-1] + b"\1")
    refused(r"weights\.npy", files.read_networks, exported, error=OSError)
