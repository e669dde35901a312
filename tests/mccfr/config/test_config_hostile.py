"""Unexpected numbers and texts in every key of every configuration table.

Shows:

* Invalid configurations end with one sentence and status 2, and write nothing (test_config_hostile,
  test_bad_configs_exit_2_and_touch_nothing)
"""

import json
import signal
import time
from types import UnionType
from typing import Annotated, Literal, Union, get_args, get_origin

import msgspec
import pytest
import tomli_w
from commands import command
from places import RUNS
from refusals import refusals, refused

from mccfr.cli.shared_options import Count, Duration
from mccfr.config.game_tables import GAMES, Menu, PlayerMenu, StreetMenu
from mccfr.config.run_tables import AbstractionConfig, Config
from mccfr.config.solver_tables import OPTIONS
from mccfr.config.toml_files import config_from, load_config
from mccfr.games.registry import build_game
from mccfr.runs.session.run_plan import make_plan

HOSTILE = (float("inf"), float("-inf"), float("nan"), 1e308, 5e-324, -1, 0, 2**63 - 1, 10**400, [])
TEXTS = ("x" * 10_000, "a\0b")
LISTS = ([[]], [[[]]], [1e308, 1e308], [-1, -1], [0, 0], [float("nan")] * 2, [[float("inf")], [1]])
LISTED = (*LISTS, [["9" * 400 + "p"]])
SCALARS = (int, float, str, bool, type(None))
SECONDS = 60  # a machine under load included

MENU = {"first": ["1p"], "later": ["allin"], "max_bets": 2}
ABSTRACTION = {"path": "absent", "recipe": str(RUNS / "abstractions/quick.toml")}
BASES = {
    "kuhn": {},
    "leduc": {},
    "goofspiel": {"cards": 3},
    "matrix": {"payoffs": [[1.0, -1.0]]},
    "poker": {"antes": [1.0, 1.0], "stack": 5.0},
    "akq": {},
    "clairvoyance": {},
    "holdem-subgame": {"file": str(RUNS / "games/river.txt"), "menu": MENU},
    "holdem": {"menu": MENU, "stack": 400.0},
    "flop-holdem": {"max_raises": 1},
    "openspiel": {"game": "kuhn_poker"},
}
"""A small game of each kind."""


def changed(document, path, value):
    """Return a copy of a document with one key replaced; create absent tables on the way."""
    copy = json.loads(json.dumps(document))
    table = copy
    for key in path[:-1]:
        table = table.setdefault(key, {})
    table[path[-1]] = value
    return copy


def is_scalar(kind):
    """Return True if a key of this type takes one number or text and no list."""
    if get_origin(kind) in (Union, UnionType):
        return all(map(is_scalar, get_args(kind)))
    if get_origin(kind) is Annotated:
        return is_scalar(get_args(kind)[0])
    return get_origin(kind) is Literal or kind in SCALARS


def hostile(kind, known=()):
    """Yield (key, value) of every key of a table with an unwanted value; known values are left out."""
    fields = [each for each in msgspec.structs.fields(kind) if (each.encode_name, str(each.type)) not in known]
    for field in fields:
        for value in (*HOSTILE, *TEXTS, *(LISTED[-2:] if is_scalar(field.type) else LISTED)):
            yield field.encode_name, value


def game_document(name):
    return {"game": {"name": name, **BASES[name]}, **({"abstraction": ABSTRACTION} if name == "holdem" else {})}


def cases(name):
    """Yield (path, document) for each key and hostile value around the game of this name."""
    kinds = {("game",): GAMES[name]}
    if name == "holdem":  # other games have the same menus
        kinds |= {("game", "menu"): Menu, ("game", "menu", "river"): StreetMenu}
        kinds |= {("game", "menu", "river", "button"): PlayerMenu, ("abstraction",): AbstractionConfig}
    if name == "kuhn":
        tables = {field.encode_name: field.type for field in msgspec.structs.fields(Config)}
        for table in ("tables", "run", "evaluation", "export"):
            types = (tables[table], *getattr(tables[table], "__args__", ()))
            kinds[table,] = next(each for each in types if hasattr(each, "__struct_fields__"))
    for table, kind in kinds.items():
        for key, value in hostile(kind):
            yield (*table, key), changed(game_document(name), (*table, key), value)
    if name == "kuhn":
        known = set()  # a key that several algorithms share is tested once
        for algorithm, options in OPTIONS.items():
            # The configuration reads powers only with this discount.
            discounting = {"discount": "dcfr"} if "discount" in options.__struct_fields__ else {}
            document = game_document(name) | {"solver": {"algorithm": algorithm, **discounting}}
            for value in (*HOSTILE, *TEXTS, *LISTED):
                yield ("solver", "algorithm"), changed(document, ("solver", "algorithm"), value)
            for key, value in hostile(options, known):
                yield ("solver", key), changed(document, ("solver", key), value)
            known |= {(field.encode_name, str(field.type)) for field in msgspec.structs.fields(options)}


