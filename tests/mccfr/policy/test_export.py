"""Exports to OpenSpiel, CSV, Parquet, Zarr and HDF5, and the origin that an export states.

Shows:

* Exports that read rows from disk equal those of the dense average (test_exports_read_rows_and_build_no_dense_tables)
* Evaluations that read strategy sums from disk equal those of the dense average
  (test_evaluation_from_strategy_sums_equals_the_dense_average)
"""

import csv
import json
import sys
import zlib
from contextlib import contextmanager, nullcontext
from math import comb

import h5py
import numpy as np
import pyspiel
import pytest
import zarr
from commands import call, command
from manifests import flip
from msgspec.structs import replace
from places import ROOT, RUNS
from policies import document
from pyarrow import parquet
from refusals import refusals, refused
from sessions import OUTCOME, make, trained
from small_games import BLINDS
from strategies import random_strategy

from mccfr import __version__
from mccfr.config import game_tables as games
from mccfr.config.run_tables import AbstractionConfig
from mccfr.config.toml_files import config_from
from mccfr.evaluation.exact import evaluate_exact
from mccfr.games.registry import build_game
from mccfr.policy import Policy, Profile
from mccfr.policy.export import export
from mccfr.policy.export.export_formats import write_tables
from mccfr.policy.origin import origin_facts, unfinished_text
from mccfr.policy.query import query
from mccfr.runs.directory import run as rundir
from mccfr.runs.reporter import Silent
from mccfr.runs.results import run_export
from mccfr.runs.results.average_strategies import checkpoint_average
from mccfr.runs.results.checkpoints import find_checkpoint, read_tables
from mccfr.runs.results.run_export import ExportOptions, export_run
from mccfr.runs.session.start import Terms, start_run
from mccfr.runs.session.training_session import train
from mccfr.tables import strategy as module
from mccfr.tables.strategy import average_strategy, uniform_strategy
from mccfr.tables.table_layout import TableSet, make_layout, private_tables

TWO_CARDS = games.PokerGame(hole_cards=2, board_cards=(0,), blinds=(2, 1), stack=8, first_player=(2,))
ANTES = games.PokerGame(antes=(1, 1), stack=4)
LIMIT = games.PokerGame(antes=(1, 1), stack=100, raise_sizes=(2, 4), max_raises=(2, 1))


def write(out, config, strategy=None, kind="openspiel", tables=None, seed=0):
    game = build_game(config, RUNS)
    strategy = random_strategy(game, seed) if strategy is None else strategy
    export(game, document(config), strategy, tables or TableSet({}), out, kind, "uint16", {"checkpoint": 3})
    return game, strategy


def openspiel_score(path):
    """Return the exploitability in chips by OpenSpiel's best response, from the file alone."""
    content = json.loads(path.read_text())
    entries = {key: [(int(a), p) for a, p in row.items()] for key, row in content["policy"].items()}
    game = pyspiel.load_game(content["game"])
    return content["payoff_scale"] * pyspiel.nash_conv(game, pyspiel.TabularPolicy(entries), True) / 2


# OpenSpiel ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "config",
    [
        games.KuhnGame(),
        games.LeducGame(),
        games.LeducGame(merge_suits=True),
        ANTES,
        BLINDS,
        TWO_CARDS,
        LIMIT,
        games.GoofspielGame(cards=4, reveal="result"),
        games.OpenSpielGame(game="liars_dice(dice_sides=2)"),
    ],
    ids=str,
)
def test_openspiel_gives_an_export_the_same_exploitability(tmp_path, config):
    game, strategy = write(tmp_path / "policy.json", config)
    ours = evaluate_exact(game, strategy).exploitability_chips
    assert openspiel_score(tmp_path / "policy.json") == pytest.approx(ours, abs=1e-6)


@pytest.mark.parametrize(
    ("played", "claimed", "text"),
    [
        (ANTES, replace(ANTES, stack=5), "after '', OpenSpiel's has the actions"),
        (LIMIT, games.LeducGame(), "actions"),
        (ANTES, replace(ANTES, first_player=(2, 2)), "player 1 acts in"),
        (games.KuhnGame(), games.OpenSpielGame(game="leduc_poker"), "is not this game|invalid literal"),
        (LIMIT, games.PokerGame(antes=(1, 1), stack=100, raise_sizes=(1, 4), max_raises=(2, 1)), "player 0 gets"),
    ],
)
def test_a_game_that_differs_from_openspiels_is_refused(tmp_path, played, claimed, text):
    game = build_game(played, ROOT)
    with pytest.raises(ValueError, match=text):
        export(game, document(claimed), random_strategy(game), TableSet({}), tmp_path / "p", "openspiel", "uint16", {})
    assert list(tmp_path.iterdir()) == []


