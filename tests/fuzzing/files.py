"""Fuzzed files: endgames, policies, networks, match logs."""

import atexit
import shutil
import tempfile
from functools import cache
from pathlib import Path

import deep
from acpc import dealer, plan
from places import RUNS
from policies import sign, write_random

from fuzzing import Format, damaged
from mccfr.config.game_tables import LeducGame
from mccfr.config.run_tables import Config
from mccfr.config.toml_files import to_document
from mccfr.games.libratus import read_endgame
from mccfr.games.registry import build_game
from mccfr.matches.acpc_log import MatchLog
from mccfr.matches.dealer import replay_of
from mccfr.policy import Policy
from mccfr.policy.export.networks import read_networks, write_networks
from mccfr.policy.query import query
from mccfr.solvers.deep.network_strategy import Networks, network_tables


@cache
def _folder():
    memory = Path("/dev/shm")  # a disk takes as long to cut a file off as the readers to refuse it
    folder = Path(tempfile.mkdtemp(prefix="mccfr-fuzz-", dir=memory if memory.is_dir() else None))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


@cache
def _endgame_text():
    return (RUNS / "games/river.txt").read_bytes()


def _endgame(rng):
    data = _endgame_text()
    if rng.random() < 0.1:
        return data
    if rng.random() < 0.5:
        lines = data.split(b"\n")
        place = rng.randrange(len(lines))
        lines[place] = damaged(rng, lines[place], (b"nan", b"inf", b"-0", b"1e999", b" ", b":"))
        return b"\n".join(lines)
    return damaged(rng, data)


def _read_endgame(data):
    path = _folder() / "endgame.txt"
    path.write_bytes(data)
    read_endgame(path)


@cache
def _policy():
    out = write_random(_folder() / "policy", LeducGame(), None, 1)
    return out, {path.name: path.read_bytes() for path in sorted(out.iterdir())}


@cache
def _networks():
    game = build_game(LeducGame(merge_suits=True), None, None)
    options = deep.options(units=4, layers=1, steps=2, strategy_steps=2, batch="all", horizon=2)
    learned = deep.record(game, options, 2, dtype="float32").cfr.state
    asked, out = Networks(learned.game, learned.config, network_tables(learned.tables)), _folder() / "networks"
    config = Config(game=LeducGame(merge_suits=True), solver=asked.config)
    write_networks(out, asked, to_document(config), {"checkpoint": 1})
    return out, {path.name: path.read_bytes() for path in sorted(out.iterdir())}


def _one_file(kept):
    """NAME, a line break, and what stands in the file of that name."""

    def make(rng):
        _, files = kept()
        name = rng.choice(sorted(files))
        pieces = (b"null", b"[]", b'"x"', rng.choice(list(files.values()))[:200])
        data = files[name] if rng.random() < 0.1 else damaged(rng, files[name], pieces)
        return name.encode() + b"\n" + data

    return make


def _with_file(kept, data, use):
    """Use an artefact with one file replaced; every other input gets a matching manifest."""
    out, files = kept()
    name, _, content = data.partition(b"\n")
    path = out / Path(name.decode()).name
    if path.name not in files:
        raise ValueError("no such file there: give another")
    path.write_bytes(content)
    changed = [path.name]
    try:
        if path.suffix != ".json" and len(content) % 2 and (out / "meta.json").exists():
            changed += [each for each in files if each.endswith(".json")]
            sign(out)  # hostile, and not damaged
        use(out)
    finally:
        for each in changed:
            (out / each).write_bytes(files[each])


def _use_policy(out):
    query(Policy.open(out), "")


PLAN = plan(hands=4)


@cache
def _log():
    path, at = _folder() / "whole.log", dealer(PLAN, ("random", "min-raise"))
    log = MatchLog(path, PLAN.fields(), replay_of(PLAN))
    for number in range(PLAN.hands):
        log.add(at.play(number))
    log.close()
    return path.read_bytes()


def _match_log(rng):
    data = _log()
    return (
        data
        if rng.random() < 0.1
        else damaged(rng, data, (b"STATE:", b"SCORE:", b"# another match\n", b"|", b":", b"\n"))
    )


def _read_match_log(data):
    path = _folder() / "read.log"
    path.write_bytes(data)
    MatchLog(path, PLAN.fields(), replay_of(PLAN)).close()


ENDGAME = Format(_endgame, _read_endgame)
POLICY = Format(_one_file(_policy), lambda data: _with_file(_policy, data, _use_policy))
NETWORKS = Format(_one_file(_networks), lambda data: _with_file(_networks, data, read_networks))
MATCH_LOG = Format(_match_log, _read_match_log)
