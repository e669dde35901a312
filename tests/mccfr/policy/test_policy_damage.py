"""Damaged policies: each mutated file is refused by name, or the mutation is harmless."""

import random

import numpy as np
import pytest
from policies import write_random
from refusals import refused

from mccfr.cards.full_deck import WholeDeck
from mccfr.config.game_tables import FlopHoldemGame, GoofspielGame, HoldemSubgame, KuhnGame, LeducGame
from mccfr.evaluation.exact import evaluate_exact
from mccfr.policy import Policy, is_policy, verify_policy
from mccfr.policy.query import query
from mccfr.runs.directory.verification import problems_of

GAMES = {
    "kuhn": KuhnGame(),
    "leduc": LeducGame(),
    "goofspiel": GoofspielGame(cards=3),
    "endgame": HoldemSubgame(file="games/river.txt"),
    "flop-holdem": FlopHoldemGame(max_raises=1),
}


@pytest.fixture(scope="module", params=GAMES)
def policy(request, tmp_path_factory, slot_abstractions):
    """(one policy, another of the same game with other probabilities)."""
    root = tmp_path_factory.mktemp(request.param)
    return [write_random(root / str(seed), GAMES[request.param], slot_abstractions[1], seed) for seed in (0, 1)]


def flipped(data, rng):
    bit = rng.randrange(8 * len(data))
    return data[: bit // 8] + bytes([data[bit // 8] ^ 1 << bit % 8]) + data[bit // 8 + 1 :]


def mutations(path, other, rng):
    """Contents of a damaged file: flips in its header and anywhere, other lengths, another file's content."""
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


# Hostile content under right checksums --------------------------------------------------------------------------------


def use(out, lines):
    """Everything that commands do with a policy."""
    assert is_policy(out)
    problems_of(out)
    found = Policy.open(out)
    strategy = found.strategy()
    if not isinstance(found.game.cards, WholeDeck):
        evaluate_exact(found.game, strategy)
    for line in lines:
        query(found, line)
