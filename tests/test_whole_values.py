"""Each value of each document of an artefact, replaced by every kind of JSON value.

The documents get right checksums again, so that only their content is wrong.  The slow suite replaces each value by
each kind.  The fast one replaces each top-level value, and two values in tables, by one kind each (fixed seed).

Shows:

* A document with a value of another type is refused in one sentence
  (test_a_value_of_another_type_is_refused_in_one_sentence)
"""

import json
import shutil
from random import Random

import numpy as np
import pytest
from fuzzing import is_sentence
from manifests import rewrite
from policies import write_random
from sessions import EXTERNAL, make, trained
from small_games import small_recipe

from abstraction.buckets import Abstraction
from abstraction.build import Builder
from mccfr.cluster.cluster_status import cluster_status
from mccfr.cluster.rank_pool import RECORDS
from mccfr.config.game_tables import KuhnGame
from mccfr.evaluation.compatible_games import check_same_game
from mccfr.matches.players import holdem_of
from mccfr.matches.review.review_files import _HEAD, read_review
from mccfr.policy import Policy, Profile, verify_policy
from mccfr.policy.export.networks import is_networks, read_networks, verify_networks
from mccfr.policy.query import query
from mccfr.runs.directory.run import EVALUATIONS, JOURNAL, METRICS, open_run
from mccfr.runs.directory.run_status import run_list, run_status
from mccfr.runs.directory.verification import problems_of
from mccfr.runs.results.checkpoints import find_checkpoint, measured_checkpoints
from mccfr.runs.results.line_spot import game_config
from mccfr.runs.results.targets import Reference, open_source
from mccfr.upi.tree_files import read_tree
from storage.checkpoint import open_checkpoint

VALUES = (None, [], {}, 5, "x", True, [[]], [None], {"x": {}})


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    """One artefact of each kind."""
    root = tmp_path_factory.mktemp("sound")
    trained(make(root / "run", EXTERNAL), nodes=20_000)
    Builder(small_recipe(root / "small.toml"), root / "abstraction").build()
    write_random(root / "policy", KuhnGame())
    (root / "networks").mkdir()
    networks = {
        "format": "mccfr-networks",
        "format_version": 2,
        "game": {"name": "kuhn"},
        "solver": {"algorithm": "deep-cfr"},
        "outputs": "advantages",
        "features": {"version": 1},
        "provenance": {"checkpoint": 1},
        "files": {},
        "content_hash": "",
    }
    (root / "networks/networks.json").write_text(json.dumps(networks))
    return root


def replaced(document, inside=True):
    """Yield (place, kind, document) with each value of nested tables replaced by `VALUES`, or removed."""
    for key, old in document.items():
        for value in VALUES:
            if value != old or type(value) is not type(old):
                yield key, repr(value), {**document, key: value}
        yield key, "absent", {name: other for name, other in document.items() if name != key}
        if inside and isinstance(old, dict) and key != "files":
            for place, kind, changed in replaced(old, inside=False):
                yield f"{key}.{place}", kind, {**document, key: changed}


def sample(cases):
    """Return one case of each top-level value, and of two values in tables."""
    drawn, places = Random(1), {}
    for case in cases:
        places.setdefault(case[0], []).append(case)
    inner = [place for place in places if "." in place]
    left_out = set(inner) - set(drawn.sample(inner, k=min(2, len(inner))))
    return [drawn.choice(found) for place, found in places.items() if place not in left_out]


BOTH = pytest.mark.parametrize("some", [sample, pytest.param(list, marks=pytest.mark.slow)], ids=["sample", "all"])


def run_readers(run):
    """Return the functions by which commands read a run, without tables."""
    return [
        lambda: run_status(open_run(run, opaque=True)),
        lambda: run_list(run.parent),
        lambda: problems_of(run),
        lambda: find_checkpoint(open_run(run), None),
        lambda: open_source(Reference(run)),
        lambda: game_config(run),
        lambda: measured_checkpoints(open_run(run)),
    ]


def policy_readers(path):
    """Return the functions by which commands read a policy."""
    return [
        lambda: verify_policy(path),
        lambda: problems_of(path),
        lambda: query(Policy.open(path), ""),
        lambda: query(open_source(Reference(path), check=False), "", hand="K"),
        lambda: game_config(path),
        lambda: holdem_of(Policy.open(path).meta["game"]),
        lambda: check_same_game(Policy.open(path).game, Policy.open(path).game),
    ]


def networks_readers(path):
    """Return the functions by which commands read networks."""
    return [lambda: read_networks(path), lambda: verify_networks(path), lambda: is_networks(path)]


