"""Policies under damage: every file of every kind of game, mutated in every way, is refused by its name or harmless."""

import random
import shutil
from pathlib import Path

import numpy as np
import pytest

from mccfr.config import AbstractionConfig, Config, FlopHoldemGame, GoofspielGame, HoldemSubgame, KuhnGame, LeducGame
from mccfr.config_file import to_document
from mccfr.games.build import build_game
from mccfr.policy import Policy, verify_policy, write_policy
from mccfr.strategy import average_strategy
from mccfr.tables import table_name

RUNS = Path(__file__).resolve().parents[2] / "runs"
GAMES = {
    "kuhn": KuhnGame(),
    "leduc": LeducGame(),
    "goofspiel": GoofspielGame(cards=3),
    "endgame": HoldemSubgame(file="games/river.txt"),
    "flop-holdem": FlopHoldemGame(max_raises=1),
}


def export(out, name, abstraction, seed=0):
    """A policy with random sums of very different sizes, some rows never reached."""
    game = build_game(GAMES[name], RUNS, AbstractionConfig(str(abstraction)))
    rng = np.random.default_rng(seed)
    tables = {}
    for block in np.flatnonzero(game.tree.row_count):
        shape = int(game.buckets[block]), int(game.tree.row_slots[block])
        sums = rng.random(shape) ** 6 * 1e6 * (rng.random(shape) < 0.7)
        sums[rng.random(shape[0]) < 0.2] = 0
        tables[table_name("strategy_sum", block)] = sums
    document = to_document(Config(game=GAMES[name]))["game"]
    write_policy(out, game, document, average_strategy(game, tables), provenance={"checkpoint": seed})
    return out


@pytest.fixture(scope="module", params=GAMES)
def policy(request, tmp_path_factory, slot_abstractions):
    """(one policy, another of the same game with other probabilities)."""
    root = tmp_path_factory.mktemp(request.param)
    return [export(root / str(seed), request.param, slot_abstractions[1], seed) for seed in (0, 1)]


def flipped(data, rng):
    bit = rng.randrange(8 * len(data))
    return data[: bit // 8] + bytes([data[bit // 8] ^ 1 << bit % 8]) + data[bit // 8 + 1 :]


def mutations(path, other, rng):
    """Contents of a damaged file: flips in its header and anywhere, other lengths, another file's content."""
    data = path.read_bytes()
    head = min(len(data), 128)
    for _ in range(4):
        yield flipped(data[:head], rng) + data[head:]
    for _ in range(2):
        yield flipped(data, rng)
    place = rng.randrange(len(data))
    yield data[:place] + bytes(rng.randrange(256) for _ in data[place : place + 16]) + data[place + 16 :]
    for length in (0, rng.randrange(len(data)), len(data) - 1):
        yield data[:length]
    yield data + b"\0" * rng.randrange(1, 99)
    alike = sorted(file for file in path.parent.iterdir() if file.suffix == path.suffix and file != path)
    yield rng.choice(alike).read_bytes()
    yield (other / path.name).read_bytes()


def same(one, other):
    tables = zip((*one.probability, *one.weight), (*other.probability, *other.weight), strict=True)
    return all(np.array_equal(mine, theirs) for mine, theirs in tables)


def test_every_damaged_file_is_refused_by_its_name_or_harmless(policy):
    """None may give other numbers, and none may end in another kind of error."""
    out, other = policy
    whole, rng = Policy.open(out).strategy(), random.Random(7)
    wrong, kinds, cases = [], [], 0
    for path in sorted(out.iterdir()):
        data = path.read_bytes()
        for number, content in enumerate(mutations(path, other, rng)):
            if content == data:
                continue
            path.write_bytes(content)
            cases += 1
            try:
                if not same(Policy.open(out).strategy(), whole):
                    wrong.append(f"{path.name} {number}: other numbers")
            except (ValueError, OSError) as error:
                if path.name not in str(error) and (path.name != "meta.json" or str(out) not in str(error)):
                    kinds.append(f"{path.name} {number}: not named: {error}")
            except Exception as error:
                kinds.append(f"{path.name} {number}: {type(error).__name__}")
        path.write_bytes(data)
    assert (wrong, kinds) == ([], []), f"{len(wrong)} of {cases} give other numbers, {len(kinds)} other errors"
    assert cases > 150
    assert verify_policy(out) == []


def test_swapped_tables_of_two_exports_are_found(tmp_path, slot_abstractions):
    """Same game, same shapes, every row sums to the total: only the checksum tells."""
    one, other = (export(tmp_path / str(seed), "leduc", slot_abstractions[1], seed) for seed in (0, 1))
    name = "probability_street1_player0.npy"
    shutil.copy(other / name, one / name)
    with pytest.raises(OSError, match=f"{name} has checksum"):
        Policy.open(one)


def test_files_that_are_links_are_refused(policy, tmp_path):
    out, _ = policy
    for path in sorted(out.iterdir()):
        path.rename(tmp_path / path.name)
        path.symlink_to(tmp_path / path.name)
        with pytest.raises(OSError, match=f"{path.name} is a symbolic link"):
            Policy.open(out)
        with pytest.raises(OSError, match=f"{path.name} is a symbolic link"):
            Policy.open(out, check=False)
        assert f"{path.name} is a symbolic link" in verify_policy(out)[0]
        path.unlink()
        (tmp_path / path.name).rename(path)
    assert verify_policy(out) == []