def write_uniform(config, tmp_path):
    write(tmp_path / "p", config, uniform_strategy(build_game(config, RUNS)))


test_refusals = refusals(
    *(
        ("OpenSpiel has no game like", write_uniform, config)
        for config in (
            games.LeducGame(raises=1),
            games.LeducGame(bets=((1,), (2,))),
            games.AkqGame(),
            games.MatrixGame(payoffs=((1, -1), (-1, 1))),
            games.HoldemSubgame(file="games/river.txt"),
        )
    ),
    ("whole chips only", write_uniform, games.PokerGame(antes=(1, 1), raise_sizes=(0.5, 1), max_raises=(1, 1))),
    (
        "'xlsx' is not one of policy, zarr, hdf5, csv, openspiel, parquet",
        lambda tmp_path: write(tmp_path / "p", games.KuhnGame(), kind="xlsx"),
    ),
)


def test_openspiel_export_refuses_strategies_that_depend_on_bids(tmp_path):
    config = games.GoofspielGame(cards=4)
    refused("needs reveal = 'result' or at most 3 cards", write, tmp_path / "p", config)
    write(tmp_path / "p", config, uniform_strategy(build_game(config, ROOT)))  # this strategy does not depend on bids
    assert (tmp_path / "p").is_file()


# Rows -----------------------------------------------------------------------------------------------------------------


def test_csv_has_a_row_for_each_infoset_and_action(tmp_path):
    game, strategy = write(tmp_path / "leduc.csv", games.LeducGame(), kind="csv")
    rows = list(csv.DictReader((tmp_path / "leduc.csv").read_text().splitlines()))
    assert len(rows) == int((game.tree.row_slots * game.buckets).sum())
    sums = {}
    for row in rows:
        key = tuple(row[name] for name in ("line", "street", "player", "hand", "board"))
        sums[key] = sums.get(key, 0) + float(row["probability"])
    assert len(sums) == 936
    assert np.allclose(list(sums.values()), 1)
    found = next(r for r in rows if (r["line"], r["hand"], r["board"], r["action"]) == ("r3c/", "Kd", "Qc", "r7"))
    node = next(n for n in game.tree.decisions if [game.tree.label[m] for m in game.tree.path(n)[1:]] == ["r3", "c"])
    board, slot = game.cards.board_cards[1][:, 0].tolist().index(2), int(game.tree.arrays.slot[node])
    bucket = int(game.cards.bucket[1][0, board, 5])
    assert float(found["probability"]) == strategy.probability[2][bucket, slot + 1]
    assert float(found["weight"]) == 1


def test_csv_names_the_infosets_of_hidden_moves_once(tmp_path):
    game, _ = write(tmp_path / "g.csv", games.GoofspielGame(cards=3), kind="csv")
    rows = list(csv.DictReader((tmp_path / "g.csv").read_text().splitlines()))
    assert len(rows) == int(game.tree.row_slots.sum())
    assert {(r["player"], r["infoset"]) for r in rows} == {
        (str(player), name) for player in range(2) for name in game.tree.infoset_names[player]
    }


def test_csv_leaves_out_hands_outside_of_a_players_range(tmp_path):
    config = games.HoldemSubgame(file="games/river.txt")
    game = build_game(config, RUNS)
    write(tmp_path / "river.csv", config, uniform_strategy(game), kind="csv")
    with (tmp_path / "river.csv").open() as file:
        hands = {(row["player"], row["hand"]) for row in csv.DictReader(file)}
    assert len(hands) == int((game.cards.reach > 0).sum())


