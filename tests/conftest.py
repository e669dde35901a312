"""What is slow to make and tests share, and the report of processor time; helpers beside this file are importable."""

import fcntl
import os
from functools import cache

import numpy as np
import pytest
from places import RUNS
from processor_time import ProcessorTime

from abstraction.boards import STREET_CARDS, canonical_boards, used_slots
from abstraction.build import Builder
from abstraction.recipe import load_recipe
from storage.checkpoint import commit
from storage.schema import ArraySpec


def pytest_configure(config):
    config.pluginmanager.register(ProcessorTime())


def write_slot_abstraction(root, count):
    """An abstraction directory with `count` buckets a street, dealt out by slot: hands of suits that a renaming
    exchanges may differ, which nothing but a builder cares about; preflop is by slot as well."""
    for street, cards in STREET_CARDS.items():
        row = (np.arange(1326) * count // 1326).astype(np.uint16)
        used = used_slots(canonical_boards(cards)) if cards else np.ones((1, 1326), bool)
        bucket = np.where(used, row, np.uint16(0xFFFF))
        specs = [ArraySpec("bucket", bucket.shape, "uint16", ("board", "hole cards"))]
        identity = {"stage": f"{count}", "recipe": {"features": "slot"}}
        commit(root / street, 0, specs, {"bucket": bucket}, {"buckets": count}, identity, format="zarr", keep=1)


@pytest.fixture(scope="session")
def slot_abstractions(tmp_path_factory):
    """Two abstraction directories with ten and two buckets a street, dealt out by slot; nobody changes them."""
    root = tmp_path_factory.getbasetemp()
    root = root.parent if "PYTEST_XDIST_WORKER" in os.environ else root  # once for all processes of a test run
    made = [root / f"slots-{count}" for count in (10, 2)]
    with (root / "slots.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for path, count in zip(made, (10, 2), strict=True):
            if not path.exists():
                making = tmp_path_factory.mktemp(f"slots-{count}")
                write_slot_abstraction(making, count)
                making.rename(path)
    return made


@pytest.fixture(scope="session")
def built_recipe(tmp_path_factory):
    """Builds a shipped card abstraction by its recipe's name, once: its directory."""

    @cache
    def build(name):
        directory = tmp_path_factory.mktemp(name)
        Builder(load_recipe(RUNS / f"abstractions/{name}.toml"), directory, 2).build()
        return directory

    return build