def abstraction_readers(path):
    """Return the functions by which runs and commands read an abstraction."""
    return [
        lambda: Abstraction(path).content_hashes(),
        lambda: Abstraction(path).bucket_counts(),
        lambda: Abstraction(path).check_cells(),
        lambda: problems_of(path),
        lambda: open_checkpoint(path / "preflop/000000"),
    ]


CASES = {
    "run": ("run", "manifest.json", run_readers),
    "checkpoint": ("run", "checkpoints/000001/manifest.json", run_readers),
    "state": ("run", "checkpoints/000001/state.json", run_readers),
    "policy": ("policy", "meta.json", policy_readers),
    "networks": ("networks", "networks.json", networks_readers),
    "stage": ("abstraction", "preflop/000000/manifest.json", abstraction_readers),
    "stage-state": ("abstraction", "preflop/000000/state.json", abstraction_readers),
}


def unexpected(readers):
    """Yield the errors of readers that are not refusals in one sentence."""
    for reader in readers:
        try:
            reader()
        except (ValueError, OSError) as error:
            if not is_sentence(error, 0):
                yield error
        except Exception as error:
            yield error


def document_of(file):
    """Return the content of a document, without its own hash."""
    document = json.loads(file.read_bytes())
    document.pop("content_hash", None)
    return document


@BOTH
@pytest.mark.parametrize("name", CASES)
def test_a_value_of_another_type_is_refused_in_one_sentence(sound, tmp_path, name, some):
    kind, file, readers = CASES[name]
    target, wrong = tmp_path / "runs" / kind, []
    shutil.copytree(sound / kind, target)
    for place, value, changed in some(replaced(document_of(target / file))):
        rewrite(target / file, changed)
        wrong += [f"{place} = {value}: {type(error).__name__}: {error}" for error in unexpected(readers(target))]
    assert not wrong, "\n".join(dict.fromkeys(wrong))


def test_the_sample_has_each_kind_of_value(sound):
    documents = [document_of(sound / kind / file) for kind, file, _ in CASES.values()]
    drawn = [case for document in documents for case in sample(replaced(document))]
    assert {kind for _, kind, _ in drawn} == {"absent", *map(repr, VALUES)}
    assert {place for place, _, _ in drawn} >= {key for document in documents for key in document}


@BOTH
@pytest.mark.parametrize("name", [EVALUATIONS, METRICS, JOURNAL, "trends.jsonl", RECORDS])
def test_lines_of_another_type_are_skipped(sound, tmp_path, name, some):
    run = tmp_path / "runs/run"
    shutil.copytree(sound / "run", run)
    path = run / name
    lines = path.read_text().splitlines() if path.exists() else []
    last = json.loads(lines[-1]) if lines else {"nodes_touched": 1, "ranks": []}
    whole = [("", repr(value), value) for value in VALUES]
    wrong = []
    for _, _, document in [*some(whole), *some(replaced(last))]:
        text = json.dumps(document)
        path.write_text("\n".join([*lines[:-1], text]) + "\n")
        readers = [*run_readers(run), lambda: cluster_status(open_run(run))]
        wrong += [f"{text[:300]}: {type(error).__name__}: {error}" for error in unexpected(readers)]
    assert not wrong, "\n".join(wrong)


def test_kept_reviews_and_trees_of_another_type_are_refused(sound, tmp_path):
    source, wrong = Policy.open(sound / "policy"), []
    head = {"policies": {"x": Profile(source.game, source.strategy()).fingerprint()}}
    texts = ["player", "position", "street", "pot", "hand", "board", "line", "link", "how", "taken_for", "did", "best"]
    hand = {"where": "x", "names": ["a", "b"], "unknown": 0, "won_bb": 1.0, "aivat_bb": None, "policy": "x"}
    hand |= {"distance": "", "currency": "", "tournament": False}
    row = {**dict.fromkeys(texts, "x"), "cost_bb": 1.0, "ci95_bb": None, "cost": 1.0, "probability": 0.5, "other": None}
    hand["decisions"] = [row]
    review, tree = tmp_path / "review", tmp_path / "tree"
    for first in [*VALUES, *(changed for _, _, changed in replaced(head))]:
        review.write_text(_HEAD + json.dumps(first) + "\n" + json.dumps([0, hand]) + "\n")
        wrong += [f"{first}: {error!r}" for error in unexpected([lambda: read_review(review, source)])]
    game = {"board": "AsKsQs7h2d", "pot": 10, "effective_stack": 20}
    known = {"game": game, "iterations": 1, "locked": []}
    for text in [*VALUES, *(changed for _, _, changed in replaced(known))]:
        with tree.open("wb") as file:
            np.savez(file, head=np.frombuffer(json.dumps(text).encode(), np.uint8))
        wrong += [f"{text}: {error!r}" for error in unexpected([lambda: read_tree(tree, 1)])]
    assert not wrong, "\n".join(wrong)
