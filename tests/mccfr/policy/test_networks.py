"""Exported networks: the documented reader, queries, and refused files.

Shows:

* The documented reader computes the explicit average from exported networks
  (test_the_reader_of_the_documents_makes_the_explicit_average)
* Networks drawn by seed are drawn in proportion to their weights (test_an_answer_is_the_mean_of_what_networks_play)
* Damaged networks, and networks of other games or versions, are refused (test_networks_that_are_none_of_this_game)
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
    """Six iterations of small networks on Leduc."""
    game = build_game(LEDUC, None, None)
    config = deep.options(units=8, layers=2, steps=20, strategy_steps=20, batch="all", horizon=6)
    return deep.record(game, config, 6, dtype="float32")


def asked_of(found):
    learned = found.cfr.state
    return Networks(learned.game, learned.config, network_tables(learned.tables))


@pytest.fixture
def written(tmp_path):
    """A directory of networks."""
    asked = asked_of(trained())
    documents = to_document(Config(game=LEDUC, solver=asked.config))
    files.write_networks(tmp_path / "networks", asked, documents, {"checkpoint": 1})
    return tmp_path / "networks"


def test_networks_are_verified_to_the_last_byte(written):
    assert problems_of(written) == []
    (written / "more.npy").write_bytes(b"")
    assert problems_of(written) == [f"{written}: more.npy is not in networks.json"]
    for path in written.glob("*.npy"):
        content = path.read_bytes()
        path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]) if content else b"1")
        assert len(problems_of(written)) == 1, path.name
        path.write_bytes(content)


def test_no_file_of_other_networks_passes(written, tmp_path):
    asked = asked_of(trained())
    other = Networks(asked.game, asked.config, {name: 2 * table for name, table in asked.tables.items()})
    files.write_networks(tmp_path / "other", other, to_document(Config(game=LEDUC, solver=asked.config)), {})
    found = [name for name in swaps(written, tmp_path / "other") if problems_of(written)]
    assert len(found) >= 2 and found == list(swaps(written, tmp_path / "other"))


@pytest.mark.parametrize("opened", [open_target, open_networks])
def test_networks_are_of_one_checkpoint_and_need_no_buckets(written, opened):
    refused("leave --checkpoint out", opened, Reference(written, 1))
    refused("leave --abstraction out", opened, Reference(written, None, written))


def flat(strategy, learned, player):
    """[I, A] probabilities at a player's infosets."""
    infosets, made = learned.infosets, learned.infosets.uniform() * 0
    for block in range(player, 4, 2):
        places = infosets.numbering
        here = slice(int(places.base[block]), int(places.base[block] + places.rows[block] * places.buckets[block]))
        made[here][infosets.legal[here]] = strategy.probability[block].ravel()
    return made[infosets.of(player)]


def test_the_reader_of_the_documents_makes_the_explicit_average(written):
    names = {}
    exec((ROOT / "docs/examples/read_networks.py").read_text(encoding="utf-8"), names)
    learned = trained().cfr.state
    wanted = learned.average("sd", 6)
    for player in range(2):
        made = names["average"](written, player)
        reached = made.sum(axis=1) > 0.5
        assert reached.mean() > 0.5
        assert np.abs(made - flat(wanted, learned, player))[reached].max() < 1e-4
    again, _ = files.read_networks(written)
    assert [again.iteration(player, 0) for player in range(2)] == [1, 0]
    columns = json.loads((written / files.MANIFEST).read_text())["features"]["columns"]
    assert len(columns) == np.load(written / "inputs_player0.npy").shape[1]
    assert columns[:3] == ["hand, rank J", "hand, rank K", "hand, rank Q"]


def test_an_answer_is_the_mean_of_what_networks_play(written):
    """Compare the average with the weighted mean of networks at a first decision, where all reaches are 1.

    Networks drawn by seed have the same mean.
    """
    asked, _ = files.read_networks(written)
    answer = query_networks(asked, "", "K")
    table = asked.tables["networks/player0/weight"]
    rows, drawn = {}, np.zeros(len(table))
    for seed in range(600):
        place = asked.sampled_network(0, seed)
        drawn[place] += 1
        if place not in rows:
            rows[place] = query_networks(asked, "", "K", seed=seed)
    assert (np.abs(drawn / 600 - table / table.sum()) < 0.08).all()
    assert len(rows) == answer["networks"] == 6
    shares = [[action["probability"] for action in rows[place]["actions"]] for place in sorted(rows)]
    wanted = np.average(shares, axis=0, weights=table)
    assert np.abs(wanted - [action["probability"] for action in answer["actions"]]).max() < 1e-9
    iterations = [rows[place]["sampled_iteration"] for place in sorted(rows)]
    assert iterations == asked.tables["networks/player0/iteration"].tolist()


def test_the_network_of_the_average_strategy_is_asked_as_it_is():
    learned = trained().cfr.state
    tables = average_tables([learned.fit_average(player, 6) for player in range(2)], 6)
    asked = Networks(learned.game, learned.config, tables, shares=True)
    for player in range(2):
        both = asked.strategy(), learned.average("network", 6)
        found, wanted = (flat(strategy, learned, player) for strategy in both)
        assert np.abs(found - wanted).max() < 1e-6


def without_number(array):
    array[0, 3] = np.nan
    return array


def read_spoilt(name, change, written):
    """Read networks with an array, or a field of their manifest, changed and signed anew."""
    if name is None:
        forge(written, change, files.MANIFEST)
    else:
        np.save(written / name, change(np.load(written / name)))
        forge(written, name=files.MANIFEST)
    files.read_networks(written)


test_networks_that_are_none_of_this_game = refusals(
    ("not finite", "networks.npy", without_number),
    ("the game's networks need", "networks.npy", lambda array: array[:, :-1]),
    ("of version 0 of the features", None, lambda content: content["features"].update(version=0)),
    ("these are of another game", None, lambda content: content["game"].update(ranks=4)),
    ("no network of player 1", "players.npy", lambda array: array * 0),
    call=read_spoilt,
)


def test_damage_is_told(written):
    path = written / "weights.npy"
    path.write_bytes(path.read_bytes()[:-1] + b"\1")
    refused(r"weights\.npy", files.read_networks, written, error=OSError)
