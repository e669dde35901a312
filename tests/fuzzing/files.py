"""Fuzzed files: endgames, policies and match logs."""

import atexit
import shutil
import tempfile
from functools import cache
from pathlib import Path

from acpc import dealer, plan
from places import RUNS
from policies import sign, write_random

from fuzzing import Format, damaged
from mccfr.config.game_tables import LeducGame
from mccfr.games.libratus import read_endgame
from mccfr.matches.acpc_log import MatchLog
from mccfr.matches.dealer import replay_of
from mccfr.policy import Policy
from mccfr.policy.query import query


@cache
def _folder():
    memory = Path("/dev/shm")  # on a disk, truncating a file takes as long as reading it
    folder = Path(tempfile.mkdtemp(prefix="mccfr-fuzz-", dir=memory if memory.is_dir() else None))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def _endgame(rng):
    data = (RUNS / "games/river.txt").read_bytes()
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


def _changed_policy(rng):
    """Return a file name of the policy, a line break, and content for that file, mostly damaged."""
    _, files = _policy()
    name = rng.choice(sorted(files))
    pieces = (b"null", b"[]", b'"x"', rng.choice(list(files.values()))[:200])
    data = files[name] if rng.random() < 0.1 else damaged(rng, files[name], pieces)
    return name.encode() + b"\n" + data


def _read_policy(data):
    """Query a policy with one file replaced; with odd lengths its manifest is made to match."""
    out, files = _policy()
    name, _, content = data.partition(b"\n")
    path = out / Path(name.decode()).name
    if path.name not in files:
        raise ValueError("no such file there: give another")
    path.write_bytes(content)
    changed = [path.name]
    try:
        if path.suffix != ".json" and len(content) % 2:
            changed += [each for each in files if each.endswith(".json")]
            sign(out)  # the manifest matches the hostile content
        query(Policy.open(out), "")
    finally:
        for each in changed:
            (out / each).write_bytes(files[each])


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
    pieces = (b"STATE:", b"SCORE:", b"# another match\n", b"|", b":", b"\n")
    return _log() if rng.random() < 0.1 else damaged(rng, _log(), pieces)


def _read_match_log(data):
    path = _folder() / "read.log"
    path.write_bytes(data)
    MatchLog(path, PLAN.fields(), replay_of(PLAN)).close()


ENDGAME = Format(_endgame, _read_endgame)
POLICY = Format(_changed_policy, _read_policy)
MATCH_LOG = Format(_match_log, _read_match_log)
