"""Damaged policies: each mutated file is refused by name, or the mutation is harmless."""

import itertools
import random
import warnings

import numpy as np
import pytest
from policies import sign, write_random
from refusals import refused

from mccfr.cards.full_deck import WholeDeck
from mccfr.config.game_tables import FlopHoldemGame, GoofspielGame, HoldemSubgame, KuhnGame, LeducGame
from mccfr.evaluation.exact import evaluate_exact
from mccfr.policy import Policy, is_policy, verify_policy
from mccfr.policy.query import query
from mccfr.runs.directory.verification import problems_of
from storage.json_files import read_json

GAMES = {
    "kuhn": KuhnGame(),
    "leduc": LeducGame(),
    "goofspiel": GoofspielGame(cards=3),
    "endgame": HoldemSubgame(file="games/river.txt"),
    "flop-holdem": FlopHoldemGame(max_raises=1),
}


@pytest.fixture(scope="module", params=GAMES)
def policy(request, tmp_path_factory, slot_abstractions):
    """Return two policies of the same game with different probabilities."""
    root = tmp_path_factory.mktemp(request.param)
    return [write_random(root / str(seed), GAMES[request.param], slot_abstractions[1], seed) for seed in (0, 1)]


def flipped(data, rng):
    bit = rng.randrange(8 * len(data))
    return data[: bit // 8] + bytes([data[bit // 8] ^ 1 << bit % 8]) + data[bit // 8 + 1 :]


def mutations(path, other, rng):
    """Yield damaged contents of a file: flipped bits, other lengths, another file's content."""
    data = path.read_bytes()
    head = min(len(data), 128)
    for _ in range(2):
        yield flipped(data[:head], rng) + data[head:]
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
    """No damaged file may change probabilities or raise another kind of error."""
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


def test_files_that_are_links_are_refused(policy, tmp_path):
    out, _ = policy
    for path in sorted(out.iterdir()):
        path.rename(tmp_path / path.name)
        path.symlink_to(tmp_path / path.name)
        refused(f"{path.name} is a symbolic link", Policy.open, out, error=OSError)
        refused(f"{path.name} is a symbolic link", Policy.open, out, check=False, error=OSError)
        assert f"{path.name} is a symbolic link" in verify_policy(out)[0]
        path.unlink()
        (tmp_path / path.name).rename(path)
    assert verify_policy(out) == []


# Hostile content with matching checksums ------------------------------------------------------------------------------

NUMBERS = (-1, 0, 1, 2, 7, 127, -128, 10**6, 2**31 - 1, -(2**31), np.inf, -np.inf, np.nan, 0.5)
VALUES = (None, [], {}, "", "x" * 5000, -1, 0, 2, 2**31, 2**62, 10**400, 1e308, True, [[]], [None], {"a": [1]})


def use(out, lines):
    """Verify, open, evaluate and query a policy, as the commands do."""
    assert is_policy(out)
    problems_of(out)
    found = Policy.open(out)
    strategy = found.strategy()
    if not isinstance(found.game.cards, WholeDeck):
        evaluate_exact(found.game, strategy)
    for line in lines:
        query(found, line)


def hostile_arrays(out, rng):
    """Change each array in turn, yield a description, and restore the array."""
    for path in sorted(out.glob("*.npy")):
        data, whole = path.read_bytes(), np.load(path)
        for number in rng.sample(NUMBERS, 2):
            array = whole.copy()
            if not array.size:
                continue
            with np.errstate(all="ignore"):
                array.reshape(-1)[rng.randrange(array.size)] = np.array(number, np.float64).astype(array.dtype)
            np.save(path, array)
            yield f"{path.name} {number}"
        for changed in (whole[:-1], np.concatenate([whole, whole]), whole.astype(np.float32), whole[None]):
            np.save(path, changed)
            yield f"{path.name} {changed.shape} {changed.dtype}"
        path.write_bytes(data)


def hostile_fields(meta, rng):
    """Yield changed fields of meta.json: each field is replaced or changed inside."""
    for key in meta:
        if key not in ("format", "format_version", "content_hash", "files"):
            for value in rng.sample(VALUES, 2):
                yield {key: value}
    for place, block in enumerate(meta["blocks"]):
        for key in block:
            blocks = [dict(each) for each in meta["blocks"]]
            blocks[place][key] = rng.choice(VALUES)
            yield {"blocks": blocks}


def text_files(out):
    for path in sorted(out.glob("*.json")):
        if path.name != "meta.json":
            data = path.read_bytes()
            for text in ("[]", "{}", "3", "[1]", "[" * 60_000, '["c"]', data.decode().replace('"c"', "1", 1)):
                path.write_text(text)
                yield f"{path.name} {text[:9]}"
            path.write_bytes(data)


@pytest.mark.parametrize("name", ["leduc", "goofspiel", "flop-holdem"])
def test_hostile_policies_with_matching_checksums_raise_only_expected_errors(tmp_path, slot_abstractions, name):
    """Wrong indices, sizes of 93 GB and nested JSON raise only `ValueError` or `OSError`."""
    out, rng = write_random(tmp_path / "policy", GAMES[name], slot_abstractions[1]), random.Random(11)
    lines = {"leduc": ["", "r3", "cc"], "goofspiel": ["", "3", "3 1"], "flop-holdem": []}[name]
    meta, bad, cases = read_json(out / "meta.json"), [], 0

    def attempt(what):
        try:
            with warnings.catch_warnings(action="ignore"):
                use(out, lines)
        except (ValueError, OSError):
            return 1
        except BaseException as error:
            bad.append(f"{what}: {type(error).__name__}: {error}"[:200])
        return 0

    refused = 0
    for what in itertools.chain(hostile_arrays(out, rng), text_files(out)):
        sign(out)
        refused += attempt(what)
        cases += 1
    for fields in hostile_fields(meta, rng):
        sign(out, **fields)
        refused += attempt(str(fields)[:80])
        cases += 1
    assert bad == []
    assert refused > cases / 2
    sign(out, **{key: meta[key] for key in meta if key not in ("format", "format_version", "content_hash", "files")})
    assert verify_policy(out) == []
