"""Shared slow fixtures and the report of processor time."""

import fcntl
import gc
import os
import shutil
import tempfile
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from places import RUNS
from processor_time import ProcessorTime

from abstraction.boards import STREET_CARDS, canonical_boards, used_slots
from abstraction.buckets import Abstraction
from abstraction.build import Builder
from abstraction.lookup import HOLDEM
from abstraction.recipe import load_recipe
from mccfr.cards import full_deck
from mccfr.runs.session import plan_trial
from storage import disk_speed
from storage.checkpoint_writer import commit
from storage.checksums import cells_checksum
from storage.schema import ArraySpec


def pytest_configure(config):
    config.pluginmanager.register(ProcessorTime())
    # The tests have their own list of trusted user code, shared by all processes of a test run.
    if "PYTEST_XDIST_WORKER" not in os.environ:
        os.environ["XDG_CONFIG_HOME"] = tempfile.mkdtemp(prefix="mccfr-tests-")
    gc.disable()


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Let one process at a time import the tests, so that only the first one compiles kernels."""
    with Path(__file__).open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        return (yield)


def pytest_unconfigure():
    if "PYTEST_XDIST_WORKER" not in os.environ:
        shutil.rmtree(os.environ["XDG_CONFIG_HOME"], ignore_errors=True)


def pytest_collection_finish():
    """Exempt imported objects from garbage collection, and collect less often."""
    gc.collect()
    gc.freeze()
    gc.enable()
    gc.set_threshold(10_000, 20, 50)


@pytest.fixture(autouse=True)
def short_trials():
    """Let plans measure training and disk for 0.01 s; runs/test_plan.py uses the real durations."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(plan_trial, "SECONDS", 0.01)
        patched.setattr(disk_speed, "_SECONDS", 0.01)
        yield


def write_slot_abstractions(roots):
    """Write abstractions with buckets by slot; `roots`: {directory: number of buckets a street}.

    Isomorphic hands may have different buckets, which only a builder checks. Preflop buckets are by slot too.
    """
    for street, cards in STREET_CARDS.items():
        used = used_slots(canonical_boards(cards)) if cards else np.ones((1, 1326), bool)
        unused = used.astype(np.uint16) - np.uint16(1)  # 0xFFFF where no hand is
        bucket = np.empty_like(unused)
        for root, count in roots.items():
            np.bitwise_or(unused, (np.arange(1326) * count // 1326).astype(np.uint16), out=bucket)
            specs = [ArraySpec("bucket", bucket.shape, "uint16", ("board", "hole cards"))]
            identity = {"stage": f"{count}", "recipe": {"features": "slot"}}
            state = {"buckets": count, "cells": {"bucket": cells_checksum(bucket)}}
            commit(root / street, 0, specs, {"bucket": bucket}, state, identity, format="zarr", keep=1)


@pytest.fixture(scope="session")
def slot_abstractions(tmp_path_factory):
    """Two read-only abstraction directories with ten and two buckets a street, assigned by slot."""
    root = tmp_path_factory.getbasetemp()
    root = root.parent if "PYTEST_XDIST_WORKER" in os.environ else root  # once for all processes of a test run
    made = [root / f"slots-{count}" for count in (10, 2)]
    with (root / "slots.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not made[-1].exists():
            making = [tmp_path_factory.mktemp(path.name) for path in made]
            write_slot_abstractions(dict(zip(making, (10, 2), strict=True)))
            for path, whole in zip(made, making, strict=True):
                whole.rename(path)
    return made


_ONE_ABSTRACTION = 4  # number of tables in an abstraction


@pytest.fixture(scope="module")
def tables_read_once():
    """Read, lay out and pack bucket tables once in this process, for tests that only use them.

    Tables of one abstraction are cached, a gigabyte with four streets: take the second of `slot_abstractions`.
    """
    read, laid_out, packed = Abstraction._read, full_deck.bucket_tables, full_deck.WholeDeck.arrays

    def read_once(abstraction, street, name, out=None):
        key = abstraction.path, street, name
        if key not in _read:
            if len(_read) == _ONE_ABSTRACTION:
                for known in (_read, _laid_out, _packed):
                    known.clear()
            _read[key] = read(abstraction, street, name)
            _read[key].flags.writeable = False
        if out is not None:
            out[...] = _read[key]
        return _read[key]

    def laid_out_once(streets, board_cards=HOLDEM, memory=None):
        key = tuple(board_cards), *map(id, streets)
        known = {id(table) for table in _read.values()}
        if memory is not None or not known.issuperset(key[1:]):
            return laid_out(streets, board_cards, memory)
        if key not in _laid_out:
            _laid_out[key] = laid_out(streets, board_cards)
        return _laid_out[key]

    def packed_once(deck, narrow):
        key = tuple(map(id, deck.load()))
        if deck.histories is not None or not {id(table) for table in _read.values()}.issuperset(key):
            return packed(deck, narrow)
        if key not in _packed:
            _packed[key] = list(packed(deck, narrow))
        return iter(_packed[key])

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(full_deck.WholeDeck, "arrays", packed_once)
        patched.setattr(Abstraction, "_read", read_once)
        patched.setattr(full_deck, "bucket_tables", laid_out_once)
        yield


_read: dict = {}
_laid_out: dict = {}
_packed: dict = {}


@pytest.fixture(scope="session")
def built_recipe(tmp_path_factory):
    """Build a shipped card abstraction once by its recipe's name; return its directory."""

    @cache
    def build(name):
        directory = tmp_path_factory.mktemp(name)
        Builder(load_recipe(RUNS / f"abstractions/{name}.toml"), directory, 2).build()
        return directory

    return build