def test_parquet_export_names_its_missing_dependency(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    refused(r"needs pyarrow: run tools/bootstrap parquet", write, tmp_path / "p", games.KuhnGame(), kind="parquet")


def test_parquet_holds_the_rows_of_the_csv_and_explains_its_columns(tmp_path):
    write(tmp_path / "k.parquet", games.KuhnGame(), kind="parquet")
    write(tmp_path / "k.csv", games.KuhnGame(), kind="csv")
    table = parquet.read_table(tmp_path / "k.parquet")
    rows = list(csv.DictReader((tmp_path / "k.csv").read_text().splitlines()))
    assert [{name: str(value) for name, value in row.items()} for row in table.to_pylist()] == rows
    description = json.loads(table.schema.metadata[b"mccfr"])
    assert set(description["columns"]) == set(table.column_names) and "chips" in description["units"]
    assert description["game"]["name"] == "kuhn" and description["provenance"] == {"checkpoint": 3}


# Raw tables -----------------------------------------------------------------------------------------------------------


def filled_tables(game):
    tables = private_tables(make_layout(game))
    rng = np.random.default_rng(0)
    for table in tables.values():
        table[:] = rng.integers(1, 100, table.shape)
    return tables


@pytest.mark.parametrize("kind", ["zarr", "hdf5"])
def test_raw_tables_are_read_by_zarr_and_h5py(tmp_path, kind):
    game = build_game(games.LeducGame(), ROOT)
    tables = filled_tables(game)
    out = tmp_path / "tables"
    for _ in range(2):  # the second replaces the first
        write(out, games.LeducGame(), uniform_strategy(game), kind, tables)
    assert [path.name for path in tmp_path.iterdir()] == ["tables"]
    opened = nullcontext(zarr.open_group(out, mode="r")) if kind == "zarr" else h5py.File(out)
    with opened as group:
        labels = [bytes(row).rstrip(b"\0").decode() for row in group["tree/label"][:]]
        assert labels == list(game.tree.label)
        for field in ("kind", "player", "block", "count", "first", "slot", "row"):
            assert np.array_equal(group[f"tree/{field}"][:], getattr(game.tree.arrays, field))
        assert np.array_equal(group["tree/parent"][:], game.tree.parent)
        description = json.loads(group.attrs["description"])
    assert description["provenance"] == {"checkpoint": 3}
    assert description["game"]["bets"] == [[2], [4]]


@contextmanager
def opened_arrays(path, kind):
    """Yield {name: (axis labels, cells)} of a raw export, as zarr or h5py read it."""
    if kind == "zarr":
        arrays = zarr.open_group(path, mode="r").members(max_depth=None)
        yield {name: (array.metadata.dimension_names, array[:]) for name, array in arrays if hasattr(array, "shape")}
        return
    with h5py.File(path) as file:
        found = {}
        file.visititems(lambda name, item: found.update({name: item}) if isinstance(item, h5py.Dataset) else None)
        yield {name: (tuple(axis.label for axis in item.dims), item[:]) for name, item in found.items()}


SOLVERS = {
    "external": {},
    "outcome, swept": {"algorithm": "outcome-sampling", "discount": "dcfr"},
    "public chance": {"algorithm": "public-chance-sampling"},
    "full width": {"algorithm": "cfr", "variant": "optimistic-lcfr"},
    "over histories": {"algorithm": "cfr", "pruning": "regret-based"},
}


@pytest.mark.parametrize("solver", SOLVERS.values(), ids=SOLVERS)
def test_axis_labels_of_exported_tables_agree_with_their_lengths(tmp_path, solver):
    """Leduc's second street has 30 buckets, 35 slots (padded to 48 in sampled runs) and 15 rows."""
    settings = {"run": {"workers": 0, "iterations": 3}, "evaluation": {"at_end": False, "every_checkpoint": False}}
    config = config_from({"game": {"name": "leduc"}, "solver": solver, **settings}, "test")
    run, game = start_run(config, ROOT, tmp_path / "run", Terms(Silent()))
    train(run, game, Silent())
    tables = read_tables(find_checkpoint(run, None))
    sizes = {"bucket": game.buckets, "slot": game.tree.row_slots, "row": game.tree.row_count}
    for kind in ("zarr", "hdf5"):
        export_run(run, game, tmp_path / kind, ExportOptions(format=kind))
        with opened_arrays(tmp_path / kind, kind) as arrays:
            assert {name for name in arrays if not name.startswith(("tree/", "cards/"))} == set(tables)
            for name, table in tables.items():
                labels, cells = arrays[name]
                assert cells.dtype == table.dtype and np.array_equal(cells, table)
                block = 2 * int(name.split("/")[1].removeprefix("street")) + int(name[-1])
                for label, length in zip(labels, cells.shape, strict=True):
                    expected = sizes[label][block] if label in sizes else 1
                    padded = label == "slot" and labels[0] == "bucket"
                    assert length == (-(-expected // 16) * 16 if padded else expected), (name, labels, cells.shape)


def explained(path, street, line, player):
    """Return (description, {action: slot}, table, arrays) at a line, from the file alone."""
    with h5py.File(path) as file:
        description = json.loads(file.attrs["description"])
        arrays = {}
        file.visititems(lambda name, item: arrays.update({name: item[()]} if isinstance(item, h5py.Dataset) else {}))
    labels, node = [bytes(row).rstrip(b"\0").decode() for row in arrays["tree/label"]], 0
    for action in line:
        children = range(arrays["tree/first"][node], arrays["tree/first"][node] + arrays["tree/count"][node])
        node = next(child for child in children if labels[child] == action)
    assert arrays["tree/block"][node] == 2 * street + player and arrays["tree/kind"][node] == 0
    assert {"tree/kind", "tree/block", "tree/put_in", "units"} <= set(description["meaning"])
    first, slot, count = (int(arrays[f"tree/{name}"][node]) for name in ("first", "slot", "count"))
    actions = {labels[first + k]: slot + k for k in range(count)}
    return description, actions, arrays[f"strategy_sum/street{street}/player{player}"], arrays


def average(table, bucket, actions):
    cells = {action: float(table[bucket, slot]) for action, slot in actions.items()}
    return {action: cell / sum(cells.values()) for action, cell in cells.items()}


def probabilities_by_query(game, tables, line, hand, board):
    source = Profile(game, average_strategy(game, tables))
    return {action["action"]: action["probability"] for action in query(source, line, hand, board)["actions"]}


def test_a_hand_is_looked_up_with_h5py_alone(tmp_path):
    """In a game with listed cards, hand and board are found by card number."""
    game = build_game(games.LeducGame(), ROOT)
    tables = filled_tables(game)
    write(tmp_path / "leduc.h5", games.LeducGame(), uniform_strategy(game), "hdf5", tables)
    description, actions, table, arrays = explained(tmp_path / "leduc.h5", 1, ["c", "c", "r5"], 1)
    numbers = {name: number for number, name in enumerate(description["card_numbering"]["card_names"])}
    hand = description["hand_names"].index("Kd")
    board = arrays["cards/cards_board_cards_street1"].tolist().index([numbers["Qc"]])
    bucket = arrays["cards/cards_bucket_street1"][1, board, hand]
    assert description["bucket_tables"][1]["impossible"] != bucket
    expected = probabilities_by_query(game, tables, "cc/b4", "Kd", "Qc")
    assert list(average(table, bucket, actions).values()) == pytest.approx(list(expected.values()))


def test_a_hand_of_whole_holdem_is_looked_up_with_h5py_and_zlib_alone(tmp_path, slot_abstractions):
    config = games.FlopHoldemGame(max_raises=1)
    game = build_game(config, ROOT, AbstractionConfig(str(slot_abstractions[0])))
    tables = filled_tables(game)
    write_tables(tmp_path / "flop.h5", game, document(config), tables, "hdf5", {}, lambda path: False)
    description, actions, table, arrays = explained(tmp_path / "flop.h5", 1, ["c", "c", "r200"], 1)
    low, high, *board = 4 * 10 + 1, 4 * 11 + 2, 4 * 0 + 3, 4 * 5 + 1, 4 * 11 + 0  # Qd Kh on 2s 7d Kc
    rank = sum(comb(card, place) for place, card in enumerate(board, 1))
    canonical, permutation = divmod(int(arrays["cards/deck_location_3"][rank]), 32)
    start, end = arrays["cards/board_starts_street1"][canonical : canonical + 2]
    row = zlib.decompress(arrays["cards/deck_buckets_street1"][start:end].tobytes())
    combination = arrays["cards/deck_hole_permutation"][permutation, high * (high - 1) // 2 + low]
    bucket = np.frombuffer(row, description["bucket_tables"][1]["dtype"])[combination]
    expected = probabilities_by_query(game, tables, "cc/b100", "KhQd", "Kc7d2s")
    assert list(average(table, bucket, actions).values()) == pytest.approx(list(expected.values()))


def test_a_flipped_bit_in_raw_tables_is_refused_by_zarr(tmp_path):
    game = build_game(games.LeducGame(), ROOT)
    tables = filled_tables(game)
    write(tmp_path / "t", games.LeducGame(), uniform_strategy(game), "zarr", tables)
    name = "strategy_sum/street1/player0"
    chunk = tmp_path / "t" / name / "c" / "0" / "0"
    flip(chunk)
    with pytest.raises(ValueError, match="checksum"):
        zarr.open_group(tmp_path / "t", mode="r")[name][:]


# All formats ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "solver", [OUTCOME, {"algorithm": "public-chance-sampling"}], ids=["bucket first", "slot first"]
)
def test_exports_read_rows_and_build_no_dense_tables(tmp_path, monkeypatch, solver):
    """The CSV export equals that of the dense average byte for byte, the others by content."""
    run = trained(make(tmp_path / "run", solver), iterations=300)
    game, checkpoint = run.build_game(), find_checkpoint(run, None)
    dense, table = checkpoint_average(game, run.config, checkpoint), document(run.config.game)
    for kind in ("csv", "parquet", "openspiel"):
        export(game, table, dense, TableSet({}), tmp_path / f"dense.{kind}", kind, "uint16", {})
    monkeypatch.setattr(module, "_normalised", lambda *_: pytest.fail("a block was made dense"))
    for kind in ("csv", "parquet", "openspiel"):
        export_run(run, game, tmp_path / f"rows.{kind}", ExportOptions(format=kind))
    assert (tmp_path / "rows.csv").read_bytes() == (tmp_path / "dense.csv").read_bytes()
    one, other = (parquet.read_table(tmp_path / f"{name}.parquet") for name in ("rows", "dense"))
    assert one.equals(other)
    one, other = (json.loads((tmp_path / f"{name}.openspiel").read_text()) for name in ("rows", "dense"))
    assert one["policy"] == other["policy"]


# --- origin of an export ---


def stopped_early(run):
    """Train 400 iterations of a run and restore its configured length."""
    before = run.path(rundir.CONFIG).read_text()
    trained(run, iterations=400)
    run.path(rundir.CONFIG).write_text(before)
    return run.directory


@pytest.fixture(scope="module")
def early(tmp_path_factory):
    """Return a run of Leduc, stopped at a thousandth of its length and evaluated there."""
    return stopped_early(make(tmp_path_factory.mktemp("early") / "run", iterations=400_000))


def test_an_export_states_that_its_run_is_unfinished(early, tmp_path, capsys):
    exported = call(capsys, "export", early, tmp_path / "policy", "--license", "CC-BY-4.0")
    assert exported.status == 0
    assert "it states: unfinished: 0.1 % of its run; " in exported.err
    assert "license of the data: CC-BY-4.0" in exported.err
    answer = call(capsys, "query", tmp_path / "policy", "", "--hand", "Kc")
    assert answer.err == f"{tmp_path / 'policy'} is unfinished: 0.1 % of its run\n" and "weight" in answer.out
    origin = Policy.open(tmp_path / "policy").meta["provenance"]
    assert (origin["program"], origin["license"]) == (f"mccfr {__version__}", "CC-BY-4.0")
    assert origin["share_of_run"] == 400 / 400_000 and origin["running"] is False
    assert origin["recipe"]["run"] == {"iterations": 400_000} and origin["recipe"]["solver"]["seed"] == 5
    assert origin["training_seconds"] > 0
    (evaluation,) = origin["evaluations"]
    assert (evaluation["method"], evaluation["bound"]) == ("exact", "exact") and evaluation["exploitability_chips"] > 0


def test_an_export_states_that_its_run_was_still_training(early, tmp_path, monkeypatch):
    monkeypatch.setattr(run_export, "is_locked", lambda run: True)
    run = rundir.open_run(early)
    policy = Policy.open(run_export.export_run(run, run.build_game(), tmp_path / "policy"))
    assert unfinished_text(policy.meta["provenance"]) == "unfinished: 0.1 % of its run, which was still going"
    assert "license of the data: not stated" in origin_facts(policy.meta["provenance"])


def test_a_finished_run_and_one_without_length_are_not_called_unfinished(tmp_path, capsys):
    for name, settings, share in (("whole", {"iterations": 400}, 1.0), ("endless", {}, None)):
        directory = stopped_early(make(tmp_path / name, **settings))
        assert command("export", directory, tmp_path / f"{name}-policy") == 0
        assert "unfinished" not in capsys.readouterr().err
        assert Policy.open(tmp_path / f"{name}-policy").meta["provenance"]["share_of_run"] == share
    assert call(capsys, "query", tmp_path / "whole-policy", "", "--hand", "Kc").err == ""


def test_origin_facts_state_evaluations_against_opponents_and_responses():
    record = {"method": "head-to-head", "bound": "estimate", "value_chips": 12.5, "against": "uniform"}
    (fact,) = origin_facts({"evaluations": [record]})
    assert fact == "head-to-head: wins 12.5 chips a game against uniform (estimate)"
    record = {"method": "trained-response", "bound": "lower", "value_chips": -3.0, "gains_chips": [0.5, 2.25, -1.0]}
    (fact,) = origin_facts({"evaluations": [record]})
    assert fact == "trained-response: responses of one player gain up to 2.25 chips a game (lower bound)"