def plan(path, document):
    """Return the exit status of `mccfr plan`; an exception that it does not handle is raised.

    The plan does not measure whole hold'em, because random buckets take a second.
    """
    path.write_text(tomli_w.dumps(document), encoding="utf-8")
    assumed = ["--speed", 3e7] if "abstraction" in document else []
    return command("plan", path, *assumed)


@pytest.mark.parametrize("name", BASES)
def test_hostile_values_of_every_key_give_one_sentence_or_a_plan(name, tmp_path, capsys):
    def too_long(number, frame):
        raise TimeoutError

    before, found, bad = signal.signal(signal.SIGALRM, too_long), {0: 0, 2: 0}, []
    try:
        for path, document in cases(name):
            signal.alarm(SECONDS)
            what = f"{'.'.join(path)} = {document[path[0]][path[1]]!r:.60}"
            try:
                status = plan(tmp_path / "run.toml", document)
            except BaseException as error:
                bad.append(f"{what}: {type(error).__name__}: {error}"[:200])
                continue
            finally:
                signal.alarm(0)
            out, message = capsys.readouterr()
            found[status] = found.get(status, 0) + 1
            if status == 1 and out.startswith("cannot work: "):
                continue
            if status not in (0, 2) or message.count("\n") > 1 or len(message) > 1500 or (status == 2) != bool(message):
                bad.append(f"{what}: status {status}: {message}"[:200])
    finally:
        signal.signal(signal.SIGALRM, before)
    assert bad == []
    assert found[2] > 0 or name == "akq"  # akq has no keys
    assert plan(tmp_path / "run.toml", game_document(name)) == 0


def planned_at_once(game, monkeypatch):
    monkeypatch.setattr("mccfr.games.betting_tree.MAX_NODES", 100_000)
    began = time.process_time()
    try:
        make_plan(config_from({"game": game}, "x"), RUNS)
    finally:
        assert time.process_time() - began < 10


DEAL_KEYS = {"ranks": 13, "suits": 4, "hole_cards": 2, "board_cards": [0, 3, 1, 1]}
test_too_large_trees_are_refused_at_once = refusals(
    ("1,001 bets on one street, .*; 1,000 bets are allowed", {"name": "leduc", "raises": 2**63 - 1}),
    ("at least .* nodes; 100,000 are", {"name": "leduc", "bets": [[1.0] * 2 + [2.0, 3.0], [1.0]], "raises": 400}),
    ("1,001 bets on one street", {"name": "flop-holdem", "max_raises": 2**63 - 1}),
    (r"at least 1,000,000,00\d nodes; 100,000 are allowed", {"name": "poker", "antes": [1, 1], "stack": 1e9}),
    (r"at least 1,000,000,000,000,00\d nodes", {"name": "poker", "antes": [1, 1], "stack": 1e15}),
    ("streets = .* at most 63 streets", {"name": "clairvoyance", "streets": 2**63 - 1}),
    ("raise from .* chips is not allowed", {"name": "clairvoyance", "streets": 60, "bet": 1e14}),
    ("pairs", {"name": "poker", "antes": [1, 1], **DEAL_KEYS}),
    call=planned_at_once,
)


def test_infinite_and_large_numbers_are_accepted_where_they_have_a_meaning():
    powers = {"algorithm": "cfr", "alpha": float("inf"), "beta": float("-inf")}
    config = config_from({"game": {"name": "kuhn"}, "solver": powers}, "x")
    assert (config.solver.alpha, config.solver.beta) == (float("inf"), float("-inf"))
    with pytest.raises(ValueError, match=r"solver\.alpha = nan"):
        config_from({"game": {"name": "kuhn"}, "solver": {"algorithm": "cfr", "alpha": float("nan")}}, "x")
    assert build_game(config_from({"game": {"name": "matrix", "payoffs": [[3e37]]}}, "x").game, RUNS).pot_chips == 3e37


@pytest.mark.parametrize("option", [Count(), Duration()])
@pytest.mark.parametrize("text", ["1e400", "9" * 400, "1e308", "nan", "inf", "-1", "1e19", "9" * 5000], ids=range(8))
def test_hostile_limits_on_the_command_line(option, text):
    refused("whole number|length of time|too long", option.convert, text, None, None, error=Exception)


FILES = ("a = " + "[" * 50_000, "a = " + "9" * 5000, "a = {b = " * 30_000, "\0", "[a" + ".a" * 3000 + "]")


@pytest.mark.parametrize("text", FILES, ids=range(5))
def test_hostile_files_and_overrides(text, tmp_path):
    (tmp_path / "run.toml").write_text(text)
    refused(r"run\.toml: ", load_config, tmp_path / "run.toml")
    (tmp_path / "run.toml").write_text('[game]\nname = "kuhn"\n')
    refused(r"--set|run\.toml", load_config, tmp_path / "run.toml", [f"run.nodes={text.removeprefix('a = ')}"])
